//! Sparse nodes: blocks of 99 labels with their bits and rank in two neighbouring cache lines, and hints to nodes.
//!
//! ```text
//! block   rank u32 | 99 has-child bits, 99 first-of-node bits (25 bytes) | 99 label bytes        128 bytes
//! ```

use super::layout::{BLOCK_BYTES, BLOCK_HEADER_BYTES, BLOCK_LABELS, HINT_GROUP};
use super::reader::{Edge, Trie, chunk};

const BLOCK_MASK: u128 = (1 << BLOCK_LABELS) - 1;
/// Offset of the first-of-node bits: the byte they begin in, and the bit.
const FIRST_BYTE: usize = 4 + (BLOCK_LABELS / 8) as usize;
const FIRST_SHIFT: u32 = BLOCK_LABELS % 8;
/// Blocks that the 256 labels of a node can reach into.
const NODE_BLOCKS: u32 = 4;
/// Blocks that the nodes between two hints can reach into.
const HINT_BLOCKS: u32 = 32 * 256 / BLOCK_LABELS + 2;

impl Trie<'_> {
    #[inline(always)]
    pub(super) const fn block_offset(&self, block: u32) -> usize {
        self.layout.sparse + block as usize * BLOCK_BYTES
    }

    /// Which labels of a block begin a node.
    #[inline(always)]
    fn first_bits(&self, block: u32) -> u128 {
        let bits = u128::from_le_bytes(chunk(self.bytes, self.block_offset(block) + FIRST_BYTE));
        bits >> FIRST_SHIFT & BLOCK_MASK
    }

    /// Which labels of a block have a child.
    #[inline(always)]
    fn child_bits(&self, block: u32) -> u128 {
        u128::from_le_bytes(chunk(self.bytes, self.block_offset(block) + 4)) & BLOCK_MASK
    }

    #[inline(always)]
    pub(super) fn label_at(&self, position: u32) -> u8 {
        let offset = self.block_offset(position / BLOCK_LABELS) + BLOCK_HEADER_BYTES;
        let [label] = chunk(self.bytes, offset + (position % BLOCK_LABELS) as usize);
        label
    }

    #[inline(always)]
    pub(super) fn is_first_label(&self, position: u32) -> bool {
        self.first_bits(position / BLOCK_LABELS) >> (position % BLOCK_LABELS) & 1 == 1
    }

    #[inline(always)]
    pub(super) fn sparse_edge(&self, node: u32, position: u32, label: u8) -> Edge {
        let has_child = self.child_bits(position / BLOCK_LABELS) >> (position % BLOCK_LABELS) & 1 == 1;
        Edge { node, at: position, label, has_child }
    }

    /// Labels with a child before a position, dense ones apart.
    #[inline(always)]
    pub(super) fn sparse_children_before(&self, position: u32) -> u32 {
        if position >= self.layout.counts.sparse_label_count {
            let all = self.layout.counts.node_count.saturating_sub(1);
            return all.saturating_sub(self.layout.counts.dense_child_count);
        }
        let block = position / BLOCK_LABELS;
        let rank = u32::from_le_bytes(chunk(self.bytes, self.block_offset(block)));
        let below = self.child_bits(block) & ((1 << (position % BLOCK_LABELS)) - 1);
        rank.wrapping_add(below.count_ones())
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
            // The bit after that of the first label here: where another node begins.
            let rest = self.first_bits(block) >> index >> 1;
            let in_block = if rest == 0 { BLOCK_LABELS - index } else { rest.trailing_zeros() + 1 };
            let length = in_block.min(label_count.saturating_sub(position));
            let labels = self.block_offset(block) + BLOCK_HEADER_BYTES + index as usize;
            let mut offset = 0;
            while offset < length {
                let chunk: [u8; 16] = chunk(self.bytes, labels + offset as usize);
                let valid = (1_u32 << (length - offset).min(16)) - 1;
                let found = tamis_bits::kernel::not_smaller_mask(&chunk, byte) & valid;
                if found != 0 {
                    let index = found.trailing_zeros();
                    let label = chunk.get(index as usize).copied();
                    return (position + offset + index, label);
                }
                offset += 16;
            }
            position += length;
            if rest != 0 || position >= label_count || self.first_bits(block + 1) & 1 == 1 {
                break;
            }
        }
        (position, None)
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
        let index = position % BLOCK_LABELS;
        let mut from = position + 1;
        let mut bits = self.first_bits(block) >> index >> 1;
        let mut rest = count;
        for _ in 0..HINT_BLOCKS {
            let ones = bits.count_ones();
            if rest <= ones {
                return from + select(bits, rest - 1);
            }
            rest -= ones;
            block += 1;
            from = block * BLOCK_LABELS;
            bits = self.first_bits(block);
        }
        self.layout.counts.sparse_label_count
    }
}

/// Position of the set bit that `rank` set bits precede; there is one.
#[inline(always)]
fn select(bits: u128, rank: u32) -> u32 {
    let low = bits as u64;
    let low_ones = low.count_ones();
    let (mut word, mut rest, offset) =
        if rank < low_ones { (low, rank, 0) } else { ((bits >> 64) as u64, rank - low_ones, 64) };
    while rest > 0 {
        word &= word.wrapping_sub(1);
        rest -= 1;
    }
    offset + word.trailing_zeros()
}
