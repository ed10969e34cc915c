//! The native module of the npm package `tamis-level`. The JavaScript files of the package are the interface of abstract-level over it.
//!
//! Rules of this crate: JavaScript and Rust exchange packed byte strings ([`packed`]), never objects of entries; work that may wait for
//! the disk or for a lock runs on the thread pool of libuv ([`work`]) and reads no JavaScript memory; a panic becomes an error.
//!
//! Public items are those that the macro `napi` exports, with their types.

mod entries;
pub mod error;
mod options;
mod packed;
mod range;
pub mod scan;
pub mod snapshot;
pub mod store;
pub mod work;
