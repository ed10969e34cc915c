//! Entries that expire: the encoding of their time, and the clock by which they do.
//!
//! An expiring put is an entry of a separate kind. Its stored value is the time at which it expires (8 bytes, little-endian: milliseconds since 1970) and
//! the value. From this time on, each reader finds what it would find after a delete with the same sequence number.
//!
//! # Invariants
//!
//! 1. *The time of a store never decreases*, also if the clock of the system does: it is the greatest one that the store has read, and it is persisted with each
//!    version of the manifest.
//! 2. *A reader has one time*: that of its snapshot, or of the first expiring entry that a read without a snapshot meets.
//! 3. *A compaction drops what is expired for all readers*: at the time when it begins, or that of the oldest snapshot, if there are any.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    error::{Error, Result},
    store::runtime::Clock,
};

/// No entry expires at this time or later: about the year 6400, which the times of all systems reach.
pub(crate) const TIME_MAX: u64 = 1 << 47;

/// The clock of a store, see the head of this file.
#[derive(Debug)]
pub(crate) struct ExpiryClock {
    clock: Arc<dyn Clock>,
    greatest: AtomicU64,
    /// An expiring entry was written or read: only then the time is persisted.
    is_used: AtomicBool,
}

impl ExpiryClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, greatest: AtomicU64::new(0), is_used: AtomicBool::new(false) }
    }

    /// The time, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        let now = milliseconds(self.clock.since_epoch());
        let greatest = self.greatest.load(Ordering::Relaxed);
        if now > greatest {
            self.greatest.fetch_max(now, Ordering::Relaxed);
        }
        now.max(greatest)
    }

    /// An expiring entry was written or read.
    pub(crate) fn note_used(&self) {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// The time to persist; 0 if no expiring entry was written or read.
    pub(crate) fn to_persist(&self) -> u64 {
        if self.is_used.load(Ordering::Relaxed) { self.greatest.load(Ordering::Relaxed) } else { 0 }
    }

    /// Continues at a time that was persisted; 0: there was none.
    pub(crate) fn continue_at(&self, time: u64) {
        self.greatest.fetch_max(time, Ordering::Relaxed);
        self.is_used.fetch_or(time > 0, Ordering::Relaxed);
    }

    /// The number of a time at which an entry shall expire.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a time that is not in the future, and at the end of time.
    pub(crate) fn time_of(&self, time: SystemTime) -> Result<u64> {
        let refuse = |got: String| Error::InvalidArgument {
            what: "time of expiry",
            got,
            expected: "use a time in the future, before the year 6400; delete the key to expire it now"
                .to_owned(),
        };
        let since = time.duration_since(UNIX_EPOCH).map_err(|_| refuse("a time before 1970".to_owned()))?;
        self.note_used();
        let (number, now) = (milliseconds(since), self.now());
        if !(now + 1..TIME_MAX).contains(&number) {
            return Err(refuse(format!("{number} ms since 1970, at {now}")));
        }
        Ok(number)
    }

    /// The time at which an entry of now expires. `age` in milliseconds.
    #[cold]
    pub(crate) fn after(&self, age: u64) -> u64 {
        self.note_used();
        self.now().saturating_add(age).min(TIME_MAX - 1)
    }
}

/// Whole milliseconds.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The stored value of an expiring put.
pub(crate) fn stored(time: u64, value: &[u8]) -> Vec<u8> {
    [&time.to_le_bytes(), value].concat()
}

/// Time and value of a stored value; `None` for bytes that no writer can have written.
pub(crate) fn split(stored: &[u8]) -> Option<(u64, &[u8])> {
    let (time, value) = stored.split_first_chunk()?;
    Some((u64::from_le_bytes(*time), value))
}

/// The value of an expiring put for a reader at a time, unless it is expired. Malformed ones are.
pub(crate) fn live_value(stored: &[u8], time: impl FnOnce() -> u64) -> Option<&[u8]> {
    split(stored).filter(|(expires_at, _)| *expires_at > time()).map(|(_, value)| value)
}
