//! Runs every target with seeded inputs of growing length: random bytes, runs of one byte, and small numbers.

use std::path::Path;

use tamis_fuzz::TARGETS;
use tamis_workload::SplitMix64;

const INPUT_COUNT: u64 = 4_000;

fn input(random: &mut SplitMix64, number: u64) -> Vec<u8> {
    let length = random.next_u64() % (2 + number / 8);
    let shape = random.next_u64() % 4;
    let byte = random.next_u64() as u8;
    (0..length)
        .map(|_| match shape {
            0 => random.next_u64() as u8,
            1 => (random.next_u64() % 5) as u8,
            2 if !random.next_u64().is_multiple_of(16) => byte,
            _ => (random.next_u64() & random.next_u64() & random.next_u64()) as u8,
        })
        .collect()
}

#[test]
fn every_target_passes_on_seeded_inputs() {
    for (name, target) in TARGETS {
        let mut random = SplitMix64::new(42);
        for number in 0..INPUT_COUNT {
            let data = input(&mut random, number);
            let outcome = std::panic::catch_unwind(|| target(&data));
            assert!(outcome.is_ok(), "target {name} panicked on input {number} of seed 42: {data:?}");
        }
    }
}

#[test]
fn every_target_has_a_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().replace(".rs", ""))
        .collect();
    files.sort();
    let mut names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}
