//! Group commit: of the threads that arrive together, one works for all.
//!
//! 1. A thread that finds no leader leads at once, with what waits already.
//! 2. A thread that finds a leader leaves its item in the queue and waits.
//! 3. A leader that is done passes the lead to the first that waits, *before* it hands out results, so that the next
//!    group forms while the members of the last wake up.
//! 4. Items of one group keep their order of arrival; groups do not overlap.
//!
//! A follower spins shortly before it sleeps: a buffered write takes less time than waking a thread.

use std::{collections::VecDeque, hint, mem, sync::Arc};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use parking_lot::{Condvar, Mutex, MutexGuard};

/// How often a follower looks before it sleeps.
const SPIN_COUNT: usize = if cfg!(loom) { 0 } else { 200 };
/// Members of a group at most, so that no leader works for others without end.
const GROUP_COUNT_MAX: usize = 256;

enum State<T, R> {
    /// In the queue.
    Waiting(T),
    /// Told to lead the next group.
    Leading(T),
    /// A leader has the item.
    Taken,
    Done(R),
}

struct Waiter<T, R> {
    state: Mutex<State<T, R>>,
    changed: Condvar,
}

struct Queue<T, R> {
    waiting: VecDeque<Arc<Waiter<T, R>>>,
    has_leader: bool,
}

/// See the head of this file. `T` is what each thread brings, `R` what it gets.
pub(crate) struct GroupQueue<T, R> {
    queue: Mutex<Queue<T, R>>,
}

#[cfg(not(loom))]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(loom)]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread of the model panics while it holds the lock")
}

#[cfg(not(loom))]
fn wait<'a, T>(condition: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(&mut guard);
    guard
}

#[cfg(loom)]
fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).expect("no thread of the model panics while it holds the lock")
}

impl<T, R> Waiter<T, R> {
    fn set(&self, state: State<T, R>) {
        *lock(&self.state) = state;
        self.changed.notify_one();
    }

    /// Takes the item of a waiter that stands in the queue.
    fn take(&self) -> Option<T> {
        let mut state = lock(&self.state);
        match mem::replace(&mut *state, State::Taken) {
            State::Waiting(item) => Some(item),
            other => {
                *state = other;
                None
            }
        }
    }

    /// From waiting to leading.
    fn promote(&self) {
        if let Some(item) = self.take() {
            self.set(State::Leading(item));
        }
    }

    /// Waits until a leader is done with the item (`Ok`), or it is this thread's turn to lead (`Err`).
    fn outcome(&self) -> Result<R, T> {
        let mut spins = SPIN_COUNT;
        let mut state = lock(&self.state);
        loop {
            match mem::replace(&mut *state, State::Taken) {
                State::Done(result) => return Ok(result),
                State::Leading(item) => return Err(item),
                other => *state = other,
            }
            if spins > 0 {
                spins -= 1;
                drop(state);
                hint::spin_loop();
                state = lock(&self.state);
            } else {
                state = wait(&self.changed, state);
            }
        }
    }
}

impl<T, R> GroupQueue<T, R> {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::new(Queue { waiting: VecDeque::new(), has_leader: false }) }
    }

    /// Gives `item` to a group and returns its result. `lead` is called where this thread leads: with its own item and
    /// those of its followers in order of arrival; it returns the results in the same order.
    pub(crate) fn submit(&self, item: T, lead: impl FnOnce(T, Vec<T>) -> (R, Vec<R>)) -> R {
        let mut queue = lock(&self.queue);
        let item = if queue.has_leader {
            let waiter =
                Arc::new(Waiter { state: Mutex::new(State::Waiting(item)), changed: Condvar::new() });
            queue.waiting.push_back(Arc::clone(&waiter));
            drop(queue);
            let item = match waiter.outcome() {
                Ok(result) => return result,
                Err(item) => item,
            };
            queue = lock(&self.queue);
            item
        } else {
            queue.has_leader = true;
            item
        };
        if queue.waiting.is_empty() {
            drop(queue);
            let (own, _) = lead(item, Vec::new());
            self.pass_lead();
            return own;
        }
        let count = queue.waiting.len().min(GROUP_COUNT_MAX);
        let members: Vec<_> = queue.waiting.drain(..count).collect();
        drop(queue);
        let (followers, items): (Vec<_>, Vec<_>) =
            members.into_iter().filter_map(|waiter| waiter.take().map(|item| (waiter, item))).unzip();
        let (own, results) = lead(item, items);
        self.pass_lead();
        for (follower, result) in followers.iter().zip(results) {
            follower.set(State::Done(result));
        }
        own
    }

    fn pass_lead(&self) {
        let mut queue = lock(&self.queue);
        match queue.waiting.pop_front() {
            Some(next) => {
                drop(queue);
                next.promote();
            }
            None => queue.has_leader = false,
        }
    }
}

#[cfg(test)]
mod tests;
