//! The contents of a table or filter file for inspection: sections, blocks, entries, filters.

use std::{path::Path, sync::Arc};

use tamis_vfs::{Access, Folder, Vfs};

use super::{
    environment::{TableEnvironment, open_path},
    filter_choice::FilterChoice,
    filter_set::open_block,
    format::{FILTER_MAGIC, SectionKind, TABLE_MAGIC},
    index::Index,
    open_files::OpenFiles,
    read_ahead::ReadAhead,
    reader::{KnownTable, TableReader},
    scrub::entries_of,
    section::{SectionRecord, Source},
};
use crate::{
    admin::link::folder_of,
    cache::{block::BlockCache, pinned_cache::PinnedCache},
    error::{Error, Result},
    key::{Kind, Sequence},
};

/// The place of a block and its first key.
#[derive(Debug)]
pub(crate) struct BlockPlace {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) entry_count: u64,
    /// The first key, or the fault of the block.
    pub(crate) first_key: Result<Vec<u8>>,
}

/// A section of a file: its kind, its place, and the description of a filter.
#[derive(Debug)]
pub(crate) struct SectionPlace {
    pub(crate) kind: &'static str,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) design: Option<Result<String>>,
}

/// The environment of one file.
fn environment_of(vfs: &dyn Vfs, path: &Path) -> Result<Arc<TableEnvironment>> {
    let folder = Folder::open(vfs, folder_of(path)).map_err(|error| Error::io("open", path, error))?;
    Ok(Arc::new(TableEnvironment {
        folder,
        access: Access::Buffered,
        open_files: OpenFiles::new(vfs),
        cache: Arc::new(BlockCache::new(0)),
        pinned_cache: PinnedCache::new(u64::MAX, &Arc::default(), &Arc::default(), None),
        metrics: Arc::default(),
        listener: None,
    }))
}

/// Opens a file in any folder and with any name.
pub(crate) fn open_anywhere(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Source> {
    open_path(&*environment_of(&**vfs, path)?, path)
}

/// An entry of a block.
pub(crate) type InspectedEntry = (Vec<u8>, Sequence, Kind, Vec<u8>);

impl TableReader {
    /// Opens a table in any folder and with any name.
    pub(crate) fn open_anywhere(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Arc<Self>> {
        let environment = environment_of(&**vfs, path)?;
        let source = open_path(&environment, path)?;
        let known = KnownTable { sequence: Some(0), ..KnownTable::default() };
        Self::open_source(&environment, source, known, &Arc::default())
    }

    /// All blocks in order.
    pub(crate) fn blocks(&self) -> Result<Vec<BlockPlace>> {
        let index = self.index()?;
        let mut ahead = ReadAhead::of_job();
        let place = |block: usize| {
            let (start, end) = self.extent(&index, block)?;
            let entry_count = index.entries_before(block + 1).saturating_sub(index.entries_before(block));
            let entries = self.read_block(&index, block, &mut ahead);
            let first_key =
                entries.map(|entries| entries.into_iter().next().map(|(key, ..)| key).unwrap_or_default());
            Ok(BlockPlace { offset: start, bytes: end - start, entry_count, first_key })
        };
        (0..index.block_count()).map(place).collect()
    }

    /// The entries of a block.
    pub(crate) fn entries_of(&self, block: usize) -> Result<Vec<InspectedEntry>> {
        let index = self.index()?;
        if block >= index.block_count() {
            return Err(Error::InvalidArgument {
                what: "block",
                got: block.to_string(),
                expected: format!("the table has blocks 0 to {}", index.block_count() - 1),
            });
        }
        self.read_block(&index, block, &mut ReadAhead::of_scan(None))
    }

    fn read_block(&self, index: &Index, block: usize, ahead: &mut ReadAhead) -> Result<Vec<InspectedEntry>> {
        let extent = self.extent(index, block)?;
        let data = self.data.load_and_verify(index, block, extent, ahead)?;
        let (_, entries) = entries_of(&self.data.source, extent.0, data.content(), self.sequence_shift)?;
        let value_of = |(start, end): (usize, usize)| data.content().get(start..end).unwrap_or_default();
        let entries = entries.into_iter();
        Ok(entries
            .map(|entry| (entry.key, entry.sequence, entry.kind, value_of(entry.value).to_vec()))
            .collect())
    }
}

/// The kind of a section that says why the store chose the filters.
pub(crate) const FILTER_CHOICE: &str = "filter choice";

/// The sections of a table or filter file, in order.
pub(crate) fn sections_of(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Vec<SectionPlace>> {
    let source = open_anywhere(vfs, path)?;
    let directory = match source.directory(TABLE_MAGIC) {
        Ok(directory) => directory,
        // A filter file has another magic; of a damaged table the first error is returned.
        Err(error) => source.directory(FILTER_MAGIC).map_err(|_| error)?,
    };
    let place = |record: &SectionRecord| {
        let damaged =
            |what: &'static str, reason: String| source.damaged(record.offset, "filter", what, reason);
        let design = match record.kind {
            SectionKind::Filter => Some(open_block(&source, record).map(|filter| filter.design())),
            SectionKind::FilterChoice => Some(source.section(record).and_then(|body| {
                let choice = FilterChoice::decode(body.as_ref());
                choice
                    .map(|choice| choice.to_string())
                    .ok_or_else(|| damaged("a filter choice", "other bytes".to_owned()))
            })),
            _ => None,
        };
        let kind = match record.kind {
            SectionKind::Index => "index",
            SectionKind::Filter => "filter",
            SectionKind::FilterChoice => FILTER_CHOICE,
            SectionKind::Properties => "properties",
            SectionKind::Owner => "owner",
            SectionKind::RangeTombstones => "range tombstones",
            _ => "unknown",
        };
        SectionPlace { kind, offset: record.offset, bytes: record.length, design }
    };
    Ok(directory.records.iter().map(place).collect())
}
