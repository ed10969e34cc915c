//! Points and ranges: walks from the root that end as soon as the answer is certain.
//!
//! Both bounds of a range are followed together as long as they share bytes. Where they diverge, any label strictly
//! between them decides for `true`; otherwise one walk searches a key at or above the lower bound along its path, and
//! one a key at or below the upper bound along its path. A leaf on the path of a bound is decided by its suffix; if
//! that is not sufficient, the answer is `true`.

use std::ops::Bound;

use tamis_bits::kernel::{Portable, Steps};

use super::suffix::{SuffixBits, prefix_word_after, word_after};
use crate::trie::{Divergence, Edge, Leaf, Node, Trie, WalkResult, shared_bytes};
use crate::{KeyRange, Probe, Upper};

/// The trie and the suffixes in the bytes of a filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a, S = Portable> {
    pub(super) trie: Trie<'a, S>,
    pub(super) widths: SuffixBits,
    /// Number of real bits to compare, at most the stored number: fewer give the answers of a shorter suffix.
    pub(super) compared: u32,
    pub(super) seed: u64,
}

impl<'a> View<'a> {
    /// The same view with steps for another instruction set.
    #[inline(always)]
    pub(super) fn with<S: Steps>(self, steps: S) -> View<'a, S> {
        let Self { trie, widths, compared, seed } = self;
        View { trie: trie.with(steps), widths, compared, seed }
    }
}

/// Whether no byte string is in a range whose bounds share exactly `shared` bytes: usually the next bytes decide.
#[inline(always)]
fn is_empty(range: &KeyRange<'_>, shared: usize) -> bool {
    let upper = range.upper_bytes().and_then(|upper| upper.get(shared));
    match (range.lower_bytes().get(shared), upper) {
        (Some(low), Some(high)) => low > high,
        _ => range.is_empty(),
    }
}

/// Whether all keys below a leaf on the upper bound's path begin with the bound and are above it.
#[inline(always)]
fn is_at_end(depth: usize, upper: Upper<'_>) -> bool {
    matches!(upper, Upper::Excluded(key) if key.len() <= depth)
}

impl<S: Steps> View<'_, S> {
    #[inline(always)]
    pub(super) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        match self.trie.walk(probe.key()) {
            WalkResult::Absent => false,
            WalkResult::Node(node) => self.trie.is_prefix_key(&node),
            WalkResult::Leaf(leaf, depth) => self.may_equal(leaf, depth, probe),
        }
    }

    /// The compared real bits of a leaf; `None` if it represents several keys and so has none.
    #[inline(always)]
    pub(super) fn real_bits(&self, leaf: Leaf) -> Option<u64> {
        let field = self.field_at(self.trie.leaf_number(leaf))?;
        // Bits are compared only if some are stored.
        Some(if self.compared == 0 { 0 } else { field << (64 - self.widths.real) >> (64 - self.compared) })
    }

    /// The stored bits of a leaf, with bits after them; `None` if it represents several keys and so has none.
    #[inline(always)]
    fn field_at(&self, index: u64) -> Option<u64> {
        if self.trie.has_several_keys(index) {
            return None;
        }
        let width = self.widths.width();
        // The trailer follows the suffixes: there are always eight bytes.
        let bit = index * u64::from(width);
        let rest = self.trie.bytes.get(self.trie.layout.leaves + (bit / 8) as usize..)?;
        let shift = (bit % 8) as u32;
        let mut field = u64::from_le_bytes(*rest.first_chunk()?) >> shift;
        if shift + width > 64 {
            field |= u64::from(*rest.get(8)?) << (64 - shift);
        }
        Some(field)
    }

    /// The compared real bits of a bound.
    #[inline(always)]
    fn compared_of(&self, word: u64) -> u64 {
        super::suffix::top_bits(word, self.compared)
    }

    /// Whether the key of a leaf may be the probe's.
    #[inline(always)]
    fn may_equal(&self, leaf: Leaf, depth: usize, probe: &Probe<'_>) -> bool {
        if self.widths.width() == 0 {
            return true;
        }
        let Some(field) = self.field_at(self.trie.leaf_number(leaf)) else { return true };
        let SuffixBits { hash, real } = self.widths;
        if self.compared != 0 {
            // Both begin at the highest bit: differences below the compared bits are ignored.
            let difference = field << (64 - real) ^ word_after(probe.key(), depth);
            if difference >> (64 - self.compared) != 0 {
                return false;
            }
        }
        hash == 0 || (field >> real << (64 - hash) ^ probe.digest(self.seed)) >> (64 - hash) == 0
    }

    /// Whether the key of a leaf on the lower bound's path may meet the bound.
    #[inline(always)]
    pub(super) fn may_meet_lower(&self, edge: &Edge, depth: usize, lower: &[u8]) -> bool {
        self.compared == 0
            || self.may_have_real(edge.leaf(), self.compared_of(word_after(lower, depth)), u64::MAX)
    }

    /// Whether the real bits of a leaf are between two others.
    #[inline(always)]
    fn may_have_real(&self, leaf: Leaf, from: u64, up_to: u64) -> bool {
        self.real_bits(leaf).is_none_or(|real| from <= real && real <= up_to)
    }

    /// The greatest real bits of a leaf on the upper bound's path whose key may meet the bound.
    #[inline(always)]
    fn upper_bits(&self, depth: usize, upper: Upper<'_>) -> u64 {
        self.compared_of(match upper {
            Upper::Open => u64::MAX,
            Upper::Included(key) | Upper::Excluded(key) => word_after(key, depth),
            Upper::Prefix(prefix) => prefix_word_after(prefix, depth),
        })
    }

    /// Whether the key of a leaf on the upper bound's path may meet the bound.
    #[inline(always)]
    pub(super) fn may_meet_upper(&self, edge: &Edge, depth: usize, upper: Upper<'_>) -> bool {
        !is_at_end(depth, upper)
            && (self.compared == 0 || self.may_have_real(edge.leaf(), 0, self.upper_bits(depth, upper)))
    }

    /// Whether the key of a leaf on the path of both bounds may be between them; reads its suffix once.
    #[inline(always)]
    fn may_be_between(&self, leaf: Leaf, depth: usize, lower: &[u8], upper: Upper<'_>) -> bool {
        if is_at_end(depth, upper) || self.compared == 0 {
            return !is_at_end(depth, upper);
        }
        let lowest = self.compared_of(word_after(lower, depth));
        self.may_have_real(leaf, lowest, self.upper_bits(depth, upper))
    }

    /// Whether a key may be in a range.
    #[inline(always)]
    pub(super) fn may_contain_range(&self, range: &KeyRange<'_>) -> bool {
        let lower = range.lower_bytes();
        let shared = range.upper_bytes().map_or(0, |upper| shared_bytes(lower, upper));
        let Some(path) = lower.get(..shared) else { return true };
        let node = match self.trie.walk(path) {
            WalkResult::Absent => return false,
            WalkResult::Leaf(leaf, depth) => {
                return self.may_be_between(leaf, depth, lower, range.upper) && !is_empty(range, shared);
            }
            WalkResult::Node(node) => node,
        };
        let upper = range.upper_bytes().and_then(|upper| upper.get(shared));
        match (lower.get(shared), upper) {
            // A label between the bounds is cheaper to find than a key below them.
            (Some(low), Some(high)) if low < high => {
                self.may_contain_below(self.trie.divergence(node, *low, *high), shared + 1, range)
            }
            (Some(_), Some(_)) => false,
            (None, _) => {
                let without_own = matches!(range.lower, Bound::Excluded(_));
                self.has_up_to(node, shared, range.upper, without_own) && !range.is_empty()
            }
            // Everything below begins with the upper bound: the range is empty unless the bound is open or a prefix.
            (Some(_), None) => self.has_from(node, shared, lower) && !range.is_empty(),
        }
    }

    /// Whether a key may be between two bounds that diverge at a node, at the byte before `depth`.
    #[inline(always)]
    fn may_contain_below(&self, divergence: Divergence, depth: usize, range: &KeyRange<'_>) -> bool {
        if divergence.has_between {
            return true;
        }
        if let Some(edge) = divergence.low
            && self.has_at_or_after(&edge, depth, range.lower_bytes())
        {
            return true;
        }
        match divergence.high {
            Some(edge) => self.has_at_or_before(&edge, depth, range.upper),
            None => false,
        }
    }

    /// Whether a key below a label on the lower bound's path may meet the bound.
    #[inline(always)]
    fn has_at_or_after(&self, edge: &Edge, depth: usize, lower: &[u8]) -> bool {
        // A node has at least one label, and its keys are longer than the bound.
        if edge.has_child && depth >= lower.len() {
            return true;
        }
        match self.trie.child(edge) {
            Some(child) => self.has_from(child, depth, lower),
            None => self.may_meet_lower(edge, depth, lower),
        }
    }

    /// Whether a key below a node on the lower bound's path may meet the bound.
    #[inline(always)]
    fn has_from(&self, mut node: Node, mut depth: usize, lower: &[u8]) -> bool {
        loop {
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

    /// Whether a key below a label on the upper bound's path may meet the bound.
    #[inline(always)]
    fn has_at_or_before(&self, edge: &Edge, depth: usize, upper: Upper<'_>) -> bool {
        match self.trie.child(edge) {
            Some(child) => self.has_up_to(child, depth, upper, false),
            None => self.may_meet_upper(edge, depth, upper),
        }
    }

    /// Whether a key below a node on the upper bound's path may meet the bound. `without_own`: the lower bound excludes
    /// the node's own key.
    #[inline(always)]
    fn has_up_to(&self, mut node: Node, mut depth: usize, upper: Upper<'_>, mut without_own: bool) -> bool {
        let (Upper::Included(bytes) | Upper::Excluded(bytes) | Upper::Prefix(bytes)) = upper else {
            return true;
        };
        loop {
            let Some(byte) = bytes.get(depth) else {
                return match upper {
                    Upper::Included(_) => !without_own && self.trie.is_prefix_key(&node),
                    Upper::Excluded(_) => false,
                    Upper::Open | Upper::Prefix(_) => true,
                };
            };
            // Labels are cheaper to test than whether the node is a key.
            let split = self.trie.split(node, *byte);
            if split.has_smaller || !without_own && self.trie.is_prefix_key(&node) {
                return true;
            }
            let Some(edge) = split.edge else { return false };
            (depth, without_own) = (depth + 1, false);
            match self.trie.child(&edge) {
                Some(child) => node = child,
                None => return self.may_meet_upper(&edge, depth, upper),
            }
        }
    }
}
