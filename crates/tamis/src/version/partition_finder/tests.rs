use std::sync::Arc;

use super::*;
use crate::{options::KeyspaceOptions, version::partition::Partition};

fn version(ids: &[u64]) -> KeyspaceVersion {
    let partition = |(index, id): (usize, &u64)| {
        let lower = if index == 0 { Vec::new() } else { (index as u32).to_be_bytes().to_vec() };
        Arc::new(Partition::new(*id, lower, 0))
    };
    KeyspaceVersion {
        id: 1,
        name: "default".into(),
        options: Arc::new(KeyspaceOptions::default()),
        partitions: ids.iter().enumerate().map(partition).collect(),
    }
}

#[test]
fn every_partition_is_found_in_any_order_of_lookups() {
    let ids: Vec<u64> = (0..500).map(|index| (index * 7919) % 500 + 1).collect();
    let mut version = version(&ids);
    let mut finder = PartitionFinder::default();
    for step in [1, 3, 77, 499] {
        for lookup in 0..500 {
            let position = (lookup * step) % 500;
            assert_eq!(finder.find(&version, *ids.get(position).expect("an id")), Some(position));
        }
        assert_eq!(finder.find(&version, 501), None);
    }
    // After a change the positions of the others change.
    let gone = version.partitions.list_mut().remove(100);
    finder.note_removed(version.id, gone.id, 100);
    assert_eq!(finder.find(&version, gone.id), None);
    let added = Partition::new(501, gone.lower.clone(), 0);
    for (position, new) in [(100, added), (300, Partition::new(250_000, vec![7], 0))] {
        finder.note_added(version.id, new.id, position);
        version.partitions.list_mut().insert(position, Arc::new(new));
    }
    for (position, partition) in version.partitions.iter().enumerate().rev() {
        assert_eq!(finder.find(&version, partition.id), Some(position));
    }
    steps::take(Step::FoundPartition);
    for (position, partition) in version.partitions.iter().enumerate().step_by(3) {
        assert_eq!(finder.find(&version, partition.id), Some(position));
    }
    let steps = steps::take(Step::FoundPartition);
    assert!(steps <= version.partitions.len(), "{steps} steps: the list was made again");
}
