//! `tamis shell`: opens a store once and runs one command per line.
//!
//! Lines are split into words like in a POSIX shell (quotes, backslashes). On a terminal, the shell reports a failed line
//! and continues. Between `begin` and `commit` the commands that read and write entries use a transaction. When the lines come from a file or a pipe, the first failed line ends the shell, and the error contains
//! its number (unless the output failed).

use std::{
    ffi::OsString,
    io::{self, BufRead, IsTerminal, Write},
    ops::Bound,
    path::PathBuf,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use rustyline::{DefaultEditor, error::ReadlineError};
use tamis::{Db, Durability, Isolation, Keyspace, KeyspaceOptions, Slice, Transaction, TransactionOptions};

use super::{
    page::write_page,
    stats::{
        all_table_filters, answers_table, decisions_table, filters_text, keyspaces_table, losses_table,
        pins_text, reads_table, samples_table, too_long_text, views_text,
    },
};
use crate::{
    bytes::Formats,
    failure::{Failure, usage_text},
    range::{Range, RangeArgs},
    store,
    store::StoreArgs,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  tamis shell store
  tamis shell store --keyspace events --key-format u64
  printf 'put apple red\\nscan\\n' | tamis shell store
  printf 'begin\\nput apple red\\nput pear green\\ncommit\\n' | tamis shell store

Type `help` for the commands. The history is saved in ~/.tamis_history, or in the file
$TAMIS_HISTORY; set TAMIS_HISTORY to an empty value to save none.";

/// Open a store and type commands; the store is created if missing
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    formats: Formats,
}

/// Commands of the shell
#[derive(Debug, Parser)]
#[command(multicall = true, disable_help_flag = true, disable_version_flag = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Set the value of a key
    Put { key: OsString, value: OsString },
    /// Print the value of a key
    Get { key: OsString },
    /// Delete a key, or all entries of a range
    Delete {
        key: Option<OsString>,
        #[command(flatten)]
        range: RangeArgs,
    },
    /// Print entries in key order
    Scan(ScanLine),
    /// Count the entries of a range
    Count {
        #[command(flatten)]
        range: RangeArgs,
    },
    /// Begin a transaction, serializable by default; put, get, delete, scan and count use it until its end
    Begin { kind: Option<TransactionKind> },
    /// Write what was written since `begin`, all or nothing
    Commit,
    /// Take back what was written since `begin`
    Rollback,
    /// List the keyspaces, or switch to one; --create creates it if missing
    Keyspace {
        name: Option<String>,
        #[arg(long)]
        create: bool,
    },
    /// Flush all memtables
    Flush,
    /// Compact the keyspace into its deepest level
    Compact,
    /// Print levels, tables, and what keeps obsolete files
    Stats,
    /// Draw the store as a page, with the counts since the shell has opened it
    Page { file: PathBuf },
    /// Make all writes durable: they survive a power failure
    Sync,
    /// Leave the shell
    #[command(alias = "exit")]
    Quit,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TransactionKind {
    /// Only what was written must be unchanged at the commit
    Snapshot,
    /// All other writers wait until the end
    Exclusive,
}

/// Arguments of `scan`.
#[derive(Debug, Args)]
struct ScanLine {
    #[command(flatten)]
    range: RangeArgs,
    /// Read in descending key order
    #[arg(long)]
    reverse: bool,
    /// Maximum number of entries
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

/// Whether the shell continues after a line.
#[derive(PartialEq, Eq)]
enum Flow {
    Continue,
    Quit,
}

struct Shell {
    db: Db,
    keyspace: Keyspace,
    formats: Formats,
    transaction: Option<Transaction>,
}

impl ShellArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let (db, keyspace) = self.store.open_to_write()?;
        let mut shell = Shell { db, keyspace, formats: self.formats, transaction: None };
        let result = if io::stdin().is_terminal() {
            shell.run_interactive(output)
        } else {
            shell.run_script(&mut io::stdin().lock(), output)
        };
        let Shell { db, keyspace, transaction, .. } = shell;
        if let Some(transaction) = transaction {
            output.flush()?;
            eprintln!("tamis: the open transaction was rolled back; type `commit` to keep its writes");
            drop(transaction);
        }
        drop(keyspace);
        db.close()?;
        result
    }
}

/// File of the history; `None` if it is not saved.
fn history_file() -> Option<PathBuf> {
    match std::env::var_os("TAMIS_HISTORY") {
        Some(path) => (!path.is_empty()).then(|| path.into()),
        None => std::env::home_dir().map(|home| home.join(".tamis_history")),
    }
}

impl Shell {
    /// Reads lines from a terminal.
    fn run_interactive(&mut self, output: &mut dyn Write) -> Result<(), Failure> {
        let mut editor = DefaultEditor::new().map_err(io::Error::other)?;
        let mut history = history_file();
        if let Some(path) = &history {
            // The file does not exist the first time.
            let _ = editor.load_history(path);
        }
        loop {
            match editor.readline(&self.prompt()) {
                Ok(line) => {
                    let is_new = editor.add_history_entry(&line).unwrap_or_default();
                    // Saves each line immediately: the terminal may be closed at any time.
                    if let Some(path) = history.as_ref().filter(|_| is_new)
                        && let Err(error) = editor.append_history(path)
                    {
                        eprintln!("tamis: {}: {error}; the history is not saved", path.display());
                        history = None;
                    }
                    match self.run_line(&line, output) {
                        Ok(Flow::Quit) => break,
                        Ok(Flow::Continue) => {}
                        Err(failure) => {
                            output.flush()?;
                            eprintln!("{}", failure.message().unwrap_or_else(|| "not found".to_owned()));
                        }
                    }
                    output.flush()?;
                }
                // Ctrl-C discards the line, Ctrl-D leaves the shell.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(io::Error::other(error).into()),
            }
        }
        Ok(())
    }

    fn prompt(&self) -> String {
        let state = if self.transaction.is_some() { " (transaction)" } else { "" };
        format!("{}{state}> ", self.keyspace.name())
    }

    /// Reads lines from a file or a pipe.
    fn run_script(&mut self, input: &mut dyn BufRead, output: &mut dyn Write) -> Result<(), Failure> {
        for (number, line) in (1..).zip(input.lines()) {
            let named = |text: String| format!("line {number}: {text}");
            let line = line.map_err(|error| Failure::Input(named(error.to_string())))?;
            match self.run_line(&line, output) {
                Ok(Flow::Quit) => break,
                Ok(Flow::Continue) => {}
                Err(Failure::Usage(text)) => return Err(Failure::Usage(named(text))),
                Err(Failure::Damage(text)) => return Err(Failure::Damage(named(text))),
                Err(Failure::Store(error)) => return Err(Failure::Damage(named(error.to_string()))),
                Err(Failure::Input(text)) => return Err(Failure::Input(named(text))),
                Err(Failure::NotFound) => {
                    eprintln!("tamis: {}", named("not found".to_owned()));
                    return Err(Failure::NotFound);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn run_line(&mut self, line: &str, output: &mut dyn Write) -> Result<Flow, Failure> {
        let words = split_words(line).map_err(Failure::Usage)?;
        if words.first().is_none_or(|word| word.starts_with('#')) {
            return Ok(Flow::Continue);
        }
        match Line::try_parse_from(words) {
            Ok(Line { command }) => self.run_command(command, output),
            Err(error) if !error.use_stderr() => {
                writeln!(output, "{error}")?;
                Ok(Flow::Continue)
            }
            Err(error) => Err(Failure::Usage(usage_text(&error).trim_end().to_owned())),
        }
    }

    fn run_command(&mut self, command: Command, output: &mut dyn Write) -> Result<Flow, Failure> {
        let Formats { key_format, value_format } = self.formats;
        let key_of = |key: &OsString| key_format.argument("the key", key);
        match command {
            Command::Put { key, value } => {
                let (key, value) = (key_of(&key)?, value_format.argument("the value", &value)?);
                match &self.transaction {
                    Some(transaction) => transaction.put(&self.keyspace, key, value)?,
                    None => self.keyspace.put(key, value)?,
                }
            }
            Command::Get { key } => {
                let key = key_of(&key)?;
                let found = match &self.transaction {
                    Some(transaction) => transaction.get(&self.keyspace, key)?,
                    None => self.keyspace.get(key)?,
                };
                writeln!(output, "{}", value_format.show(&found.ok_or(Failure::NotFound)?))?;
            }
            Command::Delete { key: Some(key), range } if !range.is_limited() => {
                let key = key_of(&key)?;
                match &self.transaction {
                    Some(transaction) => transaction.delete(&self.keyspace, key)?,
                    None => self.keyspace.delete(key)?,
                }
            }
            Command::Delete { key: None, range } if range.is_limited() => {
                let bounds = range.range(key_format)?.bounds();
                match &self.transaction {
                    Some(transaction) => transaction.delete_range(&self.keyspace, bounds)?,
                    None => self.keyspace.delete_range(bounds)?,
                }
            }
            Command::Delete { .. } => {
                let advice = "delete: give one key or a range (--prefix, --lower, --upper), not both";
                return Err(Failure::Usage(advice.to_owned()));
            }
            Command::Scan(scan) => self.scan(&scan, output)?,
            Command::Count { range } => {
                let mut entries = self.entries(range.range(key_format)?);
                let count = entries.try_fold(0, |count, entry| entry.map(|_| count + 1))?;
                writeln!(output, "{}", terminal::count(count))?;
            }
            Command::Begin { kind } => self.begin(kind)?,
            Command::Commit => self.end()?.commit()?,
            Command::Rollback => drop(self.end()?),
            Command::Keyspace { name: None, .. } => {
                for name in self.db.keyspace_names() {
                    writeln!(output, "{name}")?;
                }
            }
            Command::Keyspace { name: Some(name), create: true } => {
                self.keyspace = self.db.get_or_create_keyspace(&name, KeyspaceOptions::default())?;
            }
            Command::Keyspace { name: Some(name), create: false } => {
                self.keyspace = store::keyspace(&self.db, &name)?;
            }
            Command::Flush => self.db.flush()?,
            Command::Compact => {
                self.db.compact_range(&self.keyspace, (Bound::<Vec<u8>>::Unbounded, Bound::Unbounded))?;
            }
            Command::Page { file } => write_page(&self.db, &self.db.path(), &file)?,
            Command::Stats => write_statistics(&self.db, output)?,
            Command::Sync => self.db.persist(Durability::Synced)?,
            Command::Quit => return Ok(Flow::Quit),
        }
        Ok(Flow::Continue)
    }

    fn begin(&mut self, kind: Option<TransactionKind>) -> Result<(), Failure> {
        if self.transaction.is_some() {
            return Err(Failure::Usage(
                "a transaction is open; type `commit` or `rollback` first".to_owned(),
            ));
        }
        let options = TransactionOptions::default();
        self.transaction = Some(match kind {
            None => self.db.transaction(),
            Some(TransactionKind::Snapshot) => {
                self.db.transaction_with(options.isolation(Isolation::Snapshot))
            }
            Some(TransactionKind::Exclusive) => self.db.exclusive()?,
        });
        Ok(())
    }

    /// Takes the open transaction.
    fn end(&mut self) -> Result<Transaction, Failure> {
        let advice = "no transaction is open; type `begin` first";
        self.transaction.take().ok_or_else(|| Failure::Usage(advice.to_owned()))
    }

    /// The entries of a range, in the open transaction if there is one.
    fn entries(
        &self,
        range: Range,
    ) -> Box<dyn DoubleEndedIterator<Item = tamis::Result<(Slice, Slice)>> + '_> {
        match &self.transaction {
            Some(transaction) => Box::new(range.scan_in(transaction, &self.keyspace)),
            None => Box::new(range.scan(&self.keyspace)),
        }
    }

    fn scan(&self, line: &ScanLine, output: &mut dyn Write) -> Result<(), Failure> {
        let Formats { key_format, value_format } = self.formats;
        let mut scan = self.entries(line.range.range(key_format)?);
        for _ in 0..line.limit {
            let entry = if line.reverse { scan.next_back() } else { scan.next() };
            let Some((key, value)) = entry.transpose()? else { return Ok(()) };
            writeln!(output, "{}\t{}", key_format.show(&key), value_format.show(&value))?;
        }
        Ok(())
    }
}

/// Splits a line into words at blanks outside of quotes; a backslash escapes the next character.
fn split_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            (_, Some(mark)) if character == mark => quote = None,
            ('\\', None | Some('"')) => {
                let next = characters
                    .next()
                    .ok_or("the line ends with a backslash; add the character that it escapes")?;
                word.get_or_insert_default().push(next);
            }
            (_, Some(_)) => word.get_or_insert_default().push(character),
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (' ' | '\t', None) => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(character),
        }
    }
    if let Some(mark) = quote {
        return Err(format!("the quote {mark} is not closed; add the closing quote"));
    }
    words.extend(word);
    Ok(words)
}

/// Prints the levels, filters, reads and sampled queries of all keyspaces.
fn write_statistics(db: &Db, output: &mut dyn Write) -> Result<(), Failure> {
    let statistics = db.statistics();
    writeln!(output, "{}", keyspaces_table(&statistics.keyspaces))?;
    let views = views_text(&statistics.keyspaces);
    write!(output, "{}{views}", filters_text(&statistics.keyspaces))?;
    let answers = answers_table(&all_table_filters(db)?);
    let tables = [reads_table(&statistics.reads), answers, samples_table(&statistics.keyspaces)];
    for table in tables.into_iter().flatten() {
        writeln!(output, "{table}")?;
    }
    write!(output, "{}", too_long_text(&statistics.keyspaces))?;
    for table in [decisions_table(&statistics), losses_table(db)?].into_iter().flatten() {
        writeln!(output, "{table}")?;
    }
    writeln!(output, "{}", pins_text(&statistics))?;
    Ok(())
}

#[cfg(test)]
mod tests;
