//! The trie as an index: complete keys, each with a value of a fixed number of bytes. No store uses it: it compares the trie with other
//! ordered maps, and the tests of the trie search complete keys with it.
//!
//! Built from sorted keys in one pass, used in place over any bytes. The trie holds of each key the bytes up to the first
//! that no other key shares; the remaining bytes are stored for its leaf (`key_suffixes.rs`). A search costs a step for each
//! byte of the trie. Cursors return full keys in both directions.
//!
//! ```
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
//! let mut cursor = index.cursor();
//! cursor.seek(b"fasa");
//! assert_eq!(cursor.key(), Some(&b"fast"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tamis_bits::kernel::{self, Steps};
use tamis_bits::packed::PackedVec;
use tamis_bits::{RankBits, rank::Select};

use super::{
    Cursor, Depth, Layout, LeafWords, Levels, Node, Plan, Stop, TRAILER_BYTES, Trie, WalkResult, encode, plan,
};
mod key_suffixes;

use key_suffixes::{SuffixBuilder, SuffixLayout};

use crate::envelope::{self, ENVELOPE_BYTES, Envelope, PARAMETER_BYTES};
use crate::{BuildError, DecodeError, Direction};

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
        self.suffixes.encode(&mut bytes, self.leaves());
        bytes.extend_from_slice(&trie.trailer);
        let mut parameters = [0; PARAMETER_BYTES];
        envelope::set_parameter(&mut parameters, 0, self.value_bytes.to_le_bytes());
        envelope::set_parameter(&mut parameters, 8, self.suffixes.byte_count().to_le_bytes());
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
        let Self { index, key } = self;
        let trie = index.trie().with(steps);
        match trie.walk(key) {
            WalkResult::Leaf(leaf, depth) => {
                let leaf = trie.leaf_number(leaf);
                (key.get(depth..) == Some(index.suffix(leaf))).then_some(leaf)
            }
            WalkResult::Node(node) if trie.is_prefix_key(&node) => Some(prefix_ordinal(&trie, &node)),
            _ => None,
        }
    }
}

/// Number of the value of a prefix key: the values of leaves come first.
fn prefix_ordinal(trie: &Trie<'_, impl Steps>, node: &Node) -> u64 {
    let counts = &trie.layout.counts;
    let bytes = trie.bytes.get(trie.layout.prefix_keys..).unwrap_or_default();
    let marks = RankBits::open(bytes, u64::from(counts.node_count), Select::None);
    let before = marks.map_or(0, |(marks, _)| marks.rank(u64::from(trie.number(node))));
    counts.leaf_count() + before
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
        let layout = Layout::read(payload, true).map_err(refuse)?;
        let key_count = layout.counts.key_count();
        let values =
            key_count.checked_mul(u64::from(value_bytes)).and_then(|bytes| bytes.checked_next_multiple_of(8));
        let wrong_length = || refuse(("payload_bytes", envelope.payload_bytes));
        if envelope::parameter(&envelope.parameters, 4) != [0; 4] {
            let got = u32::from_le_bytes(envelope::parameter(&envelope.parameters, 4));
            return Err(refuse(("reserved", u64::from(got))));
        }
        let suffix_bytes = u64::from_le_bytes(envelope::parameter(&envelope.parameters, 8));
        let suffix_layout =
            SuffixLayout::new(layout.counts.leaf_count(), suffix_bytes).ok_or_else(wrong_length)?;
        let suffixes = values
            .and_then(|values| usize::try_from(values).ok()?.checked_add(layout.leaves))
            .ok_or_else(wrong_length)?;
        let end = suffix_layout.bytes().and_then(|bytes| bytes.checked_add(suffixes));
        if end.and_then(|end| end.checked_add(TRAILER_BYTES)) != Some(payload.len()) {
            return Err(wrong_length());
        }
        if layout.counts.capped_leaf_count != 0 {
            return Err(wrong_length());
        }
        if key_count != envelope.key_count {
            return Err(refuse(("key_count", envelope.key_count)));
        }
        let value_bytes = value_bytes as usize;
        Ok(Self { bytes, envelope, layout, value_bytes, suffixes, suffix_layout })
    }

    #[inline(always)]
    pub(super) fn trie(&self) -> Trie<'_> {
        Trie::new(envelope::payload(self.bytes.as_ref()), &self.layout)
    }

    /// The bytes of the key of a leaf below it.
    #[inline(always)]
    pub(super) fn suffix(&self, leaf: u64) -> &[u8] {
        let payload = envelope::payload(self.bytes.as_ref());
        self.suffix_layout.get(payload.get(self.suffixes..).unwrap_or_default(), leaf)
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
            Move::First => cursor.move_to_end(&trie, Direction::Forward),
            Move::Last => cursor.move_to_end(&trie, Direction::Backward),
            Move::Seek(key) => cursor.seek(&trie, key),
            Move::SeekForPrev(key) => cursor.seek_for_prev(&trie, key, false),
            Move::Next => cursor.step(&trie, Direction::Forward),
            Move::Previous => cursor.step(&trie, Direction::Backward),
        }
        index.complete(&trie, cursor);
        // The key of a leaf on the bound's path may be on the wrong side: its suffix decides.
        match to {
            Move::Seek(key) if cursor.stop().is_some() && cursor.path() < key => {
                cursor.step(&trie, Direction::Forward);
            }
            Move::SeekForPrev(key) if cursor.stop().is_some() && cursor.path() > key => {
                cursor.step(&trie, Direction::Backward);
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
            cursor.extend_path(self.suffix(trie.leaf_number(edge.leaf())));
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
            Stop::Leaf(edge) => trie.leaf_number(edge.leaf()),
            Stop::PrefixKey(node) => prefix_ordinal(&trie, &node),
        })
    }
}
