//! An elastic filter of a table that is read into memory. Its units are loaded and evicted one by one by the pinned cache.
//!
//! The benefit of a unit is the number of false positives that it saves: with `h` lookups of absent keys and a rate of `q`
//! per unit, unit `u` saves `h * q^u * (1 - q)`. It competes with indexes and other filters for the pinned cache: a unit is
//! admitted if there is room or if others have clearly less benefit per byte, and evicted if others have more. Later units
//! of a table have less benefit than earlier ones, so they are evicted first. The filter answers from the units in memory.
//!
//! Opening reads only the filter's header. Each unit is verified by its own checksum when it is loaded. A damaged unit is
//! reported and not used, and the other units still are.

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
    /// Offset of the encoded filter in its file.
    offset: u64,
    units: Vec<Unit>,
    hotness: Arc<Hotness>,
}

#[derive(Debug)]
struct Unit {
    pinned: Pinned<AlignedBytes>,
    fault: FilterFault,
}

/// Bytes at the front of a section that show whether it is an elastic filter, and contain all of it but its units.
pub(super) const FRONT_BYTES: usize = SECTION_HEADER_LENGTH + ElasticHeader::BYTES;

/// The header of an elastic filter, from the first [`FRONT_BYTES`] of its section, if its units can be loaded one by one.
/// `None` for any other filter, for one that is damaged here, and in a mapped file, which takes none of our memory.
pub(super) fn elastic_header(front: &[u8], record: &SectionRecord) -> Option<ElasticHeader> {
    let header = ElasticHeader::parse(front.get(SECTION_HEADER_LENGTH..)?, record.body_length());
    header.ok().filter(|header| header.unit_count() > 0)
}

impl ElasticUnits {
    /// The units of a filter. Those that the pinned cache admits are loaded.
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
                pinned: Pinned::shared(pinned_cache, &source.path, share, bytes),
                fault: FilterFault::default(),
            }
        };
        let units = (0..header.unit_count()).map(unit).collect();
        let offset = record.body_offset();
        let new = Self { header, offset, units, hotness: Arc::clone(hotness) };
        for (number, unit) in (0..).zip(&new.units) {
            drop(unit.pinned.load_if_admitted(|| new.load(environment, source, number, unit)));
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
        unit.fault.record(environment, &source.path, self.read(source, number))
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

    /// Whether all units in memory admit the key.
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
            let bytes = unit.pinned.get_if_admitted(|| self.load(environment, source, number, unit));
            bytes.map(|bytes| (u64::from(number), bytes))
        };
        let is_admitted = self.header.ask(probe, (0..).zip(&self.units).filter_map(if_cached));
        if !is_admitted {
            self.record_false_positive(environment);
        }
        is_admitted
    }

    /// Prefetches the first cache lines that [`ElasticUnits::may_contain`] reads.
    pub(super) fn prefetch(&self, probe: &Probe<'_>) {
        let in_memory = self.units.iter().map(|unit| unit.pinned.get_if_cached());
        let in_memory = (0..).zip(in_memory).filter_map(|(number, bytes)| bytes.map(|bytes| (number, bytes)));
        self.header.prefetch(probe, in_memory);
    }

    /// Counts a lookup of a key that the table does not have.
    pub(super) fn record_false_positive(&self, environment: &TableEnvironment) {
        self.hotness.record_access(environment.pinned_cache.epoch());
    }

    /// Whether a unit was damaged when it was read.
    pub(super) fn has_fault(&self) -> bool {
        self.units.iter().any(|unit| unit.fault.is_known())
    }

    fn loaded_count(&self) -> u32 {
        self.units.iter().filter(|unit| unit.pinned.is_cached()).count() as u32
    }

    /// Bytes of the units in memory.
    pub(super) fn loaded_bytes(&self) -> u64 {
        u64::from(self.loaded_count()) * self.header.unit_bytes()
    }

    /// A description of the units in memory.
    pub(super) fn design(&self) -> String {
        let loaded_count = self.loaded_count();
        let mut text = "elastic: ".to_owned();
        // Writing to a string can't fail.
        let _ = self.header.design(&mut text, loaded_count);
        let bytes = u64::from(loaded_count) * self.header.unit_bytes();
        text.push_str(&format!("; {bytes} bytes in memory"));
        text.push_str(&format!(", {:.6} false positives expected", self.header.fpr(loaded_count)));
        text
    }
}
