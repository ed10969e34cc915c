//! Measures queries on a settled store, with one kind of filters.
//!
//! A store without filters is loaded once for each kind of keys, and one whose filters the store chooses. For each point the filters of
//! all tables are replaced after queries of the same kind, so that families that design themselves, and the store that chooses, know a
//! sample of the queries. The costs without filters and with SuRF are measured once for each kind of queries; speed-ups are relative to
//! them.

use std::sync::Arc;

use tamis::{Db, Filters, KeyspaceOptions};

use super::store::{AUTO, Costs, Loaded, NONE, Shape, filter, replace_filters, run};
use tamis_bench::{BenchError, Context, Point, Row};

/// Costs and the description of the filters, or why they cannot be built.
enum Measured {
    Costs(Costs, String),
    Refused(String),
}

impl Measured {
    fn design(&self) -> &str {
        match self {
            Self::Costs(_, design) => design,
            Self::Refused(_) => "",
        }
    }
}

/// Measures a point. `prefix` is the parameter of prefix Bloom filters, `surf` the name of the filters that count as SuRF.
pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (prefix, surf) = (point.text("prefix")?, point.text("surf")?);
    let shape = Shape::of(point)?;
    let of = |name: &str, context: &mut Context<'_>| -> Result<Arc<Measured>, BenchError> {
        let bits = if name == NONE { 0 } else { point.integer("bits")? };
        let filters = if name == AUTO { Filters::auto(bits as f32) } else { Filters::none() };
        let loaded: Arc<Loaded> = context.input(&format!("store {shape:?} {filters:?}"), |context| {
            context.part(0.0..0.5, |context| Loaded::load(&shape, filters, context))
        })?;
        let (queries, access) = (point.text("queries")?, point.text("access")?);
        let label = format!("costs {shape:?} {queries} {access} {name} {bits}");
        context.input(&label, |context| measure_filters(point, (&shape, &loaded), (name, prefix), context))
    };
    let none: Arc<Measured> = of(NONE, context)?;
    let baseline: Arc<Measured> = of(surf, context)?;
    let own: Arc<Measured> = of(point.text("filters")?, context)?;
    let costs = match (&*own, &*none) {
        (Measured::Refused(reason), _) | (_, Measured::Refused(reason)) => {
            return Ok(Row::new().with("refused", reason.as_str()));
        }
        (Measured::Costs(own, _), Measured::Costs(none, _)) if own.found != none.found => {
            let text = format!("{} of the queries have a result, {} without filters", own.found, none.found);
            return Err(BenchError::Other(text));
        }
        (Measured::Costs(costs, _), _) => *costs,
    };
    let speed_up = |other: &Measured| match other {
        Measured::Costs(other, _) => Some(other.nanoseconds / costs.nanoseconds),
        Measured::Refused(_) => None,
    };
    Ok(Row::new()
        .with("ns_per_query", costs.nanoseconds)
        .with("blocks_read_per_query", costs.blocks_read)
        .with("blocks_per_query", costs.blocks_used)
        .with("found", costs.found)
        .with("false_positive_rate", costs.false_positive_rate)
        .with("speed_up_over_none", speed_up(&none))
        .with("speed_up_over_surf", speed_up(&baseline))
        .with("design", own.design()))
}

fn measure_filters(
    point: &Point,
    (shape, loaded): (&Shape, &Loaded),
    (name, prefix): (&str, &str),
    context: &mut Context<'_>,
) -> Result<Measured, BenchError> {
    let (kind, count) = (point.text("queries")?, point.integer("count")? as usize);
    let bits = point.number("bits")?;
    let warm_up = loaded.keys.queries(kind, count / 2, context.seed() ^ 1)?;
    let queries = loaded.keys.queries(kind, count, context.seed() ^ 2)?;
    // The store keeps the filters with which it was loaded.
    let options = shape.options(point.text("access")?, KeyspaceOptions::default().filters);
    let db = Db::open_with(loaded.folder.path(), options)?;
    context.part(0.5..0.6, |context| run(&db, &warm_up, context, |_| Ok(())))?;
    if let Err(BenchError::Store(error)) = replace_filters(&db, name, filter(name, prefix, bits)?.as_ref()) {
        // For example too few bits for the keys of a table.
        db.close()?;
        return Ok(Measured::Refused(error.to_string()));
    }
    // Opens the tables, and fills the cache.
    context.part(0.7..0.8, |context| run(&db, &warm_up, context, |_| Ok(())))?;
    let costs = context.part(0.8..1.0, |context| run(&db, &queries, context, |_| Ok(())))?;
    let tables = db.table_filters(&db.default_keyspace())?;
    let design = tables.into_iter().flat_map(|table| table.designs).next_back().unwrap_or_default();
    db.close()?;
    Ok(Measured::Costs(costs, design))
}
