//! `tamis changes`: prints the change feed of a store, of a running one, too.

use std::{io::Write, ops::ControlFlow, path::PathBuf, time::Duration};

use clap::Args;
use serde_json::{Map, Value, json};
use tamis::{BatchWrite, Change, Position};

use crate::{bytes::Formats, failure::Failure, interrupt, store};

const EXAMPLES: &str = "\
Examples:
  tamis changes store                          what the log still has, then the position
  tamis changes store --follow                 and what is written from now on
  tamis changes store --from 1200 --json       behind a position, one JSON object per line

The store keeps changes for a feed if its program opens it with `keep_changes`.";

/// The time after which a wait for changes looks for an interrupt.
const WAIT: Duration = Duration::from_millis(100);

/// Print what is committed, in order, each change once
///
/// Each line has the position behind its commit, the keyspace, the kind of the write, and keys and values. The store may be open in another process.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChangesArgs {
    /// Folder of the store
    #[arg(value_name = "STORE")]
    dir: PathBuf,
    /// Begin behind this sequence number; without it: with the first change that the log has
    #[arg(long, value_name = "N")]
    from: Option<u64>,
    /// Wait for new changes until it is interrupted
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    formats: Formats,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

impl ChangesArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let db = store::open_to_read(&self.dir)?;
        let mut changes = match self.from {
            Some(from) => db.changes(Position::after(from))?,
            None => match db.changes(Position::default()) {
                Err(tamis::Error::ChangesLost { first_available }) => {
                    db.changes(Position::after(first_available))?
                }
                changes => changes?,
            },
        };
        if self.follow {
            interrupt::install_handler()?;
        }
        while !interrupt::is_interrupted() {
            let change = match changes.try_next()? {
                None if self.follow => {
                    output.flush()?;
                    changes.next_within(WAIT)?
                }
                None => break,
                change => change,
            };
            change.map_or(Ok(()), |change| self.show(&change, output))?;
        }
        let position = changes.position().sequence();
        if self.json { Ok(()) } else { Ok(writeln!(output, "position {position}")?) }
    }

    fn show(&self, change: &Change, output: &mut dyn Write) -> Result<(), Failure> {
        match change {
            Change::Batch(batch) => {
                for (keyspace, write) in batch.writes() {
                    self.show_write(batch.last_sequence(), keyspace, &write, output)?;
                }
            }
            Change::Ingest(tables) => {
                let mut shown = Ok(());
                tables.for_each(|write| {
                    shown = self.show_write(tables.sequence(), tables.keyspace(), &write, output);
                    if shown.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
                shown?;
            }
            Change::KeyspaceCreated { name, sequence } => {
                self.show_line(*sequence, name, "create", &[], output)?
            }
            Change::KeyspaceDropped { name, sequence } => {
                self.show_line(*sequence, name, "drop", &[], output)?
            }
            _ => {}
        }
        Ok(())
    }

    fn show_write(
        &self,
        sequence: u64,
        keyspace: &str,
        write: &BatchWrite<'_>,
        output: &mut dyn Write,
    ) -> Result<(), Failure> {
        let Formats { key_format, value_format } = self.formats;
        let key_of =
            |bytes: &[u8]| if self.json { key_format.json(bytes) } else { key_format.show(bytes).into() };
        let value_of =
            |bytes: &[u8]| if self.json { value_format.json(bytes) } else { value_format.show(bytes).into() };
        let (kind, fields) = match *write {
            BatchWrite::Put { key, value } => ("put", vec![("key", key_of(key)), ("value", value_of(value))]),
            BatchWrite::PutUntil { key, value, time } => {
                let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                let expires = ("expires_at_seconds", json!(since.as_secs_f64()));
                ("put_until", vec![("key", key_of(key)), ("value", value_of(value)), expires])
            }
            BatchWrite::Merge { key, operand } => {
                ("merge", vec![("key", key_of(key)), ("operand", value_of(operand))])
            }
            BatchWrite::Delete { key } => ("delete", vec![("key", key_of(key))]),
            BatchWrite::DeleteRange { lower, upper } => {
                ("delete_range", vec![("lower", key_of(lower)), ("upper", upper.map_or(Value::Null, key_of))])
            }
            _ => return Ok(()),
        };
        self.show_line(sequence, keyspace, kind, &fields, output)
    }

    fn show_line(
        &self,
        sequence: u64,
        keyspace: &str,
        kind: &str,
        fields: &[(&str, Value)],
        output: &mut dyn Write,
    ) -> Result<(), Failure> {
        if self.json {
            let mut line = Map::new();
            line.insert("sequence".to_owned(), sequence.into());
            line.insert("keyspace".to_owned(), keyspace.into());
            line.insert("kind".to_owned(), kind.into());
            line.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            writeln!(output, "{}", Value::Object(line))?;
            return Ok(());
        }
        write!(output, "{sequence}\t{keyspace}\t{kind}")?;
        for (_, value) in fields {
            match value {
                Value::String(text) => write!(output, "\t{text}")?,
                Value::Null => write!(output, "\t")?,
                other => write!(output, "\t{other}")?,
            }
        }
        Ok(writeln!(output)?)
    }
}
