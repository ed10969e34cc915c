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

impl LevelCounts {
    fn of(level: &Level) -> Self {
        Self {
            nodes: level.node_count,
            labels: level.labels.len() as u64,
            children: level.child_count,
            prefix_keys: level.prefix_key_count,
        }
    }

    fn sum(levels: &[Self]) -> Self {
        levels.iter().fold(Self::default(), Self::with)
    }

    fn with(self, level: &Self) -> Self {
        Self {
            nodes: self.nodes + level.nodes,
            labels: self.labels + level.labels,
            children: self.children + level.children,
            prefix_keys: self.prefix_keys + level.prefix_keys,
        }
    }
}

/// The encoding of some levels: their counts, the dense ones among them, and the size.
struct Shape {
    all: LevelCounts,
    cut: usize,
    dense: LevelCounts,
    capped_leaves: u64,
    bytes: u64,
}

impl Shape {
    /// The shape with a given cut, or with the best one. Of a capped trie, all labels of the last level are leaves. `None` if there are
    /// more labels than positions.
    fn of(
        levels: &[LevelCounts],
        is_capped: bool,
        cut: Option<usize>,
        key_count: u64,
        has_leaf_array: bool,
    ) -> Option<Self> {
        let mut all = LevelCounts::sum(levels);
        // The empty key alone has a root without labels.
        all.nodes = all.nodes.max(u64::from(!levels.is_empty()));
        let last = levels.last().filter(|_| is_capped);
        all.children -= last.map_or(0, |last| last.children);
        if all.labels > LABEL_COUNT_MAX || all.nodes > LABEL_COUNT_MAX {
            return None;
        }
        let has_fine_ranks = has_fine_ranks(has_leaf_array, all.prefix_keys);
        let (cut, dense) = match cut {
            None => best_cut(levels, &all, has_fine_ranks),
            Some(cut) => (cut, LevelCounts::sum(levels.get(..cut)?)),
        };
        let capped_leaves = last.map_or(0, |last| last.labels);
        let bytes = cost(&dense, &all, has_fine_ranks)
            + prefix_key_bytes(all.nodes, all.prefix_keys)
            + capped_bytes(capped_leaves, key_count.max(capped_leaves))?;
        Some(Self { all, cut, dense, capped_leaves, bytes })
    }
}

/// Counts the keys of a trie by level: the levels of their first own labels, of their leaves, and of the nodes at which they end.
#[derive(Debug)]
pub(crate) struct LevelTally {
    begun: Vec<u64>,
    leaves: Vec<u64>,
    prefix_keys: Vec<u64>,
}

impl LevelTally {
    /// Deeper levels are not counted.
    pub(crate) fn new(level_count: usize) -> Self {
        let [begun, leaves, prefix_keys] = [(); 3].map(|()| vec![0; level_count]);
        Self { begun, leaves, prefix_keys }
    }

    /// A key whose first label that no smaller key has is on a level.
    #[inline]
    pub(crate) fn begin_key(&mut self, level: usize) {
        self.begun.get_mut(level).into_iter().for_each(|count| *count += 1);
    }

    #[inline]
    pub(crate) fn end_in_leaf(&mut self, level: usize) {
        self.leaves.get_mut(level).into_iter().for_each(|count| *count += 1);
    }

    #[inline]
    pub(crate) fn end_in_node(&mut self, level: usize) {
        self.prefix_keys.get_mut(level).into_iter().for_each(|count| *count += 1);
    }

    pub(crate) fn levels(&self) -> Vec<LevelCounts> {
        let mut levels = Vec::new();
        let (mut open, mut nodes) = (0, 1);
        for ((begun, leaves), prefix_keys) in self.begun.iter().zip(&self.leaves).zip(&self.prefix_keys) {
            let labels = open + begun;
            if labels == 0 {
                break;
            }
            let children = labels - leaves;
            levels.push(LevelCounts { nodes, labels, children, prefix_keys: *prefix_keys });
            (open, nodes) = (children, children);
        }
        levels
    }
}

/// Bytes of an uncapped trie without prefix keys, with data for its leaves, cut as [`plan`] does; without leaf array
/// and trailer. `None` if there are more labels than positions.
pub(crate) fn level_bytes(levels: &[LevelCounts]) -> Option<u64> {
    Shape::of(levels, false, None, 0, true).map(|shape| shape.bytes)
}

/// Bytes of the first `height` levels of a trie, as [`plan`] encodes them, without leaf array and trailer, and the number of
/// leaves with data.
pub(crate) fn capped_level_bytes(
    levels: &[LevelCounts],
    height: usize,
    key_count: u64,
    has_leaf_array: bool,
) -> Option<(u64, u64)> {
    let shape = Shape::of(levels.get(..height)?, height < levels.len(), None, key_count, has_leaf_array)?;
    Some((shape.bytes, shape.all.labels - shape.all.children))
}

fn cost(dense: &LevelCounts, all: &LevelCounts, has_fine_ranks: bool) -> u64 {
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
    let chosen: Vec<LevelCounts> = levels.levels().get(..height)?.iter().map(LevelCounts::of).collect();
    let shape = Shape::of(&chosen, is_capped, cut, levels.key_count(), has_leaf_array)?;
    let Shape { all, cut, dense, capped_leaves, bytes } = shape;
    let last = chosen.last().filter(|_| is_capped && cut == height);
    let dense_children = dense.children - last.map_or(0, |last| last.children);
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

/// The deepest cut whose size is near the minimum, and the counts above it.
fn best_cut(levels: &[LevelCounts], all: &LevelCounts, has_fine_ranks: bool) -> (usize, LevelCounts) {
    let above_cuts = || {
        levels.iter().scan(LevelCounts::default(), |dense, level| {
            *dense = dense.with(level);
            Some((*dense, level.nodes))
        })
    };
    let cost = |dense: &LevelCounts| cost(dense, all, has_fine_ranks);
    let none = LevelCounts::default();
    let least = above_cuts().map(|(dense, _)| cost(&dense)).fold(cost(&none), u64::min);
    let allowed = least + least / DENSE_SHARE;
    let is_good = |dense: &LevelCounts| cost(dense) <= allowed && dense.children <= DENSE_CHILDREN_MAX;
    let good = above_cuts().zip(1..).filter(|((dense, nodes), _)| *nodes > 0 && is_good(dense)).last();
    good.map_or((0, none), |((dense, _), cut)| (cut, dense))
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
