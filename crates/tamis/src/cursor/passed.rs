//! The deleted keys that the last movement of a scan has passed.

use tamis_filter::Direction;

use super::coverage::{CoveredSpan, FIRST_RANK};
use crate::sync::sim_fault;

/// See the head of this file.
pub(super) struct Passed {
    /// A jump over the keys of a range tombstone is one key.
    pub(super) key_count: u32,
    pub(super) direction: Direction,
    has_first: bool,
    /// The first key in the direction of the movement.
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
}

impl Passed {
    pub(super) const fn new() -> Self {
        Self {
            key_count: 0,
            direction: Direction::Forward,
            has_first: false,
            first: Vec::new(),
            last: Vec::new(),
        }
    }

    #[inline]
    pub(super) const fn restart(&mut self, direction: Direction) {
        self.key_count = 0;
        self.direction = direction;
        self.has_first = false;
    }

    pub(super) fn add(&mut self, key: &[u8]) {
        self.begin(key);
        key.clone_into(&mut self.last);
        self.key_count += 1;
    }

    /// Adds a jump over a span from `key`. Ranges without entries are known, and not counted.
    pub(super) fn add_span(&mut self, key: &[u8], span: &CoveredSpan) {
        self.begin(key);
        if !sim_fault!("note-keys-not-visited") {
            key.clone_into(&mut self.last);
        }
        self.key_count += u32::from(span.rank >= FIRST_RANK);
    }

    fn begin(&mut self, key: &[u8]) {
        if !self.has_first {
            self.has_first = true;
            key.clone_into(&mut self.first);
        }
    }
}
