//! Waits until a store is at rest, and lets the waiting be interrupted.

use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

use super::Store;
use crate::{BenchError, Context};

#[cfg(test)]
mod tests;

/// How often it is looked whether somebody asked for the end, and how much is left.
const LOOK: Duration = Duration::from_millis(100);

/// Brings a store to rest. The share of the context's progress goes from 0 to 1. After an interruption the store is closed.
///
/// # Errors
/// The store's, and [`BenchError::Interrupted`].
pub fn settle(store: &dyn Store, context: &mut Context<'_>) -> Result<(), BenchError> {
    context.progress(0.0)?;
    let (running, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            // Dropped at the end, also by a panic.
            let _running = running;
            store.settle()
        });
        let mut outcome = Ok(());
        let (mut left_max, mut share_max) = (1, 0.0_f64);
        while outcome.is_ok() && ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let left = store.unsettled_bytes();
            left_max = left.max(left_max);
            share_max = share_max.max(1.0 - left as f64 / left_max as f64);
            outcome = context.progress(share_max);
        }
        if outcome.is_err() {
            // Whatever it says: the store is thrown away.
            let _ = store.close();
        }
        let settled = waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome.and(settled)
    })
}
