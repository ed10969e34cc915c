//! Binary input: each 64-bit number is a key of 8 big-endian bytes, with an empty value.

use tamis_workload::file::ValueReader;

use super::{Entries, InputArgs, Source};
use crate::failure::Failure;

pub(super) struct ValueEntries {
    reader: ValueReader<Source>,
    name: String,
}

impl ValueEntries {
    /// If the length is known, rejects a truncated or foreign file before the first entry.
    pub(super) fn new(source: Source, length: Option<u64>, options: &InputArgs) -> Result<Self, Failure> {
        let name = options.file.display().to_string();
        let fail = |error| Failure::Input(format!("{name}: {error}"));
        let reader = ValueReader::new(source).map_err(fail)?;
        if let Some(length) = length {
            reader.check_length(length).map_err(fail)?;
        }
        Ok(Self { reader, name })
    }
}

impl Entries for ValueEntries {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure> {
        let Some(number) = self.reader.next() else { return Ok(false) };
        let number = number.map_err(|error| Failure::Input(format!("{}: {error}", self.name)))?;
        key.clear();
        key.extend_from_slice(&number.to_be_bytes());
        value.clear();
        Ok(true)
    }

    fn place(&self) -> String {
        format!("offset {}", self.reader.offset().saturating_sub(size_of::<u64>() as u64))
    }
}
