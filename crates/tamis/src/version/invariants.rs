//! The invariants of versions, and the two checks of them.
//!
//! 1. The partitions of a keyspace cover the whole key space: the first has an empty lower bound, and lower bounds
//!    ascend strictly.
//! 2. The tables of a partition are within its bounds.
//! 3. A run is not empty, its tables are in key order and disjoint by user key; run ages descend within a level.
//! 4. The number of levels is bounded. In the leveled layout an edit adds tables to a level below L0 only if it has no run but the
//!    one of age 0 then. (Runs of another layout may remain until compactions have merged them.)
//! 5. At L0, a table of a newer run has only entries that are newer than the entries of each table of an older run
//!    that it overlaps. (Below L0 that holds for each key, and the summaries of tables do not show it.)
//!
//! 6. Ids of runs are unique in the database, and below the counter of ids: no run had them before.
//!
//! [`check_invariants`] checks a whole version, once after a manifest was read. Each edit is checked by
//! [`ChangedPlaces::check`] before it becomes durable. That check covers only what the edit can break, and gives the
//! same result as the whole check, because the version before the edit was valid:
//!
//! - An edit keeps the relative order of the tables that were in a run before. So if each added table is disjoint from
//!   its two neighbours, the whole run is in order.
//! - A removed table, run or filter breaks no invariant. A removed partition can only break the first one.
//! - An added partition can only cut off tables at the end of the runs of the partition before it.
//! - Each changed run has an id that is not below the counter before the edit, so no other run has it.
//! - `Level` keeps run ages in descending order, and `AddPartition` keeps lower bounds in order.
//!
//! Cost: `check_invariants` takes O(n log n) comparisons for n tables. An edit takes one binary search for each added
//! table, and at L0 one comparison for each other run of the level (more where sequence numbers of runs interleave).

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::Bound,
    sync::Arc,
};

use super::{
    edit::RunPlace,
    handle::Table,
    key_bounds::{EndEdge, end_edge},
    level::{LEVELED_RUN_AGE, Level, NO_RUN_ID, Run},
    partition::Partition,
    partition_finder::PartitionFinder,
    version::KeyspaceVersion,
};
use crate::{
    key::Sequence,
    observe::{
        metrics::LEVEL_COUNT_MAX,
        steps::{self, Step},
    },
    options::Layout,
};

/// The first invariant that the version breaks.
pub(crate) fn check_invariants(version: &KeyspaceVersion) -> Option<String> {
    if !partitions_cover_all_keys(version) {
        return Some(UNCOVERED.to_owned());
    }
    version.partitions.iter().enumerate().find_map(|(index, partition)| {
        check_partition(partition, version.upper_of(index))
            .map(|violation| describe(version, partition, &violation))
    })
}

const DISORDERED_LEVEL0: &str = "a newer run of level 0 has entries older than an older run's";
const UNCOVERED: &str = "partitions do not cover the key space in order";

fn describe(version: &KeyspaceVersion, partition: &Partition, violation: &str) -> String {
    format!("keyspace {}, partition {}: {violation}", version.id, partition.id)
}

fn overlap_in(level: usize, run: &Run) -> String {
    format!("tables overlap in run {} of level {level}", run.age())
}

fn out_of_bounds_in(level: usize, run: &Run) -> String {
    format!("tables outside the bounds in run {} of level {level}", run.age())
}

fn partitions_cover_all_keys(version: &KeyspaceVersion) -> bool {
    starts_at_first_key(version) && version.partitions.is_sorted_by(|left, right| left.lower < right.lower)
}

fn starts_at_first_key(version: &KeyspaceVersion) -> bool {
    version.partitions.first().is_some_and(|first| first.lower.is_empty())
}

fn check_partition(partition: &Partition, upper: Option<&[u8]>) -> Option<String> {
    if partition.levels().len() > LEVEL_COUNT_MAX {
        return Some(format!("{} levels", partition.levels().len()));
    }
    for (index, level) in partition.levels().iter().enumerate() {
        if !level.runs().is_sorted_by(|left, right| left.age() > right.age()) {
            return Some(format!("run ages do not descend at level {index}"));
        }
        for run in level.runs() {
            if !is_sorted(run) {
                return Some(overlap_in(index, run));
            }
            let is_above = run.tables().first().is_none_or(|table| table.smallest_key() >= &*partition.lower);
            if !is_above || !ends_below(run, upper) {
                return Some(out_of_bounds_in(index, run));
            }
        }
    }
    let is_ordered = partition.levels().first().is_none_or(newer_runs_have_newer_entries);
    (!is_ordered).then(|| DISORDERED_LEVEL0.to_owned())
}

fn is_sorted(run: &Run) -> bool {
    let tables = run.tables();
    steps::count(Step::Check, tables.len());
    !tables.is_empty()
        && tables.iter().all(|table| table.smallest_key() <= table.largest_key())
        && tables.is_sorted_by(|left, right| left.ends_before(right.smallest_key()))
}

fn ends_below(run: &Run, upper: Option<&[u8]>) -> bool {
    let is_below = |table: &Arc<Table>| upper.is_none_or(|upper| table.ends_before(upper));
    run.tables().last().is_none_or(is_below)
}

/// Invariant 5 for all tables of L0.
fn newer_runs_have_newer_entries(level: &Level) -> bool {
    let mut newest = NewestByKey::default();
    level.runs().iter().rev().all(|run| run.tables().iter().all(|table| newest.put(table)))
}

/// For each key, the greatest sequence number in the tables that were put so far, as disjoint ranges in key order.
///
/// A table replaces the ranges that it overlaps, so that n tables take O(n log n) steps.
#[derive(Default)]
struct NewestByKey<'a> {
    /// By the lower edge of a range: its upper edge and the sequence number.
    ranges: BTreeMap<EndEdge<'a>, (EndEdge<'a>, Sequence)>,
}

impl<'a> NewestByKey<'a> {
    /// `false` if a table that was put before overlaps this one and has an entry that is not older than all of its.
    fn put(&mut self, table: &'a Table) -> bool {
        let (from, to) = (end_edge(Bound::Excluded(table.smallest_key())), end_edge(table.end()));
        let oldest = table.summary().smallest_sequence;
        steps::count(Step::Check, 1);
        if let Some((&begin, &(end, newest))) = self.ranges.range(..from).next_back()
            && end > from
        {
            if newest >= oldest {
                return false;
            }
            self.ranges.insert(begin, (from, newest));
            if end > to {
                self.ranges.insert(to, (end, newest));
            }
        }
        while let Some((&begin, &(end, newest))) = self.ranges.range(from..to).next() {
            steps::count(Step::Check, 1);
            if newest >= oldest {
                return false;
            }
            self.ranges.remove(&begin);
            if end > to {
                self.ranges.insert(to, (end, newest));
            }
        }
        self.ranges.insert(from, (to, table.summary().largest_sequence));
        true
    }
}

/// The changes of an edit that can break an invariant; see the head of this file.
#[derive(Debug, Default)]
pub(crate) struct ChangedPlaces {
    /// Tables that were added, moved ones included, by number.
    tables: BTreeMap<u64, (RunPlace, Arc<Table>)>,
    /// Keyspace and partition.
    partitions: Vec<(u64, u64)>,
    /// Runs whose tables or ids changed.
    runs: BTreeSet<RunPlace>,
    /// The counter of ids before the edit.
    next_run_id: u64,
}

impl ChangedPlaces {
    /// Of an edit that found this counter of run ids.
    pub(super) fn new(next_run_id: u64) -> Self {
        Self { next_run_id, ..Self::default() }
    }

    /// Records a change of a run's tables or id.
    pub(super) fn change_run(&mut self, place: RunPlace) {
        self.runs.insert(place);
    }

    /// The runs whose tables or ids changed.
    pub(super) fn runs(&self) -> Vec<RunPlace> {
        self.runs.iter().copied().collect()
    }

    /// Records an added table; `false` if the edit has added it before.
    pub(super) fn add_table(&mut self, place: RunPlace, table: &Arc<Table>) -> bool {
        match self.tables.entry(table.number()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert((place, Arc::clone(table)));
                self.runs.insert(place);
                true
            }
        }
    }

    /// Drops a table that the same edit removes again.
    pub(super) fn remove_table(&mut self, number: u64) {
        self.tables.remove(&number);
    }

    pub(super) fn add_partition(&mut self, keyspace: u64, partition: u64) {
        self.partitions.push((keyspace, partition));
    }

    /// The first invariant that the edit broke in the versions of these keyspaces. `changed` are the keyspaces that the edit
    /// changed, `version_of` finds those that it did not drop.
    pub(super) fn check<'a>(
        &self,
        changed: &[u64],
        version_of: impl Fn(u64) -> Option<&'a KeyspaceVersion>,
    ) -> Option<String> {
        let versions = || changed.iter().filter_map(|id| version_of(*id));
        if !versions().all(starts_at_first_key) {
            return Some(UNCOVERED.to_owned());
        }
        let mut finder = PartitionFinder::default();
        for &(keyspace, id) in &self.partitions {
            let Some(version) = version_of(keyspace) else { continue };
            let Some(index) = finder.find(version, id) else { continue };
            let Some(before) = index.checked_sub(1).and_then(|before| version.partitions.get(before)) else {
                continue;
            };
            let cut_off = before.runs().find(|(_, run)| {
                steps::count(Step::Check, 1);
                !ends_below(run, version.upper_of(index - 1))
            });
            if let Some((level, run)) = cut_off {
                return Some(describe(version, before, &out_of_bounds_in(level, run)));
            }
        }
        let broken = self.check_run_ids(&version_of, &mut finder);
        broken.or_else(|| self.check_tables(version_of, &mut finder))
    }

    /// Each changed run must have an id that was not used before the edit.
    fn check_run_ids<'a>(
        &self,
        version_of: impl Fn(u64) -> Option<&'a KeyspaceVersion>,
        finder: &mut PartitionFinder,
    ) -> Option<String> {
        let runs = self.runs.iter().filter_map(|place| {
            let version = version_of(place.keyspace)?;
            let partition = version.partitions.get(finder.find(version, place.partition)?)?;
            partition.level(usize::from(place.level))?.run(place.run_age)
        });
        let mut ids: Vec<u64> = runs.inspect(|_| steps::count(Step::Check, 1)).map(|run| run.id()).collect();
        ids.sort_unstable();
        let reused = ids.first().filter(|&&first| first < self.next_run_id);
        reused.map(|id| format!("run id {id} was used before")).or_else(|| check_run_ids(&ids, u64::MAX))
    }

    fn check_tables<'a>(
        &self,
        version_of: impl Fn(u64) -> Option<&'a KeyspaceVersion>,
        finder: &mut PartitionFinder,
    ) -> Option<String> {
        for (place, table) in self.tables.values() {
            // The edit also dropped the keyspace or removed the partition.
            let Some(version) = version_of(place.keyspace) else { continue };
            let Some(index) = finder.find(version, place.partition) else { continue };
            let Some(partition) = version.partitions.get(index) else { continue };
            let layout = version.options.layout;
            if let Some(violation) = check_added(partition, version.upper_of(index), (*place, layout), table)
            {
                return Some(describe(version, partition, &violation));
            }
        }
        None
    }
}

/// Whether the ids of runs, which ascend, are unique, assigned and below the counter.
pub(super) fn check_run_ids(ids: &[u64], next_run_id: u64) -> Option<String> {
    if ids.first() == Some(&NO_RUN_ID) {
        return Some("a run without an id".to_owned());
    }
    if let Some(id) = ids.last().filter(|&&last| last >= next_run_id) {
        return Some(format!("run id {id}, but the next one is {next_run_id}"));
    }
    let twice = ids.windows(2).find(|pair| pair.first() == pair.last());
    twice.and_then(|pair| pair.first()).map(|id| format!("two runs with id {id}"))
}

/// The first invariant that an added table breaks in its partition.
fn check_added(
    partition: &Partition,
    upper: Option<&[u8]>,
    (place, layout): (RunPlace, Layout),
    table: &Table,
) -> Option<String> {
    let index = usize::from(place.level);
    let level = partition.level(index)?;
    let run = level.run(place.run_age)?;
    if layout == Layout::Leveled && index > 0 && (level.runs().len() > 1 || run.age() != LEVELED_RUN_AGE) {
        let count = level.runs().len();
        return Some(format!(
            "{count} runs at level {index} in the leveled layout, or one of age {}",
            run.age()
        ));
    }
    if !is_disjoint_from_neighbors(run, table) {
        return Some(overlap_in(index, run));
    }
    let is_below = upper.is_none_or(|upper| table.ends_before(upper));
    if table.smallest_key() < partition.lower.as_slice() || !is_below {
        return Some(out_of_bounds_in(index, run));
    }
    let is_ordered = index > 0 || level.runs().iter().all(|other| is_ordered_at_level0(run, other, table));
    (!is_ordered).then(|| DISORDERED_LEVEL0.to_owned())
}

fn is_disjoint_from_neighbors(run: &Run, table: &Table) -> bool {
    let tables = run.tables();
    let position = run.position(table.smallest_key());
    steps::count(Step::Check, 3 + tables.len().checked_ilog2().unwrap_or(0) as usize);
    // In a run that is not in order, a search for its key may not find the table.
    let is_found = tables.get(position).is_some_and(|found| found.number() == table.number());
    let before = position.checked_sub(1).and_then(|before| tables.get(before));
    is_found
        && table.smallest_key() <= table.largest_key()
        && before.is_none_or(|before| before.ends_before(table.smallest_key()))
        && tables.get(position + 1).is_none_or(|next| table.ends_before(next.smallest_key()))
}

/// Invariant 5 between a table of `run` and the tables of another run of L0.
fn is_ordered_at_level0(run: &Run, other: &Run, table: &Table) -> bool {
    steps::count(Step::Check, 1);
    let (oldest, newest) = (table.summary().smallest_sequence, table.summary().largest_sequence);
    let (other_oldest, other_newest) = other.sequence_range();
    let overlapping = || {
        other
            .tables_within(table.bounds())
            .iter()
            .inspect(|_| steps::count(Step::Check, 1))
            .map(|table| table.summary())
    };
    if other.age() < run.age() {
        other_newest < oldest || overlapping().all(|other| other.largest_sequence < oldest)
    } else if other.age() > run.age() {
        newest < other_oldest || overlapping().all(|other| newest < other.smallest_sequence)
    } else {
        true
    }
}

#[cfg(test)]
mod tests;
