//! Finds a key's place in a view without reading keys, or with one candidate whose key decides.
//!
//! The page index and the anchors lead to a segment. There the search compares the target with each key through what is stored of
//! it, in one of two states:
//!
//! 1. **Known**: the target is above the keys so far, and the first bit in which it differs from the last of them is known. The
//!    next key's difference, and at most its infix, say whether the target is above it, too. So the place is found without
//!    a read.
//! 2. **Candidate**: the target begins with all bits that are known of one key. The differences alone lead to the key that shares
//!    most bits with the target (a blind search, as in a Patricia trie): no key that the view names can share more. One read of
//!    this key gives the number of shared bits, and with it the place ([`resolve`]).
//!
//! Cost: the differences of one segment are read once.

use super::{
    format::SAME_KEY,
    key_bits::{BITS_PER_BYTE, INFIX_BITS, bit, difference, divergence, infix},
    page::{Page, PageLayout},
    reader::View,
};
use crate::error::Result;

/// An entry of a view; behind the last one, a place of the page after the last page.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) page: usize,
    pub(super) layout: PageLayout,
    pub(super) segment: usize,
    /// Entries of the page before the segment.
    pub(super) start: usize,
    pub(super) slot: usize,
}

impl Place {
    /// The number of the entry in its page.
    pub(super) const fn entry(&self) -> usize {
        self.start + self.slot
    }
}

/// Relation of the target to the first key of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// The target is above it, from this bit on.
    Diverged(u32),
    /// They share this many bits at least.
    Shares(u32),
}

/// Result of the search for a segment.
#[derive(Debug, Clone, Copy)]
pub(super) enum SegmentFound {
    /// The target is no key of the view; the place is that of the first key above it.
    Above(Place),
    /// The segment, at its first entry: no other one can have the target.
    Segment(Place, Start),
}

/// Result of a search without key reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Located {
    /// The target is no key of the view; the place is that of the first key above it.
    Above(Place),
    /// The key that shares most bits with the target.
    Candidate(Place),
}

enum State {
    Known(u32),
    Candidate { slot: usize, shared: u32, skipped_above: u32 },
}

/// A place in a segment. A slot that is the segment's length means "behind the segment".
enum SlotFound {
    /// The target is no key of the view; the slot is that of the first key above it. `difference` is the first bit in which the target
    /// differs from the key before the slot.
    Above {
        slot: usize,
        difference: u32,
    },
    Candidate(usize),
}

/// Searches a segment.
fn search_segment(page: &Page<'_>, place: &Place, key: &[u8], start: Start) -> SlotFound {
    let candidate = |slot, shared| State::Candidate { slot, shared, skipped_above: SAME_KEY - 1 };
    let mut state = match start {
        Start::Diverged(position) => State::Known(position),
        Start::Shares(count) => candidate(0, count),
    };
    let (differences, infixes) = page.differences_and_infixes(place.segment, place.start);
    let length = differences.len();
    for (slot, (&byte, &theirs)) in differences.iter().zip(infixes).enumerate().skip(1) {
        let found = page.decode_difference(byte, place.start + slot);
        match &mut state {
            State::Known(position) if found > *position => {}
            State::Known(position) if found < *position => {
                return SlotFound::Above { slot, difference: *position };
            }
            State::Known(position) => {
                let ours = infix(key, found);
                match ours.cmp(&theirs) {
                    std::cmp::Ordering::Less => return SlotFound::Above { slot, difference: found },
                    std::cmp::Ordering::Greater => *position = found + 1 + (ours ^ theirs).leading_zeros(),
                    std::cmp::Ordering::Equal => state = candidate(slot, found + 1 + INFIX_BITS),
                }
            }
            State::Candidate { shared, .. } if found < *shared => break,
            State::Candidate { skipped_above, .. } if found > *skipped_above => {}
            State::Candidate { slot: best, skipped_above, .. } => {
                if bit(key, found) {
                    (*best, *skipped_above) = (slot, SAME_KEY - 1);
                } else {
                    *skipped_above = found;
                }
            }
        }
    }
    match state {
        State::Known(difference) => SlotFound::Above { slot: length, difference },
        State::Candidate { slot, .. } => SlotFound::Candidate(slot),
    }
}

/// The slot of the first key of the candidate's segment that is not below the target, and whether it is the target. `found` is the
/// candidate's key.
pub(super) fn resolve(page: &Page<'_>, candidate: &Place, key: &[u8], found: &[u8]) -> (usize, bool) {
    let Some(position) = difference(key, found) else { return (candidate.slot, true) };
    let shares_more = |slot: usize| page.difference(candidate.start + slot) > position;
    let mut slot = candidate.slot;
    if bit(found, position) {
        while slot > 0 && shares_more(slot) {
            slot -= 1;
        }
        return (slot, false);
    }
    slot += 1;
    while slot < page.segment_length(candidate.segment) && shares_more(slot) {
        slot += 1;
    }
    (slot, false)
}

/// Relation of a target to the first key of a segment with this anchor, whose parts follow each other. The target is not below
/// the anchor; both share the first `skipped` bytes.
fn start_at(skipped: usize, key: &[u8], anchor: (&[u8], &[u8])) -> Start {
    let (mut skipped, first, second) = match skipped.checked_sub(anchor.0.len()) {
        None => (skipped, anchor.0.get(skipped..).unwrap_or_default(), anchor.1),
        Some(more) => (skipped, [].as_slice(), anchor.1.get(more..).unwrap_or_default()),
    };
    for part in [first, second] {
        if let Some(position) = divergence(skipped, key.get(skipped..).unwrap_or_default(), part) {
            return Start::Diverged(position);
        }
        skipped += part.len();
    }
    Start::Shares(skipped as u32 * BITS_PER_BYTE)
}

impl View {
    /// The place behind the last entry.
    pub(super) fn end(&self) -> Place {
        Place { page: self.page_count(), ..Place::default() }
    }

    /// The first entry of a page; behind the last entry for the page count.
    pub(super) fn start_of(&self, page: usize) -> Result<Place> {
        if page >= self.page_count() {
            return Ok(self.end());
        }
        Ok(Place { page, layout: self.parse(page)?, ..Place::default() })
    }

    /// The last entry of a page.
    pub(super) fn last_of(&self, page: usize) -> Result<Place> {
        let layout = self.parse(page)?;
        let segment = layout.segment_count() - 1;
        let found = self.page(page, layout);
        let slot = found.segment_length(segment).saturating_sub(1);
        Ok(Place { page, layout, segment, start: found.segment_start(segment), slot })
    }

    /// The n-th entry; behind the last entry if there is none.
    pub(super) fn place_of(&self, entry: u64) -> Result<Place> {
        if entry >= self.entry_count() {
            return Ok(self.end());
        }
        let page = self.index.page_of_entry(entry);
        let layout = self.parse(page)?;
        // Numbers in a mapping may have changed since they were compared.
        let within =
            entry.checked_sub(self.index.entries_before(page)).ok_or_else(|| self.malformed(page))? as usize;
        let (segment, start) = self.page(page, layout).segment_of(within);
        if segment == layout.segment_count() {
            return Err(self.malformed(page));
        }
        Ok(Place { page, layout, segment, start, slot: within.saturating_sub(start) })
    }

    /// The number of an entry in the view.
    pub(super) fn number_of(&self, place: &Place) -> u64 {
        self.index.entries_before(place.page).saturating_add(place.entry() as u64)
    }

    /// The ordinal of a run's first entry at or behind the start of the segment of a place.
    pub(super) fn first_ordinal(&self, place: &Place, run: usize) -> u64 {
        let before = self.page(place.page, place.layout).count_before(run, place.segment);
        u64::from(self.index.position(place.page, run)) + u64::from(before)
    }

    /// Keys before an entry whose newest entry is a put.
    pub(super) fn live_before(&self, place: &Place) -> u64 {
        let within = match place.page < self.page_count() {
            true => self.page(place.page, place.layout).live_before(place.entry()),
            false => 0,
        };
        self.index.live_before(place.page).saturating_add(within as u64)
    }

    /// The newest entry of the n-th key whose newest entry is a put; behind the last entry if there is none.
    pub(super) fn live_place(&self, number: u64) -> Result<Place> {
        if number >= self.live_count() {
            return Ok(self.end());
        }
        let page = self.index.page_of_live(number);
        let within =
            number.checked_sub(self.index.live_before(page)).ok_or_else(|| self.malformed(page))? as usize;
        let entry =
            self.page(page, self.parse(page)?).live_entry(within).ok_or_else(|| self.malformed(page))?;
        self.place_of(self.index.entries_before(page).saturating_add(entry as u64))
    }

    /// The first entry of the first head segment at or after a segment.
    pub(super) fn head_from(&self, mut place: Place, segment: usize) -> Result<Place> {
        place.segment = segment;
        while place.page < self.page_count() {
            let page = self.page(place.page, place.layout);
            let head = page.head_segment_from(place.segment);
            if head < place.layout.segment_count() {
                return Ok(Place { segment: head, start: page.segment_start(head), slot: 0, ..place });
            }
            if place.page + 1 >= self.index.searched() {
                break;
            }
            place = self.start_of(place.page + 1)?;
        }
        Ok(self.end())
    }

    /// The place at a slot of the segment of `place`; the segment's length is the next key.
    pub(super) fn at_slot(&self, place: &Place, slot: usize) -> Result<Place> {
        if slot < self.page(place.page, place.layout).segment_length(place.segment) {
            return Ok(Place { slot, ..*place });
        }
        self.head_from(*place, place.segment + 1)
    }

    /// Finds the segment of a key. The search begins at page `near`.
    pub(super) fn find_segment(&self, near: usize, key: &[u8]) -> Result<SegmentFound> {
        if self.index.searched() == 0 {
            return Ok(SegmentFound::Above(self.end()));
        }
        let number = self.index.page_of(near, key);
        self.prefetch_page(number);
        let place = self.start_of(number)?;
        let page = self.page(number, place.layout);
        let first = page.head_segment_from(0);
        if first == place.layout.segment_count() {
            return Err(self.malformed(number));
        }
        let prefix = page.prefix();
        let Some(rest) = key.strip_prefix(prefix) else {
            let from = if key < prefix { first } else { place.layout.segment_count() };
            return Ok(SegmentFound::Above(self.head_from(place, from)?));
        };
        let segment = last_segment_at_or_below(&page, first, rest);
        let start = if segment == first {
            let separator = self.index.separator(number);
            start_at(prefix.len(), key, separator)
        } else {
            start_at(prefix.len(), key, (prefix, page.anchor(segment)))
        };
        let place = Place { segment, start: page.segment_start(segment), ..place };
        Ok(SegmentFound::Segment(place, start))
    }

    /// Finds a key as far as the view knows it.
    pub(super) fn locate(&self, near: usize, key: &[u8]) -> Result<Located> {
        self.locate_with_difference(near, key).map(|(located, _)| located)
    }

    /// As [`View::locate`]; also the first bit in which a key that is not in the view differs from the key before it, where it is known.
    pub(super) fn locate_with_difference(&self, near: usize, key: &[u8]) -> Result<(Located, Option<u32>)> {
        let (place, start) = match self.find_segment(near, key)? {
            SegmentFound::Above(place) => return Ok((Located::Above(place), None)),
            SegmentFound::Segment(place, start) => (place, start),
        };
        let page = self.page(place.page, place.layout);
        Ok(match search_segment(&page, &place, key, start) {
            SlotFound::Candidate(slot) => (Located::Candidate(Place { slot, ..place }), None),
            SlotFound::Above { slot, difference } => {
                (Located::Above(self.at_slot(&place, slot)?), Some(difference))
            }
        })
    }
}

/// The last head segment whose anchor is not above the rest of a key after the page's prefix. `first` is the first head segment.
fn last_segment_at_or_below(page: &Page<'_>, first: usize, rest: &[u8]) -> usize {
    let (mut low, mut high) = (first, page.layout.segment_count());
    if page.has_continuation() {
        let heads = (first + 1..high).filter(|&segment| !page.is_continuation(segment));
        return heads.take_while(|&segment| page.anchor(segment) <= rest).last().unwrap_or(first);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if page.anchor(middle) <= rest { low = middle } else { high = middle }
    }
    low
}
