//! Point and range filters over sorted byte keys.
//!
//! Builders turn sorted keys into bytes; readers answer queries from those bytes. This crate does no I/O, reads no
//! clock, starts no thread, does not depend on the engine, and can be used alone.
//!
//! **Guarantee.** `false` means certainly absent. A filter without information returns `true`, and so does a reader
//! that meets a reference outside its bytes: damage costs speed, and never hides a key.
//!
//! **One digest.** A query hashes its key once ([`Probe`]) for any number of filters; a [`RangeProbe`] caches the
//! digests of prefixes likewise. All filters of a database share one seed ([`Digester`]); a filter with another seed
//! gets the right answer at the cost of an extra digest.
//!
//! Measured rates and sizes: `results/`, written by the programs in `examples/`.
//!
//! ```
//! use tamis_filter::{AnyFilter, Budget, Digester, Family, Filter, FilterSpec, Probe, Samples};
//!
//! let mut builder = FilterSpec::new(Family::BlockedBloom).builder(42)?;
//! for key in ["apple", "pear", "plum"] {
//!     builder.add(key.as_bytes())?;
//! }
//! let bytes = builder.finish(Budget::bits_per_key(10.0)?, Samples::NONE)?;
//!
//! let filter = AnyFilter::open(bytes)?;
//! let digester = Digester::new(42);
//! assert!(filter.may_contain(&Probe::new(b"pear", &digester)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod auto;
mod bit_string;
pub mod bloom;
mod bounds;
mod builder;
mod empty_query;
pub mod envelope;
mod error;
mod family;
mod filter;
mod fixed_keys;
pub mod grafite;
mod hash;
mod key_range;
mod key_set;
mod parameters;
mod prefix_counts;
mod probe;
pub mod proteus;
mod registry;
pub mod rosetta;
mod spec;
mod steps;
pub mod surf;
pub mod trie;

pub use builder::{Budget, FilterBuilder, Samples};
pub use error::{BuildError, DecodeError};
pub use family::Family;
pub use filter::{Candidate, Direction, Filter};
pub use hash::{DIGEST_NAME, Digester, mix64};
pub use key_range::{KeyRange, Upper};
pub use key_set::KeySet;
pub use probe::{Probe, RangeProbe};
pub use registry::AnyFilter;
pub use spec::FilterSpec;
pub use tamis_bits::AlignedBytes;
