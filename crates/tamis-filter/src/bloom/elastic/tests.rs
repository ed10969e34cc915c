//! Sizes: units follow the budget, and a filter without room for a line abstains.

use super::ElasticBuilder;
use crate::{AnyFilter, Budget, Digester, Filter, FilterBuilder, FilterSpec, Probe, Samples};

fn design(builder: &dyn FilterBuilder, bits_per_key: f64) -> String {
    let bytes =
        builder.finish(Budget::bits_per_key(bits_per_key).expect("possible"), Samples::NONE).expect("fits");
    let mut design = String::new();
    AnyFilter::open(bytes).expect("whole").design(&mut design).expect("text");
    design
}

#[test]
fn units_have_about_three_bits_unless_their_number_is_given() {
    let mut builder = ElasticBuilder::new(1);
    let mut with_units =
        "elastic:units=2".parse::<FilterSpec>().and_then(|spec| spec.builder(1)).expect("possible");
    for key in 0..10_000_u32 {
        builder.add(&key.to_be_bytes()).expect("sorted");
        with_units.add(&key.to_be_bytes()).expect("sorted");
    }
    for (bits_per_key, unit_count) in [(1.0, 1), (6.0, 2), (10.0, 3), (12.0, 4), (100.0, 8)] {
        let design = design(&builder, bits_per_key);
        assert!(design.starts_with(&format!("{unit_count} of {unit_count} units")), "{design}");
    }
    assert!(design(with_units.as_ref(), 12.0).starts_with("2 of 2 units"));
}

#[test]
fn an_elastic_filter_without_room_for_a_line_admits_every_key() {
    let mut builder = ElasticBuilder::new(1);
    builder.add(b"a").expect("sorted");
    assert!(design(&builder, 10.0).starts_with("0 of 0 units"));
    let bytes = builder.finish(Budget::bits_per_key(10.0).expect("possible"), Samples::NONE).expect("fits");
    let filter = AnyFilter::open(bytes).expect("whole");
    assert!(filter.may_contain(&Probe::new(b"b", &Digester::new(1))));
    assert_eq!(filter.predicted_fpr(), Some(1.0));
}
