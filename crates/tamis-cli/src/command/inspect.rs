//! `tamis inspect`: prints the content of one file of a store.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use tamis::{Cell, Error, Inspection, OsVfs, Vfs};

use super::verify::{fault_json, fault_text, faults, torn_tail_json, torn_tail_text};
use crate::{bytes::Formats, failure::Failure, input, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis inspect store/000007.table                       any file, by its bytes
  tamis inspect table store/000007.table                 properties, sections, blocks
  tamis inspect block store/000007.table 0               entries of a block
  tamis inspect filter store/000007.table                family and size of the filters
  tamis inspect view store/000009.view                   runs, sizes by section, pages
  tamis inspect log store/000012.log --key-format hex    header, entries
  tamis inspect manifest store/CURRENT                   every version edit of the current manifest

The store may be open in another process, or too damaged to open. Damage is reported with its
offset, and the exit code is 3. If the file is truncated or not a Tamis file, the exit code is 4.";

/// Print the content of one file of a store
///
/// Without the name of a kind it is decided by the bytes of the file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct InspectArgs {
    #[command(subcommand)]
    command: Option<InspectCommand>,
    #[command(flatten)]
    any: AnyFileArgs,
}

#[derive(Debug, Subcommand)]
enum InspectCommand {
    /// Print a table: properties, sections, blocks
    #[command(after_help = EXAMPLES)]
    Table(FileArgs),
    /// Print the entries of one block of a table
    #[command(after_help = EXAMPLES)]
    Block(BlockArgs),
    /// Print the filters of a table or of a filter file
    #[command(after_help = EXAMPLES)]
    Filter(FileArgs),
    /// Print a sorted view: runs, sizes by section, pages
    #[command(after_help = EXAMPLES)]
    View(FileArgs),
    /// Print a log segment: header and entries
    #[command(after_help = EXAMPLES)]
    Log(FileArgs),
    /// Print the version edits of a manifest; CURRENT means the current one
    #[command(after_help = EXAMPLES)]
    Manifest(FileArgs),
}

/// The output format.
#[derive(Debug, Args)]
struct OutputArgs {
    #[command(flatten)]
    formats: Formats,
    /// Maximum number of rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// A file and the output format.
#[derive(Debug, Args)]
struct FileArgs {
    /// File to inspect
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

/// A file of any kind. It is missing if the command names a kind.
#[derive(Debug, Args)]
struct AnyFileArgs {
    /// File to inspect
    #[arg(required = true)]
    file: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// A file, the output format, and the number of a block.
#[derive(Debug, Args)]
struct BlockArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Number of the block, from 0
    block: usize,
}

impl InspectArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
        let Some(command) = self.command else {
            let AnyFileArgs { file, output: format } = self.any;
            let Some(file) = file else { return Err(Failure::Usage("give a file of a store".to_owned())) };
            let args = FileArgs { file, output: format };
            let found = args.read(|path| Inspection::of_file(&vfs, path))?;
            return args.show(&found, output);
        };
        let (args, found) = match command {
            InspectCommand::Table(args) => {
                let found = args.read(|path| Inspection::of_table(&vfs, path));
                (args, found)
            }
            InspectCommand::Block(BlockArgs { file, block }) => {
                let found = match Inspection::of_block(&vfs, &file.file, block) {
                    // The table has fewer blocks.
                    Err(error @ Error::InvalidArgument { what: "block", .. }) => {
                        Err(Failure::Usage(error.to_string()))
                    }
                    // The block is damaged. If the whole table cannot be opened, the file is not a table.
                    Err(error) if Inspection::of_table(&vfs, &file.file).is_ok() => Err(error.into()),
                    found => file.read(|_| found),
                };
                (file, found)
            }
            InspectCommand::Filter(args) => {
                let found = args.read(|path| Inspection::of_filter(&vfs, path));
                (args, found)
            }
            InspectCommand::View(args) => {
                let found = args.read(|path| Inspection::of_view(&vfs, path));
                (args, found)
            }
            InspectCommand::Log(args) => {
                let found = args.read(|path| Inspection::of_log(&vfs, path));
                (args, found)
            }
            InspectCommand::Manifest(args) => {
                let found = args.read(|path| Inspection::of_manifest(&vfs, path));
                (args, found)
            }
        };
        args.show(&found?, output)
    }
}

impl FileArgs {
    /// Reads the file with `inspect`; a file that cannot be read at all is an input failure, not damage of a store.
    fn read(&self, inspect: impl FnOnce(&Path) -> tamis::Result<Inspection>) -> Result<Inspection, Failure> {
        input::open_file(&self.file)?;
        inspect(&self.file).map_err(|error| match error {
            // The file is of no kind.
            Error::InvalidArgument { what: "file", .. } => Failure::Input(error.to_string()),
            error => Failure::of_inputs(error, std::slice::from_ref(&self.file)),
        })
    }

    fn show(&self, found: &Inspection, output: &mut dyn Write) -> Result<(), Failure> {
        let rows = found.rows.iter().take(self.output.limit.unwrap_or(usize::MAX));
        if self.output.json {
            let facts: Map<String, Value> =
                found.facts.iter().map(|(name, cell)| ((*name).to_owned(), self.cell_json(cell))).collect();
            let row = |row: &Vec<Cell>| {
                let cells = found.columns.iter().zip(row);
                Value::Object(cells.map(|(name, cell)| ((*name).to_owned(), self.cell_json(cell))).collect())
            };
            let line = json!({
                "facts": facts, "rows": rows.map(row).collect::<Vec<_>>(),
                "faults": found.faults.iter().map(fault_json).collect::<Vec<_>>(),
                "torn_tail": found.torn_tail.as_ref().map(torn_tail_json),
            });
            writeln!(output, "{line}")?;
        } else {
            for (name, cell) in &found.facts {
                writeln!(output, "{name}: {}", self.cell_text(cell))?;
            }
            let rows = rows.map(|row| row.iter().map(|cell| self.cell_text(cell)).collect());
            writeln!(output, "{}", terminal::table(found.columns.len(), &found.columns, rows))?;
            if let Some(torn) = &found.torn_tail {
                writeln!(output, "{}", torn_tail_text(torn))?;
            }
            for fault in &found.faults {
                writeln!(output, "{}", fault_text(fault))?;
            }
        }
        match found.faults.len() {
            0 => Ok(()),
            count => Err(Failure::Damage(format!(
                "{}: {}; run `tamis verify` on the store to list all damage",
                self.file.display(),
                faults(count)
            ))),
        }
    }

    fn cell_text(&self, cell: &Cell) -> String {
        match cell {
            Cell::Number(number) => number.to_string(),
            Cell::Text(text) => text.clone(),
            Cell::Key(key) => self.output.formats.key_format.show(key),
            Cell::Value(value) => self.output.formats.value_format.show(value),
            _ => "-".to_owned(),
        }
    }

    fn cell_json(&self, cell: &Cell) -> Value {
        match cell {
            Cell::Number(number) => json!(number),
            Cell::Text(text) => json!(text),
            Cell::Key(key) => self.output.formats.key_format.json(key),
            Cell::Value(value) => self.output.formats.value_format.json(value),
            _ => Value::Null,
        }
    }
}
