//! Decides what to compact: a pure function of a version, the running jobs, the read points and the options.
//!
//! A [`Strategy`] decides for one partition; the layout of the keyspace selects it ([`leveled`]). The functions of this
//! file compare the decisions for all partitions:
//!
//! 1. Tables that range tombstones delete as a whole are dropped before anything else, in every layout.
//! 2. Then the level with the highest score that can be compacted alongside the running jobs is taken; a score below 1 is not due.
//! 3. If no level is due, tables are compacted for their deleted and obsolete entries.
//!
//! Two jobs never share a table, and never write to overlapping ranges of one level.
//!
//! Cost: O(tables x log tables) per call.

mod leveled;

use self::leveled::{Leveled, garbage::Garbage};
use super::{
    plan::{InProgress, Plan, RangeRequest},
    targets::PickerConfig,
};
use crate::{
    key::Sequence,
    steps::{self, Step},
    version::version::{KeyspaceVersion, Partition},
};

/// The decisions for one partition. Every plan that a strategy returns can begin alongside the running jobs.
trait Strategy {
    /// The levels that are due, each with its score, which is at least 1. Tables of running jobs do not count.
    fn due_levels(&self) -> Vec<(f64, usize)>;

    /// A compaction of a level that is due with this score; `None` if running jobs prevent it.
    fn pick_level(&self, level: usize, score: f64) -> Option<Plan>;

    /// The removal of the tables whose entries are all deleted by range tombstones.
    fn pick_deleted_tables(&self, garbage: &Garbage<'_>) -> Option<Plan>;

    /// The plan that reclaims the greatest share of the bytes that it rewrites, if it is due. Its score is that share.
    fn pick_garbage(&self, garbage: &Garbage<'_>) -> Option<Plan>;

    /// The next step of the compaction of a range.
    fn pick_range(&self, request: &RangeRequest) -> RangePick;
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
    Box::new(Leveled::new(keyspace, partition, in_progress, config))
}

/// The most urgent compaction that can begin now. `read_points` are those of a job that begins now (`drop_rules.rs`).
pub(crate) fn pick(
    version: &KeyspaceVersion,
    in_progress: &InProgress,
    read_points: &[Sequence],
) -> Option<Plan> {
    pick_by(version, in_progress, read_points, &PickerConfig::new(&version.options))
}

/// As [`pick`], during a bulk load: L0 may grow to twice its size before it is merged. Each merge rewrites the base level, so half
/// as many merges write less. Cost: reads search more runs during the load.
pub(crate) fn pick_during_bulk_load(
    version: &KeyspaceVersion,
    in_progress: &InProgress,
    read_points: &[Sequence],
) -> Option<Plan> {
    pick_by(version, in_progress, read_points, &PickerConfig::new(&version.options).during_bulk_load())
}

fn pick_by(
    version: &KeyspaceVersion,
    in_progress: &InProgress,
    read_points: &[Sequence],
    config: &PickerConfig,
) -> Option<Plan> {
    steps::count(Step::Pick, 1);
    if cfg!(test) {
        steps::count(Step::PickedTable, version.tables().count());
    }
    let partitions = version.partitions.iter();
    let strategies: Vec<_> =
        partitions.map(|partition| strategy_of(version.id, partition, in_progress, config)).collect();
    let garbage = Garbage::new(read_points);
    if let Some(plan) = strategies.iter().find_map(|strategy| strategy.pick_deleted_tables(&garbage)) {
        return Some(plan);
    }
    let mut due = Vec::new();
    for strategy in &strategies {
        due.extend(strategy.due_levels().into_iter().map(|(score, level)| (score, level, strategy)));
    }
    due.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    let plan = due.into_iter().find_map(|(score, level, strategy)| strategy.pick_level(level, score));
    plan.or_else(|| {
        let plans = strategies.iter().filter_map(|strategy| strategy.pick_garbage(&garbage));
        plans.max_by(|left, right| left.score.total_cmp(&right.score))
    })
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
        match strategy_of(version.id, partition, in_progress, config).pick_range(request) {
            RangePick::Done => {}
            RangePick::Blocked => is_blocked = true,
            plan @ RangePick::Plan(_) => return plan,
        }
    }
    if is_blocked { RangePick::Blocked } else { RangePick::Done }
}

#[cfg(test)]
mod tests;
