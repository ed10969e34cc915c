//! The options of stores and keyspaces, drawn from a number: small sizes, so that few writes make many files and jobs.

use std::sync::Arc;

use tamis::{
    Access, Compression, EventListener, Filters, KeepChanges, KeyspaceOptions, Layout, OpenMode, Options,
    TableFilter, Views,
};
use tamis_workload::SplitMix64;

use crate::{operator::operators, ops::Profile};

/// Filters of all families.
const FILTERS: [&str; 14] = [
    "blocked-bloom@10",
    "prefix-bloom:bytes=2@10",
    "elastic@9",
    "surf@18",
    "surf-base",
    "surf-hash:bits=4",
    "surf-real:bits=8",
    "surf-mixed:hash=2,real=4",
    "rosetta@12",
    "blocked-bloom@4 surf-real@20 prefix-bloom:bytes=3@6",
    "proteus@12",
    "1pbf:prefix=45,layout=lines@10",
    "2pbf:first=20,second=61@14",
    "grafite@12",
];

fn one_of<T: Clone>(random: &mut SplitMix64, among: &[T]) -> Option<T> {
    among.get(random.below(among.len() as u64) as usize).cloned()
}

/// Draws filters of a table.
pub fn table_filters(random: &mut SplitMix64) -> Vec<TableFilter> {
    let row = one_of(random, &FILTERS).unwrap_or("blocked-bloom@10");
    row.split(' ').filter_map(|filter| filter.parse().ok()).collect()
}

fn filters(random: &mut SplitMix64) -> Filters {
    match random.below(6) {
        0 => Filters::none(),
        1 => Filters::auto(16.0),
        2 => Filters::auto_bytes(20_000),
        3 => Filters::per_level([Vec::new(), table_filters(random)]),
        _ => Filters::each(table_filters(random)),
    }
}

fn layout(random: &mut SplitMix64) -> Layout {
    match random.below(4) {
        0 | 1 => Layout::Leveled,
        2 => Layout::Tiered {
            runs_per_level: 2 + random.below(3) as u32,
            space_amplification_percent: 50 + random.below(200) as u32,
        },
        _ => Layout::Partitioned { tables_per_partition: 4 + random.below(4) as u32 },
    }
}

fn views(random: &mut SplitMix64) -> Views {
    one_of(random, &[Views::Auto, Views::On, Views::Off]).unwrap_or(Views::Auto)
}

/// The options of a keyspace.
pub fn keyspace(number: u64, fixed: Option<Layout>) -> KeyspaceOptions {
    let random = &mut SplitMix64::new(number);
    let compression = match random.below(4) {
        0 => vec![Compression::None, Compression::Lz4],
        1 => vec![Compression::Lz4, Compression::Zstd(1)],
        _ => vec![Compression::None],
    };
    let options = KeyspaceOptions::default()
        .memtable_bytes((64 << random.below(3)) << 10)
        .block_bytes(one_of(random, &[4096, 4096, 8192, 16_384]).unwrap_or(4096))
        .table_bytes((64 << random.below(2)) << 10)
        .compression(compression)
        .filters(filters(random))
        .views(views(random))
        .layout(layout(random))
        .size_ratio(2 + random.below(4) as u32)
        .level0_runs(1 + random.below(4) as u32);
    let options = match random.below(6) {
        number @ 0..2 => options.merge(operators().get(number as usize).cloned()),
        _ => options,
    };
    match fixed {
        Some(layout) => options.layout(layout).views(Views::Off).filters(Filters::bits(10.0)),
        None => options,
    }
}

/// Whether an open with these options is read-only, unless the store is new.
pub fn is_read_only(number: u64) -> bool {
    tamis_workload::mix64(number).is_multiple_of(10)
}

/// Other options of an open keyspace.
pub fn changed(options: KeyspaceOptions, number: u64) -> KeyspaceOptions {
    let random = &mut SplitMix64::new(number);
    match random.below(4) {
        0 | 1 => options.layout(layout(random)),
        2 => options.views(views(random)),
        _ => options.filters(filters(random)),
    }
}

/// The options of an open.
pub fn open(
    number: u64,
    profile: &Profile,
    keyspaces: &[String],
    listener: Arc<dyn EventListener>,
) -> Options {
    let fixed = profile.layout;
    // An open may not have other options than those that are stored.
    let default_keyspace = match keyspaces.is_empty() {
        true => keyspace(profile.default_options, fixed),
        false => KeyspaceOptions::default(),
    };
    let random = &mut SplitMix64::new(number);
    let read_only = !keyspaces.is_empty() && is_read_only(number);
    Options::default()
        .mode(if read_only { OpenMode::Reader } else { OpenMode::CreateIfMissing })
        .cache_bytes(one_of(random, &[64 << 10, 1 << 20, 8 << 20]).unwrap_or(1 << 20))
        .cache_pinned_percent(one_of(random, &[0, 20, 60, 100]).unwrap_or(60))
        .table_access(
            one_of(random, &[Access::Mapped, Access::Buffered, Access::Direct]).unwrap_or(Access::Mapped),
        )
        .workers(one_of(random, &[0, 1, 2, 2, 3]).unwrap_or(2))
        .log_bytes_max((1 << random.below(4)) << 20)
        .keep_changes(KeepChanges::bytes(one_of(random, &[0, 100_000, 4 << 20]).unwrap_or(0)))
        .deleted_range_keys(one_of(random, &[0, 2, 16, 64]).unwrap_or(64))
        .sample_queries(random.below(4) > 0)
        .sample_file(true)
        .default_keyspace(default_keyspace)
        .merge_operators(operators().to_vec())
        .listener(listener)
}
