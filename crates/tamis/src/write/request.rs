//! What a writer brings to its group.

use crate::{batch::WriteBatch, options::Durability};

/// A batch and what it has to survive.
#[derive(Debug)]
pub(crate) struct Request {
    pub(super) batch: WriteBatch,
    pub(super) durability: Durability,
}
