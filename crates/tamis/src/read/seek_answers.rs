//! How the filters of the tables answered an open seek: for the counters of the tables, and for the sample of queries.
//!
//! A seek needs the table that has the key that it returns. The filters of another table answer rightly if they let the seek do without
//! a read of it: they deny any key from the sought one on, or name a candidate that the merge does not reach. A table that was read and
//! has another key next is a false positive; so a table whose filters name no candidates has one in each seek that returns the key of
//! another table.
//!
//! A seek backward also steps past the entry that it returns, to know that the key has no older version. Tables that this step reads count
//! as read.
//!
//! Tables that begin after the sought key (backward: end before it) are not counted: their smallest keys are known without a filter.

use tamis_filter::auto::QueryKind;

use crate::{
    cursor::{
        merge::{MergeCursor, Sought},
        source::Source,
    },
    observe::query_sample::{Positive, QueryOutcome},
    table::{filter_set::FilterQuery, lazy_reader::NamedTable},
    version::handle::Table,
};

/// The answer of the filters of one table to a seek.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeekAnswer {
    /// The table was not read.
    Denied,
    /// The table was read. A true positive has the entry that was found.
    Admitted(Positive),
}

/// The answers to a seek to `sought`, which a merge has just executed. An evicted filter names no candidate: a table that was read without
/// it is left out.
fn answers<'a>(
    sought: &'a [u8],
    merge: &'a MergeCursor<Source>,
) -> impl Iterator<Item = (&'a Table, SeekAnswer)> {
    merge.sought().filter_map(move |lane| {
        let table = lane.cursor.open_table()?;
        let is_within = table.smallest_key() <= sought && sought <= table.largest_key();
        let is_counted = is_within && !(lane.is_read && has_evicted_filter(table));
        let answer = match lane {
            Sought { is_read: false, .. } => SeekAnswer::Denied,
            Sought { was_found: true, .. } => SeekAnswer::Admitted(Positive::True),
            Sought { was_found: false, .. } => SeekAnswer::Admitted(Positive::False),
        };
        is_counted.then_some((table, answer))
    })
}

/// Whether a filter that would name a candidate for the seek is not in memory.
fn has_evicted_filter(table: &Table) -> bool {
    table.slot().get().is_some_and(|reader| !reader.are_filters_asked(FilterQuery::Seek))
}

/// Counts a seek to `sought`, which a merge has just executed, for `weight` seeks.
pub(super) fn count_seek(kind: QueryKind, sought: &[u8], merge: &MergeCursor<Source>, weight: u32) {
    for (table, answer) in answers(sought, merge) {
        let counters = table.filter_tally().of(kind);
        match answer {
            SeekAnswer::Denied => counters.add_rejected(weight),
            SeekAnswer::Admitted(positive) => {
                counters.add_admitted(weight);
                counters.add_positive(positive, weight);
            }
        }
    }
}

/// The answers to a seek to `sought`, which a merge has just executed, as they are sampled.
pub(super) fn outcome_of_seek(sought: &[u8], merge: &MergeCursor<Source>) -> QueryOutcome {
    let mut outcome = QueryOutcome::default();
    for (_, answer) in answers(sought, merge) {
        match answer {
            SeekAnswer::Denied => outcome.add_rejected(),
            SeekAnswer::Admitted(positive) => outcome.add_positive(positive),
        }
    }
    outcome
}
