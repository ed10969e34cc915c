//! A cursor over the entries of a memtable.
//!
//! Nodes have forward links only. `prev` searches once for a node about sixteen entries before the current one, steps from
//! there to the current one, and stores the nodes in between: the next calls of `prev` use them. So a backward step
//! costs a sixteenth of a search, and no entry needs a backward link.

use std::{ptr, sync::Arc};

use super::{
    Memtable,
    node::{Node, NodeRef},
    skip_list::Place,
};
use crate::{
    cursor::Cursor,
    error::Result,
    key::{BoundKind, Kind, Sequence},
    slice::Slice,
};

/// See the head of this file, and [`crate::cursor`] for the contract.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    /// A node of the memtable; null while not valid.
    node: *mut Node,
    /// Nodes immediately before `node`, the nearest last.
    before: Vec<*mut Node>,
}

// SAFETY: the nodes belong to the memtable, which the cursor keeps alive and which may be shared between threads.
unsafe impl Send for MemtableCursor {}

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> Self {
        Self { memtable, node: ptr::null_mut(), before: Vec::new() }
    }

    fn node(&self) -> Option<NodeRef<'_>> {
        // SAFETY: null or a node of the memtable that the cursor keeps alive; it was loaded with acquire by this thread or
        // by the one that sent the cursor here.
        unsafe { NodeRef::from_ptr(self.node) }
    }

    fn seek_with(&mut self, find: impl for<'a> Fn(&'a Memtable) -> Option<NodeRef<'a>>) {
        self.before.clear();
        self.node = find(&self.memtable).map_or(ptr::null_mut(), NodeRef::as_ptr);
    }
}

impl Cursor for MemtableCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.seek_with(|memtable| memtable.list.first());
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.seek_with(|memtable| memtable.list.last());
        Ok(())
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        self.seek_with(|memtable| memtable.list.find(&Place::before_entry(key, sequence)));
        Ok(())
    }

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        let place = match kind {
            BoundKind::Included => Place::after_key(key),
            BoundKind::Excluded => Place::before_key(key),
        };
        self.seek_with(|memtable| memtable.list.find_last_before(&place));
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.is_valid());
        if !self.before.is_empty() {
            self.before.clear();
        }
        // SAFETY: every node has level 0.
        let next = self.node().and_then(|node| unsafe { node.next(0) });
        self.node = next.map_or(ptr::null_mut(), NodeRef::as_ptr);
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        debug_assert!(self.is_valid());
        if self.before.is_empty() {
            let mut before = std::mem::take(&mut self.before);
            if let Some(node) = self.node() {
                let place = Place::before_entry(node.key(), node.sequence());
                // Searches for a node with more than four levels: one of 2^4.
                self.memtable.list.collect_before(&place, 4, &mut before);
            }
            self.before = before;
        }
        self.node = self.before.pop().unwrap_or(ptr::null_mut());
        Ok(())
    }

    fn is_valid(&self) -> bool {
        !self.node.is_null()
    }

    fn key(&self) -> &[u8] {
        debug_assert!(self.is_valid());
        self.node().map_or(&[], NodeRef::key)
    }

    fn sequence(&self) -> Sequence {
        debug_assert!(self.is_valid());
        self.node().map_or(0, NodeRef::sequence)
    }

    fn kind(&self) -> Kind {
        debug_assert!(self.is_valid());
        self.node().map_or(Kind::Tombstone, NodeRef::kind)
    }

    fn value(&self) -> &[u8] {
        debug_assert!(self.is_valid());
        self.node().map_or(&[], NodeRef::value)
    }

    fn value_slice(&self) -> Slice {
        Slice::from(self.value())
    }
}
