//! Builds a view of the runs of an old view and new runs, without reading the runs of the old view as a whole.
//!
//! The entries of the new runs are taken in order; each new key is searched in the old view. Then there are three cases for the old
//! entries before its place:
//!
//! 1. Pages that no new key is in are copied as they are, with their checksums: pages contain no ordinals, and the numbers of the
//!    old runs stay the same.
//! 2. Other pages are written again from their selectors, differences and infixes. Keys are read for the first entry of each new
//!    segment only.
//! 3. The key after a new key is read if it may differ from it elsewhere than from its old neighbor: if the new key differs from that
//!    neighbor in the same bit. The key before a new key is read if the search does not say in which bit they differ.
//!
//! New entries of a key that the old view has are ordered among its old entries by sequence number; old entries are read for this
//! only if the new one is not above all runs of the old view.
//!
//! The result answers like a view that is built from scratch. Its segments and pages are others.

use std::sync::Arc;

use super::{
    build::{head_of, summarize},
    cursor::ViewCursor,
    entry_heap::EntryHeap,
    key_bits::{difference, infix},
    reader::View,
    run::OrdinalRun,
    search::{Located, Place},
    writer::{KeyHead, ViewOptions, ViewOwner, ViewWriter},
};
use crate::{cursor::Cursor, error::Result, key::Kind};

struct Rebuild<'a, R: OrdinalRun> {
    view: Arc<View>,
    writer: ViewWriter<'a>,
    /// At the next old entry.
    old: ViewCursor<Arc<[R]>>,
    /// The new key that was written last, if no old one was written since.
    last_new: Option<Vec<u8>>,
    /// The first bit in which one of the new keys since the last old key differs from the key before it, where it is known.
    gap_difference: Option<u32>,
    /// The last page was copied, and nothing was written since.
    is_after_copy: bool,
    copied_pages: u64,
    /// Pages of the old view whose checksums were compared.
    compared_pages: usize,
}

/// Writes the view of the runs of `old`, with the numbers that they have there, and of new runs with these ids. The parameters are those
/// of the old view. Returns the number of pages that were copied.
///
/// # Errors
/// As [`super::build::build_view`]; runs that are not those of the old view; an old view whose bytes were changed in a mapping.
pub(crate) fn rebuild_view<R: OrdinalRun>(
    owner: ViewOwner,
    old: &Arc<View>,
    old_runs: &Arc<[R]>,
    new_runs: &[(u64, R)],
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    old.compare_index_checksum()?;
    let options = ViewOptions { owner, ..*old.options() };
    let mut summaries = old.runs().to_vec();
    summaries.extend(new_runs.iter().map(|(id, run)| summarize(*id, run)));
    let mut rebuild = Rebuild {
        view: Arc::clone(old),
        writer: ViewWriter::new(options, summaries, sink)?,
        old: ViewCursor::new(old, old_runs)?,
        last_new: None,
        gap_difference: None,
        is_after_copy: true,
        copied_pages: 0,
        compared_pages: 0,
    };
    if old.is_mixed() {
        rebuild.writer.set_mixed();
    }
    rebuild.old.move_to(old.start_of(0)?);
    let cursors = (old_runs.len()..).zip(new_runs.iter().map(|(_, run)| run.cursor_once()));
    let mut entries = EntryHeap::new(cursors)?;
    while let Some((_, cursor)) = entries.peek() {
        let key = cursor.key().to_vec();
        let (place, is_equal, difference) = rebuild.find(&key)?;
        rebuild.copy_until(&place)?;
        if is_equal {
            rebuild.merge_key(key, &mut entries)?;
        } else {
            rebuild.insert_key(key, difference, &mut entries)?;
        }
    }
    rebuild.copy_until(&old.end())?;
    rebuild.writer.finish()?;
    Ok(rebuild.copied_pages)
}

impl<R: OrdinalRun> Rebuild<'_, R> {
    /// The place of the first old key at or after a new one, whether it is that key, and the first bit in which the new key differs
    /// from the old key before it, if that is known.
    fn find(&mut self, key: &[u8]) -> Result<(Place, bool, Option<u32>)> {
        match self.view.locate_with_difference(self.old.place().page, key)? {
            (Located::Above(place), difference) => Ok((place, false, difference)),
            (Located::Candidate(place), _) => {
                let (place, is_equal) = self.old.resolve_candidate(&place, key)?;
                Ok((place, is_equal, None))
            }
        }
    }

    /// Writes the old entries before a place. The checksums of all pages up to the place are compared: a mapping may have changed since the
    /// old view was opened, and the new one gets other checksums.
    fn copy_until(&mut self, end: &Place) -> Result<()> {
        while self.compared_pages < self.view.page_count() && self.compared_pages <= end.page {
            self.view.compare_checksum(self.compared_pages)?;
            self.compared_pages += 1;
        }
        while self.old.place().page < end.page {
            let page = self.old.place().page;
            let continues_key = self.old.is_old_version() && !self.is_after_copy;
            if self.old.place().entry() == 0 && self.last_new.is_none() && !continues_key {
                self.copy_page(page)?;
                self.old.move_to(self.view.start_of(page + 1)?);
            } else {
                while self.old.place().page == page {
                    self.write_entry()?;
                }
            }
        }
        while self.old.place().page == end.page && self.old.place().entry() < end.entry() {
            self.write_entry()?;
        }
        Ok(())
    }

    fn copy_page(&mut self, number: usize) -> Result<()> {
        let page = self.view.page(number, self.old.place().layout);
        let has_head = page.head_segment_from(0) < page.layout.segment_count();
        let (prefix, suffix) = self.view.index.separator(number);
        let separator = has_head.then(|| [prefix, suffix].concat());
        let run_counts = (0..self.view.runs().len()).map(|run| self.view.run_count_in(number, run));
        let (bytes, record) = (self.view.page_bytes(number), self.view.record(number));
        self.writer.copy_page(bytes, record, page.key_count(), run_counts, separator.as_deref())?;
        self.is_after_copy = true;
        self.copied_pages += 1;
        Ok(())
    }

    /// Writes the current old entry again and moves to the next one.
    fn write_entry(&mut self) -> Result<()> {
        let place = *self.old.place();
        let (run, kind) = self.old.stored_entry();
        if self.old.is_old_version() {
            if self.is_after_copy {
                let key = self.old.key_at(&place)?.to_vec();
                self.writer.continue_key(&key);
            }
            self.writer.add_old(run, kind)?;
        } else {
            self.writer.end_key()?;
            let version_count = self.version_count();
            let needs_key = self.writer.needs_key(version_count) || self.is_head_changed(&place);
            let key = if needs_key { Some(self.old.key_at(&place)?.to_vec()) } else { None };
            let head = self.old_head(&place, key.as_deref());
            self.writer.begin_key(head, key.as_deref())?;
            self.writer.add_newest(run, kind);
            self.last_new = None;
        }
        self.is_after_copy = false;
        self.old.step()
    }

    /// Whether an old key may differ from the new key before it in another bit than from its old neighbor. Of three ascending keys, the
    /// first and the last differ in the lesser of the bits in which neighbors differ.
    fn is_head_changed(&self, place: &Place) -> bool {
        let old = self.view.page(place.page, place.layout).difference(place.entry());
        self.last_new.is_some() && self.gap_difference.is_none_or(|gap| gap <= old)
    }

    /// The head of an old key, whose bytes must be known after a new key that changes it.
    fn old_head(&self, place: &Place, key: Option<&[u8]>) -> KeyHead {
        let page = self.view.page(place.page, place.layout);
        match (&self.last_new, key) {
            (Some(last), Some(key)) => {
                let difference = difference(last, key).unwrap_or_default();
                KeyHead { difference, infix: infix(key, difference) }
            }
            _ => KeyHead { difference: page.difference(place.entry()), infix: page.infix(place.entry()) },
        }
    }

    /// Entries of the current old key, at its newest one; more than a segment holds if the key has segments for itself.
    fn version_count(&mut self) -> usize {
        let (count, is_whole_segment) = self.old.versions_in_segment();
        if is_whole_segment { usize::MAX >> 1 } else { count }
    }

    /// Writes a key that the old view does not have.
    fn insert_key(
        &mut self,
        key: Vec<u8>,
        known_difference: Option<u32>,
        entries: &mut EntryHeap<R::Cursor>,
    ) -> Result<()> {
        let head = match (self.last_new.take(), known_difference) {
            (Some(last), _) => {
                let head = head_of(&last, &key);
                self.gap_difference = self.gap_difference.map(|gap| gap.min(head.difference));
                head
            }
            (None, Some(difference)) => {
                self.gap_difference = Some(difference);
                KeyHead { difference, infix: infix(&key, difference) }
            }
            (None, None) => {
                let last = self.key_before()?;
                let head = head_of(&last, &key);
                self.gap_difference = (!last.is_empty()).then_some(head.difference);
                head
            }
        };
        self.writer.begin_key(head, Some(&key))?;
        let mut is_newest = true;
        while let Some((run, cursor)) = entries.peek().filter(|(_, cursor)| cursor.key() == key.as_slice()) {
            add(&mut self.writer, run, cursor.kind(), is_newest)?;
            is_newest = false;
            entries.advance()?;
        }
        self.last_new = Some(key);
        self.is_after_copy = false;
        Ok(())
    }

    /// The key of the old entry before the current one; empty at the first entry.
    fn key_before(&mut self) -> Result<Vec<u8>> {
        let here = *self.old.place();
        let key = match self.old.step_back()? {
            true => {
                let before = *self.old.place();
                self.old.key_at(&before)?.to_vec()
            }
            false => Vec::new(),
        };
        self.old.move_to(here);
        Ok(key)
    }

    /// Writes a key that the old view has, whose newest old entry is the current one: this entry and all new ones.
    fn merge_key(&mut self, key: Vec<u8>, entries: &mut EntryHeap<R::Cursor>) -> Result<()> {
        let head = self.old_head(self.old.place(), Some(&key));
        self.writer.begin_key(head, Some(&key))?;
        self.last_new = None;
        self.is_after_copy = false;
        let (mut is_newest, mut is_at_old_newest) = (true, true);
        while let Some((new_run, cursor)) =
            entries.peek().filter(|(_, cursor)| cursor.key() == key.as_slice())
        {
            let has_old = is_at_old_newest || self.old.is_at_entry() && self.old.is_old_version();
            let (new_kind, sequence) = (cursor.kind(), cursor.sequence());
            let may_be_newer = has_old && sequence <= self.view.largest_sequence();
            if may_be_newer && self.old_sequence()? >= sequence {
                self.add_old_entry(is_newest)?;
                is_at_old_newest = false;
            } else {
                add(&mut self.writer, new_run, new_kind, is_newest)?;
                entries.advance()?;
            }
            is_newest = false;
        }
        if is_at_old_newest {
            self.add_old_entry(is_newest)?;
        }
        Ok(())
    }

    /// Adds the current old entry to the key that was begun.
    fn add_old_entry(&mut self, is_newest: bool) -> Result<()> {
        let (run, kind) = self.old.stored_entry();
        add(&mut self.writer, run, kind, is_newest)?;
        self.old.step()
    }

    fn old_sequence(&mut self) -> Result<u64> {
        self.old.load()?;
        Ok(self.old.sequence())
    }
}

/// Adds the next entry of the key that was begun.
fn add(writer: &mut ViewWriter<'_>, run: usize, kind: Kind, is_newest: bool) -> Result<()> {
    if is_newest {
        writer.add_newest(run, kind);
        return Ok(());
    }
    writer.add_old(run, kind)
}
