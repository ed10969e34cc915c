//! No form has false negatives, and all have the rate of their formula.

use tamis_filter::{Digester, KeySet, Probe};

use super::*;

#[test]
fn forms_have_no_false_negatives_and_the_rate_of_the_formula() {
    let mut keys = KeySet::new();
    (0..20_000_u64).for_each(|key| keys.push(&(key * 3).to_be_bytes()).expect("sorted"));
    let digester = Digester::new(5);
    for name in Scheme::ALL.map(|(_, name)| name).into_iter().chain([Fuse::NAME]) {
        let filter = build(name, 10.0, &keys, 5).expect("possible").expect("a research form");
        assert!(keys.iter().all(|key| filter.may_contain(&Probe::new(key, &digester))), "{name}");
        let query_count = 1_000_000_u64;
        let is_positive =
            |query: &u64| filter.may_contain(&Probe::new(&(query * 3 + 1).to_be_bytes(), &digester));
        let measured = (0..query_count).filter(is_positive).count() as f64 / query_count as f64;
        let predicted = filter.predicted_fpr().expect("a formula");
        assert!((measured / predicted - 1.0).abs() < 0.06, "{name}: {measured} {predicted}");
    }
    assert!(build("surf", 10.0, &keys, 5).expect("possible").is_none(), "a family of the store");
}
