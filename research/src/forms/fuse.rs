//! Binary fuse filters with fingerprints of eight bits: static and smaller than a Bloom filter, at three random reads for a key.

use std::fmt;

use tamis_bench::BenchError;
use tamis_filter::{DecodeError, Digester, Filter, KeySet, Probe};
use xorf::{BinaryFuse8, Filter as _};

/// A binary fuse filter of the digests of keys.
pub(super) struct Fuse {
    seed: u64,
    key_count: u64,
    fuse: BinaryFuse8,
}

impl Fuse {
    pub(super) const NAME: &str = "binary-fuse:bits=8";

    pub(super) fn build(keys: &KeySet, seed: u64) -> Result<Self, BenchError> {
        let digester = Digester::new(seed);
        let mut digests: Vec<u64> = keys.iter().map(|key| digester.digest(key)).collect();
        // The construction needs distinct digests.
        digests.sort_unstable();
        digests.dedup();
        let fuse = BinaryFuse8::try_from(&digests).map_err(BenchError::other)?;
        Ok(Self { seed, key_count: keys.len() as u64, fuse })
    }
}

impl Filter for Fuse {
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        self.fuse.contains(&probe.digest(self.seed))
    }

    fn key_count(&self) -> u64 {
        self.key_count
    }

    fn encoded_bytes(&self) -> u64 {
        self.fuse.len() as u64
    }

    fn predicted_fpr(&self) -> Option<f64> {
        Some(1.0 / 256.0)
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        target.write_str("fingerprints of 8 bits")
    }

    fn verify(&self) -> Result<(), DecodeError> {
        Ok(())
    }
}
