//! The last commits, while transactions are open: usually these are all commits since a transaction began, and its condition needs no other source.
//!
//! The numbers of the batches follow each other without a gap. An ingest, and entries that a flush leaves in memory, have numbers, too: behind them the list
//! begins again, and a transaction that began before asks memtables and tables ([`super::condition`]).

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::key_ranges::BYTES_MAX;
use crate::{
    batch::{BatchEntry, WriteBatch},
    key::Sequence,
    sync::Mutex,
};

struct Commit {
    first: Sequence,
    last: Sequence,
    batch: WriteBatch,
}

#[derive(Default)]
struct Commits {
    list: VecDeque<Commit>,
    bytes: usize,
}

impl Commits {
    fn add(&mut self, first: Sequence, batch: WriteBatch) {
        if self.list.back().is_some_and(|newest| newest.last + 1 != first) {
            *self = Self::default();
        }
        self.bytes += batch.size_bytes();
        self.list.push_back(Commit { first, last: first + batch.sequence_count() - 1, batch });
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.list.pop_front()
        {
            self.bytes -= oldest.batch.size_bytes();
        }
    }

    /// The commits above `since`, if these are all of them up to `visible`.
    fn since(&self, since: Sequence, visible: Sequence) -> Option<impl ExactSizeIterator<Item = &Commit>> {
        let is_whole = self.list.front().is_some_and(|oldest| oldest.first <= since + 1)
            && self.list.back().is_some_and(|newest| newest.last == visible);
        let from = self.list.partition_point(|commit| commit.last <= since);
        is_whole.then(|| self.list.range(from..))
    }
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct RecentCommits {
    open_transactions: AtomicUsize,
    commits: Mutex<Commits>,
}

impl RecentCommits {
    /// A transaction begins; its snapshot is taken afterwards.
    pub(crate) fn begin(&self) {
        self.open_transactions.fetch_add(1, Ordering::SeqCst);
    }

    /// A transaction has ended.
    pub(crate) fn end(&self) {
        if self.open_transactions.fetch_sub(1, Ordering::SeqCst) == 1 {
            *self.commits.lock() = Commits::default();
        }
    }

    /// Keeps batches that were committed, the first one from the number `first` on, if a transaction is open. The caller holds the log's lock.
    #[inline]
    pub(crate) fn note(&self, first: Sequence, batches: &mut [WriteBatch]) {
        if self.open_transactions.load(Ordering::Relaxed) > 0 {
            self.keep(first, batches);
        }
    }

    #[cold]
    fn keep(&self, first: Sequence, batches: &mut [WriteBatch]) {
        let (mut commits, mut first) = (self.commits.lock(), first);
        for batch in batches {
            let count = batch.sequence_count();
            commits.add(first, std::mem::take(batch));
            first += count;
        }
    }

    /// Whether few commits are above `since`, and all of them are known.
    pub(crate) fn are_few(&self, since: Sequence, visible: Sequence) -> bool {
        // Commits that are checked faster as a part of the group commit than before it.
        self.commits.lock().since(since, visible).is_some_and(|commits| commits.len() <= 64)
    }

    /// The first result of `find` for the writes above `since`; `None` if not all of them are known.
    pub(crate) fn find<T>(
        &self,
        (since, visible): (Sequence, Sequence),
        find: impl FnMut(&BatchEntry<'_>) -> Option<T>,
    ) -> Option<Option<T>> {
        let commits = self.commits.lock();
        let mut find = find;
        let mut since = commits.since(since, visible)?;
        Some(since.find_map(|commit| commit.batch.entries().find_map(|entry| find(&entry))))
    }
}
