//! What a writer brings to its group.

use super::group::Item;
use crate::{batch::WriteBatch, options::Durability};

/// A batch and what it has to survive.
#[derive(Debug)]
pub(crate) struct Request {
    pub(super) batch: WriteBatch,
    pub(super) durability: Durability,
}

impl Item for Request {
    fn is_quick(&self) -> bool {
        self.durability != Durability::Synced
    }
}
