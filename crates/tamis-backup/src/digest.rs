//! Digests: SHA-256, in hexadecimal digits.
//!
//! The name of an object is the digest of its bytes, and an object that exists is never compared with the bytes of a file. So two
//! different contents must not have one digest, even if users choose values for that purpose: XXH3 does not guarantee it. A user can
//! also verify a target with `sha256sum` alone.

use std::hash::{BuildHasher, RandomState};

use sha2::{Digest, Sha256};

/// Digits of a digest.
pub(crate) const DIGITS: usize = 64;

pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn is_digest(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// 16 digits that no other process has.
pub(crate) fn random_id() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}
