//! JSON lines input: one object per line, with a field for the key and one for the value, as `tamis scan --json` writes it.

use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

use super::{Entries, InputArgs, Source, check_lengths};
use crate::{bytes::Formats, failure::Failure};

/// Maximum length of a line: more than the longest value needs in hex. Limits memory for a file without line feeds.
const LINE_BYTES_MAX: u64 = 640 << 20;

pub(super) struct JsonEntries {
    source: BufReader<Source>,
    line: Vec<u8>,
    line_number: u64,
    name: String,
    key_field: String,
    value_field: String,
    formats: Formats,
}

impl JsonEntries {
    pub(super) fn new(source: Source, options: &InputArgs) -> Self {
        let field = |name: &Option<String>, default: &str| name.clone().unwrap_or_else(|| default.to_owned());
        Self {
            source: BufReader::with_capacity(1 << 16, source),
            line: Vec::new(),
            line_number: 0,
            name: options.file.display().to_string(),
            key_field: field(&options.key_field, "key"),
            value_field: field(&options.value_field, "value"),
            formats: options.formats,
        }
    }

    /// Reads the next line that is not blank; returns `false` at the end.
    fn read_line(&mut self) -> Result<bool, Failure> {
        loop {
            self.line.clear();
            self.line_number += 1;
            let mut limited = self.source.by_ref().take(LINE_BYTES_MAX);
            match limited.read_until(b'\n', &mut self.line) {
                Ok(0) => return Ok(false),
                Ok(length) if length as u64 == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') => {
                    return Err(self
                        .fail("the line is longer than any valid entry; check that the file is JSON lines"));
                }
                Ok(_) if self.line.trim_ascii().is_empty() => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(self.fail(error)),
            }
        }
    }

    fn entry(&self) -> Result<(Vec<u8>, Vec<u8>), String> {
        let is_last_cut = self.line.last() != Some(&b'\n');
        let value: Value = serde_json::from_slice(&self.line).map_err(|error| {
            let advice = match is_last_cut && error.is_eof() {
                true => "the file seems to be truncated; create it again",
                false => "correct the line, or check that the file is JSON lines",
            };
            let text = error.to_string();
            // The library adds the line within this one, and the column.
            let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
            format!("column {}: not valid JSON: {what}; {advice}", error.column())
        })?;
        let field = |name: &str| {
            value
                .get(name)
                .ok_or_else(|| format!("no field {name:?}; each line is an object with a key and a value"))
        };
        let named = |name: &str, error: String| format!("field {name:?}: {error}");
        let key = self.formats.key_format.parse_json(field(&self.key_field)?);
        let value = self.formats.value_format.parse_json(field(&self.value_field)?);
        Ok((
            key.map_err(|error| named(&self.key_field, error))?,
            value.map_err(|error| named(&self.value_field, error))?,
        ))
    }

    fn fail(&self, error: impl std::fmt::Display) -> Failure {
        Failure::Input(format!("{}: line {}: {error}", self.name, self.line_number))
    }
}

impl Entries for JsonEntries {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure> {
        if !self.read_line()? {
            return Ok(false);
        }
        (*key, *value) = self.entry().map_err(|error| self.fail(error))?;
        check_lengths(key, value).map_err(|error| self.fail(error))?;
        Ok(true)
    }

    fn place(&self) -> String {
        format!("line {}", self.line_number)
    }
}
