//! The number of keys in a range: exact except for the leaves on the paths of the bounds.

use std::ops::Bound;

use super::walk::View;
use crate::trie::{Edge, Side, count_between};
use crate::{Count, KeyRange, Upper};

impl View<'_> {
    /// Keys in a range that is not empty by its bounds. The error is at most the number of keys of the leaves on the
    /// paths of both bounds whose suffix does not decide: 2 if the height is not capped.
    pub(super) fn count(&self, range: &KeyRange<'_>) -> Count {
        let lower = match range.lower {
            Bound::Unbounded => (&b""[..], Side::Before),
            Bound::Included(key) => (key, Side::Before),
            Bound::Excluded(key) => (key, Side::After),
        };
        let upper = match range.upper {
            Upper::Open => (&b""[..], Side::AfterPrefix),
            Upper::Included(key) => (key, Side::After),
            Upper::Excluded(key) => (key, Side::Before),
            Upper::Prefix(key) => (key, Side::AfterPrefix),
        };
        let Some((between, lower_end, upper_end)) = count_between(&self.trie, lower, upper) else {
            return Count { keys: 0, error_max: 0 };
        };
        let keys_of = |edge: &Edge| self.trie.keys_of_leaf(self.trie.leaf_index(edge));
        let (mut keys, mut error_max) = (between, 0_u64);
        // A leaf on the path of a bound is not counted between the bounds. It is added at the upper bound unless it is
        // certainly above it, and subtracted at the lower bound if it is certainly below it.
        if let Some((edge, depth)) = &upper_end.tie
            && self.may_meet_upper(edge, *depth, range.upper)
        {
            keys = keys.saturating_add(keys_of(edge));
            let is_certain = matches!(range.upper, Upper::Prefix(prefix) if prefix.len() <= *depth);
            error_max = if is_certain { 0 } else { keys_of(edge) };
        }
        if let Some((edge, depth)) = &lower_end.tie {
            if !self.may_meet_lower(edge, *depth, lower.0) {
                keys = keys.saturating_sub(keys_of(edge));
            } else if lower.0.len() > *depth || lower.1 == Side::After {
                error_max = error_max.saturating_add(keys_of(edge));
            }
        }
        Count { keys, error_max }
    }
}
