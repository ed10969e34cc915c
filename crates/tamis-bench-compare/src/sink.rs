//! Where what was read goes: every value is copied, so that no store gets away with not touching it, and summed up, so
//! that the answers of two stores can be compared.
//!
//! Cost: a copy of 100 bytes into memory that stays in the first cache, and one multiplication.

use crate::data::VALUE_BYTES;

/// Values that are kept before their places are used again.
const PLACE_COUNT: usize = 16;

/// The receiver of what one thread reads.
pub struct Sink {
    places: [[u8; VALUE_BYTES]; PLACE_COUNT],
    next: usize,
    /// The sum over all that was read.
    pub digest: u64,
    /// Scans give their keys too, and all bytes are summed up: for comparing, not for measuring.
    pub is_strict: bool,
}

impl Sink {
    /// An empty one.
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

    /// Takes a value.
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

    /// Takes a key.
    pub fn key(&mut self, bytes: &[u8]) {
        self.add(bytes);
    }

    /// What was copied: looked at once at the end, so that no copy is optimised away.
    pub fn finish(&self) -> u64 {
        std::hint::black_box(&self.places);
        self.digest
    }
}
