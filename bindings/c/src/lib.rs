//! The C interface: `libtamis.a`, `libtamis.so` and `include/tamis.h`, which cbindgen writes from this crate.
//!
//! 1. Every function that can fail returns a [`Code`] and an optional message that the caller frees.
//! 2. No panic leaves a function: [`boundary::call`] converts it to [`Code::Panic`].
//! 3. Every handle owns references to the parts of the database that it needs, so handles can be freed in any order and on any thread.
//! 4. Pointers are checked for null and lengths for the maximum of a slice; the caller guarantees that they are valid, as the
//!    header requires. All `unsafe` code of this crate is in [`boundary`].

pub mod batch;
mod boundary;
pub mod changes;
pub mod database;
pub mod event;
pub mod filter;
pub mod keyspace;
pub mod multi_get;
pub mod options;
pub mod scan;
pub mod snapshot;
pub mod store_filters;
pub mod table_writer;
pub mod transaction;
pub mod value;
pub mod version;
pub mod write;

pub use tamis_bindings_common::Code;

#[cfg(test)]
mod tests;
