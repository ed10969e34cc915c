//! Order, distinctness and rate of the events, and the bytes of a key.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::{Event, Events, SENSOR_COUNT, fill_value};

#[test]
fn keys_ascend_and_are_distinct() {
    let events: Vec<Event> = Events::new(42).take(200_000).collect();
    assert!(events.is_sorted_by(|left, right| left < right && left.key() < right.key()));
    assert!(events.iter().all(|event| event.sensor < SENSOR_COUNT));
}

#[test]
fn an_event_comes_every_hundred_microseconds() {
    let last = Events::new(42).nth(400_000).unwrap();
    let mean = last.timestamp as f64 / 400_000.0;
    assert!((99_000.0..101_000.0).contains(&mean), "mean distance {mean} ns");
}

#[test]
fn a_key_is_timestamp_then_sensor_in_big_endian() {
    let event = Event { timestamp: 0x0102_0304_0506_0708, sensor: 9 };
    assert_eq!(event.key(), [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9]);
    assert_eq!(Event::from_key(event.key()), event);
}

#[test]
fn the_same_seed_gives_the_same_events() {
    assert!(Events::new(1).take(1000).eq(Events::new(1).take(1000)));
    assert!(Events::new(1).take(1000).ne(Events::new(2).take(1000)));
    assert_eq!(Events::with_sensors(1, 0).next(), None);
}

#[test]
fn values_of_any_length_are_filled() {
    let (mut long, mut short) = ([0; 21], [0; 3]);
    fill_value(5, &mut long);
    fill_value(5, &mut short);
    assert_eq!(long[..3], short);
    assert!(long.iter().any(|&byte| byte != 0));
}
