//! Sparse nodes: blocks of 49 labels in one cache line, with their bits and where their children lie.
//!
//! ```text
//! block   49 first-of-node bits, 15 bits: block of children | 49 has-child bits, 7 bits: skip | 49 label bytes    64 bytes
//! ```
//!
//! A step from label to child: count the labels with a child before it in its block, add the skip, and take the node of that
//! number in the block of children. Both bounds of a node's labels and the labels that equal a byte are masks of 49 bits, so
//! that a search is an `and` and nothing has to be looped over. Where the node of that number lies in another block (before or
//! behind: the block of the child in the middle is named), blocks are passed one by one.

use tamis_bits::kernel::Steps;

use super::layout::{BASE_BLOCKS, BLOCK_BYTES, BLOCK_HEADER_BYTES, BLOCK_LABELS, HINT_GROUP, RANK_BLOCKS};
use super::reader::{Ahead, Edge, Node, Split, Trie, Walked, chunk};

/// A bit for each label of a block.
const LABEL_MASK: u64 = (1 << BLOCK_LABELS) - 1;
/// What is added to a skip, so that none is negative.
const SKIP_BIAS: u32 = 64;
/// Blocks that the 256 labels of a node can reach into beyond the first.
const NODE_BLOCKS: u32 = 256 / BLOCK_LABELS + 1;
/// Blocks that the children of a block, or the nodes between two hints, can reach into.
const FAR_BLOCKS: u32 = 64 * 256 / BLOCK_LABELS + 2;

/// Half of the blocks that share a rank.
const HALF: u32 = RANK_BLOCKS / 2;

pub(super) type Block = [u8; BLOCK_BYTES];

/// First-of-node bits, and above them how far the block of children lies behind the base.
#[inline(always)]
fn first_word(block: &Block) -> u64 {
    u64::from_le_bytes(chunk(block, 0))
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

/// The labels that continue a node of the block before; none where a node begins with the block.
#[inline(always)]
fn continued(block: &Block) -> u64 {
    let firsts = firsts(block);
    (firsts & firsts.wrapping_neg()).wrapping_sub(1) & LABEL_MASK
}

/// Whether labels reach to the end of their block, so that the node may continue.
#[inline(always)]
const fn reaches_end(range: u64) -> bool {
    range >> (BLOCK_LABELS - 1) != 0
}

/// The number of a child among the nodes that begin in the block of children, below 0 (as a great one) in a block before.
#[inline(always)]
const fn skipped(children: u64, before: u32) -> u32 {
    before.wrapping_add((children >> BLOCK_LABELS) as u32).wrapping_sub(SKIP_BIAS)
}

/// The place of a label.
#[inline(always)]
const fn place(block: u32, bit: u64) -> u32 {
    block << 6 | bit.trailing_zeros()
}

/// All bits, or none.
#[inline(always)]
const fn all_if(condition: bool) -> u64 {
    0_u64.wrapping_sub(condition as u64)
}

/// A label and the words of its block; no bit where there is none.
#[derive(Debug, Clone, Copy)]
struct Found {
    block: u32,
    bit: u64,
    firsts: u64,
    children: u64,
}

/// Where a byte leads from a sparse node.
#[derive(Debug, Clone, Copy)]
pub(super) enum SparseStep {
    Nowhere,
    /// A leaf at this place.
    Leaf(u32),
    Child(Ahead),
}

impl<S: Steps> Trie<'_, S> {
    #[inline(always)]
    fn block(&self, block: u32) -> Option<&Block> {
        self.blocks.get(block as usize)
    }

    /// Which labels of a block are equal to a byte.
    #[inline(always)]
    fn equal(&self, block: &Block, byte: u8) -> u64 {
        self.steps.equal_mask(block, byte) >> BLOCK_HEADER_BYTES
    }

    /// Which labels of a block are at least a byte.
    #[inline(always)]
    fn not_smaller(&self, block: &Block, byte: u8) -> u64 {
        self.steps.not_smaller_mask(block, byte) >> BLOCK_HEADER_BYTES
    }

    #[inline(always)]
    fn sparse_edge(&self, node: Node, number: u32, block: &Block, bit: u64, label: u8) -> Edge {
        let at = place(number, bit);
        Edge { node, at, label, has_child: child_word(block) & bit & LABEL_MASK != 0 }
    }

    /// Calls with each block of a node and its labels there, until there is an answer.
    #[inline(always)]
    fn search<T>(&self, node: Node, mut look: impl FnMut(u32, &Block, u64) -> Option<T>) -> Option<T> {
        let (mut number, mut range) = (node.block, node.range);
        let mut block = self.block(number)?;
        for _ in 0..=NODE_BLOCKS {
            if let Some(found) = look(number, block, range) {
                return Some(found);
            }
            if !reaches_end(range) {
                return None;
            }
            number += 1;
            block = self.block(number)?;
            range = continued(block);
        }
        None
    }

    #[inline(always)]
    pub(super) fn sparse_find(&self, node: Node, byte: u8) -> Option<Edge> {
        self.search(node, |number, block, range| {
            let found = self.equal(block, byte) & range;
            (found != 0).then(|| self.sparse_edge(node, number, block, found & found.wrapping_neg(), byte))
        })
    }

    #[inline(always)]
    pub(super) fn sparse_at_or_after(&self, node: Node, byte: u8) -> Option<Edge> {
        self.search(node, |number, block, range| {
            let found = self.not_smaller(block, byte) & range;
            (found != 0).then(|| {
                let label = label_at(block, found.trailing_zeros());
                self.sparse_edge(node, number, block, found & found.wrapping_neg(), label)
            })
        })
    }

    #[inline(always)]
    pub(super) fn sparse_at_or_before(&self, node: Node, byte: u8) -> Option<Edge> {
        let mut last = None;
        let _: Option<()> = self.search(node, |number, block, range| {
            let greater = byte.checked_add(1).map_or(0, |bound| self.not_smaller(block, bound));
            let found = range & !greater;
            if found != 0 {
                let index = found.ilog2();
                last = Some(self.sparse_edge(node, number, block, 1 << index, label_at(block, index)));
            }
            (found != range).then_some(())
        });
        last
    }

    /// What a node has on both sides of a byte, and at it.
    #[inline(always)]
    pub(super) fn sparse_split(&self, node: Node, byte: u8) -> Split {
        let mut split = Split::default();
        let _: Option<()> = self.search(node, |number, block, range| {
            let equal = self.equal(block, byte) & range;
            let not_smaller = self.not_smaller(block, byte) & range;
            split.has_smaller |= range != not_smaller;
            split.has_greater |= not_smaller != equal;
            if equal != 0 {
                let bit = equal & equal.wrapping_neg();
                split.edge = Some(self.sparse_edge(node, number, block, bit, byte));
            }
            split.has_greater.then_some(())
        });
        split
    }

    /// Whether a node has a label strictly between two bytes.
    #[inline(always)]
    pub(super) fn sparse_has_between(&self, node: Node, low: u8, high: u8) -> bool {
        let found = self.search(node, |_, block, range| {
            let greater = self.not_smaller(block, low.saturating_add(1)) & range;
            let not_smaller = self.not_smaller(block, high) & range;
            (greater & !not_smaller != 0).then_some(true).or((not_smaller != 0).then_some(false))
        });
        found.unwrap_or(false)
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

    /// The place behind the last label of a node.
    pub(super) fn sparse_end(&self, node: Node) -> u32 {
        let mut end = node.block << 6;
        let _: Option<()> = self.search(node, |number, _, range| {
            end = number << 6 | (64 - range.leading_zeros());
            None
        });
        end
    }

    /// The root, where it is sparse.
    #[inline(always)]
    pub(super) fn sparse_root(&self) -> Node {
        let (block, range) = self.locate(0, 0);
        Node { number: 0, place: 0, block, range }
    }

    /// Follows a key from a sparse node on.
    #[inline(always)]
    pub(super) fn walk_sparse(&self, mut node: Node, key: &[u8], mut depth: usize) -> Walked {
        // The first node lies below dense ones, or is the root: it has many labels, those below it have few.
        let Some(byte) = key.get(depth) else { return Walked::Node(node) };
        let mut found = self.find_wide(&node, *byte);
        let mut label = *byte;
        loop {
            depth += 1;
            match self.follow(&found) {
                SparseStep::Nowhere => return Walked::Nowhere,
                SparseStep::Leaf(at) => {
                    return Walked::Leaf(Edge { node, at, label, has_child: false }, depth);
                }
                SparseStep::Child(ahead) => node = self.arrive(&ahead),
            }
            let Some(byte) = key.get(depth) else { return Walked::Node(node) };
            found = self.find_narrow(&node, *byte);
            label = *byte;
        }
    }

    /// Where a byte leads from a sparse node.
    #[inline(always)]
    pub(super) fn sparse_step(&self, node: &Node, byte: u8) -> SparseStep {
        // Nodes whose number is known lie below dense ones, which have many labels.
        let is_wide = node.number != Node::UNKNOWN;
        self.follow(&if is_wide { self.find_wide(node, byte) } else { self.find_narrow(node, byte) })
    }

    /// Where a label leads.
    #[inline(always)]
    fn follow(&self, found: &Found) -> SparseStep {
        if found.bit == 0 {
            return SparseStep::Nowhere;
        }
        let at = place(found.block, found.bit);
        if found.bit & found.children & LABEL_MASK == 0 {
            return SparseStep::Leaf(at);
        }
        let before = (found.children & found.bit.wrapping_sub(1)).count_ones();
        let index = skipped(found.children, before);
        let block = self.child_block(found.block, found.firsts);
        SparseStep::Child(Ahead { number: Node::UNKNOWN, place: at, block, index })
    }

    /// A label of a node with few labels: nearly always they lie in one block.
    #[inline(always)]
    fn find_narrow(&self, node: &Node, byte: u8) -> Found {
        if let Some(block) = self.block(node.block) {
            let bit = self.equal(block, byte) & node.range;
            if bit != 0 || !reaches_end(node.range) {
                let (firsts, children) = (first_word(block), child_word(block));
                return Found { block: node.block, bit, firsts, children };
            }
        }
        self.find_far(node, byte)
    }

    /// A label of a node with many labels: whether they reach into the next block, nobody can foresee. So both are looked at,
    /// and nothing branches on which of them has it.
    #[inline(always)]
    fn find_wide(&self, node: &Node, byte: u8) -> Found {
        let both = self.blocks.get(node.block as usize..).and_then(|blocks| blocks.first_chunk::<2>());
        if let Some([own, next]) = both {
            let range = continued(next) & all_if(reaches_end(node.range));
            let (near, far) = (self.equal(own, byte) & node.range, self.equal(next, byte) & range);
            let bit = near | far;
            if bit != 0 || !reaches_end(range) {
                let is_far = all_if(near == 0);
                let choose = |own: u64, next: u64| own & !is_far | next & is_far;
                return Found {
                    block: node.block + (is_far & 1) as u32,
                    bit,
                    firsts: choose(first_word(own), first_word(next)),
                    children: choose(child_word(own), child_word(next)),
                };
            }
        }
        self.find_far(node, byte)
    }

    /// A label of a node that may reach over several blocks.
    #[inline(never)]
    fn find_far(&self, node: &Node, byte: u8) -> Found {
        let found = self.sparse_find(*node, byte).and_then(|edge| {
            let (block, bit) = (edge.at >> 6, 1 << (edge.at & 63));
            let line = self.block(block)?;
            Some(Found { block, bit, firsts: first_word(line), children: child_word(line) })
        });
        found.unwrap_or(Found { block: node.block, bit: 0, firsts: 0, children: 0 })
    }

    /// The child behind a label that has one; for any other place that of the next label with a child.
    #[inline(always)]
    pub(super) fn sparse_child(&self, at: u32) -> Node {
        let Ahead { number, place, block, index } = self.sparse_ahead(at);
        let (block, range) = self.locate(block, index);
        Node { number, place, block, range }
    }

    #[inline(always)]
    pub(super) fn sparse_ahead(&self, at: u32) -> Ahead {
        let (block, index) = match self.block(at >> 6) {
            Some(block) => {
                let children = child_word(block);
                let before = (children & ((1 << (at & 63)) - 1) & LABEL_MASK).count_ones();
                (self.child_block(at >> 6, first_word(block)), skipped(children, before))
            }
            None => (self.blocks.len() as u32, 0),
        };
        Ahead { number: Node::UNKNOWN, place: at, block, index }
    }

    /// The block that a block names for its children.
    #[inline(always)]
    pub(super) fn child_block(&self, block: u32, first_word: u64) -> u32 {
        let base = self.layout.block_bases + (block / BASE_BLOCKS) as usize * 4;
        u32::from_le_bytes(chunk(self.bytes, base)).wrapping_add((first_word >> BLOCK_LABELS) as u32)
    }

    /// A node that has a hint.
    #[inline(always)]
    pub(super) fn hinted_ahead(&self, number: u32, relative: u32) -> Ahead {
        let base = self.layout.hint_bases + (relative / HINT_GROUP) as usize * 4;
        let hint = self.layout.hints + (relative >> self.layout.hint_shift) as usize * 2;
        let base = u32::from_le_bytes(chunk(self.bytes, base));
        let hint = u32::from(u16::from_le_bytes(chunk(self.bytes, hint)));
        let skipped = relative & ((1 << self.layout.hint_shift) - 1);
        Ahead { number, place: 0, block: base.wrapping_add(hint >> 6), index: (hint & 63) + skipped }
    }

    /// The node below the dense ones that a walk goes to: no number is below 0, but for the first child of a sparse label.
    #[inline(always)]
    pub(super) fn arrive_below(&self, ahead: &Ahead) -> Node {
        let Ahead { number, place, block, index } = *ahead;
        let (block, range) = self.locate_ahead(block, index);
        Node { number, place, block, range }
    }

    /// Block and labels of a node: the one of a number among those that begin in a block. A number below 0 (as a great one)
    /// or beyond them counts on in the blocks before or behind. Which of the three nobody can foresee: no branch asks.
    #[inline(always)]
    pub(super) fn locate(&self, block: u32, index: u32) -> (u32, u64) {
        let first = (block as usize).wrapping_sub(1);
        let lines = self.blocks.get(first..).and_then(|blocks| blocks.first_chunk::<3>());
        if let Some([before, own, behind]) = lines.map(|lines| lines.each_ref().map(firsts)) {
            let count = own.count_ones();
            let is_before = all_if(index.cast_signed() < 0);
            let is_behind = all_if(index.cast_signed() >= count.cast_signed());
            let firsts = before & is_before | behind & is_behind | own & !(is_before | is_behind);
            let rank = index
                .wrapping_add(before.count_ones() & is_before as u32)
                .wrapping_sub(count & is_behind as u32);
            if rank < firsts.count_ones() {
                let block = block.wrapping_add(is_before as u32).wrapping_sub(is_behind as u32);
                return (block, self.labels_of(firsts, rank));
            }
        }
        self.locate_far(block, index)
    }

    /// [`Trie::locate`] for numbers that are hardly ever below 0.
    #[inline(always)]
    fn locate_ahead(&self, block: u32, index: u32) -> (u32, u64) {
        let lines = self.blocks.get(block as usize..).and_then(|blocks| blocks.first_chunk::<2>());
        if let Some([own, behind]) = lines.map(|lines| lines.each_ref().map(firsts)) {
            let count = own.count_ones();
            let is_behind = all_if(index >= count);
            let firsts = behind & is_behind | own & !is_behind;
            let rank = index.wrapping_sub(count & is_behind as u32);
            if rank < firsts.count_ones() {
                return (block.wrapping_sub(is_behind as u32), self.labels_of(firsts, rank));
            }
        }
        self.locate_far(block, index)
    }

    /// The labels of a node of a block, by its number there.
    #[inline(always)]
    fn labels_of(&self, firsts: u64, index: u32) -> u64 {
        let (first, next) = (self.steps.nth_one(firsts, index), self.steps.nth_one(firsts, index + 1));
        next.wrapping_sub(first) & LABEL_MASK
    }

    #[inline(never)]
    fn locate_far(&self, mut number: u32, index: u32) -> (u32, u64) {
        let firsts_of = |number: u32| self.block(number).map(firsts);
        let mut rest = index;
        if index.cast_signed() < 0 {
            // Backwards until what is passed makes up for what is missing.
            for _ in 0..FAR_BLOCKS {
                number = number.wrapping_sub(1);
                let Some(firsts) = firsts_of(number) else { break };
                rest = rest.wrapping_add(firsts.count_ones());
                if rest.cast_signed() >= 0 {
                    return (number, self.labels_of(firsts, rest));
                }
            }
        } else {
            for _ in 0..FAR_BLOCKS {
                let Some(firsts) = firsts_of(number) else { break };
                let count = firsts.count_ones();
                if rest < count {
                    return (number, self.labels_of(firsts, rest));
                }
                (number, rest) = (number + 1, rest - count);
            }
        }
        (self.blocks.len() as u32, 0)
    }

    /// Labels with a child before a place, dense ones apart.
    #[inline(always)]
    pub(super) fn sparse_children_before(&self, at: u32) -> u32 {
        let number = at >> 6;
        let Some(block) = self.block(number) else {
            let all = self.layout.counts.node_count.saturating_sub(1);
            return all.saturating_sub(self.layout.counts.dense_child_count);
        };
        let inside = (child_word(block) & ((1 << (at & 63)) - 1) & LABEL_MASK).count_ones();
        let group = number / RANK_BLOCKS;
        // From the nearer end of the group: half of its blocks are looked at, and no branch asks which of them count.
        let is_upper = number % RANK_BLOCKS > HALF;
        let rank = self.layout.block_ranks + (group + u32::from(is_upper)) as usize * 4;
        let rank = u32::from_le_bytes(chunk(self.bytes, rank));
        let start = group * RANK_BLOCKS + if is_upper { HALF } else { 0 };
        let counts = |(index, block): (u32, &Block)| {
            let is_between = (start + index < number) != is_upper;
            (child_word(block) & LABEL_MASK & all_if(is_between)).count_ones()
        };
        let blocks = self.blocks.get(start as usize..).unwrap_or_default();
        let between: u32 = match blocks.first_chunk::<{ HALF as usize }>() {
            Some(blocks) => (0..).zip(blocks).map(counts).sum(),
            None => (0..).zip(blocks).map(counts).sum(),
        };
        let before = if is_upper { rank.wrapping_sub(between) } else { rank.wrapping_add(between) };
        before.wrapping_add(inside)
    }

    /// Labels before a place, dense ones apart.
    #[inline(always)]
    pub(super) fn sparse_labels_before(&self, at: u32) -> u32 {
        let labels = (at >> 6).saturating_mul(BLOCK_LABELS).saturating_add(at & 63);
        labels.min(self.layout.counts.sparse_label_count)
    }
}
