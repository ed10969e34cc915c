//! How the runs of a keyspace are kept.

use std::{fmt, str::FromStr};

use super::refuse;
use crate::error::{Error, Result};

/// How a keyspace keeps its runs. The layout decides what reads, writes and space cost, never what reads return.
///
/// A keyspace is created with the layout of [`crate::KeyspaceOptions::layout`], and [`crate::Keyspace::set_options`] changes it.
///
/// As text: `leveled`, `tiered`, `partitioned`, or one of the last two with parameters: `tiered:runs_per_level=N`,
/// `partitioned:tables_per_partition=N`.
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
    /// Many partitions, which are disjoint key ranges, each with few tables (RemixDB). A flush adds tables to the partitions that it
    /// touches and rewrites none; where that would cost too much for few entries, they stay in memory and in the log until the next
    /// flush. A partition with too many tables is compacted alone: its newest runs are merged, or it is split.
    /// Writes cost the least where they are concentrated on parts of the key space, and a load in key order is never rewritten. Use
    /// small tables: [`crate::KeyspaceOptions::memtable_bytes`] / 64 to / 16.
    Partitioned {
        /// The maximum number of tables of a partition (4 to 48). More are compacted. Default: 10.
        tables_per_partition: u32,
    },
}

const RUNS_PER_LEVEL: &str = "runs_per_level";
const SPACE_AMPLIFICATION: &str = "space_amplification_percent";
const TABLES_PER_PARTITION: &str = "tables_per_partition";

/// The number of tables in each partition that a split creates: a fifth of the maximum, as in RemixDB (2 of 10).
pub(crate) const fn tables_after_split(tables_per_partition: u32) -> usize {
    let fifth = tables_per_partition as usize / 5;
    if fifth > 0 { fifth } else { 1 }
}

impl Layout {
    /// The tiered layout with its default parameters.
    #[must_use]
    pub const fn tiered() -> Self {
        Self::Tiered { runs_per_level: 4, space_amplification_percent: 300 }
    }

    /// The partitioned layout with its default parameters.
    #[must_use]
    pub const fn partitioned() -> Self {
        Self::Partitioned { tables_per_partition: 10 }
    }

    pub(crate) const fn is_partitioned(&self) -> bool {
        matches!(self, Self::Partitioned { .. })
    }

    /// The number of runs at which a partition is compacted, if the layout has one.
    pub(crate) const fn level0_trigger(&self, level0_runs: u32) -> usize {
        match self {
            Self::Leveled | Self::Tiered { .. } => level0_runs as usize,
            Self::Partitioned { tables_per_partition } => *tables_per_partition as usize,
        }
    }

    /// # Errors
    /// [`Error::InvalidArgument`] for the first value outside its bounds.
    pub(crate) fn check(&self) -> Result<()> {
        match *self {
            Self::Leveled => {}
            Self::Tiered { runs_per_level, space_amplification_percent } => {
                if !(2..=64).contains(&runs_per_level) {
                    return refuse(RUNS_PER_LEVEL, runs_per_level, "use 2 to 64");
                }
                if !(25..=10_000).contains(&space_amplification_percent) {
                    let expected = "use 25 to 10,000 percent";
                    return refuse(SPACE_AMPLIFICATION, space_amplification_percent, expected);
                }
            }
            Self::Partitioned { tables_per_partition } => {
                if !(4..=48).contains(&tables_per_partition) {
                    return refuse(TABLES_PER_PARTITION, tables_per_partition, "use 4 to 48");
                }
            }
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
            Self::Partitioned { tables_per_partition } => {
                write!(formatter, "partitioned:{TABLES_PER_PARTITION}={tables_per_partition}")
            }
        }
    }
}

impl FromStr for Layout {
    type Err = Error;

    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown name and for values outside their bounds.
    fn from_str(text: &str) -> Result<Self> {
        let expected = "use `leveled`, `tiered`, `partitioned`, `tiered:runs_per_level=N,space_amplification_percent=N`, or \
            `partitioned:tables_per_partition=N`";
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let mut layout = match name.trim() {
            "leveled" => Self::Leveled,
            "tiered" => Self::tiered(),
            "partitioned" => Self::partitioned(),
            _ => return refuse("layout", text, expected),
        };
        for parameter in parameters.split(',').filter(|parameter| !parameter.trim().is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let target = layout.parameter_mut(name.trim());
            match (target, value.trim().parse()) {
                (Some(target), Ok(number)) => *target = number,
                _ => return refuse("layout", text, expected),
            }
        }
        layout.check().map(|()| layout)
    }
}

impl Layout {
    fn parameter_mut(&mut self, name: &str) -> Option<&mut u32> {
        match (self, name) {
            (Self::Tiered { runs_per_level, .. }, RUNS_PER_LEVEL) => Some(runs_per_level),
            (Self::Tiered { space_amplification_percent, .. }, SPACE_AMPLIFICATION) => {
                Some(space_amplification_percent)
            }
            (Self::Partitioned { tables_per_partition }, TABLES_PER_PARTITION) => Some(tables_per_partition),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
