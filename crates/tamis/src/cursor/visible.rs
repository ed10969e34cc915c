//! The entries that a reader sees: of each key in a range the newest version that is not newer than the snapshot, without
//! deleted keys.
//!
//! ```text
//! entries           a@9  a@5  a@2 | b@7- b@3 | c@8 c@1          snapshot 7
//!                        ^^^                       ^^^          visible: a@5, c@1 (b is deleted, c@8 is newer)
//! ```
//!
//! Forward, the source is at the visible entry. Backward, versions come oldest first, so the newest one is known only after
//! the source has left the key: the cursor owns key and value, and the source is before all entries of the key. A source that knows
//! that the key has no other version stays at it, and a step from there compares no keys.
//!
//! The value of an operand's key is merged from its versions down to a full value, and an expiring put is no value for readers after its
//! time ([`Values`]). Both are decided from the newest visible version on, in both directions: the cursor owns key and value then.
//!
//! The writes of the reader's own transaction are the newest versions of their keys. Between them and the versions of the snapshot may be newer
//! ones that other writers have committed since.
//!
//! Steps over versions are counted: after [`STEP_COUNT_MAX`] versions of one key the source seeks past them, so that a key
//! with thousands of versions costs a seek. If the keys show that a bound is reached, the source is not moved: no block is
//! read to find out that the range ends at its included bound, or that it is empty.
//!
//! Memtables may get entries while the cursor is used. They are newer than the snapshot and not visible, or equal to entries of the
//! next memtable. Every skip compares by order and not by equality, so that they do not disturb it.

use std::ops::{Bound, Deref};

use tamis_filter::Direction;

use super::{
    Cursor, STEP_COUNT_MAX,
    bounded::{KeyRange, as_slice},
    merge::MergeCursor,
    passed::Passed,
    source::Source,
    stretch::Stretch,
};
use crate::{
    error::Result,
    expiry,
    key::{BoundKind, Kind, ReadPoint, Sequence},
    merge_operator::{FoldStep, Operands},
    range_tombstone::key_after,
    slice::Slice,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Invalid,
    /// The source is at the visible entry.
    Forward,
    /// As `Forward`, and the source has no other version of the key.
    Only,
    /// `key` and `value` are those of the visible entry; the source is before all entries of the key.
    Backward,
    /// `key` and `value` are those of the visible entry; the source is at an entry of the key, or behind all of them.
    Merged,
}

/// Gives operands and expiring puts their values.
pub(crate) trait Values {
    /// The reader's time ([`crate::expiry`]).
    fn time(&self) -> u64;
    /// The value of a key from its operands.
    ///
    /// # Errors
    /// [`crate::Error::MergeFailed`].
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &Operands) -> Result<Vec<u8>>;
}

/// See the head of this file. The contract of [`super`] applies to visible entries. `R` has the range.
pub(crate) struct VisibleCursor<C, R> {
    source: MergeCursor<C>,
    snapshot: ReadPoint,
    range: R,
    state: State,
    /// Steps until it is tried again whether a stretch begins.
    steps_to_try: u32,
    /// Tries in a row that found no stretch, or a short one.
    failed_tries: u32,
    /// Backward and merged: the entry's key. While the cursor moves: the key that it leaves.
    key: Vec<u8>,
    /// Backward and merged: the entry's value.
    value: Value,
    operands: Operands,
}

/// A range of keys of which none is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PassedRange {
    /// Included.
    pub(crate) lower: Vec<u8>,
    /// Excluded; empty: no end.
    pub(crate) upper: Vec<u8>,
    /// Deleted keys in the range, at least.
    pub(crate) key_count: u32,
}

/// A value that is valid after the source has left its entry.
struct Value {
    /// A short value.
    copy: Vec<u8>,
    /// A long value.
    shared: Option<Slice>,
}

impl Value {
    fn set(&mut self, value: Vec<u8>) {
        (self.copy, self.shared) = (value, None);
    }

    fn take(&mut self, source: &impl Cursor) {
        let value = source.value();
        self.copy.clear();
        // A copy of a short value costs less than a reference to its block.
        if value.len() <= 512 {
            self.copy.extend_from_slice(value);
            self.shared = None;
        } else {
            self.shared = Some(source.value_slice());
        }
    }

    fn bytes(&self) -> &[u8] {
        self.shared.as_deref().unwrap_or(&self.copy)
    }

    fn slice(&self) -> Slice {
        self.shared.clone().unwrap_or_else(|| Slice::from(self.copy.as_slice()))
    }
}

impl<C: Cursor, R: Deref<Target: AsRef<KeyRange> + Values>> VisibleCursor<C, R> {
    /// The cursor over all entries.
    pub(crate) const fn source(&self) -> &MergeCursor<C> {
        &self.source
    }

    /// Returns the entries of `source` in `range` as of `snapshot`.
    pub(crate) fn new(source: MergeCursor<C>, snapshot: ReadPoint, range: R) -> Self {
        let value = Value { copy: Vec::new(), shared: None };
        let (state, operands) = (State::Invalid, Operands::default());
        let (steps_to_try, failed_tries) = (0, 0);
        Self { source, snapshot, range, state, steps_to_try, failed_tries, key: Vec::new(), value, operands }
    }

    #[inline]
    fn range(&self) -> &KeyRange {
        range_of(&self.range)
    }

    /// Every movement begins with this, also one that ends at once: the keys that an earlier one has passed are then not those before
    /// the position. Returns the state before.
    #[inline]
    const fn begin_movement(&mut self, direction: Direction) -> State {
        self.source.passed.restart(direction);
        std::mem::replace(&mut self.state, State::Invalid)
    }

    /// Moves to the first visible entry of the range.
    pub(crate) fn seek_first(&mut self) -> Result<()> {
        self.begin_movement(Direction::Forward);
        if self.range().is_empty() {
            return Ok(());
        }
        match &range_of(&self.range).lower {
            Bound::Unbounded => self.source.seek_first()?,
            Bound::Included(lower) => self.source.seek(lower, self.snapshot.seek_sequence())?,
            Bound::Excluded(lower) => {
                self.key.clone_from(lower);
                self.seek_after_key()?;
            }
        }
        self.find_visible_forward()
    }

    /// Moves to the last visible entry of the range.
    pub(crate) fn seek_last(&mut self) -> Result<()> {
        self.begin_movement(Direction::Backward);
        if self.range().is_empty() {
            return Ok(());
        }
        match &range_of(&self.range).upper {
            Bound::Unbounded => self.source.seek_last()?,
            Bound::Included(upper) => self.source.seek_for_prev(upper, BoundKind::Included)?,
            Bound::Excluded(upper) => self.source.seek_for_prev(upper, BoundKind::Excluded)?,
        }
        self.find_visible_backward()
    }

    /// Moves to the first visible entry of the range at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.range().is_below(key) {
            return self.seek_first();
        }
        self.begin_movement(Direction::Forward);
        if self.range().is_above(key) || self.range().is_empty() {
            return Ok(());
        }
        self.source.seek(key, self.snapshot.seek_sequence())?;
        self.find_visible_forward()
    }

    /// Moves to the last visible entry of the range before `key`, or at it if it is included.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        if self.range().is_above(key) {
            return self.seek_last();
        }
        self.begin_movement(Direction::Backward);
        let is_out =
            self.range().is_below(key) || (kind == BoundKind::Excluded && self.range().is_at_lower(key));
        if is_out || self.range().is_empty() {
            return Ok(());
        }
        self.source.seek_for_prev(key, kind)?;
        self.find_visible_backward()
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        debug_assert!(self.is_valid());
        let was_forward = self.source.passed.direction == Direction::Forward;
        let state = self.begin_movement(Direction::Forward);
        if state == State::Only && was_forward {
            if matches!(self.range().upper, Bound::Included(_)) && self.range().is_at_upper(self.source.key())
            {
                return Ok(());
            }
            self.source.next()?;
            return self.find_visible_forward();
        }
        if matches!(state, State::Forward | State::Only) {
            copy_key(&mut self.key, &self.source);
        }
        if state == State::Invalid || self.range().is_at_upper(&self.key) {
            return Ok(());
        }
        // After a backward step the source may be before its first entry.
        if state == State::Merged {
            self.skip_key()?;
        } else if self.source.is_valid() {
            self.source.next()?;
            self.skip_key()?;
        } else {
            self.seek_after_key()?;
        }
        self.find_visible_forward()
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        debug_assert!(self.is_valid());
        let was_backward = self.source.passed.direction == Direction::Backward;
        let state = self.begin_movement(Direction::Backward);
        // After a movement forward, versions that the snapshot does not see may be before the entry.
        if state == State::Only && was_backward {
            if self.range().is_at_lower(self.source.key()) {
                return Ok(());
            }
            self.source.prev()?;
            return self.find_visible_backward();
        }
        if matches!(state, State::Forward | State::Only) {
            copy_key(&mut self.key, &self.source);
        }
        if state == State::Invalid || self.range().is_at_lower(&self.key) {
            return Ok(());
        }
        match state {
            State::Backward => {}
            // The source may be behind its last entry.
            State::Merged => self.source.seek_for_prev(&self.key, BoundKind::Excluded)?,
            _ => {
                self.source.prev()?;
                self.skip_key_backward()?;
            }
        }
        self.find_visible_backward()
    }

    /// Moves forward by up to `count` entries without reading those between, and returns by how many: 0 unless the source knows which entries
    /// are visible. Only while it is valid, and valid afterwards unless it fails.
    pub(crate) fn skip(&mut self, count: u64) -> Result<u64> {
        debug_assert!(self.is_valid());
        if self.state != State::Only || self.source.has_coverage() {
            return Ok(0);
        }
        self.begin_movement(Direction::Forward);
        let skipped = self.source.skip(count, as_slice(&range_of(&self.range).upper))?;
        // A source that has found damage may be another one.
        self.state =
            if self.source.is_only_version(self.snapshot.sequence) { State::Only } else { State::Forward };
        Ok(skipped)
    }

    /// How many deleted keys the last movement has passed one by one.
    #[inline]
    pub(crate) const fn passed_key_count(&self) -> u32 {
        self.source.passed.key_count
    }

    /// The range without visible keys that the last movement has passed, if it has passed a deleted key. It is empty if only older versions
    /// of a visible key are deleted.
    pub(crate) fn passed_range(&self) -> PassedRange {
        let Passed { direction, first, last, .. } = &self.source.passed;
        let after = |key: &[u8]| key_after(key).unwrap_or_default();
        let (lower, upper) = match (direction, self.state) {
            (Direction::Forward, State::Invalid) => (first.clone(), after(last)),
            (Direction::Forward, _) => (first.clone(), self.key().to_vec()),
            (Direction::Backward, State::Invalid) => (last.clone(), after(first)),
            (Direction::Backward, _) => (after(self.key()), after(first)),
        };
        PassedRange { lower, upper, key_count: self.source.passed.key_count }
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.state != State::Invalid
    }

    #[inline]
    const fn owns_entry(&self) -> bool {
        matches!(self.state, State::Backward | State::Merged)
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        debug_assert!(self.is_valid());
        if self.owns_entry() { &self.key } else { self.source.key() }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        debug_assert!(self.is_valid());
        if self.owns_entry() { self.value.bytes() } else { self.source.value() }
    }

    /// The value as an owned slice.
    pub(crate) fn value_slice(&self) -> Slice {
        debug_assert!(self.is_valid());
        if self.owns_entry() { self.value.slice() } else { self.source.value_slice() }
    }

    /// Finds the first visible entry at or after the position of the source, which is not at an older version of a key that
    /// was left.
    #[inline]
    fn find_visible_forward(&mut self) -> Result<()> {
        while self.source.is_valid() && !self.is_above_range() {
            let is_only_version = self.source.is_only_version(self.snapshot.sequence);
            if !is_only_version && !self.snapshot.sees(self.source.sequence()) {
                self.skip_newer()?;
            } else if self.source.has_coverage() && self.source.skip_deleted(Direction::Forward)? {
                continue;
            } else if self.source.kind() == Kind::Put {
                self.state = if is_only_version { State::Only } else { State::Forward };
                return Ok(());
            } else if self.find_value()? {
                return Ok(());
            } else {
                self.skip_key()?;
            }
        }
        Ok(())
    }

    /// From the newest visible version of a key on, which is no put: finds out whether the key has a value, and becomes its owner then. The source
    /// does not leave the key backward.
    #[cold]
    fn find_value(&mut self) -> Result<bool> {
        copy_key(&mut self.key, &self.source);
        let range = &*self.range;
        match self.source.kind() {
            Kind::Operand => return self.merge_operands().map(|()| true),
            Kind::ExpiringPut => {
                if let Some(value) = expiry::live_value(self.source.value(), || range.time()) {
                    self.value.set(value.to_vec());
                    self.state = State::Merged;
                    return Ok(true);
                }
                self.pass_expired();
            }
            _ => self.source.passed.add(&self.key),
        }
        self.source.next()?;
        Ok(false)
    }

    /// An expired key was passed: the range has no entry for later readers, but an older snapshot may see one.
    const fn pass_expired(&mut self) {
        let direction = self.source.passed.direction;
        self.source.passed.restart(direction);
    }

    /// As [`Self::find_value`], at an operand: collects the visible versions down to a full value.
    fn merge_operands(&mut self) -> Result<()> {
        let covered = self.source.covered_sequence(&self.key)?;
        let Self { source, snapshot, range, key, operands, .. } = self;
        let range = &**range;
        operands.clear();
        let merged = loop {
            if !source.is_valid() || source.key() != key.as_slice() || source.sequence() < covered {
                break range.merge(key, None, operands);
            }
            let sequence = source.sequence();
            if snapshot.sees(sequence) {
                let step = operands.add((sequence, source.kind()), source.value(), || range.time());
                if let FoldStep::Base(base) = step {
                    break range.merge(key, base, operands);
                }
            }
            source.next()?;
        };
        // After an error the next movement continues behind the key.
        self.state = State::Merged;
        self.value.set(Vec::new());
        self.value.set(merged?);
        Ok(())
    }

    /// Whether the source is behind the range. An open range needs no key.
    #[inline]
    fn is_above_range(&self) -> bool {
        let range = self.range();
        !matches!(range.upper, Bound::Unbounded) && range.is_above(self.source.key())
    }

    /// Moves the source from a version newer than the snapshot to the next one that is not, or to another key.
    fn skip_newer(&mut self) -> Result<()> {
        copy_key(&mut self.key, &self.source);
        for _ in 0..STEP_COUNT_MAX {
            self.source.next()?;
            let is_newer = self.source.is_valid() && !self.snapshot.sees(self.source.sequence());
            if !is_newer || self.source.key() != self.key {
                return Ok(());
            }
        }
        self.source.seek(&self.key, self.snapshot.seek_sequence())
    }

    /// Moves the source forward until it leaves `key`.
    #[inline]
    fn skip_key(&mut self) -> Result<()> {
        for _ in 0..STEP_COUNT_MAX {
            if !self.source.is_valid() || self.source.key() > self.key.as_slice() {
                return Ok(());
            }
            self.source.next()?;
        }
        self.seek_after_key()
    }

    /// Moves the source to the first entry of the next key after `key`.
    fn seek_after_key(&mut self) -> Result<()> {
        self.source.seek(&self.key, 0)?;
        while self.source.is_valid() && self.source.key() <= self.key.as_slice() {
            self.source.next()?;
        }
        Ok(())
    }

    /// Moves the source backward until it leaves `key`.
    fn skip_key_backward(&mut self) -> Result<()> {
        for _ in 0..STEP_COUNT_MAX {
            if !self.source.is_valid() || self.source.key() < self.key.as_slice() {
                return Ok(());
            }
            self.source.prev()?;
        }
        self.source.seek_for_prev(&self.key, BoundKind::Excluded)
    }

    /// Finds the last visible entry at or before the position of the source, which is at the oldest version of its key.
    fn find_visible_backward(&mut self) -> Result<()> {
        while self.source.is_valid() && !self.range().is_below(self.source.key()) {
            if self.source.has_coverage() && self.source.skip_deleted(Direction::Backward)? {
                continue;
            }
            let kind = self.source.kind();
            let is_only_version = self.source.is_only_version(self.snapshot.sequence);
            if is_only_version && matches!(kind, Kind::Put | Kind::Tombstone) {
                // The source need not leave the key to find a newer version, so no further entry is read.
                if kind == Kind::Put {
                    self.state = State::Only;
                    return Ok(());
                }
                copy_key(&mut self.key, &self.source);
                self.source.passed.add(&self.key);
                self.source.prev()?;
                continue;
            }
            copy_key(&mut self.key, &self.source);
            match self.take_newest_visible()? {
                Some(Kind::Put) => {
                    self.state = State::Backward;
                    return Ok(());
                }
                Some(Kind::ExpiringPut) => {
                    let range = &*self.range;
                    let live = expiry::live_value(self.value.bytes(), || range.time()).map(<[u8]>::to_vec);
                    if let Some(value) = live {
                        self.value.set(value);
                        self.state = State::Backward;
                        return Ok(());
                    }
                    self.pass_expired();
                }
                Some(Kind::Operand) => {
                    self.merge_backward()?;
                    return Ok(());
                }
                _ => self.source.passed.add(&self.key),
            }
        }
        Ok(())
    }

    /// As [`Self::merge_operands`], before all entries of `key`.
    #[cold]
    fn merge_backward(&mut self) -> Result<()> {
        self.source.seek(&self.key, self.snapshot.seek_sequence())?;
        self.merge_operands()
    }

    /// Stores the value of the visible version of `key`, if it is a put or expires, and moves the source before the key. The source must be at the
    /// oldest version. Returns the kind of the visible version; `None` if there is none.
    fn take_newest_visible(&mut self) -> Result<Option<Kind>> {
        let covered = self.source.covered_sequence(&self.key)?;
        let mut visible = None;
        for _ in 0..STEP_COUNT_MAX {
            if self.snapshot.sees(self.source.sequence()) {
                visible = self.take_visible(covered);
            } else if self.snapshot.own == 0 {
                self.skip_key_backward()?;
                return Ok(visible);
            }
            self.source.prev()?;
            if !self.source.is_valid() || self.source.key() < self.key.as_slice() {
                return Ok(visible);
            }
        }
        // Behind entries that the reader does not see may be its own.
        if self.snapshot.sees(self.source.sequence()) || self.snapshot.own > 0 {
            self.source.seek(&self.key, self.snapshot.seek_sequence())?;
            // If a range tombstone deletes the version, the source may be at the next key.
            let is_there = self.source.is_valid() && self.source.key() == self.key;
            visible = if is_there { self.take_visible(covered) } else { None };
        }
        self.source.seek_for_prev(&self.key, BoundKind::Excluded)?;
        Ok(visible)
    }

    /// The kind of the current version, unless a range tombstone deletes it. Stores its value, unless it is an operand.
    fn take_visible(&mut self, covered: Sequence) -> Option<Kind> {
        if !self.source.is_valid() || self.source.sequence() < covered {
            return None;
        }
        let kind = self.source.kind();
        if matches!(kind, Kind::Put | Kind::ExpiringPut) {
            self.value.take(&self.source);
        }
        Some(kind)
    }
}

impl<R: Deref<Target: AsRef<KeyRange> + Values>> VisibleCursor<Source, R> {
    /// The entries that follow the current one in the direction of the last movement without a check ([`super::stretch`]). Until
    /// [`VisibleCursor::give_back`] the cursor has no entry.
    pub(crate) fn lend(&mut self, direction: Direction) -> Option<Stretch> {
        if self.state != State::Only || direction != self.source.passed.direction {
            return None;
        }
        if self.source.is_alternating_view() {
            return None;
        }
        if self.steps_to_try > 0 {
            self.steps_to_try -= 1;
            return None;
        }
        let KeyRange { lower, upper } = range_of(&self.range);
        let end = as_slice(if direction == Direction::Forward { upper } else { lower });
        let stretch = self.source.lend(direction, self.snapshot.sequence, end);
        if stretch.is_none() {
            self.note_failed_try();
        }
        stretch
    }

    const fn note_failed_try(&mut self) {
        // After n tries in a row that found no stretch, or one that saved less than it cost, the next one is 2^n steps away, for n up to six:
        // where sources alternate, few tries fail, and where they cease to, few steps are lost.
        if self.failed_tries < 6 {
            self.failed_tries += 1;
        }
        self.steps_to_try = (1 << self.failed_tries) - 1;
    }

    /// Continues at the current entry of a stretch.
    pub(crate) fn give_back(&mut self, stretch: Stretch) -> Result<()> {
        if stretch.is_short() {
            self.note_failed_try();
        } else {
            self.failed_tries = 0;
        }
        self.source.give_back(stretch).inspect_err(|_| self.state = State::Invalid)
    }

    /// Continues behind a stretch whose cursor has left it: moves to the first visible entry from there on.
    pub(crate) fn leave(&mut self, stretch: Stretch) -> Result<()> {
        let direction = self.source.passed.direction;
        self.begin_movement(direction);
        self.give_back(stretch)?;
        match direction {
            Direction::Forward => self.find_visible_forward(),
            Direction::Backward => self.find_visible_backward(),
        }
    }
}

#[inline]
fn range_of(range: &impl Deref<Target: AsRef<KeyRange>>) -> &KeyRange {
    (**range).as_ref()
}

#[inline]
fn copy_key(target: &mut Vec<u8>, source: &impl Cursor) {
    target.clear();
    target.extend_from_slice(source.key());
}
