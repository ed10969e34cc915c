//! Unites adjacent partitions: one edit moves their tables, and nothing is rewritten.
//!
//! Runs of one level and age become one run: their tables are in different partitions, so that they are disjoint. For each key the order
//! of runs stays as it was. The sequence numbers of whole runs may interleave afterwards: a merge in one of the old partitions, or entries
//! that were retained before a flush wrote them, put older entries into a newer run. Jobs that leave runs in L0 consider that
//! ([`super::partitioned`]).
//!
//! - *Partitioned layout*: partitions that have shrunk, so that together they have at most one table's bytes.
//! - *Other layouts*: a keyspace has one partition. After a change of layout all are united, some at a time, so that L0 does not get too
//!   many runs at once. In the leveled layout a partition waits until it has no levels of another layout.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    compaction::{
        plan::{InProgress, Plan, Reason},
        targets::PickerConfig,
    },
    options::Layout,
    version::{level::LEVELED_RUN_AGE, partition::Partition, version::KeyspaceVersion},
};

/// The first partitions that are to be united; `None` if there are none that no running job uses. A partition is not united while a
/// memtable has retained entries of it: they are older than entries in the tables of other partitions, and their flush would write them
/// into a newer run.
pub(super) fn pick_union(
    version: &KeyspaceVersion,
    in_progress: &InProgress,
    config: &PickerConfig,
) -> Option<Plan> {
    if version.partitions.len() < 2 {
        return None;
    }
    let mut from = 0;
    while from + 1 < version.partitions.len() {
        let mut group = Group::default();
        let rest = version.partitions.get(from..).unwrap_or_default();
        let is_free = |offset: usize, partition: &Partition| {
            let upper = version.upper_of(from + offset);
            !in_progress.is_busy(partition.id) && !in_progress.has_retained(&partition.lower, upper)
        };
        let may_take = |(offset, partition): &(usize, &Arc<Partition>)| {
            is_free(*offset, partition) && group.take(partition, config)
        };
        let count = rest.iter().enumerate().take_while(may_take).count();
        if count > 1 {
            let partitions = rest.get(..count).unwrap_or_default();
            return Plan::unite(version.id, partitions, Reason::Layout, 1.0);
        }
        from += 1;
    }
    None
}

/// Partitions that can become one.
#[derive(Default)]
struct Group {
    count: usize,
    table_count: usize,
    bytes: u64,
    /// The ages of the runs of L0.
    level0: BTreeSet<u64>,
}

impl Group {
    /// Adds the next partition, if it can be united with those before it.
    fn take(&mut self, partition: &Partition, config: &PickerConfig) -> bool {
        self.table_count += partition.totals().table_count;
        self.bytes += partition.totals().bytes;
        let level0 = partition.level(0).map_or(&[][..], |level| level.runs());
        self.level0.extend(level0.iter().map(|run| run.age()));
        self.count += 1;
        let is_small_level0 = self.count <= 2 || self.level0.len() <= config.level0_runs;
        match config.layout {
            Layout::Partitioned { tables_per_partition, .. } => {
                self.bytes <= config.table_bytes && self.table_count <= tables_per_partition as usize / 2
            }
            Layout::Leveled => is_small_level0 && !has_foreign_level(partition),
            Layout::Tiered { .. } => is_small_level0,
        }
    }
}

/// Whether a level below L0 has runs of another layout.
fn has_foreign_level(partition: &Partition) -> bool {
    partition.runs().any(|(level, run)| level > 0 && run.age() != LEVELED_RUN_AGE)
}
