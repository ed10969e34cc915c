//! Decides what to compact: a pure function of a version, the running jobs, the readers and the options.
//!
//! A [`Strategy`] decides for one partition; the layout of the keyspace selects it ([`leveled`], [`tiered`],
//! [`partitioned`]). The functions of this file compare the decisions for all partitions:
//!
//! 1. Tables that range tombstones delete as a whole, and those in which all entries are expired, are dropped before anything else, in every layout.
//! 2. Then the level with the highest score that can be compacted alongside the running jobs is taken; a score below 1 is not due.
//! 3. Partitions are united ([`unite`]): before all others in layouts with one partition, else if no level is due.
//! 4. If none of that is due, tables are compacted for their deleted and obsolete entries.
//! 5. Last, small neighbouring tables are joined ([`small_tables`]).
//!
//! Two jobs never share a table, and never write to overlapping ranges of one level. No job begins in a partition that another job
//! replaces.
//!
//! Cost per call: O(partitions); the tables of each partition with range tombstones; if nothing else is due, those of each partition with
//! deleted or obsolete entries; O(tables x log tables) of the partition that is compacted. The leveled and tiered layouts have one
//! partition.

mod garbage;
mod leveled;
mod partitioned;
mod plan_parts;
mod small_tables;
mod tiered;
mod unite;

pub(crate) use self::garbage::next_expiry;
pub(crate) use self::partitioned::{AbortPlan, TABLE_BYTES_FIXED, pick_aborted};
use self::{
    garbage::{Garbage, pick_deleted_tables, pick_expired_tables},
    leveled::Leveled,
    partitioned::Partitioned,
    tiered::Tiered,
    unite::pick_union,
};
use super::{
    plan::{InProgress, Plan, RangeRequest, Reason},
    targets::PickerConfig,
};
use crate::{
    key::Readers,
    observe::steps::{self, Step},
    options::Layout,
    version::{partition::Partition, version::KeyspaceVersion},
};

/// The decisions for one partition. Every plan that a strategy returns can begin alongside the running jobs.
trait Strategy {
    /// The compactions that are due. Tables of running jobs do not count.
    fn due(&self) -> Vec<Due>;

    /// The plan of a due compaction; `None` if running jobs prevent it.
    fn pick_due(&self, due: &Due, garbage: &Garbage<'_>) -> Option<Plan>;

    /// The plan that reclaims the greatest share of the bytes that it rewrites, if it is due. Its score is that share.
    fn pick_garbage(&self, garbage: &Garbage<'_>) -> Option<Plan>;

    /// The merge of small neighbouring tables of a run (`small_tables.rs`).
    fn pick_small_tables(&self) -> Option<Plan>;

    /// The next step of the compaction of a range.
    fn pick_range(&self, request: &RangeRequest) -> RangePick;

    /// Approximate bytes that the due compactions read and write. Whether those that follow from them are included depends on the layout.
    fn pending_bytes(&self) -> u64;
}

/// A compaction that is due for the runs or bytes of a level.
struct Due {
    /// At least 1; the greatest is the most urgent.
    score: f64,
    level: usize,
    reason: Reason,
}

/// The next step of a requested compaction.
#[derive(Debug)]
pub(crate) enum RangePick {
    Plan(Box<Plan>),
    /// Running jobs use the tables: pick again when one has ended.
    Blocked,
    /// All entries of the range are in its deepest level.
    Done,
}

/// The strategy of a keyspace, for one partition.
fn strategy_of<'a>(
    keyspace: u64,
    partition: &'a Partition,
    in_progress: &'a InProgress,
    config: &'a PickerConfig,
) -> Box<dyn Strategy + 'a> {
    match config.layout {
        Layout::Leveled => Box::new(Leveled::new(keyspace, partition, in_progress, config)),
        Layout::Tiered { runs_per_level, space_amplification_percent } => Box::new(Tiered {
            keyspace,
            partition,
            in_progress,
            config,
            runs_per_level: runs_per_level as usize,
            space_amplification_percent: space_amplification_percent.into(),
        }),
        Layout::Partitioned { tables_per_partition } => {
            Box::new(Partitioned::new(keyspace, partition, (in_progress, config), tables_per_partition))
        }
    }
}

/// The most urgent compaction that can begin now. `readers` are those of a job that begins now.
pub(crate) fn pick(version: &KeyspaceVersion, in_progress: &InProgress, readers: &Readers) -> Option<Plan> {
    let config = &PickerConfig::new(&version.options);
    Some(pick_by(version, in_progress, readers, config)?.with_options(&version.options))
}

/// As [`pick`], during a bulk load: L0 may grow to twice its size before it is merged. Each merge rewrites the base level, so half
/// as many merges write less. Cost: reads search more runs during the load.
pub(crate) fn pick_during_bulk_load(
    version: &KeyspaceVersion,
    in_progress: &InProgress,
    readers: &Readers,
) -> Option<Plan> {
    let config = &PickerConfig::new(&version.options).during_bulk_load();
    Some(pick_by(version, in_progress, readers, config)?.with_options(&version.options))
}

fn pick_by(
    version: &KeyspaceVersion,
    in_progress: &InProgress,
    readers: &Readers,
    config: &PickerConfig,
) -> Option<Plan> {
    steps::count(Step::Pick, 1);
    if cfg!(test) {
        steps::count(Step::PickedTable, version.tables().count());
    }
    let garbage = Garbage::new(readers);
    let is_free = |partition: &&Partition| !in_progress.replaces(partition.id);
    let partitions = || version.partitions.iter().map(AsRef::as_ref).filter(is_free);
    let deleted = |partition| {
        pick_deleted_tables(version.id, partition, in_progress, &garbage)
            .or_else(|| pick_expired_tables(version.id, partition, in_progress, &garbage))
    };
    if let Some(plan) = partitions().find_map(deleted) {
        return Some(plan);
    }
    let is_partitioned = config.layout.is_partitioned();
    let union = || pick_union(version, in_progress, config);
    if !is_partitioned && let Some(plan) = union() {
        return Some(plan);
    }
    let strategies: Vec<_> =
        partitions().map(|partition| strategy_of(version.id, partition, in_progress, config)).collect();
    let mut due = Vec::new();
    for strategy in &strategies {
        due.extend(strategy.due().into_iter().map(|due| (due, strategy)));
    }
    due.sort_by(|(left, _), (right, _)| {
        right.score.total_cmp(&left.score).then(left.level.cmp(&right.level))
    });
    let plan = due.into_iter().find_map(|(due, strategy)| strategy.pick_due(&due, &garbage));
    let plan = plan.or_else(|| is_partitioned.then(union).flatten());
    plan.or_else(|| {
        let plans = strategies.iter().filter_map(|strategy| strategy.pick_garbage(&garbage));
        plans.max_by(|left, right| left.score.total_cmp(&right.score))
    })
    .or_else(|| strategies.iter().find_map(|strategy| strategy.pick_small_tables()))
}

/// The next step of the compaction of a range into the deepest level. To be called until it returns [`RangePick::Done`].
pub(crate) fn pick_range(
    version: &KeyspaceVersion,
    in_progress: &InProgress,
    request: &RangeRequest,
) -> RangePick {
    let config = &PickerConfig::new(&version.options);
    let mut is_blocked = false;
    for partition in version.partitions_within(request.bounds()) {
        if in_progress.replaces(partition.id) {
            is_blocked = true;
            continue;
        }
        match strategy_of(version.id, partition, in_progress, config).pick_range(request) {
            RangePick::Done => {}
            RangePick::Blocked => is_blocked = true,
            RangePick::Plan(plan) => return RangePick::Plan(Box::new(plan.with_options(&version.options))),
        }
    }
    if is_blocked { RangePick::Blocked } else { RangePick::Done }
}

/// Approximate bytes that compactions of a keyspace must still read and write.
pub(crate) fn pending_bytes(version: &KeyspaceVersion) -> u64 {
    let (in_progress, config) = (InProgress::default(), PickerConfig::new(&version.options));
    let strategies = version.partitions.iter();
    let strategies = strategies.map(|partition| strategy_of(version.id, partition, &in_progress, &config));
    strategies.map(|strategy| strategy.pending_bytes()).sum()
}

#[cfg(test)]
mod tests;
