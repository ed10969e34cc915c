//! Prefix tables of an index: nodes of some depths by the bytes that lead to them, so that a search need not walk there. Of one depth
//! alone where these bytes, as numbers, lie close together (`prefix_table/direct.rs`); otherwise in stages, which are found by a hash:
//!
//! ```text
//! header   64 bytes; for each stage, at most 4: u8 depth | 3 zero bytes | u32 lines
//! children for each sparse block u16: the 15 bits of it that say where the block of its children is; filled up to whole lines
//! stages   lines of 64 bytes, 8 entries each; 4 in the first stage where its depth is above 4
//! entry    from the lowest bit on: one more than the node's place, 0 for none | the slot of the node's parent in the stage before;
//!          from the highest bit on: the bytes that lead from there to the node
//! ```
//!
//! The hash of all bytes that lead to a node names its line in its stage. Where that is full, the node is in none, nor are those below it, and is walked to as all
//! others are: an entry holds whole bytes, no part of a hash, so a table never changes an answer. The lines of all stages are asked for at
//! once; an entry of a later stage counts where the one that it names was found in the stage before. A place is a block and the number of
//! the node among those that begin there; a slot is a line, times 8, and the number of the entry there.
//!
//! What a block says of its children stands apart once more, in few lines that stay in a near cache: a walk goes on to theirs before its own
//! has come, which it would otherwise wait for first.

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

/// Most stages.
const STAGES_MAX: usize = 4;
/// The greatest depth of a stage, of the first one, and that up to which the first one's entries are short.
pub(super) const DEPTH_MAX: usize = 16;
const FIRST_MAX: usize = 12;
const SHORT_MAX: usize = 4;
/// Slots of a line: 8, of which a line of long entries uses 4.
const LINE_SLOTS: u64 = 8;
/// Bits of a place in entries of the first stage.
const FIRST_PLACE_BITS: u8 = 32;
/// The words of a line with which long entries begin.
const LONG_ENTRIES: u32 = 0b0101_0101;
/// What is behind the last line is no line.
const _: () = assert!(TRAILER_BYTES < LINE_BYTES);
/// Bytes of a stage in the header.
const STAGE_BYTES: usize = 8;
/// Bytes of what is said of the children of a block.
pub(super) const CHILD_BYTES: usize = 2;

type Line = [u8; LINE_BYTES];

/// One depth of the tables.
#[derive(Debug, Clone, Copy, Default)]
struct Stage {
    depth: usize,
    line_count: u32,
    /// Where its lines begin among all.
    first_line: u32,
    /// What the words of a key are masked with, so that its first bytes are left.
    masks: Words,
    /// Where the bytes from the stage before to this one are: behind so many times four bytes of a key, and so many bits more.
    own_word: u8,
    own_shift: u8,
    own_mask: u64,
    /// The bits of an entry below those bytes, and the lowest of them, which are the place.
    rest_bits: u8,
    place_bits: u8,
}

/// Whether there may be so many stages, or a direct table instead.
pub(super) const fn is_stage_count(count: usize) -> bool {
    count <= STAGES_MAX || count == DIRECT
}

/// What the header says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RootCacheLayout {
    /// Where what is said of children begins in the payload, and where the lines of the stages do.
    children: usize,
    start: usize,
    stages: [Stage; STAGES_MAX],
    count: usize,
    /// Some stage is deeper than a word has bytes.
    is_long: bool,
    /// The entries of the first stage are long.
    is_first_long: bool,
    /// Instead of stages.
    direct: DirectLayout,
}

/// The tables at rest; none where there are no stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootCache<'a> {
    payload: &'a [u8],
    layout: &'a RootCacheLayout,
}

/// The first 16 bytes of a key, with zeros behind its end; of tables without a deep stage the first 8, and zeros.
type Words = [u64; 2];

/// What the words of a prefix are mixed with: the fractions of the square roots of 2 and 3.
const FRACTIONS: [u64; 2] = [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b];

impl Stage {
    /// `None` where an entry has no room for what tells the node.
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
        // The first of the words that has them: each begins 4 bytes behind the one before.
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

    /// No slot has this number, nor a greater one.
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

    /// The bytes of a key from the stage before to this one, as an entry has them.
    #[inline(always)]
    fn own(&self, [first, last]: Words) -> u64 {
        let word = if self.own_word == 1 { first << 32 | last >> 32 } else { first };
        let word = if self.own_word == 2 { last } else { word };
        word << (self.own_shift & 63) & self.own_mask
    }

    /// An entry for a key below a slot of the stage before, but for its place.
    const fn entry(&self, own: u64, parent: u64) -> u64 {
        own | parent << self.place_bits
    }

    /// The place of an entry of a line, and its slot.
    #[inline(always)]
    fn found(&self, line: &Line, entry: u32, number: u32) -> Option<(u32, u64)> {
        let place = word(line, entry) & ((1 << (self.place_bits & 63)) - 1);
        let slot = u64::from(number.wrapping_sub(self.first_line)) * LINE_SLOTS + u64::from(entry);
        (place != 0).then_some((place as u32, slot))
    }

    /// The same of the entry for a key below a slot of the stage before. Nearly always just one of a line has the bytes of the key: which
    /// slot it names is compared behind, by a jump that is foreseen, so that a stage does not wait for the one before.
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

/// Lines of what is said of the children of so many blocks.
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
    /// Reads the header that begins at a place of a payload, whose last bytes are the trailer; `None` for what no builder writes.
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

    /// Of stages by their depths and the numbers of their lines.
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
    /// The tables of a payload.
    #[inline(always)]
    pub(super) const fn new(payload: &'a [u8], layout: &'a RootCacheLayout) -> Self {
        Self { payload, layout }
    }

    /// The lines of all stages. Behind them there is less than a line.
    #[inline(always)]
    fn lines(&self) -> &'a [Line] {
        self.payload.get(self.layout.start..).unwrap_or_default().as_chunks().0
    }

    #[inline(always)]
    fn stages(&self) -> &'a [Stage] {
        self.layout.stages.get(..self.layout.count).unwrap_or_default()
    }

    /// The first words of a key; `None` of short ones, which are walked.
    #[inline(always)]
    fn words(&self, key: &[u8]) -> Option<Words> {
        if self.layout.is_long { long_words(key) } else { short_word(key).map(|word| [word, 0]) }
    }

    /// Brings the lines of a key into the cache.
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

    /// What each block says of where the block of its children is; nothing without tables.
    #[inline(always)]
    pub(super) fn children(&self) -> &'a [[u8; CHILD_BYTES]] {
        self.payload.get(self.layout.children..self.layout.start).unwrap_or_default().as_chunks().0
    }

    /// Into the sparse nodes of the trie: where the tables say, or through the dense ones.
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

    /// The place and the depth of the deepest node on the way of a key that the tables have.
    #[inline(always)]
    fn find(&self, steps: impl Steps, key: &[u8]) -> Option<(u32, usize)> {
        if self.layout.is_long {
            self.find_among(steps, key, long_words(key)?)
        } else {
            // The second word is known to be nothing, and what is done with it falls away.
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

/// The first 8 bytes of a key, in pieces from both ends that may overlap; `None` of fewer than 4.
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
