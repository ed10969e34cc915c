//! Reads a text file line by line, and names the line in errors.

use std::io::{BufRead, BufReader, Read};

use super::{InputArgs, Source};
use crate::failure::Failure;

/// Maximum length of a line: more than the longest value needs in hex. Limits memory for a file without line feeds.
const LINE_BYTES_MAX: u64 = 640 << 20;

pub(super) struct Lines {
    source: BufReader<Source>,
    /// The last line, with its line feed.
    line: Vec<u8>,
    number: u64,
    name: String,
}

impl Lines {
    pub(super) fn new(source: Source, options: &InputArgs) -> Self {
        let name = options.file.display().to_string();
        Self { source: BufReader::with_capacity(1 << 16, source), line: Vec::new(), number: 0, name }
    }

    /// Reads the next line; returns `false` at the end of the file.
    pub(super) fn read(&mut self) -> Result<bool, Failure> {
        self.line.clear();
        self.number += 1;
        match self.source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line) {
            Ok(0) => Ok(false),
            Ok(length) if length as u64 == LINE_BYTES_MAX && self.is_cut() => {
                Err(self.fail("the line is longer than any valid entry; check the format of the file"))
            }
            Ok(_) => Ok(true),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// The last line, without its end.
    pub(super) fn line(&self) -> &[u8] {
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Whether the last line has no line feed.
    pub(super) fn is_cut(&self) -> bool {
        self.line.last() != Some(&b'\n')
    }

    /// An error in the last line.
    pub(super) fn fail(&self, error: impl std::fmt::Display) -> Failure {
        Failure::Input(format!("{}: line {}: {error}", self.name, self.number))
    }

    /// The place of the last line.
    pub(super) fn place(&self) -> String {
        format!("line {}", self.number)
    }
}
