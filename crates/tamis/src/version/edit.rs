//! A version edit: a change of the catalog as a list of small steps, and its encoding (`docs/format/manifest.md`, "Edits").
//!
//! The changes of an edit are applied in order, all or none. A moved table is removed from one level and added to another
//! by the same edit, in this order, and keeps its handle.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{
    counters::Counters,
    options_format,
    tagged_record::{IGNORABLE, put_tagged, take_tagged},
};
use crate::{
    coding::{Decoder, numbered, put_bytes, put_u64, put_varint},
    error::Error,
    file_name::FileName,
    key::Sequence,
    options::KeyspaceOptions,
    table::properties::TableSummary,
};

/// The place of a run. Its id is not part of the place: it changes with the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunPlace {
    pub(crate) keyspace: u64,
    pub(crate) partition: u64,
    pub(crate) level: u8,
    pub(crate) run_age: u64,
}

/// One change of an edit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// Creates a keyspace without partitions.
    CreateKeyspace {
        keyspace: u64,
        name: String,
        options: KeyspaceOptions,
    },
    /// Sets the options for tables written from now on.
    SetOptions {
        keyspace: u64,
        options: KeyspaceOptions,
    },
    /// Drops the keyspace with all its partitions and tables.
    DropKeyspace {
        keyspace: u64,
    },
    AddPartition {
        keyspace: u64,
        partition: u64,
        lower: Vec<u8>,
        flushed_sequence: Sequence,
    },
    /// Removes the partition with its tables. Other partitions must cover its range when the edit is complete.
    RemovePartition {
        keyspace: u64,
        partition: u64,
    },
    AddTable {
        place: RunPlace,
        summary: TableSummary,
        filter_file: Option<u64>,
        /// The table was built outside of the store and ingested.
        is_ingested: bool,
    },
    RemoveTable {
        place: RunPlace,
        number: u64,
    },
    /// Sets or removes the filter file of a table.
    SetTableFilter {
        place: RunPlace,
        number: u64,
        filter_file: Option<u64>,
    },
    /// Sets or removes a sorted view over runs, which are named by their ids.
    SetView {
        keyspace: u64,
        partition: u64,
        view: Option<(u64, Vec<u64>)>,
    },
    /// Every entry of the partition that was logged up to this sequence number is in tables, or in the log under a greater number.
    SetFlushedSequence {
        keyspace: u64,
        partition: u64,
        sequence: Sequence,
    },
    /// Raises each counter to the given value, unless it is greater.
    AdvanceCounters(Counters),
    /// Identifies the database: in the first edit of every manifest.
    SetDatabase {
        id: u64,
        seed: u64,
    },
    /// Sets the id of a run, after all changes of its tables.
    SetRunId {
        place: RunPlace,
        id: u64,
    },
    /// Segments of the log, by number, and the lengths up to which they are synced.
    SetSyncedLog {
        segments: BTreeMap<u64, u64>,
    },
}

impl Change {
    /// The keyspace that it changes.
    const fn keyspace(&self) -> Option<u64> {
        match self {
            Self::CreateKeyspace { keyspace, .. }
            | Self::SetOptions { keyspace, .. }
            | Self::DropKeyspace { keyspace }
            | Self::AddPartition { keyspace, .. }
            | Self::RemovePartition { keyspace, .. }
            | Self::SetView { keyspace, .. }
            | Self::SetFlushedSequence { keyspace, .. } => Some(*keyspace),
            Self::AddTable { place, .. }
            | Self::SetRunId { place, .. }
            | Self::RemoveTable { place, .. }
            | Self::SetTableFilter { place, .. } => Some(place.keyspace),
            Self::AdvanceCounters(_) | Self::SetDatabase { .. } | Self::SetSyncedLog { .. } => None,
        }
    }
}

numbered! {
    /// The tags of changes.
    enum Tag: u64 {
        CreateKeyspace = 1,
        SetOptions = 2,
        DropKeyspace = 3,
        AddPartition = 4,
        RemovePartition = 5,
        AddTable = 6,
        RemoveTable = 7,
        SetTableFilter = 8,
        SetView = 9,
        SetFlushedSequence = 10,
        AdvanceCounters = 11,
        SetDatabase = 12,
        SetRunId = 13,
        SetSyncedLog = 14,
    }
}

/// See the head of this file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct VersionEdit {
    pub(crate) changes: Vec<Change>,
}

impl VersionEdit {
    /// Adds the greatest time by which entries were expired; 0: there is none.
    pub(crate) fn persist_time(&mut self, greatest_time: u64) {
        if greatest_time > 0 {
            self.push(Change::AdvanceCounters(Counters { greatest_time, ..Counters::default() }));
        }
    }

    pub(crate) fn push(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Files of the added tables.
    pub(crate) fn new_tables(&self) -> Vec<FileName> {
        self.added_tables().map(|summary| FileName::Table(summary.number)).collect()
    }

    /// The tables that it adds.
    pub(crate) fn added_tables(&self) -> impl Iterator<Item = &TableSummary> {
        self.changes.iter().filter_map(|change| match change {
            Change::AddTable { summary, .. } => Some(summary),
            _ => None,
        })
    }

    /// Whether the edit has information that is in no other file: it creates, changes or drops a keyspace, or ingests tables.
    /// `CURRENT` must cover it then (`manifest.rs`, rule 4). All other edits only say where entries are now.
    pub(crate) fn must_be_covered(&self) -> bool {
        let removed = |change: &Change| match change {
            Change::RemoveTable { number, .. } => Some(*number),
            _ => None,
        };
        let removed: BTreeSet<u64> = self.changes.iter().filter_map(removed).collect();
        self.changes.iter().any(|change| match change {
            Change::CreateKeyspace { .. } | Change::SetOptions { .. } | Change::DropKeyspace { .. } => true,
            // A moved table was ingested by an earlier edit.
            Change::AddTable { summary, is_ingested, .. } => {
                *is_ingested && !removed.contains(&summary.number)
            }
            _ => false,
        })
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Keyspaces that must exist before the edit is applied (one may be returned more than once).
    pub(crate) fn keyspaces(&self) -> impl Iterator<Item = u64> {
        let created = |change: &Change| match change {
            Change::CreateKeyspace { keyspace, .. } => Some(*keyspace),
            _ => None,
        };
        let created: BTreeSet<u64> = self.changes.iter().filter_map(created).collect();
        self.changes.iter().filter_map(Change::keyspace).filter(move |id| !created.contains(id))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut target = Vec::new();
        let mut body = Vec::new();
        for change in &self.changes {
            body.clear();
            let tag = encode_change(change, &mut body);
            put_tagged(&mut target, tag as u64, flags_of(tag), &body);
        }
        target
    }

    /// Decodes an edit.
    ///
    /// # Errors
    /// For bytes that no [`VersionEdit::encode`] of that version can have written, and for unknown changes and options that must
    /// not be ignored.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadEdit> {
        let mut decoder = Decoder::new(bytes);
        let mut edit = Self::default();
        while !decoder.is_empty() {
            let (tag, flags, body) = take_tagged(&mut decoder).ok_or_else(|| BadEdit::Damaged {
                expected: "a tagged change".to_owned(),
                got: format!("{} bytes", decoder.rest().len()),
            })?;
            let Some(tag) = Tag::from_number(tag) else {
                if flags & IGNORABLE != 0 {
                    continue;
                }
                return Err(BadEdit::Unknown { what: "change", kind: tag.to_string() });
            };
            let mut source = Decoder::new(body);
            match decode_change(tag, &mut source) {
                Some(change) if source.is_empty() && flags == flags_of(tag) => edit.push(change),
                _ => return Err(why_bad(tag, body)),
            }
        }
        Ok(edit)
    }
}

/// Why bytes are no edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadEdit {
    /// The expected and the found bytes.
    Damaged { expected: String, got: String },
    /// Another version wrote it.
    Unknown { what: &'static str, kind: String },
}

impl BadEdit {
    /// The error with the file and the offset.
    pub(crate) fn at(self, file: &Path, offset: u64) -> Error {
        match self {
            Self::Damaged { expected, got } => Error::corruption(file, offset, "version edit", expected, got),
            Self::Unknown { what, kind } => {
                Error::UnknownChange { file: file.to_path_buf(), offset, what, kind }
            }
        }
    }
}

/// Why the body of a change with a known tag is invalid.
fn why_bad(tag: Tag, body: &[u8]) -> BadEdit {
    let options = || {
        let mut source = Decoder::new(body);
        source.take_varint()?;
        match tag {
            Tag::CreateKeyspace => drop(source.take_bytes()?),
            Tag::SetOptions => {}
            _ => return None,
        }
        options_format::unknown_part(&mut source)
    };
    match options() {
        Some((what, kind)) => BadEdit::Unknown { what, kind },
        None => BadEdit::Damaged {
            expected: format!("a valid change of tag {}", tag as u64),
            got: format!("{} bytes", body.len()),
        },
    }
}

/// Filters and views are derived data: results are the same without them. Lengths of the log only show damage.
const fn flags_of(tag: Tag) -> u8 {
    match tag {
        Tag::SetTableFilter | Tag::SetView | Tag::SetSyncedLog => IGNORABLE,
        _ => 0,
    }
}

fn put_place(target: &mut Vec<u8>, place: &RunPlace) {
    put_varint(target, place.keyspace);
    put_varint(target, place.partition);
    target.push(place.level);
    put_varint(target, place.run_age);
}

fn take_place(source: &mut Decoder<'_>) -> Option<RunPlace> {
    Some(RunPlace {
        keyspace: source.take_varint()?,
        partition: source.take_varint()?,
        level: source.take_u8()?,
        run_age: source.take_varint()?,
    })
}

/// File numbers begin at 1, so 0 means none.
fn put_file(target: &mut Vec<u8>, number: Option<u64>) {
    put_varint(target, number.unwrap_or(0));
}

fn take_file(source: &mut Decoder<'_>) -> Option<Option<u64>> {
    let number = source.take_varint()?;
    Some((number != 0).then_some(number))
}

fn put_numbers(target: &mut Vec<u8>, numbers: &[u64]) {
    for &number in numbers {
        put_varint(target, number);
    }
}

/// Writes the body of a change and returns its tag.
fn encode_change(change: &Change, body: &mut Vec<u8>) -> Tag {
    match change {
        Change::CreateKeyspace { keyspace, name, options } => {
            put_varint(body, *keyspace);
            put_bytes(body, name.as_bytes());
            options_format::encode(options, body);
            Tag::CreateKeyspace
        }
        Change::SetOptions { keyspace, options } => {
            put_varint(body, *keyspace);
            options_format::encode(options, body);
            Tag::SetOptions
        }
        Change::DropKeyspace { keyspace } => {
            put_varint(body, *keyspace);
            Tag::DropKeyspace
        }
        Change::AddPartition { keyspace, partition, lower, flushed_sequence } => {
            put_numbers(body, &[*keyspace, *partition, *flushed_sequence]);
            put_bytes(body, lower);
            Tag::AddPartition
        }
        Change::RemovePartition { keyspace, partition } => {
            put_numbers(body, &[*keyspace, *partition]);
            Tag::RemovePartition
        }
        Change::AddTable { place, summary, filter_file, is_ingested } => {
            put_place(body, place);
            put_file(body, *filter_file);
            summary.encode(body);
            put_u64(body, summary.checksum);
            body.push(u8::from(*is_ingested));
            Tag::AddTable
        }
        Change::RemoveTable { place, number } => {
            put_place(body, place);
            put_varint(body, *number);
            Tag::RemoveTable
        }
        _ => encode_other_change(change, body),
    }
}

fn encode_other_change(change: &Change, body: &mut Vec<u8>) -> Tag {
    match change {
        Change::SetTableFilter { place, number, filter_file } => {
            put_place(body, place);
            put_varint(body, *number);
            put_file(body, *filter_file);
            Tag::SetTableFilter
        }
        Change::SetView { keyspace, partition, view } => {
            put_numbers(body, &[*keyspace, *partition]);
            put_file(body, view.as_ref().map(|(number, _)| *number));
            put_numbers(body, view.as_ref().map_or(&[], |(_, runs)| runs));
            Tag::SetView
        }
        Change::SetFlushedSequence { keyspace, partition, sequence } => {
            put_numbers(body, &[*keyspace, *partition, *sequence]);
            Tag::SetFlushedSequence
        }
        Change::AdvanceCounters(counters) => {
            put_numbers(body, &counters.to_fields());
            Tag::AdvanceCounters
        }
        Change::SetDatabase { id, seed } => {
            put_numbers(body, &[*id, *seed]);
            Tag::SetDatabase
        }
        Change::SetRunId { place, id } => {
            put_place(body, place);
            put_varint(body, *id);
            Tag::SetRunId
        }
        Change::SetSyncedLog { segments } => {
            segments.iter().for_each(|(number, bytes)| put_numbers(body, &[*number, *bytes]));
            Tag::SetSyncedLog
        }
        _ => unreachable!("the other changes are encoded by the caller"),
    }
}

/// `None` for a body that [`encode_change`] can't have written.
fn decode_change(tag: Tag, source: &mut Decoder<'_>) -> Option<Change> {
    Some(match tag {
        Tag::CreateKeyspace => Change::CreateKeyspace {
            keyspace: source.take_varint()?,
            name: String::from_utf8(source.take_bytes()?.to_vec()).ok()?,
            options: options_format::decode(source)?,
        },
        Tag::SetOptions => {
            Change::SetOptions { keyspace: source.take_varint()?, options: options_format::decode(source)? }
        }
        Tag::DropKeyspace => Change::DropKeyspace { keyspace: source.take_varint()? },
        Tag::AddPartition => Change::AddPartition {
            keyspace: source.take_varint()?,
            partition: source.take_varint()?,
            flushed_sequence: source.take_varint()?,
            lower: source.take_bytes()?.to_vec(),
        },
        Tag::RemovePartition => {
            Change::RemovePartition { keyspace: source.take_varint()?, partition: source.take_varint()? }
        }
        Tag::AddTable => {
            let (place, filter_file) = (take_place(source)?, take_file(source)?);
            let mut summary = TableSummary::decode(source)?;
            summary.checksum = source.take_u64()?;
            let is_ingested = source.take_bool()?;
            Change::AddTable { place, summary, filter_file, is_ingested }
        }
        Tag::RemoveTable => Change::RemoveTable { place: take_place(source)?, number: source.take_varint()? },
        Tag::SetTableFilter => Change::SetTableFilter {
            place: take_place(source)?,
            number: source.take_varint()?,
            filter_file: take_file(source)?,
        },
        Tag::SetView => Change::SetView {
            keyspace: source.take_varint()?,
            partition: source.take_varint()?,
            view: take_view(source)?,
        },
        Tag::SetFlushedSequence => Change::SetFlushedSequence {
            keyspace: source.take_varint()?,
            partition: source.take_varint()?,
            sequence: source.take_varint()?,
        },
        Tag::AdvanceCounters => Change::AdvanceCounters(Counters::take(source)?),
        Tag::SetDatabase => Change::SetDatabase { id: source.take_varint()?, seed: source.take_varint()? },
        Tag::SetRunId => Change::SetRunId { place: take_place(source)?, id: source.take_varint()? },
        Tag::SetSyncedLog => {
            let mut segments = BTreeMap::new();
            while !source.is_empty() {
                let (number, bytes) = (source.take_varint()?, source.take_varint()?);
                // In ascending order, each once.
                if segments.last_key_value().is_some_and(|(last, _)| *last >= number) {
                    return None;
                }
                segments.insert(number, bytes);
            }
            Change::SetSyncedLog { segments }
        }
    })
}

type ViewFields = Option<(u64, Vec<u64>)>;

fn take_view(source: &mut Decoder<'_>) -> Option<ViewFields> {
    let file = take_file(source)?;
    let mut runs = Vec::new();
    while file.is_some() && !source.is_empty() {
        runs.push(source.take_varint()?);
    }
    Some(file.map(|number| (number, runs)))
}

#[cfg(test)]
pub(super) mod tests;
