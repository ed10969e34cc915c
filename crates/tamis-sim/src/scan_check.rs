//! The judge of scans: which states of the store explain all that a scan has returned so far.

use std::ops::Bound;

use tamis::{Error, Scan};

use crate::{
    model::{Bounds, Model, Moment, States, Value, short},
    ops::Move,
};

/// The position of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Position {
    Start,
    End,
    /// On the entry that was returned last.
    On(Vec<u8>),
    /// Before the first entry at or after the key.
    Before(Vec<u8>),
    /// After the last entry at or before the key.
    After(Vec<u8>),
}

/// A scan and the states that explain it.
pub struct CheckedScan {
    scan: Scan,
    keyspace: u32,
    bounds: Bounds,
    states: States,
    /// When it was opened, unless its snapshot decides its time: it gets its time when it first meets an entry that expires.
    begun: Option<u64>,
    position: Position,
}

/// The outcome of a step of a scan.
pub enum Outcome {
    /// The scan is right so far.
    Right,
    /// The scan has failed.
    Failed(Error),
    /// No state explains it.
    Wrong(String),
}

fn tighter_lower(lower: &Bound<Vec<u8>>, other: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match (lower, &other) {
        (Bound::Included(own), Bound::Included(key)) if own > key => lower.clone(),
        (Bound::Included(own), Bound::Excluded(key)) if own > key => lower.clone(),
        (Bound::Excluded(own), Bound::Included(key) | Bound::Excluded(key)) if own >= key => lower.clone(),
        _ => other,
    }
}

fn tighter_upper(upper: &Bound<Vec<u8>>, other: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match (upper, &other) {
        (Bound::Included(own), Bound::Included(key)) if own < key => upper.clone(),
        (Bound::Included(own), Bound::Excluded(key)) if own < key => upper.clone(),
        (Bound::Excluded(own), Bound::Included(key) | Bound::Excluded(key)) if own <= key => upper.clone(),
        _ => other,
    }
}

impl CheckedScan {
    /// A new scan, which was opened in one of these states.
    pub fn new(
        scan: Scan,
        (keyspace, bounds): (u32, Bounds),
        mut states: States,
        begun: Option<u64>,
    ) -> Self {
        if begun.is_some() {
            states.dedup_by_key(|state| state.sequence);
        }
        Self { scan, keyspace, bounds, states, begun, position: Position::Start }
    }

    /// The oldest of the states.
    pub fn oldest_state(&self) -> u64 {
        self.states.first().map_or(0, |state| state.sequence)
    }

    /// Moves the scan and compares each entry. `model` is locked after each call of the store.
    pub fn go(&mut self, go: &Move, model: &parking_lot::Mutex<Model>) -> Outcome {
        let (count, is_next) = match go {
            Move::Next(count) => (*count, true),
            Move::Previous(count) => (*count, false),
            Move::Seek(key) => {
                self.position = Position::Before(key.clone());
                return self.scan.seek(key).map_or_else(Outcome::Failed, |()| Outcome::Right);
            }
            Move::SeekForPrevious(key) => {
                self.position = Position::After(key.clone());
                return self.scan.seek_for_prev(key).map_or_else(Outcome::Failed, |()| Outcome::Right);
            }
            Move::First => {
                self.position = Position::Start;
                self.scan.seek_to_first();
                return Outcome::Right;
            }
            Move::Last => {
                self.position = Position::End;
                self.scan.seek_to_last();
                return Outcome::Right;
            }
        };
        for _ in 0..count {
            let moved = if is_next { self.scan.move_next() } else { self.scan.move_prev() };
            let found = match moved {
                Err(error) => return Outcome::Failed(error),
                Ok(true) => Some((self.scan.key().to_vec(), Value::of(self.scan.value()))),
                Ok(false) => None,
            };
            if let Err(message) = self.compare(found, is_next, &model.lock()) {
                return Outcome::Wrong(message);
            }
        }
        Outcome::Right
    }

    /// The bounds of what the next move can return.
    fn rest(&self, is_next: bool) -> Option<Bounds> {
        let (lower, upper) = &self.bounds;
        Some(match (&self.position, is_next) {
            (Position::Start, true) | (Position::End, false) => self.bounds.clone(),
            (Position::Start, false) | (Position::End, true) => return None,
            (Position::On(key) | Position::After(key), true) => {
                (tighter_lower(lower, Bound::Excluded(key.clone())), upper.clone())
            }
            (Position::Before(key), true) => {
                (tighter_lower(lower, Bound::Included(key.clone())), upper.clone())
            }
            (Position::On(key) | Position::Before(key), false) => {
                (lower.clone(), tighter_upper(upper, Bound::Excluded(key.clone())))
            }
            (Position::After(key), false) => {
                (lower.clone(), tighter_upper(upper, Bound::Included(key.clone())))
            }
        })
    }

    fn compare(
        &mut self,
        found: Option<(Vec<u8>, Value)>,
        is_next: bool,
        model: &Model,
    ) -> Result<(), String> {
        let rest = self.rest(is_next);
        let expected =
            |state: Moment| rest.as_ref().and_then(|rest| model.first(self.keyspace, rest, state, !is_next));
        let got = found.as_ref().map(|(key, value)| (key.as_slice(), *value));
        let first = self.states.first().copied().unwrap_or_default();
        let before = self.states.clone();
        let later = self.begun.map(|begun| model.times_between(begun, model.time())).unwrap_or_default();
        self.states.retain(|state| {
            let at = |time: &u64| expected(Moment { time: *time, ..*state }) == got;
            expected(*state) == got || later.iter().any(at)
        });
        if self.states.is_empty() {
            let text = |entry: Option<(&[u8], Value)>| {
                entry.map_or("no entry".to_owned(), |(key, value)| format!("{} = {value:?}", short(key)))
            };
            return Err(format!(
                "a scan of keyspace {} in {}, {:?}, moved to {} from {:?} and returned {}, but the states {before:?} have {}",
                self.keyspace,
                bounds_text(&self.bounds),
                if is_next { "the next entry" } else { "the previous entry" },
                if is_next { "the right" } else { "the left" },
                self.position,
                text(got),
                text(expected(first)),
            ));
        }
        self.position = match found {
            Some((key, _)) => Position::On(key),
            None if is_next => Position::End,
            None => Position::Start,
        };
        Ok(())
    }
}

/// Bounds as a short text.
pub fn bounds_text((lower, upper): &Bounds) -> String {
    let lower = match lower {
        Bound::Unbounded => "(".to_owned(),
        Bound::Included(key) => format!("[{}", short(key)),
        Bound::Excluded(key) => format!("({}", short(key)),
    };
    let upper = match upper {
        Bound::Unbounded => ")".to_owned(),
        Bound::Included(key) => format!("{}]", short(key)),
        Bound::Excluded(key) => format!("{})", short(key)),
    };
    format!("{lower}, {upper}")
}
