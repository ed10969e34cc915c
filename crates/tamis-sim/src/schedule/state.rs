//! The threads of a schedule and what they wait for.

use std::thread::Thread;

use tamis_workload::SplitMix64;

use super::THREAD_ENDS;

/// Whether a thread can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ready,
    /// Until the object is notified, or until a time.
    Waiting {
        object: usize,
        until: Option<u64>,
    },
    Ended,
}

#[derive(Debug)]
pub(super) struct SimThread {
    pub(super) name: String,
    pub(super) status: Status,
    pub(super) handle: Option<Thread>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) random: SplitMix64,
    pub(super) threads: Vec<SimThread>,
    /// The threads that have not ended.
    pub(super) alive: Vec<usize>,
    /// The mean number of points between two hand-overs.
    pub(super) run_length: u64,
    pub(super) hand_overs_since_progress: u64,
    pub(super) failure: Option<String>,
    pub(super) hash: u64,
}

impl State {
    /// The threads that have not ended and are as `is` says.
    pub(super) fn those(&self, is: impl Fn(&SimThread) -> bool) -> Vec<usize> {
        let is = |index: &usize| self.threads.get(*index).is_some_and(&is);
        self.alive.iter().copied().filter(is).collect()
    }

    /// A thread that can run at this time, drawn among all of them. It is ready afterwards.
    pub(super) fn choose(&mut self, now: u64) -> Option<usize> {
        let can_run = |index: &usize| match self.threads.get(*index).map(|thread| thread.status) {
            Some(Status::Ready) => true,
            Some(Status::Waiting { until, .. }) => until.is_some_and(|until| until <= now),
            Some(Status::Ended) | None => false,
        };
        let count = self.alive.iter().filter(|index| can_run(index)).count() as u64;
        let place = if count > 1 { self.random.clone().below(count) as usize } else { 0 };
        let index = self.alive.iter().copied().filter(can_run).nth(place)?;
        if count > 1 {
            self.random.next_u64();
        }
        self.threads.get_mut(index)?.status = Status::Ready;
        Some(index)
    }
}

/// A status as text that is equal on all machines.
pub(super) fn without_address(status: Status) -> &'static str {
    match status {
        Status::Ready => "is ready",
        Status::Waiting { until: Some(_), .. } => "waits for a time",
        Status::Waiting { object, until: None } if object >= THREAD_ENDS => "waits for a thread",
        Status::Waiting { .. } => "waits for a lock or a condition",
        Status::Ended => "has ended",
    }
}
