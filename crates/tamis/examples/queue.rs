//! A durable queue: producers append at the tail, one consumer takes jobs from the head, and deletes them in one batch with their
//! results.
//!
//! Run it: `cargo run --release -p tamis --example queue`

use std::error::Error;

use tamis::{Db, Durability, Keyspace, KeyspaceOptions, WriteBatch};

struct Queue {
    db: Db,
    jobs: Keyspace,
    results: Keyspace,
    tail: u64,
}

impl Queue {
    fn open(db: Db) -> tamis::Result<Self> {
        let jobs = db.get_or_create_keyspace("jobs", KeyspaceOptions::default())?;
        let results = db.get_or_create_keyspace("results", KeyspaceOptions::default())?;
        // Positions continue after the last existing job.
        let last = jobs.last()?.and_then(|(key, _)| <[u8; 8]>::try_from(&*key).ok());
        let tail = last.map_or(0, |key| u64::from_be_bytes(key) + 1);
        Ok(Self { db, jobs, results, tail })
    }

    fn push(&mut self, job: &str) -> tamis::Result<()> {
        self.jobs.put(self.tail.to_be_bytes(), job)?;
        self.tail += 1;
        Ok(())
    }

    /// Runs up to `count` jobs; their results and their removal become durable together, or not at all.
    fn run(&self, count: usize) -> Result<usize, Box<dyn Error>> {
        let taken: Vec<_> = self.jobs.range::<[u8; 8]>(..).take(count).collect::<Result<_, _>>()?;
        let Some((last, _)) = taken.last() else { return Ok(0) };
        let mut batch = WriteBatch::new();
        for (key, job) in &taken {
            let result = String::from_utf8_lossy(job).to_uppercase();
            batch.put(&self.results, key, result)?;
        }
        // One range delete for all finished jobs.
        batch.delete_range(&self.jobs, ..=last.to_vec())?;
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
    println!("{done} jobs done, {} wait", queue.jobs.range::<[u8; 8]>(..).count());
    assert_eq!(done, 5_000);

    // The process stops and starts again: the queue continues where it was.
    let Queue { db, .. } = queue;
    db.close()?;
    let mut queue = Queue::open(Db::open(folder.path())?)?;
    queue.push("one more")?;
    while queue.run(1_000)? > 0 {}
    assert!(queue.jobs.first()?.is_none());
    assert_eq!(queue.results.range::<[u8; 8]>(..).count(), 10_001);
    let (_, last) = queue.results.last()?.ok_or("no results")?;
    assert_eq!(&*last, b"ONE MORE");
    println!("all 10,001 results are there, once");
    Ok(())
}
