//! The filters of Tamis in [SlateDB](https://slatedb.io): fewer requests to the object store.
//!
//! SlateDB keeps its tables as objects. Every table that a filter rejects saves at least one request, which costs
//! milliseconds and money. SlateDB's own Bloom filter rejects absent keys; this policy also rejects ranges and prefixes
//! in which a table has no key.
//!
//! ```
//! use std::sync::Arc;
//! use slatedb::{Db, object_store::memory::InMemory};
//! use tamis_slatedb::{FilterPolicies, TamisPolicy};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let policies = FilterPolicies::new(TamisPolicy::auto(16.0)?);
//! let store = Arc::new(InMemory::new());
//! // The same call configures the builders of the writer, the readers, the compactor and its workers.
//! let db = policies.configure(Db::builder("events", store)).build().await?;
//! db.put(b"sensor-7/0001", b"21.5").await?;
//! let mut readings = db.scan_prefix(b"sensor-8/", ..).await?;
//! assert!(readings.next().await?.is_none());
//! db.close().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Guarantee.** A filter never changes an answer. It contains the keys of all entries of its table, tombstones and merge
//! operands included. Bytes that are damaged, or that this version does not know, become a filter that always passes;
//! [`Counters`] counts them, and the log has a warning.
//!
//! **Compatibility.** Filters describe themselves: a reader opens every family, size and seed, so all configurations of
//! this policy have one name ([`TamisPolicy::NAME`]), and filters that were built before a change of the configuration
//! stay in use. Only one policy of this name fits into a list; [`FilterPolicies::with`] returns an error for a second one.
//!
//! **Cost.** A builder holds the keys of its table in memory (the bytes of the keys, and 8 bytes each); a filter is built
//! when its table ends.

#![forbid(unsafe_code)]

mod check;
mod choice;
mod counters;
mod design;
mod error;
mod filter;
mod frame;
mod metrics;
mod policies;
mod policy;
mod range;
mod sample;
mod shared;
mod table_builder;

pub use check::{Contents, check_store};
pub use counters::{CounterValues, Counters};
pub use design::Design;
pub use error::{PolicyError, SampleError, StoreError};
pub use metrics::{FilterCounts, FilterMetrics};
pub use policies::{FilterPolicies, TakesFilterPolicies};
pub use policy::TamisPolicy;
pub use sample::QuerySample;
pub use tamis_filter::auto::Prices;
