//! Small levels get more bits, and lookups have fewer false positives than with equal bits.

use tamis_filter::level_filter_bits::blocked_bloom_fpr;

use super::*;
use crate::{
    options::KeyspaceOptions,
    version::{
        catalog::Catalog,
        edit::VersionEdit,
        test_support::{add, first_edit, place, summary},
        version::KeyspaceVersion,
    },
};

/// Keys in levels 0, 14 and 15.
fn version(counts: [u64; 3]) -> Arc<KeyspaceVersion> {
    let mut edit: VersionEdit = first_edit(KeyspaceOptions::default());
    for (number, (level, count)) in (1..).zip([0, 14, 15].into_iter().zip(counts)) {
        let of_level = summary(number, ("a", "z"), count * 100, (100 - number, 100 - number));
        edit.push(add(place(level, if level == 0 { 99 } else { 0 }), of_level));
    }
    let state = Catalog::default().apply(&edit, &Arc::default()).expect("a possible edit").catalog;
    Arc::clone(state.keyspaces.get(&1).expect("keyspace 1"))
}

#[test]
fn optimal_bits_have_fewer_false_positives_than_equal_bits() {
    let counts = [10_000, 100_000, 1_000_000];
    let version = version(counts);
    let rewritten = |level, number, count| {
        bits_of_level(
            version.partitions.first().expect("one partition"),
            (level, if level == 0 { 99 } else { 0 }),
            count,
            &[number],
            10.0,
        )
    };
    let bits = [rewritten(0, 1, counts[0]), rewritten(14, 2, counts[1]), rewritten(15, 3, counts[2])];
    assert!(bits[0] > bits[1] && bits[1] > bits[2] && bits[2] < 10.0, "{bits:?}");
    let spent: f64 = bits.iter().zip(counts).map(|(bits, count)| f64::from(*bits) * count as f64).sum();
    assert!(spent <= 10.0 * 1_110_000.0 * 1.001, "{bits:?}");
    let reads: f64 = bits.iter().map(|bits| blocked_bloom_fpr(f64::from(*bits))).sum();
    assert!(reads < 0.6 * 3.0 * blocked_bloom_fpr(10.0), "{bits:?}: {reads}");
}

#[test]
fn a_new_run_of_level_0_counts_in_addition_to_the_others() {
    let version = version([10_000, 100_000, 1_000_000]);
    let bits = bits_of_level(version.partitions.first().expect("one partition"), (0, 100), 10_000, &[], 10.0);
    assert!(bits > 12.0, "{bits}");
    assert_eq!(
        bits_of_level(version.partitions.first().expect("one partition"), (0, 100), 10, &[], 10.0),
        10.0
    );
}
