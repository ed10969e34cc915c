//! Verifies a table: reads every byte, checks all that can be checked, and continues after each fault.
//!
//! 1. Blocks are adjacent, their checksums are correct, their entries decode and ascend, and the index separates and counts
//!    them correctly.
//! 2. No filter in use rejects a key of the table, or a range that contains one.
//! 3. The key column has the keys and kinds of the entries, in their order.
//! 4. Every section has a correct checksum, and the properties have the first and the last key.
//! 5. The footer has the checksum of all these checksums.
//!
//! If the index can't be read, the parts that can be found without it are checked (`partial_verify.rs`).
//!
//! Cost: the file is read once, and some sections twice.

use tamis_filter::{Digester, Probe};

use super::{
    block::Layout,
    filter_block::FilterBlock,
    format::{FOOTER_LENGTH, KIND_LAST, TABLE_MAGIC},
    index::Index,
    key_column::KeyColumn,
    partial_verify::verify_readable_parts_of,
    read_ahead::ReadAhead,
    reader::TableReader,
    section::ContentSum,
};
use crate::{
    error::{Error, Result},
    key::{Kind, Sequence, compare_entries},
};

/// The parts with which blocks are compared.
struct Check<'a> {
    table: &'a TableReader,
    index: &'a Index,
    filters: Vec<FilterBlock>,
    column: Option<KeyColumn>,
    digester: Digester,
    ahead: ReadAhead,
    /// The previous entry; `None` at the beginning and after a fault.
    last: Option<(Vec<u8>, Sequence)>,
    /// It is in a plain block.
    is_last_plain: bool,
}

impl TableReader {
    /// Every fault of the table, those of its sections first; none for an intact one.
    pub(crate) fn verify(&self) -> Vec<Error> {
        let mut faults = Vec::new();
        for record in &self.records {
            faults.extend(self.data.source.section(record).err());
        }
        let index = match self.index() {
            Ok(index) => index,
            Err(error) => {
                faults.push(error);
                return verify_readable_parts_of(&self.data.source, self.data.file_number, faults).faults;
            }
        };
        let mut keep = |error: Error| {
            // A damaged section was already found by its checksum.
            if !faults.iter().any(|other| is_same_place(other, &error)) {
                faults.push(error);
            }
        };
        let filters = self.read_filters().filter_map(|filter| filter.map_err(&mut keep).ok()).collect();
        let column = self.key_column().map_err(&mut keep).ok().flatten();
        let mut check = Check {
            table: self,
            index: &index,
            filters,
            column,
            digester: Digester::new(0),
            ahead: ReadAhead::of_job(),
            last: None,
            is_last_plain: false,
        };
        let mut position = Some(0);
        for block in 0..index.block_count() {
            position = match check.extent(block, position) {
                Ok((start, end)) => {
                    if let Err(error) = check.block(block, (start, end)) {
                        check.last = None;
                        keep(error);
                    }
                    Some(end)
                }
                Err(error) => {
                    keep(error);
                    None
                }
            };
        }
        if let Some((key, _)) = &check.last
            && *key != self.properties.summary.largest_key
        {
            keep(self.data.source.damaged(0, "properties", "the largest key", "another key"));
        }
        if faults.is_empty() {
            faults.extend(self.check_content(&index).err());
        }
        faults
    }
}

impl TableReader {
    /// Compares the checksums of all blocks and sections with the checksum of them in the footer.
    fn check_content(&self, index: &Index) -> Result<()> {
        let source = &self.data.source;
        let directory = source.directory(TABLE_MAGIC, KIND_LAST)?;
        let mut content = ContentSum::default();
        let blocks = (0..index.block_count()).filter_map(|block| index.extent(block));
        for offset in blocks.map(|(start, _)| start).chain(directory.offsets) {
            let mut sum = [0; 8];
            source.read(offset, &mut sum)?;
            content.add(&sum);
        }
        let (stored, computed) = (directory.content, content.finish());
        if stored == computed {
            return Ok(());
        }
        let (expected, got) = (format!("checksum {stored:#018x}"), format!("{computed:#018x}"));
        Err(source.damaged(source.length - FOOTER_LENGTH as u64, "content", expected, got))
    }
}

fn is_same_place(left: &Error, right: &Error) -> bool {
    match (left, right) {
        (Error::Corruption(left), Error::Corruption(right)) => {
            left.file == right.file && left.offset == right.offset
        }
        _ => false,
    }
}

impl Check<'_> {
    /// The offset of a block: after the previous one.
    fn extent(&self, block: usize, position: Option<u64>) -> Result<(u64, u64)> {
        let (start, end) = self.table.extent(self.index, block)?;
        match position {
            Some(position) if position != start => Err(self.table.data.source.damaged(
                start,
                "block index",
                position.to_string(),
                start.to_string(),
            )),
            _ => Ok((start, end)),
        }
    }

    fn block(&mut self, block: usize, extent: (u64, u64)) -> Result<()> {
        let table = self.table;
        let malformed = || table.malformed(extent.0);
        let data = table.data.load_and_verify(self.index, block, extent, &mut self.ahead)?;
        let layout = Layout::parse(data.content()).ok_or_else(malformed)?;
        let entries = layout.over(data.content());
        let before = self.index.entries_before(block);
        if self.index.entries_before(block + 1).checked_sub(before) != Some(layout.entry_count() as u64) {
            return Err(malformed());
        }
        let mut column = self.column.as_ref().map(|column| column.keys_from(before as usize));
        for number in 0..layout.entry_count() {
            let mut key = entries.prefix().to_vec();
            let entry = entries.entry(number).ok_or_else(malformed)?;
            entries.assemble_key(number, &entry, &mut key).ok_or_else(malformed)?;
            let kind = table.kind(entry.kind, extent.0)?;
            let is_after = match &self.last {
                Some((last, sequence)) => compare_entries((last, *sequence), (&key, entry.sequence)).is_lt(),
                None => block + number > 0 || key == table.properties.summary.smallest_key,
            };
            let last_key = self.last.as_ref().map(|(key, _)| key.as_slice());
            let repeats_key = last_key == Some(key.as_slice());
            let is_wrongly_plain = layout.is_plain() && kind != Kind::Put
                || repeats_key && (layout.is_plain() || self.is_last_plain);
            let is_separated =
                number > 0 || self.last.is_none() || self.index.separates(block, last_key, &key);
            let sequence = entry.sequence.wrapping_add(table.sequence_shift);
            let summary = &table.properties.summary;
            let is_counted = (summary.smallest_sequence..=summary.largest_sequence).contains(&sequence);
            if !is_after || !is_separated || !is_counted || is_wrongly_plain {
                return Err(malformed());
            }
            if let Some(column) = &mut column
                && column.advance() != Some(Some((key.as_slice(), entry.kind)))
            {
                return Err(table.key_column_error());
            }
            let probe = Probe::new(&key, &self.digester);
            if self.filters.iter().any(|filter| !filter.admits(&probe, &self.digester)) {
                let key = key.escape_ascii().to_string();
                return Err(table.data.source.damaged(
                    extent.0,
                    "filter",
                    "a filter that admits every key",
                    key,
                ));
            }
            self.last = Some((key, entry.sequence));
            self.is_last_plain = layout.is_plain();
        }
        Ok(())
    }
}
