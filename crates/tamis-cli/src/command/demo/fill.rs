//! Loads the demo's data: the paths below a folder, and sensor events. Keeps samples of both for the reads.

use std::{
    fs::{self, Metadata},
    path::{Path, PathBuf},
    time::SystemTime,
};

use indicatif::ProgressBar;
use tamis::{Db, Durability, KEY_LENGTH_MAX, Keyspace, WriteBatch};
use tamis_workload::{Events, SplitMix64, fill_value};

use super::{Demo, DemoArgs, StepResult};
use crate::{bytes::os_bytes, failure::Failure, interrupt, progress};

/// Entries per batch.
const BATCH_ENTRY_COUNT: usize = 500;
/// The seed of events and samples.
const SEED: u64 = 42;

/// The keys of an event and of its successor.
pub(super) type EventPair = ([u8; 16], [u8; 16]);

/// Keys that are in the store.
pub(super) struct Samples {
    /// Some of the paths, unsorted.
    pub(super) paths: Vec<Vec<u8>>,
    /// Some events, each with its successor.
    pub(super) events: Vec<EventPair>,
    pub(super) path_count: u64,
    pub(super) event_count: u64,
    /// Paths that could not be read.
    pub(super) skipped_count: u64,
}

impl Demo {
    /// Loads both keyspaces and flushes them.
    pub(super) fn fill(&mut self, args: &DemoArgs) -> Result<Samples, Failure> {
        let mut paths = PathWalker::new(args.reads as usize);
        self.write_step("load paths", |demo| {
            let bar = progress::items(None);
            bar.set_message("loading paths");
            let mut batches = BatchWriter::new(&demo.db, &demo.paths, bar);
            paths.load(&args.paths, &mut batches)?;
            batches.finish()
        })?;
        let mut events = Vec::new();
        self.write_step("load sensor events", |demo| {
            let bar = progress::items(Some(args.events));
            bar.set_message("loading events");
            let mut batches = BatchWriter::new(&demo.db, &demo.events, bar);
            events = load_events(args, &mut batches)?;
            batches.finish()
        })?;
        let stored_count = paths.count + args.events;
        self.write_step("flush memtables, sync", |demo| {
            demo.db.flush()?;
            demo.db.persist(Durability::Synced)?;
            Ok(StepResult { operation_count: 1, entry_count: stored_count })
        })?;
        if paths.samples.is_empty() {
            return Err(Failure::Input(format!(
                "{}: no readable file or folder; give another folder with --paths",
                args.paths.display()
            )));
        }
        Ok(Samples {
            paths: paths.samples,
            events,
            path_count: paths.count,
            event_count: args.events,
            skipped_count: paths.skipped_count,
        })
    }
}

/// Writes entries in batches.
struct BatchWriter<'a> {
    db: &'a Db,
    keyspace: &'a Keyspace,
    bar: ProgressBar,
    batch: WriteBatch,
    pending_count: usize,
    count: u64,
}

impl<'a> BatchWriter<'a> {
    fn new(db: &'a Db, keyspace: &'a Keyspace, bar: ProgressBar) -> Self {
        Self { db, keyspace, bar, batch: WriteBatch::new(), pending_count: 0, count: 0 }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.batch.put(self.keyspace, key, value)?;
        self.pending_count += 1;
        self.count += 1;
        if self.pending_count < BATCH_ENTRY_COUNT { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), Failure> {
        if interrupt::is_interrupted() {
            return Err(Failure::Interrupted("interrupted while loading".to_owned()));
        }
        self.db.write(std::mem::replace(&mut self.batch, WriteBatch::new()))?;
        self.pending_count = 0;
        self.bar.set_position(self.count);
        Ok(())
    }

    fn finish(mut self) -> Result<StepResult, Failure> {
        self.write()?;
        self.bar.finish_and_clear();
        Ok(StepResult { operation_count: self.count, entry_count: self.count })
    }
}

/// Walks a folder tree and keeps a uniform sample of its paths.
struct PathWalker {
    samples: Vec<Vec<u8>>,
    sample_count_max: usize,
    random: SplitMix64,
    count: u64,
    skipped_count: u64,
}

impl PathWalker {
    fn new(sample_count_max: usize) -> Self {
        let random = SplitMix64::new(SEED);
        Self { samples: Vec::new(), sample_count_max, random, count: 0, skipped_count: 0 }
    }

    /// Loads every path below `root`. Does not follow symbolic links; skips and counts unreadable files and folders.
    fn load(&mut self, root: &Path, batches: &mut BatchWriter<'_>) -> Result<(), Failure> {
        let mut folders: Vec<PathBuf> = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                self.skipped_count += 1;
                continue;
            };
            for entry in entries {
                let Some((path, metadata)) =
                    entry.ok().and_then(|entry| Some((entry.path(), entry.metadata().ok()?)))
                else {
                    self.skipped_count += 1;
                    continue;
                };
                let Some(key) = os_bytes(path.as_os_str()).filter(|key| key.len() <= KEY_LENGTH_MAX) else {
                    self.skipped_count += 1;
                    continue;
                };
                batches.put(key, describe(&metadata).as_bytes())?;
                self.sample(key);
                if metadata.is_dir() {
                    folders.push(path);
                }
            }
        }
        Ok(())
    }

    /// Reservoir sampling: every path has the same probability of being kept.
    fn sample(&mut self, key: &[u8]) {
        self.count += 1;
        if self.samples.len() < self.sample_count_max {
            self.samples.push(key.to_vec());
        } else if let Some(sample) = self.samples.get_mut(self.random.below(self.count) as usize) {
            key.clone_into(sample);
        }
    }
}

fn describe(metadata: &Metadata) -> String {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    format!("size={} mtime={}", metadata.len(), modified.unwrap_or_default().as_secs())
}

/// Loads the events; returns every n-th event with its successor.
fn load_events(args: &DemoArgs, batches: &mut BatchWriter<'_>) -> Result<Vec<EventPair>, Failure> {
    let distance = (args.events / args.reads).max(1);
    let mut samples = Vec::new();
    let mut value = vec![0; args.value_bytes as usize];
    let mut before = None;
    for (index, event) in (0..args.events).zip(Events::new(SEED)) {
        let key = event.key();
        fill_value(index, &mut value);
        batches.put(&key, &value)?;
        if let Some(before) = before.take() {
            samples.push((before, key));
        }
        if index % distance == 0 {
            before = Some(key);
        }
    }
    // The reads are in random order.
    let mut random = SplitMix64::new(SEED);
    for index in (1..samples.len()).rev() {
        samples.swap(index, random.below(index as u64 + 1) as usize);
    }
    samples.truncate(args.reads as usize);
    Ok(samples)
}
