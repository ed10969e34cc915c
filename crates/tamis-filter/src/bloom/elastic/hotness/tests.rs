//! An output table inherits the hotness of its inputs in proportion to the keys.

use super::{Ancestor, inherited_hotness};

#[test]
fn output_tables_inherit_hotness_in_proportion_to_keys() {
    let hot = Ancestor { hotness: 900.0, key_count: 100, shared_count: 50 };
    let cold = Ancestor { hotness: 0.0, key_count: 100, shared_count: 50 };
    assert!((inherited_hotness(100, &[hot, cold]) - 450.0).abs() < 1e-9);
    assert!((inherited_hotness(50, &[hot]) - 450.0).abs() < 1e-9);
    assert_eq!(inherited_hotness(50, &[]), 0.0);
}
