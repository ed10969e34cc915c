//! Takes sorted keys and collects the labels of their trie, level by level.
//!
//! One key is held back: the depth of its leaf follows from the bytes that it shares with the keys before and after it.
//! Written labels never change, so a level is a list that only grows at its end.
//!
//! **Height cap.** Long prefixes that few keys share would cost ten bits per byte. If the levels hold far more labels
//! than keys, the deepest levels are dropped: labels of the level above become leaves with a count of the keys below
//! them. This limits memory to [`LABELS_PER_KEY_MAX`] labels per key and [`LABELS_SLACK`] more. Cost: 2 bytes per label
//! and the bits of the words.

use tamis_bits::{key_head, packed::PackedVec};

use crate::BuildError;

/// Labels in memory per key before levels are dropped. Encoded tries have far fewer.
pub(crate) const LABELS_PER_KEY_MAX: u64 = 16;
/// Labels that may be held in addition.
pub(crate) const LABELS_SLACK: u64 = 1 << 20;

pub(crate) const FIRST: u16 = 1 << 8;
pub(crate) const HAS_CHILD: u16 = 1 << 9;
/// On the first label of a node: the path to the node is a key.
pub(crate) const PREFIX_KEY: u16 = 1 << 10;

/// The depth to which keys are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// To the first byte that no other key shares; the height may be capped.
    Capped,
    /// To the first byte that no other key shares, without a cap. The caller stores the remaining bytes.
    Unlimited,
}

/// The labels of one level, from left to right.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    /// Label byte and flags.
    pub(crate) labels: Vec<u16>,
    /// The caller's words for each label without a child.
    pub(crate) words: [PackedVec; 2],
    /// The caller's word for each prefix key that ends at a node of this level.
    pub(crate) prefix_words: Vec<u64>,
    pub(crate) node_count: u64,
    pub(crate) child_count: u64,
    pub(crate) prefix_key_count: u64,
}

impl Level {
    fn new(widths: WordBits) -> Self {
        Self { words: widths.map(PackedVec::new), ..Self::default() }
    }

    /// The words of all labels; 0 for a label with a child.
    pub(super) fn all_words(&self, widths: WordBits) -> [PackedVec; 2] {
        let [first, second] = &self.words;
        [(first, widths[0]), (second, widths[1])].map(|(words, width)| {
            let mut all = PackedVec::new(width);
            if width > 0 {
                expanded(&self.labels, words).for_each(|word| all.push(word));
            }
            all
        })
    }

    /// Appends the words of a leaf.
    #[inline(always)]
    fn push_words(&mut self, words: [u64; 2], widths: WordBits) {
        if widths == [0; 2] {
            return;
        }
        let [first, second] = &mut self.words;
        if widths[0] > 0 {
            first.push(words[0]);
        }
        if widths[1] > 0 {
            second.push(words[1]);
        }
    }
}

/// Stored bits of each of the two words of a leaf; 0 if the word is not stored.
pub(crate) type WordBits = [u32; 2];

/// The words of all labels from those of leaves: 0 for a label with a child.
fn expanded<'a>(labels: &'a [u16], words: &'a PackedVec) -> impl Iterator<Item = u64> + 'a {
    let mut words = words.iter();
    labels.iter().map(move |label| if label & HAS_CHILD == 0 { words.next().unwrap_or(0) } else { 0 })
}

/// The number of keys below each label of an uncapped level, given the counts of the nodes of the next level.
fn keys_of_labels<'a>(level: &'a Level, below: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
    let mut children = below.iter();
    let child_or_leaf =
        move |label: &u16| if label & HAS_CHILD == 0 { 1 } else { children.next().copied().unwrap_or(0) };
    level.labels.iter().map(child_or_leaf)
}

/// The number of keys that are below each node of a level or end there, given the counts of its labels.
fn keys_of_nodes(level: &Level, keys_of_labels: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut nodes = Vec::with_capacity(level.node_count as usize);
    for (label, count) in level.labels.iter().zip(keys_of_labels) {
        if label & FIRST != 0 {
            nodes.push(u64::from(label & PREFIX_KEY != 0));
        }
        if let Some(node) = nodes.last_mut() {
            *node += count;
        }
    }
    nodes
}

/// The data that a caller stores for a leaf.
pub(crate) trait LeafWords {
    /// The words of a key whose stored prefix has `depth` bytes.
    fn words(&mut self, key: &[u8], depth: usize) -> [u64; 2];
}

/// The levels of a trie under construction.
#[derive(Debug)]
pub(crate) struct Levels {
    levels: Vec<Level>,
    depth: Depth,
    widths: WordBits,
    pending: Vec<u8>,
    /// Bytes that the pending key shares with the key before it.
    shared_before: usize,
    key_count: u64,
    is_sealed: bool,
    label_count: u64,
    /// The level of a node whose prefix key was written before any of its labels.
    open_prefix: Option<usize>,
    /// The height cap, if any, and the number of keys below each label of the last level.
    capped_counts: Option<(usize, Vec<u64>)>,
}

/// The number of bytes that two keys share at their beginning. Keys of up to 16 bytes compare two words, which may
/// overlap: overlapping bytes are equal. No iterators: range queries call this on their critical path.
#[inline(always)]
pub(crate) fn shared_bytes(left: &[u8], right: &[u8]) -> usize {
    let length = left.len().min(right.len());
    let (Some(left_head), Some(right_head)) = (left.first_chunk::<8>(), right.first_chunk::<8>()) else {
        // Zeros after the end of a key are beyond the length of the shorter one.
        return ((key_head(left) ^ key_head(right)).leading_zeros() as usize / 8).min(length);
    };
    let equal = equal_bytes(left_head, right_head);
    if equal < 8 {
        return equal;
    }
    if length <= 16 {
        let end = |key: &[u8]| key.get(length - 8..length).and_then(|key| key.first_chunk().copied());
        return length - 8 + equal_bytes(&end(left).unwrap_or_default(), &end(right).unwrap_or_default());
    }
    shared_beyond(left, right)
}

#[inline(always)]
fn equal_bytes(left: &[u8; 8], right: &[u8; 8]) -> usize {
    let difference = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
    (difference.trailing_zeros() / 8) as usize
}

/// [`shared_bytes`] of keys longer than two words.
#[inline(never)]
fn shared_beyond(left: &[u8], right: &[u8]) -> usize {
    let length = left.len().min(right.len());
    let (left, right) = (left.get(..length).unwrap_or_default(), right.get(..length).unwrap_or_default());
    let words = left.as_chunks::<8>().0.iter().zip(right.as_chunks::<8>().0);
    for (index, (left, right)) in words.enumerate() {
        let equal = equal_bytes(left, right);
        if equal < 8 {
            return index * 8 + equal;
        }
    }
    let ends = left.last_chunk().zip(right.last_chunk());
    ends.map_or(0, |(left, right)| length - 8 + equal_bytes(left, right))
}

impl Levels {
    pub(crate) const fn new(depth: Depth, widths: WordBits) -> Self {
        Self {
            levels: Vec::new(),
            depth,
            widths,
            pending: Vec::new(),
            shared_before: 0,
            key_count: 0,
            is_sealed: false,
            label_count: 0,
            open_prefix: None,
            capped_counts: None,
        }
    }

    /// Adds the next key. Skips a repeated key and rejects a smaller one.
    #[inline]
    pub(crate) fn add<W: LeafWords>(&mut self, key: &[u8], leaf: &mut W) -> Result<bool, BuildError> {
        let before = std::mem::take(&mut self.pending);
        let is_new = self.follow(&before, key, leaf);
        self.pending = before;
        if *is_new.as_ref().unwrap_or(&false) {
            self.pending.clear();
            self.pending.extend_from_slice(key);
        }
        is_new
    }

    /// Compares a key with the previous one and writes the previous one. Returns whether the key is new.
    #[inline(always)]
    fn follow<W: LeafWords>(&mut self, before: &[u8], key: &[u8], leaf: &mut W) -> Result<bool, BuildError> {
        if self.key_count > 0 {
            let shared = shared_bytes(before, key);
            match (before.get(shared), key.get(shared)) {
                (None, None) => return Ok(false),
                (None, Some(_)) => {}
                (Some(before), Some(now)) if before < now => {}
                _ => return Err(BuildError::Unsorted { index: self.key_count }),
            }
            self.write_key(before, shared, leaf);
            self.shared_before = shared;
        }
        self.key_count += 1;
        Ok(true)
    }

    /// Writes the last key. No key may be added afterwards.
    pub(crate) fn seal<W: LeafWords>(&mut self, leaf: &mut W) {
        if !self.is_sealed && self.key_count > 0 {
            let pending = std::mem::take(&mut self.pending);
            self.write_key(&pending, 0, leaf);
            self.pending = pending;
        }
        self.is_sealed = true;
    }

    /// Writes a key that shares `shared_after` bytes with the key after it.
    #[inline(always)]
    fn write_key<W: LeafWords>(&mut self, key: &[u8], shared_after: usize, leaf: &mut W) {
        let shared = self.shared_before;
        let leaf_level = shared.max(shared_after);
        if self.capped_counts.is_some() {
            self.write_capped(key, leaf_level, leaf);
        } else {
            let words = leaf.words(key, leaf_level + 1);
            self.write_path(key, shared, leaf_level, words);
        }
        if self.label_count > self.key_count * LABELS_PER_KEY_MAX + LABELS_SLACK
            && self.depth == Depth::Capped
        {
            self.drop_deep_levels();
        }
    }

    /// Writes a key to a capped trie.
    #[cold]
    fn write_capped<W: LeafWords>(&mut self, key: &[u8], leaf_level: usize, leaf: &mut W) {
        let shared = self.shared_before;
        match &mut self.capped_counts {
            Some((height, counts)) if leaf_level >= *height => {
                let height = *height;
                if shared >= height {
                    if let Some(count) = counts.last_mut() {
                        *count += 1;
                    }
                } else {
                    self.write_labels(key, shared, height - 1, [0; 2]);
                }
            }
            _ => {
                let words = leaf.words(key, leaf_level + 1);
                self.write_labels(key, shared, leaf_level, words);
            }
        }
    }

    /// [`Levels::write_labels`] for an uncapped trie. Most keys add one label to an existing node.
    #[inline(always)]
    fn write_path(&mut self, key: &[u8], start: usize, end: usize, words: [u64; 2]) {
        if start == end
            && self.open_prefix.is_none()
            && self.label_count > 0
            && let (Some(level), Some(byte)) = (self.levels.get_mut(end), key.get(end))
        {
            level.labels.push(u16::from(*byte));
            level.push_words(words, self.widths);
            self.label_count += 1;
        } else {
            self.write_labels(key, start, end, words);
        }
    }

    /// Writes the labels of a key, from the first byte that the key before it does not share to its leaf or to the node
    /// at which it ends.
    fn write_labels(&mut self, key: &[u8], start: usize, end: usize, words: [u64; 2]) {
        let widths = self.widths;
        if self.levels.len() <= end {
            self.levels.resize_with(end + 1, || Level::new(widths));
        }
        let is_open = self.open_prefix.take().is_some();
        let mut first = if is_open {
            FIRST | PREFIX_KEY
        } else if self.label_count == 0 {
            FIRST
        } else {
            0
        };
        let Some((last, inner)) = self.levels.get_mut(start..=end).and_then(<[_]>::split_last_mut) else {
            return;
        };
        // Each of these labels except the first begins a node.
        for (level, byte) in inner.iter_mut().zip(key.get(start..).unwrap_or_default()) {
            level.labels.push(u16::from(*byte) | first | HAS_CHILD);
            level.node_count += u64::from(first & FIRST != 0);
            level.child_count += 1;
            first = FIRST;
        }
        self.label_count += (end - start) as u64;
        match key.get(end) {
            Some(byte) => {
                last.labels.push(u16::from(*byte) | first);
                last.node_count += u64::from(first & FIRST != 0);
                last.push_words(words, widths);
                self.label_count += 1;
            }
            None => {
                last.prefix_key_count += 1;
                if widths != [0; 2] {
                    last.prefix_words.push(words[0]);
                }
                self.open_prefix = Some(end);
            }
        }
        if let Some((height, counts)) = &mut self.capped_counts
            && end + 1 == *height
            && self.open_prefix.is_none()
        {
            counts.push(1);
        }
    }

    /// Drops the deepest levels until half of the allowed labels are left.
    fn drop_deep_levels(&mut self) {
        let allowed = (self.key_count * LABELS_PER_KEY_MAX + LABELS_SLACK) / 2;
        let mut kept = 0;
        let mut height = 0;
        for level in &self.levels {
            kept += level.labels.len() as u64;
            if kept > allowed && height > 0 {
                break;
            }
            height += 1;
        }
        self.cap(height);
    }

    /// Caps the trie to a height of at least 1 that is less than its own.
    fn cap(&mut self, height: usize) {
        if height == 0 || height >= self.levels.len() {
            return;
        }
        let counts = self.keys_below(height - 1);
        self.levels.truncate(height);
        self.label_count = self.levels.iter().map(|level| level.labels.len() as u64).sum();
        if let Some(last) = self.levels.last_mut() {
            last.words = last.all_words(self.widths);
            last.labels.iter_mut().for_each(|label| *label &= !HAS_CHILD);
            last.child_count = 0;
        }
        self.open_prefix = self.open_prefix.filter(|level| *level < height);
        self.capped_counts = Some((height, counts));
    }

    /// The number of written keys below each label of a level (1 for a leaf).
    pub(crate) fn keys_below(&self, level_index: usize) -> Vec<u64> {
        let mut node_counts: Vec<u64> = Vec::new();
        for (index, level) in self.levels.iter().enumerate().skip(level_index).rev() {
            if self.open_prefix == Some(index + 1) {
                // The last node below has no label yet, only its prefix key.
                node_counts.push(1);
            }
            let capped = self.capped_counts.as_ref().filter(|(height, _)| *height == index + 1);
            let counts: Vec<u64> = match capped {
                Some((_, counts)) => counts.clone(),
                None => keys_of_labels(level, &node_counts).collect(),
            };
            if index == level_index {
                return counts;
            }
            node_counts = keys_of_nodes(level, counts.into_iter());
        }
        Vec::new()
    }

    /// All levels down to the cap. A set that holds only the empty key has one level without labels.
    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Stored bits of the words of each leaf.
    pub(super) const fn widths(&self) -> WordBits {
        self.widths
    }

    /// Whether levels were dropped, so that leaves of the last level may represent several keys.
    pub(crate) const fn is_capped(&self) -> bool {
        self.capped_counts.is_some()
    }

    /// Number of distinct keys added.
    pub(crate) const fn key_count(&self) -> u64 {
        self.key_count
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        let level_bytes = |level: &Level| {
            let words: usize = level.words.iter().map(PackedVec::memory_bytes).sum();
            level.labels.capacity() * 2 + level.prefix_words.capacity() * 8 + words + size_of::<Level>()
        };
        let counts = self.capped_counts.as_ref().map_or(0, |(_, counts)| counts.capacity() * 8);
        let levels: usize = self.levels.iter().map(level_bytes).sum();
        levels + counts + self.pending.capacity()
    }
}
