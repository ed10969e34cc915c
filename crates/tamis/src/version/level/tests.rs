#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::version::test_support::table;

fn run() -> Run {
    let mut run = Run::new(1);
    for (number, keys) in [(3, ("m", "p")), (1, ("b", "d")), (2, ("f", "f"))] {
        run.insert(table(number, keys, 100, (1, 9)));
    }
    run
}

fn numbers(tables: &[Arc<Table>]) -> Vec<u64> {
    tables.iter().map(|table| table.number()).collect()
}

#[test]
fn a_key_is_in_one_table_at_most() {
    let run = run();
    let expected = [
        ("a", None),
        ("b", Some(1)),
        ("c", Some(1)),
        ("d", Some(1)),
        ("e", None),
        ("f", Some(2)),
        ("ff", None),
        ("m", Some(3)),
        ("p", Some(3)),
        ("pa", None),
    ];
    for (key, number) in expected {
        assert_eq!(run.table_of(key.as_bytes()).map(|table| table.number()), number, "{key}");
    }
}

#[test]
fn bounds_select_every_table_that_may_have_a_key_within_them() {
    use Bound::{Excluded, Included, Unbounded};
    let run = run();
    let within = |lower: Bound<&str>, upper: Bound<&str>| {
        numbers(run.tables_within((lower.map(str::as_bytes), upper.map(str::as_bytes))))
    };
    assert_eq!(within(Unbounded, Unbounded), [1, 2, 3]);
    assert_eq!(within(Included("d"), Included("f")), [1, 2]);
    assert_eq!(within(Excluded("d"), Excluded("f")), [0_u64; 0]);
    assert_eq!(within(Included("e"), Excluded("m")), [2]);
    assert_eq!(within(Included("q"), Unbounded), [0_u64; 0]);
    assert_eq!(within(Unbounded, Excluded("b")), [0_u64; 0]);
    assert_eq!(within(Included("n"), Included("a")), [0_u64; 0], "reversed bounds are empty");
}

#[test]
fn runs_are_in_order_of_age_and_empty_runs_are_dropped() {
    let mut level = Level::default();
    for age in [5, 9, 7] {
        level.run_or_new(age).insert(table(age, ("a", "b"), 100, (age, age)));
    }
    assert_eq!(level.runs().iter().map(|run| run.age()).collect::<Vec<_>>(), [9, 7, 5]);
    assert_eq!(level.run_mut(7).unwrap().remove(7).unwrap().number(), 7);
    level.drop_empty_runs();
    assert_eq!(level.runs().len(), 2);
    assert_eq!(level.bytes(), 200);
}

/// Tables were found by a scan of all keys with equal first bytes; with many of them a lookup read them all.
#[test]
fn keys_with_equal_first_bytes_are_found() {
    let mut run = Run::new(1);
    for number in [7_u64, 1, 5, 3, 0, 2, 6, 4] {
        let (smallest, largest) = (format!("same prefix {number} a"), format!("same prefix {number} m"));
        run.insert(table(number, (&smallest, &largest), 100, (number, number + 1)));
    }
    assert_eq!(numbers(run.tables()), [0, 1, 2, 3, 4, 5, 6, 7]);
    for number in 0..8 {
        let within = format!("same prefix {number} c");
        assert_eq!(run.table_of(within.as_bytes()).map(|table| table.number()), Some(number));
        let after = format!("same prefix {number} n");
        assert_eq!(run.position(after.as_bytes()) as u64, number + 1);
        assert!(run.table_of(after.as_bytes()).is_none());
    }
    assert_eq!(run.position(b"a"), 0);
    assert_eq!(run.position(b"z"), 8);
}

#[test]
fn a_run_knows_the_sequence_numbers_of_its_tables() {
    let mut run = Run::new(1);
    for (number, keys, sequences) in
        [(1, ("a", "b"), (5, 9)), (2, ("c", "d"), (3, 4)), (3, ("e", "f"), (6, 7))]
    {
        run.insert(table(number, keys, 100, sequences));
    }
    assert_eq!(run.sequence_range(), (3, 9));
    assert_eq!(Run::of(1, run.tables()).sequence_range(), (3, 9));
    run.remove(2).unwrap();
    assert_eq!(run.sequence_range(), (5, 9));
    run.remove(1).unwrap();
    assert_eq!(run.sequence_range(), (6, 7));
    assert!(run.remove(1).is_none());
}
