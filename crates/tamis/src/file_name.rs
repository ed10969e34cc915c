//! Names and numbers of all files of a database folder (`docs/format/directory.md`).
//!
//! Numbers are allocated by the version set, shared by all kinds, and never reused.

use std::path::{Path, PathBuf};

/// The file that names the current manifest.
pub(crate) const CURRENT: &str = "CURRENT";
/// The file of the sampled queries.
pub(crate) const SAMPLES: &str = "SAMPLES";

/// A file of a database folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FileName {
    Current,
    /// The sampled queries.
    Samples,
    Manifest(u64),
    Log(u64),
    Table(u64),
    /// Filters of one table or partition in their own file.
    Filter(u64),
    /// A sorted view.
    View(u64),
    /// A second name of an ingested table, for the change feed.
    Ingested(u64),
    /// A file being written; renamed when it is complete, otherwise deleted at open.
    Temporary(u64),
    /// A file that is to be deleted; deleted at open if it still exists.
    Obsolete(u64),
}

impl FileName {
    /// Parses a name in the folder; `None` for a foreign file.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            CURRENT => return Some(Self::Current),
            SAMPLES => return Some(Self::Samples),
            _ => {}
        }
        let (number, suffix) = name.split_once('.')?;
        if number.len() < 6
            || (number.len() > 6 && number.starts_with('0'))
            || !number.bytes().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let number = number.parse().ok()?;
        Some(match suffix {
            "manifest" => Self::Manifest(number),
            "log" => Self::Log(number),
            "table" => Self::Table(number),
            "filter" => Self::Filter(number),
            "view" => Self::View(number),
            "ingested" => Self::Ingested(number),
            "tmp" => Self::Temporary(number),
            _ if suffix.ends_with(".obsolete") => Self::Obsolete(number),
            _ => return None,
        })
    }

    /// The name within the folder.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Current => CURRENT.to_owned(),
            Self::Samples => SAMPLES.to_owned(),
            Self::Manifest(number) => format!("{number:06}.manifest"),
            Self::Log(number) => format!("{number:06}.log"),
            Self::Table(number) => format!("{number:06}.table"),
            Self::Filter(number) => format!("{number:06}.filter"),
            Self::View(number) => format!("{number:06}.view"),
            Self::Ingested(number) => format!("{number:06}.ingested"),
            Self::Temporary(number) => format!("{number:06}.tmp"),
            Self::Obsolete(number) => format!("{number:06}.table.obsolete"),
        }
    }

    /// The path in the folder.
    pub(crate) fn path(self, folder: impl AsRef<Path>) -> PathBuf {
        folder.as_ref().join(self.name())
    }

    /// The number, for kinds that have one.
    pub(crate) const fn number(self) -> Option<u64> {
        match self {
            Self::Current | Self::Samples => None,
            Self::Manifest(number)
            | Self::Log(number)
            | Self::Table(number)
            | Self::Filter(number)
            | Self::View(number)
            | Self::Ingested(number)
            | Self::Temporary(number)
            | Self::Obsolete(number) => Some(number),
        }
    }
}
