//! The public handle of a store: open, keyspaces, writes, reads of the default keyspace, maintenance, close.

mod keyspace;
mod snapshot;

use std::{
    collections::BTreeSet,
    fmt,
    ops::{ControlFlow, Deref},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tamis_filter::auto::Prices;
use tamis_vfs::{OsVfs, Vfs, fork::OwnedByProcess};

pub use self::{keyspace::Keyspace, snapshot::Snapshot};
use crate::{
    admin::{
        checkpoint::{CheckpointReport, Verify},
        ingest::{IngestOptions, IngestReport},
        repair::{self, RepairReport},
        verify::{self, VerifyReport},
    },
    batch::WriteBatch,
    changes::{Changes, Position},
    compaction::{job_context::filter_prices, manual::CompactProgress, range_deletes},
    cursor::bounded::range_bounds,
    error::{Error, Result},
    key_range_bounds::KeyRangeBounds,
    observe::{
        metrics::{DeletedRange, ReadLoss, Statistics, TableFilterStatistics, TableStatistics},
        query_sample::SampledQueries,
        statistics,
    },
    options::{DEFAULT_KEYSPACE, Durability, KeyspaceOptions, OpenMode, Options, TableFilter},
    store::{
        engine::Engine, keyspace_state::KeyspaceState, open_report::OpenReport, runtime::Runtime,
        store_folder::absolute,
    },
    table::lazy_reader::NamedTable as _,
    version::{handle::Table, version::KeyspaceVersion},
};
pub(crate) use keyspace::add_delete_range;

/// A table that can't be opened ([`Db::unreadable_tables`]).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnreadableTable {
    /// The number of the table's file.
    pub table_number: u64,
    /// Why it can't be opened.
    pub error: Error,
}

/// An open store: cheap to clone, usable from any thread. It is closed when the last clone, [`Keyspace`] and [`Snapshot`] is
/// dropped.
///
/// A `Db` dereferences to its default keyspace: it has the reads and writes of [`Keyspace`].
///
/// It belongs to the process that opened it. In a forked child all calls return [`Error::Forked`], and dropping the handles changes
/// nothing.
///
/// ```
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// let db = tamis::Db::open(folder.path())?;
/// db.put("apple", "red")?;
/// db.put("pear", "green")?;
/// assert_eq!(db.get("apple")?.as_deref(), Some(b"red".as_slice()));
/// for entry in db.prefix("a") {
///     let (key, value) = entry?;
///     println!("{key:?} = {value:?}");
/// }
/// db.delete("apple")?;
/// assert!(db.get("apple")?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    pub(crate) engine: OwnedByProcess<Arc<Engine>>,
    default: Keyspace,
}

/// The default keyspace, with its reads and writes.
impl Deref for Db {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.default
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Db({})", self.engine.store.context.folder.path().display())
    }
}

impl Db {
    /// Opens the store in a folder, or creates one there, with default options.
    ///
    /// Cost: proportional to the size of the log to replay, not to the data.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process or handle has it open; [`Error::LockUnsupported`]; [`Error::NotADatabase`], [`Error::MissingFile`],
    /// [`Error::UnknownFormat`] and [`Error::Corruption`] for the content of the folder; [`Error::Io`] and [`Error::DiskFull`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens the store in a folder with options.
    ///
    /// # Errors
    /// As [`Db::open`]; [`Error::InvalidArgument`] names an option outside its bounds.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::open_on(Arc::new(OsVfs), path, options, Runtime::system())
    }

    /// Opens a store that another process may have open, to read it: any number of readers, next to a writer or without one. They read what the store
    /// had when they opened it, and what was written since after [`Db::refresh`] or by [`Db::refresh_every`]. The same as [`Db::open_with`] and
    /// [`OpenMode::Reader`].
    ///
    /// A reader registers in the subfolder `readers`: the writer keeps the files of its version until the reader moves on or its process ends
    /// ([`Statistics::readers`]). It changes no other file.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let writer = tamis::Db::open(folder.path())?;
    /// writer.put("apple", "red")?;
    /// // Usually in another process.
    /// let reader = tamis::Db::open_reader(folder.path())?;
    /// assert_eq!(reader.get("apple")?.as_deref(), Some(b"red".as_slice()));
    /// writer.put("apple", "green")?;
    /// reader.refresh()?;
    /// assert_eq!(reader.get("apple")?.as_deref(), Some(b"green".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: as [`Db::open`]; the memtables take the memory of all entries of the log.
    ///
    /// # Errors
    /// As [`Db::open`], but for [`Error::Locked`]; [`Error::ReaderRefused`] if a process has the store open and this one may not create files in
    /// `readers`. Without a writer it may lack this permission, as on a read-only medium: no writer can open the store then.
    pub fn open_reader(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default().mode(OpenMode::Reader))
    }

    /// Whether the store was opened read-only ([`Db::open_reader`]).
    pub fn is_reader(&self) -> bool {
        self.engine.store.context.options.is_reader()
    }

    /// Lets this reader see all that was written to the store before the call, but for writes that the writer's process has deferred
    /// ([`Durability::Deferred`]). Existing scans and snapshots do not change. In the process that writes it does nothing: it sees each write at once.
    ///
    /// Cost: in proportion to what is new; after a flush of the writer, to the log that is left.
    ///
    /// # Errors
    /// Those of the files of the store, after which the reader is as before; [`Error::Closed`].
    pub fn refresh(&self) -> Result<()> {
        self.engine.store.context.check_open()?;
        self.engine.follower.as_ref().map_or(Ok(()), |follower| follower.refresh())
    }

    /// Refreshes this reader in a thread, now and whenever `interval` has passed, until it is closed; a later call sets another interval. Errors are events ([`crate::Event::JobFailed`]).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an interval below a millisecond; [`Error::Closed`]; [`Error::Io`] if the operating system refuses a thread.
    pub fn refresh_every(&self, interval: Duration) -> Result<()> {
        if interval < Duration::from_millis(1) {
            return Err(Error::InvalidArgument {
                what: "interval",
                got: format!("{interval:?}"),
                expected: "use at least a millisecond".to_owned(),
            });
        }
        self.engine.refresh_every(interval)
    }

    /// The changes behind a position, each once, in the order of the commits: across restarts, and in a reader ([`Db::open_reader`]), too. They are read from the
    /// log, so that the feed costs writers nothing. [`Options::keep_changes`] keeps the log for it.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// use tamis::{BatchWrite, Change, Position};
    ///
    /// let db = tamis::Db::open(folder.path())?;
    /// let mut changes = db.changes(Position::after(db.snapshot().sequence()))?;
    /// db.put("apple", "red")?;
    /// let change = changes.next()?;
    /// let Change::Batch(batch) = &change else { panic!("{change:?}") };
    /// let writes: Vec<_> = batch.writes().collect();
    /// assert_eq!(writes, [("default", BatchWrite::Put { key: b"apple", value: b"red" })]);
    /// assert!(changes.try_next()?.is_none());
    /// // A consumer stores this position with what it has done.
    /// assert_eq!(changes.position(), change.position());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ChangesLost`] if the log no longer has the next change: read a [`Snapshot`], and begin a feed behind its sequence number.
    /// [`Error::InvalidArgument`] for a position that no commit has reached.
    pub fn changes(&self, from: Position) -> Result<Changes> {
        Changes::new(self.engine.clone(), from)
    }

    /// Opens a store with another file system, clock, thread spawner or seed.
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open_on(
        vfs: Arc<dyn Vfs>,
        path: impl AsRef<Path>,
        options: Options,
        runtime: Runtime,
    ) -> Result<Self> {
        options.check()?;
        let engine = OwnedByProcess::new(Engine::open(vfs, &absolute(path.as_ref())?, options, runtime)?);
        let state = engine.store.keyspaces.named(DEFAULT_KEYSPACE)?;
        let default = Keyspace { engine: engine.clone(), state: OwnedByProcess::new(state) };
        Ok(Self { engine, default })
    }

    /// Repairs a store with damaged or missing files, so that it can be opened again, with all entries that can be read. Files that
    /// are not needed are moved to the folder `quarantine` in the store; nothing is deleted. The report lists every key range in
    /// which writes may be lost, and whether deletes may be among them. An undamaged store is not changed.
    ///
    /// Cost: every file is read once. If the manifest is lost and tables overlap, all tables are rewritten, which needs their
    /// space a second time.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let path = folder.path().join("store");
    /// # let db = tamis::Db::open(&path)?;
    /// # db.put("apple", "red")?;
    /// # db.close()?;
    /// # std::fs::remove_file(path.join("CURRENT")).expect("the file is there");
    /// assert!(tamis::Db::open(&path).is_err());
    /// let report = tamis::Db::repair(&path)?;
    /// for lost in &report.lost_ranges {
    ///     println!("{:?}: {:?} to {:?}: {}", lost.keyspace, lost.lower, lost.upper, lost.why);
    /// }
    /// assert_eq!(tamis::Db::open(&path)?.get("apple")?.as_deref(), Some(b"red".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotADatabase`] for a folder without any file of a store; [`Error::Locked`] while it is open; [`Error::Io`] and
    /// [`Error::DiskFull`]; [`Error::UnknownFormat`], [`Error::UnknownChange`] and [`Error::UnknownEntryKind`] for files of a newer
    /// program. After an error the store is unchanged and can be repaired again.
    pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
        Self::repair_on(Arc::new(OsVfs), path, &Runtime::system())
    }

    /// As [`Db::repair`], with another file system or seed.
    ///
    /// # Errors
    /// As [`Db::repair`].
    pub fn repair_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, runtime: &Runtime) -> Result<RepairReport> {
        repair::repair(&*vfs, &absolute(path.as_ref())?, runtime)
    }

    /// The report of the open: replayed records, truncated log segments, deleted and quarantined files.
    pub fn open_report(&self) -> &OpenReport {
        &self.engine.report
    }

    /// The folder.
    pub fn path(&self) -> PathBuf {
        self.engine.store.context.folder.path().to_path_buf()
    }

    /// The id of the store, random. Checkpoints have the same.
    pub fn id(&self) -> u64 {
        self.engine.store.versions.database().0
    }

    /// A handle of the keyspace that every store has. `Db` dereferences to it.
    pub fn default_keyspace(&self) -> Keyspace {
        self.default.clone()
    }

    fn wrap(&self, state: Arc<KeyspaceState>) -> Keyspace {
        Keyspace { engine: self.engine.clone(), state: OwnedByProcess::new(state) }
    }

    /// The keyspace of this name.
    ///
    /// # Errors
    /// [`Error::KeyspaceNotFound`].
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        Ok(self.wrap(self.engine.store.keyspaces.named(name)?))
    }

    /// Creates a keyspace. It survives a crash of the machine when the call returns.
    ///
    /// # Errors
    /// [`Error::KeyspaceExists`]; [`Error::InvalidArgument`] for an option outside its bounds or a name that is not 1
    /// to 255 bytes long; otherwise as [`Db::write`].
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        Ok(self.wrap(self.engine.keyspace_admin.create(name, options)?))
    }

    /// The keyspace of this name; it is created with `options` if it does not exist.
    ///
    /// # Errors
    /// As [`Db::create_keyspace`], without [`Error::KeyspaceExists`]; as [`Keyspace::check_options`] for one that exists.
    pub fn get_or_create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let found = match self.keyspace(name) {
            Err(Error::KeyspaceNotFound { .. }) => match self.create_keyspace(name, options.clone()) {
                // Another thread has created it meanwhile.
                Err(Error::KeyspaceExists { .. }) => self.keyspace(name)?,
                created => return created,
            },
            found => found?,
        };
        found.check_options(&options)?;
        Ok(found)
    }

    /// Drops a keyspace with all its data. Its handles return [`Error::KeyspaceDropped`] from then on; existing scans continue. The
    /// name can be used again.
    ///
    /// # Errors
    /// [`Error::KeyspaceNotFound`]; [`Error::InvalidArgument`] for the default keyspace; otherwise as [`Db::write`].
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.engine.keyspace_admin.drop(&BTreeSet::from([name]))
    }

    /// As [`Db::drop_keyspace`] for several keyspaces, atomically: all of them or none, also after a crash. Cost: one synced
    /// edit of the manifest, however many they are.
    ///
    /// # Errors
    /// As [`Db::drop_keyspace`]; no keyspace is dropped then.
    pub fn drop_keyspaces<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Result<()> {
        let names: Vec<N> = names.into_iter().collect();
        self.engine.keyspace_admin.drop(&names.iter().map(AsRef::as_ref).collect())
    }

    /// The names of all keyspaces, sorted.
    pub fn keyspace_names(&self) -> Vec<String> {
        self.engine.store.keyspaces.names()
    }

    /// Writes a batch with [`Durability::Buffered`], atomically across keyspaces.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if its keyspaces belong to another store; [`Error::KeyspaceDropped`]; [`Error::DiskFull`] and
    /// [`Error::Io`] if the log can't be written; [`Error::WritesRefused`] after a background error. After an error no entry of the
    /// batch is visible.
    pub fn write(&self, batch: WriteBatch) -> Result<()> {
        self.write_with(batch, Durability::default())
    }

    /// Writes a batch with a durability.
    ///
    /// # Errors
    /// As [`Db::write`]. If the sync itself fails ([`Durability::Synced`]), the batch is not visible, but may exist after a crash.
    pub fn write_with(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        batch.check_database(self.engine.id())?;
        self.engine.write_path.write(batch, durability)
    }

    /// Makes all acknowledged writes as durable as `durability` says.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn persist(&self, durability: Durability) -> Result<()> {
        self.engine.store.log.persist(durability)
    }

    /// A snapshot of all keyspaces. It sees each batch completely or not at all.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.engine.clone())
    }

    /// Flushes the memtables of all keyspaces and waits until they are in tables.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn flush(&self) -> Result<()> {
        self.engine.store.context.check_open()?;
        self.engine.background.flush(None)
    }

    /// Compacts a key range of a keyspace into its deepest level, which drops tombstones and obsolete versions, and waits until it is
    /// done.
    ///
    /// # Errors
    /// As [`Db::write`]; [`Error::Corruption`] from the tables read.
    pub fn compact_range(&self, keyspace: &Keyspace, range: impl KeyRangeBounds) -> Result<()> {
        self.compact_range_with(keyspace, range, |_| ControlFlow::Continue(())).map(drop)
    }

    /// As [`Db::compact_range`]. `progress` is called before each table that the call writes, and before each step; a break ends
    /// the call. Returns whether the range is compacted; otherwise the steps that were completed stay.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let db = tamis::Db::open(folder.path())?;
    /// db.put("apple", "red")?;
    /// let is_done = db.compact_range_with(&db.default_keyspace(), .., |progress| {
    ///     println!("{} tables", progress.table_count);
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert!(is_done);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::compact_range`].
    pub fn compact_range_with(
        &self,
        keyspace: &Keyspace,
        range: impl KeyRangeBounds,
        mut progress: impl FnMut(&CompactProgress) -> ControlFlow<()>,
    ) -> Result<bool> {
        keyspace.check_of(&self.engine)?;
        keyspace.check()?;
        self.engine.background.compact_range(&keyspace.state, range_bounds(&range), &mut progress)
    }

    /// Replaces the filters of all tables of a keyspace, for example after one was reported as damaged. An empty list restores the
    /// filters with which the tables were written. Tables written later use the options of the keyspace.
    ///
    /// With [`crate::Filters::auto`] given filters do not last: the background replaces those of a table by chosen ones after about 1,000
    /// queries that found nothing in it (in a table of less than 16,384 entries, after false positives that cost 6 milliseconds), and
    /// [`Db::check_filters`] replaces all of them, also if they are no worse. With other filters
    /// of the keyspace ([`Keyspace::set_options`]) they last until a compaction.
    ///
    /// Cost: reads all blocks of the tables; writes only the filters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for filters that can't be built; otherwise as [`Db::compact_range`].
    pub fn rebuild_filters(&self, keyspace: &Keyspace, filters: &[TableFilter]) -> Result<()> {
        keyspace.check_of(&self.engine)?;
        keyspace.check()?;
        self.engine.background.rebuild_filters(&keyspace.state, filters)
    }

    /// Chooses the filters of all tables of a keyspace again, for today's sample of its queries, and replaces those that cost 30 % more
    /// than the best, and in any case those that the store did not choose ([`Db::rebuild_filters`]), or of which one is damaged or could
    /// not be built. Returns the number of tables whose filters were replaced. The store does so in the background, for tables whose
    /// filters it finds wrong; without [`crate::Filters::auto`] nothing is replaced.
    ///
    /// Cost: as [`Db::rebuild_filters`].
    ///
    /// # Errors
    /// As [`Db::compact_range`].
    pub fn check_filters(&self, keyspace: &Keyspace) -> Result<u64> {
        keyspace.check_of(&self.engine)?;
        keyspace.check()?;
        self.engine.background.check_filters(&keyspace.state)
    }

    /// Opens all tables of a keyspace, which are otherwise opened by their first read, and loads their indexes and filters into the
    /// cache. [`Db::statistics`] and [`Db::table_filters`] describe the filters of open tables only. In a store that was opened read-only, also opens its sorted
    /// views; otherwise they are opened in the background.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a keyspace of another store; [`Error::KeyspaceDropped`]; the first one of reads: all other tables
    /// are open then.
    pub fn open_tables(&self, keyspace: &Keyspace) -> Result<()> {
        let first = self.unreadable_tables(keyspace)?.into_iter().next();
        first.map_or(Ok(()), |table| Err(table.error))
    }

    /// As [`Db::open_tables`], but returns all tables that can't be opened.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a keyspace of another store; [`Error::KeyspaceDropped`].
    pub fn unreadable_tables(&self, keyspace: &Keyspace) -> Result<Vec<UnreadableTable>> {
        let version = self.version_of(keyspace)?;
        let tables = &self.engine.store.tables;
        let unreadable = |table: &Arc<Table>| {
            let error = tables.reader(table).err()?;
            Some(UnreadableTable { table_number: table.number(), error })
        };
        let found = version.tables().filter_map(unreadable).collect();
        self.engine.read_path.open_views(&version);
        Ok(found)
    }

    /// The filters of each table of a keyspace and how they answered, newest first. [`Db::statistics`] has their sums by level.
    ///
    /// Cost: some hundred bytes of memory for each table.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a keyspace of another store; [`Error::KeyspaceDropped`].
    pub fn table_filters(&self, keyspace: &Keyspace) -> Result<Vec<TableFilterStatistics>> {
        let version = self.version_of(keyspace)?;
        Ok(statistics::table_filters(&version))
    }

    /// The tables of a keyspace with their places, key ranges and sizes, newest first in each partition. [`Db::statistics`] has their sums by level.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// db.put("apple", "red")?;
    /// db.flush()?;
    /// for table in db.tables(&db.default_keyspace())? {
    ///     println!("L{}: {} bytes from {:?} to {:?}", table.level, table.bytes, table.smallest_key, table.largest_key);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: two copied keys for each table; opens none.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a keyspace of another store; [`Error::KeyspaceDropped`].
    pub fn tables(&self, keyspace: &Keyspace) -> Result<Vec<TableStatistics>> {
        let version = self.version_of(keyspace)?;
        Ok(statistics::tables(&version))
    }

    /// The ranges of keys for which range tombstones in tables delete the most bytes of older tables, at most
    /// [`crate::LISTED_MAX`], the largest first. Range tombstones in memory, and single tombstones, are left out.
    ///
    /// Cost: opens the tables with range tombstones and those that they cut; two searches in an index for each range and such a table.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a keyspace of another store; [`Error::KeyspaceDropped`]; those of reads.
    pub fn deleted_ranges(&self, keyspace: &Keyspace) -> Result<Vec<DeletedRange>> {
        let version = self.version_of(keyspace)?;
        range_deletes::deleted_ranges(&version, &self.engine.store.tables)
    }

    /// The time that reads of a keyspace have lost because its runs are not merged, or have no sorted view, or because filters of its tables
    /// do not suit the queries, and the time of the job that saves it. The store makes the job automatically when both are equal. Places without a
    /// loss are left out.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// for loss in db.read_losses(&db.default_keyspace())? {
    ///     println!("{:?}: lost {:?} of {:?}", loss.job, loss.lost, loss.price);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a keyspace of another store; [`Error::KeyspaceDropped`].
    pub fn read_losses(&self, keyspace: &Keyspace) -> Result<Vec<ReadLoss>> {
        let version = self.version_of(keyspace)?;
        Ok(statistics::read_losses(&version, self.engine.job_times()))
    }

    /// The tables of a keyspace of this store.
    fn version_of(&self, keyspace: &Keyspace) -> Result<Arc<KeyspaceVersion>> {
        self.engine.store.context.check_process()?;
        keyspace.check_of(&self.engine)?;
        keyspace.check()?;
        Ok(Arc::clone(&keyspace.state.read_state.load().version))
    }

    /// The sampled queries of a keyspace, from which its filters are chosen, at most 20,000. Copies none of them: their memory, a part of
    /// [`Options::cache_bytes`], is used as long as the result exists.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a keyspace of another store; [`Error::KeyspaceDropped`].
    pub fn sampled_queries(&self, keyspace: &Keyspace) -> Result<SampledQueries> {
        self.engine.store.context.check_process()?;
        keyspace.check_of(&self.engine)?;
        keyspace.check()?;
        Ok(keyspace.state.read_state.load().query_sample.for_programs())
    }

    /// The prices by which the store chooses filters.
    pub fn filter_prices(&self) -> Prices {
        filter_prices(&self.engine.store.context.options)
    }

    /// Waits until no flush or compaction is due or running, and the files that they have replaced are deleted, except those that scans and
    /// snapshots still read.
    ///
    /// # Errors
    /// The error of a job that fails in the meantime.
    pub fn wait_for_compactions(&self) -> Result<()> {
        self.engine.store.context.check_open()?;
        self.engine.background.wait_for_compactions()
    }

    /// Counters since the open, and the state of log, cache and levels. All are 0 in a forked child.
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    /// Reads every byte of every current file from disk, even if it is open or cached, and reports all damage. Cost: reads all tables
    /// once.
    ///
    /// # Errors
    /// Only errors that end the call; damage is in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with(|_| ControlFlow::Continue(()))
    }

    /// As [`Db::verify`]. `progress` is called with the findings so far before each table; a break ends the call, which returns these
    /// findings.
    ///
    /// # Errors
    /// As [`Db::verify`].
    pub fn verify_with(
        &self,
        mut progress: impl FnMut(&VerifyReport) -> ControlFlow<()>,
    ) -> Result<VerifyReport> {
        self.engine.with_all_files(|| self.engine.store.verify(&mut progress))
    }

    /// Creates a consistent copy of the store in a folder that is new or empty, while writes continue. Tables are hard links if the
    /// file system supports them, so a copy takes little time and little space until the stores differ. The copy is an
    /// independent store. It survives a crash of the machine when the call returns.
    ///
    /// Cost: a link for each table, a copy of the log.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let db = tamis::Db::open(folder.path().join("store"))?;
    /// db.put("apple", "red")?;
    /// db.checkpoint(folder.path().join("copy"))?;
    /// db.put("apple", "green")?;
    ///
    /// let copy = tamis::Db::open(folder.path().join("copy"))?;
    /// assert_eq!(copy.get("apple")?.as_deref(), Some(b"red".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the folder is not empty or is in the folder of the store; [`Error::WritesRefused`] after a background error; [`Error::Io`] and
    /// [`Error::DiskFull`]; [`Error::Corruption`] if a table was cut short or is longer than it should be. After an error the
    /// folder is empty.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<CheckpointReport> {
        self.engine.with_all_files(|| self.engine.store.checkpoint(path.as_ref(), Verify::Lengths))
    }

    /// As [`Db::checkpoint`], and verifies every byte of the copied tables. Cost: reads all tables once.
    ///
    /// # Errors
    /// As [`Db::checkpoint`]; [`Error::Corruption`] also for tables with damaged bytes.
    pub fn checkpoint_verified(&self, path: impl AsRef<Path>) -> Result<CheckpointReport> {
        self.engine.with_all_files(|| self.engine.store.checkpoint(path.as_ref(), Verify::Checksums))
    }

    /// Adds tables that [`TableWriter`](crate::TableWriter) built to a keyspace: atomically, as one write that is newer than all
    /// earlier ones and survives a crash of the machine when the call returns. The files are **moved** into the store: a file that has
    /// another hard link, or is on another file system, is copied and then removed. [`Db::ingest_with`] keeps them.
    ///
    /// Concurrent writes to this keyspace may have to wait for a flush. Writes to other keyspaces and all reads continue.
    ///
    /// Cost: each file is read once, to verify it; the memtables of the keyspace are flushed.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let db = tamis::Db::open(folder.path().join("store"))?;
    /// db.put("pear", "green")?;
    /// let mut table = db.default_keyspace().table_writer(folder.path().join("new.table"))?;
    /// table.put("apple", "red")?;
    /// table.delete("pear")?;
    /// let file = table.finish()?;
    /// db.ingest(&db.default_keyspace(), [&file.path])?;
    /// assert_eq!(db.range(..).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for tables that overlap each other (ingest them one after the other); [`Error::Corruption`] and
    /// [`Error::UnknownFormat`] for files that are damaged or are no such tables; otherwise as [`Db::write`]. After an error none
    /// of their entries is visible, and the files are where they were.
    pub fn ingest<P: AsRef<Path>>(
        &self,
        keyspace: &Keyspace,
        tables: impl IntoIterator<Item = P>,
    ) -> Result<IngestReport> {
        self.ingest_with(keyspace, tables, IngestOptions::default())
    }

    /// As [`Db::ingest`], with options.
    ///
    /// # Errors
    /// As [`Db::ingest`].
    pub fn ingest_with<P: AsRef<Path>>(
        &self,
        keyspace: &Keyspace,
        tables: impl IntoIterator<Item = P>,
        options: IngestOptions,
    ) -> Result<IngestReport> {
        keyspace.check_of(&self.engine)?;
        keyspace.check()?;
        let paths: Vec<PathBuf> =
            tables.into_iter().map(|path| absolute(path.as_ref())).collect::<Result<_>>()?;
        self.engine.ingester.ingest(&keyspace.state, &paths, options)
    }

    /// As [`Db::verify`], for a store that may be too damaged to open: checks the files that the readable part of
    /// its manifest names. Nothing is changed. One that a process has open is verified by a reader ([`Db::open_reader`]).
    ///
    /// # Errors
    /// [`Error::NotADatabase`], [`Error::Locked`], and errors that end the call; damage is in the report.
    pub fn verify_folder(path: impl AsRef<Path>) -> Result<VerifyReport> {
        Self::verify_folder_on(Arc::new(OsVfs), path)
    }

    /// As [`Db::verify_folder`], on another file system.
    ///
    /// # Errors
    /// As [`Db::verify_folder`].
    pub fn verify_folder_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>) -> Result<VerifyReport> {
        Self::verify_path(vfs, path.as_ref(), &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Db::verify_folder`]. `progress` is called with the findings so far before each table; a break ends the call, which returns
    /// these findings.
    ///
    /// # Errors
    /// As [`Db::verify_folder`].
    pub fn verify_folder_with(
        path: impl AsRef<Path>,
        mut progress: impl FnMut(&VerifyReport) -> ControlFlow<()>,
    ) -> Result<VerifyReport> {
        Self::verify_path(Arc::new(OsVfs), path.as_ref(), &mut progress)
    }

    fn verify_path(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        progress: &mut impl FnMut(&VerifyReport) -> ControlFlow<()>,
    ) -> Result<VerifyReport> {
        match verify::verify_folder(&*vfs, &absolute(path)?, progress) {
            // A process has it open, so that a reader can open it.
            Err(Error::Locked { .. }) => {
                let reader =
                    Self::open_on(vfs, path, Options::default().mode(OpenMode::Reader), Runtime::system())?;
                reader.verify_with(progress)
            }
            verified => verified,
        }
    }

    /// Closes the store: syncs the log, waits for running jobs, and stops the workers. Memtables are not flushed; their entries are
    /// in the log. The lengths of the log's segments are recorded, so that the next open finds a segment that was lost or cut meanwhile.
    /// Later calls through other handles return [`Error::Closed`]; existing scans continue ([`crate::Scan`] says how long).
    ///
    /// # Errors
    /// As [`Db::persist`].
    pub fn close(self) -> Result<()> {
        self.engine.close()
    }
}

#[cfg(test)]
mod tests;
