//! Passes the bytes of a view to its sink: pages, aligned sections, and the directory of the sections.

use super::format::VIEW_MAGIC;
use crate::{
    error::Result,
    table::{
        format::{SECTION_ALIGNMENT, SectionKind, VIEW_VERSION},
        section::{SectionRecord, Sink, put_directory_and_footer, put_section},
    },
};

/// See the head of this file.
pub(super) struct Output<'a> {
    sink: &'a mut Sink<'a>,
    buffer: Vec<u8>,
    /// Bytes before the buffer.
    written: u64,
    records: Vec<SectionRecord>,
}

impl<'a> Output<'a> {
    pub(super) const fn new(sink: &'a mut Sink<'a>) -> Self {
        Self { sink, buffer: Vec::new(), written: 0, records: Vec::new() }
    }

    #[cfg(test)]
    pub(super) const fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Bytes so far.
    const fn length(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= 256 << 10 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        (self.sink)(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Fills the buffer up to the start of a section, and returns its offset.
    fn align(&mut self) -> u64 {
        let end = self.length();
        let start = end.next_multiple_of(SECTION_ALIGNMENT as u64);
        self.buffer.resize(self.buffer.len() + (start - end) as usize, 0);
        start
    }

    pub(super) fn put_section(&mut self, (kind, flags): (SectionKind, u32), body: &[u8]) {
        let offset = self.align();
        self.records.push(put_section(&mut self.buffer, offset, kind, flags, body));
    }

    /// Writes the directory and the footer.
    pub(super) fn finish(mut self) -> Result<()> {
        let offset = self.align();
        put_directory_and_footer(&mut self.buffer, offset, VIEW_MAGIC, VIEW_VERSION, &self.records, None);
        self.flush()
    }
}
