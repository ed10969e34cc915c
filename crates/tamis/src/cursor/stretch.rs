//! A stretch: entries that a scan returns one after another without asking the merge.
//!
//! Between two entries of a stretch nothing else can come, and all of them are visible: no other source has an entry before its end, the
//! range and the keys that no range tombstone covers reach at least to its end, and its sources are one of these:
//!
//! - Runs at plain blocks of which the snapshot sees all (`docs/format/table.md`). A run goes from block to block alone. How many
//!   entries of a block are before the end is computed once. Of several runs, each step compares the numbers of their next keys: the first
//!   eight bytes behind those that all blocks share.
//! - A sorted view, which knows the visible entries. Each step compares the key with the end.
//!
//! The merge lends the cursors of its lanes to the scan ([`super::merge`]), and gets them back when the stretch ends: at its end, at the
//! first or last block of a table, at a block that is not plain, at a key that two runs have, and when the scan changes its direction or
//! seeks.
//!
//! ```text
//! block of the least lane    [ c  e | f  h  k  m | p  s ]      current entry e, range ..p
//! block of another run       [ b | g  l | r ]                  stretch: f g h k l m
//! next key of a memtable                           n
//! ```

use std::{cmp::Ordering, mem, ops::Bound};

use tamis_bits::common_prefix_length;
use tamis_filter::Direction;

use crate::{
    cursor::{
        Cursor as _,
        bounded::{as_slice, is_before},
        merge::{MergeCursor, order_of},
        source::{Lent, Source},
        view_source::ViewSource,
    },
    error::Result,
    key::{Kind, Sequence},
    slice::Slice,
    table::cursor::TableCursor,
};

/// A step of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// At the next entry.
    Moved,
    /// The stretch has ended; no cursor has moved.
    Ended,
    /// The stretch has ended; a cursor has moved behind the entry that was returned last.
    Left,
}

/// See the head of this file.
pub(crate) struct Stretch {
    direction: Direction,
    entries: Entries,
}

enum Entries {
    Blocks(Blocks),
    View { lane: usize, source: Box<ViewSource>, end: Bound<Vec<u8>> },
}

impl Stretch {
    /// Moves to the next entry in a direction.
    ///
    /// # Errors
    /// Those of the cursors.
    #[inline]
    pub(crate) fn step(&mut self, direction: Direction) -> Result<Step> {
        if direction != self.direction {
            return Ok(Step::Ended);
        }
        match &mut self.entries {
            Entries::Blocks(blocks) => blocks.step(direction),
            Entries::View { source, end, .. } => {
                source.step(direction)?;
                let end = as_slice(end);
                // A damaged view is replaced by all versions of its runs.
                let is_within = source.is_valid()
                    && source.shows_visible()
                    && source.kind() == Kind::Put
                    && (end == Bound::Unbounded || is_before(source.key(), end, direction));
                Ok(if is_within { Step::Moved } else { Step::Left })
            }
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match &self.entries {
            Entries::Blocks(blocks) => blocks.current.cursor.key(),
            Entries::View { source, .. } => source.key(),
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match &self.entries {
            Entries::Blocks(blocks) => blocks.current.cursor.value(),
            Entries::View { source, .. } => source.value(),
        }
    }

    /// Whether it returned so few entries that lending the cursors cost more than it saved.
    pub(super) const fn is_short(&self) -> bool {
        match &self.entries {
            // A cursor is lent, placed and returned at the cost of about two steps of the merge.
            Entries::Blocks(blocks) => (blocks.moves as usize) < 2 * (blocks.others.len() + 1),
            Entries::View { .. } => false,
        }
    }

    pub(crate) fn value_slice(&self) -> Slice {
        match &self.entries {
            Entries::Blocks(blocks) => blocks.current.cursor.value_slice(),
            Entries::View { source, .. } => source.value_slice(),
        }
    }
}

/// The runs of a stretch, each at an entry before its end.
struct Blocks {
    /// The run with the current entry. The entries of the others are behind it.
    current: BlockLane,
    others: Vec<BlockLane>,
    end: Bound<Vec<u8>>,
    snapshot: Sequence,
    /// How many first bytes all keys of the blocks share.
    shared: usize,
    /// The entries that were returned.
    moves: u32,
}

/// The cursor of a run at a plain block.
struct BlockLane {
    /// Its lane in the merge.
    lane: usize,
    /// The position of its table in the run.
    table_index: usize,
    cursor: Box<TableCursor>,
    /// The entries of the block that follow the current one, before the end.
    left: usize,
    /// The block has entries behind the end.
    is_bounded: bool,
    /// The number of its key. Only among several.
    order: u64,
}

impl BlockLane {
    fn number(&mut self, shared: usize, direction: Direction) {
        self.order = order_of(self.cursor.key().get(shared..).unwrap_or_default(), direction);
    }

    /// Counts the entries before an end; `false` if the block is malformed, which the step that reaches it reports.
    fn count(&mut self, end: Bound<&[u8]>, direction: Direction) -> bool {
        let in_block = self.cursor.entries_before(Bound::Unbounded, direction);
        let (Ok(in_block), Ok(left)) = (in_block, self.cursor.entries_before(end, direction)) else {
            return false;
        };
        (self.left, self.is_bounded) = (left, left < in_block);
        self.cursor.prefetch_behind(direction);
        true
    }
}

impl Blocks {
    #[inline]
    fn step(&mut self, direction: Direction) -> Result<Step> {
        if self.current.left > 0 {
            self.current.left -= 1;
            self.current.cursor.step_within(direction)?;
        } else {
            match self.change_block(direction)? {
                Step::Moved => {}
                ended => return Ok(ended),
            }
        }
        self.moves = self.moves.wrapping_add(1);
        if self.others.is_empty() {
            return Ok(Step::Moved);
        }
        self.current.number(self.shared, direction);
        Ok(self.select(direction))
    }

    /// Makes the run with the next key the current one.
    #[inline]
    fn select(&mut self, direction: Direction) -> Step {
        let mut least = self.current.order;
        let (mut winner, mut is_tie) = (None, false);
        for (position, lane) in self.others.iter().enumerate() {
            if lane.order <= least {
                is_tie = lane.order == least;
                least = lane.order;
                winner = Some(position);
            }
        }
        if is_tie {
            return self.select_by_key(direction);
        }
        self.make_current(winner);
        Step::Moved
    }

    /// As [`Blocks::select`], if numbers are equal.
    #[inline(never)]
    fn select_by_key(&mut self, direction: Direction) -> Step {
        let mut least = self.current.cursor.key();
        let (mut winner, mut is_tie) = (None, false);
        for (position, lane) in self.others.iter().enumerate() {
            let key = lane.cursor.key();
            match (key.cmp(least), direction) {
                (Ordering::Equal, _) => is_tie = true,
                (Ordering::Less, Direction::Forward) | (Ordering::Greater, Direction::Backward) => {
                    (least, winner, is_tie) = (key, Some(position), false);
                }
                _ => {}
            }
        }
        // The merge decides which version is the newest.
        if is_tie {
            return Step::Left;
        }
        self.make_current(winner);
        Step::Moved
    }

    #[inline]
    fn make_current(&mut self, winner: Option<usize>) {
        if let Some(lane) = winner.and_then(|position| self.others.get_mut(position)) {
            mem::swap(&mut self.current, lane);
        }
    }

    /// Moves the current run to its next block.
    #[inline(never)]
    fn change_block(&mut self, direction: Direction) -> Result<Step> {
        let BlockLane { cursor, is_bounded, .. } = &mut self.current;
        let is_at_end = matches!(&self.end, Bound::Included(end) if end.as_slice() == cursor.key());
        if *is_bounded || is_at_end || !cursor.has_block_behind(direction) {
            return Ok(Step::Ended);
        }
        cursor.step(direction)?;
        let end = as_slice(&self.end);
        // The first and the last key of a table may continue in another one.
        let is_within = cursor.is_only_version(self.snapshot)
            && !cursor.is_at_edge()
            && is_before(cursor.key(), end, direction)
            && self.current.count(end, direction);
        if !is_within {
            return Ok(Step::Left);
        }
        self.number_all(direction);
        Ok(Step::Moved)
    }

    /// Numbers all keys.
    fn number_all(&mut self, direction: Direction) {
        let prefix = self.current.cursor.block_prefix();
        let lengths = self.others.iter().map(|lane| common_prefix_length(lane.cursor.block_prefix(), prefix));
        // Nothing is compared with the keys of a run that is alone.
        let Some(shared) = lengths.min() else { return };
        self.shared = shared;
        for lane in self.others.iter_mut().chain([&mut self.current]) {
            lane.number(self.shared, direction);
        }
    }
}

impl MergeCursor<Source> {
    /// The entries that follow the current one in a direction without a check, up to `end` at most. Until [`MergeCursor::give_back`] the merge
    /// has no entry.
    pub(super) fn lend(
        &mut self,
        direction: Direction,
        snapshot: Sequence,
        end: Bound<&[u8]>,
    ) -> Option<Stretch> {
        if !self.may_lend(direction) {
            return None;
        }
        let least = self.least();
        let entries = if self.cursor_of(least).is_view() {
            let end = self.end_of_stretch(end, |_| false).map(<[u8]>::to_vec);
            let Some(Lent::View(source)) = self.cursor_of_mut(least).lend() else { return None };
            Entries::View { lane: least, source, end }
        } else {
            Entries::Blocks(self.lend_blocks(direction, snapshot, end)?)
        };
        self.suspend();
        Some(Stretch { direction, entries })
    }

    /// Whether entries of the least lane, a view, alternate with those of others: a stretch would have one entry.
    pub(super) fn is_alternating_view(&self) -> bool {
        !self.has_won_again() && self.cursor_of(self.least()).is_view()
    }

    fn lend_blocks(&mut self, direction: Direction, snapshot: Sequence, end: Bound<&[u8]>) -> Option<Blocks> {
        let is_lent = |cursor: &Source| cursor.plain_block(snapshot).is_some();
        let (least, plain) = (self.least(), self.cursor_of(self.least()).plain_block(snapshot)?);
        let end = self.end_of_stretch(end, is_lent);
        // A malformed block is reported by the step that reaches it.
        if plain.entries_before(end, direction).unwrap_or_default() == 0 {
            return None;
        }
        let end = end.map(<[u8]>::to_vec);
        let mut others = Vec::new();
        for lane in (0..self.len()).filter(|&lane| lane != least) {
            let is_needed = self
                .entry_of(lane)
                .is_some_and(|cursor| is_lent(cursor) && is_before(cursor.key(), as_slice(&end), direction));
            if is_needed {
                others.extend(self.lend_block(lane, as_slice(&end), direction));
            }
        }
        let current = self.lend_block(least, as_slice(&end), direction)?;
        let mut blocks = Blocks { current, others, end, snapshot, shared: 0, moves: 0 };
        blocks.number_all(direction);
        Some(blocks)
    }

    /// The cursor of a lane at a plain block.
    fn lend_block(&mut self, lane: usize, end: Bound<&[u8]>, direction: Direction) -> Option<BlockLane> {
        let Some(Lent::Table(table_index, cursor)) = self.cursor_of_mut(lane).lend() else { return None };
        let mut lent = BlockLane { lane, table_index, cursor, left: 0, is_bounded: true, order: 0 };
        // Without a count the stretch ends where this lane must move.
        lent.count(end, direction);
        Some(lent)
    }

    /// Continues at the current entry of a stretch, or behind it if a cursor has left it.
    ///
    /// # Errors
    /// Those of malformed blocks, and of lanes that are read now.
    pub(super) fn give_back(&mut self, stretch: Stretch) -> Result<()> {
        let mut result = Ok(());
        match stretch.entries {
            Entries::View { lane, source, .. } => self.return_to(lane, Lent::View(source)),
            Entries::Blocks(Blocks { current, others, .. }) => {
                for BlockLane { lane, table_index, mut cursor, .. } in others.into_iter().chain([current]) {
                    result = result.and(cursor.end_stretch());
                    self.return_to(lane, Lent::Table(table_index, cursor));
                }
            }
        }
        result.and_then(|()| self.restart())
    }

    fn return_to(&mut self, lane: usize, lent: Lent) {
        self.cursor_of_mut(lane).give_back(lent);
        self.refresh(lane);
    }
}
