//! `tamis filter`: measures and ranks filters on the user's keys and queries.

mod advise;
mod eval;
mod input;
mod report;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tamis filter eval --family blocked-bloom --bits-per-key 10 --keys KEYS --queries QUERIES
  tamis filter advise --keys KEYS --queries QUERIES --html advice.html";

/// Measure and rank filter families on your own keys and queries
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FilterArgs {
    #[command(subcommand)]
    command: FilterCommand,
}

#[derive(Debug, Subcommand)]
enum FilterCommand {
    Advise(advise::AdviseArgs),
    Eval(eval::EvalArgs),
}

impl FilterArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            FilterCommand::Advise(args) => args.run(output),
            FilterCommand::Eval(args) => args.run(output),
        }
    }
}
