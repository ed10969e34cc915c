//! The kinds of runs that the table of definitions names.

use tamis_bench::{BenchError, Context, Point, Row, Size, Value};

use crate::{
    auto, automatic_parts, bloom, end_to_end, filters, index, layouts, limits, proteus, sorted_view,
};

/// A kind of run.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    name: &'static str,
    /// Measures a point.
    pub(crate) measure: fn(&Point, &mut Context<'_>) -> Result<Row, BenchError>,
    /// The values of parameters that the table does not list, by their name with `@`.
    pub(crate) values: fn(&str, Size) -> Vec<Value>,
}

const fn run(name: &'static str, measure: fn(&Point, &mut Context<'_>) -> Result<Row, BenchError>) -> Run {
    Run { name, measure, values: |_, _| Vec::new() }
}

const RUNS: &[Run] = &[
    // Filters in memory.
    run("filters", filters::measure),
    run("probe-times", filters::measure_probes),
    // The model of Proteus.
    Run { values: proteus::lengths, ..run("modelled-filters", proteus::measure) },
    run("modelling", proteus::measure_steps),
    // The trie as an index.
    run("index", index::measure),
    // The choice of filters.
    Run { values: auto::accuracy::keys_and_queries, ..run("chosen-filters", auto::accuracy::measure) },
    Run { values: auto::accuracy::keys_and_queries, ..run("candidates", auto::candidates::measure) },
    run("chosen-for-paths", auto::strings::measure),
    // Filters of stores.
    run("reads-and-digests", bloom::table_1::measure),
    run("digest-sharing", bloom::levels::measure),
    run("elastic-store", bloom::elastic::measure),
    run("settled-store", end_to_end::steady::measure),
    run("shifting-store", end_to_end::shift::measure),
    run("construction", end_to_end::construction::measure),
    run("automatic-parts", automatic_parts::measure),
    // Views and layouts.
    run("viewed-tables", sorted_view::measure),
    run("view-sizes", sorted_view::measure_sizes),
    run("layout-seeks", layouts::measure_reads),
    run("layout-load", layouts::measure_load),
    run("layout-updates", layouts::measure_updates),
    run("layout-ycsb", layouts::measure_ycsb),
    run("deletes", limits::delete::measure),
    run("views", limits::view::measure),
    run("layouts-compared", limits::layout::measure),
];

/// The kind of run with this name.
///
/// # Errors
/// [`BenchError::Unknown`] with the known names.
pub(crate) fn find(name: &str) -> Result<&'static Run, BenchError> {
    RUNS.iter().find(|run| run.name == name).ok_or_else(|| BenchError::Unknown {
        kind: "run",
        name: name.to_owned(),
        names: RUNS.iter().map(|run| run.name).collect::<Vec<_>>().join(", "),
    })
}
