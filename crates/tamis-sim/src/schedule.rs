//! Runs threads one at a time, in an order that a seed draws, in simulated time.
//!
//! One thread has the *baton* and runs; all others are parked. At a hand-over point the thread may pass the baton to another thread that is
//! ready. A thread that waits, for an object or until a time, always passes it. If no thread is ready, the time jumps to the end of the
//! first wait; if no wait has an end, the threads wait for each other forever, which is a failure.
//!
//! Nothing of the machine enters: no address, no thread id, no real time. Addresses of locks are compared for equality only. The hash
//! covers each hand-over and all that is recorded by [`Schedule::record`].
//!
//! Cost: a point without a hand-over is one addition; a hand-over is one wake-up by the operating system.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tamis_workload::SplitMix64;
use xxhash_rust::xxh3::xxh3_64;

mod state;

use state::{SimThread, State, Status, without_address};

/// Simulated time of the computation between two points.
const POINT_NANOSECONDS: u64 = 200;
/// Objects of waits for the end of a thread: addresses of objects are below.
const THREAD_ENDS: usize = usize::MAX - (1 << 20);
/// A history with more hand-overs between two client operations has threads that wait for each other in a loop.
const HAND_OVERS_MAX: u64 = 500_000;

/// See the head of this file.
#[derive(Debug)]
pub struct Schedule {
    state: Mutex<State>,
    /// The thread with the baton.
    turn: AtomicUsize,
    /// Points until the next hand-over.
    points_left: AtomicU64,
    nanoseconds: AtomicU64,
    /// Threads that wait for an object.
    waiting_count: AtomicUsize,
    has_failed: AtomicBool,
    /// Notified for the caller of [`Schedule::run`], which is no thread of the simulation.
    is_over: Mutex<bool>,
    over: Condvar,
}

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    static CURRENT: RefCell<Option<usize>> = const { RefCell::new(None) };
}

/// Panics of simulated threads are results of histories: their place is kept for the report, and nothing is printed.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let _ = LAST_PANIC.try_with(|last| last.replace(place));
    }));
}

/// The number of the current thread in its schedule.
pub fn current() -> usize {
    CURRENT.with_borrow(|current| current.unwrap_or(0))
}

impl Schedule {
    /// A schedule that `seed` decides.
    pub fn new(seed: u64) -> Arc<Self> {
        let mut random = SplitMix64::new(seed);
        let run_length = 1 << (4 + random.below(6));
        Arc::new(Self {
            state: Mutex::new(State {
                random,
                threads: Vec::new(),
                alive: Vec::new(),
                run_length,
                hand_overs_since_progress: 0,
                failure: None,
                hash: seed,
            }),
            turn: AtomicUsize::new(0),
            points_left: AtomicU64::new(run_length),
            nanoseconds: AtomicU64::new(0),
            waiting_count: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
            is_over: Mutex::new(false),
            over: Condvar::new(),
        })
    }

    /// Runs `main` as the first thread, and returns when it has ended, or when the threads wait for each other. `watch` is called about every
    /// second; `false` gives up.
    pub fn run(self: &Arc<Self>, main: impl FnOnce() + Send + 'static, mut watch: impl FnMut() -> bool) {
        self.spawn("main", main);
        let mut is_over = self.is_over.lock();
        self.pass_to(0);
        while !*is_over {
            self.over.wait_for(&mut is_over, Duration::from_secs(1));
            if !*is_over && !watch() {
                return;
            }
        }
    }

    fn pass_to(&self, index: usize) {
        self.turn.store(index, Ordering::Release);
        if let Some(handle) = self.state.lock().threads.get(index).and_then(|thread| thread.handle.clone()) {
            handle.unpark();
        }
    }

    /// Starts a thread and returns its number. It is ready at once.
    #[expect(clippy::disallowed_methods, reason = "these are the threads of the simulation")]
    pub fn spawn(self: &Arc<Self>, name: &str, work: impl FnOnce() + Send + 'static) -> usize {
        let mut state = self.state.lock();
        let index = state.threads.len();
        state.threads.push(SimThread { name: name.to_owned(), status: Status::Ready, handle: None });
        state.alive.push(index);
        let schedule = Arc::clone(self);
        let thread = std::thread::spawn(move || {
            CURRENT.set(Some(index));
            schedule.await_turn(index);
            let result = catch_unwind(AssertUnwindSafe(work));
            if let Err(panic) = result {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                schedule.fail(format!("a thread panicked: {text} at {}", LAST_PANIC.take()));
            }
            schedule.end(index);
        });
        if let Some(slot) = state.threads.get_mut(index) {
            slot.handle = Some(thread.thread().clone());
        }
        index
    }

    fn await_turn(&self, index: usize) {
        while self.turn.load(Ordering::Acquire) != index {
            std::thread::park();
        }
    }

    /// Ends a thread: others that wait for it are ready.
    fn end(&self, index: usize) {
        self.notify(THREAD_ENDS + index, true);
        let mut state = self.state.lock();
        if let Some(thread) = state.threads.get_mut(index) {
            thread.status = Status::Ended;
        }
        state.alive.retain(|other| *other != index);
        if index == 0 {
            drop(state);
            return self.stop();
        }
        self.pass_on(&mut state);
    }

    /// Lets [`Schedule::run`] return.
    fn stop(&self) {
        *self.is_over.lock() = true;
        self.over.notify_all();
    }

    /// Waits until a thread has ended. A thread does not wait for itself.
    pub fn join(&self, index: usize) {
        let has_ended = || {
            let state = self.state.lock();
            state.threads.get(index).is_none_or(|thread| thread.status == Status::Ended)
        };
        while index != current() && !has_ended() {
            self.wait(THREAD_ENDS + index, None);
        }
    }

    /// Another thread may run.
    pub fn point(&self) {
        self.nanoseconds.fetch_add(POINT_NANOSECONDS, Ordering::Relaxed);
        let left = self.points_left.load(Ordering::Relaxed);
        match left.checked_sub(1) {
            Some(left) => self.points_left.store(left, Ordering::Relaxed),
            None => self.pause(),
        }
    }

    /// Another thread that is ready runs, if there is one.
    pub fn pause(&self) {
        let mut state = self.state.lock();
        let length = state.run_length;
        let points = state.random.below(2 * length);
        self.points_left.store(points, Ordering::Relaxed);
        self.nanoseconds.fetch_add(POINT_NANOSECONDS, Ordering::Relaxed);
        self.hand_over(&mut state);
    }

    /// Waits until `object` is notified, for at most `limit`; returns `false` after the limit.
    pub fn wait(&self, object: usize, limit: Option<Duration>) -> bool {
        let until = limit.map(|limit| self.nanoseconds.load(Ordering::Relaxed) + nanoseconds(limit));
        let mut state = self.state.lock();
        self.waiting_count.fetch_add(1, Ordering::Relaxed);
        if let Some(thread) = state.threads.get_mut(current()) {
            thread.status = Status::Waiting { object, until };
        }
        self.hand_over(&mut state);
        drop(state);
        self.waiting_count.fetch_sub(1, Ordering::Relaxed);
        until.is_none_or(|until| self.nanoseconds.load(Ordering::Relaxed) < until)
    }

    /// Waits for a time.
    pub fn sleep(&self, time: Duration) {
        self.wait(0, Some(time));
    }

    /// Makes threads ready that wait for `object`.
    pub fn notify(&self, object: usize, all: bool) {
        if self.waiting_count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut state = self.state.lock();
        let waits = |thread: &SimThread| matches!(thread.status, Status::Waiting { object: other, .. } if other == object);
        let mut waiting = state.those(waits);
        if !all && waiting.len() > 1 {
            let place = state.random.below(waiting.len() as u64) as usize;
            waiting = waiting.get(place).copied().into_iter().collect();
        }
        for index in waiting {
            if let Some(thread) = state.threads.get_mut(index) {
                thread.status = Status::Ready;
            }
        }
    }

    /// Passes the baton to a thread that is ready, and waits for it unless that is the current thread.
    fn hand_over(&self, state: &mut parking_lot::MutexGuard<'_, State>) {
        let index = current();
        if self.pass_on(state) != Some(index) {
            parking_lot::MutexGuard::unlocked(state, || self.await_turn(index));
        }
    }

    /// Passes the baton to a thread that is ready; returns its number.
    fn pass_on(&self, state: &mut State) -> Option<usize> {
        let now = self.nanoseconds.load(Ordering::Relaxed);
        let Some(next) = state.choose(now).or_else(|| self.choose_later(state)) else {
            self.fail_in(state, "all threads wait for each other forever");
            return None;
        };
        state.hash = mix(state.hash, next as u64);
        state.hand_overs_since_progress += 1;
        if state.hand_overs_since_progress > HAND_OVERS_MAX {
            self.fail_in(
                state,
                "no client operation has ended for 500,000 hand-overs: threads wait in a loop",
            );
            return None;
        }
        if next != current() {
            self.turn.store(next, Ordering::Release);
            if let Some(handle) = state.threads.get(next).and_then(|thread| thread.handle.as_ref()) {
                handle.unpark();
            }
        }
        Some(next)
    }

    /// No thread is ready: the time jumps to the end of the first wait.
    fn choose_later(&self, state: &mut State) -> Option<usize> {
        let alive = state.alive.iter().filter_map(|index| state.threads.get(*index));
        let ends = alive.filter_map(|thread| match thread.status {
            Status::Waiting { until, .. } => until,
            _ => None,
        });
        let first = ends.min()?;
        self.nanoseconds.fetch_max(first, Ordering::Relaxed);
        state.choose(self.nanoseconds.load(Ordering::Relaxed))
    }

    /// The simulated time.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    /// Advances the simulated time.
    pub fn advance(&self, by: Duration) {
        self.nanoseconds.fetch_add(nanoseconds(by), Ordering::Relaxed);
    }

    /// A number below `bound`, for what the world decides.
    pub fn below(&self, bound: u64) -> u64 {
        self.state.lock().random.below(bound)
    }

    /// Adds a number to the hash of the history.
    pub fn record(&self, number: u64) {
        let mut state = self.state.lock();
        state.hash = mix(state.hash, number);
    }

    /// Adds bytes to the hash of the history.
    pub fn record_bytes(&self, bytes: &[u8]) {
        self.record(xxh3_64(bytes));
    }

    /// A client operation has ended.
    pub fn note_progress(&self) {
        self.state.lock().hand_overs_since_progress = 0;
    }

    /// The hash of the history so far.
    pub fn hash(&self) -> u64 {
        self.state.lock().hash
    }

    /// Records a failure of the history, unless there is an earlier one.
    pub fn fail(&self, message: String) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.state.lock().failure.get_or_insert(message);
    }

    /// Whether the history has failed: clients stop.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// The first failure.
    pub fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// A failure after which no thread can continue: all stay parked.
    fn fail_in(&self, state: &mut State, message: &str) {
        let waiting = state.threads.iter().filter(|thread| thread.status != Status::Ended);
        let names: Vec<_> =
            waiting.map(|thread| format!("{} {:?}", thread.name, without_address(thread.status))).collect();
        self.has_failed.store(true, Ordering::Relaxed);
        state.failure.get_or_insert(format!("{message}: {}", names.join(", ")));
        self.turn.store(usize::MAX, Ordering::Release);
        self.stop();
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// Mixes a number into a hash.
pub fn mix(hash: u64, number: u64) -> u64 {
    (hash.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
