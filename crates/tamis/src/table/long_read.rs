//! Reads of several adjacent blocks of a table, which scans may share.

use std::{ops::Range, sync::Arc};

use super::{environment::ReadCost, format::FILE_ALIGNMENT, section::Source};
use crate::sync::OnceLock;

/// A read of adjacent blocks: to be made, in progress, or done.
#[derive(Debug)]
pub(super) struct LongRead {
    pub(super) blocks: Range<usize>,
    /// The range of the blocks in the file.
    pub(super) bytes: Range<u64>,
    /// The bytes and the offset of the blocks in them; `None` if the read failed. Others wait while it is in progress.
    pub(super) content: OnceLock<Option<(Arc<[u8]>, usize)>>,
}

impl LongRead {
    pub(super) const fn new(blocks: Range<usize>, bytes: Range<u64>) -> Self {
        Self { blocks, bytes, content: OnceLock::new() }
    }

    /// The bytes and the offset of the blocks in them; `None` if the read failed. The first caller reads them into a buffer of the
    /// length that `buffer` is called with, or longer; others wait for it.
    pub(super) fn load(
        &self,
        source: &Source,
        cost: &mut ReadCost,
        buffer: impl FnOnce(usize) -> Arc<[u8]>,
    ) -> Option<&(Arc<[u8]>, usize)> {
        let content = self.content.get_or_init(|| {
            let length = usize::try_from(self.bytes.end - self.bytes.start).ok()?;
            let mut buffer = buffer(length + 3 * FILE_ALIGNMENT);
            let bytes = Arc::get_mut(&mut buffer)?;
            let aligned = bytes.as_ptr().align_offset(FILE_ALIGNMENT).min(FILE_ALIGNMENT);
            let target = bytes.get_mut(aligned..)?;
            let (skipped, bytes_read) = source.read_aligned(self.bytes.start, length, target).ok()?;
            cost.bytes_read += bytes_read as u64;
            Some((buffer, aligned + skipped))
        });
        content.as_ref()
    }

    pub(super) const fn covers(&self, extent: (u64, u64)) -> bool {
        self.bytes.start <= extent.0 && extent.1 <= self.bytes.end
    }
}
