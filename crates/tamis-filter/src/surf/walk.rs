//! Points and ranges: walks from the root that end as soon as the answer is certain.
//!
//! A range is followed by both bounds together as long as they share bytes. Where they part, any label strictly between them
//! is an answer; otherwise one walk looks for a key at or above the lower bound along its own path, and one for a key at or
//! below the upper bound along its path. A leaf that a bound runs through answers by its suffix: what it cannot tell is `true`.

use std::ops::Bound;

use tamis_bits::Bits;
use tamis_bits::kernel::{self, Portable, Steps};

use super::suffix::{SuffixBits, prefix_word_behind, word_behind};
use crate::trie::{Edge, Node, Trie, Walked, shared_bytes};
use crate::{KeyRange, Probe, Upper};

/// A filter at rest: its trie, and where the suffixes lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a, S = Portable> {
    pub(super) trie: Trie<'a, S>,
    pub(super) suffixes: &'a [u8],
    pub(super) widths: SuffixBits,
    /// Real bits that are compared, at most those that are stored: fewer tell what a shorter suffix would answer.
    pub(super) compared: u32,
    pub(super) seed: u64,
}

impl<'a> View<'a> {
    /// The same view with steps in another form.
    #[inline(always)]
    pub(super) const fn with<S: Steps>(self, steps: S) -> View<'a, S> {
        let Self { trie, suffixes, widths, compared, seed } = self;
        View { trie: trie.with(steps), suffixes, widths, compared, seed }
    }
}

impl<S: Steps> View<'_, S> {
    #[inline(always)]
    pub(super) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        match self.trie.walk(probe.key()) {
            Walked::Nowhere => false,
            Walked::Node(node) => self.trie.is_prefix_key(&node),
            Walked::Leaf(edge, depth) => self.may_equal(&edge, depth, probe),
        }
    }

    /// Digest bits and real bits of a leaf; `None` where it stands for several keys and so has none.
    #[inline(always)]
    pub(super) fn suffix(&self, edge: &Edge) -> Option<(u64, u64)> {
        let index = self.trie.leaf_index(edge);
        if self.trie.may_be_capped(index) && self.trie.keys_of_leaf(index) > 1 {
            return None;
        }
        let width = self.widths.width();
        let bits = Bits::new(self.suffixes, self.suffixes.len() as u64 * 8)?;
        let (hash, real) = self.widths.split(bits.get_bits(index * u64::from(width), width));
        Some((hash, real.checked_shr(self.widths.real - self.compared).unwrap_or(0)))
    }

    /// Real bits of a bound, as many as are compared.
    #[inline(always)]
    fn compared_of(&self, word: u64) -> u64 {
        super::suffix::top_bits(word, self.compared)
    }

    /// Whether the key of a leaf may be the probe's.
    #[inline(always)]
    pub(super) fn may_equal(&self, edge: &Edge, depth: usize, probe: &Probe<'_>) -> bool {
        if self.widths.width() == 0 {
            return true;
        }
        let Some((hash, real)) = self.suffix(edge) else { return true };
        real == self.compared_of(word_behind(probe.key(), depth))
            && (self.widths.hash == 0 || hash == self.widths.hash_of(probe.digest(self.seed)))
    }

    /// Whether the key of a leaf on the lower bound's path may meet it.
    #[inline(always)]
    pub(super) fn may_meet_lower(&self, edge: &Edge, depth: usize, lower: &[u8]) -> bool {
        self.compared == 0
            || self.suffix(edge).is_none_or(|(_, real)| real >= self.compared_of(word_behind(lower, depth)))
    }

    /// Whether the key of a leaf on the upper bound's path may meet it.
    #[inline(always)]
    pub(super) fn may_meet_upper(&self, edge: &Edge, depth: usize, upper: Upper<'_>) -> bool {
        let word = match upper {
            Upper::Open => return true,
            // All keys below the leaf begin with the bound.
            Upper::Excluded(key) if key.len() <= depth => return false,
            Upper::Included(key) | Upper::Excluded(key) => word_behind(key, depth),
            Upper::Prefix(prefix) => prefix_word_behind(prefix, depth),
        };
        self.compared == 0 || self.suffix(edge).is_none_or(|(_, real)| real <= self.compared_of(word))
    }

    /// Whether some key may lie in a range.
    #[inline(always)]
    pub(super) fn may_contain_range(&self, range: &KeyRange<'_>) -> bool {
        let lower = range.lower_bytes();
        let Some(upper) = range.upper_bytes() else {
            return self.trie.root().is_some_and(|root| self.has_from(root, 0, lower));
        };
        let shared = shared_bytes(lower, upper);
        let answer = match self.trie.walk(lower.get(..shared).unwrap_or_default()) {
            Walked::Nowhere => false,
            Walked::Leaf(edge, depth) => {
                self.may_meet_lower(&edge, depth, lower) && self.may_meet_upper(&edge, depth, range.upper)
            }
            Walked::Node(node) => match (lower.get(shared), upper.get(shared)) {
                (Some(low), Some(high)) => self.has_between(node, shared, range, (*low, *high)),
                (None, _) => {
                    let without_own = matches!(range.lower, Bound::Excluded(_));
                    self.has_up_to(node, shared, range.upper, without_own)
                }
                // Everything below begins with the upper bound, which is a prefix: otherwise the range is empty.
                (Some(_), None) => self.has_from(node, shared, lower),
            },
        };
        // Reversed bounds lead anywhere.
        answer && !range.is_empty()
    }

    /// At the node where the bounds part.
    #[inline(always)]
    fn has_between(&self, node: Node, depth: usize, range: &KeyRange<'_>, (low, high): (u8, u8)) -> bool {
        // A label between the bounds is cheaper to see than what lies below them.
        if self.trie.has_between(node, low, high) {
            return true;
        }
        if let Some(edge) = self.trie.find(node, low) {
            let lower = range.lower_bytes();
            let is_met = match self.trie.child(&edge) {
                Some(child) => self.has_from(child, depth + 1, lower),
                None => self.may_meet_lower(&edge, depth + 1, lower),
            };
            if is_met {
                return true;
            }
        }
        let Some(edge) = self.trie.find(node, high) else { return false };
        match self.trie.child(&edge) {
            Some(child) => self.has_up_to(child, depth + 1, range.upper, false),
            None => self.may_meet_upper(&edge, depth + 1, range.upper),
        }
    }

    /// Whether a key below a node on the lower bound's path may meet the bound.
    #[inline(always)]
    fn has_from(&self, mut node: Node, mut depth: usize, lower: &[u8]) -> bool {
        loop {
            // Below a node there is always a label, and its keys are longer than the bound.
            let Some(byte) = lower.get(depth) else { return true };
            let split = self.trie.split(node, *byte);
            if split.has_greater {
                return true;
            }
            let Some(edge) = split.edge else { return false };
            depth += 1;
            match self.trie.child(&edge) {
                Some(child) => node = child,
                None => return self.may_meet_lower(&edge, depth, lower),
            }
        }
    }

    /// Whether a key below a node on the upper bound's path may meet the bound; without the node's own key where the lower
    /// bound excludes it.
    #[inline(always)]
    fn has_up_to(&self, mut node: Node, mut depth: usize, upper: Upper<'_>, mut without_own: bool) -> bool {
        let (Upper::Included(bytes) | Upper::Excluded(bytes) | Upper::Prefix(bytes)) = upper else {
            return true;
        };
        loop {
            let has_own = !without_own && self.trie.is_prefix_key(&node);
            let Some(byte) = bytes.get(depth) else {
                return match upper {
                    Upper::Included(_) => has_own,
                    Upper::Excluded(_) => false,
                    Upper::Open | Upper::Prefix(_) => true,
                };
            };
            if has_own {
                return true;
            }
            let split = self.trie.split(node, *byte);
            if split.has_smaller {
                return true;
            }
            let Some(edge) = split.edge else { return false };
            depth += 1;
            without_own = false;
            match self.trie.child(&edge) {
                Some(child) => node = child,
                None => return self.may_meet_upper(&edge, depth, upper),
            }
        }
    }
}

/// The walk of a point, compiled for the processor.
pub(super) struct PointWalk<'a, 'p>(pub(super) View<'a>, pub(super) &'p Probe<'p>);

impl kernel::Task for PointWalk<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> bool {
        self.0.with(steps).may_contain(self.1)
    }
}

/// The walks of a range, compiled for the processor.
pub(super) struct RangeWalk<'a, 'p>(pub(super) View<'a>, pub(super) &'p KeyRange<'p>);

impl kernel::Task for RangeWalk<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> bool {
        self.0.with(steps).may_contain_range(self.1)
    }
}
