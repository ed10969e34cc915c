//! The sample of queries: which reads are in it, and that it changes no answer.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tamis::{
    Db, Event, EventListener, Filters, KeyspaceOptions, OpenMode, Options, QuerySampleStatistics, Runtime,
    SampleStatistics, Views,
};
use tamis_vfs::{MemVfs, Vfs};

use crate::support::{FOLDER, SplitMix64, filters_of_tables, inline_options, open_in_memory, small_keyspace};

fn open(options: Options) -> Db {
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    for number in (0..1_000_u32).step_by(2) {
        db.put(number.to_be_bytes(), "value").unwrap();
    }
    db.flush().unwrap();
    db
}

fn sample(db: &Db) -> SampleStatistics {
    db.statistics().keyspaces.first().unwrap().sample
}

#[test]
fn each_kind_of_query_is_sampled() {
    let db = open(inline_options());
    let kept = |db: &Db| {
        let sample = sample(db);
        [sample.points, sample.ranges, sample.prefixes, sample.forward_seeks, sample.backward_seeks]
            .map(|kind| kind.kept)
    };
    assert_eq!(kept(&db), [0; 5]);
    db.get(7_u32.to_be_bytes()).unwrap();
    db.multi_get([8_u32.to_be_bytes(), 9_u32.to_be_bytes()]).unwrap();
    assert_eq!(kept(&db), [3, 0, 0, 0, 0]);
    assert_eq!(db.range(3_u32.to_be_bytes()..=3_u32.to_be_bytes()).count(), 0);
    assert_eq!(kept(&db), [3, 1, 0, 0, 0]);
    assert_eq!(db.prefix([0, 0, 1]).count(), 128);
    assert_eq!(kept(&db), [3, 1, 1, 0, 0]);
    assert!(db.range(3_u32.to_be_bytes()..).next().is_some());
    assert!(db.first().unwrap().is_some());
    assert_eq!(kept(&db), [3, 1, 1, 2, 0]);
    assert!(db.last().unwrap().is_some());
    let mut scan = db.range(3_u32.to_be_bytes()..9_u32.to_be_bytes());
    scan.seek_for_prev(5_u32.to_be_bytes()).unwrap();
    drop(scan);
    assert_eq!(kept(&db), [3, 2, 1, 2, 2]);
    let statistics = db.statistics();
    assert_eq!(
        (statistics.point_reads, statistics.range_scans, statistics.prefix_scans, statistics.scans),
        (3, 2, 1, 6)
    );
    assert_eq!((statistics.forward_seeks, statistics.backward_seeks), (2, 2));
}

#[test]
fn outcomes_of_sampled_queries_are_counted() {
    let default_keyspace = small_keyspace().filters(Filters::bits(10.0));
    let db = open(inline_options().default_keyspace(default_keyspace));
    for number in 0..40_u32 {
        assert_eq!(db.get(number.to_be_bytes()).unwrap().is_some(), number % 2 == 0);
    }
    let points = sample(&db).points;
    assert_eq!(
        (points.tables_true_positive, points.tables_rejected + points.tables_false_positive),
        (20, 20)
    );
    assert!(points.tables_rejected > 15, "{points:?}");
}

/// Three overlapping tables with random keys, whose filters name candidates.
fn overlapping() -> (Db, Vec<u64>) {
    let filters = Filters::each(["surf-real:bits=4".parse().unwrap()]);
    let default_keyspace = KeyspaceOptions::default().filters(filters).level0_runs(64).views(Views::Off);
    let options = inline_options().default_keyspace(default_keyspace);
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    let mut random = SplitMix64::new(3);
    let mut keys = Vec::new();
    for _ in 0..3 {
        // The ends are in reach of all tables.
        let inner = (0..2_000).map(|_| random.next_u64());
        for key in inner.chain([keys.len() as u64, u64::MAX - keys.len() as u64]).collect::<Vec<_>>() {
            db.put(key.to_be_bytes(), [7; 50]).unwrap();
            keys.push(key);
        }
        db.flush().unwrap();
    }
    keys.sort_unstable();
    (db, keys)
}

/// Queries of each kind: at keys, near them, and anywhere.
#[test]
fn outcomes_of_each_kind_of_query_are_counted() {
    let (db, keys) = overlapping();
    let mut random = SplitMix64::new(9);
    for turn in 0..600 {
        let key = keys[10 + random.below(keys.len() as u64 - 20) as usize];
        let sought = match turn % 3 {
            0 => key,
            1 => key + 1,
            _ => random.next_u64(),
        };
        let bytes = sought.to_be_bytes();
        db.get(bytes).unwrap();
        db.range(bytes..=sought.saturating_add(10).to_be_bytes()).count();
        // Near a key, also without its last byte.
        let near = if turn % 3 == 1 { sought + 256 } else { sought };
        db.prefix(&near.to_be_bytes()[..7]).count();
        db.range(bytes..).next().unwrap().unwrap();
        let mut scan = db.range(..);
        scan.seek_for_prev(bytes).unwrap();
        assert!(scan.move_prev().unwrap());
    }
    let sample = sample(&db);
    let seeks = [sample.forward_seeks, sample.backward_seeks];
    for kind in [sample.points, sample.ranges, sample.prefixes].into_iter().chain(seeks) {
        assert_eq!(kind.kept, 600);
        let outcomes = [kind.tables_rejected, kind.tables_true_positive, kind.tables_false_positive];
        assert!(outcomes.iter().all(|count| *count > 0), "{kind:?}");
    }
    // Each seek is in reach of three tables, and one of them has its entry.
    for kind in seeks {
        assert_eq!(
            (kind.tables_true_positive, kind.tables_rejected + kind.tables_false_positive),
            (600, 1_200),
            "{kind:?}"
        );
    }
}

/// A seek in a closed range has its own outcome, which is not that of the range.
#[test]
fn seeks_within_closed_ranges_have_their_own_outcome() {
    let (db, keys) = overlapping();
    let key = keys[keys.len() / 2];
    let bounds = || (key - 1).to_be_bytes()..(key + 2).to_be_bytes();
    let counts = |kind: QuerySampleStatistics| {
        (kind.kept, kind.tables_rejected, kind.tables_true_positive, kind.tables_false_positive)
    };
    let mut scan = db.range(bounds());
    assert_eq!(scan.next().map(|entry| *entry.unwrap().0 == key.to_be_bytes()), Some(true));
    scan.seek(key.to_be_bytes()).unwrap();
    assert!(scan.move_next().unwrap());
    // The filters of two tables rejected the range, so the seek did not ask them.
    assert_eq!(counts(sample(&db).forward_seeks), (1, 0, 1, 0));
    // This seek is before the range, so that it begins at its lower bound. The next one is behind it, and reads nothing.
    scan.seek(0_u64.to_be_bytes()).unwrap();
    assert_eq!(counts(sample(&db).forward_seeks), (2, 0, 2, 0));
    scan.seek((key + 2).to_be_bytes()).unwrap();
    assert!(!scan.move_next().unwrap());
    assert_eq!(counts(sample(&db).forward_seeks), (3, 0, 2, 0));
    scan.seek_for_prev(u64::MAX.to_be_bytes()).unwrap();
    assert_eq!(counts(sample(&db).backward_seeks), (1, 0, 1, 0));
    scan.seek_for_prev((key - 2).to_be_bytes()).unwrap();
    assert_eq!(counts(sample(&db).backward_seeks), (2, 0, 1, 0));
    let tables = filters_of_tables(&db, 0);
    let seeks = tables.iter().map(|table| table.seeks);
    assert_eq!(
        seeks.fold((0, 0), |sum, seeks| (sum.0 + seeks.checked, sum.1 + seeks.true_positives)),
        (3, 3)
    );
    drop(scan);
    assert_eq!(counts(sample(&db).ranges), (1, 2, 1, 0));
}

/// No filter takes a prefix whose first keys are left out.
#[test]
fn seeks_within_a_prefix_are_sampled_as_ranges() {
    let db = open(inline_options());
    let mut scan = db.prefix([0, 0, 1]);
    scan.seek([0, 0, 1, 0xFF]).unwrap();
    assert!(!scan.move_next().unwrap());
    drop(scan);
    let sample = sample(&db);
    assert_eq!((sample.prefixes.kept, sample.forward_seeks.kept, sample.too_long), (1, 1, 0));
}

#[test]
fn reads_that_reach_no_table_are_not_sampled() {
    let db = open(inline_options());
    db.put("new", "value").unwrap();
    assert!(db.get("new").unwrap().is_some());
    drop(db.range("a"..));
    assert_eq!(sample(&db).points.kept + sample(&db).forward_seeks.kept, 0);
}

#[test]
fn sampling_can_be_switched_off() {
    let db = open(inline_options().sample_queries(false));
    db.get(7_u32.to_be_bytes()).unwrap();
    assert_eq!(db.range(3_u32.to_be_bytes()..=3_u32.to_be_bytes()).count(), 0);
    let sample = sample(&db);
    assert_eq!((sample.points.kept, sample.ranges.kept), (0, 0));
}

#[test]
fn later_reads_are_sampled_less_and_the_numbers_seen_stay_right() {
    let db = open(inline_options());
    for number in 0..20_000_u32 {
        db.get((number % 1_000).to_be_bytes()).unwrap();
    }
    let points = sample(&db).points;
    assert!(points.interval >= 8, "{points:?}");
    assert!(points.kept < 8_000, "{points:?}");
    assert!(points.seen.abs_diff(20_000) < 1_000, "{points:?}");
}

#[test]
fn long_bounds_are_counted_and_left_out() {
    let db = open(inline_options());
    let long = vec![1; 65_535];
    assert_eq!(db.get(&long).unwrap(), None);
    assert_eq!(db.range(long.clone()..=long.clone()).count(), 0);
    assert_eq!(db.prefix(&long).count(), 0);
    let sample = sample(&db);
    assert_eq!((sample.points.seen, sample.points.kept, sample.too_long), (1, 0, 3));
}

#[test]
fn tables_count_the_answers_of_their_filters() {
    let filters = Filters::bits(10.0);
    let db = open(inline_options().default_keyspace(small_keyspace().filters(filters)));
    for number in 0..1_000_u32 {
        db.get(number.to_be_bytes()).unwrap();
    }
    let points = filters_of_tables(&db, 0).into_iter().map(|table| table.points);
    let (checked, rejected, true_positives, false_positives) = points.fold((0, 0, 0, 0), |sum, points| {
        (
            sum.0 + points.checked,
            sum.1 + points.rejected,
            sum.2 + points.true_positives,
            sum.3 + points.false_positives,
        )
    });
    // The last key is above the table.
    assert_eq!((checked, true_positives, rejected + false_positives), (999, 500, 499));
    assert!(false_positives < 30, "{false_positives}");
}

#[derive(Debug, Default)]
struct Events(Mutex<Vec<String>>);

impl EventListener for Events {
    fn on_event(&self, event: &Event) {
        if let Event::SampleIgnored { reason, .. } = event {
            self.0.lock().push(reason.clone());
        }
    }
}

fn with_file() -> Options {
    inline_options().sample_file(true)
}

/// A closed store with one sampled query of each of three kinds.
fn closed_store() -> MemVfs {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, with_file()).unwrap();
    for number in (0..1_000_u32).step_by(2) {
        db.put(number.to_be_bytes(), "value").unwrap();
    }
    db.flush().unwrap();
    db.get(7_u32.to_be_bytes()).unwrap();
    assert_eq!(db.range(3_u32.to_be_bytes()..=3_u32.to_be_bytes()).count(), 0);
    assert_eq!(db.prefix([0, 0, 1]).count(), 128);
    db.close().unwrap();
    vfs
}

fn samples_path() -> PathBuf {
    Path::new(FOLDER).join("SAMPLES")
}

#[test]
fn samples_are_kept_over_a_reopen() {
    let vfs = closed_store();
    let kept = |db: &Db| {
        let sample = sample(db);
        let kinds = [sample.points, sample.ranges, sample.prefixes];
        (kinds.map(|kind| kind.kept), kinds.map(|kind| kind.seen))
    };
    let db = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
    assert_eq!(kept(&db), ([1; 3], [1; 3]));
    drop(db);
    let db = open_in_memory(&vfs, with_file()).unwrap();
    db.get(9_u32.to_be_bytes()).unwrap();
    assert_eq!(kept(&db), ([2, 1, 1], [2, 1, 1]));
    db.close().unwrap();
    let db = open_in_memory(&vfs, with_file()).unwrap();
    assert_eq!(kept(&db), ([2, 1, 1], [2, 1, 1]));
    db.close().unwrap();
}

/// Queries have keys of users: they are on disk only for programs that ask for it.
#[test]
fn samples_are_written_only_if_asked_for_and_removed_otherwise() {
    let vfs = closed_store();
    assert!(vfs.exists(&samples_path()).unwrap());
    let db = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
    db.close().unwrap();
    assert!(vfs.exists(&samples_path()).unwrap(), "a reader changes nothing");
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    assert!(!vfs.exists(&samples_path()).unwrap());
    assert_eq!(sample(&db).points.kept, 0);
    db.get(9_u32.to_be_bytes()).unwrap();
    db.close().unwrap();
    assert!(!vfs.exists(&samples_path()).unwrap());
}

#[test]
fn a_damaged_foreign_or_lost_file_is_reported_and_the_store_continues() {
    let bytes = closed_store().read(&samples_path()).unwrap();
    let foreign = {
        let vfs = MemVfs::new();
        let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, with_file(), Runtime::deterministic(99)).unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        db.get("other").unwrap();
        db.close().unwrap();
        vfs.read(&samples_path()).unwrap()
    };
    let flipped = |position: usize| {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1;
        flipped
    };
    let mut files: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "too short"),
        (foreign, "another store"),
        (b"some text that is no sample at all".to_vec(), "does not begin"),
    ];
    files.extend((16..bytes.len()).step_by(5).map(|position| (flipped(position), "checksum")));
    for (file, reason) in files {
        let vfs = closed_store();
        vfs.remove(&samples_path()).unwrap();
        vfs.create(&samples_path()).unwrap().append(&file).unwrap();
        let events = Arc::new(Events::default());
        let options = with_file().listener(Arc::<Events>::clone(&events));
        let db = open_in_memory(&vfs, options).unwrap();
        let reported = events.0.lock().clone();
        assert!(reported.len() == 1 && reported[0].contains(reason), "{reported:?} instead of {reason}");
        assert_eq!(sample(&db).points.kept, 0);
        assert_eq!(db.get(8_u32.to_be_bytes()).unwrap().as_deref(), Some(b"value".as_slice()));
        db.close().unwrap();
        let db = open_in_memory(&vfs, with_file()).unwrap();
        assert_eq!(sample(&db).points.kept, 1, "the file is written again");
    }
    let vfs = closed_store();
    vfs.remove(&samples_path()).unwrap();
    let db = open_in_memory(&vfs, with_file()).unwrap();
    assert_eq!(sample(&db).points.kept, 0);
}
