//! Compactions that scans request: a range in which a scan passed many deleted keys.
//!
//! One range waits at a time, and a new one is accepted [`WAIT`] after the last one. Ranges that are not accepted are
//! requested again by the next scans, if these still pass many deleted keys. The range is compacted into its deepest level when no
//! other compaction is due.

use std::time::Duration;

use crate::sync::Mutex;

use super::plan::RangeRequest;

/// The time between two accepted requests of a store: bounds the bytes that reads cause to be written.
const WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct State {
    /// The keyspace and the range.
    waiting: Option<(u32, RangeRequest)>,
    accepted_at: Option<Duration>,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct ReadRequests {
    state: Mutex<State>,
}

impl ReadRequests {
    /// Requests the compaction of a range of a keyspace; returns whether the request was accepted.
    pub(crate) fn add(&self, keyspace: u32, request: impl FnOnce() -> RangeRequest, now: Duration) -> bool {
        let mut state = self.state.lock();
        let is_too_early = state.accepted_at.is_some_and(|at| now.saturating_sub(at) < WAIT);
        if state.waiting.is_some() || is_too_early {
            return false;
        }
        state.waiting = Some((keyspace, request()));
        state.accepted_at = Some(now);
        true
    }

    /// The keyspace and the range that wait.
    pub(super) fn waiting(&self) -> Option<(u32, RangeRequest)> {
        self.state.lock().waiting.clone()
    }

    /// Ends the request that waits: its range is compacted, or can't be.
    pub(super) fn end(&self) {
        self.state.lock().waiting = None;
    }
}
