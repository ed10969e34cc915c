//! Tables built outside of a store, for [`crate::Db::ingest`] (`docs/format/table.md`, "Tables built outside of a store").
//!
//! Such a table holds each key once. Its entries have sequence number 0, and its properties name no store, no keyspace and no file
//! number: the manifest of the store that ingests it records its place and its sequence number.

use std::{
    fmt,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tamis_filter::auto::{Effort, Prices};
use tamis_vfs::{Folder, OsVfs, Vfs, fork::Process};

use crate::{
    admin::link::folder_of,
    cursor::bounded::{Bounds, prefix_bounds, range_bounds},
    error::{Error, Result},
    expiry::{self, ExpiryClock},
    file_name::FileName,
    key::{Kind, check_key, check_value},
    key_range_bounds::KeyRangeBounds,
    merge_operator::MergeOperator,
    observe::{
        events::{Event, EventListener},
        metrics::LEVEL_COUNT_MAX,
        query_sample::SharedQueries,
    },
    options::{Compression, FilterSource, KeyspaceOptions},
    range_tombstone::{Fragment, RangeTombstone, fragment, half_open},
    store::{
        runtime::{Clock, Runtime},
        store_folder::absolute,
    },
    sync::Mutex,
    table::{
        filter_plan::{ChoiceInput, FilterPlan},
        properties::TableOrigin,
        writer::{TableOptions, TableWriter as Writer},
    },
};

/// The result of [`TableWriter::finish`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableFile {
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Number of entries, including deletes.
    pub entry_count: u64,
    /// Number of deletes of one key.
    pub tombstone_count: u64,
    /// Number of disjoint deleted ranges.
    pub range_tombstone_count: u64,
    /// The first key.
    pub smallest_key: Vec<u8>,
    /// The last key.
    pub largest_key: Vec<u8>,
    /// Filters of the options that can't be built for these keys, and why. The table does not have them.
    pub failed_filters: Vec<String>,
}

/// Collects the filters that can't be built.
#[derive(Debug, Default)]
struct FailedFilters(Mutex<Vec<String>>);

impl EventListener for FailedFilters {
    fn on_event(&self, event: &Event) {
        if let Event::FilterBuildFailed { reason, .. } = event {
            self.0.lock().push(reason.clone());
        }
    }
}

/// Builds a table outside of a store, key by key in ascending order, on any machine and thread. Any store can ingest it
/// ([`crate::Db::ingest`]).
///
/// The file gets its name in [`TableWriter::finish`]. Dropping an unfinished writer removes its temporary file. A killed process
/// leaves `PATH.tamis-tmp`, which the next writer of the same table reuses. A second concurrent writer of a table is refused if
/// the file system supports locks.
///
/// ```
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// let path = folder.path().join("prices.table");
/// let mut table = tamis::TableWriter::create(&path, &tamis::KeyspaceOptions::default())?;
/// for number in 0..1_000_u64 {
///     table.put(number.to_be_bytes(), format!("price {number}"))?;
/// }
/// let file = table.finish()?;
/// assert_eq!(file.entry_count, 1_000);
///
/// let db = tamis::Db::open(folder.path().join("store"))?;
/// db.ingest(&db.default_keyspace(), [&file.path])?;
/// assert_eq!(db.get(7_u64.to_be_bytes())?.as_deref(), Some(b"price 7".as_slice()));
/// # Ok(())
/// # }
/// ```
pub struct TableWriter {
    path: PathBuf,
    vfs: Arc<dyn Vfs>,
    process: Process,
    /// `None` once the table is finished.
    writer: Option<Writer>,
    /// The deleted ranges, in the order of the calls. All have one sequence number.
    deleted: Vec<RangeTombstone>,
    smallest_key: Option<Vec<u8>>,
    failed_filters: Arc<FailedFilters>,
    expire_after: Option<Duration>,
    merge: Option<MergeOperator>,
    clock: ExpiryClock,
}

impl fmt::Debug for TableWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TableWriter({})", self.path.display())
    }
}

/// The filters of a table of the deepest level. Without a store there are no sampled queries.
fn filter_plan(options: &KeyspaceOptions, seed: u64) -> FilterPlan {
    match options.filters.source() {
        FilterSource::Chosen(budget) => FilterPlan::Chosen(Box::new(ChoiceInput {
            bits_per_key: budget.of_single_table(),
            effort: Effort::Write,
            prices: Prices::default(),
            queries: SharedQueries::default(),
            current: None,
            other_runs: Arc::default(),
            seed,
            shared: Arc::default(),
        })),
        FilterSource::Given(_) => FilterPlan::given(options.filters.of_level(LEVEL_COUNT_MAX - 1).to_vec()),
    }
}

impl TableWriter {
    /// Begins a table at `path` with the options of the deepest level. If the store is known, prefer
    /// [`crate::Keyspace::table_writer`]: reads then need one hash for the filters of all tables.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an option outside its bounds; [`Error::Io`] and [`Error::DiskFull`],
    /// also if the file exists already or another writer is building it.
    pub fn create(path: impl AsRef<Path>, options: &KeyspaceOptions) -> Result<Self> {
        Self::create_on(Arc::new(OsVfs), path, options)
    }

    /// As [`TableWriter::create`], on another file system.
    ///
    /// # Errors
    /// As [`TableWriter::create`].
    pub fn create_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, options: &KeyspaceOptions) -> Result<Self> {
        Self::with_seed(vfs, path.as_ref(), (options, 0), Runtime::system().clock)
    }

    pub(crate) fn with_seed(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        options: (&KeyspaceOptions, u64),
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        options.0.check()?;
        let path = &absolute(path)?;
        refuse_existing(&*vfs, path)?;
        Self::begin_with(vfs, path, (options, clock), Writer::create_outside)
    }

    /// A table in the folder of a store, which an ingest installs under this number.
    pub(crate) fn in_store(folder: &Folder, number: u64, options: (&KeyspaceOptions, u64)) -> Result<Self> {
        let clock = Runtime::system().clock;
        let temporary = FileName::Temporary(number).path(folder);
        Self::begin_with(
            Arc::clone(folder.vfs()),
            &FileName::Table(number).path(folder),
            (options, clock),
            |vfs, path, options| Writer::create_outside_as(vfs, temporary, path, options),
        )
    }

    fn begin_with(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        ((keyspace, filter_seed), clock): ((&KeyspaceOptions, u64), Arc<dyn Clock>),
        create: impl FnOnce(&Arc<dyn Vfs>, &Path, TableOptions) -> Result<Writer>,
    ) -> Result<Self> {
        let failed_filters = Arc::new(FailedFilters::default());
        let options = TableOptions {
            block_bytes: keyspace.block_bytes,
            compression: keyspace.compression.last().copied().unwrap_or(Compression::None),
            filters: filter_plan(keyspace, filter_seed),
            filter_seed,
            origin: TableOrigin::default(),
            is_direct: false,
            listener: Some(Arc::<FailedFilters>::clone(&failed_filters)),
        };
        let writer = create(&vfs, path, options)?;
        Ok(Self {
            path: path.to_path_buf(),
            vfs,
            process: Process::current(),
            writer: Some(writer),
            deleted: Vec::new(),
            smallest_key: None,
            failed_filters,
            expire_after: keyspace.expire_after,
            merge: keyspace.merge.clone(),
            clock: ExpiryClock::new(clock),
        })
    }

    /// Adds a put. With [`KeyspaceOptions::expire_after`] it expires at this age, counted from now.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that is not greater than the previous one; [`Error::KeyEmpty`],
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`]; [`Error::DiskFull`] and [`Error::Io`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        match self.expire_after {
            None => self.add(key.as_ref(), Kind::Put, value.as_ref()),
            Some(age) => {
                self.add_expiring(key.as_ref(), value.as_ref(), self.clock.after(expiry::milliseconds(age)))
            }
        }
    }

    /// Adds a put that expires at a time; see [`crate::Keyspace::put_until`].
    ///
    /// # Errors
    /// As [`TableWriter::put`]; [`Error::InvalidArgument`] for a time that is not in the future.
    pub fn put_until(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: SystemTime,
    ) -> Result<()> {
        let time = self.clock.time_of(time)?;
        self.add_expiring(key.as_ref(), value.as_ref(), time)
    }

    fn add_expiring(&mut self, key: &[u8], value: &[u8], time: u64) -> Result<()> {
        self.add(key, Kind::ExpiringPut, &expiry::stored(time, value))
    }

    /// Adds an operand; see [`crate::Keyspace::merge`]. A keyspace without a merge operator can't read it.
    ///
    /// # Errors
    /// As [`TableWriter::put`]; [`Error::InvalidArgument`] for options without a merge operator, and for an operand that the operator refuses.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let Some(operator) = &self.merge else {
            return Err(Error::InvalidArgument {
                what: "merge operand",
                got: "the options of the table have no merge operator".to_owned(),
                expected: "use options with `KeyspaceOptions::merge`".to_owned(),
            });
        };
        operator.check_operand(operand.as_ref())?;
        self.add(key.as_ref(), Kind::Operand, operand.as_ref())
    }

    /// Adds a delete: an ingest of the table deletes the key.
    ///
    /// # Errors
    /// As [`TableWriter::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), Kind::Tombstone, &[])
    }

    /// Adds the delete of all keys of a range: an ingest of the table deletes the keys that the store has in this range, and adds
    /// the keys of the table. A range with reversed bounds is empty.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a range that begins below the first key of the table.
    pub fn delete_range(&mut self, range: impl KeyRangeBounds) -> Result<()> {
        self.delete_bounds(&range_bounds(&range))
    }

    /// Adds the delete of all keys that begin with `prefix`. See [`TableWriter::delete_range`].
    ///
    /// # Errors
    /// As [`TableWriter::delete_range`].
    pub fn delete_prefix(&mut self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.delete_bounds(&prefix_bounds(prefix.as_ref()))
    }

    fn delete_bounds(&mut self, (lower, upper): &Bounds) -> Result<()> {
        let (lower, upper) = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let Some((lower, upper)) = half_open(lower, upper) else { return Ok(()) };
        if let Some(smallest) = &self.smallest_key
            && lower.as_ref() < smallest.as_slice()
        {
            return Err(Error::InvalidArgument {
                what: "range",
                got: format!(
                    "the lower bound {} below the table's first key {}",
                    lower.escape_ascii(),
                    smallest.escape_ascii()
                ),
                expected: "delete the range before the first key is added".to_owned(),
            });
        }
        let (lower, upper) = (lower.into_owned(), upper.into_owned());
        self.deleted.push(RangeTombstone { lower, upper, sequence: 1 });
        Ok(())
    }

    /// Adds the delete of a range before the first key is added; an empty upper bound is no bound.
    pub(crate) fn delete_half_open(&mut self, lower: &[u8], upper: &[u8]) {
        self.deleted.push(RangeTombstone { lower: lower.to_vec(), upper: upper.to_vec(), sequence: 1 });
    }

    pub(crate) fn add(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<()> {
        if self.smallest_key.is_none() {
            check_key(key)?;
            check_value(value)?;
            self.begin(Some(key))?;
        }
        let writer = self.writer()?;
        writer.add(key, 0, kind, value).map_err(|error| match error {
            Error::InvalidArgument { what: "entry", .. } => Error::InvalidArgument {
                what: "key",
                got: format!("{} after an equal or greater key", key.escape_ascii()),
                expected: "add keys in ascending order, each once".to_owned(),
            },
            other => other,
        })
    }

    /// # Errors
    /// [`Error::Forked`] in a forked child, to which the file does not belong.
    fn writer(&mut self) -> Result<&mut Writer> {
        if !self.process.is_current() {
            return Err(Error::Forked);
        }
        self.writer.as_mut().ok_or(Error::Closed)
    }

    /// Fixes the smallest key: `first`, or the lower bound of a deleted range below it, which gets a point tombstone.
    fn begin(&mut self, first: Option<&[u8]>) -> Result<()> {
        self.writer()?;
        let lower = self.deleted.iter().map(|range| range.lower.clone()).min();
        match (lower.as_deref(), first) {
            (Some(lower), first) if first.is_none_or(|first| lower < first) => {
                self.writer()?.add(lower, 0, Kind::Tombstone, &[])?;
                self.smallest_key = Some(lower.to_vec());
            }
            (_, Some(first)) => self.smallest_key = Some(first.to_vec()),
            (None | Some(_), None) => {}
        }
        Ok(())
    }

    /// The approximate size of the table if it were finished now.
    pub fn estimated_bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::estimated_bytes)
    }

    /// Finishes the table. It survives a crash of the machine when the call returns.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a table without entries; otherwise as [`TableWriter::create`]. No file is left after an error.
    pub fn finish(mut self) -> Result<TableFile> {
        self.writer()?;
        if self.smallest_key.is_none() {
            self.begin(None)?;
        }
        let Some(mut writer) = self.writer.take() else { return Err(Error::Closed) };
        for Fragment { lower, upper, .. } in
            fragment(std::mem::take(&mut self.deleted), &[]).list().iter().cloned()
        {
            writer.add_range_tombstones(Fragment { lower, upper, sequences: vec![0] })?;
        }
        if let Err(error) = refuse_existing(&*self.vfs, &self.path) {
            let _ = writer.abandon();
            return Err(error);
        }
        let summary = writer.finish()?;
        Ok(TableFile {
            path: self.path.clone(),
            bytes: summary.file_bytes,
            entry_count: summary.entry_count,
            tombstone_count: summary.tombstone_count,
            range_tombstone_count: summary.range_tombstone_count,
            smallest_key: summary.smallest_key,
            largest_key: summary.largest_key,
            failed_filters: std::mem::take(&mut *self.failed_filters.0.lock()),
        })
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        if self.process.is_current() {
            let _ = writer.abandon();
        } else {
            // The file belongs to the parent process.
            std::mem::forget(writer);
        }
    }
}

fn refuse_existing(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    match vfs.exists(path) {
        Ok(false) => Ok(()),
        Ok(true) => Err(Error::io("create", path, ErrorKind::AlreadyExists.into())),
        Err(error) => Err(Error::io("look for", folder_of(path), error)),
    }
}
