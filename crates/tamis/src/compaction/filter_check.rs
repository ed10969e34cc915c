//! Checks the filters that the store chose, and replaces those that no longer suit the queries.
//!
//! A table is due for a check when readers have counted enough answers of its filters that found nothing ([`is_due`]). The check
//! reads the keys of the table and computes the expected cost of its filters, and that of the best ones, for today's sample. The
//! filters are replaced if they cost more than [`COST_RATIO_MAX`] times as much as the best. The new filters are written to a filter
//! file; the table stays.
//!
//! Checks run in the background when nothing else is due, one table at a time, and for at most half of the time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;

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
        filter_choice::FilterChoice,
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

/// Of points, closed ranges and open seeks.
pub(crate) type Answers = [EmptyAnswers; 3];

fn answers_of(table: &Table) -> Answers {
    let tally = table.filter_tally();
    [&tally.points, &tally.ranges, &tally.seeks].map(|answers| {
        let answers = answers.get();
        EmptyAnswers { denied: answers.denied, admitted: answers.wrong }
    })
}

/// Whether filters are due for a check, by the answers since the last one: of points, closed ranges and open seeks.
pub(crate) fn is_due(choice: Option<&FilterChoice>, answers: Answers) -> bool {
    let count: u64 = answers.iter().map(|answers| answers.count()).sum();
    let Some(choice) = choice else { return count >= ANSWER_COUNT_MIN };
    if choice.empty_query_count < EMPTY_QUERY_COUNT_MIN && count >= ANSWER_COUNT_MIN {
        return true;
    }
    count >= ANSWER_COUNT_MAX || has_wrong_rate(choice, answers)
}

fn has_wrong_rate(choice: &FilterChoice, answers: Answers) -> bool {
    answers.iter().zip(choice.chosen.rates).any(|(answers, expected)| {
        let rate = answers.admitted as f64 / answers.count().max(1) as f64;
        // Without such queries in the sample no rate was expected.
        let expected = if expected.is_nan() { 0.0 } else { expected };
        answers.count() >= ANSWER_COUNT_MIN && rate > RATE_RATIO_MAX * expected + RATE_DIFFERENCE_MIN
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

/// When the counters are looked at, and which answers the last checks have seen.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    is_checking: bool,
    next_look: Duration,
    /// By the number of the table.
    seen: BTreeMap<u64, Answers>,
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
    /// Claims a table that is due for a check. Reads the counters of all tables, once in [`LOOK`].
    pub(super) fn claim(self: &Arc<Self>, keyspaces: &KeyspaceRegistry) -> Option<CheckClaim> {
        let now = self.context.runtime.clock.now();
        let mut schedule = self.schedule.lock();
        if schedule.is_checking || now < schedule.next_look {
            return None;
        }
        schedule.next_look = now + LOOK;
        let mut seen = BTreeMap::new();
        let mut due = None;
        for keyspace in keyspaces.load().values() {
            let version = Arc::clone(&keyspace.read_state.load().version);
            if !matches!(version.options.filters.policy(), Some(Policy::Automatic(_))) {
                continue;
            }
            for table in version.tables() {
                let answers = answers_of(table);
                let before = schedule.seen.get(&table.number()).copied().unwrap_or_default();
                let mut since = answers;
                since.iter_mut().zip(before).for_each(|(kind, before)| *kind = kind.since(before));
                if due.is_none() && self.is_table_due(table, since) {
                    due = Some((Arc::clone(keyspace), table.number()));
                    seen.insert(table.number(), answers);
                } else if before != Answers::default() {
                    seen.insert(table.number(), before);
                }
            }
        }
        schedule.seen = seen;
        let (keyspace, table) = due?;
        schedule.is_checking = true;
        Some(CheckClaim { checker: Arc::clone(self), keyspace, table, began: now })
    }

    fn is_table_due(&self, table: &Table, answers: Answers) -> bool {
        let count: u64 = answers.iter().map(|answers| answers.count()).sum();
        count >= ANSWER_COUNT_MIN
            && table.slot().get().is_some_and(|reader| is_due(reader.filter_choice(), answers))
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
            return Ok(false);
        }
        let Some(built) = comparison.build() else { return Ok(false) };
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
