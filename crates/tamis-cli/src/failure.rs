//! Failures of commands: the message and the exit code.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use tamis::Error;

/// The exit codes as `tamis --help` prints them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0    success
    1    a key was not found (get)
    2    wrong command line
    3    error of the store: damaged, cannot be opened, or a rejected operation
    4    an input file cannot be read, or an output cannot be written
    130  interrupted (Ctrl-C); the store is intact";

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A key was not found.
    NotFound,
    /// The command line is wrong.
    Usage(String),
    /// The store returned an error.
    Store(Error),
    /// The store is damaged or missing; the text describes it.
    Damage(String),
    /// An input file is invalid; the text contains file and line or offset.
    Input(String),
    /// Writing to standard output or an output file failed.
    Output(io::Error),
    /// Ctrl-C; the text describes what was finished.
    Interrupted(String),
}

impl Failure {
    /// Converts an error of a command with input files. Corruption of an input file becomes an input failure: the advice for
    /// a damaged store does not apply to it.
    pub(crate) fn of_inputs(error: Error, inputs: &[PathBuf]) -> Self {
        let is_input = |file: &Path| {
            inputs.iter().any(|input| without_current_folder(input) == without_current_folder(file))
        };
        match &error {
            Error::Corruption(found) if is_input(&found.file) => Self::Input(format!(
                "{}: {} at offset {}: expected {}, got {}; the file is truncated or of another kind; check it or create it again",
                found.file.display(),
                found.what,
                found.offset,
                found.expected,
                found.got
            )),
            Error::UnknownFormat { file, .. } | Error::UnknownEntryKind { file, .. } if is_input(file) => {
                Self::Input(error.to_string())
            }
            Error::Io { path, .. } | Error::MissingFile { path, .. } if is_input(path) => {
                Self::Input(error.to_string())
            }
            _ => Self::Store(error),
        }
    }

    /// The message for the user, if any.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::NotFound => None,
            // `tamis scan DIR | head`: the reader closed the pipe.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Self::Output(error) => Some(format!("cannot write the output: {error}")),
            Self::Store(error) => Some(error.to_string()),
            Self::Usage(text) | Self::Damage(text) | Self::Input(text) | Self::Interrupted(text) => {
                Some(text.clone())
            }
        }
    }

    /// The exit code; see [`EXIT_CODES`].
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::NotFound => 1,
            Self::Usage(_) => 2,
            Self::Store(_) | Self::Damage(_) => 3,
            Self::Input(_) | Self::Output(_) => 4,
            Self::Interrupted(_) => 130,
        })
    }
}

/// Removes a leading `./`, so that paths can be compared.
fn without_current_folder(path: &Path) -> &Path {
    path.strip_prefix(".").unwrap_or(path)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}
