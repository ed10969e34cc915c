//! Publishes the tables of a job: syncs each file and gives it its name.
//!
//! A flush of the partitioned layout writes a small table for each of hundreds of partitions, and would mostly wait for their syncs. So from its
//! second table on, other threads sync the finished tables while the next ones are written. They live as long as the job. Without
//! workers ([`crate::Options::workers`]) each table is synced at once on the thread of the job, so that the same operations access the same files in the
//! same order.

use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use parking_lot::Mutex;

use super::job_context::JobContext;
use crate::{
    error::{Error, Result},
    file_name::FileName,
    runtime::JoinHandle,
    table::unpublished::UnpublishedTable,
};

/// Threads that sync tables of one job.
const THREAD_COUNT: usize = 3;
/// Finished tables that wait for a sync; each has an open file.
const WAITING_MAX: usize = 32;

/// See the head of this file. If it is dropped before [`Publisher::finish`], the tables that were added are removed.
pub(crate) struct Publisher<'a> {
    context: &'a JobContext<'a>,
    /// The files that were added.
    numbers: Vec<u64>,
    sender: Option<SyncSender<UnpublishedTable>>,
    outcome: Arc<Mutex<Outcome>>,
    threads: Vec<Box<dyn JoinHandle>>,
}

/// The first failure.
#[derive(Default)]
struct Outcome {
    error: Option<Error>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Outcome {
    const fn has_failed(&self) -> bool {
        self.error.is_some() || self.panic.is_some()
    }
}

impl<'a> Publisher<'a> {
    pub(crate) fn new(context: &'a JobContext<'a>) -> Self {
        Self { context, numbers: Vec::new(), sender: None, outcome: Arc::default(), threads: Vec::new() }
    }

    /// Publishes table `number`, now or until [`Self::finish`].
    ///
    /// # Errors
    /// Those of the file system, also for earlier tables. The table is discarded then.
    pub(crate) fn add(&mut self, number: u64, table: UnpublishedTable) -> Result<()> {
        self.numbers.push(number);
        if self.numbers.len() == 2 {
            self.start_threads();
        }
        let failure = self.outcome.lock().error.take();
        if let Some(error) = failure {
            table.discard();
            return Err(error);
        }
        match &self.sender {
            None => table.publish(),
            // The threads have panicked.
            Some(sender) => sender.send(table).or_else(|unsent| unsent.0.publish()),
        }
    }

    /// Waits until all tables are published, and syncs the folder once for their names.
    ///
    /// # Errors
    /// Those of the file system; no table is left then.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.join();
        let Outcome { error, panic } = mem::take(&mut *self.outcome.lock());
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        error.map_or(Ok(()), Err)?;
        if !self.numbers.is_empty() {
            self.context.sync_folder()?;
        }
        self.numbers.clear();
        Ok(())
    }

    /// Without a thread the job's own publishes the tables.
    fn start_threads(&mut self) {
        let Some(spawner) = self.context.spawner else { return };
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..THREAD_COUNT {
            let (receiver, outcome) = (Arc::clone(&receiver), Arc::clone(&self.outcome));
            let work = Box::new(move || publish_all(&receiver, &outcome));
            self.threads.extend(spawner.spawn("tamis-sync", work).ok());
        }
        self.sender = (!self.threads.is_empty()).then_some(sender);
    }

    fn join(&mut self) {
        self.sender = None;
        self.threads.clear();
    }
}

impl Drop for Publisher<'_> {
    fn drop(&mut self) {
        self.join();
        // One that can't be removed is deleted at the next open.
        for &number in &self.numbers {
            let _ = self.context.vfs.remove(&FileName::Table(number).path(self.context.folder));
        }
    }
}

fn publish_all(receiver: &Mutex<Receiver<UnpublishedTable>>, outcome: &Mutex<Outcome>) {
    loop {
        // The thread with the lock waits for the next table, the others for the lock.
        let received = receiver.lock().recv();
        let Ok(table) = received else { return };
        if outcome.lock().has_failed() {
            table.discard();
            continue;
        }
        match catch_unwind(AssertUnwindSafe(|| table.publish())) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => outcome.lock().error = Some(error),
            Err(panic) => outcome.lock().panic = Some(panic),
        }
    }
}
