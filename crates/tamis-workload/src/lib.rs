//! Seeded generators of keys, queries and operations, and their files.
//!
//! Everything here is a pure function of its seed: the same call returns the same bytes on every machine. Exceptions
//! are values that use the system's `ln`, `exp`, `cos` or `powf` ([`KeySet::Normal`] and [`KeySet::Zipf`],
//! [`TextSet`], [`Events`], Zipfian choices): another C library may draw a few others. The crate imports nothing of
//! Tamis, so that tests, benches, the command line and comparisons with other stores all use the same input.
//!
//! - [`SplitMix64`]: the random number generator of all others.
//! - [`KeySet`]: sets of distinct 64-bit keys: uniform, normal, gaps, Zipfian gaps.
//! - [`TextSet`]: domain names and host-reversed e-mail addresses.
//! - [`Events`]: the time series of the SuRF paper, keyed by timestamp and sensor.
//! - [`QuerySet`], [`non_empty_ranges`]: ranges without keys (uniform, correlated, split, prefixes), mixes with a
//!   share of empty ranges, and ranges with keys. [`TextQuerySet`], [`non_empty_text_ranges`]: the same for text;
//!   [`EventQuerySet`], [`non_empty_event_ranges`]: for events.
//! - [`Zipfian`], [`ScrambledZipfian`], [`Latest`], [`ZipfianComposite`]: skewed choices, as YCSB draws them.
//! - [`Permutation`]: dense numbers in random order.
//! - [`operations`]: YCSB's workloads, the classic micro benchmarks, closed ranges, mixes that shift.
//! - [`Calibration`]: the searches whose time is the calibration unit.
//! - [`history`]: histories of transactions, and the check of their isolation.
//! - [`file`](mod@file): binary files of 64-bit values, with errors that name the offset.
//!
//! ```
//! use tamis_workload::KeySet;
//! let keys = KeySet::Gaps.generate(3, 42);
//! assert_eq!(keys, [1_000_000_000_000, 1_000_000_001_686, 1_000_000_001_946]);
//! ```

mod calibration;
mod events;
pub mod file;
pub mod history;
mod keys;
pub mod operations;
mod permutation;
mod prng;
mod queries;
mod strings;
mod text_queries;
mod zipf;

pub use calibration::Calibration;
pub use events::{
    Event, EventQuerySet, EventRange, Events, SENSOR_COUNT, fill_value, non_empty_event_ranges,
};
pub use file::FileError;
pub use keys::{KeySet, PUBLIC_KEY_SEED};
pub use operations::{KeyForm, Operation, OperationKind, Workload};
pub use permutation::Permutation;
pub use prng::{SplitMix64, mix64};
pub use queries::{
    NON_EMPTY_SEED, NoEmptyRange, QUERY_SEED, QuerySet, Range, RangeMax, SAMPLE_SEED, non_empty_ranges,
};
pub use strings::{TextDraws, TextSet};
pub use text_queries::{
    TextQuerySet, TextRange, absent_texts, empty_prefixes, empty_text_ranges, non_empty_text_ranges,
};
pub use zipf::{Latest, ScrambledZipfian, Zipfian, ZipfianComposite, fnv_hash};
