//! Options of a store, of a keyspace and of a write. All other parameters are constants next to the code that uses them.

mod filters;
mod layout;
mod views;

use std::{fmt, sync::Arc, time::Duration};

use tamis_vfs::Access;

use crate::{
    error::{Error, Result},
    expiry::TIME_MAX,
    merge_operator::MergeOperator,
    observe::events::EventListener,
};

pub(crate) use filters::{FilterBudget, FilterSource};
pub use filters::{Filters, TableFilter};
pub use layout::Layout;
pub(crate) use layout::tables_after_split;
pub use views::Views;

/// The name of the keyspace that every store has.
pub(crate) const DEFAULT_KEYSPACE: &str = "default";

/// Compression of data blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// No compression: blocks are page-aligned, so they can be mapped, and a block is one read.
    None,
    /// LZ4: fast compression and decompression.
    Lz4,
    /// Zstandard at this level (1 to 19). It needs the feature `zstd` of this crate, which is on by default:
    /// [`Error::ZstdUnavailable`] otherwise.
    Zstd(u8),
}

/// Which failures a write survives; chosen per write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// The log record stays in the process: at most 1 MiB and, if there are workers, at most
    /// 100 ms. A crash of the process loses these writes.
    Deferred,
    /// The log record is written to the operating system: the write survives a crash of the process, not of the machine. The
    /// default.
    #[default]
    Buffered,
    /// The log is synced: the write survives a crash of the machine.
    Synced,
}

/// One method for each field, which sets it.
macro_rules! setters {
    ($options:ident { $($(#[$attribute:meta])* $field:ident: $kind:ty),* $(,)? }) => {
        impl $options {
            $(
                $(#[$attribute])*
                #[doc = concat!("Sets the field [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $kind) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }
    };
}

pub(crate) use setters;

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// For writing. The store is created if the folder is empty or missing.
    #[default]
    CreateIfMissing,
    /// For writing. The store must exist ([`Error::NotADatabase`]).
    Existing,
    /// As a reader of an existing store, next to a process that writes or without one ([`crate::Db::open_reader`]): writes are refused, and no file of
    /// the store is changed. Nothing is flushed either: the memtables take the memory of all entries of the log.
    Reader,
}

/// Options of a store. The defaults suit most programs. Each field has a method that sets it.
///
/// ```
/// let options = tamis::Options::default().cache_bytes(64 << 20).workers(1);
/// assert_eq!(options.workers, 1);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Whether the store is created if there is none, must exist, or is opened by a reader. Default: [`OpenMode::CreateIfMissing`].
    pub mode: OpenMode,
    /// Lock the folder, so that no second process or handle writes to the store, or register a reader in it. Without
    /// the lock the program itself must make sure of that: two writers destroy the store, and a reader next to a writer gets errors and
    /// wrong answers. Only for file systems that cannot lock folders ([`Error::LockUnsupported`]), as some network file systems.
    /// Default: true.
    pub lock: bool,
    /// Memory for blocks, filters and indexes, and for the sampled queries of all keyspaces, which use at most a quarter of it, about 100 bytes
    /// for each of up to 20,000 queries of a keyspace. Without memory there is no sample. Unit: bytes. Default: 256 MiB.
    pub cache_bytes: u64,
    /// The most that filters and indexes use of `cache_bytes`, in percent; blocks use the rest.
    pub(crate) cache_pinned_percent: u8,
    /// How tables are read. With [`Access::Direct`] flushes and compactions use direct I/O too; otherwise only flushes do during a
    /// fast bulk load of ascending keys. Units of elastic filters are loaded and unloaded only with [`Access::Buffered`] and
    /// [`Access::Direct`]. Default: mapped (compressed tables are read buffered and cached; so are tables beyond 20,000 open ones,
    /// because systems limit the mappings of a process).
    ///
    /// Guarantees against programs that change table files, which are never changed by Tamis:
    ///
    /// - Buffered and direct: a block is verified in memory when it is loaded. A changed or shortened file gives
    ///   [`Error::Corruption`] or [`Error::Io`], never a wrong answer.
    /// - Mapped: a block is verified when it is first used after its table was opened, so a table that was changed or shortened
    ///   before gives an error. A later change may give wrong answers, and a later truncation, or an I/O error of the disk, ends the
    ///   process with SIGBUS.
    pub table_access: Access,
    /// Threads for flushes and compactions (0 to 64); 0 runs them on the writing thread. Default: 2.
    pub workers: usize,
    /// The size of the write-ahead log at which the memtables that need its oldest segment are flushed. An open that replays more
    /// flushes all memtables. Unit: bytes, at least 1 MiB. Default: 1 GiB.
    pub log_bytes_max: u64,
    /// How much of the log stays for the change feed ([`crate::Db::changes`]) when memtables no longer need it. Default: nothing.
    pub keep_changes: KeepChanges,
    /// A scan that passes this many deleted keys in a row notes their range in memory, so that later scans jump over it until something
    /// is put into it; 0: never. Queues depend on it.
    pub(crate) deleted_range_keys: u32,
    /// Sample the queries of each keyspace, from which filters are chosen. Their memory is a part of `cache_bytes`.
    pub(crate) sample_queries: bool,
    /// Keep the sampled queries in the file `SAMPLES` while the store is closed, for `tamis filter advise`, `tamis stats` and the next open.
    /// The file has keys of queries, also of entries that were deleted since. An open for writing without this option removes it. Default: false.
    pub sample_file: bool,
    /// Options of the default keyspace of a new database. An existing database keeps its options: others than these are an error
    /// ([`Error::KeyspaceOption`]), except for options that have their default here. Default: the defaults of [`KeyspaceOptions`].
    pub default_keyspace: KeyspaceOptions,
    /// The merge operators of the program, for the keyspaces that have one of these names ([`KeyspaceOptions::merge`]); built-in operators need not be given.
    /// Default: none.
    pub merge_operators: Vec<MergeOperator>,
    /// Receives events: flushes, compactions, write stalls, truncated logs, damaged filters. Default: none.
    pub listener: Option<Arc<dyn EventListener>>,
}

setters!(Options {
    mode: OpenMode,
    lock: bool,
    cache_bytes: u64,
    /// For tests and experiments: no program needs another value.
    cache_pinned_percent: u8,
    table_access: Access,
    workers: usize,
    log_bytes_max: u64,
    keep_changes: KeepChanges,
    /// For tests and experiments: no program needs another value.
    deleted_range_keys: u32,
    /// For tests and experiments: no program needs another value.
    sample_queries: bool,
    sample_file: bool,
    default_keyspace: KeyspaceOptions,
    merge_operators: Vec<MergeOperator>,
});

impl Options {
    pub(crate) const fn is_reader(&self) -> bool {
        matches!(self.mode, OpenMode::Reader)
    }

    /// Sets the field [`listener`](#structfield.listener).
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.listener = Some(listener);
        self
    }
}

/// How much of the log stays for the change feed when memtables no longer need it. The flush that frees a segment deletes those that exceed one of the two bounds, the
/// oldest first.
///
/// ```
/// use std::time::Duration;
/// use tamis::{KeepChanges, Options};
///
/// let options = Options::default().keep_changes(KeepChanges::bytes(1 << 30).time(Duration::from_secs(86_400)));
/// assert_eq!(options.keep_changes.bytes, 1 << 30);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeepChanges {
    /// Bytes of these segments.
    pub bytes: u64,
    /// The age of their last records; for records from before the last open, since this open.
    pub time: Duration,
}

impl Default for KeepChanges {
    fn default() -> Self {
        Self { bytes: 0, time: Duration::MAX }
    }
}

impl KeepChanges {
    /// At most so many bytes, of any age.
    #[must_use]
    pub const fn bytes(bytes: u64) -> Self {
        Self { bytes, time: Duration::MAX }
    }

    /// And none older than this.
    #[must_use]
    pub const fn time(self, time: Duration) -> Self {
        Self { time, ..self }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: OpenMode::CreateIfMissing,
            lock: true,
            cache_bytes: 256 << 20,
            cache_pinned_percent: 60,
            table_access: Access::Mapped,
            workers: 2,
            log_bytes_max: 1 << 30,
            keep_changes: KeepChanges::default(),
            deleted_range_keys: 64,
            sample_queries: true,
            sample_file: false,
            default_keyspace: KeyspaceOptions::default(),
            merge_operators: Vec::new(),
            listener: None,
        }
    }
}

/// Options of one keyspace. They are stored in the manifest and used for every table written later. Each field has a method that
/// sets it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KeyspaceOptions {
    /// Size at which a memtable is rotated. Unit: bytes, 64 KiB to 4 GiB. Default: 64 MiB.
    pub memtable_bytes: u64,
    /// Size of a data block on disk, with header and checksum. Unit: bytes, a power of two from 4 KiB to 64 KiB. Default: 4 KiB.
    pub block_bytes: u32,
    /// Size of a table. Unit: bytes, 64 KiB to 16 GiB. Default: 64 MiB.
    pub table_bytes: u64,
    /// Compression per level; the last entry applies to all deeper levels. Default: none.
    pub compression: Vec<Compression>,
    /// The filters of each table. Default: the store chooses, with at most 16 bits per key ([`Filters::auto`]).
    pub filters: Filters,
    /// Sorted views, which scans of several runs use instead of a merge.
    pub(crate) views: Views,
    /// How the runs of the levels are kept. Default: leveled.
    pub layout: Layout,
    /// The size of a level relative to the level above it, in the leveled layout (2 to 20).
    pub(crate) size_ratio: u32,
    /// Number of runs at which L0 is merged into the next level (1 to 64); twice as many during a bulk load.
    pub(crate) level0_runs: u32,
    /// The merge operator, for [`crate::Keyspace::merge`]. Its name is stored. A keyspace without one can get one later, and keeps it then. Default: none.
    pub merge: Option<MergeOperator>,
    /// The age at which puts expire, in whole milliseconds, at least one. It applies to puts that follow; [`crate::Keyspace::put_until`] sets another time.
    /// Not together with `merge`: operands do not expire. Default: never.
    pub expire_after: Option<Duration>,
    /// The name of the encoding of the keys, for the programs that use the keyspace: at most 255 bytes. The store keeps the name and does not compare it.
    /// The Python package stores its codec here. Default: empty, unknown.
    pub key_codec: String,
}

setters!(KeyspaceOptions {
    memtable_bytes: u64,
    block_bytes: u32,
    table_bytes: u64,
    compression: Vec<Compression>,
    filters: Filters,
    /// For tests and experiments: no program needs another value.
    views: Views,
    layout: Layout,
    /// For tests and experiments: no program needs another value.
    size_ratio: u32,
    /// For tests and experiments: no program needs another value.
    level0_runs: u32,
    merge: Option<MergeOperator>,
    expire_after: Option<Duration>,
    key_codec: String,
});

impl Default for KeyspaceOptions {
    fn default() -> Self {
        Self {
            memtable_bytes: 64 << 20,
            block_bytes: 4096,
            table_bytes: 64 << 20,
            compression: vec![Compression::None],
            filters: Filters::default(),
            views: Views::Auto,
            layout: Layout::Leveled,
            size_ratio: 10,
            level0_runs: 4,
            merge: None,
            expire_after: None,
            key_codec: String::new(),
        }
    }
}

/// The entry of a per-level list; the last one applies to all deeper levels.
pub(crate) fn per_level<T: Copy>(list: &[T], level: usize) -> Option<T> {
    list.get(level).or(list.last()).copied()
}

fn refuse<T>(what: &'static str, got: impl ToString, expected: &str) -> Result<T> {
    Err(Error::InvalidArgument { what, got: got.to_string(), expected: expected.to_owned() })
}

impl Options {
    /// The merge operators that the program gave: those of the list, and that of the default keyspace.
    pub(crate) fn operators(&self) -> Vec<MergeOperator> {
        self.merge_operators.iter().chain(&self.default_keyspace.merge).cloned().collect()
    }

    /// # Errors
    /// [`Error::InvalidArgument`] for the first value outside its bounds.
    pub(crate) fn check(&self) -> Result<()> {
        if self.workers > 64 {
            return refuse("workers", self.workers, "use 0 to 64 threads");
        }
        if self.log_bytes_max < 1 << 20 {
            return refuse("log_bytes_max", self.log_bytes_max, "use at least 1 MiB");
        }
        for (index, operator) in self.merge_operators.iter().enumerate() {
            operator.check_name()?;
            if self.merge_operators.iter().take(index).any(|other| other == operator) {
                return refuse("merge_operators", operator.name(), "give each name once");
            }
        }
        self.default_keyspace.check()
    }
}

/// The options that can be changed ([`crate::Keyspace::set_options`]).
const CHANGEABLE: [&str; 5] = ["filters", "views", "layout", "expire_after", KEY_CODEC];
/// The option that opens do not compare.
const KEY_CODEC: &str = "key_codec";

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Lz4 => formatter.write_str("lz4"),
            Self::Zstd(level) => write!(formatter, "zstd:{level}"),
        }
    }
}

impl KeyspaceOptions {
    /// The options as texts, with their names.
    pub(crate) fn named(&self) -> [(&'static str, String); 12] {
        let compression: Vec<_> = self.compression.iter().map(Compression::to_string).collect();
        [
            ("memtable_bytes", self.memtable_bytes.to_string()),
            ("block_bytes", self.block_bytes.to_string()),
            ("table_bytes", self.table_bytes.to_string()),
            ("compression", compression.join(",")),
            ("filters", self.filters.to_string()),
            ("views", self.views.to_string()),
            ("layout", self.layout.to_string()),
            ("size_ratio", self.size_ratio.to_string()),
            ("level0_runs", self.level0_runs.to_string()),
            ("merge", self.merge.as_ref().map_or("none", MergeOperator::name).to_owned()),
            (
                "expire_after",
                self.expire_after.map_or("never".to_owned(), |age| format!("{} ms", age.as_millis())),
            ),
            (KEY_CODEC, self.key_codec.clone()),
        ]
    }

    /// Refuses options that differ from those of an existing keyspace, which would have no effect. One that has its default is not compared:
    /// it was left out. The key codec is not compared.
    ///
    /// # Errors
    /// [`Error::KeyspaceOption`] for the first one.
    pub(crate) fn check_stored(&self, keyspace: &str, stored: &Self) -> Result<()> {
        let defaults = Self::default().named();
        self.check_equal(keyspace, stored, |option| option.0 == KEY_CODEC || defaults.contains(option))
    }

    /// Refuses a change of options that can't be changed.
    ///
    /// # Errors
    /// As [`KeyspaceOptions::check_stored`].
    pub(crate) fn check_change(&self, keyspace: &str, stored: &Self) -> Result<()> {
        let is_new_operator = stored.merge.is_none();
        self.check_equal(keyspace, stored, |(option, _)| {
            CHANGEABLE.contains(option) || *option == "merge" && is_new_operator
        })
    }

    fn check_equal(
        &self,
        keyspace: &str,
        stored: &Self,
        may_differ: impl Fn(&(&'static str, String)) -> bool,
    ) -> Result<()> {
        let mut pairs = self.named().into_iter().zip(stored.named());
        let other = pairs.find(|(given, stored)| given != stored && !may_differ(given));
        let Some(((option, given), (_, stored))) = other else { return Ok(()) };
        let advice = if CHANGEABLE.contains(&option) || option == "merge" && stored == "none" {
            "change it with `Keyspace::set_options` (Python `set_options`, C `tamis_keyspace_set_option`)"
        } else {
            "it can't be changed: copy the entries to a new keyspace"
        };
        Err(Error::KeyspaceOption { keyspace: keyspace.to_owned(), option, stored, given, advice })
    }

    /// # Errors
    /// [`Error::InvalidArgument`] for the first value outside its bounds; [`Error::ZstdUnavailable`].
    pub(crate) fn check(&self) -> Result<()> {
        self.check_bounds()?;
        self.check_compression("a new keyspace or table")
    }

    /// Refuses a compression that this program was built without; `place` has these options.
    ///
    /// # Errors
    /// [`Error::ZstdUnavailable`].
    pub(crate) fn check_compression(&self, place: &str) -> Result<()> {
        let is_zstd = |compression: &Compression| matches!(compression, Compression::Zstd(_));
        if !cfg!(feature = "zstd") && self.compression.iter().any(is_zstd) {
            return Err(Error::ZstdUnavailable { place: place.to_owned() });
        }
        Ok(())
    }

    /// # Errors
    /// [`Error::InvalidArgument`] for the first value outside its bounds.
    pub(crate) fn check_bounds(&self) -> Result<()> {
        if self.memtable_bytes < 64 << 10 || self.memtable_bytes > 4 << 30 {
            return refuse("memtable_bytes", self.memtable_bytes, "use 64 KiB to 4 GiB");
        }
        if !self.block_bytes.is_power_of_two() || !(4096..=65_536).contains(&self.block_bytes) {
            return refuse("block_bytes", self.block_bytes, "use a power of two from 4,096 to 65,536");
        }
        if self.table_bytes < 64 << 10 || self.table_bytes > 16 << 30 {
            return refuse("table_bytes", self.table_bytes, "use 64 KiB to 16 GiB");
        }
        for compression in &self.compression {
            if let Compression::Zstd(level) = compression
                && !(1..=19).contains(level)
            {
                return refuse("compression", format!("zstd level {level}"), "use a level from 1 to 19");
            }
        }
        self.filters.check()?;
        self.layout.check()?;
        if !(2..=20).contains(&self.size_ratio) {
            return refuse("size_ratio", self.size_ratio, "use 2 to 20");
        }
        if !(1..=64).contains(&self.level0_runs) {
            return refuse("level0_runs", self.level0_runs, "use 1 to 64");
        }
        if let Some(age) = self.expire_after {
            let text = || format!("{age:?}");
            if !age.subsec_nanos().is_multiple_of(1_000_000)
                || age.is_zero()
                || age >= Duration::from_millis(TIME_MAX)
            {
                return refuse("expire_after", text(), "use whole milliseconds, at least one and below 2^47");
            }
            if self.merge.is_some() {
                return refuse("expire_after", text(), "leave it out in a keyspace with a merge operator");
            }
        }
        if self.key_codec.len() > 255 {
            return refuse("key_codec", &self.key_codec, "use at most 255 bytes");
        }
        self.merge.as_ref().map_or(Ok(()), MergeOperator::check_name)
    }
}
