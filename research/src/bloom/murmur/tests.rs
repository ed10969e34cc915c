//! The hash depends on every byte of the key and on the seed.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::murmur_hash_64a;

#[test]
fn hash_depends_on_every_byte_and_the_seed() {
    assert_eq!(murmur_hash_64a(b"", 0), 0);
    let key: Vec<u8> = (0..27).collect();
    let hash = murmur_hash_64a(&key, 1);
    assert_ne!(hash, murmur_hash_64a(&key, 2));
    for length in 0..key.len() {
        let mut other = key.clone();
        other[length] ^= 1;
        assert_ne!(hash, murmur_hash_64a(&other, 1), "{length}");
        assert_ne!(hash, murmur_hash_64a(&key[..length], 1), "{length}");
    }
}
