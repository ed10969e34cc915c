//! Checks the filters that the store chose, and replaces those that no longer suit the queries.
//!
//! A table is due for a check when readers have counted enough answers of its filters that found nothing ([`is_due`]). A table without
//! a range filter counts ranges as admitted, and one without filters points, too, so it is due soon after they begin. One that was chosen
//! without open seeks is due when enough of them were false positives (`read/seek_answers.rs`), and a table that is not small after a
//! question per key, because present keys pay for filters, too. Tables that overlap so many others, since their filters were chosen, that
//! they now let too many ranges and seeks through together are due, too. So is an open table of which a filter, or the filter file, is damaged,
//! once: otherwise it is damaged for as long as its queries find their keys.
//!
//! A check lets flushes run while it works, and ends soon after the store is closed or the keyspace is dropped.
//!
//! The check reads the keys of the table and computes the expected cost of its filters, and that of the best ones, for today's sample. The
//! filters are replaced if they cost more than [`COST_RATIO_MAX`] times as much as the best, those of a search that was cut, which are provisional,
//! if they cost more than [`CUT_COST_RATIO_MAX`] times as much; and at any cost if they let too many ranges and seeks read the tables that
//! overlap. The new filters are written to a filter file; the table stays.
//!
//! If a table has more false positives than expected, the queries may have changed, and most of the sample may be older. So the sample
//! is refilled first, unless it has most of the queries anyway, and the table is checked then. A refill serves all tables that were not
//! checked since, until 2,000 more queries were sampled: the queries may have changed after it.
//!
//! Checks run in the background when nothing else is due, one table at a time, the one with the most false positives first. Urgent ones, and those that
//! are due because of a wrong rate, follow one another, and run between the tables of a compaction, too; others take at most half of the
//! time. After a check that kept the filters, the rates that it computed are the expected ones, and the next check needs twice as many
//! answers, unless the rates become worse than those that the check saw. A table whose false positives have cost more time than a check takes is due at any rate,
//! and urgent: other filters may save it. A check of a small table takes longer than a thousand false positives: it waits for that.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tamis_filter::auto::{Effort, QueryKind};

use super::back_off::RETRY;
use super::job_context::{span_of, with_job_context};
use crate::{
    error::{Error, Result},
    file_name::FileName,
    observe::{
        events::Event,
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
        refilter::{Comparison, write_built},
        shared_choice::SMALL_KEYS,
    },
    version::{
        edit::{Change, RunPlace, VersionEdit},
        handle::Table,
        partition::Partition,
        version::KeyspaceVersion,
    },
};

/// The wait for the next check of a table doubles with each consecutive one that failed, up to about a minute.
const RETRY_DOUBLINGS_MAX: u32 = 7;
/// Filters are replaced if the best ones cost less than the current ones by this factor.
const COST_RATIO_MAX: f64 = 1.3;
/// Those of a search that was cut while the table was written, by this factor.
const CUT_COST_RATIO_MAX: f64 = 1.1;
/// A filter is wrong if it has this many times the expected false positives.
const RATE_RATIO_MAX: f64 = 3.0;
/// Differences of rates below this do not matter.
const RATE_DIFFERENCE_MIN: f64 = 0.002;
/// Fewer answers do not determine a rate, unless it is far from the expected one.
const ANSWER_COUNT_MIN: u64 = 1_000;
/// A rate of this many times the expected one, and more than the difference, is wrong after fewer answers.
const EARLY_COUNT_MIN: u64 = 200;
const EARLY_RATIO_MAX: f64 = 5.0;
const EARLY_DIFFERENCE_MIN: f64 = 0.1;
/// A choice that is based on fewer empty queries is checked after [`ANSWER_COUNT_MIN`] answers, like one of a search that was cut.
const EMPTY_QUERY_COUNT_MIN: u64 = 100;
/// The time between two reads of the counters, and while the filters give many answers.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const CHECK_INTERVAL_BUSY: Duration = Duration::from_millis(100);
/// Reading the counters takes at most one part of this many of the time of a worker.
const READING_RATIO: u32 = 100;
/// Other choices are checked after this many answers, because the queries may have changed.
const ANSWER_COUNT_MAX: u64 = 200_000;
/// So are choices of tables whose filters were probed so often and once per key, regardless of the answers: a check reads each key.
const ASKED_COUNT_MIN: u64 = 200_000;
/// A refill of the sample has at least this many queries, and this many for each table.
const REFILL_COUNT_MIN: u64 = 2_000;
const REFILL_COUNT_PER_TABLE: u64 = 200;
/// After so many more sampled queries a refill is too old for a table that was not checked since, and for one that was.
const REFILL_FRESH: u64 = 2_000;
const REFILL_FRESH_CHECKED: u64 = 500;
/// A sample with one of more queries than this is refilled.
const REFILL_INTERVAL_MIN: u32 = 8;
/// The time of a check for each key, and that of the smallest table. A table is urgent once its false positives have cost as much.
const CHECK_NANOSECONDS_PER_KEY: u64 = 500;
const CHECK_NANOSECONDS_MIN: u64 = 6_000_000;
/// Filters that were not good enough for the tables that overlapped are checked again when there are so many times as many.
const OVERLAP_GROWTH: u32 = 2;
/// Checks that keep the filters double the number of answers at most this many times.
const KEPT_COUNT_MAX: u32 = 8;

/// Answers of the filters of a table to queries that no key of the table answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EmptyAnswers {
    pub(crate) rejected: u64,
    /// False positives.
    pub(crate) admitted: u64,
}

impl EmptyAnswers {
    const fn count(self) -> u64 {
        self.rejected + self.admitted
    }

    /// The rate of false positives; NaN for too few answers.
    pub(super) fn rate(self) -> f64 {
        if self.count() < EARLY_COUNT_MIN { f64::NAN } else { self.admitted as f64 / self.count() as f64 }
    }

    const fn since(self, before: Self) -> Self {
        Self {
            rejected: self.rejected.saturating_sub(before.rejected),
            admitted: self.admitted.saturating_sub(before.admitted),
        }
    }
}

/// Of points, closed ranges and open seeks.
pub(crate) type Answers = [EmptyAnswers; 3];

/// The position of open seeks.
const SEEKS: usize = 2;

/// Expected rates of false positives of points, closed ranges and open seeks.
type Rates = [f64; 3];

/// The filters of a table as far as a check is due by them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Sampled queries without a key, on which they are based.
    pub(crate) empty_query_count: u64,
    pub(crate) rates: Rates,
    /// The limit on the work left out designs while the table was written.
    pub(crate) was_cut: bool,
    /// Checks that kept them, one after the other.
    pub(crate) kept_count: u32,
    /// The greatest observed rates at these checks; NaN for those that were not observed.
    pub(crate) kept_rates: Rates,
    /// The tables that a query of this one asks, when the filters were chosen or checked, and today.
    pub(crate) overlapping_tables: (u32, u32),
}

impl Expected {
    /// The answers that are needed instead of `count`.
    fn needed(&self, count: u64) -> u64 {
        after_kept(self.kept_count, count)
    }

    /// Whether designs were left out, and no check has searched them since.
    const fn awaits_search(&self) -> bool {
        self.was_cut && self.kept_count == 0
    }

    /// Whether the filters are to read few blocks in more tables than before, and do not.
    fn has_new_target(&self) -> bool {
        let (before, today) = self.overlapping_tables;
        today > before
            && self.empty_query_count >= EMPTY_QUERY_COUNT_MIN
            && !meets_targets(self.rates, today)
            // If they missed the target before, more tables allow dearer filters.
            && (meets_targets(self.rates, before) || today >= OVERLAP_GROWTH * before)
    }

    /// Whether the answers have a wrong rate. Checks that kept the filters need more answers, unless the rate is wrong in comparison with
    /// those that they saw, too: then the queries have changed since.
    fn is_wrong(&self, answers: &Answers) -> bool {
        let seen = greater_rates(self.rates, self.kept_rates);
        has_wrong_rate(&self.rates, answers, self.needed(ANSWER_COUNT_MIN))
            || has_wrong_rate(&seen, answers, ANSWER_COUNT_MIN)
    }
}

/// The greater rates of each kind; that of the other where one is NaN.
fn greater_rates(mut rates: Rates, others: Rates) -> Rates {
    rates.iter_mut().zip(others).for_each(|(rate, other)| *rate = rate.max(other));
    rates
}

/// The rates that answers show; NaN for too few of a kind.
fn rates_of(answers: &Answers) -> Rates {
    answers.map(EmptyAnswers::rate)
}

/// The number that is needed instead of `count` after so many checks that kept the filters.
fn after_kept(kept_count: u32, count: u64) -> u64 {
    count << kept_count.min(KEPT_COUNT_MAX)
}

/// False positives of all kinds.
fn admitted_of(answers: &Answers) -> u64 {
    answers.iter().map(|answers| answers.admitted).sum()
}

fn count_of(answers: &Answers) -> u64 {
    answers.iter().map(|answers| answers.count()).sum()
}

/// The counters of the filters of a table, as read once.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    answers: Answers,
    /// Questions of any kind.
    query_count: u64,
}

impl Counted {
    fn of(table: &Table) -> Self {
        let tally = table.filter_tally();
        let counts = [&tally.points, &tally.ranges, &tally.seeks].map(|answers| answers.get());
        Self {
            answers: counts
                .map(|counts| EmptyAnswers { rejected: counts.rejected, admitted: counts.false_positives }),
            query_count: counts.iter().map(|counts| counts.checked).sum(),
        }
    }

    fn since(self, before: Self) -> Self {
        let mut answers = self.answers;
        answers.iter_mut().zip(before.answers).for_each(|(kind, before)| *kind = kind.since(before));
        Self { answers, query_count: self.query_count.saturating_sub(before.query_count) }
    }
}

/// The questions after which the filters of so many keys are due for a check.
fn query_count_max(key_count: u64) -> u64 {
    key_count.max(ASKED_COUNT_MIN)
}

/// Whether the filters of so many keys, if the store chose them, were probed so often since the last check that they are due for another one.
fn is_due_by_queries(expected: Option<Expected>, query_count: u64, key_count: u64) -> bool {
    expected.is_some_and(|expected| query_count >= expected.needed(query_count_max(key_count)))
}

/// Whether filters are due for a check. `expected`: `None` for filters that the store did not choose.
pub(crate) fn is_due(expected: Option<Expected>, answers: Answers) -> bool {
    let count = count_of(&answers);
    let Some(expected) = expected else { return count >= ANSWER_COUNT_MIN };
    let needed = |count: u64| expected.needed(count);
    let is_preliminary = expected.awaits_search() || expected.empty_query_count < EMPTY_QUERY_COUNT_MIN;
    if is_preliminary && count >= needed(ANSWER_COUNT_MIN) {
        return true;
    }
    let ([_, ranges, seeks], [.., seek_rate]) = (answers, expected.rates);
    if ranges.count() + seeks.count() >= ANSWER_COUNT_MIN && expected.has_new_target() {
        return true;
    }
    count >= needed(ANSWER_COUNT_MAX)
        || (seek_rate.is_nan() && seeks.count() >= needed(ANSWER_COUNT_MIN))
        || expected.is_wrong(&answers)
}

/// Whether the answers show that the queries have changed, and those of the sample may be older.
fn needs_refill(expected: &Expected, answers: Answers, intervals: [u32; 3]) -> bool {
    expected.empty_query_count >= EMPTY_QUERY_COUNT_MIN
        && intervals.into_iter().zip(answers).enumerate().any(|(kind, (interval, answers))| {
            let mut only = Answers::default();
            if let Some(slot) = only.get_mut(kind) {
                *slot = answers;
            }
            interval > REFILL_INTERVAL_MIN && expected.is_wrong(&only)
        })
}

/// Whether the sample shall be refilled before the table is checked.
fn is_outdated(sample: &QuerySample, last: &LastCheck, check: &DueCheck) -> bool {
    let interval = |kinds: &[QueryKind]| kinds.iter().map(|kind| sample.seen(*kind)).max();
    let seeks = [QueryKind::SeekForward, QueryKind::SeekBackward];
    let intervals = [&[QueryKind::Point][..], &[QueryKind::Range, QueryKind::Prefix], &seeks];
    let intervals = intervals.map(|kinds| interval_at(interval(kinds).unwrap_or(0)));
    // A refill serves the tables that were not checked since for some time. One that was checked with it, and is wrong again, needs another.
    let is_checked_since = last.refills == sample.refills();
    !sample.is_fresh(if is_checked_since { REFILL_FRESH_CHECKED } else { REFILL_FRESH })
        && check.expected.is_some_and(|expected| needs_refill(&expected, check.answers, intervals))
}

fn has_wrong_rate(rates: &Rates, answers: &Answers, needed: u64) -> bool {
    answers.iter().zip(*rates).enumerate().any(|(kind, (answers, expected))| {
        let rate = answers.admitted as f64 / answers.count().max(1) as f64;
        // Without such queries in the sample no rate was expected. Few filters save reads of seeks: those of most tables have the rate 1.
        let unexpected = if kind == SEEKS { 1.0 } else { 0.0 };
        let expected = if expected.is_nan() { unexpected } else { expected };
        let early = needed / ANSWER_COUNT_MIN * EARLY_COUNT_MIN;
        (answers.count() >= needed && rate > RATE_RATIO_MAX * expected + RATE_DIFFERENCE_MIN)
            || (answers.count() >= early && rate > EARLY_RATIO_MAX * expected + EARLY_DIFFERENCE_MIN)
    })
}

/// Whether the filters of a table are still those that were chosen while it was written, with designs left out.
fn is_provisional(table: &Table, choice: &FilterChoice) -> bool {
    choice.was_cut && table.filter_file().is_none()
}

/// Whether the chosen filters replace the current ones.
fn is_better(comparison: &Comparison<'_>, cost_ratio_max: f64) -> bool {
    let Comparison { current, choice, overlapping_tables, .. } = comparison;
    let chosen = &choice.chosen;
    let is_sampled = choice.empty_query_count >= EMPTY_QUERY_COUNT_MIN;
    let reads_less = is_sampled
        && !current.meets_targets(*overlapping_tables)
        && chosen.meets_targets(*overlapping_tables);
    current.filters != chosen.filters
        && (reads_less || current.nanoseconds > cost_ratio_max * chosen.nanoseconds)
}

/// Which tables are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    Any,
    /// Those with a wrong rate, or whose false positives took more time than a check.
    Urgent,
}

/// See the head of this file.
pub(super) struct FilterChecker {
    pub(super) store: Arc<StoreParts>,
    pub(super) schedule: Mutex<Schedule>,
}

/// The time of the next read of the counters, and the last checks.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    is_checking: bool,
    next_check: Duration,
    /// The answers of all tables when they were last read.
    answer_count: u64,
    /// By the number of the table.
    last_checks: BTreeMap<u64, LastCheck>,
}

/// The last check of a table.
#[derive(Debug, Clone, Copy, Default)]
struct LastCheck {
    /// The counters when it began.
    before: Counted,
    /// The rates of the filters that it kept, and the number of checks that kept them.
    kept: Option<(Rates, u32)>,
    /// The greatest observed rates at the checks that kept its filters, and at this one.
    seen: Option<Rates>,
    /// The refills of the sample at this check, or when the table was new.
    refills: u32,
    /// The tables whose filters a query of this one probed at this check; 0 when the table was new.
    overlapping_tables: u32,
    /// Consecutive checks that failed, and when the next one may begin.
    failure_count: u32,
    retry_at: Duration,
}

impl LastCheck {
    /// The greatest observed rates; NaN without any.
    fn seen_rates(&self) -> Rates {
        self.seen.unwrap_or([f64::NAN; 3])
    }
}

/// A table whose filters are checked. Dropping the claim releases it, also when a panic unwinds.
pub(super) struct CheckClaim {
    checker: Arc<FilterChecker>,
    pub(super) keyspace: Arc<KeyspaceState>,
    pub(super) table: u64,
    is_urgent: bool,
    began: Duration,
}

impl Drop for CheckClaim {
    fn drop(&mut self) {
        let now = self.checker.store.context.runtime.clock.now();
        let mut schedule = self.checker.schedule.lock();
        schedule.is_checking = false;
        schedule.next_check = if self.is_urgent { now } else { now + now.saturating_sub(self.began) };
    }
}

impl FilterChecker {
    /// When the counters are read next; `None` during a check.
    pub(super) fn next_check(&self) -> Option<Duration> {
        let schedule = self.schedule.lock();
        (!schedule.is_checking).then_some(schedule.next_check)
    }

    /// Claims a table that is due for a check. Reads the counters of all tables, once in [`CHECK_INTERVAL`], or more often while they change.
    /// `urgency`: which tables are checked.
    pub(super) fn claim(self: &Arc<Self>, urgency: Urgency) -> Option<CheckClaim> {
        let now = self.store.context.runtime.clock.now();
        let mut schedule = self.schedule.lock();
        if schedule.is_checking || now < schedule.next_check {
            return None;
        }
        let read_ns_of = |level| {
            let StoreContext { options, metrics, .. } = &*self.store.context;
            metrics.read_times.price(level, expected_nanoseconds(options.table_access))
        };
        let mut last_checks = BTreeMap::new();
        let mut answer_count = 0;
        let mut due: Option<Due> = None;
        for keyspace in self.store.keyspaces.load().values() {
            let read_state = keyspace.read_state.load();
            let (version, sample) = (Arc::clone(&read_state.version), Arc::clone(&read_state.query_sample));
            if !matches!(version.options.filters.source(), FilterSource::Chosen(_)) {
                continue;
            }
            let levels = version.partitions.iter().flat_map(|partition| {
                partition.levels().iter().enumerate().map(move |(number, level)| (partition, number, level))
            });
            let tables = levels.flat_map(|(partition, number, level)| {
                level.tables().map(move |table| (partition, number, table))
            });
            for (partition, level, table) in tables {
                let counted = Counted::of(table);
                let known = schedule.last_checks.get(&table.number()).copied();
                let last = known.unwrap_or(LastCheck { refills: sample.refills(), ..LastCheck::default() });
                last_checks.insert(table.number(), last);
                answer_count += count_of(&counted.answers);
                let check = if sample.is_refilling() || now < last.retry_at {
                    None
                } else {
                    due_check((partition, table), &last, counted, read_ns_of(level))
                };
                let Some(check) = check else { continue };
                if self.store.context.options.sample_queries && is_outdated(&sample, &last, &check) {
                    let count = REFILL_COUNT_PER_TABLE * version.tables().count() as u64;
                    sample.begin_refill(count.clamp(REFILL_COUNT_MIN, QUERIES_MAX as u64) as u32);
                } else if (check.is_urgent || urgency == Urgency::Any)
                    && due.as_ref().is_none_or(|due| due.check.admitted() < check.admitted())
                {
                    let seen = greater_rates(rates_of(&check.answers), last.seen_rates());
                    let seen = Some(seen);
                    let overlapping_tables = check.overlapping_tables;
                    let refills = sample.refills();
                    let checked = LastCheck { before: counted, refills, seen, overlapping_tables, ..last };
                    due = Some(Due { keyspace: Arc::clone(keyspace), table: table.number(), check, checked });
                }
            }
        }
        let is_busy = answer_count.abs_diff(schedule.answer_count) >= EARLY_COUNT_MIN;
        let interval = if is_busy { CHECK_INTERVAL_BUSY } else { CHECK_INTERVAL };
        // The counters of many thousand tables take milliseconds.
        let reading = self.store.context.runtime.clock.now().saturating_sub(now);
        schedule.next_check = now + interval.max(reading * READING_RATIO);
        schedule.answer_count = answer_count;
        schedule.last_checks = last_checks;
        let Due { keyspace, table, check, checked } = due?;
        schedule.last_checks.insert(table, checked);
        schedule.is_checking = true;
        let is_urgent = check.is_urgent;
        Some(CheckClaim { checker: Arc::clone(self), keyspace, table, is_urgent, began: now })
    }

    /// Records that a check kept the filters of a table: the next check is due later.
    fn note_kept(&self, number: u64, rates: Rates) {
        if let Some(last) = self.schedule.lock().last_checks.get_mut(&number) {
            last.kept = Some((rates, last.kept.map_or(0, |(_, count)| count) + 1));
            last.failure_count = 0;
        }
    }

    /// Records that a check failed: the next one waits twice as long as this one did.
    fn note_failed(&self, number: u64) {
        let now = self.store.context.runtime.clock.now();
        if let Some(last) = self.schedule.lock().last_checks.get_mut(&number) {
            last.retry_at = now + RETRY * (1 << last.failure_count.min(RETRY_DOUBLINGS_MAX));
            last.failure_count += 1;
        }
    }

    /// Records that a table has other filters, whose answers are counted from 0.
    fn note_replaced(&self, number: u64) {
        if let Some(last) = self.schedule.lock().last_checks.get_mut(&number) {
            (last.before, last.kept, last.seen) = (Counted::default(), None, None);
            last.failure_count = 0;
        }
    }

    /// Checks the filters of table `number`; returns whether they were replaced. A table that a compaction moves in the meantime is
    /// looked up again; one that is removed needs no filter. `between` is called every few thousand keys, and between the designs that
    /// the search evaluates.
    ///
    /// # Errors
    /// Those of the file system and of a damaged table; [`crate::Error::Closed`] and [`crate::Error::KeyspaceDropped`] soon after a close
    /// or a drop. The filters stay.
    pub(crate) fn check(&self, keyspace: &KeyspaceState, number: u64, between: &dyn Fn()) -> Result<bool> {
        let result = self.try_check(keyspace, number, between);
        if matches!(&result, Err(error) if !matches!(error, Error::Closed | Error::KeyspaceDropped)) {
            self.note_failed(number);
        }
        result
    }

    fn try_check(&self, keyspace: &KeyspaceState, number: u64, between: &dyn Fn()) -> Result<bool> {
        let check = || {
            between();
            self.store.context.check_open()?;
            keyspace.check()
        };
        let version = Arc::clone(&keyspace.read_state.load().version);
        let &FilterSource::Chosen(budget) = version.options.filters.source() else { return Ok(false) };
        let Some((place, table)) = find(&version, number) else { return Ok(false) };
        let reader = Arc::clone(self.store.tables.reader(&table)?);
        let current = reader.chosen_filters().map(<[TableFilter]>::to_vec);
        let is_provisional = reader.filter_choice().is_some_and(|choice| is_provisional(&table, choice));
        let cost_ratio_max = if is_provisional { CUT_COST_RATIO_MAX } else { COST_RATIO_MAX };
        let input = with_job_context(&self.store, &version, |context| {
            let key_count = table.summary().entry_count;
            let origin = context.origin(place.partition, place, vec![number]);
            let effort = if is_small(&table) { Effort::Write } else { Effort::Background };
            let input = context.choice_input(budget, key_count, &origin, effort);
            let other_runs = context.other_runs(&origin);
            ChoiceInput { other_runs, ..input.replacing(current, (reader.filter_bytes(), key_count)) }
        });
        self.store.context.metrics.filters_checked.add(1);
        let comparison = Comparison::of(&reader, &input, &check)?;
        if input.current.is_some() && !is_better(&comparison, cost_ratio_max) {
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
        if !keyspace.has_options(&version.options) {
            return Ok(false);
        }
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

/// The table with the most false positives of those that are due.
struct Due {
    keyspace: Arc<KeyspaceState>,
    table: u64,
    check: DueCheck,
    /// Its record once it is checked.
    checked: LastCheck,
}

/// A check that is due.
struct DueCheck {
    expected: Option<Expected>,
    answers: Answers,
    /// Because of a wrong rate, or because its false positives took more time than a check.
    is_urgent: bool,
    /// The tables that a query of this one asks today.
    overlapping_tables: u32,
}

impl DueCheck {
    /// False positives since the last check.
    fn admitted(&self) -> u64 {
        admitted_of(&self.answers)
    }
}

/// Whether false positives of filters of so many keys have taken more time than a check, and `kept_count` checks did not prevent it.
fn cost_a_check(key_count: u64, since: &Answers, read_ns: f64, kept_count: u32) -> bool {
    let check = key_count.saturating_mul(CHECK_NANOSECONDS_PER_KEY).max(CHECK_NANOSECONDS_MIN);
    admitted_of(since) as f64 * read_ns >= after_kept(kept_count, check) as f64
}

fn is_small(table: &Table) -> bool {
    table.summary().entry_count < SMALL_KEYS as u64
}

fn due_check(
    (partition, table): (&Partition, &Table),
    last: &LastCheck,
    counted: Counted,
    read_ns: f64,
) -> Option<DueCheck> {
    let Counted { answers: since, query_count } = counted.since(last.before);
    let key_count = table.summary().entry_count;
    // The choice of a table that was not read is not worth a read. A store with many partitions has many small tables, which live for a few
    // flushes and share a choice.
    let is_worthwhile = count_of(&since) >= EARLY_COUNT_MIN
        && (!is_small(table) || cost_a_check(key_count, &since, read_ns, 0));
    let reader = table.slot().get();
    let awaits_repair = reader.is_some_and(|reader| reader.has_damaged_filter());
    if !awaits_repair && !is_worthwhile && (query_count < query_count_max(key_count) || is_small(table)) {
        return None;
    }
    let reader = reader?;
    let overlapping_tables = overlapping_tables(partition, table);
    let expected = reader.filter_choice().map(|choice| Expected {
        empty_query_count: choice.empty_query_count,
        rates: last.kept.map_or(choice.chosen.rates, |(rates, _)| rates),
        was_cut: is_provisional(table, choice),
        kept_count: last.kept.map_or(0, |(_, count)| count),
        kept_rates: last.seen_rates(),
        overlapping_tables: (choice.overlapping_tables.max(last.overlapping_tables), overlapping_tables),
    });
    let kept_count = expected.map_or(0, |expected| expected.kept_count);
    let is_urgent = expected.is_some_and(|expected| expected.is_wrong(&since))
        || cost_a_check(key_count, &since, read_ns, kept_count);
    let is_due = is_urgent
        || awaits_repair
        || is_due(expected, since)
        || is_due_by_queries(expected, query_count, key_count);
    is_due.then_some(DueCheck { expected, answers: since, is_urgent, overlapping_tables })
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
