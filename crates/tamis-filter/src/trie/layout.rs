//! Where each part of an encoded trie lies. Everything follows from the counts in the trailer.
//!
//! ```text
//! dense nodes | sparse blocks | dense ranks | hints | prefix keys | keys below capped leaves | (leaf array) | trailer
//! ```

use tamis_bits::{elias_fano, rank};

/// Bytes of the counts at the end of the payload.
pub(crate) const TRAILER_BYTES: usize = 40;

/// Two bitmaps of 256 bits: labels, and those of them with a child.
pub(super) const DENSE_NODE_BYTES: usize = 64;
/// Nodes that share a pair of u32 of what lies before them.
pub(super) const DENSE_GROUP: u32 = 128;

/// Labels of a sparse block.
pub(super) const BLOCK_LABELS: u32 = 99;
/// Rank (4 bytes), two times 99 bits (25 bytes), 99 labels.
pub(super) const BLOCK_BYTES: usize = 128;
/// Bytes of a block before its labels.
pub(super) const BLOCK_HEADER_BYTES: usize = 29;
/// Nodes that share a u32 of the position of their first label.
pub(super) const HINT_GROUP: u32 = 128;
/// Labels that should lie between two hints.
const LABELS_PER_HINT: u64 = 96;
pub(super) const HINT_SHIFT_MAX: u32 = 6;

/// Labels are numbered with 32 bits; the rest leaves room for sums.
pub(super) const LABEL_COUNT_MAX: u64 = u32::MAX as u64 - 1024;

/// The counts that everything else follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Labels of sparse nodes.
    pub(crate) sparse_label_count: u32,
    /// All nodes.
    pub(crate) node_count: u32,
    pub(crate) dense_node_count: u32,
    /// Labels of dense nodes that have a child, and those that have none.
    pub(crate) dense_child_count: u32,
    pub(crate) dense_leaf_count: u32,
    pub(crate) prefix_key_count: u32,
    /// Leaves of the last level, where the height is capped.
    pub(crate) capped_leaf_count: u32,
    pub(crate) height: u32,
    /// Keys below those.
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

    /// Labels of sparse nodes that have a child: every node but the root is a child.
    const fn sparse_child_count(&self) -> u32 {
        self.node_count.saturating_sub(1).saturating_sub(self.dense_child_count)
    }

    /// All leaves, prefix keys apart.
    pub(crate) fn leaf_count(&self) -> u64 {
        let sparse = self.sparse_label_count.saturating_sub(self.sparse_child_count());
        u64::from(self.dense_leaf_count) + u64::from(sparse)
    }

    /// Keys that the trie stands for.
    pub(crate) fn key_count(&self) -> u64 {
        let below = self.capped_key_count.saturating_sub(u64::from(self.capped_leaf_count));
        (self.leaf_count() + u64::from(self.prefix_key_count)).saturating_add(below)
    }

    /// Refuses what no builder writes, by the name of the field.
    fn check(&self) -> Result<(), (&'static str, u64)> {
        let children = u64::from(self.dense_child_count) + u64::from(self.sparse_label_count);
        let checks = [
            ("dense_node_count", self.dense_node_count, self.dense_node_count <= self.node_count),
            ("dense_child_count", self.dense_child_count, self.dense_child_count < self.node_count.max(1)),
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
        let failed = checks.iter().find(|(_, _, is_possible)| !is_possible);
        failed.map_or(Ok(()), |(field, got, _)| Err((*field, u64::from(*got))))
    }
}

/// Counts and offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) counts: Counts,
    pub(super) hint_shift: u32,
    pub(super) sparse: usize,
    pub(super) dense_groups: usize,
    pub(super) dense_ranks: usize,
    pub(super) hint_bases: usize,
    pub(super) hints: usize,
    pub(super) prefix_keys: usize,
    pub(super) capped: usize,
    /// Where the leaf array begins: the length of the parts before it.
    pub(crate) leaves: usize,
}

/// Bytes of sparse blocks; the last one ends behind its labels.
pub(super) fn sparse_bytes(label_count: u64) -> u64 {
    let rest = label_count % u64::from(BLOCK_LABELS);
    let last = if rest == 0 { 0 } else { (BLOCK_HEADER_BYTES as u64 + rest).next_multiple_of(8) };
    label_count / u64::from(BLOCK_LABELS) * BLOCK_BYTES as u64 + last
}

/// Nodes from hint to hint, as a power of two.
pub(super) fn hint_shift(label_count: u64, node_count: u64) -> u32 {
    (node_count * LABELS_PER_HINT)
        .checked_div(label_count)
        .and_then(u64::checked_ilog2)
        .unwrap_or(0)
        .min(HINT_SHIFT_MAX)
}

/// Bytes of the two lists of hints.
pub(super) fn hint_bytes(label_count: u64, node_count: u64) -> [u64; 2] {
    let hints = node_count.div_ceil(1 << hint_shift(label_count, node_count));
    let bases = node_count.div_ceil(u64::from(HINT_GROUP));
    [bases * 4, (bases * 4 + hints * 2).next_multiple_of(8) - bases * 4]
}

/// Bytes of dense nodes, of their groups and of their ranks.
pub(super) fn dense_bytes(node_count: u64) -> [u64; 3] {
    [
        node_count * DENSE_NODE_BYTES as u64,
        node_count.div_ceil(u64::from(DENSE_GROUP)) * 8,
        (node_count * 4).next_multiple_of(8),
    ]
}

/// Bytes of the bits that mark prefix keys.
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
    /// The layout that follows from counts; `None` where it is beyond the address space.
    pub(super) fn new(counts: Counts) -> Option<Self> {
        let sparse_nodes = u64::from(counts.node_count.checked_sub(counts.dense_node_count)?);
        let labels = u64::from(counts.sparse_label_count);
        let [dense, groups, ranks] = dense_bytes(u64::from(counts.dense_node_count));
        let [bases, hints] = hint_bytes(labels, sparse_nodes);
        let lengths = [
            dense,
            sparse_bytes(labels),
            groups,
            ranks,
            bases,
            hints,
            prefix_key_bytes(u64::from(counts.node_count), u64::from(counts.prefix_key_count)),
            capped_bytes(u64::from(counts.capped_leaf_count), counts.capped_key_count)?,
        ];
        let mut offsets = [0_usize; 8];
        let mut end = 0_usize;
        for (offset, length) in offsets.iter_mut().zip(lengths) {
            end = end.checked_add(usize::try_from(length).ok()?)?;
            *offset = end;
        }
        let [sparse, dense_groups, dense_ranks, hint_bases, hints, prefix_keys, capped, leaves] = offsets;
        let hint_shift = hint_shift(labels, sparse_nodes);
        Some(Self {
            counts,
            hint_shift,
            sparse,
            dense_groups,
            dense_ranks,
            hint_bases,
            hints,
            prefix_keys,
            capped,
            leaves,
        })
    }

    /// Reads the trailer of a payload; the error names a field that no builder writes.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, (&'static str, u64)> {
        let wrong_length = ("payload_bytes", payload.len() as u64);
        let trailer = payload.last_chunk::<TRAILER_BYTES>().ok_or(wrong_length)?;
        let counts = Counts::from_bytes(trailer);
        counts.check()?;
        let layout = Self::new(counts).ok_or(wrong_length)?;
        if layout.leaves > payload.len() - TRAILER_BYTES {
            return Err(wrong_length);
        }
        Ok(layout)
    }
}
