//! The windows at the bounds of a range, as far as they do not depend on the kind of windows: without a bound, and for bounds that do not
//! begin with the bytes that all keys share.

use std::ops::Bound;

use crate::Upper;

/// The least window at or behind a lower bound; `None` if there is none. `of_rest` rounds a bound without the shared bytes; its second argument
/// is whether the bound is excluded.
#[inline(always)]
pub(super) fn least_window(
    shared: &[u8],
    lower: Bound<&[u8]>,
    of_rest: impl FnOnce(&[u8], bool) -> Option<u64>,
) -> Option<u64> {
    let (bound, is_excluded) = match lower {
        Bound::Unbounded => return Some(0),
        Bound::Included(bound) => (bound, false),
        Bound::Excluded(bound) => (bound, true),
    };
    match bound.strip_prefix(shared) {
        Some(rest) => of_rest(rest, is_excluded),
        None => (bound < shared).then_some(0),
    }
}

/// The greatest window at or before an upper bound, of windows up to `greatest`; `None` if there is none. `of_rest` rounds a bound
/// without the shared bytes.
#[inline(always)]
pub(super) fn greatest_window(
    shared: &[u8],
    upper: Upper<'_>,
    greatest: u64,
    of_rest: impl FnOnce(&[u8]) -> Option<u64>,
) -> Option<u64> {
    let bound = match upper {
        Upper::Open => return Some(greatest),
        Upper::Prefix(bound) if shared.starts_with(bound) => return Some(greatest),
        Upper::Included(bound) | Upper::Excluded(bound) | Upper::Prefix(bound) => bound,
    };
    match bound.strip_prefix(shared) {
        Some(rest) => of_rest(rest),
        None => (bound > shared).then_some(greatest),
    }
}
