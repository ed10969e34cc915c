//! Several processes on one database: filters of one are read by another, and killed processes lose nothing.
//!
//! The tests start their own program again with the name of one test, [`child`], and its role in the environment.

use std::io::{BufRead, BufReader, Write};
use std::path::Path as FilePath;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use slatedb::object_store::ObjectStore;
use slatedb::{CompactorBuilder, Db};
use tamis_slatedb::FilterMetrics;

use crate::database::wait_for_compaction;
use crate::support::{
    Append, collect, eager_compaction, fill_tables, flush, folder_store, open, open_bucket, open_reader,
    policies, s3_server, s3_store, settings,
};

const ROLE: &str = "TAMIS_SLATEDB_TEST_ROLE";
/// `file:FOLDER` or `s3:BUCKET:ENDPOINT`.
const STORE: &str = "TAMIS_SLATEDB_TEST_STORE";
const DESIGN: &str = "auto@16";

/// A process with a role, which is killed when its test ends.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(role: &str, store: &str) -> Self {
        let program = std::env::current_exe().expect("the test is a program");
        let mut child = Command::new(program)
            .args(["--exact", "processes::child", "--nocapture"])
            .env(ROLE, role)
            .env(STORE, store)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be started again");
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, output }
    }

    /// Waits until it reports a state; the rest of that line.
    fn wait_for(&mut self, state: &str) -> String {
        let mut line = String::new();
        while self.output.read_line(&mut line).expect("the output can be read") > 0 {
            if let Some(rest) = line.trim_end().strip_prefix(&format!("child: {state}")) {
                return rest.trim().to_owned();
            }
            line.clear();
        }
        panic!("the process ended before it was {state}");
    }

    /// `kill -9`.
    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn report(state: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "child: {state}").and_then(|()| output.flush()).expect("the parent reads");
}

fn open_store(text: &str) -> Arc<dyn ObjectStore> {
    match text.split_once(':') {
        Some(("file", folder)) => folder_store(FilePath::new(folder)),
        Some(("s3", rest)) => {
            let (bucket, endpoint) = rest.split_once(':').expect("a bucket and an endpoint");
            open_bucket(bucket, endpoint)
        }
        _ => panic!("{text:?} is no store"),
    }
}

/// The other process; does nothing without a role in the environment.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let store = open_store(&std::env::var(STORE).expect("the parent names a store"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        match role.as_str() {
            "writer" => write_tables(&store).await,
            "compactor" => compact(&store).await,
            "reader" => read_endlessly(&store).await,
            other => panic!("{other:?} is no role"),
        }
    });
}

async fn write_tables(store: &Arc<dyn ObjectStore>) {
    let db = open(&policies(DESIGN), store, settings()).await;
    fill_tables(&db, 4, 500).await;
    db.close().await.expect("it can be closed");
    report("written");
}

async fn compact(store: &Arc<dyn ObjectStore>) {
    let builder = CompactorBuilder::new("db", Arc::clone(store))
        .with_options(eager_compaction())
        .with_merge_operator(Arc::new(Append));
    let compactor = policies(DESIGN).configure(builder).build();
    report("compacting");
    compactor.run().await.expect("it runs until it is killed");
}

async fn read_endlessly(store: &Arc<dyn ObjectStore>) {
    let (reader, _) = open_reader(Some(&policies(DESIGN)), store).await;
    report("reading");
    for number in 0.. {
        let from = number % 400 * 1000;
        let entries = collect(
            reader.scan(u64::to_be_bytes(from)..=u64::to_be_bytes(from + 5000)).await.expect("a scan"),
        );
        assert!(entries.await.len() <= 6);
        report("read");
    }
}

/// A store and the text that names it to other processes.
type NamedStore = (String, Arc<dyn ObjectStore>);

/// A store in a folder and one on S3, with the text that names them to other processes.
fn stores(bucket: &str) -> (tempfile::TempDir, [NamedStore; 2]) {
    let folder = tempfile::tempdir().expect("a folder can be created");
    let file = (format!("file:{}", folder.path().display()), folder_store(folder.path()));
    let s3 = (format!("s3:{bucket}:{}", s3_server().endpoint), s3_store(bucket));
    (folder, [file, s3])
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_one_process_are_read_by_another() {
    let (_folder, stores) = stores("two-processes");
    for (name, store) in stores {
        Process::start("writer", &name).wait_for("written");
        let policies = policies(DESIGN);
        let (reader, recorder) = open_reader(Some(&policies), &store).await;
        for number in 0..1_000_u64 {
            let range = (number * 1000 + 300).to_be_bytes()..=(number * 1000 + 310).to_be_bytes();
            assert!(collect(reader.scan(range).await.expect("a scan")).await.is_empty());
        }
        assert_eq!(collect(reader.scan::<std::ops::RangeFull>(..).await.expect("a scan")).await.len(), 2_000);
        let counts = FilterMetrics::read(&recorder).ranges;
        assert!(counts.negatives > 3_200, "{name}: {counts:?}");
        let values = policies.counters().values();
        assert_eq!((values.damaged, values.unknown), (0, 0), "{values}");
    }
}

/// Each round writes tables while a compactor runs that is killed; the last compactor completes the work.
async fn kill_compactors(name: &str, store: &Arc<dyn ObjectStore>) {
    let db = open(&policies(DESIGN), store, settings()).await;
    for round in 0..4_u64 {
        let mut compactor = Process::start("compactor", name);
        compactor.wait_for("compacting");
        for table in 0..3_u64 {
            for index in 0..300_u64 {
                let key = (index * 12 + round * 3 + table) * 1000;
                db.put(key.to_be_bytes(), format!("round {round}")).await.expect("it can be written");
            }
            flush(&db).await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(30 * round)).await;
        compactor.kill();
    }
    let mut compactor = Process::start("compactor", name);
    compactor.wait_for("compacting");
    wait_for_compaction(&db).await;
    assert_complete(&db, store, name).await;
    db.close().await.expect("it can be closed");
}

async fn assert_complete(db: &Db, store: &Arc<dyn ObjectStore>, name: &str) {
    let policies = policies(DESIGN);
    let (reader, recorder) = open_reader(Some(&policies), store).await;
    let entries = collect(reader.scan::<std::ops::RangeFull>(..).await.expect("a scan")).await;
    assert_eq!(entries.len(), 3_600, "{name}");
    for (number, entry) in (0_u64..).zip(&entries) {
        assert_eq!(*entry.key, (number * 1000).to_be_bytes(), "{name}");
        assert_eq!(*entry.value, *format!("round {}", number % 12 / 3).as_bytes(), "{name}: {number}");
    }
    assert_eq!(collect(db.scan::<std::ops::RangeFull>(..).await.expect("a scan")).await, entries, "{name}");
    for number in 0..1_000_u64 {
        let range = (number * 1000 + 300).to_be_bytes()..=(number * 1000 + 310).to_be_bytes();
        assert!(collect(reader.scan(range).await.expect("a scan")).await.is_empty());
    }
    let counts = FilterMetrics::read(&recorder).ranges;
    assert!(
        counts.negatives > 800 && counts.positives < 400,
        "{name}: compacted tables have filters: {counts:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_compactors_lose_nothing() {
    let (_folder, stores) = stores("killed-compactors");
    for (name, store) in stores {
        kill_compactors(&name, &store).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_readers_disturb_no_one() {
    let (_folder, stores) = stores("killed-readers");
    for (name, store) in stores {
        let db = open(&policies(DESIGN), &store, settings()).await;
        fill_tables(&db, 4, 100).await;
        for round in 0..3_u64 {
            let mut reader = Process::start("reader", &name);
            reader.wait_for("reading");
            reader.wait_for("read");
            db.put((round + 1_000_000).to_be_bytes(), b"while a reader runs")
                .await
                .expect("it can be written");
            reader.kill();
            flush(&db).await;
        }
        let (reader, _) = open_reader(Some(&policies(DESIGN)), &store).await;
        assert_eq!(
            collect(reader.scan::<std::ops::RangeFull>(..).await.expect("a scan")).await.len(),
            403,
            "{name}"
        );
        db.close().await.expect("it can be closed");
    }
}
