use super::*;
use crate::backup_list::tests::backup_at;

const DAY: u64 = 86_400_000;

fn removed(keep: &str, times: &[u64], now: u64) -> Vec<u64> {
    let backups: Vec<Backup> = (1..).zip(times).map(|(number, time)| backup_at(number, *time)).collect();
    let keep: Keep = keep.parse().expect("it is valid");
    let mut numbers: Vec<u64> = keep.obsolete(&backups, now).iter().map(|backup| backup.number).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn the_backups_for_the_last_days_stay() {
    let times = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|day| day * DAY);
    // Number 3 has the state of the moment three and a half days before.
    assert_eq!(removed("7d", &times, 10 * DAY), [1, 2]);
    assert_eq!(removed("1w", &times, 10 * DAY), [1, 2]);
    assert_eq!(removed("2", &times, 10 * DAY), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(removed("0s", &times, 10 * DAY), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert!(removed("7d", &[], 10 * DAY).is_empty());
    // A clock that jumped ahead by years, before the prune or after it.
    assert_eq!(removed("7d", &times, 9_999 * DAY), [1, 2]);
    assert!(removed("7d", &times, 0).is_empty());
}

#[test]
fn wrong_ages_are_refused() {
    for text in ["", "0", "d", "7y", "-1", "7 d", "1.5h", "99999999999999999999d"] {
        assert!(text.parse::<Keep>().is_err(), "{text}");
    }
}
