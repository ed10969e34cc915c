//! A client: makes its steps one after the other and judges each result.

mod others;
mod reads;
mod transactions;
mod writes;

use std::sync::Arc;

use tamis::{Changes, Db, Scan, Snapshot, simulation::keyspace_id};

use crate::{
    keys::Shape,
    model::{Bounds, Moment, States, Value},
    ops::{Direction, Move, Op, SLOT_COUNT},
    scan_check::{CheckedScan, Outcome},
    store::Store,
};

/// See the head of this file. It holds its scans and snapshots until the life ends.
pub struct Client {
    /// Its number in the steps; for the model, that of its thread.
    pub id: usize,
    /// The store.
    pub store: Arc<Store>,
    scans: Vec<Option<(CheckedScan, u64)>>,
    /// Each with the states that it may show: one, at different times.
    snapshots: Vec<Option<(Snapshot, States)>>,
    /// The store as another process reads it.
    reader: Option<Db>,
    changes: Option<Changes>,
}

/// The result of a judgement; the error is the sentence that says what is wrong.
pub type Judgement = Result<(), String>;

impl Client {
    /// A client without scans and snapshots.
    pub fn new(id: usize, store: &Arc<Store>) -> Self {
        let slots = || (0..SLOT_COUNT).map(|_| None);
        Self {
            id,
            store: Arc::clone(store),
            scans: slots().collect(),
            snapshots: (0..SLOT_COUNT).map(|_| None).collect(),
            reader: None,
            changes: None,
        }
    }

    /// Makes one step.
    ///
    /// # Errors
    /// The reason why its result is wrong.
    pub fn step(&mut self, op: &Op) -> Judgement {
        match op {
            Op::Write(..) | Op::DeletePrefix(..) | Op::Clear(..) => self.write_one(op),
            Op::Batch(changes, durability) => self.write_batch(changes, *durability),
            Op::Transact(parts, way, durability) => self.transact(parts, *way, *durability),
            Op::DeleteEach(keyspace, first, count) => self.delete_each(*keyspace, *first, *count),
            Op::Fill(keyspace, number, count) => self.fill(*keyspace, *number, *count),
            Op::Persist(durability) => self.persist(*durability),
            Op::Get(keyspace, key) => self.get(*keyspace, key),
            Op::MultiGet(keyspace, keys) => self.multi_get(*keyspace, keys),
            Op::Edge(keyspace, is_last) => self.edge(*keyspace, *is_last),
            Op::Range(keyspace, bounds, direction, limit) => {
                self.range(*keyspace, bounds, *direction, *limit)
            }
            Op::Prefix(keyspace, prefix) => self.prefix(*keyspace, prefix),
            Op::MultiRange(keyspace, ranges) => self.multi_range(*keyspace, ranges),
            Op::Poll(keyspace, number, count) => self.poll(*keyspace, *number, *count),
            Op::Count(keyspace, bounds) => self.count(*keyspace, bounds),
            Op::OpenScan(slot, keyspace, bounds, on_snapshot) => {
                self.open_scan(*slot, *keyspace, bounds, *on_snapshot)
            }
            Op::MoveScan(slot, moves) => self.move_scan(*slot, moves),
            Op::CloseScan(slot) => {
                self.close_scan(*slot);
                Ok(())
            }
            Op::TakeSnapshot(slot) => self.take_snapshot(*slot),
            Op::DropSnapshot(slot) => {
                self.drop_snapshot(*slot);
                Ok(())
            }
            Op::SnapshotGet(slot, keyspace, key) => self.snapshot_get(*slot, *keyspace, key),
            Op::SnapshotRange(slot, keyspace, bounds) => self.snapshot_range(*slot, *keyspace, bounds),
            Op::ReadAsOther(keyspace, bounds, opens) => self.read_as_other(*keyspace, bounds, *opens),
            Op::Changes => self.read_changes(),
            _ => self.maintain(op),
        }
    }

    /// Drops scans and snapshots.
    pub fn finish(&mut self) {
        for slot in 0..SLOT_COUNT {
            self.close_scan(slot);
            self.drop_snapshot(slot);
        }
        self.changes = None;
        if let Some(reader) = self.reader.take() {
            self.store.unobserved(|| drop(reader));
        }
    }

    /// The shape of the keys of a keyspace, and their number.
    fn keys_of(&self, number: u64) -> (Shape, u64) {
        let keys = &self.store.shared.profile.keys;
        keys.get(number as usize).copied().unwrap_or((Shape::Dense, 1))
    }

    /// Reads, and returns the result with the states that it may show. An error must have a reason.
    pub(crate) fn read<T>(
        &self,
        what: &str,
        read: impl FnOnce() -> tamis::Result<T>,
    ) -> Result<Option<(T, States)>, String> {
        let low = self.store.shared.model.lock().pin();
        let faults_before = self.store.life.faults.fault_count();
        let result = read();
        let mut model = self.store.shared.model.lock();
        let states = model.states_since(low);
        model.unpin(low.sequence);
        drop(model);
        match result {
            _ if self.store.life.is_off() => Ok(None),
            Ok(value) => Ok(Some((value, states))),
            Err(error) => self.store.judge(what, &error, Some(faults_before)).map(|()| None),
        }
    }

    /// Adds the result of a step to the hash of the history.
    pub(crate) fn record(&self, number: u64) {
        self.store.shared.schedule.record(number);
    }

    fn open_scan(&mut self, slot: u64, number: u64, bounds: &Bounds, on_snapshot: bool) -> Judgement {
        self.close_scan(slot);
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let snapshot = self.snapshots.get(slot as usize).and_then(Option::as_ref).filter(|_| on_snapshot);
        let mut model = self.store.shared.model.lock();
        let low = match snapshot {
            Some((_, states)) => {
                let state = states.first().copied().unwrap_or_default();
                model.pin_at(state.sequence);
                state
            }
            None => model.pin(),
        };
        drop(model);
        let scan = match snapshot {
            Some((snapshot, _)) => snapshot.range(&keyspace, bounds.clone()),
            None => keyspace.range(bounds.clone()),
        };
        let states = match snapshot {
            Some((_, states)) => states.clone(),
            None => self.store.shared.model.lock().states_since(low),
        };
        let begun = snapshot.is_none().then_some(low.time);
        let scan = CheckedScan::new(scan, (keyspace_id(&keyspace), bounds.clone()), states, begun);
        if let Some(place) = self.scans.get_mut(slot as usize) {
            *place = Some((scan, low.sequence));
        }
        Ok(())
    }

    fn move_scan(&mut self, slot: u64, moves: &[Move]) -> Judgement {
        let Some(Some((scan, _))) = self.scans.get_mut(slot as usize) else { return Ok(()) };
        let faults_before = self.store.life.faults.fault_count();
        for go in moves {
            match scan.go(go, &self.store.shared.model) {
                _ if self.store.life.is_off() => return Ok(()),
                Outcome::Right => {}
                Outcome::Wrong(message) => return Err(message),
                Outcome::Failed(error) => {
                    self.close_scan(slot);
                    return self.store.judge("a step of a scan", &error, Some(faults_before));
                }
            }
        }
        Ok(())
    }

    fn close_scan(&mut self, slot: u64) {
        if let Some((scan, low)) = self.scans.get_mut(slot as usize).and_then(Option::take) {
            drop(scan);
            self.store.shared.model.lock().unpin(low);
        }
    }

    fn take_snapshot(&mut self, slot: u64) -> Judgement {
        self.drop_snapshot(slot);
        let low = self.store.shared.model.lock().pin();
        let snapshot = self.store.db.snapshot();
        let mut model = self.store.shared.model.lock();
        let states = model.states_since(low);
        let sequence = snapshot.sequence();
        model.pin_at(sequence);
        model.unpin(low.sequence);
        drop(model);
        self.record(sequence);
        let shown: States = states.iter().copied().filter(|state| state.sequence == sequence).collect();
        let is_state = !shown.is_empty();
        if let Some(place) = self.snapshots.get_mut(slot as usize) {
            *place = Some((snapshot, if is_state { shown } else { vec![Moment { sequence, time: 0 }] }));
        }
        match is_state || self.store.life.is_off() {
            true => Ok(()),
            false => Err(format!("a snapshot is at {sequence}, which is none of the states {states:?}")),
        }
    }

    fn drop_snapshot(&mut self, slot: u64) {
        if let Some((snapshot, states)) = self.snapshots.get_mut(slot as usize).and_then(Option::take) {
            drop(snapshot);
            let sequence = states.first().map_or(0, |state| state.sequence);
            self.store.shared.model.lock().unpin(sequence);
        }
    }

    fn snapshot_get(&self, slot: u64, number: u64, key: &[u8]) -> Judgement {
        let Some(Some((snapshot, states))) = self.snapshots.get(slot as usize) else { return Ok(()) };
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let Some((value, _)) = self.read("a get in a snapshot", || snapshot.get(&keyspace, key))? else {
            return Ok(());
        };
        self.compare_value(&keyspace, key, value.as_deref(), states)
    }

    fn snapshot_range(&self, slot: u64, number: u64, bounds: &Bounds) -> Judgement {
        let Some(Some((snapshot, states))) = self.snapshots.get(slot as usize) else { return Ok(()) };
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let way = (Direction::Forward, usize::MAX);
        let read = || collect(snapshot.range(&keyspace, bounds.clone()), way.0, way.1);
        let Some((found, _)) = self.read("a range in a snapshot", read)? else { return Ok(()) };
        self.compare_range(&keyspace, bounds, way, &found, states)
    }
}

/// Reads at most `limit` entries of a scan.
pub fn collect(mut scan: Scan, direction: Direction, limit: usize) -> tamis::Result<Vec<(Vec<u8>, Value)>> {
    let mut found = Vec::new();
    let mut is_front = direction != Direction::Backward;
    while found.len() < limit {
        let Some(entry) = (if is_front { scan.next() } else { scan.next_back() }) else { break };
        let (key, value) = entry?;
        found.push((key.to_vec(), Value::of(&value)));
        if direction == Direction::Both {
            is_front = !is_front;
        }
    }
    Ok(found)
}
