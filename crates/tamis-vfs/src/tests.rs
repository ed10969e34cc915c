//! What the property tests of all files share.

use proptest::test_runner::{Config, RngSeed};

/// So many cases, the same at every run; nothing is written into the source tree.
pub(crate) fn proptest_config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x7461_6d69_7300),
        ..Config::default()
    }
}
