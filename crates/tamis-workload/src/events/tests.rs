//! Order, distinctness and rate of the events, the bytes of a key, and queries with and without events.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::{Event, EventQuerySet, EventRange, Events, SENSOR_COUNT, fill_value, non_empty_event_ranges};

#[test]
fn keys_are_ascending_and_distinct() {
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
}

#[test]
fn equal_seeds_give_equal_events() {
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

#[test]
fn queries_contain_events_as_specified() {
    let events: Vec<Event> = Events::new(42).take(5000).collect();
    let timestamps: Vec<u64> = events.iter().map(|event| event.timestamp).collect();
    let first = *events.first().unwrap();
    // As byte keys, like in a store.
    let holds = |(lower, upper): &EventRange| {
        assert!(lower.key() <= upper.key());
        events.iter().any(|event| lower.key() <= event.key() && event.key() <= upper.key())
    };
    for set in EventQuerySet::all().chain(["prefix_b52".parse().unwrap()]) {
        assert_eq!(set.to_string().parse(), Ok(set));
        let ranges = set.generate(&timestamps, 100, 43).unwrap();
        assert!(ranges.len() == 100 && !ranges.iter().any(holds), "{set}");
        assert_eq!(ranges, set.generate(&timestamps, 100, 43).unwrap());
        assert_ne!(ranges, set.generate(&timestamps, 100, 44).unwrap());
        let is_point = set == EventQuerySet::Points;
        assert!(ranges.iter().all(|(lower, upper)| (lower == upper) == is_point), "{set}");
        assert!(ranges.iter().all(|(lower, _)| lower.timestamp + 4096 > first.timestamp), "{set}");
    }
    for percent in [0, 10, 50, 100] {
        let set: EventQuerySet = format!("mixed_r1m_e{percent}").parse().unwrap();
        let ranges = set.generate(&timestamps, 300, 43).unwrap();
        assert_eq!(ranges.iter().filter(|range| !holds(range)).count(), 3 * percent);
    }
    let ranges = non_empty_event_ranges(&timestamps, 200, 45);
    assert!(ranges.len() == 200 && ranges.iter().all(holds));
    assert!("mixed_e50".parse::<EventQuerySet>().unwrap_err().contains("mixed_R_eN"));
    assert!(EventQuerySet::Points.generate(&[], 1, 1).is_err());
}
