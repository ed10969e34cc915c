//! Empty ranges of text are empty, others are not, and mixes have their share.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

fn holds(keys: &[Vec<u8>], (lower, upper): &TextRange) -> bool {
    assert!(lower <= upper);
    keys.iter().any(|key| lower <= key && key <= upper)
}

#[test]
fn ranges_and_prefixes_contain_no_key() {
    let (keys, words) = TextSet::Domains.generate_split(5000, 5000, 42);
    let ranges = empty_text_ranges(&keys, &words);
    assert!(ranges.len() > 4000, "{}", ranges.len());
    for (lower, upper) in &ranges {
        assert!(lower < upper && !keys.iter().any(|key| lower <= key && key <= upper));
    }
    let prefixes = empty_prefixes(&keys, &words, 7);
    assert!(prefixes.len() > 1000, "{}", prefixes.len());
    assert!(
        prefixes.iter().all(|prefix| prefix.len() == 7 && !keys.iter().any(|key| key.starts_with(prefix)))
    );
    let absent = absent_texts(TextSet::Domains, &keys, 1000, 43);
    assert!(absent.len() == 1000 && !absent.iter().any(|text| keys.contains(text)));
    assert!(empty_text_ranges(&keys, &[vec![255], Vec::new()]).is_empty());
}

#[test]
fn mixes_have_their_share_of_empty_ranges_evenly() {
    for text_set in TextSet::ALL {
        let keys = text_set.generate(2000, 42);
        for percent in [0, 25, 50, 99, 100] {
            let ranges = TextQuerySet::Mixed(percent).generate(text_set, &keys, 400, 43).unwrap();
            assert_eq!(ranges.len(), 400);
            for hundred in ranges.chunks(100) {
                let empty = hundred.iter().filter(|range| !holds(&keys, range)).count();
                assert_eq!(empty, usize::from(percent), "{text_set}");
            }
            let (lower, upper) = ranges.first().unwrap();
            assert!(lower < upper && lower.len() == upper.len(), "one step of the last byte");
        }
        let mixed = |seed| TextQuerySet::Mixed(50).generate(text_set, &keys, 400, seed);
        assert_eq!(mixed(43), mixed(43));
        assert_ne!(mixed(43), mixed(44));
    }
}

#[test]
fn every_set_is_drawn_by_name_and_non_empty_ranges_contain_a_key() {
    for text_set in TextSet::ALL {
        let keys = text_set.generate(2000, 42);
        for name in ["points", "ranges", "prefix_b128", "mixed_e100"] {
            let set: TextQuerySet = name.parse().unwrap();
            assert_eq!(set.to_string(), name);
            let ranges = set.generate(text_set, &keys, 200, 43).unwrap();
            assert!((100..=200).contains(&ranges.len()), "{text_set} {name}: {}", ranges.len());
            assert!(!ranges.iter().any(|range| holds(&keys, range)), "{text_set} {name}");
        }
        let ranges = non_empty_text_ranges(&keys, 300, 45);
        assert_eq!(ranges.len(), 300);
        assert!(ranges.iter().all(|range| holds(&keys, range)), "{text_set}");
        assert_eq!(ranges.iter().filter(|(lower, upper)| lower == upper).count(), 100);
    }
    for wrong in ["prefix_b0", "prefix_b12", "prefix_b", "mixed_e101", "mixed_r32_e50", "split", ""] {
        assert!(wrong.parse::<TextQuerySet>().unwrap_err().contains("mixed_eN"), "{wrong}");
    }
}

#[test]
fn texts_without_room_cause_an_error_and_no_endless_loop() {
    let fail = |set: TextQuerySet, keys: &[Vec<u8>]| {
        set.generate(TextSet::Domains, keys, 10, 43).unwrap_err().to_string()
    };
    let mixed = TextQuerySet::Mixed(50);
    assert!(fail(mixed, &[]).contains("mixed_e50 was found among 0 keys"));
    // Neither key has a last byte that can be incremented.
    assert!(fail(mixed, &[Vec::new()]).contains("mixed_e50 was found among 1 keys"));
    assert!(fail(TextQuerySet::Prefix(300), &[b"a".to_vec()]).contains("prefix_b2400"));
    assert_eq!(non_empty_text_ranges(&[], 5, 1), []);
    // Keys that end with the least or the greatest byte have one half of the ranges.
    let keys = [vec![0], vec![255]];
    assert!(non_empty_text_ranges(&keys, 60, 1).iter().all(|range| range.0 <= range.1));
    assert_eq!(TextQuerySet::Mixed(0).generate(TextSet::Domains, &keys, 60, 1).unwrap().len(), 60);
}
