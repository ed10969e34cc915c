//! What is left of the keys of an index behind their leaves: one byte sequence, in the order of the leaves.
//!
//! ```text
//! groups   for 32 leaves: u32 short bytes before the group; then as many u32 as lengths have bits: bit i of each length, leaf by leaf
//! short    the tails of at most 14 bytes; for each longer one 15 bytes: u64 where it begins among the long ones, u32 its length, zeros
//! long     the tails of at least 15 bytes
//! ```
//!
//! Lengths have as many bits as the greatest of them needs, 4 at most. A tail costs a line of the groups and one of its own, where a step
//! for each of its bytes would cost a line each.

/// Leaves of a group.
const GROUP_LEAVES: usize = 32;
/// Bytes of what lies before a group, and of one bit of its lengths.
const WORD_BYTES: usize = 4;
/// Most bits of a length.
const LENGTH_BITS_MAX: usize = 4;
/// The length that stands for a long tail, and the bytes that say where it is.
const LONG: usize = 15;

/// The tails of an encoded index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tails<'a> {
    groups: &'a [[u8; WORD_BYTES]],
    short: &'a [u8],
    long: &'a [u8],
    length_bits: usize,
}

/// The lengths of the three parts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TailLayout {
    group_bytes: usize,
    short_bytes: usize,
    long_bytes: usize,
    length_bits: usize,
}

/// What tails leave to be known of them by others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TailCounts {
    pub(super) short_bytes: u32,
    pub(super) long_bytes: u64,
    pub(super) length_bits: u8,
}

impl TailLayout {
    /// `None` for what no builder writes, and beyond the address space.
    pub(super) fn new(leaf_count: u64, counts: TailCounts) -> Option<Self> {
        let length_bits = usize::from(counts.length_bits);
        let group_count = usize::try_from(leaf_count).ok()?.div_ceil(GROUP_LEAVES);
        (length_bits <= LENGTH_BITS_MAX).then_some(Self {
            group_bytes: group_count.checked_mul((1 + length_bits) * WORD_BYTES)?,
            short_bytes: counts.short_bytes as usize,
            long_bytes: usize::try_from(counts.long_bytes).ok()?,
            length_bits,
        })
    }

    /// Bytes of all parts, filled up to a multiple of 8.
    pub(super) fn bytes(&self) -> Option<usize> {
        let parts = self.group_bytes.checked_add(self.short_bytes)?.checked_add(self.long_bytes)?;
        parts.checked_next_multiple_of(8)
    }
}

impl<'a> Tails<'a> {
    /// The tails at the front of some bytes; none where the bytes are too few.
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], layout: &TailLayout) -> Self {
        let (groups, rest) = bytes.split_at_checked(layout.group_bytes).unwrap_or_default();
        let (short, rest) = rest.split_at_checked(layout.short_bytes).unwrap_or_default();
        let long = rest.get(..layout.long_bytes).unwrap_or_default();
        Self { groups: groups.as_chunks().0, short, long, length_bits: layout.length_bits }
    }

    /// Where the short tail of a leaf begins, or what leads to a long one; and its length.
    #[inline(always)]
    fn place(&self, leaf: u64) -> Option<(usize, usize)> {
        let (words, bit) = (1 + self.length_bits, leaf as u32 % GROUP_LEAVES as u32);
        let group = self.groups.get(leaf as usize / GROUP_LEAVES * words..)?.get(..words)?;
        let (base, planes) = group.split_first()?;
        let (mut before, mut length) = (0, 0);
        for (weight, plane) in planes.iter().enumerate() {
            let plane = u32::from_le_bytes(*plane);
            before += (plane & ((1 << bit) - 1)).count_ones() << weight;
            length |= (plane >> bit & 1) << weight;
        }
        Some((u32::from_le_bytes(*base) as usize + before as usize, length as usize))
    }

    /// The tail of a leaf.
    #[inline(always)]
    pub(super) fn get(&self, leaf: u64) -> &'a [u8] {
        let Some((start, length)) = self.place(leaf) else { return &[] };
        let tail = self.short.get(start..start + length).unwrap_or_default();
        if length == LONG { long_tail(tail, self.long) } else { tail }
    }

    /// Whether the tail of a leaf is what a key has from `depth` on.
    #[inline(always)]
    pub(super) fn is_rest_of(&self, leaf: u64, key: &[u8], depth: usize) -> bool {
        let Some((start, length)) = self.place(leaf) else { return false };
        if length < LONG && key.len() != depth + length {
            return false;
        }
        // Mostly the tail is a word with what follows it, and the last bytes of the key are one.
        if length <= 8
            && let Some(word) = self.short.get(start..).and_then(|rest| rest.first_chunk())
            && let Some(end) = key.last_chunk()
        {
            let differs =
                u64::from_be_bytes(*word) ^ u64::from_be_bytes(*end) << (8 * (8 - length) as u32 % 64);
            return length == 0 || differs >> (64 - 8 * length as u32) == 0;
        }
        key.get(depth..) == Some(self.get(leaf))
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

/// Tails in the order of keys.
#[derive(Debug, Default)]
pub(super) struct TailBuilder {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl TailBuilder {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new() }
    }

    /// The tail of the next key.
    #[inline(always)]
    pub(super) fn push(&mut self, tail: &[u8]) {
        self.bytes.extend_from_slice(tail);
        self.ends.push(self.bytes.len());
    }

    /// The tail of the key of a number.
    fn get(&self, ordinal: u64) -> &[u8] {
        let ordinal = ordinal as usize;
        let start = ordinal.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(ordinal).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Bytes held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// The longest tail.
    fn length_max(&self) -> usize {
        let starts = [0].iter().chain(&self.ends);
        self.ends.iter().zip(starts).map(|(end, start)| end - start).max().unwrap_or(0)
    }

    /// Appends the tails of the keys of some numbers, in the order of their leaves. `None` beyond 4 GiB.
    pub(super) fn encode(
        &self,
        target: &mut Vec<u8>,
        leaves: impl Iterator<Item = u64>,
    ) -> Option<TailCounts> {
        let length_bits = (usize::BITS - self.length_max().min(LONG).leading_zeros()) as usize;
        let (mut short, mut long): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut group = [0_u32; 1 + LENGTH_BITS_MAX];
        let close = |target: &mut Vec<u8>, group: &[u32]| {
            target.extend(group.iter().take(1 + length_bits).flat_map(|word| word.to_le_bytes()));
        };
        let mut count = 0;
        for tail in leaves.map(|ordinal| self.get(ordinal)) {
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
        target.resize(target.len().next_multiple_of(8), 0);
        Some(TailCounts {
            short_bytes: u32::try_from(short.len()).ok()?,
            long_bytes: long.len() as u64,
            length_bits: length_bits as u8,
        })
    }
}

#[cfg(test)]
mod tests;
