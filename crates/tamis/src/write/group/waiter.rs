//! A thread that waits for a leader, its item and its result.

use std::{mem, time::Duration};

use super::sync::{AtomicBool, Condition, Mutex, Ordering, lock};

enum State<T, R> {
    /// In the queue.
    Waiting(T),
    /// It leads the next group.
    Leading(T),
    /// A leader has the item.
    Taken,
    Done(R),
}

pub(super) struct Waiter<T, R> {
    pub(super) is_quick: bool,
    /// No other thread may take its item.
    pub(super) leads: bool,
    state: Mutex<State<T, R>>,
    /// Whether the wait has ended; can be read without the lock.
    has_ended: AtomicBool,
    /// Whether the thread is running, not sleeping.
    pub(super) is_awake: AtomicBool,
    /// Whether it was woken as the first waiter.
    is_woken: AtomicBool,
    changed: Condition,
}

impl<T, R> Waiter<T, R> {
    pub(super) fn new(item: T, is_quick: bool, leads: bool) -> Self {
        Self {
            is_quick,
            leads,
            state: Mutex::new(State::Waiting(item)),
            has_ended: AtomicBool::new(false),
            is_awake: AtomicBool::new(true),
            is_woken: AtomicBool::new(false),
            changed: Condition::new(),
        }
    }

    /// Takes the item of a waiter in the queue.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = lock(&self.state);
        match mem::replace(&mut *state, State::Taken) {
            State::Waiting(item) => Some(item),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Ends the wait with a result.
    pub(super) fn finish(&self, result: R) {
        self.end(State::Done(result));
    }

    /// Ends the wait with the leadership.
    pub(super) fn promote(&self) {
        if let Some(item) = self.take() {
            self.end(State::Leading(item));
        }
    }

    fn end(&self, state: State<T, R>) {
        let mut guard = lock(&self.state);
        *guard = state;
        self.has_ended.store(true, Ordering::Release);
        drop(guard);
        self.changed.notify();
    }

    /// Wakes the waiter if it sleeps, because it is the first.
    pub(super) fn wake(&self) {
        let guard = lock(&self.state);
        self.is_woken.store(true, Ordering::Release);
        drop(guard);
        self.changed.notify();
    }

    /// Whether it was woken since the last call.
    pub(super) fn take_wakeup(&self) -> bool {
        self.is_woken.load(Ordering::Acquire) && self.is_woken.swap(false, Ordering::AcqRel)
    }

    /// The result of the wait, if it has ended: a leader has committed the item (`Ok`), or the thread becomes the leader (`Err`).
    pub(super) fn outcome(&self) -> Option<Result<R, T>> {
        if !self.has_ended.load(Ordering::Acquire) {
            return None;
        }
        match mem::replace(&mut *lock(&self.state), State::Taken) {
            State::Done(result) => Some(Ok(result)),
            State::Leading(item) => Some(Err(item)),
            State::Waiting(_) | State::Taken => None,
        }
    }

    /// Sleeps until the wait ends, until it is woken, or for at most `limit`.
    pub(super) fn sleep(&self, limit: Option<Duration>) {
        let guard = lock(&self.state);
        if !self.has_ended.load(Ordering::Acquire) && !self.is_woken.load(Ordering::Acquire) {
            self.is_awake.store(false, Ordering::Relaxed);
            drop(self.changed.wait(guard, limit));
            self.is_awake.store(true, Ordering::Relaxed);
        }
    }
}
