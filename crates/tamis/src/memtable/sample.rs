//! Ways into the middle of a skip list: every sixteenth node, in order, with the heads of their keys side by side.
//!
//! A search from the top of a list of a million entries steps onto ten nodes one after the other, nearly each of them a
//! miss of the processor's caches. The heads of a sample fit those caches; from the sampled node on it is three steps.
//!
//! Nodes are never removed, so a sample stays true for ever and only gets coarser: it is taken anew each time the list has
//! doubled ([`Samples::is_due`]), by the insert that made it so. The older ones stay until the list goes; all together they
//! take two bytes per entry.
//!
//! A sample promises nothing but that its nodes come before what is behind them. A place among equal heads, or far behind
//! the sampled node (all entries that came since lie there), is for a search from the top.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use super::node::{Link, Node, NodeRef};

/// Nodes with more than this many levels are sampled: one of 2^4.
pub(super) const SAMPLE_LEVEL: usize = 4;

/// Entries at which the first sample is taken: fewer lie in the processor's caches anyway.
const FIRST_ENTRY_COUNT: u64 = 4096;
/// Samples that a list can have: enough for 2^32 entries.
const SAMPLE_COUNT_MAX: usize = 21;
/// Every how many heads one is copied, so that a search looks at a few cache lines.
const TOP_INTERVAL: usize = 64;

struct Sample {
    /// Every [`TOP_INTERVAL`]th of `heads`.
    top: Box<[u64]>,
    heads: Box<[u64]>,
    nodes: Box<[Link]>,
}

/// See the head of this file.
pub(super) struct Samples {
    taken: [OnceLock<Sample>; SAMPLE_COUNT_MAX],
    count: AtomicUsize,
}

/// Which sample is due once a list has so many entries.
fn position_of(entry_count: u64) -> Option<usize> {
    let times = entry_count / FIRST_ENTRY_COUNT;
    (times > 0).then(|| times.ilog2() as usize)
}

impl Samples {
    pub(super) fn new() -> Self {
        Self { taken: [const { OnceLock::new() }; SAMPLE_COUNT_MAX], count: AtomicUsize::new(0) }
    }

    /// Whether a sample is to be taken now that there are so many entries.
    #[inline]
    pub(super) fn is_due(entry_count: u64) -> bool {
        entry_count.is_power_of_two() && entry_count >= FIRST_ENTRY_COUNT
    }

    /// Keeps the sample that is due at so many entries: nodes in order.
    pub(super) fn keep<'a>(&self, entry_count: u64, nodes: impl Iterator<Item = NodeRef<'a>>) {
        let (heads, nodes): (Vec<u64>, Vec<Link>) =
            nodes.map(|node| (node.head(), Link::new(node.as_ptr()))).unzip();
        let sample = Sample {
            top: heads.iter().copied().step_by(TOP_INTERVAL).collect(),
            heads: heads.into(),
            nodes: nodes.into(),
        };
        let Some(position) = position_of(entry_count) else { return };
        if self.taken.get(position).is_some_and(|slot| slot.set(sample).is_ok()) {
            self.count.fetch_max(position + 1, Ordering::Release);
        }
    }

    /// A sampled node whose key is below each key with this head, and near it; null where there is none.
    #[inline]
    pub(super) fn below(&self, head: u64) -> *mut Node {
        let newest = self.count.load(Ordering::Acquire).wrapping_sub(1);
        let Some(sample) = self.taken.get(newest).and_then(OnceLock::get) else {
            return std::ptr::null_mut();
        };
        let group = sample.top.partition_point(|&other| other < head).saturating_sub(1) * TOP_INTERVAL;
        let end = sample.heads.len().min(group + TOP_INTERVAL);
        let window = sample.heads.get(group..end).unwrap_or_default();
        let behind = group + window.partition_point(|&other| other < head);
        if sample.heads.get(behind) == Some(&head) {
            return std::ptr::null_mut();
        }
        let node = behind.checked_sub(1).and_then(|before| sample.nodes.get(before));
        node.map_or(std::ptr::null_mut(), |node| node.load(Ordering::Relaxed))
    }
}
