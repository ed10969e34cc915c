//! The rules for lists of sizes, and how often an entry is rewritten until nothing is due.

use super::due_count;

const TABLE: u64 = 1 << 20;
const FAN_IN: u64 = 4;

fn due(sizes: &[u64]) -> Option<usize> {
    Some(due_count(sizes.iter().copied(), TABLE, FAN_IN)).filter(|count| *count > 0)
}

#[test]
fn neighbours_are_due_if_they_fit_into_a_table_and_none_is_much_larger() {
    assert_eq!(due(&[]), None);
    assert_eq!(due(&[4, 4, 4]), None, "too few");
    assert_eq!(due(&[4, 4, 4, 4]), Some(4));
    assert_eq!(due(&[4; 100]), Some(100), "as many as possible");
    assert_eq!(due(&[16, 4, 4, 4]), None, "the first one would be rewritten for few bytes");
    assert_eq!(due(&[4, 4, 4, 4, 100]), Some(4));
    assert_eq!(due(&[TABLE / 4; 5]), Some(4), "no more than fit");
    assert_eq!(due(&[TABLE / 3; 5]), None);
    assert_eq!(due(&[u64::MAX; 5]), None);
}

/// Tables of one size come one after the other, at any place.
#[test]
fn few_tables_are_left_and_an_entry_is_rewritten_a_logarithmic_number_of_times() {
    for step in [1_usize, 7, 389] {
        let (mut run, mut written) = (Vec::<u64>::new(), 0);
        for number in 0..1000_usize {
            run.insert(number * step % (run.len() + 1), 4096);
            let find = |run: &[u64]| (0..run.len()).find_map(|from| Some((from, due(run.get(from..)?)?)));
            while let Some((from, count)) = find(&run) {
                let total = run.drain(from..from + count).sum();
                run.insert(from, total);
                written += total;
            }
        }
        let bytes: u64 = run.iter().sum();
        assert_eq!(bytes, 4096 * 1000);
        assert!(run.len() < 60, "{} tables with step {step}", run.len());
        assert!(written <= 4 * bytes, "{written} bytes with step {step}");
    }
}
