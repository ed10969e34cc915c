#![expect(clippy::disallowed_methods, reason = "tests start their own threads")]

#[cfg(loom)]
#[test]
fn loom_every_thread_gets_the_result_of_its_own_item() {
    use loom::{sync::Arc, thread};

    use super::GroupQueue;
    loom::model(|| {
        let queue = Arc::new(GroupQueue::new());
        let submit = |queue: &GroupQueue<u64, u64>, item| {
            queue.submit(item, |own, rest| (own * 10, rest.into_iter().map(|item| item * 10).collect()))
        };
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|item| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || assert_eq!(submit(&queue, item), item * 10))
            })
            .collect();
        assert_eq!(submit(&queue, 3), 30);
        for thread in threads {
            thread.join().expect("a thread of the model failed");
        }
    });
}

#[cfg(not(loom))]
#[test]
fn threads_get_their_own_results_in_groups_that_do_not_overlap() {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicU64, Ordering},
        },
        thread,
    };

    use super::GroupQueue;

    let queue = Arc::new(GroupQueue::<u64, u64>::new());
    let is_led = Arc::new(AtomicBool::new(false));
    let total = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..8_u64)
        .map(|thread| {
            let (queue, is_led, total) = (Arc::clone(&queue), Arc::clone(&is_led), Arc::clone(&total));
            thread::spawn(move || {
                for step in 0..2_000_u64 {
                    let item = thread * 1_000_000 + step;
                    let result = queue.submit(item, |own, rest| {
                        assert!(!is_led.swap(true, Ordering::SeqCst), "two leaders at once");
                        total.fetch_add(1 + rest.len() as u64, Ordering::SeqCst);
                        let results = rest.into_iter().map(|item| item + 7).collect();
                        is_led.store(false, Ordering::SeqCst);
                        (own + 7, results)
                    });
                    assert_eq!(result, item + 7);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a submitting thread failed");
    }
    assert_eq!(total.load(Ordering::SeqCst), 8 * 2_000, "each item is led exactly once");
}
