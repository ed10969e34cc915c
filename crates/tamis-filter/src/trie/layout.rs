//! The offsets of the parts of an encoded trie. All of them follow from the counts in the trailer.
//!
//! ```text
//! dense nodes | sparse blocks | dense ranks | block directory | hints | prefix keys | capped leaves | (leaf array) | trailer
//! ```
//!
//! Dense nodes and sparse blocks have 64 bytes each: a step costs one cache line.

use tamis_bits::{elias_fano, rank};

/// Bytes of the counts at the end of the payload.
pub(crate) const TRAILER_BYTES: usize = 40;

/// Two bitmaps of 256 bits: the labels, and the labels with a child.
pub(super) const DENSE_NODE_BYTES: usize = 64;
/// Nodes that share a u32: the number of leaves before them.
pub(super) const DENSE_GROUP: u32 = 64;

/// The ranks of a dense node, from the lowest bit on: the labels with a child before its labels 64, 128 and 192; the
/// leaves in the nodes before it within its group; the number of its first child.
pub(super) const DENSE_RANK_BYTES: usize = 8;
pub(super) const LEAVES_SHIFT: u32 = 24;
pub(super) const LEAVES_BITS: u32 = 15;
pub(super) const CHILD_SHIFT: u32 = LEAVES_SHIFT + LEAVES_BITS;
/// Maximal number of labels with a child in all dense nodes.
pub(super) const DENSE_CHILDREN_MAX: u64 = (1 << (64 - CHILD_SHIFT)) - 2;

/// Labels of a sparse block.
pub(super) const BLOCK_LABELS: u32 = 49;
/// A header of 15 bytes (twice 49 bits, and 22 bits for the position of the children) and 49 labels.
pub(super) const BLOCK_BYTES: usize = 64;
/// A sparse block.
pub(super) type Block = [u8; BLOCK_BYTES];
/// Bytes of a block before its labels.
pub(super) const BLOCK_HEADER_BYTES: usize = 15;
/// Blocks that share a u32 where ranks are coarse: the number of labels with a child before them.
pub(super) const RANK_BLOCKS: u32 = 8;
/// Blocks that share a u32 where ranks are fine: the number of labels without a child before them. Each block also
/// has its own u16. Leaves need fine ranks.
pub(super) const FINE_BLOCKS: u32 = 1024;
/// Blocks that share a u32 base for the block numbers of their children. Only tries with more than `NUMBERED_BLOCKS`
/// blocks have bases.
pub(super) const BASE_BLOCKS: u32 = 128;
/// Blocks that the 15 bits of a block can number.
const NUMBERED_BLOCKS: u64 = 1 << 15;
/// Nodes that share a u32: the block in which the first of them begins.
pub(super) const HINT_GROUP: u32 = 128;
/// Target number of labels between two hints.
const LABELS_PER_HINT: u64 = 128;
pub(super) const HINT_SHIFT_MAX: u32 = 6;
/// Labels per hint at which hints are cheap: they add 1/84 to the blocks.
const HINT_SHARE: u64 = 128;

/// With more labels than this per sparse node on average, the first sparse nodes are called wide.
const WIDE_LABELS: u64 = 3;

/// A position has 26 bits for the block and 6 bits for the label in it.
pub(super) const LABEL_COUNT_MAX: u64 = BLOCK_LABELS as u64 * ((1 << 26) - 2);

/// Bytes at an offset; zeros beyond the end.
#[inline(always)]
pub(super) fn chunk<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    match bytes.get(offset..).and_then(|rest| rest.first_chunk::<N>()) {
        Some(chunk) => *chunk,
        None => padded(bytes.get(offset..).unwrap_or_default()),
    }
}

/// An item of a list of equal-sized items that begins `list` items after the start; zeros beyond the end.
#[inline(always)]
pub(super) fn item<const N: usize>(bytes: &[u8], list: usize, index: u32) -> [u8; N] {
    bytes.as_chunks::<N>().0.get(list + index as usize).copied().unwrap_or([0; N])
}

#[cold]
fn padded<const N: usize>(rest: &[u8]) -> [u8; N] {
    let mut chunk = [0; N];
    chunk.iter_mut().zip(rest).for_each(|(target, source)| *target = *source);
    chunk
}

/// The counts from which the layout follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Labels of sparse nodes.
    pub(crate) sparse_label_count: u32,
    /// All nodes.
    pub(crate) node_count: u32,
    pub(crate) dense_node_count: u32,
    /// Labels of dense nodes that have a child, then those that have none.
    pub(crate) dense_child_count: u32,
    pub(crate) dense_leaf_count: u32,
    pub(crate) prefix_key_count: u32,
    /// Leaves of the last level, if the height is capped.
    pub(crate) capped_leaf_count: u32,
    pub(crate) height: u32,
    /// Keys below the capped leaves.
    pub(crate) capped_key_count: u64,
}

impl Counts {
    pub(super) fn to_bytes(self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        let fields = [
            self.sparse_label_count,
            self.node_count,
            self.dense_node_count,
            self.dense_child_count,
            self.dense_leaf_count,
            self.prefix_key_count,
            self.capped_leaf_count,
            self.height,
        ];
        let source = fields.iter().flat_map(|field| field.to_le_bytes());
        for (target, byte) in bytes.iter_mut().zip(source.chain(self.capped_key_count.to_le_bytes())) {
            *target = byte;
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; TRAILER_BYTES]) -> Self {
        let (fields, _) = bytes.as_chunks::<4>();
        let mut fields = fields.iter().map(|field| u32::from_le_bytes(*field));
        let mut next = || fields.next().unwrap_or(0);
        Self {
            sparse_label_count: next(),
            node_count: next(),
            dense_node_count: next(),
            dense_child_count: next(),
            dense_leaf_count: next(),
            prefix_key_count: next(),
            capped_leaf_count: next(),
            height: next(),
            capped_key_count: bytes.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
        }
    }

    /// Labels of sparse nodes that have a child: every node except the root is a child.
    const fn sparse_child_count(&self) -> u32 {
        self.node_count.saturating_sub(1).saturating_sub(self.dense_child_count)
    }

    /// All leaves, without prefix keys.
    pub(crate) fn leaf_count(&self) -> u64 {
        let sparse = self.sparse_label_count.saturating_sub(self.sparse_child_count());
        u64::from(self.dense_leaf_count) + u64::from(sparse)
    }

    /// Keys that the trie represents.
    pub(crate) fn key_count(&self) -> u64 {
        self.checked_key_count().unwrap_or(u64::MAX)
    }

    /// [`Counts::key_count`]; `None` if it exceeds 64 bits.
    fn checked_key_count(&self) -> Option<u64> {
        let below = self.capped_key_count.saturating_sub(u64::from(self.capped_leaf_count));
        (self.leaf_count() + u64::from(self.prefix_key_count)).checked_add(below)
    }

    /// Sparse nodes whose parent is dense: the first sparse nodes. They have hints.
    pub(super) const fn hinted_count(&self) -> u64 {
        hinted_count(self.dense_node_count as u64, self.dense_child_count as u64)
    }

    /// Rejects counts that no builder writes; the error names the field and its value.
    fn check(&self) -> Result<(), (&'static str, u64)> {
        let children = u64::from(self.dense_child_count) + u64::from(self.sparse_label_count);
        let checks = [
            ("dense_node_count", self.dense_node_count, self.dense_node_count <= self.node_count),
            (
                "dense_child_count",
                self.dense_child_count,
                self.dense_child_count < self.node_count.max(1)
                    && u64::from(self.dense_child_count) <= DENSE_CHILDREN_MAX,
            ),
            ("node_count", self.node_count, u64::from(self.node_count) <= children + 1),
            ("prefix_key_count", self.prefix_key_count, self.prefix_key_count <= self.node_count),
            ("height", self.height, self.height <= self.node_count),
            (
                "capped_leaf_count",
                self.capped_leaf_count,
                u64::from(self.capped_leaf_count) <= self.leaf_count()
                    && u64::from(self.capped_leaf_count) <= self.capped_key_count,
            ),
            (
                "sparse_label_count",
                self.sparse_label_count,
                u64::from(self.sparse_label_count) <= LABEL_COUNT_MAX
                    && (self.dense_node_count < self.node_count || self.sparse_label_count == 0),
            ),
        ];
        if let Some((field, got, _)) = checks.iter().find(|(_, _, is_possible)| !is_possible) {
            return Err((*field, u64::from(*got)));
        }
        // Ensures that no sum of keys exceeds 64 bits.
        let has_capped = self.capped_leaf_count != 0 || self.capped_key_count == 0;
        let is_possible = has_capped && self.checked_key_count().is_some();
        is_possible.then_some(()).ok_or(("capped_key_count", self.capped_key_count))
    }
}

/// Counts and offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) counts: Counts,
    /// The bytes that all keys begin with, in the high end of a word, and their number (at most 8). They cover dense
    /// nodes only, and the node after them is dense too. Each of these nodes has one label, so a node's number is its
    /// depth.
    pub(super) stem: u64,
    pub(super) stem_length: u8,
    /// The number of levels below the stem (at most 2) in which all possible nodes exist: a node's number follows from
    /// the bytes that lead to it.
    pub(super) full_levels: u8,
    pub(super) hint_shift: u8,
    pub(super) hinted_count: u32,
    /// Whether the first sparse nodes have many labels each, so that nodes often continue in the next block.
    pub(super) is_wide: bool,
    pub(super) has_fine_ranks: bool,
    pub(super) has_block_bases: bool,
    pub(super) sparse: usize,
    /// The end of the dense nodes and sparse blocks.
    pub(super) lines: usize,
    // Start of each list, as a number of items of its size.
    pub(super) dense_groups: usize,
    pub(super) dense_ranks: usize,
    pub(super) block_ranks: usize,
    /// The fine ranks of single blocks.
    pub(super) fine_ranks: usize,
    pub(super) block_bases: usize,
    pub(super) hint_bases: usize,
    pub(super) hints: usize,
    // In bytes.
    pub(super) prefix_keys: usize,
    pub(super) capped: usize,
    /// Start of the leaf array: the length of the parts before it.
    pub(crate) leaves: usize,
}

/// Bytes of sparse blocks.
pub(super) const fn sparse_bytes(label_count: u64) -> u64 {
    label_count.div_ceil(BLOCK_LABELS as u64) * BLOCK_BYTES as u64
}

/// Nodes per hint as a power of two: few labels are between two hints, and fewer where hints are cheap anyway. Nodes
/// with hints are larger than others, so a hint for each of them avoids passing blocks.
pub(super) fn hint_shift(label_count: u64, node_count: u64, hinted_count: u64) -> u32 {
    let by_labels = (node_count * LABELS_PER_HINT)
        .checked_div(label_count)
        .and_then(u64::checked_ilog2)
        .unwrap_or(0)
        .min(HINT_SHIFT_MAX);
    let is_cheap = |shift: &u32| hinted_count.div_ceil(1 << shift) * HINT_SHARE <= label_count;
    (0..by_labels).find(is_cheap).unwrap_or(by_labels)
}

/// Sparse nodes whose parent is dense.
pub(super) const fn hinted_count(dense_node_count: u64, dense_child_count: u64) -> u64 {
    if dense_node_count == 0 { 0 } else { (dense_child_count + 1).saturating_sub(dense_node_count) }
}

/// Bytes of the directory: ranks and bases of blocks, bases and hints of nodes.
pub(super) fn directory_bytes(
    label_count: u64,
    node_count: u64,
    hinted_count: u64,
    has_fine_ranks: bool,
) -> [u64; 4] {
    let blocks = label_count.div_ceil(u64::from(BLOCK_LABELS));
    let ranks = if has_fine_ranks {
        fine_ranks_start(blocks) + blocks.next_multiple_of(2) * 2
    } else {
        blocks.div_ceil(u64::from(RANK_BLOCKS)) * 4
    };
    let bases = if has_block_bases(blocks) { blocks.div_ceil(u64::from(BASE_BLOCKS)) * 4 } else { 0 };
    let hint_bases = hinted_count.div_ceil(u64::from(HINT_GROUP)) * 4;
    let hints = hinted_count.div_ceil(1 << hint_shift(label_count, node_count, hinted_count)) * 2;
    let all = ranks + bases + hint_bases + hints;
    [ranks, bases, hint_bases, hints + all.next_multiple_of(8) - all]
}

/// Whether each block has its own rank. Walks that read something stored for a leaf or node need it; otherwise only
/// counts need ranks.
pub(super) const fn has_fine_ranks(has_leaf_array: bool, prefix_key_count: u64) -> bool {
    has_leaf_array || prefix_key_count != 0
}

/// Whether blocks number the blocks of their children relative to a base.
const fn has_block_bases(block_count: u64) -> bool {
    block_count > NUMBERED_BLOCKS
}

/// Start of the ranks of single blocks, after those of groups.
pub(super) const fn fine_ranks_start(block_count: u64) -> u64 {
    block_count.div_ceil(FINE_BLOCKS as u64) * 4
}

/// Bytes of dense nodes, of their groups and of their ranks.
pub(super) fn dense_bytes(node_count: u64) -> [u64; 3] {
    [
        node_count * DENSE_NODE_BYTES as u64,
        (node_count.div_ceil(u64::from(DENSE_GROUP)) * 4).next_multiple_of(8),
        node_count * DENSE_RANK_BYTES as u64,
    ]
}

/// Bytes of the bitmap of prefix keys.
pub(super) fn prefix_key_bytes(node_count: u64, prefix_key_count: u64) -> u64 {
    if prefix_key_count == 0 {
        0
    } else {
        rank::encoded_bytes(node_count, prefix_key_count, rank::Select::None)
    }
}

/// Bytes of the counts of keys below capped leaves.
pub(super) fn capped_bytes(leaf_count: u64, key_count: u64) -> Option<u64> {
    if leaf_count == 0 { Some(0) } else { elias_fano::encoded_bytes(leaf_count, key_count) }
}

impl Layout {
    /// The layout for these counts. `has_leaf_array`: whether data is stored for each leaf. `None` beyond the address
    /// space.
    pub(super) fn new(counts: Counts, has_leaf_array: bool) -> Option<Self> {
        let sparse_nodes = u64::from(counts.node_count.checked_sub(counts.dense_node_count)?);
        let labels = u64::from(counts.sparse_label_count);
        let [dense, groups, ranks] = dense_bytes(u64::from(counts.dense_node_count));
        let has_fine_ranks = has_fine_ranks(has_leaf_array, u64::from(counts.prefix_key_count));
        let [block_ranks, block_bases, bases, hints] =
            directory_bytes(labels, sparse_nodes, counts.hinted_count(), has_fine_ranks);
        let lengths = [
            dense,
            sparse_bytes(labels),
            groups,
            ranks,
            block_ranks,
            block_bases,
            bases,
            hints,
            prefix_key_bytes(u64::from(counts.node_count), u64::from(counts.prefix_key_count)),
            capped_bytes(u64::from(counts.capped_leaf_count), counts.capped_key_count)?,
        ];
        let mut offsets = [0_usize; 10];
        let mut end = 0_usize;
        for (offset, length) in offsets.iter_mut().zip(lengths) {
            end = end.checked_add(usize::try_from(length).ok()?)?;
            *offset = end;
        }
        let [
            sparse,
            dense_groups,
            dense_ranks,
            block_ranks,
            block_bases,
            hint_bases,
            hints,
            prefix_keys,
            capped,
            leaves,
        ] = offsets;
        let block_count = labels.div_ceil(u64::from(BLOCK_LABELS));
        let fine_ranks = block_ranks.checked_add(usize::try_from(fine_ranks_start(block_count)).ok()?)?;
        let hint_shift = hint_shift(labels, sparse_nodes, counts.hinted_count());
        Some(Self {
            counts,
            stem: 0,
            stem_length: 0,
            full_levels: 0,
            hint_shift: hint_shift as u8,
            hinted_count: counts.hinted_count() as u32,
            is_wide: labels > WIDE_LABELS * sparse_nodes,
            has_fine_ranks,
            has_block_bases: has_block_bases(block_count),
            sparse,
            lines: dense_groups,
            dense_groups: dense_groups / size_of::<u32>(),
            dense_ranks: dense_ranks / DENSE_RANK_BYTES,
            block_ranks: block_ranks / size_of::<u32>(),
            fine_ranks: fine_ranks / size_of::<u16>(),
            block_bases: block_bases / size_of::<u32>(),
            hint_bases: hint_bases / size_of::<u32>(),
            hints: hints / size_of::<u16>(),
            prefix_keys,
            capped,
            leaves,
        })
    }

    /// Reads the trailer of a payload; the error names a field with a value that no builder writes.
    pub(crate) fn read(payload: &[u8], has_leaf_array: bool) -> Result<Self, (&'static str, u64)> {
        let wrong_length = ("payload_bytes", payload.len() as u64);
        let trailer = payload.last_chunk::<TRAILER_BYTES>().ok_or(wrong_length)?;
        let counts = Counts::from_bytes(trailer);
        counts.check()?;
        let mut layout = Self::new(counts, has_leaf_array).ok_or(wrong_length)?;
        if layout.leaves > payload.len() - TRAILER_BYTES {
            return Err(wrong_length);
        }
        layout.find_stem(payload);
        layout.find_full_levels(payload);
        Ok(layout)
    }

    fn find_stem(&mut self, payload: &[u8]) {
        for (node, depth) in payload.as_chunks::<DENSE_NODE_BYTES>().0.iter().zip(0..8_u8) {
            let (labels, children) = node.split_at(DENSE_NODE_BYTES / 2);
            let has_one = labels.iter().map(|byte| byte.count_ones()).sum::<u32>() == 1;
            let Some(place) = labels.iter().position(|byte| *byte != 0) else { break };
            let has_dense_successor = u32::from(depth) + 1 < self.counts.dense_node_count;
            // The first eight nodes have their bits in one byte.
            let keys = payload.get(self.prefix_keys).copied().unwrap_or(0);
            let is_key = self.counts.prefix_key_count != 0 && keys >> depth & 1 != 0;
            if is_key || !has_one || labels != children || !has_dense_successor {
                break;
            }
            let bit = labels.get(place).map_or(0, |byte| byte.trailing_zeros());
            self.stem |= (place as u64 * 8 + u64::from(bit)) << (56 - 8 * depth);
            self.stem_length = depth + 1;
        }
    }

    fn find_full_levels(&mut self, payload: &[u8]) {
        let dense = payload.as_chunks::<DENSE_NODE_BYTES>().0.get(..self.counts.dense_node_count as usize);
        let mut rest = dense.unwrap_or_default().get(usize::from(self.stem_length)..).unwrap_or_default();
        while self.full_levels < 2 {
            let Some((level, after)) = rest.split_at_checked(1 << (8 * self.full_levels)) else { break };
            if level.as_flattened().iter().any(|byte| *byte != u8::MAX) {
                break;
            }
            self.full_levels += 1;
            rest = after;
        }
    }
}
