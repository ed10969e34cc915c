//! An elastic filter of a table that is read into memory: its units are kept one by one, under the account.
//!
//! A unit is worth the lookups in vain that it saves: with `h` of them and a rate of `q` for one unit, unit `u` saves
//! `h * q^u * (1 - q)`. That is what it stands for in the account, beside indexes and other filters: a unit comes in where
//! there is room or where others are worth clearly less for their bytes, and goes when others are worth more. Later units
//! of a table are worth less than earlier ones, so they go first. The filter answers from the units it has.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tamis_bits::AlignedBytes;
use tamis_filter::{Probe, bloom::elastic::ElasticHeader};

use super::{
    environment::TableEnvironment,
    section::{SectionRecord, Source},
};
use crate::{
    cache::{
        account::{Kept, Share},
        hotness::Hotness,
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
    kept: Kept<AlignedBytes>,
    /// Told once, and not read again.
    is_damaged: AtomicBool,
}

impl ElasticUnits {
    /// The units of a filter, those in memory for which the account has room now.
    pub(super) fn new(
        environment: &Arc<TableEnvironment>,
        source: &Source,
        record: &SectionRecord,
        header: ElasticHeader,
        hotness: &Arc<Hotness>,
    ) -> Self {
        let (account, bytes) = (&environment.account, header.unit_bytes());
        let unit = |number: u32| {
            let saved = header.fpr(number) - header.fpr(number + 1);
            let share = Share { hotness: Arc::clone(hotness), saved };
            Unit {
                kept: Kept::shared(account, &source.path, share, bytes),
                is_damaged: AtomicBool::new(false),
            }
        };
        let units = (0..header.unit_count()).map(unit).collect();
        let offset = record.body_offset();
        let new = Self { header, offset, units, hotness: Arc::clone(hotness) };
        for (number, unit) in (0..).zip(&new.units) {
            drop(unit.kept.get_if_room_now(|| new.read(environment, source, number)));
        }
        new
    }

    fn read(&self, environment: &TableEnvironment, source: &Source, number: u32) -> Result<AlignedBytes> {
        let range = self.header.unit_range(number).unwrap_or_default();
        let mut bytes = AlignedBytes::zeroed((range.end - range.start) as usize);
        source.read(self.offset + range.start, bytes.as_mut_slice())?;
        self.header.check_unit(number, bytes.as_ref()).map_err(|reason| {
            let error =
                source.damaged(self.offset + range.start, "filter", "a whole unit", reason.to_string());
            if let Some(unit) = self.units.get(number as usize)
                && !unit.is_damaged.swap(true, Ordering::Relaxed)
            {
                environment.report_filter(&source.path, error.to_string());
            }
            error
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
        let admits = |(number, unit): (u32, &Unit)| {
            if unit.is_damaged.load(Ordering::Relaxed) {
                return true;
            }
            let bytes = unit.kept.get_if_room(|| self.read(environment, source, number));
            bytes.is_none_or(|bytes| self.header.may_contain(probe, number, bytes.as_ref()))
        };
        let is_admitted = (0..).zip(&self.units).all(admits);
        if !is_admitted {
            self.note_in_vain(environment);
        }
        is_admitted
    }

    /// Counts a lookup whose key the table did not have.
    pub(super) fn note_in_vain(&self, environment: &TableEnvironment) {
        self.hotness.note(environment.account.epoch());
    }

    /// What is in memory, for people.
    pub(super) fn design(&self) -> String {
        let loaded_count = self.units.iter().filter(|unit| unit.kept.is_held()).count() as u32;
        let mut text = "elastic: ".to_owned();
        // Writing to a string does not fail.
        let _ = self.header.design(&mut text, loaded_count);
        let bytes = u64::from(loaded_count) * self.header.unit_bytes();
        text.push_str(&format!("; {bytes} bytes in memory"));
        text.push_str(&format!(", {:.6} false positives expected", self.header.fpr(loaded_count)));
        text
    }
}
