//! Backups in a bucket of an S3 server. A process is killed while it makes them, again and again: every listed backup restores exactly the
//! state of its sequence number.
//!
//! The credentials of a target come from environment variables. So the test starts the server, and itself as a process with these variables;
//! that process starts itself as the process that is killed. Entry n is the n-th write: the sequence number says which entries a backup has.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tamis::{Db, KeyspaceOptions, OpenMode, Options};
use tamis_backup::{
    BackupOptions, Error, Keep, LeaseTimes, NoProgress, Progress, RestoreOptions, Source, Target, backup,
    prune, restore, verify,
};
use tamis_s3_server::{Credentials, S3Server};
use tamis_workload::SplitMix64;

/// Names the folder to the processes.
const FOLDER_VARIABLE: &str = "TAMIS_TEST_S3_FOLDER";
const ROUND_COUNT: u64 = 50;

/// Starts an S3 server with an empty bucket; returns its endpoint.
fn start_server(root: &Path) -> String {
    std::fs::create_dir_all(root.join("bucket")).unwrap();
    let (root, (sender, receiver)) = (root.to_owned(), mpsc::channel());
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let credentials = Credentials { access_key: "tamis".to_owned(), secret_key: "secret".to_owned() };
            let server = S3Server::bind(&root, &credentials).await.unwrap();
            sender.send(server.address().unwrap()).unwrap();
            server.serve().await.unwrap();
        });
    });
    format!("http://{}", receiver.recv().unwrap())
}

/// This program with the role of another test.
fn role(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(FOLDER_VARIABLE, folder);
    command
}

fn with_credentials(mut command: Command, endpoint: &str, secret: &str) -> Command {
    command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "us-east-1");
    command.env("AWS_ACCESS_KEY_ID", "tamis").env("AWS_SECRET_ACCESS_KEY", secret);
    command
}

fn target() -> Target {
    Target::open("s3://bucket/backups/of the store").unwrap().with_lease_times(LeaseTimes {
        beat: Duration::from_millis(50),
        expiry: Duration::from_millis(2_000),
        patience: Duration::from_millis(4_000),
    })
}

fn open(folder: &Path) -> Db {
    let keyspace = KeyspaceOptions::default().memtable_bytes(64 << 10).table_bytes(64 << 10);
    let options = Options::default().cache_bytes(8 << 20).workers(1).default_keyspace(keyspace);
    Db::open_with(folder.join("store"), options).unwrap()
}

fn value(number: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(number);
    let length = 100 + random.below(2_000) as usize;
    [&number.to_be_bytes()[..], &vec![random.next_u64() as u8; length]].concat()
}

/// The newest write of each key up to a sequence number.
fn check(folder: &Path, sequence: u64) {
    let db = Db::open_with(folder, Options::default().mode(OpenMode::Reader)).unwrap();
    let entries: Vec<_> = db.iter().map(|entry| entry.unwrap()).collect();
    assert_eq!(entries.len() as u64, sequence.min(1_000), "at sequence number {sequence}");
    for (key, found) in entries {
        let key: u64 = String::from_utf8_lossy(&key).parse().unwrap();
        let number = sequence - (sequence + 1_000 - key) % 1_000;
        assert!(*found == *value(number), "key {key} at sequence number {sequence}");
    }
    drop(db);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn each_backup_of_a_killed_process_restores_exactly_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = start_server(&folder.path().join("server"));
    let driver = with_credentials(role("driver", folder.path()), &endpoint, "secret").status().unwrap();
    assert!(driver.success());
}

/// Starts the process that is killed, and checks its backups.
#[test]
fn driver() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else { return };
    let folder = Path::new(&folder);
    let mut random = SplitMix64::new(56);
    let mut listed = 0;
    for round in 0..ROUND_COUNT {
        let mut child = role("killed", folder).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..random.below(60) {
            assert!(lines.by_ref().any(|line| line.unwrap() == "progress"), "round {round}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 25 == 24 {
            let backups = target().backups().unwrap();
            assert!(backups.damaged.is_empty());
            for backup in &backups.intact {
                let mut options = RestoreOptions::default();
                options.to = Some(backup.id());
                restore(&target(), folder.join("restored"), &options).unwrap();
                check(&folder.join("restored"), backup.sequence);
                listed += 1;
            }
        }
    }
    assert!(listed > 8, "{listed} backups were complete");
    let last = backup(Source::Db(&open(folder)), &target(), &BackupOptions::default()).unwrap().backup;
    restore(&target(), folder.join("restored"), &RestoreOptions::default()).unwrap();
    check(&folder.join("restored"), last.sequence);
    prune(&target(), Keep::Count(1), &NoProgress).unwrap();
    let report = verify(&target(), &NoProgress).unwrap();
    assert!(report.faults.is_empty() && report.unused_object_count == 0, "{report:?}");
}

/// Writes a line for each part.
#[derive(Debug)]
struct Lines;

impl Progress for Lines {
    fn is_cancelled(&self) -> bool {
        let mut output = io::stdout().lock();
        // An error: the parent no longer reads.
        output.write_all(b"\nprogress\n").and_then(|()| output.flush()).is_err()
    }
}

/// The process that is killed.
#[test]
fn killed() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else { return };
    let db = open(Path::new(&folder));
    for round in 0.. {
        let start = db.snapshot().sequence();
        for number in start + 1..=start + 50 {
            db.put(format!("{:06}", number % 1_000), value(number)).unwrap();
        }
        if round % 3 == 2 {
            db.flush().unwrap();
        }
        let mut options = BackupOptions::default();
        options.log = round % 2 == 1;
        options.progress = Arc::new(Lines);
        match backup(Source::Db(&db), &target(), &options) {
            Ok(_) => {}
            Err(Error::Cancelled) => return,
            Err(error) => panic!("{error}"),
        }
        if round % 5 == 4 {
            prune(&target(), Keep::Count(10), &Lines).unwrap();
        }
    }
}

#[test]
fn refused_requests_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = start_server(&folder.path().join("server"));
    let run = |mut command: Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let message = run(with_credentials(role("refused", folder.path()), &endpoint, "wrong"));
    assert!(message.contains("check the credentials"), "{message}");
    std::fs::remove_dir(folder.path().join("server/bucket")).unwrap();
    let message = run(with_credentials(role("refused", folder.path()), &endpoint, "secret"));
    assert!(message.contains("check that the folder or bucket exists"), "{message}");
    let mut without = role("refused", folder.path());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
        without.env_remove(name);
    }
    let message = run(without);
    assert!(message.contains("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"), "{message}");
}

/// Prints the error of a backup.
#[test]
fn refused() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else { return };
    let made = Target::open("s3://bucket/path")
        .and_then(|target| backup(Source::Db(&open(Path::new(&folder))), &target, &BackupOptions::default()));
    println!("{}", made.unwrap_err());
}
