//! Filters by level, as text, and what is refused.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

#[test]
fn text_names_family_parameters_and_bits() {
    for text in ["blocked-bloom@10", "surf-real:bits=8", "surf@16.5", "elastic:units=3,probes=2@12"] {
        assert_eq!(text.parse::<TableFilter>().unwrap().to_string(), text);
    }
    for (text, said) in [
        ("elastic@x", "number"),
        ("blom@10", "blocked-bloom"),
        ("@10", "blocked-bloom"),
        ("", "blocked-bloom"),
    ] {
        let error = text.parse::<TableFilter>().unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn filters_that_cannot_be_built_are_refused() {
    for text in ["blocked-bloom", "blocked-bloom@0", "surf@-1", "surf@65", "surf:none=1@16", "elastic@NaN"] {
        let error = text.parse::<TableFilter>().unwrap_err().to_string();
        assert!(error.contains("filters"), "{text}: {error}");
        let (spec, bits) =
            text.split_once('@').map_or((text, None), |(spec, bits)| (spec, bits.parse().ok()));
        assert!(TableFilter::new(spec.parse().unwrap(), bits).check().is_err(), "{text}");
    }
    for text in ["blocked-bloom@10", "surf-base", "surf-hash:bits=4", "elastic@12"] {
        text.parse::<TableFilter>().unwrap().check().unwrap();
    }
    assert!(Filters::bits(f32::NAN).check().is_err());
    let of_no_bits = TableFilter::new("surf".parse().unwrap(), Some(0.0));
    assert!(Filters::per_level([Vec::new(), vec![of_no_bits]]).check().is_err());
}

#[test]
fn unknown_parameters_are_refused_with_the_known_ones() {
    let error = "elastic:units=3,bits=2@12".parse::<TableFilter>().unwrap_err();
    let Error::UnknownFilterParameter { filter, family, parameter, known } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(
        (filter.as_str(), *family, parameter.as_str()),
        ("elastic:units=3,bits=2@12", "elastic", "bits")
    );
    assert!(known.contains("units") && known.contains("probes"), "{known}");
    assert!(error.to_string().contains(known), "{error}");
}

#[test]
fn the_last_level_counts_for_deeper_ones() {
    let bits = |filters: &Filters, depth| -> Option<f32> {
        filters.of_level(depth).first().and_then(TableFilter::bits_per_key)
    };
    let filters =
        Filters::per_level([vec![TableFilter::bits(12.0)], Vec::new(), vec![TableFilter::bits(8.0)]]);
    assert_eq!([0, 1, 2, 9].map(|depth| bits(&filters, depth)), [Some(12.0), None, Some(8.0), Some(8.0)]);
    assert!(Filters::none().of_level(0).is_empty() && Filters::bits(0.0).of_level(0).is_empty());
    assert_eq!(bits(&Filters::bits(10.0), 3), Some(10.0));
    assert_eq!(*Filters::default().source(), FilterSource::Chosen(FilterBudget::BitsPerKey(16.0)));
}

#[test]
fn budgets_outside_their_bounds_are_refused() {
    Filters::auto(8.0).check().unwrap();
    for bits in [0.0, -1.0, 65.0, f32::NAN] {
        assert!(Filters::auto(bits).check().is_err(), "{bits}");
    }
}

#[test]
fn a_budget_in_bytes_gives_each_key_its_share() {
    let budget = FilterBudget::Bytes(1_000_000);
    let bits = [1, 1_000_000, 8_000_000, u64::MAX].map(|keys| budget.bits_per_key(keys));
    assert_eq!(bits[..3], [24.0, 8.0, 1.0]);
    assert!(bits[3] > 0.0 && bits[3] < 1e-9);
    assert_eq!(budget.of_single_table(), 16.0);
    Filters::auto_bytes(1).check().unwrap();
    let error = Filters::auto_bytes(0).check().unwrap_err();
    assert!(matches!(&error, Error::InvalidArgument { what: "filters", .. }), "{error:?}");
}
