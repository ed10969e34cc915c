//! `tamis backup`: incremental backups in a folder or an S3 bucket.

mod list;
mod make;
mod prune;
mod restore;
mod verify;

use std::{io::Write, sync::Arc};

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use tamis_backup::{Error, Progress, Target};

use crate::{failure::Failure, interrupt, progress};

const EXAMPLES: &str = "\
Examples:
  tamis backup store /mnt/backups             only what has changed since the last one
  tamis backup store s3://bucket/path --log
  tamis backup store /mnt/backups --follow --every 10s
  tamis backup list /mnt/backups
  tamis backup verify /mnt/backups
  tamis backup restore /mnt/backups restored --to 2026-11-30T09:20
  tamis backup prune /mnt/backups --keep 7d

TARGET is a folder, or s3://bucket/path with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION
and AWS_ENDPOINT_URL from the environment. An interrupted backup continues with the next one. A
program that has the store open makes backups with the crate tamis-backup.";

/// Back up a store: make, list, verify, restore and prune incremental backups
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    #[command(flatten)]
    make: make::MakeArgs,
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    List(list::ListArgs),
    Verify(verify::VerifyArgs),
    Restore(restore::RestoreArgs),
    Prune(prune::PruneArgs),
}

impl BackupArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Some(BackupCommand::List(args)) => args.run(output),
            Some(BackupCommand::Verify(args)) => args.run(output),
            Some(BackupCommand::Restore(args)) => args.run(output),
            Some(BackupCommand::Prune(args)) => args.run(output),
            None => self.make.run(output),
        }
    }
}

/// The target of a command.
#[derive(Debug, Args)]
struct TargetArgs {
    /// Folder, or s3://bucket/path
    #[arg(value_name = "TARGET")]
    target: String,
}

impl TargetArgs {
    fn open(&self) -> Result<Target, Failure> {
        Target::open(&self.target).map_err(failure)
    }
}

/// A bar of bytes, which Ctrl-C ends.
#[derive(Debug)]
struct Bar(ProgressBar);

impl Bar {
    /// Installs the handler of Ctrl-C.
    fn new(message: &'static str) -> Result<Arc<Self>, Failure> {
        interrupt::install_handler()?;
        let bar = progress::bytes(Some(0));
        bar.set_message(message);
        Ok(Arc::new(Self(bar)))
    }
}

impl Progress for Bar {
    fn expect(&self, bytes: u64) {
        self.0.set_length(bytes);
        self.0.set_position(0);
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    fn is_cancelled(&self) -> bool {
        interrupt::is_interrupted()
    }
}

/// Damage has the exit code of a damaged store; a target that can't be used has that of other files.
fn failure(error: Error) -> Failure {
    match error {
        Error::Store(error) => Failure::of_existing(error),
        Error::Address { .. } | Error::S3Unavailable { .. } => Failure::Usage(error.to_string()),
        Error::Damaged { .. } | Error::Unprunable { .. } | Error::WrongSequence { .. } => {
            Failure::Damage(error.to_string())
        }
        Error::Cancelled => Failure::Interrupted(error.to_string()),
        _ => Failure::Input(error.to_string()),
    }
}

/// Parses `10s`, `5m`, `1h`.
fn parse_time(text: &str) -> Result<std::time::Duration, String> {
    match text.parse() {
        Ok(tamis_backup::Keep::Age(age)) if !age.is_zero() => Ok(age),
        _ => Err(format!("{text:?} is no time; write 10s, 5m or 1h")),
    }
}
