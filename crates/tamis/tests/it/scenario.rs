//! A history of a store from a seed, its expected content after each step, and functions that read its whole content.
//!
//! Writes are recorded in the log, the creation and dropping of keyspaces in the manifest. A crash may lose the unsynced end of the
//! log, but no acknowledged change of the manifest.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tamis::{Db, Durability, Filters, Keyspace, KeyspaceOptions, Layout, Views, WriteBatch};

use crate::support::{SplitMix64, outside_table, small_keyspace, table_filters};

/// The entries of one keyspace.
pub(crate) type Entries = BTreeMap<Vec<u8>, Arc<[u8]>>;
/// The contents of a store: entries by keyspace.
pub(crate) type State = BTreeMap<String, Entries>;

/// One entry of a batch.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) keyspace: String,
    pub(crate) key: Vec<u8>,
    pub(crate) edit: Edit,
}

/// The change that an entry makes.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    Put(Arc<[u8]>),
    Delete,
    /// Deletes all keys that begin with the entry's key.
    DeletePrefix,
}

impl Edit {
    /// A put of the value, or a delete.
    pub(crate) fn put_or_delete(value: Option<Arc<[u8]>>) -> Self {
        value.map_or(Self::Delete, Self::Put)
    }
}

/// One call of a program.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(Vec<Entry>, Durability),
    Create(String),
    Drop(String),
    Flush,
    Compact(String),
    Persist(Durability),
    /// Builds a table outside of the store and ingests it into a keyspace; each key once, in order.
    Ingest(Vec<Entry>),
    Verify,
    /// Replaces the filters of a keyspace's tables by those of a row of [`crate::support::FILTERS`].
    RebuildFilters(String, &'static str),
    /// Replaces the filters of a keyspace's tables that suit its queries badly.
    CheckFilters(String),
    /// Close and open.
    Reopen,
    /// The process is killed, the machine continues, and another process opens the store.
    Kill,
}

/// The parameters of a scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) step_count: usize,
    pub(crate) key_count: u64,
    pub(crate) value_bytes_max: u64,
    /// Whether keyspaces are created and dropped; otherwise there is only the default one.
    pub(crate) has_keyspaces: bool,
    /// Whether tables that were built outside of the store are ingested.
    pub(crate) has_ingests: bool,
}

/// A store with only the keyspace that every store has.
pub(crate) fn new_state() -> State {
    State::from([("default".to_owned(), Entries::new())])
}

/// The options of a keyspace that a scenario makes: some of them compress, are tiered or partitioned.
/// All have sorted views, which point reads of keyspaces without filters use, too.
pub(crate) fn keyspace_options(name: &str) -> KeyspaceOptions {
    let compression = match name {
        "b" => {
            let deepest =
                if cfg!(feature = "zstd") { tamis::Compression::Zstd(1) } else { tamis::Compression::Lz4 };
            vec![tamis::Compression::None, tamis::Compression::Lz4, deepest]
        }
        _ => vec![tamis::Compression::None],
    };
    let layout = match name {
        "b" => Layout::Tiered { runs_per_level: 2, space_amplification_percent: 100 },
        "c" => Layout::Partitioned { tables_per_partition: 4 },
        _ => Layout::Leveled,
    };
    // So that flushes add runs to its view.
    let level0_runs = if name == "viewed" { 8 } else { 2 };
    let filters = match name {
        "b" => Filters::none(),
        "c" => Filters::bits(2.0),
        _ => Filters::default(),
    };
    let views = Views::On;
    small_keyspace()
        .compression(compression)
        .filters(filters)
        .layout(layout)
        .level0_runs(level0_runs)
        .views(views)
}

/// A value that no other write has.
pub(crate) fn value(random: &mut SplitMix64, length: u64) -> Arc<[u8]> {
    let mark = random.next_u64();
    let mut bytes = vec![(mark >> 8) as u8; length as usize];
    for (target, source) in bytes.iter_mut().zip(mark.to_be_bytes()) {
        *target = source;
    }
    bytes.into()
}

fn key(random: &mut SplitMix64, count: u64) -> Vec<u8> {
    let number = random.below(count);
    format!("{}{:03}", ["key", "k", "other/long/prefix/"][number as usize % 3], number).into_bytes()
}

/// The delete of a prefix of an entry's key: of about four keys, or of a third of all.
fn prefix_delete(entry: Entry, random: &mut SplitMix64) -> Entry {
    let mut key = entry.key;
    key.truncate(key.len() - 1 - 2 * usize::from(random.below(4) == 0));
    Entry { key, edit: Edit::DeletePrefix, ..entry }
}

fn durability(random: &mut SplitMix64) -> Durability {
    match random.below(10) {
        0..3 => Durability::Deferred,
        3..7 => Durability::Buffered,
        _ => Durability::Synced,
    }
}

/// The steps of a plan. The last keyspaces are not dropped, so that the final state is not empty.
pub(crate) fn script(plan: Plan) -> Vec<Step> {
    let mut random = SplitMix64::new(plan.seed);
    let mut live = vec!["default".to_owned()];
    let mut steps = Vec::new();
    while steps.len() < plan.step_count {
        let chosen = live[random.below(live.len() as u64) as usize].clone();
        let entry = |keyspace: String, random: &mut SplitMix64| {
            let length = 8 + random.below(plan.value_bytes_max);
            let edit = Edit::put_or_delete((random.below(4) > 0).then(|| value(random, length)));
            Entry { keyspace, key: key(random, plan.key_count), edit }
        };
        let step = match random.below(100) {
            0..54 => Step::Write(vec![entry(chosen, &mut random)], durability(&mut random)),
            54..58 => {
                let deleted = prefix_delete(entry(chosen, &mut random), &mut random);
                Step::Write(vec![deleted], durability(&mut random))
            }
            58..84 => {
                let count = 2 + random.below(5);
                let entries = (0..count).map(|_| {
                    let keyspace = live[random.below(live.len() as u64) as usize].clone();
                    let entry = entry(keyspace, &mut random);
                    if random.below(16) == 0 { prefix_delete(entry, &mut random) } else { entry }
                });
                let entries = entries.collect();
                Step::Write(entries, durability(&mut random))
            }
            90 | 93 | 95 if plan.has_ingests => {
                let count = 1 + random.below(8);
                let entries = (0..count).map(|_| {
                    let entry = entry(chosen.clone(), &mut random);
                    if random.below(12) == 0 { prefix_delete(entry, &mut random) } else { entry }
                });
                let mut entries: Vec<Entry> = entries.collect();
                entries.sort_by(|left, right| left.key.cmp(&right.key));
                entries.dedup_by(|left, right| left.key == right.key);
                Step::Ingest(entries)
            }
            84..89 => {
                let name = ["a", "b", "c"][random.below(3) as usize].to_owned();
                if live.contains(&name) || !plan.has_keyspaces {
                    continue;
                }
                live.push(name.clone());
                Step::Create(name)
            }
            89..91 => {
                if live.len() < 3 {
                    continue;
                }
                let index = 1 + random.below(live.len() as u64 - 1) as usize;
                Step::Drop(live.remove(index))
            }
            91..93 => Step::Flush,
            93..95 => Step::Compact(chosen),
            95..97 => Step::Persist(durability(&mut random)),
            97 => Step::Verify,
            98 => Step::Reopen,
            _ => Step::Kill,
        };
        steps.push(step);
    }
    steps
}

/// Adds steps that write tables of the default keyspace, give them filters that reject few keys, and let the store replace these.
pub(crate) fn with_filter_steps(steps: Vec<Step>) -> Vec<Step> {
    let mut with_filters = Vec::new();
    for (index, step) in steps.into_iter().enumerate() {
        with_filters.push(step);
        if index % 12 == 11 {
            let name = "default".to_owned();
            let rebuild = Step::RebuildFilters(name.clone(), "blocked-bloom@1");
            with_filters.extend([Step::Flush, rebuild, Step::CheckFilters(name)]);
        }
    }
    with_filters
}

/// Adds steps that build a view of two runs and add a third one to it.
pub(crate) fn with_view_steps(mut steps: Vec<Step>) -> Vec<Step> {
    let keyspace = || "viewed".to_owned();
    let mut added = vec![Step::Create(keyspace())];
    for run in 0..3_u8 {
        let entry = |number: u8| {
            let edit = Edit::put_or_delete((number != run).then(|| Arc::from([run; 100])));
            Entry { keyspace: keyspace(), key: format!("key{number:03}").into_bytes(), edit }
        };
        let entries = (run..12).step_by(2).map(entry).collect();
        added.extend([Step::Write(entries, Durability::Buffered), Step::Flush]);
    }
    let middle = steps.len() / 2;
    steps.splice(middle..middle, added);
    steps
}

/// Applies a write to a state. Dropped keyspaces are ignored.
pub(crate) fn write_to(state: &mut State, entries: &[Entry]) {
    for entry in entries {
        let Some(keyspace) = state.get_mut(&entry.keyspace) else { continue };
        match &entry.edit {
            Edit::Put(value) => drop(keyspace.insert(entry.key.clone(), Arc::clone(value))),
            Edit::Delete => drop(keyspace.remove(&entry.key)),
            Edit::DeletePrefix => keyspace.retain(|key, _| !key.starts_with(&entry.key)),
        }
    }
}

/// Applies a step to a state.
pub(crate) fn apply(state: &mut State, step: &Step) {
    match step {
        Step::Write(entries, _) | Step::Ingest(entries) => write_to(state, entries),
        Step::Create(name) => drop(state.insert(name.clone(), Entries::new())),
        Step::Drop(name) => drop(state.remove(name)),
        _ => {}
    }
}

/// Writes entries as one batch.
pub(crate) fn write(db: &Db, entries: &[Entry], durability: Durability) -> tamis::Result<()> {
    let mut batch = WriteBatch::new();
    for entry in entries {
        let keyspace = db.keyspace(&entry.keyspace)?;
        match &entry.edit {
            Edit::Put(value) => batch.put(&keyspace, &entry.key, value)?,
            Edit::Delete => batch.delete(&keyspace, &entry.key)?,
            Edit::DeletePrefix => batch.delete_prefix(&keyspace, &entry.key)?,
        }
    }
    db.write_with(batch, durability)
}

/// Whether all writes up to this step are durable after it.
pub(crate) fn is_durable(step: &Step) -> bool {
    match step {
        Step::Write(_, durability) | Step::Persist(durability) => *durability == Durability::Synced,
        // A compaction flushes its keyspace only.
        Step::Flush | Step::Ingest(_) => true,
        _ => false,
    }
}

/// Runs a step other than [`Step::Reopen`] and [`Step::Kill`].
pub(crate) fn run(db: &Db, step: &Step) -> tamis::Result<()> {
    match step {
        Step::Write(entries, durability) => write(db, entries, *durability),
        Step::Create(name) => db.create_keyspace(name, keyspace_options(name)).map(drop),
        Step::Drop(name) => db.drop_keyspace(name),
        Step::Flush => db.flush(),
        Step::Compact(name) => db.compact_range(&db.keyspace(name)?, ..),
        Step::Persist(durability) => db.persist(*durability),
        Step::Ingest(entries) => ingest(db, entries),
        Step::RebuildFilters(name, row) => db.rebuild_filters(&db.keyspace(name)?, &table_filters(row)),
        Step::CheckFilters(name) => db.check_filters(&db.keyspace(name)?).map(drop),
        Step::Verify => {
            let report = db.verify()?;
            assert!(report.is_sound(), "a whole store has faults: {:?}", report.faults);
            Ok(())
        }
        Step::Reopen | Step::Kill => unreachable!("the caller holds the handle"),
    }
}

/// Ingests entries as a table with a unique name.
fn ingest(db: &Db, entries: &[Entry]) -> tamis::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Some(first) = entries.first() else { return Ok(()) };
    let keyspace = db.keyspace(&first.keyspace)?;
    let mut table = keyspace.table_writer(outside_table(COUNT.fetch_add(1, Ordering::Relaxed)))?;
    for entry in entries {
        match &entry.edit {
            Edit::Put(value) => table.put(&entry.key, value)?,
            Edit::Delete => table.delete(&entry.key)?,
            Edit::DeletePrefix => table.delete_prefix(&entry.key)?,
        }
    }
    db.ingest(&keyspace, [table.finish()?.path]).map(drop)
}

fn read_keyspace(keyspace: &Keyspace) -> tamis::Result<Entries> {
    let all = || keyspace.range(..);
    let mut entries = Entries::new();
    for entry in all() {
        let (key, value) = entry?;
        let last = entries.last_key_value().map(|(last, _)| last.as_slice());
        assert!(last.is_none_or(|last| last < &*key), "a scan is out of order at {key:?}");
        entries.insert(key.to_vec(), Arc::from(&*value));
    }
    let mut backward = all().rev();
    for (key, value) in entries.iter().rev() {
        let entry = backward.next().expect("a backward scan ends early")?;
        assert_eq!((&*entry.0, &*entry.1), (key.as_slice(), &**value), "a backward scan differs");
        let got = keyspace.get(key)?;
        assert_eq!(got.as_deref(), Some(&**value), "a point read differs from the scan at {key:?}");
    }
    assert!(backward.next().is_none(), "a backward scan finds more than a forward one");
    Ok(entries)
}

/// The whole content of a store. Scans in both directions and point reads must agree, also for keys that are in `state` and not in
/// the store.
///
/// # Errors
/// Those of the reads.
pub(crate) fn read_all(db: &Db, state: &State) -> tamis::Result<State> {
    let mut found = State::new();
    for name in db.keyspace_names() {
        let keyspace = db.keyspace(&name)?;
        let entries = read_keyspace(&keyspace)?;
        for key in state.get(&name).into_iter().flat_map(Entries::keys) {
            if !entries.contains_key(key) {
                assert_eq!(keyspace.get(key)?.as_deref(), None, "a point read finds more than a scan");
            }
        }
        found.insert(name, entries);
    }
    Ok(found)
}

/// The first difference between two states, for people.
pub(crate) fn difference(found: &State, expected: &State) -> String {
    let names = |state: &State| state.keys().cloned().collect::<Vec<_>>();
    if names(found) != names(expected) {
        return format!("keyspaces {:?}, expected {:?}", names(found), names(expected));
    }
    for (name, entries) in expected {
        let found = &found[name];
        for key in entries.keys().chain(found.keys()) {
            let shown = |entries: &Entries| {
                entries.get(key).map(|value| (value.len(), value.iter().take(8).copied().collect::<Vec<_>>()))
            };
            if found.get(key) != entries.get(key) {
                let key = String::from_utf8_lossy(key);
                return format!("{name}/{key}: {:?}, expected {:?}", shown(found), shown(entries));
            }
        }
    }
    "none".to_owned()
}

/// Prints the position of the test after a panic.
pub(crate) struct Context(pub(crate) String);

impl Drop for Context {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("at: {}", self.0);
        }
    }
}
