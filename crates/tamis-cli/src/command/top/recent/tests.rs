//! Events as lines.

use super::*;

#[test]
fn the_last_events_are_kept_in_words() {
    let events = RecentEvents::default();
    for number in 0..20_u64 {
        events.on_event(&Event::Flushed { keyspace: "users".into(), bytes_expected: 1, bytes: number << 10 });
    }
    events.on_event(&Event::BackPressure { microseconds_per_mib: None });
    events.on_event(&Event::Compacted {
        keyspace: "\x1b[31m".into(),
        reason: CompactionReason::Garbage,
        level: 0,
        output_level: 3,
        bytes_expected: 9,
        bytes_read: 2048,
        bytes_written: 1024,
    });
    let lines = events.list();
    assert_eq!(lines.len(), EVENTS_MAX);
    let newest = "compacted L0 of \\u{1b}[31m into L3, which had deleted data: 2.0 KiB read, 1.0 KiB written";
    assert_eq!(lines.first().map(String::as_str), Some(newest));
    assert_eq!(lines.get(1).map(String::as_str), Some("flushed a memtable of users: 19.0 KiB"));
}
