//! A choice comes back as it was encoded; damaged bytes never do.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

fn choice() -> FilterChoice {
    let cost = |filters: &[&str], rates| ExpectedCost {
        filters: filters.iter().map(|filter| filter.parse().unwrap()).collect(),
        nanoseconds: 120.5,
        rates,
    };
    FilterChoice {
        chosen: cost(&["blocked-bloom@8", "surf-real:bits=4"], [0.01, 0.125, 1.0]),
        runners_up: vec![cost(&[], [1.0; 3]), cost(&["blocked-bloom@12"], [0.5, 0.5, 0.5])],
        empty_query_count: 1234,
        was_cut: true,
        is_for_targets: true,
        overlapping_tables: 300,
    }
}

#[test]
fn a_choice_is_decoded_as_it_was_encoded_and_never_from_a_part() {
    let bytes = choice().encode();
    assert_eq!(FilterChoice::decode(&bytes), Some(choice()));
    let whole = FilterChoice { runners_up: Vec::new(), ..choice() }.encode().len();
    for length in 0..whole {
        assert_eq!(FilterChoice::decode(bytes.get(..length).unwrap_or_default()), None, "{length}");
    }
}

#[test]
fn each_flag_is_kept_and_another_byte_is_refused() {
    for (was_cut, is_for_targets) in [(false, false), (false, true), (true, false), (true, true)] {
        for overlapping_tables in [1, 2, 500] {
            let choice = FilterChoice { was_cut, is_for_targets, overlapping_tables, ..choice() };
            let mut bytes = choice.encode();
            assert_eq!(FilterChoice::decode(&bytes), Some(choice));
            // The byte after a varint of two bytes.
            *bytes.get_mut(2).unwrap() |= 0x40;
            assert_eq!(FilterChoice::decode(&bytes), None);
        }
    }
}

#[test]
fn the_text_names_filters_rates_and_runners_up() {
    let text = choice().to_string();
    for part in [
        "1234",
        "blocked-bloom@8 + surf-real:bits=4",
        "12.50 % false positives of ranges",
        "no filters",
        "not all",
        "few false positives together",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
