//! Keys whose first bytes are numbers that are close together.

use tamis_bits::{key_head, line::LINE_BYTES};

use super::{Map, build, check, parameters};
use crate::DecodeError;
use crate::envelope::{ENVELOPE_BYTES, Envelope, set_parameter};
use crate::trie::{TRAILER_BYTES, TrieIndex, TrieIndexBuilder};

const DIRECT: u8 = 15;

/// Consecutive numbers of `bytes` bytes, a few of them missing, with up to 24 endings each. Some keys end with the
/// number or before its end.
fn map(bytes: usize, first: u64, count: u64) -> Map {
    let mut map = Map::new();
    for number in first..first.saturating_add(count) {
        let prefix = &number.to_be_bytes()[8 - bytes..];
        let random = crate::mix64(number, 3);
        let endings = match random % 16 {
            0 => 0,
            1 => 1,
            others => others + 9,
        };
        let ending = |ending: u64| {
            let random = crate::mix64(random, ending);
            [random, !random].map(u64::to_le_bytes).as_flattened()[..1 + (random >> 60) as usize].to_vec()
        };
        map.extend((0..endings).map(|number| ([prefix, &ending(number)].concat(), number as u32)));
        if random % 16 == 2 {
            map.insert(prefix.to_vec(), 1);
        }
        if random % 16 == 3 {
            map.insert(prefix[..bytes - 1].to_vec(), 2);
        }
    }
    map
}

fn depth(bytes: &[u8]) -> Option<usize> {
    TrieIndex::open(bytes).unwrap().direct_depth()
}

/// Tables of several depths, from the least prefix to the greatest.
fn maps() -> Vec<(usize, Map)> {
    let last = |bytes: u32| u64::MAX >> (64 - 8 * bytes);
    [
        (2, 0, 1 << 14),
        (3, 0x01_02_03, 3000),
        (4, last(4) - 2999, 3000),
        (6, 1_000_000_000_000, 5000),
        (8, u64::MAX - 3000, 3000),
        (8, 0, 3000),
    ]
    .into_iter()
    .map(|(bytes, first, count)| (bytes, map(bytes, first, count)))
    .collect()
}

#[test]
fn searches_through_a_direct_table_find_the_keys() {
    for (bytes, map) in maps() {
        let index = build(&map);
        assert_eq!(depth(&index), Some(bytes), "{} keys", map.len());
        check(&map, &index);
        // Before the first prefix and after the last.
        let index = TrieIndex::open(&index[..]).unwrap();
        for key in [&[0; 12][..], &[0xff; 12], &[0; 7], &[0xff; 7], b""] {
            assert_eq!(index.get(key).is_some(), map.contains_key(key), "{key:?}");
        }
    }
}

/// Every position in the table is that of the node that a walk finds.
#[test]
fn a_direct_table_has_the_nodes_of_its_depth() {
    for (bytes, map) in maps() {
        let index = build(&map);
        let index = TrieIndex::open(&index[..]).unwrap();
        let (_, table, _) = index.parts();
        let mut found = 0;
        for key in map.keys().filter(|key| key.len() > bytes) {
            let with_prefix = map
                .range(key[..bytes].to_vec()..)
                .take_while(|(other, _)| other[..].starts_with(&key[..bytes]));
            let place = table.layout.direct.find(table.payload, key);
            assert_eq!(place.is_some(), with_prefix.take(2).count() == 2, "{key:?}");
            found += usize::from(place.is_some());
        }
        assert!(found > map.len() / 2, "{found} of {}", map.len());
    }
}

#[test]
fn prefixes_far_apart_have_no_direct_table() {
    let apart: Map = map(4, 77_000, 3000)
        .into_iter()
        .map(|(mut key, value)| {
            let far = (key_head(&key) >> 32) as u32;
            key.splice(..4.min(key.len()), far.wrapping_mul(0x9e37_79b1).to_be_bytes());
            (key, value)
        })
        .collect();
    let bytes = build(&apart);
    assert_ne!(depth(&bytes), Some(4));
    check(&apart, &bytes);
}

#[test]
fn a_direct_table_keeps_the_index_within_its_bits_per_node() {
    for (_, map) in maps() {
        let mut builder = TrieIndexBuilder::new(0);
        let (mut nodes, mut before): (usize, &[u8]) = (0, &[]);
        for key in map.keys() {
            let shared = before.iter().zip(key).take_while(|(left, right)| left == right).count();
            nodes += key.len() - shared + usize::from(shared == before.len() && !before.is_empty());
            before = key;
            builder.add(key, &[]).unwrap();
        }
        let bytes = builder.finish().unwrap();
        let bits = ((bytes.len() - ENVELOPE_BYTES) * 8) as f64 / nodes as f64;
        assert!(depth(&bytes).is_none() || bits <= 10.8, "{bits}");
    }
}

/// The header and the entries of a table.
fn table(bytes: &[u8]) -> std::ops::Range<usize> {
    let end = bytes.len() - TRAILER_BYTES;
    let is_header = |start: &usize| {
        let count = u32::from_le_bytes(bytes[start + 4..start + 8].try_into().unwrap()) as usize;
        usize::from(bytes[*start]) == depth(bytes).unwrap()
            && bytes[start + 16..start + LINE_BYTES].iter().all(|byte| *byte == 0)
            && start + LINE_BYTES + (4 * count).next_multiple_of(LINE_BYTES) == end
    };
    (0..end - LINE_BYTES).step_by(LINE_BYTES).rfind(is_header).unwrap()..end
}

#[test]
fn damaged_direct_tables_do_not_panic() {
    let (_, map) = maps().swap_remove(3);
    let bytes = build(&map);
    let entries = table(&bytes).start + LINE_BYTES..table(&bytes).end;
    for change in [1, 0x40, 0x80, 0xff] {
        for step in [1, 3, 4] {
            let mut damaged = bytes.clone();
            damaged[entries.clone()].iter_mut().step_by(step).for_each(|byte| *byte ^= change);
            let index = TrieIndex::open(&damaged[..]).unwrap();
            assert!(index.verify().is_err());
            let keys: Vec<&[u8]> = map.keys().map(Vec::as_slice).collect();
            index.get_many(&keys, &mut vec![None; keys.len()]);
            let found = keys.iter().filter(|key| index.get(key).is_some()).count();
            assert!(found > 0, "keys are found despite the damage");
        }
    }
}

#[test]
fn direct_tables_that_no_builder_writes_are_rejected() {
    let (_, map) = maps().swap_remove(2);
    let bytes = build(&map);
    let start = table(&bytes).start;
    let open = |change: &dyn Fn(&mut Vec<u8>, &mut Envelope)| {
        let mut bytes = bytes.clone();
        let mut envelope = Envelope::parse(&bytes, bytes.len() as u64).unwrap();
        change(&mut bytes, &mut envelope);
        envelope.seal(&mut bytes);
        TrieIndex::open(bytes).map(|index| index.len())
    };
    assert_eq!(open(&|_, _| {}), Ok(map.len() as u64));
    let last = parameters(&bytes)[15];
    assert_eq!(last >> 4, DIRECT);
    let with_last = |last: u8| open(&|_, envelope| set_parameter(&mut envelope.parameters, 15, [last]));
    let refused = Err(DecodeError::Field { field: "root_cache_stages", got: 14 });
    assert_eq!(with_last(last & 15 | 14 << 4), refused);
    let is_length = |answer| matches!(answer, Err(DecodeError::Field { field: "payload_bytes", .. }));
    let with_bytes = |place: usize, change: &[u8]| {
        is_length(open(&|bytes, _| bytes[start + place..][..change.len()].copy_from_slice(change)))
    };
    assert!(with_bytes(0, &[0]), "no depth");
    assert!(with_bytes(0, &[9]), "too deep");
    assert!(with_bytes(0, &[3]), "prefixes that have no room in three bytes");
    assert!(with_bytes(4, &[0; 4]), "no entries");
    assert!(with_bytes(4, &[0xff; 4]), "more entries than lines");
    assert!(with_bytes(8, &[0xff; 8]), "a last prefix beyond all numbers");
    let is_cut = open(&|bytes, _| {
        let end = bytes.len() - TRAILER_BYTES;
        bytes.drain(end - 64..end);
    });
    assert!(is_length(is_cut), "a line fewer");
}
