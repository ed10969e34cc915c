//! `tamis bench`: measures the workloads of stores.

use std::io::Write;

use clap::{Args, Subcommand};
use tamis_bench::{
    BenchError, WORKLOADS,
    command::{ListArgs, RUN_FILES, RunArgs},
};

use crate::{failure::Failure, interrupt};

#[cfg(test)]
mod tests;

const EXAMPLES: &str = "\
Examples:
  tamis bench list
  tamis bench run store-ycsb --size medium --only workload=ycsb-a --only workload=ycsb-b
  tamis bench run store-ycsb --layout leveled --layout partitioned
  tamis bench run all --size small --out results";

/// Measure stores: YCSB, micro benchmarks, empty ranges, shifting workloads
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{RUN_FILES}"))]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    #[command(after_help = "Examples:\n  tamis bench list\n  tamis bench list --json")]
    List(ListArgs),
    #[command(after_help = format!("{EXAMPLES}\n\n{RUN_FILES}"))]
    Run(RunArgs),
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        if let BenchError::Unknown { .. } = error {
            return Self::Usage(error.to_string());
        }
        if let BenchError::Stopped { .. } = error {
            return Self::Interrupted(error.to_string());
        }
        if let BenchError::Output(error) = error {
            return Self::Output(error);
        }
        // The exit code depends on the innermost error; the message also names the point.
        let mut cause = &error;
        while let BenchError::Point { source, .. } = cause {
            cause = source;
        }
        match cause {
            BenchError::Io { .. }
            | BenchError::WrongContent { .. }
            | BenchError::InsufficientResources { .. } => Self::Input(error.to_string()),
            // The stores of experiments are outputs: an I/O error there is not corruption.
            BenchError::Store(tamis::Error::Io { .. } | tamis::Error::DiskFull { .. }) => {
                Self::Input(error.to_string())
            }
            _ => Self::Damage(error.to_string()),
        }
    }
}

impl BenchArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            BenchCommand::List(args) => Ok(args.run(&WORKLOADS, output)?),
            BenchCommand::Run(args) => {
                interrupt::install_handler()?;
                Ok(args.run(&WORKLOADS, interrupt::is_interrupted, output)?)
            }
        }
    }
}
