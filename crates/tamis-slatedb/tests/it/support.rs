//! Designs, hostile keys, and databases with small tables.

use std::ops::Bound;
use std::path::Path as FilePath;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proptest::prelude::*;
use slatedb::bytes::Bytes;
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, DbReaderOptions, FlushOptions, FlushType, Settings,
};
use slatedb::object_store::ObjectStore;
use slatedb::{
    Db, DbIterator, DbReader, DbReaderMode, FilterPolicy, KeyValue, MergeOperator, MergeOperatorError,
};
use slatedb_common::metrics::DefaultMetricsRecorder;
use tamis_filter::Family;
use tamis_slatedb::{FilterPolicies, TamisPolicy};
use tamis_slatedb_support::{Address, Credentials, serve_s3};
use tempfile::TempDir;

/// One design of every family, combinations, and the automatic choice.
pub(crate) fn designs() -> Vec<String> {
    let mut designs: Vec<String> = Family::ALL
        .iter()
        .map(|family| match family {
            Family::Prefix => "prefix-bloom:bytes=2@14".to_owned(),
            Family::Surf => "surf@60".to_owned(),
            Family::SurfBase => "surf-base".to_owned(),
            Family::SurfHash => "surf-hash:bits=6".to_owned(),
            Family::SurfReal => "surf-real:bits=6".to_owned(),
            Family::SurfMixed => "surf-mixed:hash=4,real=4".to_owned(),
            other => format!("{other}@16"),
        })
        .collect();
    designs.push("blocked-bloom@10 proteus@12 grafite@12".to_owned());
    designs.push("prefix-bloom:separator=0x00,points=yes@14 surf-real:bits=4".to_owned());
    designs.push("auto@16".to_owned());
    designs
}

pub(crate) fn policies(design: &str) -> FilterPolicies {
    FilterPolicies::new(policy(design))
}

pub(crate) fn policy(design: &str) -> TamisPolicy {
    TamisPolicy::new(design.parse().expect(design)).expect(design)
}

/// Keys that differ in their last bytes, contain others, end with zero bytes or with the greatest, or are long.
pub(crate) fn hostile_key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(vec![0_u8, 1, b'a', b'b', 0x7f, 0x80, 0xfe, 0xff]);
    let short = prop::collection::vec(byte, 1..7);
    prop_oneof![
        6 => short.clone(),
        2 => short.clone().prop_map(|tail| [b"a-long-common-prefix".as_slice(), &tail].concat()),
        1 => short.prop_map(|tail| [&[0xff; 40][..], &tail, &[0; 9]].concat()),
        1 => prop::collection::vec(any::<u8>(), 1..300),
    ]
}

/// The bounds of a range.
pub(crate) type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Bounds of all kinds; SlateDB does not accept ranges that no key can be in.
pub(crate) fn hostile_range() -> impl Strategy<Value = KeyBounds> {
    (hostile_key(), hostile_key(), 0..3_u8, 0..3_u8).prop_map(|(one, other, lower, upper)| {
        let (least, greatest) = if one <= other { (one, other) } else { (other, one) };
        let is_point = least == greatest;
        let bound = |key: Vec<u8>, kind| match kind {
            0 => Bound::Included(key),
            1 if !is_point => Bound::Excluded(key),
            1 => Bound::Included(key),
            _ => Bound::Unbounded,
        };
        (bound(least, lower), bound(greatest, upper))
    })
}

/// Appends operands to the value.
pub(crate) struct Append;

impl MergeOperator for Append {
    fn merge(&self, _: &Bytes, existing: Option<Bytes>, operand: Bytes) -> Result<Bytes, MergeOperatorError> {
        Ok([existing.unwrap_or_default(), operand].concat().into())
    }
}

/// Filters for tables of any size, no compaction, flushes by hand.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings {
        flush_interval: None,
        manifest_poll_interval: Duration::from_millis(50),
        compactor_options: None,
        garbage_collector_options: None,
        ..Settings::default()
    };
    settings.min_filter_keys = 1;
    settings.l0_max_ssts = 1000;
    settings.l0_max_ssts_per_key = 1000;
    settings
}

/// Compacts as soon as there are two tables.
pub(crate) fn eager_compaction() -> CompactorOptions {
    let scheduler = [
        ("min_compaction_sources", "2"),
        ("max_compaction_sources", "64"),
        ("include_size_threshold", "1000"),
    ];
    let poll = Duration::from_millis(20);
    let mut worker = CompactionWorkerOptions {
        compactions_poll_interval: poll,
        heartbeat_interval: Duration::from_millis(500),
        ..CompactionWorkerOptions::default()
    };
    worker.min_filter_keys = 1;
    worker.max_sst_size = 64 << 10;
    CompactorOptions {
        poll_interval: poll,
        commit_compacted_interval: poll,
        scheduler_options: scheduler.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        worker_heartbeat_timeout: Duration::from_secs(2),
        worker: Some(worker),
        ..CompactorOptions::default()
    }
}

pub(crate) async fn open(policies: &FilterPolicies, store: &Arc<dyn ObjectStore>, settings: Settings) -> Db {
    let builder =
        Db::builder("db", Arc::clone(store)).with_settings(settings).with_merge_operator(Arc::new(Append));
    policies.configure(builder).build().await.expect("the database can be opened")
}

/// A reader with its statistics; without policies it reads every table.
pub(crate) async fn open_reader(
    policies: Option<&FilterPolicies>,
    store: &Arc<dyn ObjectStore>,
) -> (DbReader, Arc<DefaultMetricsRecorder>) {
    let recorder = Arc::new(DefaultMetricsRecorder::new());
    let builder = DbReader::builder("db", Arc::clone(store))
        .with_reader_mode(DbReaderMode::FollowLatest)
        .with_options(DbReaderOptions { skip_wal_replay: true, ..DbReaderOptions::default() })
        .with_merge_operator(Arc::new(Append))
        .with_metrics_recorder(recorder.clone());
    let builder = match policies {
        Some(policies) => policies.configure(builder),
        None => builder.with_filter_policies(Vec::<Arc<dyn FilterPolicy>>::new()),
    };
    (builder.build().await.expect("the reader can be opened"), recorder)
}

/// Writes the memtable into a table.
pub(crate) async fn flush(db: &Db) {
    let options = FlushOptions { flush_type: FlushType::MemTable };
    db.flush_with_options(options).await.expect("the memtable can be flushed");
}

pub(crate) async fn collect(mut scan: DbIterator) -> Vec<KeyValue> {
    let mut entries = Vec::new();
    while let Some(entry) = scan.next().await.expect("the scan can be continued") {
        entries.push(entry);
    }
    entries
}

/// Entries of `count` tables that overlap: keys of 8 bytes, every 1,000th number.
pub(crate) async fn fill_tables(db: &Db, count: u64, keys_per_table: u64) {
    for table in 0..count {
        for index in 0..keys_per_table {
            let number = (index * count + table) * 1000;
            db.put(number.to_be_bytes(), format!("value {number}")).await.expect("it can be written");
        }
        flush(db).await;
    }
}

/// A folder as a store that several processes can open.
pub(crate) fn folder_store(folder: &FilePath) -> Arc<dyn ObjectStore> {
    Address::open(&format!("file://{}", folder.display())).expect("the folder exists").store
}

pub(crate) fn credentials() -> Credentials {
    Credentials { access_key: "test-account".to_owned(), secret_key: "test-secret".to_owned() }
}

/// An S3 server that runs until the tests end.
pub(crate) struct TestServer {
    pub(crate) endpoint: String,
    /// The folder whose folders are the buckets.
    folder: TempDir,
}

pub(crate) fn s3_server() -> &'static TestServer {
    static SERVER: OnceLock<TestServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder can be created");
        let root = folder.path().to_owned();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let report = |address| sender.send(address).expect("the test waits");
            let credentials = credentials();
            let serve = serve_s3(&root, &credentials, report);
            runtime
                .expect("a runtime can be started")
                .block_on(serve)
                .expect("the server runs until the tests end");
        });
        let address = receiver.recv_timeout(Duration::from_secs(30)).expect("the server starts");
        TestServer { endpoint: format!("http://{address}"), folder }
    })
}

/// A new bucket of the S3 server.
pub(crate) fn s3_store(bucket: &str) -> Arc<dyn ObjectStore> {
    let server = s3_server();
    std::fs::create_dir(server.folder.path().join(bucket)).expect("no other test has this bucket");
    open_bucket(bucket, &server.endpoint)
}

/// A bucket, whether it exists or not.
pub(crate) fn open_bucket(bucket: &str, endpoint: &str) -> Arc<dyn ObjectStore> {
    Address::with_endpoint(bucket, endpoint, &credentials()).expect("the settings are complete").store
}
