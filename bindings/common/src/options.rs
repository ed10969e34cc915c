//! Options by name: parses texts into the options of the engine. All bindings use the same names.
//!
//! Numbers of bytes accept the suffixes `KiB`, `MiB` and `GiB`. The names are those of the fields of [`tamis::Options`] and
//! [`tamis::KeyspaceOptions`]. Keyspace options in the options of a database apply to the default keyspace of a new database.

use std::{str::FromStr, time::Duration};

use tamis::{
    Access, Compression, Durability, Filters, Keyspace, KeyspaceOptions, MergeOperator, OpenMode, Options,
    TableFilter,
};

use crate::Failure;

/// Names of options of a database.
pub const DATABASE_NAMES: &[&str] = &[
    "create_if_missing",
    "read_only",
    "lock",
    "cache_bytes",
    "table_access",
    "workers",
    "log_bytes_max",
    "keep_changes_bytes",
    "keep_changes_seconds",
    "sample_file",
];

/// Names of options of a keyspace.
pub const KEYSPACE_NAMES: &[&str] = &[
    "memtable_bytes",
    "block_bytes",
    "table_bytes",
    "compression",
    "filters",
    "layout",
    "merge",
    "expire_after",
];

/// Sets an option of a database, or of its default keyspace, by name.
///
/// # Errors
/// [`crate::Code::InvalidArgument`] for an unknown name (the message lists all names) or an invalid value.
pub fn set_database(options: &mut Options, name: &str, value: &str) -> Result<(), Failure> {
    match name {
        "create_if_missing" => {
            options.mode = match (switch(name, value)?, options.mode) {
                (_, OpenMode::Reader) => OpenMode::Reader,
                (true, _) => OpenMode::CreateIfMissing,
                (false, _) => OpenMode::Existing,
            }
        }
        "read_only" => {
            options.mode = match (switch(name, value)?, options.mode) {
                (true, _) => OpenMode::Reader,
                (false, OpenMode::Reader) => OpenMode::CreateIfMissing,
                (false, mode) => mode,
            }
        }
        "lock" => options.lock = switch(name, value)?,
        "cache_bytes" => options.cache_bytes = bytes(name, value)?,
        "table_access" => options.table_access = access(value)?,
        "workers" => options.workers = number(name, value)?,
        "log_bytes_max" => options.log_bytes_max = bytes(name, value)?,
        "keep_changes_bytes" => options.keep_changes.bytes = bytes(name, value)?,
        "keep_changes_seconds" => options.keep_changes.time = Duration::from_secs(number(name, value)?),
        "sample_file" => options.sample_file = switch(name, value)?,
        name if KEYSPACE_NAMES.contains(&name) => {
            return set_keyspace(&mut options.default_keyspace, name, value);
        }
        name => return Err(unknown(name, &[DATABASE_NAMES, KEYSPACE_NAMES].concat())),
    }
    Ok(())
}

/// Sets an option of a keyspace by name.
///
/// # Errors
/// As [`set_database`].
pub fn set_keyspace(options: &mut KeyspaceOptions, name: &str, value: &str) -> Result<(), Failure> {
    match name {
        "memtable_bytes" => options.memtable_bytes = bytes(name, value)?,
        "block_bytes" => options.block_bytes = narrow(name, value)?,
        "table_bytes" => options.table_bytes = bytes(name, value)?,
        "compression" => options.compression = list(value, ',').map(compression).collect::<Result<_, _>>()?,
        "filters" => options.filters = filters(value)?,
        "layout" => options.layout = value.parse()?,
        "merge" => options.merge = merge_operator(value)?,
        "expire_after" => options.expire_after = age(value)?,
        name => return Err(unknown(name, KEYSPACE_NAMES)),
    }
    Ok(())
}

/// Changes options of an open keyspace by name: `layout`, `filters` and `expire_after`.
///
/// # Errors
/// As [`set_database`], and those of [`Keyspace::set_options`].
pub fn change_keyspace<'a>(
    keyspace: &Keyspace,
    changes: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), Failure> {
    let mut options = keyspace.options();
    changes.into_iter().try_for_each(|(name, value)| set_keyspace(&mut options, name, value))?;
    Ok(keyspace.set_options(options)?)
}

/// Parses the name of a built-in merge operator, or `none`.
fn merge_operator(value: &str) -> Result<Option<MergeOperator>, Failure> {
    if value == "none" {
        return Ok(None);
    }
    let advice = "give `add_u64`, `add_i64`, `max`, `min`, `union`, or `append:` with a separator in hexadecimal digits";
    MergeOperator::named(value).map(Some).ok_or_else(|| refused("merge", value, advice))
}

/// Parses an age, such as `500ms`, `90s`, `15m`, `12h` or `30d`, or `never`.
fn age(value: &str) -> Result<Option<Duration>, Failure> {
    if value == "never" {
        return Ok(None);
    }
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let parsed = units.iter().find_map(|(unit, milliseconds)| {
        let count = value.strip_suffix(unit)?.trim().parse::<u64>().ok()?;
        count.checked_mul(*milliseconds)
    });
    let advice = "give a number with `ms`, `s`, `m`, `h` or `d`, or `never`";
    parsed.map(|age| Some(Duration::from_millis(age))).ok_or_else(|| refused("expire_after", value, advice))
}

/// Parses `deferred`, `buffered` or `synced`.
///
/// # Errors
/// [`crate::Code::InvalidArgument`].
pub fn durability(value: &str) -> Result<Durability, Failure> {
    match value {
        "deferred" => Ok(Durability::Deferred),
        "buffered" => Ok(Durability::Buffered),
        "synced" => Ok(Durability::Synced),
        _ => Err(refused("durability", value, "give `deferred`, `buffered` or `synced`")),
    }
}

/// Parses filters by level: `FILTER+FILTER/...`, L0 first; the last level applies to all deeper levels. `none` is a level without
/// filters, a number is a Bloom filter with this number of bits per key. `auto@BITS`: the store chooses, with at most this many bits per
/// key on average; `auto:bytes=BYTES`: with at most this many bytes.
///
/// # Errors
/// [`crate::Code::InvalidArgument`]; the message contains the invalid part.
pub fn filters(value: &str) -> Result<Filters, Failure> {
    if let Some(bits) = value.strip_prefix("auto@") {
        return Ok(Filters::auto(number("filters", bits)?));
    }
    if let Some(budget) = value.strip_prefix("auto:bytes=") {
        return Ok(Filters::auto_bytes(bytes("filters", budget)?));
    }
    let levels: Vec<_> = list(value, '/').map(table_filters).collect::<Result<_, _>>()?;
    Ok(Filters::per_level(levels))
}

/// Parses the filters of one table: `FILTER+FILTER`, or `none`.
///
/// # Errors
/// As [`filters`].
pub fn table_filters(value: &str) -> Result<Vec<TableFilter>, Failure> {
    if value.trim() == "none" {
        return Ok(Vec::new());
    }
    list(value, '+').map(table_filter).collect()
}

fn table_filter(value: &str) -> Result<TableFilter, Failure> {
    match value.parse::<f32>() {
        Ok(bits) => Ok(TableFilter::bits(bits)),
        Err(_) => Ok(value.parse::<TableFilter>()?),
    }
}

fn list(value: &str, separator: char) -> impl Iterator<Item = &str> {
    value.split(separator).map(str::trim)
}

fn compression(value: &str) -> Result<Compression, Failure> {
    let advice = "give `none`, `lz4`, or `zstd:LEVEL` with a level from 1 to 19";
    match value.split_once(':') {
        None if value == "none" => Ok(Compression::None),
        None if value == "lz4" => Ok(Compression::Lz4),
        None if value == "zstd" => Ok(Compression::Zstd(3)),
        Some(("zstd", level)) => {
            let level = level.parse().map_err(|_| refused("compression", value, advice))?;
            Ok(Compression::Zstd(level))
        }
        _ => Err(refused("compression", value, advice)),
    }
}

fn access(value: &str) -> Result<Access, Failure> {
    match value {
        "mapped" => Ok(Access::Mapped),
        "buffered" => Ok(Access::Buffered),
        "direct" => Ok(Access::Direct),
        _ => Err(refused("table_access", value, "give `mapped`, `buffered` or `direct`")),
    }
}

fn switch(name: &str, value: &str) -> Result<bool, Failure> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(refused(name, value, "give `true` or `false`")),
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, Failure> {
    value.trim().parse().map_err(|_| refused(name, value, "give a number in the option's range"))
}

/// Parses a number of bytes with an optional suffix.
fn bytes(name: &str, value: &str) -> Result<u64, Failure> {
    let suffixes = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let found = suffixes.iter().find_map(|(suffix, shift)| Some((value.strip_suffix(suffix)?, *shift)));
    let (digits, shift) = found.unwrap_or((value, 0));
    let parsed = digits.trim().parse::<u64>().ok().and_then(|count| count.checked_mul(1 << shift));
    parsed.ok_or_else(|| refused(name, value, "give a number of bytes, such as 1048576 or 1MiB"))
}

fn narrow(name: &str, value: &str) -> Result<u32, Failure> {
    u32::try_from(bytes(name, value)?).map_err(|_| refused(name, value, "give fewer bytes"))
}

fn refused(name: &str, value: &str, advice: &str) -> Failure {
    Failure::argument(format!("{name}: {value:?} is not valid; {advice}"))
}

fn unknown(name: &str, known: &[&str]) -> Failure {
    Failure::argument(format!("unknown option {name:?}; the options are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests;
