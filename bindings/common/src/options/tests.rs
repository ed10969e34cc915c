#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis::{Db, Error, KeepChanges, Layout};

use super::*;
use crate::Code;

#[test]
fn every_name_sets_an_option() {
    let values = [
        ("create_if_missing", "false"),
        ("read_only", "true"),
        ("lock", "false"),
        ("cache_bytes", "8MiB"),
        ("table_access", "direct"),
        ("workers", "1"),
        ("log_bytes_max", "2097152"),
        ("keep_changes_bytes", "1GiB"),
        ("keep_changes_seconds", "86400"),
        ("sample_file", "true"),
        ("memtable_bytes", "1MiB"),
        ("block_bytes", "8KiB"),
        ("table_bytes", "2MiB"),
        ("compression", "none,lz4,zstd:7"),
        ("filters", "none/surf@16+10"),
        ("layout", "tiered:runs_per_level=6"),
        ("merge", "append:2c20"),
        ("expire_after", "90s"),
    ];
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, [DATABASE_NAMES, KEYSPACE_NAMES].concat());
    let mut options = Options::default();
    for (name, value) in values {
        let before = format!("{options:?}");
        set_database(&mut options, name, value).unwrap();
        assert_ne!(format!("{options:?}"), before, "{name} changed nothing");
    }
    let keyspace = &options.default_keyspace;
    assert_eq!(options.cache_bytes, 8 << 20);
    assert_eq!(options.keep_changes, KeepChanges::bytes(1 << 30).time(Duration::from_secs(86_400)));
    assert_eq!(keyspace.layout, Layout::Tiered { runs_per_level: 6, space_amplification_percent: 300 });
    assert_eq!(keyspace.compression, [Compression::None, Compression::Lz4, Compression::Zstd(7)]);
    assert_eq!(keyspace.filters.of_level(0), []);
    assert_eq!(keyspace.filters.of_level(3).len(), 2);
    assert_eq!(keyspace.merge, Some(MergeOperator::append(b", ")));
    assert_eq!(keyspace.expire_after, Some(Duration::from_secs(90)));
}

#[test]
fn invalid_values_are_rejected_with_advice() {
    let refused = [
        ("cache_bytes", "many", "bytes"),
        ("cache_bytes", "99999999999GiB", "bytes"),
        ("workers", "many", "number"),
        ("keep_changes_bytes", "all", "bytes"),
        ("keep_changes_seconds", "-1", "number"),
        ("block_bytes", "8GiB", "fewer"),
        ("read_only", "yes", "true"),
        ("table_access", "mmap", "mapped"),
        ("compression", "brotli", "zstd"),
        ("filters", "cuckoo@3", "there are"),
        ("filters", "auto:bytes=", "bytes"),
        ("filters", "auto:bytes=7MB", "bytes"),
        ("layout", "lazy", "tiered"),
        ("merge", "add", "`add_u64`, `add_i64`, `max`, `min`, `union`"),
        ("merge", "append:2", "hexadecimal"),
        ("expire_after", "90", "`ms`, `s`, `m`, `h` or `d`"),
        ("expire_after", "-1s", "`never`"),
        ("expire_after", "99999999999999999999d", "`never`"),
        ("expire_after", "1w", "`never`"),
        ("cache", "1", "cache_bytes"),
    ];
    for (name, value, advice) in refused {
        let failure = set_database(&mut Options::default(), name, value).unwrap_err();
        assert_eq!(failure.code, Code::InvalidArgument);
        assert!(failure.message.contains(advice), "{}", failure.message);
    }
    let failure = set_keyspace(&mut KeyspaceOptions::default(), "workers", "1").unwrap_err();
    assert!(failure.message.contains("memtable_bytes"), "{}", failure.message);
    assert!(durability("sync").unwrap_err().message.contains("synced"));
    assert_eq!(durability("synced").unwrap(), Durability::Synced);
}

#[test]
fn options_of_an_open_keyspace_change_together_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let keyspace = Db::open(folder.path()).unwrap().default_keyspace();
    change_keyspace(&keyspace, [("layout", "tiered"), ("filters", "none")]).unwrap();
    let none = filters("none").unwrap();
    let changed = KeyspaceOptions::default().layout(Layout::tiered()).filters(none);
    assert_eq!(keyspace.options(), changed);
    for (name, value, advice) in [
        ("filters", "cuckoo@3", "there are"),
        ("layout", "tiered:runs_per_level=1", "2 to 64"),
        ("block_bytes", "8KiB", "copy"),
    ] {
        let failure = change_keyspace(&keyspace, [("layout", "leveled"), (name, value)]).unwrap_err();
        assert_eq!(failure.code, Code::InvalidArgument);
        assert!(failure.message.contains(advice), "{}", failure.message);
    }
    assert_eq!(keyspace.options(), changed);
}

#[test]
fn the_store_chooses_filters_with_a_budget_in_bits_or_bytes() {
    assert_eq!(filters("auto@12.5").unwrap(), Filters::auto(12.5));
    assert_eq!(filters("auto:bytes=256MiB").unwrap(), Filters::auto_bytes(256 << 20));
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    set_database(&mut options, "filters", "auto:bytes=0").unwrap();
    let refused = Db::open_with(folder.path().join("store"), options);
    assert!(matches!(refused, Err(Error::InvalidArgument { what: "filters", .. })));
}

#[test]
fn values_out_of_range_are_rejected_at_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    set_database(&mut options, "block_bytes", "1000").unwrap();
    let refused = Db::open_with(folder.path().join("store"), options);
    assert!(matches!(refused, Err(Error::InvalidArgument { what: "block_bytes", .. })));
}

#[test]
fn each_built_in_merge_operator_has_a_name() {
    let operators = [
        ("add_u64", MergeOperator::add_u64()),
        ("add_i64", MergeOperator::add_i64()),
        ("max", MergeOperator::max()),
        ("min", MergeOperator::min()),
        ("union", MergeOperator::union()),
        ("append:", MergeOperator::append(b"")),
    ];
    let mut options = KeyspaceOptions::default();
    for (name, operator) in operators {
        set_keyspace(&mut options, "merge", name).unwrap();
        assert_eq!(options.merge, Some(operator));
    }
    set_keyspace(&mut options, "merge", "none").unwrap();
    assert_eq!(options.merge, None);
}

#[test]
fn ages_have_a_unit() {
    let ages = [
        ("0ms", 0),
        ("500ms", 500),
        ("90s", 90_000),
        ("15 m", 900_000),
        ("12h", 43_200_000),
        ("30d", 2_592_000_000),
    ];
    let mut options = KeyspaceOptions::default();
    for (text, milliseconds) in ages {
        set_keyspace(&mut options, "expire_after", text).unwrap();
        assert_eq!(options.expire_after, Some(Duration::from_millis(milliseconds)), "{text}");
    }
    set_keyspace(&mut options, "expire_after", "never").unwrap();
    assert_eq!(options.expire_after, None);
}

#[test]
fn an_open_keyspace_gets_a_merge_operator_once_and_another_age_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    let sums = db.default_keyspace();
    change_keyspace(&sums, [("merge", "add_u64")]).unwrap();
    assert_eq!(sums.options().merge, Some(MergeOperator::add_u64()));
    let failure = change_keyspace(&sums, [("merge", "max")]).unwrap_err();
    assert!(failure.message.contains("merge = add_u64, not max"), "{}", failure.message);
    let sessions = db.create_keyspace("sessions", KeyspaceOptions::default()).unwrap();
    for age in ["30d", "12h", "never"] {
        change_keyspace(&sessions, [("expire_after", age)]).unwrap();
    }
    assert_eq!(sessions.options().expire_after, None);
}
