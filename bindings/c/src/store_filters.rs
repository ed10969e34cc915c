//! The filters of a keyspace: reported, replaced, chosen again; advice on filters for keys and queries.

use std::{ffi::c_char, mem::MaybeUninit, sync::Arc};

use serde_json::json;
use tamis_bindings_common::{
    Code, Failure,
    advise::{Advice, Question, advise},
    options, table_filters_json,
};
use tamis_filter::KeySet;

use crate::{
    boundary::{bytes, call, clear, clear_pointer, items, put, text},
    database::{Database, database, put_json},
    keyspace::{KeyspaceHandle, RangeOfKeys, keyspace, selection},
    value::Bytes,
};

/// Returns the filters of each table of a keyspace and how they answered, newest first, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_table_filters(
    database: Option<&Database>,
    keyspace: Option<&KeyspaceHandle>,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || {
        let (database, keyspace) = (self::database(database)?, self::keyspace(keyspace)?);
        put_json(json, &table_filters_json(&database.table_filters(keyspace)?))
    })
}

/// Replaces the filters of all tables of a keyspace by `filters`, such as "surf@16"; NULL restores those with which the tables were written.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_rebuild_filters(
    database: Option<&Database>,
    keyspace: Option<&KeyspaceHandle>,
    filters: *const c_char,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (database, keyspace) = (self::database(database)?, self::keyspace(keyspace)?);
        if filters.is_null() {
            return Ok(database.rebuild_filters(keyspace, &[])?);
        }
        let filters = options::table_filters(text(filters, "filters")?)?;
        if filters.is_empty() {
            return Err(Failure::argument(
                "filters: give a filter such as surf@16, or NULL for those of the tables",
            ));
        }
        Ok(database.rebuild_filters(keyspace, &filters)?)
    })
}

/// Chooses the filters of all tables of a keyspace again, for the sampled queries. `replaced_count` receives the number of tables whose filters
/// were replaced. A keyspace with given filters keeps them.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_check_filters(
    database: Option<&Database>,
    keyspace: Option<&KeyspaceHandle>,
    mut replaced_count: Option<&mut MaybeUninit<u64>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut replaced_count);
    call(message, || {
        let (database, keyspace) = (self::database(database)?, self::keyspace(keyspace)?);
        put(replaced_count, "replaced_count", database.check_filters(keyspace)?)
    })
}

/// Builds and measures all filter families for sorted keys and typical queries of a program, without a database. `json` receives an
/// array, cheapest family first: `filter`, and `cost_ns`, `query_ns`, `fpr`, `bits_per_key`, `build_ms`, `design`, or the `error`.
/// `read_cost_ns` is the cost of a false positive, such as 20000 for a read of a block.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_advise(
    keys: *const Bytes,
    key_count: usize,
    queries: *const RangeOfKeys,
    query_count: usize,
    bits_per_key: f64,
    read_cost_ns: f64,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || {
        let (keys, queries) = (items(keys, key_count, "keys")?, items(queries, query_count, "queries")?);
        if keys.is_empty() || queries.is_empty() {
            return Err(Failure::argument("keys and queries: give at least one of each"));
        }
        let mut set = KeySet::new();
        for key in keys {
            set.push(bytes(key.data, key.length, "keys")?).map_err(Failure::from)?;
        }
        let queries = queries.iter().map(|query| selection(query.lower, query.upper));
        let queries = queries.collect::<Result<Vec<_>, _>>()?;
        let question = Question { keys: &Arc::new(set), queries: &queries, bits_per_key, read_cost_ns };
        put_json(json, &advise(&question).iter().map(shown).collect())
    })
}

fn shown(advice: &Advice) -> serde_json::Value {
    match &advice.outcome {
        Ok(measured) => json!({
            "filter": advice.filter,
            "cost_ns": measured.cost_ns,
            "query_ns": measured.query_ns,
            "fpr": measured.fpr,
            "bits_per_key": measured.bits_per_key,
            "build_ms": measured.build_ms,
            "design": measured.design,
        }),
        Err(reason) => json!({ "filter": advice.filter, "error": reason }),
    }
}
