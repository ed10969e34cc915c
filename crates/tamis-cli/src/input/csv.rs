//! CSV input: a column for the key and one for the value, by name or by number.
//!
//! Every row must have as many fields as the first one. A quote that is not closed is an error: otherwise one field would
//! contain the rest of the file.

use std::io::{self, Read};

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::{Entries, InputArgs, Source, check_lengths};
use crate::{
    bytes::{Format, Formats},
    failure::Failure,
};

pub(super) struct CsvEntries {
    reader: Reader<QuoteChecker>,
    row: ByteRecord,
    name: String,
    key_index: usize,
    value_index: usize,
    formats: Formats,
}

/// A reader that tracks quotes, to reject a file that ends inside a quoted field.
struct QuoteChecker {
    source: Source,
    state: State,
    line: u64,
    opened_line: u64,
}

/// The position of the last byte in its row.
#[derive(Clone, Copy, PartialEq)]
enum State {
    FieldStart,
    Unquoted,
    Quoted,
    /// After a quote inside a quoted field: the end of the field, or the first half of an escaped quote.
    QuoteInQuoted,
}

impl QuoteChecker {
    fn follow(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::FieldStart, b'"') => {
                self.opened_line = self.line;
                State::Quoted
            }
            (State::Quoted, b'"') => State::QuoteInQuoted,
            (State::Quoted, _) | (State::QuoteInQuoted, b'"') => State::Quoted,
            (_, b',' | b'\n' | b'\r') => State::FieldStart,
            // A byte order mark before the first field.
            (State::FieldStart, 0xEF | 0xBB | 0xBF) if self.line == 1 => State::FieldStart,
            _ => State::Unquoted,
        };
        self.line += u64::from(byte == b'\n');
    }
}

impl Read for QuoteChecker {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        if length == 0 && !buffer.is_empty() && self.state == State::Quoted {
            let text = format!(
                "the quote in line {} is not closed; close it, or check whether the file is truncated",
                self.opened_line
            );
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        for &byte in buffer.get(..length).unwrap_or_default() {
            self.follow(byte);
        }
        Ok(length)
    }
}

impl CsvEntries {
    pub(super) fn new(source: Source, options: &InputArgs) -> Result<Self, Failure> {
        let name = options.file.display().to_string();
        let mut reader = ReaderBuilder::new()
            .has_headers(!options.no_header)
            .buffer_capacity(1 << 16)
            .from_reader(QuoteChecker { source, state: State::FieldStart, line: 1, opened_line: 0 });
        let header = if options.no_header {
            None
        } else {
            let header = reader.byte_headers().map_err(|error| Failure::Input(format!("{name}: {error}")))?;
            Some(header.clone())
        };
        let column =
            |field: &Option<String>, default: usize| column(field.as_deref(), default, header.as_ref());
        let fail = |error| Failure::Usage(format!("{name}: {error}"));
        let key_index = column(&options.key_field, 0).map_err(fail)?;
        let value_index = column(&options.value_field, 1).map_err(fail)?;
        let formats = options.formats;
        Ok(Self { reader, row: ByteRecord::new(), name, key_index, value_index, formats })
    }

    fn field(&self, index: usize, format: Format) -> Result<Vec<u8>, String> {
        let field = self.row.get(index).ok_or_else(|| {
            format!(
                "the row has {} fields, but field {} is needed; give another field number, or check that the file is CSV",
                self.row.len(),
                index + 1
            )
        })?;
        format.parse(field).map_err(|error| format!("field {}: {error}", index + 1))
    }

    fn entry(&self) -> Result<(Vec<u8>, Vec<u8>), String> {
        let key = self.field(self.key_index, self.formats.key_format)?;
        let value = self.field(self.value_index, self.formats.value_format)?;
        check_lengths(&key, &value)?;
        Ok((key, value))
    }

    /// The line where the row begins.
    fn line(&self) -> u64 {
        self.row.position().map_or(0, csv::Position::line)
    }

    fn fail(&self, line: u64, error: impl std::fmt::Display) -> Failure {
        Failure::Input(format!("{}: line {line}: {error}", self.name))
    }
}

/// Returns the index of a column, given by its name in the header or by its number from 1.
fn column(field: Option<&str>, default: usize, header: Option<&ByteRecord>) -> Result<usize, String> {
    let Some(field) = field else { return Ok(default) };
    let named = header.and_then(|header| header.iter().position(|name| name == field.as_bytes()));
    if let Some(index) = named {
        return Ok(index);
    }
    match field.parse::<usize>() {
        Ok(number) if number > 0 => Ok(number - 1),
        _ => {
            let names = header.map_or_else(
                || "there is no header, so give a number from 1".to_owned(),
                |header| {
                    let names: Vec<_> = header.iter().map(|name| Format::Text.show(name)).collect();
                    format!("the header has: {}", names.join(", "))
                },
            );
            Err(format!("no column {field:?}; {names}"))
        }
    }
}

impl Entries for CsvEntries {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure> {
        let has_row = self.reader.read_byte_record(&mut self.row).map_err(|error| {
            let line = error.position().map_or_else(|| self.reader.position().line(), csv::Position::line);
            match error.kind() {
                csv::ErrorKind::Io(error) => self.fail(line, error),
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    let text =
                        format!("{len} fields, but the first row has {expected_len}; correct the row, or check whether the file is truncated");
                    self.fail(line, text)
                }
                _ => self.fail(line, error),
            }
        })?;
        if !has_row {
            return Ok(false);
        }
        (*key, *value) = self.entry().map_err(|error| self.fail(self.line(), error))?;
        Ok(true)
    }

    fn place(&self) -> String {
        format!("line {}", self.line())
    }
}
