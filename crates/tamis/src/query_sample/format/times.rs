//! The times of probes and reads in the file of derived data.

use tamis_filter::{
    Family,
    auto::{ProbeTime, ProbeTimes},
};
use tamis_vfs::Access;

use crate::{
    coding::{Decoder, put_u64, put_varint},
    read_times::StoredReadTime,
};

/// The greatest time of a probe, in picoseconds, and of a read, in nanoseconds.
const PROBE_PICOSECONDS_MAX: u64 = 1_000_000_000;
const READ_NANOSECONDS_MAX: u64 = 1_000_000_000;
const PICOSECONDS: f64 = 1_000.0;
/// The greatest price of memory, in femtoseconds.
const MEMORY_FEMTOSECONDS_MAX: u64 = 1_000_000_000_000;
const FEMTOSECONDS: f64 = 1_000_000.0;
/// The least bytes of the times of a family, and of those of a level.
const PROBE_BYTES_MIN: usize = 4;
const READ_BYTES_MIN: usize = 2;

/// The times that were measured on a machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredTimes {
    /// The model of the processor ([`tamis_bits::processor_model`]).
    pub(crate) processor: u64,
    /// How tables were read.
    pub(crate) access: Access,
    /// `None`: not measured.
    pub(crate) probes: Option<ProbeTimes>,
    /// Of all levels together, then of each level from L0 on.
    pub(crate) reads: Vec<StoredReadTime>,
    /// The price of memory, in nanoseconds of a query for a bit per key; `None`: not known.
    pub(crate) memory_price: Option<f64>,
}

impl Default for StoredTimes {
    /// No times.
    fn default() -> Self {
        Self { processor: 0, access: Access::Mapped, probes: None, reads: Vec::new(), memory_price: None }
    }
}

impl StoredTimes {
    /// The times that are valid on a machine with this processor, for tables that are read in this way.
    pub(crate) fn valid_for(mut self, processor: u64, access: Access) -> Self {
        let is_same = self.processor == processor;
        // An unknown processor may be another one.
        if !is_same || processor == 0 {
            self.probes = None;
        }
        if !is_same || self.access != access {
            self.reads.clear();
            // It weighs memory against reads.
            self.memory_price = None;
        }
        Self { processor, access, ..self }
    }
}

const fn access_number(access: Access) -> u8 {
    match access {
        Access::Mapped => 0,
        Access::Buffered => 1,
        Access::Direct => 2,
    }
}

pub(super) fn put_times(bytes: &mut Vec<u8>, times: &StoredTimes) {
    put_u64(bytes, times.processor);
    bytes.push(access_number(times.access));
    put_varint(bytes, times.probes.map_or(0, |_| Family::ALL.len() as u64));
    for (probes, family) in times.probes.iter().flat_map(|probes| Family::ALL.map(|family| (probes, family)))
    {
        put_varint(bytes, family as u64);
        let ProbeTime { point_ns, range_ns, further_ns } = probes.get(family);
        for time in [point_ns, range_ns, further_ns] {
            put_varint(bytes, ((time * PICOSECONDS) as u64).min(PROBE_PICOSECONDS_MAX));
        }
    }
    put_varint(bytes, times.reads.len() as u64);
    for read in &times.reads {
        put_varint(bytes, read.count);
        put_varint(bytes, read.nanoseconds.min(READ_NANOSECONDS_MAX));
    }
    let price = times.memory_price.map_or(0, |price| (price * FEMTOSECONDS) as u64);
    put_varint(bytes, price.min(MEMORY_FEMTOSECONDS_MAX));
}

pub(super) fn take_times(source: &mut Decoder<'_>, has_memory_price: bool) -> Option<StoredTimes> {
    let processor = source.take_u64()?;
    let access = source.take_u8()?;
    let known = [Access::Mapped, Access::Buffered, Access::Direct];
    let access = known.into_iter().find(|known| access_number(*known) == access)?;
    let probe_count = super::take_count(source, PROBE_BYTES_MIN)?;
    let mut probes = (probe_count > 0).then(ProbeTimes::default);
    for _ in 0..probe_count {
        let family = u16::try_from(source.take_varint()?).ok()?;
        let mut take = || {
            let time = source.take_varint().filter(|time| *time <= PROBE_PICOSECONDS_MAX)?;
            Some(time as f64 / PICOSECONDS)
        };
        let time = ProbeTime { point_ns: take()?, range_ns: take()?, further_ns: take()? };
        // A later version may have more families.
        if let (Some(probes), Ok(family)) = (&mut probes, Family::from_number(family)) {
            probes.set(family, time);
        }
    }
    let read_count = super::take_count(source, READ_BYTES_MIN)?;
    let mut reads = Vec::with_capacity(read_count);
    for _ in 0..read_count {
        let count = source.take_varint()?;
        let nanoseconds = source.take_varint().filter(|time| *time <= READ_NANOSECONDS_MAX)?;
        reads.push(StoredReadTime { count, nanoseconds });
    }
    let price = if has_memory_price { source.take_varint()? } else { 0 };
    let memory_price = (price > 0).then_some(price as f64 / FEMTOSECONDS);
    (price <= MEMORY_FEMTOSECONDS_MAX).then_some(StoredTimes {
        processor,
        access,
        probes,
        reads,
        memory_price,
    })
}
