//! A durable queue: producers append at the tail, one consumer takes jobs from the head, and deletes them in one batch with their
//! results.
//!
//! Run it: `cargo run --release -p tamis --example queue`

use std::error::Error;

use tamis::{Db, Durability, Keyspace, KeyspaceOptions, WriteBatch};

/// The only key of `finished`.
const END: &str = "end";

struct Queue {
    db: Db,
    jobs: Keyspace,
    results: Keyspace,
    /// The position after the last finished job, so that an empty queue does not use positions again.
    finished: Keyspace,
    tail: u64,
}

impl Queue {
    fn open(db: Db) -> tamis::Result<Self> {
        let jobs = db.get_or_create_keyspace("jobs", KeyspaceOptions::default())?;
        let results = db.get_or_create_keyspace("results", KeyspaceOptions::default())?;
        let finished = db.get_or_create_keyspace("finished", KeyspaceOptions::default())?;
        // Positions continue after the last job, which waits or is finished.
        let position = |bytes: &[u8]| <[u8; 8]>::try_from(bytes).ok().map(u64::from_be_bytes);
        let waiting = jobs.last()?.and_then(|(key, _)| position(&key)).map_or(0, |last| last + 1);
        let after_finished = finished.get(END)?.and_then(|end| position(&end)).unwrap_or(0);
        Ok(Self { db, jobs, results, finished, tail: waiting.max(after_finished) })
    }

    fn push(&mut self, job: &str) -> tamis::Result<()> {
        self.jobs.put(self.tail.to_be_bytes(), job)?;
        self.tail += 1;
        Ok(())
    }

    /// Runs up to `count` jobs; their results and their removal become durable together, or not at all.
    fn run(&self, count: usize) -> Result<usize, Box<dyn Error>> {
        let taken: Vec<_> = self.jobs.range(..).take(count).collect::<Result<_, _>>()?;
        let Some((last, _)) = taken.last() else { return Ok(0) };
        let mut batch = WriteBatch::new();
        for (key, job) in &taken {
            let result = String::from_utf8_lossy(job).to_uppercase();
            batch.put(&self.results, key, result)?;
        }
        // One range delete for all finished jobs.
        batch.delete_range(&self.jobs, ..=last.to_vec())?;
        let end = u64::from_be_bytes(last.as_ref().try_into()?) + 1;
        batch.put(&self.finished, END, end.to_be_bytes())?;
        self.db.write_with(batch, Durability::Synced)?;
        Ok(taken.len())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut queue = Queue::open(Db::open(folder.path())?)?;
    for number in 0..10_000 {
        queue.push(&format!("job {number}"))?;
    }
    let mut done = 0;
    for _ in 0..50 {
        done += queue.run(100)?;
    }
    println!("{done} jobs done, {} wait", queue.jobs.range(..).count());
    assert_eq!(done, 5_000);

    // The process stops and starts again: the queue continues where it was.
    let Queue { db, .. } = queue;
    db.close()?;
    let mut queue = Queue::open(Db::open(folder.path())?)?;
    queue.push("one more")?;
    while queue.run(1_000)? > 0 {}
    assert!(queue.jobs.first()?.is_none());
    assert_eq!(queue.results.range(..).count(), 10_001);
    let (_, last) = queue.results.last()?.ok_or("no results")?;
    assert_eq!(&*last, b"ONE MORE");
    println!("all 10,001 results are there, once");

    // An empty queue does not begin again at the first position, where it would replace results.
    let Queue { db, .. } = queue;
    db.close()?;
    let mut queue = Queue::open(Db::open(folder.path())?)?;
    queue.push("after all others")?;
    assert_eq!(queue.run(1)?, 1);
    assert_eq!(queue.results.range(..).count(), 10_002);
    Ok(())
}
