//! Publishes the tables of a job: syncs each file and gives it its name.
//!
//! A flush of the partitioned layout writes a small table for each of hundreds of partitions, and would mostly wait for their syncs. So
//! from its second table on, other threads sync the finished tables while the next ones are written. They live as long as the job. Without
//! workers ([`crate::Options::workers`]) each table is synced at once on the thread of the job, so that the same operations access the same
//! files in the same order.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
};

use super::job_context::JobContext;
use crate::{
    error::{Error, Result},
    file_name::FileName,
    store::runtime::JoinHandle,
    sync::{Mutex, Receiver, SyncSender, sync_channel},
    table::unpublished::UnpublishedTable,
};

/// A table that was added, and its number.
type Added = (u64, UnpublishedTable);

/// See the head of this file. It owns the tables that were added: if it is dropped before [`Publisher::finish`], they are removed.
pub(crate) struct Publisher<'a> {
    context: &'a JobContext<'a>,
    added_count: usize,
    sender: Option<SyncSender<Added>>,
    outcome: Arc<Mutex<Outcome>>,
    threads: Vec<Box<dyn JoinHandle>>,
}

/// The published tables, and the first failure.
#[derive(Default)]
struct Outcome {
    published: Vec<u64>,
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
        Self { context, added_count: 0, sender: None, outcome: Arc::default(), threads: Vec::new() }
    }

    /// Publishes table `number`, now or until [`Self::finish`].
    ///
    /// # Errors
    /// Those of the file system, also for earlier tables. The table is removed then.
    pub(crate) fn add(&mut self, number: u64, table: UnpublishedTable) -> Result<()> {
        self.added_count += 1;
        if self.added_count == 2 {
            self.start_threads();
        }
        let failure = self.outcome.lock().error.take();
        failure.map_or(Ok(()), Err)?;
        let unsent = match &self.sender {
            None => Some((number, table)),
            // Not sent if the threads have panicked.
            Some(sender) => sender.send((number, table)).err().map(|unsent| unsent.0),
        };
        unsent.map_or(Ok(()), |added| publish(added, &self.outcome))
    }

    /// Waits until all tables are published, and syncs the folder once for their names.
    ///
    /// # Errors
    /// Those of the file system; no table is left then.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.join();
        let (error, panic) = {
            let mut outcome = self.outcome.lock();
            (outcome.error.take(), outcome.panic.take())
        };
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        error.map_or(Ok(()), Err)?;
        if self.added_count > 0 {
            self.context.sync_folder()?;
        }
        self.outcome.lock().published.clear();
        Ok(())
    }

    /// Without a thread the job's own publishes the tables.
    fn start_threads(&mut self) {
        let Some(spawner) = self.context.spawner else { return };
        // Each table that waits for a sync has an open file.
        let (sender, receiver) = sync_channel(32);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..3 {
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
        for &number in &self.outcome.lock().published {
            let _ = self.context.folder.remove(&FileName::Table(number).path(self.context.folder));
        }
    }
}

fn publish((number, table): Added, outcome: &Mutex<Outcome>) -> Result<()> {
    table.publish()?;
    outcome.lock().published.push(number);
    Ok(())
}

fn publish_all(receiver: &Mutex<Receiver<Added>>, outcome: &Mutex<Outcome>) {
    loop {
        // The thread with the lock waits for the next table, the others for the lock.
        let received = receiver.lock().recv();
        let Ok(added) = received else { return };
        if outcome.lock().has_failed() {
            continue;
        }
        match catch_unwind(AssertUnwindSafe(|| publish(added, outcome))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => outcome.lock().error = Some(error),
            Err(panic) => outcome.lock().panic = Some(panic),
        }
    }
}
