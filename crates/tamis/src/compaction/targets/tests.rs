#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::*;
use crate::{
    compaction::strategy::pending_bytes,
    version::{
        level::LEVELED_RUN_AGE,
        test_support::{add, catalog_of, place, summary},
        version::KeyspaceVersion,
    },
};

/// A version whose levels have these sizes in bytes.
fn version_of(sizes: &[(u8, u64)], options: KeyspaceOptions) -> KeyspaceVersion {
    let table = |(level, bytes): &(u8, u64)| {
        let age = if *level == 0 { 1 } else { LEVELED_RUN_AGE };
        add(place(*level, age), summary(u64::from(*level) + 1, ("a", "z"), *bytes, (1, 1)))
    };
    let state = catalog_of(sizes.iter().map(table).collect(), &Arc::default());
    KeyspaceVersion { options: Arc::new(options), ..(*state.keyspaces[&1]).clone() }
}

fn options(size_ratio: u32) -> KeyspaceOptions {
    KeyspaceOptions::default()
        .memtable_bytes(1 << 20)
        .table_bytes(1 << 20)
        .level0_runs(4)
        .size_ratio(size_ratio)
}

fn targets(sizes: &[(u8, u64)], size_ratio: u32) -> LevelTargets {
    let version = version_of(sizes, options(size_ratio));
    LevelTargets::new(&version.partitions[0], &PickerConfig::new(&version.options))
}

const MIB: u64 = 1 << 20;

#[test]
fn the_first_data_is_written_to_the_deepest_level_and_the_base_level_rises() {
    for (bytes, base_level) in
        [(0, 15), (MIB, 15), (8 * MIB, 15), (9 * MIB, 14), (80 * MIB, 14), (100 * MIB, 13), (1000 * MIB, 12)]
    {
        let sizes = if bytes == 0 { vec![] } else { vec![(15, bytes)] };
        assert_eq!(targets(&sizes, 10).base_level, base_level, "{bytes} bytes");
    }
    assert_eq!(targets(&[(15, 1 << 62)], 10).base_level, 3);
    assert_eq!(targets(&[(15, 1 << 62)], 2).base_level, 1, "never above the first level");
}

#[test]
fn each_level_is_larger_by_the_ratio_and_the_deepest_has_its_size() {
    let found = targets(&[(14, 60 * MIB), (15, 600 * MIB)], 10);
    assert_eq!(found.base_level, 13);
    assert_eq!(found.bytes[12], 0);
    assert_eq!(found.bytes[13..], [8 * MIB, 60 * MIB, 600 * MIB]);
    assert_eq!((found.depth(0), found.depth(13), found.depth(15)), (0, 1, 3));
}

#[test]
fn levels_within_their_sizes_have_no_pending_bytes() {
    let pending = |sizes: &[(u8, u64)]| pending_bytes(&version_of(sizes, options(10)));
    assert_eq!(pending(&[]), 0);
    assert_eq!(pending(&[(0, MIB), (15, 3 * MIB)]), 0);
    assert_eq!(pending(&[(14, 8 * MIB), (15, 30 * MIB)]), 0);
    assert_eq!(pending(&[(14, 16 * MIB), (15, 80 * MIB)]), 8 * MIB + 40 * MIB, "half of the level overlaps");
    assert!(pending(&[(0, 5 * MIB), (15, 3 * MIB)]) >= 8 * MIB);
}
