#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::version::{edit::Change, test_support::catalog_of};

fn version_of(changes: Vec<Change>) -> KeyspaceVersion {
    let catalog = catalog_of(changes, &Arc::default());
    (**catalog.keyspaces.get(&1).unwrap()).clone()
}

fn partition_at(id: u64, lower: &str) -> Change {
    Change::AddPartition { keyspace: 1, partition: id, lower: lower.as_bytes().to_vec(), flushed_sequence: 0 }
}

#[test]
fn every_key_is_in_one_partition() {
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
