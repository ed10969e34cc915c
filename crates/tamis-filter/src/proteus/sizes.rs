//! The size of the set of all prefixes of one length, in the form that is built. It follows from the counts of the prefixes, the least and the
//! greatest.

use tamis_bits::{bitmap, elias_fano};

use super::design::SetForm;
use super::layout::{LEVEL_BYTES, trie_overhead};
use crate::KeySet;
use crate::prefix_counts::PrefixCounts;
use crate::trie::{LevelCounts, level_bytes};

/// A bitmap is preferred if it is larger than Elias-Fano numbers by at most this fraction: a lookup reads one bit.
const BITMAP_EXCESS: u64 = 8;

/// A form and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SetSize {
    pub(super) form: SetForm,
    pub(super) bytes: u64,
}

/// The form of the prefixes of `depth` bits (at least 1): the smallest, or a bitmap that is not much larger.
pub(super) fn set_size(keys: &KeySet, counts: &PrefixCounts, depth: u32) -> Option<SetSize> {
    let integers = integer_size(keys, counts.at(depth), depth);
    let trie = trie_size(&counts.trie_levels(depth), depth);
    trie.filter(|trie| integers.is_none_or(|integers| trie.bytes < integers.bytes)).or(integers)
}

/// The smaller of the integer forms for a number of prefixes; `None` for byte strings.
pub(super) fn integer_size(keys: &KeySet, count: u64, depth: u32) -> Option<SetSize> {
    keys.fixed()?;
    let shift = 64 - depth.clamp(1, 64);
    let end = |index: usize| keys.get(index).map(|key| tamis_bits::key_head(key) >> shift);
    let last = end(keys.len() - 1)? - end(0)?;
    let elias_fano = elias_fano_size(count, last);
    // A bitmap of more bits would be far larger.
    let is_dense = last / 8 <= count;
    let bitmap = is_dense.then(|| SetSize { form: SetForm::Bitmap, bytes: bitmap::encoded_bytes(last) });
    let is_worth_it = |bitmap: &SetSize| {
        elias_fano.is_none_or(|other| bitmap.bytes <= other.bytes + other.bytes / BITMAP_EXCESS)
    };
    bitmap.filter(is_worth_it).or(elias_fano)
}

/// With marks, unless these are useless.
fn elias_fano_size(count: u64, last: u64) -> Option<SetSize> {
    let size = |form, bytes| SetSize { form, bytes };
    if elias_fano::has_use_for_marks(count, last) {
        return elias_fano::encoded_marked_bytes(count, last)
            .map(|bytes| size(SetForm::MarkedEliasFano, bytes));
    }
    elias_fano::encoded_bytes(count, last).map(|bytes| size(SetForm::EliasFano, bytes))
}

/// The size of a trie with explicit bits at its lone branches.
fn trie_size(levels: &[LevelCounts], depth: u32) -> Option<SetSize> {
    let explicit = levels.iter().zip(1_u64..).map(|(level, bytes_above)| {
        (level.labels - level.children).saturating_mul(u64::from(depth).saturating_sub(bytes_above * 8))
    });
    let explicit_bytes = explicit.fold(0, u64::saturating_add).div_ceil(8);
    let tables = levels.len() as u64 * LEVEL_BYTES as u64;
    let bytes = level_bytes(levels)?.checked_add(explicit_bytes)? + tables + trie_overhead();
    Some(SetSize { form: SetForm::Trie, bytes })
}
