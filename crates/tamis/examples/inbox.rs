//! An inbox: messages of many users, read page by page, newest first.
//!
//! Keys are `user | 0x00 | time (u64, big-endian)`. A page is a backward scan that starts below the last key of the page before,
//! so pages stay correct while new messages arrive.
//!
//! Run it: `cargo run --release -p tamis --example inbox`

use std::{error::Error, ops::Bound};

use tamis::{Db, Slice};

const PAGE: usize = 20;

fn key(user: &str, time: u64) -> Vec<u8> {
    [user.as_bytes(), &[0], &time.to_be_bytes()].concat()
}

/// The next page before `before` (the newest page for `None`), newest message first.
fn page(db: &Db, user: &str, before: Option<&Slice>) -> tamis::Result<Vec<(Slice, Slice)>> {
    let upper = match before {
        Some(key) => Bound::Excluded(key.to_vec()),
        None => Bound::Included(key(user, u64::MAX)),
    };
    db.range((Bound::Included(key(user, 0)), upper)).rev().take(PAGE).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path())?;
    for time in 0..1_000_u64 {
        let user = match time % 3 {
            0 => "ada",
            1 => "bob",
            _ => "eve",
        };
        db.put(key(user, time), format!("message {time} for {user}"))?;
    }

    let mut last = None;
    let mut count = 0;
    for number in 1.. {
        let messages = page(&db, "bob", last.as_ref())?;
        let (Some((_, newest)), Some((oldest, _))) = (messages.first(), messages.last()) else { break };
        println!("page {number}: {} messages, newest: {}", messages.len(), String::from_utf8_lossy(newest));
        count += messages.len();
        last = Some(oldest.clone());
        // A message that arrives between two pages is on no later page.
        db.put(key("bob", 10_000 + number), "a late message")?;
    }
    assert_eq!(count, 333, "every message of bob at the time of its page, once");

    // The number of messages now. Counting needs no values.
    let waiting = db.prefix([b"bob".as_slice(), &[0]].concat()).count();
    println!("{waiting} messages in the inbox");
    assert!(waiting > count);
    // An inbox that does not exist costs no block read: filters reject the range.
    assert!(page(&db, "mallory", None)?.is_empty());
    Ok(())
}
