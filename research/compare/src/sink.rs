//! Receives the values that are read. It copies every value, so that lazy stores have no advantage, and adds it to a digest, so
//! that the results of two stores can be compared.
//!
//! Cost per value: a copy of 100 bytes into memory that stays in the L1 cache, and one multiplication.

use crate::data::VALUE_BYTES;

/// Number of buffers, used in rotation.
const PLACE_COUNT: usize = 16;

/// The receiver of what one thread reads.
pub struct Sink {
    places: [[u8; VALUE_BYTES]; PLACE_COUNT],
    next: usize,
    /// The digest of all values.
    pub digest: u64,
    /// Whether the digest also covers keys and all bytes: for tests, not for measurements.
    pub is_strict: bool,
}

impl Sink {
    /// Creates an empty sink.
    pub fn new(is_strict: bool) -> Self {
        Self { places: [[0; VALUE_BYTES]; PLACE_COUNT], next: 0, digest: 0, is_strict }
    }

    fn add(&mut self, bytes: &[u8]) {
        let head = bytes.first_chunk().map_or(0, |head| u64::from_le_bytes(*head));
        self.digest = self.digest.rotate_left(5).wrapping_add(head).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if self.is_strict {
            for &byte in bytes {
                self.digest = self.digest.rotate_left(5).wrapping_add(u64::from(byte) + 1);
            }
        }
    }

    /// Receives a value.
    pub fn value(&mut self, bytes: &[u8]) {
        self.next = (self.next + 1) % PLACE_COUNT;
        if let Some(place) = self.places.get_mut(self.next) {
            let length = bytes.len().min(VALUE_BYTES);
            if let (Some(to), Some(from)) = (place.get_mut(..length), bytes.get(..length)) {
                to.copy_from_slice(from);
            }
        }
        self.add(bytes);
    }

    /// Receives an entry. The key is taken only if the digest covers it.
    pub fn entry<K: AsRef<[u8]>>(&mut self, key: impl FnOnce() -> K, value: &[u8]) {
        if self.is_strict {
            self.add(key().as_ref());
        }
        self.value(value);
    }

    /// Receives a key.
    pub fn key(&mut self, bytes: &[u8]) {
        self.add(bytes);
    }

    /// Reads the copies once at the end, so that the compiler does not remove them.
    pub fn finish(&self) -> u64 {
        std::hint::black_box(&self.places);
        self.digest
    }
}
