//! The filters in force of an open table: those of its filter file, or else those in the table itself.
//!
//! Each filter is kept or dropped by the pinned cache for itself, an elastic one unit by unit; what was dropped abstains until it
//! is read again. A filter that can't be used is reported and passed over, be it when the table is opened or when it is read
//! again; a file without a usable one gives way to the table's own.

use std::{path::PathBuf, sync::Arc};

use tamis_filter::{Probe, RangeProbe};

use super::{
    elastic_units::{ElasticUnits, FRONT_BYTES, elastic_header},
    environment::{FilterFault, TableEnvironment},
    filter_block::FilterBlock,
    filter_file::{FilterOwner, open_filter_file},
    format::KIND_FILTER,
    section::{SectionRecord, Source},
};
use crate::{
    cache::{
        hotness::Hotness,
        pinned_cache::{Pinned, PinnedRef},
    },
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
    held: Held,
}

/// What is in memory of a filter.
#[derive(Debug)]
enum Held {
    Whole(Pinned<FilterBlock>, FilterFault),
    /// The file it lies in, where that is not the table's.
    Units(ElasticUnits, Option<Source>),
}

fn open_block(source: &Source, record: &SectionRecord) -> Result<FilterBlock> {
    open_behind(source, record, &[])
}

/// As [`open_block`], of which the front was read before.
fn open_behind(source: &Source, record: &SectionRecord, front: &[u8]) -> Result<FilterBlock> {
    FilterBlock::open(source.section_behind(record, front)?)
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

    /// The file that it lies in.
    fn path(&self, environment: &TableEnvironment, table: &Source) -> PathBuf {
        match self.place {
            Place::File(number) => FileName::Filter(number).path(&environment.folder),
            Place::Table => table.path.to_path_buf(),
        }
    }

    /// The filter of a mapped file, which always stays.
    #[inline]
    const fn fixed(&self) -> Option<&FilterBlock> {
        match &self.held {
            Held::Whole(kept, _) => kept.as_fixed(),
            Held::Units(..) => None,
        }
    }

    /// The filter, where it is in memory in one piece. One that was dropped is read again only where it can stay: reading
    /// it for one question costs more than it saves.
    #[inline]
    fn get_if_cached<'a>(
        &'a self,
        environment: &TableEnvironment,
        table: &Source,
    ) -> Option<PinnedRef<'a, FilterBlock>> {
        match &self.held {
            Held::Whole(_, fault) if fault.is_known() => None,
            Held::Whole(kept, fault) => kept.get_if_admitted(|| {
                let read = self.read(environment, table);
                fault.note(environment, &self.path(environment, table), read)
            }),
            Held::Units(..) => None,
        }
    }

    /// A mapped filter is asked where the reader stands: without a guard and without a call on the way.
    #[inline]
    fn may_contain(&self, environment: &TableEnvironment, table: &Source, probe: &Probe<'_>) -> bool {
        match self.fixed() {
            Some(filter) => filter.may_contain(probe),
            None => self.counted_may_contain(environment, table, probe),
        }
    }

    #[inline(never)]
    fn counted_may_contain(&self, environment: &TableEnvironment, table: &Source, probe: &Probe<'_>) -> bool {
        match &self.held {
            Held::Whole(..) => {
                self.get_if_cached(environment, table).is_none_or(|filter| filter.may_contain(probe))
            }
            Held::Units(units, source) => {
                units.may_contain(environment, source.as_ref().unwrap_or(table), probe)
            }
        }
    }

    #[inline]
    fn prefetch(&self, probe: &Probe<'_>) {
        match self.fixed() {
            Some(filter) => filter.prefetch(probe),
            None => self.counted_prefetch(probe),
        }
    }

    /// No need is counted: the question that follows counts it.
    #[inline(never)]
    fn counted_prefetch(&self, probe: &Probe<'_>) {
        match &self.held {
            Held::Whole(kept, _) => kept.get_if_cached().iter().for_each(|filter| filter.prefetch(probe)),
            Held::Units(units, _) => units.prefetch(probe),
        }
    }

    fn may_contain_range(
        &self,
        environment: &TableEnvironment,
        table: &Source,
        probe: &RangeProbe<'_>,
    ) -> bool {
        match &self.held {
            Held::Whole(..) => {
                self.get_if_cached(environment, table).is_none_or(|filter| filter.may_contain_range(probe))
            }
            Held::Units(..) => probe.point().is_none_or(|point| self.may_contain(environment, table, point)),
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
        hotness: &Arc<Hotness>,
    ) -> Self {
        if let Some((number, owner)) = file {
            match open_filter_file(environment, number, owner) {
                Ok((source, records)) => {
                    let filters = usable(environment, &source, &records, Place::File(number), hotness);
                    if !filters.is_empty() {
                        return Self { is_whole_file: filters.len() == records.len(), filters };
                    }
                }
                Err(error) => environment.report_filter(&table.path, error.to_string()),
            }
        }
        let records: Vec<_> = records.iter().filter(|record| record.kind == KIND_FILTER).copied().collect();
        Self { filters: usable(environment, table, &records, Place::Table, hotness), is_whole_file: false }
    }

    #[inline]
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
        self.filters.iter().all(|filter| filter.may_contain(environment, table, probe))
    }

    /// Whether all of them admit the range.
    pub(super) fn may_contain_range(
        &self,
        environment: &TableEnvironment,
        table: &Source,
        probe: &RangeProbe<'_>,
    ) -> bool {
        self.filters.iter().all(|filter| filter.may_contain_range(environment, table, probe))
    }

    /// Brings what [`FilterSet::may_contain`] needs into the processor's cache.
    #[inline]
    pub(super) fn prefetch(&self, probe: &Probe<'_>) {
        self.filters.iter().for_each(|filter| filter.prefetch(probe));
    }

    /// Takes note of a key that the filters admitted and the table did not have.
    pub(super) fn record_false_positive(&self, environment: &TableEnvironment) {
        for filter in &self.filters {
            if let Held::Units(units, _) = &filter.held {
                units.record_false_positive(environment);
            }
        }
    }

    /// What is in force, for people; filters that are not in memory at all are left out.
    pub(super) fn designs(&self) -> Vec<String> {
        let design = |filter: &KeptFilter| match &filter.held {
            Held::Whole(kept, _) => kept.get_if_cached().map(|filter| filter.design()),
            Held::Units(units, _) => Some(units.design()),
        };
        self.filters.iter().filter_map(design).collect()
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
    environment: &Arc<TableEnvironment>,
    source: &Source,
    records: &[SectionRecord],
    place: Place,
    hotness: &Arc<Hotness>,
) -> Vec<KeptFilter> {
    let open = |record: &SectionRecord| -> Result<KeptFilter> {
        let front = source.front(record, FRONT_BYTES)?;
        if let Some(header) = elastic_header(&front, record) {
            let units = ElasticUnits::new(environment, source, record, header, hotness);
            let held = Held::Units(units, matches!(place, Place::File(_)).then(|| source.clone()));
            return Ok(KeptFilter { place, record: *record, answers_ranges: false, held });
        }
        let filter = open_behind(source, record, &front)?;
        let (answers_ranges, bytes) = (filter.answers_ranges(), filter.memory_bytes());
        let held = Held::Whole(environment.keep(source, filter, bytes), FilterFault::default());
        Ok(KeptFilter { place, record: *record, answers_ranges, held })
    };
    let usable = |record| {
        open(record).inspect_err(|error| environment.report_filter(&source.path, error.to_string())).ok()
    };
    records.iter().filter_map(usable).collect()
}
