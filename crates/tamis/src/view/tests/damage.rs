//! Damaged views are refused when they are opened.

use super::*;

#[test]
fn each_flipped_byte_of_a_view_is_detected() {
    let mut random = Random(4);
    let keys: Vec<_> = (0..700).map(|_| hostile_key(&mut random)).collect();
    let runs = distribute(&mut random, 3, keys.into_iter());
    let runs: Vec<_> = runs.into_iter().map(MemoryRun::new).collect();
    let (bytes, _) = build(ViewOptions { tag_bytes: 1, ..options() }, &runs).unwrap();
    for access in [Access::Mapped, Access::Buffered, Access::Direct] {
        assert!(open_with(&bytes, access).is_ok());
    }
    for offset in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 1 << random.below(8);
        if open(&damaged).is_ok() {
            // Bytes without a meaning, as in tables: between sections.
            assert_eq!(bytes[offset], 0, "flipped at {offset}");
        }
    }
}
