//! The times of filter probes on this machine, by which filters are chosen.
//!
//! They are measured once per machine, and stored (`sample_file.rs`). Until then, and by a clock that does not follow real time
//! ([`crate::Clock::is_real_time`]), they are the ones that `tamis_filter` ships, so that tests choose the same filters everywhere. A background job
//! measures them (`compaction/probe_calibration.rs`) once a store has sampled [`SAMPLED_MIN`] queries: filters of a store without a sample are
//! chosen for an assumed workload, and need no exact prices.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::RwLock;
use tamis_filter::auto::ProbeTimes;

/// Reads between two counts of the sampled queries.
const LOOK_INTERVAL: u64 = 100;
/// Queries that are sampled before the times are measured.
const SAMPLED_MIN: u64 = 1_000;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct MachineProbeTimes {
    measured: RwLock<Option<ProbeTimes>>,
    /// A job measures them, or has done so.
    is_claimed: AtomicBool,
    /// The number of reads after which the sampled queries are counted next.
    next_look: AtomicU64,
}

impl MachineProbeTimes {
    /// The measured or the shipped times.
    pub(crate) fn get(&self) -> ProbeTimes {
        self.measured().unwrap_or_default()
    }

    /// `None` before they were measured.
    pub(crate) fn measured(&self) -> Option<ProbeTimes> {
        *self.measured.read()
    }

    /// Takes measured times.
    pub(crate) fn set(&self, times: ProbeTimes) {
        self.is_claimed.store(true, Ordering::Relaxed);
        *self.measured.write() = Some(times);
    }

    /// Whether enough queries may have been sampled since the last call that returned `true`. To count them costs time for each
    /// keyspace. `read_count`: reads of the store since it was opened.
    pub(crate) fn may_claim(&self, read_count: u64) -> bool {
        let is_due = !self.is_claimed.load(Ordering::Relaxed)
            && read_count >= self.next_look.load(Ordering::Relaxed).max(SAMPLED_MIN);
        if is_due {
            self.next_look.store(read_count + LOOK_INTERVAL, Ordering::Relaxed);
        }
        is_due
    }

    /// Whether the caller shall measure them; true at most once. `sampled_count`: queries that were sampled since the store was opened.
    pub(crate) fn claim(&self, sampled_count: u64) -> bool {
        sampled_count >= SAMPLED_MIN
            && !self.is_claimed.load(Ordering::Relaxed)
            && !self.is_claimed.swap(true, Ordering::Relaxed)
    }
}
