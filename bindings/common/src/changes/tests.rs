#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::mpsc;

use tamis::{Db, Error, Position};

use super::*;
use crate::Code;

#[test]
fn a_wait_ends_with_a_change_or_at_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    let mut changes = db.changes(Position::default()).unwrap();
    assert!(next_within(&mut changes, Some(Duration::ZERO)).unwrap().is_none());
    assert!(next_within(&mut changes, Some(Duration::from_millis(3))).unwrap().is_none());
    let (sender, received) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| sender.send(next_within(&mut changes, None)));
        db.put("apple", "red").unwrap();
        let change = received.recv().unwrap().unwrap().unwrap();
        assert_eq!(change.position(), Position::after(1));
    });
    db.put("apple", "green").unwrap();
    assert!(next_within(&mut changes, Some(Duration::MAX)).unwrap().is_some());
    db.close().unwrap();
    assert_eq!(next_within(&mut changes, None).unwrap_err().code, Code::Closed);
}

#[test]
fn a_feed_that_has_lost_changes_names_the_first_position() {
    let failure = Failure::from(Error::ChangesLost { first_available: 7 });
    assert_eq!((failure.code, failure.first_available), (Code::ChangesLost, Some(7)));
}
