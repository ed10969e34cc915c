//! `tamis`: stores on the command line.
//!
//! Each command is a module of `command`; what they share (how bytes are given and shown, how failures end the
//! program, progress, tables) stands beside it. Results go to standard output, progress and errors to standard
//! error.

mod bytes;
mod command;
mod failure;
mod input;
mod interrupt;
mod output_file;
mod progress;
mod range;
mod store;
mod terminal;

use std::{
    io::{self, BufWriter, Write},
    process::ExitCode,
};

use clap::Parser;

use crate::{command::Cli, failure::Failure};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut output = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let result = cli.run(&mut output).and_then(|()| Ok(output.flush()?));
    // What was found before a failure is shown; a second failure to write adds nothing to the first.
    let _ = output.flush();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                eprintln!("tamis: {message}");
            }
            failure.exit_code()
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
