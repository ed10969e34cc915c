//! The output of LevelDB's `leveldbutil dump` for the tables and logs of a store, in any order.
//!
//! A dump contains old versions of keys and deletes. Of each key the entry with the greatest sequence number decides. So the whole dump is
//! first written into a temporary store, in a temporary folder and not in memory; an error in the dump is reported before anything is loaded.
//!
//! `leveldbutil` escapes bytes that are not printable, but no quotes and no backslashes. A line that can be read in two ways is
//! an error.

use tamis::{Db, Durability, Keyspace, Scan, WriteBatch};
use tempfile::TempDir;

use super::{hex_byte, is_printable};
use crate::{
    failure::Failure,
    input::{Entries, check_lengths, lines::Lines},
    interrupt,
};

/// A dump by `leveldbutil`.
pub(in crate::input) struct LeveldbutilDump {
    lines: Lines,
    newest: Option<Newest>,
}

/// The newest entry of each key.
struct Newest {
    scan: Scan,
    _store: Db,
    _folder: TempDir,
}

/// One entry of the dump.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    key: Vec<u8>,
    sequence: u64,
    /// `None`: a delete.
    value: Option<Vec<u8>>,
}

impl LeveldbutilDump {
    pub(in crate::input) fn new(lines: Lines) -> Self {
        Self { lines, newest: None }
    }

    /// Reads the whole dump.
    fn sort(&mut self) -> Result<Newest, Failure> {
        let folder = tempfile::Builder::new().prefix("tamis-load-").tempdir()?;
        let store = Db::open(folder.path())?;
        let keyspace = store.default_keyspace();
        // The sequence number of the next entry of a log.
        let mut log_sequence = None;
        while self.lines.read()? {
            if interrupt::is_interrupted() {
                return Err(Failure::Interrupted("interrupted before the first entry was loaded".to_owned()));
            }
            let entry =
                parse(self.lines.line(), &mut log_sequence).map_err(|error| self.lines.fail(error))?;
            let Some(entry) = entry else { continue };
            check_lengths(&entry.key, entry.value.as_deref().unwrap_or_default())
                .map_err(|error| self.lines.fail(error))?;
            if self.lines.is_cut() {
                return Err(self.lines.fail("the line has no end: the dump is truncated; create it again"));
            }
            keep_newest(&store, &keyspace, &entry).map_err(|error| self.lines.fail(error))?;
        }
        let scan = keyspace.range(..);
        Ok(Newest { scan, _store: store, _folder: folder })
    }
}

/// Writes an entry, unless a newer one of its key exists.
fn keep_newest(store: &Db, keyspace: &Keyspace, entry: &Entry) -> tamis::Result<()> {
    let sequence = entry.sequence.to_be_bytes();
    let newer = |stored: &[u8]| stored.get(..sequence.len()).is_some_and(|stored| stored > &sequence[..]);
    if keyspace.get(&entry.key)?.is_some_and(|stored| newer(&stored)) {
        return Ok(());
    }
    // The sequence number, then nothing for a delete, or a byte and the value.
    let mut stored = sequence.to_vec();
    if let Some(value) = &entry.value {
        stored.push(0);
        stored.extend_from_slice(value);
    }
    let mut batch = WriteBatch::new();
    batch.put(keyspace, &entry.key, stored)?;
    store.write_with(batch, Durability::Deferred)
}

/// Parses a line; returns `None` for the header of a log record.
fn parse(line: &[u8], log_sequence: &mut Option<u64>) -> Result<Option<Entry>, String> {
    if let Some(text) = line.strip_prefix(b"--- offset ") {
        *log_sequence = Some(record_sequence(text)?);
        return Ok(None);
    }
    let put = line.strip_prefix(b"  put '").and_then(|text| text.strip_suffix(b"'"));
    let delete = line.strip_prefix(b"  del '").and_then(|text| text.strip_suffix(b"'"));
    if put.is_none() && delete.is_none() {
        return match line.strip_prefix(b"'").and_then(|text| text.strip_suffix(b"'")) {
            Some(text) => table_entry(text).map(Some),
            None => Err(foreign(line)),
        };
    }
    let sequence =
        log_sequence.ok_or_else(|| "an entry of a log without the header of its record".to_owned())?;
    *log_sequence = sequence.checked_add(1);
    let (key, value) = match put {
        Some(text) => {
            let (key, value) = split_once(text, |rest| rest.strip_prefix(b"' '"))?;
            (unescape(key), Some(unescape(value)))
        }
        None => (unescape(delete.unwrap_or_default()), None),
    };
    Ok(Some(Entry { key, sequence, value }))
}

/// The sequence number in the header of a log record: `OFFSET; sequence NUMBER`.
fn record_sequence(text: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(text);
    let (_, record) = text.split_once("; ").unwrap_or_default();
    if let Some(sequence) = record.strip_prefix("sequence ").and_then(|number| number.parse().ok()) {
        return Ok(sequence);
    }
    match record.contains("VersionEdit") {
        true => {
            Err("a record of a MANIFEST; dump the tables and logs only: *.ldb, *.sst and *.log".to_owned())
        }
        false => Err(foreign(text.as_bytes())),
    }
}

/// Parses `KEY' @ SEQUENCE : KIND => 'VALUE`.
fn table_entry(text: &[u8]) -> Result<Entry, String> {
    let mut found = (0, false);
    let (key, value) = split_once(text, |rest| {
        let rest = rest.strip_prefix(b"' @ ")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = rest.split_at(digits);
        let sequence = std::str::from_utf8(number).ok()?.parse().ok()?;
        let (is_delete, value) = match rest.strip_prefix(b" : val => '") {
            Some(value) => (false, value),
            None => (true, rest.strip_prefix(b" : del => '")?),
        };
        found = (sequence, is_delete);
        Some(value)
    })?;
    let (sequence, is_delete) = found;
    Ok(Entry { key: unescape(key), sequence, value: (!is_delete).then(|| unescape(value)) })
}

/// Splits a text at its separator, whose rest `after` returns. The separator must occur once.
fn split_once<'a>(
    text: &'a [u8],
    mut after: impl FnMut(&'a [u8]) -> Option<&'a [u8]>,
) -> Result<(&'a [u8], &'a [u8]), String> {
    let mut parts = None;
    let quotes = text.iter().enumerate().filter(|(_, byte)| **byte == b'\'').map(|(index, _)| index);
    for index in quotes {
        let (left, rest) = text.split_at(index);
        let Some(right) = after(rest) else { continue };
        if parts.replace((left, right)).is_some() {
            let advice = "use `ldb dump --hex` of RocksDB, which also reads LevelDB";
            return Err(format!("the key or the value contains the text between both; {advice}"));
        }
    }
    parts.ok_or_else(|| foreign(text))
}

/// Decodes `\xHH` of bytes that are not printable. Other backslashes are data.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.strip_prefix(b"x").filter(|_| byte == b'\\').and_then(hex_byte);
        match escaped.filter(|escaped| !is_printable(*escaped)) {
            Some(escaped) => {
                bytes.push(escaped);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    bytes
}

/// The error for a line that is no entry: the tool also prints damage that it finds.
fn foreign(line: &[u8]) -> String {
    let start = line.get(..line.len().min(60)).unwrap_or_default();
    format!("not an entry of `leveldbutil dump`: {}", String::from_utf8_lossy(start).escape_debug())
}

impl Entries for LeveldbutilDump {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure> {
        let newest = match self.newest.take() {
            Some(newest) => self.newest.insert(newest),
            None => {
                let newest = self.sort()?;
                self.newest.insert(newest)
            }
        };
        while newest.scan.move_next()? {
            let stored = newest.scan.value();
            let Some(stored) = stored.get(size_of::<u64>() + 1..) else { continue };
            key.clear();
            key.extend_from_slice(newest.scan.key());
            value.clear();
            value.extend_from_slice(stored);
            return Ok(true);
        }
        Ok(false)
    }

    fn place(&self) -> String {
        self.lines.place()
    }

    fn has_unique_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
