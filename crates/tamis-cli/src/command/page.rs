//! `tamis page`: draws a store as an HTML page, for readers who do not know log-structured merge trees.
//!
//! The page is of one open store: `tamis page` opens it read-only, `page` in `tamis shell` draws the open one, with its counts since the open.
//! Its size does not grow with the number of tables. Cost: opens the tables; reads no data block.

mod key_space;
mod map;
mod sections;

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use tamis::{
    Db, DeletedRange, KeyspaceStatistics, ReadLoss, Statistics, TableFilterStatistics, TableStatistics,
};

use super::stats::{self, answers};
use crate::{
    failure::Failure,
    html::Page,
    store::{self, FileKind},
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  tamis page store -o page.html
  printf 'scan\\npage page.html\\n' | tamis shell store    a page with what reads cost

The counts of writes, stalls and lost time are those of the process that has the store open: they begin at zero
with each open.";

/// Draw a store as a page: its tables on a map of the keys, filters, waiting work, writes, deleted data
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PageArgs {
    /// Folder of the store
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The page, a file that must not exist
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// A keyspace as its page shows it.
struct KeyspaceFound<'a> {
    statistics: &'a KeyspaceStatistics,
    tables: Vec<TableStatistics>,
    filters: Vec<TableFilterStatistics>,
    losses: Vec<ReadLoss>,
    /// The ranges, or why they are not known.
    deleted_ranges: Result<Vec<DeletedRange>, String>,
}

/// A store as its page shows it.
struct Found<'a> {
    folder: &'a Path,
    statistics: &'a Statistics,
    files: &'a [FileKind],
    unreadable_count: usize,
    /// The largest first.
    keyspaces: Vec<KeyspaceFound<'a>>,
}

impl PageArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let db = store::open_to_read(&self.dir)?;
        write_page(&db, &self.dir, &self.output)?;
        Ok(writeln!(output, "{}", self.output.display())?)
    }
}

/// Writes the page of an open store to a file, which must not exist.
pub(super) fn write_page(db: &Db, folder: &Path, path: &Path) -> Result<(), Failure> {
    // Opens the tables: the statistics describe the filters of open ones.
    let mut unreadable_count = 0;
    for name in db.keyspace_names() {
        unreadable_count += db.unreadable_tables(&db.keyspace(&name)?)?.len();
    }
    let statistics = db.statistics();
    let mut keyspaces = Vec::new();
    for of in &statistics.keyspaces {
        let keyspace = db.keyspace(&of.name)?;
        keyspaces.push(KeyspaceFound {
            statistics: of,
            tables: db.tables(&keyspace)?,
            filters: db.table_filters(&keyspace)?,
            losses: db.read_losses(&keyspace)?,
            deleted_ranges: db.deleted_ranges(&keyspace).map_err(|error| error.to_string()),
        });
    }
    keyspaces.sort_by_key(|keyspace| std::cmp::Reverse(bytes_of(keyspace)));
    let files = store::files(folder)?;
    let found = Found { folder, statistics: &statistics, files: &files, unreadable_count, keyspaces };
    found.page().write(path, "give another name")
}

fn bytes_of(keyspace: &KeyspaceFound<'_>) -> u64 {
    keyspace.tables.iter().map(|table| table.bytes).sum()
}

impl Found<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(&format!("Store {}", self.folder.display()));
        let answers = answers::Found {
            statistics: self.statistics,
            files: self.files,
            unreadable_count: self.unreadable_count,
        };
        let tables = self.keyspaces.iter().flat_map(|keyspace| &keyspace.tables);
        let (mut table_count, mut entry_count, mut bytes) = (0, 0, 0);
        for table in tables {
            (table_count, entry_count, bytes) =
                (table_count + 1, entry_count + table.entry_count, bytes + table.bytes);
        }
        page.answer(&format!(
            "{} in {}, {}.",
            terminal::amount(entry_count, "entry", "entries"),
            terminal::amount(table_count, "table", "tables"),
            terminal::bytes(bytes)
        ));
        page.paragraph(
            "How to read this page: new entries are collected in memory and written as sorted files, called tables. Tables whose keys do not \
             overlap form a run. A read of a key searches every run that may have it, the newest first, unless the filter of a table rejects \
             the key. In the background, runs are merged into fewer and larger ones, level by level: reads then search fewer runs, but merging \
             writes data again. A delete is an entry, too, until a merge drops it together with the entries that it deletes.",
        );
        page.heading("Does anything wait, and why?");
        page.list(&answers::waits(&answers));
        sections::data(&mut page, &self.keyspaces);
        sections::filters(&mut page, &self.keyspaces);
        sections::losses(&mut page, &self.keyspaces);
        sections::writes(&mut page, self.statistics);
        sections::deletes(&mut page, &self.keyspaces);
        page.heading("Does anything keep files?");
        page.list(&answers::keepers(&answers));
        page.table(2, &stats::FILES_HEADER, stats::files_rows(self.files));
        page
    }
}
