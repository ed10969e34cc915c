//! The segment of a cursor as bit masks, one bit per entry.
//!
//! The planes of a segment are read once, when the cursor enters it. Steps within the segment, the run of an entry, its kind and the
//! number of a run's entries before it are then a few operations on these words.

use super::format::{KIND_BITS_MAX, SELECTOR_BITS_MAX};

/// See the head of this file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) page: usize,
    pub(super) number: usize,
    pub(super) length: usize,
    pub(super) selector_bits: u8,
    pub(super) selectors: [u64; SELECTOR_BITS_MAX as usize],
    pub(super) kinds: [u64; KIND_BITS_MAX as usize],
    /// The newest entries of their keys.
    pub(super) newest: u64,
}

impl Segment {
    /// A segment of no page.
    pub(super) const NONE: Self = Self {
        page: usize::MAX,
        number: 0,
        length: 0,
        selector_bits: 0,
        selectors: [0; SELECTOR_BITS_MAX as usize],
        kinds: [0; KIND_BITS_MAX as usize],
        newest: 0,
    };

    #[inline]
    pub(super) const fn is(&self, page: usize, number: usize) -> bool {
        self.page == page && self.number == number
    }

    /// The number of the run that has an entry.
    #[inline]
    pub(super) fn run(&self, slot: usize) -> usize {
        let [a, b, c, d, rest @ ..] = &self.selectors;
        let run = bit(*a, slot) | bit(*b, slot) << 1 | bit(*c, slot) << 2 | bit(*d, slot) << 3;
        if self.selector_bits <= 4 {
            return run;
        }
        let rest = rest.iter().take((self.selector_bits - 4).into()).enumerate();
        rest.fold(run, |run, (plane, word)| run | bit(*word, slot) << (4 + plane))
    }

    /// The number of an entry's kind.
    #[inline]
    pub(super) fn kind(&self, slot: usize) -> u8 {
        let [low, high] = self.kinds;
        (bit(low, slot) | bit(high, slot) << 1) as u8
    }

    /// The entries of a run, a bit each. None for a run that the selectors cannot name: pages that a rebuild copied have
    /// selectors for the runs of the old view.
    #[inline]
    pub(super) fn entries_of(&self, run: usize) -> u64 {
        if run.checked_shr(self.selector_bits.into()).unwrap_or_default() != 0 {
            return 0;
        }
        let [a, b, c, d, rest @ ..] = &self.selectors;
        let first =
            !(a ^ spread(run)) & !(b ^ spread(run >> 1)) & !(c ^ spread(run >> 2)) & !(d ^ spread(run >> 3));
        let found = first & ones(self.length);
        if self.selector_bits <= 4 {
            return found;
        }
        let rest = rest.iter().take((self.selector_bits - 4).into()).enumerate();
        rest.fold(found, |found, (plane, word)| found & !(word ^ spread(run >> (4 + plane))))
    }

    /// Entries of a run before a slot.
    #[inline]
    pub(super) fn count_before(&self, run: usize, slot: usize) -> u32 {
        (self.entries_of(run) & ones(slot)).count_ones()
    }

    /// The slot of the next key after the one at `slot`, if it is in the segment.
    #[inline]
    pub(super) const fn next_key(&self, slot: usize) -> Option<usize> {
        first_of(self.newest & !ones(slot + 1))
    }

    /// As [`Segment::next_key`], but skips keys whose newest entry is no put.
    #[inline]
    pub(super) const fn next_live_key(&self, slot: usize) -> Option<usize> {
        let [low, high] = self.kinds;
        first_of(self.newest & !(low | high) & !ones(slot + 1))
    }

    /// As [`Segment::next_live_key`], for the key before the one whose newest entry is at `slot`.
    #[inline]
    pub(super) const fn previous_live_key(&self, slot: usize) -> Option<usize> {
        let [low, high] = self.kinds;
        last_of(self.newest & !(low | high) & ones(slot))
    }

    #[inline]
    pub(super) fn is_old_version(&self, slot: usize) -> bool {
        bit(self.newest, slot) == 0
    }
}

/// The lowest bit of a number in all places.
#[inline]
pub(super) const fn spread(number: usize) -> u64 {
    0_u64.wrapping_sub(number as u64 & 1)
}

/// The place of the lowest bit.
#[inline]
const fn first_of(word: u64) -> Option<usize> {
    if word == 0 { None } else { Some(word.trailing_zeros() as usize) }
}

/// The place of the highest bit.
#[inline]
const fn last_of(word: u64) -> Option<usize> {
    if word == 0 { None } else { Some(63 - word.leading_zeros() as usize) }
}

#[inline]
fn bit(word: u64, slot: usize) -> usize {
    (word >> slot.min(63) & 1) as usize
}

/// The lowest `count` bits.
#[inline]
pub(super) const fn ones(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
