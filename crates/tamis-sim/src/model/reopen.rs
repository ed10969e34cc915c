//! The end of a life in the model: the store opens at a sequence number, and its content decides which state the model keeps.

use std::collections::VecDeque;

use tamis::KeyspaceOptions;

use super::{Model, entries::forget};

impl Model {
    /// The store was opened after the end of a life, at a sequence number.
    ///
    /// # Errors
    /// Acknowledged entries are lost, or a batch is there in part.
    pub fn reopen(&mut self, sequence: u64, has_crashed: bool) -> Result<(), String> {
        let least = if has_crashed { self.durable } else { self.buffered };
        if sequence < least {
            let kind = if has_crashed { "synced" } else { "buffered" };
            return Err(format!(
                "the store opened at sequence number {sequence}, but writes up to {least} were acknowledged as {kind}"
            ));
        }
        self.opened = Some((least, has_crashed));
        let visible = self.visible();
        let mut uncertain = std::mem::take(&mut self.uncertain);
        uncertain.retain(|batch| batch.first().is_some_and(|(first, _)| *first > visible));
        uncertain.retain(|batch| batch.last().is_some_and(|(last, _)| *last <= sequence));
        let spans = uncertain.iter().filter_map(|batch| Some((batch.first()?.0, batch.last()?.0)));
        self.batches.extend(spans);
        for (number, entry) in uncertain.into_iter().flatten() {
            self.apply(number, entry);
        }
        self.last_entry = sequence;
        for keyspace in self.keyspaces.values_mut() {
            keyspace.entries.retain(|_, versions| {
                versions.retain(|(number, _)| *number <= sequence);
                !versions.is_empty()
            });
        }
        self.batches.retain(|(_, last)| *last <= sequence);
        self.pins.clear();
        self.pending.clear();
        self.ingests.clear();
        self.states = VecDeque::from([sequence]);
        Ok(())
    }

    /// The states that the content of the store may have after [`Model::reopen`], newest first. The number of the open may be above all entries
    /// that a crash has left: a keyspace was created when the log was longer. So the content decides.
    pub fn candidates(&self) -> Vec<u64> {
        let Some((least, _)) = self.opened else { return vec![self.visible()] };
        let mut ends: Vec<u64> =
            self.batches.iter().map(|(_, last)| *last).filter(|last| *last >= least).collect();
        ends.push(least);
        ends.sort_unstable_by(|first, second| second.cmp(first));
        ends.dedup();
        ends
    }

    /// The content of the store after [`Model::reopen`] is that of `state`: the model forgets what is above.
    pub fn resolve(&mut self, state: u64) {
        let Some((_, has_crashed)) = self.opened.take() else { return };
        self.last_entry = state;
        for keyspace in self.keyspaces.values_mut() {
            keyspace.entries.retain(|_, versions| {
                versions.retain(|(number, _)| *number <= state);
                !versions.is_empty()
            });
        }
        self.batches.retain(|(_, last)| *last <= state);
        self.buffered = state;
        if has_crashed {
            self.acknowledge(state, true);
        }
        self.forget_old();
    }

    /// Forgets versions that no reader can see any more.
    pub fn forget_old(&mut self) {
        let keep_from =
            self.durable.min(self.pins.keys().next().copied().unwrap_or(u64::MAX)).min(self.visible());
        for keyspace in self.keyspaces.values_mut() {
            keyspace.entries.retain(|_, versions| {
                forget(versions, keep_from);
                versions.len() > 1
                    || versions.first().is_some_and(|(number, value)| value.is_some() || *number > keep_from)
            });
        }
    }

    /// Compares the keyspaces that an open has found, after a kill or a crash possibly in the middle of a create or drop.
    ///
    /// # Errors
    /// A keyspace is lost, or one exists that no client created.
    pub fn reconcile(
        &mut self,
        found: &[(String, u32, KeyspaceOptions)],
        (default, is_read_only): (&str, bool),
    ) -> Result<(), String> {
        let lost = self
            .names
            .keys()
            .find(|name| !self.dropping.contains(*name) && !found.iter().any(|(other, ..)| other == *name));
        if let Some(name) = lost {
            return Err(format!("the keyspace {name} is lost"));
        }
        for (name, id, _) in found {
            match self.names.get(name) {
                Some((known, _))
                    if known == id || self.dropping.contains(name) && self.creating.contains_key(name) => {}
                None if self.creating.contains_key(name) || name == default => {}
                _ => {
                    return Err(format!(
                        "the open has found the keyspace {name} with number {id}, but no client created it"
                    ));
                }
            }
        }
        if is_read_only {
            // The open makes nothing durable: a crash may still lose a new keyspace, or the drop of one.
            let is_found = |name: &String| found.iter().any(|(other, ..)| other == name);
            let gone = self.names.iter().filter(|(name, _)| !is_found(name));
            self.creating.extend(gone.map(|(name, (_, options))| (name.clone(), options.clone())));
            let new = found.iter().map(|(name, ..)| name).filter(|name| !self.names.contains_key(*name));
            self.dropping.extend(new.cloned());
        }
        self.names = found.iter().map(|(name, id, options)| (name.clone(), (*id, options.clone()))).collect();
        self.has_dropped = false;
        if is_read_only {
            return Ok(());
        }
        self.dropping.clear();
        self.creating.clear();
        let names = &self.names;
        self.keyspaces.retain(|id, _| names.values().any(|(other, _)| other == id));
        Ok(())
    }
}
