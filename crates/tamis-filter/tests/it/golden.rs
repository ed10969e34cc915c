//! Frozen bytes of `docs/format/filter.md`: builders produce them, and readers open and query them.
//!
//! `TAMIS_REWRITE=1` rewrites them: only with a new version of the format.

use std::path::Path;

use tamis_filter::proteus::{BloomLayout, Design, Prices, ProteusBuilder, SetForm, Stage};
use tamis_filter::trie::{TrieIndex, TrieIndexBuilder};
use tamis_filter::{AnyFilter, Budget, Digester, Family, Filter, FilterBuilder, FilterSpec, Probe, Samples};

const SEED: u64 = 0x5eed;
const KEY_COUNT: u32 = 60;
/// Fewer for Miri, which runs this as a big-endian machine.
const STRANGER_COUNT: usize = if cfg!(miri) { 40 } else { 1000 };

fn key(number: u32) -> Vec<u8> {
    format!("key {number:04}{}", "x".repeat(number as usize % 7)).into_bytes()
}

fn keys() -> Vec<Vec<u8>> {
    (0..KEY_COUNT).map(key).collect()
}

/// Keys whose trie has a few nodes with all 256 labels.
fn wide_keys() -> Vec<Vec<u8>> {
    let below = |first: u8| (0..=255).flat_map(move |second| [[first, second, 1], [first, second, 200]]);
    [0, 70, 140, 210].into_iter().flat_map(below).map(|key| key.to_vec()).collect()
}

fn written(spec: &FilterSpec, keys: &[Vec<u8>], bits_per_key: f64) -> Vec<u8> {
    let mut builder = spec.builder(SEED).unwrap();
    for key in keys {
        builder.add(key).unwrap();
    }
    builder.finish(Budget::bits_per_key(bits_per_key).unwrap(), Samples::NONE).unwrap()
}

/// Compares with the frozen bytes of a name and returns those.
fn frozen(name: &str, written: &[u8]) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1");
    let path = folder.join(name);
    if std::env::var_os("TAMIS_REWRITE").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, written).unwrap();
    }
    let frozen = std::fs::read(&path).unwrap();
    assert!(written == frozen, "{name}: the bytes changed: that needs a new version of the format");
    frozen
}

/// Filters whose design came from a former model: their format is unchanged, and they open and answer.
const OLDER_DESIGNS: [&str; 1] = ["filter-rosetta"];

fn specs() -> Vec<(String, FilterSpec)> {
    // Not of Rosetta, whose model may change: its unit tests set the levels of a frozen filter.
    let families = Family::ALL.into_iter().filter(|family| *family != Family::Rosetta);
    let mut specs: Vec<(String, FilterSpec)> =
        families.map(|family| (family.name().to_owned(), FilterSpec::new(family))).collect();
    let set =
        FilterSpec::new(Family::Prefix).with("bytes", "2+5").with("separator", "0x20").with("points", "yes");
    specs.push(("prefix-bloom-set".to_owned(), set));
    let proteus = FilterSpec::new(Family::Proteus).with("trie", "51").with("prefix", "63");
    specs.push(("proteus-trie-51-63".to_owned(), proteus.with("layout", "lines")));
    let pair = FilterSpec::new(Family::TwoPrefixBloom).with("first", "50").with("second", "77");
    specs.push(("2pbf-50-77".to_owned(), pair));
    specs
}

/// Short and long names, with a separator that all of them have.
fn names() -> Vec<Vec<u8>> {
    let name = |number: u32| {
        let letters = (0..number % 11)
            .map(|place| char::from(b'a' + (tamis_filter::mix64(number.into(), place.into()) % 26) as u8));
        format!("at/{:03}/{}", number * 7, letters.collect::<String>()).into_bytes()
    };
    let mut names: Vec<Vec<u8>> = (0..2 * KEY_COUNT).map(name).collect();
    names.sort();
    names
}

/// Opens and queries the bytes of a filter of the keys.
fn check(name: &str, bytes: Vec<u8>, keys: &[Vec<u8>]) {
    let digester = Digester::new(SEED);
    let filter = AnyFilter::open(bytes).unwrap();
    filter.verify().unwrap();
    for key in keys {
        assert!(filter.may_contain(&Probe::new(key, &digester)), "{name} {key:?}");
    }
    let strangers = (0..STRANGER_COUNT)
        .filter(|number| filter.may_contain(&Probe::new(format!("stranger {number}").as_bytes(), &digester)));
    assert!(strangers.count() < STRANGER_COUNT / 10, "{name} rejects next to nothing");
}

#[test]
fn built_filters_equal_the_frozen_bytes_and_answer() {
    for (name, spec) in specs() {
        let written = written(&spec, &keys(), 24.0);
        check(&name, frozen(&format!("filter-{name}"), &written), &keys());
    }
}

/// Dense nodes with children after all words of their labels.
#[test]
fn wide_nodes_equal_the_frozen_bytes_and_answer() {
    let surf = FilterSpec::new(Family::SurfReal).with("bits", "8");
    let written = written(&surf, &wide_keys(), 32.0);
    check("surf-wide", frozen("filter-surf-wide", &written), &wide_keys());
}

/// Grafite with symbols instead of bytes, hashed and exact.
#[test]
fn windows_of_symbols_equal_the_frozen_bytes_and_answer() {
    let grafite = FilterSpec::new(Family::Grafite);
    for (name, bits_per_key) in [("grafite-symbols", 42.0), ("grafite-symbols-exact", 200.0)] {
        let written = written(&grafite, &names(), bits_per_key);
        check(name, frozen(&format!("filter-{name}"), &written), &names());
        let mut design = String::new();
        AnyFilter::open(written).unwrap().design(&mut design).unwrap();
        assert!(design.contains("values after 3 shared"), "{name}: {design}");
        assert_eq!(design.contains("exact"), name.ends_with("exact"), "{name}: {design}");
    }
}

/// Sets of integers in each encoding.
#[test]
fn sets_of_integers_equal_the_frozen_bytes_and_answer() {
    let mut keys: Vec<Vec<u8>> =
        (1..=300_u64).map(|number| tamis_filter::mix64(number, 1).to_be_bytes().to_vec()).collect();
    keys.sort();
    let forms = [("plain", SetForm::EliasFano, 20), ("marked", SetForm::MarkedEliasFano, 20)];
    for (name, form, depth) in forms.into_iter().chain([("bitmap", SetForm::Bitmap, 10)]) {
        let first = Stage::Set { depth, form };
        let design = Design { first, prefix: 50, layout: BloomLayout::Spread };
        let mut builder = ProteusBuilder::new(Family::Proteus, Prices::DEFAULT, SEED).with_design(&design);
        keys.iter().for_each(|key| builder.add(key).unwrap());
        let written = builder.finish(Budget::bits_per_key(24.0).unwrap(), Samples::NONE).unwrap();
        check(name, frozen(&format!("filter-proteus-{name}"), &written), &keys);
    }
}

#[test]
fn older_designs_open_and_answer() {
    for name in OLDER_DESIGNS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1").join(name);
        check(name, std::fs::read(path).unwrap(), &keys());
    }
}

#[test]
fn a_trie_index_equals_its_frozen_bytes_and_answers() {
    // Some keys that are prefixes of others.
    let mut keys: Vec<Vec<u8>> = (0..KEY_COUNT).flat_map(|number| [key(number), key(number / 8)]).collect();
    keys.extend((0..9).map(|length| vec![b'k'; length]));
    keys.sort();
    keys.dedup();
    // And keys of one length.
    let integers: Vec<Vec<u8>> =
        (0..KEY_COUNT).map(|number| (number.pow(2) << 20).to_be_bytes().to_vec()).collect();
    // And keys with many others below a few beginnings.
    let mut paths: Vec<Vec<u8>> = (0..10 * u64::from(KEY_COUNT))
        .map(|number| {
            format!("topic{}/item-{:010}", number % 7, tamis_filter::mix64(number, 1) >> 31).into_bytes()
        })
        .collect();
    paths.sort();
    // And keys of a few endings.
    let endings: Vec<Vec<u8>> = (0..4200_u32)
        .map(|number| {
            [&number.to_be_bytes()[2..], &b"endings and others"[number as usize % 19 / 3 * 3..]].concat()
        })
        .collect();
    let sets = [
        ("filter-trie-index-endings", endings),
        ("filter-trie-index", keys),
        ("filter-trie-index-integers", integers),
        ("filter-trie-index-paths", paths),
    ];
    for (name, keys) in sets {
        let mut builder = TrieIndexBuilder::new(3);
        for (number, key) in keys.iter().enumerate() {
            builder.add(key, &(number as u32).to_le_bytes()[..3]).unwrap();
        }
        let index = TrieIndex::open(frozen(name, &builder.finish().unwrap())).unwrap();
        index.verify().unwrap();
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(index.get(key), Some(&(number as u32).to_le_bytes()[..3]), "{name} {key:?}");
        }
    }
}
