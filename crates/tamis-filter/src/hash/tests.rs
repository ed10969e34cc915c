//! The digest is part of the format: frozen values, and the definition of prefixes.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{Digester, mix64};

#[test]
fn digests_are_frozen() {
    let digester = Digester::new(42);
    let long: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let digests: Vec<u64> = [&b""[..], b"a", b"abcdefgh", b"abcdefghijklmnopqrstuvwxyz", &long]
        .map(|key| digester.digest(key))
        .into();
    assert_eq!(
        digests,
        [
            2_099_127_172_797_383_695,
            17_959_508_026_290_022_485,
            12_318_611_356_983_754_968,
            12_898_498_414_076_126_396,
            8_779_902_708_995_397_116
        ]
    );
    assert_eq!(Digester::new(0).digest(b"abcdefgh"), 14_969_820_060_747_875_387);
    assert_eq!(digester.prefix_digest(b"abcdefgh", 13), 10_116_041_714_677_013_185);
    assert_eq!(mix64(42, 1), 15_664_533_255_536_094_640);
}

#[test]
fn a_prefix_is_counted_in_bits_from_the_first() {
    let digester = Digester::new(7);
    let of = |key: &[u8], bits| digester.prefix_digest(key, bits);
    assert_eq!(of(b"abc", 16), of(b"abd", 16));
    assert_ne!(of(b"abc", 24), of(b"abd", 24));
    // `c` is 0x63 and `d` 0x64: five bits of them are equal, six are not.
    assert_eq!(of(b"abc", 21), of(b"abd", 21));
    assert_ne!(of(b"abc", 22), of(b"abd", 22));
    assert_ne!(of(b"a", 7), of(b"a", 8), "lengths that share their bytes differ");
    let long: Vec<u8> = (1..=100).collect();
    let mut other = long.clone();
    other[50] ^= 1;
    for bits in [400, 401, 407] {
        assert_eq!(of(&long, bits), of(&other, bits), "{bits}");
    }
    assert_ne!(of(&long, 408), of(&other, 408));
}

#[test]
fn a_short_key_is_continued_by_zeros() {
    let digester = Digester::new(7);
    for bits in [0, 1, 8, 24, 63, 64, 65, 71, 72, 200] {
        assert_eq!(digester.prefix_digest(b"ab", bits), digester.prefix_digest(b"ab\0\0", bits), "{bits}");
    }
}

#[test]
fn words_and_bytes_have_the_same_prefix_digest() {
    let digester = Digester::new(9);
    let key = 0x0123_4567_89ab_cdef_u64;
    for bits in 0..=64 {
        assert_eq!(digester.word_prefix_digest(key, bits), digester.prefix_digest(&key.to_be_bytes(), bits));
    }
}

#[test]
fn long_words_and_bytes_have_the_same_prefix_digest() {
    let digester = Digester::new(9);
    let key = 0x0123_4567_89ab_cdef_1032_5476_98ba_dcfe_u128;
    for bits in 0..=128 {
        let mut bytes = key.to_be_bytes()[..(bits as usize).div_ceil(8)].to_vec();
        crate::bit_string::mask_last(&mut bytes, bits);
        let digest = digester.whole_byte_prefix_digest(&bytes, bits);
        assert_eq!(digester.long_word_prefix_digest(key, bits), digest, "{bits} bits of a word");
        assert_eq!(digester.prefix_digest(&key.to_be_bytes(), bits), digest, "{bits} bits of bytes");
    }
}

#[test]
fn seeds_differ() {
    assert_ne!(Digester::new(1).digest(b"key"), Digester::new(2).digest(b"key"));
}
