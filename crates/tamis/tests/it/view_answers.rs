//! Views change no answer to points, ranges with bounds of any kind, and prefixes, with filters of tables and without.

use std::{ops::Bound, sync::Arc};

use tamis::{Db, Filters, Keyspace, KeyspaceOptions, Scan, Views};
use tamis_vfs::{Access, MemVfs};

use crate::support::{SplitMix64, inline_options, open_on, table_filters};

/// A store with one keyspace whose tables are merged by calls only.
fn open(views: Views, filters: Filters) -> (Db, Keyspace) {
    let options = inline_options().cache_bytes(64 << 20).table_access(Access::Buffered);
    let keyspace =
        KeyspaceOptions::default().memtable_bytes(64 << 20).level0_runs(64).filters(filters).views(views);
    let db = open_on(Arc::new(MemVfs::new()), options).unwrap();
    let keyspace = db.get_or_create_keyspace("k", keyspace).unwrap();
    (db, keyspace)
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
    fn new(random: &mut SplitMix64) -> Self {
        let (lower, length) = (random.below(3_000), random.below(4));
        if random.below(4) == 0 {
            let mut prefix = digits(lower);
            prefix.truncate(3 + length as usize % 2);
            return Self::Prefix(prefix);
        }
        let bound = |random: &mut SplitMix64, key| match random.below(2) {
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
fn views_change_no_answer() {
    let stores = [
        open(Views::On, Filters::each(table_filters("rosetta@4"))),
        open(Views::On, Filters::none()),
        open(Views::Off, Filters::none()),
    ];
    let mut random = SplitMix64::new(11);
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
    for ((db, _), is_open) in stores.iter().zip([1, 1, 0]) {
        let views: Vec<_> =
            db.statistics().keyspaces.iter().map(|keyspace| keyspace.views.open_count).collect();
        assert_eq!(views.iter().sum::<usize>(), is_open, "{views:?}");
    }
}
