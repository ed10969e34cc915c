//! Views of tables: built and rebuilt in every access mode, of many runs, and the bytes that a rebuild reads.

use tamis_vfs::{OperationKind, RecordVfs};

use super::{model::with_segments, tables::write_table, *};
use crate::{
    cursor::merge::MergeCursor,
    options::Compression,
    table::reader::TableReader,
    view::{check::check_view, run::TableRun},
};

/// Tables in memory, with a record of the reads.
struct Tables {
    vfs: Arc<dyn Vfs>,
    record: RecordVfs,
    next: u64,
}

impl Tables {
    fn new() -> Self {
        let vfs = MemVfs::new();
        vfs.create_dir_all(Path::new("/db")).unwrap();
        let record = RecordVfs::new(Arc::new(vfs));
        Self { vfs: Arc::new(record.clone()), record, next: 0 }
    }

    /// Writes runs of one to three tables; returns their numbers.
    fn write(&mut self, runs: &[Vec<Entry>]) -> Vec<Vec<u64>> {
        let mut numbers = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            let run = MemoryRun::new(run.clone());
            let parts = run.entries.chunks(run.entries.len().div_ceil(1 + place % 3));
            let write = |entries: &[Entry]| {
                self.next += 1;
                write_table(&self.vfs, self.next, Compression::None, entries);
                self.next
            };
            numbers.push(parts.map(write).collect());
        }
        numbers
    }

    /// Opens the tables with empty caches.
    fn open(&self, runs: &[Vec<u64>], access: Access) -> Vec<Vec<Arc<TableReader>>> {
        let environment = Arc::new(environment(Arc::clone(&self.vfs), access));
        let open = |number: &u64| TableReader::open(&environment, *number, None).unwrap();
        runs.iter().map(|run| run.iter().map(open).collect()).collect()
    }

    fn take_bytes_read(&self) -> u64 {
        let bytes = self.record.tally_of(OperationKind::Read, ".table").bytes;
        self.record.reset();
        bytes
    }
}

fn runs_of(tables: Vec<Vec<Arc<TableReader>>>) -> Vec<TableRun> {
    tables.into_iter().map(TableRun::new).collect()
}

fn built(options: ViewOptions, runs: &[TableRun]) -> Vec<u8> {
    let named: Vec<_> = (100..).zip(runs.iter().cloned()).collect();
    let mut bytes = Vec::new();
    build_view(options, &named, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })
    .unwrap();
    bytes
}

fn rebuilt(old: &Arc<View>, old_runs: &[TableRun], new_runs: &[TableRun]) -> Vec<u8> {
    let named: Vec<_> = (200..).zip(new_runs.iter().cloned()).collect();
    let mut bytes = Vec::new();
    rebuild_view(old.options().owner, old, &old_runs.to_vec().into(), &named, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })
    .unwrap();
    bytes
}

/// Runs whose sequence numbers do not overlap.
fn disjoint_runs(random: &mut SplitMix64, run_count: u64, keys: &[Vec<u8>]) -> Vec<Vec<Entry>> {
    let mut runs = Vec::new();
    for run in 0..run_count {
        let picked = (0..keys.len() / 2).map(|_| keys[random.index(keys.len())].clone()).collect::<Vec<_>>();
        runs.push(distribute_from(random, 1 + 100_000 * run, 1, picked.into_iter()).remove(0));
    }
    runs
}

#[test]
fn views_of_tables_are_built_and_rebuilt_in_every_access_mode() {
    let mut random = SplitMix64::new(41);
    let keys: Vec<_> = (0..600).map(|_| hostile_key(&mut random)).collect();
    let repeated = (0..1_500).map(|_| keys[random.index(keys.len())].clone()).collect::<Vec<_>>();
    let overlapping = distribute(&mut random, 6, repeated.into_iter());
    // With sequence numbers that overlap, and that do not.
    for runs in [disjoint_runs(&mut random, 6, &keys), overlapping] {
        let mut tables = Tables::new();
        let numbers = tables.write(&runs);
        for access in [Access::Mapped, Access::Buffered, Access::Direct] {
            let runs = runs_of(tables.open(&numbers, access));
            let view = open(&built(with_segments(16), &runs)).unwrap();
            assert!(check_view(&view, &runs).unwrap().is_empty());
            let old = open(&built(with_segments(16), &runs[..4])).unwrap();
            let view = open(&rebuilt(&old, &runs[..4], &runs[4..])).unwrap();
            assert!(check_view(&view, &runs).unwrap().is_empty());
        }
    }
}

/// The paper's limits are 63 runs. One more run than selectors of 6 and of 8 bits can name, and 45 more at once.
#[test]
fn runs_join_a_view_of_63_and_of_255_tables() {
    const KEYS: usize = 6_000;
    let mut random = SplitMix64::new(44);
    let keys = even_keys(&mut random, KEYS);
    let mut runs = vec![Vec::new(); 300];
    for (number, key) in keys.iter().enumerate() {
        runs[number % 300].push((key.clone(), number as u64 + 1, Kind::Put, vec![number as u8; 100]));
    }
    let mut tables = Tables::new();
    let numbers = tables.write(&runs);
    for (before, after) in [(63, 64), (64, 65), (255, 256), (255, 300), (256, 257)] {
        let environment = Arc::new(environment(Arc::clone(&tables.vfs), Access::Buffered));
        let open_run = |run: &Vec<u64>| {
            let table = |number: &u64| TableReader::open(&environment, *number, None).unwrap();
            TableRun::new(run.iter().map(table).collect())
        };
        let runs: Vec<TableRun> = numbers[..after].iter().map(open_run).collect();
        let old = open(&built(options(), &runs[..before])).unwrap();
        let view = open(&rebuilt(&old, &runs[..before], &runs[before..])).unwrap();
        assert_eq!(view.runs().len(), after);
        assert!(check_view(&view, &runs).unwrap().is_empty(), "{before} and {after} runs");
        let runs: Arc<[TableRun]> = runs.into();
        let used = environment.metrics.blocks_used();
        for _ in 0..200 {
            let mut cursor = ViewCursor::new(&view, &runs).unwrap();
            cursor.seek(&keys[random.index(KEYS)], SEQUENCE_MAX).unwrap();
        }
        let blocks = environment.metrics.blocks_used() - used;
        assert!((200..=260).contains(&blocks), "{blocks} blocks for 200 seeks in {after} runs");
    }
}

/// Where the keys of the ninth run are.
#[derive(Debug, Clone, Copy)]
enum NewKeys {
    Everywhere,
    /// In this share of the keys of the other runs.
    Within(f64),
    /// Behind all others.
    Behind,
}

/// Eight runs of entries of 16 + `value_bytes` bytes, and a ninth with an eighth of their entries: the bytes that are read when the ninth is
/// added to a view of the others, in relation to those that a merge of all reads.
fn bytes_of_a_rebuild(value_bytes: usize, place: NewKeys) -> f64 {
    const COUNT: usize = 40_000;
    let mut random = SplitMix64::new(44);
    let entry =
        |key: Vec<u8>, number: usize| (key, number as u64 + 1, Kind::Put, vec![number as u8; value_bytes]);
    let mut runs = vec![Vec::new(); 9];
    for (number, mut key) in even_keys(&mut random, COUNT + COUNT / 8).into_iter().enumerate() {
        let is_new = number >= COUNT;
        if let (NewKeys::Within(share), true) = (place, is_new) {
            let first = u32::from_be_bytes([0x80, 0, 0, 0]) as f64;
            let moved = first + share * f64::from(u32::from_be_bytes([key[0], key[1], key[2], key[3]]));
            key[..4].copy_from_slice(&(moved as u32).to_be_bytes());
        }
        let is_behind = matches!(place, NewKeys::Behind) && is_new;
        let key = if is_behind { [&[0xFF; 8], key.as_slice()].concat() } else { key };
        runs[if is_new { 8 } else { number % 8 }].push(entry(key, number));
    }
    let mut tables = Tables::new();
    let numbers = tables.write(&runs);
    let opened = tables.open(&numbers, Access::Buffered);
    let mut merge = MergeCursor::new(opened.iter().flatten().map(TableReader::cursor_once).collect());
    tables.take_bytes_read();
    merge.seek_first().unwrap();
    let mut count = 0;
    while merge.is_valid() {
        count += 1;
        merge.next().unwrap();
    }
    assert_eq!(count, COUNT + COUNT / 8);
    let merge_bytes = tables.take_bytes_read();

    let old_runs = runs_of(tables.open(&numbers[..8], Access::Buffered));
    let old = open(&built(options(), &old_runs)).unwrap();
    let runs = runs_of(tables.open(&numbers, Access::Buffered));
    tables.take_bytes_read();
    let bytes = rebuilt(&old, &runs[..8], &runs[8..]);
    let rebuild_bytes = tables.take_bytes_read();
    let view = open(&bytes).unwrap();
    assert!(check_view(&view, &runs).unwrap().is_empty());
    let ratio = rebuild_bytes as f64 / merge_bytes as f64;
    println!("values of {value_bytes} bytes, keys {place:?}: {ratio:.3} of the bytes of a merge");
    ratio
}

/// The blocks of the new run are an eighth of those of the others. In addition, about one old key is read for each
/// new one, with its block: the key of a new segment, and the key behind a new one, if the bits that the view has of both do not decide. So new
/// keys that are near each other read few blocks, and keys everywhere in small entries read a block of the old runs for almost each of
/// their blocks.
#[test]
fn a_rebuild_reads_the_blocks_near_new_keys() {
    assert!(bytes_of_a_rebuild(100, NewKeys::Behind) <= 0.15);
    assert!(bytes_of_a_rebuild(100, NewKeys::Within(0.02)) <= 0.15);
    assert!(bytes_of_a_rebuild(100, NewKeys::Within(0.1)) <= 0.32);
    let everywhere = bytes_of_a_rebuild(100, NewKeys::Everywhere);
    assert!((0.15..=1.15).contains(&everywhere), "{everywhere}");
}
