//! Filter files: filters of one table in their own file (`docs/format/filter.md`, "Filter file").

use std::{path::Path, sync::Arc};

use tamis_vfs::Folder;

use super::{
    environment::TableEnvironment,
    filter_block::BuiltFilters,
    filter_choice::FilterChoice,
    format::{FILTER_MAGIC, FILTER_VERSION, SECTION_ALIGNMENT, SECTION_PASSABLE, SectionKind},
    properties::TableProperties,
    section::{SectionRecord, Source, put_directory_and_footer, put_section},
};
use crate::{
    coding::{Decoder, put_u64, put_varint},
    error::{Error, Result},
    file_name::FileName,
};

/// The table that a filter file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterOwner {
    pub(crate) database_id: u64,
    pub(crate) keyspace_id: u64,
    pub(crate) table_number: u64,
    /// [`TableSummary::checksum`](super::properties::TableSummary::checksum) of the table.
    pub(crate) table_checksum: u64,
}

impl FilterOwner {
    pub(crate) fn of(properties: &TableProperties) -> Self {
        Self {
            database_id: properties.origin.database_id,
            keyspace_id: properties.origin.keyspace_id,
            table_number: properties.summary.number,
            table_checksum: properties.summary.checksum,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_u64(&mut body, self.database_id);
        put_varint(&mut body, self.keyspace_id);
        put_varint(&mut body, self.table_number);
        put_u64(&mut body, self.table_checksum);
        body
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut source = Decoder::new(bytes);
        Some(Self {
            database_id: source.take_u64()?,
            keyspace_id: source.take_varint()?,
            table_number: source.take_varint()?,
            table_checksum: source.take_u64()?,
        })
    }
}

/// Writes built filters as file `number`: synced, renamed, the folder synced. Returns the file's length.
pub(crate) fn write_filter_file(
    folder: &Folder,
    number: u64,
    owner: FilterOwner,
    built: &BuiltFilters,
) -> Result<u64> {
    let mut bytes = Vec::new();
    let mut records = vec![put_section(&mut bytes, 0, SectionKind::Owner, 0, &owner.encode())];
    let choice = built.choice.as_ref().map(FilterChoice::encode);
    let filters = built.filters.iter().map(|filter| (SectionKind::Filter, filter));
    for (kind, body) in filters.chain(choice.iter().map(|choice| (SectionKind::FilterChoice, choice))) {
        bytes.resize(bytes.len().next_multiple_of(SECTION_ALIGNMENT), 0);
        let offset = bytes.len() as u64;
        records.push(put_section(&mut bytes, offset, kind, SECTION_PASSABLE, body));
    }
    bytes.resize(bytes.len().next_multiple_of(SECTION_ALIGNMENT), 0);
    let offset = bytes.len() as u64;
    put_directory_and_footer(&mut bytes, offset, FILTER_MAGIC, FILTER_VERSION, &records, None);
    let (temporary, target) =
        (FileName::Temporary(number).path(folder), FileName::Filter(number).path(folder));
    let written = write_whole(folder, &temporary, &target, &bytes).inspect_err(|_| {
        // A file that can't be removed is deleted at the next open.
        let _ = folder.remove(&temporary);
        let _ = folder.remove(&target);
    });
    written.map(|()| bytes.len() as u64)
}

fn write_whole(folder: &Folder, temporary: &Path, target: &Path, bytes: &[u8]) -> Result<()> {
    let file = folder.create(temporary).map_err(|source| Error::io("create", temporary, source))?;
    file.append(bytes).map_err(|source| Error::io("write", temporary, source))?;
    file.sync().map_err(|source| Error::io("sync", temporary, source))?;
    folder.rename(temporary, target).map_err(|source| Error::io("rename", temporary, source))?;
    folder.sync().map_err(|source| Error::io("sync", folder.path(), source))
}

/// Opens a filter file that belongs to `owner`, and lists its filters (none, if the store chose none) and the choice of them.
pub(super) fn open_filter_file(
    environment: &Arc<TableEnvironment>,
    number: u64,
    owner: FilterOwner,
) -> Result<(Source, Vec<SectionRecord>)> {
    let source = environment.open_file(FileName::Filter(number))?;
    let mut records = source.directory(FILTER_MAGIC)?.records;
    let missing = |kind: SectionKind| {
        source.damaged(
            source.length,
            "section directory",
            format!("a section of kind {}", kind as u32),
            "none",
        )
    };
    let owner_record = records.iter().find(|record| record.kind == SectionKind::Owner);
    let owner_record = *owner_record.ok_or_else(|| missing(SectionKind::Owner))?;
    let found = FilterOwner::decode(source.section(&owner_record)?.as_ref());
    if found != Some(owner) {
        return Err(source.damaged(owner_record.offset, "owner", format!("{owner:?}"), format!("{found:?}")));
    }
    // Without filters only if the store chose none.
    if !records.iter().any(|record| [SectionKind::Filter, SectionKind::FilterChoice].contains(&record.kind)) {
        return Err(missing(SectionKind::Filter));
    }
    records.retain(|record| [SectionKind::Filter, SectionKind::FilterChoice].contains(&record.kind));
    Ok((source, records))
}
