//! The change feed for languages whose calls wait for a limited time.

use std::{
    thread,
    time::{Duration, Instant},
};

use tamis::{Change, Changes};

use crate::Failure;

/// The longest time between two looks for a change.
const WAIT_MAX: Duration = Duration::from_millis(10);

/// Returns the next change, and waits for it until the timeout; `None`: without end.
///
/// # Errors
/// Those of [`Changes::try_next`].
pub fn next_within(changes: &mut Changes, timeout: Option<Duration>) -> Result<Option<Change>, Failure> {
    let end = timeout.and_then(|timeout| now().checked_add(timeout));
    let mut wait = Duration::from_millis(1);
    loop {
        if let Some(change) = changes.try_next()? {
            return Ok(Some(change));
        }
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(now()));
        if left.is_zero() {
            return Ok(None);
        }
        pause(wait.min(left));
        wait = (2 * wait).min(WAIT_MAX);
    }
}

#[expect(clippy::disallowed_methods, reason = "the limit of a wait is a time of the caller")]
fn now() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the writer may be another process, which notifies no condition"
)]
fn pause(time: Duration) {
    thread::sleep(time);
}

#[cfg(test)]
mod tests;
