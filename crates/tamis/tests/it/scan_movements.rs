//! Scans of a view, of runs and of one run, with entries in memtables: every movement agrees with a sorted list, whether the scan meets an
//! entry of another source or takes many entries of one source.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use tamis::{Db, Filters, Keyspace, KeyspaceOptions, Runtime, Scan, Views};
use tamis_vfs::MemVfs;

use crate::{
    support::{self, FOLDER, SplitMix64, inline_options},
    views::{Store, blocks_touched, views_of},
};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

const RUNS: usize = 5;
const KEYS: u64 = 2_000;

fn key(number: u64) -> Vec<u8> {
    // Keys of different lengths, some of which are prefixes of others; the first half begins with more equal bytes than a merge compares as
    // one number.
    let prefix = if number < KEYS / 2 { "a long prefix/" } else { "b" };
    format!("{prefix}{:05}{}", number / 2, "suffix".repeat((number % 2) as usize * 4)).into_bytes()
}

/// The sources of a scan besides memtables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sources {
    View,
    Runs,
    OneRun,
}

/// Runs that overlap, and the live entries.
fn open(sources: Sources, random: &mut SplitMix64) -> (Db, Keyspace, Entries) {
    let keyspace = KeyspaceOptions::default()
        .memtable_bytes(64 << 20)
        .level0_runs(64)
        .filters(Filters::bits(10.0))
        .views(if sources == Sources::View { Views::On } else { Views::Off });
    let db =
        Db::open_on(Arc::new(MemVfs::new()), FOLDER, inline_options(), Runtime::deterministic(3)).unwrap();
    let keyspace = db.get_or_create_keyspace("k", keyspace).unwrap();
    let mut entries = Entries::new();
    for run in 0..RUNS {
        for number in (run as u64..KEYS).step_by(RUNS) {
            if random.below(2) == 0 {
                // Long values: each run has many blocks.
                let padding = ".".repeat(random.below(600) as usize);
                let value = format!("run {run}, {number}{padding}").into_bytes();
                keyspace.put(key(number), &value).unwrap();
                entries.insert(key(number), value);
            }
        }
        // Few: more garbage would be compacted.
        let ranges = if sources == Sources::View { Ranges::Kept } else { Ranges::Deleted };
        change(&keyspace, &mut entries, random, (10, ranges), "changed");
        db.flush().unwrap();
    }
    if sources == Sources::OneRun {
        db.compact_range(&keyspace, ..).unwrap();
    }
    let found = db.statistics().keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap().clone();
    let run_count = if sources == Sources::View { RUNS } else { 0 };
    assert_eq!((found.views.open_count, found.views.run_count), (run_count.min(1), run_count));
    (db, keyspace, entries)
}

/// Whether ranges of keys are deleted, too: a view is given up if much of its runs is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ranges {
    Deleted,
    Kept,
}

/// Writes and deletes keys at random.
fn change(
    keyspace: &Keyspace,
    entries: &mut Entries,
    random: &mut SplitMix64,
    (count, ranges): (u64, Ranges),
    text: &str,
) {
    for number in 0..count {
        let key = key(random.below(KEYS));
        if random.below(4) == 0 {
            keyspace.delete(&key).unwrap();
            entries.remove(&key);
        } else if ranges == Ranges::Deleted && random.below(4) == 0 {
            let end = self::key(random.below(KEYS));
            let end = if end < key || random.below(4) > 0 { [&key[..], b"~"].concat() } else { end };
            keyspace.delete_range(key.clone()..end.clone()).unwrap();
            entries.retain(|found, _| !(key.clone()..end.clone()).contains(found));
        } else {
            let value = format!("{text}, {number}").into_bytes();
            keyspace.put(&key, &value).unwrap();
            entries.insert(key, value);
        }
    }
}

/// The place of a scan among the entries of its range.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Before the entry with this number.
    Before(usize),
    /// At the entry that was returned last.
    At(usize),
}

struct Model<'a> {
    entries: Vec<(&'a Vec<u8>, &'a Vec<u8>)>,
    place: Place,
}

impl Model<'_> {
    fn step(&mut self, is_forward: bool) -> Option<usize> {
        let found = match (self.place, is_forward) {
            (Place::Before(number), true) => Some(number),
            (Place::At(number), true) => Some(number + 1),
            (Place::Before(number) | Place::At(number), false) => number.checked_sub(1),
        };
        let found = found.filter(|&number| number < self.entries.len());
        self.place = match found {
            Some(number) => Place::At(number),
            None => Place::Before(if is_forward { self.entries.len() } else { 0 }),
        };
        found
    }

    fn seek(&mut self, key: &[u8], is_forward: bool) {
        let is_before = |entry: &(&Vec<u8>, &Vec<u8>)| {
            entry.0.as_slice() < key || !is_forward && entry.0.as_slice() == key
        };
        self.place = Place::Before(self.entries.partition_point(is_before));
    }

    /// Moves scan and model at random and compares them. `visit` gets each key that the scan returns.
    fn check(&mut self, mut scan: Scan, random: &mut SplitMix64, mut visit: impl FnMut(&[u8])) {
        let mut is_forward = true;
        for _ in 0..40 {
            match random.below(12) {
                0 => {
                    let sought = key(random.below(KEYS));
                    is_forward = random.below(2) == 0;
                    if is_forward { scan.seek(&sought) } else { scan.seek_for_prev(&sought) }.unwrap();
                    self.seek(&sought, is_forward);
                }
                1 => is_forward = !is_forward,
                2 if random.below(4) == 0 => {
                    scan.seek_to_last();
                    self.place = Place::Before(self.entries.len());
                }
                _ => {}
            }
            let skipped = if is_forward && random.below(4) == 0 { random.below(400) as usize } else { 0 };
            let is_valid = match skipped {
                0 => if is_forward { scan.move_next() } else { scan.move_prev() }.unwrap(),
                _ => scan.nth(skipped).transpose().unwrap().is_some(),
            };
            let found = is_valid.then(|| (scan.key().to_vec(), scan.value().to_vec()));
            (0..skipped).for_each(|_| _ = self.step(true));
            let expected = self.step(is_forward).and_then(|number| self.entries.get(number));
            assert_eq!(found, expected.map(|(key, value)| ((*key).clone(), (*value).clone())));
            if let Some((key, _)) = &found {
                visit(key);
            }
        }
    }
}

/// Takes entries from both ends at random until they meet.
fn check_both_ends(entries: &[(&Vec<u8>, &Vec<u8>)], mut scan: Scan, random: &mut SplitMix64) {
    let (mut lower, mut upper) = (0, entries.len());
    loop {
        let is_front = random.below(2) == 0;
        let found = if is_front { scan.next() } else { scan.next_back() };
        let found = found.transpose().unwrap().map(|(key, value)| (key.to_vec(), value.to_vec()));
        let expected = (lower < upper).then(|| if is_front { entries[lower] } else { entries[upper - 1] });
        assert_eq!(found, expected.map(|(key, value)| (key.clone(), value.clone())));
        if expected.is_none() {
            return;
        }
        if is_front { lower += 1 } else { upper -= 1 }
    }
}

fn bound(random: &mut SplitMix64) -> Bound<Vec<u8>> {
    match random.below(4) {
        0 => Bound::Included(key(random.below(KEYS))),
        1 => Bound::Excluded(key(random.below(KEYS))),
        _ => Bound::Unbounded,
    }
}

#[test]
fn scans_of_a_view_meet_the_entries_of_memtables() {
    meet_memtables(Sources::View, 11);
}

#[test]
fn scans_of_runs_meet_the_entries_of_memtables() {
    meet_memtables(Sources::Runs, 12);
}

#[test]
fn scans_of_one_run_meet_the_entries_of_memtables() {
    meet_memtables(Sources::OneRun, 13);
}

fn meet_memtables(sources: Sources, seed: u64) {
    let mut random = SplitMix64::new(seed);
    for memtable_count in [0, 1, 5, 50, 1_000] {
        let (db, keyspace, before) = open(sources, &mut random);
        let snapshot = db.snapshot();
        let mut now = before.clone();
        change(&keyspace, &mut now, &mut random, (memtable_count, Ranges::Deleted), "memtable");
        if memtable_count == 50 {
            // More deleted keys in a row than a scan passes without a merge.
            for number in 700..760 {
                keyspace.delete(key(number)).unwrap();
                now.remove(&key(number));
            }
            for first in [300, 310, 1_200] {
                keyspace.delete_range(key(first)..key(first + 7)).unwrap();
                now.retain(|found, _| !(key(first)..key(first + 7)).contains(found));
            }
        }
        for turn in 0..300 {
            let (lower, upper) = (bound(&mut random), bound(&mut random));
            let is_at_snapshot = turn % 3 == 0;
            let entries = if is_at_snapshot { &before } else { &now };
            let is_within = |key: &Vec<u8>| {
                let is_above = match &lower {
                    Bound::Included(lower) => key >= lower,
                    Bound::Excluded(lower) => key > lower,
                    Bound::Unbounded => true,
                };
                is_above
                    && match &upper {
                        Bound::Included(upper) => key <= upper,
                        Bound::Excluded(upper) => key < upper,
                        Bound::Unbounded => true,
                    }
            };
            let entries: Vec<_> = entries.iter().filter(|(key, _)| is_within(key)).collect();
            let range = (lower.clone(), upper.clone());
            if turn % 10 == 0 {
                let scan = if is_at_snapshot {
                    snapshot.range(&keyspace, range.clone())
                } else {
                    keyspace.range(range.clone())
                };
                check_both_ends(&entries, scan, &mut random);
            }
            let scan = if is_at_snapshot { snapshot.range(&keyspace, range) } else { keyspace.range(range) };
            Model { entries, place: Place::Before(0) }.check(scan, &mut random, |_| ());
        }
    }
}

/// A seek of the front to an end of the range also ends the back, whether or not it takes its entries without the merge.
#[test]
fn the_back_of_a_scan_ends_where_the_front_is_moved() {
    for sources in [Sources::View, Sources::Runs, Sources::OneRun] {
        let (_db, keyspace, entries) = open(sources, &mut SplitMix64::new(14));
        for steps in [0, 1, 2, 5, 40] {
            for sought in [None, Some(b"zzz".to_vec())] {
                let mut scan = keyspace.range(..);
                for (key, _) in entries.iter().rev().take(steps) {
                    assert_eq!(*scan.next_back().unwrap().unwrap().0, **key);
                }
                match sought {
                    None => scan.seek_to_last(),
                    Some(key) => scan.seek(key).unwrap(),
                }
                assert!(scan.next_back().is_none(), "{sources:?}, {steps} steps");
            }
        }
    }
}

#[test]
fn a_scan_does_not_return_what_is_written_at_its_place() {
    for sources in [Sources::View, Sources::Runs, Sources::OneRun] {
        write_at_the_place(sources);
    }
}

fn write_at_the_place(sources: Sources) {
    let mut random = SplitMix64::new(12);
    let (_db, keyspace, mut now) = open(sources, &mut random);
    change(&keyspace, &mut now, &mut random, (1, Ranges::Kept), "memtable");
    let mut choice = SplitMix64::new(13);
    for turn in 0..200 {
        let before = now.clone();
        let mut model = Model { entries: before.iter().collect(), place: Place::Before(0) };
        model.check(keyspace.range(..), &mut random, |key| match choice.below(3) {
            0 => {
                keyspace.delete(key).unwrap();
                now.remove(key);
            }
            1 => {
                let value = format!("turn {turn}").into_bytes();
                keyspace.put(key, &value).unwrap();
                now.insert(key.to_vec(), value);
            }
            _ => {}
        });
    }
}

/// Values of many blocks between small ones: a view leads to each of them, in both directions.
#[test]
fn a_view_leads_to_values_of_many_blocks() {
    let store = Store::new(Views::On);
    let (db, keyspace) = store.open();
    let length = |number: u64| if number % 50 == 7 { 300_000 + 70_001 * (number / 50) as usize } else { 20 };
    let value = |number: u64| vec![number as u8; length(number)];
    for run in 0..4 {
        for number in (run..400).step_by(4) {
            keyspace.put(support::key(number), value(number)).unwrap();
        }
        db.flush().unwrap();
    }
    assert!(views_of(&db).open_count == 1 && views_of(&db).run_count >= 4);
    for is_backward in [false, true] {
        let scan = keyspace.range(..);
        let entries: Box<dyn Iterator<Item = _>> =
            if is_backward { Box::new(scan.rev()) } else { Box::new(scan) };
        let mut count = 0;
        for (place, entry) in (0..).zip(entries) {
            let number = if is_backward { 399 - place } else { place };
            let (found, bytes) = entry.unwrap();
            assert!(*found == *support::key(number) && *bytes == *value(number), "{number}");
            count += 1;
        }
        assert_eq!(count, 400);
    }
    for number in (7..400).step_by(50) {
        let before = blocks_touched(&db);
        let mut scan = keyspace.range(..);
        scan.seek(support::key(number)).unwrap();
        assert!(scan.move_next().unwrap() && scan.value() == value(number));
        assert!(scan.move_next().unwrap() && scan.value() == value(number + 1));
        let blocks = blocks_touched(&db) - before;
        assert!(blocks <= 3, "{blocks} blocks at {number}");
        assert_eq!(keyspace.get(support::key(number)).unwrap().as_deref(), Some(value(number).as_slice()));
    }
    assert!(db.verify().unwrap().is_sound());
}
