//! The output of RocksDB's `ldb dump --hex`: a line `0xKEY ==> 0xVALUE` for each entry, then `Keys in range: COUNT`.

use super::decode_hex;
use crate::{
    failure::Failure,
    input::{Entries, check_lengths, lines::Lines},
};

/// A dump by `ldb`.
pub(in crate::input) struct LdbDump {
    lines: Lines,
    entry_count: u64,
    is_complete: bool,
}

impl LdbDump {
    pub(in crate::input) fn new(lines: Lines) -> Self {
        Self { lines, entry_count: 0, is_complete: false }
    }

    /// Checks the count in the last line, and that it is the last line.
    fn check_end(&mut self) -> Result<(), Failure> {
        let text = self.lines.line().strip_prefix(COUNT).and_then(|text| std::str::from_utf8(text).ok());
        let count = text.and_then(|text| text.trim().parse::<u64>().ok());
        if count != Some(self.entry_count) {
            let found = self.entry_count;
            let error =
                format!("the dump has {found} entries, and not as many as this line says; create it again");
            return Err(self.lines.fail(error));
        }
        self.is_complete = true;
        match self.lines.read()? {
            true => Err(self.lines.fail("a line after the count of entries; load one dump at a time")),
            false => Ok(()),
        }
    }
}

/// The start of the last line.
const COUNT: &[u8] = b"Keys in range: ";

/// Decodes a line of an entry.
fn decode(line: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<(), String> {
    let foreign = || "not a line of `ldb dump --hex`, such as 0x6B6579 ==> 0x76616C7565".to_owned();
    let middle = line.windows(SEPARATOR.len()).position(|part| part == SEPARATOR).ok_or_else(foreign)?;
    let (left, right) = line.split_at(middle);
    let right = right.get(SEPARATOR.len()..).unwrap_or_default();
    for (text, target) in [(left, key), (right, value)] {
        target.clear();
        decode_hex(text.strip_prefix(b"0x").ok_or_else(foreign)?, target)?;
    }
    Ok(())
}

/// The text between key and value.
const SEPARATOR: &[u8] = b" ==> ";

impl Entries for LdbDump {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure> {
        if self.is_complete {
            return Ok(false);
        }
        if !self.lines.read()? {
            return Err(self
                .lines
                .fail("the line `Keys in range` is missing: the dump is truncated; create it again"));
        }
        if self.lines.line().starts_with(COUNT) {
            self.check_end()?;
            return Ok(false);
        }
        decode(self.lines.line(), key, value).map_err(|error| self.lines.fail(error))?;
        check_lengths(key, value).map_err(|error| self.lines.fail(error))?;
        self.entry_count += 1;
        Ok(true)
    }

    fn place(&self) -> String {
        self.lines.place()
    }

    fn has_unique_keys(&self) -> bool {
        true
    }
}
