//! Reads Rosettas in place.

use std::fmt;

use super::layout::{BitLayout, FULL_DEPTH, Level, parse_directory};
use super::level::sibling_bits;
use super::prices::PROBE_CAP_MAX;
use super::walk::{End, Tree, Walk};
use crate::bounds::{Bounds, node_of_key};
use crate::envelope::{self, Envelope};
use crate::filter::envelope_methods;
use crate::{Candidate, DecodeError, Direction, Filter, Probe, RangeProbe};

/// A filter of [`crate::Family::Rosetta`].
#[derive(Debug, Clone)]
pub struct RosettaFilter<D> {
    bytes: D,
    envelope: Envelope,
    key_bytes: u32,
    predicted: Option<f64>,
    probe_cap: u32,
    /// Whether the step limit ended the search for levels.
    is_search_cut: bool,
    /// Levels of prefixes, the shallowest first; the full level last.
    levels: Vec<Level>,
}

impl<D: AsRef<[u8]>> RosettaFilter<D> {
    pub(crate) fn open(envelope: Envelope, bytes: D) -> Result<Self, DecodeError> {
        let [level_count, reserved] = envelope::parameter(&envelope.parameters, 0);
        let key_bytes = u32::from(u16::from_le_bytes(envelope::parameter(&envelope.parameters, 2)));
        let predicted = envelope::predicted_fpr(&envelope.parameters)?;
        let probe_cap = u32::from_le_bytes(envelope::parameter(&envelope.parameters, 8));
        let [is_cut] = envelope::parameter(&envelope.parameters, 12);
        envelope::check_reserved(&envelope.parameters, 13)?;
        let refuse = |field, got| Err(DecodeError::Field { field, got });
        if reserved != 0 {
            return refuse("reserved", u64::from(reserved));
        }
        if !(1..=PROBE_CAP_MAX).contains(&probe_cap) {
            return refuse("probe_cap", u64::from(probe_cap));
        }
        if is_cut > 1 {
            return refuse("search_cut", u64::from(is_cut));
        }
        let levels = parse_directory(envelope::payload(bytes.as_ref()), usize::from(level_count))?;
        if envelope.key_count == 0 && !levels.is_empty() {
            return refuse("level_count", u64::from(level_count));
        }
        for level in &levels {
            let is_too_deep = key_bytes != 0 && level.depth != FULL_DEPTH && level.depth >= key_bytes * 8;
            if is_too_deep {
                return refuse("depth", u64::from(level.depth));
            }
            if level.prefix_count > envelope.key_count {
                return refuse("prefix_count", level.prefix_count);
            }
        }
        Ok(Self { bytes, envelope, key_bytes, predicted, probe_cap, is_search_cut: is_cut == 1, levels })
    }

    #[inline]
    fn payload(&self) -> &[u8] {
        envelope::payload(self.bytes.as_ref())
    }

    #[inline]
    fn full(&self) -> Option<&Level> {
        self.levels.last().filter(|level| level.depth == FULL_DEPTH)
    }

    /// The levels that range queries probe.
    #[inline]
    fn tree(&self) -> Tree<'_> {
        let count = self.levels.len() - usize::from(self.key_bytes == 0 && self.full().is_some());
        Tree {
            levels: self.levels.get(..count).unwrap_or_default(),
            payload: self.payload(),
            seed: self.envelope.seed,
            key_bytes: self.key_bytes,
            probe_cap: self.probe_cap,
        }
    }

    /// Keys of another length than all keys are absent.
    #[inline]
    fn is_possible(&self, key: &[u8]) -> bool {
        self.envelope.key_count > 0 && (self.key_bytes == 0 || key.len() == self.key_bytes as usize)
    }

    /// A point query without a full level: probes its prefixes, the shortest first.
    fn may_contain_prefixes(&self, probe: &Probe<'_>) -> bool {
        self.levels.iter().all(|level| {
            probe.add_probes(1);
            let sibling_bits = sibling_bits(level.depth);
            let digest = probe.prefix_digest(self.envelope.seed, level.depth - sibling_bits);
            let sibling = node_of_key(probe.key(), level.depth) & ((1 << sibling_bits) - 1);
            level.held_siblings(level.bits(self.payload()), digest, 1 << sibling) != 0
        })
    }

    /// Walks a range and counts its probes.
    #[inline]
    fn walk<const IS_FORWARD: bool>(&self, probe: &RangeProbe<'_>) -> End {
        if self.envelope.key_count == 0 {
            return End::Absent;
        }
        let Some(bounds) = Bounds::new(probe.range(), self.key_bytes) else { return End::Absent };
        let mut walk = Walk::<'_, '_, IS_FORWARD>::new(self.tree(), bounds, probe);
        let end = walk.run();
        probe.add_probes(walk.probe_count());
        end
    }

    /// The bytes of a candidate: those of a node's first key (without zeros at its end), or of its last.
    fn candidate(&self, probe: &RangeProbe<'_>, depth: u32, node: u64, is_forward: bool) -> Candidate {
        let Some(bounds) = Bounds::new(probe.range(), self.key_bytes) else { return Candidate::Absent };
        let byte_count = depth.div_ceil(8) as usize;
        let mut bytes = Vec::with_capacity(byte_count);
        if depth <= 64 {
            let shift = 64 - depth;
            let below = if shift == 64 { u64::MAX } else { (1 << shift) - 1 };
            let first = node.checked_shl(shift).unwrap_or(0);
            let word = if is_forward { first } else { first | below };
            bytes.extend_from_slice(word.to_be_bytes().get(..byte_count).unwrap_or_default());
        } else {
            bounds.copy_front(byte_count - 8, &mut bytes);
            bytes.extend_from_slice(&node.to_be_bytes());
        }
        let range = probe.range();
        if is_forward {
            // A shorter key is in the node of its continuation by zeros.
            let length = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count();
            bytes.truncate(length);
            // The bound itself, if the node starts before it.
            let lower = range.lower_bytes();
            return Candidate::Bytes(if bytes.as_slice() < lower { lower.to_vec() } else { bytes });
        }
        Candidate::Bytes(bytes)
    }
}

impl<D: AsRef<[u8]>> Filter for RosettaFilter<D> {
    #[inline]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        if !self.is_possible(probe.key()) {
            return false;
        }
        match self.full() {
            Some(level) => {
                probe.add_probes(1);
                level.may_hold_key(level.bits(self.payload()), probe.digest(self.envelope.seed))
            }
            None => self.may_contain_prefixes(probe),
        }
    }

    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        if let Some(point) = probe.point() {
            return self.may_contain(point);
        }
        self.walk::<true>(probe) != End::Absent
    }

    #[inline]
    fn prefetch(&self, probe: &Probe<'_>) {
        if let Some(level) = self.full() {
            level.prefetch_key(level.bits(self.payload()), probe.digest(self.envelope.seed));
        }
    }

    fn candidate(&self, probe: &RangeProbe<'_>, direction: Direction) -> Candidate {
        if let Some(point) = probe.point() {
            return if self.may_contain(point) { Candidate::Unknown } else { Candidate::Absent };
        }
        let is_forward = direction == Direction::Forward;
        let end = if is_forward { self.walk::<true>(probe) } else { self.walk::<false>(probe) };
        match end {
            End::Absent => Candidate::Absent,
            End::Unknown => Candidate::Unknown,
            End::Node { depth, node, .. } => self.candidate(probe, depth, node, is_forward),
        }
    }

    envelope_methods!(self, self.envelope);

    fn predicted_fpr(&self) -> Option<f64> {
        if self.envelope.key_count == 0 { Some(0.0) } else { self.predicted }
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        if self.levels.is_empty() {
            return target.write_str("no level");
        }
        for (index, level) in self.levels.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            match level.depth {
                FULL_DEPTH => write!(target, "{comma}keys")?,
                depth => write!(target, "{comma}{depth} bits")?,
            }
            let bits = level.byte_count as f64 * 8.0 / (self.envelope.key_count as f64).max(1.0);
            let layout = if level.layout == BitLayout::Blocked { " in lines" } else { "" };
            write!(target, " {bits:.2}/key k{}{layout}", level.probe_count)?;
        }
        if self.is_search_cut {
            target.write_str("; search ended at its step limit")?;
        }
        Ok(())
    }
}
