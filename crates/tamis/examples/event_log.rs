//! An event log: events by time, reads of time ranges, and retention by whole days.
//!
//! Keys are `day (u32) | milliseconds of the day (u32) | sequence (u32)`, big-endian, so that key order is time order. A day is a
//! prefix: deleting a day is one `delete_prefix`, for any number of events.
//!
//! Run it: `cargo run --release -p tamis --example event_log`

use std::error::Error;

use tamis::{Db, Durability, WriteBatch};

const DAYS: u32 = 7;
const EVENTS_PER_DAY: u32 = 20_000;
const DAY_MS: u32 = 86_400_000;

fn key(day: u32, ms: u32, sequence: u32) -> [u8; 12] {
    let mut key = [0; 12];
    for (target, part) in key.chunks_exact_mut(4).zip([day, ms, sequence]) {
        target.copy_from_slice(&part.to_be_bytes());
    }
    key
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path())?;

    // Write in batches; the last batch of a day survives a power failure.
    for day in 0..DAYS {
        let mut batch = WriteBatch::new();
        let events = db.default_keyspace();
        for event in 0..EVENTS_PER_DAY {
            let ms = event * (DAY_MS / EVENTS_PER_DAY);
            batch.put(&events, key(day, ms, event), format!("sensor {} reads {}", event % 50, event % 97))?;
            if batch.len() == 1_000 {
                db.write(std::mem::take(&mut batch))?;
            }
        }
        batch.put(&events, key(day, DAY_MS - 1, EVENTS_PER_DAY), "end of day")?;
        db.write_with(batch, Durability::Synced)?;
    }

    // A time range: one hour of day 3.
    let hour = 3_600_000;
    let (from, to) = (key(3, 12 * hour, 0), key(3, 13 * hour, 0));
    let count = db.range(from..to).count();
    println!("day 3, 12:00 to 13:00: {count} events");
    assert_eq!(count as u32, EVENTS_PER_DAY / 24 + 1);

    // The last ten events, newest first.
    let newest: Vec<_> = db.range(..).rev().take(10).collect::<Result<_, _>>()?;
    assert_eq!(newest.first().map(|(_, value)| value.to_vec()), Some(b"end of day".to_vec()));

    // Retention: keep three days. Each delete is one record in the log.
    for day in 0..DAYS - 3 {
        db.delete_prefix(day.to_be_bytes())?;
    }
    let left = db.range(..).count();
    println!("after retention: {left} events of {}", DAYS * (EVENTS_PER_DAY + 1));
    assert_eq!(left as u32, 3 * (EVENTS_PER_DAY + 1));
    let (first, _) = db.first()?.ok_or("the log is empty")?;
    assert_eq!(first.get(..4), Some((DAYS - 3).to_be_bytes().as_slice()));
    db.close()?;
    Ok(())
}
