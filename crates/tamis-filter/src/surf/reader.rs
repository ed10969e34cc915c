//! Reads SuRF filters in place.

use std::fmt;

use tamis_bits::kernel::{self, Steps};
use tamis_bits::packed;

use super::suffix::SuffixBits;
use super::walk::View;
use crate::envelope::{self, ENVELOPE_BYTES, Envelope};
use crate::filter::envelope_methods;
use crate::trie::{Layout, TRAILER_BYTES, Trie};
use crate::{Candidate, DecodeError, Direction, Family, Filter, KeyRange, Probe, RangeProbe};

/// A filter of one of the SuRF families.
#[derive(Debug, Clone)]
pub struct SurfFilter<D> {
    bytes: D,
    envelope: Envelope,
    family: Family,
    /// `None` without keys.
    layout: Option<Layout>,
    pub(super) widths: SuffixBits,
    compared: u32,
    predicted_fpr: Option<f64>,
}

impl<D: AsRef<[u8]>> SurfFilter<D> {
    pub(crate) fn open(envelope: Envelope, bytes: D) -> Result<Self, DecodeError> {
        let refuse = |(field, got)| DecodeError::Field { field, got };
        let family = Family::from_number(envelope.family)?;
        let [hash, real, reserved @ ..] = envelope::parameter::<4>(&envelope.parameters, 0);
        let widths = SuffixBits { hash: u32::from(hash), real: u32::from(real) };
        let is_possible = match family {
            Family::SurfBase => widths.width() == 0,
            Family::SurfHash => real == 0,
            Family::SurfReal => hash == 0,
            _ => true,
        };
        if widths.width() > SuffixBits::MAX || !is_possible || reserved != [0; 2] {
            return Err(refuse(("suffix", u64::from(hash) | u64::from(real) << 8)));
        }
        let predicted_fpr = envelope::predicted_fpr(&envelope.parameters)?;
        envelope::check_reserved(&envelope.parameters, 8)?;
        let payload = envelope::payload(bytes.as_ref());
        let layout = if envelope.key_count == 0 && payload.is_empty() {
            None
        } else {
            let layout = Layout::read(payload, widths.width() > 0).map_err(refuse)?;
            let suffixes = packed::encoded_bytes(widths.width(), layout.counts.leaf_count());
            let expected =
                suffixes.and_then(|suffixes| suffixes.checked_add((layout.leaves + TRAILER_BYTES) as u64));
            if expected != Some(envelope.payload_bytes) {
                return Err(refuse(("payload_bytes", envelope.payload_bytes)));
            }
            if layout.counts.key_count() != envelope.key_count || envelope.key_count == 0 {
                return Err(refuse(("key_count", envelope.key_count)));
            }
            Some(layout)
        };
        Ok(Self { bytes, envelope, family, layout, widths, compared: widths.real, predicted_fpr })
    }

    /// Ignores all but the first `real_bits` real bits: the filter then gives the answers of one with a shorter suffix.
    pub(super) fn compare_only(&mut self, real_bits: u32) {
        self.compared = real_bits.min(self.widths.real);
    }

    /// The family.
    pub const fn family(&self) -> Family {
        self.family
    }

    #[inline(always)]
    fn view(&self) -> Option<View<'_>> {
        let layout = self.layout.as_ref()?;
        let payload = envelope::payload(self.bytes.as_ref());
        let trie = Trie::new(payload, layout);
        Some(View { trie, widths: self.widths, compared: self.compared, seed: self.envelope.seed })
    }
}

/// The walk of a point, compiled for the instruction set.
struct PointWalk<'a, D>(&'a SurfFilter<D>, &'a Probe<'a>);

impl<D: AsRef<[u8]>> kernel::Task for PointWalk<'_, D> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> bool {
        self.0.view().is_some_and(|view| view.with(steps).may_contain(self.1))
    }
}

/// The walks of a range, compiled for the instruction set.
struct RangeWalk<'a, D>(&'a SurfFilter<D>, &'a KeyRange<'a>);

impl<D: AsRef<[u8]>> kernel::Task for RangeWalk<'_, D> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> bool {
        self.0.view().is_some_and(|view| view.with(steps).may_contain_range(self.1))
    }
}

impl<D: AsRef<[u8]>> Filter for SurfFilter<D> {
    #[inline]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        probe.add_probes(1);
        kernel::run(PointWalk(self, probe))
    }

    #[inline]
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        probe.add_probes(1);
        // Digest bits help only points: only ranges that the walk accepts are tested for being a point.
        kernel::run(RangeWalk(self, probe.range()))
            && (self.widths.hash == 0
                || probe.point().is_none_or(|point| kernel::run(PointWalk(self, point))))
    }

    fn candidate(&self, probe: &RangeProbe<'_>, direction: Direction) -> Candidate {
        let (Some(view), range) = (self.view(), probe.range()) else { return Candidate::Absent };
        let candidate = match direction {
            Direction::Forward => view.least_candidate(range.lower),
            Direction::Backward => view.greatest_candidate(range.upper),
        };
        candidate.within(range, direction)
    }

    envelope_methods!(self, self.envelope);

    fn predicted_fpr(&self) -> Option<f64> {
        if self.layout.is_none() { Some(0.0) } else { self.predicted_fpr }
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        let counts = self.layout.map(|layout| layout.counts).unwrap_or_default();
        let SuffixBits { hash, real } = self.widths;
        write!(
            target,
            "trie of {} levels, {} dense nodes of {}, {} sparse labels, {} prefix keys; suffix of {hash} digest and {real} key bits",
            counts.height,
            counts.dense_node_count,
            counts.node_count,
            counts.sparse_label_count,
            counts.prefix_key_count,
        )?;
        if let Some(layout) = &self.layout {
            let bytes = (ENVELOPE_BYTES + layout.leaves + TRAILER_BYTES) as f64;
            write!(target, "; {:.2} bits per key without suffixes", bytes * 8.0 / self.key_count() as f64)?;
        }
        if counts.capped_leaf_count > 0 {
            write!(
                target,
                "; truncated, {} keys at its {} last leaves",
                counts.capped_key_count, counts.capped_leaf_count
            )?;
        }
        Ok(())
    }
}
