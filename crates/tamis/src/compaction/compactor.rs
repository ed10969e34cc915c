//! Runs compactions: merges or moves the tables of a plan and installs the result.

use std::ops::ControlFlow;

use super::{
    job_context::{JobContext, with_job_context},
    merge::{Merged, merge},
    plan::{Action, Plan, Reason},
    repartition::Repartitioned,
};
use crate::{
    error::{Error, Result},
    observe::events::{CompactionReason, Event, PartitionChange},
    store::{keyspace_state::KeyspaceState, parts::StoreParts},
};

impl StoreParts {
    /// Runs a plan; `between_tables` is called before each output table, and ends the job with [`Error::Closed`] by a break. A plan whose
    /// keyspace has got other options ends without effect, which is no failure.
    ///
    /// # Errors
    /// Those of the file system and of damaged inputs: the tables stay as they were, and the plan can be tried again.
    pub(super) fn compact(
        &self,
        keyspace: &KeyspaceState,
        plan: &Plan,
        between_tables: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<()> {
        let has_options = || keyspace.has_options(&plan.options);
        let continues = || if has_options() { between_tables() } else { ControlFlow::Break(()) };
        match self.run_plan(keyspace, plan, &continues) {
            Err(Error::Closed) if !has_options() => Ok(()),
            result => result,
        }
    }

    fn run_plan(
        &self,
        keyspace: &KeyspaceState,
        plan: &Plan,
        between_tables: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<()> {
        let clock = &self.context.runtime.clock;
        let metrics = &self.context.metrics;
        let start = clock.now();
        match plan.action {
            Action::Merge => {}
            Action::Move => {
                if self.install_compaction(keyspace, plan, plan.move_edit(), &[])? {
                    metrics.trivial_moves.add(plan.moved_tables().count() as u64);
                }
                return Ok(());
            }
            Action::Drop => {
                if self.install_compaction(keyspace, plan, plan.move_edit(), &[])? {
                    metrics.dropped_tables.add(plan.tables().count() as u64);
                    self.report_compacted(keyspace, plan, (0, 0));
                }
                return Ok(());
            }
            Action::Split | Action::Divide | Action::Unite => {
                if let Some(done) = self.repartition(keyspace, plan, between_tables)? {
                    if plan.action == Action::Split {
                        self.back_pressure.note_merge(plan.bytes_of(0), clock.now().saturating_sub(start));
                    }
                    self.note_repartitioned(keyspace, plan, &done);
                }
                return Ok(());
            }
        }
        let read_state = keyspace.read_state.load_full();
        let merged = with_job_context(self, &read_state.version, |context| {
            let context = JobContext { between_tables, ..context.clone() };
            merge(&context, &self.tables, plan)
        })?;
        let Merged { edit, files, bytes_read, written } = merged;
        if !self.install_compaction(keyspace, plan, edit, &files)? {
            return Ok(());
        }
        let time = clock.now().saturating_sub(start);
        if plan.level() == 0 {
            self.back_pressure.note_merge(plan.bytes_of(0), time);
        }
        self.scheduler.job_times.note_merge(bytes_read + written.bytes, time);
        metrics.compactions.add(1);
        metrics.garbage_compactions.add(u64::from(plan.reason == Reason::Garbage));
        metrics.trivial_moves.add(plan.moved_tables().count() as u64);
        metrics.compaction_bytes_read.add(bytes_read);
        metrics.compaction_bytes_written.add(written.bytes);
        metrics.compaction_blocks_written.add(written.blocks);
        if plan.options.layout.is_partitioned() {
            metrics.partition_decisions.major.add(1, plan.bytes_written, written.bytes);
        }
        self.report_compacted(keyspace, plan, (bytes_read, written.bytes));
        Ok(())
    }

    fn note_repartitioned(&self, keyspace: &KeyspaceState, plan: &Plan, done: &Repartitioned) {
        let metrics = &self.context.metrics;
        metrics.compaction_bytes_read.add(done.bytes_read);
        metrics.compaction_bytes_written.add(done.written.bytes);
        metrics.compaction_blocks_written.add(done.written.blocks);
        let decisions = &metrics.partition_decisions;
        let (counters, change) = match plan.action {
            Action::Split => (&decisions.split, PartitionChange::Split),
            Action::Divide => (&decisions.divide, PartitionChange::Divide),
            _ => (&decisions.unite, PartitionChange::Unite),
        };
        counters.add(1, plan.bytes_written, done.written.bytes);
        self.context.report(&Event::PartitionsChanged {
            keyspace: keyspace.name.clone(),
            change,
            before: plan.replaced_partitions.len(),
            after: done.partition_count,
            bytes_expected: plan.bytes_written,
            bytes_read: done.bytes_read,
            bytes_written: done.written.bytes,
        });
    }

    fn report_compacted(
        &self,
        keyspace: &KeyspaceState,
        plan: &Plan,
        (bytes_read, bytes_written): (u64, u64),
    ) {
        self.context.report(&Event::Compacted {
            keyspace: keyspace.name.clone(),
            reason: match plan.reason {
                Reason::Level0 | Reason::Size | Reason::Space | Reason::Layout | Reason::SmallTables => {
                    CompactionReason::Size
                }
                Reason::Garbage => CompactionReason::Garbage,
                Reason::Range => CompactionReason::Request,
                Reason::Reads => CompactionReason::Reads,
            },
            level: plan.level(),
            output_level: plan.output_level,
            bytes_expected: if plan.action == Action::Drop { 0 } else { plan.bytes_written },
            bytes_read,
            bytes_written,
        });
    }
}
