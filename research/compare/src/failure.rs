//! Failures of commands: one sentence with the remedy.

use std::fmt;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Failure>;

/// A failure, with the message for the user.
#[derive(Debug, Clone)]
pub struct Failure(pub String);

impl Failure {
    /// Creates a failure with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Adds the attempted operation to an error.
pub fn while_doing<T, E: fmt::Display>(
    result: std::result::Result<T, E>,
    what: impl fmt::Display,
) -> Result<T> {
    result.map_err(|error| Failure(format!("{what}: {error}")))
}
