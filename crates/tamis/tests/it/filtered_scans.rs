//! Scans of closed ranges and prefixes whose tables enter the merge at the candidates of their filters: all movements agree with the
//! entries.

use std::ops::Bound;

use tamis::{Db, KeyspaceOptions, Scan};
use tamis_vfs::MemVfs;

use crate::support::{Model, SplitMix64, filters, inline_options, open_in_memory};

const BYTES: [u8; 5] = [0, 1, b'a', 0xfe, 0xff];

/// Short keys of few bytes: most are prefixes of others, or begin or end with the least and the greatest bytes.
fn key(random: &mut SplitMix64) -> Vec<u8> {
    (0..1 + random.below(4)).map(|_| BYTES[random.below(BYTES.len() as u64) as usize]).collect()
}

fn bound(random: &mut SplitMix64) -> Bound<Vec<u8>> {
    let key = key(random);
    if random.below(2) == 0 { Bound::Included(key) } else { Bound::Excluded(key) }
}

/// Eight overlapping tables and a memtable, with deleted keys and deleted ranges.
fn filled(row: &str, seed: u64) -> (Db, Model) {
    let default_keyspace = KeyspaceOptions::default().filters(filters(row)).level0_runs(64);
    let options = inline_options().default_keyspace(default_keyspace);
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(seed));
    for run in 0..9_u8 {
        // The least and the greatest key of each table are outside of most ranges.
        for key in [vec![0], vec![0xff; 6]] {
            db.put(&key, [run]).unwrap();
            model.insert(key, vec![run]);
        }
        for _ in 0..40 {
            let key = key(&mut random);
            match random.below(12) {
                0..=1 => {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                }
                2 if run % 3 == 1 => {
                    let upper = [&key[..], &[1]].concat();
                    db.delete_range(&key..&upper).unwrap();
                    model.retain(|other, _| !(&key..&upper).contains(&other));
                }
                _ => {
                    db.put(&key, [run]).unwrap();
                    model.insert(key, vec![run]);
                }
            }
        }
        if run < 8 {
            db.flush().unwrap();
        }
    }
    (db, model)
}

/// The place of a scan: between two entries, or on one.
#[derive(Debug, Clone, Copy)]
enum Place {
    Before(usize),
    On(usize),
}

/// Moves a scan at random, and compares each entry with the expected ones of its range.
fn check_movements(scan: &mut Scan, expected: &[(Vec<u8>, Vec<u8>)], random: &mut SplitMix64, what: &str) {
    let mut place = Place::Before(0);
    for _ in 0..12 {
        let sought = key(random);
        let found = match random.below(6) {
            0 => {
                scan.seek(&sought).unwrap();
                place = Place::Before(expected.partition_point(|(key, _)| *key < sought));
                continue;
            }
            1 => {
                scan.seek_for_prev(&sought).unwrap();
                place = Place::Before(expected.partition_point(|(key, _)| *key <= sought));
                continue;
            }
            2 | 3 => {
                let next = match place {
                    Place::Before(next) => next,
                    Place::On(current) => current + 1,
                };
                place = if next < expected.len() { Place::On(next) } else { Place::Before(next) };
                scan.move_next().unwrap()
            }
            _ => {
                let (Place::Before(current) | Place::On(current)) = place;
                place = current.checked_sub(1).map_or(Place::Before(0), Place::On);
                scan.move_prev().unwrap()
            }
        };
        match place {
            Place::Before(_) => assert!(!found, "{what}: {:?} instead of none", scan.key()),
            Place::On(current) => {
                let (key, value) = &expected[current];
                assert!(found, "{what}: none instead of {key:?}");
                assert_eq!((scan.key(), scan.value()), (key.as_slice(), value.as_slice()), "{what}");
            }
        }
    }
}

#[test]
fn movements_in_closed_ranges_agree_with_the_entries() {
    for row in
        ["surf-base", "surf-real@24", "surf-mixed:hash=2,real=4", "rosetta@12", "rosetta@30", "grafite@12"]
    {
        for seed in 0..4 {
            let (db, model) = filled(row, seed);
            let mut random = SplitMix64::new(100 + seed);
            for _ in 0..250 {
                let (lower, upper, prefix) = (bound(&mut random), bound(&mut random), key(&mut random));
                let is_prefix = random.below(4) == 0;
                let is_within = |key: &[u8]| match is_prefix {
                    true => key.starts_with(&prefix),
                    false => {
                        let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
                        std::ops::RangeBounds::<[u8]>::contains(&bounds, key)
                    }
                };
                let expected: Vec<_> = model
                    .iter()
                    .filter(|(key, _)| is_within(key))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                let scan = || match is_prefix {
                    true => db.prefix(&prefix),
                    false => db.range((lower.clone(), upper.clone())),
                };
                let what =
                    format!("{row}, seed {seed}, {lower:?} to {upper:?} or prefix {is_prefix} {prefix:?}");
                let entries = |found: tamis::Result<(tamis::Slice, tamis::Slice)>| {
                    found.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()
                };
                assert_eq!(scan().map(entries).collect::<Vec<_>>(), expected, "{what}");
                let mut backward: Vec<_> = scan().rev().map(entries).collect();
                backward.reverse();
                assert_eq!(backward, expected, "{what}");
                check_movements(&mut scan(), &expected, &mut random, &what);
            }
        }
    }
}

#[test]
fn a_scan_that_can_have_no_entry_keeps_no_table_and_stays_empty() {
    let default_keyspace = KeyspaceOptions::default().filters(filters("grafite@30"));
    let db = open_in_memory(&MemVfs::new(), inline_options().default_keyspace(default_keyspace)).unwrap();
    let key = |number: u64| number.to_be_bytes();
    for number in 0..10_000 {
        db.put(key(number << 40), [1; 20]).unwrap();
    }
    db.flush().unwrap();
    // The memtable has the two keys that the range excludes.
    let (lower, upper) = ((5_000 << 40) + 7, (5_000 << 40) + 900);
    db.put(key(lower), [2]).unwrap();
    db.put(key(upper), [2]).unwrap();
    assert_eq!(db.range((Bound::Included(key(lower)), Bound::Excluded(key(upper)))).count(), 1);
    assert_eq!(db.range((Bound::Excluded(key(lower)), Bound::Included(key(upper)))).count(), 1);
    let between = || (Bound::Excluded(key(lower)), Bound::Excluded(key(upper)));
    let (mut empty, other) = (db.range(between()), db.range(key(lower)..key(upper)));
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    assert!(db.statistics().held_bytes > 0, "the other scan keeps the tables");
    drop(other);
    assert_eq!(db.statistics().held_bytes, 0, "the empty scan keeps a table");

    db.put(key(lower + 100), [3]).unwrap();
    empty.seek(key(lower + 50)).unwrap();
    assert!(!empty.move_next().unwrap() && !empty.move_prev().unwrap());
    empty.seek_for_prev(key(lower + 200)).unwrap();
    assert!(!empty.move_prev().unwrap() && !empty.move_next().unwrap());
    empty.seek_to_last();
    assert!(!empty.move_prev().unwrap() && empty.next_back().is_none() && empty.nth(3).is_none());
    assert_eq!((empty.key(), empty.value()), (&[][..], &[][..]));
    assert_eq!(db.range(between()).count(), 1);
}
