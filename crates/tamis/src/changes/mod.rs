//! The change feed: what was committed, in the order of the commits, read from the log.
//!
//! ```text
//! log segments, needed and kept --> records --> batches and events behind a position --> consumer
//! ```
//!
//! The feed reads the files of the log, in any process. It never reads memtables: it costs writers nothing. In the process that writes, it returns only what
//! is visible; in another one, what is in the files.
//!
//! Sequence numbers leave no gap: each commit takes the next ones, and an event one. A number that no record has was lost to the feed (the log's segment was
//! deleted, an event was lost in a crash, a write did not reach the files): the feed says so and never skips a change.

pub(crate) mod event;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    io::ErrorKind,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tamis_vfs::{Vfs, fork::OwnedByProcess};

use self::event::{EVENTS, LoggedEvent};
use crate::{
    batch::{BatchEntry, BatchWrite, batches, entries},
    error::{Error, Result},
    file_name::FileName,
    frame::{Frame, FrameReader, file_bytes::FileBytes},
    key::{Kind, SEQUENCE_MAX, Sequence},
    store::{
        engine::Engine,
        follower::{ATTEMPTS, may_pass},
    },
    table::reader::TableReader,
    version::folder,
    wal::{
        format::{HEADER_BYTES, segment_seed},
        tail::{AfterRecord, read_tail},
        writer::SegmentEnd,
    },
};

/// The first time between two looks for new changes. It doubles up to a hundredth of a second as long as there are none.
const WAIT: Duration = Duration::from_millis(1);

/// A place in the order of all commits of a store: between two of them. Valid across restarts; a copy of the store has the same ones up to the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(u64);

impl Position {
    /// The place behind the commit whose last write has this sequence number ([`Snapshot::sequence`](crate::Snapshot::sequence)); 0: before the first commit.
    pub const fn after(sequence: u64) -> Self {
        Self(sequence)
    }

    /// The sequence number of the last write before this place.
    pub const fn sequence(self) -> u64 {
        self.0
    }
}

/// A change of a store ([`Changes`]).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// A batch was committed: a write, a [`crate::WriteBatch`] or a transaction.
    Batch(CommittedBatch),
    /// Tables were ingested.
    Ingest(IngestedTables),
    /// A keyspace was created.
    KeyspaceCreated {
        /// Its name.
        name: String,
        /// The number that the event takes in the order of commits.
        sequence: u64,
    },
    /// A keyspace was dropped, with all its entries.
    KeyspaceDropped {
        /// Its name.
        name: String,
        /// The number that the event takes in the order of commits.
        sequence: u64,
    },
}

impl Change {
    /// The place behind this change: a feed from there continues with the next one.
    pub const fn position(&self) -> Position {
        Position(match self {
            Self::Batch(batch) => batch.last,
            Self::Ingest(tables) => tables.sequence,
            Self::KeyspaceCreated { sequence, .. } | Self::KeyspaceDropped { sequence, .. } => *sequence,
        })
    }
}

/// A batch that was committed.
#[derive(Clone)]
pub struct CommittedBatch {
    first: Sequence,
    last: Sequence,
    /// In the encoding of the log.
    bytes: Vec<u8>,
    names: Arc<BTreeMap<u32, String>>,
}

impl fmt::Debug for CommittedBatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.writes()).finish()
    }
}

impl CommittedBatch {
    /// The sequence number of its first write.
    pub const fn first_sequence(&self) -> u64 {
        self.first
    }

    /// The sequence number of its last write. They are consecutive.
    pub const fn last_sequence(&self) -> u64 {
        self.last
    }

    /// The writes with the names of their keyspaces, in the order in which they were added. Those to keyspaces that were dropped before the feed has read the batch
    /// are left out.
    pub fn writes(&self) -> impl Iterator<Item = (&str, BatchWrite<'_>)> {
        let decoded = entries(&self.bytes).map_while(std::result::Result::ok);
        decoded.filter_map(|entry| Some((self.names.get(&entry.keyspace)?.as_str(), BatchWrite::of(entry))))
    }
}

/// The tables of one ingest ([`crate::Db::ingest`]), which is one commit.
#[derive(Debug, Clone)]
pub struct IngestedTables {
    keyspace: String,
    sequence: Sequence,
    /// Of each table, and of its second name.
    paths: Vec<(PathBuf, PathBuf)>,
    vfs: Arc<dyn Vfs>,
}

impl IngestedTables {
    /// The name of the keyspace; empty if it was dropped before the feed has read the event.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// The sequence number of all their entries.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Calls `visit` with each write of the tables: range deletes first, then puts and deletes in key order. A break ends the call.
    ///
    /// The tables stay as long as the log segment of the event ([`crate::Options::keep_changes`]). Cost: reads all of them.
    ///
    /// # Errors
    /// [`Error::ChangesLost`] if a table was deleted; [`Error::Corruption`]; [`Error::Io`].
    pub fn for_each(&self, mut visit: impl FnMut(BatchWrite<'_>) -> ControlFlow<()>) -> Result<()> {
        for (table, copy) in &self.paths {
            let reader = match self.open(copy) {
                // The table itself, if no compaction has replaced it.
                Ok(None) => self.open(table)?,
                opened => opened?,
            };
            let reader = reader.ok_or(Error::ChangesLost { first_available: self.sequence })?;
            if self.visit_table(&reader, &mut visit)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// `None` if there is no such file.
    fn open(&self, path: &Path) -> Result<Option<Arc<TableReader>>> {
        match TableReader::open_anywhere(&self.vfs, path) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn visit_table(
        &self,
        reader: &Arc<TableReader>,
        visit: &mut impl FnMut(BatchWrite<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut pass = |kind, key: &[u8], value: &[u8]| {
            let (sequence, logged_at) = (self.sequence, self.sequence);
            visit(BatchWrite::of(BatchEntry { keyspace: 0, sequence, logged_at, kind, key, value }))
        };
        for tombstone in reader.range_tombstones().into_iter().flat_map(|fragments| fragments.tombstones()) {
            if pass(Kind::RangeTombstone, &tombstone.lower, &tombstone.upper).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let mut is_ended = false;
        let scrubbed = reader.scrub(&mut |key, _, kind, value| {
            is_ended = is_ended || pass(kind, key, value).is_break();
            Ok(())
        })?;
        match scrubbed.faults.into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(if is_ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }),
        }
    }
}

/// The changes of a store behind a position, each once, in the order of the commits ([`crate::Db::changes`]).
pub struct Changes {
    engine: OwnedByProcess<Arc<Engine>>,
    /// The segment that is read, and the end of what was read.
    log: Vec<SegmentEnd>,
    /// The last number that was read.
    last: Sequence,
    ready: VecDeque<Change>,
    names: Arc<BTreeMap<u32, String>>,
    /// Ids of keyspaces that were dropped before their names were read.
    nameless: BTreeSet<u32>,
}

impl fmt::Debug for Changes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Changes").field("position", &self.position()).finish_non_exhaustive()
    }
}

impl Changes {
    /// # Errors
    /// See [`crate::Db::changes`].
    pub(crate) fn new(engine: OwnedByProcess<Arc<Engine>>, from: Position) -> Result<Self> {
        engine.store.context.check_open()?;
        let mut changes = Self {
            engine,
            log: Vec::new(),
            last: from.0,
            ready: VecDeque::new(),
            names: Arc::default(),
            nameless: BTreeSet::new(),
        };
        changes.learn_names()?;
        changes.log = vec![changes.find_segment()?];
        Ok(changes)
    }

    /// The place behind the last change that was returned.
    pub fn position(&self) -> Position {
        self.ready.front().map_or(Position(self.last), |next| match next {
            Change::Batch(batch) => Position(batch.first - 1),
            other => Position(other.position().0 - 1),
        })
    }

    /// The next change; `None` if there is none yet.
    ///
    /// # Errors
    /// [`Error::ChangesLost`] if the log no longer has it: take a snapshot, and begin another feed at its position. [`Error::Closed`]; those of the files.
    pub fn try_next(&mut self) -> Result<Option<Change>> {
        if self.ready.is_empty() {
            self.engine.store.context.check_open()?;
            self.read()?;
        }
        Ok(self.ready.pop_front())
    }

    /// The next change. Waits for it, until the store is closed.
    ///
    /// # Errors
    /// As [`Changes::try_next`].
    #[expect(clippy::should_implement_trait, reason = "it has no end, and its errors are final")]
    pub fn next(&mut self) -> Result<Change> {
        loop {
            if let Some(change) = self.next_within(Duration::MAX)? {
                return Ok(change);
            }
        }
    }

    /// As [`Changes::next`], but waits no longer than `limit`; `None` if there is no change until then.
    ///
    /// # Errors
    /// As [`Changes::try_next`].
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<Change>> {
        let engine = self.engine.clone();
        let (clock, scheduler) = (&*engine.store.context.runtime.clock, &engine.store.scheduler);
        let (begin, mut wait) = (clock.now(), WAIT);
        loop {
            let generation = scheduler.generation.load(Ordering::SeqCst);
            let change = self.try_next()?;
            let left = limit.saturating_sub(clock.now().saturating_sub(begin));
            if change.is_some() || left.is_zero() {
                return Ok(change);
            }
            scheduler.wait_for_work(clock, generation, wait.min(left));
            wait = (2 * wait).min(10 * WAIT);
        }
    }

    /// Whether this process writes: then no more than what is visible is read.
    fn visible(&self) -> Sequence {
        let store = &self.engine.store;
        if store.context.options.is_reader() { SEQUENCE_MAX } else { store.snapshots.visible() }
    }

    fn read(&mut self) -> Result<()> {
        let engine = self.engine.clone();
        // Nothing is written after the store is closed.
        let _running = engine.store.context.begin_job()?;
        let mut failure = None;
        for _ in 0..ATTEMPTS {
            let visible = self.visible();
            if visible == self.last {
                return Ok(());
            }
            let read = match self.read_log(visible) {
                Err(error) if may_pass(&error) => {
                    failure = Some(error);
                    continue;
                }
                read => read?,
            };
            if read {
                if self.ready.is_empty() && self.last < visible && visible < SEQUENCE_MAX {
                    // Deferred writes are visible before they are in the files.
                    self.engine.store.log.flush_deferred()?;
                    if self.read_log(visible)? && self.last < visible && self.ready.is_empty() {
                        continue;
                    }
                }
                return Ok(());
            }
            // The segment was deleted, or its end was refused.
            self.log = vec![self.find_segment()?];
        }
        let visible = self.engine.store.snapshots.visible();
        Err(failure.unwrap_or(Error::ChangesLost { first_available: visible }))
    }

    /// Reads records, up to a number. Returns whether the log continues where they end.
    fn read_log(&mut self, visible: Sequence) -> Result<bool> {
        let folder = self.engine.store.context.folder.clone();
        let database_id = self.engine.store.versions.database().0;
        let mut log = std::mem::take(&mut self.log);
        let mut bytes = 0;
        let mut failed = None;
        let continues = read_tail(&folder, database_id, &mut log, |payload, place, path| {
            let last = entries(payload).map_while(std::result::Result::ok).last();
            if last.is_some_and(|entry| entry.logged_at > visible) {
                return Ok(AfterRecord::Leave);
            }
            for batch in batches(payload) {
                let batch = batch.map_err(|damage| damage.at(path, place.offset))?;
                if let Err(error) = self.take(batch) {
                    failed = Some(error);
                    return Ok(AfterRecord::Leave);
                }
            }
            bytes += payload.len();
            // Records of 256 KiB are read at once.
            let is_enough = bytes >= 256 << 10 && !self.ready.is_empty();
            Ok(if is_enough { AfterRecord::Stop } else { AfterRecord::Continue })
        });
        // Segments before the last one are read.
        log.drain(..log.len().saturating_sub(1));
        self.log = log;
        match failed {
            Some(error) => Err(error),
            None => continues,
        }
    }

    /// Takes a batch of the log: its first number, the number of its entries, and its bytes.
    fn take(&mut self, (first, count, bytes): (Option<Sequence>, u32, &[u8])) -> Result<()> {
        // Entries that a flush has retained were committed before; the number of such a batch is that of an empty one.
        let Some(first) = first else { return Ok(()) };
        let last = first + u64::from(count.max(1)) - 1;
        if last <= self.last {
            return Ok(());
        }
        if first > self.last + 1 {
            return Err(Error::ChangesLost { first_available: first - 1 });
        }
        self.last = last;
        if count == 0 {
            return Ok(());
        }
        if entries(bytes).flatten().next().is_some_and(|entry| entry.keyspace == EVENTS) {
            for entry in entries(bytes).flatten() {
                self.take_event(&entry);
            }
            return Ok(());
        }
        let unknown: BTreeSet<u32> = entries(bytes)
            .flatten()
            .map(|entry| entry.keyspace)
            .filter(|id| !self.names.contains_key(id) && !self.nameless.contains(id))
            .collect();
        if !unknown.is_empty() {
            // If that fails, its cause is found by the next read of the log.
            let _ = self.learn_names();
            self.nameless.extend(unknown.into_iter().filter(|id| !self.names.contains_key(id)));
        }
        let names = Arc::clone(&self.names);
        self.ready.push_back(Change::Batch(CommittedBatch { first, last, bytes: bytes.to_vec(), names }));
        Ok(())
    }

    fn take_event(&mut self, entry: &BatchEntry<'_>) {
        let sequence = entry.sequence;
        let folder = &self.engine.store.context.folder;
        let change = match LoggedEvent::of(entry) {
            Some(LoggedEvent::KeyspaceCreated { keyspace, name }) => {
                Arc::make_mut(&mut self.names).insert(keyspace, name.clone());
                Change::KeyspaceCreated { name, sequence }
            }
            Some(LoggedEvent::KeyspaceDropped { name, .. }) => Change::KeyspaceDropped { name, sequence },
            Some(LoggedEvent::Ingested { keyspace, tables }) => Change::Ingest(IngestedTables {
                keyspace: self.names.get(&keyspace).cloned().unwrap_or_default(),
                sequence,
                paths: tables.iter().map(|table| table.paths(folder)).collect(),
                vfs: Arc::clone(folder.vfs()),
            }),
            None => return,
        };
        self.ready.push_back(change);
    }

    /// Looks up the names of all keyspaces that exist. Ids are never used twice.
    fn learn_names(&mut self) -> Result<()> {
        if let Some(follower) = &self.engine.follower {
            follower.refresh()?;
        }
        let names = Arc::make_mut(&mut self.names);
        for (id, keyspace) in self.engine.store.keyspaces.load().iter() {
            names.insert(*id, keyspace.name.clone());
        }
        Ok(())
    }

    /// The newest segment that has the next number, or may get it, and its beginning.
    ///
    /// # Errors
    /// [`Error::ChangesLost`]; [`Error::InvalidArgument`] for a position that no commit has reached.
    fn find_segment(&self) -> Result<SegmentEnd> {
        let store = &self.engine.store;
        let folder = &store.context.folder;
        let visible = store.snapshots.visible();
        // A reader can't know whether its writer has reached the position.
        if self.last > visible && !store.context.options.is_reader() {
            return Err(Error::InvalidArgument {
                what: "position",
                got: self.last.to_string(),
                expected: format!("a position of this store, at most {visible}"),
            });
        }
        let listed = folder::list(folder)?;
        let numbers = listed.iter().filter_map(|entry| match FileName::parse(&entry.name)? {
            FileName::Log(number) => Some(number),
            _ => None,
        });
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable_by(|left, right| right.cmp(left));
        let mut oldest = None;
        let begin = |number| SegmentEnd { number, bytes: HEADER_BYTES, synced: 0 };
        for number in &numbers {
            match first_sequence(folder, store.versions.database().0, *number)? {
                Some(first) if first <= self.last + 1 => return Ok(begin(*number)),
                Some(first) => oldest = Some(first),
                None => {}
            }
        }
        match (oldest, numbers.last()) {
            (None, Some(number)) if self.last >= visible => Ok(begin(*number)),
            (oldest, _) => {
                Err(Error::ChangesLost { first_available: oldest.map_or(visible, |first| first - 1) })
            }
        }
    }
}

/// The first number in a segment; `None` if it has no record.
fn first_sequence(folder: &tamis_vfs::Folder, database_id: u64, number: u64) -> Result<Option<Sequence>> {
    let path: &Path = &FileName::Log(number).path(folder);
    let source = match FileBytes::open(folder, path) {
        Err(Error::MissingFile { .. }) => return Ok(None),
        opened => opened?,
    };
    let mut reader =
        FrameReader::new(path, source, HEADER_BYTES).with_seed(segment_seed(database_id, number));
    while let Frame::Record(record) = reader.next_frame()? {
        for batch in batches(reader.payload(record)?) {
            if let (Some(first), ..) = batch.map_err(|damage| damage.at(path, record.offset))? {
                return Ok(Some(first));
            }
        }
    }
    Ok(None)
}
