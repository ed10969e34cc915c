//! `tamis build` and `tamis ingest`: build a table outside of a store, and add it to a store.

use std::{io::Write, path::PathBuf, sync::Arc};

use clap::Args;
use serde_json::json;
use tamis::{Compression, Error, IngestOptions, Inspection, KeyspaceOptions, OsVfs, TableWriter, Vfs};

use crate::{
    failure::Failure,
    input::{self, InputArgs},
    interrupt,
    store::StoreArgs,
    terminal,
};

const BUILD_EXAMPLES: &str = "\
Examples:
  tamis build sorted.csv prices.table
  tamis build part.jsonl part.table --zstd 3
  sort big.csv | tamis build - big.table --format csv --no-header

The input must be sorted by the bytes of the keys, without duplicates; the error names the first key
out of order. The file is created only when it is complete. `tamis ingest` adds it to a store.";

/// Build a table from a sorted CSV, JSON lines or binary file
#[derive(Debug, Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Table file to create
    table: PathBuf,
    /// Compress blocks with Zstandard at this level (1 to 19)
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(1..=19))]
    zstd: Option<u8>,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl BuildArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let mut input = input::open(&self.input)?;
        interrupt::install_handler()?;
        let compression = self.zstd.map_or(Compression::None, Compression::Zstd);
        let options = KeyspaceOptions::default().compression(vec![compression]);
        let fail = |error| Failure::of_target(error, &self.table);
        let mut table = TableWriter::create(&self.table, &options).map_err(fail)?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut count = 0_u64;
        while input.entries.next(&mut key, &mut value)? {
            count += 1;
            table.put(&key, &value).map_err(|error| match error {
                Error::InvalidArgument { what: "key", .. } => {
                    let (file, place) = (self.input.file.display(), input.entries.place());
                    let key = self.input.formats.key_format.show(&key);
                    Failure::Input(format!(
                        "{file}: {place}: the key {key} is not greater than the previous key; sort the input by the bytes of the keys and remove duplicates"
                    ))
                }
                other => fail(other),
            })?;
            if count.is_multiple_of(1 << 10) && interrupt::is_interrupted() {
                return Err(Failure::Interrupted("interrupted; no table was created".to_owned()));
            }
        }
        if count == 0 {
            let text =
                format!("{}: no entries; give an input with at least one entry", self.input.file.display());
            return Err(Failure::Input(text));
        }
        let built = table.finish().map_err(fail)?;
        input.bar.finish_and_clear();
        for reason in &built.failed_filters {
            eprintln!("tamis: {}: the table has no filter: {reason}", self.table.display());
        }
        if self.json {
            return Ok(writeln!(
                output,
                "{}",
                json!({ "entries": built.entry_count, "bytes": built.bytes })
            )?);
        }
        let entries = terminal::amount(built.entry_count, "entry", "entries");
        Ok(writeln!(output, "{entries}, {}", terminal::bytes(built.bytes))?)
    }
}

const INGEST_EXAMPLES: &str = "\
Examples:
  tamis ingest store prices.table
  tamis ingest store --keyspace events part1.table part2.table
  tamis ingest store prices.table --keep

Ingestion is atomic: all entries of all tables are added, or none. They replace older entries with
the same keys. The files are moved into the store; --keep copies them. Tables with overlapping key ranges are rejected: ingest them in separate commands.";

/// Add tables of `tamis build` to a store; the store is created if missing
#[derive(Debug, Args)]
#[command(after_help = INGEST_EXAMPLES)]
pub(crate) struct IngestArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Table files
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<PathBuf>,
    /// Copy the files instead of moving them
    #[arg(long)]
    keep: bool,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl IngestArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        // Checks the files first, so that a wrong file creates no store.
        let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
        for path in &self.tables {
            input::open_file(path)?;
            Inspection::of_table(&vfs, path).map_err(|error| Failure::of_inputs(error, &self.tables))?;
        }
        let (db, keyspace) = self.store.open_to_write()?;
        let options = IngestOptions::default().keep(self.keep);
        let report = db
            .ingest_with(&keyspace, &self.tables, options)
            .map_err(|error| Failure::of_inputs(error, &self.tables))?;
        drop(keyspace);
        db.close()?;
        if self.json {
            let line = json!({
                "tables": report.table_count, "entries": report.entry_count, "bytes": report.bytes,
                "sequence": report.sequence, "kept": report.kept, "linked": report.linked,
            });
            return Ok(writeln!(output, "{line}")?);
        }
        let tables = terminal::amount(report.table_count as u64, "table", "tables");
        let entries = terminal::amount(report.entry_count, "entry", "entries");
        writeln!(output, "{tables} with {entries} ({})", terminal::bytes(report.bytes))?;
        for path in &report.kept {
            let state = match report.linked.contains(path) {
                true => "a file of the store now: do not change it",
                false => "could not be removed",
            };
            writeln!(output, "{}: {state}", path.display())?;
        }
        Ok(())
    }
}
