//! `tamis export`: writes entries to a CSV or JSON lines file. `tamis load` restores them exactly.
//!
//! The file gets its name only when it is complete (`output_file.rs`). After a failure the part that was written is kept in
//! a file with the suffix `.part`.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use serde_json::json;
use tamis::{Scan, Slice};

use crate::{
    bytes::{Format, Formats},
    failure::Failure,
    interrupt,
    output_file::OutputFile,
    progress,
    range::RangeArgs,
    store::StoreArgs,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  tamis export store all.csv
  tamis export store part.jsonl --prefix /usr/bin/
  tamis export store - --format csv | gzip > all.csv.gz
  tamis export store numbers.csv --key-format u64 --lower 1000 --upper 2000

`tamis load` with the same formats restores the entries exactly. Until the export is complete, the
name of the file ends with .part; after Ctrl-C or an error the partial file remains. The command
does not overwrite files: delete an existing file or .part file first.";

/// Number of entries between two checks for Ctrl-C and updates of the progress bar.
const STEP_ENTRY_COUNT: u64 = 1 << 10;

/// The format of an output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Comma-separated values with a header: key,value (*.csv)
    Csv,
    /// One JSON object per line: key, value (*.jsonl, *.ndjson)
    Jsonl,
}

/// Write entries to a CSV or JSON lines file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Output file; `-` is standard output
    file: PathBuf,
    /// Format of the file [default: from the extension of its name]
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    formats: Formats,
}

impl ExportArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let format = self.output_format()?;
        let range = self.range.range(self.formats.key_format)?;
        let (_db, keyspace) = self.store.open_to_read()?;
        interrupt::install_handler()?;
        let scan = range.scan(&keyspace);
        if self.file.as_os_str() == "-" {
            return self.write_all(format, scan, output).map(drop);
        }
        let target = OutputFile::create(&self.file, false, "choose another name or delete it")?;
        let mut writer = BufWriter::with_capacity(1 << 16, &target);
        let written = self.write_all(format, scan, &mut writer);
        let written = written.and_then(|count| Ok(writer.flush().map(|()| count)?));
        drop(writer);
        let part = target.part().to_path_buf();
        let finished = match written {
            Ok(count) => target.finish().map(|()| count).map_err(Failure::Output),
            // The user must choose another format, so the partial file is useless.
            Err(failure @ Failure::Usage(_)) => {
                target.discard();
                Err(failure)
            }
            Err(failure) => Err(failure),
        };
        let count = finished.map_err(|failure| named(failure, &part))?;
        let bytes = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        writeln!(
            output,
            "{} ({}) exported",
            terminal::amount(count, "entry", "entries"),
            terminal::bytes(bytes)
        )?;
        Ok(())
    }

    fn output_format(&self) -> Result<OutputFormat, Failure> {
        let by_name = || match self.file.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Some(OutputFormat::Csv),
            Some("jsonl" | "ndjson") => Some(OutputFormat::Jsonl),
            _ => None,
        };
        self.format.or_else(by_name).ok_or_else(|| {
            let path = self.file.display();
            Failure::Usage(format!("{path}: unknown file extension; add --format csv or --format jsonl"))
        })
    }

    fn write_all(&self, format: OutputFormat, scan: Scan, output: &mut dyn Write) -> Result<u64, Failure> {
        let bar = progress::items(None);
        bar.set_message("exporting");
        let mut count = 0;
        let mut rows = Rows::begin(format, self.formats, output)?;
        for entry in scan {
            let (key, value) = entry?;
            rows.add(&key, &value)?;
            count += 1;
            if count % STEP_ENTRY_COUNT == 0 {
                bar.set_position(count);
                if interrupt::is_interrupted() {
                    bar.finish_and_clear();
                    let count = terminal::count(count);
                    return Err(Failure::Interrupted(format!("interrupted after {count} entries")));
                }
            }
        }
        bar.finish_and_clear();
        Ok(count)
    }
}

/// Adds the name of the partial file to the failure.
fn named(failure: Failure, part: &Path) -> Failure {
    let part = part.display();
    match failure {
        Failure::Output(error) => {
            let what = "the export is incomplete; free disk space and export again";
            Failure::Input(format!("writing {part}: {error}; {what}"))
        }
        Failure::Store(error) => {
            Failure::Damage(format!("{error}; the entries before the damage are in {part}"))
        }
        Failure::Interrupted(text) => {
            Failure::Interrupted(format!("{text}; the entries so far are in {part}"))
        }
        other => other,
    }
}

/// Writes entries as rows of the output format.
enum Rows<'a> {
    Csv(&'a mut dyn Write, Formats),
    Json(&'a mut dyn Write, Formats),
}

impl<'a> Rows<'a> {
    fn begin(format: OutputFormat, formats: Formats, output: &'a mut dyn Write) -> io::Result<Self> {
        Ok(match format {
            OutputFormat::Csv => {
                writeln!(output, "key,value")?;
                Self::Csv(output, formats)
            }
            OutputFormat::Jsonl => Self::Json(output, formats),
        })
    }

    fn add(&mut self, key: &Slice, value: &Slice) -> Result<(), Failure> {
        match self {
            Self::Csv(output, formats) => {
                let fields =
                    [field(formats.key_format, "key", key)?, field(formats.value_format, "value", value)?];
                // The row is in memory: only writing it to the output can fail.
                let mut row = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
                row.write_record(fields).map_err(io::Error::other)?;
                let row = row.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
                output.write_all(&row)?;
            }
            Self::Json(output, formats) => {
                let entry =
                    json!({ "key": formats.key_format.json(key), "value": formats.value_format.json(value) });
                writeln!(output, "{entry}")?;
            }
        }
        Ok(())
    }
}

/// A CSV field: the bytes themselves for text, digits otherwise. Fails if the format cannot represent the bytes.
fn field(format: Format, what: &str, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    match format {
        Format::Text => Ok(bytes.to_vec()),
        Format::U64 if bytes.len() != 8 => Err(Failure::Usage(format!(
            "a {what} of {} bytes is not a 64-bit number; use --{what}-format text or hex",
            bytes.len()
        ))),
        _ => Ok(format.show(bytes).into_bytes()),
    }
}
