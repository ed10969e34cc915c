//! Entries out of the user's own files: CSV, JSON lines, binary 64-bit values.
//!
//! Files are read once from front to end and never held in memory. Every fault names the file and the line or offset.

mod csv;
mod json_lines;
mod values;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use clap::{Args, ValueEnum};
use tamis::{KEY_LENGTH_MAX, VALUE_LENGTH_MAX};

use crate::{bytes::Formats, failure::Failure};

/// The format of an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// Comma-separated values (*.csv)
    Csv,
    /// One JSON object a line (*.jsonl, *.ndjson)
    Jsonl,
    /// A count and as many little-endian 64-bit numbers (*.keys, *.u64); values stay empty
    U64,
}

/// Which file entries are taken from, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct InputArgs {
    /// The input file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The file's format; told from its name if not given
    #[arg(long, value_enum)]
    pub(crate) format: Option<FileFormat>,
    /// CSV: column of the key, by name or number (default 1). JSON lines: its field (default "key")
    #[arg(long, value_name = "FIELD")]
    pub(crate) key_field: Option<String>,
    /// CSV: column of the value, by name or number (default 2). JSON lines: its field (default "value")
    #[arg(long, value_name = "FIELD")]
    pub(crate) value_field: Option<String>,
    /// CSV: the first row is an entry, too
    #[arg(long)]
    pub(crate) no_header: bool,
    #[command(flatten)]
    pub(crate) formats: Formats,
}

/// A reader of entries.
pub(crate) trait Entries {
    /// Puts the next entry into `key` and `value`; `false` at the end.
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure>;

    /// The line or offset of the entry that was given last.
    fn place(&self) -> String;
}

/// An open input.
pub(crate) struct Input {
    pub(crate) entries: Box<dyn Entries>,
    /// Length of the file in bytes, where it is known.
    pub(crate) length: Option<u64>,
    /// Bytes read so far.
    pub(crate) position: Position,
}

/// How far a source was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Position(Arc<AtomicU64>);

impl Position {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts what is read.
pub(crate) struct Source {
    inner: Box<dyn Read>,
    position: Position,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.position.0.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// Opens a file for reading.
#[expect(clippy::disallowed_methods, reason = "the user's own input, no file of a store")]
pub(crate) fn open_file(path: &Path) -> Result<File, Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure::Input(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| fail(&error))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(fail(&"a folder; name a file")),
        Ok(_) => Ok(file),
        Err(error) => Err(fail(&error)),
    }
}

/// Opens an input and checks what can be checked before the first entry.
pub(crate) fn open(options: &InputArgs) -> Result<Input, Failure> {
    let format = match options.format {
        Some(format) => format,
        None => by_extension(&options.file)?,
    };
    let (inner, length): (Box<dyn Read>, _) = if options.file.as_os_str() == "-" {
        (Box::new(io::stdin()), None)
    } else {
        let file = open_file(&options.file)?;
        // A pipe has no length that means anything.
        let length = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        (Box::new(file), length)
    };
    let position = Position::default();
    let source = Source { inner, position: position.clone() };
    let entries: Box<dyn Entries> = match format {
        FileFormat::Csv => Box::new(csv::CsvEntries::new(source, options)?),
        FileFormat::Jsonl => Box::new(json_lines::JsonEntries::new(source, options)),
        FileFormat::U64 => Box::new(values::ValueEntries::new(source, length, options)?),
    };
    Ok(Input { entries, length, position })
}

fn by_extension(path: &Path) -> Result<FileFormat, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok(FileFormat::Csv),
        Some("jsonl" | "ndjson") => Ok(FileFormat::Jsonl),
        Some("keys" | "u64") => Ok(FileFormat::U64),
        _ => Err(Failure::Usage(format!(
            "{}: the format can't be told from the name; add --format csv, --format jsonl or --format u64",
            path.display()
        ))),
    }
}

/// Refuses what the store would refuse, while the place in the file is still known.
fn check_lengths(key: &[u8], value: &[u8]) -> Result<(), String> {
    if key.is_empty() {
        return Err("the key is empty; keys have 1 to 65,535 bytes".to_owned());
    }
    if key.len() > KEY_LENGTH_MAX {
        return Err(format!("the key has {} bytes; keys have 1 to 65,535 bytes", key.len()));
    }
    if value.len() > VALUE_LENGTH_MAX {
        return Err(format!("the value has {} bytes; values have at most 256 MiB", value.len()));
    }
    Ok(())
}
