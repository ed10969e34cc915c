//! The commands, one module each.

mod advise;
mod backup;
mod bench;
mod changes;
mod checkpoint;
mod compact;
mod completions;
mod delete;
mod demo;
mod export;
mod filter;
mod generate;
mod get;
mod inspect;
mod load;
mod page;
mod put;
mod repair;
mod scan;
mod shell;
mod stats;
mod table;
#[cfg(test)]
mod tests;
mod top;
mod verify;

use std::io::Write;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::failure::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples:
  tamis demo                                   measure a temporary store with real data
  tamis put store apple red
  tamis get store apple
  tamis scan store --prefix a --limit 10
  tamis load store prices.csv --key-field name --value-field price
  tamis export store all.jsonl
  tamis shell store";

/// Tamis: an embedded, durable, ordered key-value store.
#[derive(Debug, Parser)]
#[command(name = "tamis", version, after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"), max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Put(put::PutArgs),
    Get(get::GetArgs),
    Delete(delete::DeleteArgs),
    Scan(scan::ScanArgs),
    Changes(changes::ChangesArgs),
    Load(load::LoadArgs),
    Export(export::ExportArgs),
    Build(table::BuildArgs),
    Ingest(table::IngestArgs),
    Shell(shell::ShellArgs),
    Stats(stats::StatsArgs),
    Page(page::PageArgs),
    Top(top::TopArgs),
    Advise(advise::AdviseArgs),
    Compact(compact::CompactArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Backup(backup::BackupArgs),
    Verify(verify::VerifyArgs),
    Repair(repair::RepairArgs),
    Inspect(inspect::InspectArgs),
    Gen(generate::GenArgs),
    Filter(filter::FilterArgs),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
}

impl Cli {
    /// Parses the command line of the process.
    pub(crate) fn from_command_line() -> Result<Self, clap::Error> {
        Self::from_arg_matches(&with_negative_numbers(Self::command()).try_get_matches()?)
    }

    /// Runs the command; writes results to `output`.
    pub(crate) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Demo(args) => args.run(output),
            Command::Put(args) => args.run(),
            Command::Get(args) => args.run(output),
            Command::Delete(args) => args.run(),
            Command::Scan(args) => args.run(output),
            Command::Changes(args) => args.run(output),
            Command::Load(args) => args.run(output),
            Command::Export(args) => args.run(output),
            Command::Build(args) => args.run(output),
            Command::Ingest(args) => args.run(output),
            Command::Shell(args) => args.run(output),
            Command::Stats(args) => args.run(output),
            Command::Page(args) => args.run(output),
            Command::Top(args) => args.run(output),
            Command::Advise(args) => args.run(output),
            Command::Compact(args) => args.run(output),
            Command::Checkpoint(args) => args.run(output),
            Command::Backup(args) => args.run(output),
            Command::Verify(args) => args.run(output),
            Command::Repair(args) => args.run(output),
            Command::Inspect(args) => args.run(output),
            Command::Gen(args) => args.run(output),
            Command::Filter(args) => args.run(output),
            Command::Bench(args) => args.run(output),
            Command::Completions(args) => args.run(output),
        }
    }
}

/// Lets `-5` be a value: keys and values may be negative numbers, and the error for an option names the option and the number.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let with_negative_numbers_in = |arg: clap::Arg| {
        if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg }
    };
    command.mut_args(with_negative_numbers_in).mut_subcommands(with_negative_numbers)
}
