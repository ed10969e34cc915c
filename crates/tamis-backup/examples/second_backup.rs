//! Measures what a second backup uploads after one percent of the entries were updated.
//!
//! `cargo run --release -p tamis-backup --example second_backup -- 10000000 [FOLDER]`: 116 bytes an entry, updates at random keys, a flush before each
//! backup. Ends with an error if the second backup uploads more than the bytes of new tables and 1 MiB.

use std::{collections::BTreeSet, error::Error, path::PathBuf};

use tamis::{Clock as _, Db, Durability, SystemClock, WriteBatch};
use tamis_backup::{BackupOptions, NoProgress, RestoreOptions, Source, Target, backup, restore, verify};
use tamis_workload::SplitMix64;

/// Entries of a batch.
const BATCH: u64 = 1_000;

fn put(db: &Db, numbers: impl Iterator<Item = u64>, round: u64) -> Result<(), Box<dyn Error>> {
    let mut numbers = numbers.peekable();
    let mut random = SplitMix64::new(round);
    while numbers.peek().is_some() {
        let mut batch = WriteBatch::new();
        for number in numbers.by_ref().take(BATCH as usize) {
            let value: Vec<u8> = (0..13).flat_map(|_| random.next_u64().to_le_bytes()).take(100).collect();
            batch.put(&db.default_keyspace(), format!("{number:016}"), value)?;
        }
        db.write_with(batch, Durability::Buffered)?;
    }
    Ok(())
}

/// Number and bytes of each table.
fn tables(db: &Db) -> Result<BTreeSet<(u64, u64)>, tamis::Error> {
    let tables = db.tables(&db.default_keyspace())?;
    Ok(tables.iter().map(|table| (table.table_number, table.bytes)).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().unwrap_or_else(|| "100000".to_owned()).parse()?;
    let parent = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(parent)?;
    let db = Db::open(folder.path().join("store"))?;
    let target = Target::folder(folder.path().join("target"));
    let mut before = BTreeSet::new();
    for round in 0..2 {
        match round {
            0 => put(&db, 0..count, round)?,
            _ => {
                let mut random = SplitMix64::new(99);
                put(&db, (0..count / 100).map(|_| random.below(count)), round)?;
            }
        }
        db.flush()?;
        db.wait_for_compactions()?;
        let clock = SystemClock::default();
        let report = backup(Source::Db(&db), &target, &BackupOptions::default())?;
        let seconds = clock.now().as_secs_f64();
        let after = tables(&db)?;
        let new: u64 = after.difference(&before).map(|(_, bytes)| bytes).sum();
        println!(
            "backup {}: {} bytes uploaded in {seconds:.2} s, {new} bytes in new tables, {} bytes in the store",
            report.backup.number, report.uploaded_bytes, report.backup.store_bytes
        );
        if report.uploaded_bytes > new + (1 << 20) {
            return Err("more than the bytes of new tables and 1 MiB".into());
        }
        before = after;
    }
    let clock = SystemClock::default();
    let report = verify(&target, &NoProgress)?;
    println!(
        "verify: {} bytes in {:.2} s, {} faults",
        report.bytes,
        clock.now().as_secs_f64(),
        report.faults.len()
    );
    let clock = SystemClock::default();
    let restored = restore(&target, folder.path().join("restored"), &RestoreOptions::default())?;
    println!("restore: {} bytes in {:.2} s", restored.store_bytes, clock.now().as_secs_f64());
    Ok(())
}
