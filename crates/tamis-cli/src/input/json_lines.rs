//! JSON lines input: one object per line, with a field for the key and one for the value, as `tamis scan --json` writes it.

use serde_json::Value;

use super::{Entries, InputArgs, Source, check_lengths, lines::Lines};
use crate::{bytes::Formats, failure::Failure};

pub(super) struct JsonEntries {
    lines: Lines,
    key_field: String,
    value_field: String,
    formats: Formats,
}

impl JsonEntries {
    pub(super) fn new(source: Source, options: &InputArgs) -> Self {
        let field = |name: &Option<String>, default: &str| name.clone().unwrap_or_else(|| default.to_owned());
        Self {
            lines: Lines::new(source, options),
            key_field: field(&options.key_field, "key"),
            value_field: field(&options.value_field, "value"),
            formats: options.formats,
        }
    }

    fn entry(&self) -> Result<(Vec<u8>, Vec<u8>), String> {
        let is_last_cut = self.lines.is_cut();
        let value: Value = serde_json::from_slice(self.lines.line()).map_err(|error| {
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
}

impl Entries for JsonEntries {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure> {
        while self.lines.read()? {
            if self.lines.line().trim_ascii().is_empty() {
                continue;
            }
            (*key, *value) = self.entry().map_err(|error| self.lines.fail(error))?;
            check_lengths(key, value).map_err(|error| self.lines.fail(error))?;
            return Ok(true);
        }
        Ok(false)
    }

    fn place(&self) -> String {
        self.lines.place()
    }
}
