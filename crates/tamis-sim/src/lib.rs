//! Deterministic simulation of the whole store: one process, one seed, one history. See the README.

pub mod check;
pub mod client;
pub mod coverage;
mod describe;
pub mod generate;
pub mod history;
pub mod keys;
mod maintenance;
pub mod model;
pub mod operator;
pub mod ops;
pub mod scan_check;
pub mod schedule;
pub mod settings;
pub mod shrink;
pub mod store;
pub mod world;
