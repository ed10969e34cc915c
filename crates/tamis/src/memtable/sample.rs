//! Samples of a skip list: every sixteenth node, in order, with the first eight bytes of their keys in one array.
//!
//! A search from the top of a list of a million entries visits ten nodes one after the other, nearly each of them a cache
//! miss. The array of a sample fits the caches; from the sampled node on the search needs three steps.
//!
//! Nodes are never removed, so a sample stays correct and only gets coarser. A new one is taken each time the list has
//! doubled ([`Samples::is_due`]), by the insert that doubled it. Older samples are kept until the list is dropped; all
//! samples together take two bytes per entry.
//!
//! A sample only promises that its nodes are before the nodes after them. A target among equal heads, or far after the
//! sampled node (because of all entries inserted since), needs a search from the top.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use super::node::{Link, Node, NodeRef};

/// Nodes with more than this many levels are sampled: one of 2^4.
pub(super) const SAMPLE_LEVEL: usize = 4;

/// Number of entries at which the first sample is taken: fewer entries fit the caches anyway.
const FIRST_ENTRY_COUNT: u64 = 4096;
/// The most samples of a list: enough for 2^32 entries.
const SAMPLE_COUNT_MAX: usize = 21;
/// One head of this many is copied, so that a search reads a few cache lines.
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

/// The sample that is due at this number of entries.
fn position_of(entry_count: u64) -> Option<usize> {
    let times = entry_count / FIRST_ENTRY_COUNT;
    (times > 0).then(|| times.ilog2() as usize)
}

impl Samples {
    pub(super) fn new() -> Self {
        Self { taken: [const { OnceLock::new() }; SAMPLE_COUNT_MAX], count: AtomicUsize::new(0) }
    }

    /// Whether a sample is due at this number of entries.
    #[inline]
    pub(super) fn is_due(entry_count: u64) -> bool {
        entry_count.is_power_of_two() && entry_count >= FIRST_ENTRY_COUNT
    }

    /// Stores the sample that is due at this number of entries, from nodes in order.
    pub(super) fn store<'a>(&self, entry_count: u64, nodes: impl Iterator<Item = NodeRef<'a>>) {
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

    /// A sampled node near each key with this head, and below it; null if there is none.
    #[inline]
    pub(super) fn below(&self, head: u64) -> *mut Node {
        let newest = self.count.load(Ordering::Acquire).wrapping_sub(1);
        let Some(sample) = self.taken.get(newest).and_then(OnceLock::get) else {
            return std::ptr::null_mut();
        };
        let group = sample.top.partition_point(|&other| other < head).saturating_sub(1) * TOP_INTERVAL;
        let end = sample.heads.len().min(group + TOP_INTERVAL);
        let window = sample.heads.get(group..end).unwrap_or_default();
        let after = group + window.partition_point(|&other| other < head);
        if sample.heads.get(after) == Some(&head) {
            return std::ptr::null_mut();
        }
        let node = after.checked_sub(1).and_then(|before| sample.nodes.get(before));
        node.map_or(std::ptr::null_mut(), |node| node.load(Ordering::Relaxed))
    }
}
