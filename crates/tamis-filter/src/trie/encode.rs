//! Writes the collected levels in the form that readers use in place.

use tamis_bits::{BitBuilder, elias_fano, rank};

use super::layout::{
    BASE_BLOCKS, BLOCK_BYTES, BLOCK_HEADER_BYTES, BLOCK_LABELS, CHILD_SHIFT, DENSE_GROUP, FINE_BLOCKS,
    HINT_GROUP, LEAVES_SHIFT, Layout, RANK_BLOCKS,
};
use super::levels::{FIRST, HAS_CHILD, Level, Levels, PREFIX_KEY};
use super::plan::Plan;

/// An encoded trie without its leaf array.
#[derive(Debug)]
pub(crate) struct EncodedTrie {
    /// All parts before the leaf array.
    pub(crate) bytes: Vec<u8>,
    /// The counts after the leaf array.
    pub(crate) trailer: [u8; super::TRAILER_BYTES],
    pub(crate) layout: Layout,
}

/// Encodes the levels by a plan. `None` beyond the address space.
pub(crate) fn encode(levels: &Levels, plan: &Plan) -> Option<EncodedTrie> {
    let mut counts = plan.counts;
    let capped = plan.is_capped.then(|| levels.keys_below(plan.height.saturating_sub(1)));
    counts.capped_key_count = capped.as_ref().map_or(0, |capped| capped.iter().sum());
    let layout = Layout::new(counts, plan.has_leaf_array)?;
    let chosen = levels.levels().get(..plan.height)?;
    let (dense, sparse) = chosen.split_at_checked(plan.cut)?;

    let mut bytes = Vec::with_capacity(layout.leaves + super::TRAILER_BYTES);
    let mut ranks = Ranks::default();
    for (index, level) in dense.iter().enumerate() {
        let mask = plan.child_mask(index);
        encode_dense(&mut bytes, &mut ranks, level, mask);
    }
    pad(&mut ranks.groups);
    let mut blocks = Blocks::new(plan);
    for (index, level) in sparse.iter().enumerate() {
        blocks.add_level(&mut bytes, level, plan.child_mask(index + plan.cut));
    }
    blocks.finish(&mut bytes);
    let directory = blocks.directory(bytes.get_mut(layout.sparse..).unwrap_or_default(), &layout);
    for part in [&ranks.groups, &ranks.nodes].into_iter().chain(&directory) {
        bytes.extend_from_slice(part);
    }
    pad(&mut bytes);
    encode_prefix_keys(&mut bytes, chosen, &layout);
    if let Some(capped) = capped.filter(|capped| !capped.is_empty()) {
        let ends = capped.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        elias_fano::encode(&mut bytes, capped.len() as u64, counts.capped_key_count, ends);
    }
    debug_assert_eq!(bytes.len(), layout.leaves, "the layout has the end of the parts");
    (bytes.len() == layout.leaves).then(|| EncodedTrie { bytes, trailer: counts.to_bytes(), layout })
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// The ranks of the dense nodes.
#[derive(Debug, Default)]
struct Ranks {
    groups: Vec<u8>,
    nodes: Vec<u8>,
    node_count: u32,
    child_count: u32,
    leaf_count: u32,
    /// Leaves before the group.
    group: u32,
    /// The ranks of the current node, without the counts inside of the node.
    own: u64,
}

impl Ranks {
    fn begin_node(&mut self) {
        if self.node_count.is_multiple_of(DENSE_GROUP) {
            self.group = self.leaf_count;
            self.groups.extend_from_slice(&self.group.to_le_bytes());
        }
        let leaves = u64::from(self.leaf_count - self.group);
        self.own = u64::from(self.child_count + 1) << CHILD_SHIFT | leaves << LEAVES_SHIFT;
        self.node_count += 1;
    }

    fn end_node(&mut self, [first, second, third, _]: &[u64; 4]) {
        let mut before = 0;
        for (word, shift) in [first, second, third].into_iter().zip([0, 8, 16]) {
            before += u64::from(word.count_ones());
            self.own |= before << shift;
        }
        self.nodes.extend_from_slice(&self.own.to_le_bytes());
    }
}

fn encode_dense(bytes: &mut Vec<u8>, ranks: &mut Ranks, level: &Level, child_mask: u16) {
    let mut node: Option<[[u64; 4]; 2]> = None;
    let write = |bytes: &mut Vec<u8>, ranks: &mut Ranks, node: Option<[[u64; 4]; 2]>| {
        bytes.extend(node.iter().flatten().flatten().flat_map(|word| word.to_le_bytes()));
        if let Some([_, children]) = &node {
            ranks.end_node(children);
        }
    };
    for label in &level.labels {
        if label & FIRST != 0 {
            write(bytes, ranks, node.replace([[0; 4]; 2]));
            ranks.begin_node();
        }
        let has_child = label & child_mask != 0;
        let byte = *label as u8;
        if let Some([labels, children]) = &mut node
            && let (Some(labels), Some(children)) =
                (labels.get_mut(usize::from(byte / 64)), children.get_mut(usize::from(byte / 64)))
        {
            *labels |= 1 << (byte % 64);
            *children |= u64::from(has_child) << (byte % 64);
        }
        *if has_child { &mut ranks.child_count } else { &mut ranks.leaf_count } += 1;
    }
    write(bytes, ranks, node);
}

/// Sparse blocks, and the directory from block to block.
#[derive(Debug)]
struct Blocks {
    /// Block and index in it of the first label of each node.
    starts: Vec<u32>,
    /// Labels with a child before each block.
    ranks: Vec<u32>,
    /// Number of the first node that is the child of a sparse label.
    first_child: usize,
    child_count: u32,
    /// Labels and flags of the current block.
    filled: usize,
    labels: [u16; BLOCK_LABELS as usize],
}

impl Blocks {
    fn new(plan: &Plan) -> Self {
        let counts = &plan.counts;
        let hinted = if plan.cut == 0 { 1 } else { counts.hinted_count() as usize };
        let node_count = counts.node_count.saturating_sub(counts.dense_node_count) as usize;
        Self {
            starts: Vec::with_capacity(node_count),
            ranks: Vec::with_capacity((counts.sparse_label_count / BLOCK_LABELS + 1) as usize),
            first_child: hinted,
            child_count: 0,
            filled: 0,
            labels: [0; BLOCK_LABELS as usize],
        }
    }

    fn add_level(&mut self, bytes: &mut Vec<u8>, level: &Level, child_mask: u16) {
        let mut rest = level.labels.as_slice();
        while !rest.is_empty() {
            let room = self.labels.get_mut(self.filled..).unwrap_or_default();
            let (taken, after) = rest.split_at(rest.len().min(room.len()));
            for (target, label) in room.iter_mut().zip(taken) {
                *target = label & (!HAS_CHILD | child_mask);
            }
            self.filled += taken.len();
            rest = after;
            if self.filled == self.labels.len() {
                self.write_block(bytes);
            }
        }
    }

    /// Writes the block without the position of its children, which [`Blocks::directory`] adds. Flags are collected
    /// without a branch, because a branch on them is mispredicted.
    fn write_block(&mut self, bytes: &mut Vec<u8>) {
        let gather = |flag: u16| {
            let shift = flag.trailing_zeros();
            (0..)
                .zip(&self.labels)
                .fold(0, |bits, (index, label)| bits | u64::from(label >> shift & 1) << index)
        };
        let (mut is_first, has_child) = (gather(FIRST), gather(HAS_CHILD));
        let block = (self.ranks.len() as u32) << 6;
        let mut nodes = is_first;
        while nodes != 0 {
            self.starts.push(block | nodes.trailing_zeros());
            nodes &= nodes - 1;
        }
        if self.filled < self.labels.len() {
            // The rest of the block belongs to no node.
            is_first |= 1 << self.filled;
        }
        let mut line = [0; BLOCK_BYTES];
        let header = u128::from(is_first) | u128::from(has_child) << 64;
        let (head, labels) = line.split_at_mut(BLOCK_HEADER_BYTES);
        head.iter_mut().zip(header.to_le_bytes()).for_each(|(target, byte)| *target = byte);
        labels.iter_mut().zip(&self.labels).for_each(|(target, label)| *target = *label as u8);
        bytes.extend_from_slice(&line);
        self.ranks.push(self.child_count);
        self.child_count += has_child.count_ones();
        self.filled = 0;
        self.labels = [0; BLOCK_LABELS as usize];
    }

    fn finish(&mut self, bytes: &mut Vec<u8>) {
        if self.filled > 0 {
            self.write_block(bytes);
        }
    }

    /// Writes the positions of children into the blocks; returns ranks and bases of blocks, bases and hints of nodes.
    fn directory(&self, blocks: &mut [u8], layout: &Layout) -> [Vec<u8>; 4] {
        let block_count = self.ranks.len();
        let mut bases: Vec<u8> = Vec::new();
        let mut base = 0;
        let mut first_one = FirstOnes::default();
        let ends = self.ranks.iter().skip(1).chain([&self.child_count]);
        let (lines, _) = blocks.as_chunks_mut::<BLOCK_BYTES>();
        for (index, ((line, rank), end)) in lines.iter_mut().zip(&self.ranks).zip(ends).enumerate() {
            let first = self.first_child + *rank as usize;
            // The middle child: the others are as near to it as possible, on both sides.
            let middle = first + (end - rank) as usize / 2;
            let block =
                self.starts.get(middle).map_or(block_count.saturating_sub(1) as u32, |start| start >> 6);
            let ones_before = first_one.of_block(&self.starts, block);
            if layout.has_block_bases && index % BASE_BLOCKS as usize == 0 {
                base = block;
                bases.extend_from_slice(&base.to_le_bytes());
            }
            // Between -49 and 49 if the middle child begins in the block.
            let skip = (first as i64 - ones_before as i64 + 64).clamp(0, 127) as u64;
            let [word, ..] = line.as_chunks_mut::<8>().0 else { continue };
            *word = (u64::from_le_bytes(*word) | u64::from(block - base) << BLOCK_LABELS).to_le_bytes();
            if let Some(last) = line.get_mut(14) {
                // Bits 49 to 55 of the has-child word.
                *last = *last & 1 | (skip as u8) << 1;
            }
        }
        let ranks = if layout.has_fine_ranks { self.fine_ranks() } else { self.coarse_ranks() };
        let [hint_bases, hints] = self.hints(layout);
        [ranks, bases, hint_bases, hints]
    }

    /// Labels with a child before each group of blocks.
    fn coarse_ranks(&self) -> Vec<u8> {
        self.ranks.iter().step_by(RANK_BLOCKS as usize).flat_map(|rank| rank.to_le_bytes()).collect()
    }

    /// Labels without a child before groups of blocks, then those before each block within its group.
    fn fine_ranks(&self) -> Vec<u8> {
        let labels = (0_u32..).map(|block| block * BLOCK_LABELS);
        let ranks: Vec<u32> = labels.zip(&self.ranks).map(|(labels, children)| labels - children).collect();
        let groups = || ranks.chunks(FINE_BLOCKS as usize);
        let mut bytes: Vec<u8> =
            groups().filter_map(<[u32]>::first).flat_map(|rank| rank.to_le_bytes()).collect();
        for group in groups() {
            let first = group.first().copied().unwrap_or(0);
            bytes.extend(group.iter().flat_map(|rank| ((rank - first) as u16).to_le_bytes()));
        }
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// The blocks in which the children of dense nodes begin.
    fn hints(&self, layout: &Layout) -> [Vec<u8>; 2] {
        let (mut bases, mut hints) = (Vec::new(), Vec::new());
        let (mut base, mut first_one) = (0, FirstOnes::default());
        let hinted = self.starts.iter().enumerate().take(layout.counts.hinted_count() as usize);
        for (number, start) in hinted {
            let block = start >> 6;
            if number % HINT_GROUP as usize == 0 {
                base = block;
                bases.extend_from_slice(&base.to_le_bytes());
            }
            if number % (1 << layout.hint_shift) == 0 {
                let skip = (number - first_one.of_block(&self.starts, block)) as u32;
                hints.extend_from_slice(&(((block - base) << 6 | skip) as u16).to_le_bytes());
            }
        }
        [bases, hints]
    }
}

/// The number of the first node that begins in a block, for blocks in ascending order.
#[derive(Debug, Default)]
struct FirstOnes {
    number: usize,
}

impl FirstOnes {
    fn of_block(&mut self, starts: &[u32], block: u32) -> usize {
        while starts.get(self.number).is_some_and(|start| start >> 6 < block) {
            self.number += 1;
        }
        self.number
    }
}

fn encode_prefix_keys(bytes: &mut Vec<u8>, levels: &[Level], layout: &Layout) {
    if layout.counts.prefix_key_count == 0 {
        return;
    }
    let mut bits = BitBuilder::new();
    for labels in levels.iter().flat_map(|level| level.labels.chunks(64)) {
        let (mut word, mut count) = (0_u64, 0_u32);
        for label in labels {
            // Only first labels of nodes have the flag. No branch: it would be mispredicted.
            word |= u64::from(label & PREFIX_KEY != 0) << count;
            count += u32::from(label & FIRST != 0);
        }
        bits.push_bits(word, count);
    }
    if bits.is_empty() {
        bits.push(true);
    }
    let bit_count = bits.len();
    rank::encode(bytes, &bits.finish(), bit_count, rank::Select::None);
}
