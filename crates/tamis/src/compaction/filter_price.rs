//! The last choices of filters of each level: the next table mostly gets the same filters (`table/last_choice.rs`).

use std::{collections::BTreeMap, sync::Arc};

use crate::{sync::Mutex, table::last_choice::LastChoice};

/// The last choices that are kept.
const CHOICE_COUNT_MAX: usize = 4_096;

/// The last choices of filters, by keyspace and level.
#[derive(Debug, Default)]
pub(crate) struct LastChoices(Mutex<BTreeMap<(u64, usize), Arc<LastChoice>>>);

impl LastChoices {
    /// That of a level of a keyspace.
    pub(crate) fn of(&self, keyspace: u64, level: usize) -> Arc<LastChoice> {
        let mut choices = self.0.lock();
        if choices.len() >= CHOICE_COUNT_MAX {
            // Keyspaces may have been dropped.
            choices.clear();
        }
        Arc::clone(choices.entry((keyspace, level)).or_default())
    }
}

#[cfg(test)]
mod tests;
