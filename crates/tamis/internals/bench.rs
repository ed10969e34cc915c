//! Sets of tables with a sorted view, for experiments that measure views without a store, with the feature `bench-internals`.
//!
//! A set is some tables whose keys overlap, each a run. Its entries are read through a view, through a merge of the tables, or
//! table by table. Blocks come from a cache of the set. The feature adds this module and the searches of the paper; programs
//! have no use for it.

use std::{ops::Bound, path::Path, sync::Arc};

use tamis_filter::{Digester, Probe, auto::Prices};
use tamis_vfs::{Access, Folder, OsVfs, Vfs as _};

use crate::{
    cache::{block::BlockCache, pinned_cache::PinnedCache},
    compaction::job_context,
    cursor::{
        Cursor,
        bounded::{KeyRange, Needed},
        merge::MergeCursor,
    },
    error::{Error, Result},
    file_name::FileName,
    key::{Kind, SEQUENCE_MAX},
    observe::metrics::Metrics,
    options::{Compression, Options, TableFilter},
    table::{
        cursor::TableCursor,
        environment::{ReadCost, TableEnvironment},
        filter_plan::FilterPlan,
        open_files::OpenFiles,
        properties::TableOrigin,
        reader::TableReader,
        writer::{TableOptions, TableWriter},
    },
    view::{
        build::build_view,
        cursor::{SearchMode, ViewCursor},
        reader::View,
        run::TableRun,
        scan::ViewScan,
        writer::{ViewOptions, ViewOwner},
    },
};

/// The number of the view; tables have the numbers from 1 on.
const VIEW_NUMBER: u64 = 1 << 32;
/// The seed of all digests.
const SEED: u64 = 9;

/// The search in a segment of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentSearch {
    /// By what the view stores of the keys; one key is read.
    Blind,
    /// The full binary search of the REMIX paper.
    Full,
    /// The partial binary search of the REMIX paper: keys are read from the first one of the segment on.
    Partial,
}

/// The prices by which a store chooses filters.
pub fn filter_prices(options: &Options) -> Prices {
    job_context::filter_prices(options)
}

/// Writes the tables of a set at the same time.
#[derive(Debug)]
pub struct TableSetWriter {
    folder: Folder,
    writers: Vec<TableWriter>,
    entry_count: u64,
}

impl TableSetWriter {
    /// Tables in an empty folder, with Bloom filters of this many bits per key.
    ///
    /// # Errors
    /// The system's.
    pub fn create(folder: &Path, table_count: usize, bits_per_key: f32) -> Result<Self> {
        let folder = Folder::open(&OsVfs, folder).map_err(|error| Error::io("open", folder, error))?;
        let create = |number: u64| {
            let options = TableOptions {
                block_bytes: 4096,
                compression: Compression::None,
                filters: FilterPlan::given(vec![TableFilter::bits(bits_per_key)]),
                filter_seed: SEED,
                origin: TableOrigin::default(),
                is_direct: false,
                listener: None,
            };
            TableWriter::create(&folder, number, options)
        };
        let writers = (1..=table_count as u64).map(create).collect::<Result<_>>()?;
        Ok(Self { folder, writers, entry_count: 0 })
    }

    /// Adds an entry to a table. Keys ascend.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a table that the set does not have; the system's.
    pub fn add(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<()> {
        let count = self.writers.len();
        let writer = self.writers.get_mut(table).ok_or_else(|| Error::InvalidArgument {
            what: "table of the set",
            got: table.to_string(),
            expected: format!("use one of {count} tables"),
        })?;
        self.entry_count += 1;
        writer.add(key, self.entry_count, Kind::Put, value)
    }

    /// Completes and opens the tables. Each table needs an entry.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a table without entries; the system's.
    pub fn finish(self, cache_bytes: u64) -> Result<TableSet> {
        let count = self.writers.len() as u64;
        self.writers.into_iter().try_for_each(|writer| writer.finish().map(drop))?;
        let metrics = Arc::new(Metrics::default());
        let environment = Arc::new(TableEnvironment {
            folder: self.folder,
            access: Access::Buffered,
            open_files: OpenFiles::new(&OsVfs),
            cache: Arc::new(BlockCache::new(cache_bytes)),
            pinned_cache: PinnedCache::new(u64::MAX, &Arc::default(), &metrics, None),
            metrics,
            listener: None,
        });
        let open = |number| TableReader::open(&environment, number, None);
        let tables = (1..=count).map(open).collect::<Result<_>>()?;
        Ok(TableSet { environment, tables, digester: Digester::new(SEED), entry_count: self.entry_count })
    }
}

/// Open tables whose keys overlap.
#[derive(Debug)]
pub struct TableSet {
    environment: Arc<TableEnvironment>,
    tables: Vec<Arc<TableReader>>,
    digester: Digester,
    entry_count: u64,
}

impl TableSet {
    /// Entries of all tables.
    pub const fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Bytes of the block indexes of all tables, and of their filters.
    pub fn index_and_filter_bytes(&self) -> (u64, u64) {
        let sum = |bytes: fn(&TableReader) -> u64| self.tables.iter().map(|table| bytes(table)).sum();
        (sum(TableReader::index_bytes), sum(TableReader::filter_bytes))
    }

    /// Bytes of the files of all tables.
    pub fn file_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.properties().summary.file_bytes).sum()
    }

    /// Blocks that reads used so far, from the files and from the cache. The counts of a reader are added when it is dropped.
    pub fn blocks_used(&self) -> u64 {
        self.environment.metrics.blocks_used()
    }

    /// Writes and opens the view of all tables.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown segment size; the system's.
    pub fn view(&self, segment_size: usize) -> Result<SortedView> {
        let runs: Vec<_> = self.tables.iter().map(|table| TableRun::new(vec![Arc::clone(table)])).collect();
        let named: Vec<_> = (1..).zip(runs.iter().cloned()).collect();
        let number = VIEW_NUMBER + segment_size as u64;
        let path = FileName::View(number).path(&self.environment.folder);
        let failed = |error| Error::io("write", &path, error);
        let file = OsVfs.create(&path).map_err(failed)?;
        let owner = ViewOwner { number, ..ViewOwner::default() };
        let options = ViewOptions { segment_size, owner };
        build_view(options, &named, &mut |part| file.append(part).map_err(failed))?;
        Ok(SortedView { view: View::open(&self.environment, number)?, runs: runs.into() })
    }

    /// A cursor that merges all tables.
    pub fn merge(&self) -> Reader {
        let merge = MergeCursor::new(self.tables.iter().map(TableReader::cursor).collect());
        let range = KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded };
        let needed = NeededRange { range, digester: self.digester.clone() };
        Reader(Source::Merge(merge.within(Arc::new(needed))))
    }

    /// The value of a key. The tables are searched one after the other, with or without their filters.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn get(&self, key: &[u8], uses_filters: bool) -> Result<Option<Vec<u8>>> {
        let probe = Probe::new(key, &self.digester);
        let mut cost = ReadCost::default();
        let mut found = None;
        for table in &self.tables {
            if uses_filters && !table.may_contain(&probe) {
                continue;
            }
            found = table.get(key, SEQUENCE_MAX, &mut cost)?;
            if found.is_some() {
                break;
            }
        }
        cost.add_to(&self.environment.metrics, None);
        Ok(found.map(|found| found.value.to_vec()))
    }
}

/// The view of a set.
#[derive(Debug)]
pub struct SortedView {
    view: Arc<View>,
    runs: Arc<[TableRun]>,
}

impl SortedView {
    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.view.file_bytes()
    }

    /// A reader of the view.
    ///
    /// # Errors
    /// [`Error::Corruption`] for tables that are not those of the view.
    pub fn reader(&self, search: SegmentSearch) -> Result<Reader> {
        let mode = match search {
            SegmentSearch::Blind => SearchMode::Blind,
            SegmentSearch::Full => SearchMode::Full,
            SegmentSearch::Partial => SearchMode::Partial,
        };
        let cursor = ViewCursor::new(&self.view, &self.runs)?.with_mode(mode);
        Ok(Reader(Source::View(Box::new(ViewScan::new(cursor, SEQUENCE_MAX)))))
    }
}

enum Source {
    View(Box<ViewScan<Arc<[TableRun]>>>),
    Merge(MergeCursor<TableCursor>),
}

/// A cursor over the entries of a set.
pub struct Reader(Source);

impl Reader {
    /// Moves to the first entry at or after a key.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.0 {
            Source::View(scan) => scan.seek(key),
            Source::Merge(merge) => merge.seek(key, SEQUENCE_MAX),
        }
    }

    /// Moves to the next entry. Only while there is an entry.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn move_next(&mut self) -> Result<()> {
        match &mut self.0 {
            Source::View(scan) => scan.next(),
            Source::Merge(merge) => merge.next(),
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.seek(key)?;
        Ok(self.entry().filter(|(own, _)| *own == key).map(|(_, value)| value.to_vec()))
    }

    /// The key and value of the current entry.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        match &self.0 {
            Source::View(scan) => scan.is_valid().then(|| (scan.entry().key(), scan.entry().value())),
            Source::Merge(merge) => merge.is_valid().then(|| (merge.key(), merge.value())),
        }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match &self.0 {
            Source::View(_) => "reader of a view",
            Source::Merge(_) => "reader of a merge",
        })
    }
}

/// The needed keys of a merge without a scan.
struct NeededRange {
    range: KeyRange,
    digester: Digester,
}

impl AsRef<KeyRange> for NeededRange {
    fn as_ref(&self) -> &KeyRange {
        &self.range
    }
}

impl Needed for NeededRange {
    fn digester(&self) -> &Digester {
        &self.digester
    }
}
