//! `tamis`: the command-line program.
//!
//! Each command is a module of `command`. The other modules are shared: formats of keys and values, failures and exit
//! codes, progress bars, tables. Results go to standard output, progress and errors to standard error.

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
    // Prints the results before a failure; ignores a second write error.
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
