//! The keyspaces whose memtables or tables changed since the scheduler last checked them.
//!
//! Every change of a read state marks its keyspace, and the scheduler takes the marks. Its cost is therefore in proportion to the
//! number of changes, not to the number of keyspaces.

use std::{collections::BTreeMap, mem};

use crate::sync::Mutex;

/// The part of a keyspace that changed. A change of the version includes one of the memtables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Changed {
    Memtables,
    Version,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct ChangedKeyspaces {
    /// By the id of the keyspace.
    marked: Mutex<BTreeMap<u32, Changed>>,
}

impl ChangedKeyspaces {
    /// Marks a keyspace. Call it after the change, so that the reader of the mark sees the changed keyspace.
    pub(crate) fn mark(&self, keyspace: u32, changed: Changed) {
        let mut marked = self.marked.lock();
        let mark = marked.entry(keyspace).or_insert(changed);
        *mark = changed.max(*mark);
    }

    /// Removes and returns all marks.
    pub(crate) fn take(&self) -> BTreeMap<u32, Changed> {
        mem::take(&mut *self.marked.lock())
    }
}
