//! Times of expiry, as numbers that every language has.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Failure;

/// Converts a number of milliseconds since 1970, UTC.
///
/// # Errors
/// [`crate::Code::InvalidArgument`] for a time that the system cannot represent.
pub fn time_at(milliseconds: u64) -> Result<SystemTime, Failure> {
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).ok_or_else(|| {
        Failure::argument(format!("time: {milliseconds} ms since 1970 is too late; give an earlier time"))
    })
}

/// The number of seconds between 1970 and a time, negative before 1970.
pub fn seconds_of(time: SystemTime) -> f64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64(),
    }
}

#[cfg(test)]
mod tests;
