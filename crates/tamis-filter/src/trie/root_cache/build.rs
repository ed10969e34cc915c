//! Chooses the nodes of the root cache and writes it.
//!
//! A node of depth d below a stage of depth e saves d - e steps for each search that passes it, and costs an entry. A
//! binary search finds the price of a byte at which everything fits; for a given price, dynamic programming finds the
//! best depths, and each depth caches the nodes with enough keys below them.

use tamis_bits::line::LINE_BYTES;

use super::{
    CHILD_BYTES, DEPTH_MAX, DIRECT, LINE_SLOTS, Line, RootCacheLayout, SHORT_MAX, STAGE_BYTES, STAGES_MAX,
    Stage, child_lines, direct,
};
use crate::trie::encode::EncodedTrie;
use crate::trie::levels::{FIRST, HAS_CHILD, Level, Levels, keys_of_labels, keys_of_nodes};
use crate::trie::sparse;

/// Mean number of entries in ten lines. One in ten short entries and one in eight long ones finds its line full; nodes
/// with the most keys are placed first.
const SHORT_LOAD: u64 = 72;
const LONG_LOAD: u64 = 32;
/// Minimal mean number of steps saved per search: by the whole cache, and by a later stage.
const LEAST_GAIN: f64 = 2.5;
const STAGE_GAIN: f64 = 0.25;
/// Numbers of keys below a node that are distinguished.
const WEIGHTS_MAX: usize = 1024;
/// Maximal number of halvings of the range of prices, and the relative precision of a price.
const HALVINGS: usize = 64;
const PRICE_PART: f64 = 1.0 / 64.0;
/// A direct table covers at least this part of all keys, and has at most this many entries per node.
const DIRECT_SHARE: f64 = 0.875;
const DIRECT_ENTRIES: usize = 2;
/// With fewer lines of room there is no root cache.
const LEAST_LINES: u64 = 8;

/// The nodes of a depth that can be cached.
struct Candidates {
    /// The number of keys below each.
    weights: Vec<u64>,
    /// By a number of keys: the nodes with at least that many below them, and the sum of their keys.
    nodes_from: Vec<u64>,
    keys_from: Vec<u64>,
}

/// A possible stage: the nodes with at least `weight` keys.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Choice {
    depth: usize,
    weight: u64,
    line_count: u64,
}

/// Some stages, one below the other.
#[derive(Clone, Default)]
struct Path {
    /// Steps saved for all keys together, and their value minus the price of the bytes.
    saved: f64,
    value: f64,
    choices: Vec<Choice>,
    /// The last stage as a reader has it.
    last: Option<Stage>,
}

/// Chooses the root cache that saves the most steps in `bytes_max`; `None` if none saves enough. Returns the number of
/// stages, and all lines with the header.
pub(in super::super) fn build(
    levels: &Levels,
    trie: &EncodedTrie,
    bytes_max: u64,
) -> Option<(u8, Vec<Line>)> {
    if bytes_max < LEAST_LINES * LINE_BYTES as u64 {
        return None;
    }
    let layout = &trie.layout;
    let blocks = trie.bytes.get(layout.sparse..layout.lines)?.as_chunks().0;
    let plan = Chooser::new(levels, u64::from(layout.counts.dense_node_count), blocks.len());
    let child_lines = child_lines(blocks.len());
    let places = |depth: usize, count: usize| -> Vec<u32> {
        let above = levels.levels().iter().take(depth).map(|level| level.node_count).sum::<u64>();
        let first = above - u64::from(layout.counts.dense_node_count);
        sparse::node_places(blocks).skip(first as usize).take(count).collect()
    };
    let room = bytes_max.checked_sub((child_lines * LINE_BYTES) as u64);
    let staged = room.and_then(|room| plan.choose(room));
    let saved = staged.as_ref().map_or(0.0, |path| path.saved);
    if let Some((depth, prefixes)) = plan.choose_direct(levels, bytes_max, saved) {
        let lines = direct::encode(depth, &prefixes, &places(depth, prefixes.len()))?;
        return Some((DIRECT as u8, lines));
    }
    let choices = staged?.choices;
    let stages = choices.iter().map(|choice| (choice.depth, choice.line_count as u32));
    let tables = RootCacheLayout::new(stages, blocks.len())?;
    let mut lines = vec![[0; LINE_BYTES]; 1];
    for (choice, entry) in choices.iter().zip(lines.first_mut()?.as_chunks_mut::<STAGE_BYTES>().0) {
        *entry = (choice.depth as u64 | choice.line_count << 32).to_le_bytes();
    }
    let mut children = vec![[0; LINE_BYTES]; child_lines];
    for (entry, block) in children.as_flattened_mut().as_chunks_mut::<CHILD_BYTES>().0.iter_mut().zip(blocks)
    {
        *entry = (sparse::child_number(block) as u16).to_le_bytes();
    }
    lines.append(&mut children);
    let mut before = Placed::default();
    for (stage, choice) in tables.stages.iter().zip(&choices) {
        let weights = &plan.depths.get(choice.depth)?.weights;
        let places = places(choice.depth, weights.len());
        let mut own = vec![[0; LINE_BYTES]; stage.line_count as usize];
        before = before.fill(
            &mut own,
            stage,
            Nodes { weights, places: &places, prefixes: prefixes(levels, choice.depth) },
            choice.weight,
        );
        lines.extend_from_slice(&own);
    }
    Some((choices.len() as u8, lines))
}

/// The nodes of the stage that is written.
struct Nodes<'a> {
    weights: &'a [u64],
    places: &'a [u32],
    prefixes: Vec<u128>,
}

/// The slots of the nodes of a stage.
#[derive(Default)]
struct Placed {
    depth: usize,
    prefixes: Vec<u128>,
    slots: Vec<Option<u64>>,
}

impl Placed {
    /// Writes the stage after this one.
    fn fill(&self, lines: &mut [Line], stage: &Stage, nodes: Nodes<'_>, weight_min: u64) -> Self {
        let mut slots = vec![None; nodes.prefixes.len()];
        let mut order: Vec<usize> = (0..nodes.weights.len()).collect();
        order.retain(|node| nodes.weights.get(*node).is_some_and(|weight| *weight >= weight_min));
        order.sort_by_key(|node| std::cmp::Reverse(nodes.weights.get(*node).copied()));
        for node in order {
            let (Some(prefix), Some(place)) = (nodes.prefixes.get(node), nodes.places.get(node)) else {
                continue;
            };
            let Some(parent) = self.slot(*prefix, stage.depth) else { continue };
            let whole = prefix << (128 - 8 * stage.depth as u32);
            let (first, last) = ((whole >> 64) as u64, whole as u64);
            let number = stage.line([first, last]).wrapping_sub(stage.first_line);
            let Some(line) = lines.get_mut(number as usize) else { continue };
            let place = u64::from(place + 1);
            let index = if self.depth == 0 && stage.depth > SHORT_MAX {
                put(
                    line.as_chunks_mut().0,
                    (u128::from(first) << 64 | u128::from(last | place)).to_le_bytes(),
                )
                .map(|index| 2 * index)
            } else {
                let entry = stage.entry(stage.own([first, last]), parent);
                put(line.as_chunks_mut().0, (entry | place).to_le_bytes())
            };
            if let (Some(index), Some(slot)) = (index, slots.get_mut(node)) {
                *slot = Some(u64::from(number) * LINE_SLOTS + index as u64);
            }
        }
        Self { depth: stage.depth, prefixes: nodes.prefixes, slots }
    }

    /// The slot of the node of this stage on the path of a prefix.
    fn slot(&self, prefix: u128, depth: usize) -> Option<u64> {
        if self.depth == 0 {
            return Some(0);
        }
        let node = self.prefixes.binary_search(&(prefix >> (8 * (depth - self.depth)))).ok()?;
        self.slots.get(node).copied().flatten()
    }
}

/// Writes into the first free entry, if there is one; returns its index.
fn put<const N: usize>(entries: &mut [[u8; N]], entry: [u8; N]) -> Option<usize> {
    let free = entries.iter().position(|entry| *entry == [0; N])?;
    *entries.get_mut(free)? = entry;
    Some(free)
}

/// Chooses stages.
struct Chooser {
    key_count: f64,
    depths: Vec<Candidates>,
    /// The first depth at which all nodes are sparse.
    sparse_from: usize,
    levels_skipped: usize,
    block_count: usize,
}

impl Chooser {
    fn new(levels: &Levels, dense_nodes: u64, block_count: usize) -> Self {
        let mut left = dense_nodes;
        let dense_levels = levels.levels().iter().take_while(|level| {
            let is_dense = left > 0;
            left = left.saturating_sub(level.node_count);
            is_dense
        });
        Self {
            key_count: levels.key_count() as f64,
            depths: weights(levels).into_iter().map(Candidates::new).collect(),
            sparse_from: dense_levels.count(),
            levels_skipped: levels_skipped(levels),
            block_count,
        }
    }

    /// The stages that save the most steps in `bytes_max`.
    fn choose(&self, bytes_max: u64) -> Option<Path> {
        // Approximates the least price at which everything fits, between 0 and one step of each key.
        let (mut low, mut high, mut chosen) = (0.0, self.key_count, None);
        let mut price = 0.0;
        for _ in 0..HALVINGS {
            let path = self.best(price);
            let lines = 1 + path.choices.iter().map(|choice| choice.line_count).sum::<u64>();
            if lines * LINE_BYTES as u64 <= bytes_max {
                (high, chosen) = (price, Some(path));
            } else {
                low = price;
            }
            if high - low <= high * PRICE_PART {
                break;
            }
            price = (low + high) / 2.0;
        }
        chosen.filter(|path| path.saved >= LEAST_GAIN * self.key_count)
    }

    /// The depth of a direct table and the prefixes of its nodes, if it saves at least as many steps as stages do.
    fn choose_direct(&self, levels: &Levels, bytes_max: u64, saved: f64) -> Option<(usize, Vec<u64>)> {
        let depths = self.sparse_from.max(1)..=direct::DEPTH_MAX.min(self.depths.len().checked_sub(1)?);
        // The deepest one saves the most, if it covers enough keys.
        depths.rev().find_map(|depth| {
            let weights = &self.depths.get(depth)?.weights;
            let keys = weights.iter().sum::<u64>() as f64;
            let is_enough = keys >= DIRECT_SHARE * self.key_count
                // Its entries also avoid the hints.
                && keys * (depth.saturating_sub(self.levels_skipped) as f64 + 1.0) >= saved;
            if !is_enough || direct::bytes(weights.len()) > bytes_max {
                return None;
            }
            let prefixes: Vec<u64> =
                prefixes(levels, depth).into_iter().map(|prefix| prefix as u64).collect();
            let entries = usize::try_from(prefixes.last()? - prefixes.first()?).ok()?.checked_add(1)?;
            let is_close = entries <= prefixes.len().saturating_mul(DIRECT_ENTRIES);
            (is_close && direct::bytes(entries) <= bytes_max).then_some((depth, prefixes))
        })
    }

    /// The most valuable stages at a price per byte.
    fn best(&self, price: f64) -> Path {
        // Each round extends the best path to each depth by one stage.
        let mut best = Path::default();
        let mut paths = vec![Path::default()];
        for _ in 0..STAGES_MAX {
            let mut longer: Vec<Option<Path>> = vec![None; self.depths.len()];
            for path in &paths {
                for (depth, reached) in longer.iter_mut().enumerate().skip(self.sparse_from) {
                    let Some(path) = self.lengthen(path, depth, price) else { continue };
                    if reached.as_ref().is_none_or(|reached| reached.value < path.value) {
                        *reached = Some(path);
                    }
                }
            }
            paths = longer.into_iter().flatten().collect();
            for path in &paths {
                if path.value > best.value {
                    best = path.clone();
                }
            }
        }
        best
    }

    /// A path with one more stage; `None` if no stage of this depth can follow it.
    fn lengthen(&self, path: &Path, depth: usize, price: f64) -> Option<Path> {
        let nodes = self.depths.get(depth).filter(|nodes| !nodes.weights.is_empty())?;
        let (start, load, least_gain) = match &path.last {
            None if depth > SHORT_MAX => (self.levels_skipped, LONG_LOAD, 0.0),
            None => (self.levels_skipped, SHORT_LOAD, 0.0),
            Some(last) => (last.depth, SHORT_LOAD, STAGE_GAIN),
        };
        let steps = depth.checked_sub(start).filter(|steps| *steps > 0)?;
        let cost = price * (LINE_BYTES as u64 * 10) as f64 / load as f64;
        // An entry is useful only if its ancestor is cached, which has at least as many keys below it.
        let weight_above = path.choices.last().map_or(2, |choice| choice.weight as usize);
        let weight = ((cost / steps as f64).ceil() as usize).clamp(weight_above, WEIGHTS_MAX - 1);
        let (count, keys) = (*nodes.nodes_from.get(weight)?, *nodes.keys_from.get(weight)?);
        let line_count = (count * 10).div_ceil(load).max(1);
        let last = Stage::new(path.last.as_ref(), depth, u32::try_from(line_count).ok()?, self.block_count)?;
        let saved = keys as f64 * steps as f64;
        let mut choices = path.choices.clone();
        choices.push(Choice { depth, weight: weight as u64, line_count });
        Some(Path {
            saved: path.saved + saved,
            value: path.value + saved - cost * count as f64 - least_gain * self.key_count,
            choices,
            last: Some(last),
        })
    }
}

impl Candidates {
    fn new(weights: Vec<u64>) -> Self {
        let (mut nodes_from, mut keys_from) = (vec![0; WEIGHTS_MAX], vec![0; WEIGHTS_MAX]);
        for weight in &weights {
            let tally = (*weight as usize).min(WEIGHTS_MAX - 1);
            if let (Some(nodes), Some(keys)) = (nodes_from.get_mut(tally), keys_from.get_mut(tally)) {
                *nodes += 1;
                *keys += weight;
            }
        }
        for sums in [&mut nodes_from, &mut keys_from] {
            sums.iter_mut().rev().fold(0, |sum, own| {
                *own += sum;
                *own
            });
        }
        Self { weights, nodes_from, keys_from }
    }
}

/// The number of keys below each node of the first depths.
fn weights(levels: &Levels) -> Vec<Vec<u64>> {
    let count = levels.levels().len().min(DEPTH_MAX + 1);
    let mut depths = vec![Vec::new(); count];
    let mut below = Vec::new();
    for (depth, level) in levels.levels().iter().enumerate().rev() {
        let own = keys_of_nodes(level, keys_of_labels(level, &below));
        if let Some(kept) = depths.get_mut(depth) {
            kept.clone_from(&own);
        }
        below = own;
    }
    depths
}

/// Levels that a search passes in one step anyway: levels of one label, then full levels.
fn levels_skipped(levels: &Levels) -> usize {
    let levels = levels.levels();
    let stem = levels.iter().take(8).take_while(|level| level.labels.len() == 1).count();
    let is_full = |level: &&Level| level.child_count == level.node_count * 256;
    stem + levels.iter().skip(stem).take(2).take_while(is_full).count()
}

/// The bytes that lead to the nodes of a depth, in their order.
fn prefixes(levels: &Levels, depth: usize) -> Vec<u128> {
    let mut prefixes = vec![0_u128];
    for level in levels.levels().iter().take(depth) {
        let mut parents = prefixes.iter();
        let mut parent = 0;
        let mut children = Vec::with_capacity(level.child_count as usize);
        for label in &level.labels {
            if label & FIRST != 0 {
                parent = parents.next().copied().unwrap_or(0);
            }
            if label & HAS_CHILD != 0 {
                children.push(parent << 8 | u128::from(*label as u8));
            }
        }
        prefixes = children;
    }
    prefixes
}
