//! An elastic filter in one piece, with all its units.

use std::fmt;

use super::{DIRECTORY_BYTES, ElasticHeader};
use crate::envelope::{self, Envelope};
use crate::filter::envelope_methods;
use crate::{DecodeError, Filter, Probe};

/// A filter of [`crate::Family::Elastic`].
#[derive(Debug, Clone)]
pub struct ElasticFilter<D> {
    bytes: D,
    header: ElasticHeader,
}

impl<D: AsRef<[u8]>> ElasticFilter<D> {
    pub(crate) fn open(envelope: Envelope, bytes: D) -> Result<Self, DecodeError> {
        let header = ElasticHeader::from_envelope(envelope, bytes.as_ref())?;
        Ok(Self { bytes, header })
    }

    /// The header, to load units one by one.
    pub const fn header(&self) -> &ElasticHeader {
        &self.header
    }

    /// Whether the first units may contain a key, as if no others were in memory.
    pub fn may_contain_loaded(&self, probe: &Probe<'_>, loaded_count: u32) -> bool {
        self.header.ask(probe, self.units().take(loaded_count as usize))
    }

    fn units(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let payload = envelope::payload(self.bytes.as_ref());
        let units = payload.get(DIRECTORY_BYTES..).unwrap_or_default();
        (0..).zip(units.chunks_exact(self.header.unit_bytes().max(1) as usize))
    }
}

impl<D: AsRef<[u8]>> Filter for ElasticFilter<D> {
    // Inlined into the dispatch over the families, it makes the others slower.
    #[inline(never)]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        self.header.ask(probe, self.units())
    }

    fn prefetch(&self, probe: &Probe<'_>) {
        self.header.prefetch(probe, self.units());
    }

    envelope_methods!(self, self.header.envelope());

    fn predicted_fpr(&self) -> Option<f64> {
        Some(self.header.fpr(self.header.unit_count()))
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        self.header.design(target, self.header.unit_count())
    }
}
