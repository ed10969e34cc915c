//! What ends a command: a sentence that says what to do.

use std::fmt;

/// The result of whatever may fail here.
pub type Result<T> = std::result::Result<T, Failure>;

/// A failure, as the user reads it.
#[derive(Debug, Clone)]
pub struct Failure(pub String);

impl Failure {
    /// A failure in a sentence.
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

/// Adds what was being done to an error.
pub fn while_doing<T, E: fmt::Display>(
    result: std::result::Result<T, E>,
    what: impl fmt::Display,
) -> Result<T> {
    result.map_err(|error| Failure(format!("{what}: {error}")))
}
