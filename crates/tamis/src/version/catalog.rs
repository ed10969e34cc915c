//! The whole shape of a database at one moment, and how an edit changes it: pure, without files.
//!
//! Applying an edit copies what it touches and shares the rest. It is all or nothing: an edit that does not fit the
//! catalog leaves it as it was and says why. The caller checks the rules of `version.rs` where it installs the result.

use std::{collections::BTreeMap, sync::Arc};

pub(crate) use super::counters::Counters;
use super::{
    edit::{Change, RunPlace, VersionEdit},
    handle::{FileHandle, ObsoleteFiles, Table},
    hotness_transfer::transfer_hotness,
    version::{KeyspaceVersion, Partition, View, check_invariants},
};
use crate::{file_name::FileName, metrics::LEVEL_COUNT_MAX, table::properties::TableSummary};

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    /// Id and seed of the database; `None` before the first edit.
    pub(crate) database: Option<(u64, u64)>,
    pub(crate) counters: Counters,
    /// By id.
    pub(crate) keyspaces: BTreeMap<u64, Arc<KeyspaceVersion>>,
}

/// What applying an edit gives.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) catalog: Catalog,
    /// Ids of keyspaces that were made or changed.
    pub(crate) changed: Vec<u64>,
    /// Files that the new catalog no longer names.
    pub(crate) obsolete: Vec<Arc<FileHandle>>,
}

impl Catalog {
    pub(crate) fn keyspace_named(&self, name: &str) -> Option<&Arc<KeyspaceVersion>> {
        self.keyspaces.values().find(|keyspace| &*keyspace.name == name)
    }

    /// The catalog after `edit`.
    ///
    /// # Errors
    /// Why the edit does not fit.
    pub(crate) fn apply(
        &self,
        edit: &VersionEdit,
        obsolete_files: &Arc<ObsoleteFiles>,
    ) -> Result<Applied, String> {
        self.clone().apply_owned(edit, obsolete_files)
    }

    /// As [`Catalog::apply`], without copying what this catalog alone holds.
    pub(crate) fn apply_owned(
        self,
        edit: &VersionEdit,
        obsolete_files: &Arc<ObsoleteFiles>,
    ) -> Result<Applied, String> {
        let mut work = Work {
            catalog: self,
            changed: Vec::new(),
            removed: BTreeMap::new(),
            added: Vec::new(),
            obsolete: Vec::new(),
            obsolete_files,
        };
        for change in &edit.changes {
            work.apply_change(change)?;
        }
        Ok(work.finish())
    }

    /// The first rule that a keyspace of the catalog breaks.
    pub(crate) fn check_invariants(&self, ids: impl IntoIterator<Item = u64>) -> Option<String> {
        ids.into_iter().filter_map(|id| self.keyspaces.get(&id)).find_map(|version| check_invariants(version))
    }

    /// The edits that make this catalog out of nothing, each of at most `changes_max` changes. Where there are several, the last
    /// one has the counters, so that it is known to be the last.
    pub(crate) fn snapshot(&self, changes_max: usize) -> Vec<VersionEdit> {
        let mut changes = Vec::new();
        if let Some((id, seed)) = self.database {
            changes.push(Change::SetDatabase { id, seed });
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
            }));
        }
        if let Some(filter) = &partition.filter {
            let filter_file = filter.name().number();
            changes.push(Change::SetPartitionFilter { keyspace, partition: id, filter_file });
        }
        if let Some(view) = &partition.view {
            let view = view.file.name().number().map(|number| (number, view.runs.clone()));
            changes.push(Change::SetView { keyspace, partition: id, view });
        }
    }
}

/// An edit half applied.
struct Work<'a> {
    catalog: Catalog,
    changed: Vec<u64>,
    /// Tables taken out so far, by number: a moved table comes back under the same handle.
    removed: BTreeMap<u64, Arc<Table>>,
    /// Tables that were in no version before.
    added: Vec<Arc<Table>>,
    obsolete: Vec<Arc<FileHandle>>,
    obsolete_files: &'a Arc<ObsoleteFiles>,
}

impl Work<'_> {
    fn finish(mut self) -> Applied {
        transfer_hotness(&self.added, self.removed.values());
        for table in self.removed.values() {
            self.obsolete.push(Arc::clone(table.file()));
            self.obsolete.extend(table.filter().map(Arc::clone));
        }
        self.changed.sort_unstable();
        self.changed.dedup();
        Applied { catalog: self.catalog, changed: self.changed, obsolete: self.obsolete }
    }

    fn apply_change(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::SetDatabase { id, seed } => match self.catalog.database.replace((*id, *seed)) {
                Some(old) if old != (*id, *seed) => Err("a second database id".to_owned()),
                _ => Ok(()),
            },
            Change::AdvanceCounters(counters) => {
                self.catalog.counters = self.catalog.counters.raised_to(*counters);
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
                    partitions: Vec::new(),
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
                self.changed.push(*keyspace);
                Ok(())
            }
            Change::AddTable { place, summary, filter_file } => self.add_table(*place, summary, *filter_file),
            Change::RemoveTable { place, number } => self.remove_table(*place, *number),
            Change::SetTableFilter { place, number, filter_file } => {
                self.set_table_filter(*place, *number, *filter_file)
            }
            _ => self.change_partition(change),
        }
    }

    fn change_partition(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::AddPartition { keyspace, partition, lower, flushed_sequence } => {
                let version = self.keyspace(*keyspace)?;
                let position = version.partitions.partition_point(|other| other.lower < *lower);
                let is_known = version.partitions.iter().any(|other| other.id == *partition);
                if is_known || version.partitions.get(position).is_some_and(|other| other.lower == *lower) {
                    return Err(format!("partition {partition} or its lower bound exists already"));
                }
                let partition = Partition::new(*partition, lower.clone(), *flushed_sequence);
                version.partitions.insert(position, Arc::new(partition));
            }
            Change::RemovePartition { keyspace, partition } => {
                let version = self.keyspace(*keyspace)?;
                let position = version.partitions.iter().position(|other| other.id == *partition);
                let position = position.ok_or_else(|| format!("no partition {partition}"))?;
                let gone = version.partitions.remove(position);
                self.obsolete.extend(gone.filter.iter().map(Arc::clone));
                self.obsolete.extend(gone.view.iter().map(|view| Arc::clone(&view.file)));
                self.removed.extend(gone.tables().map(|table| (table.number(), Arc::clone(table))));
            }
            Change::SetPartitionFilter { keyspace, partition, filter_file } => {
                let filter =
                    filter_file.map(|number| FileHandle::new(FileName::Filter(number), self.obsolete_files));
                let old = std::mem::replace(&mut self.partition(*keyspace, *partition)?.filter, filter);
                self.obsolete.extend(old);
            }
            Change::SetView { keyspace, partition, view } => {
                let view = view.as_ref().map(|(number, runs)| {
                    let file = FileHandle::new(FileName::View(*number), self.obsolete_files);
                    Arc::new(View { file, runs: runs.clone() })
                });
                let old = std::mem::replace(&mut self.partition(*keyspace, *partition)?.view, view);
                self.obsolete.extend(old.map(|view| Arc::clone(&view.file)));
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
    ) -> Result<(), String> {
        if usize::from(place.level) >= LEVEL_COUNT_MAX {
            return Err(format!("level {} of table {}", place.level, summary.number));
        }
        let table = match self.removed.remove(&summary.number) {
            Some(table) if table.summary() != summary => {
                return Err(format!("table {} was moved and changed", summary.number));
            }
            // A moved table keeps the filter in force, whatever it was when the move was planned.
            Some(table) => table,
            None => {
                let table = Table::new(summary.clone(), filter_file, self.obsolete_files);
                self.added.push(Arc::clone(&table));
                table
            }
        };
        let partition = self.partition(place.keyspace, place.partition)?;
        // Whether it overlaps its neighbours is judged when the edit is whole: `check_invariants`.
        partition.level_or_new(usize::from(place.level)).run_or_new(place.run_age).insert(table);
        Ok(())
    }

    fn remove_table(&mut self, place: RunPlace, number: u64) -> Result<(), String> {
        let partition = self.partition(place.keyspace, place.partition)?;
        let table = partition
            .levels
            .get_mut(usize::from(place.level))
            .and_then(|level| level.run_mut(place.run_age))
            .and_then(|run| run.remove(number))
            .ok_or_else(|| format!("no table {number} at level {} of {place:?}", place.level))?;
        partition.prune_empty();
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
            partition.levels.get_mut(usize::from(place.level)).and_then(|level| level.run_mut(place.run_age));
        let old = run.and_then(|run| {
            let table = run.tables().iter().find(|table| table.number() == number)?;
            run.replace(table.with_filter(filter_file))
        });
        let old = old.ok_or_else(|| format!("no table {number} at {place:?}"))?;
        self.obsolete.extend(old.filter().map(Arc::clone));
        Ok(())
    }

    fn keyspace(&mut self, id: u64) -> Result<&mut KeyspaceVersion, String> {
        if self.changed.last() != Some(&id) {
            self.changed.push(id);
        }
        self.catalog.keyspaces.get_mut(&id).map(Arc::make_mut).ok_or_else(|| format!("no keyspace {id}"))
    }

    fn partition(&mut self, keyspace: u64, id: u64) -> Result<&mut Partition, String> {
        let version = self.keyspace(keyspace)?;
        let partition = version.partitions.iter_mut().find(|partition| partition.id == id);
        partition.map(Arc::make_mut).ok_or_else(|| format!("no partition {id} in keyspace {keyspace}"))
    }
}

#[cfg(test)]
mod tests;
