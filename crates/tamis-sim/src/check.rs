//! Checks of the whole store: equal to the model, quiet when nothing is left to do, small, and right without accelerators.

use std::{ops::Bound, path::Path, sync::Arc, time::Duration};

use tamis::{Access, Db, Error, OpenMode, Options, Runtime, simulation::keyspace_id};
use tamis_vfs::Vfs;

use crate::{
    client::collect,
    model::{Bounds, Moment, Value, short},
    operator::operators,
    ops::Direction,
    store::{Shared, Store},
    world::{FOLDER, Life, SimClock, SimSpawner, SimVfs},
};

/// Why a store is not as it should be.
#[derive(Debug)]
pub enum Difference {
    /// A call has failed.
    Failed(Error),
    /// It is not as the model.
    Wrong(String),
}

impl From<Error> for Difference {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The longest time that all jobs may take after the last write.
const QUIET_TIME_MAX: Duration = Duration::from_secs(3600);

/// The clock and the threads of the simulation for a store.
pub fn runtime(shared: &Arc<Shared>, prepare: Arc<dyn Fn() + Send + Sync>) -> Runtime {
    let schedule = &shared.schedule;
    Runtime {
        clock: Arc::new(SimClock(Arc::clone(schedule))),
        spawner: Arc::new(SimSpawner { schedule: Arc::clone(schedule), prepare }),
        seed: 7,
    }
}

/// Compares all keyspaces that store and model both have with a state of the model.
///
/// # Errors
/// The first difference.
pub fn compare(shared: &Shared, db: &Db, sequence: u64) -> Result<(), Difference> {
    let all: Bounds = (Bound::Unbounded, Bound::Unbounded);
    let names = shared.model.lock().names.clone();
    for (name, (id, _)) in names {
        let keyspace = match db.keyspace(&name) {
            Err(Error::KeyspaceNotFound { .. }) => continue,
            other => other?,
        };
        if keyspace_id(&keyspace) != id {
            continue;
        }
        let begun = shared.model.lock().time();
        let found = collect(keyspace.range(all.clone()), Direction::Forward, usize::MAX)?;
        let model = shared.model.lock();
        let times = model.times_between(begun, model.time());
        let differences = times.into_iter().map(|time| {
            let expected = model.entries(id, &all, Moment { sequence, time });
            first_difference(found.iter().map(|(key, value)| (key.as_slice(), *value)), expected)
        });
        let mut newest = None;
        for difference in differences {
            newest = difference;
            if newest.is_none() {
                break;
            }
        }
        if let Some(difference) = newest {
            return Err(Difference::Wrong(format!("keyspace {name} at {sequence} has {difference}")));
        }
    }
    Ok(())
}

/// The first entry of the store that the model does not have, or the other way around.
fn first_difference<'a>(
    mut found: impl Iterator<Item = (&'a [u8], Value)>,
    mut expected: impl Iterator<Item = (&'a [u8], Value)>,
) -> Option<String> {
    let key = |entry: Option<(&[u8], _)>| entry.map_or("no entry".to_owned(), |(key, _)| short(key));
    loop {
        let (got, want) = (found.next(), expected.next());
        if got != want {
            let value = |entry: Option<(&[u8], Value)>| entry.map(|(_, value)| value);
            return Some(format!(
                "{}, but the model has {} ({:?}, {:?})",
                key(got),
                key(want),
                value(got),
                value(want)
            ));
        }
        got?;
    }
}

/// Compares the content of a store that was just opened with all states that it may have, and lets the model continue from the one that is equal.
///
/// # Errors
/// The first difference from the newest of these states.
pub fn resolve(shared: &Shared, db: &Db) -> Result<(), Difference> {
    let candidates = shared.model.lock().candidates();
    let mut newest = None;
    for state in candidates {
        match compare(shared, db, state) {
            Ok(()) => {
                shared.model.lock().resolve(state);
                return Ok(());
            }
            Err(Difference::Wrong(message)) => drop(newest.get_or_insert(message)),
            Err(failed) => return Err(failed),
        }
    }
    Err(Difference::Wrong(newest.unwrap_or_default()))
}

/// Opens a copy of the store without any accelerator, and compares it.
///
/// # Errors
/// The first difference.
pub fn compare_copy(
    shared: &Arc<Shared>,
    life: &Arc<Life>,
    path: &Path,
    sequence: u64,
) -> Result<(), Difference> {
    let options = Options::default()
        .workers(0)
        .cache_bytes(0)
        .table_access(Access::Buffered)
        .deleted_range_keys(0)
        .sample_queries(false)
        .merge_operators(operators().to_vec())
        .mode(if shared.schedule.below(2) == 0 { OpenMode::Reader } else { OpenMode::Existing });
    let vfs: Arc<dyn Vfs> = Arc::new(SimVfs::new(life));
    let read_only = options.mode == OpenMode::Reader;
    let db = Db::open_on(vfs, path, options, runtime(shared, Arc::new(|| {})))?;
    let found = db.snapshot().sequence();
    // Jobs of an open for writes may use more numbers: those of retained entries.
    if read_only && found != sequence {
        return Err(Difference::Wrong(format!("the copy opened at {found}, but it was made at {sequence}")));
    }
    compare(shared, &db, sequence)?;
    db.close()?;
    Ok(())
}

/// Without faults the store gets quiet: jobs end, space is freed, nothing is damaged, memory and open files are within their limits.
///
/// # Errors
/// The first broken rule.
pub fn quiet(store: &Store) -> Result<(), Difference> {
    let (shared, db) = (&store.shared, &store.db);
    let begin = shared.schedule.now();
    db.flush()?;
    db.wait_for_compactions()?;
    let visible = shared.model.lock().visible();
    shared.model.lock().acknowledge(visible, true);
    let took = shared.schedule.now().saturating_sub(begin);
    if took > QUIET_TIME_MAX {
        return Err(Difference::Wrong(format!("the jobs took {} s of simulated time", took.as_secs())));
    }
    compare(shared, db, visible)?;
    let report = db.verify()?;
    if let Some(fault) = report.faults.first() {
        return Err(Difference::Wrong(format!("verify has found damage: {fault:?}")));
    }
    limits(store).map_err(Difference::Wrong)?;
    space(store)
}

/// Memtables that may wait for their flush, and the one that takes writes.
const MEMTABLE_COUNT_MAX: usize = 6;

/// Memory and open files are within their limits at any time; with faults, memtables may wait.
///
/// # Errors
/// The first broken limit.
pub fn limits(store: &Store) -> Result<(), String> {
    let (shared, db) = (&store.shared, &store.db);
    let statistics = db.statistics();
    let largest_batch = shared.model.lock().largest_batch_bytes;
    shared.coverage.note_statistics(&statistics);
    if store.life.is_off() {
        return Ok(());
    }
    let (cached, cache_bytes) = (
        statistics.cache_bytes + statistics.cache_pinned_bytes + statistics.cache_sample_bytes,
        store.options.cache_bytes,
    );
    if cached > cache_bytes + cache_bytes / 16 {
        return Err(format!("the cache has {cached} bytes, its option allows {cache_bytes}"));
    }
    if statistics.open_files > statistics.open_files_max {
        let (count, most) = (statistics.open_files, statistics.open_files_max);
        return Err(format!("{count} files are open, the limit is {most}"));
    }
    for keyspace in &statistics.keyspaces {
        let Some((_, options)) = shared.model.lock().names.get(&keyspace.name).cloned() else { continue };
        let most = options.memtable_bytes + 2 * largest_batch + (64 << 10);
        if keyspace.memtable_bytes > most && !store.is_read_only {
            let (name, bytes) = (&keyspace.name, keyspace.memtable_bytes);
            return Err(format!("the memtable of {name} has {bytes} bytes, at most {most} are expected"));
        }
        if keyspace.immutable_memtable_count > MEMTABLE_COUNT_MAX
            && !store.life.is_disturbed()
            && !store.is_read_only
        {
            let (name, count) = (&keyspace.name, keyspace.immutable_memtable_count);
            return Err(format!("{count} memtables of {name} wait for their flush"));
        }
    }
    Ok(())
}

/// After all keyspaces were compacted completely, the tables take 1.3 times the live bytes, and a fixed part for each table.
fn space(store: &Store) -> Result<(), Difference> {
    let (shared, db) = (&store.shared, &store.db);
    for name in db.keyspace_names() {
        let keyspace = db.keyspace(&name)?;
        db.compact_range(&keyspace, ..)?;
    }
    db.wait_for_compactions()?;
    // Files that were in use during the last job are deleted by the next one.
    shared.schedule.sleep(Duration::from_secs(3));
    db.wait_for_compactions()?;
    let files = SimVfs::new(&store.life).list(Path::new(FOLDER)).unwrap_or_default();
    let tables = files.iter().filter(|file| file.name.ends_with(".table"));
    let (count, bytes) = tables.fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.length));
    let live = shared.model.lock().live_bytes();
    // Handles of dropped keyspaces keep their tables.
    let bound = live * 13 / 10 + fixed_bytes(store, count) + db.statistics().held_bytes;
    if bytes > bound {
        return Err(Difference::Wrong(format!(
            "{count} tables take {bytes} bytes after all compactions, for {live} live bytes: at most {bound} are expected"
        )));
    }
    Ok(())
}

/// The bytes of tables without their entries: metadata, padding, filters; entries that the partitioned layout keeps apart.
fn fixed_bytes(store: &Store, table_count: u64) -> u64 {
    let model = store.shared.model.lock();
    // L0 has at most four runs (`settings.rs`).
    let of_runs = model.names.values().map(|(_, options)| 4 * options.memtable_bytes);
    of_runs.sum::<u64>() + table_count * (64 << 10)
}
