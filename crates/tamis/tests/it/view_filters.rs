//! The filters of sorted views at work: known gaps of a view change no answer and save blocks, and wrong filters are replaced.

use std::{ops::Bound, path::Path, sync::Arc};

use tamis::{Cell, Db, Filters, Inspection, Keyspace, KeyspaceOptions, Options, Runtime, Scan, Views};
use tamis_vfs::{Access, MemVfs, Vfs};

use crate::support::{FOLDER, Random, inline_options};

const KEY_COUNT: u64 = 8_000;
const KEY_DISTANCE: u64 = 1_000;

/// A store with one keyspace whose tables have no filters and are merged by calls only.
fn open(vfs: &Arc<dyn Vfs>, views: Views, has_gap_cache: bool) -> (Db, Keyspace) {
    let options = Options {
        cache_bytes: 64 << 20,
        table_access: Access::Buffered,
        gap_cache: has_gap_cache,
        ..inline_options()
    };
    let keyspace = KeyspaceOptions {
        memtable_bytes: 64 << 20,
        level0_runs: 64,
        filters: Filters::none(),
        views,
        ..KeyspaceOptions::default()
    };
    let db = Db::open_on(Arc::clone(vfs), FOLDER, options, Runtime::deterministic(7)).unwrap();
    let keyspace = db.get_or_create_keyspace("k", keyspace).unwrap();
    (db, keyspace)
}

fn new_vfs() -> Arc<dyn Vfs> {
    Arc::new(MemVfs::new())
}

/// Four runs of integers that are far apart, with a view of all of them.
fn with_view(has_gap_cache: bool) -> (Db, Keyspace) {
    let (db, keyspace) = open(&new_vfs(), Views::On, has_gap_cache);
    for run in 0..4 {
        for number in (1 + run..=KEY_COUNT).step_by(4) {
            keyspace.put((number * KEY_DISTANCE).to_be_bytes(), [7; 50]).unwrap();
        }
        db.flush().unwrap();
    }
    assert_eq!(open_views(&db), 1);
    (db, keyspace)
}

fn open_views(db: &Db) -> u64 {
    db.statistics().keyspaces.iter().map(|keyspace| keyspace.views.open_count as u64).sum()
}

/// Blocks that reads used: loads and hits of the cache.
fn used_blocks(db: &Db) -> u64 {
    let statistics = db.statistics();
    statistics.blocks_read + statistics.cache_hits
}

/// A closed range without a key, right after a key.
fn is_empty(keyspace: &Keyspace, position: u64, is_backward: bool) -> bool {
    let lower = position * KEY_DISTANCE + 1;
    let mut scan = keyspace.range(lower.to_be_bytes()..=(lower + 3).to_be_bytes());
    if is_backward { scan.next_back().is_none() } else { scan.next().is_none() }
}

#[test]
fn a_range_that_a_view_wrongly_admitted_reads_no_block_the_second_time() {
    let (db, keyspace) = with_view(true);
    // From the first key of the last run on, a range is in reach of several runs, so that the view is read.
    for position in 4..500 {
        let is_backward = position % 2 == 0;
        assert!(is_empty(&keyspace, position, is_backward));
        let before = used_blocks(&db);
        assert!(is_empty(&keyspace, position, !is_backward));
        assert_eq!(used_blocks(&db), before, "at {position}");
    }
    // With an entry in a memtable the view is merged with it.
    keyspace.put(0_u64.to_be_bytes(), "new").unwrap();
    for position in 500..600 {
        assert!(is_empty(&keyspace, position, false));
        let before = used_blocks(&db);
        assert!(is_empty(&keyspace, position, true));
        assert_eq!(used_blocks(&db), before, "at {position}");
    }
    let statistics = db.statistics();
    assert!(statistics.gap_hits >= 595, "{} gaps used", statistics.gap_hits);
    assert!((1..=2 << 20).contains(&statistics.gap_bytes), "{} bytes", statistics.gap_bytes);
}

/// The first read is a false positive of the tag of an entry. A range then records the gap.
#[test]
fn a_point_in_a_known_gap_of_a_view_reads_no_block() {
    let (db, keyspace) = with_view(true);
    let blocks_of = |key: u64| {
        let before = used_blocks(&db);
        assert_eq!(keyspace.get(key.to_be_bytes()).unwrap(), None);
        used_blocks(&db) - before
    };
    let mut admitted_count = 0;
    for position in 4..2_000 {
        for key in (1..4).map(|offset| position * KEY_DISTANCE + offset) {
            if blocks_of(key) > 0 {
                admitted_count += 1;
                assert!(is_empty(&keyspace, position, false));
                assert_eq!(blocks_of(key), 0, "{key}");
            }
        }
    }
    assert!(admitted_count >= 5, "{admitted_count} false positives");
}

#[test]
fn skewed_empty_ranges_of_a_view_read_at_most_a_fifth_of_the_blocks() {
    let blocks = |has_gap_cache| {
        let (db, keyspace) = with_view(has_gap_cache);
        let mut random = Random(3);
        let before = used_blocks(&db);
        for _ in 0..20_000 {
            // About a Zipfian distribution: the logarithm of the rank is uniform.
            let exponent = random.below(1 << 20) as f64 / f64::from(1 << 20);
            let rank = 2_000_f64.powf(exponent) as u64;
            assert!(is_empty(&keyspace, 1 + rank * 7_919 % (KEY_COUNT - 2), false));
        }
        used_blocks(&db) - before
    };
    let (with, without) = (blocks(true), blocks(false));
    println!("{with} blocks instead of {without}");
    assert!(with * 5 <= without, "{with} blocks instead of {without}");
}

/// A text of a few digits.
fn digits(number: u64) -> Vec<u8> {
    format!("{number:04}").into_bytes()
}

/// A range of a few numbers with bounds of any kind, or a prefix.
#[derive(Debug)]
enum Query {
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Prefix(Vec<u8>),
}

impl Query {
    fn new(random: &mut Random) -> Self {
        let (lower, length) = (random.below(3_000), random.below(4));
        if random.below(4) == 0 {
            let mut prefix = digits(lower);
            prefix.truncate(3 + length as usize % 2);
            return Self::Prefix(prefix);
        }
        let bound = |random: &mut Random, key| match random.below(2) {
            0 => Bound::Included(key),
            _ => Bound::Excluded(key),
        };
        Self::Range(bound(random, digits(lower)), bound(random, digits(lower + length + 1)))
    }
}

/// The entries of a scan, forward or backward.
fn entries(scan: Scan, is_backward: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entry = |entry: tamis::Result<(tamis::Slice, tamis::Slice)>| {
        let (key, value) = entry.unwrap();
        (key.to_vec(), value.to_vec())
    };
    if is_backward { scan.rev().map(entry).collect() } else { scan.map(entry).collect() }
}

/// With deleted keys, newer versions than a snapshot, and deleted ranges; for ranges with bounds of any kind, and prefixes.
#[test]
fn gaps_and_filters_of_views_change_no_answer() {
    let vfs = new_vfs();
    let stores = [
        open(&vfs, Views::On, true),
        open(&new_vfs(), Views::On, false),
        open(&new_vfs(), Views::Off, false),
    ];
    let mut random = Random(11);
    for round in 0..24 {
        for _ in 0..60 {
            let key = digits(random.below(3_000));
            for (_, keyspace) in &stores {
                match round % 3 {
                    0 => keyspace.delete(&key).unwrap(),
                    _ => keyspace.put(&key, format!("{round}")).unwrap(),
                }
            }
        }
        let snapshots = stores.each_ref().map(|(db, _)| db.snapshot());
        for (db, keyspace) in &stores {
            for number in 0..20 {
                keyspace.put(format!("{:04}", (round * 20 + number) % 3_000), "new").unwrap();
            }
            if round % 8 == 7 {
                keyspace.delete_range("1000".."1010").unwrap();
            }
            db.flush().unwrap();
        }
        for turn in 0..300 {
            let key = digits(random.below(3_000));
            let [with, others @ ..] = stores.each_ref().map(|(_, keyspace)| keyspace.get(&key).unwrap());
            assert!(others.iter().all(|other| *other == with), "{key:?} in round {round}");
            let [with, others @ ..] =
                [0, 1, 2].map(|index| snapshots[index].get(&stores[index].1, &key).unwrap());
            assert!(others.iter().all(|other| *other == with), "{key:?} of a snapshot, {round}");
            let query = Query::new(&mut random);
            let [with, others @ ..] = stores.each_ref().map(|(_, keyspace)| {
                let scan = match &query {
                    Query::Range(lower, upper) => keyspace.range((lower.clone(), upper.clone())),
                    Query::Prefix(prefix) => keyspace.prefix(prefix),
                };
                entries(scan, turn % 2 == 1)
            });
            assert!(others.iter().all(|other| *other == with), "{query:?} in round {round}");
            let [with, others @ ..] = [0, 1, 2].map(|index| {
                let (snapshot, keyspace) = (&snapshots[index], &stores[index].1);
                let scan = match &query {
                    Query::Range(lower, upper) => snapshot.range(keyspace, (lower.clone(), upper.clone())),
                    Query::Prefix(prefix) => snapshot.prefix(keyspace, prefix),
                };
                entries(scan, turn % 2 == 0)
            });
            assert!(others.iter().all(|other| *other == with), "{query:?} of a snapshot, {round}");
        }
    }
    assert!(!designs(&vfs).is_empty());
    assert!(stores[0].0.statistics().gap_hits > 100);
    assert_eq!(stores[1].0.statistics().gap_hits, 0);
}

/// The designs of the filters of the only view.
fn designs(vfs: &Arc<dyn Vfs>) -> String {
    let mut names = vfs.list(Path::new(FOLDER)).unwrap().into_iter().map(|entry| entry.name);
    let name = names.rfind(|name| name.ends_with(".view")).unwrap();
    let found = Inspection::of_view(vfs, &Path::new(FOLDER).join(name)).unwrap();
    let designs = found.facts.into_iter().find(|(name, _)| *name == "filter designs");
    match designs {
        Some((_, Cell::Text(designs))) => designs,
        other => panic!("{other:?}"),
    }
}

/// Symptom: only `tamis inspect` showed why the filters of a view were chosen.
#[test]
fn statistics_have_the_expected_costs_of_the_filters_of_a_view() {
    let (db, keyspace) = with_view(false);
    let choices = || {
        let keyspaces = db.statistics().keyspaces;
        keyspaces.into_iter().find(|keyspace| keyspace.name == "k").unwrap().filter_choices
    };
    for _ in 0..3 {
        (4..1_000).for_each(|position| assert!(is_empty(&keyspace, position, false)));
        keyspace.put("a", "value").unwrap();
        db.flush().unwrap();
    }
    let found = choices();
    let [choice] = &found[..] else { panic!("one view, and tables without filters: {found:?}") };
    assert_eq!((choice.level, choice.table_count), (None, 1), "{choice:?}");
    assert!((KEY_COUNT..KEY_COUNT + 4).contains(&choice.entry_count), "{choice:?}");
    assert!((900..4_000).contains(&choice.empty_query_count), "{choice:?}");
    let families = &choice.chosen.filters;
    assert!(!families.is_empty() && choice.chosen.range_rate.is_some_and(|rate| rate < 0.1), "{choice:?}");
    assert_eq!(choice.runners_up.len(), tamis::RUNNERS_UP_MAX, "{choice:?}");
    assert!(choice.runners_up.iter().all(|other| other.filters != *families), "{choice:?}");
    assert_eq!(choices(), found, "again");
}

/// Ranges that begin after a key, as a page of a list does, and prefixes right before a key: one end of the range is a key of the view, but
/// not in the range. The filters of the view reject them.
#[test]
fn ranges_and_prefixes_next_to_excluded_keys_read_no_block() {
    let vfs = new_vfs();
    let (db, keyspace) = open(&vfs, Views::On, false);
    let key = |number: u64| number.to_be_bytes().to_vec();
    for run in 0..4 {
        for number in (run..KEY_COUNT).step_by(4) {
            keyspace.put(key(2 * number), [7; 50]).unwrap();
        }
        db.flush().unwrap();
    }
    type Read = fn(&Keyspace, [Vec<u8>; 3]) -> Scan;
    let reads: [(&str, Read); 4] = [
        ("after a key", |keyspace, [before, absent, _]| {
            keyspace.range((Bound::Excluded(before), Bound::Included(absent)))
        }),
        ("between keys", |keyspace, [before, _, after]| {
            keyspace.range((Bound::Excluded(before), Bound::Excluded(after)))
        }),
        ("before a key", |keyspace, [_, absent, after]| keyspace.range(absent..after)),
        ("prefix", |keyspace, [_, absent, _]| keyspace.prefix(absent)),
    ];
    let mut random = Random(5);
    let mut blocks = |read: Read, count: u64| {
        let before = used_blocks(&db);
        for _ in 0..count {
            // From the first key of the last run to the last one of the first run, all runs are in reach.
            let number = 2 * (4 + random.below(KEY_COUNT - 12));
            let mut scan = read(&keyspace, [0, 1, 2].map(|distance| key(number + distance)));
            assert!(scan.next().is_none());
        }
        used_blocks(&db) - before
    };
    for _ in 0..3 {
        reads.iter().for_each(|(_, read)| assert!(blocks(*read, 500) <= 2_000));
        keyspace.put("a", "value").unwrap();
        db.flush().unwrap();
    }
    let design = designs(&vfs);
    for (name, read) in reads {
        let blocks = blocks(read, 1_000);
        println!("{name}: {blocks} blocks of 1,000 ranges, {design}");
        assert!(blocks <= 20, "{name}: {blocks} blocks of 1,000 ranges, {design}");
    }
}

/// Filters are checked after many answers, but not replaced if they are still the best.
#[test]
fn a_view_whose_filters_suit_the_queries_is_not_built_again() {
    let vfs = new_vfs();
    let (db, keyspace) = open(&vfs, Views::On, false);
    let mut random = Random(2);
    let mut keys = Vec::new();
    for _ in 0..4 {
        for _ in 0..1_000 {
            keys.push(random.next());
            keyspace.put(keys[keys.len() - 1].to_be_bytes(), [7; 50]).unwrap();
        }
        db.flush().unwrap();
    }
    let read = |count: u64, random: &mut Random| {
        for _ in 0..count {
            let lower = keys[random.below(keys.len() as u64) as usize].wrapping_add(1);
            keyspace
                .range(lower.to_be_bytes()..=lower.saturating_add(15).to_be_bytes())
                .next()
                .transpose()
                .unwrap();
        }
        keyspace.put([0; 8], "value").unwrap();
        db.flush().unwrap();
    };
    // The first ranges give the view its filters.
    (0..3).for_each(|_| read(2_000, &mut random));
    assert!(!designs(&vfs).is_empty());
    let built = db.statistics().views_built;
    (0..6).for_each(|_| read(4_000, &mut random));
    let statistics = db.statistics();
    // The tables have no filters.
    assert!(statistics.filters_checked >= 1, "{} checks", statistics.filters_checked);
    assert_eq!(statistics.views_built, built);
}

/// The filters are chosen for wide ranges far from keys. Then all ranges are short and next to keys: the filters have many false positives.
#[test]
fn a_shift_of_the_queries_changes_the_filters_of_a_view() {
    let vfs = new_vfs();
    let (db, keyspace) = open(&vfs, Views::On, false);
    let mut random = Random(2);
    let mut keys = Vec::new();
    for _ in 0..4 {
        for _ in 0..4_000 {
            keys.push(random.next());
            keyspace.put(keys[keys.len() - 1].to_be_bytes(), [7; 50]).unwrap();
        }
        db.flush().unwrap();
    }
    let blocks = |is_next_to_key: bool, random: &mut Random| {
        let before = used_blocks(&db);
        for _ in 0..2_500 {
            let (lower, width) = match is_next_to_key {
                true => (keys[random.below(keys.len() as u64) as usize].wrapping_add(1), 15),
                false => (random.next(), 1 << 44),
            };
            let upper = lower.saturating_add(width);
            keyspace.range(lower.to_be_bytes()..=upper.to_be_bytes()).next().transpose().unwrap();
        }
        used_blocks(&db) - before
    };
    let next_flush = || {
        keyspace.put([0; 8], "value").unwrap();
        db.flush().unwrap();
    };
    for _ in 0..3 {
        blocks(false, &mut random);
        next_flush();
    }
    let first = designs(&vfs);
    assert!(!first.is_empty());
    let rebuilt = db.statistics().views_built;
    let shifted = blocks(true, &mut random);
    let answers = || {
        let keyspaces = db.statistics().keyspaces;
        keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap().views.filter_answers
    };
    let wrong = answers();
    assert!(wrong.wrong > 500 && wrong.asked == wrong.denied + wrong.right + wrong.wrong, "{wrong:?}");
    for _ in 0..6 {
        next_flush();
        blocks(true, &mut random);
    }
    next_flush();
    let (after, second) = (blocks(true, &mut random), designs(&vfs));
    let right = answers();
    assert!(right.denied > 500 && right.denied > 20 * right.wrong, "{right:?}");
    let built = db.statistics().views_built - rebuilt;
    println!("{shifted} blocks with {first}\n{after} blocks with {second}\n{built} views built");
    assert!(after * 3 <= shifted, "{after} blocks instead of {shifted}: {first}, then {second}");
    assert!((1..=3).contains(&built), "{built} views for one shift");
}

/// The filters that rebuilds add for the keys of new runs are not chosen: they admit ranges next to these keys. The chosen filters of the
/// other keys are still the best ones.
#[test]
fn filters_that_rebuilds_added_to_a_view_are_replaced_by_chosen_ones() {
    let (db, keyspace) = open(&new_vfs(), Views::On, false);
    let mut random = Random(2);
    let mut keys = Vec::new();
    let add_run = |random: &mut Random, keys: &mut Vec<u64>| {
        for _ in 0..2_000 {
            keys.push(random.next());
            keyspace.put(keys[keys.len() - 1].to_be_bytes(), [7; 50]).unwrap();
        }
        db.flush().unwrap();
    };
    let blocks = |random: &mut Random, keys: &[u64]| {
        let before = used_blocks(&db);
        for _ in 0..2_500 {
            let lower = keys[random.below(keys.len() as u64) as usize].wrapping_add(1);
            let upper = lower.saturating_add(15);
            keyspace.range(lower.to_be_bytes()..=upper.to_be_bytes()).next().transpose().unwrap();
        }
        used_blocks(&db) - before
    };
    let next_flush = || {
        keyspace.put([0; 8], "value").unwrap();
        db.flush().unwrap();
    };
    (0..4).for_each(|_| add_run(&mut random, &mut keys));
    for _ in 0..3 {
        blocks(&mut random, &keys);
        next_flush();
    }
    let chosen = blocks(&mut random, &keys);
    (0..2).for_each(|_| add_run(&mut random, &mut keys));
    let before = db.statistics();
    let added = blocks(&mut random, &keys);
    for _ in 0..2 {
        next_flush();
        blocks(&mut random, &keys);
    }
    next_flush();
    let (after, statistics) = (blocks(&mut random, &keys), db.statistics());
    println!("{chosen} blocks, {added} with added filters, {after} afterwards");
    assert!(added >= 4 * chosen, "{added} blocks with added filters, {chosen} without");
    assert!(after * 4 <= added, "{after} blocks instead of {added}");
    assert!(statistics.filters_checked > before.filters_checked);
    let built_count = statistics.views_built - before.views_built;
    assert!((1..=2).contains(&built_count), "{built_count} views built");
    assert_eq!(statistics.filters_replaced - before.filters_replaced, built_count);
}
