//! Waits until a store has no background work; the wait can be interrupted.

use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

use super::Store;
use crate::{BenchError, Context};

#[cfg(test)]
mod tests;

/// Interval between two checks for an interruption and for progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Waits until a store has no background work. Reports progress from 0 to 1. Closes the store after an interruption.
///
/// # Errors
/// Errors of the store, and [`BenchError::Interrupted`].
pub fn settle(store: &dyn Store, context: &mut Context<'_>) -> Result<(), BenchError> {
    context.progress(0.0)?;
    let (running, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            // Dropped at the end, also after a panic.
            let _running = running;
            store.settle()
        });
        let mut outcome = Ok(());
        let (mut left_max, mut share_max) = (1, 0.0_f64);
        while outcome.is_ok() && ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let left = store.unsettled_bytes();
            left_max = left.max(left_max);
            share_max = share_max.max(1.0 - left as f64 / left_max as f64);
            outcome = context.progress(share_max);
        }
        if outcome.is_err() {
            // An error does not matter: the store is discarded.
            let _ = store.close();
        }
        let settled = waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome.and(settled)
    })
}
