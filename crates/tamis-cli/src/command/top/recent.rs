//! The last events of a store, as lines of text.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use tamis::{CompactionReason, Event, EventListener, PartitionChange};

use crate::terminal;

/// The events that are kept.
const EVENTS_MAX: usize = 6;

/// A listener that keeps the last events.
#[derive(Debug, Default)]
pub(super) struct RecentEvents(Mutex<VecDeque<String>>);

impl RecentEvents {
    /// The newest first.
    pub(super) fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl EventListener for RecentEvents {
    fn on_event(&self, event: &Event) {
        let Some(line) = line(event) else { return };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.truncate(EVENTS_MAX - 1);
        lines.push_front(line);
    }
}

/// An event in words; `None` for those that are no background work.
fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::Flushed { keyspace, bytes, .. } => {
            format!("flushed a memtable of {}: {}", terminal::name(keyspace), terminal::bytes(*bytes))
        }
        Event::Compacted { keyspace, reason, level, output_level, bytes_read, bytes_written, .. } => format!(
            "compacted L{level} of {} into L{output_level}, {}: {} read, {} written",
            terminal::name(keyspace),
            match reason {
                CompactionReason::Size => "which was too large",
                CompactionReason::Garbage => "which had deleted data",
                CompactionReason::Request => "on request",
                CompactionReason::Reads => "for reads",
                _ => "for another reason",
            },
            terminal::bytes(*bytes_read),
            terminal::bytes(*bytes_written)
        ),
        Event::PartitionsChanged { keyspace, change, before, after, bytes_written, .. } => format!(
            "{} of {} {} into {after}: {} written",
            terminal::amount(*before as u64, "partition", "partitions"),
            terminal::name(keyspace),
            match change {
                PartitionChange::Split => "split",
                PartitionChange::Divide => "divided",
                PartitionChange::Unite => "united",
                _ => "changed",
            },
            terminal::bytes(*bytes_written)
        ),
        Event::ViewBuilt { keyspace, run_count, bytes, .. } => format!(
            "built a sorted view of {} of {}: {}",
            terminal::amount(*run_count as u64, "run", "runs"),
            terminal::name(keyspace),
            terminal::bytes(*bytes)
        ),
        Event::FiltersReplaced { keyspace, table, .. } => {
            format!("replaced the filters of table {table} of {}", terminal::name(keyspace))
        }
        Event::JobFailed { job, error } => format!("failed to {job}: {error}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
