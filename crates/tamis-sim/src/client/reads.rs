//! The reads of a client at one point in time.

use std::ops::Bound;

use tamis::{Keyspace, simulation::keyspace_id};

use super::{Client, Judgement, collect};
use crate::{
    model::{Bounds, Moment, Value, prefix_bounds, short},
    ops::Direction,
    scan_check::bounds_text,
};

impl Client {
    pub(super) fn get(&self, number: u64, key: &[u8]) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let Some((value, states)) = self.read("a get", || keyspace.get(key))? else { return Ok(()) };
        self.compare_value(&keyspace, key, value.as_deref(), &states)
    }

    pub(super) fn compare_value(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        value: Option<&[u8]>,
        states: &[Moment],
    ) -> Judgement {
        let found = value.map(Value::of);
        self.record(value.map_or(1, |value| value.len() as u64 + 2));
        let model = self.store.shared.model.lock();
        let id = keyspace_id(keyspace);
        if states.iter().any(|state| model.get(id, key, *state) == found) {
            return Ok(());
        }
        let expected = states.first().and_then(|state| model.get(id, key, *state));
        Err(format!(
            "get of {} in {} returned {found:?}, but the states {states:?} have {expected:?}",
            short(key),
            keyspace.name()
        ))
    }

    pub(super) fn multi_get(&self, number: u64, keys: &[Vec<u8>]) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let Some((values, states)) = self.read("a multi-get", || keyspace.multi_get(keys))? else {
            return Ok(());
        };
        let found: Vec<_> = values.iter().map(|value| value.as_deref().map(Value::of)).collect();
        self.record(found.iter().flatten().count() as u64);
        let id = keyspace_id(&keyspace);
        let model = self.store.shared.model.lock();
        let is_state = |state: &&Moment| {
            keys.iter().zip(&found).all(|(key, value)| model.get(id, key, **state) == *value)
        };
        match states.iter().find(is_state) {
            Some(_) if found.len() == keys.len() => Ok(()),
            _ => Err(format!(
                "multi-get of {} keys in {} shows none of the states {states:?}",
                keys.len(),
                keyspace.name()
            )),
        }
    }

    pub(super) fn edge(&self, number: u64, is_last: bool) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let read = || if is_last { keyspace.last() } else { keyspace.first() };
        let Some((found, states)) = self.read("the first or last entry", read)? else { return Ok(()) };
        let all = (Bound::Unbounded, Bound::Unbounded);
        let found = found.as_ref().map(|(key, value)| (&**key, Value::of(value)));
        self.record(found.map_or(0, |(key, _)| key.len() as u64));
        let model = self.store.shared.model.lock();
        let id = keyspace_id(&keyspace);
        match states.iter().any(|state| model.first(id, &all, *state, is_last) == found) {
            true => Ok(()),
            false => Err(format!(
                "{} entry of {} is wrong",
                if is_last { "the last" } else { "the first" },
                keyspace.name()
            )),
        }
    }

    pub(super) fn range(
        &self,
        number: u64,
        bounds: &Bounds,
        direction: Direction,
        limit: usize,
    ) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let found = self.read("a range", || collect(keyspace.range(bounds.clone()), direction, limit))?;
        let Some((found, states)) = found else { return Ok(()) };
        self.compare_range(&keyspace, bounds, (direction, limit), &found, &states)
    }

    /// Compares the entries of a range, in the order in which they were read.
    pub(crate) fn compare_range(
        &self,
        keyspace: &Keyspace,
        bounds: &Bounds,
        (direction, limit): (Direction, usize),
        found: &[(Vec<u8>, Value)],
        states: &[Moment],
    ) -> Judgement {
        self.record(found.len() as u64);
        let model = self.store.shared.model.lock();
        let id = keyspace_id(keyspace);
        let is_state = |state: Moment| {
            let mut expected = model.entries(id, bounds, state);
            let mut is_front = direction != Direction::Backward;
            for index in 0..limit {
                let next = if is_front { expected.next() } else { expected.next_back() };
                if next != found.get(index).map(|(key, value)| (key.as_slice(), *value)) {
                    return false;
                }
                if next.is_none() {
                    return true;
                }
                if direction == Direction::Both {
                    is_front = !is_front;
                }
            }
            true
        };
        if states.iter().any(|state| is_state(*state)) {
            return Ok(());
        }
        let first = states.first().copied().unwrap_or_default();
        let expected: Vec<_> = model.entries(id, bounds, first).take(4).map(|(key, _)| short(key)).collect();
        let got: Vec<_> = found.iter().take(4).map(|(key, _)| short(key)).collect();
        Err(format!(
            "range {} of {}, {direction:?}, returned {} entries {got:?}, but the states {states:?} have {} entries {expected:?}",
            bounds_text(bounds),
            keyspace.name(),
            found.len(),
            model.entries(id, bounds, first).count(),
        ))
    }

    pub(super) fn prefix(&self, number: u64, prefix: &[u8]) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let way = (Direction::Forward, usize::MAX);
        let found = self.read("a prefix", || collect(keyspace.prefix(prefix), way.0, way.1))?;
        let Some((found, states)) = found else { return Ok(()) };
        self.compare_range(&keyspace, &prefix_bounds(prefix), way, &found, &states)
    }

    pub(super) fn multi_range(&self, number: u64, ranges: &[Bounds]) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let way = (Direction::Forward, usize::MAX);
        let read = || {
            let scans = keyspace.multi_range(ranges.to_vec());
            scans.into_iter().map(|scan| collect(scan, way.0, way.1)).collect::<tamis::Result<Vec<_>>>()
        };
        let Some((found, states)) = self.read("a multi-range", read)? else { return Ok(()) };
        let is_state = |state: &Moment| {
            let compare = |(bounds, found): (&Bounds, &Vec<_>)| {
                self.compare_range(&keyspace, bounds, way, found, &[*state])
            };
            ranges.iter().zip(&found).all(|pair| compare(pair).is_ok())
        };
        match found.len() == ranges.len() && states.iter().any(is_state) {
            true => Ok(()),
            false => Err(format!("a multi-range of {} shows none of the states {states:?}", keyspace.name())),
        }
    }

    /// Reads that find nothing: filters answer most of them, and their false positives count.
    pub(super) fn poll(&self, number: u64, chosen: u64, count: u64) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let (shape, _) = self.keys_of(number);
        let read = || {
            let mut found = 0;
            for step in 0..count {
                let key = shape.absent_key(tamis_workload::mix64(chosen ^ step) % 6_000);
                found += match step % 3 {
                    0 => {
                        let range = keyspace.range(key.clone()..[key.as_slice(), b"~"].concat());
                        collect(range, Direction::Forward, usize::MAX)?.len()
                    }
                    _ => usize::from(keyspace.get(&key)?.is_some()),
                };
            }
            Ok(found)
        };
        match self.read("a poll", read)? {
            Some((found, _)) if found > 0 => Err(format!("{found} keys were found that no client wrote")),
            _ => Ok(()),
        }
    }

    pub(super) fn count(&self, number: u64, bounds: &Bounds) -> Judgement {
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let Some((count, _)) = self.read("a count", || keyspace.approximate_count(bounds.clone()))? else {
            return Ok(());
        };
        self.record(count);
        Ok(())
    }
}
