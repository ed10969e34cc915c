//! Checks the filters that the store chose, and replaces those that no longer suit the queries.
//!
//! A table is due by the law (`law.rs`). It loses the time of the false positives beyond those that its filters were expected to have
//! (`version/filter_tally.rs`): none if the store did not choose them, if their choice left out designs, or if it knew too few queries. So is an open
//! table of which a filter, or the filter file, is damaged, once: otherwise it is damaged for as long as its queries find their keys.
//!
//! If most of the sample may be older than the loss, the sample begins again first, and the check waits for it: the queries may have changed.
//!
//! The check reads the keys of the table and computes the expected cost of its filters, and that of the best ones, for today's sample. The
//! filters are replaced if they cost more than [`COST_RATIO_MAX`] times as much as the best, and at any cost if they let too many ranges and seeks
//! read the tables that overlap. The new filters are written to a filter file; the table stays. Filters that are kept are expected to have the
//! rates that the check computed.
//!
//! One table is checked at a time, when nothing else is due, and between the tables of a compaction. A check lets flushes run
//! while it works, and ends soon after the store is closed or the keyspace is dropped.

use std::{cell::Cell, sync::Arc, time::Duration};

use tamis_filter::auto::{Effort, QueryKind, SAMPLE_MIN};

use super::{job_context::with_job_context, law};
use crate::{
    error::Result,
    file_name::FileName,
    observe::{
        events::Event,
        query_sample::{ALL_SAMPLED, QUERIES_MAX, QuerySample},
        read_times::expected_nanoseconds,
    },
    options::{FilterSource, TableFilter},
    store::{context::StoreContext, keyspace_state::KeyspaceState, parts::StoreParts},
    sync::Mutex,
    table::{
        filter_plan::{ChoiceInput, GivenFilters},
        lazy_reader::NamedTable,
        reader::TableReader,
        refilter::{Comparison, write_built},
        shared_choice::SMALL_KEYS,
    },
    version::{
        edit::{Change, RunPlace, VersionEdit},
        filter_tally::Rates,
        handle::Table,
        losses::DueLoss,
        version::KeyspaceVersion,
    },
};

/// Filters are replaced if the best ones cost less than the current ones by this factor.
const COST_RATIO_MAX: f64 = 1.3;
/// The time between two reads of the counters, and while the filters give many answers.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const CHECK_INTERVAL_BUSY: Duration = Duration::from_millis(100);
/// Reading the counters takes at most one part of this many of the time of a worker.
const READING_RATIO: u32 = 100;
/// A sample with one of more queries than this begins again before a check.
const INTERVAL_MAX: u32 = 8;
/// The check waits until it has so many queries for each table, within bounds.
const QUERIES_PER_TABLE: u64 = 200;

/// Whether the chosen filters replace the current ones.
fn is_better(comparison: &Comparison<'_>) -> bool {
    let Comparison { current, choice, overlapping_tables, .. } = comparison;
    let chosen = &choice.chosen;
    let reads_less = choice.empty_query_count >= SAMPLE_MIN as u64
        && !current.meets_targets(*overlapping_tables)
        && chosen.meets_targets(*overlapping_tables);
    current.filters != chosen.filters
        && (reads_less || current.nanoseconds > COST_RATIO_MAX * chosen.nanoseconds)
}

/// The false-positive rates that the filters of a table were chosen for; zero if their choice is provisional, or the store did not choose them.
fn chosen_rates(table: &Table, reader: &TableReader) -> Rates {
    let choice = reader.filter_choice().filter(|choice| {
        choice.empty_query_count >= SAMPLE_MIN as u64 && !(choice.was_cut && table.filter_file().is_none())
    });
    choice.map_or([0.0; 3], |choice| choice.chosen.rates)
}

/// Whether an open table has a damaged filter.
fn has_damaged_filter(table: &Table) -> bool {
    table.slot().get().is_some_and(|reader| reader.has_damaged_filter())
}

/// See the head of this file.
pub(super) struct FilterChecker {
    pub(super) store: Arc<StoreParts>,
    pub(super) schedule: Mutex<Schedule>,
}

/// The running check, and the next read of the counters.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    is_checking: bool,
    next_check: Duration,
    /// The queries without a key that all tables had counted when they were last read.
    query_count: u64,
}

/// A table whose filters are due.
struct DueTable {
    keyspace: Arc<KeyspaceState>,
    number: u64,
}

/// A table whose filters are checked. Dropping the claim releases it, also when a panic unwinds.
pub(super) struct CheckClaim {
    checker: Arc<FilterChecker>,
    pub(super) keyspace: Arc<KeyspaceState>,
    pub(super) table: u64,
    pub(super) loss: DueLoss,
}

impl Drop for CheckClaim {
    fn drop(&mut self) {
        let now = self.checker.store.context.runtime.clock.now();
        let mut schedule = self.checker.schedule.lock();
        (schedule.is_checking, schedule.next_check) = (false, now);
    }
}

impl FilterChecker {
    /// Whether a check is running: it keeps its table, also if a compaction has replaced it.
    pub(super) fn is_checking(&self) -> bool {
        self.schedule.lock().is_checking
    }

    /// When the counters are read next; `None` during a check.
    pub(super) fn next_check(&self) -> Option<Duration> {
        let schedule = self.schedule.lock();
        (!schedule.is_checking).then_some(schedule.next_check)
    }

    /// Claims the table that is due first. Reads the counters of all tables, once in [`CHECK_INTERVAL`], or more often while they change.
    pub(super) fn claim(self: &Arc<Self>) -> Option<CheckClaim> {
        let clock = &self.store.context.runtime.clock;
        let now = clock.now();
        let mut schedule = self.schedule.lock();
        if schedule.is_checking || now < schedule.next_check {
            return None;
        }
        let (mut due, mut query_count) = (Vec::new(), 0);
        for keyspace in self.store.keyspaces.load().values() {
            let read_state = keyspace.read_state.load();
            let (version, sample) = (Arc::clone(&read_state.version), Arc::clone(&read_state.query_sample));
            if !matches!(version.options.filters.source(), FilterSource::Chosen(_)) {
                continue;
            }
            for (level, table) in version.tables_by_level() {
                query_count += table.filter_tally().empty_query_count();
                let Some((loss, kind)) = self.due(table, level) else { continue };
                if !kind.is_some_and(|kind| self.awaits_sample((&version, table), &sample, kind)) {
                    due.push((DueTable { keyspace: Arc::clone(keyspace), number: table.number() }, loss));
                }
            }
        }
        let is_busy = query_count != schedule.query_count;
        let interval = if is_busy { CHECK_INTERVAL_BUSY } else { CHECK_INTERVAL };
        // The counters of many thousand tables take milliseconds.
        schedule.next_check = now + interval.max(clock.now().saturating_sub(now) * READING_RATIO);
        schedule.query_count = query_count;
        let (DueTable { keyspace, number }, loss) = law::first(due)?;
        schedule.is_checking = true;
        Some(CheckClaim { checker: Arc::clone(self), keyspace, table: number, loss })
    }

    /// Whether the check of a due table waits for newer queries: once, for those of the next beginning of the sample, if most of today's may be
    /// older than the loss. However many follow then, the check has them.
    fn awaits_sample(
        &self,
        (version, table): (&KeyspaceVersion, &Table),
        sample: &QuerySample,
        kind: QueryKind,
    ) -> bool {
        let (tally, restarts) = (table.filter_tally(), sample.restarts());
        if let Some(awaited) = tally.awaited_restarts() {
            return restarts < awaited;
        }
        let is_outdated = sample.is_restarting() || is_old(sample, kind);
        let is_awaited = self.store.context.options.sample_queries && is_outdated;
        if is_awaited {
            let count = QUERIES_PER_TABLE * version.tables().count() as u64;
            sample.restart(count.clamp(ALL_SAMPLED, QUERIES_MAX as u64));
            tally.await_restarts(restarts + 1);
        }
        is_awaited
    }

    /// The loss of a table of a level that is due, and the kind of queries that lost most.
    fn due(&self, table: &Table, level: usize) -> Option<(DueLoss, Option<QueryKind>)> {
        let StoreContext { options, metrics, .. } = &*self.store.context;
        let read_ns = metrics.read_times.price(level, expected_nanoseconds(options.table_access));
        let price_ns = self.store.scheduler.job_times.of_check(table.summary().entry_count);
        let tally = table.filter_tally();
        if has_damaged_filter(table) && tally.awaits_repair() {
            return Some((DueLoss { lost_ns: price_ns, price_ns }, None));
        }
        // The choice of a table is read only if it may be due.
        tally.measure([0.0; 3], read_ns);
        if tally.loss().nanoseconds() < tally.loss().price(price_ns) {
            return None;
        }
        let kind = tally.measure(chosen_rates(table, table.slot().get()?), read_ns);
        Some((tally.loss().due(price_ns)?, kind))
    }

    /// Checks the filters of table `number`; returns whether they were replaced. A table that a compaction moves in the meantime is
    /// looked up again; one that is removed needs no filter. `between` is called every few thousand keys, and between the designs that
    /// the search evaluates. `loss`: that for which it is due.
    ///
    /// # Errors
    /// Those of the file system and of a damaged table; [`crate::Error::Closed`] and [`crate::Error::KeyspaceDropped`] soon after a close
    /// or a drop. The filters stay.
    pub(crate) fn check(
        &self,
        keyspace: &KeyspaceState,
        number: u64,
        between: &dyn Fn(),
        loss: DueLoss,
    ) -> Result<bool> {
        let clock = &self.store.context.runtime.clock;
        let (begun, waited) = (clock.now(), Cell::new(Duration::ZERO));
        let check = || {
            let before = clock.now();
            between();
            waited.set(waited.get() + clock.now().saturating_sub(before));
            self.store.context.check_open()?;
            keyspace.check()
        };
        let version = Arc::clone(&keyspace.read_state.load().version);
        let options = Arc::clone(&version.options);
        let &FilterSource::Chosen(budget) = options.filters.source() else { return Ok(false) };
        let Some((place, table)) = find(&version, number) else { return Ok(false) };
        table.filter_tally().begin_check(has_damaged_filter(&table));
        let reader = Arc::clone(self.store.tables.reader(&table)?);
        let current = reader.chosen_filters().map(<[TableFilter]>::to_vec);
        let key_count = table.summary().entry_count;
        let input = with_job_context(&self.store, &version, |context| {
            let origin = context.origin(place.partition, place, vec![number]);
            let effort = if key_count < SMALL_KEYS as u64 { Effort::Write } else { Effort::Background };
            let input = context.choice_input(budget, key_count, &origin, effort);
            let other_runs = context.other_runs(&origin);
            ChoiceInput { other_runs, ..input.replacing(current, (reader.filter_bytes(), key_count)) }
        });
        // It would keep tables that compactions replace meanwhile.
        drop(version);
        self.store.context.metrics.filters_checked.add(1);
        let comparison = Comparison::of(&reader, &input, &check)?;
        self.store
            .scheduler
            .job_times
            .note_check(key_count, clock.now().saturating_sub(begun).saturating_sub(waited.get()));
        let is_kept = input.current.is_some() && !is_better(&comparison);
        check()?;
        let Some(built) = (!is_kept).then(|| comparison.build()).flatten() else {
            table.filter_tally().keep(comparison.current.rates);
            return Ok(false);
        };
        check()?;
        if !keyspace.has_options(&options) {
            return Ok(false);
        }
        let file = self.store.installer.versions.new_file_number();
        write_built(&reader, file, &built)?;
        if !self.install(keyspace, number, Some(file))? {
            return Ok(false);
        }
        self.store.context.metrics.filters_replaced.add(1);
        let (lost_microseconds, price_microseconds) = loss.microseconds();
        self.store.context.report(&Event::FiltersReplaced {
            keyspace: keyspace.name.clone(),
            table: number,
            before: comparison.current.to_string(),
            after: comparison.choice.chosen.to_string(),
            lost_microseconds,
            price_microseconds,
        });
        Ok(true)
    }

    /// Given filters, with the keyspace's sample.
    pub(super) fn given(keyspace: &KeyspaceState, filters: &[TableFilter]) -> GivenFilters {
        let queries = keyspace.read_state.load().query_sample.shared();
        GivenFilters { filters: filters.to_vec(), queries }
    }

    /// Installs a filter file for table `number`; returns `false`, without the file, if the table was removed.
    pub(super) fn install(
        &self,
        keyspace: &KeyspaceState,
        number: u64,
        filter_file: Option<u64>,
    ) -> Result<bool> {
        let place = || find(&keyspace.read_state.load().version, number).map(|(place, _)| place);
        let discard = || self.store.installer.discard(filter_file.map(FileName::Filter).as_slice());
        while let Some(here) = place() {
            let mut edit = VersionEdit::default();
            edit.push(Change::SetTableFilter { place: here, number, filter_file });
            let Err(error) = self.store.installer.install(edit) else {
                return Ok(true);
            };
            // A compaction may have moved the table.
            if place() == Some(here) {
                discard();
                return Err(error);
            }
        }
        discard();
        Ok(false)
    }
}

/// Whether most sampled queries of a kind may be older than a loss.
fn is_old(sample: &QuerySample, kind: QueryKind) -> bool {
    let others = match kind {
        QueryKind::Range => QueryKind::Prefix,
        QueryKind::SeekForward => QueryKind::SeekBackward,
        kind => kind,
    };
    sample.interval(kind).max(sample.interval(others)) > INTERVAL_MAX
}

/// Finds a table of a version and its place by its number.
pub(super) fn find(version: &KeyspaceVersion, number: u64) -> Option<(RunPlace, Arc<Table>)> {
    version.partitions.iter().find_map(|partition| {
        partition.runs().find_map(|(level, run)| {
            let table = run.tables().iter().find(|table| table.number() == number)?;
            let (keyspace, level) = (version.id, level as u8);
            let place = RunPlace { keyspace, partition: partition.id, level, run_age: run.age() };
            Some((place, Arc::clone(table)))
        })
    })
}
