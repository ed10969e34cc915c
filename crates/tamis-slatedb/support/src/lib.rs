//! Object stores for the tests and the example of `tamis-slatedb`: an S3 server on loopback, stores by address, and a
//! store that counts requests and adds latency.

#![forbid(unsafe_code)]

mod address;
mod counting;
mod s3_server;

pub use address::{Address, AddressError, Credentials};
pub use counting::{CountingStore, RequestCounts};
pub use s3_server::{S3Server, serve_s3};
