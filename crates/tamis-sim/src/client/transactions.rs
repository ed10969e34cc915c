//! The transactions of a client. Each read shows the snapshot with the own writes; and if the commit succeeds, the reads (with snapshot isolation the written keys) are the
//! same in the state before it.

use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow, RangeBounds},
};

use tamis::{
    Durability, Error, Isolation, Keyspace, Transaction, TransactionOptions,
    simulation::{EntryKind, keyspace_id},
};

use super::{
    Client, Judgement,
    writes::{is_too_late, system_time},
};
use crate::{
    model::{Bounds, Entry, Model, Moment, Value, short, split_time},
    ops::{Change, Part, Way},
    scan_check::bounds_text,
};

/// A transaction, and its reads and writes so far.
struct Open {
    transaction: Transaction,
    sequence: u64,
    /// The times that its snapshot may have.
    times: Vec<u64>,
    writes: Vec<Entry>,
    /// By keyspace.
    reads: Vec<(u32, Bounds)>,
}

fn point(key: &[u8]) -> Bounds {
    (Bound::Included(key.to_vec()), Bound::Included(key.to_vec()))
}

/// The keys of a write.
fn bounds_of(entry: &Entry) -> Bounds {
    match entry.kind {
        EntryKind::DeleteRange if entry.value.is_empty() => {
            (Bound::Included(entry.key.clone()), Bound::Unbounded)
        }
        EntryKind::DeleteRange => (Bound::Included(entry.key.clone()), Bound::Excluded(entry.value.clone())),
        _ => point(&entry.key),
    }
}

/// The key of a get.
fn key_of(part: &Part) -> &[u8] {
    if let Part::Get(_, key) = part { key } else { &[] }
}

impl Open {
    /// The entries that the transaction sees within bounds.
    fn view(&self, model: &Model, keyspace: u32, bounds: &Bounds, time: u64) -> BTreeMap<Vec<u8>, Value> {
        let entries = model.entries(keyspace, bounds, Moment { sequence: self.sequence, time });
        let mut view: BTreeMap<_, _> = entries.map(|(key, value)| (key.to_vec(), value)).collect();
        for write in self.writes.iter().filter(|write| write.keyspace == keyspace) {
            match write.kind {
                EntryKind::Put if bounds.contains(&write.key) => {
                    view.insert(write.key.clone(), Value::of(&write.value));
                }
                EntryKind::PutUntil if bounds.contains(&write.key) => {
                    let (expires_at, value) = split_time(&write.value);
                    if expires_at > time {
                        view.insert(write.key.clone(), Value::of(value));
                    } else {
                        view.remove(&write.key);
                    }
                }
                EntryKind::Merge if bounds.contains(&write.key) => {
                    let merged = Value::merged(view.get(&write.key).copied(), &write.value);
                    view.insert(write.key.clone(), merged);
                }
                EntryKind::Put | EntryKind::PutUntil | EntryKind::Merge => {}
                EntryKind::Delete => drop(view.remove(&write.key)),
                EntryKind::DeleteRange => {
                    let deleted = bounds_of(write);
                    view.retain(|key, _| !deleted.contains(key));
                }
            }
        }
        view
    }
}

/// The entries of a read.
type Found = tamis::Result<Vec<(Vec<u8>, Value)>>;

/// The range of a read, and the entries that it returns.
fn read_part(open: &Open, keyspace: &Keyspace, part: &Part) -> (Bounds, Found) {
    let Part::Range(_, bounds, is_backward, limit) = part else {
        let key = key_of(part);
        let value = open.transaction.get(keyspace, key);
        let found = value.map(|value| value.map(|value| (key.to_vec(), Value::of(&value))));
        return (point(key), found.map(Vec::from_iter));
    };
    let mut scan = open.transaction.range(keyspace, bounds.clone());
    let entries = std::iter::from_fn(|| if *is_backward { scan.next_back() } else { scan.next() });
    let entries = entries.take(*limit);
    let entries = entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), Value::of(&value))));
    (bounds.clone(), entries.collect())
}

impl Client {
    pub(super) fn transact(&self, parts: &[Part], way: Way, durability: Durability) -> Judgement {
        let low = self.store.shared.model.lock().pin();
        let judgement = self.transact_since(low, parts, way, durability);
        self.store.shared.model.lock().unpin(low.sequence);
        judgement
    }

    fn transact_since(&self, low: Moment, parts: &[Part], way: Way, durability: Durability) -> Judgement {
        let isolation = if way == Way::Snapshot { Isolation::Snapshot } else { Isolation::Serializable };
        let options = TransactionOptions::default().isolation(isolation).durability(durability);
        let begun = match way {
            Way::Exclusive => self.store.db.exclusive_with(options),
            Way::Serializable | Way::Snapshot => Ok(self.store.db.transaction_with(options)),
        };
        let transaction = match begun {
            Ok(transaction) => transaction,
            Err(error) => return self.store.judge("the begin of a transaction", &error, None),
        };
        let sequence = transaction.sequence();
        self.record(sequence);
        let states = self.store.shared.model.lock().states_since(low);
        let times = states.iter().filter(|state| state.sequence == sequence).map(|state| state.time);
        let times: Vec<u64> = times.collect();
        if times.is_empty() && !self.store.life.is_off() {
            return Err(format!("a transaction is at {sequence}, which is none of the states {states:?}"));
        }
        let mut open = Open { transaction, sequence, times, writes: Vec::new(), reads: Vec::new() };
        for part in parts {
            match self.run_part(&mut open, part) {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(judgement) => return judgement,
            }
        }
        self.commit(open, way, durability)
    }

    /// A break ends the transaction without a commit.
    fn run_part(&self, open: &mut Open, part: &Part) -> ControlFlow<Judgement> {
        let number = match part {
            Part::Get(number, _) | Part::Range(number, ..) | Part::Write(number, _) => *number,
        };
        let Some(keyspace) = self.store.keyspace(number) else { return ControlFlow::Continue(()) };
        if let Part::Write(_, change) = part {
            return self.write_in(open, &keyspace, change);
        }
        let faults_before = self.store.life.faults.fault_count();
        let (bounds, found) = read_part(open, &keyspace, part);
        let found = match found {
            _ if self.store.life.is_off() => return ControlFlow::Break(Ok(())),
            Ok(found) => found,
            Err(error) => {
                let judgement = self.store.judge("a read of a transaction", &error, Some(faults_before));
                return ControlFlow::Break(judgement);
            }
        };
        self.record(found.len() as u64);
        let id = keyspace_id(&keyspace);
        let model = self.store.shared.model.lock();
        let views = open.times.iter().map(|&time| {
            let mut view: Vec<_> = open.view(&model, id, &bounds, time).into_iter().collect();
            if let Part::Range(_, _, is_backward, limit) = part {
                if *is_backward {
                    view.reverse();
                }
                view.truncate(*limit);
            }
            view
        });
        let views: Vec<Vec<_>> = views.collect();
        drop(model);
        let mut read = bounds.clone();
        if let Part::Range(_, _, is_backward, limit) = part {
            // The part of the range that the scan has passed.
            if let Some((last, _)) = found.last().filter(|_| found.len() == *limit) {
                let end = if *is_backward { &mut read.0 } else { &mut read.1 };
                *end = Bound::Included(last.clone());
            }
        }
        if !views.contains(&found) {
            let (count, wanted) = (found.len(), views.first().map_or(0, Vec::len));
            let (text, name) = (bounds_text(&bounds), keyspace.name().to_owned());
            return ControlFlow::Break(Err(format!(
                "a transaction at {} read {count} entries of {text} in {name} instead of {wanted}",
                open.sequence
            )));
        }
        // A get of an own write reads nothing of others, except below operands.
        let is_of = |write: &&Entry, key| write.keyspace == id && bounds_of(write).contains(key);
        let is_written = |key| {
            let newest = open.writes.iter().rfind(|write| is_of(write, key));
            newest.is_some_and(|write| write.kind != EntryKind::Merge)
        };
        if !matches!(part, Part::Get(_, key) if is_written(key)) {
            open.reads.push((id, read));
        }
        ControlFlow::Continue(())
    }

    fn write_in(&self, open: &mut Open, keyspace: &Keyspace, change: &Change) -> ControlFlow<Judgement> {
        let change = &self.timed(keyspace, change);
        let Some(entry) = Self::entry_of(keyspace, change) else { return ControlFlow::Continue(()) };
        let written = match change {
            Change::Put(key, _) => open.transaction.put(keyspace, key, &entry.value),
            Change::PutUntil(key, ..) => {
                let (time, value) = split_time(&entry.value);
                open.transaction.put_until(keyspace, key, value, system_time(time))
            }
            Change::Merge(key, _) => open.transaction.merge(keyspace, key, &entry.value),
            Change::Delete(key) => open.transaction.delete(keyspace, key),
            Change::DeleteRange(bounds) => open.transaction.delete_range(keyspace, bounds.clone()),
        };
        match written {
            Ok(()) => open.writes.push(entry),
            // It does not fit into a memtable: the transaction stays as it was.
            Err(Error::BatchTooLarge { .. }) => {}
            Err(error) if is_too_late(&error) => {}
            Err(error) => {
                return ControlFlow::Break(self.store.judge("a write of a transaction", &error, None));
            }
        }
        ControlFlow::Continue(())
    }

    fn commit(&self, open: Open, way: Way, durability: Durability) -> Judgement {
        let Open { transaction, sequence, times, writes, mut reads } = open;
        let shared = &self.store.shared;
        let client = crate::schedule::current();
        shared.model.lock().begin_write(client, writes.clone());
        let faults_before = self.store.life.faults.fault_count();
        let result = transaction.commit();
        self.record(u64::from(result.is_ok()));
        let mut model = shared.model.lock();
        let ended = model.end_write(client, result.is_ok());
        if self.store.life.is_off() {
            return Ok(());
        }
        let last = ended?;
        match result {
            Ok(()) if writes.is_empty() => return Ok(()),
            Ok(()) => {}
            Err(Error::Conflict { .. }) if model.visible() > sequence && !writes.is_empty() => return Ok(()),
            Err(error) => {
                drop(model);
                // The check of a commit reads tables.
                return self
                    .store
                    .judge("a commit", &error, Some(faults_before))
                    .or_else(|_| self.store.judge("a commit", &error, None));
            }
        }
        if durability >= Durability::Buffered {
            model.acknowledge(last, durability == Durability::Synced);
        }
        if way == Way::Snapshot {
            reads = writes.iter().map(|write| (write.keyspace, bounds_of(write))).collect();
        }
        let before = last - writes.len() as u64;
        for (keyspace, bounds) in &reads {
            let time = times.first().copied().unwrap_or(0);
            let entries = |sequence| model.entries(*keyspace, bounds, Moment { sequence, time });
            if !entries(sequence).eq(entries(before)) {
                let key = entries(before).next().map(|(key, _)| short(key));
                return Err(format!(
                    "a transaction read {} at {sequence}, which was changed ({key:?}) before it committed at {last}",
                    bounds_text(bounds)
                ));
            }
        }
        Ok(())
    }
}
