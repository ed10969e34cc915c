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

use super::{Client, Judgement};
use crate::{
    model::{Bounds, Entry, Model, Value, short},
    ops::{Change, Part, Way},
    scan_check::bounds_text,
};

/// A transaction, and its reads and writes so far.
struct Open {
    transaction: Transaction,
    sequence: u64,
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
        EntryKind::Put | EntryKind::Delete => point(&entry.key),
    }
}

/// The key of a get.
fn key_of(part: &Part) -> &[u8] {
    if let Part::Get(_, key) = part { key } else { &[] }
}

impl Open {
    /// The entries that the transaction sees within bounds.
    fn view(&self, model: &Model, keyspace: u32, bounds: &Bounds) -> BTreeMap<Vec<u8>, Value> {
        let entries = model.entries(keyspace, bounds, self.sequence);
        let mut view: BTreeMap<_, _> = entries.map(|(key, value)| (key.to_vec(), value)).collect();
        for write in self.writes.iter().filter(|write| write.keyspace == keyspace) {
            match write.kind {
                EntryKind::Put if bounds.contains(&write.key) => {
                    view.insert(write.key.clone(), Value::of(&write.value));
                }
                EntryKind::Put => {}
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
        self.store.shared.model.lock().unpin(low);
        judgement
    }

    fn transact_since(&self, low: u64, parts: &[Part], way: Way, durability: Durability) -> Judgement {
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
        if !states.contains(&sequence) && !self.store.life.is_off() {
            return Err(format!("a transaction is at {sequence}, which is none of the states {states:?}"));
        }
        let mut open = Open { transaction, sequence, writes: Vec::new(), reads: Vec::new() };
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
        let mut expected: Vec<_> = {
            let model = self.store.shared.model.lock();
            open.view(&model, id, &bounds).into_iter().collect()
        };
        let mut read = bounds.clone();
        if let Part::Range(_, _, is_backward, limit) = part {
            if *is_backward {
                expected.reverse();
            }
            expected.truncate(*limit);
            // The part of the range that the scan has passed.
            if let Some((last, _)) = found.last().filter(|_| found.len() == *limit) {
                let end = if *is_backward { &mut read.0 } else { &mut read.1 };
                *end = Bound::Included(last.clone());
            }
        }
        if found != expected {
            let (count, wanted) = (found.len(), expected.len());
            let (text, name) = (bounds_text(&bounds), keyspace.name().to_owned());
            return ControlFlow::Break(Err(format!(
                "a transaction at {} read {count} entries of {text} in {name} instead of {wanted}",
                open.sequence
            )));
        }
        // A get of an own write reads nothing of others.
        let is_written =
            |key| open.writes.iter().any(|write| write.keyspace == id && bounds_of(write).contains(key));
        if !matches!(part, Part::Get(_, key) if is_written(key)) {
            open.reads.push((id, read));
        }
        ControlFlow::Continue(())
    }

    fn write_in(&self, open: &mut Open, keyspace: &Keyspace, change: &Change) -> ControlFlow<Judgement> {
        let Some(entry) = Self::entry_of(keyspace, change) else { return ControlFlow::Continue(()) };
        let written = match change {
            Change::Put(key, _) => open.transaction.put(keyspace, key, &entry.value),
            Change::Delete(key) => open.transaction.delete(keyspace, key),
            Change::DeleteRange(bounds) => open.transaction.delete_range(keyspace, bounds.clone()),
        };
        match written {
            Ok(()) => open.writes.push(entry),
            // It does not fit into a memtable: the transaction stays as it was.
            Err(Error::BatchTooLarge { .. }) => {}
            Err(error) => {
                return ControlFlow::Break(self.store.judge("a write of a transaction", &error, None));
            }
        }
        ControlFlow::Continue(())
    }

    fn commit(&self, open: Open, way: Way, durability: Durability) -> Judgement {
        let Open { transaction, sequence, writes, mut reads } = open;
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
            let entries = |state| model.entries(*keyspace, bounds, state);
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
