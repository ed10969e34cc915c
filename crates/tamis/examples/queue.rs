//! A durable queue with several producers and workers. A worker claims the first job by a transaction, works without one, and finishes the job by a
//! batch, with its result. After a crash the claimed jobs are claimed again.
//!
//! Run it: `cargo run --release -p tamis --example queue`

use std::{
    error::Error,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use tamis::{Db, Durability, Keyspace, KeyspaceOptions, Slice, WriteBatch};

/// The only key of `positions`.
const NEXT: &str = "next";

struct Queue {
    db: Db,
    jobs: Keyspace,
    claimed: Keyspace,
    results: Keyspace,
    /// The next position, so that a queue that was drained and opened again does not begin at 0.
    positions: Keyspace,
}

fn position_of(bytes: Option<&[u8]>) -> u64 {
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

impl Queue {
    fn open(db: Db) -> tamis::Result<Self> {
        let keyspace = |name| db.get_or_create_keyspace(name, KeyspaceOptions::default());
        let (jobs, claimed) = (keyspace("jobs")?, keyspace("claimed")?);
        let (results, positions) = (keyspace("results")?, keyspace("positions")?);
        let queue = Self { db, jobs, claimed, results, positions };
        // Their workers are gone: the jobs go back to their positions.
        queue.db.transact(|transaction| {
            for entry in transaction.iter(&queue.claimed) {
                let (position, job) = entry?;
                transaction.put(&queue.jobs, &position, &job)?;
                transaction.delete(&queue.claimed, &position)?;
            }
            tamis::Result::Ok(())
        })?;
        Ok(queue)
    }

    /// Appends jobs. Two producers that read the same position conflict, and one of them tries again.
    fn push(&self, jobs: &[String]) -> tamis::Result<()> {
        self.db.transact(|transaction| {
            let first = position_of(transaction.get(&self.positions, NEXT)?.as_deref());
            for (position, job) in (first..).zip(jobs) {
                transaction.put(&self.jobs, position.to_be_bytes(), job)?;
            }
            transaction.put(&self.positions, NEXT, (first + jobs.len() as u64).to_be_bytes())
        })
    }

    /// Claims the first job, for one worker only.
    fn claim(&self) -> tamis::Result<Option<(Slice, Slice)>> {
        self.db.transact(|transaction| {
            let Some((position, job)) = transaction.first(&self.jobs)? else {
                return tamis::Result::Ok(None);
            };
            transaction.delete(&self.jobs, &position)?;
            transaction.put(&self.claimed, &position, &job)?;
            Ok(Some((position, job)))
        })
    }

    /// The result and the end of the job are durable together, or not at all.
    fn finish(&self, position: &[u8], result: &str) -> tamis::Result<()> {
        let mut batch = WriteBatch::new();
        batch.put(&self.results, position, result)?;
        batch.delete(&self.claimed, position)?;
        self.db.write_with(batch, Durability::Buffered)
    }

    /// Works until no job is left; returns how many were done.
    fn work(&self) -> tamis::Result<u64> {
        let mut done = 0;
        while let Some((position, job)) = self.claim()? {
            self.finish(&position, &String::from_utf8_lossy(&job).to_uppercase())?;
            done += 1;
        }
        Ok(done)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let queue = Queue::open(Db::open(folder.path())?)?;
    let done = AtomicU64::new(0);
    thread::scope(|scope| -> tamis::Result<()> {
        let producers: Vec<_> = (0..2)
            .map(|producer| {
                let queue = &queue;
                scope.spawn(move || -> tamis::Result<()> {
                    for part in 0..50 {
                        let jobs = (0..50).map(|number| format!("job {producer}/{part}/{number}"));
                        queue.push(&jobs.collect::<Vec<_>>())?;
                    }
                    Ok(())
                })
            })
            .collect();
        producers.into_iter().try_for_each(|thread| thread.join().expect("a producer panicked"))?;
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(|| queue.work())).collect();
        for worker in workers {
            done.fetch_add(worker.join().expect("a worker panicked")?, Ordering::Relaxed);
        }
        Ok(())
    })?;
    println!("{} jobs done by two workers", done.load(Ordering::Relaxed));
    assert_eq!(done.into_inner(), 5_000);
    assert_eq!(queue.results.iter().count(), 5_000);

    // The process stops while a job is claimed: the job is there again.
    queue.push(&["interrupted".to_owned()])?;
    assert!(queue.claim()?.is_some());
    let Queue { db, .. } = queue;
    db.close()?;
    let queue = Queue::open(Db::open(folder.path())?)?;
    assert_eq!(queue.work()?, 1);

    // A queue that was drained does not begin again at the first position, where it would replace results.
    let Queue { db, .. } = queue;
    db.close()?;
    let queue = Queue::open(Db::open(folder.path())?)?;
    queue.push(&["after all others".to_owned()])?;
    assert_eq!(queue.work()?, 1);
    assert_eq!(queue.results.iter().count(), 5_002);
    let (_, last) = queue.results.last()?.ok_or("no results")?;
    assert_eq!(&*last, b"AFTER ALL OTHERS");
    println!("all results are there, once");
    Ok(())
}
