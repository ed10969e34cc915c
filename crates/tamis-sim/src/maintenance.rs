//! The steps of a client that are no plain reads and writes: flushes, compactions, ingests, checkpoints, keyspaces, bad input.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tamis::{
    Durability, Error, IngestOptions, KEY_LENGTH_MAX, Keyspace, KeyspaceOptions, simulation::keyspace_id,
};
use tamis_vfs::Vfs;
use tamis_workload::SplitMix64;

use crate::{
    check,
    client::{Client, Judgement},
    model::half_open,
    operator::Operand,
    ops::{Change, Op},
    settings,
    store::{SOURCES, name_of},
    world::SimVfs,
};

impl Client {
    pub(crate) fn maintain(&self, op: &Op) -> Judgement {
        let db = &self.store.db;
        match op {
            Op::Flush => {
                let visible = self.store.shared.model.lock().visible();
                self.acknowledge_if(visible, db.flush(), Durability::Synced)
            }
            Op::Compact(number, bounds) => {
                let Some(keyspace) = self.store.keyspace(*number) else { return Ok(()) };
                self.judge("a compaction", db.compact_range(&keyspace, bounds.clone()))
            }
            Op::WaitForJobs => self.judge("a wait for jobs", db.wait_for_compactions()),
            Op::Ingest(number, changes) => self.ingest(*number, changes),
            Op::Checkpoint(is_verified) => self.checkpoint(*is_verified),
            Op::Create(number, options) => self.create(*number, *options),
            Op::DropKeyspace(number) => self.drop_keyspace(*number),
            Op::Verify => self.verify(),
            Op::Statistics => check::limits(&self.store),
            Op::RebuildFilters(number, filters) => {
                let Some(keyspace) = self.store.keyspace(*number) else { return Ok(()) };
                let filters = settings::table_filters(&mut SplitMix64::new(*filters));
                match db.rebuild_filters(&keyspace, &filters) {
                    Err(Error::InvalidArgument { .. }) => Ok(()),
                    result => self.judge("a rebuild of filters", result),
                }
            }
            Op::CheckFilters(number) => {
                let Some(keyspace) = self.store.keyspace(*number) else { return Ok(()) };
                self.judge("a check of filters", db.check_filters(&keyspace).map(drop))
            }
            Op::SetOptions(number, options) => self.set_options(*number, *options),
            Op::OpenTables(number) => self.open_tables(*number),
            Op::BadInput(number, which) => self.bad_input(*number, *which),
            Op::Sleep(milliseconds) => {
                self.store.shared.schedule.sleep(Duration::from_millis(*milliseconds));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn judge(&self, what: &str, result: tamis::Result<()>) -> Judgement {
        self.record(u64::from(result.is_ok()));
        match result {
            Ok(()) => Ok(()),
            Err(error) => self.store.judge(what, &error, None),
        }
    }

    fn vfs(&self) -> Arc<dyn Vfs> {
        Arc::new(SimVfs::new(&self.store.life))
    }

    fn open_tables(&self, number: u64) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let db = &self.store.db;
        self.judge("an open of all tables", db.open_tables(&keyspace))?;
        self.judge("the sampled queries", db.sampled_queries(&keyspace).map(drop))
    }

    /// A path that no other step uses.
    fn new_path(&self, kind: &str) -> PathBuf {
        let number = self.store.shared.model.lock().new_number();
        PathBuf::from(format!("/{kind}{number}"))
    }

    fn ingest(&self, number: u64, changes: &[Change]) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let mut points = BTreeMap::new();
        for change in changes {
            let change = match change {
                Change::PutUntil(key, value, _) => Change::Put(key.clone(), *value),
                other => self.timed(&keyspace, other),
            };
            if let Change::Put(key, _) | Change::Delete(key) | Change::Merge(key, _) = &change {
                points.insert(key.clone(), change);
            }
        }
        let Some(first) = points.keys().next().cloned() else { return Ok(()) };
        let is_above = |change: &&Change| match change {
            Change::DeleteRange(bounds) => half_open(bounds).is_some_and(|(lower, _)| lower >= first),
            _ => false,
        };
        let ranges: Vec<&Change> = changes.iter().filter(is_above).collect();
        if let Err(error) = self.vfs().create_dir_all(Path::new(SOURCES)) {
            let error = Error::Io { operation: "create", path: SOURCES.into(), source: Arc::new(error) };
            return self.store.judge("the create of a folder", &error, None);
        }
        let path = self.new_path("in/");
        let built = build_table(&keyspace, &path, points.values(), &ranges);
        let built = built.map_err(|error| self.store.judge("a table writer", &error, None));
        if let Err(verdict) = built {
            return verdict;
        }
        let entries = points.values().chain(ranges).filter_map(|change| Self::entry_of(&keyspace, change));
        let client = crate::schedule::current();
        if !self.store.shared.model.lock().begin_ingest(client, entries.collect()) {
            let _ = self.vfs().remove(&path);
            return Ok(());
        }
        let keep = self.store.shared.schedule.below(2) == 0;
        let result = self.store.db.ingest_with(&keyspace, [&path], IngestOptions::default().keep(keep));
        self.store.shared.model.lock().ingests.remove(&client);
        let is_left = self.vfs().remove(&path).is_ok();
        match result {
            Ok(report) if is_left != (keep || !report.kept.is_empty()) && !self.store.life.is_disturbed() => {
                Err(format!("after an ingest the source exists: {is_left}, but keep is {keep}"))
            }
            Ok(report) => self.acknowledge_if(report.sequence, Ok(()), Durability::Synced),
            Err(error) => self.judge("an ingest", Err(error)),
        }
    }

    fn checkpoint(&self, is_verified: bool) -> Judgement {
        let path = self.new_path("copy");
        let low = self.store.shared.model.lock().pin();
        let db = &self.store.db;
        let result = if is_verified { db.checkpoint_verified(&path) } else { db.checkpoint(&path) };
        let states = self.store.shared.model.lock().states_since(low);
        let verdict = match result {
            _ if self.store.life.is_off() => Ok(()),
            Err(error) => self.store.judge("a checkpoint", &error, None),
            Ok(report) => match states.iter().any(|state| state.sequence == report.sequence) {
                true => self.compare_copy(&path, report.sequence),
                false => Err(format!(
                    "a checkpoint is at {}, which is none of the states {states:?}",
                    report.sequence
                )),
            },
        };
        self.store.shared.model.lock().unpin(low.sequence);
        self.remove_folder(&path);
        verdict
    }

    fn compare_copy(&self, path: &Path, sequence: u64) -> Judgement {
        let (shared, life) = (&self.store.shared, &self.store.life);
        match self.store.unobserved(|| check::compare_copy(shared, life, path, sequence)) {
            Err(_) if life.is_off() => Ok(()),
            Err(check::Difference::Failed(error)) => {
                if life.has_flipped() {
                    Ok(())
                } else {
                    self.store.judge("an open or read of a copy", &error, None)
                }
            }
            Err(check::Difference::Wrong(message)) => Err(format!("a checkpoint: {message}")),
            Ok(()) => Ok(()),
        }
    }

    fn remove_folder(&self, path: &Path) {
        let vfs = self.vfs();
        for entry in vfs.list(path).unwrap_or_default() {
            let _ = vfs.remove(&path.join(entry.name));
        }
    }

    fn create(&self, number: u64, options: u64) -> Judgement {
        let name = name_of(number);
        let shared = &self.store.shared;
        let options = settings::keyspace(options, shared.profile.layout);
        if self.store.is_read_only {
            return self.refused(self.store.db.create_keyspace(&name, options).map(drop));
        }
        shared.model.lock().creating.insert(name.clone(), options.clone());
        let result = self.store.db.create_keyspace(&name, options.clone());
        if self.store.life.is_off() {
            return Ok(());
        }
        let exists = shared.model.lock().names.contains_key(&name);
        match result {
            Ok(_) if exists => Err(format!("the keyspace {name} was created twice")),
            Ok(keyspace) => {
                shared.model.lock().names.insert(name, (keyspace_id(&keyspace), options));
                self.store.keep_keyspace(number, keyspace);
                Ok(())
            }
            Err(error) if exists && matches!(error, Error::KeyspaceExists { .. }) => {
                shared.coverage.note_error(&error);
                Ok(())
            }
            Err(error) => self.judge("the create of a keyspace", Err(error)),
        }
    }

    fn set_options(&self, number: u64, options: u64) -> Judgement {
        let shared = &self.store.shared;
        let Some(keyspace) = self.store.keyspace(number).filter(|_| shared.profile.layout.is_none()) else {
            return Ok(());
        };
        let result = keyspace.set_options(settings::changed(keyspace.options(), options));
        if self.store.is_read_only {
            return self.refused(result);
        }
        if let Some((id, known)) = shared.model.lock().names.get_mut(keyspace.name())
            && *id == keyspace_id(&keyspace)
        {
            *known = keyspace.options();
        }
        self.judge("a change of options", result)
    }

    fn drop_keyspace(&self, number: u64) -> Judgement {
        let name = name_of(number);
        let shared = &self.store.shared;
        if self.store.is_read_only {
            return self.refused(self.store.db.drop_keyspace(&name));
        }
        let exists = shared.model.lock().names.contains_key(&name);
        if exists && number > 0 {
            let mut model = shared.model.lock();
            model.dropping.insert(name.clone());
            model.has_dropped = true;
        }
        let result = self.store.db.drop_keyspace(&name);
        if self.store.life.is_off() {
            return Ok(());
        }
        match result {
            Ok(()) if number == 0 => Err("the default keyspace was dropped".to_owned()),
            Ok(()) => {
                shared.model.lock().names.remove(&name);
                Ok(())
            }
            Err(Error::InvalidArgument { .. }) if number == 0 => Ok(()),
            Err(Error::KeyspaceNotFound { .. }) if !exists => Ok(()),
            Err(error) => self.judge("the drop of a keyspace", Err(error)),
        }
    }

    /// The judgement of a write to a store that is open for reads only.
    fn refused(&self, result: tamis::Result<()>) -> Judgement {
        match result {
            Ok(()) => Err("a store that is open for reads only was changed".to_owned()),
            Err(error @ Error::ReadOnly { .. }) => self.judge("a write", Err(error)),
            // Bad arguments are refused first.
            Err(
                Error::InvalidArgument { .. } | Error::KeyspaceNotFound { .. } | Error::KeyspaceExists { .. },
            ) => Ok(()),
            Err(error) => self.judge("a write", Err(error)),
        }
    }

    fn verify(&self) -> Judgement {
        let result = self.store.db.verify();
        let life = &self.store.life;
        match result {
            Ok(report) if !report.is_sound() && !life.is_disturbed() => {
                Err(format!("verify has found damage: {:?}", report.faults.first()))
            }
            Ok(_) => Ok(()),
            Err(error) => self.judge("a verify", Err(error)),
        }
    }

    fn bad_input(&self, number: u64, which: u64) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let db = &self.store.db;
        let long = vec![b'x'; KEY_LENGTH_MAX + 1];
        let error = match which % 8 {
            0 => keyspace.get("").err(),
            1 => keyspace.put("", "value").err(),
            2 => keyspace.put(&long, "value").err(),
            3 => keyspace.get(&long).err(),
            4 => db.keyspace("never created").err(),
            5 => db.create_keyspace("", settings::keyspace(1, None)).err(),
            6 => keyspace.check_options(&KeyspaceOptions::default().size_ratio(9)).err(),
            _ => db.rebuild_filters(&keyspace, &[tamis::TableFilter::bits(99.0)]).err(),
        };
        let Some(error) = error else { return Err(format!("bad input {} was accepted", which % 8)) };
        match (which % 8, &error) {
            (
                _,
                Error::WritesRefused { .. } | Error::KeyspaceDropped | Error::ReadOnly { .. } | Error::Closed,
            ) => self.judge("bad input", Err(error)),
            (0 | 1, Error::KeyEmpty)
            | (2 | 3, Error::KeyTooLong { .. })
            | (4, Error::KeyspaceNotFound { .. })
            | (5 | 7, Error::InvalidArgument { .. })
            | (6, Error::KeyspaceOption { .. }) => {
                self.store.shared.coverage.note_error(&error);
                Ok(())
            }
            _ => self.judge("bad input", Err(error)),
        }
    }
}

fn build_table<'a>(
    keyspace: &Keyspace,
    path: &Path,
    points: impl Iterator<Item = &'a Change>,
    ranges: &[&Change],
) -> tamis::Result<()> {
    let mut table = keyspace.table_writer(path)?;
    for change in points {
        match change {
            Change::Put(key, value) => table.put(key, value.bytes())?,
            Change::Merge(key, number) => table.merge(key, Operand::of(*number).encode())?,
            Change::Delete(key) => table.delete(key)?,
            Change::PutUntil(..) | Change::DeleteRange(_) => {}
        }
    }
    for change in ranges {
        if let Change::DeleteRange(bounds) = change {
            table.delete_range(bounds.clone())?;
        }
    }
    table.finish().map(drop)
}
