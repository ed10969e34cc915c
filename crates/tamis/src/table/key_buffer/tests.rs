//! Keys that a buffer assembles.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::KeyBuffer;

/// Keys of all lengths after prefixes of all lengths, in blocks that end behind the key or later.
#[test]
fn keys_are_prefix_head_and_rest() {
    let bytes: Vec<u8> = (0..120).collect();
    let mut buffer = KeyBuffer::new();
    for prefix_length in [0, 1, 43, 44, 45, 64, 70] {
        buffer.set_prefix(&bytes[..prefix_length]);
        assert_eq!(buffer.as_slice(), &bytes[..prefix_length]);
        for rest_length in [0, 3, 16, 17, 1, 40, 2] {
            for behind in [0, 5, 16] {
                let rest = &bytes[50..50 + rest_length + behind];
                buffer.set_suffix([9; 4], rest, rest_length);
                let expected = [&bytes[..prefix_length], &[9; 4], &rest[..rest_length]].concat();
                assert_eq!(buffer.as_slice(), expected);
            }
            buffer.set_long(&[7, 8], &[]);
            assert_eq!(buffer.as_slice(), [&bytes[..prefix_length], &[7, 8]].concat());
        }
    }
}
