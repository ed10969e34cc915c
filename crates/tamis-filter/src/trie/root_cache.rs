//! The root cache of an index: nodes of some depths by the bytes that lead to them, so that a search starts below the root.
//! If these bytes are close together as numbers, it has one depth (`root_cache/direct.rs`); otherwise up to four stages,
//! which are hash tables:
//!
//! ```text
//! header   64 bytes; per stage: u8 depth | 3 zero bytes | u32 lines
//! children per sparse block u16: the 15 bits that number the block of its children; padded to whole lines
//! stages   lines of 64 bytes, 8 entries each; 4 in the first stage if its depth is above 4
//! entry    from the lowest bit on: position of the node plus 1, 0 for none | slot of the node's ancestor in the stage before;
//!          from the highest bit on: the bytes that lead from there to the node
//! ```
//!
//! The hash of all bytes that lead to a node selects its line in its stage. If the line is full, the node and all nodes below
//! it are not cached, and searches walk to them. An entry holds whole bytes, not a part of a hash, so the cache never changes
//! an answer. The lines of all stages are prefetched together; an entry of a later stage is valid if the entry that it names
//! was found in the stage before. A position is a block and the node's index among those that begin there; a slot is the
//! number of a line, times 8, plus the index of the entry there.
//!
//! The numbers of the blocks of children are copied into few lines, which stay in the cache: a walk fetches the children of a
//! block before the block itself has arrived.

mod build;
mod direct;

use tamis_bits::kernel::{self, Steps};
use tamis_bits::line::LINE_BYTES;
use tamis_bits::prefetch;

use super::TRAILER_BYTES;
use super::node::DenseWalk;
use super::reader::Trie;
use super::sparse;

pub(super) use build::build;
use direct::{DIRECT, DirectLayout};

/// Maximal number of stages.
const STAGES_MAX: usize = 4;
/// Greatest depth of any stage, of the first stage, and of a first stage with short entries.
pub(super) const DEPTH_MAX: usize = 16;
const FIRST_MAX: usize = 12;
const SHORT_MAX: usize = 4;
/// Slots of a line: 8; a line of long entries uses 4 of them.
const LINE_SLOTS: u64 = 8;
/// Bits of a position in entries of the first stage.
const FIRST_PLACE_BITS: u8 = 32;
/// The words of a line at which long entries begin.
const LONG_ENTRIES: u32 = 0b0101_0101;
/// The bytes after the last line are less than a line.
const _: () = assert!(TRAILER_BYTES < LINE_BYTES);
/// Bytes of a stage in the header.
const STAGE_BYTES: usize = 8;
/// Bytes of the number of a block of children.
pub(super) const CHILD_BYTES: usize = 2;

type Line = [u8; LINE_BYTES];

/// One depth of the cache.
#[derive(Debug, Clone, Copy, Default)]
struct Stage {
    depth: usize,
    line_count: u32,
    /// Start of its lines among those of all stages.
    first_line: u32,
    /// Masks that keep the first `depth` bytes of the words of a key.
    masks: Words,
    /// The position of the bytes between the stage before and this one in a key: a multiple of four bytes, plus bits.
    own_word: u8,
    own_shift: u8,
    own_mask: u64,
    /// Bits of an entry below those bytes, and the lowest of them, which are the position.
    rest_bits: u8,
    place_bits: u8,
}

/// Whether this number of stages (or the mark of a direct table) is possible.
pub(super) const fn is_stage_count(count: usize) -> bool {
    count <= STAGES_MAX || count == DIRECT
}

/// The contents of the header.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RootCacheLayout {
    /// Starts in the payload of the numbers of blocks of children and of the lines of the stages.
    children: usize,
    start: usize,
    stages: [Stage; STAGES_MAX],
    count: usize,
    /// Some stage is deeper than 8 bytes.
    is_long: bool,
    /// The entries of the first stage are long.
    is_first_long: bool,
    /// Replaces the stages if it has entries.
    direct: DirectLayout,
}

/// The root cache in the bytes of an index; empty if there are no stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootCache<'a> {
    payload: &'a [u8],
    layout: &'a RootCacheLayout,
}

/// The first 16 bytes of a key, padded with zeros; without a deep stage the first 8, and zeros.
type Words = [u64; 2];

/// Constants of the hash: the fractions of the square roots of 2 and 3.
const FRACTIONS: [u64; 2] = [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b];

impl Stage {
    /// `None` if an entry has too few bits.
    fn new(before: Option<&Self>, depth: usize, line_count: u32, block_count: usize) -> Option<Self> {
        let start = before.map_or(0, |before| before.depth);
        let first_line = before.map_or(Some(0), |before| before.first_line.checked_add(before.line_count))?;
        let masks = [depth.min(8), depth.saturating_sub(8)];
        let masks = masks.map(|bytes| !u64::MAX.checked_shr(8 * bytes as u32).unwrap_or(0));
        let mut stage = Self { depth, line_count, first_line, masks, ..Self::default() };
        let Some(before) = before else {
            (stage.rest_bits, stage.place_bits) = (FIRST_PLACE_BITS, FIRST_PLACE_BITS);
            stage.own_mask = masks[0];
            return (1..=FIRST_MAX).contains(&depth).then_some(stage);
        };
        let own_bytes = depth.checked_sub(start).filter(|bytes| (1..=4).contains(bytes))?;
        // The first word that has all of them: each begins 4 bytes after the previous one.
        let word = (depth.max(8) - 8).div_ceil(4);
        stage.own_word = word as u8;
        stage.own_shift = 8 * (start - 4 * word) as u8;
        stage.own_mask = !(u64::MAX >> (8 * own_bytes));
        let (own_bits, parent_bits, place_bits) =
            (8 * own_bytes as u32, bits(before.slot_count()), bits(block_count as u64 * 64));
        (stage.rest_bits, stage.place_bits) = (64 - own_bits as u8, place_bits as u8);
        let is_room = own_bits + parent_bits + place_bits <= u64::BITS && place_bits <= u32::BITS;
        (depth <= DEPTH_MAX && is_room).then_some(stage)
    }

    /// All slots have smaller numbers.
    const fn slot_count(&self) -> u64 {
        self.line_count as u64 * LINE_SLOTS
    }

    /// The number of the line of a key among those of all stages.
    #[inline(always)]
    fn line(&self, words: Words) -> u32 {
        let [low, high] = FRACTIONS;
        let product =
            u128::from(words[0] & self.masks[0] ^ low) * u128::from(words[1] & self.masks[1] ^ high);
        let place = kernel::place(product as u64 ^ (product >> 64) as u64, u64::from(self.line_count));
        self.first_line.wrapping_add(place as u32)
    }

    /// The bytes of a key between the stage before and this one, as an entry stores them.
    #[inline(always)]
    fn own(&self, [first, last]: Words) -> u64 {
        let word = if self.own_word == 1 { first << 32 | last >> 32 } else { first };
        let word = if self.own_word == 2 { last } else { word };
        word << (self.own_shift & 63) & self.own_mask
    }

    /// An entry for a key below a slot of the stage before, without its position.
    const fn entry(&self, own: u64, parent: u64) -> u64 {
        own | parent << self.place_bits
    }

    /// The position in an entry of a line, and its slot.
    #[inline(always)]
    fn found(&self, line: &Line, entry: u32, number: u32) -> Option<(u32, u64)> {
        let place = word(line, entry) & ((1 << (self.place_bits & 63)) - 1);
        let slot = u64::from(number.wrapping_sub(self.first_line)) * LINE_SLOTS + u64::from(entry);
        (place != 0).then_some((place as u32, slot))
    }

    /// [`Stage::found`] of the entry for a key below a slot of the previous stage. Nearly always only one entry of a line
    /// has the bytes of the key: its slot is compared afterwards by a well-predicted branch, so a stage does not wait for the previous one.
    #[inline(always)]
    fn found_below(
        &self,
        steps: impl Steps,
        line: &Line,
        words: Words,
        number: u32,
        parent: u64,
    ) -> Option<(u32, u64)> {
        let mut equal = steps.equal_words(line, self.own(words), u32::from(self.rest_bits));
        while equal != 0 {
            let entry = equal.trailing_zeros() & 7;
            let rest = word(line, entry) & !self.own_mask;
            if rest >> (self.place_bits & 63) == parent {
                return self.found(line, entry, number);
            }
            equal &= equal - 1;
        }
        None
    }
}

/// Lines of the numbers of blocks of children.
const fn child_lines(block_count: usize) -> usize {
    (block_count * CHILD_BYTES).div_ceil(LINE_BYTES)
}

/// A word of a line.
#[inline(always)]
fn word(line: &Line, number: u32) -> u64 {
    line.as_chunks().0.get(number as usize).map_or(0, |word| u64::from_le_bytes(*word))
}

/// Bits of a number.
const fn bits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

impl RootCacheLayout {
    /// Reads the header at `start` of a payload whose last bytes are the trailer; `None` for bytes that no builder
    /// writes.
    pub(super) fn read(payload: &[u8], start: usize, count: usize, block_count: usize) -> Option<Self> {
        let bytes = payload.get(start..payload.len().checked_sub(TRAILER_BYTES)?)?;
        if count == 0 {
            return bytes.is_empty().then(Self::default);
        }
        let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
        if count == DIRECT {
            let direct = DirectLayout::read(lines, start).filter(|_| rest.is_empty())?;
            return Some(Self { direct, ..Self::default() });
        }
        let (header, lines) = lines.split_first()?;
        let (entries, _) = header.as_chunks::<STAGE_BYTES>();
        let stages = entries
            .get(..count)?
            .iter()
            .map(|[depth, _, _, _, lines @ ..]| (usize::from(*depth), u32::from_le_bytes(*lines)));
        let (children, child_lines) = (start + LINE_BYTES, child_lines(block_count));
        let start = children + child_lines * LINE_BYTES;
        let layout = Self { children, start, ..Self::new(stages, block_count)? };
        let last = layout.stages.get(count - 1)?;
        let end = child_lines as u64 + u64::from(last.first_line) + u64::from(last.line_count);
        (rest.is_empty() && end == lines.len() as u64).then_some(layout)
    }

    /// The depths of the stages.
    #[cfg(test)]
    pub(super) fn depths(&self) -> Vec<usize> {
        self.stages.iter().take(self.count).map(|stage| stage.depth).collect()
    }

    /// The depth of a direct table.
    #[cfg(test)]
    pub(super) fn direct_depth(&self) -> Option<usize> {
        (self.direct.count != 0).then_some(self.direct.depth)
    }

    /// The layout of stages given by depth and number of lines.
    fn new(stages: impl Iterator<Item = (usize, u32)>, block_count: usize) -> Option<Self> {
        let mut layout = Self::default();
        let mut before = None;
        for (depth, line_count) in stages {
            let stage = Stage::new(before.as_ref(), depth, line_count, block_count)?;
            if line_count == 0 {
                return None;
            }
            *layout.stages.get_mut(layout.count)? = stage;
            layout.count += 1;
            layout.is_long |= depth > 8;
            before = Some(stage);
        }
        layout.is_first_long = layout.stages[0].depth > SHORT_MAX;
        Some(layout)
    }
}

impl<'a> RootCache<'a> {
    /// The root cache of a payload.
    #[inline(always)]
    pub(super) const fn new(payload: &'a [u8], layout: &'a RootCacheLayout) -> Self {
        Self { payload, layout }
    }

    /// The lines of all stages. Less than a line follows them.
    #[inline(always)]
    fn lines(&self) -> &'a [Line] {
        self.payload.get(self.layout.start..).unwrap_or_default().as_chunks().0
    }

    #[inline(always)]
    fn stages(&self) -> &'a [Stage] {
        self.layout.stages.get(..self.layout.count).unwrap_or_default()
    }

    /// The first words of a key; `None` of short keys, which are walked.
    #[inline(always)]
    fn words(&self, key: &[u8]) -> Option<Words> {
        if self.layout.is_long { long_words(key) } else { short_word(key).map(|word| [word, 0]) }
    }

    /// Prefetches the lines of a key.
    #[inline(always)]
    pub(super) fn prefetch(&self, key: &[u8]) {
        if self.layout.count == 0 {
            return;
        }
        let Some(words) = self.words(key) else { return };
        let lines = self.lines().as_flattened();
        for stage in self.stages() {
            prefetch(lines, stage.line(words) as usize * LINE_BYTES);
        }
    }

    /// The numbers of the blocks of children, by block; empty without stages.
    #[inline(always)]
    pub(super) fn children(&self) -> &'a [[u8; CHILD_BYTES]] {
        self.payload.get(self.layout.children..self.layout.start).unwrap_or_default().as_chunks().0
    }

    /// Enters the sparse nodes of the trie through the cache, or through the dense nodes.
    #[inline(always)]
    pub(super) fn enter(&self, trie: &Trie<'_, impl Steps>, key: &[u8]) -> DenseWalk {
        let direct = &self.layout.direct;
        let found = if direct.count == 0 {
            self.find(trie.steps, key)
        } else {
            direct.find(self.payload, key).map(|place| (place, direct.depth))
        };
        match found {
            Some((place, depth)) => DenseWalk::SparseExact(sparse::lookahead(place), depth),
            None => trie.enter(key),
        }
    }

    /// Position and depth of the deepest cached node on the path of a key.
    #[inline(always)]
    fn find(&self, steps: impl Steps, key: &[u8]) -> Option<(u32, usize)> {
        if self.layout.is_long {
            self.find_among(steps, key, long_words(key)?)
        } else {
            // The compiler removes the work on the second word, which is 0.
            self.find_among(steps, key, [short_word(key)?, 0])
        }
    }

    #[inline(always)]
    fn find_among(&self, steps: impl Steps, key: &[u8], words: Words) -> Option<(u32, usize)> {
        let (first, later) = self.stages().split_first()?;
        let (lines, number) = (self.lines(), first.line(words));
        let line = lines.get(number as usize)?;
        let found = if self.layout.is_first_long {
            let low = steps.equal_words(line, words[1] & first.masks[1], u32::from(FIRST_PLACE_BITS));
            low & steps.equal_words(line, words[0] & first.masks[0], 0) >> 1 & LONG_ENTRIES
        } else {
            steps.equal_words(line, first.own(words), u32::from(FIRST_PLACE_BITS))
        };
        if found == 0 || key.len() <= first.depth {
            return None;
        }
        let (mut place, mut slot) = first.found(line, found.trailing_zeros() & 7, number)?;
        let mut depth = first.depth;
        for stage in later {
            if key.len() <= stage.depth {
                break;
            }
            let number = stage.line(words);
            let Some(line) = lines.get(number as usize) else { break };
            let Some(below) = stage.found_below(steps, line, words, number, slot) else { break };
            ((place, slot), depth) = (below, stage.depth);
        }
        Some((place - 1, depth))
    }
}

/// The first 8 bytes of a key, from two parts that may overlap; `None` of fewer than 4.
#[inline(always)]
fn short_word(key: &[u8]) -> Option<u64> {
    let end = key.len().min(8);
    let first = u32::from_be_bytes(*key.first_chunk()?);
    let last = u32::from_be_bytes(*key.get(end - 4..end)?.first_chunk()?);
    Some(u64::from(first) << 32 | u64::from(u32::MAX) & u64::from(last) << (8 * (8 - end)))
}

/// The first 16 bytes of a key; `None` of fewer than 8.
#[inline(always)]
fn long_words(key: &[u8]) -> Option<Words> {
    let end = key.len().min(16);
    let first = u64::from_be_bytes(*key.first_chunk()?);
    let last = u64::from_be_bytes(*key.get(end - 8..end)?.first_chunk()?);
    let half = 4 * (16 - end);
    Some([first, last << half << half])
}

#[cfg(test)]
mod tests;
