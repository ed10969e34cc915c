//! The size of the set of all prefixes of one length, in the form that is built.
//!
//! The sizes of the integer forms follow from the number of prefixes, the least and the greatest. The size of a trie takes a scan of the
//! keys. For integers it is estimated first: an upper bound that assumes no lone branches, then, of many keys, a sample of a sixteenth. The
//! keys are scanned only if the trie can still be the smallest form.

use tamis_bits::{bitmap, elias_fano};

use super::counts::{Counts, sampled_trie_levels};
use super::design::SetForm;
use super::keys::Keys;
use super::layout::{LEVEL_BYTES, trie_overhead};
use crate::trie::{LevelCounts, level_bytes};

/// Greatest ratio of the upper bound and of the sampled size to the true size; fewer keys than [`SAMPLED_KEYS`] are not sampled.
const ESTIMATE_EXCESS: f64 = 1.5;
const SAMPLED_EXCESS: f64 = 1.05;
const SAMPLED_KEYS: usize = 1 << 20;

/// A bitmap is preferred if it is larger than Elias-Fano numbers by at most this fraction: a lookup reads one bit.
const BITMAP_EXCESS: u64 = 8;

/// A form and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SetSize {
    pub(super) form: SetForm,
    pub(super) bytes: u64,
}

/// The form of the prefixes of `depth` bits (at least 1): the smallest, or a bitmap that is not much larger.
pub(super) fn set_size(keys: &Keys, counts: &Counts<'_>, depth: u32) -> Option<SetSize> {
    let Keys::Words(_, words) = keys else { return trie_size(&counts.trie_levels(keys, depth), depth) };
    let integers = integer_size(words, counts, depth);
    let estimate = trie_size(&estimated_levels(counts, depth), depth);
    match (integers, estimate) {
        (Some(integers), Some(estimate))
            if estimate.bytes as f64 <= integers.bytes as f64 * ESTIMATE_EXCESS
                && may_trie_be_smaller(words, counts, depth, integers.bytes) =>
        {
            let exact = trie_size(&counts.trie_levels(keys, depth), depth);
            exact.filter(|exact| exact.bytes < integers.bytes).or(Some(integers))
        }
        (Some(integers), _) => Some(integers),
        (None, _) => trie_size(&counts.trie_levels(keys, depth), depth),
    }
}

/// Whether a trie may take fewer than `bytes` bytes, by a sample of the keys.
fn may_trie_be_smaller(words: &[u64], counts: &Counts<'_>, depth: u32, bytes: u64) -> bool {
    if words.len() < SAMPLED_KEYS {
        return true;
    }
    let levels = sampled_trie_levels(words, depth, counts.prefixes.at(depth));
    let sampled = levels.and_then(|levels| trie_size(&levels, depth));
    sampled.is_none_or(|sampled| sampled.bytes as f64 <= bytes as f64 * SAMPLED_EXCESS)
}

/// The smaller of the integer forms.
pub(super) fn integer_size(words: &[u64], counts: &Counts<'_>, depth: u32) -> Option<SetSize> {
    whole_set_size(words, counts.prefixes.at(depth), depth)
}

/// [`integer_size`] for a known number of prefixes.
pub(super) fn whole_set_size(words: &[u64], count: u64, depth: u32) -> Option<SetSize> {
    let shift = 64 - depth.clamp(1, 64);
    let last = (words.last()? >> shift) - (words.first()? >> shift);
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

/// The levels of a trie without lone branches.
fn estimated_levels(counts: &Counts<'_>, depth: u32) -> Vec<LevelCounts> {
    let level = |index: u32| {
        let nodes = counts.prefixes.at(index * 8);
        let labels = counts.prefixes.at(depth.min(index * 8 + 8));
        let children = if index * 8 + 8 < depth { labels } else { 0 };
        LevelCounts { nodes, labels, children, prefix_keys: 0 }
    };
    (0..depth.div_ceil(8)).map(level).collect()
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
