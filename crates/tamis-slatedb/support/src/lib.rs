//! Object stores for the tests and the example of `tamis-slatedb`: the S3 server of `tamis-s3-server`, stores by address, and a
//! store that counts requests and adds latency.

#![forbid(unsafe_code)]

mod address;
mod counting;

pub use address::{Address, AddressError};
pub use counting::{CountingStore, RequestCounts};
pub use tamis_s3_server::{Credentials, S3Server, serve_s3};
