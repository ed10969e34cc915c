//! Merges several cursors into one with a loser tree.
//!
//! ```text
//!              least: 2
//!               |
//!              [0]            each inner node has the lane that lost there; the winner of all is the least
//!             /   \
//!          [3]     [1]
//!          / \     / \
//!         2   3   0   1       lanes: the cursors, newest first, with the first eight bytes of their keys
//! ```
//!
//! A step moves the least lane and replays the matches on its path: log2 N comparisons, mostly of the first eight bytes. A
//! lane that wins twice in a row remembers the best lane of its path as runner-up: while it stays before that one, a step
//! is a single comparison. So a long stretch from one lane costs little more than the lane itself. One lane needs no
//! comparison.
//!
//! A lane is pending if its cursor knows a bound of its next entry without a read (the smallest key of a table, or the candidate
//! of its filter). It takes part in the merge at this place, and is read when the merge reaches it. So a seek into many
//! overlapping runs reads only the block of the entry that it returns.
//!
//! Entries that range tombstones of newer lanes delete ([`super::coverage`]) are not read: a lane that is pending within their span becomes
//! pending behind it. With range tombstones each lane is pending after a seek, at the sought key if it has no better bound.
//!
//! A change of direction moves every lane to the other side of the current entry, by one step or by a seek to an end, and
//! rebuilds the tree.
//!
//! The loser of inner node n is kept in lane n, so that a merge allocates nothing but its lanes. A match first compares numbers:
//! the first eight bytes of the keys, inverted backward. Only lanes with equal numbers compare their entries.
//!
//! Invariants, while valid:
//!
//! 1. Forward, each lane is at its first entry that is not before the current one, or pending at a place that is not after that
//!    entry. Backward, it is at its last entry that is not after the current one, or pending at a place that is not before that
//!    entry. A lane without such an entry is not valid and loses against all others. The least lane is not pending.
//! 2. `runner_up`, if known, is the least of the other lanes.
//!
//! No two entries have equal keys and sequence numbers; if there were any, lanes would be ordered by their numbers, in both
//! directions.

use std::{cmp::Ordering, ops::Bound, sync::Arc};

use tamis_bits::key_head;
use tamis_filter::{Direction, RangeProbe};

use super::{
    Cursor, SeekHint, SkipTarget,
    bounded::{KeyRange, Needed, as_slice, nearer},
    coverage::{Coverage, CoveredSpan},
    passed::Passed,
};
use crate::{
    error::Result,
    key::{BoundKind, Kind, SEQUENCE_MAX, Sequence, compare_entries},
    range_tombstone::is_below_upper,
    slice::Slice,
};

/// The next position of a lane after a span of deleted entries.
enum Place<'a> {
    Unknown,
    /// The lane has no more entries that are needed.
    End,
    /// Forward: at the key or after it. Backward: before it.
    Behind(&'a [u8]),
}

/// No lane has waited at this node.
const NO_LANE: usize = usize::MAX;

/// The number of a key in the merge: keys ascend with it in its direction.
#[inline]
pub(super) fn order_of(key: &[u8], direction: Direction) -> u64 {
    match direction {
        Direction::Forward => key_head(key),
        Direction::Backward => !key_head(key),
    }
}

/// A lane that waits at an inner node, or [`NO_LANE`] before its match, with its number.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    lane: usize,
    order: u64,
}

struct Lane<C> {
    cursor: C,
    /// The lane is pending: its cursor has no position yet, and its entry is not before this place in the direction of the merge.
    /// It is read when the merge reaches the place.
    pending: Option<(Vec<u8>, Sequence)>,
    /// See [`super::coverage`].
    rank: usize,
    /// The loser of the inner node with the number of this lane.
    loser: Waiting,
    /// The number of the current key or of the pending one; the greatest one without an entry, which a key may have, too.
    order: u64,
    is_valid: bool,
    /// It ended before a span that a range tombstone covers; there may be entries after the span.
    is_cut: bool,
}

impl<C: Cursor> Lane<C> {
    /// The current entry, or the bound of a pending lane.
    #[inline]
    fn entry(&self) -> (&[u8], Sequence) {
        match &self.pending {
            None => (self.cursor.key(), self.cursor.sequence()),
            Some((key, sequence)) => (key, *sequence),
        }
    }

    #[inline]
    fn refresh(&mut self, direction: Direction) {
        self.pending = None;
        self.is_valid = self.cursor.is_valid();
        self.is_cut = false;
        self.order = if self.is_valid { order_of(self.cursor.key(), direction) } else { u64::MAX };
    }

    /// Makes the lane pending as a hint says, or ends it; without a hint the cursor must seek. `is_covered`: range tombstones may delete
    /// the sought entry, which is then not read.
    fn defer(&mut self, hint: SeekHint, mut bound: Vec<u8>, target: SeekTarget<'_>, is_covered: bool) {
        self.is_cut = false;
        let sequence = match (hint, target) {
            (SeekHint::Unknown, SeekTarget::From(key, _) | SeekTarget::UpTo(key, _)) if is_covered => {
                bound.clear();
                bound.extend_from_slice(key);
                target.sequence()
            }
            (SeekHint::Unknown, _) => return,
            (SeekHint::End, _) => return self.cut(),
            // Of the sought key itself, newer entries than those that were sought are before the place.
            (SeekHint::Bound, SeekTarget::From(key, sequence)) if key == bound => sequence,
            (SeekHint::Bound, SeekTarget::Last | SeekTarget::UpTo(..)) => 0,
            (SeekHint::Bound | SeekHint::Below, _) => SEQUENCE_MAX,
        };
        self.set_pending((bound, sequence), target.direction());
    }

    /// Ends the lane, although its cursor may have entries elsewhere.
    fn cut(&mut self) {
        self.pending = None;
        self.is_valid = false;
        self.order = u64::MAX;
        self.is_cut = true;
    }

    fn set_pending(&mut self, (key, sequence): (Vec<u8>, Sequence), direction: Direction) {
        self.cursor.forget_prepared();
        self.order = order_of(&key, direction);
        self.pending = Some((key, sequence));
        self.is_valid = true;
        self.is_cut = false;
    }

    /// Moves a pending lane to its entry.
    fn settle(&mut self, direction: Direction) -> Result<()> {
        let Some((key, sequence)) = self.pending.take() else { return Ok(()) };
        match direction {
            Direction::Forward => self.cursor.seek(&key, sequence)?,
            Direction::Backward if sequence == 0 => self.cursor.seek_for_prev(&key, BoundKind::Included)?,
            Direction::Backward => self.cursor.seek_for_prev(&key, BoundKind::Excluded)?,
        }
        self.refresh(direction);
        Ok(())
    }

    #[inline]
    fn step(&mut self, direction: Direction) -> Result<()> {
        self.cursor.step(direction)?;
        self.refresh(direction);
        Ok(())
    }

    /// Moves past the entries of a span that a range tombstone deletes; `false` if the lane did not move.
    fn skip(&mut self, span: &CoveredSpan, target: SkipTarget) -> Result<bool> {
        if !self.is_valid {
            return Ok(false);
        }
        let (key, _) = self.entry();
        // A lane that is pending below a key has no entry of this key.
        let is_below_key = self.pending.as_ref().is_some_and(|(_, sequence)| *sequence == SEQUENCE_MAX);
        let is_within = match target.direction {
            Direction::Forward => is_below_upper(key, &span.upper),
            Direction::Backward if is_below_key => span.lower.as_slice() < key,
            Direction::Backward => span.lower.as_slice() <= key,
        };
        if !is_within {
            return Ok(false);
        }
        match self.place_behind(span, target) {
            Place::Unknown => return self.skip_in_cursor(span, target),
            Place::End => self.cut(),
            // Nothing is read before the merge reaches the end of the span.
            Place::Behind(end) => self.set_pending((end.to_vec(), SEQUENCE_MAX), target.direction),
        }
        Ok(true)
    }

    /// Lets a cursor over several ranks skip the entries of the older ones.
    fn skip_in_cursor(&mut self, span: &CoveredSpan, target: SkipTarget) -> Result<bool> {
        if self.pending.is_some() || !self.cursor.skip_covered(span, target)? {
            return Ok(false);
        }
        self.refresh(target.direction);
        // It may have entries behind the span.
        self.is_cut = !self.is_valid;
        Ok(true)
    }

    /// The key up to which all entries of this lane are deleted.
    fn place_behind<'s>(&self, span: &'s CoveredSpan, target: SkipTarget) -> Place<'s> {
        use Direction::{Backward, Forward};
        let end = match (target.direction, span.upper.as_slice(), span.lower.as_slice()) {
            _ if target.is_last => Place::End,
            (Forward, [], _) | (Backward, _, []) => Place::End,
            (Forward, upper, _) => Place::Behind(upper),
            (Backward, _, lower) => Place::Behind(lower),
        };
        match self.rank.cmp(&span.rank) {
            Ordering::Greater => end,
            Ordering::Equal if !span.has_newer => end,
            Ordering::Equal | Ordering::Less => Place::Unknown,
        }
    }

    /// Moves to the first entry of the key or after it; backward, to the last of the key or before it.
    fn seek_to(&mut self, key: &[u8], direction: Direction) -> Result<()> {
        match direction {
            Direction::Forward => self.cursor.seek(key, SEQUENCE_MAX)?,
            Direction::Backward => self.cursor.seek_for_prev(key, BoundKind::Included)?,
        }
        self.refresh(direction);
        Ok(())
    }

    /// Moves to the end from which a movement in a direction begins.
    fn seek_end(&mut self, direction: Direction) -> Result<()> {
        match direction {
            Direction::Forward => self.cursor.seek_first()?,
            Direction::Backward => self.cursor.seek_last()?,
        }
        self.refresh(direction);
        Ok(())
    }
}

/// Lets each lane skip the entries of a span that a range tombstone deletes; `false` if no lane did.
fn skip_lanes<C: Cursor>(lanes: &mut [Lane<C>], span: &CoveredSpan, target: SkipTarget) -> Result<bool> {
    let mut has_moved = false;
    for lane in lanes {
        has_moved |= lane.skip(span, target)?;
    }
    Ok(has_moved)
}

/// A cursor after a seek.
pub(crate) struct Sought<'a, C> {
    pub(crate) cursor: &'a C,
    /// It was read.
    pub(crate) is_read: bool,
    /// It had the entry that was found.
    pub(crate) was_found: bool,
}

/// See the head of this file, and [`super`] for the contract.
pub(crate) struct MergeCursor<C> {
    /// The children of inner node n are 2n and 2n + 1; lane i is node N + i.
    lanes: Vec<Lane<C>>,
    least: usize,
    runner_up: Option<usize>,
    direction: Direction,
    is_valid: bool,
    /// The lane that had the least entry after the last seek.
    found: Option<usize>,
    needed: Option<Arc<dyn Needed>>,
    /// The range tombstones of the lanes.
    coverage: Option<Box<Coverage>>,
    /// The deleted keys that the reader and the merge have passed.
    pub(super) passed: Passed,
}

/// The next position behind a span, for a reader of these keys.
fn behind(range: &KeyRange, span: &CoveredSpan, direction: Direction) -> SkipTarget {
    let is_last = match direction {
        Direction::Forward => !span.upper.is_empty() && range.is_above(&span.upper),
        Direction::Backward => range.begins_at_or_behind(&span.lower),
    };
    SkipTarget { direction, is_last }
}

/// The needed keys from the sought one on, in the direction of a seek to a key.
fn probe_of<'a>(needed: &'a dyn Needed, target: SeekTarget<'a>) -> Option<RangeProbe<'a>> {
    let KeyRange { lower, upper } = needed.range();
    let (lower, upper) = (as_slice(lower), as_slice(upper));
    let range = match target {
        SeekTarget::First | SeekTarget::Last => return None,
        SeekTarget::From(key, _) => tamis_filter::KeyRange::new(Bound::Included(key), upper),
        SeekTarget::UpTo(key, BoundKind::Included) => {
            tamis_filter::KeyRange::new(lower, Bound::Included(key))
        }
        SeekTarget::UpTo(key, BoundKind::Excluded) => {
            tamis_filter::KeyRange::new(lower, Bound::Excluded(key))
        }
    };
    Some(RangeProbe::new(range, needed.digester()))
}

/// A seek of all lanes.
#[derive(Clone, Copy)]
enum SeekTarget<'a> {
    First,
    Last,
    /// [`Cursor::seek`].
    From(&'a [u8], Sequence),
    /// [`Cursor::seek_for_prev`].
    UpTo(&'a [u8], BoundKind),
}

impl SeekTarget<'_> {
    /// With the key, the place of a lane that may have entries from the sought one on.
    const fn sequence(self) -> Sequence {
        match self {
            Self::From(_, sequence) => sequence,
            Self::UpTo(_, BoundKind::Included) | Self::Last => 0,
            Self::UpTo(_, BoundKind::Excluded) | Self::First => SEQUENCE_MAX,
        }
    }

    const fn direction(self) -> Direction {
        match self {
            Self::First | Self::From(..) => Direction::Forward,
            Self::Last | Self::UpTo(..) => Direction::Backward,
        }
    }

    fn prepare(
        self,
        cursor: &mut impl Cursor,
        needed: Option<&RangeProbe<'_>>,
        bound: &mut Vec<u8>,
    ) -> Result<SeekHint> {
        match (self, needed) {
            (Self::First, _) => Ok(cursor.prepare_seek_first(bound)),
            (Self::Last, _) => Ok(cursor.prepare_seek_last(bound)),
            (_, None) => Ok(SeekHint::Unknown),
            (Self::From(_, sequence), Some(needed)) => cursor.prepare_seek(needed, sequence, bound),
            (Self::UpTo(..), Some(needed)) => cursor.prepare_seek_for_prev(needed, bound),
        }
    }

    fn seek(self, cursor: &mut impl Cursor) -> Result<()> {
        match self {
            Self::First => cursor.seek_first(),
            Self::Last => cursor.seek_last(),
            Self::From(key, sequence) => cursor.seek(key, sequence),
            Self::UpTo(key, kind) => cursor.seek_for_prev(key, kind),
        }
    }
}

impl<C: Cursor> MergeCursor<C> {
    /// Merges cursors, newest source first. Without cursors it is never valid.
    pub(crate) fn new(cursors: Vec<C>) -> Self {
        Self::ranked(cursors.into_iter().enumerate())
    }

    /// As [`MergeCursor::new`], with ranks that ascend ([`super::coverage`]).
    pub(crate) fn ranked(cursors: impl IntoIterator<Item = (usize, C)>) -> Self {
        let cursors = cursors.into_iter();
        let mut merge = Self::with_capacity(cursors.size_hint().0);
        cursors.for_each(|(rank, cursor)| merge.push(rank, cursor));
        merge
    }

    /// A merge without cursors, with memory for so many.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self {
            lanes: Vec::with_capacity(count),
            least: 0,
            runner_up: None,
            direction: Direction::Forward,
            is_valid: false,
            found: None,
            needed: None,
            coverage: None,
            passed: Passed::new(),
        }
    }

    /// Adds a cursor. Seek afterwards.
    pub(crate) fn push(&mut self, rank: usize, cursor: C) {
        let (loser, order) = (Waiting { lane: NO_LANE, order: u64::MAX }, u64::MAX);
        self.lanes.push(Lane { cursor, pending: None, rank, loser, order, is_valid: false, is_cut: false });
    }

    /// The number of cursors.
    pub(crate) const fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Ends where the remaining keys are outside of a range, if that is known without a read.
    pub(crate) fn within(mut self, needed: Arc<dyn Needed>) -> Self {
        self.needed = Some(needed);
        self
    }

    /// Does not read entries that range tombstones delete, as far as this is known. To be called after [`MergeCursor::within`].
    pub(crate) fn set_coverage(&mut self, coverage: Option<Coverage>) {
        self.coverage = coverage.map(Box::new);
    }

    #[inline]
    pub(super) const fn has_coverage(&self) -> bool {
        self.coverage.is_some()
    }

    /// The sequence number below which range tombstones delete entries of `key`.
    pub(super) fn covered_sequence(&mut self, key: &[u8]) -> Result<Sequence> {
        match &mut self.coverage {
            Some(coverage) => Ok(coverage.span_at(key)?.sequence),
            None => Ok(0),
        }
    }

    /// Moves past entries that a range tombstone deletes, if it is at such an entry.
    pub(super) fn skip_deleted(&mut self, direction: Direction) -> Result<bool> {
        debug_assert!(self.is_valid);
        let (Some(coverage), Some(needed)) = (&mut self.coverage, &self.needed) else { return Ok(false) };
        let Some(least) = self.lanes.get(self.least) else { return Ok(false) };
        let span = coverage.span_at(least.cursor.key())?;
        if span.sequence <= least.cursor.sequence() {
            return Ok(false);
        }
        self.passed.add_span(least.cursor.key(), span);
        let has_moved = direction == self.direction && {
            self.is_valid = false;
            skip_lanes(&mut self.lanes, span, behind(needed.range(), span, direction))?
        };
        self.after_skip(has_moved)?;
        if !has_moved {
            self.step_least(direction)?;
        }
        Ok(true)
    }

    /// Moves lanes past the entries that newer lanes delete, if the least lane, which is pending, is at such entries. No key counts as passed:
    /// none was read, and a newer lane may have a visible entry at the key of the pending one.
    fn skip_pending(&mut self) -> Result<bool> {
        let (Some(coverage), Some(needed)) = (&mut self.coverage, &self.needed) else { return Ok(false) };
        let Some(least) = self.lanes.get(self.least) else { return Ok(false) };
        let (key, sequence) = least.entry();
        // Behind the key another span may begin.
        if (sequence == 0) != (self.direction == Direction::Backward) {
            return Ok(false);
        }
        let span = coverage.span_at(key)?;
        if span.sequence == 0 || span.rank >= least.rank {
            return Ok(false);
        }
        skip_lanes(&mut self.lanes, span, behind(needed.range(), span, self.direction))
    }

    fn after_skip(&mut self, has_moved: bool) -> Result<()> {
        if !has_moved {
            self.is_valid = true;
            return Ok(());
        }
        self.build();
        self.settle()
    }

    /// Whether entries may follow the current one without a check, up to [`MergeCursor::end_of_stretch`]: no range tombstone covers it.
    #[inline]
    pub(super) fn may_lend(&self, direction: Direction) -> bool {
        direction == self.direction
            && self.coverage.as_ref().is_none_or(|coverage| coverage.is_clear_at(self.key()))
    }

    /// Whether the least lane has won twice, or is the only one.
    pub(super) const fn has_won_again(&self) -> bool {
        self.runner_up.is_some() || self.lanes.len() == 1
    }

    pub(super) const fn least(&self) -> usize {
        self.least
    }

    pub(super) fn cursor_of(&self, lane: usize) -> &C {
        &self.lane(lane).cursor
    }

    /// The cursor of a lane, to lend it. [`MergeCursor::refresh`] and [`MergeCursor::restart`] follow.
    pub(super) fn cursor_of_mut(&mut self, lane: usize) -> &mut C {
        &mut self.lane_mut(lane).cursor
    }

    /// The cursor of a lane that is at an entry.
    pub(super) fn entry_of(&self, lane: usize) -> Option<&C> {
        let lane = self.lane(lane);
        (lane.is_valid && lane.pending.is_none()).then_some(&lane.cursor)
    }

    /// The first end of these: `end`, the next range tombstone, the next keys of other lanes that are not lent.
    pub(super) fn end_of_stretch<'a>(
        &'a self,
        end: Bound<&'a [u8]>,
        is_lent: impl Fn(&C) -> bool,
    ) -> Bound<&'a [u8]> {
        let direction = self.direction;
        let span =
            self.coverage.as_ref().map_or(Bound::Unbounded, |coverage| coverage.end_of_span(direction));
        let stays = |lane: &&Lane<C>| lane.is_valid && (lane.pending.is_some() || !is_lent(&lane.cursor));
        let keys = self.others().filter(stays).map(|lane| Bound::Excluded(lane.entry().0));
        keys.fold(nearer(span, end, direction), |end, key| nearer(key, end, direction))
    }

    /// Makes the merge invalid while cursors are lent, until [`MergeCursor::restart`].
    pub(super) const fn suspend(&mut self) {
        self.is_valid = false;
    }

    /// Notes the position to which the cursor of a lane has moved. [`MergeCursor::restart`] follows.
    pub(super) fn refresh(&mut self, lane: usize) {
        let direction = self.direction;
        self.lane_mut(lane).refresh(direction);
    }

    /// Continues with the least of the lanes, of which some have moved.
    ///
    /// # Errors
    /// Those of lanes that are read now.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.build();
        self.settle().inspect_err(|_| self.is_valid = false)
    }

    /// The cursors after the last seek.
    pub(crate) fn sought(&self) -> impl Iterator<Item = Sought<'_, C>> {
        self.lanes.iter().enumerate().map(|(lane, Lane { cursor, pending, is_cut, .. })| Sought {
            cursor,
            is_read: pending.is_none() && !is_cut,
            was_found: self.found == Some(lane),
        })
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the tree holds numbers of lanes only")]
    fn lane(&self, lane: usize) -> &Lane<C> {
        &self.lanes[lane]
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the tree holds numbers of lanes only")]
    fn lane_mut(&mut self, lane: usize) -> &mut Lane<C> {
        &mut self.lanes[lane]
    }

    /// Whether no other lane may have an entry of the current key. Of the others, the next one is on the path of the least lane.
    #[inline]
    fn is_alone_at_key(&self) -> bool {
        let least = self.lane(self.least);
        let mut node = self.first_node(self.least);
        while node > 0 {
            let loser = self.lane(node).loser;
            if loser.order == least.order && self.has_key(loser.lane, least.cursor.key()) {
                return false;
            }
            node /= 2;
        }
        true
    }

    /// Whether a lane may have an entry of a key that is not before its own one.
    #[inline(never)]
    fn has_key(&self, lane: usize, key: &[u8]) -> bool {
        let lane = self.lane(lane);
        lane.is_valid && lane.entry().0 == key
    }

    /// The lanes except the least.
    fn others(&self) -> impl Iterator<Item = &Lane<C>> {
        self.lanes.iter().enumerate().filter(|(number, _)| *number != self.least).map(|(_, lane)| lane)
    }

    /// The inner node at which a lane plays its first match; the next ones are at half of the number, up to 1.
    #[inline]
    const fn first_node(&self, lane: usize) -> usize {
        (self.lanes.len() + lane) / 2
    }

    /// A lane with its number.
    #[inline]
    fn waiting(&self, lane: usize) -> Waiting {
        Waiting { lane, order: self.lane(lane).order }
    }

    /// Whether a lane is before another in the current direction.
    #[inline]
    fn is_before(&self, left: Waiting, right: Waiting) -> bool {
        if left.order == right.order {
            self.is_entry_before(left.lane, right.lane)
        } else {
            left.order < right.order
        }
    }

    #[inline(never)]
    fn is_entry_before(&self, left: usize, right: usize) -> bool {
        let (left_lane, right_lane) = (self.lane(left), self.lane(right));
        if !left_lane.is_valid || !right_lane.is_valid {
            return left_lane.is_valid;
        }
        let order = compare_entries(left_lane.entry(), right_lane.entry());
        order.then(left.cmp(&right)).is_lt() == (self.direction == Direction::Forward)
    }

    /// Seeks in all lanes. Of several lanes, those whose cursors return a hint are pending. A single lane reads its block: a candidate
    /// would save nothing.
    fn seek_lanes(&mut self, target: SeekTarget<'_>) -> Result<()> {
        self.is_valid = false;
        self.direction = target.direction();
        let is_covered = self.has_coverage();
        if let ([lane], false) = (self.lanes.as_mut_slice(), is_covered) {
            // Nothing is compared: the lane needs no number.
            target.seek(&mut lane.cursor)?;
            lane.is_valid = lane.cursor.is_valid();
            self.is_valid = lane.is_valid;
            self.found = self.is_valid.then_some(0);
            return Ok(());
        }
        let needed = self.needed.as_deref().and_then(|needed| probe_of(needed, target));
        for lane in &mut self.lanes {
            let mut bound = lane.pending.take().map_or_else(Vec::new, |(key, _)| key);
            bound.clear();
            // All lanes are prepared before the first one seeks: their cache misses overlap.
            let hint = target.prepare(&mut lane.cursor, needed.as_ref(), &mut bound)?;
            lane.defer(hint, bound, target, is_covered);
        }
        for lane in self.lanes.iter_mut().filter(|lane| lane.pending.is_none() && !lane.is_cut) {
            target.seek(&mut lane.cursor)?;
            lane.refresh(target.direction());
        }
        self.build();
        self.settle()?;
        self.found = self.is_valid.then_some(self.least);
        Ok(())
    }

    /// Moves pending lanes to their entries until the least lane is at an entry, or is outside of the range.
    #[inline]
    fn settle(&mut self) -> Result<()> {
        if self.is_valid && self.lane(self.least).pending.is_some() { self.settle_pending() } else { Ok(()) }
    }

    #[inline(never)]
    fn settle_pending(&mut self) -> Result<()> {
        while self.is_valid && self.lane(self.least).pending.is_some() {
            self.is_valid = false;
            if self.is_least_out_of_range() {
                return Ok(());
            }
            if self.skip_pending()? {
                self.build();
                continue;
            }
            let direction = self.direction;
            self.lane_mut(self.least).settle(direction)?;
            self.update_least();
        }
        Ok(())
    }

    /// Whether the keys of the least lane, which is pending, are outside of the range.
    fn is_least_out_of_range(&self) -> bool {
        let (key, sequence) = self.lane(self.least).entry();
        self.needed.as_ref().is_some_and(|needed| match (self.direction, sequence) {
            (Direction::Forward, _) => needed.range().is_above(key),
            (Direction::Backward, 0) => needed.range().is_below(key),
            (Direction::Backward, _) => needed.range().begins_at_or_behind(key),
        })
    }

    /// Plays all matches: at each inner node the first lane waits for the second, and the winner goes up.
    fn build(&mut self) {
        self.runner_up = None;
        self.lanes.iter_mut().for_each(|lane| lane.loser.lane = NO_LANE);
        for lane in 0..self.lanes.len() {
            let (mut winner, mut node) = (self.waiting(lane), self.first_node(lane));
            while node > 0 {
                let waiting = std::mem::replace(&mut self.lane_mut(node).loser, winner);
                if waiting.lane == NO_LANE {
                    break;
                }
                if self.is_before(waiting, winner) {
                    winner = waiting;
                } else {
                    self.lane_mut(node).loser = waiting;
                }
                node /= 2;
            }
            if node == 0 {
                self.least = winner.lane;
            }
        }
        self.is_valid = self.lanes.get(self.least).is_some_and(|lane| lane.is_valid);
    }

    /// Finds the least lane after the least lane has moved.
    #[inline]
    fn update_least(&mut self) {
        let is_least_still = match self.runner_up {
            Some(runner_up) => !self.is_before(self.waiting(runner_up), self.waiting(self.least)),
            None => self.lanes.len() == 1,
        };
        if !is_least_still {
            self.replay();
        }
        self.is_valid = self.lane(self.least).is_valid;
    }

    /// Replays the matches on the path of the least lane.
    #[inline]
    fn replay(&mut self) {
        let (mut winner, mut node) = (self.waiting(self.least), self.first_node(self.least));
        while node > 0 {
            let loser = self.lane(node).loser;
            if self.is_before(loser, winner) {
                self.lane_mut(node).loser = winner;
                winner = loser;
            }
            node /= 2;
        }
        let has_won_again = winner.lane == self.least;
        self.least = winner.lane;
        self.runner_up = if has_won_again { self.best_loser() } else { None };
    }

    /// The best of the lanes that wait on the path of the least one.
    fn best_loser(&self) -> Option<usize> {
        let mut node = self.first_node(self.least);
        let mut best: Option<Waiting> = None;
        while node > 0 {
            let loser = self.lane(node).loser;
            if best.is_none_or(|best| self.is_before(loser, best)) {
                best = Some(loser);
            }
            node /= 2;
        }
        best.map(|best| best.lane)
    }

    #[inline]
    fn step_least(&mut self, direction: Direction) -> Result<()> {
        debug_assert!(self.is_valid);
        self.is_valid = false;
        if let [lane] = self.lanes.as_mut_slice() {
            // Nothing is compared: the lane needs no number, and both directions are one.
            self.direction = direction;
            lane.cursor.step(direction)?;
            lane.is_valid = lane.cursor.is_valid();
            self.is_valid = lane.is_valid;
            return Ok(());
        }
        self.step_among(direction)
    }

    /// A step of one of several lanes.
    #[inline]
    fn step_among(&mut self, direction: Direction) -> Result<()> {
        if direction != self.direction {
            self.change_direction(direction)?;
            self.lane_mut(self.least).step(direction)?;
            self.build();
            return Ok(());
        }
        self.lane_mut(self.least).step(direction)?;
        self.update_least();
        self.settle()
    }

    /// Moves all lanes but the least to the other side of the current entry.
    #[cold]
    fn change_direction(&mut self, direction: Direction) -> Result<()> {
        let least = self.least;
        self.direction = direction;
        let lane = self.lane_mut(least);
        lane.order = order_of(lane.cursor.key(), direction);
        for lane in (0..self.lanes.len()).filter(|&lane| lane != least) {
            if self.lane(lane).is_valid && self.lane(lane).pending.is_none() {
                self.lane_mut(lane).step(direction)?;
            } else if self.lane(lane).is_cut || self.lane(lane).pending.is_some() {
                let key = self.lane(least).cursor.key().to_vec();
                self.lane_mut(lane).seek_to(&key, direction)?;
            } else {
                self.lane_mut(lane).seek_end(direction)?;
            }
            // More than one step only if a memtable got entries in between.
            while self.is_before(self.waiting(lane), self.waiting(least)) {
                self.lane_mut(lane).step(direction)?;
            }
        }
        Ok(())
    }
}

impl<C: Cursor> Cursor for MergeCursor<C> {
    fn seek_first(&mut self) -> Result<()> {
        self.seek_lanes(SeekTarget::First)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.seek_lanes(SeekTarget::Last)
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        self.seek_lanes(SeekTarget::From(key, sequence))
    }

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        self.seek_lanes(SeekTarget::UpTo(key, kind))
    }

    fn skip_covered(&mut self, span: &CoveredSpan, target: SkipTarget) -> Result<bool> {
        debug_assert!(self.is_valid);
        if target.direction != self.direction {
            return Ok(false);
        }
        self.is_valid = false;
        let has_moved = skip_lanes(&mut self.lanes, span, target)?;
        self.after_skip(has_moved)?;
        Ok(has_moved)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.step_least(Direction::Forward)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        self.step_least(Direction::Backward)
    }

    #[inline(always)]
    fn is_only_version(&self, snapshot: Sequence) -> bool {
        self.lane(self.least).cursor.is_only_version(snapshot) && self.is_alone_at_key()
    }

    fn skip(&mut self, count: u64, upper: Bound<&[u8]>) -> Result<u64> {
        debug_assert!(self.is_valid);
        if self.direction == Direction::Backward {
            return Ok(0);
        }
        let limit = self.others().filter(|lane| lane.is_valid).map(|lane| lane.entry().0).min();
        let limit = limit.map(<[u8]>::to_vec);
        let upper = match (&limit, upper) {
            (Some(limit), Bound::Included(key) | Bound::Excluded(key)) if key < limit.as_slice() => upper,
            (Some(limit), _) => Bound::Excluded(limit.as_slice()),
            (None, _) => upper,
        };
        self.is_valid = false;
        let least = self.least;
        let lane = self.lane_mut(least);
        let skipped = lane.cursor.skip(count, upper)?;
        lane.refresh(Direction::Forward);
        self.is_valid = lane.is_valid;
        Ok(skipped)
    }

    #[inline]
    fn is_valid(&self) -> bool {
        self.is_valid
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.lane(self.least).cursor.key()
    }

    #[inline]
    fn sequence(&self) -> Sequence {
        self.lane(self.least).cursor.sequence()
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.lane(self.least).cursor.kind()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.lane(self.least).cursor.value()
    }

    fn value_slice(&self) -> Slice {
        self.lane(self.least).cursor.value_slice()
    }
}
