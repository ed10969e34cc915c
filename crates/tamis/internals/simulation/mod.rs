//! The seam for simulations of the whole store, with the feature `simulation`. The feature is for the tool `tamis-sim`; on threads on
//! which no hooks are installed it changes nothing, and programs have no use for it.

use crate::db::Keyspace;

pub use crate::sync::hooks::{CommittedEntry, EntryKind, Hooks, install, put_in};

/// The number of a keyspace in the hooks.
pub fn keyspace_id(keyspace: &Keyspace) -> u32 {
    keyspace.id()
}
