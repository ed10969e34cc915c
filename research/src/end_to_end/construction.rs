//! Measures what filters add to the time of a fill.

use tamis::{Clock as _, Db, Filters};

use super::store::{AUTO, Shape, filter, put_all};
use crate::{inputs::Keys, stores::settle};
use tamis_bench::{BenchError, Context, Point, Row};

/// Fills a store whose tables have the filters of the point, and settles it; then builds the filters of all tables again.
pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let shape = Shape::of(point)?;
    let (name, bits) = (point.text("filters")?, point.number("bits")?);
    let given = filter(name, "bits=58", bits)?;
    let filters = match (&given, name) {
        (Some(filter), _) => Filters::each([filter.clone()]),
        (None, AUTO) => Filters::auto(bits as f32),
        (None, _) => Filters::none(),
    };
    let folder = context.scratch()?;
    let keys = Keys::generate(&shape.keys, shape.entries as usize, context.seed())?.encoded();
    let mut options = shape.options("direct", filters);
    let runs = point.integer("level0_runs")?;
    options.default_keyspace = options.default_keyspace.level0_runs(runs as _);
    let db = Db::open_with(folder.path(), options)?;
    let start = context.clock().now();
    context.part(0.0..0.7, |context| put_all(&db, keys, shape.value_bytes, context))?;
    settle(&db)?;
    let seconds = (context.clock().now() - start).as_secs_f64();
    let start = context.clock().now();
    let refusal = match given {
        // For example too few bits for the keys of a small table: only the fill is measured.
        Some(filter) => db.rebuild_filters(&db.default_keyspace(), &[filter]).err(),
        None if name == AUTO => db.check_filters(&db.default_keyspace()).err(),
        None => None,
    };
    let build_seconds = (context.clock().now() - start).as_secs_f64();
    let statistics = db.statistics();
    let moved = statistics.compaction_bytes_read + statistics.compaction_bytes_written;
    let tables: usize = statistics
        .keyspaces
        .iter()
        .flat_map(|keyspace| &keyspace.levels)
        .map(|level| level.table_count)
        .sum();
    db.close()?;
    let entries = shape.entries.max(1) as f64;
    let row = Row::new()
        .with("fill_seconds", seconds)
        .with("fill_ns_per_entry", seconds * 1e9 / entries)
        .with("compaction_bytes_per_entry", moved as f64 / entries)
        .with("tables", tables as u64);
    Ok(match refusal {
        Some(error) => row.with("refused", error.to_string()),
        None => row.with("build_ns_per_key", build_seconds * 1e9 / entries),
    })
}
