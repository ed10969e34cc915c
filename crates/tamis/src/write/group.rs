//! Group commit: one thread at a time works, for itself or for all that wait.
//!
//! 1. A thread that finds no leader leads at once. One that finds a leader leaves its item in the queue and waits.
//! 2. To hand over the lead takes longer than a buffered write, and what one writer touches lies in the cache of its core. So
//!    a leader with a quick item lets the lead go without a look at those who wait: writers that come meanwhile, mostly
//!    itself with its next item, go first until the turn of those who wait has come ([`TURN_WEIGHT`]).
//! 3. Then the lead goes to the first that waits. It was called shortly before, and as long as it still sleeps the turn goes on
//!    ([`OVERTIME_WEIGHT`]). It takes along the items of all others that wait.
//! 4. Where the lead is free for a while ([`PATIENCE`]), the first that waits steps in. Nobody has to wake it for that: it spins, then
//!    sleeps for short times.
//! 5. Where an item is not quick (it is synced), its leader passes the lead to the first that waits, *before* it hands out results,
//!    so that the next group forms while the members of the last wake up; and nobody goes before it.
//! 6. Items of one group keep their order of arrival; groups do not overlap.

mod sync;
mod waiter;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use sync::{AtomicI64, AtomicU32, Mutex, Ordering, lock, spin};
use waiter::Waiter;

/// How often a waiter looks before it sleeps.
const SPIN_COUNT: usize = if cfg!(loom) { 1 } else { 100 };
/// How often in a row a waiter finds the lead free before it steps in: more often where somebody only draws its next key.
const PATIENCE: usize = if cfg!(loom) { 1 } else { 6 };
/// How long the first that waits sleeps at first, and at most.
const NAP_MIN: Duration = Duration::from_micros(100);
const NAP_MAX: Duration = Duration::from_millis(2);
/// Members of a group at most, so that no leader works for others without end.
const GROUP_COUNT_MAX: usize = 256;
/// The weight of the items that go before one that waits.
const TURN_WEIGHT: i64 = if cfg!(loom) { 2 } else { 256 << 10 };
/// The first that waits is called when so much of the turn is left.
const CALL_WEIGHT: i64 = if cfg!(loom) { 1 } else { TURN_WEIGHT / 16 };

/// What may go before one that waits after that, as long as it sleeps: the lead is of no use to it then.
const OVERTIME_WEIGHT: i64 = TURN_WEIGHT;

/// Flag of the lead: somebody has it.
const LED: u32 = 1;
/// Flag of the lead: somebody waits. Changed under the lock of the queue.
const AWAITED: u32 = 2;

/// What a thread brings.
pub(crate) trait Item {
    /// Whether the work for it takes less time than to wake another thread.
    fn is_quick(&self) -> bool;
    /// How much of a turn it takes: bytes, or more where it has few.
    fn weight(&self) -> u32;
}

/// How groups are worked for.
pub(crate) trait Committer<T, R> {
    /// Works for the leader's own item, where nobody else waits.
    fn commit_one(&self, own: T) -> R;
    /// Works for items in order of arrival; gives the results in the same order.
    fn commit_group(&self, group: Vec<T>) -> Vec<R>;
}

type Waiting<T, R> = VecDeque<Arc<Waiter<T, R>>>;

/// See the head of this file. `T` is what each thread brings, `R` what it gets.
pub(crate) struct GroupQueue<T, R> {
    /// [`LED`] and [`AWAITED`].
    lead: AtomicU32,
    /// The weight that may still go before those who wait; negative in overtime.
    turn_left: AtomicI64,
    waiting: Mutex<Waiting<T, R>>,
}

/// Those whose items a leader has taken, and the items.
struct Group<T, R> {
    waiters: Vec<Arc<Waiter<T, R>>>,
    items: Vec<T>,
    is_quick: bool,
}

impl<T: Item, R> Group<T, R> {
    fn new(own: T, waiters: impl Iterator<Item = Arc<Waiter<T, R>>>) -> Self {
        let mut is_quick = own.is_quick();
        let mut items = vec![own];
        let waiters = waiters.filter(|waiter| {
            let item = waiter.take();
            is_quick &= waiter.is_quick;
            item.map(|item| items.push(item)).is_some()
        });
        let waiters = waiters.collect();
        Self { waiters, items, is_quick }
    }
}

fn hand_out<T, R>(waiters: &[Arc<Waiter<T, R>>], results: impl IntoIterator<Item = R>) {
    for (waiter, result) in waiters.iter().zip(results) {
        waiter.give(result);
    }
}

impl<T: Item, R> GroupQueue<T, R> {
    pub(crate) fn new() -> Self {
        Self { lead: AtomicU32::new(0), turn_left: AtomicI64::new(0), waiting: Mutex::new(VecDeque::new()) }
    }

    /// Gives `item` to a group and returns its result. Where this thread leads, `lead` does the work.
    #[inline]
    pub(crate) fn submit(&self, item: T, committer: &impl Committer<T, R>) -> R {
        let before = self.lead.fetch_or(LED, Ordering::Acquire);
        if before != 0 {
            return self.submit_with_others(item, before, committer);
        }
        self.lead_own(item, committer)
    }

    /// Leads for the own item alone.
    #[inline]
    fn lead_own(&self, item: T, committer: &impl Committer<T, R>) -> R {
        let (is_quick, weight) = (item.is_quick(), item.weight());
        let result = committer.commit_one(item);
        self.leave(is_quick, weight);
        result
    }

    /// As [`GroupQueue::submit`], where somebody leads or waits.
    fn submit_with_others(&self, item: T, before: u32, committer: &impl Committer<T, R>) -> R {
        if before & LED != 0 {
            return match self.wait(item) {
                Ok(result) => result,
                Err(item) => self.lead_all(item, committer),
            };
        }
        if item.is_quick() && self.turn_left.load(Ordering::Relaxed) > -OVERTIME_WEIGHT {
            return self.lead_own(item, committer);
        }
        self.lead_all(item, committer)
    }

    /// Leads, with the items of all that wait behind the own.
    fn lead_all(&self, item: T, committer: &impl Committer<T, R>) -> R {
        let mut waiting = lock(&self.waiting);
        let count = waiting.len().min(GROUP_COUNT_MAX);
        if count == 0 {
            drop(waiting);
            return self.lead_own(item, committer);
        }
        let group = Group::new(item, waiting.drain(..count));
        self.note_first(&waiting);
        if let Some(first) = waiting.front() {
            first.call();
        }
        drop(waiting);
        let mut results = committer.commit_group(group.items).into_iter();
        let own = results.next().expect("a leader gives a result for each item");
        if group.is_quick {
            hand_out(&group.waiters, results);
            self.leave(true, 0);
        } else {
            self.pass_lead();
            hand_out(&group.waiters, results);
        }
        own
    }

    /// The end of leading: lets the lead go or passes it.
    #[inline]
    fn leave(&self, is_quick: bool, weight: u32) {
        if self.lead.compare_exchange(LED, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.leave_to_others(is_quick, weight);
        }
    }

    /// As [`GroupQueue::leave`], where somebody waits.
    fn leave_to_others(&self, is_quick: bool, weight: u32) {
        if is_quick {
            let weight = i64::from(weight);
            let left = self.turn_left.fetch_sub(weight, Ordering::Relaxed) - weight;
            if left > 0 || left > -OVERTIME_WEIGHT && !self.first_is_awake() {
                self.lead.fetch_and(!LED, Ordering::Release);
                if left <= CALL_WEIGHT && left + weight > CALL_WEIGHT {
                    self.call_first();
                }
                return;
            }
        }
        self.pass_lead();
    }

    fn pass_lead(&self) {
        let mut waiting = lock(&self.waiting);
        let first = waiting.pop_front();
        if first.is_none() {
            self.lead.fetch_and(!LED, Ordering::Release);
        }
        self.note_first(&waiting);
        drop(waiting);
        if let Some(first) = first {
            first.promote();
        }
    }

    fn first_is_awake(&self) -> bool {
        lock(&self.waiting).front().is_some_and(|first| first.is_awake.load(Ordering::Relaxed))
    }

    fn call_first(&self) {
        if let Some(first) = lock(&self.waiting).front() {
            first.call();
        }
    }

    /// What follows for the lead from another first in the queue.
    fn note_first(&self, waiting: &Waiting<T, R>) {
        match waiting.front() {
            Some(first) => self.turn_left.store(turn_before(first), Ordering::Relaxed),
            None => {
                self.lead.fetch_and(!AWAITED, Ordering::Relaxed);
            }
        }
    }

    /// Waits until a leader is done with the item (`Ok`), or it is this thread's turn to lead (`Err`).
    fn wait(&self, item: T) -> Result<R, T> {
        let is_quick = item.is_quick();
        let waiter = Arc::new(Waiter::new(item, is_quick));
        let mut is_first = self.join(&waiter);
        let mut nap = NAP_MIN;
        loop {
            let mut free_count = 0;
            let mut spins = SPIN_COUNT;
            while spins > 0 {
                spins -= 1;
                if let Some(outcome) = waiter.outcome() {
                    return outcome;
                }
                if self.lead.load(Ordering::Relaxed) & LED != 0 {
                    free_count = 0;
                } else {
                    free_count += 1;
                    if free_count >= PATIENCE
                        && let Some(item) = self.step_in(&waiter)
                    {
                        return Err(item);
                    }
                }
                spin();
            }
            waiter.sleep(is_first.then_some(nap));
            if waiter.answer_call() {
                is_first = true;
                nap = NAP_MIN;
            } else {
                nap = NAP_MAX.min(nap * 2);
            }
        }
    }

    /// Puts a waiter into the queue; says whether it is the first.
    fn join(&self, waiter: &Arc<Waiter<T, R>>) -> bool {
        let mut waiting = lock(&self.waiting);
        let is_first = waiting.is_empty();
        if is_first {
            self.turn_left.store(turn_before(waiter), Ordering::Relaxed);
            self.lead.fetch_or(AWAITED, Ordering::Relaxed);
        } else if !waiter.is_quick {
            self.turn_left.store(-OVERTIME_WEIGHT, Ordering::Relaxed);
        }
        waiting.push_back(Arc::clone(waiter));
        is_first
    }

    /// Takes a free lead for the first that waits, and gives its item back.
    fn step_in(&self, waiter: &Arc<Waiter<T, R>>) -> Option<T> {
        let mut waiting = lock(&self.waiting);
        if !waiting.front().is_some_and(|first| Arc::ptr_eq(first, waiter))
            || self.lead.fetch_or(LED, Ordering::Acquire) & LED != 0
        {
            return None;
        }
        waiting.pop_front();
        self.note_first(&waiting);
        drop(waiting);
        waiter.take()
    }
}

/// The weight that may go before one that waits.
fn turn_before<T, R>(first: &Waiter<T, R>) -> i64 {
    if first.is_quick { TURN_WEIGHT } else { -OVERTIME_WEIGHT }
}

#[cfg(test)]
mod tests;
