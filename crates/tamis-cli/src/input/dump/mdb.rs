//! The output of LMDB's `mdb_dump`: a header of lines `NAME=VALUE`, then a line for each key and for each value, and `DATA=END`.

use super::{decode_hex, hex_byte, is_printable};
use crate::{
    failure::Failure,
    input::{Entries, check_lengths, lines::Lines},
};

/// A dump by `mdb_dump`.
pub(in crate::input) struct MdbDump {
    lines: Lines,
    part: Part,
    is_printed: bool,
}

/// The part of the dump that contains the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Header,
    Data,
    End,
}

impl MdbDump {
    pub(in crate::input) fn new(lines: Lines) -> Self {
        Self { lines, part: Part::Header, is_printed: false }
    }

    fn read_header(&mut self) -> Result<(), Failure> {
        while self.lines.read()? {
            let error = match self.lines.line() {
                b"HEADER=END" => {
                    self.part = Part::Data;
                    return Ok(());
                }
                b"format=print" => {
                    self.is_printed = true;
                    continue;
                }
                b"dupsort=1" | b"duplicates=1" => {
                    "the database has several values per key; a store has one value per key"
                }
                line if line.contains(&b'=') => continue,
                _ => "not a line of the header of `mdb_dump`",
            };
            return Err(self.lines.fail(error));
        }
        Err(self.lines.fail("the dump ends in its header; create it again"))
    }

    /// Reads a key or a value; returns `false` at the end of the entries.
    fn read_bytes(&mut self, target: &mut Vec<u8>) -> Result<bool, Failure> {
        if !self.lines.read()? {
            return Err(self
                .lines
                .fail("the line DATA=END is missing: the dump is truncated; create it again"));
        }
        if self.lines.line() == b"DATA=END" {
            return Ok(false);
        }
        target.clear();
        let decoded = match self.lines.line().strip_prefix(b" ") {
            None => Err("a key or value begins with a space, and this line does not".to_owned()),
            Some(text) if self.is_printed => decode_print(text, target),
            Some(digits) => decode_hex(digits, target),
        };
        decoded.map_err(|error| self.lines.fail(error))?;
        Ok(true)
    }

    fn check_end(&mut self) -> Result<(), Failure> {
        while self.lines.read()? {
            if !self.lines.line().is_empty() {
                let advice = "dump each database with -s NAME, and load it with --keyspace NAME";
                return Err(self.lines.fail(format!("the dump has several databases; {advice}")));
            }
        }
        Ok(())
    }
}

/// Decodes the format `print`: `\\` is a backslash, `\HH` a byte that is not printable. Tools before 0.9.25 write backslashes as they are;
/// the escapes that only they write are rejected.
fn decode_print(text: &[u8], target: &mut Vec<u8>) -> Result<(), String> {
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'\\' {
            target.push(byte);
            rest = after;
            continue;
        }
        let (decoded, length) = match (after.first(), hex_byte(after)) {
            (Some(b'\\'), _) => (b'\\', 1),
            (_, Some(byte)) if !is_printable(byte) => (byte, 2),
            _ => return Err("a backslash is not escaped; create the dump again, without -p".to_owned()),
        };
        target.push(decoded);
        rest = after.get(length..).unwrap_or_default();
    }
    Ok(())
}

impl Entries for MdbDump {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure> {
        if self.part == Part::Header {
            self.read_header()?;
        }
        if self.part == Part::End {
            return Ok(false);
        }
        if !self.read_bytes(key)? {
            self.part = Part::End;
            self.check_end()?;
            return Ok(false);
        }
        if !self.read_bytes(value)? {
            return Err(self.lines.fail("the last key has no value; create the dump again"));
        }
        check_lengths(key, value).map_err(|error| self.lines.fail(error))?;
        Ok(true)
    }

    fn place(&self) -> String {
        self.lines.place()
    }

    fn has_unique_keys(&self) -> bool {
        true
    }
}
