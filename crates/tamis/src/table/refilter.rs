//! Builds other filters for an existing table: its keys are read, and values only if necessary.
//!
//! Cost: reads every data block. The table's file is not changed: the new filters
//! are written to their own filter file, which a version edit installs.

use std::{cell::Cell, ops::ControlFlow, sync::Arc};

use tamis_filter::{
    KeySet,
    auto::{Pause, Query},
};

use super::{
    filter_block::{BuiltFilters, FiltersBuilder, build_choice},
    filter_choice::{ExpectedCost, FilterChoice},
    filter_file::{FilterOwner, write_filter_file},
    filter_plan::{ChoiceInput, Chosen, FilterPlan, GivenFilters, queries_within},
    reader::TableReader,
};
use crate::{
    cursor::Cursor,
    error::{Error, Result},
};

/// A build error as an error of the program: only the requested filters can be wrong.
pub(super) fn refused(error: impl ToString) -> Error {
    Error::InvalidArgument {
        what: "filters",
        got: error.to_string(),
        expected: "give filters that can be built for the keys of every table".to_owned(),
    }
}

/// Writes filters over all keys of `table`, tombstones included, as filter file `number`; no file if there are no filters. `check` is
/// called every few thousand keys, and its error ends the work.
pub(crate) fn write_filters_of(
    table: &Arc<TableReader>,
    number: u64,
    filters: &GivenFilters,
    seed: u64,
    check: &dyn Fn() -> Result<()>,
) -> Result<()> {
    if filters.filters.is_empty() {
        return Ok(());
    }
    let mut builder = FiltersBuilder::new(&FilterPlan::Given(filters.clone()), seed).map_err(refused)?;
    for_each_key(table, check, |key| builder.add(key))?;
    let built = builder.finish(span_of(table));
    if let Some(reason) = built.refusals.first() {
        return Err(refused(reason));
    }
    write_built(table, number, &built)
}

/// Writes built filters of `table` as filter file `number`.
pub(crate) fn write_built(table: &TableReader, number: u64, built: &BuiltFilters) -> Result<()> {
    let environment = table.environment();
    write_filter_file(&environment.folder, number, FilterOwner::of(table.properties()), built)?;
    Ok(())
}

/// The first and the last key of a table.
fn span_of(table: &TableReader) -> (&[u8], &[u8]) {
    let summary = &table.properties().summary;
    (&summary.smallest_key, &summary.largest_key)
}

/// The filters of a table today and those that would be chosen today, from its keys.
pub(crate) struct Comparison<'a> {
    pub(crate) current: ExpectedCost,
    pub(crate) choice: FilterChoice,
    /// The tables that a query of this one asks, this one included.
    pub(crate) overlapping_tables: u32,
    keys: Arc<KeySet>,
    queries: Vec<Query<'a>>,
    seed: u64,
}

impl<'a> Comparison<'a> {
    /// Reads all keys of the table. `input` has the table's filters. `check` is called every few thousand keys and between the designs,
    /// and its error ends the work.
    pub(crate) fn of(
        table: &Arc<TableReader>,
        input: &'a ChoiceInput,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let mut keys = KeySet::new();
        let mut is_sorted = true;
        for_each_key(table, check, |key| is_sorted &= keys.push(key).is_ok())?;
        debug_assert!(is_sorted, "cursors return keys in order");
        Self::of_keys(keys, input, check)
    }

    /// For keys that are no table.
    pub(crate) fn of_keys(
        keys: KeySet,
        input: &'a ChoiceInput,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let keys = Arc::new(keys);
        let last = keys.len().saturating_sub(1);
        let span = (keys.get(0).unwrap_or_default(), keys.get(last).unwrap_or_default());
        let queries = queries_within(&input.queries, span);
        let Chosen { choice, current } = choose(input, &keys, &queries, check)?;
        let overlapping_tables = input.overlapping_tables(span);
        let seed = input.seed;
        Ok(Self { current, choice, overlapping_tables, keys, queries, seed })
    }

    /// Builds the chosen filters; `None` if one of them can't be built. If none is worth its memory the list is empty.
    pub(crate) fn build(&self) -> Option<BuiltFilters> {
        let built = build_choice(&self.keys, self.seed, &self.queries, self.choice.clone());
        built.refusals.is_empty().then_some(built)
    }
}

/// Chooses filters. `check` is called between the designs; after its error no further one is evaluated.
fn choose(
    input: &ChoiceInput,
    keys: &Arc<KeySet>,
    queries: &[Query<'_>],
    check: &dyn Fn() -> Result<()>,
) -> Result<Chosen> {
    check()?;
    let stopped = Cell::new(None);
    let pause = || match check() {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            stopped.set(Some(error));
            ControlFlow::Break(())
        }
    };
    let chosen = input.choose(keys, queries, Pause::with(&pause));
    stopped.into_inner().map_or(Ok(chosen), Err)
}

/// Calls `work` with each key, and `check` every few thousand keys.
fn for_each_key(
    table: &Arc<TableReader>,
    check: &dyn Fn() -> Result<()>,
    mut work: impl FnMut(&[u8]),
) -> Result<()> {
    let mut key_count = 0_usize;
    let mut work = |key: &[u8]| {
        if key_count.is_multiple_of(4_096) {
            check()?;
        }
        key_count += 1;
        work(key);
        Ok(())
    };
    let mut cursor = table.cursor_once();
    cursor.seek_first()?;
    while cursor.is_valid() {
        work(cursor.key())?;
        cursor.next()?;
    }
    Ok(())
}
