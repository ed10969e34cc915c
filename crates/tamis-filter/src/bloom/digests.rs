//! Keeps the digests of sorted keys until the budget is known: 8 bytes a key.

use crate::builder::KeyOrder;
use crate::{BuildError, Digester};

/// The digests of distinct keys.
#[derive(Debug)]
pub(crate) struct DigestKeeper {
    digester: Digester,
    order: KeyOrder,
    digests: Vec<u64>,
}

impl DigestKeeper {
    pub(crate) fn new(seed: u64) -> Self {
        Self { digester: Digester::new(seed), order: KeyOrder::default(), digests: Vec::new() }
    }

    #[inline]
    pub(crate) fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if self.order.accept(key)? {
            self.digests.push(self.digester.digest(key));
        }
        Ok(())
    }

    /// Adds the digest of a prefix of the key instead of the key's own; a repeated prefix once.
    #[inline]
    pub(crate) fn add_prefix(&mut self, key: &[u8], bit_count: u32) -> Result<(), BuildError> {
        if self.order.accept(key)? {
            let digest = self.digester.prefix_digest(key, bit_count);
            if self.digests.last() != Some(&digest) {
                self.digests.push(digest);
            }
        }
        Ok(())
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.digester.seed()
    }

    /// Distinct keys.
    pub(crate) const fn key_count(&self) -> u64 {
        self.order.count()
    }

    pub(crate) fn digests(&self) -> &[u64] {
        &self.digests
    }

    pub(crate) const fn memory_bytes(&self) -> usize {
        self.digests.capacity() * 8
    }
}
