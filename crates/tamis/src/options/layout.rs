//! How the runs of a keyspace are kept.

use std::{fmt, str::FromStr};

use super::refuse;
use crate::error::{Error, Result};

/// How a keyspace keeps its runs. The layout decides what reads, writes and space cost, never what reads return.
///
/// A store is created with the layout of [`crate::KeyspaceOptions::layout`], and an open can change it
/// ([`crate::Options::change_layouts`]).
///
/// As text: `leveled`, `tiered`, or `tiered:runs_per_level=N,space_amplification_percent=N` with either of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// One run in each level below L0, each level larger than the one above by `size_ratio`. A merge rewrites a part of the next
    /// level: reads search few runs, obsolete entries take little space, and writes cost the most.
    #[default]
    Leveled,
    /// Several runs in each level. A full level is merged into one run of the next level, which is not rewritten: writes cost the
    /// least, and reads search up to `runs_per_level - 1` runs in each level. A merge of a large level is one long job: use at
    /// least three [`crate::Options::workers`], so that L0 is compacted meanwhile.
    Tiered {
        /// Number of runs at which a level below L0 is merged into the next level (2 to 64). Default: 4.
        runs_per_level: u32,
        /// When the runs below L0 that are newer than the oldest run take this share of its bytes, all of them are merged. Obsolete
        /// entries thus take at most this share of the oldest run, in addition to L0 and to running jobs. Unit: percent, 25 to
        /// 10,000. Default: 300.
        space_amplification_percent: u32,
    },
}

const RUNS_PER_LEVEL: &str = "runs_per_level";
const SPACE_AMPLIFICATION: &str = "space_amplification_percent";

impl Layout {
    /// The tiered layout with its default parameters.
    #[must_use]
    pub const fn tiered() -> Self {
        Self::Tiered { runs_per_level: 4, space_amplification_percent: 300 }
    }

    /// # Errors
    /// [`Error::InvalidArgument`] for the first value outside its bounds.
    pub(crate) fn check(&self) -> Result<()> {
        let Self::Tiered { runs_per_level, space_amplification_percent } = *self else { return Ok(()) };
        if !(2..=64).contains(&runs_per_level) {
            return refuse(RUNS_PER_LEVEL, runs_per_level, "use 2 to 64");
        }
        if !(25..=10_000).contains(&space_amplification_percent) {
            return refuse(SPACE_AMPLIFICATION, space_amplification_percent, "use 25 to 10,000 percent");
        }
        Ok(())
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leveled => formatter.write_str("leveled"),
            Self::Tiered { runs_per_level, space_amplification_percent } => write!(
                formatter,
                "tiered:{RUNS_PER_LEVEL}={runs_per_level},{SPACE_AMPLIFICATION}={space_amplification_percent}"
            ),
        }
    }
}

impl FromStr for Layout {
    type Err = Error;

    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown name and for values outside their bounds.
    fn from_str(text: &str) -> Result<Self> {
        let expected = "`leveled`, `tiered`, or `tiered:runs_per_level=N,space_amplification_percent=N`";
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let layout = match name.trim() {
            "leveled" if parameters.is_empty() => Self::Leveled,
            "tiered" => Self::tiered(),
            _ => return refuse("layout", text, expected),
        };
        let Self::Tiered { mut runs_per_level, mut space_amplification_percent } = layout else {
            return Ok(layout);
        };
        for parameter in parameters.split(',').filter(|parameter| !parameter.trim().is_empty()) {
            let parsed = parameter.split_once('=').map(|(name, value)| (name.trim(), value.trim().parse()));
            match parsed {
                Some((RUNS_PER_LEVEL, Ok(number))) => runs_per_level = number,
                Some((SPACE_AMPLIFICATION, Ok(number))) => space_amplification_percent = number,
                _ => return refuse("layout", text, expected),
            }
        }
        let layout = Self::Tiered { runs_per_level, space_amplification_percent };
        layout.check().map(|()| layout)
    }
}

#[cfg(test)]
mod tests;
