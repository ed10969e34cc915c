//! Sparse nodes: blocks of 99 labels with their bits and rank in two neighbouring cache lines, and hints to nodes.
//!
//! ```text
//! block   rank u32 | 99 has-child bits, 99 first-of-node bits (25 bytes) | 99 label bytes        128 bytes
//! ```

use tamis_bits::kernel::not_smaller_mask;

use super::layout::{BLOCK_BYTES, BLOCK_HEADER_BYTES, BLOCK_LABELS, HINT_GROUP, HINT_SHIFT_MAX};
use super::reader::{Edge, Trie, chunk};

/// First bit of a block's has-child bits, and of its first-of-node bits, counted from the block's first byte.
const CHILD_BITS: u32 = 32;
const FIRST_BITS: u32 = CHILD_BITS + BLOCK_LABELS;
/// Bits that a word read at any bit surely has.
const WINDOW_BITS: u32 = 57;
/// Blocks that the 256 labels of a node can reach into.
const NODE_BLOCKS: u32 = 4;
/// Words of first-of-node bits that the nodes between two hints can reach into.
const HINT_WINDOWS: u32 = 2 * ((256 << HINT_SHIFT_MAX) / BLOCK_LABELS + 2);

impl Trie<'_> {
    #[inline(always)]
    pub(super) const fn block_offset(&self, block: u32) -> usize {
        self.layout.sparse + block as usize * BLOCK_BYTES
    }

    /// A bit of the header of a position's block.
    #[inline(always)]
    fn header_bit(&self, position: u32, part: u32) -> bool {
        let bit = part + position % BLOCK_LABELS;
        let [byte] = chunk(self.bytes, self.block_offset(position / BLOCK_LABELS) + (bit / 8) as usize);
        byte >> (bit % 8) & 1 == 1
    }

    /// Which labels from one of a block on begin a node, and for how many of them this tells: at most 57, none at the end of
    /// the block.
    #[inline(always)]
    fn first_bits(&self, block: u32, index: u32) -> (u64, u32) {
        let bit = FIRST_BITS + index;
        let word = u64::from_le_bytes(chunk(self.bytes, self.block_offset(block) + (bit / 8) as usize));
        let count = (BLOCK_LABELS - index).min(WINDOW_BITS);
        (word >> (bit % 8) & ((1 << count) - 1), count)
    }

    #[inline(always)]
    pub(super) fn label_at(&self, position: u32) -> u8 {
        let offset = self.block_offset(position / BLOCK_LABELS) + BLOCK_HEADER_BYTES;
        let [label] = chunk(self.bytes, offset + (position % BLOCK_LABELS) as usize);
        label
    }

    #[inline(always)]
    pub(super) fn is_first_label(&self, position: u32) -> bool {
        self.header_bit(position, FIRST_BITS)
    }

    #[inline(always)]
    pub(super) fn sparse_edge(&self, node: u32, position: u32, label: u8) -> Edge {
        Edge { node, at: position, label, has_child: self.header_bit(position, CHILD_BITS) }
    }

    /// Labels with a child before a position, dense ones apart.
    #[inline(always)]
    pub(super) fn sparse_children_before(&self, position: u32) -> u32 {
        if position >= self.layout.counts.sparse_label_count {
            let all = self.layout.counts.node_count.saturating_sub(1);
            return all.saturating_sub(self.layout.counts.dense_child_count);
        }
        let block = position / BLOCK_LABELS;
        let index = position % BLOCK_LABELS;
        let header: [u8; 20] = chunk(self.bytes, self.block_offset(block));
        let [rank, low, middle, high, rest] = words(&header);
        let (low, high) = (u64::from(middle) << 32 | u64::from(low), u64::from(rest) << 32 | u64::from(high));
        let (low_mask, high_mask) =
            if index < 64 { ((1 << index) - 1, 0) } else { (u64::MAX, (1 << (index - 64)) - 1) };
        rank.wrapping_add((low & low_mask).count_ones() + (high & high_mask).count_ones())
    }

    /// The first label from `start` on, within its node, that is at least `byte`: position and label. Without such a label
    /// the position is that behind the node.
    #[inline(always)]
    pub(super) fn search(&self, start: u32, byte: u8) -> (u32, Option<u8>) {
        let label_count = self.layout.counts.sparse_label_count;
        let mut position = start;
        for _ in 0..NODE_BLOCKS {
            let block = position / BLOCK_LABELS;
            let index = position % BLOCK_LABELS;
            let (in_block, is_end) = self.labels_left(block, index);
            let length = in_block.min(label_count.saturating_sub(position));
            let labels = self.block_offset(block) + BLOCK_HEADER_BYTES + index as usize;
            let mut offset = 0;
            while offset < length {
                let place = labels + offset as usize;
                let low = not_smaller_mask(&chunk(self.bytes, place), byte);
                let high = not_smaller_mask(&chunk(self.bytes, place + 16), byte);
                let valid = u32::MAX >> (32 - (length - offset).min(32));
                let found = (low | high << 16) & valid;
                if found != 0 {
                    let index = found.trailing_zeros();
                    let [label] = chunk(self.bytes, place + index as usize);
                    return (position + offset + index, Some(label));
                }
                offset += 32;
            }
            position += length;
            if is_end || position >= label_count || self.is_first_label(position) {
                break;
            }
        }
        (position, None)
    }

    /// How many labels of a node lie in a block from one of them on, and whether they end before the block does.
    #[inline(always)]
    fn labels_left(&self, block: u32, index: u32) -> (u32, bool) {
        let mut after = index + 1;
        while after < BLOCK_LABELS {
            let (bits, count) = self.first_bits(block, after);
            if bits != 0 {
                return (after - index + bits.trailing_zeros(), true);
            }
            after += count;
        }
        (BLOCK_LABELS - index, false)
    }

    /// Position of the first label of a sparse node, counted from the first of them.
    #[inline(always)]
    pub(super) fn sparse_start(&self, relative: u32) -> u32 {
        let base = self.layout.hint_bases + (relative / HINT_GROUP) as usize * 4;
        let hint = self.layout.hints + (relative >> self.layout.hint_shift) as usize * 2;
        let base = u32::from_le_bytes(chunk(self.bytes, base));
        let hint = u32::from(u16::from_le_bytes(chunk(self.bytes, hint)));
        let position = base.wrapping_add(hint).min(self.layout.counts.sparse_label_count);
        let skipped = relative & ((1 << self.layout.hint_shift) - 1);
        if skipped == 0 { position } else { self.skip_nodes(position, skipped) }
    }

    /// The position where the `count`-th node after that of a position begins.
    #[inline(always)]
    fn skip_nodes(&self, position: u32, count: u32) -> u32 {
        let mut block = position / BLOCK_LABELS;
        let mut index = position % BLOCK_LABELS + 1;
        let mut rest = count;
        for _ in 0..HINT_WINDOWS {
            let (bits, bit_count) = self.first_bits(block, index);
            let ones = bits.count_ones();
            if rest <= ones {
                return block * BLOCK_LABELS + index + select(bits, rest - 1, self.layout.hint_shift);
            }
            rest -= ones;
            index += bit_count;
            if index >= BLOCK_LABELS {
                (block, index) = (block + 1, 0);
            }
        }
        self.layout.counts.sparse_label_count
    }
}

/// Position of the set bit that `rank` set bits precede; there is one, and `rank` is below 2^`shift`. Without a branch on the
/// rank, which nothing predicts.
#[inline(always)]
fn select(bits: u64, rank: u32, shift: u32) -> u32 {
    let (mut word, mut rest, mut offset) = (bits, rank, 0);
    if shift > 3 {
        for half in [32, 16, 8] {
            let ones = (word & ((1 << half) - 1)).count_ones();
            let is_above = rest >= ones;
            word >>= if is_above { half } else { 0 };
            offset += if is_above { half } else { 0 };
            rest -= if is_above { ones } else { 0 };
        }
    }
    for step in 0..7 {
        word = if step < rest { word & word.wrapping_sub(1) } else { word };
    }
    offset + word.trailing_zeros()
}

/// The u32 words of bytes.
#[inline(always)]
fn words<const N: usize>(bytes: &[u8; 20]) -> [u32; N] {
    let (words, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|index| words.get(index).map_or(0, |word| u32::from_le_bytes(*word)))
}
