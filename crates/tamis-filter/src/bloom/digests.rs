//! Collects the digests of sorted keys until the budget is known: 8 bytes per key, or a shared key set from which they
//! are computed when needed. Families that need nothing else share this builder.

use std::{ops::Range, sync::Arc};

use crate::builder::KeyOrder;
use crate::{Budget, BuildError, Digester, FilterBuilder, KeySet, Samples};

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

    fn add_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        self.keys.add_all(keys)
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

/// Number of digests computed from a set at a time: they stay in the L1 cache.
const PART_OF_SET: usize = 1 << 10;

/// Appends the digests of some keys of a set.
fn extend(digests: &mut Vec<u64>, digester: &Digester, keys: &KeySet, range: Range<usize>) {
    digests.reserve_exact(range.len());
    match keys.words().and_then(|words| words.get(range.clone())) {
        // One by one: with a single `extend`, the compiler computes two per vector register, in three times the time.
        Some(words) => words.iter().for_each(|word| digests.push(digester.word_digest(word))),
        None => digests.extend(range.map(|index| digester.digest(keys.get(index).unwrap_or_default()))),
    }
}

/// The digests of distinct keys, in parts: a single array would be copied again and again while it grows.
#[derive(Debug)]
pub struct DigestKeeper {
    digester: Digester,
    order: KeyOrder,
    full: Vec<Vec<u64>>,
    last: Vec<u64>,
    /// All keys, if they came as a set; then no digests are stored.
    set: Option<Arc<KeySet>>,
}

impl DigestKeeper {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            digester: Digester::new(seed),
            order: KeyOrder::default(),
            full: Vec::new(),
            last: Vec::new(),
            set: None,
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        // Mostly integers: the common path needs no stack space for the other keys.
        if let Ok(key) = <&[u8; 8]>::try_from(key)
            && self.last.len() < self.last.capacity().min(PART_DIGESTS)
            && self.order.accept_next_word(key)
        {
            self.last.push(self.digester.word_digest(key));
            return Ok(());
        }
        self.add_any(key)
    }

    #[inline(never)]
    fn add_any(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if self.order.accept(key)? {
            if self.set.is_some() {
                self.unshare();
            }
            self.push(self.digester.digest(key));
        }
        Ok(())
    }

    /// Adds a key set, which is sorted: only its first key is compared with the previous ones.
    pub(crate) fn add_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        let (Some(first), Some(last)) =
            (keys.get(0), keys.len().checked_sub(1).and_then(|last| keys.get(last)))
        else {
            return Ok(());
        };
        if self.key_count() == 0 {
            self.order.skip(keys.len() as u64, last);
            self.set = Some(Arc::clone(keys));
            return Ok(());
        }
        self.add(first)?;
        self.unshare();
        self.push_all(keys, 1);
        self.order.skip(keys.len() as u64 - 1, last);
        Ok(())
    }

    /// More keys follow a set: from now on digests are stored.
    #[cold]
    fn unshare(&mut self) {
        if let Some(keys) = self.set.take() {
            self.push_all(&keys, 0);
        }
    }

    /// Stores the digests of a set's keys from an index on.
    fn push_all(&mut self, keys: &KeySet, mut start: usize) {
        while start < keys.len() {
            if self.last.len() == PART_DIGESTS {
                self.begin_part();
            }
            let end = keys.len().min(start + PART_DIGESTS - self.last.len());
            extend(&mut self.last, &self.digester, keys, start..end);
            start = end;
        }
    }

    /// Adds the digest of a prefix of the key instead of the key's own; a repeated prefix once.
    #[inline]
    pub(crate) fn add_prefix(&mut self, key: &[u8], bit_count: u32) -> Result<(), BuildError> {
        if self.order.accept(key)? {
            let digest = self.digester.prefix_digest(key, bit_count);
            if self.last.last() != Some(&digest) {
                self.push(digest);
            }
        }
        Ok(())
    }

    /// Whether the key is new. A caller that stores other digests than the key's own adds these.
    #[inline]
    pub(crate) fn accept(&mut self, key: &[u8]) -> Result<bool, BuildError> {
        self.order.accept(key)
    }

    /// Stores the digest of a prefix in whole bytes.
    pub(crate) fn push_prefix(&mut self, prefix: &[u8]) {
        self.push(self.digester.whole_byte_prefix_digest(prefix, prefix.len() as u32 * 8));
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
        self.set.as_ref().map_or(self.full.len() * PART_DIGESTS + self.last.len(), |keys| keys.len())
    }

    /// Calls `call` with all digests in the order of their keys, part by part.
    pub(crate) fn for_each_part(&self, mut take: impl FnMut(&[u64])) {
        if let Some(keys) = &self.set {
            let mut part = Vec::with_capacity(PART_OF_SET);
            for start in (0..keys.len()).step_by(PART_OF_SET) {
                part.clear();
                extend(&mut part, &self.digester, keys, start..keys.len().min(start + PART_OF_SET));
                take(&part);
            }
            return;
        }
        self.full.iter().chain([&self.last]).for_each(|part| take(part));
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.parts_capacity() * 8 + self.full.capacity() * size_of::<Vec<u64>>()
    }

    fn parts_capacity(&self) -> usize {
        self.full.len() * PART_DIGESTS + self.last.capacity()
    }
}
