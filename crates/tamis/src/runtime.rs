//! Time, randomness and threads, as parameters of open: the engine takes them from here only.
//!
//! [`Runtime::system`] is what programs use. Tests give a fixed seed, a clock that they move by hand, and
//! `workers: 0`, with which every flush and compaction runs on the thread of the write that made it due: the same
//! operations then touch the same files in the same order.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, MutexGuard};

/// A source of time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since some fixed moment; never goes back.
    fn now(&self) -> Duration;
    /// Waits on `condition` for at most `timeout` of this clock's time, or until it is notified.
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

    fn wait(&self, condition: &Condvar, guard: &mut MutexGuard<'_, ()>, timeout: Duration) {
        condition.wait_for(guard, timeout);
    }
}

/// A clock that stands still until it is moved; waiting moves it.
#[derive(Debug, Default)]
pub struct ManualClock {
    nanoseconds: AtomicU64,
}

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.nanoseconds.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::SeqCst))
    }

    fn wait(&self, _condition: &Condvar, _guard: &mut MutexGuard<'_, ()>, timeout: Duration) {
        self.advance(timeout);
    }
}

/// A started thread; dropping the box waits for its end.
pub trait JoinHandle: Send + Sync {}

/// Starts the threads of a database: its flush and compaction workers.
pub trait Spawner: fmt::Debug + Send + Sync {
    /// Starts `work` under `name`.
    ///
    /// # Errors
    /// The operating system's, when it refuses a thread.
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
            // A worker that drops the last handle of its own database can't wait for itself.
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

/// What the engine takes from the world besides files.
#[derive(Debug, Clone)]
pub struct Runtime {
    /// Time, for the bound of deferred log bytes and for the statistics.
    pub clock: Arc<dyn Clock>,
    /// Threads.
    pub spawner: Arc<dyn Spawner>,
    /// The seed that a new database takes for its id and its filters' digests.
    pub seed: u64,
}

impl Runtime {
    /// The system's clock and threads, and a seed from the standard library's randomness.
    pub fn system() -> Self {
        use std::hash::{BuildHasher, RandomState};
        Self {
            clock: Arc::new(SystemClock::default()),
            spawner: Arc::new(SystemSpawner),
            seed: RandomState::new().hash_one(0_u64),
        }
    }

    /// A clock that moves by hand and a fixed seed.
    pub fn deterministic(seed: u64) -> Self {
        Self { clock: Arc::new(ManualClock::default()), spawner: Arc::new(SystemSpawner), seed }
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self::system()
    }
}
