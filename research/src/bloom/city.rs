//! CityHash64, version 1.1, a hash function of the paper: 64 bytes per round of rotations and multiplications. Used for
//! comparison only; the store uses another hash (see `tamis_filter::Digester`).

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;
/// Multiplier for joining two words without a length.
const JOIN: u64 = 0x9ddf_ea08_eb38_2d69;
const ROUND_BYTES: usize = 64;

/// The hash of a key.
#[inline]
pub(super) fn city_hash_64(key: &[u8]) -> u64 {
    match key.len() {
        0..=16 => up_to_16(key),
        17..=32 => up_to_32(key),
        33..=64 => up_to_64(key),
        _ => long(key),
    }
}

/// The word at an offset, which must be within the key.
#[inline]
fn word(key: &[u8], offset: usize) -> u64 {
    let bytes = key.get(offset..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The word that begins `distance` bytes before the end.
#[inline]
fn word_from_end(key: &[u8], distance: usize) -> u64 {
    word(key, key.len().saturating_sub(distance))
}

fn half_word(key: &[u8], offset: usize) -> u64 {
    let bytes = key.get(offset..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
}

const fn fold(word: u64) -> u64 {
    word ^ (word >> 47)
}

#[inline]
const fn join_by(first: u64, second: u64, factor: u64) -> u64 {
    let mixed = fold((first ^ second).wrapping_mul(factor));
    fold((second ^ mixed).wrapping_mul(factor)).wrapping_mul(factor)
}

#[inline]
const fn join(first: u64, second: u64) -> u64 {
    join_by(first, second, JOIN)
}

/// The multiplier of a key of up to 64 bytes.
const fn factor(length: usize) -> u64 {
    K2.wrapping_add(2 * length as u64)
}

fn up_to_16(key: &[u8]) -> u64 {
    let length = key.len();
    if length >= 8 {
        let (first, last) = (word(key, 0).wrapping_add(K2), word_from_end(key, 8));
        let left = last.rotate_right(37).wrapping_mul(factor(length)).wrapping_add(first);
        let right = first.rotate_right(25).wrapping_add(last).wrapping_mul(factor(length));
        return join_by(left, right, factor(length));
    }
    if length >= 4 {
        let first = (length as u64).wrapping_add(half_word(key, 0) << 3);
        return join_by(first, half_word(key, length - 4), factor(length));
    }
    let byte = |index: usize| key.get(index).map_or(0, |byte| u64::from(*byte));
    if length == 0 {
        return K2;
    }
    let front = byte(0) + (byte(length / 2) << 8);
    let back = length as u64 + (byte(length - 1) << 2);
    fold(front.wrapping_mul(K2) ^ back.wrapping_mul(K0)).wrapping_mul(K2)
}

fn up_to_32(key: &[u8]) -> u64 {
    let factor = factor(key.len());
    let first = word(key, 0).wrapping_mul(K1);
    let second = word(key, 8);
    let last = word_from_end(key, 8).wrapping_mul(factor);
    let before_last = word_from_end(key, 16).wrapping_mul(K2);
    let left = first.wrapping_add(second).rotate_right(43);
    let left = left.wrapping_add(last.rotate_right(30)).wrapping_add(before_last);
    let right = first.wrapping_add(second.wrapping_add(K2).rotate_right(18)).wrapping_add(last);
    join_by(left, right, factor)
}

fn up_to_64(key: &[u8]) -> u64 {
    let factor = factor(key.len());
    let turned = |word: u64| word.wrapping_mul(factor).swap_bytes();
    let (a, b) = (word(key, 0).wrapping_mul(K2), word(key, 8));
    let (c, d) = (word_from_end(key, 24), word_from_end(key, 32));
    let (e, f) = (word(key, 16).wrapping_mul(K2), word(key, 24).wrapping_mul(9));
    let (g, h) = (word_from_end(key, 8), word_from_end(key, 16).wrapping_mul(factor));
    let ends = a.wrapping_add(g);
    let u = ends.rotate_right(43).wrapping_add(b.rotate_right(30).wrapping_add(c).wrapping_mul(9));
    let v = (ends ^ d).wrapping_add(f).wrapping_add(1);
    let w = turned(u.wrapping_add(v)).wrapping_add(h);
    let middle = e.wrapping_add(f);
    let x = middle.rotate_right(42).wrapping_add(c);
    let y = turned(v.wrapping_add(w)).wrapping_add(g).wrapping_mul(factor);
    let z = middle.wrapping_add(c);
    let front = x.wrapping_add(z).wrapping_mul(factor).wrapping_add(y).swap_bytes().wrapping_add(b);
    let back = z.wrapping_add(front).wrapping_mul(factor).wrapping_add(d).wrapping_add(h);
    fold(back).wrapping_mul(factor).wrapping_add(x)
}

/// Mixes in 32 bytes at an offset.
#[inline]
fn mix_in(key: &[u8], offset: usize, first: u64, second: u64) -> (u64, u64) {
    let last = word(key, offset + 24);
    let begun = first.wrapping_add(word(key, offset));
    let turned = second.wrapping_add(begun).wrapping_add(last).rotate_right(21);
    let sum = begun.wrapping_add(word(key, offset + 8)).wrapping_add(word(key, offset + 16));
    (sum.wrapping_add(last), turned.wrapping_add(sum.rotate_right(44)).wrapping_add(begun))
}

fn long(key: &[u8]) -> u64 {
    let length = key.len();
    let mut x = word_from_end(key, 40);
    let mut y = word_from_end(key, 16).wrapping_add(word_from_end(key, 56));
    let mut z = join(word_from_end(key, 48).wrapping_add(length as u64), word_from_end(key, 24));
    let mut v = mix_in(key, length - 64, length as u64, z);
    let mut w = mix_in(key, length - 32, y.wrapping_add(K1), x);
    x = x.wrapping_mul(K1).wrapping_add(word(key, 0));
    // The bytes of the last round, complete or not, are already mixed in.
    for round in key.chunks(ROUND_BYTES).take((length - 1) / ROUND_BYTES) {
        x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(word(round, 8));
        x = x.rotate_right(37).wrapping_mul(K1) ^ w.1;
        y = y.wrapping_add(v.1).wrapping_add(word(round, 48)).rotate_right(42).wrapping_mul(K1);
        y = y.wrapping_add(v.0).wrapping_add(word(round, 40));
        z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(K1);
        v = mix_in(round, 0, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = mix_in(round, 32, z.wrapping_add(w.1), y.wrapping_add(word(round, 16)));
        std::mem::swap(&mut z, &mut x);
    }
    let first = join(v.0, w.0).wrapping_add(fold(y).wrapping_mul(K1)).wrapping_add(z);
    join(first, join(v.1, w.1).wrapping_add(x))
}

#[cfg(test)]
mod tests;
