//! One script of operations moves every number of `Statistics`: a counter that nothing counts any more is found.

use std::{collections::BTreeMap, io::ErrorKind, path::Path, sync::Arc, time::Duration};

use tamis::{
    Db, Keyspace, KeyspaceOptions, Layout, ManualClock, Runtime, Statistics, TableWriter, Views, WriteBatch,
};
use tamis_vfs::{Access, FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::support::{FOLDER, SplitMix64, inline_options, small_keyspace, table_filters};

/// The numbers that stay 0, with the tests that move them.
const MOVED_BY_OTHERS: [(&str, &str); 7] = [
    ("cache_too_small", "needs a cache without room for an index: options.rs"),
    ("direct_flushes", "needs a slow disk: pressure.rs"),
    ("read_triggered_compactions", "needs reads that pay for a merge: read_merges.rs"),
    ("stopped_microseconds", "needs a slow disk: pressure.rs"),
    ("throttled_microseconds", "needs a slow disk: pressure.rs"),
    ("throttled_writes", "needs a slow disk: pressure.rs"),
    ("views_discarded", "needs a compaction during the build of a view: view_costs.rs"),
];

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

struct Store {
    memory: MemVfs,
    vfs: FaultVfs,
    clock: Arc<ManualClock>,
    db: Db,
}

impl Store {
    fn open(memory: &MemVfs) -> Self {
        let (clock, vfs) = (Arc::new(ManualClock::default()), FaultVfs::new(Arc::new(memory.clone())));
        let runtime = Runtime { clock: Arc::<ManualClock>::clone(&clock), ..Runtime::deterministic(1) };
        let options = inline_options().table_access(Access::Buffered);
        let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, runtime).unwrap();
        Self { memory: memory.clone(), vfs, clock, db }
    }

    fn create(&self, name: &str, options: KeyspaceOptions) -> Keyspace {
        self.db.create_keyspace(name, options).unwrap()
    }

    fn put_all(&self, keyspace: &Keyspace, numbers: impl Iterator<Item = u64>, length: usize) {
        let mut batch = WriteBatch::new();
        for number in numbers {
            batch.put(keyspace, key(number), vec![7; length]).unwrap();
            if batch.len() == 20 {
                self.db.write(std::mem::take(&mut batch)).unwrap();
            }
        }
        self.db.write(batch).unwrap();
    }

    /// The keyspace `filters` with a table whose filter is damaged.
    fn with_damaged_filter() -> Self {
        let memory = MemVfs::new();
        let store = Self::open(&memory);
        let keyspace = store.create("filters", KeyspaceOptions::default());
        store.put_all(&keyspace, 0..5_000, 20);
        store.db.flush().unwrap();
        store.db.rebuild_filters(&keyspace, &table_filters("blocked-bloom@10")).unwrap();
        drop(keyspace);
        store.db.close().unwrap();
        let folder = Path::new(FOLDER);
        let mut names = memory.list(folder).unwrap().into_iter().map(|entry| entry.name);
        let path = folder.join(names.find(|name| name.ends_with(".filter")).unwrap());
        let mut bytes = memory.read(&path).unwrap();
        let at = bytes.windows(4).position(|window| window == b"TFLT").unwrap();
        bytes[at + 9] ^= 1;
        memory.remove(&path).unwrap();
        memory.create(&path).unwrap().append(&bytes).unwrap();
        Self::open(&memory)
    }

    /// Reads of every kind, most of them without a result; then other filters.
    fn read(&self) {
        let keyspace = self.db.keyspace("filters").unwrap();
        for number in 5_000..7_000_u64 {
            assert!(keyspace.get([&key(number)[..], b"+"].concat()).unwrap().is_none());
        }
        for number in 0..500_u64 {
            assert!(keyspace.get(key(number)).unwrap().is_some());
            assert_eq!(keyspace.prefix(&key(number)[..]).count(), 1);
            assert_eq!(
                keyspace.range([&key(number)[..], b"+"].concat()..key(number + 1).to_vec()).count(),
                0
            );
            assert!(keyspace.range(key(number)..).next().is_some());
            assert!(keyspace.range(..key(number)).next_back().is_some() == (number > 0));
        }
        let counts: Vec<usize> =
            keyspace.multi_range([key(0)..key(5), key(7)..key(9)]).into_iter().map(Iterator::count).collect();
        assert_eq!(counts, [5, 2]);
        assert_eq!(keyspace.multi_get([key(0), key(9_000)]).unwrap().iter().flatten().count(), 1);
        assert!(keyspace.approximate_count(key(0)..key(100)).unwrap() > 0);
        self.db.rebuild_filters(&keyspace, &table_filters("blocked-bloom@2")).unwrap();
        assert!(keyspace.get(key(1)).unwrap().is_some());
        assert_eq!(self.db.check_filters(&keyspace).unwrap(), 1);
    }

    /// Compactions of all kinds in the leveled layout.
    fn compact(&self) {
        let keyspace = self.create("leveled", small_keyspace());
        // In key order: tables are moved.
        self.put_all(&keyspace, 0..5_000, 100);
        self.db.flush().unwrap();
        // At random: tables are merged.
        self.put_all(&keyspace, (0..5_000).map(|number| number * 7_919 % 5_000), 100);
        self.db.flush().unwrap();
        self.db.compact_range(&keyspace, ..).unwrap();
        keyspace.delete_range(key(0)..key(4_000)).unwrap();
        self.db.flush().unwrap();
        self.db.wait_for_compactions().unwrap();
    }

    /// Deleted keys: few in a row that a scan passes, then all.
    fn delete(&self) {
        let keyspace = self.create("deleted", KeyspaceOptions::default());
        self.put_all(&keyspace, 0..30_000, 100);
        self.db.compact_range(&keyspace, ..).unwrap();
        (10_000..11_500).for_each(|number| keyspace.delete(key(number)).unwrap());
        self.db.flush().unwrap();
        assert_eq!(keyspace.range(key(9_990)..key(11_510)).count(), 20);
        self.db.wait_for_compactions().unwrap();
        (0..30_000).for_each(|number| keyspace.delete(key(number)).unwrap());
        self.db.flush().unwrap();
        self.db.wait_for_compactions().unwrap();
    }

    /// All decisions about partitions.
    fn partition(&self) {
        let layout = Layout::Partitioned { tables_per_partition: 4 };
        let keyspace = self.create("partitions", small_keyspace().layout(layout));
        let mut random = SplitMix64::new(5);
        self.put_all(&keyspace, 0..4_000, 300);
        self.put_all(&keyspace, (0..3_000).map(|_| random.below(6_000)), 400);
        self.db.flush().unwrap();
        self.db.wait_for_compactions().unwrap();
        keyspace.delete_range(key(100)..key(5_900)).unwrap();
        self.put_all(&keyspace, (0..100).map(|_| random.below(6_000)), 400);
        self.db.flush().unwrap();
        self.db.compact_range(&keyspace, ..).unwrap();
        self.db.wait_for_compactions().unwrap();

        let layout = Layout::Partitioned { tables_per_partition: 4 };
        let keyspace = self.create("retained", small_keyspace().layout(layout));
        self.put_all(&keyspace, (0..1_200).map(|_| random.below(400)), 3_000);
        self.db.flush().unwrap();
        self.db.wait_for_compactions().unwrap();
        for round in 0..600 {
            match round % 7 {
                0 => keyspace.put(key(40 + random.below(360)), key(round)).unwrap(),
                _ => keyspace.put(key(random.below(40)), vec![round as u8; 3_000]).unwrap(),
            }
        }
    }

    fn build_views(&self) {
        let options = KeyspaceOptions::default().level0_runs(64).views(Views::On);
        let keyspace = self.create("views", options);
        for run in 0..4 {
            self.put_all(&keyspace, (run..4_000).step_by(4), 20);
            self.db.flush().unwrap();
        }
        assert_eq!(keyspace.range(..).count(), 4_000);
    }

    fn ingest(&self) {
        let files: Arc<dyn Vfs> = Arc::new(self.memory.clone());
        let mut table = TableWriter::create_on(files, "/t", &KeyspaceOptions::default()).unwrap();
        (0..100).for_each(|number| table.put(key(number), "ingested").unwrap());
        table.finish().unwrap();
        self.db.ingest(&self.create("ingested", small_keyspace()), ["/t"]).unwrap();
    }

    /// A write waits for a flush, which finds the disk full.
    fn fill_the_disk(&self) {
        let keyspace = self.create("full", small_keyspace());
        let rule = Rule::error(ErrorKind::StorageFull).on(&[OperationKind::Create]).path(".t").forever();
        let rule = self.vfs.add_rule(rule);
        assert!((0..10_000).any(|number| keyspace.put(key(number), [1; 200]).is_err()));
        self.vfs.remove_rule(rule);
        self.clock.advance(Duration::from_secs(1));
        keyspace.put(key(0), "back").unwrap();
        self.db.flush().unwrap();
    }
}

/// The numbers and durations of the statistics, without those of keyspaces and levels.
fn numbers(statistics: &Statistics) -> BTreeMap<String, bool> {
    let text = format!("{statistics:#?}");
    let own =
        text.lines().filter_map(|line| line.strip_prefix("    ")).filter_map(|line| line.split_once(": "));
    let values = own.filter(|(name, value)| {
        !name.starts_with([' ', '}', ']']) && value.starts_with(|first: char| first.is_ascii_digit())
    });
    let values = values.map(|(name, value)| (name.to_owned(), !matches!(value, "0," | "0ns,")));
    let decisions = statistics.partition_decisions.named();
    let counts = decisions.map(|(name, decisions)| (format!("{name}.count"), decisions.count > 0));
    values.chain(counts).collect()
}

#[test]
fn every_number_of_the_statistics_is_moved_by_what_it_counts() {
    assert!(numbers(&Statistics::default()).values().all(|is_moved| !is_moved));
    let store = Store::with_damaged_filter();
    let db = &store.db;
    store.read();
    store.compact();
    store.delete();
    store.partition();
    store.build_views();
    store.ingest();
    store.fill_the_disk();

    let dropped = store.create("dropped", small_keyspace());
    store.put_all(&dropped, 0..500, 100);
    db.flush().unwrap();
    db.drop_keyspace("dropped").unwrap();
    let keyspace = db.keyspace("leveled").unwrap();
    let mut scan = keyspace.range(..);
    assert!(scan.move_next().unwrap());
    let snapshot = db.snapshot();
    store.put_all(&keyspace, 0..500, 100);
    db.flush().unwrap();
    db.compact_range(&keyspace, ..).unwrap();
    keyspace.put(key(1), "in the log").unwrap();
    store.clock.advance(Duration::from_secs(1));

    let statistics = db.statistics();
    assert!(statistics.open_files > 0 && !statistics.dropped_keyspaces.is_empty());
    let found = numbers(&statistics);
    assert!(found.len() > 50, "the names are found: {found:?}");
    let unmoved: Vec<&str> =
        found.iter().filter(|(_, is_moved)| !**is_moved).map(|(name, _)| name.as_str()).collect();
    assert_eq!(unmoved, MOVED_BY_OTHERS.map(|(name, _)| name));
    drop((scan, snapshot));
}
