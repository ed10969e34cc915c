#![expect(clippy::disallowed_methods, reason = "tests start their own threads")]

use super::{Committer, GroupQueue, Item};

/// The item of a thread that leads.
const LEADS: u64 = u64::MAX;

/// Even items are quick.
impl Item for u64 {
    fn is_quick(&self) -> bool {
        self.is_multiple_of(2)
    }

    fn leads(&self) -> bool {
        *self == LEADS
    }

    fn weight(&self) -> u32 {
        1
    }
}

/// Returns ten times each item.
#[cfg(loom)]
struct TenTimes;

#[cfg(loom)]
impl Committer<u64, u64> for TenTimes {
    fn commit_one(&self, own: u64) -> u64 {
        own * 10
    }

    fn commit_group(&self, group: Vec<u64>) -> Vec<u64> {
        group.into_iter().map(|item| item * 10).collect()
    }
}

#[cfg(loom)]
#[test]
fn loom_every_thread_gets_its_own_result() {
    use loom::{sync::Arc, thread};

    // Short items only, long items only, and a mix.
    for items in [[2, 4, 6], [1, 3, 5], [1, 2, 4]] {
        loom::model(move || {
            let queue = Arc::new(GroupQueue::new());
            let [first, others @ ..] = items;
            let threads = others.map(|item| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || assert_eq!(queue.submit(item, &TenTimes), item * 10))
            });
            assert_eq!(queue.submit(first, &TenTimes), first * 10);
            for thread in threads {
                thread.join().expect("a thread of the model failed");
            }
        });
    }
}

#[cfg(loom)]
#[test]
fn loom_a_thread_that_leads_excludes_all_others() {
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        thread,
    };

    struct Alone(AtomicBool);

    impl Committer<u64, u64> for Alone {
        fn commit_one(&self, own: u64) -> u64 {
            assert!(!self.0.swap(true, Ordering::Relaxed), "two leaders at once");
            thread::yield_now();
            self.0.store(false, Ordering::Relaxed);
            own
        }

        fn commit_group(&self, group: Vec<u64>) -> Vec<u64> {
            group.into_iter().map(|item| self.commit_one(item)).collect()
        }
    }

    for item in [1, 2] {
        loom::model(move || {
            let (queue, alone) = (Arc::new(GroupQueue::new()), Arc::new(Alone(AtomicBool::new(false))));
            let other = {
                let (queue, alone) = (Arc::clone(&queue), Arc::clone(&alone));
                thread::spawn(move || assert_eq!(queue.submit(item, &*alone), item))
            };
            queue.lead(LEADS);
            alone.commit_one(0);
            queue.release();
            other.join().expect("a thread of the model failed");
        });
    }
}

#[cfg(not(loom))]
mod threads {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicU64, Ordering},
        },
        thread,
    };

    use parking_lot::Mutex;

    use super::{super::BYPASS_WEIGHT, *};

    /// Adds seven, and records whether groups overlap and how many items they have in total.
    #[derive(Default)]
    struct Watching {
        is_led: AtomicBool,
        total: AtomicU64,
        alone: AtomicU64,
    }

    impl Watching {
        fn enter(&self, count: usize) {
            assert!(!self.is_led.swap(true, Ordering::SeqCst), "two leaders at once");
            self.total.fetch_add(count as u64, Ordering::SeqCst);
        }

        fn leave(&self) {
            self.is_led.store(false, Ordering::SeqCst);
        }
    }

    impl Committer<u64, u64> for Watching {
        fn commit_one(&self, own: u64) -> u64 {
            self.enter(1);
            self.alone.fetch_add(1, Ordering::SeqCst);
            self.leave();
            own + 7
        }

        fn commit_group(&self, group: Vec<u64>) -> Vec<u64> {
            self.enter(group.len());
            let results = group.into_iter().map(|item| item + 7).collect();
            self.leave();
            results
        }
    }

    #[test]
    fn threads_get_their_own_results_in_groups_that_do_not_overlap() {
        let queue = Arc::new(GroupQueue::<u64, u64>::new());
        let watching = Arc::new(Watching::default());
        let threads: Vec<_> = (0..8_u64)
            .map(|thread| {
                let (queue, watching) = (Arc::clone(&queue), Arc::clone(&watching));
                thread::spawn(move || {
                    for step in 0..2_000_u64 {
                        // Four threads submit quick items, two slow ones, two a mix.
                        let item = (thread * 1_000_000 + step) * 2;
                        let item = match thread {
                            0..4 => item,
                            4..6 => item + 1,
                            _ => item + step % 2,
                        };
                        assert_eq!(queue.submit(item, &*watching), item + 7);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a submitting thread failed");
        }
        assert_eq!(watching.total.load(Ordering::SeqCst), 8 * 2_000, "each item is led exactly once");
        let before = watching.alone.load(Ordering::SeqCst);
        queue.submit(1, &*watching);
        assert_eq!(watching.alone.load(Ordering::SeqCst), before + 1, "the leadership was released");
    }

    /// Holds the first item of the leader until a thread waits, and records the order of commits.
    struct Noting<'a> {
        queue: &'a GroupQueue<u64, u64>,
        order: Mutex<Vec<u64>>,
    }

    impl<'a> Noting<'a> {
        fn new(queue: &'a GroupQueue<u64, u64>) -> Self {
            Self { queue, order: Mutex::new(Vec::new()) }
        }

        fn wait_for_a_waiter(&self) {
            while self.queue.waiting.lock().is_empty() {
                thread::yield_now();
            }
        }
    }

    impl Committer<u64, u64> for Noting<'_> {
        fn commit_one(&self, own: u64) -> u64 {
            if self.order.lock().is_empty() {
                self.wait_for_a_waiter();
            }
            self.order.lock().push(own);
            own
        }

        fn commit_group(&self, group: Vec<u64>) -> Vec<u64> {
            self.order.lock().extend(&group);
            group
        }
    }

    #[test]
    fn threads_that_lead_exclude_all_others_and_get_their_turn() {
        let queue = GroupQueue::<u64, u64>::new();
        let watching = Watching::default();
        thread::scope(|scope| {
            for number in 0..6_u64 {
                let (queue, watching) = (&queue, &watching);
                scope.spawn(move || {
                    for step in 0..300 {
                        if number < 2 {
                            queue.lead(LEADS);
                            watching.enter(1);
                            thread::yield_now();
                            watching.leave();
                            queue.release();
                        } else {
                            assert_eq!(
                                queue.submit(step * 2 + number % 2, watching),
                                step * 2 + number % 2 + 7
                            );
                        }
                    }
                });
            }
        });
        assert_eq!(watching.total.load(Ordering::SeqCst), 6 * 300);
        assert_eq!(queue.leadership.load(Ordering::SeqCst), 0, "the leadership was released");
    }

    /// The waiter gets its result although the leader never submits again, with short and long items.
    #[test]
    fn a_waiter_takes_over_if_the_leader_does_not_return() {
        for (leader, waiter) in [(2, 4), (2, 3), (1, 4), (1, 3)] {
            let queue = GroupQueue::new();
            let noting = Noting::new(&queue);
            thread::scope(|scope| {
                scope.spawn(|| assert_eq!(queue.submit(leader, &noting), leader));
                while noting.queue.leadership.load(Ordering::SeqCst) == 0 {
                    thread::yield_now();
                }
                assert_eq!(queue.submit(waiter, &noting), waiter);
            });
            assert_eq!(*noting.order.lock(), [leader, waiter], "in order of arrival");
            assert_eq!(queue.leadership.load(Ordering::SeqCst), 0, "the leadership was released");
        }
    }

    /// A thread that never stops may bypass the others for one turn only, and never a slow item.
    #[test]
    fn a_running_thread_bypasses_waiters_at_most_once() {
        for (waiter, most) in [(4, 2 * BYPASS_WEIGHT), (3, 0)] {
            let queue = GroupQueue::new();
            let noting = Noting::new(&queue);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !noting.order.lock().contains(&waiter) {
                        queue.submit(2, &noting);
                    }
                });
                while noting.queue.leadership.load(Ordering::SeqCst) == 0 {
                    thread::yield_now();
                }
                queue.submit(waiter, &noting);
            });
            let order = noting.order.lock();
            let before = order.iter().position(|&item| item == waiter).expect("it was worked for") as i64;
            // The first one began before any thread waited.
            assert!(before <= 1 + most, "{before} went before an item that waited");
        }
    }
}
