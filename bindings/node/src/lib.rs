//! The native module of the npm package `tamis-level`. The JavaScript files of the package are the interface of abstract-level over it.
//!
//! Rules of this crate: JavaScript and Rust exchange packed byte strings ([`packed`]), never objects of entries; work that may wait for
//! the disk or for a lock runs on the thread pool of libuv ([`work`]) and reads no JavaScript memory; a panic becomes an error.

mod entries;
mod error;
mod options;
mod packed;
mod range;
#[expect(unreachable_pub, reason = "the macro exports `pub` functions only")]
mod scan;
#[expect(unreachable_pub, reason = "the macro exports `pub` functions only")]
mod snapshot;
#[expect(unreachable_pub, reason = "the macro exports `pub` functions only")]
mod store;
mod work;
