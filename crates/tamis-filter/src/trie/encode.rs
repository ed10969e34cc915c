//! Writes levels in the form that is used in place.

use tamis_bits::{BitBuilder, elias_fano, rank};

use super::layout::{BLOCK_BYTES, BLOCK_LABELS, DENSE_GROUP, HINT_GROUP, Layout};
use super::levels::{FIRST, Level, Levels, PREFIX_KEY};
use super::plan::Plan;

/// An encoded trie without its leaf array.
#[derive(Debug)]
pub(crate) struct EncodedTrie {
    /// All parts before the leaf array.
    pub(crate) bytes: Vec<u8>,
    /// What comes after it.
    pub(crate) trailer: [u8; super::TRAILER_BYTES],
    pub(crate) layout: Layout,
}

/// Encodes what a plan says. `None` beyond the address space.
pub(crate) fn encode(levels: &Levels, plan: &Plan) -> Option<EncodedTrie> {
    let mut counts = plan.counts;
    let capped = plan.is_capped.then(|| levels.keys_below(plan.height.saturating_sub(1)));
    counts.capped_key_count = capped.as_ref().map_or(0, |capped| capped.iter().sum());
    let layout = Layout::new(counts)?;
    let chosen = levels.levels().get(..plan.height)?;
    let (dense, sparse) = chosen.split_at_checked(plan.cut)?;

    let mut bytes = Vec::with_capacity(layout.leaves + super::TRAILER_BYTES);
    let mut ranks = Ranks::default();
    for (index, level) in dense.iter().enumerate() {
        let mask = plan.child_mask(index);
        encode_dense(&mut bytes, &mut ranks, level, mask);
    }
    ranks.end_node();
    let mut blocks = Blocks { hint_mask: (1 << layout.hint_shift) - 1, ..Blocks::default() };
    for (index, level) in sparse.iter().enumerate() {
        blocks.add_level(&mut bytes, level, plan.child_mask(index + plan.cut));
    }
    if sparse.iter().all(|level| level.labels.is_empty()) && counts.node_count > counts.dense_node_count {
        // A root without labels has its hint, too.
        blocks.begin_node();
    }
    blocks.finish(&mut bytes);
    for part in [ranks.groups, ranks.nodes, blocks.bases, blocks.hints] {
        bytes.extend_from_slice(&part);
    }
    fill_up(&mut bytes);
    encode_prefix_keys(&mut bytes, chosen, &layout);
    if let Some(capped) = capped.filter(|capped| !capped.is_empty()) {
        let ends = capped.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        elias_fano::encode(&mut bytes, ends);
    }
    debug_assert_eq!(bytes.len(), layout.leaves, "the layout tells where the parts end");
    (bytes.len() == layout.leaves).then(|| EncodedTrie { bytes, trailer: counts.to_bytes(), layout })
}

fn fill_up(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// What lies before each dense node.
#[derive(Debug, Default)]
struct Ranks {
    groups: Vec<u8>,
    nodes: Vec<u8>,
    node_count: u32,
    child_count: u32,
    leaf_count: u32,
    /// Both counts before the group.
    group: [u32; 2],
}

impl Ranks {
    fn begin_node(&mut self) {
        if self.node_count.is_multiple_of(DENSE_GROUP) {
            self.group = [self.child_count, self.leaf_count];
            self.groups.extend(self.group.iter().flat_map(|count| count.to_le_bytes()));
        }
        let [children, leaves] = self.group;
        for count in [self.child_count - children, self.leaf_count - leaves] {
            self.nodes.extend_from_slice(&(count as u16).to_le_bytes());
        }
        self.node_count += 1;
    }

    fn end_node(&mut self) {
        fill_up(&mut self.nodes);
    }
}

fn encode_dense(bytes: &mut Vec<u8>, ranks: &mut Ranks, level: &Level, child_mask: u16) {
    let mut node: Option<[[u64; 4]; 2]> = None;
    let write = |bytes: &mut Vec<u8>, node: Option<[[u64; 4]; 2]>| {
        bytes.extend(node.iter().flatten().flatten().flat_map(|word| word.to_le_bytes()));
    };
    for label in &level.labels {
        if label & FIRST != 0 {
            write(bytes, node.replace([[0; 4]; 2]));
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
    write(bytes, node);
}

/// Sparse blocks and the hints to them.
#[derive(Debug, Default)]
struct Blocks {
    bases: Vec<u8>,
    hints: Vec<u8>,
    hint_mask: u32,
    base: u32,
    node_count: u32,
    label_count: u32,
    child_count: u32,
    /// Labels in the block that is being filled, and what its header will say.
    filled: u32,
    rank: u32,
    has_child: u128,
    is_first: u128,
    labels: Vec<u8>,
}

impl Blocks {
    fn begin_node(&mut self) {
        if self.node_count.is_multiple_of(HINT_GROUP) {
            self.base = self.label_count;
            self.bases.extend_from_slice(&self.base.to_le_bytes());
        }
        if self.node_count & self.hint_mask == 0 {
            self.hints.extend_from_slice(&((self.label_count - self.base) as u16).to_le_bytes());
        }
        self.node_count += 1;
    }

    fn add_level(&mut self, bytes: &mut Vec<u8>, level: &Level, child_mask: u16) {
        for label in &level.labels {
            if label & FIRST != 0 {
                self.begin_node();
                self.is_first |= 1 << self.filled;
            }
            if label & child_mask != 0 {
                self.has_child |= 1 << self.filled;
                self.child_count += 1;
            }
            self.labels.push(*label as u8);
            self.filled += 1;
            self.label_count += 1;
            if self.filled == BLOCK_LABELS {
                self.write_block(bytes);
            }
        }
    }

    fn write_block(&mut self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.rank.to_le_bytes());
        let low = self.has_child | self.is_first << BLOCK_LABELS;
        let high = self.is_first >> (128 - BLOCK_LABELS);
        bytes.extend_from_slice(&low.to_le_bytes());
        bytes.extend(high.to_le_bytes().iter().take(9));
        bytes.extend_from_slice(&self.labels);
        self.labels.clear();
        (self.filled, self.has_child, self.is_first, self.rank) = (0, 0, 0, self.child_count);
    }

    fn finish(&mut self, bytes: &mut Vec<u8>) {
        if self.filled > 0 {
            self.write_block(bytes);
            fill_up(bytes);
        }
        debug_assert!(BLOCK_BYTES.is_multiple_of(8), "whole blocks need no filling");
    }
}

fn encode_prefix_keys(bytes: &mut Vec<u8>, levels: &[Level], layout: &Layout) {
    if layout.counts.prefix_key_count == 0 {
        return;
    }
    let mut bits = BitBuilder::new();
    let first_labels = levels.iter().flat_map(|level| &level.labels).filter(|label| *label & FIRST != 0);
    first_labels.for_each(|label| bits.push(label & PREFIX_KEY != 0));
    if bits.is_empty() {
        bits.push(true);
    }
    let bit_count = bits.len();
    rank::encode(bytes, &bits.finish(), bit_count, rank::Select::None);
}
