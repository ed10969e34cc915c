//! `tamis load`: writes the entries of a file into a store, in batches.
//!
//! Batches are atomic and in the order of the file. Ctrl-C ends the load between two batches; an error in the file ends it
//! before the invalid entry. In both cases the store is intact and contains all earlier entries.

use std::io::Write;

use clap::Args;
use serde_json::json;
use tamis::{Clock as _, Db, Durability, Keyspace, SystemClock, WriteBatch};

use crate::{
    failure::Failure,
    input::{self, Input, InputArgs},
    interrupt,
    store::StoreArgs,
    terminal,
};

/// Entries per batch.
const BATCH_ENTRY_COUNT: u64 = 1000;
/// Bytes of keys and values after which a batch is written even if it has fewer entries.
const BATCH_BYTES: u64 = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  tamis load store prices.csv                           key in the first column, value in the second
  tamis load store prices.csv --key-field name --value-field price
  tamis load store part.jsonl                           as `tamis scan --json` writes it
  tamis load store uniform_n1m_s42.keys                 binary 64-bit numbers, empty values
  zcat big.csv.gz | tamis load store - --format csv --no-header
  mdb_dump lmdb-folder | tamis load store - --format mdb-dump
  ldb --db=rocksdb-folder dump --hex | tamis load store - --format ldb-dump
  leveldbutil dump db/*.ldb db/*.log | tamis load store - --format leveldbutil-dump

Ctrl-C, or an error in the file, ends the load between two entries: the store is intact and contains all earlier entries.
It is safe to load the file again. Errors name the line or offset. After a dump is loaded into an
empty keyspace, its entries are counted.";

/// Load a CSV, JSON lines or binary file, or a dump of another store, into a store; the store is created if missing
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    input: InputArgs,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl LoadArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        // Opens the input first, so that a wrong file name creates no store.
        let mut input = input::open(&self.input)?;
        interrupt::install_handler()?;
        let (db, keyspace) = self.store.open_to_write()?;
        let counts = input.entries.has_unique_keys() && keyspace.first()?.is_none();
        let clock = SystemClock::default();
        let mut load = Load { db: &db, keyspace: &keyspace, entry_count: 0, bytes: 0 };
        let mut result = load.all(&mut input);
        let (entry_count, bytes) = (load.entry_count, load.bytes);
        input.bar.finish_and_clear();
        if let Err(Failure::Store(error)) = result {
            return Err(Failure::Store(error));
        }
        // Also after an error in the input: the loaded entries remain.
        db.flush()?;
        db.persist(Durability::Synced)?;
        if counts && matches!(result, Ok(true)) {
            result = check_count(&keyspace, entry_count).map(|()| true);
        }
        let seconds = clock.now().as_secs_f64();
        db.close()?;
        let loaded = format!(
            "{} ({}) loaded in {} ({})",
            terminal::amount(entry_count, "entry", "entries"),
            terminal::bytes(bytes),
            terminal::seconds(seconds),
            terminal::rate(entry_count, seconds)
        );
        let is_interrupted = matches!(result, Ok(false));
        if self.json {
            let is_complete = matches!(result, Ok(true));
            writeln!(
                output,
                "{}",
                json!({
                    "entries": entry_count, "bytes": bytes, "seconds": seconds,
                    "complete": is_complete, "interrupted": is_interrupted,
                })
            )?;
        }
        match result {
            Ok(false) => Err(Failure::Interrupted(format!("interrupted; the store is intact, {loaded}"))),
            Ok(true) if !self.json => Ok(writeln!(output, "{loaded}")?),
            Ok(true) => Ok(()),
            Err(Failure::Input(text)) => {
                Err(Failure::Input(format!("{text}\ntamis: the store is intact, {loaded}")))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Compares the number of loaded entries with the number in the keyspace, which was empty.
fn check_count(keyspace: &Keyspace, entry_count: u64) -> Result<(), Failure> {
    let mut scan = keyspace.range(..);
    let mut count = 0;
    while scan.move_next()? {
        count += 1;
    }
    if count == entry_count {
        return Ok(());
    }
    let read = terminal::amount(entry_count, "entry", "entries");
    Err(Failure::Input(format!(
        "the input has {read}, but the keyspace has {count}: keys occur more than once; load one dump at a time"
    )))
}

struct Load<'a> {
    db: &'a Db,
    keyspace: &'a Keyspace,
    entry_count: u64,
    bytes: u64,
}

impl Load<'_> {
    /// Loads all entries; returns `false` if interrupted. Entries before an invalid one are loaded.
    fn all(&mut self, input: &mut Input) -> Result<bool, Failure> {
        loop {
            if interrupt::is_interrupted() {
                return Ok(false);
            }
            let mut batch = WriteBatch::new();
            let (mut count, mut bytes) = (0, 0);
            let (mut key, mut value) = (Vec::new(), Vec::new());
            let mut has_more = Ok(true);
            while count < BATCH_ENTRY_COUNT && bytes < BATCH_BYTES {
                has_more = input.entries.next(&mut key, &mut value);
                if !matches!(has_more, Ok(true)) {
                    break;
                }
                batch.put(self.keyspace, &key, &value)?;
                count += 1;
                bytes += (key.len() + value.len()) as u64;
            }
            if count > 0 {
                self.db.write_with(batch, Durability::Buffered)?;
                self.entry_count += count;
                self.bytes += bytes;
                input.bar.set_message(terminal::amount(self.entry_count, "entry", "entries"));
            }
            if !has_more? {
                return Ok(true);
            }
        }
    }
}
