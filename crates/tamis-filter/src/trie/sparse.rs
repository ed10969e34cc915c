//! Sparse nodes: blocks of 49 labels in one cache line, with their bits and the position of their children.
//!
//! ```text
//! block   49 first-of-node bits, 15 bits: block of children | 49 has-child bits, 7 bits: skip | 49 label bytes    64 bytes
//! ```
//!
//! A step from label to child: count the labels with a child before it in its block, add the skip, and take the node with
//! this index in the block of children. The labels of a node and the labels that equal a byte are masks of 49 bits, so a
//! search is an `and` without a loop. The block of children is that of the middle child; if a node begins in another block,
//! before or after it, blocks are passed one by one.

use tamis_bits::kernel::{self, Steps, Task};

use super::layout::{
    BASE_BLOCKS, BLOCK_HEADER_BYTES, BLOCK_LABELS, Block, FINE_BLOCKS, HINT_GROUP, RANK_BLOCKS, chunk, item,
};
use super::node::{Divergence, Edge, Leaf, Lookahead, Node, Split, WalkResult};
use super::reader::Trie;

/// One bit for each label of a block.
const LABEL_MASK: u64 = (1 << BLOCK_LABELS) - 1;
/// Added to a skip so that the stored number is not negative.
const SKIP_BIAS: u32 = 64;
/// Blocks after the first that a node of 256 labels can reach.
const NODE_BLOCKS: u32 = 256 / BLOCK_LABELS + 1;
/// Blocks that the children of a block, or the nodes between two hints, can span.
const FAR_BLOCKS: u32 = 64 * 256 / BLOCK_LABELS + 2;

/// First-of-node bits, and above them the distance of the block of children from the base.
#[inline(always)]
fn first_word(block: &Block) -> u64 {
    u64::from_le_bytes(chunk(block, 0))
}

/// The 15 bits of a block that number the block of its children.
#[inline(always)]
fn child_number(block: &Block) -> u32 {
    (first_word(block) >> BLOCK_LABELS) as u32
}

#[inline(always)]
fn firsts(block: &Block) -> u64 {
    first_word(block) & LABEL_MASK
}

/// Has-child bits, and above them the skip.
#[inline(always)]
fn child_word(block: &Block) -> u64 {
    u64::from_le_bytes(chunk(block, 7)) >> 8
}

#[inline(always)]
fn label_at(block: &Block, index: u32) -> u8 {
    block.get(BLOCK_HEADER_BYTES + index as usize).copied().unwrap_or(0)
}

/// The labels that continue a node of the previous block; none if a node begins with the block.
#[inline(always)]
fn continued(block: &Block) -> u64 {
    let firsts = firsts(block);
    (firsts & firsts.wrapping_neg()).wrapping_sub(1) & LABEL_MASK
}

/// Whether labels reach the end of their block, so that the node may continue.
#[inline(always)]
const fn reaches_end(range: u64) -> bool {
    range >> (BLOCK_LABELS - 1) != 0
}

/// The index of a child among the nodes that begin in the block of children; negative (as a large number) if it is in an earlier block.
#[inline(always)]
const fn child_index(children: u64, before: u32) -> u32 {
    before.wrapping_add((children >> BLOCK_LABELS) as u32).wrapping_sub(SKIP_BIAS)
}

/// The position of a label.
#[inline(always)]
const fn place(block: u32, bit: u64) -> u32 {
    block << 6 | bit.trailing_zeros()
}

/// The number of nodes that begin in a block.
#[inline(always)]
fn nodes_in(block: &Block) -> i32 {
    (first_word(block) << (64 - BLOCK_LABELS)).count_ones().cast_signed()
}

/// All bits if the condition holds, else none.
#[inline(always)]
const fn mask_if(condition: bool) -> u64 {
    0_u64.wrapping_sub(condition as u64)
}

/// A label in a block; no bit if there is none.
#[derive(Debug, Clone, Copy)]
struct Found {
    block: u32,
    bit: u64,
}

/// A block, and the labels of a node in it.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    number: u32,
    block: &'a Block,
    range: u64,
}

struct FindFar<'a> {
    blocks: &'a [Block],
    block: u32,
    byte: u8,
}

impl Task for FindFar<'_> {
    type Output = Found;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> Found {
        let mut number = self.block;
        for _ in 0..=NODE_BLOCKS {
            number += 1;
            let Some(line) = self.blocks.get(number as usize) else { break };
            let range = continued(line);
            let bit = steps.equal_mask(line, self.byte) >> BLOCK_HEADER_BYTES & range;
            if bit != 0 {
                return Found { block: number, bit };
            }
            if !reaches_end(range) {
                break;
            }
        }
        Found { block: self.block, bit: 0 }
    }
}

/// A label of a node in the blocks after its first one. Rarely needed: a separate function that takes only the blocks,
/// so that the common path does not keep the trie in memory. It is still compiled for the instruction set.
#[inline(never)]
fn find_far(blocks: &[Block], block: u32, byte: u8) -> Found {
    kernel::run(FindFar { blocks, block, byte })
}

struct LocateFar<'a> {
    blocks: &'a [Block],
    block: u32,
    index: u32,
}

impl Task for LocateFar<'_> {
    type Output = (u32, u64);

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> (u32, u64) {
        locate(self.blocks, steps, self.block, self.index)
    }
}

/// [`locate`] as a separate function, like [`find_far`].
#[inline(never)]
fn locate_far(blocks: &[Block], block: u32, index: u32) -> (u32, u64) {
    kernel::run(LocateFar { blocks, block, index })
}

/// Block and labels of the node with an index among those that begin in a block. An index below 0 (as a large number)
/// or beyond them continues in the blocks before or after.
#[inline(always)]
fn locate(blocks: &[Block], steps: impl Steps, block: u32, index: u32) -> (u32, u64) {
    let part = match part_in(blocks, steps, block, index) {
        Some(part) => Some(part),
        None => locate_nearby(blocks, steps, block, index),
    };
    match part {
        Some(part) => (part.number, part.range & LABEL_MASK),
        None => (blocks.len() as u32, 0),
    }
}

/// [`locate`] in the named block. The mask may have bits beyond those of the block.
#[inline(always)]
fn part_in(blocks: &[Block], steps: impl Steps, number: u32, index: u32) -> Option<Part<'_>> {
    let block = blocks.get(number as usize)?;
    let own = firsts(block);
    if index >= own.count_ones() {
        return None;
    }
    Some(Part { number, block, range: steps.nth_run(own, index) })
}

/// [`locate`] in blocks before or after the named one.
#[inline(always)]
fn locate_nearby(blocks: &[Block], steps: impl Steps, mut number: u32, index: u32) -> Option<Part<'_>> {
    let count = firsts(blocks.get(number as usize)?).count_ones();
    // No branch on the direction, which would be mispredicted: all bits of this are set if the node is before the
    // block.
    let before = (index.cast_signed() >> 31).cast_unsigned();
    let mut rest = index.wrapping_sub(count & !before);
    for _ in 0..FAR_BLOCKS {
        number = number.wrapping_add(before | 1);
        let block = blocks.get(number as usize)?;
        let own = firsts(block);
        let count = own.count_ones();
        let rank = rest.wrapping_add(count & before);
        if rank < count {
            return Some(Part { number, block, range: steps.nth_run(own, rank) });
        }
        rest = rank.wrapping_sub(count & !before);
    }
    None
}

/// Labels with a child before a block, for counts: reads the blocks of its group one by one. Separate like
/// [`find_far`].
#[inline(never)]
fn coarse_rank(blocks: &[Block], bytes: &[u8], ranks: usize, number: u32) -> u32 {
    let group = number / RANK_BLOCKS;
    let rank = u32::from_le_bytes(item(bytes, ranks, group));
    let before = blocks.get((group * RANK_BLOCKS) as usize..number as usize).unwrap_or_default();
    before.iter().fold(rank, |sum, block| sum.wrapping_add((child_word(block) & LABEL_MASK).count_ones()))
}

impl<'a, S: Steps> Trie<'a, S> {
    #[inline(always)]
    fn block(&self, block: u32) -> Option<&'a Block> {
        self.blocks.get(block as usize)
    }

    /// The labels of a block that equal a byte.
    #[inline(always)]
    fn equal(&self, block: &Block, byte: u8) -> u64 {
        self.steps.equal_mask(block, byte) >> BLOCK_HEADER_BYTES
    }

    /// The labels of a block that are at least a byte.
    #[inline(always)]
    fn not_smaller(&self, block: &Block, byte: u8) -> u64 {
        self.steps.not_smaller_mask(block, byte) >> BLOCK_HEADER_BYTES
    }

    #[inline(always)]
    fn sparse_edge(&self, node: Node, number: u32, block: &Block, bit: u64, label: u8) -> Edge {
        let at = place(number, bit);
        Edge { node, at, label, has_child: child_word(block) & bit & LABEL_MASK != 0 }
    }

    /// Calls `look` with each block of a node and its labels there, until it returns a result.
    #[inline(always)]
    fn search<T>(&self, node: Node, mut look: impl FnMut(&Part<'a>) -> Option<T>) -> Option<T> {
        let mut part = Part { number: node.block, block: self.block(node.block)?, range: node.range };
        for _ in 0..=NODE_BLOCKS {
            if let Some(found) = look(&part) {
                return Some(found);
            }
            part = self.next_part(&part)?;
        }
        None
    }

    /// The next block, if the node continues there.
    #[inline(always)]
    fn next_part(&self, part: &Part<'_>) -> Option<Part<'a>> {
        if !reaches_end(part.range) {
            return None;
        }
        let block = self.block(part.number + 1)?;
        Some(Part { number: part.number + 1, block, range: continued(block) })
    }

    #[inline(always)]
    pub(super) fn sparse_at_or_after(&self, node: Node, byte: u8) -> Option<Edge> {
        self.search(node, |part| {
            let found = self.not_smaller(part.block, byte) & part.range;
            (found != 0).then(|| {
                let label = label_at(part.block, found.trailing_zeros());
                self.sparse_edge(node, part.number, part.block, found & found.wrapping_neg(), label)
            })
        })
    }

    #[inline(always)]
    pub(super) fn sparse_at_or_before(&self, node: Node, byte: u8) -> Option<Edge> {
        let mut last = None;
        let _: Option<()> = self.search(node, |part| {
            let greater = byte.checked_add(1).map_or(0, |bound| self.not_smaller(part.block, bound));
            let found = part.range & !greater;
            if found != 0 {
                let index = found.ilog2();
                let label = label_at(part.block, index);
                last = Some(self.sparse_edge(node, part.number, part.block, 1 << index, label));
            }
            (found != part.range).then_some(())
        });
        last
    }

    /// The labels of a node on both sides of a byte, and at it.
    #[inline(always)]
    pub(super) fn sparse_split(&self, node: Node, byte: u8) -> Split {
        let mut split = Split::default();
        let _: Option<()> = self.search(node, |part| {
            let equal = self.equal(part.block, byte) & part.range;
            let not_smaller = self.not_smaller(part.block, byte) & part.range;
            split.has_smaller |= part.range != not_smaller;
            split.has_greater |= not_smaller != equal;
            if equal != 0 {
                split.edge = Some(self.sparse_edge(node, part.number, part.block, equal, byte));
            }
            split.has_greater.then_some(())
        });
        split
    }

    /// The labels of a node at two bytes, and whether any label is between them.
    #[inline(always)]
    pub(super) fn sparse_divergence(&self, node: Node, low: u8, high: u8) -> Divergence {
        let mut divergence = Divergence::default();
        let _: Option<()> = self.search(node, |part| {
            let from_low = self.not_smaller(part.block, low) & part.range;
            let from_high = self.not_smaller(part.block, high) & part.range;
            let at_low = self.equal(part.block, low) & from_low;
            divergence.has_between = from_low & !at_low & !from_high != 0;
            if divergence.has_between {
                return Some(());
            }
            if at_low != 0 {
                divergence.low = Some(self.sparse_edge(node, part.number, part.block, at_low, low));
            }
            if from_high != 0 {
                let at_high = self.equal(part.block, high) & from_high;
                if at_high != 0 {
                    divergence.high = Some(self.sparse_edge(node, part.number, part.block, at_high, high));
                }
                return Some(());
            }
            None
        });
        divergence
    }

    #[inline(always)]
    pub(super) fn sparse_next(&self, edge: &Edge) -> Option<Edge> {
        let (mut number, mut index) = (edge.at >> 6, (edge.at & 63) + 1);
        if index >= BLOCK_LABELS {
            (number, index) = (number + 1, 0);
        }
        let block = self.block(number)?;
        let is_inside = firsts(block) >> index & 1 == 0;
        is_inside.then(|| self.sparse_edge(edge.node, number, block, 1 << index, label_at(block, index)))
    }

    #[inline(always)]
    pub(super) fn sparse_previous(&self, edge: &Edge) -> Option<Edge> {
        let (mut number, mut index) = (edge.at >> 6, edge.at & 63);
        if firsts(self.block(number)?) >> index & 1 == 1 {
            return None;
        }
        if index == 0 {
            (number, index) = (number.checked_sub(1)?, BLOCK_LABELS);
        }
        let block = self.block(number)?;
        let index = index - 1;
        Some(self.sparse_edge(edge.node, number, block, 1 << index, label_at(block, index)))
    }

    /// Follows a key from the first sparse node on; `depth` bytes lead to it.
    #[inline(always)]
    pub(super) fn walk_sparse(&self, lookahead: &Lookahead, key: &[u8], depth: usize) -> WalkResult {
        let Some(byte) = key.get(depth) else { return WalkResult::Node(self.located(lookahead)) };
        if !self.layout.is_wide {
            return match self.locate_with_children(lookahead.block, lookahead.index) {
                Some(at) => self.walk_narrow(lookahead.place, at, key, depth),
                None => WalkResult::Absent,
            };
        }
        // The first node has many labels, those below it have few.
        let found = self.find_wide(&self.located(lookahead), *byte);
        let Some(line) = self.block(found.block).filter(|_| found.bit != 0) else {
            return WalkResult::Absent;
        };
        let (above, children) = (place(found.block, found.bit), child_word(line));
        if found.bit & children == 0 {
            return WalkResult::Leaf(Leaf::sparse(above), depth + 1);
        }
        let named = self.child_block(found.block, child_number(line));
        let index = child_index(children, (children & found.bit.wrapping_sub(1)).count_ones());
        // The children of one block span five blocks.
        let (number, range) = self.locate_wide::<5>(named, 2, index);
        let Some(block) = self.block(number) else { return WalkResult::Absent };
        self.walk_narrow(above, (Part { number, block, range }, child_number(block)), key, depth + 1)
    }

    /// Follows a key through nodes with few labels. Long keys spend most of their time here: the loop keeps only what a
    /// step needs of a node and looks up nothing twice. `above` is the position of the label of the first node.
    #[inline(always)]
    fn walk_narrow(
        &self,
        above: u32,
        (mut at, mut to_children): (Part<'a>, u32),
        key: &[u8],
        depth: usize,
    ) -> WalkResult {
        let (mut above, mut above_bit) = (above >> 6, 1 << (above & 63));
        let mut rest = key.get(depth..).unwrap_or_default().iter();
        loop {
            let Some(byte) = rest.next() else {
                let (number, range) = (Node::UNKNOWN, at.range & LABEL_MASK);
                return WalkResult::Node(Node {
                    number,
                    place: place(above, above_bit),
                    block: at.number,
                    range,
                });
            };
            let mut bit = self.equal(at.block, *byte) & at.range;
            if bit == 0 {
                let Some(after) = self.next_part(&at) else { return WalkResult::Absent };
                at = after;
                bit = self.equal(at.block, *byte) & at.range;
                if bit == 0 {
                    // Few nodes reach a third block.
                    let found = find_far(self.blocks, at.number, *byte);
                    let Some(line) = self.block(found.block) else { return WalkResult::Absent };
                    if found.bit == 0 || !reaches_end(at.range) {
                        return WalkResult::Absent;
                    }
                    (at, bit) = (Part { number: found.block, block: line, range: 0 }, found.bit);
                }
                to_children = child_number(at.block);
            }
            let children = child_word(at.block);
            if bit & children == 0 {
                return WalkResult::Leaf(Leaf::sparse(place(at.number, bit)), key.len() - rest.len());
            }
            (above, above_bit) = (at.number, bit);
            let index = child_index(children, (children & bit.wrapping_sub(1)).count_ones());
            let named = self.child_block(at.number, to_children);
            let Some(child) = self.locate_with_children(named, index) else { return WalkResult::Absent };
            (at, to_children) = child;
        }
    }

    /// The node with an index among those that begin in a block, and the number that its block stores for the block of
    /// its children. Most nodes begin in the named block.
    #[inline(always)]
    fn locate_with_children(&self, block: u32, index: u32) -> Option<(Part<'a>, u32)> {
        let part = match part_in(self.blocks, self.steps, block, index) {
            Some(part) => part,
            None => locate_nearby(self.blocks, self.steps, block, index)?,
        };
        Some((part, child_number(part.block)))
    }

    /// A label of a node with many labels. Whether they continue in the next block is unpredictable: both blocks are
    /// compared, and no branch depends on which one has the label.
    #[inline(always)]
    fn find_wide(&self, node: &Node, byte: u8) -> Found {
        match self.blocks.get(node.block as usize..).unwrap_or_default() {
            [own, next, ..] => {
                let range = continued(next) & mask_if(reaches_end(node.range));
                let (near, far) = (self.equal(own, byte) & node.range, self.equal(next, byte) & range);
                let bit = near | far;
                if bit != 0 || !reaches_end(range) {
                    return Found { block: node.block + u32::from(near == 0), bit };
                }
                find_far(self.blocks, node.block, byte)
            }
            [last] => Found { block: node.block, bit: self.equal(last, byte) & node.range },
            [] => Found { block: node.block, bit: 0 },
        }
    }

    /// The child of a label that has one; for any other position, the child of the next label with a child.
    #[inline(always)]
    pub(super) fn sparse_child(&self, at: u32) -> Node {
        let Lookahead { number, place, block, index } = self.sparse_lookahead(at);
        let (block, range) = self.locate(block, index);
        Node { number, place, block, range }
    }

    #[inline(always)]
    pub(super) fn sparse_lookahead(&self, at: u32) -> Lookahead {
        let (block, index) = match self.block(at >> 6) {
            Some(block) => {
                let children = child_word(block);
                let before = (children & ((1 << (at & 63)) - 1) & LABEL_MASK).count_ones();
                (self.child_block(at >> 6, child_number(block)), child_index(children, before))
            }
            None => (self.blocks.len() as u32, 0),
        };
        Lookahead { number: Node::UNKNOWN, place: at, block, index }
    }

    /// The block of children of a block, from its stored number ([`child_number`]).
    #[inline(always)]
    fn child_block(&self, block: u32, number: u32) -> u32 {
        if !self.layout.has_block_bases {
            return number;
        }
        let base = item(self.bytes, self.layout.block_bases, block / BASE_BLOCKS);
        u32::from_le_bytes(base).wrapping_add(number)
    }

    /// A node with a hint.
    #[inline(always)]
    pub(super) fn hinted_lookahead(&self, number: u32, relative: u32) -> Lookahead {
        let base = u32::from_le_bytes(item(self.bytes, self.layout.hint_bases, relative / HINT_GROUP));
        let hint =
            u16::from_le_bytes(item(self.bytes, self.layout.hints, relative >> self.layout.hint_shift));
        let hint = u32::from(hint);
        let skipped = relative & ((1 << self.layout.hint_shift) - 1);
        Lookahead { number, place: 0, block: base.wrapping_add(hint >> 6), index: (hint & 63) + skipped }
    }

    /// Locates the child of a dense node, or a sparse root.
    #[inline(always)]
    pub(super) fn located(&self, lookahead: &Lookahead) -> Node {
        let Lookahead { number, place, block, index } = *lookahead;
        // A hint is that of the node itself, or of one of the nodes before it, which have many labels.
        let (block, range) = match self.layout.hint_shift {
            0 => self.locate(block, index),
            _ => self.locate_wide::<4>(block, 0, index),
        };
        Node { number, place, block, range }
    }

    /// [`locate`] among the blocks of the trie.
    #[inline(always)]
    fn locate(&self, block: u32, index: u32) -> (u32, u64) {
        locate(self.blocks, self.steps, block, index)
    }

    /// [`Trie::locate`] for a node near many nodes with many labels: searches some blocks, the first of them `before`
    /// blocks before the named one, without a branch on the block, which would be mispredicted.
    #[inline(always)]
    fn locate_wide<const COUNT: usize>(&self, block: u32, before: u32, index: u32) -> (u32, u64) {
        let first = block.wrapping_sub(before);
        let lines = self.blocks.get(first as usize..).and_then(|blocks| blocks.first_chunk::<COUNT>());
        if let Some(lines) = lines {
            let counts = lines.each_ref().map(nodes_in);
            // Relative to the first of the blocks.
            let index = index.cast_signed() + counts.iter().take(before as usize).sum::<i32>();
            let (mut passed, mut start, mut end) = (0, 0, 0);
            for count in counts {
                end += count;
                let is_passed = index >= end;
                passed += u32::from(is_passed);
                start = if is_passed { end } else { start };
            }
            if index >= 0 && index < end {
                // Loading the block again waits no longer than its labels do.
                let firsts = lines.get(passed as usize).map_or(0, firsts);
                return (first.wrapping_add(passed), self.labels_of(firsts, (index - start) as u32));
            }
        }
        locate_far(self.blocks, block, index)
    }

    /// The labels of a node of a block, by its index there.
    #[inline(always)]
    fn labels_of(&self, firsts: u64, index: u32) -> u64 {
        self.steps.nth_run(firsts, index) & LABEL_MASK
    }

    /// Labels with a child before a position, without dense ones.
    #[inline(always)]
    pub(super) fn sparse_children_before(&self, at: u32) -> u32 {
        let number = at >> 6;
        let Some(block) = self.block(number) else {
            let all = self.layout.counts.node_count.saturating_sub(1);
            return all.saturating_sub(self.layout.counts.dense_child_count);
        };
        let inside = (child_word(block) & ((1 << (at & 63)) - 1) & LABEL_MASK).count_ones();
        let before = if self.layout.has_fine_ranks {
            number.wrapping_mul(BLOCK_LABELS).wrapping_sub(self.fine_rank(number))
        } else {
            coarse_rank(self.blocks, self.bytes, self.layout.block_ranks, number)
        };
        before.wrapping_add(inside)
    }

    /// Labels without a child before a position, without dense ones; after the last label it may exceed their number.
    #[inline(always)]
    pub(super) fn sparse_leaves_before(&self, at: u32) -> u32 {
        let (number, index) = (at >> 6, at & 63);
        let Some(block) = self.block(number).filter(|_| self.layout.has_fine_ranks) else {
            return self.sparse_labels_before(at).saturating_sub(self.sparse_children_before(at));
        };
        let inside = (!child_word(block) & ((1 << index) - 1)).count_ones();
        self.fine_rank(number).wrapping_add(inside)
    }

    /// Labels without a child before a block. Requires fine ranks.
    #[inline(always)]
    fn fine_rank(&self, number: u32) -> u32 {
        let group = u32::from_le_bytes(item(self.bytes, self.layout.block_ranks, number / FINE_BLOCKS));
        let own = u16::from_le_bytes(item(self.bytes, self.layout.fine_ranks, number));
        group.wrapping_add(u32::from(own))
    }

    /// Labels before a position, without dense ones.
    #[inline(always)]
    pub(super) fn sparse_labels_before(&self, at: u32) -> u32 {
        let labels = (at >> 6).saturating_mul(BLOCK_LABELS).saturating_add(at & 63);
        labels.min(self.layout.counts.sparse_label_count)
    }
}
