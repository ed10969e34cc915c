//! The truth: all versions of all entries, by the sequence numbers that the store has given them.
//!
//! The store reports each committed entry ([`tamis::simulation::Hooks`]). The model checks that a client wrote it, and applies it. Each value
//! of the visible sequence number is a *state* that readers may see. A read is right if it equals one of the states between its begin
//! and its end.
//!
//! After a kill or a crash the store opens at some sequence number, and the model forgets what is above it. This number is never below
//! the writes that were acknowledged as durable.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    ops::Bound,
    sync::Arc,
};

use tamis::{
    KeyspaceOptions,
    simulation::{CommittedEntry, EntryKind},
};
use xxhash_rust::xxh3::xxh3_64;

mod entries;
mod reopen;

pub use entries::{Bounds, Entry, Moment, Value, half_open, prefix_bounds, short, split_time};
use entries::{Held, Versions, add_version, entry_hash, is_range, value_at};

use crate::{
    operator::MERGED_LENGTH,
    schedule::{Schedule, mix},
    world::milliseconds,
};

/// A batch that a client is writing.
#[derive(Debug, Default)]
struct Pending {
    entries: Vec<Entry>,
    /// Equal for equal batches.
    hash: u64,
    /// The number of its last entry, once it is committed.
    last_sequence: Option<u64>,
}

impl Pending {
    fn is(&self, batch: &[CommittedEntry<'_>]) -> bool {
        let same = |(own, other): (&Entry, &CommittedEntry<'_>)| {
            own.keyspace == other.keyspace
                && own.kind == other.kind
                && own.key == other.key
                && own.value == other.value
        };
        self.last_sequence.is_none()
            && self.entries.len() == batch.len()
            && self.entries.iter().zip(batch).all(same)
    }
}

/// A keyspace of the model.
#[derive(Debug, Default)]
struct Keyspace {
    entries: BTreeMap<Vec<u8>, Versions>,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub struct Model {
    keyspaces: BTreeMap<u32, Keyspace>,
    /// The keyspaces by name, with their options.
    pub names: BTreeMap<String, (u32, KeyspaceOptions)>,
    /// Keyspaces that were created or dropped in this life, or that a client was creating or dropping when it ended.
    pub creating: BTreeMap<String, KeyspaceOptions>,
    /// See `creating`.
    pub dropping: BTreeSet<String>,
    /// A client has dropped a keyspace, or tried it, in this life.
    pub has_dropped: bool,
    /// The values of the visible sequence number that some reader may still use, ascending.
    states: VecDeque<u64>,
    /// Sequence numbers that readers and snapshots use, with their number.
    pins: BTreeMap<u64, usize>,
    /// A crash of the machine keeps entries up to here.
    durable: u64,
    /// A kill of the process keeps entries up to here.
    buffered: u64,
    /// By client.
    pending: BTreeMap<usize, Pending>,
    /// By client: the tables that it is ingesting.
    pub ingests: BTreeMap<usize, Vec<Entry>>,
    /// Batches and tables that have their numbers, but are not committed: they may exist after a reopen.
    uncertain: Vec<Vec<(u64, Entry)>>,
    /// The number of the last entry. The visible number may be above it: the store also gives numbers to ranges of deleted keys that it
    /// records in memory only.
    last_entry: u64,
    /// First and last number of the batches above `durable`.
    batches: VecDeque<(u64, u64)>,
    number_count: u64,
    /// Bytes of keys and values of the largest batch of the history.
    pub largest_batch_bytes: u64,
    /// Hashes of all entries that were ever put.
    written: HashSet<u64>,
    /// When entries expire.
    expiries: BTreeSet<u64>,
    /// Whose clock is that of the store.
    schedule: Option<Arc<Schedule>>,
    /// Between an open and the comparison with its content: the least number that its content must have, and whether the machine had crashed.
    opened: Option<(u64, bool)>,
}

/// The states between the begin and the end of a read, at the times between them that make a difference.
pub type States = Vec<Moment>;

impl Model {
    /// An empty one, for a store whose clock is that of the schedule.
    pub fn timed_by(schedule: &Arc<Schedule>) -> Self {
        Self { schedule: Some(Arc::clone(schedule)), ..Self::default() }
    }

    /// A number that is returned once.
    pub fn new_number(&mut self) -> u64 {
        self.number_count += 1;
        self.number_count
    }

    /// The visible sequence number.
    pub fn visible(&self) -> u64 {
        self.states.back().copied().unwrap_or(0)
    }

    /// The time of the store.
    pub fn time(&self) -> u64 {
        self.schedule.as_ref().map_or(0, |schedule| milliseconds(schedule.now()))
    }

    /// The times from `from` up to `until` that make a difference.
    pub fn times_between(&self, from: u64, until: u64) -> Vec<u64> {
        let later = (Bound::Excluded(from), Bound::Included(until.max(from + 1)));
        [from].into_iter().chain(self.expiries.range(later).copied().filter(|time| *time <= until)).collect()
    }

    /// Keeps the state that is visible now for a reader; returns it.
    pub fn pin(&mut self) -> Moment {
        let visible = self.visible();
        self.pin_at(visible);
        Moment { sequence: visible, time: self.time() }
    }

    /// Keeps a state.
    pub fn pin_at(&mut self, sequence: u64) {
        *self.pins.entry(sequence).or_default() += 1;
    }

    /// Ends the use of a state.
    pub fn unpin(&mut self, sequence: u64) {
        if let Some(count) = self.pins.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                self.pins.remove(&sequence);
            }
        }
        let oldest = self.pins.keys().next().copied().unwrap_or(u64::MAX);
        while self.states.len() > 1 && self.states.get(1).is_some_and(|next| *next <= oldest) {
            self.states.pop_front();
        }
    }

    /// The states from `low` up to now.
    pub fn states_since(&self, low: Moment) -> States {
        let times = self.times_between(low.time, self.time());
        let states = self.states.iter().copied().filter(|state| *state >= low.sequence);
        states.flat_map(|sequence| times.iter().map(move |&time| Moment { sequence, time })).collect()
    }

    /// Announces a batch.
    pub fn begin_write(&mut self, client: usize, entries: Vec<Entry>) {
        let hash = entries.iter().fold(entries.len() as u64, |hash, entry| {
            let kind = mix(hash, u64::from(entry.keyspace) << 8 | entry.kind as u64);
            mix(mix(kind, xxh3_64(&entry.key)), xxh3_64(&entry.value))
        });
        let bytes = entries.iter().map(|entry| (entry.key.len() + entry.value.len()) as u64 + 64).sum();
        self.largest_batch_bytes = self.largest_batch_bytes.max(bytes);
        self.note_written(&entries);
        self.pending.insert(client, Pending { entries, hash, last_sequence: None });
    }

    fn note_written(&mut self, entries: &[Entry]) {
        for entry in entries {
            let value = match entry.kind {
                EntryKind::Put => entry.value.as_slice(),
                EntryKind::PutUntil => {
                    let (time, value) = split_time(&entry.value);
                    self.expiries.insert(time);
                    value
                }
                _ => continue,
            };
            self.written.insert(entry_hash(&entry.key, Value::of(value)));
        }
    }

    /// Whether a client has ever written this value of the key, or tried it.
    pub fn was_written(&self, key: &[u8], value: Value) -> bool {
        // The values of operands follow from others.
        value.length == MERGED_LENGTH || self.written.contains(&entry_hash(key, value))
    }

    /// A write has returned; returns the number of its last entry.
    ///
    /// # Errors
    /// The sentence that says which promise was broken.
    pub fn end_write(&mut self, client: usize, is_ok: bool) -> Result<u64, String> {
        let Some(mut pending) = self.pending.remove(&client) else { return Ok(0) };
        if is_ok != pending.last_sequence.is_some() {
            // Of two equal batches the model can't know which one was committed first.
            let is_other =
                |other: &&mut Pending| other.hash == pending.hash && is_ok == other.last_sequence.is_some();
            if let Some(other) = self.pending.values_mut().find(is_other) {
                std::mem::swap(&mut pending, other);
            }
        }
        match (is_ok, pending.last_sequence) {
            (true, Some(last)) => Ok(last),
            (true, None) if pending.entries.is_empty() => Ok(0),
            (true, None) => Err("a write returned, but its entries were not committed".to_owned()),
            (false, None) => Ok(0),
            (false, Some(_)) => Err("a write failed, but its entries are visible".to_owned()),
        }
    }

    /// The store will log a batch, or has committed it.
    ///
    /// # Errors
    /// No client has written it.
    pub fn commit(&mut self, batch: &[CommittedEntry<'_>], is_certain: bool) -> Result<(), String> {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(()) };
        self.forget_uncertain(first.sequence);
        let Some(pending) = self.pending.values_mut().find(|pending| pending.is(batch)) else {
            let key = short(first.key);
            return Err(format!(
                "a batch from {:?} of {key} on was committed, but no client wrote it",
                first.kind
            ));
        };
        if !is_certain {
            let entries = pending.entries.iter().zip(batch);
            self.uncertain.push(entries.map(|(own, other)| (other.sequence, own.clone())).collect());
            return Ok(());
        }
        pending.last_sequence = Some(last.sequence);
        self.batches.push_back((first.sequence, last.sequence));
        for (entry, committed) in std::mem::take(&mut pending.entries).into_iter().zip(batch) {
            self.apply(committed.sequence, entry);
        }
        Ok(())
    }

    /// Numbers from this one on are assigned again: what had them is not in the store.
    fn forget_uncertain(&mut self, sequence: u64) {
        self.uncertain.retain(|batch| batch.last().is_some_and(|(last, _)| *last < sequence));
    }

    /// Announces an ingest; `false` if it can't be distinguished from one that another client makes.
    pub fn begin_ingest(&mut self, client: usize, entries: Vec<Entry>) -> bool {
        let name = |entries: &[Entry]| {
            let least = entries.iter().map(|entry| &entry.key).min().cloned();
            (entries.first().map(|entry| entry.keyspace), least)
        };
        let is_new = self.ingests.values().all(|other| name(other) != name(&entries));
        if is_new {
            self.note_written(&entries);
            self.ingests.insert(client, entries);
        }
        is_new
    }

    /// The tables of an ingest will be installed at this number, or are installed.
    ///
    /// # Errors
    /// No client has begun it.
    pub fn ingest(
        &mut self,
        (id, smallest): (u32, &[u8]),
        sequence: u64,
        is_certain: bool,
    ) -> Result<(), String> {
        let is_it = |entries: &&Vec<Entry>| {
            let keys = entries.iter().map(|entry| entry.key.as_slice());
            entries.first().is_some_and(|entry| entry.keyspace == id) && keys.min() == Some(smallest)
        };
        let Some(entries) = self.ingests.values().find(is_it).cloned() else {
            return Err(format!(
                "tables from {} on were ingested, but no client has begun it",
                short(smallest)
            ));
        };
        self.forget_uncertain(sequence);
        // The puts of a table are above its range deletes.
        let (deletes, others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.kind == EntryKind::DeleteRange);
        let all = deletes.into_iter().chain(others).map(|entry| (sequence, entry));
        if !is_certain {
            self.uncertain.push(all.collect());
            return Ok(());
        }
        all.for_each(|(sequence, entry)| self.apply(sequence, entry));
        self.batches.push_back((sequence, sequence));
        Ok(())
    }

    /// All entries up to this number are visible.
    ///
    /// # Errors
    /// The number is smaller than an earlier one.
    pub fn publish(&mut self, sequence: u64) -> Result<(), String> {
        let visible = self.visible();
        if sequence < visible {
            return Err(format!("the visible sequence number fell from {visible} to {sequence}"));
        }
        if sequence > visible || self.states.is_empty() {
            self.states.push_back(sequence);
        }
        let oldest = self.pins.keys().next().copied().unwrap_or(u64::MAX);
        while self.states.len() > 1 && self.states.get(1).is_some_and(|next| *next <= oldest) {
            self.states.pop_front();
        }
        Ok(())
    }

    fn apply(&mut self, sequence: u64, entry: Entry) {
        self.last_entry = sequence;
        let keep_from =
            self.durable.min(self.pins.keys().next().copied().unwrap_or(u64::MAX)).min(self.visible());
        let keyspace = self.keyspaces.entry(entry.keyspace).or_default();
        match entry.kind {
            EntryKind::Put | EntryKind::PutUntil | EntryKind::Merge | EntryKind::Delete => {
                let versions = keyspace.entries.entry(entry.key).or_default();
                let held = match entry.kind {
                    EntryKind::Put => Some(Held { value: Value::of(&entry.value), expires_at: u64::MAX }),
                    EntryKind::PutUntil => {
                        let (expires_at, value) = split_time(&entry.value);
                        Some(Held { value: Value::of(value), expires_at })
                    }
                    EntryKind::Merge => {
                        // A keyspace with an operator has no entries that expire.
                        let base = versions.last().and_then(|(_, held)| held.map(|held| held.value));
                        Some(Held { value: Value::merged(base, &entry.value), expires_at: u64::MAX })
                    }
                    _ => None,
                };
                add_version(versions, (sequence, held), keep_from);
            }
            EntryKind::DeleteRange => {
                let upper = match entry.value.is_empty() {
                    true => Bound::Unbounded,
                    false => Bound::Excluded(entry.value),
                };
                for (_, versions) in keyspace.entries.range_mut((Bound::Included(entry.key), upper)) {
                    if versions.last().is_some_and(|(_, value)| value.is_some()) {
                        add_version(versions, (sequence, None), keep_from);
                    }
                }
            }
        }
    }

    /// All entries that are visible now survive a crash, or a kill.
    pub fn acknowledge(&mut self, sequence: u64, is_durable: bool) {
        let sequence = sequence.min(self.last_entry);
        self.buffered = self.buffered.max(sequence);
        if is_durable {
            self.durable = self.durable.max(sequence);
            while self.batches.front().is_some_and(|(_, last)| *last <= self.durable) {
                self.batches.pop_front();
            }
        }
    }

    /// The value of a key in a state.
    pub fn get(&self, keyspace: u32, key: &[u8], state: Moment) -> Option<Value> {
        value_at(self.keyspaces.get(&keyspace)?.entries.get(key)?, state)
    }

    /// The first entry within bounds in a state, or the last one.
    pub fn first(
        &self,
        keyspace: u32,
        bounds: &Bounds,
        state: Moment,
        is_last: bool,
    ) -> Option<(&[u8], Value)> {
        if !is_range(bounds) {
            return None;
        }
        let entries = &self.keyspaces.get(&keyspace)?.entries;
        let mut range = entries.range::<Vec<u8>, _>((bounds.0.as_ref(), bounds.1.as_ref()));
        if is_last {
            range.rev().find_map(|(key, versions)| Some((key.as_slice(), value_at(versions, state)?)))
        } else {
            range.find_map(|(key, versions)| Some((key.as_slice(), value_at(versions, state)?)))
        }
    }

    /// All entries within bounds in a state.
    pub fn entries<'a>(
        &'a self,
        keyspace: u32,
        bounds: &Bounds,
        state: Moment,
    ) -> impl DoubleEndedIterator<Item = (&'a [u8], Value)> {
        let range = self
            .keyspaces
            .get(&keyspace)
            .filter(|_| is_range(bounds))
            .map(|keyspace| keyspace.entries.range::<Vec<u8>, _>((bounds.0.as_ref(), bounds.1.as_ref())));
        range
            .into_iter()
            .flatten()
            .filter_map(move |(key, versions)| Some((key.as_slice(), value_at(versions, state)?)))
    }

    /// The bytes of keys and values that are visible now, or expired.
    pub fn live_bytes(&self) -> u64 {
        let state = Moment { sequence: self.visible(), time: 0 };
        let all: Bounds = (Bound::Unbounded, Bound::Unbounded);
        let of = |id: &u32| {
            self.entries(*id, &all, state).map(|(key, value)| (key.len() + value.length) as u64).sum::<u64>()
        };
        self.names.values().map(|(id, _)| of(id)).sum()
    }
}
