//! Several damaged bytes in every part of an index: opening fails or operations return results, but nothing panics.

use super::{Map, build, map_of, next, words::words};
use crate::envelope::{ENVELOPE_BYTES, Envelope, payload};
use crate::trie::tests::Cut;
use crate::trie::{Layout, TRAILER_BYTES, TrieIndex};

/// The part in which bytes are changed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    /// Anywhere after the envelope.
    All,
    /// The bitmap of prefix keys and its ranks.
    PrefixKeys,
    /// The last bytes of the suffixes or values.
    End,
    /// The counts at the end.
    Trailer,
    /// The parameters in the envelope.
    Parameters,
}

const PARTS: [Part; 5] = [Part::All, Part::PrefixKeys, Part::End, Part::Trailer, Part::Parameters];

/// Changes several bytes: some at random, or a range to one value that is likely to do harm.
fn damage(bytes: &mut [u8], state: &mut u64) {
    let length = bytes.len().max(1);
    let place = |state: &mut u64| next(state) as usize % length;
    if next(state).is_multiple_of(2) {
        for _ in 0..2 + next(state) % 8 {
            let place = place(state);
            bytes.get_mut(place).into_iter().for_each(|byte| *byte = next(state) as u8);
        }
    } else {
        let (start, count) = (place(state), 2 + next(state) as usize % 20);
        let with = [0, 1, 0x7f, 0x80, 0xfe, 0xff, 0xff, 0xff][next(state) as usize % 8];
        bytes.iter_mut().skip(start).take(count).for_each(|byte| *byte = with);
    }
}

/// Damages parts of an index. Its envelope matches the bytes, and usually the number of keys too.
fn damaged(bytes: &[u8], layout: &Layout, parts: &[Part], state: &mut u64) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    let end = bytes.len() - TRAILER_BYTES;
    let mut envelope = Envelope::parse(bytes, bytes.len() as u64).unwrap();
    for part in parts {
        let target = match part {
            Part::All => &mut damaged[ENVELOPE_BYTES..],
            Part::PrefixKeys => &mut damaged[ENVELOPE_BYTES..][layout.prefix_keys..layout.leaves],
            Part::End => &mut damaged[end - (end / 4).min(5000)..end],
            Part::Trailer => &mut damaged[end..],
            Part::Parameters => &mut envelope.parameters,
        };
        damage(target, state);
    }
    if let Ok(layout) = Layout::read(payload(&damaged), true)
        && !next(state).is_multiple_of(8)
    {
        envelope.key_count = layout.counts.key_count();
    }
    envelope.seal(&mut damaged);
    damaged
}

/// Calls all operations with some keys of a set and with similar strings. Returns whether the index opened.
fn ask(bytes: &[u8], keys: &[&Vec<u8>], state: &mut u64) -> bool {
    let Ok(index) = TrieIndex::open(bytes) else { return false };
    let mut probes = vec![vec![], vec![0xff; 20]];
    for _ in 0..6 {
        let key = keys[next(state) as usize % keys.len()];
        let length = next(state) as usize % (key.len() + 1);
        probes.extend([key.clone(), [&key[..], b"a"].concat(), key[..length].to_vec()]);
    }
    let probes: Vec<&[u8]> = probes.iter().map(Vec::as_slice).collect();
    let mut cursor = index.cursor();
    for key in &probes {
        let _ = index.get(key);
        cursor.seek(key);
        (0..4).for_each(|_| cursor.next());
        let _ = (cursor.key(), cursor.value());
        cursor.seek_for_prev(key);
        (0..4).for_each(|_| cursor.previous());
        let _ = (cursor.key(), cursor.value());
    }
    cursor.first();
    let _ = cursor.value();
    cursor.last();
    let _ = cursor.value();
    true
}

fn check(map: &Map, cut: Cut, rounds: u64) {
    let bytes = build(map, cut);
    let layout = Layout::read(payload(&bytes), true).unwrap();
    let keys: Vec<&Vec<u8>> = map.keys().collect();
    let mut state = 41;
    let mut opened = 0;
    for round in 0..rounds {
        let first = PARTS[(round % 5) as usize];
        let second = PARTS[(next(&mut state) % 5) as usize];
        let parts = if round % 3 == 0 { &[first, second][..] } else { &[first] };
        let damaged = damaged(&bytes, &layout, parts, &mut state);
        opened += u64::from(ask(&damaged, &keys, &mut state));
    }
    assert!(opened > rounds / 4, "{opened} of {rounds} opened: the others cannot be queried");
}

/// Sums of a damaged rank directory exceeded 64 bits.
#[test]
fn damaged_bits_of_prefix_keys_do_not_panic() {
    let numbers = map_of((0..400_u32).map(|number| number.to_string().into_bytes()));
    // All suffixes are empty.
    for cut in super::CUTS {
        check(&numbers, cut, 2000);
    }
}

#[test]
fn damaged_suffixes_of_many_lengths_do_not_panic() {
    let suffix = |number: u64| vec![b'-' + (number % 2) as u8; (number * 5 % 40) as usize];
    let key = |number: u64| [&crate::mix64(number, 2).to_be_bytes()[..3], &suffix(number)].concat();
    let keys = (0..500).flat_map(|number| [key(number), key(number)[..2].to_vec()]);
    check(&map_of(keys), Cut::Best, 8000);
}

#[test]
fn damaged_suffixes_of_integers_do_not_panic() {
    let keys = (0..700).map(|number| crate::mix64(number % 350, number / 350).to_be_bytes().to_vec());
    check(&map_of(keys), Cut::Sparse, 8000);
}

#[test]
fn damaged_suffixes_of_words_do_not_panic() {
    let mut words = words(&["", "s", "ing", "ed", "fulness", "lessness", "ableness of it all"]);
    let rest = words.keys().nth(11_000).unwrap().clone();
    drop(words.split_off(&rest));
    check(&words, Cut::Best, 3000);
}

#[test]
fn damaged_indexes_of_keys_with_few_beginnings_do_not_panic() {
    let key = |number: u64| format!("topic{}/item-{:010}", number % 7, crate::mix64(number, 1) >> 31);
    let keys = (0..1500).map(|number| key(number).into_bytes());
    let topics = (0..7).map(|topic| format!("topic{topic}").into_bytes());
    check(&map_of(keys.chain(topics)), Cut::Best, 2000);
}
