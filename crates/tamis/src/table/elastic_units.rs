//! An elastic filter of a table that is read into memory: its units are kept one by one, under the pinned cache.
//!
//! A unit is worth the lookups in vain that it saves: with `h` of them and a rate of `q` for one unit, unit `u` saves
//! `h * q^u * (1 - q)`. That is what it stands for in the pinned cache, beside indexes and other filters: a unit comes in where
//! there is room or where others are worth clearly less for their bytes, and goes when others are worth more. Later units
//! of a table are worth less than earlier ones, so they go first. The filter answers from the units it has.
//!
//! Opening reads the filter's header and no more; each unit is held against its own checksum when it is loaded. One that is damaged
//! is reported and done without, and the others go on.

use std::sync::Arc;

use tamis_bits::AlignedBytes;
use tamis_filter::{Probe, bloom::elastic::ElasticHeader};

use super::{
    environment::{FilterFault, TableEnvironment},
    format::SECTION_HEADER_LENGTH,
    section::{SectionRecord, Source},
};
use crate::{
    cache::{
        hotness::Hotness,
        pinned_cache::{Pinned, Share},
    },
    error::Result,
};

/// See the head of this file.
#[derive(Debug)]
pub(super) struct ElasticUnits {
    header: ElasticHeader,
    /// Where the encoded filter begins in its file.
    offset: u64,
    units: Vec<Unit>,
    hotness: Arc<Hotness>,
}

#[derive(Debug)]
struct Unit {
    kept: Pinned<AlignedBytes>,
    fault: FilterFault,
}

/// Bytes at the front of a section that tell whether it holds an elastic filter, and all of it but its units.
pub(super) const FRONT_BYTES: usize = SECTION_HEADER_LENGTH + ElasticHeader::BYTES;

/// The header of the filter of a section, by [`FRONT_BYTES`] of it, where it is an elastic one with units that can be kept one by
/// one: those of a mapped file cost no memory of ours. Of any other filter, and of one that is damaged here, `None`.
pub(super) fn elastic_header(front: &[u8], record: &SectionRecord) -> Option<ElasticHeader> {
    let header = ElasticHeader::parse(front.get(SECTION_HEADER_LENGTH..)?, record.body_length());
    header.ok().filter(|header| header.unit_count() > 0)
}

impl ElasticUnits {
    /// The units of a filter, those in memory for which the pinned cache has room now.
    pub(super) fn new(
        environment: &Arc<TableEnvironment>,
        source: &Source,
        record: &SectionRecord,
        header: ElasticHeader,
        hotness: &Arc<Hotness>,
    ) -> Self {
        let (pinned_cache, bytes) = (&environment.pinned_cache, header.unit_bytes());
        let unit = |number: u32| {
            let saved = header.fpr(number) - header.fpr(number + 1);
            let share = Share { hotness: Arc::clone(hotness), saved };
            Unit {
                kept: Pinned::shared(pinned_cache, &source.path, share, bytes),
                fault: FilterFault::default(),
            }
        };
        let units = (0..header.unit_count()).map(unit).collect();
        let offset = record.body_offset();
        let new = Self { header, offset, units, hotness: Arc::clone(hotness) };
        for (number, unit) in (0..).zip(&new.units) {
            drop(unit.kept.load_if_admitted(|| new.load(environment, source, number, unit)));
        }
        new
    }

    fn load(
        &self,
        environment: &TableEnvironment,
        source: &Source,
        number: u32,
        unit: &Unit,
    ) -> Result<AlignedBytes> {
        unit.fault.note(environment, &source.path, self.read(source, number))
    }

    fn read(&self, source: &Source, number: u32) -> Result<AlignedBytes> {
        let range = self.header.unit_range(number).unwrap_or_default();
        let mut bytes = AlignedBytes::zeroed((range.end - range.start) as usize);
        source.read(self.offset + range.start, bytes.as_mut_slice())?;
        self.header.check_unit(number, bytes.as_ref()).map_err(|reason| {
            source.damaged(self.offset + range.start, "filter", "a whole unit", reason.to_string())
        })?;
        Ok(bytes)
    }

    /// Whether all units at hand admit the key.
    pub(super) fn may_contain(
        &self,
        environment: &TableEnvironment,
        source: &Source,
        probe: &Probe<'_>,
    ) -> bool {
        let if_cached = |(number, unit)| {
            let unit: &Unit = unit;
            if unit.fault.is_known() {
                return None;
            }
            let bytes = unit.kept.get_if_admitted(|| self.load(environment, source, number, unit));
            bytes.map(|bytes| (u64::from(number), bytes))
        };
        let is_admitted = self.header.ask(probe, (0..).zip(&self.units).filter_map(if_cached));
        if !is_admitted {
            self.record_false_positive(environment);
        }
        is_admitted
    }

    /// Brings what [`ElasticUnits::may_contain`] needs first into the processor's cache.
    pub(super) fn prefetch(&self, probe: &Probe<'_>) {
        let held = self.units.iter().map(|unit| unit.kept.get_if_cached());
        let held = (0..).zip(held).filter_map(|(number, bytes)| bytes.map(|bytes| (number, bytes)));
        self.header.prefetch(probe, held);
    }

    /// Counts a lookup whose key the table did not have.
    pub(super) fn record_false_positive(&self, environment: &TableEnvironment) {
        self.hotness.record_access(environment.pinned_cache.epoch());
    }

    /// What is in memory, for people.
    pub(super) fn design(&self) -> String {
        let loaded_count = self.units.iter().filter(|unit| unit.kept.is_cached()).count() as u32;
        let mut text = "elastic: ".to_owned();
        // Writing to a string does not fail.
        let _ = self.header.design(&mut text, loaded_count);
        let bytes = u64::from(loaded_count) * self.header.unit_bytes();
        text.push_str(&format!("; {bytes} bytes in memory"));
        text.push_str(&format!(", {:.6} false positives expected", self.header.fpr(loaded_count)));
        text
    }
}
