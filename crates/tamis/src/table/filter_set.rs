//! The filters in force of an open table: those of its filter file, or else those in the table itself.
//!
//! Each filter is kept or dropped by the account for itself; one that was dropped abstains until it is read again. One that
//! can't be used is reported and passed over; a file without a usable filter gives way to the table's own.

use std::sync::Arc;

use tamis_filter::{Probe, RangeProbe};

use super::{
    environment::TableEnvironment,
    filter_block::FilterBlock,
    filter_file::{FilterOwner, open_filter_file},
    format::KIND_FILTER,
    section::{SectionRecord, Source},
};
use crate::{
    cache::account::{Kept, KeptRef},
    error::Result,
    file_name::FileName,
};

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct FilterSet {
    filters: Vec<KeptFilter>,
    /// Every filter of the filter file is in force.
    is_whole_file: bool,
}

/// Where a filter lies.
#[derive(Debug, Clone, Copy)]
enum Place {
    File(u64),
    Table,
}

#[derive(Debug)]
struct KeptFilter {
    place: Place,
    record: SectionRecord,
    answers_ranges: bool,
    kept: Kept<FilterBlock>,
}

fn open_block(source: &Source, record: &SectionRecord) -> Result<FilterBlock> {
    FilterBlock::open(source.section(record)?)
        .map_err(|reason| source.damaged(record.offset, "filter", "a known family", reason))
}

impl KeptFilter {
    fn read(&self, environment: &TableEnvironment, table: &Source) -> Result<FilterBlock> {
        match self.place {
            Place::File(number) => {
                open_block(&environment.open_file(FileName::Filter(number))?, &self.record)
            }
            Place::Table => open_block(table, &self.record),
        }
    }
}

impl FilterSet {
    /// The filters that can be used: of the filter file where there is one, or else of the table's `records`.
    pub(super) fn open(
        environment: &Arc<TableEnvironment>,
        table: &Source,
        records: &[SectionRecord],
        file: Option<(u64, FilterOwner)>,
    ) -> Self {
        if let Some((number, owner)) = file {
            match open_filter_file(environment, number, owner) {
                Ok((source, records)) => {
                    let filters = usable(environment, &source, &records, Place::File(number));
                    if !filters.is_empty() {
                        return Self { is_whole_file: filters.len() == records.len(), filters };
                    }
                }
                Err(error) => environment.report_filter(&table.path, error.to_string()),
            }
        }
        let records: Vec<_> = records.iter().filter(|record| record.kind == KIND_FILTER).copied().collect();
        Self { filters: usable(environment, table, &records, Place::Table), is_whole_file: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether one of them can deny ranges of more than one key.
    pub(super) fn answers_ranges(&self) -> bool {
        self.filters.iter().any(|filter| filter.answers_ranges)
    }

    /// Whether all of them admit the key.
    #[inline]
    pub(super) fn may_contain(
        &self,
        environment: &TableEnvironment,
        table: &Source,
        probe: &Probe<'_>,
    ) -> bool {
        self.at_hand(environment, table).all(|filter| filter.may_contain(probe))
    }

    /// Whether all of them admit the range.
    pub(super) fn may_contain_range(
        &self,
        environment: &TableEnvironment,
        table: &Source,
        probe: &RangeProbe<'_>,
    ) -> bool {
        self.at_hand(environment, table).all(|filter| filter.may_contain_range(probe))
    }

    /// The filters that are in memory. One that was dropped is read again only where it can stay: reading it for one
    /// question costs more than it saves.
    #[inline]
    pub(super) fn at_hand<'a>(
        &'a self,
        environment: &'a TableEnvironment,
        table: &'a Source,
    ) -> impl Iterator<Item = KeptRef<'a, FilterBlock>> {
        self.filters
            .iter()
            .filter_map(move |filter| filter.kept.get_if_room(|| filter.read(environment, table)))
    }

    /// All filters in force, read anew.
    pub(super) fn read_all(
        &self,
        environment: &TableEnvironment,
        table: &Source,
    ) -> impl Iterator<Item = Result<FilterBlock>> {
        self.filters.iter().map(|filter| filter.read(environment, table))
    }

    /// The first fault of the filter file; none is looked for where all its filters are in force, which are verified with
    /// the table.
    pub(super) fn check_file(
        &self,
        environment: &Arc<TableEnvironment>,
        number: u64,
        owner: FilterOwner,
    ) -> Result<()> {
        if self.is_whole_file {
            return Ok(());
        }
        let (source, records) = open_filter_file(environment, number, owner)?;
        records.iter().try_for_each(|record| open_block(&source, record).map(drop))
    }
}

/// The filters that can be used; the others are reported.
fn usable(
    environment: &TableEnvironment,
    source: &Source,
    records: &[SectionRecord],
    place: Place,
) -> Vec<KeptFilter> {
    let open = |record: &SectionRecord| match open_block(source, record) {
        Ok(filter) => {
            let (bytes, answers_ranges) = (filter.memory_bytes(), filter.answers_ranges());
            let kept = environment.keep(source, filter, bytes);
            Some(KeptFilter { place, record: *record, answers_ranges, kept })
        }
        Err(error) => {
            environment.report_filter(&source.path, error.to_string());
            None
        }
    };
    records.iter().filter_map(open).collect()
}
