//! Group commit: of the threads that arrive together, one works for all.
//!
//! 1. A thread that finds no leader leads at once, with what waits already.
//! 2. A thread that finds a leader leaves its item in the queue and waits.
//! 3. A leader that is done takes along what waits by then, [`TAKEN_COUNT_MAX`] items at most, as long as they are quick: to
//!    hand over the lead takes longer than a buffered write.
//! 4. Else it passes the lead to the first that waits, *before* it hands out results, so that the next group forms while
//!    the members of the last wake up.
//! 5. Items of one group keep their order of arrival; groups do not overlap.
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
/// Items at most that a leader takes along after its own group.
const TAKEN_COUNT_MAX: usize = 64;

/// What a thread brings.
pub(crate) trait Item {
    /// Whether the work for it takes less time than to wake another thread.
    fn is_quick(&self) -> bool;
}

/// How groups are worked for.
pub(crate) trait Lead<T, R> {
    /// Works for the leader's own item, where nobody else waits.
    fn lead_alone(&self, own: T) -> R;
    /// Works for items in order of arrival; gives the results in the same order.
    fn lead_group(&self, group: Vec<T>) -> Vec<R>;
}

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
    is_quick: bool,
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

/// Those whose items a leader has taken, and the items.
struct Group<T, R> {
    waiters: Vec<Arc<Waiter<T, R>>>,
    items: Vec<T>,
}

impl<T, R> Group<T, R> {
    fn new(waiters: impl Iterator<Item = Arc<Waiter<T, R>>>) -> Self {
        let (waiters, items) = waiters.filter_map(|waiter| waiter.take().map(|item| (waiter, item))).unzip();
        Self { waiters, items }
    }
}

fn hand_out<T, R>(waiters: &[Arc<Waiter<T, R>>], results: impl IntoIterator<Item = R>) {
    for (waiter, result) in waiters.iter().zip(results) {
        waiter.set(State::Done(result));
    }
}

impl<T: Item, R> GroupQueue<T, R> {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::new(Queue { waiting: VecDeque::new(), has_leader: false }) }
    }

    /// Gives `item` to a group and returns its result. Where this thread leads, `lead` does the work.
    pub(crate) fn submit(&self, item: T, lead: &impl Lead<T, R>) -> R {
        let mut queue = lock(&self.queue);
        let item = if queue.has_leader {
            let is_quick = item.is_quick();
            let state = Mutex::new(State::Waiting(item));
            let waiter = Arc::new(Waiter { is_quick, state, changed: Condvar::new() });
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
            let own = lead.lead_alone(item);
            self.take_along(lead);
            return own;
        }
        let count = queue.waiting.len().min(GROUP_COUNT_MAX);
        let is_quick = item.is_quick() && queue.waiting.iter().take(count).all(|waiter| waiter.is_quick);
        let mut group = Group::new(queue.waiting.drain(..count));
        drop(queue);
        group.items.insert(0, item);
        let mut results = lead.lead_group(group.items).into_iter();
        let own = results.next().expect("a leader gives a result for each item");
        if is_quick {
            hand_out(&group.waiters, results);
            self.take_along(lead);
        } else {
            self.pass_lead();
            hand_out(&group.waiters, results);
        }
        own
    }

    /// Point 3, then point 4: the last that a leader does.
    fn take_along(&self, lead: &impl Lead<T, R>) {
        let mut left = TAKEN_COUNT_MAX;
        loop {
            let mut queue = lock(&self.queue);
            if queue.waiting.is_empty() {
                queue.has_leader = false;
                return;
            }
            let count = queue.waiting.iter().take(left).take_while(|waiter| waiter.is_quick).count();
            if count == 0 {
                drop(queue);
                return self.pass_lead();
            }
            left -= count;
            let group = Group::new(queue.waiting.drain(..count));
            drop(queue);
            let results = lead.lead_group(group.items);
            hand_out(&group.waiters, results);
        }
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
