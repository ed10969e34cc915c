//! Loads data blocks: from the mapping or through the block cache, verified once, decompressed if necessary.
//!
//! A mapped block of an uncompressed table is used in place. A bit per block records that its checksum was correct, so it
//! is computed once per opened table and not once per read. Two threads may both find the bit clear and both verify the
//! block: that costs time once and is harmless. All other
//! blocks are read or decompressed into memory, verified then, and cached. A point read reads one block; sequential readers read
//! several at once (`read_ahead.rs`).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tamis_vfs::{Access, File, Mapping};

use super::{
    block::Layout,
    environment::{ReadCost, TableEnvironment},
    format::{BLOCK_HEADER_LENGTH, BLOCK_KIND_ENTRIES, CONTENT_LENGTH_MAX, StoredAs},
    index::Index,
    read_ahead::{RawBlock, ReadAhead},
    section::Source,
    zstandard,
};
use crate::{
    cache::block::CachedBlock,
    coding::{Decoder, checksum},
    error::{Error, Result},
    slice::Slice,
    sync::sim_fault,
};

/// Content of a verified block, borrowed from a mapping or owned.
#[derive(Debug)]
pub(super) enum BlockRef<'a> {
    Mapped { content: &'a [u8], start: usize },
    Memory(CachedBlock),
}

impl BlockRef<'_> {
    pub(super) fn content(&self) -> &[u8] {
        match self {
            Self::Mapped { content, .. } => content,
            Self::Memory(block) => block.content(),
        }
    }

    /// A part of the content as an owned slice.
    pub(super) fn slice(&self, file: &Arc<dyn File>, (start, end): (usize, usize)) -> Slice {
        match self {
            Self::Mapped { start: base, .. } => Slice::mapped(file, base + start, end - start),
            Self::Memory(block) => Slice::shared(&block.bytes, block.start as usize + start, end - start),
        }
    }
}

/// The data section of an open table.
#[derive(Debug)]
pub(super) struct DataBlocks {
    pub(super) source: Source,
    pub(super) file_number: u64,
    mapping: Option<Arc<Mapping>>,
    /// One bit per block of a mapped table: its checksum was verified.
    verified: Box<[AtomicU64]>,
}

impl DataBlocks {
    pub(super) fn new(source: Source, file_number: u64, block_count: usize) -> Self {
        let mapping = source.file.mapping().cloned();
        let words = if mapping.is_some() { block_count.div_ceil(64) } else { 0 };
        let verified = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { source, file_number, mapping, verified }
    }

    /// Whether blocks are used in place in the mapping.
    #[inline]
    pub(super) fn is_mapped(&self) -> bool {
        self.mapping.is_some()
    }

    /// The bytes of a mapped table.
    #[inline(always)]
    pub(super) fn mapping(&self) -> Option<&[u8]> {
        self.mapping.as_deref().map(|mapping| &**mapping)
    }

    /// These bytes of a mapped table.
    #[inline]
    fn mapped(&self, start: u64, length: usize) -> Option<&[u8]> {
        self.mapping()?.get(usize::try_from(start).ok()?..)?.get(..length)
    }

    /// Prefetches the bytes that a search of the block at `start` reads first, if the table is mapped.
    #[inline]
    pub(super) fn prefetch(&self, start: u64) {
        let rest = self.mapping().zip(usize::try_from(start).ok());
        if let Some(block) = rest.and_then(|(bytes, start)| bytes.get(start..)) {
            prefetch_search(block);
        }
    }

    /// Prefetches an entry of the mapped block at `start`, if the block was used before.
    pub(super) fn prefetch_entry(&self, block: usize, start: u64, entry: usize) {
        let rest = self.mapping().zip(usize::try_from(start).ok());
        if self.is_verified(block)
            && let Some(content) = rest.and_then(|(bytes, start)| bytes.get(start + BLOCK_HEADER_LENGTH..))
            && let Some(layout) = Layout::parse(content)
        {
            layout.over(content).prefetch(entry);
        }
    }

    /// The content of the block at `extent`; read alone.
    pub(super) fn load(
        &self,
        environment: &TableEnvironment,
        block: usize,
        extent: (u64, u64),
        cost: &mut ReadCost,
    ) -> Result<BlockRef<'_>> {
        if let Some(found) = self.find(environment, block, extent, cost)? {
            return Ok(found);
        }
        let load = || {
            cost.blocks_read += 1;
            self.read_alone(extent, cost)
        };
        environment.cache.get_or_load(self.file_number, extent.0, load).map(BlockRef::Memory)
    }

    /// As [`DataBlocks::load`], for a sequential reader: the block may be read with its neighbours. Blocks of a job are not
    /// cached.
    pub(super) fn load_ahead(
        &self,
        environment: &TableEnvironment,
        index: &Index,
        block: usize,
        extent: (u64, u64),
        (ahead, cost): (&mut ReadAhead, &mut ReadCost),
    ) -> Result<BlockRef<'_>> {
        if let Some(found) = self.find(environment, block, extent, cost)? {
            ahead.record_cached(block, extent);
            return Ok(found);
        }
        if ahead.is_job() {
            return self.read_ahead(index, block, extent, (ahead, cost)).map(BlockRef::Memory);
        }
        if ahead.is_long_scan() {
            // Others that need the block must not wait for a whole long read: they can make the next one meanwhile.
            let loaded = self.read_ahead(index, block, extent, (ahead, cost))?;
            environment.cache.put(self.file_number, extent.0, loaded.clone());
            return Ok(BlockRef::Memory(loaded));
        }
        let load = || self.read_ahead(index, block, extent, (ahead, cost));
        environment.cache.get_or_load(self.file_number, extent.0, load).map(BlockRef::Memory)
    }

    /// The block in the mapping or in the cache.
    fn find(
        &self,
        environment: &TableEnvironment,
        block: usize,
        (start, end): (u64, u64),
        cost: &mut ReadCost,
    ) -> Result<Option<BlockRef<'_>>> {
        let length = usize::try_from(end - start).unwrap_or(usize::MAX);
        if let Some(bytes) = self.mapped(start, length) {
            if let Some(content) = self.mapped_content(block, start, bytes, cost)? {
                return Ok(Some(BlockRef::Mapped { content, start: start as usize + BLOCK_HEADER_LENGTH }));
            }
        } else {
            self.check_extent((start, end))?;
        }
        let Some(block) = environment.cache.get(self.file_number, start) else { return Ok(None) };
        cost.cache_hits += 1;
        prefetch_search(block.content());
        Ok(Some(BlockRef::Memory(block)))
    }

    fn check_extent(&self, (start, end): (u64, u64)) -> Result<()> {
        if end <= self.source.length {
            return Ok(());
        }
        let got = format!("a block up to {end}");
        Err(self.source.damaged(start, "block index", "positions within the file", got))
    }

    /// Whether a mapped block was verified since the table was opened.
    #[inline]
    fn is_verified(&self, block: usize) -> bool {
        let word = self.verified.get(block / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) & 1 << (block % 64) != 0)
    }

    /// The content in place; `None` for a compressed block, which is not verified here.
    fn mapped_content<'a>(
        &self,
        block: usize,
        offset: u64,
        bytes: &'a [u8],
        cost: &mut ReadCost,
    ) -> Result<Option<&'a [u8]>> {
        prefetch_search(bytes);
        if self.is_verified(block) {
            cost.cache_hits += 1;
        } else {
            if bytes.get(13).is_none_or(|&compression| compression != StoredAs::Plain as u8) {
                return Ok(None);
            }
            verify_block(&self.source, offset, bytes)?;
            cost.blocks_read += 1;
            cost.bytes_read += bytes.len() as u64;
            if let Some(word) = self.verified.get(block / 64) {
                word.fetch_or(1 << (block % 64), Ordering::Relaxed);
            }
        }
        // The length was correct when the block was verified.
        let length = bytes
            .get(8..12)
            .and_then(|field| field.first_chunk())
            .map_or(0, |field| u32::from_le_bytes(*field));
        Ok(bytes.get(BLOCK_HEADER_LENGTH..).and_then(|rest| rest.get(..length as usize)))
    }

    /// Reads and verifies a block again, without verified bits and cache.
    pub(super) fn load_and_verify(
        &self,
        index: &Index,
        block: usize,
        extent: (u64, u64),
        ahead: &mut ReadAhead,
    ) -> Result<CachedBlock> {
        self.check_extent(extent)?;
        self.read_ahead(index, block, extent, (ahead, &mut ReadCost::default()))
    }

    /// Reads a block from the file and verifies it, even if it was verified before.
    pub(super) fn verify_again(&self, extent: (u64, u64)) -> Result<()> {
        self.check_extent(extent)?;
        self.read_alone(extent, &mut ReadCost::default()).map(drop)
    }

    /// Reads a block with its neighbours, if that is due.
    fn read_ahead(
        &self,
        index: &Index,
        block: usize,
        extent: (u64, u64),
        (ahead, cost): (&mut ReadAhead, &mut ReadCost),
    ) -> Result<CachedBlock> {
        cost.blocks_read += 1;
        if self.is_mapped() {
            return self.read_alone(extent, cost);
        }
        let is_job = ahead.is_job();
        match ahead.block((&self.source, index), block, extent, cost) {
            Some(raw) if is_job => self.decode_shared(extent.0, raw),
            Some(RawBlock { bytes, start, length }) => {
                let raw = bytes.get(start..start + length).unwrap_or_default();
                self.decode(extent.0, raw)
            }
            None => self.read_alone(extent, cost),
        }
    }

    /// Reads one block only.
    fn read_alone(&self, (start, end): (u64, u64), cost: &mut ReadCost) -> Result<CachedBlock> {
        let length = usize::try_from(end - start).unwrap_or(usize::MAX);
        cost.bytes_read += length as u64;
        if let Some(raw) = self.source.mapped(start, length) {
            return self.decode(start, raw);
        }
        if self.source.access == Access::Direct {
            return self.decode(start, self.source.read_direct(start, length)?.as_ref());
        }
        let mut raw: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
        self.source.read(start, Arc::get_mut(&mut raw).unwrap_or_default())?;
        self.decode_shared(start, RawBlock { bytes: &raw, start: 0, length })
    }

    /// Verifies the bytes of a block at `offset` of the file; uncompressed content is used in place.
    fn decode_shared(&self, offset: u64, raw: RawBlock<'_>) -> Result<CachedBlock> {
        let RawBlock { bytes, start, length } = raw;
        let raw = bytes.get(start..start + length).unwrap_or_default();
        let header = verify_block(&self.source, offset, raw)?;
        if header.compression != StoredAs::Plain {
            return self.decompress(offset, &header, raw);
        }
        let start = (start + BLOCK_HEADER_LENGTH) as u32;
        Ok(CachedBlock { bytes: Arc::clone(bytes), start, length: header.length })
    }

    /// Verifies the bytes of a block at `offset` of the file; the content is copied.
    pub(super) fn decode(&self, offset: u64, raw: &[u8]) -> Result<CachedBlock> {
        let header = verify_block(&self.source, offset, raw)?;
        if header.compression != StoredAs::Plain {
            return self.decompress(offset, &header, raw);
        }
        let content = raw.get(BLOCK_HEADER_LENGTH..).and_then(|rest| rest.get(..header.length as usize));
        Ok(CachedBlock { bytes: Arc::from(content.unwrap_or_default()), start: 0, length: header.length })
    }

    fn decompress(&self, offset: u64, header: &BlockHeader, raw: &[u8]) -> Result<CachedBlock> {
        let stored = raw.get(BLOCK_HEADER_LENGTH..).unwrap_or_default();
        let content_length = header.length as usize;
        let mut content: Arc<[u8]> = std::iter::repeat_n(0, content_length).collect();
        let target = Arc::get_mut(&mut content).unwrap_or_default();
        let written = match header.compression {
            StoredAs::Lz4 => {
                lz4_flex::block::decompress_into(stored, target).map_err(|error| error.to_string())
            }
            _ => zstandard::decompress(stored, target, &self.source.path)?,
        };
        if written != Ok(content_length) {
            let expected = format!("{content_length} bytes after decompression");
            return Err(self.source.damaged(offset, "compressed block", expected, format!("{written:?}")));
        }
        Ok(CachedBlock { bytes: content, start: 0, length: header.length })
    }
}

/// Prefetches the cache lines that a search reads first (header, heads, offsets), so that their misses overlap.
#[inline]
fn prefetch_search(block: &[u8]) {
    // A block of about 30 entries has four cache lines before the entries.
    for line in 0..4 {
        tamis_bits::prefetch(block, 64 * line);
    }
}

struct BlockHeader {
    length: u32,
    compression: StoredAs,
}

/// Checks checksum, kind, compression, length and padding of a block's bytes at `offset`.
fn verify_block(source: &Source, offset: u64, bytes: &[u8]) -> Result<BlockHeader> {
    let damaged = |expected: &str, got: String| -> Error { source.damaged(offset, "block", expected, got) };
    let mut fields = Decoder::new(bytes);
    let stored = fields.take_u64().ok_or_else(|| damaged("16 bytes", bytes.len().to_string()))?;
    let computed = checksum(offset, fields.rest());
    if stored != computed && !sim_fault!("ignore-block-checksum") {
        return Err(damaged(&format!("checksum {stored:#018x}"), format!("{computed:#018x}")));
    }
    let (Some(length), Some(kind), Some(compression), Some(zero)) =
        (fields.take_u32(), fields.take_u8(), fields.take_u8(), fields.take_u16())
    else {
        return Err(damaged("16 bytes", bytes.len().to_string()));
    };
    let known = StoredAs::from_number(compression).filter(|_| kind == BLOCK_KIND_ENTRIES && zero == 0);
    let Some(compression) = known else {
        let got = format!("kind {kind}, compression {compression}");
        return Err(damaged("entries, compression 0 to 2", got));
    };
    if length as usize > CONTENT_LENGTH_MAX {
        return Err(damaged("content of at most 268,566,528 bytes", length.to_string()));
    }
    if compression == StoredAs::Plain {
        let padding = fields.rest().get(length as usize..);
        if padding.is_none_or(|padding| padding.iter().any(|&byte| byte != 0)) {
            return Err(damaged("content and zero padding", format!("content of {length} bytes")));
        }
    }
    Ok(BlockHeader { length, compression })
}
