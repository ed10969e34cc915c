//! The public handle of a keyspace.

use std::{fmt, ops::Bound, path::Path, sync::Arc, time::SystemTime};

use tamis_vfs::fork::OwnedByProcess;

use crate::{
    admin::table_writer::TableWriter,
    batch::{BatchWrite, WriteBatch, foreign_keyspace},
    cursor::bounded::{Bounds, ScanRange, as_slice, prefix_bounds, range_bounds},
    error::{Error, Result},
    key_range_bounds::KeyRangeBounds,
    options::KeyspaceOptions,
    range_tombstone::half_open,
    read::scan::Scan,
    slice::Slice,
    store::{engine::Engine, keyspace_state::KeyspaceState},
};

/// A named, ordered map from keys to values: cheap to clone, usable from any thread.
///
/// Keys are byte strings of 1 to 65,535 bytes in lexicographic order; values have up to 256 MiB. Unsigned integers keep their
/// order as keys if they are encoded big-endian (`to_be_bytes`).
///
/// ```
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// let db = tamis::Db::open(folder.path())?;
/// let events = db.create_keyspace("events", tamis::KeyspaceOptions::default())?;
/// for time in 0..10_u64 {
///     events.put(&time.to_be_bytes(), b"tick")?;
/// }
/// let from_three = events.range(3_u64.to_be_bytes()..).count();
/// assert_eq!(from_three, 7);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Keyspace {
    pub(crate) engine: OwnedByProcess<Arc<Engine>>,
    pub(crate) state: OwnedByProcess<Arc<KeyspaceState>>,
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Keyspace({:?})", self.state.name)
    }
}

impl Keyspace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Its options: those with which it was created, with the changes since ([`Keyspace::set_options`]).
    pub fn options(&self) -> KeyspaceOptions {
        KeyspaceOptions::clone(&self.state.options())
    }

    /// Changes its layout, views, filters, key codec, and the age at which puts expire; a keyspace without a merge operator gets one. Reads and writes continue while the background adapts the tables and views:
    ///
    /// - **Layout**: compactions rewrite the tables, until they have the new layout.
    /// - **Views**: later views are built by the new rule; with [`crate::Views::Off`] the existing ones are removed.
    /// - **Filters**: tables that are written later get the new filters. Existing tables keep theirs, which are still probed, until a
    ///   compaction rewrites the table or [`super::Db::rebuild_filters`] replaces them; so it is with [`crate::Filters::none`], too. With
    ///   [`crate::Filters::auto`] the background also checks existing tables, and replaces filters that do not suit the queries;
    ///   [`super::Db::check_filters`] does so at once. Without it no filters are checked any more.
    /// - **Expiry**: later puts expire at the new age; existing entries keep their time.
    ///
    /// The change is durable when the call returns. The call waits until a running flush of the keyspace ends. Running compactions of the
    /// keyspace stop at their next table and begin again with the new options.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// use tamis::{Layout, Views};
    ///
    /// let events = db.create_keyspace("events", tamis::KeyspaceOptions::default())?;
    /// events.set_options(events.options().layout(Layout::tiered()).views(Views::On))?;
    /// assert_eq!(events.options().layout, Layout::tiered());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::KeyspaceOption`] names the first other option that is not that of the keyspace; [`crate::Error::InvalidArgument`]
    /// for a value outside its bounds; otherwise as [`super::Db::create_keyspace`]. Nothing is changed then.
    pub fn set_options(&self, options: KeyspaceOptions) -> Result<()> {
        self.engine.background.set_options(&self.state, options)
    }

    /// Refuses options with which an existing keyspace is opened if they are not its own. An option that has its default is not compared: it
    /// was left out. [`KeyspaceOptions::key_codec`] is not compared.
    ///
    /// # Errors
    /// [`crate::Error::KeyspaceOption`] names the first one, the stored value, and how to change it.
    pub fn check_options(&self, options: &KeyspaceOptions) -> Result<()> {
        options.check_stored(self.name(), &self.state.options())
    }

    pub(crate) fn id(&self) -> u32 {
        self.state.id
    }

    /// Sets the value of a key, with [`crate::Durability::Buffered`]. Other durabilities: [`super::Db::write_with`].
    ///
    /// # Errors
    /// [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`], [`crate::Error::ValueTooLong`]; [`crate::Error::DiskFull`] and
    /// [`crate::Error::Io`] if the log can't be written (the write had no effect); [`crate::Error::WritesRefused`] after a background
    /// error.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        self.add_put(&mut batch, key.as_ref(), value.as_ref())?;
        self.engine.write_path.write_in(&self.state, batch)
    }

    /// Adds a put with the options of the keyspace.
    #[inline]
    pub(crate) fn add_put(&self, batch: &mut WriteBatch, key: &[u8], value: &[u8]) -> Result<()> {
        match self.state.expire_after() {
            0 => batch.put_in(self.id(), key, value),
            age => batch.put_until_in(self.id(), key, value, self.engine.store.context.expiry.after(age)),
        }
    }

    /// Sets the value of a key until a time, from which on no reader finds it. A snapshot, a transaction and a scan see the entries of one time. The space of expired entries
    /// comes back by compactions; a table in which all entries are expired is deleted without a read.
    ///
    /// The time is that of the system's clock, in milliseconds. If the clock is set back, expired entries stay expired: the time of a store never decreases. So a clock that
    /// was far ahead once makes the store expire entries until then permanently.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let sessions = db.default_keyspace();
    /// sessions.put_until("session 7", "ann", SystemTime::now() + Duration::from_secs(3600))?;
    /// assert!(sessions.contains("session 7")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for a time that is not in the future; otherwise as [`Keyspace::put`].
    pub fn put_until(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, time: SystemTime) -> Result<()> {
        let mut batch = WriteBatch::new();
        self.add_put_until(&mut batch, key.as_ref(), value.as_ref(), time)?;
        self.engine.write_path.write_in(&self.state, batch)
    }

    pub(crate) fn add_put_until(
        &self,
        batch: &mut WriteBatch,
        key: &[u8],
        value: &[u8],
        time: SystemTime,
    ) -> Result<()> {
        let time = self.engine.store.context.expiry.time_of(time)?;
        batch.put_until_in(self.id(), key, value, time)
    }

    /// Adds an operand to the value of a key, without a read: the keyspace's merge operator ([`KeyspaceOptions::merge`]) makes the value of it when the key is read. The
    /// operand applies to the value that the key has now, and to none after a delete. On a value that expires it applies until then, and to none from then on.
    ///
    /// Cost: that of a put. A read merges the operands that no flush or compaction has merged yet: many operands of a key in a memtable make reads of it slower.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// use tamis::{KeyspaceOptions, MergeOperator};
    ///
    /// let log = db.create_keyspace("log", KeyspaceOptions::default().merge(Some(MergeOperator::append(b"; "))))?;
    /// log.put("today", "begin")?;
    /// log.merge("today", "work")?;
    /// log.merge("today", "rest")?;
    /// assert_eq!(log.get("today")?.as_deref(), Some(b"begin; work; rest".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for a keyspace without a merge operator, and for an operand that the operator refuses; otherwise as [`Keyspace::put`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        self.add_merge(&mut batch, key.as_ref(), operand.as_ref())?;
        self.engine.write_path.write_in(&self.state, batch)
    }

    pub(crate) fn add_merge(&self, batch: &mut WriteBatch, key: &[u8], operand: &[u8]) -> Result<()> {
        let read_state = self.state.read_state.load();
        let Some(operator) = &read_state.version.options.merge else {
            return Err(Error::InvalidArgument {
                what: "merge operand",
                got: format!("keyspace {:?} has no merge operator", self.name()),
                expected: "create the keyspace with `KeyspaceOptions::merge`".to_owned(),
            });
        };
        operator.check_operand(operand)?;
        batch.merge_in(self.id(), key, operand)
    }

    /// Deletes a key, with [`crate::Durability::Buffered`]. It need not exist.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete_in(self.state.id, key.as_ref())?;
        self.engine.write_path.write_in(&self.state, batch)
    }

    /// Deletes all keys of a range, with [`crate::Durability::Buffered`]. Cost: one log record for any number of keys. A range
    /// with reversed bounds is empty.
    ///
    /// Reads skip the deleted keys in every table. Compactions drop tables in which all keys are deleted without reading them, so
    /// disk space is reclaimed soon after the call.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// for day in 1..=9_u8 {
    ///     db.put([day], "events")?;
    /// }
    /// db.default_keyspace().delete_range([2]..=[4])?;
    /// assert_eq!(db.range(..).count(), 6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_range(&self, range: impl KeyRangeBounds) -> Result<()> {
        self.delete_bounds(&range_bounds(&range))
    }

    /// Deletes all keys that begin with `prefix`. See [`Keyspace::delete_range`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.delete_bounds(&prefix_bounds(prefix.as_ref()))
    }

    /// Deletes all keys. See [`Keyspace::delete_range`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn clear(&self) -> Result<()> {
        self.delete_bounds(&(Bound::Unbounded, Bound::Unbounded))
    }

    fn delete_bounds(&self, bounds: &Bounds) -> Result<()> {
        let mut batch = WriteBatch::new();
        add_delete_range(&mut batch, self.state.id, bounds)?;
        if batch.is_empty() { self.check() } else { self.engine.write_path.write_in(&self.state, batch) }
    }

    /// The value of a key.
    ///
    /// Cost: a lookup in the memtables, then one filter probe for each run that covers the key, and one block read of the run that
    /// holds it (and of each run whose filter returns a false positive: about 1 % with 10 bits per key). Runs without filters are all
    /// read, newest first, unless a sorted view knows which of them has the key.
    ///
    /// # Errors
    /// [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`]; [`crate::Error::Io`] and [`crate::Error::Corruption`] from the tables.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.engine.read_path.get(&self.state, key.as_ref(), None)
    }

    /// Whether a key exists. Cost as [`Keyspace::get`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The values of several keys at one point in time, in the order of `keys`.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; the first error ends the call.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        self.engine.read_path.multi_get(&self.state, keys, None)
    }

    /// The entries with keys in `range`, in key order, at the time of the call. No entry is read before the first step; the filters are
    /// asked at once if the range has two bounds.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// for entry in db.range("a"..="b").rev() {
    ///     let (key, value) = entry?;
    ///     println!("{key:?} {value:?}");
    /// }
    /// assert_eq!(db.range(..).count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self, range: impl KeyRangeBounds) -> Scan {
        self.scan(ScanRange::Bounds(range_bounds(&range)))
    }

    /// All entries, in key order, at the time of the call: `range(..)`.
    pub fn iter(&self) -> Scan {
        self.range(..)
    }

    /// The entries of several ranges, in their order, all at one point in time.
    ///
    /// Cost: the filters of all tables are probed together, in key order, before a block is read; a range that they reject costs nothing
    /// more.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// for hour in 0..48_u32 {
    ///     db.put(hour.to_be_bytes(), b"event")?;
    /// }
    /// let hours = [0_u32..2, 24..26, 90..99].map(|hours| hours.start.to_be_bytes()..hours.end.to_be_bytes());
    /// let counts: Vec<usize> = db.multi_range(hours).into_iter().map(Iterator::count).collect();
    /// assert_eq!(counts, [2, 2, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_range(&self, ranges: impl IntoIterator<Item = impl KeyRangeBounds>) -> Vec<Scan> {
        let ranges = ranges.into_iter().map(|range| range_bounds(&range)).collect();
        self.engine.read_path.multi_scan(&self.state, ranges, None)
    }

    /// The entries with keys that begin with `prefix`, in key order, at the time of the call.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.scan(ScanRange::Prefix(prefix.as_ref().to_vec()))
    }

    fn scan(&self, keys: ScanRange) -> Scan {
        self.engine.read_path.scan(&self.state, keys, None)
    }

    /// The approximate number of keys in `range`. In a compacted store it is exact to within two blocks per end of the range;
    /// versions and deletes that are not merged yet make it less exact. Within the runs of a sorted view it is exact, unless they have
    /// range tombstones.
    ///
    /// Cost: lookups in the indexes of the tables at both ends, no block reads; at most two blocks for each sorted view. In each memtable
    /// at most some hundreds of entries are visited; a count of more is an estimate, off by 6 % on average.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// for number in 0..10_000_u32 {
    ///     db.put(number.to_be_bytes(), "value")?;
    /// }
    /// db.flush()?;
    /// let count = db.default_keyspace().approximate_count(2_000_u32.to_be_bytes()..7_000_u32.to_be_bytes())?;
    /// assert!((4_500..5_500).contains(&count));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn approximate_count(&self, range: impl KeyRangeBounds) -> Result<u64> {
        self.engine.read_path.approximate_count(&self.state, &range_bounds(&range))
    }

    /// The entry with the smallest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.scan(ScanRange::Bounds((Bound::Unbounded, Bound::Unbounded))).next().transpose()
    }

    /// The entry with the largest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.scan(ScanRange::Bounds((Bound::Unbounded, Bound::Unbounded))).next_back().transpose()
    }

    /// Begins a table outside of the store for an ingest into this keyspace ([`super::Db::ingest`]), with the options of the
    /// keyspace's deepest level.
    ///
    /// # Errors
    /// As [`TableWriter::create`].
    pub fn table_writer(&self, path: impl AsRef<Path>) -> Result<TableWriter> {
        let context = &self.engine.store.context;
        let (vfs, clock) = (Arc::clone(context.folder.vfs()), Arc::clone(&context.runtime.clock));
        TableWriter::with_seed(vfs, path.as_ref(), (&self.state.options(), self.engine.filter_seed), clock)
    }

    /// Refuses a keyspace of another store.
    pub(crate) fn check_of(&self, engine: &Engine) -> Result<()> {
        if std::ptr::eq(&**self.engine, engine) { Ok(()) } else { Err(foreign_keyspace()) }
    }

    /// [`crate::Error::KeyspaceDropped`] after a drop.
    pub(crate) fn check(&self) -> Result<()> {
        self.state.check()
    }
}

impl WriteBatch {
    /// Adds a put to the batch.
    ///
    /// # Errors
    /// [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`], [`crate::Error::ValueTooLong`], [`crate::Error::BatchTooLarge`];
    /// [`crate::Error::InvalidArgument`] for a keyspace of another database than those before: the batch stays as it was.
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.claim(keyspace.engine.id())?;
        keyspace.add_put(self, key.as_ref(), value.as_ref())
    }

    /// Adds a put with a time of expiry to the batch. See [`Keyspace::put_until`].
    ///
    /// # Errors
    /// As [`WriteBatch::put`], and those of [`Keyspace::put_until`].
    pub fn put_until(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: SystemTime,
    ) -> Result<()> {
        self.claim(keyspace.engine.id())?;
        keyspace.add_put_until(self, key.as_ref(), value.as_ref(), time)
    }

    /// Adds an operand to the batch. See [`Keyspace::merge`].
    ///
    /// # Errors
    /// As [`WriteBatch::put`], and those of [`Keyspace::merge`].
    pub fn merge(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.claim(keyspace.engine.id())?;
        keyspace.add_merge(self, key.as_ref(), operand.as_ref())
    }

    /// Adds a delete to the batch.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.claim(keyspace.engine.id())?;
        self.delete_in(keyspace.id(), key.as_ref())
    }

    /// Adds the delete of all keys of a range to the batch; later entries of the batch are not deleted. See
    /// [`Keyspace::delete_range`].
    ///
    /// # Errors
    /// As [`WriteBatch::put`], without those of keys and values.
    pub fn delete_range(&mut self, keyspace: &Keyspace, range: impl KeyRangeBounds) -> Result<()> {
        self.claim(keyspace.engine.id())?;
        add_delete_range(self, keyspace.id(), &range_bounds(&range))
    }

    /// Adds the delete of all keys that begin with `prefix` to the batch. See [`WriteBatch::delete_range`].
    ///
    /// # Errors
    /// As [`WriteBatch::delete_range`].
    pub fn delete_prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.claim(keyspace.engine.id())?;
        add_delete_range(self, keyspace.id(), &prefix_bounds(prefix.as_ref()))
    }

    /// The writes of the batch to a keyspace, in their order.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// let keyspace = db.default_keyspace();
    /// let mut batch = tamis::WriteBatch::new();
    /// batch.put(&keyspace, "apple", "red")?;
    /// let put = batch.writes(&keyspace).next();
    /// assert_eq!(put, Some(tamis::BatchWrite::Put { key: b"apple", value: b"red" }));
    /// # Ok(())
    /// # }
    /// ```
    pub fn writes(&self, keyspace: &Keyspace) -> impl Iterator<Item = BatchWrite<'_>> {
        let is_of_store = self.check_database(keyspace.engine.id()).is_ok();
        let id = keyspace.id();
        self.unnumbered().filter(move |entry| is_of_store && entry.keyspace == id).map(BatchWrite::of)
    }
}

/// Adds nothing if no key is between the bounds.
pub(crate) fn add_delete_range(batch: &mut WriteBatch, keyspace: u32, bounds: &Bounds) -> Result<()> {
    let (lower, upper) = (as_slice(&bounds.0), as_slice(&bounds.1));
    match half_open(lower, upper) {
        Some((lower, upper)) => batch.delete_range_in(keyspace, &lower, &upper),
        None => Ok(()),
    }
}
