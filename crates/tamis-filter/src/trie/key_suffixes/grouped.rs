//! Suffixes of any lengths.
//!
//! ```text
//! marks    per 128 leaves: u32 short bytes before the first of them
//! groups   per 32 leaves: u32 short bytes before the group; then one u32 per bit of lengths: bit i of each length, leaf by leaf
//! short    suffixes of at most 14 bytes; for each longer one 15 bytes: u64 its start among the long bytes, u32 its length, zeros
//! long     suffixes of at least 15 bytes
//! ```
//!
//! Lengths have as many bits as the greatest of them needs, at most 4. A suffix costs one cache line of the groups and one line
//! for itself; a step for each of its bytes would cost a line each. Marks are few enough to stay in the cache: they give the
//! approximate position of a suffix, so it is prefetched together with its group.

use tamis_bits::prefetch;

use super::{StoredSuffix, SuffixCounts, SuffixEncoding};

/// Leaves of a group.
const GROUP_LEAVES: usize = 32;
/// Leaves per mark: whole groups.
const MARK_LEAVES: usize = 4 * GROUP_LEAVES;
/// Bytes of a mark, of the start of a group, and of one bit plane of its lengths.
const WORD_BYTES: usize = 4;
/// A product with this has the other factor in both planes of a word.
const PLANES: u64 = 1 << 32 | 1;
/// Maximal number of bits of a length.
const LENGTH_BITS_MAX: usize = 4;
/// The stored length of a long suffix, and the bytes of its reference.
const LONG: usize = 15;

/// Starts of the parts, and the end of the last one.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct GroupedLayout {
    groups: usize,
    short: usize,
    long: usize,
    end: usize,
    length_bits: usize,
    /// Mean length of short suffixes, in units of 1/256.
    mean_length: u64,
    /// The bits of the stored planes.
    plane_mask: u128,
}

/// Bits of lengths up to this one.
fn length_bits(length_max: usize) -> usize {
    (usize::BITS - length_max.min(LONG).leading_zeros()) as usize
}

/// Bytes of marks and groups, given the number of leaves and the longest suffix.
pub(super) fn directory_bytes(leaf_count: usize, length_max: usize) -> usize {
    let group_words = leaf_count.div_ceil(GROUP_LEAVES) * (1 + length_bits(length_max));
    (leaf_count.div_ceil(MARK_LEAVES) + group_words) * WORD_BYTES
}

impl GroupedLayout {
    pub(super) fn new(leaf_count: u64, counts: SuffixCounts) -> Option<Self> {
        let length_bits = usize::from(counts.length_bits);
        if length_bits > LENGTH_BITS_MAX {
            return None;
        }
        let plane_mask = u128::MAX.checked_shr(128 - 32 * length_bits as u32).unwrap_or(0);
        let leaves = usize::try_from(leaf_count).ok()?;
        let groups = leaves.div_ceil(MARK_LEAVES).checked_mul(WORD_BYTES)?;
        let group_bytes = leaves.div_ceil(GROUP_LEAVES).checked_mul((1 + length_bits) * WORD_BYTES)?;
        let short = groups.checked_add(group_bytes)?;
        let long = short.checked_add(counts.short_bytes as usize)?;
        Some(Self {
            groups,
            short,
            long,
            end: long.checked_add(usize::try_from(counts.long_bytes).ok()?)?,
            length_bits,
            mean_length: (u64::from(counts.short_bytes) << 8).checked_div(leaf_count).unwrap_or(0),
            plane_mask,
        })
    }

    pub(super) const fn bytes(&self) -> usize {
        self.end
    }

    /// Start of the group of a leaf.
    #[inline(always)]
    const fn group_start(&self, leaf: u64) -> usize {
        self.groups + leaf as usize / GROUP_LEAVES * ((1 + self.length_bits) * WORD_BYTES)
    }

    /// Approximate start of the short suffix of a leaf: its mark, plus suffixes of mean length.
    #[inline(always)]
    fn place_near(&self, bytes: &[u8], leaf: u64) -> Option<usize> {
        let marks = bytes.get(..self.groups)?.as_chunks::<WORD_BYTES>().0;
        let mark = marks.get(leaf as usize / MARK_LEAVES)?;
        let inside = (leaf % MARK_LEAVES as u64 * self.mean_length) >> 8;
        Some(self.short + u32::from_le_bytes(*mark) as usize + inside as usize)
    }

    /// Start of the short suffix of a leaf among them (or of the reference to a long one), and its length.
    #[inline(always)]
    fn place(&self, bytes: &[u8], leaf: u64) -> Option<(usize, usize)> {
        let (start, bit) = (self.group_start(leaf), leaf as u32 % GROUP_LEAVES as u32);
        if start >= self.short {
            return None;
        }
        // At least 16 bytes follow a group; the mask removes the planes that are not stored.
        let (base, planes) = bytes.get(start..)?.split_first_chunk::<WORD_BYTES>()?;
        let planes = u128::from_le_bytes(*planes.first_chunk()?) & self.plane_mask;
        let (mut before, mut length) = (0, 0);
        for (weight, word) in [(0, planes as u64), (2, (planes >> 64) as u64)] {
            let below = word & (((1 << bit) - 1) * PLANES);
            before += (below.count_ones() + (below >> 32).count_ones()) << weight;
            length |= (word >> bit & 1 | word >> (bit + 31) & 2) << weight;
        }
        Some((u32::from_le_bytes(*base) as usize + before as usize, length as usize))
    }
}

impl SuffixEncoding for GroupedLayout {
    const IS_IN_LEAF_ORDER: bool = true;

    #[inline(always)]
    fn slot<'a>(&self, bytes: &'a [u8], leaf: u64, _: usize) -> Option<StoredSuffix<'a>> {
        let (start, length) = self.place(bytes, leaf)?;
        let rest = bytes.get(self.short..self.long)?.get(start..)?;
        Some(if length == LONG {
            StoredSuffix { suffix: long_suffix(rest, bytes.get(self.long..self.end)?), length: None }
        } else {
            StoredSuffix { suffix: rest, length: Some(length) }
        })
    }

    #[inline(always)]
    fn prefetch(&self, bytes: &[u8], leaf: u64) {
        prefetch(bytes, self.group_start(leaf));
    }

    #[inline(always)]
    fn prefetch_near(&self, bytes: &[u8], leaf: u64, _: usize) {
        if let Some(start) = self.place_near(bytes, leaf) {
            super::prefetch_both_sides(bytes, start);
        }
    }
}

#[cold]
fn long_suffix<'a>(slot: &[u8], long: &'a [u8]) -> &'a [u8] {
    let place = slot.split_first_chunk::<8>().and_then(|(start, rest)| {
        let start = usize::try_from(u64::from_le_bytes(*start)).ok()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        Some(start..start.checked_add(length)?)
    });
    place.and_then(|place| long.get(place)).unwrap_or_default()
}

/// Appends suffixes in the order of their leaves. `None` beyond 4 GiB.
pub(super) fn encode<'t>(
    target: &mut Vec<u8>,
    suffixes: impl Iterator<Item = &'t [u8]>,
    length_max: usize,
) -> Option<SuffixCounts> {
    let length_bits = length_bits(length_max);
    let (mut short, mut long): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut group = [0_u32; 1 + LENGTH_BITS_MAX];
    let close = |target: &mut Vec<u8>, group: &[u32]| {
        target.extend(group.iter().take(1 + length_bits).flat_map(|word| word.to_le_bytes()));
    };
    let (mut marks, mut groups) = (Vec::new(), Vec::new());
    let mut count = 0;
    for (leaf, suffix) in suffixes.enumerate() {
        let start = u32::try_from(short.len()).ok()?;
        if leaf % MARK_LEAVES == 0 {
            marks.extend_from_slice(&start.to_le_bytes());
        }
        if count == GROUP_LEAVES {
            close(&mut groups, &group);
            (group, count) = ([start, 0, 0, 0, 0], 0);
        }
        let length = suffix.len().min(LONG);
        if length < LONG {
            short.extend_from_slice(suffix);
        } else {
            let next = short.len() + LONG;
            short.extend_from_slice(&(long.len() as u64).to_le_bytes());
            short.extend_from_slice(&u32::try_from(suffix.len()).ok()?.to_le_bytes());
            short.resize(next, 0);
            long.extend_from_slice(suffix);
        }
        for (weight, plane) in group.iter_mut().skip(1).enumerate() {
            *plane |= (length as u32 >> weight & 1) << count;
        }
        count += 1;
    }
    if count > 0 {
        close(&mut groups, &group);
    }
    [&marks, &groups, &short, &long].iter().for_each(|part| target.extend_from_slice(part));
    Some(SuffixCounts {
        short_bytes: u32::try_from(short.len()).ok()?,
        long_bytes: long.len() as u64,
        length_bits: length_bits as u8,
    })
}
