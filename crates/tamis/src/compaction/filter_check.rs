//! Checks the filters that the store chose, and replaces those that no longer suit the queries.
//!
//! A table is due for a check when readers have counted enough answers of its filters that found nothing ([`is_due`]). A table without
//! a range filter counts ranges as admitted, so it is due soon after ranges begin; one that was chosen without open seeks is due
//! when the keyspace has some. The check reads the keys of the table and computes the expected cost of its filters, and that of
//! the best ones, for today's sample. The filters are replaced if they cost more than [`COST_RATIO_MAX`] times as much as the best.
//! The new filters are written to a filter file; the table stays.
//!
//! Checks run in the background when nothing else is due, one table at a time, and for at most half of the time. After a check that
//! kept the filters, the rates that it computed are the expected ones, and the next check needs twice as many answers.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tamis_filter::auto::QueryKind;

use super::job_context::JobContexts;
use crate::{
    cache::table::TableCache,
    context::StoreContext,
    error::Result,
    events::Event,
    file_name::FileName,
    keyspace_state::{KeyspaceRegistry, KeyspaceState},
    metrics::LEVEL_COUNT_MAX,
    options::{Policy, TableFilter},
    table::{
        filter_plan::{ChoiceInput, GivenFilters},
        lazy_reader::NamedTable,
        refilter::{Comparison, write_built},
    },
    version::{
        edit::{Change, RunPlace, VersionEdit},
        handle::Table,
        version::KeyspaceVersion,
    },
    version_installer::VersionInstaller,
};

/// Filters are replaced if the best ones cost less than the current ones by this factor.
const COST_RATIO_MAX: f64 = 1.3;
/// A filter is wrong if it has this many times the expected false positives.
const RATE_RATIO_MAX: f64 = 3.0;
/// Differences of rates below this do not matter.
const RATE_DIFFERENCE_MIN: f64 = 0.002;
/// Fewer answers say nothing about a rate.
const ANSWER_COUNT_MIN: u64 = 1_000;
/// A choice that is based on fewer empty queries is checked after [`ANSWER_COUNT_MIN`] answers.
const EMPTY_QUERY_COUNT_MIN: u64 = 100;
/// The time between two looks at the counters.
const LOOK: Duration = Duration::from_secs(1);
/// Other choices are checked after so many answers, because the queries may have changed.
const ANSWER_COUNT_MAX: u64 = 200_000;
/// Filters that were chosen without open seeks are checked after so many of them.
const SEEK_COUNT_MIN: u64 = 10_000;
/// Checks that keep the filters double the number of answers at most so often.
const KEPT_COUNT_MAX: u32 = 8;

/// Answers of the filters of a table to queries that no key of the table answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EmptyAnswers {
    pub(crate) denied: u64,
    /// False positives.
    pub(crate) admitted: u64,
}

impl EmptyAnswers {
    const fn count(self) -> u64 {
        self.denied + self.admitted
    }

    const fn since(self, before: Self) -> Self {
        Self {
            denied: self.denied.saturating_sub(before.denied),
            admitted: self.admitted.saturating_sub(before.admitted),
        }
    }
}

/// Of points and closed ranges.
pub(crate) type Answers = [EmptyAnswers; 2];

/// Expected rates of false positives of points, closed ranges and open seeks.
type Rates = [f64; 3];

/// The filters of a table as far as a check is due by them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Sampled queries without a key, on which they are based.
    pub(crate) empty_query_count: u64,
    pub(crate) rates: Rates,
    /// Checks that kept them, one after the other.
    pub(crate) kept_count: u32,
}

/// Answers and seeks since the last check of a table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Activity {
    pub(crate) answers: Answers,
    /// Open seeks in the keyspace.
    pub(crate) seeks: u64,
}

fn answers_of(table: &Table) -> Answers {
    let tally = table.filter_tally();
    [&tally.points, &tally.ranges].map(|answers| {
        let answers = answers.get();
        EmptyAnswers { denied: answers.denied, admitted: answers.wrong }
    })
}

/// Whether filters are due for a check. `expected`: `None` for filters that the store did not choose.
pub(crate) fn is_due(expected: Option<Expected>, activity: Activity) -> bool {
    let count: u64 = activity.answers.iter().map(|answers| answers.count()).sum();
    let Some(expected) = expected else { return count >= ANSWER_COUNT_MIN };
    let needed = |count: u64| count << expected.kept_count.min(KEPT_COUNT_MAX);
    if expected.empty_query_count < EMPTY_QUERY_COUNT_MIN && count >= needed(ANSWER_COUNT_MIN) {
        return true;
    }
    let [.., seek_rate] = expected.rates;
    count >= needed(ANSWER_COUNT_MAX)
        || (seek_rate.is_nan() && activity.seeks >= needed(SEEK_COUNT_MIN))
        || has_wrong_rate(&expected, activity.answers, needed(ANSWER_COUNT_MIN))
}

fn has_wrong_rate(expected: &Expected, answers: Answers, needed: u64) -> bool {
    answers.iter().zip(expected.rates).any(|(answers, expected)| {
        let rate = answers.admitted as f64 / answers.count().max(1) as f64;
        // Without such queries in the sample no rate was expected.
        let expected = if expected.is_nan() { 0.0 } else { expected };
        answers.count() >= needed && rate > RATE_RATIO_MAX * expected + RATE_DIFFERENCE_MIN
    })
}

/// Whether the chosen filters shall replace the current ones.
fn is_better(comparison: &Comparison<'_>) -> bool {
    let (current, chosen) = (&comparison.current, &comparison.choice.chosen);
    current.filters != chosen.filters && current.nanoseconds > COST_RATIO_MAX * chosen.nanoseconds
}

/// See the head of this file.
pub(super) struct FilterChecker {
    pub(super) context: Arc<StoreContext>,
    pub(super) tables: Arc<TableCache>,
    pub(super) installer: Arc<VersionInstaller>,
    pub(super) job_contexts: JobContexts,
    pub(super) schedule: Mutex<Schedule>,
}

/// When the counters are looked at, and the last checks.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    is_checking: bool,
    next_look: Duration,
    /// By the number of the table.
    last_checks: BTreeMap<u64, LastCheck>,
}

/// The last check of a table.
#[derive(Debug, Clone, Copy, Default)]
struct LastCheck {
    /// The counts when it began.
    before: Activity,
    /// The rates of the filters that it kept, and the number of checks that kept them.
    kept: Option<(Rates, u32)>,
}

/// A table whose filters are checked. Dropping the claim releases it, also when a panic unwinds.
pub(super) struct CheckClaim {
    checker: Arc<FilterChecker>,
    pub(super) keyspace: Arc<KeyspaceState>,
    pub(super) table: u64,
    began: Duration,
}

impl Drop for CheckClaim {
    fn drop(&mut self) {
        let now = self.checker.context.runtime.clock.now();
        let mut schedule = self.checker.schedule.lock();
        schedule.is_checking = false;
        schedule.next_look = now + now.saturating_sub(self.began);
    }
}

impl FilterChecker {
    /// When the counters are looked at next; `None` during a check.
    pub(super) fn next_look(&self) -> Option<Duration> {
        let schedule = self.schedule.lock();
        (!schedule.is_checking).then_some(schedule.next_look)
    }

    /// Claims a table that is due for a check. Reads the counters of all tables, once in [`LOOK`].
    pub(super) fn claim(self: &Arc<Self>, keyspaces: &KeyspaceRegistry) -> Option<CheckClaim> {
        let now = self.context.runtime.clock.now();
        let mut schedule = self.schedule.lock();
        if schedule.is_checking || now < schedule.next_look {
            return None;
        }
        schedule.next_look = now + LOOK;
        let mut last_checks = BTreeMap::new();
        let mut due = None;
        for keyspace in keyspaces.load().values() {
            let read_state = keyspace.read_state.load();
            let (version, sample) = (Arc::clone(&read_state.version), Arc::clone(&read_state.query_sample));
            if !matches!(version.options.filters.policy(), Some(Policy::Automatic(_))) {
                continue;
            }
            let seeks = sample.seen(QueryKind::SeekForward) + sample.seen(QueryKind::SeekBackward);
            for table in version.tables() {
                let activity = Activity { answers: answers_of(table), seeks };
                let known = schedule.last_checks.get(&table.number()).copied();
                // Seeks before the store was opened are known to the filters' choice.
                let mut last = known
                    .unwrap_or(LastCheck { before: Activity { seeks, ..Activity::default() }, kept: None });
                if due.is_none() && is_table_due(table, &last, activity) {
                    due = Some((Arc::clone(keyspace), table.number()));
                    last.before = activity;
                }
                last_checks.insert(table.number(), last);
            }
        }
        schedule.last_checks = last_checks;
        let (keyspace, table) = due?;
        schedule.is_checking = true;
        Some(CheckClaim { checker: Arc::clone(self), keyspace, table, began: now })
    }

    /// Remembers that a check kept the filters of a table: they are not checked again soon.
    fn note_kept(&self, number: u64, rates: Rates) {
        if let Some(last) = self.schedule.lock().last_checks.get_mut(&number) {
            last.kept = Some((rates, last.kept.map_or(0, |(_, count)| count) + 1));
        }
    }

    /// Checks the filters of table `number`; returns whether they were replaced. A table that a compaction moves in the meantime is
    /// looked up again; one that is removed needs no filter.
    ///
    /// # Errors
    /// Those of the file system and of a damaged table: its filters stay.
    pub(crate) fn check(&self, keyspace: &KeyspaceState, number: u64) -> Result<bool> {
        let version = Arc::clone(&keyspace.read_state.load().version);
        let Some(Policy::Automatic(budget)) = version.options.filters.policy() else { return Ok(false) };
        let Some((place, table)) = find(&version, number) else { return Ok(false) };
        let reader = Arc::clone(&*self.tables.reader(&table)?);
        let current = reader.filter_choice().map(|choice| choice.chosen.filters.clone());
        let input = self.job_contexts.with(&version, |context| {
            let is_deepest = usize::from(place.level) == LEVEL_COUNT_MAX - 1;
            let key_count = table.summary().entry_count;
            ChoiceInput { current, ..context.choice_input(budget, key_count, &[number], is_deepest) }
        });
        self.context.metrics.filters_checked.add(1);
        let comparison = Comparison::of(&reader, &input)?;
        if input.current.is_some() && !is_better(&comparison) {
            self.note_kept(number, comparison.current.rates);
            return Ok(false);
        }
        let Some(built) = comparison.build() else {
            self.note_kept(number, comparison.current.rates);
            return Ok(false);
        };
        let file = self.installer.versions.new_file_number();
        write_built(&reader, file, &built)?;
        if !self.install(keyspace, number, Some(file))? {
            return Ok(false);
        }
        self.context.metrics.filters_replaced.add(1);
        self.context.report(&Event::FiltersReplaced {
            keyspace: keyspace.name.clone(),
            table: number,
            before: comparison.current.to_string(),
            after: comparison.choice.chosen.to_string(),
        });
        Ok(true)
    }

    /// Given filters, with the keyspace's sample.
    pub(super) fn given(keyspace: &KeyspaceState, filters: &[TableFilter]) -> GivenFilters {
        let queries = keyspace.read_state.load().query_sample.snapshot().into();
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
        let discard = || self.installer.discard(filter_file.map(FileName::Filter).as_slice());
        while let Some(here) = place() {
            let mut edit = VersionEdit::default();
            edit.push(Change::SetTableFilter { place: here, number, filter_file });
            let Err(error) = self.installer.install(edit) else { return Ok(true) };
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

fn is_table_due(table: &Table, last: &LastCheck, activity: Activity) -> bool {
    let mut since = activity;
    since.seeks = activity.seeks.saturating_sub(last.before.seeks);
    since.answers.iter_mut().zip(last.before.answers).for_each(|(kind, before)| *kind = kind.since(before));
    // The choice of a table that was not read is not worth a read.
    let count: u64 = since.answers.iter().map(|answers| answers.count()).sum();
    if count < ANSWER_COUNT_MIN && since.seeks < SEEK_COUNT_MIN {
        return false;
    }
    let Some(reader) = table.slot().get() else { return false };
    let expected = reader.filter_choice().map(|choice| Expected {
        empty_query_count: choice.empty_query_count,
        rates: last.kept.map_or(choice.chosen.rates, |(rates, _)| rates),
        kept_count: last.kept.map_or(0, |(_, count)| count),
    });
    is_due(expected, since)
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
