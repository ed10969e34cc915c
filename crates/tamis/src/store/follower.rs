//! A reader next to a writer: the store is opened read-only and follows the writes of the process that has it open.
//!
//! A refresh reads the edits that were appended to the manifest and the records that were appended to the log. If a flush has moved entries to tables,
//! or another keyspace exists, the log is replayed into new memtables; otherwise its new records are inserted. Then it looks for edits again: an ingest,
//! or a new keyspace, may be older than a record. The state is complete when there are none.
//!
//! # Invariants
//!
//! 1. *A reader never sees less than before, nor a part of a batch*: entries are inserted before their sequence numbers are published.
//! 2. *A read has one state*: it sees the memtables and tables from before a refresh, or those from after it. Snapshots keep the states of all
//!    keyspaces ([`Follower::freeze`]), because the writer does not know their sequence numbers.
//! 3. *A file that a read may open exists*: the reader has registered its files (`readers.rs`), and those of earlier versions as long as a read has them.
//! 4. *An error is believed when it repeats*: the writer changes its files while they are read. After an error the reader is as before.
//!
//! Cost of a refresh: in proportion to what is new; after a flush, to the log that is left.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    process,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use super::{
    keyspace_state::{KeyspaceResources, KeyspaceState, Keyspaces},
    parts::StoreParts,
    readers::{ReadVersion, Registration},
    recover::LogReplay,
};
use crate::{
    batch::entries,
    error::{Error, Result},
    expiry::milliseconds,
    key::Sequence,
    sync::Mutex,
    version::{catalog::Catalog, follow::FollowedCatalog, handle::FileHandle, manifest::ManifestPosition},
    wal::{
        reader::LogFiles,
        tail::{AfterRecord, read_tail},
        writer::SegmentEnd,
    },
};

/// How often a reader reads files that its writer may have changed meanwhile.
pub(crate) const ATTEMPTS: usize = 10;

/// Calls `read` again after errors that files may show while they are written.
///
/// # Errors
/// Those of `read`.
pub(crate) fn read_changing<T>(mut read: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..ATTEMPTS {
        match read() {
            Err(error) if may_pass(&error) => {}
            result => return result,
        }
    }
    read()
}

/// Whether a file may show this error because its writer is changing it: a record that is not complete, a segment that is cut to its records.
pub(crate) fn may_pass(error: &Error) -> bool {
    match error {
        Error::Corruption { .. } | Error::MissingFile { .. } => true,
        Error::Io { source, .. } => source.kind() == ErrorKind::UnexpectedEof,
        _ => false,
    }
}

/// Where a reader stands.
struct Place {
    manifest: ManifestPosition,
    /// The segments that were read; empty if the next refresh replays the log.
    log: Vec<SegmentEnd>,
    last_sequence: Sequence,
    /// The keyspaces whose memtables have entries that are not published yet.
    received: BTreeSet<u32>,
    /// `None` if the store is closed.
    registration: Option<Registration>,
    /// Whether it lists the files of the version that is read.
    is_registered: bool,
    /// The files of this version, and those of earlier ones as long as a read has them.
    files: Vec<Weak<FileHandle>>,
}

/// See the head of this file.
pub(crate) struct Follower {
    store: Arc<StoreParts>,
    resources: Arc<KeyspaceResources>,
    place: Mutex<Place>,
    /// At which a thread refreshes this reader, if there is one.
    interval: Mutex<Option<Duration>>,
}

/// The part of the log that a refresh has read.
enum ReadLog {
    /// New entries, in the memtables that the keyspaces have.
    Appended,
    /// All entries, in new memtables.
    Replayed(Keyspaces, Vec<SegmentEnd>),
}

impl Follower {
    /// Of a store that was just recovered, and whose files are all registered.
    pub(crate) fn new(
        store: &Arc<StoreParts>,
        resources: &Arc<KeyspaceResources>,
        registration: Registration,
    ) -> Option<Self> {
        let place = Place {
            manifest: store.versions.position()?,
            log: store.log.replayed(),
            last_sequence: store.snapshots.visible(),
            received: BTreeSet::new(),
            registration: Some(registration),
            is_registered: false,
            files: Vec::new(),
        };
        let (store, resources) = (Arc::clone(store), Arc::clone(resources));
        Some(Self { store, resources, place: Mutex::new(place), interval: Mutex::default() })
    }

    /// Lets the writer delete all files.
    pub(crate) fn end(&self) {
        self.place.lock().registration = None;
    }

    /// Sees all that was written to the files of the store before the call. The first call lets the writer delete all files but those of the version.
    ///
    /// # Errors
    /// Those of the files of the store.
    pub(crate) fn refresh(&self) -> Result<()> {
        let mut place = self.place.lock();
        self.store.context.check_open()?;
        read_changing(|| self.advance(&mut place))
    }

    /// Sets the time between two refreshes by a thread; returns the former one, if there is such a thread.
    pub(crate) fn set_interval(&self, interval: Option<Duration>) -> Option<Duration> {
        std::mem::replace(&mut *self.interval.lock(), interval)
    }

    /// Refreshes until the store is closed.
    pub(crate) fn refresh_always(&self) {
        let StoreParts { context, scheduler, .. } = &*self.store;
        while !scheduler.is_stopping().load(Ordering::SeqCst) {
            let generation = scheduler.generation.load(Ordering::SeqCst);
            if let Err(error) = context.catch("refresh a reader", || self.refresh()).flatten() {
                context.report_failed_job("refresh a reader", &error);
            }
            let interval = self.interval.lock().unwrap_or_default();
            scheduler.wait_for_work(&*context.runtime.clock, generation, interval);
        }
    }

    /// Keeps all states of now for a snapshot, which `register` registers.
    pub(crate) fn freeze<T>(&self, register: impl FnOnce() -> T) -> (T, Keyspaces) {
        let _place = self.place.lock();
        let keyspaces = self.store.keyspaces.load();
        (register(), keyspaces.iter().map(|(id, keyspace)| (*id, keyspace.frozen(&self.resources))).collect())
    }

    /// Calls `read` while all files of the store stay.
    ///
    /// # Errors
    /// As [`Follower::refresh`]; those of `read`.
    pub(crate) fn with_all_files<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        let _registration = Registration::create(&self.store.context.folder)?;
        self.refresh()?;
        read()
    }

    fn advance(&self, place: &mut Place) -> Result<()> {
        let before = self.store.versions.catalog();
        let mut registration = None;
        let start =
            FollowedCatalog { catalog: Arc::clone(&before), position: place.manifest, obsolete: Vec::new() };
        let mut now = start.clone();
        let read_log = loop {
            while let Some(next) = self.next_catalog(&now)? {
                now = next;
                if registration.is_none() {
                    // Edits that were read before the registration do not count.
                    registration = Some(Registration::create(&self.store.context.folder)?);
                    now = start.clone();
                }
            }
            let read_log = self.read_log(place, &now, &before)?;
            // An ingest, or another keyspace, may be older than a record. Files that jobs have replaced meanwhile belong to the next refresh.
            match self.next_catalog(&now)? {
                Some(next) if next.has_more_than(&now) => {}
                _ => break read_log,
            }
        };
        let last_sequence = place.last_sequence.max(now.catalog.counters.last_sequence);
        place.last_sequence = last_sequence;
        place.manifest = now.position;
        // A checkpoint takes the catalog and the end of the log under this lock.
        let log = self.store.log.lock();
        self.install(&now.catalog, &before, read_log, place);
        self.store.log.set_replayed(place.log.clone());
        place.is_registered &= registration.is_none();
        if registration.is_some() {
            self.store.versions.follow(now.catalog, now.position, &now.obsolete);
        }
        drop((log, now.obsolete, start, before));
        if !place.is_registered || self.store.versions.has_new_obsolete_files() {
            let registration = match registration {
                Some(registration) => registration,
                None => Registration::create(&self.store.context.folder)?,
            };
            return self.register(place, registration);
        }
        Ok(())
    }

    fn next_catalog(&self, now: &FollowedCatalog) -> Result<Option<FollowedCatalog>> {
        let context = &self.store.context;
        now.next(&context.folder, self.store.versions.obsolete_files(), &context.options.operators())
    }

    fn read_log(&self, place: &mut Place, now: &FollowedCatalog, before: &Catalog) -> Result<ReadLog> {
        let folder = &self.store.context.folder;
        if now.has_memtables_of(before) {
            let keyspaces = self.store.keyspaces.load();
            let mut replay = LogReplay::new(&keyspaces, None);
            let (last_sequence, received) = (&mut place.last_sequence, &mut place.received);
            let database_id = self.store.versions.database().0;
            let continues = read_tail(folder, database_id, &mut place.log, |payload, record, path| {
                for entry in entries(payload) {
                    let entry = entry.map_err(|damage| damage.at(path, record.offset))?;
                    *last_sequence = entry.logged_at.max(*last_sequence);
                    received.insert(entry.keyspace);
                    replay.receive(&entry, record);
                }
                Ok(AfterRecord::Continue)
            })?;
            if continues {
                return Ok(ReadLog::Appended);
            }
        }
        // An error in what follows leaves entries in the memtables that are not published: they are not inserted again.
        place.log.clear();
        let keyspaces: Keyspaces = now
            .catalog
            .keyspaces
            .values()
            .map(|version| KeyspaceState::new(Arc::clone(version), &self.resources))
            .map(|keyspace| (keyspace.id, keyspace))
            .collect();
        let known = now.catalog.known_log();
        let files = LogFiles::of_live_log(folder, known.clone())?;
        let (report, ..) = LogReplay::new(&keyspaces, None).read(&files, folder, known)?;
        place.last_sequence = place.last_sequence.max(report.last_sequence);
        Ok(ReadLog::Replayed(keyspaces, report.segments))
    }

    fn install(&self, catalog: &Catalog, before: &Catalog, read_log: ReadLog, place: &mut Place) {
        let StoreParts { snapshots, keyspaces, context, .. } = &*self.store;
        context.expiry.continue_at(catalog.counters.greatest_time);
        let open = keyspaces.load();
        match read_log {
            ReadLog::Appended => {
                for (id, keyspace) in open.iter() {
                    let version = catalog.keyspaces.get(&u64::from(*id));
                    let is_changed = version
                        .is_some_and(|version| !Arc::ptr_eq(version, &keyspace.read_state.load().version));
                    if let Some(version) = version.filter(|_| is_changed || place.received.contains(id)) {
                        keyspace.follow(version, None);
                    }
                }
                // Memtables have the entries already: no state lacks what is published.
                snapshots.publish(place.last_sequence);
            }
            ReadLog::Replayed(replayed, log) => {
                place.log = log;
                // The new states may lack versions that readers of the former sequence number need.
                snapshots.publish(place.last_sequence);
                for (id, new) in replayed {
                    let state = new.read_state.load_full();
                    match open.get(&id) {
                        Some(keyspace) => keyspace.follow(&state.version, Some(&state.memtable)),
                        None => keyspaces.insert(&new),
                    }
                }
            }
        }
        place.received.clear();
        let is_dropped = |id: &u32| {
            before.keyspaces.contains_key(&u64::from(*id)) && !catalog.keyspaces.contains_key(&u64::from(*id))
        };
        let dropped: Vec<_> =
            open.iter().filter(|(id, _)| is_dropped(id)).map(|(_, keyspace)| Arc::clone(keyspace)).collect();
        if !dropped.is_empty() {
            dropped.iter().for_each(|keyspace| keyspace.is_dropped.store(true, Ordering::Release));
            keyspaces.remove(&dropped);
        }
    }

    /// Registers the files of the version and those of earlier ones that a read has.
    fn register(&self, place: &mut Place, registration: Registration) -> Result<()> {
        let StoreParts { versions, context, .. } = &*self.store;
        drop(versions.obsolete_files().take());
        let catalog = versions.catalog();
        let current = catalog.keyspaces.values().flat_map(|version| version.files());
        let mut files: BTreeMap<*const FileHandle, Weak<FileHandle>> =
            current.map(|file| (Arc::as_ptr(file), Arc::downgrade(file))).collect();
        for file in place.files.drain(..).filter(|file| file.strong_count() > 0) {
            files.insert(file.as_ptr(), file);
        }
        place.files = files.into_values().collect();
        let names = place.files.iter().filter_map(Weak::upgrade).map(|file| file.name());
        let listed = registration.set_version(&ReadVersion {
            process_id: process::id(),
            since: milliseconds(context.runtime.clock.since_epoch()),
            sequence: place.last_sequence,
            files: names.collect(),
        });
        // Without a list all files stay. The next refresh tries again.
        place.is_registered = listed.is_ok();
        place.registration = Some(registration);
        listed
    }
}
