//! The cost in bytes of a trie with a given height and cut, and the choice of both.
//!
//! **The cut.** A dense node takes 576 bits, a sparse one about 10.6 per label. So levels of full nodes are smaller
//! dense, and all levels are faster dense. The exact size is computed for each cut; the deepest cut whose size is at
//! most 1/64 above the minimum is taken.
//!
//! **The height** is the trie's own height, or the greatest that fits into a limit.

use std::borrow::Cow;

use tamis_bits::packed::PackedVec;

use super::layout::{
    Counts, DENSE_CHILDREN_MAX, LABEL_COUNT_MAX, capped_bytes, dense_bytes, directory_bytes, has_fine_ranks,
    hinted_count, prefix_key_bytes, sparse_bytes,
};
use super::levels::{HAS_CHILD, Level, Levels};

/// The size may exceed the minimum by one part in this number, for more dense levels.
const DENSE_SHARE: u64 = 64;

/// The shape in which a trie is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Number of encoded levels.
    pub(crate) height: usize,
    /// Number of dense levels.
    pub(crate) cut: usize,
    /// Whether leaves of the last level may represent several keys.
    pub(crate) is_capped: bool,
    /// Whether data is stored for each leaf.
    pub(super) has_leaf_array: bool,
    /// Bytes without leaf array and trailer; an upper bound if the trie is capped.
    pub(crate) bytes: u64,
    pub(super) counts: Counts,
}

impl Plan {
    /// The flag of labels with a child; 0 in the last level of a capped trie, in which all labels are leaves.
    pub(super) const fn child_mask(&self, level_index: usize) -> u16 {
        if self.is_capped && level_index + 1 == self.height { 0 } else { HAS_CHILD }
    }

    /// The words of the leaves, level by level; 0 for leaves that represent several keys.
    pub(crate) fn leaves<'l>(&self, levels: &'l Levels) -> impl Iterator<Item = Cow<'l, [PackedVec; 2]>> {
        let plan = *self;
        levels.levels().iter().take(plan.height).enumerate().map(move |(index, level)| {
            // Labels with children become leaves.
            match plan.child_mask(index) {
                0 => Cow::Owned(level.all_words(levels.widths())),
                _ => Cow::Borrowed(&level.words),
            }
        })
    }
}

/// The counts that determine the size of one level, or of all levels above a cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LevelCounts {
    pub(crate) nodes: u64,
    pub(crate) labels: u64,
    pub(crate) children: u64,
    pub(crate) prefix_keys: u64,
}

type Sums = LevelCounts;

impl LevelCounts {
    fn of(level: &Level) -> Self {
        Self {
            nodes: level.node_count,
            labels: level.labels.len() as u64,
            children: level.child_count,
            prefix_keys: level.prefix_key_count,
        }
    }

    fn with(self, level: &Level) -> Self {
        self.with_counts(&Self::of(level))
    }

    fn with_counts(self, level: &Self) -> Self {
        Self {
            nodes: self.nodes + level.nodes,
            labels: self.labels + level.labels,
            children: self.children + level.children,
            prefix_keys: self.prefix_keys + level.prefix_keys,
        }
    }
}

/// Bytes of an uncapped trie without prefix keys, with data for its leaves, cut as [`plan`] does; without leaf array
/// and trailer. `None` if there are more labels than positions.
pub(crate) fn level_bytes(levels: &[LevelCounts]) -> Option<u64> {
    let all = levels.iter().fold(Sums::default(), Sums::with_counts);
    let (_, dense) = best_cut(levels, &all, true);
    (all.labels <= LABEL_COUNT_MAX && all.nodes <= LABEL_COUNT_MAX).then(|| cost(&dense, &all, true))
}

/// Bytes of the first `height` levels of a trie, as [`plan`] encodes them, without leaf array and trailer, and the number of
/// leaves with data. Of a lower trie, all labels of the last level are leaves.
pub(crate) fn capped_level_bytes(
    levels: &[LevelCounts],
    height: usize,
    key_count: u64,
    has_leaf_array: bool,
) -> Option<(u64, u64)> {
    let chosen = levels.get(..height)?;
    let mut all = chosen.iter().fold(Sums::default(), Sums::with_counts);
    all.nodes = all.nodes.max(u64::from(height > 0));
    let last = chosen.last().filter(|_| height < levels.len());
    all.children -= last.map_or(0, |last| last.children);
    if all.labels > LABEL_COUNT_MAX || all.nodes > LABEL_COUNT_MAX {
        return None;
    }
    let has_fine_ranks = has_fine_ranks(has_leaf_array, all.prefix_keys);
    let (_, dense) = best_cut(chosen, &all, has_fine_ranks);
    let capped_leaves = last.map_or(0, |last| last.labels);
    let bytes = cost(&dense, &all, has_fine_ranks)
        + prefix_key_bytes(all.nodes, all.prefix_keys)
        + capped_bytes(capped_leaves, key_count.max(capped_leaves))?;
    Some((bytes, all.labels - all.children))
}

fn cost(dense: &Sums, all: &Sums, has_fine_ranks: bool) -> u64 {
    let sparse_labels = all.labels - dense.labels;
    let dense_bytes: u64 = dense_bytes(dense.nodes).iter().sum();
    let hinted = hinted_count(dense.nodes, dense.children);
    let sparse_nodes = all.nodes - dense.nodes;
    let directory_bytes = directory_bytes(sparse_labels, sparse_nodes, hinted, has_fine_ranks);
    dense_bytes + sparse_bytes(sparse_labels) + directory_bytes.iter().sum::<u64>()
}

/// The plan for the first `height` levels. `has_leaf_array`: whether data is stored for leaves. `None` if there are
/// more labels than positions.
pub(crate) fn plan(levels: &Levels, height: usize, has_leaf_array: bool) -> Option<Plan> {
    plan_at(levels, height, has_leaf_array, None)
}

/// [`plan`] with a given cut.
pub(crate) fn plan_at(
    levels: &Levels,
    height: usize,
    has_leaf_array: bool,
    cut: Option<usize>,
) -> Option<Plan> {
    let is_capped = levels.is_capped() || height < levels.levels().len();
    let chosen = levels.levels().get(..height)?;
    let mut all = chosen.iter().fold(Sums::default(), Sums::with);
    // The empty key alone has a root without labels.
    all.nodes = all.nodes.max(u64::from(height > 0));
    let last = chosen.last().filter(|_| is_capped);
    if let Some(last) = last {
        all.children -= last.child_count;
    }
    if all.labels > LABEL_COUNT_MAX || all.nodes > LABEL_COUNT_MAX {
        return None;
    }
    let has_fine_ranks = has_fine_ranks(has_leaf_array, all.prefix_keys);
    let (cut, dense) = match cut {
        None => best_cut(&chosen.iter().map(LevelCounts::of).collect::<Vec<_>>(), &all, has_fine_ranks),
        Some(cut) => (cut, chosen.get(..cut)?.iter().fold(Sums::default(), Sums::with)),
    };
    let capped_leaves = last.map_or(0, |last| last.labels.len() as u64);
    let bytes = cost(&dense, &all, has_fine_ranks)
        + prefix_key_bytes(all.nodes, all.prefix_keys)
        + capped_bytes(capped_leaves, levels.key_count().max(capped_leaves))?;
    let dense_children = dense.children - last.filter(|_| cut == height).map_or(0, |last| last.child_count);
    let counts = Counts {
        sparse_label_count: (all.labels - dense.labels) as u32,
        node_count: all.nodes as u32,
        dense_node_count: dense.nodes as u32,
        dense_child_count: dense_children as u32,
        dense_leaf_count: (dense.labels - dense_children) as u32,
        prefix_key_count: all.prefix_keys as u32,
        capped_leaf_count: capped_leaves as u32,
        height: height as u32,
        capped_key_count: 0,
    };
    Some(Plan { height, cut, is_capped, has_leaf_array, bytes, counts })
}

/// The deepest cut whose size is near the minimum.
fn best_cut(levels: &[LevelCounts], all: &Sums, has_fine_ranks: bool) -> (usize, Sums) {
    let cost = |dense: &Sums| cost(dense, all, has_fine_ranks);
    let mut dense = Sums::default();
    let mut least = cost(&dense);
    for level in levels {
        dense = dense.with_counts(level);
        least = least.min(cost(&dense));
    }
    let allowed = least + least / DENSE_SHARE;
    let mut best = (0, Sums::default());
    let mut dense = Sums::default();
    for (index, level) in levels.iter().enumerate() {
        dense = dense.with_counts(level);
        if cost(&dense) <= allowed && level.nodes > 0 && dense.children <= DENSE_CHILDREN_MAX {
            best = (index + 1, dense);
        }
    }
    best
}

/// The plan of the greatest height within a limit of bytes; height 1 if none fits.
pub(crate) fn plan_within(levels: &Levels, bytes_max: u64, has_leaf_array: bool) -> Option<Plan> {
    let plan = |height: usize| plan(levels, height, has_leaf_array);
    let own = plan(levels.levels().len());
    if let Some(own) = own
        && (own.bytes <= bytes_max || own.height <= 1)
    {
        return Some(own);
    }
    // Sizes grow with the height, except for the counts of capped leaves: the search may end slightly below the
    // greatest height.
    let (mut fits, mut fails) = (1, levels.levels().len());
    while fits + 1 < fails {
        let middle = usize::midpoint(fits, fails);
        if plan(middle).is_some_and(|plan| plan.bytes <= bytes_max) { fits = middle } else { fails = middle }
    }
    plan(fits)
}
