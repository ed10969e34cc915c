//! Buffers keep their contents and are aligned to a cache line.

use super::AlignedBytes;

#[test]
fn bytes_are_stored_and_aligned() {
    for length in [0usize, 1, 63, 64, 65, 1000] {
        let source: Vec<u8> = (0..length).map(|index| index as u8).collect();
        let aligned = AlignedBytes::from(source.as_slice());
        assert_eq!(aligned.as_ref(), source.as_slice());
        assert_eq!(aligned.as_ref().as_ptr() as usize % 64, 0);
        assert_eq!(aligned.clone().as_ref(), source.as_slice());
    }
}
