//! Reads entries from the user's files: CSV, JSON lines, binary 64-bit values, dumps of other stores.
//!
//! Files are streamed once, never loaded into memory. Every error contains the file and the line or offset.

mod csv;
mod dump;
mod json_lines;
mod lines;
mod values;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use tamis::{KEY_LENGTH_MAX, VALUE_LENGTH_MAX};

use self::lines::Lines;
use crate::{bytes::Formats, failure::Failure, progress};

/// The format of an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// Comma-separated values (*.csv)
    Csv,
    /// One JSON object per line (*.jsonl, *.ndjson)
    Jsonl,
    /// A count, then that many little-endian 64-bit numbers as keys (*.keys, *.u64); values are empty
    U64,
    /// The output of LMDB's `mdb_dump`, with or without -p
    MdbDump,
    /// The output of RocksDB's `ldb dump --hex`, which also reads LevelDB
    LdbDump,
    /// The output of LevelDB's `leveldbutil dump` for all tables and logs of a store; sorted in a temporary folder first
    LeveldbutilDump,
}

/// The input file and its format.
#[derive(Debug, Clone, Args)]
pub(crate) struct InputArgs {
    /// Input file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Format of the file [default: from the extension of its name]
    #[arg(long, value_enum)]
    pub(crate) format: Option<FileFormat>,
    /// Field of the key. CSV: column name or number (default 1). JSON lines: field name (default "key")
    #[arg(long, value_name = "FIELD")]
    pub(crate) key_field: Option<String>,
    /// Field of the value. CSV: column name or number (default 2). JSON lines: field name (default "value")
    #[arg(long, value_name = "FIELD")]
    pub(crate) value_field: Option<String>,
    /// CSV: the first row is an entry, not a header
    #[arg(long)]
    pub(crate) no_header: bool,
    #[command(flatten)]
    pub(crate) formats: Formats,
}

/// A reader of entries.
pub(crate) trait Entries {
    /// Reads the next entry into `key` and `value`; returns `false` at the end.
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure>;

    /// The line or offset of the last entry.
    fn place(&self) -> String;

    /// Whether every key occurs once, as in the dump of a store.
    fn has_unique_keys(&self) -> bool {
        false
    }
}

/// An open input.
pub(crate) struct Input {
    pub(crate) entries: Box<dyn Entries>,
    /// Shows the bytes read so far.
    pub(crate) bar: ProgressBar,
}

/// A reader that moves the progress bar.
pub(crate) struct Source {
    inner: Box<dyn Read>,
    bar: ProgressBar,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.bar.inc(length as u64);
        Ok(length)
    }
}

/// Opens a file for reading.
#[expect(clippy::disallowed_methods, reason = "the user's own input, no file of a store")]
pub(crate) fn open_file(path: &Path) -> Result<File, Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure::Input(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| fail(&error))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(fail(&"is a folder; give a file")),
        Ok(_) => Ok(file),
        Err(error) => Err(fail(&error)),
    }
}

/// Opens an input and makes all checks that are possible before the first entry.
pub(crate) fn open(options: &InputArgs) -> Result<Input, Failure> {
    let format = match options.format {
        Some(format) => format,
        None => by_extension(&options.file)?,
    };
    let (inner, length): (Box<dyn Read>, _) = if options.file.as_os_str() == "-" {
        (Box::new(io::stdin()), None)
    } else {
        let file = open_file(&options.file)?;
        // The length of a pipe is meaningless.
        let length = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        (Box::new(file), length)
    };
    let bar = progress::bytes(length);
    let source = Source { inner, bar: bar.clone() };
    let entries: Box<dyn Entries> = match format {
        FileFormat::Csv => Box::new(csv::CsvEntries::new(source, options)?),
        FileFormat::Jsonl => Box::new(json_lines::JsonEntries::new(source, options)),
        FileFormat::MdbDump => Box::new(dump::MdbDump::new(Lines::new(source, options))),
        FileFormat::LdbDump => Box::new(dump::LdbDump::new(Lines::new(source, options))),
        FileFormat::LeveldbutilDump => Box::new(dump::LeveldbutilDump::new(Lines::new(source, options))),
        FileFormat::U64 => Box::new(values::ValueEntries::new(source, length, options)?),
    };
    Ok(Input { entries, bar })
}

fn by_extension(path: &Path) -> Result<FileFormat, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok(FileFormat::Csv),
        Some("jsonl" | "ndjson") => Ok(FileFormat::Jsonl),
        Some("keys" | "u64") => Ok(FileFormat::U64),
        _ => Err(Failure::Usage(format!(
            "{}: unknown file extension; add --format csv, jsonl, u64, mdb-dump, ldb-dump or leveldbutil-dump",
            path.display()
        ))),
    }
}

/// Rejects entries that the store would reject, while their position in the file is known.
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
