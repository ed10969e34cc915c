//! Budgets below the least size of a trie of file paths: an error that names the least size, or a shortened trie.

use super::truncated::prefixes;
use super::{SEED, bounds, check_everything, next, open, sorted};
use crate::surf::{SuffixBits, SurfBuilder, SurfFilter};
use crate::trie::Layout;
use crate::{
    Budget, BuildError, Digester, Family, Filter, FilterBuilder, FilterSpec, Probe, Samples, envelope,
};

const BUDGETS: [f64; 3] = [10.0, 14.0, 18.0];

/// Paths as in a source tree: few top-level folders, files with similar names in each folder.
fn paths(count: u64, seed: u64) -> Vec<Vec<u8>> {
    const FOLDERS: [&str; 6] = ["src", "tests", "docs", "include", "tools", "third_party"];
    const NAMES: [&str; 8] =
        ["index", "reader", "writer", "mod", "test_reader", "test_writer", "config", "format"];
    let mut state = seed;
    let mut pick = |count: u64| next(&mut state) % count;
    let path = |_| {
        let (project, part) = (pick(40), pick(30));
        let (folder, name) = (FOLDERS[pick(6) as usize], NAMES[pick(8) as usize]);
        format!("/srv/builds/project-{project:02}/{folder}/component_{part:02}/{name}_{:03}.rs", pick(400))
            .into_bytes()
    };
    sorted((0..count).map(path).collect())
}

fn with_keys(mut builder: SurfBuilder, keys: &[Vec<u8>]) -> SurfBuilder {
    keys.iter().for_each(|key| builder.add(key).unwrap());
    builder
}

fn finish(builder: &SurfBuilder, bits_per_key: f64) -> Result<Vec<u8>, BuildError> {
    builder.finish(Budget::bits_per_key(bits_per_key).unwrap(), Samples::NONE)
}

fn height(bytes: &[u8], suffix: SuffixBits) -> usize {
    Layout::read(envelope::payload(bytes), suffix.width() > 0).unwrap().counts.height as usize
}

#[test]
fn a_budget_below_the_least_size_is_rejected_with_the_least_size() {
    let keys = paths(20_000, 1);
    let given = Some(SuffixBits { hash: 0, real: 4 });
    for (family, given) in [(Family::Surf, None), (Family::SurfBase, None), (Family::SurfReal, given)] {
        let builder = with_keys(SurfBuilder::new(family, given, SEED), &keys);
        for bits_per_key in BUDGETS {
            let Err(BuildError::BudgetTooSmall { least_bits_per_key, .. }) = finish(&builder, bits_per_key)
            else {
                panic!("{family:?} accepts {bits_per_key} bits per key")
            };
            assert!(least_bits_per_key > bits_per_key, "{least_bits_per_key}");
            assert!(finish(&builder, least_bits_per_key - 0.01).is_err());
            let bytes = finish(&builder, least_bits_per_key + 0.001).unwrap();
            assert_eq!(open(bytes).key_count(), keys.len() as u64);
        }
    }
}

/// The filter of a budget, and the length of the prefixes that its trie distinguishes.
fn shortened(builder: &SurfBuilder, key_count: usize, bits_per_key: f64) -> (SurfFilter<Vec<u8>>, usize) {
    let bytes = finish(builder, bits_per_key).unwrap();
    assert!(bytes.len() as f64 <= key_count as f64 * bits_per_key / 8.0 + 128.0, "{} bytes", bytes.len());
    let suffix = open(bytes.clone()).widths;
    let height = height(&bytes, suffix);
    (open(bytes), height)
}

/// Only the bytes below the remaining levels are lost.
#[test]
fn a_truncated_trie_keeps_its_budget_and_distinguishes_the_first_bytes() {
    let keys = paths(20_000, 1);
    let builder = with_keys(SurfBuilder::new(Family::Surf, None, SEED).with_truncation(), &keys);
    let digester = Digester::new(SEED);
    let absent: Vec<Vec<u8>> =
        paths(20_000, 2).into_iter().filter(|path| keys.binary_search(path).is_err()).collect();
    let (mut height_before, mut accepted_before) = (0, usize::MAX);
    for bits_per_key in BUDGETS {
        let (filter, height) = shortened(&builder, keys.len(), bits_per_key);
        filter.verify().unwrap();
        assert!(height >= height_before, "a larger budget has no fewer levels");
        assert!(keys.iter().all(|key| filter.may_contain(&Probe::new(key, &digester))));
        let may_contain = |path: &&Vec<u8>| filter.may_contain(&Probe::new(path, &digester));
        // The stored prefixes, shortened to the height: no other strings are accepted.
        let stored = prefixes(&keys, height);
        for path in &absent {
            let next = stored.partition_point(|prefix| prefix.bytes <= *path);
            let is_below_leaf = next.checked_sub(1).is_some_and(|last| path.starts_with(&stored[last].bytes));
            assert!(is_below_leaf || !may_contain(&path), "{}", String::from_utf8_lossy(path));
        }
        let accepted = absent.iter().filter(may_contain).count();
        assert!(accepted <= accepted_before, "{accepted} of {} at {bits_per_key} bits", absent.len());
        (height_before, accepted_before) = (height, accepted);
        assert_eq!(filter.key_count(), keys.len() as u64);
    }
    assert!(accepted_before * 2 < absent.len(), "{accepted_before} of {} at 18 bits", absent.len());
}

#[test]
fn every_answer_of_a_truncated_trie_is_correct() {
    let mut state = 9;
    let keys = paths(600, 3);
    let builder = with_keys(SurfBuilder::new(Family::Surf, None, SEED).with_truncation(), &keys);
    for bits_per_key in [4.0, 10.0, 14.0, 18.0, 40.0] {
        let (filter, _) = shortened(&builder, keys.len(), bits_per_key);
        check_everything(&filter, &keys, &bounds(&keys, 40, &mut state));
    }
}

/// The option changes nothing for budgets that suffice.
#[test]
fn a_sufficient_budget_is_not_truncated() {
    let keys = paths(5_000, 4);
    let plain = with_keys(SurfBuilder::new(Family::Surf, None, SEED), &keys);
    let truncating = with_keys(SurfBuilder::new(Family::Surf, None, SEED).with_truncation(), &keys);
    for bits_per_key in [40.0, 64.0] {
        assert_eq!(finish(&plain, bits_per_key), finish(&truncating, bits_per_key));
    }
}

#[test]
fn a_budget_below_one_level_is_rejected() {
    let keys: Vec<Vec<u8>> = (0..=255).flat_map(|byte| [vec![byte, 0], vec![byte, 1]]).collect();
    let builder = with_keys(SurfBuilder::new(Family::Surf, None, SEED).with_truncation(), &keys);
    let error = finish(&builder, 0.001).unwrap_err();
    assert!(matches!(error, BuildError::BudgetTooSmall { .. }), "{error}");
}

#[test]
fn the_parameter_is_yes_or_no_and_only_of_surf() {
    let build = |text: &str| text.parse::<FilterSpec>().unwrap().builder(SEED).map(|_| ());
    assert_eq!(build("surf:truncate=yes"), Ok(()));
    assert_eq!(build("surf:truncate=no"), Ok(()));
    assert!(matches!(build("surf:truncate=maybe"), Err(BuildError::Parameter { name: "truncate", .. })));
    assert!(matches!(build("surf-base:truncate=yes"), Err(BuildError::UnknownParameter { .. })));
}
