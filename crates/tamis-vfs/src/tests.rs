//! Shared configuration of the property tests.

use proptest::test_runner::{Config, RngSeed};

/// Runs this many cases with a fixed seed. Writes nothing into the source tree.
pub(crate) fn proptest_config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x7461_6d69_7300),
        ..Config::default()
    }
}
