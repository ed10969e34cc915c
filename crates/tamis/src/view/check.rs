//! Compares a view with a merge of its runs: everything that a search or a step uses equals what the merge gives.
//!
//! Compared for each entry: selector, kind, difference, infix, and whether it is an old version; for each segment: its kind
//! and its anchor; for each page: prefix, separator, and the position of each run; for the view: the counts, and the largest
//! sequence number of each run. Checksums and counts within pages were compared when the view was opened.
//!
//! Cost: every entry of the runs is read once.

use std::{fmt, sync::Arc};

use super::{
    entry_heap::EntryHeap,
    format::{SAME_KEY, kind_number},
    key_bits::{byte_of, difference, infix},
    page::Page,
    reader::View,
    run::OrdinalRun,
    search::Place,
};
use crate::{
    cursor::Cursor,
    error::{Error, Result},
};

/// A difference between the view and the merge.
struct Mismatch {
    what: &'static str,
    expected: String,
    got: String,
}

impl Mismatch {
    /// `None` if both are equal.
    fn between<T: PartialEq + fmt::Debug>(what: &'static str, expected: &T, got: &T) -> Option<Self> {
        let differ = || Self { what, expected: format!("{expected:?}"), got: format!("{got:?}") };
        (expected != got).then(differ)
    }

    fn between_bytes(what: &'static str, expected: &[u8], got: &[u8]) -> Option<Self> {
        let show = |bytes: &[u8]| bytes.escape_ascii().to_string();
        (expected != got).then(|| Self { what, expected: show(expected), got: show(got) })
    }
}

/// All that a view stores of an entry.
#[derive(Debug, PartialEq, Eq)]
struct EntryFacts {
    run: usize,
    kind: u8,
    is_old_version: bool,
    difference: u32,
    infix: u8,
}

impl EntryFacts {
    fn stored(page: &Page<'_>, place: &Place) -> Self {
        let entry = place.entry();
        Self {
            run: page.run(place.segment, place.slot),
            kind: page.kind(place.segment, place.slot),
            is_old_version: page.is_old_version(entry),
            difference: page.difference(entry),
            infix: page.infix(entry),
        }
    }
}

struct Check<'a, R: OrdinalRun> {
    view: &'a View,
    entries: EntryHeap<R::Cursor>,
    /// The key before the next entry; empty before the first one.
    last: Vec<u8>,
    /// Entries of each run so far.
    positions: Vec<u32>,
    /// Pages since the last head segment, whose separator is the anchor of the next one.
    pending: Vec<usize>,
    key_count: u64,
    live_count: u64,
    faults: Vec<Error>,
}

/// The faults of a view of these runs, at most one for each page.
///
/// # Errors
/// An error of a run: then the view was not compared to its end.
pub(crate) fn check_view<R: OrdinalRun>(view: &Arc<View>, runs: &[R]) -> Result<Vec<Error>> {
    let counts: Vec<u64> = runs.iter().map(OrdinalRun::entry_count).collect();
    let named: Vec<u64> = view.runs().iter().map(|run| run.entry_count).collect();
    if let Some(mismatch) = Mismatch::between("entries of the runs of a view", &counts, &named) {
        return Ok(vec![view.fault(0, mismatch)]);
    }
    let mut check = Check::<R> {
        view,
        entries: EntryHeap::new(runs.iter().map(OrdinalRun::cursor_once).enumerate())?,
        last: Vec::new(),
        positions: vec![0; runs.len()],
        pending: Vec::new(),
        key_count: 0,
        live_count: 0,
        faults: Vec::new(),
    };
    for page in 0..view.page_count() {
        if let Some(mismatch) = check.page(page)? {
            check.faults.push(view.fault(page, mismatch));
        }
    }
    if let Some(mismatch) = check.totals() {
        check.faults.push(view.fault(view.page_count(), mismatch));
    }
    Ok(check.faults)
}

impl View {
    fn fault(&self, page: usize, mismatch: Mismatch) -> Error {
        let Mismatch { what, expected, got } = mismatch;
        Error::corruption(self.path(), self.index.extent(page).0, what, expected, got)
    }
}

impl<R: OrdinalRun> Check<'_, R> {
    /// Takes the entries of a page from the merge, and returns the first mismatch.
    fn page(&mut self, number: usize) -> Result<Option<Mismatch>> {
        let view = self.view;
        let page = view.page(number, view.parse(number)?);
        let stored: Vec<u32> =
            (0..self.positions.len()).map(|run| view.index.position(number, run)).collect();
        let mut found = Mismatch::between("positions of the runs at a view page", &self.positions, &stored);
        self.pending.push(number);
        let (mut start, mut keys_before) = (0, 0);
        for segment in 0..page.layout.segment_count() {
            let length = page.segment_length(segment);
            let place = Place { page: number, layout: page.layout, segment, start, slot: 0 };
            let mismatch = self.segment(&page, &place, keys_before);
            let keys_at_start = self.key_count;
            found = found.or(mismatch);
            for slot in 0..length {
                let mismatch = self.entry(&page, &Place { slot, ..place })?;
                found = found.or(mismatch);
            }
            keys_before = self.key_count - keys_at_start;
            start += length;
        }
        Ok(found)
    }

    /// Compares the start of a segment. `keys_before`: keys that begin in the segment before it.
    fn segment(&mut self, page: &Page<'_>, place: &Place, keys_before: u64) -> Option<Mismatch> {
        let (_, cursor) = self.entries.peek()?;
        let is_continuation = cursor.key() == self.last.as_slice();
        let stored = page.is_continuation(place.segment);
        let wrong = Mismatch::between("segment that continues a key", &is_continuation, &stored);
        if wrong.is_some() {
            return wrong;
        }
        if is_continuation {
            return Mismatch::between("keys of a segment with one key", &true, &(keys_before <= 1));
        }
        let key = cursor.key();
        let difference = difference(&self.last, key).unwrap_or_default();
        let byte = if self.last.is_empty() { 0 } else { byte_of(difference) };
        let anchor = key.get(..=byte).unwrap_or(key);
        if self.pending.is_empty() {
            let stored = [page.prefix(), page.anchor(place.segment)].concat();
            return Mismatch::between_bytes("segment anchor", anchor, &stored);
        }
        let mut found = Mismatch::between_bytes("first anchor of a page", &[], page.anchor(place.segment));
        for number in std::mem::take(&mut self.pending) {
            let (prefix, suffix) = self.view.index.separator(number);
            let expected = if number == 0 { &[][..] } else { anchor };
            let stored = [prefix, suffix].concat();
            found = found.or_else(|| Mismatch::between_bytes("page separator", expected, &stored));
        }
        found
    }

    /// Compares an entry with the next one of the merge, and takes that.
    fn entry(&mut self, page: &Page<'_>, place: &Place) -> Result<Option<Mismatch>> {
        let Some((run, cursor)) = self.entries.peek() else {
            return Ok(Mismatch::between("view entry", &"no more entries", &"one"));
        };
        let (key, kind) = (cursor.key(), kind_number(cursor.kind()));
        let is_first = self.last.is_empty();
        let is_old_version = !is_first && key == self.last.as_slice();
        let difference = match difference(&self.last, key) {
            _ if is_first => 0,
            None => SAME_KEY,
            Some(position) => position,
        };
        let expected = EntryFacts {
            run,
            kind,
            is_old_version,
            difference,
            infix: if is_old_version { 0 } else { infix(key, difference) },
        };
        let mut found = Mismatch::between("view entry", &expected, &EntryFacts::stored(page, place));
        let prefix_length = page.prefix().len();
        found = found.or_else(|| {
            let own = key.get(..prefix_length).unwrap_or(key);
            Mismatch::between_bytes("prefix of a view page", own, page.prefix())
        });
        let largest = self.view.runs().get(run).map_or(0, |run| run.largest_sequence);
        found = found.or_else(|| {
            let least = largest.max(cursor.sequence());
            Mismatch::between("largest sequence number of a run of a view", &least, &largest)
        });
        if !is_old_version {
            self.key_count += 1;
            self.live_count += u64::from(kind != kind_number(crate::key::Kind::Tombstone));
            self.last.clear();
            self.last.extend_from_slice(key);
        }
        if let Some(position) = self.positions.get_mut(run) {
            *position += 1;
        }
        self.entries.advance()?;
        Ok(found)
    }

    /// Compares what is known at the end.
    fn totals(&self) -> Option<Mismatch> {
        let view = self.view;
        let expected = (self.key_count, self.live_count);
        let is_whole = self.entries.peek().is_none();
        let searched = view.page_count() - self.pending.len();
        Mismatch::between("end of a view", &true, &is_whole)
            .or_else(|| {
                let stored = (view.key_count(), view.live_count());
                Mismatch::between("keys and live keys of a view", &expected, &stored)
            })
            .or_else(|| Mismatch::between("searched pages of a view", &searched, &view.index.searched()))
    }
}
