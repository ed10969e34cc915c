//! The range of a query of SlateDB, with its prefix.
//!
//! SlateDB asks for a scan of a prefix, or of a part of it, by the bounds of the scan: from `sensor/1` to before `sensor/2`.
//! Filters of prefixes reject a range only if all of its keys have one prefix, which these bounds do not show. So an upper
//! bound that ends a prefix of the lower bound becomes this prefix: the same keys, no copy.

use std::ops::Bound;

use slatedb::bytes::Bytes;
use tamis_filter::{KeyRange, Upper};

/// The bytes of a bound.
pub(crate) fn bytes_of(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    bound.as_ref().map(AsRef::as_ref)
}

/// The range between two bounds; its upper end is a prefix of the lower bound, if all of its keys have this prefix.
pub(crate) fn key_range<'a>(lower: Bound<&'a [u8]>, upper: Bound<&'a [u8]>) -> KeyRange<'a> {
    let mut range = KeyRange::new(lower, upper);
    if let Some(prefix) = common_prefix(range.lower_bytes(), upper) {
        range.upper = Upper::Prefix(prefix);
    }
    range
}

/// The longest prefix of the lower bound after whose last key the range ends. A prefix and the same prefix with bytes 0xff after it
/// end at the same key.
fn common_prefix<'a>(lower: &'a [u8], upper: Bound<&[u8]>) -> Option<&'a [u8]> {
    let least = match upper {
        Bound::Included(_) => return None,
        Bound::Excluded(upper) => {
            let (last, head) = upper.split_last()?;
            let previous = last.checked_sub(1)?;
            (lower.strip_prefix(head)?.first() == Some(&previous)).then_some(upper.len())?
        }
        Bound::Unbounded => 0,
    };
    let greatest_bytes = lower.iter().skip(least).take_while(|byte| **byte == 0xff).count();
    lower.get(..least + greatest_bytes).filter(|prefix| !prefix.is_empty())
}

#[cfg(test)]
mod tests;
