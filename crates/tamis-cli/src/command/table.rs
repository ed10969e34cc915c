//! `tamis build` and `tamis ingest`: tables built outside of a store, and taken into one.

use std::{io::Write, path::PathBuf, sync::Arc};

use clap::Args;
use serde_json::json;
use tamis::{Compression, Error, Inspection, KeyspaceOptions, OsVfs, TableWriter, Vfs};

use crate::{
    failure::Failure,
    input::{self, InputArgs},
    interrupt, progress,
    store::StoreArgs,
    terminal,
};

const BUILD_EXAMPLES: &str = "\
Examples:
  tamis build sorted.csv prices.table
  tamis build part.jsonl part.table --zstd 3
  sort big.csv | tamis build - big.table --format csv --no-header

Keys must come in ascending order of their bytes, each once; the first that does not is named.
The table appears under its name when it is whole. `tamis ingest` takes it into any store.";

/// Build a table out of a sorted CSV, JSON lines or binary file
#[derive(Debug, Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The table to be made
    table: PathBuf,
    /// Compress blocks with Zstandard at this level, 1 to 19
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(1..=19))]
    zstd: Option<u8>,
    /// What was done as a JSON object
    #[arg(long)]
    json: bool,
}

impl BuildArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let mut input = input::open(&self.input)?;
        interrupt::watch()?;
        let compression = self.zstd.map_or(Compression::None, Compression::Zstd);
        let options = KeyspaceOptions { compression: vec![compression], ..KeyspaceOptions::default() };
        let mut table = TableWriter::create(&self.table, &options)?;
        let bar = progress::bytes(input.length);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut count = 0_u64;
        while input.entries.next(&mut key, &mut value)? {
            count += 1;
            table.put(&key, &value).map_err(|error| match error {
                Error::InvalidArgument { what: "key", .. } => {
                    let (file, place) = (self.input.file.display(), input.entries.place());
                    let key = self.input.formats.key_format.show(&key);
                    Failure::Input(format!(
                        "{file}: {place}: the key {key} does not lie above the one before it; sort by the bytes of the keys, each once"
                    ))
                }
                other => Failure::Store(other),
            })?;
            if count.is_multiple_of(1 << 10) {
                bar.set_position(input.position.get());
                if interrupt::is_interrupted() {
                    return Err(Failure::Interrupted("interrupted; no table was made".to_owned()));
                }
            }
        }
        if count == 0 {
            let text = format!("{}: no entries; a table holds at least one", self.input.file.display());
            return Err(Failure::Input(text));
        }
        let built = table.finish()?;
        bar.finish_and_clear();
        for reason in &built.failed_filters {
            eprintln!("tamis: {}: without a filter: {reason}", self.table.display());
        }
        if self.json {
            return Ok(writeln!(
                output,
                "{}",
                json!({ "entries": built.entry_count, "bytes": built.bytes })
            )?);
        }
        let (entries, bytes) = (terminal::count(built.entry_count), terminal::bytes(built.bytes));
        Ok(writeln!(output, "{entries} entries, {bytes}")?)
    }
}

const INGEST_EXAMPLES: &str = "\
Examples:
  tamis ingest store prices.table
  tamis ingest store --keyspace events part1.table part2.table

All tables come in as one write, newer than all before it, or none does. They are linked where that is
possible: afterwards they may be removed, but must not be changed. Tables that overlap are refused
together: ingest them one after the other.";

/// Take tables that `tamis build` made into a store; it is made if it is not there
#[derive(Debug, Args)]
#[command(after_help = INGEST_EXAMPLES)]
pub(crate) struct IngestArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The tables
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<PathBuf>,
    /// What was done as a JSON object
    #[arg(long)]
    json: bool,
}

impl IngestArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        // A wrong file name, or a file that is no table, makes no store.
        let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
        for path in &self.tables {
            input::open_file(path)?;
            Inspection::of_table(&vfs, path).map_err(|error| Failure::of_inputs(error, &self.tables))?;
        }
        let (db, keyspace) = self.store.open_to_write()?;
        let report =
            db.ingest(&keyspace, &self.tables).map_err(|error| Failure::of_inputs(error, &self.tables))?;
        drop(keyspace);
        db.close()?;
        if self.json {
            let line = json!({
                "tables": report.table_count, "entries": report.entry_count, "bytes": report.bytes,
                "sequence": report.sequence,
            });
            return Ok(writeln!(output, "{line}")?);
        }
        let [tables, entries] = [report.table_count as u64, report.entry_count].map(terminal::count);
        Ok(writeln!(output, "{tables} tables with {entries} entries ({})", terminal::bytes(report.bytes))?)
    }
}
