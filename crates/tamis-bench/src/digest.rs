//! A digest of operations: two runs with equal digests did the same work. It costs a few instructions per word, so it may be
//! computed within a timed region. It detects mistakes and is not cryptographic.

/// An odd multiplier without a bit pattern, from the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// A running digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationDigest(u64);

impl Default for OperationDigest {
    fn default() -> Self {
        Self(FACTOR)
    }
}

impl OperationDigest {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(FACTOR);
    }

    /// Adds bytes and their length.
    #[inline]
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.add(chunk.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)));
        }
        if !chunks.remainder().is_empty() {
            self.add(chunks.remainder().iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    /// Returns the digest.
    pub fn finish(self) -> u64 {
        (self.0 ^ (self.0 >> 29)).wrapping_mul(FACTOR)
    }
}

#[cfg(test)]
mod tests;
