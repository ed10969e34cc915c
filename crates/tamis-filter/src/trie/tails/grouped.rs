//! Tails of any lengths.
//!
//! ```text
//! groups   for 32 leaves: u32 short bytes before the group; then as many u32 as lengths have bits: bit i of each length, leaf by leaf
//! short    the tails of at most 14 bytes; for each longer one 15 bytes: u64 where it begins among the long ones, u32 its length, zeros
//! long     the tails of at least 15 bytes
//! ```
//!
//! Lengths have as many bits as the greatest of them needs, 4 at most. A tail costs a line of the groups and one of its own, where a step
//! for each of its bytes would cost a line each.

use super::{Slot, TailCounts};

/// Leaves of a group.
const GROUP_LEAVES: usize = 32;
/// Bytes of what lies before a group, and of one bit of its lengths.
const WORD_BYTES: usize = 4;
/// Two planes of a word: what is multiplied by this is in both.
const PLANES: u64 = 1 << 32 | 1;
/// Most bits of a length.
const LENGTH_BITS_MAX: usize = 4;
/// The length that stands for a long tail, and the bytes that say where it is.
const LONG: usize = 15;

/// The lengths of the three parts.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct GroupLayout {
    group_bytes: usize,
    short_bytes: usize,
    long_bytes: usize,
    length_bits: usize,
    /// Of short tails, in parts of 256.
    mean_length: u64,
    /// The bits of the planes that there are.
    plane_mask: u128,
}

/// Bits of lengths of which this is the greatest.
fn length_bits(length_max: usize) -> usize {
    (usize::BITS - length_max.min(LONG).leading_zeros()) as usize
}

/// Bytes of the groups of so many leaves, given the longest tail.
pub(super) fn group_bytes(leaf_count: usize, length_max: usize) -> usize {
    leaf_count.div_ceil(GROUP_LEAVES) * (1 + length_bits(length_max)) * WORD_BYTES
}

impl GroupLayout {
    pub(super) fn new(leaf_count: u64, counts: TailCounts) -> Option<Self> {
        let length_bits = usize::from(counts.length_bits);
        if length_bits > LENGTH_BITS_MAX {
            return None;
        }
        let group_count = usize::try_from(leaf_count).ok()?.div_ceil(GROUP_LEAVES);
        Some(Self {
            group_bytes: group_count.checked_mul((1 + length_bits) * WORD_BYTES)?,
            short_bytes: counts.short_bytes as usize,
            long_bytes: usize::try_from(counts.long_bytes).ok()?,
            length_bits,
            mean_length: (u64::from(counts.short_bytes) << 8).checked_div(leaf_count).unwrap_or(0),
            plane_mask: u128::MAX.checked_shr(128 - 32 * u32::from(counts.length_bits)).unwrap_or(0),
        })
    }

    pub(super) fn bytes(&self) -> Option<usize> {
        self.group_bytes.checked_add(self.short_bytes)?.checked_add(self.long_bytes)
    }

    /// Where the group of a leaf begins.
    #[inline(always)]
    pub(super) const fn group_start(&self, leaf: u64) -> usize {
        leaf as usize / GROUP_LEAVES * ((1 + self.length_bits) * WORD_BYTES)
    }

    /// About where the short tail of about a leaf begins: as far behind the first of its group as tails of mean length reach.
    #[inline(always)]
    pub(super) fn place_near(&self, bytes: &[u8], leaf: u64) -> Option<usize> {
        let base = bytes.get(self.group_start(leaf)..)?.first_chunk::<WORD_BYTES>()?;
        let inside = (leaf % GROUP_LEAVES as u64 * self.mean_length) >> 8;
        Some(self.group_bytes + u32::from_le_bytes(*base) as usize + inside as usize)
    }

    /// Where the short tail of a leaf begins among them, or what leads to a long one; and its length.
    #[inline(always)]
    fn place(&self, bytes: &[u8], leaf: u64) -> Option<(usize, usize)> {
        let (start, bit) = (self.group_start(leaf), leaf as u32 % GROUP_LEAVES as u32);
        if start >= self.group_bytes {
            return None;
        }
        // Behind a group there is always more, and what lengths have no bits for is masked away.
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

    #[inline(always)]
    pub(super) fn slot<'a>(&self, bytes: &'a [u8], leaf: u64) -> Option<Slot<'a>> {
        let (start, length) = self.place(bytes, leaf)?;
        let end = self.group_bytes + self.short_bytes;
        let rest = bytes.get(..end)?.get(self.group_bytes + start..)?;
        if length == LONG {
            Some(Slot::Long(long_tail(rest, bytes.get(end..)?.get(..self.long_bytes)?)))
        } else {
            Some(Slot::Here(rest, length))
        }
    }
}

#[cold]
fn long_tail<'a>(slot: &[u8], long: &'a [u8]) -> &'a [u8] {
    let place = slot.split_first_chunk::<8>().and_then(|(start, rest)| {
        let start = usize::try_from(u64::from_le_bytes(*start)).ok()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        Some(start..start.checked_add(length)?)
    });
    place.and_then(|place| long.get(place)).unwrap_or_default()
}

/// Appends tails in the order of their leaves. `None` beyond 4 GiB.
pub(super) fn encode<'t>(
    target: &mut Vec<u8>,
    tails: impl Iterator<Item = &'t [u8]>,
    length_max: usize,
) -> Option<TailCounts> {
    let length_bits = length_bits(length_max);
    let (mut short, mut long): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut group = [0_u32; 1 + LENGTH_BITS_MAX];
    let close = |target: &mut Vec<u8>, group: &[u32]| {
        target.extend(group.iter().take(1 + length_bits).flat_map(|word| word.to_le_bytes()));
    };
    let mut count = 0;
    for tail in tails {
        if count == GROUP_LEAVES {
            close(target, &group);
            (group, count) = ([u32::try_from(short.len()).ok()?, 0, 0, 0, 0], 0);
        }
        let length = tail.len().min(LONG);
        if length < LONG {
            short.extend_from_slice(tail);
        } else {
            short.extend_from_slice(&(long.len() as u64).to_le_bytes());
            short.extend_from_slice(&u32::try_from(tail.len()).ok()?.to_le_bytes());
            short.extend_from_slice(&[0; 3]);
            long.extend_from_slice(tail);
        }
        for (weight, plane) in group.iter_mut().skip(1).enumerate() {
            *plane |= (length as u32 >> weight & 1) << count;
        }
        count += 1;
    }
    if count > 0 {
        close(target, &group);
    }
    target.extend_from_slice(&short);
    target.extend_from_slice(&long);
    Some(TailCounts {
        short_bytes: u32::try_from(short.len()).ok()?,
        long_bytes: long.len() as u64,
        length_bits: length_bits as u8,
    })
}
