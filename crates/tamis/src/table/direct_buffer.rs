//! A buffer whose address suits direct reads.

use super::format::FILE_ALIGNMENT;

/// A buffer for direct reads: aligned as they require, inside a larger allocation.
#[derive(Debug)]
pub(super) struct DirectBuffer {
    bytes: Vec<u8>,
    pub(super) start: usize,
    pub(super) length: usize,
}

impl DirectBuffer {
    pub(super) fn zeroed(length: usize) -> Self {
        let length = length.next_multiple_of(FILE_ALIGNMENT);
        let bytes = vec![0; length + FILE_ALIGNMENT];
        let start = bytes.as_ptr().align_offset(FILE_ALIGNMENT).min(FILE_ALIGNMENT);
        Self { bytes, start, length }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..self.start + self.length).unwrap_or_default()
    }
}

impl AsRef<[u8]> for DirectBuffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(self.start..self.start + self.length).unwrap_or_default()
    }
}
