//! The states in which stores are measured.

use crate::failure::{Failure, Result};

/// A state of the stores; all workloads of a state share one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Empty, and filled by the workload itself.
    Fill,
    /// Filled at random, flushed, and without pending compactions.
    Settled,
    /// The settled store after its mixes, fully compacted.
    Compacted,
    /// Filled at random in eight parts, each flushed into a separate run, without compactions.
    Unmerged,
}

impl State {
    /// All states in run order.
    pub const ALL: &[Self] = &[Self::Fill, Self::Settled, Self::Compacted, Self::Unmerged];

    /// Name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Settled => "settled",
            Self::Compacted => "compacted",
            Self::Unmerged => "unmerged",
        }
    }

    /// Title of its table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Fill => "Fills, including the flush",
            Self::Settled => "Filled at random and settled",
            Self::Compacted => "Compacted",
            Self::Unmerged => "Eight overlapping runs",
        }
    }

    /// Returns the state with this name.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|state| state.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|state| state.name()).collect();
            Failure::new(format!("unknown state {name:?}; give one of {}", names.join(", ")))
        })
    }

    /// The folder of its store; the compacted store is the settled one.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Settled | Self::Compacted => "settled",
            Self::Unmerged => "unmerged",
        }
    }
}
