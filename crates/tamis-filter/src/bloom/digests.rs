//! Collects the digests of sorted keys until the budget is known: 8 bytes per key. Families that need nothing else share
//! this builder.

use crate::builder::KeyOrder;
use crate::{Budget, BuildError, Digester, FilterBuilder, Samples};

/// How a family builds a filter from the digests of distinct keys.
pub trait DigestFamily: std::fmt::Debug + Send {
    /// The encoded filter, or an error.
    fn encode(&self, keys: &DigestKeeper, budget: Budget) -> Result<Vec<u8>, BuildError>;
}

/// The builder of a family that needs only the digests of the keys.
#[derive(Debug)]
pub struct DigestBuilder<F> {
    keys: DigestKeeper,
    family: F,
}

impl<F> DigestBuilder<F> {
    pub(crate) fn with_family(family: F, seed: u64) -> Self {
        Self { keys: DigestKeeper::new(seed), family }
    }
}

impl<F: Default> DigestBuilder<F> {
    /// A builder with a seed for its digests and the default parameters.
    pub fn new(seed: u64) -> Self {
        Self::with_family(F::default(), seed)
    }
}

impl<F: DigestFamily> FilterBuilder for DigestBuilder<F> {
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        self.keys.add(key)
    }

    fn key_count(&self) -> u64 {
        self.keys.key_count()
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
    }

    fn finish(&self, budget: Budget, _samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        self.family.encode(&self.keys, budget)
    }
}

/// Digests of a part of the keys.
const PART_DIGESTS: usize = 1 << 13;

/// The digests of distinct keys, in parts: a single array would be copied again and again while it grows.
#[derive(Debug)]
pub struct DigestKeeper {
    digester: Digester,
    order: KeyOrder,
    full: Vec<Vec<u64>>,
    last: Vec<u64>,
}

impl DigestKeeper {
    pub(crate) fn new(seed: u64) -> Self {
        let (digester, order) = (Digester::new(seed), KeyOrder::default());
        Self { digester, order, full: Vec::new(), last: Vec::new() }
    }

    #[inline]
    pub(crate) fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if self.order.accept(key)? {
            self.push(self.digester.digest(key));
        }
        Ok(())
    }

    /// Whether the key is new. A caller that stores other digests than the key's own adds these.
    #[inline]
    pub(crate) fn accept(&mut self, key: &[u8]) -> Result<bool, BuildError> {
        self.order.accept(key)
    }

    /// The last key.
    pub(crate) fn last_key(&self) -> &[u8] {
        self.order.last()
    }

    /// Stores the digest of a prefix of the key of a length in bytes.
    #[inline]
    pub(crate) fn push_prefix(&mut self, key: &[u8], length: usize) {
        self.push(self.digester.prefix_digest(key, length as u32 * 8));
    }

    /// Stores the digest of a whole key.
    pub(crate) fn push_key(&mut self, key: &[u8]) {
        self.push(self.digester.digest(key));
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.digester.seed()
    }

    /// Distinct keys.
    pub(crate) const fn key_count(&self) -> u64 {
        self.order.count()
    }

    #[inline]
    fn push(&mut self, digest: u64) {
        if self.last.len() == PART_DIGESTS {
            self.begin_part();
        }
        self.last.push(digest);
    }

    #[cold]
    fn begin_part(&mut self) {
        self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(PART_DIGESTS)));
    }

    /// Number of digests; of prefixes, the distinct ones.
    pub(crate) fn len(&self) -> usize {
        self.full.len() * PART_DIGESTS + self.last.len()
    }

    /// Calls `call` with all digests in the order of their keys, part by part.
    pub(crate) fn for_each_part(&self, mut take: impl FnMut(&[u64])) {
        self.full.iter().chain([&self.last]).for_each(|part| take(part));
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let digests = self.full.len() * PART_DIGESTS + self.last.capacity();
        digests * 8 + self.full.capacity() * size_of::<Vec<u64>>()
    }
}
