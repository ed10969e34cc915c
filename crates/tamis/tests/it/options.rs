//! The observable effect of every option.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tamis::{
    Compression, Db, Durability, Error, Event, EventListener, Filters, JoinHandle, Keyspace, KeyspaceOptions,
    KeyspaceStatistics, Layout, ManualClock, OpenMode, Options, Runtime, Spawner, Statistics, SystemSpawner,
    TableFilter, Views, WriteBatch,
};
use tamis_vfs::{Access, MemVfs, OperationKind, RecordVfs, Vfs};

use crate::support::{
    EventLog, FOLDER, SplitMix64, filters, inline_options, open_in_memory, open_on, small_keyspace,
};

#[test]
fn a_missing_database_is_created_only_on_request() {
    let vfs = MemVfs::new();
    let refused = open_in_memory(&vfs, inline_options().mode(OpenMode::Existing));
    assert!(matches!(refused, Err(Error::NotADatabase { .. })), "{refused:?}");
    assert!(vfs.list(Path::new(FOLDER)).unwrap_or_default().is_empty(), "a refusal leaves nothing behind");

    open_in_memory(&vfs, inline_options()).unwrap().close().unwrap();
    open_in_memory(&vfs, inline_options().mode(OpenMode::Existing)).unwrap();
}

#[test]
fn a_read_only_open_reads_everything_refuses_writes_and_changes_no_file() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    db.put("flushed", "1").unwrap();
    db.flush().unwrap();
    db.put("logged", "2").unwrap();
    db.close().unwrap();
    let contents = |vfs: &MemVfs| -> Vec<_> {
        let files = vfs.list(Path::new(FOLDER)).unwrap().into_iter().filter(|file| !file.is_dir);
        files
            .map(|file| (file.name.clone(), vfs.read(&Path::new(FOLDER).join(&file.name)).unwrap()))
            .collect()
    };
    let before = contents(&vfs);

    let db = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
    assert_eq!(db.get("flushed").unwrap().as_deref(), Some(b"1".as_slice()));
    assert_eq!(db.get("logged").unwrap().as_deref(), Some(b"2".as_slice()));
    assert!(matches!(db.put("key", "value"), Err(Error::ReadOnly { .. })));
    db.close().unwrap();
    assert_eq!(contents(&vfs), before);
}

/// Options of an existing keyspace were ignored silently if they were not its own.
#[test]
fn other_options_of_an_existing_keyspace_are_refused() {
    let vfs = MemVfs::new();
    let created = KeyspaceOptions::default()
        .memtable_bytes(1 << 20)
        .layout(Layout::tiered())
        .filters(filters("surf@12"));
    let open = |default_keyspace: KeyspaceOptions| {
        open_in_memory(&vfs, inline_options().default_keyspace(default_keyspace))
    };
    open(created.clone()).unwrap().get_or_create_keyspace("k", created.clone()).unwrap();
    // The same options, fewer of them, and none: those that are left out are not compared.
    let fewer = KeyspaceOptions::default().memtable_bytes(1 << 20);
    for given in [&created, &fewer, &KeyspaceOptions::default()] {
        let db = open(given.clone()).unwrap();
        assert_eq!(db.default_keyspace().options(), created);
        assert_eq!(db.get_or_create_keyspace("k", given.clone()).unwrap().options(), created);
    }
    let others: [(&str, &str, &str, KeyspaceOptions); 9] = [
        ("memtable_bytes", "1048576", "2097152", created.clone().memtable_bytes(2 << 20)),
        ("block_bytes", "4096", "8192", created.clone().block_bytes(8192)),
        ("table_bytes", "67108864", "1048576", created.clone().table_bytes(1 << 20)),
        (
            "compression",
            "none",
            "none,zstd:3",
            created.clone().compression(vec![Compression::None, Compression::Zstd(3)]),
        ),
        ("filters", "surf@12", "auto:bytes=100", created.clone().filters(Filters::auto_bytes(100))),
        ("views", "auto", "on", created.clone().views(Views::On)),
        ("layout", "tiered", "partitioned", created.clone().layout(Layout::partitioned())),
        ("size_ratio", "10", "4", created.clone().size_ratio(4)),
        ("level0_runs", "4", "8", created.clone().level0_runs(8)),
    ];
    for (option, stored, given, options) in others {
        let changeable = ["filters", "views", "layout"].contains(&option);
        let advice = if changeable { "set_options" } else { "copy the entries to a new keyspace" };
        let db = open(KeyspaceOptions::default()).unwrap();
        let k = db.keyspace("k").unwrap();
        match k.set_options(options.clone()) {
            Ok(()) if changeable => k.set_options(created.clone()).unwrap(),
            Err(Error::KeyspaceOption { option: found, .. }) if !changeable => assert_eq!(found, option),
            other => panic!("{option}: {other:?}"),
        }
        drop(k);
        for (keyspace, error) in [
            ("k", db.get_or_create_keyspace("k", options.clone()).map(drop)),
            ("k", db.keyspace("k").unwrap().check_options(&options)),
            ("default", open_after(db, || open(options.clone()).map(drop))),
        ] {
            let error = error.unwrap_err();
            assert!(
                matches!(&error, Error::KeyspaceOption { option: found, .. } if *found == option),
                "{error}"
            );
            let message = error.to_string();
            for part in [keyspace, option, stored, given, advice] {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
    }
    // The changed options are those that the next open is given.
    let changed = created.clone().layout(Layout::partitioned()).views(Views::Off).filters(Filters::none());
    let db = open(created).unwrap();
    db.default_keyspace().set_options(changed.clone()).unwrap();
    assert_eq!(db.default_keyspace().options(), changed);
    db.close().unwrap();
    assert_eq!(open(changed.clone()).unwrap().default_keyspace().options(), changed);
}

/// It is a name for programs: other ones open the keyspace without it.
#[test]
fn the_key_codec_is_stored_and_not_compared() {
    let vfs = MemVfs::new();
    let with = |codec: &str| KeyspaceOptions::default().key_codec(codec.to_owned());
    let open = |codec| open_in_memory(&vfs, inline_options().default_keyspace(with(codec)));
    open("codec of some program").unwrap().create_keyspace("k", with("uint64")).unwrap();
    for given in ["", "another"] {
        let db = open(given).unwrap();
        assert_eq!(db.default_keyspace().options(), with("codec of some program"));
        assert_eq!(db.get_or_create_keyspace("k", with(given)).unwrap().options(), with("uint64"));
        db.put(given.len().to_string(), "value").unwrap();
    }
    let db = open("").unwrap();
    db.default_keyspace().set_options(with("tuple")).unwrap();
    let refused = db.default_keyspace().set_options(with(&"x".repeat(256)));
    assert!(matches!(refused, Err(Error::InvalidArgument { what: "key_codec", .. })), "{refused:?}");
    db.close().unwrap();
    let db = open("").unwrap();
    assert_eq!((db.default_keyspace().options(), db.iter().count()), (with("tuple"), 2));
}

/// Closes the store first.
fn open_after<T>(db: Db, open: impl FnOnce() -> T) -> T {
    db.close().unwrap();
    open()
}

#[test]
fn without_the_lock_a_store_can_be_opened_twice() {
    let vfs = MemVfs::new();
    let open = |lock| open_in_memory(&vfs, inline_options().lock(lock));
    open(true).unwrap().put("key", "value").unwrap();
    let owner = open(true).unwrap();
    assert!(matches!(open(true), Err(Error::Locked { .. })));
    let read_only = inline_options().lock(false).mode(OpenMode::Reader);
    assert_eq!(open_in_memory(&vfs, read_only).unwrap().get("key").unwrap().unwrap(), b"value");
    owner.close().unwrap();
}

#[test]
fn the_default_keyspace_of_a_new_database_has_the_given_options() {
    let vfs = MemVfs::new();
    let with_blocks = |block_bytes| {
        let default_keyspace = small_keyspace().block_bytes(block_bytes);
        open_in_memory(&vfs, inline_options().default_keyspace(default_keyspace))
    };
    assert!(matches!(with_blocks(5_000), Err(Error::InvalidArgument { what: "block_bytes", .. })));
    let db = with_blocks(16_384).unwrap();
    assert_eq!(db.default_keyspace().options().block_bytes, 16_384);
    db.close().unwrap();

    assert!(matches!(with_blocks(8_192), Err(Error::KeyspaceOption { option: "block_bytes", .. })));
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    assert_eq!(db.default_keyspace().options().block_bytes, 16_384, "an existing keyspace keeps its options");
}

/// Writes a number of entries of 100 bytes in random order, and waits for all due jobs.
fn fill(db: &Db, options: KeyspaceOptions, count: u64) -> Keyspace {
    let keyspace = db.create_keyspace("k", options).unwrap();
    let mut random = SplitMix64::new(1);
    for _ in 0..count {
        keyspace.put(random.next_u64().to_be_bytes(), [b'v'; 100]).unwrap();
    }
    db.flush().unwrap();
    keyspace
}

/// As [`fill`], with runs at L0 at its end.
fn fill_all_levels(db: &Db, options: KeyspaceOptions, count: u64) -> Keyspace {
    let keyspace = fill(db, options.level0_runs(4), count);
    while of_keyspace(&db.statistics()).levels[0].run_count == 0 {
        for index in 0..100_u8 {
            keyspace.put([index, 0], [b'v'; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    keyspace
}

/// A store of one table of 5,000 entries on a recording file system, opened again with `options`.
fn table_store(options: Options) -> (RecordVfs, Db, Keyspace) {
    let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
    let open = |options| open_on(Arc::new(vfs.clone()), options).unwrap();
    let keyspace = KeyspaceOptions::default().filters(Filters::bits(10.0));
    fill(&open(inline_options()), keyspace, 5_000);
    let db = open(options);
    let keyspace = db.keyspace("k").unwrap();
    (vfs, db, keyspace)
}

fn of_keyspace(statistics: &Statistics) -> KeyspaceStatistics {
    statistics.keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap().clone()
}

/// The files that a fill with these options leaves.
fn filled(change: impl Fn(&mut KeyspaceOptions)) -> Statistics {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let mut options = small_keyspace();
    change(&mut options);
    fill(&db, options, 8_000);
    db.statistics()
}

#[test]
fn deferred_writes_wait_a_tenth_of_a_second_at_most() {
    let vfs = MemVfs::new();
    let clock = Arc::new(ManualClock::default());
    let runtime = Runtime { clock: Arc::<ManualClock>::clone(&clock), ..Runtime::deterministic(7) };
    let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, inline_options(), runtime).unwrap();
    let log_bytes = || -> u64 {
        let files = vfs.list(Path::new(FOLDER)).unwrap();
        files.iter().filter(|file| file.name.ends_with(".log")).map(|file| file.length).sum()
    };
    let put = |key: &str| {
        let mut batch = WriteBatch::new();
        batch.put(&db.default_keyspace(), key, [0; 1_000]).unwrap();
        db.write_with(batch, Durability::Deferred).unwrap();
    };
    put("a");
    clock.advance(Duration::from_millis(99));
    put("b");
    assert!(log_bytes() < 1_000);
    clock.advance(Duration::from_millis(1));
    put("c");
    assert!(log_bytes() > 2_000, "{} bytes were written to the system", log_bytes());
}

#[test]
fn cache_bytes_decide_what_is_read_again() {
    let second_scan = |cache_bytes| {
        let options = inline_options().cache_bytes(cache_bytes).table_access(Access::Buffered);
        let (_, db, keyspace) = table_store(options);
        assert_eq!(keyspace.range(..).count(), 5_000);
        let before = db.statistics();
        assert!(before.cache_bytes <= cache_bytes);
        assert_eq!(keyspace.range(..).count(), 5_000);
        db.statistics().blocks_read - before.blocks_read
    };
    let (none, some, all) = (second_scan(0), second_scan(200 << 10), second_scan(4 << 20));
    assert!(none > 130, "{none} blocks");
    assert!((1..none).contains(&some), "{some} blocks with a cache of a third of the store");
    assert_eq!(all, 0);
}

#[test]
fn cache_pinned_percent_decides_whether_filters_and_indexes_stay() {
    let cost = |cache_pinned_percent| {
        let options = inline_options()
            .cache_bytes(1 << 20)
            .cache_pinned_percent(cache_pinned_percent)
            .table_access(Access::Buffered);
        let (vfs, db, keyspace) = table_store(options);
        keyspace.get([1; 8]).unwrap();
        vfs.reset();
        for first in 0..200_u8 {
            keyspace.get([first; 8]).unwrap();
        }
        let statistics = db.statistics();
        (
            vfs.tally_of(OperationKind::Read, ".table").bytes,
            statistics.cache_pinned_bytes,
            statistics.cache_too_small,
        )
    };
    let (kept_reads, kept_bytes, cache_too_small) = cost(20);
    assert!(
        kept_bytes > 6_000 && cache_too_small == 0,
        "{kept_bytes} bytes are kept, {cache_too_small} are not"
    );
    assert!(kept_reads < 100 << 10, "{kept_reads} bytes were read");
    let (lost_reads, lost_bytes, cache_too_small) = cost(0);
    assert!(
        lost_bytes == 0 && cache_too_small == 2,
        "{lost_bytes} bytes are kept, {cache_too_small} are not"
    );
    assert!(lost_reads > 10 * kept_reads, "{lost_reads} bytes were read");
}

#[test]
fn table_access_decides_how_blocks_are_read() {
    for (access, has_reads, is_aligned) in
        [(Access::Buffered, true, false), (Access::Direct, true, true), (Access::Mapped, false, true)]
    {
        let options = inline_options().table_access(access).cache_bytes(4 << 20);
        let (vfs, db, keyspace) = table_store(options);
        vfs.reset();
        assert_eq!(keyspace.range(..).count(), 5_000);
        let operations = vfs.operations();
        let reads: Vec<_> =
            operations.iter().filter(|operation| operation.kind == OperationKind::Read).collect();
        assert_eq!(!reads.is_empty(), has_reads, "{access:?}");
        let aligned = |read: &&tamis_vfs::Operation| {
            read.offset.is_multiple_of(4096) && read.length_bytes.is_multiple_of(4096)
        };
        assert_eq!(reads.iter().all(aligned), is_aligned, "{access:?}");
        // Mapped blocks take none of the cache.
        assert_eq!(db.statistics().cache_bytes > 0, has_reads, "{access:?}");
    }
}

#[derive(Debug, Default)]
struct CountingSpawner(AtomicUsize);

impl Spawner for CountingSpawner {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> std::io::Result<Box<dyn JoinHandle>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        SystemSpawner.spawn(name, work)
    }
}

#[test]
fn a_store_starts_its_workers_and_flushes_inline_without_any() {
    for workers in [0, 1, 3] {
        let spawner = Arc::new(CountingSpawner::default());
        let runtime = Runtime { spawner: Arc::<CountingSpawner>::clone(&spawner), ..Runtime::system() };
        let options = inline_options().workers(workers);
        let db = Db::open_on(Arc::new(MemVfs::new()), FOLDER, options, runtime).unwrap();
        assert_eq!(spawner.0.load(Ordering::SeqCst), workers);
        let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
        for index in 0..2_000_u32 {
            keyspace.put(index.to_be_bytes(), [1; 100]).unwrap();
        }
        if workers == 0 {
            let state = of_keyspace(&db.statistics());
            assert_eq!(state.immutable_memtable_count, 0, "what a write made due is done when it returns");
            assert!(db.statistics().flushes > 2);
        }
        db.flush().unwrap();
        assert_eq!(keyspace.range(..).count(), 2_000);
    }
}

#[test]
fn log_bytes_max_bounds_the_log() {
    let log_bytes = |log_bytes_max| {
        let options = inline_options().log_bytes_max(log_bytes_max);
        let db = open_in_memory(&MemVfs::new(), options).unwrap();
        let mut greatest = 0;
        for index in 0..5_000_u32 {
            db.put(index.to_be_bytes(), [1; 1_000]).unwrap();
            greatest = greatest.max(db.statistics().log_bytes);
        }
        greatest
    };
    let (bounded, free) = (log_bytes(1 << 20), log_bytes(1 << 30));
    assert!(bounded < (1 << 20) + 4_096, "{bounded} bytes");
    assert!(free > 5_000_000, "{free} bytes");
}

#[test]
fn flushes_and_compactions_are_reported_to_the_listener() {
    let reported = Arc::new(EventLog::default());
    let listener: Arc<dyn EventListener> = Arc::<EventLog>::clone(&reported);
    let options = inline_options().listener(listener);
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    fill(&db, small_keyspace(), 4_000);
    let statistics = db.statistics();
    let events = reported.0.lock();
    let flushed = events.iter().filter_map(|event| match event {
        Event::Flushed { keyspace, bytes, .. } if keyspace == "k" => Some(*bytes),
        _ => None,
    });
    let flushed: Vec<u64> = flushed.collect();
    assert_eq!(flushed.len() as u64, statistics.flushes);
    assert_eq!(flushed.iter().sum::<u64>(), statistics.flush_bytes_written);
    let compacted = events.iter().filter_map(|event| match event {
        Event::Compacted { level, output_level, bytes_read, bytes_written, .. } => {
            assert!(level <= output_level && *bytes_read > 0);
            Some(*bytes_written)
        }
        _ => None,
    });
    assert_eq!(compacted.sum::<u64>(), statistics.compaction_bytes_written);
    assert!(statistics.compactions > 0);
}

#[test]
fn memtable_bytes_decide_how_often_is_flushed() {
    let small = filled(|options| options.memtable_bytes = 64 << 10);
    let large = filled(|options| options.memtable_bytes = 512 << 10);
    assert!(small.flushes >= 5 * large.flushes, "{} and {} flushes", small.flushes, large.flushes);
    assert!(small.write_amplification() > large.write_amplification());
}

#[test]
fn table_bytes_decide_how_many_tables_there_are() {
    let tables = |statistics: &Statistics| -> usize {
        of_keyspace(statistics).levels.iter().map(|level| level.table_count).sum()
    };
    let small = tables(&filled(|options| options.table_bytes = 64 << 10));
    let large = tables(&filled(|options| options.table_bytes = 4 << 20));
    assert!(small > 2 * large, "{small} and {large} tables");
}

#[test]
fn block_bytes_decide_what_a_read_costs() {
    for block_bytes in [4096, 8192, 65_536] {
        let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
        let options = KeyspaceOptions::default().block_bytes(block_bytes).level0_runs(64);
        let keyspace = fill(&db, options, 5_000);
        keyspace.get(SplitMix64::new(1).next_u64().to_be_bytes()).unwrap().unwrap();
        let statistics = db.statistics();
        assert_eq!((statistics.blocks_read, statistics.bytes_read), (1, u64::from(block_bytes)));
    }
}

#[test]
fn compression_makes_the_levels_it_is_given_for_smaller() {
    let bytes_per_entry = |compression: &[Compression]| -> Vec<u64> {
        let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
        let options = small_keyspace().compression(compression.to_vec());
        fill_all_levels(&db, options, 8_000);
        let statistics = db.statistics();
        let levels = of_keyspace(&statistics).levels;
        levels
            .iter()
            .filter(|level| level.entry_count > 0)
            .map(|level| level.bytes / level.entry_count)
            .collect()
    };
    let (none, zstd) = (Compression::None, Compression::Zstd(3));
    let plain = bytes_per_entry(&[none]);
    assert!(plain.len() > 1 && plain.iter().all(|&bytes| bytes > 100), "{plain:?}");
    for compression in [zstd, Compression::Lz4] {
        let packed = bytes_per_entry(&[compression]);
        assert!(packed.iter().all(|&bytes| bytes < 60), "{compression:?}: {packed:?}");
    }
    // No list at all is no compression.
    assert!(bytes_per_entry(&[]).iter().all(|&bytes| bytes > 100));
    // L0 as it is, everything below packed.
    let mixed = bytes_per_entry(&[none, zstd]);
    assert!(mixed.first() > Some(&100) && mixed.last() < Some(&60), "{mixed:?}");
}

#[test]
fn filters_decide_the_number_of_false_positive_reads() {
    let errors = |bits: f32| {
        let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
        let options = KeyspaceOptions::default().filters(Filters::bits(bits));
        let keyspace = fill(&db, options, 5_000);
        let mut random = SplitMix64::new(77);
        for _ in 0..4_000 {
            assert!(keyspace.get(random.next_u64().to_be_bytes()).unwrap().is_none());
        }
        let statistics = db.statistics();
        let checked: u64 = statistics.reads.iter().map(|level| level.points.checked).sum();
        assert_eq!(checked, if bits > 0.0 { 4_000 } else { 0 });
        statistics.blocks_read + statistics.cache_hits
    };
    let (none, few, many) = (errors(0.0), errors(4.0), errors(16.0));
    assert_eq!(none, 4_000);
    assert!((200..1_000).contains(&few) && many < 20, "{few} and {many} errors");
    // Per level: none at L0, some below.
    let statistics = {
        let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
        let filters = Filters::per_level([Vec::new(), vec![TableFilter::bits(10.0)]]);
        let options = small_keyspace().filters(filters);
        let keyspace = fill_all_levels(&db, options, 8_000);
        (0..200_u8).for_each(|first| drop(keyspace.get([first, 7]).unwrap()));
        db.statistics()
    };
    assert_eq!(statistics.reads[0].points.checked, 0);
    assert!(statistics.reads.iter().skip(1).any(|level| level.points.checked > 100));
}

#[test]
fn size_ratio_decides_how_many_levels_there_are() {
    let level_count = |size_ratio| {
        let statistics = filled(|options| *options = options.clone().size_ratio(size_ratio));
        of_keyspace(&statistics).levels.iter().filter(|level| level.table_count > 0).count()
    };
    let (narrow, wide) = (level_count(2), level_count(20));
    assert!(narrow > wide, "{narrow} levels at ratio 2, {wide} at ratio 20");
}

#[test]
fn level0_runs_decide_when_runs_are_merged() {
    let greatest = |level0_runs| {
        let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
        let keyspace = db.create_keyspace("k", small_keyspace().level0_runs(level0_runs)).unwrap();
        let mut random = SplitMix64::new(1);
        let mut greatest = 0;
        for _ in 0..8_000 {
            keyspace.put(random.next_u64().to_be_bytes(), [b'v'; 100]).unwrap();
            let levels = of_keyspace(&db.statistics()).levels;
            greatest = greatest.max(levels.first().map_or(0, |level| level.run_count));
        }
        greatest
    };
    assert_eq!((greatest(1), greatest(2), greatest(8)), (0, 1, 7));
}
