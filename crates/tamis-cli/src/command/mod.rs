//! The commands, one module each.

mod bench;
mod delete;
mod demo;
mod filter;
mod generate;
mod get;
mod load;
mod put;
mod scan;
mod stats;
mod verify;

use std::io::Write;

use clap::{Parser, Subcommand};

use crate::failure::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples:
  tamis demo                                   a store of real paths and a million events
  tamis put store apple red
  tamis get store apple
  tamis scan store --prefix a --limit 10
  tamis load store prices.csv --key-field name --value-field price";

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
    Load(load::LoadArgs),
    Verify(verify::VerifyArgs),
    Stats(stats::StatsArgs),
    Gen(generate::GenArgs),
    Filter(filter::FilterArgs),
    Bench(bench::BenchArgs),
}

impl Cli {
    /// Does what the command line asks for; results go to `output`.
    pub(crate) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Demo(args) => args.run(output),
            Command::Put(args) => args.run(),
            Command::Get(args) => args.run(output),
            Command::Delete(args) => args.run(),
            Command::Scan(args) => args.run(output),
            Command::Load(args) => args.run(output),
            Command::Verify(args) => args.run(output),
            Command::Stats(args) => args.run(output),
            Command::Gen(args) => args.run(output),
            Command::Filter(args) => args.run(output),
            Command::Bench(args) => args.run(output),
        }
    }
}
