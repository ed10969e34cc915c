//! Scans: the entries of a key range in both directions, at one point in time.
//!
//! A scan holds the memtables and the version with which it began. It borrows nothing, may move to another thread, and may
//! outlive the database: while the store is open, no file of the version is deleted. The first step creates one cursor for each memtable and for each run with a table in the range; a loser
//! tree merges them. Of each key the scan returns the newest version at or below its sequence number, and skips tombstones.
//!
//! If the range is strictly inside one table of a run, the table may still hold no key of it. The table's filter is checked then
//! ([`super::select_runs`]); a table whose filter rejects the range gets no cursor. An empty range that all filters reject reads
//! no block. The other runs are read when the merge reaches their candidates or smallest keys ([`crate::cursor::merge`]). A range with two
//! bounds in one partition is checked when the scan is created: a scan that can have no entry holds nothing.
//!
//! Of several partitions, only those that the scan reaches get cursors ([`super::partition_walk`]).
//!
//! Steps from the front and from the back use one cursor each, created when first needed. The scan ends where they meet.

use std::{fmt, iter::FusedIterator, mem, sync::Arc};

use arc_swap::Guard;
use tamis_filter::{Direction, auto::QueryKind};
use tamis_vfs::fork::Process;

use super::{
    ReadPath,
    partition_walk::RangeCursor,
    scan_query::ScanQuery,
    scan_source::{ScanPoint, ScanSource},
    select_views::Selection,
    snapshot::SnapshotPoint,
    touched_range::TouchedRange,
};
use crate::{
    cursor::{
        bounded::ScanRange,
        stretch::{Step, Stretch},
    },
    error::{Error, Result},
    key::Sequence,
    slice::Slice,
    store::keyspace_state::{KeyspaceState, ReadState},
};

/// The entries of a key range at the time when the scan was created.
///
/// A scan continues after its store was closed. It opens tables when it reaches them: once the store is open again, here or in another
/// process, tables that compactions have replaced may be deleted, and a scan that then reaches one of them for the first time ends with
/// [`crate::Error::MissingFile`], or [`crate::Error::Io`] (`NotFound`) for a table whose file the store had closed. It never returns wrong entries. Read a scan to its end before the store is opened again.
///
/// As an iterator it returns `Result<(key, value)>` from either end; an error ends it, except [`crate::Error::MergeFailed`], after which the next step continues behind the key. For long scans use [`Scan::move_next`] with
/// [`Scan::key`] and [`Scan::value`]: they return the same entries without a copy. [`Scan::move_prev`] and the `seek` methods
/// move in both directions.
///
/// Cost: a run whose filter rejects the range is not read. The others are read when the merge reaches them. Their smallest keys, and the
/// candidates that SuRF filters name (of ranges with two bounds Rosetta filters, too), are known without a read: so if filters name
/// candidates, the first step reads about one block. Of a run without a candidate it reads one block (two if the range begins between
/// blocks). After that each block is read once. In the partitioned layout these are the runs of one partition; the next partition is
/// read when the scan reaches it. [`Iterator::nth`], and so the adapters `skip` and `step_by`, read none
/// of the blocks between if a sorted view covers all runs.
///
/// ```
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let db = tamis::Db::open(folder.path())?;
/// for number in 0..100_u32 {
///     db.put(number.to_be_bytes(), b"value")?;
/// }
/// let mut scan = db.range(10_u32.to_be_bytes()..20_u32.to_be_bytes());
/// let mut count = 0;
/// while scan.move_next()? {
///     assert_eq!(scan.value(), b"value");
///     count += 1;
/// }
/// assert_eq!(count, 10);
/// # Ok(())
/// # }
/// ```
pub struct Scan {
    /// `None`: there is no entry.
    source: Result<Option<Arc<ScanSource>>>,
    front: Side,
    /// Once it has moved: most scans move from one end.
    back: Option<Box<Side>>,
    /// The two ends have met, or an error ended the scan.
    is_ended: bool,
    /// The process that may use the scan: in a forked child, locks that a step needs may be held forever.
    process: Process,
}

/// The number of entries from which a view is searched for the entry behind them: as many steps cost as much as the search.
const SKIP_MIN: u64 = 16;

/// The position of a cursor relative to the entries that the scan has returned and will return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before the first entry.
    Start,
    /// The cursor is on the entry that `move_next` returns next.
    Before,
    /// The cursor is on the entry that was returned last.
    On,
    /// The cursor is on the entry that `move_prev` returns next.
    After,
    /// After the last entry.
    End,
}

/// The source of a scan, in its own process.
#[inline]
fn usable(source: &Result<Option<Arc<ScanSource>>>, process: Process) -> Result<Option<&Arc<ScanSource>>> {
    match source {
        _ if !process.is_current() => Err(Error::Forked),
        Ok(source) => Ok(source.as_ref()),
        Err(error) => Err(error.clone()),
    }
}

/// One end of a scan.
struct Side {
    cursor: Option<RangeCursor>,
    /// The entries that need no cursor until they end. Only while the position is [`Position::On`] and the other end has not begun: of two
    /// ends, each step asks whether they have met.
    stretch: Option<Box<Stretch>>,
    position: Position,
    /// The last step failed: the position of the cursor is undefined until a seek.
    is_failed: bool,
    /// The last movement reached a key whose merge operator failed: the next step continues behind it.
    is_at_failed_key: bool,
}

impl Side {
    const fn new(position: Position) -> Self {
        Self { cursor: None, stretch: None, position, is_failed: false, is_at_failed_key: false }
    }

    #[inline]
    fn cursor(&mut self, source: &Arc<ScanSource>) -> Result<&mut RangeCursor> {
        self.end_stretch()?;
        Ok(self.cursor.get_or_insert_with(|| RangeCursor::new(source)))
    }

    /// Gives the cursor of the stretch back, which then has the current entry.
    #[inline]
    fn end_stretch(&mut self) -> Result<()> {
        match (self.stretch.take(), &mut self.cursor) {
            (Some(stretch), Some(cursor)) => {
                cursor.give_back(*stretch).inspect_err(|_| self.is_failed = true)
            }
            _ => Ok(()),
        }
    }

    /// Moves to the first entry of a stretch, if one begins here.
    fn begin_stretch(&mut self, direction: Direction) -> Result<Step> {
        if self.position != Position::On || self.is_failed {
            return Ok(Step::Ended);
        }
        self.stretch = self.cursor.as_mut().and_then(|cursor| cursor.lend(direction)).map(Box::new);
        self.stretch.as_mut().map_or(Ok(Step::Ended), |stretch| stretch.step(direction))
    }

    /// Moves on from a stretch whose cursor has left it.
    fn leave_stretch(&mut self, direction: Direction, source: &Arc<ScanSource>) -> Result<bool> {
        let (Some(cursor), Some(stretch)) = (&mut self.cursor, self.stretch.take()) else {
            return self.step(direction, source);
        };
        cursor.leave(*stretch, direction)?;
        cursor.note_step();
        let is_valid = cursor.is_valid();
        self.position = match direction {
            _ if is_valid => Position::On,
            Direction::Forward => Position::End,
            Direction::Backward => Position::Start,
        };
        Ok(is_valid)
    }

    fn step(&mut self, direction: Direction, source: &Arc<ScanSource>) -> Result<bool> {
        match direction {
            Direction::Forward => self.move_next(source),
            Direction::Backward => self.move_prev(source),
        }
    }

    /// Moves to the next entry; returns `false` after the last one.
    fn move_next(&mut self, source: &Arc<ScanSource>) -> Result<bool> {
        let position = self.position;
        let cursor = self.cursor(source)?;
        match position {
            Position::Start => {
                cursor.seek_first()?;
                source.record_first_step(QueryKind::SeekForward, cursor.found(), cursor.partition());
            }
            Position::Before => {}
            Position::On | Position::After => cursor.next()?,
            Position::End => return Ok(false),
        }
        cursor.note_step();
        let is_valid = cursor.is_valid();
        self.position = if is_valid { Position::On } else { Position::End };
        Ok(is_valid)
    }

    /// Moves to the previous entry; returns `false` before the first one.
    fn move_prev(&mut self, source: &Arc<ScanSource>) -> Result<bool> {
        let position = self.position;
        let cursor = self.cursor(source)?;
        match position {
            Position::Start => return Ok(false),
            Position::Before | Position::On => cursor.prev()?,
            Position::After => {}
            Position::End => {
                cursor.seek_last()?;
                source.record_first_step(QueryKind::SeekBackward, cursor.found(), cursor.partition());
            }
        }
        cursor.note_step();
        let is_valid = cursor.is_valid();
        self.position = if is_valid { Position::On } else { Position::Start };
        Ok(is_valid)
    }

    /// Moves to the entry behind the next `count` ones; returns `false` if there is none.
    fn move_nth(&mut self, source: &Arc<ScanSource>, count: u64) -> Result<bool> {
        if !self.move_next(source)? {
            return Ok(false);
        }
        let (mut rest, mut steps) = (count, 1);
        while rest > 0 {
            let skipped = if rest >= SKIP_MIN { self.cursor(source)?.skip(rest)? } else { 0 };
            rest -= skipped;
            // A view is left for the entries of memtables: if they are dense, few of the steps pay for a search.
            steps = if skipped >= SKIP_MIN { 2 } else { SKIP_MIN.min(2 * steps) };
            for _ in 0..rest.min(steps) {
                if !self.move_next(source)? {
                    return Ok(false);
                }
                rest -= 1;
            }
        }
        Ok(true)
    }

    /// Whether it has not moved, as the front.
    #[inline]
    fn is_new_front(&self) -> bool {
        self.cursor.is_none() && self.position == Position::Start
    }

    /// After an error: whether the side has ended.
    fn has_ended_by(&mut self, error: &Error) -> bool {
        let is_of_key = matches!(error, Error::MergeFailed { .. });
        if is_of_key {
            (self.position, self.is_at_failed_key) = (Position::On, true);
        } else {
            self.fail();
        }
        !is_of_key
    }

    /// Ends after an error.
    fn fail(&mut self) {
        // Its own error is that of the failed step.
        let _ = self.end_stretch();
        self.is_failed = true;
    }

    /// The entry that was returned last.
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        if let Some(stretch) = &self.stretch {
            return Some(Entry::InStretch(stretch));
        }
        let is_on = self.position == Position::On && !self.is_failed && !self.is_at_failed_key;
        let cursor = self.cursor.as_ref().filter(|cursor| is_on && cursor.is_valid());
        cursor.map(Entry::AtCursor)
    }
}

/// The current entry of one end of a scan.
enum Entry<'a> {
    InStretch(&'a Stretch),
    AtCursor(&'a RangeCursor),
}

impl<'a> Entry<'a> {
    #[inline]
    fn key(&self) -> &'a [u8] {
        match self {
            Self::InStretch(stretch) => stretch.key(),
            Self::AtCursor(cursor) => cursor.key(),
        }
    }

    #[inline]
    fn value(&self) -> &'a [u8] {
        match self {
            Self::InStretch(stretch) => stretch.value(),
            Self::AtCursor(cursor) => cursor.value(),
        }
    }

    fn value_slice(&self) -> Slice {
        match self {
            Self::InStretch(stretch) => stretch.value_slice(),
            Self::AtCursor(cursor) => cursor.value_slice(),
        }
    }
}

/// Ends the stretches before the front is positioned elsewhere: the back asks from now on whether it has met the front. An error of the front
/// is that of an entry that it leaves; the back returns its own at its next step.
fn end_stretches(front: &mut Side, back: &mut Option<Box<Side>>) {
    let _ = (front.end_stretch(), back.as_mut().map(|back| back.end_stretch()));
}

/// The back of a scan, which begins to move.
fn moved_back(back: &mut Option<Box<Side>>) -> &mut Side {
    back.get_or_insert_with(|| Box::new(Side::new(Position::End)))
}

/// An end of a scan.
#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

impl Scan {
    pub(crate) fn new(source: Result<Option<Arc<ScanSource>>>) -> Self {
        Self {
            source,
            front: Side::new(Position::Start),
            back: None,
            is_ended: false,
            process: Process::current(),
        }
    }

    /// Moves to the next entry in key order, whose key and value can then be read in place; returns `false` at the end.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corruption`] from the tables; [`Error::Forked`] in a child process; [`Error::KeyspaceDropped`] if the keyspace was
    /// dropped before the scan was created. The scan is finished then. [`Error::MergeFailed`] for a key: the next step continues behind it.
    pub fn move_next(&mut self) -> Result<bool> {
        self.step(End::Front, Direction::Forward)
    }

    /// Moves to the previous entry; returns `false` at the beginning.
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn move_prev(&mut self) -> Result<bool> {
        self.step(End::Front, Direction::Backward)
    }

    /// Positions the scan at `key`: [`Scan::move_next`] then returns the first entry at or after it, [`Scan::move_prev`] the last
    /// entry before it. Keys outside of the scan's range are clamped to its ends.
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        let kind = QueryKind::SeekForward;
        self.seek_with((kind, key), |cursor| cursor.seek(key), Position::Before, Position::End)
    }

    /// Positions the scan at `key`: [`Scan::move_prev`] then returns the last entry at or before it, [`Scan::move_next`] the first
    /// entry after it.
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        let seek = |cursor: &mut RangeCursor| cursor.seek_for_prev(key);
        self.seek_with((QueryKind::SeekBackward, key), seek, Position::After, Position::Start)
    }

    /// Positions the scan before its first entry, so that [`Scan::move_next`] returns it. Reads nothing.
    pub fn seek_to_first(&mut self) {
        self.move_to(Position::Start);
    }

    /// Positions the scan after its last entry, so that [`Scan::move_prev`] returns it. Reads nothing.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut scan = db.range(..);
    /// scan.seek_to_last();
    /// assert!(scan.move_prev()?);
    /// assert_eq!(scan.key(), b"b");
    /// # Ok(())
    /// # }
    /// ```
    pub fn seek_to_last(&mut self) {
        self.move_to(Position::End);
    }

    fn move_to(&mut self, position: Position) {
        // The next movement seeks, so that the cursor needs no entry.
        end_stretches(&mut self.front, &mut self.back);
        self.front.position = position;
        self.front.is_failed = false;
        self.is_ended = false;
    }

    fn seek_with(
        &mut self,
        (kind, sought): (QueryKind, &[u8]),
        seek: impl FnOnce(&mut RangeCursor) -> Result<()>,
        found: Position,
        none: Position,
    ) -> Result<()> {
        let Some(source) = usable(&self.source, self.process)? else { return Ok(()) };
        end_stretches(&mut self.front, &mut self.back);
        self.front.is_at_failed_key = false;
        let cursor = self.front.cursor(source)?;
        let result = seek(cursor).inspect(|()| {
            source.record_seek(kind, (Some(sought), cursor.found()), cursor.partition());
            cursor.note_step();
        });
        let is_valid = cursor.is_valid();
        self.is_ended = false;
        self.front.is_failed = false;
        self.front.position = if is_valid { found } else { none };
        result.inspect_err(|error| {
            self.front.has_ended_by(error);
        })
    }

    /// The key of the current entry; empty if the last [`Scan::move_next`] or [`Scan::move_prev`] returned `false`.
    pub fn key(&self) -> &[u8] {
        match &self.front.stretch {
            Some(stretch) => stretch.key(),
            None => self.front_entry().map_or(&[], |entry| entry.key()),
        }
    }

    /// The value of the current entry; empty if the last [`Scan::move_next`] or [`Scan::move_prev`] returned `false`.
    pub fn value(&self) -> &[u8] {
        match &self.front.stretch {
            Some(stretch) => stretch.value(),
            None => self.front_entry().map_or(&[], |entry| entry.value()),
        }
    }

    #[inline]
    fn front_entry(&self) -> Option<Entry<'_>> {
        self.front.entry().filter(|_| !self.is_ended)
    }

    /// Moves one end to the next entry in a direction.
    #[inline]
    fn step(&mut self, end: End, direction: Direction) -> Result<bool> {
        let (side, is_alone) = match end {
            End::Front => (&mut self.front, self.back.is_none()),
            End::Back => (moved_back(&mut self.back), self.front.is_new_front()),
        };
        let step = match &mut side.stretch {
            _ if !self.process.is_current() => Ok(Step::Ended),
            Some(stretch) => stretch.step(direction),
            None if is_alone && !self.is_ended => side.begin_stretch(direction),
            None => Ok(Step::Ended),
        };
        match step {
            Ok(Step::Moved) => Ok(true),
            Ok(Step::Ended) => self.step_with(end, |side, source| side.step(direction, source)),
            Ok(Step::Left) => self.step_with(end, |side, source| side.leave_stretch(direction, source)),
            Err(error) => {
                side.fail();
                self.is_ended = true;
                Err(error)
            }
        }
    }

    /// Moves one end and checks whether it has met the other.
    #[inline(never)]
    fn step_with(
        &mut self,
        end: End,
        go: impl FnOnce(&mut Side, &Arc<ScanSource>) -> Result<bool>,
    ) -> Result<bool> {
        if self.is_ended {
            return Ok(false);
        }
        let source = match usable(&self.source, self.process) {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(false),
            Err(error) => {
                self.is_ended = true;
                return Err(error);
            }
        };
        let (side, other) = match end {
            End::Front => (&mut self.front, self.back.as_deref_mut()),
            End::Back => (moved_back(&mut self.back), Some(&mut self.front)),
        };
        if side.is_failed {
            return Ok(false);
        }
        side.is_at_failed_key = false;
        let is_valid =
            other.map_or(Ok(()), Side::end_stretch).and_then(|()| go(side, source)).inspect_err(|error| {
                self.is_ended = side.has_ended_by(error);
            })?;
        if is_valid && self.have_met() {
            self.is_ended = true;
            return Ok(false);
        }
        Ok(is_valid)
    }

    /// Whether the other end has returned the current entry already.
    fn have_met(&self) -> bool {
        let Some(back) = self.back.as_ref().filter(|back| back.cursor.is_some()) else { return false };
        if self.front.position == Position::End || back.position == Position::Start {
            return true;
        }
        match (self.front.entry(), back.entry()) {
            (Some(front), Some(back)) => front.key() >= back.key(),
            _ => false,
        }
    }

    fn entry_of(&self, end: End) -> Option<(Slice, Slice)> {
        let side = match end {
            End::Front => Some(&self.front),
            End::Back => self.back.as_deref(),
        };
        side.and_then(Side::entry).map(|entry| (Slice::from(entry.key()), entry.value_slice()))
    }

    /// The entry of an end after a step, as an iterator returns it.
    #[inline]
    fn item(&self, stepped: Result<bool>, end: End) -> Option<<Self as Iterator>::Item> {
        match stepped {
            Ok(true) => self.entry_of(end).map(Ok),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl Iterator for Scan {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        let stepped = self.step(End::Front, Direction::Forward);
        self.item(stepped, End::Front)
    }

    fn nth(&mut self, count: usize) -> Option<Self::Item> {
        let stepped = self.step_with(End::Front, |side, source| side.move_nth(source, count as u64));
        self.item(stepped, End::Front)
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        let stepped = self.step(End::Back, Direction::Backward);
        self.item(stepped, End::Back)
    }
}

impl FusedIterator for Scan {}

impl Drop for Scan {
    fn drop(&mut self) {
        if !self.process.is_current() {
            mem::forget(mem::replace(&mut self.source, Ok(None)));
            mem::forget((self.front.cursor.take(), self.front.stretch.take(), self.back.take()));
        }
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Scan")
    }
}

impl ReadPath {
    /// A scan of `keys` at `snapshot`, or now.
    pub(crate) fn scan(
        &self,
        keyspace: &KeyspaceState,
        keys: ScanRange,
        snapshot: Option<SnapshotPoint>,
    ) -> Scan {
        self.scan_at(keyspace, keys, |visible| ScanPoint::at(snapshot.unwrap_or(SnapshotPoint::now(visible))))
    }

    /// A scan of `keys` at a point in time; `point_at` returns it for the newest visible sequence number.
    pub(crate) fn scan_at(
        &self,
        keyspace: &KeyspaceState,
        keys: ScanRange,
        point_at: impl FnOnce(Sequence) -> ScanPoint,
    ) -> Scan {
        if let Err(error) = self.context.check_open().and_then(|()| keyspace.check()) {
            return Scan::new(Err(error));
        }
        // A guard costs no reference count, on which threads with empty ranges would contend.
        let (read_state, visible) = keyspace.read_point_now(&self.snapshots);
        let point = point_at(visible);
        let touched = TouchedRange::new(keys, &read_state);
        let query = self.scan_query(&touched, &read_state);
        let mut selection = Selection::default();
        if touched.positions.len() <= 1 {
            let selector = self.tools.selector(&read_state, &touched, &query);
            let selected = selector.select();
            let is_closed = query.kind().is_some();
            let has_entries = || match &point.own {
                Some(own) if own.has_entries(&touched.range)? => Ok(true),
                _ => selector.has_memtable_entries(),
            };
            if is_closed && selected.is_empty() && matches!(has_entries(), Ok(false)) {
                query.record(&read_state.query_sample, &touched.filter_range());
                self.metrics.scans_ended.add(1);
                return Scan::new(Ok(None));
            }
            selection = selected;
        }
        let read_state = Guard::into_inner(read_state);
        Scan::new(Ok(Some(Arc::new(self.scan_source(read_state, touched, point, query, selection)))))
    }

    /// Counts a scan.
    pub(super) fn scan_query(&self, touched: &TouchedRange, read_state: &ReadState) -> ScanQuery {
        ScanQuery::new(touched, &self.metrics, &read_state.query_sample)
    }
}
