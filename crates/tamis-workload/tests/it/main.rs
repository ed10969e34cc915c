//! The files that are written equal the published SHA-256 sums, byte for byte.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use sha2::{Digest, Sha256};
use tamis_workload::{
    KeySet, NON_EMPTY_SEED, PUBLIC_KEY_SEED, QUERY_SEED, QuerySet, SAMPLE_SEED,
    file::{key_set_name, write_keys, write_ranges},
    non_empty_ranges,
};

const SUMS: &str = include_str!("SHA256SUMS");

/// The published sum of a file.
fn published(name: &str) -> &'static str {
    SUMS.lines()
        .find_map(|line| line.split_once("  ").filter(|(_, file)| *file == name))
        .unwrap_or_else(|| panic!("no sum of {name}"))
        .0
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check(set: KeySet) {
    let keys = set.generate(1_000_000, PUBLIC_KEY_SEED);
    let stem = key_set_name(set, 1_000_000, PUBLIC_KEY_SEED);
    let mut bytes = Vec::new();
    write_keys(&mut bytes, &keys).unwrap();
    assert_eq!(sum(&bytes), published(&format!("{stem}.keys")), "{stem}.keys");

    let check_ranges = |name: String, ranges: &[(u64, u64)]| {
        let mut bytes = Vec::new();
        write_ranges(&mut bytes, ranges).unwrap();
        assert_eq!(sum(&bytes), published(&name), "{name}");
    };
    for queries in QuerySet::published(set) {
        for (seed, count, suffix) in [(QUERY_SEED, 1_000_000, "q"), (SAMPLE_SEED, 20_000, "s")] {
            let ranges = queries.generate(set, &keys, count, seed).unwrap();
            check_ranges(format!("{stem}.{queries}_s{seed}.{suffix}"), &ranges);
        }
    }
    let ranges = non_empty_ranges(&keys, 100_000, NON_EMPTY_SEED);
    check_ranges(format!("{stem}.fn_s{NON_EMPTY_SEED}.q"), &ranges);
}

#[test]
fn uniform_files_equal_their_sums() {
    check(KeySet::Uniform);
}

#[test]
fn normal_files_equal_their_sums() {
    check(KeySet::Normal);
}

#[test]
fn gaps_files_equal_their_sums() {
    check(KeySet::Gaps);
}
