//! The filters of sorted views at work: known gaps of a view change no answer and save blocks, and wrong filters are replaced.

use std::{path::Path, sync::Arc};

use tamis::{Cell, Db, Filters, Inspection, Keyspace, KeyspaceOptions, Options, Runtime, Views};
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

/// With deleted keys, newer versions than a snapshot, and deleted ranges.
#[test]
fn gaps_of_views_change_no_answer() {
    let stores = [(Views::On, true), (Views::On, false), (Views::Off, false)]
        .map(|(views, has_gap_cache)| open(&new_vfs(), views, has_gap_cache));
    let mut random = Random(11);
    let key = |random: &mut Random| format!("{:04}", random.below(3_000)).into_bytes();
    for round in 0..24 {
        for _ in 0..60 {
            let key = key(&mut random);
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
            let (lower, length) = (random.below(3_000), random.below(4));
            let key = format!("{lower:04}");
            let [with, others @ ..] = stores.each_ref().map(|(_, keyspace)| keyspace.get(&key).unwrap());
            assert!(others.iter().all(|other| *other == with), "{key} in round {round}");
            let [with, others @ ..] =
                [0, 1, 2].map(|index| snapshots[index].get(&stores[index].1, &key).unwrap());
            assert!(others.iter().all(|other| *other == with), "{key} of a snapshot, {round}");
            let bounds = || format!("{lower:04}")..format!("{:04}", lower + length + 1);
            let [with, others @ ..] = stores.each_ref().map(|(_, keyspace)| {
                let range = keyspace.range(bounds());
                match turn % 2 {
                    0 => range.collect::<Result<Vec<_>, _>>().unwrap(),
                    _ => range.rev().collect::<Result<Vec<_>, _>>().unwrap(),
                }
            });
            assert!(others.iter().all(|other| *other == with), "{:?} in round {round}", bounds());
            let [with, others @ ..] = [0, 1, 2].map(|index| {
                let range = snapshots[index].range(&stores[index].1, bounds());
                range.collect::<Result<Vec<_>, _>>().unwrap()
            });
            assert!(others.iter().all(|other| *other == with), "{:?} of a snapshot, {round}", bounds());
        }
    }
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
