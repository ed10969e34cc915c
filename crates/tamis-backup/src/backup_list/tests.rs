use super::*;
use crate::format::{Kind, Part, VERSION};

pub(crate) fn backup_at(number: u64, time_milliseconds: u64) -> Backup {
    Backup {
        format: VERSION,
        store: "0123456789abcdef".to_owned(),
        number,
        time_milliseconds,
        sequence: number * 10,
        kind: Kind::Whole,
        base: number,
        uploaded_bytes: 0,
        store_bytes: 0,
        catalog: String::new(),
        tables: Part::of(b"tables"),
        files: Vec::new(),
        object: format!("{BACKUPS}/{number:010}-{number:016x}.json"),
    }
}

fn backups(times: &[&str]) -> BackupList {
    let intact = (1..)
        .zip(times)
        .map(|(number, time)| backup_at(number, time::parse(time).expect("a time")))
        .collect();
    BackupList { target: "target".to_owned(), intact, damaged: Vec::new() }
}

#[test]
fn a_time_names_the_newest_backup_before_it() {
    let backups = backups(&["2026-11-01T10:00:00Z", "2026-11-02T10:00:00Z", "2026-11-03T10:00:00Z"]);
    let find = |wanted: &str| backups.find(Some(wanted)).map(|backup| backup.number);
    assert_eq!(find("2026-11-02").expect("there is one"), 2);
    assert_eq!(find("2026-11-02T09:59").expect("there is one"), 1);
    assert_eq!(find("2030-01-01").expect("there is one"), 3);
    assert_eq!(find("2").expect("there is one"), 2);
    assert_eq!(find("3-00000").expect("there is one"), 3);
    for wanted in ["2026-11-01T09:59", "4", "3-1", "", "2026-13-01"] {
        assert!(matches!(find(wanted), Err(Error::NoBackup { .. })), "{wanted}");
    }
}

/// BackupList 3 and 4 were made after the clock had jumped back.
#[test]
fn a_time_with_several_states_is_refused() {
    let backups = backups(&[
        "2026-11-01T10:00:00Z",
        "2026-11-05T10:00:00Z",
        "2026-11-02T10:00:00Z",
        "2026-11-06T10:00:00Z",
    ]);
    let find = |wanted: &str| backups.find(Some(wanted)).map(|backup| backup.number);
    assert_eq!(find("2026-11-01").expect("there is one"), 1);
    assert_eq!(find("2026-11-05").expect("there is one"), 3);
    assert_eq!(find("2026-11-06").expect("there is one"), 4);
    let error = find("2026-11-03").expect_err("it is 1 or 3").to_string();
    assert!(error.contains("between backups 2 and 3"), "{error}");
}
