//! Delays writers while flushes and compactions lag behind ([`super::back_pressure`]), and stops them while a keyspace has the
//! maximum number of immutable memtables or of runs at L0, or while an ingest into it runs.

use std::sync::{Arc, atomic::Ordering};

use super::back_pressure::IMMUTABLE_COUNT_MAX;
use crate::{
    batch::WriteBatch,
    compaction::background_jobs::BackgroundJobs,
    error::{Error, Result},
    observe::events::Event,
    store::{keyspace_state::KeyspaceState, parts::StoreParts},
};

/// See the head of this file.
pub(super) struct WriteThrottle {
    pub(super) store: Arc<StoreParts>,
    pub(super) background: Arc<BackgroundJobs>,
}

impl WriteThrottle {
    /// Whether a write to `keyspace` may have to wait.
    #[inline]
    pub(super) fn is_active(&self, keyspace: &KeyspaceState) -> bool {
        keyspace.may_delay_writers() || self.store.back_pressure.is_throttling()
    }

    /// Waits until a batch may be written.
    ///
    /// # Errors
    /// [`Error::KeyspaceDropped`]; as [`crate::store::context::StoreContext::check_writable`]; the error of a flush or compaction for which the writer
    /// waited.
    pub(super) fn wait(&self, batch: &WriteBatch) -> Result<()> {
        for id in batch.keyspaces() {
            let keyspaces = self.store.keyspaces.load();
            let keyspace = keyspaces.get(&id).ok_or(Error::KeyspaceDropped)?;
            if keyspace.ingest_count.load(Ordering::Relaxed) > 0 {
                let keyspace = Arc::clone(keyspace);
                drop(keyspaces);
                self.wait_for_ingest(&keyspace)?;
                continue;
            }
            let read_state = keyspace.read_state.load();
            if read_state.immutable.len() >= IMMUTABLE_COUNT_MAX && keyspace.is_memtable_full(&read_state) {
                let keyspace = Arc::clone(keyspace);
                drop(read_state);
                drop(keyspaces);
                self.background.wait_for_flush(&keyspace)?;
                continue;
            }
            if keyspace.pressure(&read_state).stops() {
                let keyspace = Arc::clone(keyspace);
                drop(read_state);
                drop(keyspaces);
                self.background.wait_for_level0(&keyspace)?;
            }
        }
        if self.store.context.options.workers == 0 {
            // This thread runs the jobs itself: nothing lags behind.
            return Ok(());
        }
        self.delay(batch);
        Ok(())
    }

    /// Delays a batch to the rate at which the background keeps up.
    fn delay(&self, batch: &WriteBatch) {
        let clock = &*self.store.context.runtime.clock;
        let rate = self.rate_of(batch);
        if let Some(microseconds_per_mib) = self.store.back_pressure.changed_delay(rate) {
            self.store
                .context
                .report(&Event::BackPressure { microseconds_per_mib: Some(microseconds_per_mib) });
        }
        let Some(rate) = rate else { return };
        let start = clock.now();
        let Some(until) = self.store.back_pressure.charge(rate, batch.size_bytes() as u64, start) else {
            return;
        };
        let mut now = start;
        // A job that has ended may have ended the delay too.
        while now < until && self.rate_of(batch).is_some() && self.store.context.check_writable().is_ok() {
            self.store.scheduler.wait_for_progress(clock, until - now);
            now = clock.now();
        }
        let metrics = &self.store.context.metrics;
        metrics.throttled_writes.add(1);
        let waited = now.saturating_sub(start);
        metrics.throttled_microseconds.add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
    }

    /// The bytes per second at which a batch may be written; `None` if none of its keyspaces lags behind.
    fn rate_of(&self, batch: &WriteBatch) -> Option<u64> {
        let keyspaces = self.store.keyspaces.load();
        let rate = |keyspace: &Arc<KeyspaceState>| {
            self.store.back_pressure.rate(keyspace.pressure(&keyspace.read_state.load()))
        };
        batch.keyspaces().filter_map(|id| keyspaces.get(&id).and_then(rate)).min()
    }

    /// Waits until running ingests into the keyspace have ended.
    fn wait_for_ingest(&self, keyspace: &KeyspaceState) -> Result<()> {
        while keyspace.ingest_count.load(Ordering::SeqCst) > 0 {
            self.store.context.check_writable()?;
            self.store.scheduler.wait_a_moment(&*self.store.context.runtime.clock);
        }
        Ok(())
    }
}
