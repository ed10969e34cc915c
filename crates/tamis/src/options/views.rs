//! When the store keeps sorted views.

use std::{fmt, str::FromStr};

use crate::error::{Error, Result};

/// When a keyspace keeps sorted views: files with the order of all entries of several runs, which scans use instead of a merge.
/// Results are the same with and without them. [`crate::Keyspace::set_options`] changes the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Views {
    /// A view of three or more runs is built when seeks have lost as much time without it as the build takes. A keyspace that is not
    /// scanned has none.
    #[default]
    Auto,
    /// A view over all runs is built whenever no flush or compaction is due, regardless of the cost: for keyspaces that are mostly read. Each
    /// compaction makes the view obsolete.
    On,
    /// None is built, and existing ones are removed.
    Off,
}

impl fmt::Display for Views {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

impl FromStr for Views {
    type Err = Error;

    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown name.
    fn from_str(text: &str) -> Result<Self> {
        let known = [Self::Auto, Self::On, Self::Off];
        known.into_iter().find(|views| views.to_string() == text).ok_or_else(|| Error::InvalidArgument {
            what: "views",
            got: format!("{text:?}"),
            expected: "use `auto`, `on` or `off`".to_owned(),
        })
    }
}
