//! The write path: throttle, then group commit (assign sequence numbers, append to the log, insert into memtables, publish).

pub(crate) mod back_pressure;
pub(crate) mod commit;
mod group;
pub(crate) mod keyspace_admin;
mod request;
mod throttle;
