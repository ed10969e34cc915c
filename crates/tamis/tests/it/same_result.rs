//! Filters, caches, block sizes, compression, the shape of the levels and threads change the cost of reads and never their results:
//! one list of operations, many sets of options, one transcript.

use std::{
    fmt::Write as _,
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis::{
    Compression, Db, Durability, Filters, Keyspace, KeyspaceOptions, Layout, Options, Runtime, Scan,
    Snapshot, Views, WriteBatch,
};
use tamis_vfs::{Access, MemVfs, OsVfs, Vfs};

use crate::support::{Cases, FILTERS, FOLDER, SplitMix64, filters, is_complete, rebuild_filters};

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// One step, without anything that depends on options.
#[derive(Debug, Clone)]
enum Operation {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Bound<Vec<u8>>, Bound<Vec<u8>>),
    DeletePrefix(Vec<u8>),
    Batch(Vec<(Vec<u8>, Option<Vec<u8>>)>, Durability),
    Get(Vec<u8>),
    MultiGet(Vec<Vec<u8>>),
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>, Style),
    Prefix(Vec<u8>, Style),
    Ends,
    Walk(Vec<u8>, Vec<u8>),
    Snapshot,
    ReadSnapshot(usize, Vec<u8>, Bound<Vec<u8>>, Bound<Vec<u8>>),
    Release(usize),
    Flush,
    Compact(Bound<Vec<u8>>, Bound<Vec<u8>>),
    MultiRange(Vec<Bounds>),
    CheckFilters,
    /// The filters of all tables become those of a row of [`FILTERS`], or again those with which they were written.
    RebuildFilters(Option<&'static str>),
    Reopen,
}

#[derive(Debug, Clone, Copy)]
enum Style {
    Forward,
    Backward,
    Both,
}

/// Keys of a small universe: prefixes of each other, runs of 0x00 and 0xFF, and numbers as big-endian bytes.
fn key(random: &mut SplitMix64) -> Vec<u8> {
    match random.below(4) {
        0 => {
            let length = 1 + random.below(5) as usize;
            (0..length).map(|_| [0x00, 0x01, b'a', 0xFE, 0xFF][random.below(5) as usize]).collect()
        }
        1 => random.below(600).to_be_bytes().to_vec(),
        _ => format!("user/{:05}/profile", random.below(900)).into_bytes(),
    }
}

fn value(random: &mut SplitMix64) -> Vec<u8> {
    let length = match random.below(60) {
        0 => 20_000 + random.below(60_000),
        1..8 => 0,
        _ => random.below(300),
    };
    let byte = random.next_u64() as u8;
    (0..length).map(|index| byte.wrapping_add((index / 7) as u8)).collect()
}

fn bound(random: &mut SplitMix64) -> Bound<Vec<u8>> {
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key(random)),
        _ => Bound::Excluded(key(random)),
    }
}

fn style(random: &mut SplitMix64) -> Style {
    [Style::Forward, Style::Backward, Style::Both][random.below(3) as usize]
}

fn operations(seed: u64, count: usize) -> Vec<Operation> {
    let mut random = SplitMix64::new(seed);
    let random = &mut random;
    let durability = [Durability::Deferred, Durability::Buffered, Durability::Synced];
    let operation = |_| match random.below(209) {
        0..70 => Operation::Put(key(random), value(random)),
        70..86 => Operation::Delete(key(random)),
        86 | 87 => Operation::DeletePrefix(key(random)),
        88 | 89 => {
            let (one, other) = (key(random), key(random));
            match random.below(12) {
                0 => Operation::DeleteRange(bound(random), bound(random)),
                _ => Operation::DeleteRange(
                    Bound::Included(one.clone().min(other.clone())),
                    Bound::Excluded(one.max(other)),
                ),
            }
        }
        90..100 => {
            let count = random.below(40);
            let entry = |_| {
                let key = key(random);
                (key, (random.below(3) > 0).then(|| value(random)))
            };
            let entries = (0..count).map(entry).collect();
            Operation::Batch(entries, durability[random.below(3) as usize])
        }
        100..140 => Operation::Get(key(random)),
        140..146 => Operation::MultiGet((0..6).map(|_| key(random)).collect()),
        146..164 => Operation::Range(bound(random), bound(random), style(random)),
        164..170 => {
            let mut prefix = key(random);
            prefix.truncate(random.below(4) as usize);
            Operation::Prefix(prefix, style(random))
        }
        170..174 => Operation::Ends,
        174..180 => Operation::Walk(key(random), key(random)),
        180..183 => Operation::Snapshot,
        183..192 => {
            Operation::ReadSnapshot(random.below(3) as usize, key(random), bound(random), bound(random))
        }
        192..194 => Operation::Release(random.below(3) as usize),
        194..197 => Operation::Flush,
        197..199 => Operation::Compact(bound(random), bound(random)),
        199..205 => {
            Operation::MultiRange((0..random.below(6)).map(|_| (bound(random), bound(random))).collect())
        }
        205..207 => Operation::CheckFilters,
        207 => {
            let is_other = random.below(4) > 0;
            Operation::RebuildFilters(is_other.then(|| FILTERS[random.below(FILTERS.len() as u64) as usize]))
        }
        _ => Operation::Reopen,
    };
    (0..count).map(operation).collect()
}

/// The result of a scan, as text short enough to compare.
fn note_scan(out: &mut String, mut scan: Scan, style: Style) {
    let (mut count, mut hash) = (0_u64, 0xcbf2_9ce4_8422_2325_u64);
    for turn in 0.. {
        let is_front = match style {
            Style::Forward => true,
            Style::Backward => false,
            Style::Both => turn % 3 != 1,
        };
        let Some(step) = (if is_front { scan.next() } else { scan.next_back() }) else { break };
        let (key, value) = step.unwrap();
        count += 1;
        hash = hash_of(hash, &key);
        hash = hash_of(hash, &value);
    }
    writeln!(out, "{count} entries {hash:016x}").unwrap();
}

/// FNV-1a, with the length before the bytes.
fn hash_of(hash: u64, bytes: &[u8]) -> u64 {
    let length = (bytes.len() as u32).to_le_bytes();
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    length.iter().chain(bytes).fold(hash, fold)
}

fn note_value(out: &mut String, value: Option<&[u8]>) {
    match value {
        Some(value) => writeln!(out, "{} bytes {:016x}", value.len(), hash_of(0, value)).unwrap(),
        None => writeln!(out, "none").unwrap(),
    }
}

/// One way to run the list.
#[derive(Debug, Clone)]
struct Setup {
    options: Options,
    keyspace: KeyspaceOptions,
    /// The layouts to which the opens after the first one change the keyspace, in turn.
    layouts: Vec<Layout>,
    /// As the layouts.
    filters: Vec<Filters>,
    /// On the operating system's files, not in memory.
    is_on_disk: bool,
}

struct World {
    vfs: Arc<dyn Vfs>,
    folder: PathBuf,
    setup: Setup,
    open: Option<(Db, Keyspace)>,
    open_count: usize,
    snapshots: Vec<Snapshot>,
}

impl World {
    fn open(&mut self) {
        let runtime = match self.setup.options.workers {
            0 => Runtime::deterministic(3),
            _ => Runtime { seed: 3, ..Runtime::system() },
        };
        let Setup { options, keyspace, layouts, filters, .. } = &self.setup;
        let db = Db::open_on(Arc::clone(&self.vfs), &self.folder, options.clone(), runtime).unwrap();
        let keyspace = match self.open_count.checked_sub(1) {
            None => db.create_keyspace("k", keyspace.clone()).unwrap(),
            Some(turn) => {
                let keyspace = db.keyspace("k").unwrap();
                let mut changed = keyspace.options();
                if !layouts.is_empty() {
                    let views = [Views::On, Views::Off, Views::Auto][turn % 3];
                    changed = changed.layout(layouts[turn % layouts.len()]).views(views);
                }
                if !filters.is_empty() {
                    changed.filters = filters[turn % filters.len()].clone();
                }
                keyspace.set_options(changed).unwrap();
                keyspace
            }
        };
        self.open_count += 1;
        self.open = Some((db, keyspace));
    }

    fn run(&mut self, operation: &Operation, out: &mut String) {
        let Some((db, keyspace)) = &self.open else { return };
        match operation {
            Operation::Put(key, value) => keyspace.put(key, value).unwrap(),
            Operation::Delete(key) => keyspace.delete(key).unwrap(),
            Operation::DeleteRange(lower, upper) => {
                keyspace.delete_range((lower.clone(), upper.clone())).unwrap();
            }
            Operation::DeletePrefix(prefix) => keyspace.delete_prefix(prefix).unwrap(),
            Operation::Batch(entries, durability) => {
                let mut batch = WriteBatch::new();
                for (key, value) in entries {
                    match value {
                        Some(value) => batch.put(keyspace, key, value).unwrap(),
                        None => batch.delete(keyspace, key).unwrap(),
                    }
                }
                db.write_with(batch, *durability).unwrap();
            }
            Operation::Get(key) => note_value(out, keyspace.get(key).unwrap().as_deref()),
            Operation::MultiGet(keys) => {
                for value in keyspace.multi_get(keys).unwrap() {
                    note_value(out, value.as_deref());
                }
            }
            Operation::Range(lower, upper, style) => {
                note_scan(out, keyspace.range((lower.clone(), upper.clone())), *style);
            }
            Operation::Prefix(prefix, style) => note_scan(out, keyspace.prefix(prefix), *style),
            Operation::Ends => {
                for end in [keyspace.first().unwrap(), keyspace.last().unwrap()] {
                    note_value(out, end.as_ref().map(|(key, _)| &**key));
                    note_value(out, end.as_ref().map(|(_, value)| &**value));
                }
            }
            Operation::Walk(from, back) => note_walk(out, keyspace, from, back),
            Operation::Snapshot => {
                self.snapshots.push(db.snapshot());
                if self.snapshots.len() > 3 {
                    self.snapshots.remove(0);
                }
            }
            Operation::ReadSnapshot(index, key, lower, upper) => {
                if let Some(snapshot) = self.snapshots.get(*index) {
                    note_value(out, snapshot.get(keyspace, key).unwrap().as_deref());
                    let scan = || snapshot.range(keyspace, (lower.clone(), upper.clone()));
                    note_scan(out, scan(), Style::Forward);
                    note_scan(out, scan(), Style::Backward);
                }
            }
            Operation::Release(index) => {
                if *index < self.snapshots.len() {
                    self.snapshots.remove(*index);
                }
            }
            Operation::Flush => db.flush().unwrap(),
            Operation::Compact(lower, upper) => {
                db.compact_range(keyspace, (lower.clone(), upper.clone())).unwrap();
            }
            Operation::MultiRange(ranges) => {
                for (scan, range) in keyspace.multi_range(ranges.clone()).into_iter().zip(ranges) {
                    let mut alone = String::new();
                    note_scan(&mut alone, keyspace.range(range.clone()), Style::Forward);
                    let start = out.len();
                    note_scan(out, scan, Style::Forward);
                    assert_eq!(out.get(start..), Some(&*alone), "{range:?} of several ranges");
                }
            }
            // How many filters are replaced depends on the options.
            Operation::CheckFilters => _ = db.check_filters(keyspace).unwrap(),
            Operation::RebuildFilters(row) => rebuild_filters(db, keyspace, *row),
            Operation::Reopen => {
                self.snapshots.clear();
                let (db, _) = self.open.take().unwrap();
                db.close().unwrap();
                self.open();
            }
        }
    }
}

/// Seeks, steps, and changes direction.
fn note_walk(out: &mut String, keyspace: &Keyspace, from: &[u8], back: &[u8]) {
    let mut scan = keyspace.range(..);
    let mut note = |scan: &Scan, is_on: bool| {
        let hash = if is_on { hash_of(hash_of(1, scan.key()), scan.value()) } else { 0 };
        writeln!(out, "{is_on} {hash:016x}").unwrap();
    };
    scan.seek(from).unwrap();
    for is_forward in [true, true, false, false, false, true] {
        let is_on = if is_forward { scan.move_next() } else { scan.move_prev() }.unwrap();
        note(&scan, is_on);
    }
    scan.seek_for_prev(back).unwrap();
    for is_forward in [false, false, true, true] {
        let is_on = if is_forward { scan.move_next() } else { scan.move_prev() }.unwrap();
        note(&scan, is_on);
    }
}

fn transcript(setup: &Setup, operations: &[Operation]) -> Vec<String> {
    let folder = setup.is_on_disk.then(|| tempfile::tempdir().unwrap());
    let (vfs, path): (Arc<dyn Vfs>, _) = match &folder {
        Some(folder) => (Arc::new(OsVfs), folder.path().join("db")),
        None => (Arc::new(MemVfs::new()), Path::new(FOLDER).to_path_buf()),
    };
    let mut world =
        World { vfs, folder: path, setup: setup.clone(), open: None, open_count: 0, snapshots: Vec::new() };
    world.open();
    let mut outputs = Vec::with_capacity(operations.len());
    for operation in operations {
        let mut out = String::new();
        world.run(operation, &mut out);
        outputs.push(out);
    }
    let (db, keyspace) = world.open.as_ref().unwrap();
    let mut out = String::new();
    note_scan(&mut out, keyspace.range(..), Style::Forward);
    outputs.push(out);
    assert!(db.verify().unwrap().is_sound());
    outputs
}

fn base() -> Setup {
    Setup {
        options: Options::default().workers(0).log_bytes_max(1 << 20).deleted_range_keys(0),
        keyspace: KeyspaceOptions::default().memtable_bytes(64 << 10).table_bytes(64 << 10),
        layouts: Vec::new(),
        filters: Vec::new(),
        is_on_disk: false,
    }
}

/// A random set of options.
fn random_setup(random: &mut SplitMix64) -> Setup {
    let mut pick = |choices: &[u64]| choices[random.below(choices.len() as u64) as usize];
    let mut setup = base();
    setup.options = setup
        .options
        .cache_bytes(pick(&[0, 1, 8 << 10, 256 << 10, 64 << 20]))
        .cache_pinned_percent(pick(&[0, 20, 100]) as u8)
        .table_access([Access::Buffered, Access::Direct, Access::Mapped][pick(&[0, 1, 2]) as usize])
        .workers(pick(&[0, 0, 0, 2]) as usize)
        .log_bytes_max(pick(&[1 << 20, 1 << 30]))
        .deleted_range_keys(pick(&[0, 1, 2, 8]) as u32)
        .sample_queries(pick(&[0, 1, 1]) == 1);
    let compressions = [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zstd(9)];
    let keyspace = &mut setup.keyspace;
    keyspace.memtable_bytes = pick(&[64 << 10, 64 << 10, 200 << 10, 1 << 20]);
    keyspace.table_bytes = pick(&[64 << 10, 128 << 10, 1 << 20]);
    keyspace.block_bytes = pick(&[4096, 8192, 16_384, 65_536]) as u32;
    *keyspace = keyspace
        .clone()
        .size_ratio(pick(&[2, 3, 10, 20]) as u32)
        .level0_runs(pick(&[1, 2, 4, 8]) as u32)
        .views([Views::Auto, Views::On, Views::Off][pick(&[0, 1, 1, 1, 2]) as usize]);
    let mut layout = || match pick(&[0, 1, 2]) {
        0 => Layout::Leveled,
        1 => {
            let tables_per_partition = pick(&[4, 6, 10]) as u32;
            Layout::Partitioned { tables_per_partition }
        }
        _ => Layout::Tiered {
            runs_per_level: pick(&[2, 3, 4]) as u32,
            space_amplification_percent: pick(&[25, 100, 1_000]) as u32,
        },
    };
    keyspace.layout = layout();
    setup.layouts = (0..3).map(|_| layout()).collect();
    keyspace.compression =
        (0..pick(&[0, 1, 3])).map(|_| compressions[pick(&[0, 1, 2, 3]) as usize]).collect();
    let rows: Vec<_> = (0..FILTERS.len() as u64).collect();
    let mut any_filters = || match pick(&[0, 1, 2]) {
        0 => Filters::auto([0.1, 1.0, 4.0, 16.0, 64.0][pick(&[0, 1, 2, 3, 4]) as usize]),
        1 => bits_per_level((0..pick(&[0, 1, 3])).map(|_| pick(&[0, 1, 4, 10, 30]) as f32)),
        _ => filters(FILTERS[pick(&rows) as usize]),
    };
    keyspace.filters = any_filters();
    setup.filters = (0..4).map(|_| any_filters()).collect();
    setup
}

/// A Bloom filter for each table, of other bits per key in each level.
fn bits_per_level(bits_per_key: impl IntoIterator<Item = f32>) -> Filters {
    let of_level = |bits: f32| Filters::bits(bits).of_level(0).to_vec();
    Filters::per_level(bits_per_key.into_iter().map(of_level))
}

/// The sets that cover one option each.
fn chosen_setups() -> Vec<Setup> {
    let mut setups = Vec::new();
    let mut add = |change: &dyn Fn(&mut Setup)| {
        let mut setup = base();
        change(&mut setup);
        setups.push(setup);
    };
    add(&|setup| setup.keyspace.filters = Filters::none());
    add(&|setup| setup.keyspace.filters = bits_per_level([0.0, 10.0, 2.0, 0.0]));
    for bits in [0.1, 4.0] {
        add(&|setup| setup.keyspace.filters = Filters::auto(bits));
    }
    for views in [Views::Auto, Views::On] {
        add(&|setup| {
            setup.keyspace = setup.keyspace.clone().views(views).filters(Filters::bits(10.0));
            setup.filters =
                vec![Filters::default(), Filters::none(), Filters::auto_bytes(4_000), filters("surf@18")];
        });
    }
    add(&|setup| setup.options = setup.options.clone().sample_queries(false));
    add(&|setup| {
        setup.keyspace.filters = filters("elastic@12");
        (setup.options.table_access, setup.options.cache_bytes) = (Access::Buffered, 20 << 10);
    });
    add(&|setup| {
        let [first, deeper] = ["blocked-bloom@10", "elastic@12"].map(|name| vec![name.parse().unwrap()]);
        setup.keyspace.filters = Filters::per_level([first, deeper]);
    });
    add(&|setup| setup.keyspace.block_bytes = 65_536);
    add(&|setup| {
        setup.keyspace.compression = vec![Compression::None, Compression::Lz4, Compression::Zstd(3)]
    });
    add(&|setup| {
        setup.keyspace.compression = vec![Compression::Zstd(3), Compression::None, Compression::Lz4]
    });
    add(&|setup| (setup.options.table_access, setup.options.cache_bytes) = (Access::Buffered, 0));
    for (access, percent) in [(Access::Direct, 0), (Access::Buffered, 100)] {
        add(&|setup| {
            let options = setup.options.clone();
            setup.options = options.table_access(access).cache_pinned_percent(percent);
        });
    }
    add(&|setup| setup.keyspace.memtable_bytes = 1 << 20);
    add(&|setup| setup.keyspace = setup.keyspace.clone().size_ratio(2).level0_runs(1));
    add(&|setup| setup.keyspace = setup.keyspace.clone().size_ratio(20).level0_runs(8));
    add(&|setup| setup.options.workers = 2);
    for layout in [
        Layout::tiered(),
        Layout::Tiered { runs_per_level: 2, space_amplification_percent: 10_000 },
        Layout::Tiered { runs_per_level: 64, space_amplification_percent: 25 },
        Layout::partitioned(),
        Layout::Partitioned { tables_per_partition: 4 },
    ] {
        add(&|setup| setup.keyspace.layout = layout);
        add(&|setup| {
            setup.keyspace = setup.keyspace.clone().level0_runs(1);
            setup.layouts = vec![layout, Layout::Leveled];
        });
    }
    for views in [Views::On, Views::Off] {
        add(&|setup| setup.keyspace = setup.keyspace.clone().views(views));
    }
    add(&|setup| {
        setup.keyspace = setup.keyspace.clone().views(Views::On).layout(Layout::tiered());
        setup.options = setup.options.clone().table_access(Access::Buffered).deleted_range_keys(1);
    });
    // Point reads search the view: always, after false positives, and of some levels.
    for filters in [Filters::none(), Filters::bits(1.0), bits_per_level([0.0, 10.0])] {
        add(&|setup| {
            setup.keyspace = setup.keyspace.clone().views(Views::On).filters(filters.clone()).level0_runs(8);
        });
    }
    for key_count in [1, 3] {
        add(&|setup| setup.options = setup.options.clone().deleted_range_keys(key_count));
    }
    for access in [Access::Buffered, Access::Direct, Access::Mapped] {
        add(&|setup| (setup.options.table_access, setup.is_on_disk) = (access, true));
    }
    setups
}

fn compare(seed: u64, operation_count: usize, setups: &[Setup]) {
    println!("seed {seed}");
    let operations = operations(seed, operation_count);
    let expected = transcript(&base(), &operations);
    for setup in setups {
        let outputs = transcript(setup, &operations);
        for (index, (got, want)) in outputs.iter().zip(&expected).enumerate() {
            assert_eq!(got, want, "seed {seed}, step {index}: {:?} with {setup:#?}", operations.get(index));
        }
    }
}

#[test]
fn each_option_alone_changes_no_answer() {
    for seed in 0..1 {
        compare(seed, if is_complete() { 1_500 } else { 400 }, &chosen_setups());
    }
}

#[test]
fn each_family_of_filters_changes_no_answer() {
    let with = |row: &&str| {
        let mut setup = base();
        setup.keyspace.filters = filters(row);
        setup
    };
    compare(50, if is_complete() { 1_200 } else { 400 }, &FILTERS.iter().map(with).collect::<Vec<_>>());
}

#[test]
fn random_sets_of_options_change_no_answer() {
    for seed in Cases::at_least(4).map(|case| 100 + case) {
        let mut random = SplitMix64::new(seed);
        let setups: Vec<_> = (0..6).map(|_| random_setup(&mut random)).collect();
        compare(seed, 1_200, &setups);
    }
}
