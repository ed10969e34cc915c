#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::{IngestedTable, LoggedEvent};

#[test]
fn events_survive_their_encoding() {
    let events = [
        LoggedEvent::KeyspaceCreated { keyspace: 7, name: "names".to_owned() },
        LoggedEvent::Ingested { keyspace: 300, tables: vec![IngestedTable { table: 1 << 40, copy: 0 }] },
        LoggedEvent::KeyspaceDropped { keyspace: 7, name: "names".to_owned() },
    ];
    let mut batch = LoggedEvent::batch(&events).unwrap();
    batch.assign_sequences(5);
    let found: Vec<_> =
        batch.entries().map(|entry| (entry.sequence, LoggedEvent::of(&entry).unwrap())).collect();
    assert_eq!(found, (5..).zip(events).collect::<Vec<_>>());
}
