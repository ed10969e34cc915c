//! Group commit: one thread at a time is the leader and commits its own item, or the items of all waiting threads.
//!
//! 1. A thread that finds no leader becomes the leader at once. Otherwise it enqueues its item and waits.
//! 2. Handing over the leadership takes longer than a buffered write, and the data that a writer touches is in the cache of its
//!    core. So a leader with a short item releases the leadership without reading the queue: later writers, usually the same
//!    thread with its next item, bypass the queue until the bypass budget is used up ([`BYPASS_WEIGHT`]).
//! 3. Then the first waiter becomes the leader. It is woken shortly before; as long as it has not run yet, writers may bypass it
//!    further, by items of the same weight again. It takes the items of all other waiters into its group.
//! 4. If the leadership is free for a while ([`FREE_COUNT_MAX`]), the first waiter takes it over. No thread has to wake it for that:
//!    it spins, then sleeps for short times.
//! 5. The leader of a long item (one that is synced) hands the leadership to the first waiter *before* it delivers results, so that
//!    the next group forms while the members of the last one wake up. No writer bypasses the queue then.
//! 6. A thread may take the leadership for as long as it likes ([`GroupQueue::lead`]). It waits for its turn in the queue, and the group of a leader
//!    ends before it.
//! 7. Items of one group keep their order of arrival; groups do not overlap.

mod sync;
mod waiter;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use sync::{AtomicI64, AtomicU32, Mutex, Ordering, lock, spin};
use waiter::Waiter;

/// How often a waiter checks its state before it sleeps.
const SPIN_COUNT: usize = if cfg!(loom) { 1 } else { 100 };
/// How often in a row a waiter finds the leadership free before it takes it over. A writer that prepares its next item needs this
/// time.
const FREE_COUNT_MAX: usize = if cfg!(loom) { 1 } else { 6 };
/// The first sleep of the first waiter; later ones are twice as long, up to 2 milliseconds.
const SLEEP_MIN: Duration = Duration::from_micros(100);
/// The bypass budget: the weight of items that may be committed before the first waiter.
const BYPASS_WEIGHT: i64 = if cfg!(loom) { 2 } else { 256 << 10 };
/// The first waiter is woken when this much of the budget is left.
const WAKE_WEIGHT: i64 = if cfg!(loom) { 1 } else { BYPASS_WEIGHT / 16 };

/// Flag of the leadership: a thread has it.
const HAS_LEADER: u32 = 1;
/// Flag of the leadership: a thread waits for it. Changed under the lock of the queue.
const HAS_WAITERS: u32 = 2;

/// The work that a thread submits.
pub(crate) trait Item {
    /// Whether committing it takes less time than waking a thread.
    fn is_quick(&self) -> bool;
    /// Whether the thread leads without an item to commit ([`GroupQueue::lead`]).
    fn leads(&self) -> bool {
        false
    }
    /// Its share of the bypass budget, in bytes; an item with few bytes counts more.
    fn weight(&self) -> u32;
}

/// Commits the items of a group. It must not panic: the leadership would not be released.
pub(crate) trait Committer<T, R> {
    /// Commits the leader's own item, if no other thread waits.
    fn commit_one(&self, own: T) -> R;
    /// Commits items in order of arrival and returns the results in the same order.
    fn commit_group(&self, group: Vec<T>) -> Vec<R>;
}

type Waiting<T, R> = VecDeque<Arc<Waiter<T, R>>>;

/// See the head of this file. `T` is the item of a thread, `R` its result.
pub(crate) struct GroupQueue<T, R> {
    /// [`HAS_LEADER`] and [`HAS_WAITERS`].
    leadership: AtomicU32,
    /// The rest of the bypass budget; negative in overtime.
    budget_left: AtomicI64,
    waiting: Mutex<Waiting<T, R>>,
}

/// The items that a leader has taken, and their waiters.
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

fn deliver<T, R>(waiters: &[Arc<Waiter<T, R>>], results: impl IntoIterator<Item = R>) {
    for (waiter, result) in waiters.iter().zip(results) {
        waiter.finish(result);
    }
}

impl<T: Item, R> GroupQueue<T, R> {
    pub(crate) fn new() -> Self {
        Self {
            leadership: AtomicU32::new(0),
            budget_left: AtomicI64::new(0),
            waiting: Mutex::new(VecDeque::new()),
        }
    }

    /// Submits `item` and returns its result. If this thread becomes the leader, `committer` commits.
    #[inline]
    pub(crate) fn submit(&self, item: T, committer: &impl Committer<T, R>) -> R {
        let before = self.leadership.fetch_or(HAS_LEADER, Ordering::Acquire);
        if before != 0 {
            return self.submit_with_others(item, before, committer);
        }
        self.commit_own(item, committer)
    }

    /// Takes the leadership when it is this thread's turn, until [`GroupQueue::release`], which any thread may call. `item` only waits
    /// ([`Item::leads`]).
    pub(crate) fn lead(&self, item: T) {
        debug_assert!(item.leads(), "a leader would commit the item");
        if self.leadership.fetch_or(HAS_LEADER, Ordering::Acquire) & HAS_LEADER != 0 {
            drop(self.wait(item));
        }
    }

    /// Ends the leadership that began with [`GroupQueue::lead`].
    pub(crate) fn release(&self) {
        self.release_leadership(false, 0);
    }

    /// Commits only the own item as the leader.
    #[inline]
    fn commit_own(&self, item: T, committer: &impl Committer<T, R>) -> R {
        let (is_quick, weight) = (item.is_quick(), item.weight());
        let result = committer.commit_one(item);
        self.release_leadership(is_quick, weight);
        result
    }

    /// As [`GroupQueue::submit`], if another thread leads or waits.
    fn submit_with_others(&self, item: T, before: u32, committer: &impl Committer<T, R>) -> R {
        if before & HAS_LEADER != 0 {
            return match self.wait(item) {
                Ok(result) => result,
                Err(item) => self.commit_all(item, committer),
            };
        }
        if item.is_quick() && self.budget_left.load(Ordering::Relaxed) > -BYPASS_WEIGHT {
            return self.commit_own(item, committer);
        }
        self.commit_all(item, committer)
    }

    /// Commits the own item and those of all waiters as the leader.
    fn commit_all(&self, item: T, committer: &impl Committer<T, R>) -> R {
        let mut waiting = lock(&self.waiting);
        // The size of a group bounds the time that a leader works for others.
        let joins = waiting.iter().take(256).take_while(|waiter| !waiter.leads);
        let count = joins.count();
        if count == 0 {
            drop(waiting);
            return self.commit_own(item, committer);
        }
        let group = Group::new(item, waiting.drain(..count));
        self.update_for_first(&waiting);
        if let Some(first) = waiting.front() {
            first.wake();
        }
        drop(waiting);
        let mut results = committer.commit_group(group.items).into_iter();
        let own = results.next().expect("a committer returns a result for each item");
        if group.is_quick {
            deliver(&group.waiters, results);
            self.release_leadership(true, 0);
        } else {
            self.hand_over_leadership();
            deliver(&group.waiters, results);
        }
        own
    }

    /// Releases the leadership or hands it over.
    #[inline]
    fn release_leadership(&self, is_quick: bool, weight: u32) {
        if self.leadership.compare_exchange(HAS_LEADER, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.release_to_waiters(is_quick, weight);
        }
    }

    /// As [`GroupQueue::release_leadership`], if a thread waits.
    fn release_to_waiters(&self, is_quick: bool, weight: u32) {
        if is_quick {
            let weight = i64::from(weight);
            let left = self.budget_left.fetch_sub(weight, Ordering::Relaxed) - weight;
            if left > 0 || left > -BYPASS_WEIGHT && !self.first_is_awake() {
                self.leadership.fetch_and(!HAS_LEADER, Ordering::Release);
                if left <= WAKE_WEIGHT && left + weight > WAKE_WEIGHT {
                    self.wake_first();
                }
                return;
            }
        }
        self.hand_over_leadership();
    }

    fn hand_over_leadership(&self) {
        let mut waiting = lock(&self.waiting);
        let first = waiting.pop_front();
        if first.is_none() {
            self.leadership.fetch_and(!HAS_LEADER, Ordering::Release);
        }
        self.update_for_first(&waiting);
        drop(waiting);
        if let Some(first) = first {
            first.promote();
        }
    }

    fn first_is_awake(&self) -> bool {
        lock(&self.waiting).front().is_some_and(|first| first.is_awake.load(Ordering::Relaxed))
    }

    fn wake_first(&self) {
        if let Some(first) = lock(&self.waiting).front() {
            first.wake();
        }
    }

    /// Updates budget and flags for a new first waiter.
    fn update_for_first(&self, waiting: &Waiting<T, R>) {
        match waiting.front() {
            Some(first) => self.budget_left.store(budget_before(first), Ordering::Relaxed),
            None => {
                self.leadership.fetch_and(!HAS_WAITERS, Ordering::Relaxed);
            }
        }
    }

    /// Waits until a leader has committed the item (`Ok`), or until this thread becomes the leader (`Err`).
    fn wait(&self, item: T) -> Result<R, T> {
        let (is_quick, leads) = (item.is_quick(), item.leads());
        let waiter = Arc::new(Waiter::new(item, is_quick, leads));
        let mut is_first = self.enqueue(&waiter);
        let mut sleep = SLEEP_MIN;
        loop {
            let mut free_count = 0;
            let mut spins = SPIN_COUNT;
            while spins > 0 {
                spins -= 1;
                if let Some(outcome) = waiter.outcome() {
                    return outcome;
                }
                if self.leadership.load(Ordering::Relaxed) & HAS_LEADER != 0 {
                    free_count = 0;
                } else {
                    free_count += 1;
                    if free_count >= FREE_COUNT_MAX
                        && let Some(item) = self.take_over(&waiter)
                    {
                        return Err(item);
                    }
                }
                spin();
            }
            waiter.sleep(is_first.then_some(sleep));
            if waiter.take_wakeup() {
                is_first = true;
                sleep = SLEEP_MIN;
            } else {
                sleep = Duration::from_millis(2).min(sleep * 2);
            }
        }
    }

    /// Enqueues a waiter; returns whether it is the first.
    fn enqueue(&self, waiter: &Arc<Waiter<T, R>>) -> bool {
        let mut waiting = lock(&self.waiting);
        let is_first = waiting.is_empty();
        if is_first {
            self.budget_left.store(budget_before(waiter), Ordering::Relaxed);
            self.leadership.fetch_or(HAS_WAITERS, Ordering::Relaxed);
        } else if !waiter.is_quick {
            self.budget_left.store(-BYPASS_WEIGHT, Ordering::Relaxed);
        }
        waiting.push_back(Arc::clone(waiter));
        is_first
    }

    /// Takes over a free leadership for the first waiter, and returns its item.
    fn take_over(&self, waiter: &Arc<Waiter<T, R>>) -> Option<T> {
        let mut waiting = lock(&self.waiting);
        if !waiting.front().is_some_and(|first| Arc::ptr_eq(first, waiter))
            || self.leadership.fetch_or(HAS_LEADER, Ordering::Acquire) & HAS_LEADER != 0
        {
            return None;
        }
        waiting.pop_front();
        self.update_for_first(&waiting);
        drop(waiting);
        waiter.take()
    }
}

/// The bypass budget before a waiter.
fn budget_before<T, R>(first: &Waiter<T, R>) -> i64 {
    if first.is_quick { BYPASS_WEIGHT } else { -BYPASS_WEIGHT }
}

#[cfg(test)]
mod tests;
