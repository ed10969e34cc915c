//! Receives what sessions read. Every value is copied, so that lazy stores have no advantage.
//!
//! The digest covers the first entries with all their bytes: two stores that execute the same operations must have the same digest.
//! Cost of an entry after those: a copy of at most 128 bytes into memory that stays in the L1 cache.

use std::hint::black_box;

use crate::OperationDigest;

/// Number of buffers, used in rotation.
const PLACE_COUNT: usize = 16;
/// Bytes that are copied of a value.
const PLACE_BYTES: usize = 128;

/// The receiver of what one thread reads.
#[derive(Debug)]
pub struct Sink {
    places: [[u8; PLACE_BYTES]; PLACE_COUNT],
    next: usize,
    digest: OperationDigest,
    /// Entries that the digest does not cover yet.
    left: u64,
}

impl Default for Sink {
    /// A sink without a digest.
    fn default() -> Self {
        Self::new(0)
    }
}

impl Sink {
    /// A sink whose digest covers so many entries.
    pub fn new(digested: u64) -> Self {
        let places = [[0; PLACE_BYTES]; PLACE_COUNT];
        Self { places, next: 0, digest: OperationDigest::default(), left: digested }
    }

    /// Receives a value.
    #[inline]
    pub fn value(&mut self, value: &[u8]) {
        self.entry(|| [], value);
    }

    /// Receives an entry. The key is read only if the digest covers it.
    #[inline]
    pub fn entry<K: AsRef<[u8]>>(&mut self, key: impl FnOnce() -> K, value: &[u8]) {
        self.next = (self.next + 1) % PLACE_COUNT;
        let head = value.get(..PLACE_BYTES).unwrap_or(value);
        if let Some(place) = self.places.get_mut(self.next).and_then(|place| place.get_mut(..head.len())) {
            place.copy_from_slice(head);
        }
        if self.left > 0 {
            self.left -= 1;
            self.digest.add_bytes(key().as_ref());
            self.digest.add_bytes(value);
        }
    }

    /// Whether the digest covers as many entries as it should.
    pub(super) const fn is_full(&self) -> bool {
        self.left == 0
    }

    /// The digest. Reads the copies, so that the compiler does not remove them.
    pub fn digest(&self) -> u64 {
        black_box(&self.places);
        self.digest.finish()
    }
}
