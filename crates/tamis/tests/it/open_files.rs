//! A process with a low limit of open files.
//!
//! The test starts itself with a limit of 64 descriptors.

use std::process::Command;

use tamis::{Access, Db, Durability, KeyspaceOptions, Options};

use crate::support::{SplitMix64, is_complete, small_keyspace};

/// Names the store's folder to the process with the limit.
const FOLDER_VARIABLE: &str = "TAMIS_TEST_OPEN_FILES_FOLDER";

/// The open table and filter files, and the rest: log, manifest, lock, files that jobs write, and those of the test itself.
const OPEN_FILES_MAX: u64 = 16;

fn read_and_write(access: Access, folder: &std::path::Path) -> tamis::Result<()> {
    let options =
        Options::default().table_access(access).cache_bytes(256 << 10).default_keyspace(small_keyspace());
    let mut random = SplitMix64::new(1);
    let db = Db::open_with(folder, options.clone())?;
    // Its memtable holds the oldest log segment: no segment can be removed.
    let idle = db.create_keyspace("idle", KeyspaceOptions::default())?;
    idle.put("key", "value")?;
    for number in 0..12_000_u64 {
        db.put(random.next_u64().to_be_bytes(), [number as u8; 600])?;
        if number % 4_000 == 2_000 {
            db.persist(Durability::Synced)?;
        }
    }
    db.flush()?;
    db.wait_for_compactions()?;
    let statistics = db.statistics();
    let table_count: usize = statistics
        .keyspaces
        .iter()
        .flat_map(|keyspace| &keyspace.levels)
        .map(|level| level.table_count)
        .sum();
    assert!(table_count > 80, "{table_count} tables");
    assert_eq!(statistics.open_files_max, OPEN_FILES_MAX);
    assert!(statistics.open_files <= OPEN_FILES_MAX);
    let mut random = SplitMix64::new(1);
    for number in 0..12_000_u64 {
        let value = db.get(random.next_u64().to_be_bytes())?;
        assert_eq!(value.as_deref(), Some([number as u8; 600].as_slice()));
    }
    // Scans hold their tables.
    let mut scans: Vec<_> = (0..8_u8).map(|byte| db.range([byte << 5]..)).collect();
    for _ in 0..100 {
        for scan in &mut scans {
            scan.next().expect("there are more entries")?;
        }
    }
    drop(scans);
    // Filters are then in separate files.
    db.rebuild_filters(&db.default_keyspace(), &["blocked-bloom@12".parse()?])?;
    assert_eq!(db.range(..).count(), 12_000);
    idle.put("more", "value")?;
    db.close()?;
    let db = Db::open_with(folder, options)?;
    assert_eq!(db.range(..).count(), 12_000);
    assert!(db.verify()?.faults.is_empty());
    Ok(())
}

/// The process with the limit; does nothing if the environment variable is not set.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else { return };
    let accesses = [Access::Buffered, Access::Direct];
    for access in accesses.into_iter().take(if is_complete() { 2 } else { 1 }) {
        let folder = std::path::Path::new(&folder).join(format!("{access:?}"));
        read_and_write(access, &folder).unwrap_or_else(|error| panic!("{access:?}: {error}"));
    }
}

/// With 64 descriptors, writes and reads failed after 28,600 puts of small tables.
#[test]
fn a_store_of_many_tables_needs_few_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .arg("-c")
        .arg("ulimit -n 64; exec \"$0\" open_files::child --exact --test-threads=1")
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER_VARIABLE, folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
