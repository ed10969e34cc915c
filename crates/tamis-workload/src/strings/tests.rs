//! Lengths of the texts compared with those that the papers report.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::collections::BTreeSet;

use super::*;

const COUNT: usize = 50_000;

fn lengths(keys: &[Vec<u8>]) -> Vec<usize> {
    let mut lengths: Vec<usize> = keys.iter().map(Vec::len).collect();
    lengths.sort_unstable();
    lengths
}

#[test]
fn domains_have_log_normal_lengths_of_5_to_253_bytes() {
    let keys = TextSet::Domains.generate(COUNT, 42);
    assert!(keys.len() == COUNT && keys.is_sorted_by(|one, two| one < two));
    let lengths = lengths(&keys);
    assert_eq!(lengths[COUNT / 2], 21);
    assert!(lengths[0] >= 5 && lengths[COUNT - 1] <= 253);
    // The quartiles of a log-normal distribution have equal ratios to the median.
    let logarithm = |index: usize| (lengths[index] as f64 / DOMAIN_MEDIAN).ln() / DOMAIN_DEVIATION;
    assert!((logarithm(COUNT / 4) + 0.674).abs() < 0.15, "{}", logarithm(COUNT / 4));
    assert!((logarithm(COUNT * 3 / 4) - 0.674).abs() < 0.15, "{}", logarithm(COUNT * 3 / 4));
    for key in &keys {
        let text = str::from_utf8(key).unwrap();
        assert!(text.ends_with(".org"), "{text}");
        assert!(text.split('.').all(|label| (1..=63).contains(&label.len())), "{text}");
        assert!(text.bytes().all(|byte| byte == b'.' || byte.is_ascii_lowercase()), "{text}");
    }
}

#[test]
fn long_domains_still_have_labels_of_63_bytes_at_most() {
    let mut draws = TextDraws::new(TextSet::Domains, 42);
    for length in 1..=249 {
        let mut rest: usize = length;
        let mut text = String::new();
        while rest > LABEL_BYTES_MAX {
            let label = LABEL_BYTES_MAX.min(rest - 2);
            draws.word(label, &mut text);
            text.push('.');
            rest -= label + 1;
        }
        draws.word(rest, &mut text);
        assert_eq!(text.len(), length);
        assert!(text.split('.').all(|label| (1..=63).contains(&label.len())), "{text}");
    }
}

#[test]
fn addresses_have_22_bytes_on_average_and_at_most_129() {
    let keys = TextSet::Emails.generate(COUNT, 42);
    let lengths = lengths(&keys);
    let mean = lengths.iter().sum::<usize>() as f64 / COUNT as f64;
    assert!((mean - 22.0).abs() < 0.5, "{mean}");
    assert!(lengths[COUNT - 1] <= 129 && lengths[0] >= 8);
    let mut hosts = BTreeSet::new();
    for key in &keys {
        let (host, name) = str::from_utf8(key).unwrap().split_once('@').unwrap();
        assert!(host.contains('.') && !name.is_empty());
        hosts.insert(host.to_owned());
    }
    let of_one = keys.iter().filter(|key| key.starts_with(b"com.gmail@")).count();
    assert!(hosts.len() > 1000 && of_one > COUNT / 30, "{} hosts, {of_one} of one", hosts.len());
}

#[test]
fn texts_are_functions_of_the_seed() {
    for set in TextSet::ALL {
        assert_eq!(set.generate(500, 42), set.generate(500, 42));
        assert_ne!(set.generate(500, 42), set.generate(500, 43));
        assert_eq!(set.name().parse::<TextSet>().unwrap(), set);
        let (keys, queries) = set.generate_split(600, 400, 42);
        assert_eq!((keys.len(), queries.len()), (600, 400));
        let all: BTreeSet<_> = keys.iter().chain(&queries).collect();
        assert!(all.len() == 1000 && keys.is_sorted() && queries.is_sorted());
        let below = keys.iter().filter(|key| **key < queries[200]).count();
        assert!((200..400).contains(&below), "{set}: queries lie among the keys ({below})");
    }
    assert_eq!(TextSet::Domains.generate(0, 1), Vec::<Vec<u8>>::new());
    assert!("names".parse::<TextSet>().unwrap_err().contains("there are domains, emails, composite"));
}

#[test]
fn composite_keys_share_prefixes_of_twelve_digits() {
    let keys = TextSet::Composite.generate(COUNT, 42);
    assert!(keys.len() == COUNT && keys.iter().all(|key| key.len() == 16));
    let prefixes: BTreeSet<&[u8]> = keys.iter().map(|key| &key[..12]).collect();
    let most = keys.iter().filter(|key| key.starts_with(b"000000000000")).count();
    assert!(prefixes.len() > COUNT / 20 && prefixes.len() < COUNT * 9 / 10, "{}", prefixes.len());
    assert!((COUNT / 25..COUNT / 10).contains(&most), "{most}");
}
