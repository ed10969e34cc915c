//! The catalog: all keyspaces with their versions and the counters of a database at one moment, and how an edit changes it.
//!
//! Pure: no files. Applying an edit copies the keyspace, partition, levels and runs that it changes, and shares the rest with the previous
//! catalog. It is atomic: an edit that does not fit leaves the catalog unchanged and returns the reason. The caller
//! checks the invariants ([`Applied::check_invariants`], [`Catalog::check_invariants`]) before it installs the result.
//! A replay ([`Replay`]) changes one catalog in place.
//!
//! A run whose set of tables changed gets an id that was never used: the edit has it if it was read from a manifest; else it is
//! assigned here, in the order of places. Of a catalog in several records, that is after the last one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub(crate) use super::counters::Counters;
use super::{
    edit::{Change, RunPlace, VersionEdit},
    handle::{FileHandle, ObsoleteFiles, Table},
    hotness_transfer::transfer_hotness,
    invariants::{ChangedPlaces, check_invariants, check_run_ids},
    level::{NO_RUN_ID, Run},
    named_view::NamedView,
    partition::Partition,
    partition_finder::PartitionFinder,
    partitions::Partitions,
    version::KeyspaceVersion,
};
use crate::{observe::metrics::LEVEL_COUNT_MAX, table::properties::TableSummary, wal::reader::KnownLog};

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    /// Id and seed of the database; `None` before the first edit.
    pub(crate) database: Option<(u64, u64)>,
    pub(crate) counters: Counters,
    /// Needed segments of the log, by number, and lengths up to which they were synced once.
    pub(crate) synced_log: BTreeMap<u64, u64>,
    /// By id.
    pub(crate) keyspaces: BTreeMap<u64, Arc<KeyspaceVersion>>,
}

/// The result of an edit.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) catalog: Catalog,
    /// Ids of keyspaces that were created, changed or dropped.
    pub(crate) changed: Vec<u64>,
    /// Files that the new catalog no longer names.
    pub(crate) obsolete: Vec<Arc<FileHandle>>,
    /// The ids of changed runs to which the edit gave none. They belong to the edit when it is written.
    pub(crate) run_ids: Vec<Change>,
    places: ChangedPlaces,
}

impl Applied {
    /// The first invariant that the edit broke, provided that the catalog before it broke none. Cost in proportion to the
    /// edit (`invariants.rs`).
    pub(crate) fn check_invariants(&self) -> Option<String> {
        self.places.check(&self.changed, |id| self.catalog.keyspaces.get(&id).map(Arc::as_ref))
    }
}

impl Catalog {
    /// The facts about the log that the manifest has.
    pub(crate) fn known_log(&self) -> KnownLog {
        KnownLog {
            database_id: self.database.map_or(0, |(id, _)| id),
            first_needed: self.counters.oldest_log,
            synced: self.synced_log.clone(),
        }
    }

    fn forget_obsolete_log(&mut self) {
        self.synced_log = self.synced_log.split_off(&self.counters.oldest_log);
    }

    pub(crate) fn keyspace_named(&self, name: &str) -> Option<&Arc<KeyspaceVersion>> {
        self.keyspaces.values().find(|keyspace| &*keyspace.name == name)
    }

    /// The catalog after `edit`.
    ///
    /// # Errors
    /// The reason why the edit does not fit.
    pub(crate) fn apply(
        &self,
        edit: &VersionEdit,
        obsolete_files: &Arc<ObsoleteFiles>,
    ) -> Result<Applied, String> {
        self.clone().apply_owned(edit, obsolete_files, &mut PartitionFinder::default())
    }

    /// As [`Catalog::apply`], but changes in place what no other catalog shares.
    fn apply_owned(
        self,
        edit: &VersionEdit,
        obsolete_files: &Arc<ObsoleteFiles>,
        finder: &mut PartitionFinder,
    ) -> Result<Applied, String> {
        let (places, has_begun) = (ChangedPlaces::new(self.counters.next_run_id), self.is_complete());
        let mut work = Work {
            catalog: self,
            changed: Vec::new(),
            removed: BTreeMap::new(),
            added: Vec::new(),
            obsolete: Vec::new(),
            places,
            thinned: BTreeSet::new(),
            viewed: Vec::new(),
            finder,
            obsolete_files,
        };
        for change in &edit.changes {
            work.apply_change(change)?;
        }
        Ok(work.finish(has_begun))
    }

    /// Whether a manifest has the whole catalog so far, and not only the first of several records that create it.
    pub(super) const fn is_complete(&self) -> bool {
        self.counters.next_file_number != 0
    }

    /// The first invariant that is broken. Cost: O(n log n) comparisons for all n tables.
    pub(crate) fn check_invariants(&self) -> Option<String> {
        let broken = self.keyspaces.values().find_map(|version| check_invariants(version));
        broken.or_else(|| {
            let partitions = self.keyspaces.values().flat_map(|version| version.partitions.iter());
            let mut ids: Vec<u64> =
                partitions.flat_map(|partition| partition.runs()).map(|(_, run)| run.id()).collect();
            ids.sort_unstable();
            check_run_ids(&ids, self.counters.next_run_id)
        })
    }

    /// Gives an id to each run that has none.
    pub(crate) fn assign_run_ids(&mut self) {
        let next = &mut self.counters.next_run_id;
        for version in self.keyspaces.values_mut() {
            for partition in Arc::make_mut(version).partitions.list_mut() {
                for run in Arc::make_mut(partition).runs_mut().filter(|run| run.id() == NO_RUN_ID) {
                    Arc::make_mut(run).set_id(new_run_id(next));
                }
            }
        }
    }

    /// Removes the views of runs that no longer exist; returns their files. Cost: O(runs of views). An edit checks only the partitions
    /// that it changes.
    pub(crate) fn drop_stale_views(&mut self) -> Vec<Arc<FileHandle>> {
        let mut stale = Vec::new();
        for version in self.keyspaces.values_mut() {
            if !version.partitions.iter().any(|partition| partition.has_stale_view()) {
                continue;
            }
            let partitions = Arc::make_mut(version).partitions.list_mut().iter_mut();
            for partition in partitions.filter(|partition| partition.has_stale_view()) {
                stale.extend(Arc::make_mut(partition).view.take());
            }
        }
        stale.iter().map(|view| Arc::clone(view.file())).collect()
    }

    /// Edits that create this catalog from an empty one, each of at most `changes_max` changes. The last one has the counters, so
    /// that a reader knows that it is the last.
    pub(crate) fn snapshot(&self, changes_max: usize) -> Vec<VersionEdit> {
        let mut changes = Vec::new();
        if let Some((id, seed)) = self.database {
            changes.push(Change::SetDatabase { id, seed });
        }
        if !self.synced_log.is_empty() {
            changes.push(Change::SetSyncedLog { segments: self.synced_log.clone() });
        }
        let place = changes.len();
        for version in self.keyspaces.values() {
            snapshot_of_keyspace(version, &mut changes);
        }
        let place = if changes.len() < changes_max { place } else { changes.len() };
        changes.insert(place, Change::AdvanceCounters(self.counters));
        changes.chunks(changes_max.max(1)).map(|chunk| VersionEdit { changes: chunk.to_vec() }).collect()
    }
}

/// Applies the edits of a manifest, one after the other, to one catalog that it changes in place.
pub(crate) struct Replay<'a> {
    catalog: Catalog,
    finder: PartitionFinder,
    obsolete_files: &'a Arc<ObsoleteFiles>,
}

impl<'a> Replay<'a> {
    /// From an empty catalog.
    pub(crate) fn new(obsolete_files: &'a Arc<ObsoleteFiles>) -> Self {
        Self { catalog: Catalog::default(), finder: PartitionFinder::default(), obsolete_files }
    }

    /// Applies the next edit.
    ///
    /// # Errors
    /// The reason why the edit does not fit. The catalog is lost then.
    pub(crate) fn apply(&mut self, edit: &VersionEdit) -> Result<(), String> {
        let catalog = std::mem::take(&mut self.catalog);
        let applied = catalog.apply_owned(edit, self.obsolete_files, &mut self.finder)?;
        self.catalog = applied.catalog;
        Ok(())
    }

    /// The catalog after all edits.
    pub(crate) fn finish(self) -> Catalog {
        self.catalog
    }
}

/// Ids of runs begin at 1.
fn new_run_id(next: &mut u64) -> u64 {
    let id = (*next).max(NO_RUN_ID + 1);
    *next = id + 1;
    id
}

fn snapshot_of_keyspace(version: &KeyspaceVersion, changes: &mut Vec<Change>) {
    let keyspace = version.id;
    let (name, options) = (version.name.to_string(), (*version.options).clone());
    changes.push(Change::CreateKeyspace { keyspace, name, options });
    for partition in &version.partitions {
        let (id, lower) = (partition.id, partition.lower.clone());
        let flushed_sequence = partition.flushed_sequence;
        changes.push(Change::AddPartition { keyspace, partition: id, lower, flushed_sequence });
        for (level, run) in partition.runs() {
            let place = RunPlace { keyspace, partition: id, level: level as u8, run_age: run.age() };
            changes.extend(run.tables().iter().map(|table| Change::AddTable {
                place,
                summary: table.summary().clone(),
                filter_file: table.filter_file(),
                is_ingested: table.is_ingested(),
            }));
            changes.push(Change::SetRunId { place, id: run.id() });
        }
        if let Some(view) = &partition.view {
            let view = Some((view.number(), view.runs().to_vec()));
            changes.push(Change::SetView { keyspace, partition: id, view });
        }
    }
}

/// An edit while it is applied.
struct Work<'a> {
    catalog: Catalog,
    changed: Vec<u64>,
    /// Tables removed so far, by number: a moved table is added again with the same handle.
    removed: BTreeMap<u64, Arc<Table>>,
    /// Tables that were in no version before.
    added: Vec<Arc<Table>>,
    obsolete: Vec<Arc<FileHandle>>,
    places: ChangedPlaces,
    /// Keyspaces and partitions from which tables were removed: they may have empty runs and levels until the end.
    thinned: BTreeSet<(u64, u64)>,
    /// Keyspaces and partitions that got another view.
    viewed: Vec<(u64, u64)>,
    finder: &'a mut PartitionFinder,
    obsolete_files: &'a Arc<ObsoleteFiles>,
}

impl Work<'_> {
    /// `has_begun`: the catalog before the edit was complete.
    fn finish(mut self, has_begun: bool) -> Applied {
        for (keyspace, id) in std::mem::take(&mut self.thinned) {
            // Dropped or removed since, if it is not found.
            if let Ok(partition) = self.partition(keyspace, id) {
                partition.prune_empty();
            }
        }
        let mut run_ids = Vec::new();
        if has_begun {
            run_ids = self.assign_run_ids();
        } else if self.catalog.is_complete() {
            self.catalog.assign_run_ids();
        }
        if has_begun {
            self.drop_stale_views();
        } else if self.catalog.is_complete() {
            self.obsolete.extend(self.catalog.drop_stale_views());
        }
        transfer_hotness(&self.added, self.removed.values());
        for table in self.removed.values() {
            self.obsolete.push(Arc::clone(table.file()));
            self.obsolete.extend(table.filter().map(Arc::clone));
        }
        self.changed.sort_unstable();
        self.changed.dedup();
        let Self { catalog, changed, obsolete, places, .. } = self;
        Applied { catalog, changed, obsolete, run_ids, places }
    }

    /// Removes the views of runs that no longer exist. No change of an edit says so: every reader of the manifest finds the same. Only
    /// a partition whose runs or view the edit changed can have such a view.
    fn drop_stale_views(&mut self) {
        let runs = self.places.runs();
        let mut partitions: Vec<_> = runs.iter().map(|place| (place.keyspace, place.partition)).collect();
        partitions.append(&mut self.viewed);
        partitions.sort_unstable();
        partitions.dedup();
        for (keyspace, id) in partitions {
            // Dropped or removed since, if it is not found.
            let Ok(position) = self.position_of(keyspace, id) else { continue };
            let version = self.catalog.keyspaces.get(&keyspace);
            let partition = version.and_then(|version| version.partitions.get(position));
            if !partition.is_some_and(|partition| partition.has_stale_view()) {
                continue;
            }
            let stale = self.partition(keyspace, id).ok().and_then(|partition| partition.view.take());
            self.obsolete.extend(stale.map(|view| Arc::clone(view.file())));
        }
    }

    /// Gives an id to each changed run that has none.
    fn assign_run_ids(&mut self) -> Vec<Change> {
        let mut run_ids = Vec::new();
        for place in self.places.runs() {
            let mut next = self.catalog.counters.next_run_id;
            // Dropped, removed or emptied since, if it is not found.
            let Ok(run) = self.run(place) else { continue };
            if run.id() == NO_RUN_ID {
                let id = new_run_id(&mut next);
                run.set_id(id);
                run_ids.push(Change::SetRunId { place, id });
                self.catalog.counters.next_run_id = next;
            }
        }
        run_ids
    }

    fn apply_change(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::SetDatabase { id, seed } => match self.catalog.database.replace((*id, *seed)) {
                Some(old) if old != (*id, *seed) => Err("a second database id".to_owned()),
                _ => Ok(()),
            },
            Change::AdvanceCounters(counters) => {
                self.catalog.counters = self.catalog.counters.max(*counters);
                self.catalog.forget_obsolete_log();
                Ok(())
            }
            Change::SetSyncedLog { segments } => {
                for (number, bytes) in segments {
                    let known = self.catalog.synced_log.entry(*number).or_default();
                    *known = (*known).max(*bytes);
                }
                self.catalog.forget_obsolete_log();
                Ok(())
            }
            Change::CreateKeyspace { keyspace, name, options } => {
                if self.catalog.keyspaces.contains_key(keyspace)
                    || self.catalog.keyspace_named(name).is_some()
                {
                    return Err(format!("keyspace {keyspace} named {name:?} exists already"));
                }
                let version = KeyspaceVersion {
                    id: *keyspace,
                    name: name.as_str().into(),
                    options: Arc::new(options.clone()),
                    partitions: Partitions::default(),
                };
                self.catalog.keyspaces.insert(*keyspace, Arc::new(version));
                self.changed.push(*keyspace);
                Ok(())
            }
            Change::SetOptions { keyspace, options } => {
                self.keyspace(*keyspace)?.options = Arc::new(options.clone());
                Ok(())
            }
            Change::DropKeyspace { keyspace } => {
                let version = self.catalog.keyspaces.remove(keyspace);
                let version = version.ok_or_else(|| format!("no keyspace {keyspace}"))?;
                self.obsolete.extend(version.files().map(Arc::clone));
                self.finder.note_dropped(*keyspace);
                self.changed.push(*keyspace);
                Ok(())
            }
            Change::AddTable { place, summary, filter_file, is_ingested } => {
                self.add_table(*place, summary, *filter_file, *is_ingested)
            }
            Change::RemoveTable { place, number } => self.remove_table(*place, *number),
            Change::SetRunId { place, id } => {
                self.run(*place)?.set_id(*id);
                self.places.change_run(*place);
                let next = &mut self.catalog.counters.next_run_id;
                *next = (*next).max(id.saturating_add(1));
                Ok(())
            }
            Change::SetTableFilter { place, number, filter_file } => {
                self.set_table_filter(*place, *number, *filter_file)
            }
            _ => self.change_partition(change),
        }
    }

    fn change_partition(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::AddPartition { keyspace, partition, lower, flushed_sequence } => {
                let is_new = self.position_of(*keyspace, *partition).is_err();
                let version = self.keyspace(*keyspace)?;
                let position = version.partitions.partition_point(|other| other.lower < *lower);
                if !is_new || version.partitions.get(position).is_some_and(|other| other.lower == *lower) {
                    return Err(format!("partition {partition} or its lower bound exists already"));
                }
                let new = Partition::new(*partition, lower.clone(), *flushed_sequence);
                version.partitions.list_mut().insert(position, Arc::new(new));
                self.finder.note_added(*keyspace, *partition, position);
                self.places.add_partition(*keyspace, *partition);
            }
            Change::RemovePartition { keyspace, partition } => {
                let position = self.position_of(*keyspace, *partition)?;
                let gone = self.keyspace(*keyspace)?.partitions.list_mut().remove(position);
                self.finder.note_removed(*keyspace, *partition, position);
                self.obsolete.extend(gone.view.iter().map(|view| Arc::clone(view.file())));
                for table in gone.tables() {
                    self.places.remove_table(table.number());
                    self.removed.insert(table.number(), Arc::clone(table));
                }
            }
            Change::SetView { keyspace, partition, view } => {
                let view = view.as_ref().map(|(number, runs)| {
                    Arc::new(NamedView::new(*number, runs.clone(), self.obsolete_files))
                });
                let old = std::mem::replace(&mut self.partition(*keyspace, *partition)?.view, view);
                self.obsolete.extend(old.map(|view| Arc::clone(view.file())));
                self.viewed.push((*keyspace, *partition));
            }
            Change::SetFlushedSequence { keyspace, partition, sequence } => {
                let flushed = &mut self.partition(*keyspace, *partition)?.flushed_sequence;
                if *sequence < *flushed {
                    return Err(format!("the flushed sequence number fell from {flushed} to {sequence}"));
                }
                *flushed = *sequence;
            }
            _ => unreachable!("the other changes are applied by the caller"),
        }
        Ok(())
    }

    fn add_table(
        &mut self,
        place: RunPlace,
        summary: &TableSummary,
        filter_file: Option<u64>,
        is_ingested: bool,
    ) -> Result<(), String> {
        if usize::from(place.level) >= LEVEL_COUNT_MAX {
            return Err(format!("level {} of table {}", place.level, summary.number));
        }
        let table = match self.removed.remove(&summary.number) {
            Some(table) if table.summary() != summary || table.is_ingested() != is_ingested => {
                return Err(format!("table {} was moved and changed", summary.number));
            }
            // A moved table keeps its current filter, which may have been replaced after the move was planned.
            Some(table) => table,
            None => {
                let table = Table::from_edit(summary.clone(), filter_file, is_ingested, self.obsolete_files);
                self.added.push(Arc::clone(&table));
                table
            }
        };
        if !self.places.add_table(place, &table) {
            return Err(format!("table {} was added twice", summary.number));
        }
        let partition = self.partition(place.keyspace, place.partition)?;
        // It may overlap tables that the edit removes later: `check_invariants` decides.
        partition.level_or_new(usize::from(place.level)).run_or_new(place.run_age).insert(table);
        Ok(())
    }

    fn remove_table(&mut self, place: RunPlace, number: u64) -> Result<(), String> {
        let partition = self.partition(place.keyspace, place.partition)?;
        let table = partition
            .level_mut(usize::from(place.level))
            .and_then(|level| level.run_mut(place.run_age))
            .and_then(|run| run.remove(number))
            .ok_or_else(|| format!("no table {number} at level {} of {place:?}", place.level))?;
        partition.losses.restart();
        self.places.change_run(place);
        self.thinned.insert((place.keyspace, place.partition));
        self.places.remove_table(number);
        self.removed.insert(number, table);
        Ok(())
    }

    fn set_table_filter(
        &mut self,
        place: RunPlace,
        number: u64,
        filter_file: Option<u64>,
    ) -> Result<(), String> {
        let partition = self.partition(place.keyspace, place.partition)?;
        let run =
            partition.level_mut(usize::from(place.level)).and_then(|level| level.run_mut(place.run_age));
        let old = run.and_then(|run| {
            let table = run.table_numbered(number)?.with_filter(filter_file);
            run.replace(table)
        });
        let old = old.ok_or_else(|| format!("no table {number} at {place:?}"))?;
        self.obsolete.extend(old.filter().map(Arc::clone));
        Ok(())
    }

    fn run(&mut self, place: RunPlace) -> Result<&mut Run, String> {
        let partition = self.partition(place.keyspace, place.partition)?;
        let level = partition.level_mut(usize::from(place.level));
        level.and_then(|level| level.run_mut(place.run_age)).ok_or_else(|| format!("no run at {place:?}"))
    }

    fn keyspace(&mut self, id: u64) -> Result<&mut KeyspaceVersion, String> {
        if self.changed.last() != Some(&id) {
            self.changed.push(id);
        }
        self.catalog.keyspaces.get_mut(&id).map(Arc::make_mut).ok_or_else(|| format!("no keyspace {id}"))
    }

    fn partition(&mut self, keyspace: u64, id: u64) -> Result<&mut Partition, String> {
        let position = self.position_of(keyspace, id)?;
        let partition = self.keyspace(keyspace)?.partitions.list_mut().get_mut(position);
        partition.map(Arc::make_mut).ok_or_else(|| format!("no partition {id} in keyspace {keyspace}"))
    }

    fn position_of(&mut self, keyspace: u64, id: u64) -> Result<usize, String> {
        let version =
            self.catalog.keyspaces.get(&keyspace).ok_or_else(|| format!("no keyspace {keyspace}"))?;
        let position = self.finder.find(version, id);
        position.ok_or_else(|| format!("no partition {id} in keyspace {keyspace}"))
    }
}

#[cfg(test)]
mod tests;
