//! What is left of the keys of an index behind their leaves: one byte sequence, in the order of the leaves.
//!
//! ```text
//! groups   20 bytes for 32 leaves: u32 short bytes before the group, then 32 lengths of 4 bits
//! short    the tails of at most 14 bytes; for each longer one 15 bytes: u64 where it begins among the long ones, u32 its length, zeros
//! long     the tails of at least 15 bytes
//! ```
//!
//! A tail costs a line of the groups and one of its own, where a step for each of its bytes would cost a line each.

/// Leaves of a group.
const GROUP_LEAVES: usize = 32;
/// Bytes of a group.
const GROUP_BYTES: usize = 20;
/// The length that stands for a long tail, and the bytes that say where it is.
const LONG: usize = 15;

/// The tails of an encoded index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tails<'a> {
    groups: &'a [[u8; GROUP_BYTES]],
    short: &'a [u8],
    long: &'a [u8],
}

/// The lengths of the three parts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TailLayout {
    group_bytes: usize,
    short_bytes: usize,
    long_bytes: usize,
}

impl TailLayout {
    /// `None` beyond the address space.
    pub(super) fn new(leaf_count: u64, short_bytes: u32, long_bytes: u64) -> Option<Self> {
        let group_bytes =
            usize::try_from(leaf_count).ok()?.div_ceil(GROUP_LEAVES).checked_mul(GROUP_BYTES)?;
        Some(Self {
            group_bytes,
            short_bytes: short_bytes as usize,
            long_bytes: usize::try_from(long_bytes).ok()?,
        })
    }

    /// Bytes of all parts, filled up to a multiple of 8.
    pub(super) fn bytes(&self) -> Option<usize> {
        let parts = self.group_bytes.checked_add(self.short_bytes)?.checked_add(self.long_bytes)?;
        parts.checked_next_multiple_of(8)
    }
}

/// The sum of numbers of 4 bits.
#[inline(always)]
const fn sum_of_nibbles(nibbles: u128) -> u32 {
    const LOW: u128 = u128::from_le_bytes([0x0f; 16]);
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    // No lane runs over: bytes are at most 30, their sums 60, pairs of those 120, and all four pairs 480.
    let bytes = (nibbles & LOW) + (nibbles >> 4 & LOW);
    let halves = bytes as u64 + (bytes >> 64) as u64;
    let pairs = (halves & EVEN) + (halves >> 8 & EVEN);
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32
}

impl<'a> Tails<'a> {
    /// The tails at the front of some bytes; none where the bytes are too few.
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], layout: &TailLayout) -> Self {
        let (groups, rest) = bytes.split_at_checked(layout.group_bytes).unwrap_or_default();
        let (short, rest) = rest.split_at_checked(layout.short_bytes).unwrap_or_default();
        Self { groups: groups.as_chunks().0, short, long: rest.get(..layout.long_bytes).unwrap_or_default() }
    }

    /// The tail of a leaf.
    #[inline(always)]
    pub(super) fn get(&self, leaf: u64) -> &'a [u8] {
        let group = self.groups.get(leaf as usize / GROUP_LEAVES);
        let Some((base, lengths)) = group.and_then(|group| group.split_first_chunk::<4>()) else {
            return &[];
        };
        let lengths = lengths.first_chunk().map_or(0, |lengths| u128::from_le_bytes(*lengths));
        let place = leaf as u32 % GROUP_LEAVES as u32 * 4;
        let before = sum_of_nibbles(lengths & ((1 << place) - 1)) as usize;
        let length = (lengths >> place) as usize & 15;
        let start = u32::from_le_bytes(*base) as usize + before;
        let tail = self.short.get(start..start + length).unwrap_or_default();
        if length == LONG { long_tail(tail, self.long) } else { tail }
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

    /// Appends the tails of the keys of some numbers, in the order of their leaves; the lengths of the short and the long part. `None`
    /// beyond 4 GiB.
    pub(super) fn encode(
        &self,
        target: &mut Vec<u8>,
        leaves: impl Iterator<Item = u64>,
    ) -> Option<(u32, u64)> {
        let (mut short, mut long): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        let (mut base, mut lengths, mut count) = (0, 0_u128, 0);
        let close = |target: &mut Vec<u8>, base: u32, lengths: u128| {
            target.extend_from_slice(&base.to_le_bytes());
            target.extend_from_slice(&lengths.to_le_bytes());
        };
        for tail in leaves.map(|ordinal| self.get(ordinal)) {
            if count == GROUP_LEAVES {
                close(target, base, lengths);
                (base, lengths, count) = (u32::try_from(short.len()).ok()?, 0, 0);
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
            lengths |= (length as u128) << (count * 4);
            count += 1;
        }
        if count > 0 {
            close(target, base, lengths);
        }
        target.extend_from_slice(&short);
        target.extend_from_slice(&long);
        target.resize(target.len().next_multiple_of(8), 0);
        Some((u32::try_from(short.len()).ok()?, long.len() as u64))
    }
}

#[cfg(test)]
mod tests;
