//! The C interface: `libtamis.a`, `libtamis.so` and `include/tamis.h`, which cbindgen writes from this crate.
//!
//! 1. Every function that can fail returns a [`Code`] and, where the caller wants it, a message that the caller frees.
//! 2. No panic leaves a function: [`boundary::call`] turns it into [`Code::Panic`].
//! 3. Every handle holds the parts of the database that it needs, so that handles can be freed in any order and on any thread.
//! 4. Pointers are checked for null and lengths for what a slice can have; that they are valid is the caller's promise, which the
//!    head of the header states. All `unsafe` of this crate is in [`boundary`].

pub mod batch;
mod boundary;
pub mod database;
pub mod filter;
pub mod keyspace;
pub mod multi_get;
pub mod options;
pub mod scan;
pub mod snapshot;
pub mod table_writer;
pub mod value;
pub mod version;

pub use tamis_bindings_common::Code;

#[cfg(test)]
mod tests;
