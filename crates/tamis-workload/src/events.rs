//! Sensor events: the time series of the SuRF paper's store experiments.
//!
//! 2,000 sensors each report as a Poisson process, once every 0.2 s on average, from a random moment within the first
//! 0.2 s. Over all sensors that is an event every 100,000 ns. A key is the 64-bit timestamp in nanoseconds followed by
//! the 64-bit sensor number, both big-endian, so that byte order is time order. Events are ascending and distinct. The
//! intervals use the system's `ln`: another C library may change a few timestamps by a nanosecond. Cost: one heap
//! operation per event.
//!
//! Queries are those of integers over the timestamps: from one moment to another, for all sensors ([`EventQuerySet`]).

use std::{cmp::Reverse, collections::BinaryHeap, fmt, str::FromStr};

use crate::{
    prng::{SplitMix64, mix64},
    queries::{NoEmptyRange, QuerySet, Range, RangeMax, Space, non_empty_ranges},
};

#[cfg(test)]
mod tests;

/// Number of sensors.
pub const SENSOR_COUNT: u64 = 2000;

/// Mean time between two events of one sensor, in nanoseconds.
const INTERVAL_MEAN: f64 = 2e8;

/// Longest uniform half of a split set, in nanoseconds: about the time between two events, as among gaps.
const SPLIT_LENGTH_MAX: u64 = 1 << 17;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event {
    /// Nanoseconds since the start.
    pub timestamp: u64,
    /// The sensor, from 0 on.
    pub sensor: u64,
}

impl Event {
    /// The 16 bytes of its key, whose order is the order of events.
    pub fn key(&self) -> [u8; 16] {
        (u128::from(self.timestamp) << 64 | u128::from(self.sensor)).to_be_bytes()
    }
}

/// A closed range of events: both bounds are included.
pub type EventRange = (Event, Event);

/// All events from one moment to another, both included.
fn span((first, last): Range) -> EventRange {
    (Event { timestamp: first, sensor: 0 }, Event { timestamp: last, sensor: u64::MAX })
}

/// A distribution of ranges of events; uniform ones begin between the first and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventQuerySet {
    /// A sensor at a moment without any event.
    Points,
    /// From one moment to another; lengths are in nanoseconds.
    Spans(QuerySet),
}

impl EventQuerySet {
    /// The sets without parameters, in the order in which they are listed to users.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Points].into_iter().chain(QuerySet::all().map(Self::Spans))
    }

    /// `count` ranges over events of these timestamps (ascending), in the order of drawing; only those of
    /// [`QuerySet::Mixed`] may contain an event.
    ///
    /// # Errors
    /// [`NoEmptyRange`] when there are no events, or they leave no room for such ranges.
    pub fn generate(
        self,
        timestamps: &[u64],
        count: usize,
        seed: u64,
    ) -> Result<Vec<EventRange>, NoEmptyRange> {
        let spans = |set: QuerySet| {
            set.generate_in(Space::Between { split_length_max: SPLIT_LENGTH_MAX }, timestamps, count, seed)
        };
        match self {
            Self::Points => {
                let mut random = SplitMix64::new(mix64(seed));
                let moments = spans(QuerySet::Uniform(RangeMax::Point))?.into_iter();
                let events =
                    moments.map(|(timestamp, _)| Event { timestamp, sensor: random.below(SENSOR_COUNT) });
                Ok(events.map(|event| (event, event)).collect())
            }
            Self::Spans(set) => Ok(spans(set)?.into_iter().map(span).collect()),
        }
    }
}

/// `count` ranges that each contain at least one event of these timestamps (ascending): every filter must return
/// `true`. See [`non_empty_ranges`].
pub fn non_empty_event_ranges(timestamps: &[u64], count: usize, seed: u64) -> Vec<EventRange> {
    non_empty_ranges(timestamps, count, seed).into_iter().map(span).collect()
}

impl fmt::Display for EventQuerySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Points => formatter.write_str("points"),
            Self::Spans(set) => fmt::Display::fmt(set, formatter),
        }
    }
}

impl FromStr for EventQuerySet {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "points" => Ok(Self::Points),
            name => name.parse().map(Self::Spans).map_err(|error| format!("{error}, points")),
        }
    }
}

/// All events in the order of their keys, without end.
///
/// ```
/// let events: Vec<_> = tamis_workload::Events::new(42).take(1000).collect();
/// assert!(events.is_sorted());
/// ```
#[derive(Debug, Clone)]
pub struct Events {
    random: SplitMix64,
    /// The next event of each sensor; the least is on top.
    next: BinaryHeap<Reverse<Event>>,
}

impl Events {
    /// The events of `seed` from [`SENSOR_COUNT`] sensors.
    pub fn new(seed: u64) -> Self {
        Self::with_sensors(seed, SENSOR_COUNT)
    }

    /// The events of `seed` from `sensor_count` sensors; none when there is no sensor.
    pub fn with_sensors(seed: u64, sensor_count: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let next = (0..sensor_count)
            .map(|sensor| Reverse(Event { timestamp: random.below(INTERVAL_MEAN as u64), sensor }))
            .collect();
        Self { random, next }
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let Reverse(event) = self.next.pop()?;
        let interval = -self.random.unit_above_zero().ln() * INTERVAL_MEAN;
        // At least one nanosecond, so that no sensor has two events with the same key.
        let timestamp = event.timestamp.saturating_add((interval as u64).max(1));
        self.next.push(Reverse(Event { timestamp, sensor: event.sensor }));
        Some(event)
    }
}

/// Fills `value` with bytes that do not compress and that depend on `seed` only.
pub fn fill_value(seed: u64, value: &mut [u8]) {
    let mut random = SplitMix64::new(seed);
    for chunk in value.chunks_mut(8) {
        chunk.copy_from_slice(random.next_u64().to_le_bytes().get(..chunk.len()).unwrap_or_default());
    }
}
