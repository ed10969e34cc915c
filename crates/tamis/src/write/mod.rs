//! The way of a write: back-pressure, then the commit pipeline (number, log, memtables, publish).

pub(crate) mod back_pressure;
pub(crate) mod commit;
mod group;
pub(crate) mod keyspaces;
mod request;

pub(crate) use group::GroupQueue;
pub(crate) use request::Request;
