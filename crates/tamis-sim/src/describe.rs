//! Steps as text, for reports.

use std::fmt;

use crate::{
    model::short,
    ops::{Change, Move, Op, Part, Step},
    scan_check::bounds_text,
    store::name_of,
};

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.client {
            0 => write!(formatter, "world: {}", self.op),
            client => write!(formatter, "client {client}: {}", self.op),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put(key, value) => write!(formatter, "put {} of {} bytes", short(key), value.length),
            Self::PutUntil(key, value, time) => {
                write!(formatter, "put {} of {} bytes until {time} ms", short(key), value.length)
            }
            Self::Merge(key, number) => write!(formatter, "merge {number} into {}", short(key)),
            Self::Delete(key) => write!(formatter, "delete {}", short(key)),
            Self::DeleteRange(bounds) => write!(formatter, "delete range {}", bounds_text(bounds)),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(keyspace, key) => write!(formatter, "get {} in {}", short(key), name_of(*keyspace)),
            Self::Range(keyspace, bounds, is_backward, limit) => {
                let (name, bounds) = (name_of(*keyspace), bounds_text(bounds));
                write!(formatter, "range {bounds} of {name}, backward: {is_backward}, at most {limit}")
            }
            Self::Write(keyspace, change) => write!(formatter, "in {}: {change}", name_of(*keyspace)),
        }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Next(count) => write!(formatter, "{count} forward"),
            Self::Previous(count) => write!(formatter, "{count} backward"),
            Self::Seek(key) => write!(formatter, "seek {}", short(key)),
            Self::SeekForPrevious(key) => write!(formatter, "seek_for_prev {}", short(key)),
            Self::First => formatter.write_str("to the first"),
            Self::Last => formatter.write_str("to the last"),
        }
    }
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Op {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(keyspace, change) => write!(formatter, "in {}: {change}", name_of(*keyspace)),
            Self::Batch(changes, durability) => {
                let entry =
                    |(keyspace, change): &(u64, Change)| format!("in {}: {change}", name_of(*keyspace));
                write!(formatter, "batch, {durability:?}: {}", list(changes, entry))
            }
            Self::Transact(parts, way, durability) => {
                write!(formatter, "transaction, {way:?}, {durability:?}: {}", list(parts, Part::to_string))
            }
            Self::DeletePrefix(keyspace, prefix) => {
                write!(formatter, "in {}: delete prefix {}", name_of(*keyspace), short(prefix))
            }
            Self::Get(keyspace, key) => write!(formatter, "get {} in {}", short(key), name_of(*keyspace)),
            Self::MultiGet(keyspace, keys) => {
                write!(formatter, "multi_get in {}: {}", name_of(*keyspace), list(keys, |key| short(key)))
            }
            Self::Range(keyspace, bounds, direction, limit) => {
                let (name, bounds) = (name_of(*keyspace), bounds_text(bounds));
                write!(formatter, "range {bounds} of {name}, {direction:?}, at most {limit}")
            }
            Self::Prefix(keyspace, prefix) => {
                write!(formatter, "prefix {} of {}", short(prefix), name_of(*keyspace))
            }
            Self::MultiRange(keyspace, ranges) => {
                write!(formatter, "multi_range of {}: {}", name_of(*keyspace), list(ranges, bounds_text))
            }
            Self::Count(keyspace, bounds) => {
                write!(formatter, "count of {} in {}", bounds_text(bounds), name_of(*keyspace))
            }
            Self::OpenScan(slot, keyspace, bounds, on_snapshot) => {
                let (name, bounds) = (name_of(*keyspace), bounds_text(bounds));
                write!(formatter, "open scan {slot} of {name} in {bounds}, on a snapshot: {on_snapshot}")
            }
            Self::MoveScan(slot, moves) => {
                write!(formatter, "move scan {slot}: {}", list(moves, Move::to_string))
            }
            Self::SnapshotGet(slot, keyspace, key) => {
                write!(formatter, "get {} of {} in snapshot {slot}", short(key), name_of(*keyspace))
            }
            Self::SnapshotRange(slot, keyspace, bounds) => {
                write!(
                    formatter,
                    "range {} of {} in snapshot {slot}",
                    bounds_text(bounds),
                    name_of(*keyspace)
                )
            }
            Self::Compact(keyspace, bounds) => {
                write!(formatter, "compact {} of {}", bounds_text(bounds), name_of(*keyspace))
            }
            Self::Ingest(keyspace, changes) => {
                write!(formatter, "ingest into {}: {}", name_of(*keyspace), list(changes, Change::to_string))
            }
            // The others have no keys.
            other => write!(formatter, "{other:?}"),
        }
    }
}
