//! The database as programs see it: open, keyspaces, writes, reads of the default keyspace, upkeep, close.

mod keyspace;
mod snapshot;

use std::{
    fmt,
    ops::RangeBounds,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis_vfs::{OsVfs, Vfs};

pub use self::{keyspace::Keyspace, snapshot::Snapshot};
use crate::{
    batch::WriteBatch,
    checkpoint::CheckpointReport,
    engine::Engine,
    error::{Error, Result},
    ingest::IngestReport,
    keyspace_state::KeyspaceState,
    metrics::Statistics,
    open_report::OpenReport,
    options::{DEFAULT_KEYSPACE, Durability, KeyspaceOptions, Options, TableFilter},
    read::scan::Scan,
    repair::{self, RepairReport},
    runtime::Runtime,
    slice::Slice,
    verify::{self, VerifyReport},
};

/// An open database: cheap to clone, usable from any thread. The last clone (and the last [`Keyspace`] and
/// [`Snapshot`]) to go closes it.
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
    engine: Arc<Engine>,
    default: Keyspace,
}

impl fmt::Debug for Db {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Db({})", self.engine.context.folder.display())
    }
}

impl Db {
    /// Opens the database in a folder, or makes one there, with default options.
    ///
    /// Time grows with the log that has to be replayed, not with the data.
    ///
    /// # Errors
    /// [`Error::Locked`] while it is open elsewhere; [`Error::NotADatabase`], [`Error::MissingFile`],
    /// [`Error::UnknownFormat`], [`Error::Corruption`] for what is in the folder; [`Error::Io`] and
    /// [`Error::DiskFull`] from the operating system.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens the database in a folder with options.
    ///
    /// # Errors
    /// As [`Db::open`]; [`Error::InvalidArgument`] names an option outside its bounds.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::open_on(Arc::new(OsVfs), path, options, Runtime::system())
    }

    /// Opens a database on a file system, clock, threads and seed of the caller's choice.
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
        let engine = Engine::open(vfs, path.as_ref(), options, runtime)?;
        let state = engine.keyspaces.named(DEFAULT_KEYSPACE)?;
        let default = Keyspace { engine: Arc::clone(&engine), state };
        Ok(Self { engine, default })
    }

    /// Makes the store in a folder open again, from all that can be read of it, where files are damaged or lost. What is not needed
    /// is moved to the folder `quarantine` within it; nothing is deleted. The report names every range of keys in which writes
    /// may be lost, and says whether deletes may be among them. A store in which nothing is wrong stays as it is.
    ///
    /// Cost: every file is read once. Where the manifest is lost and tables overlap, all are written anew: that needs
    /// as much space again.
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
    /// [`Error::NotADatabase`] for a folder without any file of a store; [`Error::Locked`] while it is open; [`Error::Io`]
    /// and [`Error::DiskFull`] from the system; [`Error::UnknownFormat`], [`Error::UnknownChange`] and
    /// [`Error::UnknownEntryKind`] for what another program wrote: the store is then as it was, and can be repaired again.
    pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
        Self::repair_on(Arc::new(OsVfs), path, &Runtime::system())
    }

    /// As [`Db::repair`], on a file system and with a seed of the caller's choice.
    ///
    /// # Errors
    /// As [`Db::repair`].
    pub fn repair_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, runtime: &Runtime) -> Result<RepairReport> {
        repair::repair(&vfs, path.as_ref(), runtime)
    }

    /// What was found and done at open: replayed records, a torn log tail that was cut, orphans swept.
    pub fn open_report(&self) -> &OpenReport {
        &self.engine.report
    }

    /// The folder.
    pub fn path(&self) -> PathBuf {
        self.engine.context.folder.clone()
    }

    /// The keyspace that every database has; `Db`'s own reads and writes use it.
    pub fn default_keyspace(&self) -> Keyspace {
        self.default.clone()
    }

    fn wrap(&self, state: Arc<KeyspaceState>) -> Keyspace {
        Keyspace { engine: Arc::clone(&self.engine), state }
    }

    /// The keyspace of this name.
    ///
    /// # Errors
    /// [`Error::KeyspaceNotFound`].
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        Ok(self.wrap(self.engine.keyspaces.named(name)?))
    }

    /// Makes a keyspace. It survives the machine when the call returns.
    ///
    /// # Errors
    /// [`Error::KeyspaceExists`]; [`Error::InvalidArgument`] for an option outside its bounds or a name that is not 1
    /// to 255 bytes long; otherwise as [`Db::write`].
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        Ok(self.wrap(self.engine.keyspace_admin.create(name, options)?))
    }

    /// The keyspace of this name, made with `options` where there is none.
    ///
    /// # Errors
    /// As [`Db::create_keyspace`].
    pub fn get_or_create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        match self.keyspace(name) {
            Err(Error::KeyspaceNotFound { .. }) => self.create_keyspace(name, options),
            found => found,
        }
    }

    /// Drops a keyspace with all its data; handles of it answer [`Error::KeyspaceDropped`] from now on, scans that
    /// were begun go on. A new keyspace may take the name.
    ///
    /// # Errors
    /// [`Error::KeyspaceNotFound`]; [`Error::InvalidArgument`] for the default keyspace; otherwise as [`Db::write`].
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.engine.keyspace_admin.drop(name)
    }

    /// The names of all keyspaces, sorted.
    pub fn keyspace_names(&self) -> Vec<String> {
        self.engine.keyspaces.names()
    }

    /// Sets the value of a key in the default keyspace. See [`Keyspace::put`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default.put(key, value)
    }

    /// Deletes a key of the default keyspace. See [`Keyspace::delete`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default.delete(key)
    }

    /// Deletes all keys of a range from the default keyspace. See [`Keyspace::delete_range`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.default.delete_range(range)
    }

    /// Deletes all keys that begin with `prefix` from the default keyspace. See [`Keyspace::delete_range`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.default.delete_prefix(prefix)
    }

    /// Writes a batch at [`Durability::Buffered`]: all of it or nothing, across keyspaces.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when its keyspaces are of another database; [`Error::KeyspaceDropped`] when one is gone; [`Error::DiskFull`] and [`Error::Io`] when the
    /// log can't be written; [`Error::WritesRefused`] after a failed sync: nothing of the batch is visible.
    pub fn write(&self, batch: WriteBatch) -> Result<()> {
        self.write_with(batch, Durability::default())
    }

    /// Writes a batch at a durability.
    ///
    /// # Errors
    /// As [`Db::write`]. After an error of the sync itself ([`Durability::Synced`]) the batch is not visible, but may
    /// be found after a crash.
    pub fn write_with(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        batch.check_database(self.engine.id())?;
        self.engine.write_path.write(batch, durability)
    }

    /// Makes all writes that returned before as durable as `durability` says.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn persist(&self, durability: Durability) -> Result<()> {
        self.engine.log.persist(durability)
    }

    /// The value of a key of the default keyspace. See [`Keyspace::get`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.default.get(key)
    }

    /// The values of several keys of the default keyspace. See [`Keyspace::multi_get`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        self.default.multi_get(keys)
    }

    /// A range of the default keyspace. See [`Keyspace::range`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Scan {
        self.default.range(range)
    }

    /// The keys of the default keyspace that begin with `prefix`. See [`Keyspace::prefix`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.default.prefix(prefix)
    }

    /// The entry of the default keyspace with the least key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.default.first()
    }

    /// The entry of the default keyspace with the greatest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.default.last()
    }

    /// All keyspaces as they are now. Of a batch it sees all or nothing.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.engine))
    }

    /// Writes the memtables of all keyspaces into tables, and waits for it.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn flush(&self) -> Result<()> {
        self.engine.background.flush_all()
    }

    /// Merges all that a key range of a keyspace holds down to its deepest level, dropping
    /// tombstones and the old versions it meets that nothing needs, and waits for it.
    ///
    /// # Errors
    /// As [`Db::write`]; [`Error::Corruption`] from the tables read.
    pub fn compact_range<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<()> {
        keyspace.check_of(&self.engine)?;
        keyspace.check()?;
        self.engine.background.compact_range(&keyspace.state, &keyspace::range_bounds(&range))
    }

    /// Builds filters for all tables of a keyspace anew, where one was reported as damaged or others are wanted; an empty
    /// list puts those that the tables were written with in force again. Tables written later use the keyspace's options.
    ///
    /// Cost: reads the key columns of the tables, or all their blocks where they have none; writes the filters only.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for filters that can't be built; otherwise as [`Db::compact_range`].
    pub fn rebuild_filters(&self, keyspace: &Keyspace, filters: &[TableFilter]) -> Result<()> {
        keyspace.check_of(&self.engine)?;
        keyspace.check()?;
        self.engine.filter_rebuilder.rebuild(&keyspace.state, filters)
    }

    /// Waits until no flush or compaction is due.
    ///
    /// # Errors
    /// The error of a job that failed meanwhile.
    pub fn wait_for_compactions(&self) -> Result<()> {
        self.engine.background.wait_for_compactions()
    }

    /// Counters since open, and the state of log, cache and levels.
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    /// Reads every byte of every file that is in force and reports all damage. Cost: reads all tables once.
    ///
    /// # Errors
    /// Only those that keep it from going on; damage is in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.engine.verifier.verify()
    }

    /// Makes a copy of the database, as it is at one moment, in a folder that is new or empty; writes go on meanwhile. Tables are
    /// hard links where the file system allows it, so that a copy costs little time and, until the stores differ, little space. The
    /// copy is a database of its own: open it as any other. It survives the machine when the call returns.
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
    /// [`Error::InvalidArgument`] for a folder that holds something; [`Error::WritesRefused`] after a failed sync;
    /// [`Error::Io`] and [`Error::DiskFull`] from the system: nothing is left in the folder then.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<CheckpointReport> {
        self.engine.checkpointer.checkpoint(path.as_ref())
    }

    /// Takes tables that [`TableWriter`](crate::TableWriter) built into a keyspace: all of them or none, as one write that is
    /// newer than all before it and survives the machine when the call returns. The files are linked (copied where that is not
    /// possible): afterwards they may be removed, but must not be changed.
    ///
    /// Writes of this keyspace wait for a flush where there are many; those of others, and all reads, go on.
    ///
    /// Cost: each file is read once, to verify it; the memtables are flushed.
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
    /// assert_eq!(db.range::<&str>(..).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for tables that overlap each other (ingest them one after the other);
    /// [`Error::Corruption`] and [`Error::UnknownFormat`] for files that are damaged or no such tables; otherwise as
    /// [`Db::write`]. Nothing of any of them is seen then.
    pub fn ingest<P: AsRef<Path>>(
        &self,
        keyspace: &Keyspace,
        tables: impl IntoIterator<Item = P>,
    ) -> Result<IngestReport> {
        keyspace.check_of(&self.engine)?;
        keyspace.check()?;
        let paths: Vec<PathBuf> = tables.into_iter().map(|path| path.as_ref().to_path_buf()).collect();
        self.engine.ingester.ingest(&keyspace.state, &paths)
    }

    /// As [`Db::verify`], for a store that is not open, and may be too damaged to be opened: what the readable part of its manifest
    /// names is checked, and every fault is in the report. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::NotADatabase`], [`Error::Locked`], and those that keep it from going on.
    pub fn verify_folder(path: impl AsRef<Path>) -> Result<VerifyReport> {
        Self::verify_folder_on(Arc::new(OsVfs), path)
    }

    /// As [`Db::verify_folder`], on a file system of the caller's choice.
    ///
    /// # Errors
    /// As [`Db::verify_folder`].
    pub fn verify_folder_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>) -> Result<VerifyReport> {
        verify::verify_folder(&vfs, path.as_ref())
    }

    /// Closes the database: the log is synced, running jobs end, workers stop. Memtables stay
    /// in the log. Later calls through other handles get [`Error::Closed`]; scans that were begun go on.
    ///
    /// # Errors
    /// As [`Db::persist`].
    pub fn close(self) -> Result<()> {
        self.engine.close()
    }
}
