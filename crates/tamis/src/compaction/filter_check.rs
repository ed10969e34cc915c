//! Chooses the filters of a table again when reads have paid for it (`law.rs`).
//!
//! The loss of a table is the time of the false positives of its filters beyond those that their choice expected. Where no rate is
//! expected, all false positives count ([`expected_rates`]). A table without a range filter counts ranges as admitted, and one without filters
//! points, too (`read/seek_answers.rs` counts open seeks), so the first empty queries of a new kind pay for the first choice. The price is the time
//! to read the keys and to search.
//!
//! Two tables are due before that. Rates are promises, as the shape of the tree is: one with far more false positives than expected
//! ([`EmptyAnswers::breaks`]), unless it is small, so that the price is soon reached. And one with a damaged filter, or a damaged filter file:
//! otherwise it is damaged for as long as its queries find their keys.
//!
//! The check reads the keys of the table and computes the expected cost of its filters, and that of the best ones, for today's sample. Filters
//! that cost more than [`COST_RATIO_MAX`] times as much as the best are replaced, and at any cost those that let too many ranges and seeks read the
//! tables that overlap. The new filters are written to a filter file; the table stays. Of filters that stay, the computed rates are expected from
//! then on.
//!
//! A loss of filters whose choice expected the queries shows that the queries have changed, and most of the sample may be older. So the sample
//! is refilled first, unless it has most of the queries anyway. A refill serves all tables, until [`REFILL_FRESH`] more queries were sampled.
//!
//! Checks run in the background when nothing else is due, and between the tables of a compaction, one at a time. A check lets flushes run while it
//! works, and ends soon after the store is closed or the keyspace is dropped. Losses begin at zero when the store is opened.

use std::{cell::Cell, collections::BTreeMap, mem, sync::Arc, time::Duration};

use tamis_filter::auto::{Effort, QueryKind};

use super::{
    back_off::RETRY,
    job_context::{span_of, with_job_context},
    law,
};
use crate::{
    error::{Error, Result},
    file_name::FileName,
    observe::{
        events::Event,
        metrics::{FilterAnswers, PaidJob, ReadLoss},
        query_sample::{QUERIES_MAX, QuerySample, interval_at},
        read_times::expected_nanoseconds,
    },
    options::{FilterSource, TableFilter},
    store::{context::StoreContext, keyspace_state::KeyspaceState, parts::StoreParts},
    sync::Mutex,
    table::{
        filter_choice::{FilterChoice, meets_targets},
        filter_plan::{ChoiceInput, GivenFilters},
        lazy_reader::NamedTable,
        reader::TableReader,
        refilter::{Comparison, write_built},
        shared_choice::SMALL_KEYS,
    },
    version::{
        edit::{Change, RunPlace, VersionEdit},
        handle::Table,
        losses::{DOUBLINGS_MAX, DueLoss, Loss},
        partition::Partition,
        version::KeyspaceVersion,
    },
};

/// The wait for the next check of a table doubles with each consecutive one that failed, up to about a minute.
const RETRY_DOUBLINGS_MAX: u32 = 7;
/// Filters are replaced if they cost more than the best ones by this factor.
const COST_RATIO_MAX: f64 = 1.3;
/// A choice that is based on fewer empty queries expects no rate.
const EMPTY_QUERY_COUNT_MIN: u64 = 100;
/// A rate of more than this many times the expected one is wrong; smaller differences, and rates of fewer answers, are not.
const RATE_RATIO_MAX: f64 = 3.0;
const RATE_DIFFERENCE_MIN: f64 = 0.002;
const ANSWER_COUNT_MIN: u64 = 1_000;
/// The time between two reads of the counters, and while they change.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const CHECK_INTERVAL_BUSY: Duration = Duration::from_millis(100);
/// Reading the counters takes at most one part of this many of the time of a worker.
const READING_RATIO: u32 = 100;
/// A refill of the sample has at least this many queries, and this many for each table.
const REFILL_COUNT_MIN: u64 = 2_000;
const REFILL_COUNT_PER_TABLE: u64 = 200;
/// After so many more sampled queries a refill is too old.
const REFILL_FRESH: u64 = 2_000;
/// A sample with one of more queries than this is refilled.
const REFILL_INTERVAL_MIN: u32 = 8;

/// Expected rates of false positives of points, closed ranges and open seeks.
pub(crate) type Rates = [f64; 3];

/// Answers of the filters of a table to points, closed ranges and open seeks that no key of the table answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EmptyAnswers([FilterAnswers; 3]);

impl EmptyAnswers {
    fn of(table: &Table) -> Self {
        let tally = table.filter_tally();
        Self([&tally.points, &tally.ranges, &tally.seeks].map(|answers| answers.get()))
    }

    fn since(self, before: Self) -> Self {
        let mut answers = self.0;
        for (kind, before) in answers.iter_mut().zip(before.0) {
            kind.denied = kind.denied.saturating_sub(before.denied);
            kind.wrong = kind.wrong.saturating_sub(before.wrong);
        }
        Self(answers)
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|kind| kind.denied + kind.wrong).sum()
    }

    /// Whether the rate of a kind is far from the expected one. Each check that kept the filters doubles the answers that are needed.
    fn breaks(&self, expected: Rates, kept_count: u32) -> bool {
        self.0.iter().zip(expected).any(|(kind, expected)| {
            let expected = if expected.is_nan() { 0.0 } else { expected };
            let count = kind.denied + kind.wrong;
            let rate = kind.wrong as f64 / count.max(1) as f64;
            count >= ANSWER_COUNT_MIN << kept_count && rate > RATE_RATIO_MAX * expected + RATE_DIFFERENCE_MIN
        })
    }

    /// The false positives of each kind beyond the expected ones.
    fn unexpected(&self, expected: Rates) -> [f64; 3] {
        let mut unexpected = [0.0; 3];
        for ((found, kind), rate) in unexpected.iter_mut().zip(self.0).zip(expected) {
            let (wrong, count) = (kind.wrong as f64, (kind.denied + kind.wrong) as f64);
            *found = if rate.is_nan() { wrong } else { (wrong - rate * count).max(0.0) };
        }
        unexpected
    }
}

/// The rates that the filters of a table are expected to have. NaN, so that all false positives are a loss: of a kind of queries that the sample did not
/// have, or of all kinds if the filters were not chosen by the store, or by a search that was cut while the table was written, or from few queries,
/// or if they let too many queries read the `overlapping` tables of today, which are more than those of the choice.
fn expected_rates(choice: Option<&FilterChoice>, is_first: bool, overlapping: u32) -> Rates {
    let is_settled = |choice: &&FilterChoice| {
        let rates = choice.chosen.rates;
        choice.empty_query_count >= EMPTY_QUERY_COUNT_MIN
            && !(choice.was_cut && is_first)
            && (overlapping <= choice.overlapping_tables || meets_targets(rates, overlapping))
    };
    choice.filter(is_settled).map_or([f64::NAN; 3], |choice| choice.chosen.rates)
}

/// Whether the sample shall be refilled before a table is checked whose false positives are so many more than expected.
fn needs_refill(sample: &QuerySample, expected: Rates, unexpected: [f64; 3]) -> bool {
    let seen = |kinds: &[QueryKind]| kinds.iter().map(|kind| sample.seen(*kind)).max().unwrap_or(0);
    let seen = [
        seen(&[QueryKind::Point]),
        seen(&[QueryKind::Range, QueryKind::Prefix]),
        seen(&[QueryKind::SeekForward, QueryKind::SeekBackward]),
    ];
    let has_changed = |((seen, rate), unexpected): ((u64, f64), f64)| {
        unexpected > 0.0 && !rate.is_nan() && interval_at(seen) > REFILL_INTERVAL_MIN
    };
    !sample.is_fresh(REFILL_FRESH) && seen.into_iter().zip(expected).zip(unexpected).any(has_changed)
}

/// Whether the chosen filters replace the current ones.
fn is_better(comparison: &Comparison<'_>) -> bool {
    let Comparison { current, choice, overlapping_tables, .. } = comparison;
    let chosen = &choice.chosen;
    let is_sampled = choice.empty_query_count >= EMPTY_QUERY_COUNT_MIN;
    let reads_less = is_sampled
        && !current.meets_targets(*overlapping_tables)
        && chosen.meets_targets(*overlapping_tables);
    current.filters != chosen.filters
        && (reads_less || current.nanoseconds > COST_RATIO_MAX * chosen.nanoseconds)
}

/// See the head of this file.
pub(super) struct FilterChecker {
    pub(super) store: Arc<StoreParts>,
    pub(super) schedule: Mutex<Schedule>,
}

/// The time of the next read of the counters, and the tables whose filters were asked.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    is_checking: bool,
    next_check: Duration,
    /// The answers of all tables when they were last read.
    answer_count: u64,
    /// By the number of the table.
    tables: BTreeMap<u64, CheckedTable>,
}

/// The law's record of a table.
#[derive(Debug, Default)]
struct CheckedTable {
    /// The counters when the last check began.
    before: EmptyAnswers,
    loss: Loss,
    /// The rates of the filters that the last check kept, and how many checks have kept them.
    kept: Option<Rates>,
    kept_count: u32,
    /// Consecutive checks that failed, and when the next one may begin.
    failure_count: u32,
    retry_at: Duration,
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
        let mut schedule = self.checker.schedule.lock();
        schedule.is_checking = false;
        schedule.next_check = self.checker.store.context.runtime.clock.now();
    }
}

impl FilterChecker {
    /// When the counters are read next; `None` during a check.
    pub(super) fn next_check(&self) -> Option<Duration> {
        let schedule = self.schedule.lock();
        (!schedule.is_checking).then_some(schedule.next_check)
    }

    /// Claims the table with the greatest loss relative to its price, if one is due. Reads the counters of all tables, once in
    /// [`CHECK_INTERVAL`], or more often while they change.
    pub(super) fn claim(self: &Arc<Self>) -> Option<CheckClaim> {
        let now = self.store.context.runtime.clock.now();
        let mut schedule = self.schedule.lock();
        if schedule.is_checking || now < schedule.next_check {
            return None;
        }
        let mut known = mem::take(&mut schedule.tables);
        let (mut answer_count, mut due) = (0, Vec::new());
        for keyspace in self.store.keyspaces.load().values() {
            let version = Arc::clone(&keyspace.read_state.load().version);
            if !matches!(version.options.filters.source(), FilterSource::Chosen(_)) {
                continue;
            }
            for (partition, level, table) in tables_of(&version) {
                let number = table.number();
                let checked = known.remove(&number).unwrap_or_default();
                let answers = EmptyAnswers::of(table);
                answer_count += answers.count();
                if now >= checked.retry_at
                    && let Some(loss) = self.due_loss(keyspace, (partition, level, table), &checked, answers)
                {
                    due.push(((Arc::clone(keyspace), number, answers), loss));
                }
                schedule.tables.insert(number, checked);
            }
        }
        let is_busy = answer_count != schedule.answer_count;
        let interval = if is_busy { CHECK_INTERVAL_BUSY } else { CHECK_INTERVAL };
        // The counters of many thousand tables take milliseconds.
        let reading = self.store.context.runtime.clock.now().saturating_sub(now);
        schedule.next_check = now + interval.max(reading * READING_RATIO);
        schedule.answer_count = answer_count;
        let ((keyspace, table, answers), loss) = law::first(due)?;
        let checked = schedule.tables.get_mut(&table)?;
        checked.loss.begin_job();
        checked.before = answers;
        schedule.is_checking = true;
        Some(CheckClaim { checker: Arc::clone(self), keyspace, table, loss })
    }

    /// The loss of a table whose filters are due for a check.
    fn due_loss(
        &self,
        keyspace: &KeyspaceState,
        (partition, level, table): (&Partition, usize, &Table),
        checked: &CheckedTable,
        answers: EmptyAnswers,
    ) -> Option<DueLoss> {
        let price = self.store.scheduler.job_times.of_filter_check(table.summary().entry_count);
        let reader = table.slot().get()?;
        if reader.has_damaged_filter() {
            return Some(DueLoss { lost_ns: price, price_ns: price });
        }
        let since = answers.since(checked.before);
        let expected = checked.kept.unwrap_or_else(|| expected_by_choice((partition, table), reader));
        let unexpected = since.unexpected(expected);
        let StoreContext { options, metrics, .. } = &*self.store.context;
        let read_ns = metrics.read_times.price(level, expected_nanoseconds(options.table_access));
        checked.loss.set(since.count(), (unexpected.iter().sum::<f64>() * read_ns) as u64);
        let is_small = table.summary().entry_count < SMALL_KEYS as u64;
        let loss = match checked.loss.due(price) {
            None if !is_small && since.breaks(expected, checked.kept_count) => {
                DueLoss { lost_ns: checked.loss.nanoseconds(), price_ns: checked.loss.price(price) }
            }
            due => due?,
        };
        let sample = &keyspace.read_state.load().query_sample;
        if options.sample_queries && needs_refill(sample, expected, unexpected) {
            let table_count = keyspace.read_state.load().version.tables().count() as u64;
            let count = REFILL_COUNT_PER_TABLE * table_count;
            sample.begin_refill(count.clamp(REFILL_COUNT_MIN, QUERIES_MAX as u64) as u32);
        }
        (!sample.is_refilling()).then_some(loss)
    }

    /// The losses of the tables of a version, as of the last time when the counters were read.
    pub(super) fn losses(&self, version: &KeyspaceVersion) -> Vec<ReadLoss> {
        let schedule = self.schedule.lock();
        let of_table = |(partition, _, table): (&Partition, usize, &Arc<Table>)| {
            let loss = &schedule.tables.get(&table.number())?.loss;
            let price = self.store.scheduler.job_times.of_filter_check(table.summary().entry_count);
            let job = PaidJob::ChooseFilters { table: table.number() };
            let (lost, price) = (loss.nanoseconds(), loss.price(price));
            (lost > 0).then(|| ReadLoss::new(&partition.lower, job, lost, price))
        };
        tables_of(version).filter_map(of_table).collect()
    }

    /// Records that a check kept the filters of a table, and their computed rates.
    fn note_kept(&self, number: u64, rates: Rates) {
        if let Some(checked) = self.schedule.lock().tables.get_mut(&number) {
            checked.kept = Some(rates);
            checked.kept_count = (checked.kept_count + 1).min(DOUBLINGS_MAX);
            checked.failure_count = 0;
        }
    }

    /// Records that a check failed: the next one waits twice as long as this one did.
    fn note_failed(&self, number: u64) {
        let now = self.store.context.runtime.clock.now();
        if let Some(checked) = self.schedule.lock().tables.get_mut(&number) {
            checked.retry_at = now + RETRY * (1 << checked.failure_count.min(RETRY_DOUBLINGS_MAX));
            checked.failure_count += 1;
        }
    }

    /// Records that a table has other filters, whose answers are counted from 0.
    fn note_replaced(&self, number: u64) {
        if let Some(checked) = self.schedule.lock().tables.get_mut(&number) {
            (checked.before, checked.kept) = (EmptyAnswers::default(), None);
            (checked.kept_count, checked.failure_count) = (0, 0);
        }
    }

    /// Checks the filters of table `number` because of this loss; returns whether they were replaced. A table that a compaction moves in the meantime is looked up again; one that is removed needs no
    /// filter. `between` is called every few thousand keys, and between the designs that the search evaluates; it does not count for
    /// the price of later checks.
    ///
    /// # Errors
    /// Those of the file system and of a damaged table; [`crate::Error::Closed`] and [`crate::Error::KeyspaceDropped`] soon after a close
    /// or a drop. The filters stay.
    pub(super) fn check(
        &self,
        keyspace: &KeyspaceState,
        (number, loss): (u64, DueLoss),
        between: &dyn Fn(),
    ) -> Result<bool> {
        let result = self.try_check(keyspace, (number, loss), between);
        if matches!(&result, Err(error) if !matches!(error, Error::Closed | Error::KeyspaceDropped)) {
            self.note_failed(number);
        }
        result
    }

    fn try_check(
        &self,
        keyspace: &KeyspaceState,
        (number, loss): (u64, DueLoss),
        between: &dyn Fn(),
    ) -> Result<bool> {
        let clock = &*self.store.context.runtime.clock;
        let (began, paused) = (clock.now(), Cell::new(Duration::ZERO));
        let check = || {
            let before = clock.now();
            between();
            paused.set(paused.get() + clock.now().saturating_sub(before));
            self.store.context.check_open()?;
            keyspace.check()
        };
        let version = Arc::clone(&keyspace.read_state.load().version);
        let &FilterSource::Chosen(budget) = version.options.filters.source() else { return Ok(false) };
        let Some((place, table)) = find(&version, number) else { return Ok(false) };
        let reader = Arc::clone(self.store.tables.reader(&table)?);
        let current = reader.chosen_filters().map(<[TableFilter]>::to_vec);
        let input = with_job_context(&self.store, &version, |context| {
            let key_count = table.summary().entry_count;
            let origin = context.origin(place.partition, place, vec![number]);
            let is_small = key_count < SMALL_KEYS as u64;
            let effort = if is_small { Effort::Write } else { Effort::Background };
            let input = context.choice_input(budget, key_count, &origin, effort);
            let other_runs = context.other_runs(&origin);
            ChoiceInput { other_runs, ..input.replacing(current, (reader.filter_bytes(), key_count)) }
        });
        self.store.context.metrics.filters_checked.add(1);
        let comparison = Comparison::of(&reader, &input, &check)?;
        let time = clock.now().saturating_sub(began).saturating_sub(paused.get());
        self.store.scheduler.job_times.note_filter_check(table.summary().entry_count, time);
        if input.current.is_some() && !is_better(&comparison) {
            self.note_kept(number, comparison.current.rates);
            return Ok(false);
        }
        check()?;
        let Some(built) = comparison.build() else {
            if reader.has_damaged_filter() {
                self.note_failed(number);
            } else {
                self.note_kept(number, comparison.current.rates);
            }
            return Ok(false);
        };
        check()?;
        let file = self.store.installer.versions.new_file_number();
        write_built(&reader, file, &built)?;
        if !self.install(keyspace, number, Some(file))? {
            return Ok(false);
        }
        self.store.context.metrics.filters_replaced.add(1);
        self.store.context.report(&Event::FiltersReplaced {
            keyspace: keyspace.name.clone(),
            table: number,
            before: comparison.current.to_string(),
            after: comparison.choice.chosen.to_string(),
            lost_microseconds: loss.lost_ns / 1_000,
            price_microseconds: loss.price_ns / 1_000,
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
                self.note_replaced(number);
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

/// The tables of a version, with their partitions and levels.
fn tables_of(version: &KeyspaceVersion) -> impl Iterator<Item = (&Partition, usize, &Arc<Table>)> {
    version.partitions.iter().flat_map(|partition| {
        let levels = partition.levels().iter().enumerate();
        levels.flat_map(move |(number, level)| level.tables().map(move |table| (&**partition, number, table)))
    })
}

/// See [`expected_rates`].
fn expected_by_choice((partition, table): (&Partition, &Table), reader: &TableReader) -> Rates {
    let overlapping = overlapping_tables(partition, table);
    expected_rates(reader.filter_choice(), table.filter_file().is_none(), overlapping)
}

/// The tables that a query of a table asks, this one included: one of each run whose keys overlap.
fn overlapping_tables(partition: &Partition, table: &Table) -> u32 {
    let span = (table.smallest_key(), table.largest_key());
    let spans = partition.runs().filter_map(|(_, run)| span_of(run.tables().iter()));
    spans.filter(|run| run.overlaps(span)).count() as u32
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

#[cfg(test)]
mod tests;
