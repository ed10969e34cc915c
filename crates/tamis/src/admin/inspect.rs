//! The content of one file of a store, for people and tools: tables, blocks, filters, log segments, manifests.
//!
//! Files are read one by one, in any folder and whether or not the store can be opened. A part that cannot be read is a
//! fault with its offset; the parts before it are returned.

use std::{io::ErrorKind, path::Path, sync::Arc};

use tamis_vfs::{Access, Folder, Vfs};

use crate::{
    admin::{
        link::folder_of,
        verify::{Fault, fault_of},
    },
    batch::{BatchEntry, entries},
    coding::Decoder,
    error::{Error, Result},
    expiry,
    file_name::FileName,
    frame::{FrameReader, Record, TornTail},
    key::Kind,
    options::KeyspaceOptions,
    store::open_report::WalTruncation,
    table::{
        format::{FILTER_MAGIC, FOOTER_LENGTH, TABLE_MAGIC},
        inspect::{FILTER_CHOICE, sections_of},
        properties::TableSummary,
        reader::TableReader,
    },
    version::{
        counters::Counters,
        current::{self, Current},
        edit::{Change, RunPlace},
        manifest,
    },
    view::{format::VIEW_MAGIC, inspect::PagePlace, reader::View, writer::RunSummary},
    wal::{
        self,
        format::{HEADER_BYTES, SegmentHeader, identity_of, segment_seed},
        reader::{LogFiles, salvage},
    },
};

#[cfg(test)]
mod tests;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cell {
    /// There is none.
    None,
    /// A number.
    Number(u64),
    /// Words.
    Text(String),
    /// A user's key.
    Key(Vec<u8>),
    /// A user's value.
    Value(Vec<u8>),
}

/// The content of a file: facts about the whole, then a row for each part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Inspection {
    /// Name and value.
    pub facts: Vec<(&'static str, Cell)>,
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// The parts, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
    /// Parts that could not be read.
    pub faults: Vec<Fault>,
    /// The torn end of a log segment after a crash: no fault; the next open drops it.
    pub torn_tail: Option<WalTruncation>,
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

/// Bytes, and how many that is for each entry.
fn bytes_text(bytes: u64, entry_count: u64) -> Cell {
    text(format!("{bytes} bytes ({:.3} an entry)", bytes as f64 / entry_count.max(1) as f64))
}

/// The value of an entry, without its time of expiry.
fn value_cell(kind: Kind, value: Vec<u8>) -> Cell {
    match kind {
        Kind::Put | Kind::Operand => Cell::Value(value),
        Kind::ExpiringPut => {
            Cell::Value(expiry::split(&value).map(|(_, value)| value.to_vec()).unwrap_or_default())
        }
        Kind::Tombstone | Kind::RangeTombstone => Cell::None,
    }
}

const fn kind_text(kind: Kind) -> &'static str {
    match kind {
        Kind::Put => "put",
        Kind::Tombstone => "delete",
        Kind::RangeTombstone => "delete range",
        Kind::Operand => "merge",
        Kind::ExpiringPut => "put until",
    }
}

impl Inspection {
    /// A file of any kind, which is decided by its bytes, regardless of its name: as the function of its kind.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a file of no kind; otherwise as the function of its kind.
    pub fn of_file(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Self> {
        match magics(&**vfs, path)? {
            (Some(wal::format::MAGIC), _) => Self::of_log(vfs, path),
            (Some(manifest::MAGIC | current::MAGIC), _) => Self::of_manifest(vfs, path),
            (_, TABLE_MAGIC) => Self::of_table(vfs, path),
            (_, FILTER_MAGIC) => Self::of_filter(vfs, path),
            (_, VIEW_MAGIC) => Self::of_view(vfs, path),
            _ => Err(Error::InvalidArgument {
                what: "file",
                got: path.display().to_string(),
                expected: "give a table, filter file, sorted view, log segment or manifest, or CURRENT; name the kind of a damaged file"
                    .to_owned(),
            }),
        }
    }

    /// A table: its properties, its sections as facts, its blocks as rows.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let path = folder.path().join("t.table");
    /// let mut table = tamis::TableWriter::create(&path, &tamis::KeyspaceOptions::default())?;
    /// table.put("apple", "red")?;
    /// table.finish()?;
    /// let vfs: std::sync::Arc<dyn tamis::Vfs> = std::sync::Arc::new(tamis::OsVfs);
    /// let found = tamis::Inspection::of_table(&vfs, &path)?;
    /// assert_eq!(found.rows.len(), 1, "one block");
    /// assert_eq!(tamis::Inspection::of_block(&vfs, &path, 0)?.rows.len(), 1, "one entry");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Corruption`] and [`Error::UnknownFormat`] for a file that can't be opened as a table; the system's.
    pub fn of_table(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Self> {
        let reader = TableReader::open_anywhere(vfs, path)?;
        let properties = reader.properties();
        let (origin, summary) = (&properties.origin, &properties.summary);
        let replaced: Vec<String> = origin.replaced.iter().map(u64::to_string).collect();
        let mut found = Self {
            facts: vec![
                ("number", Cell::Number(summary.number)),
                ("database", text(format!("{:016x}", origin.database_id))),
                ("keyspace", text(format!("{} ({})", origin.keyspace_name, origin.keyspace_id))),
                ("level when written", Cell::Number(origin.level.into())),
                ("run age", Cell::Number(origin.run_age)),
                ("replaced tables", text(replaced.join(", "))),
                ("bytes", Cell::Number(summary.file_bytes)),
                ("entries", Cell::Number(summary.entry_count)),
                ("deletes", Cell::Number(summary.tombstone_count)),
                ("key bytes", Cell::Number(summary.key_bytes)),
                ("value bytes", Cell::Number(summary.value_bytes)),
                ("least sequence number", Cell::Number(summary.smallest_sequence)),
                ("greatest sequence number", Cell::Number(summary.largest_sequence)),
                ("first key", Cell::Key(summary.smallest_key.clone())),
                ("last key", Cell::Key(summary.largest_key.clone())),
            ],
            columns: vec!["block", "offset", "bytes", "entries", "first key"],
            ..Self::default()
        };
        for section in sections_of(vfs, path)? {
            let place = format!("{} bytes at {}", section.bytes, section.offset);
            found.facts.push((section.kind, text(place)));
        }
        for (number, block) in (0..).zip(reader.blocks()?) {
            let first = match block.first_key {
                Ok(key) => Cell::Key(key),
                Err(error) => {
                    found.faults.push(fault_of(path.to_path_buf(), &error));
                    Cell::None
                }
            };
            let numbers = [number, block.offset, block.bytes, block.entry_count].map(Cell::Number);
            found.rows.push(numbers.into_iter().chain([first]).collect());
        }
        Ok(found)
    }

    /// A block of a table by its number from 0: its entries.
    ///
    /// # Errors
    /// As [`Inspection::of_table`]; [`Error::InvalidArgument`] for a number that no block has.
    pub fn of_block(vfs: &Arc<dyn Vfs>, path: &Path, block: usize) -> Result<Self> {
        let reader = TableReader::open_anywhere(vfs, path)?;
        let row = |(number, (key, sequence, kind, value)): (u64, (Vec<u8>, u64, Kind, Vec<u8>))| {
            vec![
                Cell::Number(number),
                Cell::Key(key),
                Cell::Number(sequence),
                text(kind_text(kind)),
                value_cell(kind, value),
            ]
        };
        Ok(Self {
            facts: vec![("block", Cell::Number(block as u64))],
            columns: vec!["entry", "key", "sequence number", "kind", "value"],
            rows: (0..).zip(reader.entries_of(block)?).map(row).collect(),
            ..Self::default()
        })
    }

    /// The filters of a table or of a filter file: what was built.
    ///
    /// # Errors
    /// As [`Inspection::of_table`].
    pub fn of_filter(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Self> {
        let mut found = Self { columns: vec!["offset", "bytes", "design"], ..Self::default() };
        for section in sections_of(vfs, path)? {
            let Some(design) = section.design else { continue };
            let design = match design {
                Ok(design) => text(design),
                Err(error) => {
                    found.faults.push(fault_of(path.to_path_buf(), &error));
                    Cell::None
                }
            };
            if section.kind == FILTER_CHOICE {
                found.facts.push(("choice", design));
                continue;
            }
            found.rows.push(vec![Cell::Number(section.offset), Cell::Number(section.bytes), design]);
        }
        found.facts.push(("filters", Cell::Number(found.rows.len() as u64)));
        Ok(found)
    }

    /// A sorted view: its runs and what its bytes hold as facts, its pages as rows.
    ///
    /// # Errors
    /// [`Error::Corruption`] and [`Error::UnknownFormat`] for a file that can't be opened as a view; the system's.
    pub fn of_view(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Self> {
        let view = View::open_anywhere(vfs, path)?;
        let options = view.options();
        let mut facts = vec![
            ("number", Cell::Number(options.owner.number)),
            ("database", text(format!("{:016x}", options.owner.database_id))),
            ("keyspace", Cell::Number(options.owner.keyspace_id)),
            ("bytes", Cell::Number(view.file_bytes())),
            ("entries", Cell::Number(view.entry_count())),
            ("keys", Cell::Number(view.key_count())),
            ("keys that are not deleted", Cell::Number(view.live_count())),
            ("entries per segment", Cell::Number(options.segment_size as u64)),
        ];
        let run_text = |run: &RunSummary| {
            let RunSummary { id, largest_sequence, entry_count } = run;
            format!("{id} with {entry_count} entries, sequence numbers up to {largest_sequence}")
        };
        facts.push(("runs", text(view.runs().iter().map(run_text).collect::<Vec<_>>().join("; "))));
        let content = view.content();
        facts.extend(
            content.sizes.iter().map(|(name, bytes)| (*name, bytes_text(*bytes, view.entry_count()))),
        );
        let row = |(number, page): (u64, PagePlace)| {
            let numbers = [number, page.offset, page.bytes, page.entry_count, page.live_count];
            numbers.map(Cell::Number).into_iter().chain([Cell::Key(page.separator)]).collect()
        };
        Ok(Self {
            facts,
            columns: vec!["page", "offset", "bytes", "entries", "keys that are not deleted", "separator"],
            rows: (0..).zip(content.pages).map(row).collect(),
            faults: content.faults.iter().map(|error| fault_of(path.to_path_buf(), error)).collect(),
            ..Self::default()
        })
    }

    /// A segment of the log: its header, and a row for each entry.
    ///
    /// # Errors
    /// [`Error::Corruption`] for a file without a valid header; the system's.
    pub fn of_log(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Self> {
        let bytes = vfs.read(path).map_err(|error| Error::io("read", path, error))?;
        let not_a_log = || {
            let expected = format!("a header of {HEADER_BYTES} bytes with a valid checksum");
            Error::corruption(path, 0, "log segment header", expected, format!("{} bytes", bytes.len()))
        };
        let (id, number) = identity_of(&bytes).ok_or_else(not_a_log)?;
        let header = SegmentHeader::decode(&bytes, path, id, number, 0)?.ok_or_else(not_a_log)?;
        let mut found = Self {
            facts: vec![
                ("number", Cell::Number(number)),
                ("database", text(format!("{id:016x}"))),
                ("continues segment", Cell::Number(header.previous)),
                ("which ends at", Cell::Number(header.previous_bytes)),
                ("and was synced to", Cell::Number(header.previous_synced)),
                ("bytes", Cell::Number(bytes.len() as u64)),
            ],
            columns: vec!["offset", "synced", "keyspace", "sequence number", "kind", "key", "value"],
            ..Self::default()
        };
        let mut reader =
            FrameReader::new(path, bytes.as_slice(), HEADER_BYTES).with_seed(segment_seed(id, number));
        let damage = loop {
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break None,
                Err(error) => break Some(error),
            };
            for entry in entries(reader.payload(record)?) {
                let entry = match entry.map_err(|damage| damage.at(path, record.offset)) {
                    Ok(entry) => entry,
                    Err(error) => {
                        found.faults.push(fault_of(path.to_path_buf(), &error));
                        break;
                    }
                };
                found.rows.push(entry_row(&record, &entry));
            }
        };
        found.faults.extend(damage.iter().map(|error| fault_of(path.to_path_buf(), error)));
        // Zeros are room that the writer had preallocated.
        if let Some(torn) = reader.torn_tail().filter(|torn| !is_zero_from(&bytes, torn.offset)) {
            // Later segments may prove that it was synced.
            let (replayed, faults) =
                salvage(&LogFiles::find_all(&folder_at(vfs, path)?, id)?, &mut |_, _| {});
            let is_own = |file: &Path| file.file_name() == path.file_name();
            let of_file = faults.iter().map(|error| fault_of(path.to_path_buf(), error));
            found.faults.extend(of_file.filter(|fault| is_own(&fault.file)));
            found.torn_tail = match replayed.truncations.iter().find(|other| is_own(&other.file)) {
                Some(dropped) => Some(WalTruncation { file: path.to_path_buf(), ..dropped.clone() }),
                None if found.faults.is_empty() => {
                    let TornTail { offset, bytes } = torn;
                    Some(WalTruncation { file: path.to_path_buf(), offset, bytes })
                }
                None => None,
            };
        }
        Ok(found)
    }

    /// A manifest, or the one that a `CURRENT` names: a row for each change.
    ///
    /// # Errors
    /// [`Error::Corruption`] for a `CURRENT` or a header that is damaged; [`Error::MissingFile`]; the system's.
    pub fn of_manifest(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Self> {
        let bytes = vfs.read(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let advice = "name an existing manifest, or CURRENT";
                Error::MissingFile { path: path.to_path_buf(), advice }
            }
            _ => Error::io("read", path, error),
        })?;
        let (contents, fault) = if Decoder::new(&bytes).take_u32() == Some(current::MAGIC) {
            manifest::read_prefix(&folder_at(vfs, path)?, Current::decode(&bytes, path)?)
        } else {
            manifest::read_alone(path, &bytes)
        };
        let number =
            name_of(&contents.path).and_then(FileName::number).or_else(|| manifest::number_of(&bytes));
        if let (Some(error), true) = (&fault, contents.edits.is_empty()) {
            return Err(error.clone());
        }
        let row = |offset: u64, change: &Change| {
            let (name, detail) = describe(change);
            vec![Cell::Number(offset), text(name), text(detail)]
        };
        let rows = contents
            .edits
            .iter()
            .flat_map(|(offset, edit)| edit.changes.iter().map(move |change| row(*offset, change)));
        Ok(Self {
            facts: vec![
                ("number", number.map_or(Cell::None, Cell::Number)),
                ("bytes", Cell::Number(contents.bytes)),
                ("edits", Cell::Number(contents.edits.len() as u64)),
                ("torn bytes at the end", Cell::Number(contents.torn.map_or(0, |torn| torn.bytes))),
            ],
            columns: vec!["offset", "change", "what"],
            rows: rows.collect(),
            faults: fault.iter().map(|error| fault_of(path.to_path_buf(), error)).collect(),
            ..Self::default()
        })
    }
}

fn is_zero_from(bytes: &[u8], offset: u64) -> bool {
    let rest = usize::try_from(offset).ok().and_then(|start| bytes.get(start..));
    rest.is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
}

fn name_of(path: &Path) -> Option<FileName> {
    FileName::parse(&path.file_name()?.to_string_lossy())
}

/// The folder of a file.
fn folder_at(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Folder> {
    let folder = folder_of(path);
    Folder::open(&**vfs, folder).map_err(|error| Error::io("open", folder, error))
}

/// A row for an entry of the log.
fn entry_row(record: &Record, entry: &BatchEntry<'_>) -> Vec<Cell> {
    let numbers = [record.offset, record.synced, entry.keyspace.into(), entry.sequence].map(Cell::Number);
    let value = match entry.kind {
        // An empty bound is no bound.
        Kind::RangeTombstone => Cell::Key(entry.value.to_vec()),
        kind => value_cell(kind, entry.value.to_vec()),
    };
    let rest = [text(kind_text(entry.kind)), Cell::Key(entry.key.to_vec()), value];
    numbers.into_iter().chain(rest).collect()
}

/// The first bytes of a file, and those at the front of the footer that a table, filter file or view has.
fn magics(vfs: &dyn Vfs, path: &Path) -> Result<(Option<u32>, [u8; TABLE_MAGIC.len()])> {
    let file = vfs.open(path, Access::Buffered).map_err(|error| Error::io("open", path, error))?;
    let length = file.length().map_err(|error| Error::io("measure", path, error))?;
    let failed = |error| Error::io("read", path, error);
    let (mut first, mut footer) = ([0; size_of::<u32>()], [0; TABLE_MAGIC.len()]);
    let has_first = length >= first.len() as u64;
    if has_first {
        file.read_at(0, &mut first).map_err(failed)?;
    }
    if let Some(offset) = length.checked_sub(FOOTER_LENGTH as u64) {
        file.read_at(offset, &mut footer).map_err(failed)?;
    }
    Ok((has_first.then(|| u32::from_le_bytes(first)), footer))
}

fn place_text(place: &RunPlace) -> String {
    let RunPlace { keyspace, partition, level, run_age } = place;
    format!("keyspace {keyspace}, partition {partition}, level {level}, run {run_age}")
}

fn table_text(summary: &TableSummary) -> String {
    format!(
        "table {} with {} entries ({} deletes), {}, keys {} to {}, sequence numbers {} to {}",
        summary.number,
        summary.entry_count,
        summary.tombstone_count,
        summary.identity(),
        summary.smallest_key.escape_ascii(),
        summary.largest_key.escape_ascii(),
        summary.smallest_sequence,
        summary.largest_sequence
    )
}

/// Options that have their default are left out.
fn options_text(options: &KeyspaceOptions) -> String {
    let given = options.named().into_iter().zip(KeyspaceOptions::default().named());
    let given = given.filter(|(option, default)| option != default);
    let texts: Vec<_> = given.map(|((name, value), _)| format!("{name} {value}")).collect();
    if texts.is_empty() { "default options".to_owned() } else { texts.join(", ") }
}

fn counters_text(counters: &Counters) -> String {
    let Counters {
        next_file_number,
        next_keyspace_id,
        next_partition_id,
        next_run_id,
        last_sequence,
        oldest_log,
        greatest_time,
    } = counters;
    format!(
        "next file {next_file_number}, keyspace {next_keyspace_id}, partition {next_partition_id}, run {next_run_id}; last sequence \
         number {last_sequence}; oldest log segment {oldest_log}; greatest time {greatest_time} ms"
    )
}

/// A change in words: its name and the rest.
fn describe(change: &Change) -> (&'static str, String) {
    let file = |number: &Option<u64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    match change {
        Change::CreateKeyspace { keyspace, name, options } => {
            ("create keyspace", format!("{keyspace} named {name}: {}", options_text(options)))
        }
        Change::SetOptions { keyspace, options } => {
            ("set options", format!("of keyspace {keyspace}: {}", options_text(options)))
        }
        Change::DropKeyspace { keyspace } => ("drop keyspace", keyspace.to_string()),
        Change::AddPartition { keyspace, partition, lower, flushed_sequence } => {
            let from = if lower.is_empty() {
                "from the first key on".to_owned()
            } else {
                format!("from key {} on", lower.escape_ascii())
            };
            (
                "add partition",
                format!("{partition} of keyspace {keyspace} {from}, flushed up to {flushed_sequence}"),
            )
        }
        Change::RemovePartition { keyspace, partition } => {
            ("remove partition", format!("{partition} of keyspace {keyspace}"))
        }
        Change::AddTable { place, summary, filter_file, is_ingested } => {
            let (table, filter_file) = (table_text(summary), file(filter_file));
            let origin = if *is_ingested { ", ingested" } else { "" };
            ("add table", format!("{table}, filter file {filter_file}{origin}; {}", place_text(place)))
        }
        Change::RemoveTable { place, number } => ("remove table", format!("{number}; {}", place_text(place))),
        Change::SetTableFilter { place, number, filter_file } => {
            ("set filter", format!("{} of table {number}; {}", file(filter_file), place_text(place)))
        }
        Change::SetView { keyspace, partition, view } => {
            let view = match view {
                Some((number, runs)) => {
                    let runs: Vec<_> = runs.iter().map(u64::to_string).collect();
                    format!("{number} over runs {}", runs.join(", "))
                }
                None => "none".to_owned(),
            };
            ("set view", format!("{view}; partition {partition} of keyspace {keyspace}"))
        }
        Change::SetFlushedSequence { keyspace, partition, sequence } => {
            ("set flushed", format!("partition {partition} of keyspace {keyspace} up to {sequence}"))
        }
        Change::AdvanceCounters(counters) => ("advance counters", counters_text(counters)),
        Change::SetSyncedLog { segments } => {
            let of_segment =
                |(number, bytes): (&u64, &u64)| format!("{} up to {bytes}", FileName::Log(*number).name());
            ("set synced log", segments.iter().map(of_segment).collect::<Vec<_>>().join(", "))
        }
        Change::SetRunId { place, id } => ("set run id", format!("{id}; {}", place_text(place))),
        Change::SetDatabase { id, seed } => ("set database", format!("id {id:016x}, seed {seed:016x}")),
    }
}
