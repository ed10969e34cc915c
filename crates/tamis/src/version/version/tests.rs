#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::{
    table::properties::TableSummary,
    version::{
        edit::Change,
        level::LEVELED_RUN_AGE,
        test_support::{add, catalog_of, place, summary},
    },
};

fn version_of(changes: Vec<Change>) -> KeyspaceVersion {
    let catalog = catalog_of(changes, &Arc::default());
    (**catalog.keyspaces.get(&1).unwrap()).clone()
}

fn partition_at(id: u64, lower: &str) -> Change {
    Change::AddPartition { keyspace: 1, partition: id, lower: lower.as_bytes().to_vec(), flushed_sequence: 0 }
}

#[test]
fn every_key_belongs_to_one_partition() {
    let version = version_of(vec![partition_at(2, "h"), partition_at(3, "p")]);
    for (key, id) in [("", 1), ("a", 1), ("gzz", 1), ("h", 2), ("o", 2), ("p", 3), ("zz", 3)] {
        assert_eq!(version.partition_of(key.as_bytes()).unwrap().id, id, "{key}");
    }
    let ids = |lower, upper| {
        version.partitions_within((lower, upper)).iter().map(|partition| partition.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(Bound::Unbounded, Bound::Unbounded), [1, 2, 3]);
    assert_eq!(ids(Bound::Included(b"b".as_slice()), Bound::Excluded(b"h".as_slice())), [1]);
    assert_eq!(ids(Bound::Included(b"b".as_slice()), Bound::Included(b"h".as_slice())), [1, 2]);
    assert_eq!(ids(Bound::Excluded(b"i".as_slice()), Bound::Unbounded), [2, 3]);
    assert_eq!(version.upper_of(0), Some(b"h".as_slice()));
    assert_eq!(version.upper_of(2), None);
}

#[test]
fn a_whole_version_breaks_no_rule() {
    let version = version_of(vec![
        add(place(0, 90), summary(9, ("c", "k"), 100, (81, 90))),
        add(place(0, 80), summary(8, ("a", "z"), 100, (71, 80))),
        add(place(6, LEVELED_RUN_AGE), summary(3, ("a", "h"), 100, (1, 70))),
        add(place(6, LEVELED_RUN_AGE), summary(4, ("i", "x"), 100, (1, 70))),
    ]);
    assert_eq!(check_invariants(&version), None);
    let partition = version.partitions.first().unwrap();
    let places: Vec<_> = partition.runs().map(|(level, run)| (level, run.age())).collect();
    assert_eq!(places, [(0, 90), (0, 80), (6, 0)]);
}

#[test]
fn each_broken_rule_is_named() {
    let low =
        |number, keys: (&str, &str)| -> (_, TableSummary) { (place(3, 0), summary(number, keys, 9, (1, 2))) };
    let broken = |changes: Vec<(_, TableSummary)>| {
        let changes = changes.into_iter().map(|(place, summary)| add(place, summary)).collect();
        check_invariants(&version_of(changes)).unwrap_or_default()
    };
    assert!(broken(vec![low(1, ("a", "d")), low(2, ("d", "f"))]).contains("overlap"));
    assert!(
        broken(vec![
            (place(3, 0), summary(1, ("a", "b"), 9, (1, 1))),
            (place(3, 1), summary(2, ("x", "y"), 9, (2, 2)))
        ])
        .contains("2 runs at level 3")
    );
    assert!(
        broken(vec![
            (place(0, 5), summary(1, ("a", "d"), 9, (1, 1))),
            (place(0, 4), summary(2, ("b", "c"), 9, (2, 2)))
        ])
        .contains("newer run")
    );
    let outside = version_of(vec![partition_at(2, "h"), add(place(3, 0), summary(1, ("g", "h"), 9, (1, 1)))]);
    assert!(check_invariants(&outside).unwrap().contains("outside"));
    let mut uncovered = outside;
    uncovered.partitions.remove(0);
    assert!(check_invariants(&uncovered).unwrap().contains("cover"));
}
