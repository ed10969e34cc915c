//! The trie as an index: complete keys, each with a value of a fixed number of bytes.
//!
//! Built from sorted keys in one pass, used in place over any bytes. The trie holds of each key the bytes up to the first
//! that no other key shares; the remaining bytes are stored for its leaf (`key_suffixes.rs`). If many keys are below nodes
//! of some depths up to 16, a root cache (`root_cache.rs`) lets searches start there. A search costs a step for each byte of
//! the trie. Cursors return full keys in both directions. A count of a range is exact and costs some ranks per level.
//!
//! ```
//! use std::ops::Bound;
//! use tamis_filter::trie::TrieIndexBuilder;
//! use tamis_filter::trie::TrieIndex;
//!
//! let mut builder = TrieIndexBuilder::new(2);
//! builder.add(b"far", &[1, 0])?;
//! builder.add(b"fas", &[2, 0])?;
//! builder.add(b"fast", &[3, 0])?;
//! let index = TrieIndex::open(builder.finish()?)?;
//!
//! assert_eq!(index.get(b"fas"), Some(&[2, 0][..]));
//! assert_eq!(index.count(Bound::Excluded(b"far"), Bound::Unbounded), 2);
//! let mut cursor = index.cursor();
//! cursor.seek(b"fasa");
//! assert_eq!(cursor.key(), Some(&b"fast"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Bound;

use tamis_bits::kernel::{self, Steps};
use tamis_bits::{line::LINE_BYTES, packed::PackedVec, prefetch};

use super::key_suffixes::{
    KeySuffixes, StoredSuffix, SuffixBuilder, SuffixCounts, SuffixEncoding, SuffixLayout,
};
use super::node::{PendingNode, Prefetcher};
use super::rank::{Frontier, Side, count_between};
use super::root_cache::{self, CHILD_BYTES, RootCache, RootCacheLayout};
use super::{
    Cursor, Depth, Edge, EncodedTrie, INTERLEAVE_WIDTH, Layout, LeafWords, Levels, Node, Plan, Stop,
    TRAILER_BYTES, Trie, WalkResult, encode, plan,
};
use crate::envelope::{self, ENVELOPE_BYTES, Envelope, PARAMETER_BYTES};
use crate::{BuildError, DecodeError};

/// Maximal number of bytes of long suffixes; the byte above it holds the bits per length or the encoding of suffixes.
const LONG_BYTES_MAX: u64 = u64::MAX >> 8;

/// Maximal size of an index with a root cache: 10.75 bits per node of the trie of the whole keys.
const NODE_BYTES: (u64, u64) = (43, 32);

/// Number of the index among the families of the envelope. It is not a filter.
const INDEX_NUMBER: u16 = 256;

/// Builds an index from keys in ascending order, each with its value.
#[derive(Debug)]
pub struct TrieIndexBuilder {
    levels: Levels,
    suffixes: SuffixBuilder,
    values: Vec<u8>,
    value_bytes: u32,
}

/// A leaf stores the number of its key; the rest of the key is stored separately.
struct Leaf<'a> {
    ordinal: u64,
    suffixes: &'a mut SuffixBuilder,
}

impl LeafWords for Leaf<'_> {
    #[inline(always)]
    fn words(&mut self, key: &[u8], depth: usize) -> [u64; 2] {
        self.suffixes.push(key, depth);
        [self.ordinal, 0]
    }
}

impl TrieIndexBuilder {
    /// Creates a builder for values of `value_bytes` bytes each.
    pub const fn new(value_bytes: u32) -> Self {
        let levels = Levels::new(Depth::Unlimited, [u64::BITS, 0]);
        Self { levels, suffixes: SuffixBuilder::new(), values: Vec::new(), value_bytes }
    }

    /// Adds the next key and its value. A key equal to the previous one keeps its first value.
    ///
    /// # Errors
    /// [`BuildError::Unsorted`] for a smaller key, [`BuildError::ValueLength`] for a value of another length.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), BuildError> {
        if value.len() != self.value_bytes as usize {
            let (expected, got) = (u64::from(self.value_bytes), value.len() as u64);
            return Err(BuildError::ValueLength { expected, got });
        }
        // The key before this one is written now.
        let ordinal = self.levels.key_count().saturating_sub(1);
        if self.levels.add(key, &mut Leaf { ordinal, suffixes: &mut self.suffixes })? {
            self.values.extend_from_slice(value);
        }
        Ok(())
    }

    /// Number of distinct keys added.
    pub const fn key_count(&self) -> u64 {
        self.levels.key_count()
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.levels.memory_bytes() + self.suffixes.memory_bytes() + self.values.capacity()
    }

    /// Returns the encoded index.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] beyond 2^32 labels.
    pub fn finish(self) -> Result<Vec<u8>, BuildError> {
        self.finish_with(|levels, height| plan(levels, height, true))
    }

    /// [`TrieIndexBuilder::finish`] with a plan of the caller's choice.
    pub(super) fn finish_with(
        mut self,
        plan: impl FnOnce(&Levels, usize) -> Option<Plan>,
    ) -> Result<Vec<u8>, BuildError> {
        let key_count = self.levels.key_count();
        self.levels.seal(&mut Leaf { ordinal: key_count.saturating_sub(1), suffixes: &mut self.suffixes });
        let height = self.levels.levels().len();
        let too_large =
            || BuildError::TooLarge { needed_bytes: u64::MAX, bytes_max: u64::from(u32::MAX) * 2 };
        let plan = plan(&self.levels, height).ok_or_else(too_large)?;
        let trie = encode(&self.levels, &plan).ok_or_else(too_large)?;
        let mut bytes = vec![0; ENVELOPE_BYTES];
        bytes.reserve_exact(trie.bytes.len() + self.values.len() + TRAILER_BYTES);
        bytes.extend_from_slice(&trie.bytes);
        self.encode_values(&mut bytes);
        let start = bytes.len();
        let suffixes = self.suffixes.encode(&mut bytes, self.leaves()).ok_or_else(too_large)?;
        debug_assert_eq!(
            SuffixLayout::new(plan.counts.leaf_count(), plan.counts.height, suffixes)
                .and_then(|layout| layout.bytes()),
            Some(bytes.len() - start),
            "readers find the end of the suffixes"
        );
        let stage_count = self.encode_root_cache(&mut bytes, &trie);
        bytes.extend_from_slice(&trie.trailer);
        let mut parameters = [0; PARAMETER_BYTES];
        envelope::set_parameter(&mut parameters, 0, self.value_bytes.to_le_bytes());
        envelope::set_parameter(&mut parameters, 4, suffixes.short_bytes.to_le_bytes());
        envelope::set_parameter(&mut parameters, 8, suffixes.long_bytes.to_le_bytes());
        // The last byte of `long_bytes` is always zero.
        envelope::set_parameter(&mut parameters, 15, [suffixes.length_bits | stage_count << 4]);
        let envelope = Envelope {
            family: INDEX_NUMBER,
            seed: 0,
            payload_bytes: 0,
            key_count,
            payload_checksum: 0,
            parameters,
        };
        envelope.seal(&mut bytes);
        Ok(bytes)
    }

    /// Appends the root cache that saves the most steps, if there is room for it; returns the number of its stages.
    fn encode_root_cache(&self, target: &mut Vec<u8>, trie: &EncodedTrie) -> u8 {
        let levels = self.levels.levels();
        let labels =
            levels.iter().map(|level| level.labels.len() as u64 + level.prefix_key_count).sum::<u64>();
        let (bytes, nodes) = NODE_BYTES;
        let allowed = (labels + self.suffixes.byte_count()) * bytes / nodes + self.values.len() as u64;
        let start = (target.len() - ENVELOPE_BYTES).next_multiple_of(LINE_BYTES);
        let Some(room) = allowed.checked_sub((start + TRAILER_BYTES) as u64) else { return 0 };
        let Some((stage_count, lines)) = root_cache::build(&self.levels, trie, room) else { return 0 };
        target.resize(ENVELOPE_BYTES + start, 0);
        target.extend_from_slice(lines.as_flattened());
        stage_count
    }

    /// The numbers of the keys of leaves, in the order of their labels.
    fn leaves(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        self.levels.levels().iter().flat_map(|level| level.words.iter().take(1).flat_map(PackedVec::iter))
    }

    /// Values of leaves in the order of their labels, then those of prefix keys in the order of their nodes.
    fn encode_values(&self, target: &mut Vec<u8>) {
        let prefix_keys = self.levels.levels().iter().flat_map(|level| level.prefix_words.iter().copied());
        for ordinal in self.leaves().chain(prefix_keys) {
            let start = ordinal as usize * self.value_bytes as usize;
            let value = self.values.get(start..start + self.value_bytes as usize);
            target.extend_from_slice(value.unwrap_or_default());
        }
        target.resize(target.len().next_multiple_of(8), 0);
    }
}

/// An index over borrowed or owned bytes.
#[derive(Debug, Clone)]
pub struct TrieIndex<D> {
    bytes: D,
    envelope: Envelope,
    layout: Layout,
    value_bytes: usize,
    /// Start of the suffixes in the payload.
    suffixes: usize,
    suffix_layout: SuffixLayout,
    root_cache_layout: RootCacheLayout,
}

/// An exact search, compiled for the instruction set. Index and key are passed in registers: a search through memory
/// would wait for both.
struct Search<'a, 'k, D> {
    index: &'a TrieIndex<D>,
    key: &'k &'k [u8],
}

impl<D: AsRef<[u8]>> kernel::Task for Search<'_, '_, D> {
    type Output = Option<u64>;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> Option<u64> {
        match self.index.suffix_layout {
            SuffixLayout::Grouped(encoding) => self.search(steps, encoding),
            SuffixLayout::FixedLength(encoding) => self.search(steps, encoding),
            SuffixLayout::Dictionary(encoding) => self.search(steps, encoding),
        }
    }
}

impl<D: AsRef<[u8]>> Search<'_, '_, D> {
    /// The search for one encoding of suffixes: it is compiled for each of them.
    #[inline(always)]
    fn search(&self, steps: impl Steps, encoding: impl SuffixEncoding) -> Option<u64> {
        let (trie, table, suffixes) = self.index.parts();
        let (trie, suffixes) = (trie.with(steps), suffixes.bytes());
        let entered = table.enter(&trie, self.key);
        let lookahead =
            SearchPrefetcher { trie: &trie, children: table.children(), suffixes, encoding: &encoding };
        match trie.walk_on(entered, self.key, &lookahead) {
            WalkResult::Leaf(leaf, depth) => {
                let leaf = trie.leaf_number(leaf);
                encoding.slot(suffixes, leaf, depth)?.equals_rest_of(self.key, depth).then_some(leaf)
            }
            WalkResult::Node(node) if trie.is_prefix_key(&node) => Some(prefix_ordinal(&trie, &node)),
            _ => None,
        }
    }
}

/// Prefetches the blocks of children, and the estimated suffix (or its directory entry), while labels are compared.
struct SearchPrefetcher<'a, S, F> {
    trie: &'a Trie<'a, S>,
    children: &'a [[u8; CHILD_BYTES]],
    suffixes: &'a [u8],
    encoding: &'a F,
}

impl<S: Steps, F: SuffixEncoding> Prefetcher for SearchPrefetcher<'_, S, F> {
    #[inline(always)]
    fn before_node(&self, pending: PendingNode) {
        let Self { trie, suffixes, encoding, .. } = self;
        if let Some(children) = self.child_number(pending.block) {
            trie.prefetch_children(&pending, children);
        }
        let leaf = if F::IS_IN_LEAF_ORDER { trie.leaf_near(&pending) } else { trie.leaf_about(&pending) };
        encoding.prefetch(suffixes, leaf);
        encoding.prefetch_near(suffixes, leaf, pending.depth);
    }

    #[inline(always)]
    fn child_number(&self, block: u32) -> Option<u32> {
        self.children.get(block as usize).map(|number| u32::from(u16::from_le_bytes(*number)))
    }
}

/// Exact searches for many keys, compiled for the instruction set.
struct SearchMany<'a, 'k, 'v, D> {
    index: &'a TrieIndex<D>,
    keys: &'k [&'k [u8]],
    values: &'v mut [Option<&'a [u8]>],
}

impl<D: AsRef<[u8]>> kernel::Task for SearchMany<'_, '_, '_, D> {
    type Output = ();

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) {
        let (trie, table, suffixes) = self.index.parts();
        let parts = (&trie.with(steps), &table, &suffixes);
        // Values without a key stay as they are.
        let count = self.keys.len().min(self.values.len());
        let values = self.values.get_mut(..count).unwrap_or_default();
        for (keys, values) in self.keys.chunks(INTERLEAVE_WIDTH).zip(values.chunks_mut(INTERLEAVE_WIDTH)) {
            self.index.search_interleaved(parts, keys, values);
        }
    }
}

/// Number of the value of a prefix key: the values of leaves come first.
fn prefix_ordinal(trie: &Trie<'_, impl Steps>, node: &Node) -> u64 {
    trie.layout.counts.leaf_count() + trie.prefix_keys_before(node)
}

impl<D: AsRef<[u8]>> TrieIndex<D> {
    /// Opens encoded bytes in place; reads header and trailer.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that are not an index.
    pub fn open(bytes: D) -> Result<Self, DecodeError> {
        let slice = bytes.as_ref();
        let envelope = Envelope::parse(slice, slice.len() as u64)?;
        if envelope.family != INDEX_NUMBER {
            return Err(DecodeError::Family { got: envelope.family });
        }
        let value_bytes = u32::from_le_bytes(envelope::parameter(&envelope.parameters, 0));
        let payload = envelope::payload(slice);
        let refuse = |(field, got)| DecodeError::Field { field, got };
        let mut layout = Layout::read(payload, true).map_err(refuse)?;
        layout.node_leaves = Trie::new(payload, &layout).node_leaves();
        let key_count = layout.counts.key_count();
        let values =
            key_count.checked_mul(u64::from(value_bytes)).and_then(|bytes| bytes.checked_next_multiple_of(8));
        let wrong_length = || refuse(("payload_bytes", envelope.payload_bytes));
        let long_bytes = u64::from_le_bytes(envelope::parameter(&envelope.parameters, 8));
        let suffixes = SuffixCounts {
            short_bytes: u32::from_le_bytes(envelope::parameter(&envelope.parameters, 4)),
            long_bytes: long_bytes & LONG_BYTES_MAX,
            length_bits: (long_bytes >> 56) as u8 & 15,
        };
        let stage_count = (long_bytes >> 60) as u8;
        if !root_cache::is_stage_count(usize::from(stage_count)) {
            return Err(refuse(("root_cache_stages", u64::from(stage_count))));
        }
        let suffix_layout = SuffixLayout::new(layout.counts.leaf_count(), layout.counts.height, suffixes)
            .ok_or_else(wrong_length)?;
        let suffixes = values
            .and_then(|values| usize::try_from(values).ok()?.checked_add(layout.leaves))
            .ok_or_else(wrong_length)?;
        let end =
            suffix_layout.bytes().and_then(|bytes| bytes.checked_add(suffixes)).ok_or_else(wrong_length)?;
        let root_cache_start =
            if stage_count == 0 { Some(end) } else { end.checked_next_multiple_of(LINE_BYTES) };
        let root_cache_start = root_cache_start.ok_or_else(wrong_length)?;
        // The remaining lines are those of the root cache.
        let block_count = (layout.lines - layout.sparse) / LINE_BYTES;
        let root_cache_layout =
            RootCacheLayout::read(payload, root_cache_start, usize::from(stage_count), block_count)
                .ok_or_else(wrong_length)?;
        if layout.counts.capped_leaf_count != 0 {
            return Err(wrong_length());
        }
        if key_count != envelope.key_count {
            return Err(refuse(("key_count", envelope.key_count)));
        }
        let value_bytes = value_bytes as usize;
        Ok(Self { bytes, envelope, layout, value_bytes, suffixes, suffix_layout, root_cache_layout })
    }

    /// The parts that searches use.
    #[inline(always)]
    pub(super) fn parts(&self) -> (Trie<'_>, RootCache<'_>, KeySuffixes<'_>) {
        let payload = envelope::payload(self.bytes.as_ref());
        let table = RootCache::new(payload, &self.root_cache_layout);
        (
            Trie::new(payload, &self.layout),
            table,
            KeySuffixes::new(payload, self.suffixes, &self.suffix_layout),
        )
    }

    #[inline(always)]
    fn trie(&self) -> Trie<'_> {
        self.parts().0
    }

    #[inline(always)]
    fn suffixes(&self) -> KeySuffixes<'_> {
        self.parts().2
    }

    /// The depths of the stages of the root cache.
    #[cfg(test)]
    pub(super) fn root_cache_depths(&self) -> Vec<usize> {
        self.root_cache_layout.depths()
    }

    /// The depth of a direct table.
    #[cfg(test)]
    pub(super) fn direct_depth(&self) -> Option<usize> {
        self.root_cache_layout.direct_depth()
    }

    /// Number of keys.
    pub const fn len(&self) -> u64 {
        self.envelope.key_count
    }

    /// Whether there are no keys.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the whole index.
    pub fn encoded_bytes(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    /// Compares the checksum of the payload; reads all bytes.
    ///
    /// # Errors
    /// [`DecodeError::Checksum`].
    pub fn verify(&self) -> Result<(), DecodeError> {
        envelope::verify(&self.envelope, self.bytes.as_ref())
    }

    /// Returns the value of a key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.value(kernel::run(Search { index: self, key: &key })?)
    }

    /// [`TrieIndex::get`] for many keys at once: `values[i]` becomes the value of `keys[i]`, up to the length of the shorter
    /// list. Up to 64 searches are interleaved, so that their cache misses overlap.
    ///
    /// ```
    /// use tamis_filter::{AlignedBytes, trie::{TrieIndex, TrieIndexBuilder}};
    ///
    /// let mut builder = TrieIndexBuilder::new(2);
    /// builder.add(b"apple", b"ap")?;
    /// builder.add(b"pear", b"pe")?;
    /// let bytes = builder.finish()?;
    /// let index = TrieIndex::open(AlignedBytes::from(bytes.as_slice()))?;
    /// let mut values = [None; 3];
    /// index.get_many(&[b"pear", b"plum", b"apple"], &mut values);
    /// assert_eq!(values, [Some(&b"pe"[..]), None, Some(b"ap")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_many<'v>(&'v self, keys: &[&[u8]], values: &mut [Option<&'v [u8]>]) {
        kernel::run(SearchMany { index: self, keys, values });
    }

    #[inline(always)]
    fn search_interleaved<'v>(
        &'v self,
        (trie, table, suffixes): (&Trie<'_, impl Steps>, &RootCache<'_>, &KeySuffixes<'_>),
        keys: &[&[u8]],
        values: &mut [Option<&'v [u8]>],
    ) {
        values.fill(None);
        keys.iter().take(INTERLEAVE_WIDTH).for_each(|key| table.prefetch(key));
        let mut hits = trie.walk_interleaved(
            keys.len(),
            |place| keys.get(place).copied(),
            |_, key| table.enter(trie, key),
            |place, node| {
                if let Some(value) = values.get_mut(place)
                    && trie.is_prefix_key(&node)
                {
                    *value = self.value(prefix_ordinal(trie, &node));
                }
            },
        );
        hits.count(trie);
        hits.iter().for_each(|hits| suffixes.prefetch(hits.number()));
        let mut slots = [None; INTERLEAVE_WIDTH];
        for (slot, hits) in slots.iter_mut().zip(hits.iter()) {
            *slot = suffixes.slot(hits.number(), hits.depth());
            slot.iter().for_each(StoredSuffix::prefetch);
            let value = (hits.number() as usize).wrapping_mul(self.value_bytes);
            prefetch(trie.bytes, self.layout.leaves.wrapping_add(value));
        }
        for (slot, hits) in slots.iter().zip(hits.iter()) {
            if let (Some(slot), Some(key), Some(value)) =
                (slot, keys.get(hits.key_number()), values.get_mut(hits.key_number()))
                && slot.equals_rest_of(key, hits.depth())
            {
                *value = self.value(hits.number());
            }
        }
    }

    #[inline]
    fn value(&self, ordinal: u64) -> Option<&[u8]> {
        let start =
            usize::try_from(ordinal).ok()?.checked_mul(self.value_bytes)?.checked_add(self.layout.leaves)?;
        envelope::payload(self.bytes.as_ref()).get(start..start.checked_add(self.value_bytes)?)
    }

    /// Creates a cursor that is not positioned yet.
    pub fn cursor(&self) -> TrieCursor<'_, D> {
        TrieCursor { index: self, cursor: Cursor::default() }
    }

    /// Returns the number of keys between two bounds; 0 if they are reversed.
    pub fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
        let lower = match lower {
            Bound::Unbounded => (&b""[..], Side::Before),
            Bound::Included(key) => (key, Side::Before),
            Bound::Excluded(key) => (key, Side::After),
        };
        let upper = match upper {
            Bound::Unbounded => (&b""[..], Side::AfterPrefix),
            Bound::Included(key) => (key, Side::After),
            Bound::Excluded(key) => (key, Side::Before),
        };
        if upper.1 != Side::AfterPrefix && upper.0 < lower.0 {
            return 0;
        }
        let Some((count, lower_frontier, upper_frontier)) = count_between(&self.trie(), lower, upper) else {
            return 0;
        };
        let before_lower = u64::from(self.is_tie_before(&lower_frontier, lower));
        let before_upper = u64::from(self.is_tie_before(&upper_frontier, upper));
        count.saturating_add(before_upper).saturating_sub(before_lower)
    }

    /// Whether the key of a leaf on a bound's path is before the bound: its suffix decides.
    fn is_tie_before(&self, frontier: &Frontier<'_>, (key, side): (&[u8], Side)) -> bool {
        frontier.tie.is_some_and(|(edge, length): (Edge, usize)| {
            let suffix = self.suffixes().get(self.trie().leaf_index(&edge), length);
            let order = suffix.cmp(key.get(length..).unwrap_or_default());
            order.is_lt() || side == Side::After && order.is_eq()
        })
    }
}

/// A move of a cursor.
#[derive(Debug, Clone, Copy)]
enum Move<'k> {
    First,
    Last,
    Seek(&'k [u8]),
    SeekForPrev(&'k [u8]),
    Next,
    Previous,
}

/// A move, compiled for the instruction set.
struct Moving<'a, D> {
    index: &'a TrieIndex<D>,
    cursor: &'a mut Cursor,
    to: Move<'a>,
}

impl<D: AsRef<[u8]>> kernel::Task for Moving<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) {
        let Self { index, cursor, to } = self;
        let trie = index.trie().with(steps);
        match to {
            Move::First => cursor.move_to_first(&trie),
            Move::Last => cursor.move_to_last(&trie),
            Move::Seek(key) => cursor.seek(&trie, key),
            Move::SeekForPrev(key) => cursor.seek_for_prev(&trie, key, false),
            Move::Next => cursor.next(&trie),
            Move::Previous => cursor.previous(&trie),
        }
        index.complete(&trie, cursor);
        // The key of a leaf on the bound's path may be on the wrong side: its suffix decides.
        match to {
            Move::Seek(key) if cursor.stop().is_some() && cursor.path() < key => cursor.next(&trie),
            Move::SeekForPrev(key) if cursor.stop().is_some() && cursor.path() > key => {
                cursor.previous(&trie)
            }
            _ => return,
        }
        index.complete(&trie, cursor);
    }
}

impl<D: AsRef<[u8]>> TrieIndex<D> {
    /// Appends the suffix to the path of a leaf.
    #[inline(always)]
    fn complete(&self, trie: &Trie<'_, impl Steps>, cursor: &mut Cursor) {
        if let Some(Stop::Leaf(edge)) = cursor.stop() {
            let depth = cursor.path().len();
            cursor.extend_path(self.suffixes().get(trie.leaf_index(&edge), depth));
        }
    }
}

/// A position in a [`TrieIndex`]; moves in both directions.
#[derive(Debug, Clone)]
pub struct TrieCursor<'a, D> {
    index: &'a TrieIndex<D>,
    cursor: Cursor,
}

impl<D: AsRef<[u8]>> TrieCursor<'_, D> {
    fn go(&mut self, to: Move<'_>) {
        kernel::run(Moving { index: self.index, cursor: &mut self.cursor, to });
    }

    /// Moves to the first key.
    pub fn first(&mut self) {
        self.go(Move::First);
    }

    /// Moves to the last key.
    pub fn last(&mut self) {
        self.go(Move::Last);
    }

    /// Moves to the first key that is not smaller than `key`: the lower bound.
    pub fn seek(&mut self, key: &[u8]) {
        self.go(Move::Seek(key));
    }

    /// Moves to the last key that is not greater than `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.go(Move::SeekForPrev(key));
    }

    /// Moves to the next key; after the last one there is none.
    pub fn next(&mut self) {
        self.go(Move::Next);
    }

    /// Moves to the previous key; before the first one there is none.
    pub fn previous(&mut self) {
        self.go(Move::Previous);
    }

    /// The key, until the next move; `None` if the cursor is at no key.
    pub fn key(&self) -> Option<&[u8]> {
        self.cursor.stop().map(|_| self.cursor.path())
    }

    /// The key's value.
    pub fn value(&self) -> Option<&[u8]> {
        let trie = self.index.trie();
        self.index.value(match self.cursor.stop()? {
            Stop::Leaf(edge) => trie.leaf_index(&edge),
            Stop::PrefixKey(node) => prefix_ordinal(&trie, &node),
        })
    }
}
