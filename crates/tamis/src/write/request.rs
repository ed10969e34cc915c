//! The item that a writer submits to group commit.

use super::group::Item;
use crate::{batch::WriteBatch, options::Durability, transaction::condition::Condition};

/// A batch and its durability.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(super) batch: WriteBatch,
    pub(super) durability: Durability,
    /// The batch of a transaction is committed only if this holds.
    pub(super) condition: Option<Box<Condition>>,
}

impl Item for Request {
    fn is_quick(&self) -> bool {
        self.durability != Durability::Synced && !self.leads()
    }

    /// An exclusive transaction begins.
    fn leads(&self) -> bool {
        self.batch.is_empty()
    }

    fn weight(&self) -> u32 {
        // The fixed cost of a write, in bytes that are written in the same time.
        u32::try_from(self.batch.size_bytes()).unwrap_or(u32::MAX).saturating_add(128)
    }
}
