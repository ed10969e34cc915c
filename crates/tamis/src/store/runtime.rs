//! Clock, randomness and threads as parameters of open: the engine has no other source of them.
//!
//! Programs use [`Runtime::system`]. Tests use a fixed seed, a clock that they advance themselves, and `workers: 0`: every flush and
//! compaction then runs on the thread of the write that made it due, so that the same operations access the same files in the same
//! order.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::sync::{Condvar, MutexGuard};

/// A source of time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since a fixed point; it never decreases.
    fn now(&self) -> Duration;
    /// Time since 1970, by which entries expire. It may jump in both directions.
    fn since_epoch(&self) -> Duration;
    /// Waits on `condition` until it is notified, for at most `timeout` of this clock's time.
    fn wait(&self, condition: &Condvar, guard: &mut MutexGuard<'_, ()>, timeout: Duration);
}

/// The operating system's monotonic clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the seam through which time enters")]
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the seam through which time enters")]
    fn since_epoch(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn wait(&self, condition: &Condvar, guard: &mut MutexGuard<'_, ()>, timeout: Duration) {
        condition.wait_for(guard, timeout);
    }
}

/// A clock that changes only by [`ManualClock::advance`] and by waits.
#[derive(Debug, Default)]
pub struct ManualClock {
    nanoseconds: AtomicU64,
}

impl ManualClock {
    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        self.nanoseconds.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::SeqCst))
    }

    fn since_epoch(&self) -> Duration {
        // Manual clocks begin in the year 2001.
        Duration::from_secs(1_000_000_000) + self.now()
    }

    fn wait(&self, _condition: &Condvar, _guard: &mut MutexGuard<'_, ()>, timeout: Duration) {
        self.advance(timeout);
    }
}

/// A running thread. Dropping the box waits for its end.
pub trait JoinHandle: Send + Sync {}

/// Starts the threads of a store: its workers for flushes and compactions.
pub trait Spawner: fmt::Debug + Send + Sync {
    /// Starts a thread that runs `work`.
    ///
    /// # Errors
    /// That of the operating system if it refuses a thread.
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> std::io::Result<Box<dyn JoinHandle>>;
}

/// Threads of the operating system.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemSpawner;

struct SystemThread(Option<std::thread::JoinHandle<()>>);

impl JoinHandle for SystemThread {}

impl Drop for SystemThread {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            // A thread can't wait for itself: a worker may drop the last handle of the store.
            if handle.thread().id() != std::thread::current().id() {
                let _ = handle.join();
            }
        }
    }
}

impl Spawner for SystemSpawner {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> std::io::Result<Box<dyn JoinHandle>> {
        let handle = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Box::new(SystemThread(Some(handle))))
    }
}

/// See the head of this file.
#[derive(Debug, Clone)]
pub struct Runtime {
    /// The clock, for time limits and statistics.
    pub clock: Arc<dyn Clock>,
    /// Starts threads.
    pub spawner: Arc<dyn Spawner>,
    /// The seed of a new store: for its id and for the digests of its filters.
    pub seed: u64,
}

impl Runtime {
    /// The clock and threads of the operating system, and a random seed.
    pub fn system() -> Self {
        use std::hash::{BuildHasher, RandomState};
        Self {
            clock: Arc::new(SystemClock::default()),
            spawner: Arc::new(SystemSpawner),
            seed: RandomState::new().hash_one(0_u64),
        }
    }

    /// A manual clock and a fixed seed.
    pub fn deterministic(seed: u64) -> Self {
        Self { clock: Arc::new(ManualClock::default()), spawner: Arc::new(SystemSpawner), seed }
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self::system()
    }
}
