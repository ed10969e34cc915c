//! Published checksums.

use super::crc_32c;

#[test]
fn checksums_match_known_values() {
    assert_eq!(crc_32c(b""), 0);
    assert_eq!(crc_32c(b"123456789"), 0xe306_9283);
    assert_eq!(crc_32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc_32c(&[0xff; 32]), 0x62a8_ab43);
}
