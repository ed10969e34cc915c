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
    /// An input file is invalid, or an output file cannot be written; the text contains the file.
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
        let is_input = |file: &Path| inputs.iter().any(|input| absolute(input) == absolute(file));
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

    /// Converts an error of a command that writes to `target`: an error of the file system there is no error of the store.
    pub(crate) fn of_target(error: Error, target: &Path) -> Self {
        let in_full = absolute(target);
        match &error {
            Error::Io { path, source, .. }
                if absolute(path) == in_full && source.kind() == io::ErrorKind::AlreadyExists =>
            {
                Self::Input(format!("{}: already exists; choose another name or delete it", target.display()))
            }
            Error::Io { path, .. } | Error::DiskFull { path, .. }
                if absolute(path).parent() == in_full.parent() || absolute(path).starts_with(&in_full) =>
            {
                Self::Input(error.to_string())
            }
            _ => Self::Store(error),
        }
    }

    /// Converts an error of a command that needs an existing store: the program creates none.
    pub(crate) fn of_existing(error: Error) -> Self {
        match &error {
            Error::NotADatabase { path, found } => Self::Damage(format!(
                "{}: not a Tamis store ({found}); name the folder of a store",
                path.display()
            )),
            _ => Self::of_store(error),
        }
    }

    /// Converts an error of a command that opens a store: options of the library are not options of the program.
    pub(crate) fn of_store(error: Error) -> Self {
        match &error {
            Error::NotWritable { path } => Self::Damage(format!(
                "{}: the folder can't be written; change its permissions",
                path.display()
            )),
            _ => Self::Store(error),
        }
    }

    /// The message for the user, if any.
    pub(crate) fn message(&self) -> Option<String> {
        let message = match self {
            Self::NotFound => None,
            // `tamis scan DIR | head`: the reader closed the pipe.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Self::Output(error) => Some(format!("cannot write the output: {error}")),
            Self::Store(error) => Some(error.to_string()),
            Self::Usage(text) | Self::Damage(text) | Self::Input(text) | Self::Interrupted(text) => {
                Some(text.clone())
            }
        };
        message.map(with_advice)
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

/// Texts of the standard library for values that are not numbers, and plain ones.
const NUMBER_TEXTS: &[(&str, &str)] = &[
    ("invalid digit found in string", "give a whole number"),
    ("cannot parse integer from empty string", "give a whole number"),
    ("number too large to fit in target type", "give a smaller number"),
    ("number too small to fit in target type", "give a greater number"),
    ("invalid float literal", "give a number"),
    ("cannot parse float from empty string", "give a number"),
];

/// The message for a wrong command line, with what to do about numbers that are not accepted.
pub(crate) fn usage_text(error: &clap::Error) -> String {
    let mut text = error.render().to_string();
    for (library, plain) in NUMBER_TEXTS {
        text = text.replace(library, plain);
    }
    let in_range = |line: &str| {
        let (start, range) = line.rsplit_once(" is not in ")?;
        let (lower, upper) = range.split_once("..=")?;
        let (start, _) = start.rsplit_once(": ")?;
        Some(format!("{start}: give a number from {lower} to {upper}"))
    };
    let lines: Vec<_> =
        text.split('\n').map(|line| in_range(line).unwrap_or_else(|| line.to_owned())).collect();
    lines.join("\n")
}

/// Adds what to do to a message that ends with an error of the operating system.
fn with_advice(message: String) -> String {
    let code = message.strip_suffix(')').and_then(|text| text.rsplit_once("(os error "));
    let kind =
        code.and_then(|(_, code)| code.parse().ok()).map(|code| io::Error::from_raw_os_error(code).kind());
    let advice = match kind {
        None => return message,
        // Its kind has no name.
        Some(_) if message.contains("Too many open files") => {
            "close other programs, or raise the limit (`ulimit -n`)"
        }
        Some(io::ErrorKind::NotFound) => "check that the path exists",
        Some(io::ErrorKind::PermissionDenied) => "check the permissions of the file and its folder",
        Some(io::ErrorKind::AlreadyExists) => "name another path",
        Some(io::ErrorKind::NotADirectory) => "a part of the path is a file; check the path",
        Some(io::ErrorKind::IsADirectory) => "the path is a folder; name a file",
        Some(io::ErrorKind::ReadOnlyFilesystem) => "name a path on a file system that can be written",
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => "free some space and try again",
        Some(io::ErrorKind::FileTooLarge) => "raise the limit of file sizes (`ulimit -f`)",
        Some(_) => "check the path and the disk",
    };
    format!("{message}; {advice}")
}

/// A path in full, so that it can be compared with those of the library.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests;
