//! Queries reconstructed from counters.

use super::PresentDepths;
use crate::rosetta::counters::{LevelUsage, Usage};

#[test]
fn depths_are_drawn_near_the_counted_ones() {
    let level = |bit_count, edge_positive| LevelUsage {
        bit_count: Some(bit_count),
        rate: 0.0,
        asked: 1000,
        positive: edge_positive,
        edge_asked: 1000,
        edge_positive,
        ranges: 1000,
    };
    let usage =
        Usage { levels: vec![level(20, 1000), level(40, 10)], ranges_rejected: 1000, ..Usage::default() };
    let depths = PresentDepths::new(&usage, 44, false);
    assert_eq!(depths.at(0.1), 36);
    assert_eq!(depths.at(0.005), 41);
    assert!(depths.at(0.999) >= 20);
    assert_eq!(PresentDepths::new(&usage, 44, true).at(0.1), 30);
}
