//! In what state a store is measured.

use crate::failure::{Failure, Result};

/// A state of the stores; the workloads of a state share one filled store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Empty, and filled by the workload itself.
    Fill,
    /// Filled at random, flushed, and left alone until no compaction is due.
    Settled,
    /// The settled store, after its mixes, merged as far as the store can.
    Compacted,
    /// Filled at random in eight parts, each flushed into a run of its own; nothing merged.
    Unmerged,
}

impl State {
    /// All states in the order in which they are run.
    pub const ALL: &[Self] = &[Self::Fill, Self::Settled, Self::Compacted, Self::Unmerged];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Settled => "settled",
            Self::Compacted => "compacted",
            Self::Unmerged => "unmerged",
        }
    }

    /// What stands for it above a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Fill => "Fills, with the flush at their end",
            Self::Settled => "Filled at random and settled",
            Self::Compacted => "Compacted",
            Self::Unmerged => "Eight overlapping runs",
        }
    }

    /// The state of a name.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|state| state.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|state| state.name()).collect();
            Failure::new(format!("no state is called {name:?}; there are {}", names.join(", ")))
        })
    }

    /// The folder of its store: a compacted store is the settled one.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Settled | Self::Compacted => "settled",
            Self::Unmerged => "unmerged",
        }
    }
}
