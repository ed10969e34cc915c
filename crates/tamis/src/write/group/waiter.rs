//! A thread that waits for a leader: its item, and what becomes of it.

use std::{mem, time::Duration};

use super::sync::{AtomicBool, Condition, Mutex, Ordering, lock};

enum State<T, R> {
    /// In the queue.
    Waiting(T),
    /// Told to lead the next group.
    Leading(T),
    /// A leader has the item.
    Taken,
    Done(R),
}

pub(super) struct Waiter<T, R> {
    pub(super) is_quick: bool,
    state: Mutex<State<T, R>>,
    /// Whether the state says how it ends; may be looked at without the lock.
    has_ended: AtomicBool,
    /// Whether the thread runs and looks.
    pub(super) is_awake: AtomicBool,
    /// Whether the waiter is to look for itself from now on.
    is_called: AtomicBool,
    changed: Condition,
}

impl<T, R> Waiter<T, R> {
    pub(super) fn new(item: T, is_quick: bool) -> Self {
        Self {
            is_quick,
            state: Mutex::new(State::Waiting(item)),
            has_ended: AtomicBool::new(false),
            is_awake: AtomicBool::new(true),
            is_called: AtomicBool::new(false),
            changed: Condition::new(),
        }
    }

    /// Takes the item of a waiter that stands in the queue.
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
    pub(super) fn give(&self, result: R) {
        self.end(State::Done(result));
    }

    /// Ends the wait with the lead.
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

    /// Wakes the waiter if it sleeps, to look for itself.
    pub(super) fn call(&self) {
        let guard = lock(&self.state);
        self.is_called.store(true, Ordering::Release);
        drop(guard);
        self.changed.notify();
    }

    /// Whether it was called; the call is over then.
    pub(super) fn answer_call(&self) -> bool {
        self.is_called.load(Ordering::Acquire) && self.is_called.swap(false, Ordering::AcqRel)
    }

    /// The end of the wait, where it has come: a leader is done with the item (`Ok`), or the thread is to lead (`Err`).
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

    /// Sleeps until the wait ends, somebody calls, or (where there is a limit) so much time is over.
    pub(super) fn sleep(&self, limit: Option<Duration>) {
        let guard = lock(&self.state);
        if !self.has_ended.load(Ordering::Acquire) && !self.is_called.load(Ordering::Acquire) {
            self.is_awake.store(false, Ordering::Relaxed);
            drop(self.changed.wait(guard, limit));
            self.is_awake.store(true, Ordering::Relaxed);
        }
    }
}
