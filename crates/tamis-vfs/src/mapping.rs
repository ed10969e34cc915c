//! The bytes of a mapped file.

use std::{fmt, ops::Deref, sync::Arc};

use memmap2::Mmap;

/// The bytes of a file that was opened with [`crate::Access::Mapped`]. A type, and not a method of [`crate::File`]: a reader that keeps it
/// reaches the bytes without a call.
pub struct Mapping {
    bytes: Bytes,
}

enum Bytes {
    Mapped(Mmap),
    /// A file in memory, or an empty one, which can't be mapped.
    Memory(Arc<Vec<u8>>),
}

impl Mapping {
    pub(crate) fn of_file(mapped: Option<Mmap>) -> Self {
        Self { bytes: mapped.map_or_else(|| Bytes::Memory(Arc::default()), Bytes::Mapped) }
    }

    pub(crate) const fn of_memory(bytes: Arc<Vec<u8>>) -> Self {
        Self { bytes: Bytes::Memory(bytes) }
    }

    /// The mapping; `None` for bytes that are in memory.
    pub(crate) const fn mapped(&self) -> Option<&Mmap> {
        match &self.bytes {
            Bytes::Mapped(mapped) => Some(mapped),
            Bytes::Memory(_) => None,
        }
    }
}

/// The bytes of a file of another implementation of [`crate::Vfs`].
impl From<Vec<u8>> for Mapping {
    fn from(bytes: Vec<u8>) -> Self {
        Self::of_memory(Arc::new(bytes))
    }
}

impl Deref for Mapping {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(bytes) => bytes,
            Bytes::Memory(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Mapping({} bytes)", self.len())
    }
}
