//! The filters of an open table: those of its filter file if it has one, or else those in the table.
//!
//! The pinned cache loads and evicts each filter separately, an elastic one unit by unit. An evicted filter admits
//! everything until it is loaded again. An unusable filter is reported and not used, whether that is found when the table
//! is opened or when the filter is loaded again. If a filter file has no usable filter, the table's own filters are used.

use std::{
    ops::Bound,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use tamis_filter::{Candidate, DecodeError, Direction, Family, KeyRange, Probe, RangeProbe, Upper};

use super::{
    elastic_units::{ElasticUnits, FRONT_BYTES, elastic_header},
    environment::{FilterFault, TableEnvironment},
    filter_block::FilterBlock,
    filter_choice::FilterChoice,
    filter_file::{FilterOwner, open_filter_file},
    format::SectionKind,
    section::{SectionRecord, Source},
};
use crate::{
    cache::{
        hotness::Hotness,
        pinned_cache::{Pinned, PinnedRef},
    },
    error::{Error, Result},
    file_name::FileName,
};

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct FilterSet {
    filters: Vec<OpenFilter>,
    /// Number of filters, from the first, that points probe.
    asked_for_points: usize,
    /// Every filter of the filter file is used.
    is_whole_file: bool,
    /// Some filters are not in a mapped file.
    is_evictable: bool,
    /// A filter, or the filter file, could not be used when the table was opened.
    is_damaged: bool,
    /// Why the store chose these filters, if it did.
    choice: Option<(Place, SectionRecord)>,
    /// The same, once it was read; `None` if it is damaged.
    read_choice: OnceLock<Option<FilterChoice>>,
}

/// A query of a table, by the filters that it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterQuery {
    /// A get: the filters that points probe.
    Point,
    /// A range of one key: all filters.
    OneKey,
    /// A range or a prefix: the filters that answer ranges.
    Range,
    /// An open seek: the filters that name candidates.
    Seek,
}

/// The file of a filter.
#[derive(Debug, Clone, Copy)]
enum Place {
    File(u64),
    Table,
}

#[derive(Debug)]
struct OpenFilter {
    place: Place,
    record: SectionRecord,
    family: Family,
    loaded: Loaded,
}

/// A filter as it is in memory.
#[derive(Debug)]
enum Loaded {
    Whole(Pinned<FilterBlock>, FilterFault),
    /// The filter's file, if it is not the table.
    Units(ElasticUnits, Option<Source>),
}

pub(super) fn open_block(source: &Source, record: &SectionRecord) -> Result<FilterBlock> {
    open_with_front(source, record, &[])
}

/// As [`open_block`], with the front that was read before.
fn open_with_front(source: &Source, record: &SectionRecord, front: &[u8]) -> Result<FilterBlock> {
    FilterBlock::open(source.section_with_front(record, front)?)
        .map_err(|error| unusable_filter(source, record, &error))
}

/// A family that this program does not know is another format, and no damage.
fn unusable_filter(source: &Source, record: &SectionRecord, error: &DecodeError) -> Error {
    let unknown = |found, known| Error::UnknownFormat { file: source.path.to_path_buf(), found, known };
    match *error {
        DecodeError::Version { got, max } => unknown(got.into(), max.into()),
        DecodeError::Family { got } => {
            unknown(got.into(), Family::ALL.map(|family| family as u32).into_iter().fold(0, u32::max))
        }
        _ => source.damaged(record.offset, "filter", "a valid one", error.to_string()),
    }
}

impl OpenFilter {
    fn read(&self, environment: &TableEnvironment, table: &Source) -> Result<FilterBlock> {
        match self.place {
            Place::File(number) => {
                open_block(&environment.open_file(FileName::Filter(number))?, &self.record)
            }
            Place::Table => open_block(table, &self.record),
        }
    }

    /// The path of the filter's file.
    fn path(&self, environment: &TableEnvironment, table: &Source) -> PathBuf {
        match self.place {
            Place::File(number) => FileName::Filter(number).path(&environment.folder),
            Place::Table => table.path.to_path_buf(),
        }
    }

    /// The filter in a mapped file, which is always in memory.
    #[inline]
    const fn fixed(&self) -> Option<&FilterBlock> {
        match &self.loaded {
            Loaded::Whole(pinned, _) => pinned.as_fixed(),
            Loaded::Units(..) => None,
        }
    }

    /// The filter, if all of it is in memory. An evicted filter is loaded again only if it is admitted: a load for a single
    /// lookup costs more than it saves.
    #[inline]
    fn get_if_cached<'a>(
        &'a self,
        environment: &TableEnvironment,
        table: &Source,
    ) -> Option<PinnedRef<'a, FilterBlock>> {
        match &self.loaded {
            Loaded::Whole(_, fault) if fault.is_known() => None,
            Loaded::Whole(pinned, fault) => pinned.get_if_admitted(|| {
                let read = self.read(environment, table);
                fault.record(environment, &self.path(environment, table), read)
            }),
            Loaded::Units(..) => None,
        }
    }

    /// A mapped filter is queried inline: without a guard and without a call.
    #[inline]
    fn may_contain(&self, environment: &TableEnvironment, table: &Source, probe: &Probe<'_>) -> bool {
        match self.fixed() {
            Some(filter) => filter.may_contain(probe),
            None => self.counted_may_contain(environment, table, probe),
        }
    }

    #[inline(never)]
    fn counted_may_contain(&self, environment: &TableEnvironment, table: &Source, probe: &Probe<'_>) -> bool {
        match &self.loaded {
            Loaded::Whole(..) => {
                self.get_if_cached(environment, table).is_none_or(|filter| filter.may_contain(probe))
            }
            Loaded::Units(units, source) => {
                units.may_contain(environment, source.as_ref().unwrap_or(table), probe)
            }
        }
    }

    /// Whether a query asks it: an evicted filter is not asked, and admits everything. One that can't be read admits everything from then on.
    fn is_asked(&self) -> bool {
        match &self.loaded {
            Loaded::Whole(pinned, fault) => pinned.is_cached() || fault.is_known(),
            Loaded::Units(units, _) => units.loaded_bytes() > 0 || units.has_fault(),
        }
    }

    /// Whether it, or a unit of it, was damaged when it was read again.
    fn has_fault(&self) -> bool {
        match &self.loaded {
            Loaded::Whole(_, fault) => fault.is_known(),
            Loaded::Units(units, _) => units.has_fault(),
        }
    }

    #[inline]
    fn prefetch(&self, probe: &Probe<'_>) {
        match self.fixed() {
            Some(filter) => filter.prefetch(probe),
            None => self.counted_prefetch(probe),
        }
    }

    /// Not counted as an access: the lookup that follows counts it.
    #[inline(never)]
    fn counted_prefetch(&self, probe: &Probe<'_>) {
        match &self.loaded {
            Loaded::Whole(pinned, _) => {
                pinned.get_if_cached().iter().for_each(|filter| filter.prefetch(probe))
            }
            Loaded::Units(units, _) => units.prefetch(probe),
        }
    }

    /// A filter of points is not asked for a range of more keys: that would count an access, and so keep a filter in memory
    /// that saves nothing.
    fn may_contain_range(
        &self,
        environment: &TableEnvironment,
        table: &Source,
        probe: &RangeProbe<'_>,
    ) -> bool {
        match &self.loaded {
            Loaded::Whole(..) if !self.family.answers_ranges() && probe.point().is_none() => true,
            Loaded::Whole(..) => {
                self.get_if_cached(environment, table).is_none_or(|filter| filter.may_contain_range(probe))
            }
            Loaded::Units(..) => {
                probe.point().is_none_or(|point| self.may_contain(environment, table, point))
            }
        }
    }
}

impl FilterSet {
    /// The usable filters: of the filter file if there is one, or else of the table's `records`.
    pub(super) fn open(
        environment: &Arc<TableEnvironment>,
        table: &Source,
        records: &[SectionRecord],
        file: Option<(u64, FilterOwner)>,
        hotness: &Arc<Hotness>,
    ) -> Self {
        let has_file = file.is_some();
        if let Some((number, owner)) = file {
            match open_filter_file(environment, number, owner) {
                Ok((source, records)) => {
                    let set = Self::of_file(environment, &source, &records, Place::File(number), hotness);
                    let chose_none = records.iter().all(|record| record.kind != SectionKind::Filter);
                    if chose_none || !set.is_empty() {
                        return set;
                    }
                }
                Err(error) => environment.report_filter(&table.path, error.to_string()),
            }
        }
        let set = Self::of_file(environment, table, records, Place::Table, hotness);
        // Without a usable filter file the table has its own filters.
        Self { is_whole_file: false, is_damaged: set.is_damaged || has_file, ..set }
    }

    /// The usable filters of a file with these sections.
    fn of_file(
        environment: &Arc<TableEnvironment>,
        source: &Source,
        records: &[SectionRecord],
        place: Place,
        hotness: &Arc<Hotness>,
    ) -> Self {
        let of_kind = |kind| records.iter().filter(move |record| record.kind == kind).copied();
        let records: Vec<_> = of_kind(SectionKind::Filter).collect();
        let filters = usable(environment, source, &records, place, hotness);
        let choice = of_kind(SectionKind::FilterChoice).next().map(|record| (place, record));
        let is_whole_file = filters.len() == records.len();
        let is_evictable = filters.iter().any(|filter| filter.fixed().is_none());
        let asked_for_points = asked_for_points(&filters, choice.is_some());
        let (is_damaged, read_choice) = (!is_whole_file, OnceLock::new());
        Self { filters, asked_for_points, is_whole_file, is_evictable, is_damaged, choice, read_choice }
    }

    /// Why the store chose these filters; `None` if it did not, or if that can't be read. The first call reads it.
    pub(super) fn choice(&self, environment: &TableEnvironment, table: &Source) -> Option<&FilterChoice> {
        if let Some(choice) = self.read_choice.get() {
            return choice.as_ref();
        }
        let (place, record) = self.choice?;
        let body = match place {
            Place::File(number) => {
                environment.open_file(FileName::Filter(number)).and_then(|file| file.section(&record))
            }
            Place::Table => table.section(&record),
        };
        let choice = match body {
            Ok(body) => FilterChoice::decode(body.as_ref()),
            Err(error) if error.is_lasting_damage() => None,
            // It may be readable the next time.
            Err(_) => return None,
        };
        self.read_choice.get_or_init(|| choice).as_ref()
    }

    /// Whether a filter, or the filter file, can't be used, as far as it was read.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged || self.filters.iter().any(OpenFilter::has_fault)
    }

    /// Bytes of the filters.
    pub(super) fn bytes(&self) -> u64 {
        self.filters.iter().map(|filter| filter.record.length).sum()
    }

    /// Number of usable filters.
    pub(super) const fn len(&self) -> usize {
        self.filters.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether one of them can reject ranges of more than one key.
    pub(super) fn answers_ranges(&self) -> bool {
        self.filters.iter().any(|filter| filter.family.answers_ranges())
    }

    /// Whether all filters that points probe admit the key.
    #[inline]
    pub(super) fn may_contain(
        &self,
        environment: &TableEnvironment,
        table: &Source,
        probe: &Probe<'_>,
    ) -> bool {
        let mut asked = self.filters.iter().take(self.asked_for_points);
        asked.all(|filter| filter.may_contain(environment, table, probe))
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

    /// Whether none of the filters that a query asks is evicted. The answer of the others says nothing about the rate of all of them.
    #[inline]
    pub(super) fn are_all_asked(&self, query: FilterQuery) -> bool {
        !self.is_evictable || self.are_all_in_memory(query)
    }

    #[inline(never)]
    fn are_all_in_memory(&self, query: FilterQuery) -> bool {
        let count = if query == FilterQuery::Point { self.asked_for_points } else { usize::MAX };
        let mut asked = self.filters.iter().take(count).filter(|filter| match query {
            FilterQuery::Point | FilterQuery::OneKey => true,
            FilterQuery::Range => filter.family.answers_ranges(),
            FilterQuery::Seek => filter.family.names_candidates(false),
        });
        asked.all(OpenFilter::is_asked)
    }

    /// The best candidate of the filters: each one is a bound of the first key in the direction.
    pub(super) fn candidate(
        &self,
        environment: &TableEnvironment,
        table: &Source,
        probe: &RangeProbe<'_>,
        direction: Direction,
    ) -> Candidate {
        let KeyRange { lower, upper } = probe.range();
        let has_two_bounds = *lower != Bound::Unbounded && *upper != Upper::Open;
        let mut best = Candidate::Unknown;
        for filter in self.filters.iter().filter(|filter| filter.family.names_candidates(has_two_bounds)) {
            let Some(filter) = filter.get_if_cached(environment, table) else { continue };
            let candidate = filter.candidate(probe, direction);
            match (&best, &candidate) {
                (_, Candidate::Absent) => return candidate,
                (_, Candidate::Unknown) => {}
                (Candidate::Bytes(known), Candidate::Bytes(bytes)) => {
                    if (bytes > known) == (direction == Direction::Forward) {
                        best = candidate;
                    }
                }
                _ => best = candidate,
            }
        }
        best
    }

    /// Prefetches the cache lines that the first filter reads in [`FilterSet::may_contain`]; the others are probed only if it admits the
    /// key.
    #[inline]
    pub(super) fn prefetch(&self, probe: &Probe<'_>) {
        self.filters.iter().take(1).for_each(|filter| filter.prefetch(probe));
    }

    /// Records a key that the filters admitted and the table does not have.
    pub(super) fn record_false_positive(&self, environment: &TableEnvironment) {
        for filter in &self.filters {
            if let Loaded::Units(units, _) = &filter.loaded {
                units.record_false_positive(environment);
            }
        }
    }

    /// Descriptions of the filters; those that are not in memory at all are left out.
    /// Each with its bytes in memory.
    pub(super) fn designs(&self) -> Vec<(String, u64)> {
        let design = |filter: &OpenFilter| match &filter.loaded {
            Loaded::Whole(pinned, _) => {
                pinned.get_if_cached().map(|loaded| (loaded.design(), filter.record.length))
            }
            Loaded::Units(units, _) => Some((units.design(), units.loaded_bytes())),
        };
        self.filters.iter().filter_map(design).collect()
    }

    /// All filters in use, read again.
    pub(super) fn read_all(
        &self,
        environment: &TableEnvironment,
        table: &Source,
    ) -> impl Iterator<Item = Result<FilterBlock>> {
        self.filters.iter().map(|filter| filter.read(environment, table))
    }

    /// The first fault of the filter file. If all its filters are in use, they are verified with the table and not here.
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
        let mut filters = records.iter().filter(|record| record.kind == SectionKind::Filter);
        filters.try_for_each(|record| open_block(&source, record).map(drop))
    }
}

/// Number of filters, from the first, that points probe. If the store chose a filter for points, it is the first, and points probe it
/// alone: present keys would pay for the others. Given filters are all probed.
fn asked_for_points(filters: &[OpenFilter], is_chosen: bool) -> usize {
    let has_first = filters.first().is_some_and(|first| !first.family.answers_ranges());
    if is_chosen && has_first { 1 } else { filters.len() }
}

/// The usable filters; the others are reported.
fn usable(
    environment: &Arc<TableEnvironment>,
    source: &Source,
    records: &[SectionRecord],
    place: Place,
    hotness: &Arc<Hotness>,
) -> Vec<OpenFilter> {
    let open = |record: &SectionRecord| -> Result<OpenFilter> {
        let front = source.front(record, FRONT_BYTES)?;
        if let Some(header) = elastic_header(&front, record) {
            let units = ElasticUnits::new(environment, source, record, header, hotness);
            let loaded = Loaded::Units(units, matches!(place, Place::File(_)).then(|| source.clone()));
            return Ok(OpenFilter { place, record: *record, family: Family::Elastic, loaded });
        }
        let filter = open_with_front(source, record, &front)?;
        let (family, bytes) = (filter.family(), filter.memory_bytes());
        let loaded = Loaded::Whole(environment.pin(source, filter, bytes), FilterFault::default());
        Ok(OpenFilter { place, record: *record, family, loaded })
    };
    let usable = |record| {
        open(record).inspect_err(|error| environment.report_filter(&source.path, error.to_string())).ok()
    };
    records.iter().filter_map(usable).collect()
}
