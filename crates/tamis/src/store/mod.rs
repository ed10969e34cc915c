//! The parts that open and own a store: the folder and its state, the keyspaces, the log, and the parts that share them.

pub(crate) mod background_error;
pub(crate) mod changed_keyspaces;
pub(crate) mod commit_log;
pub(crate) mod context;
pub(crate) mod engine;
pub(crate) mod flush_slot;
pub(crate) mod follower;
pub(crate) mod guarded;
pub(crate) mod keyspace_state;
pub(crate) mod memory_budget;
pub(crate) mod open_report;
pub(crate) mod orphans;
pub(crate) mod parts;
pub(crate) mod readers;
pub(crate) mod recover;
pub(crate) mod runtime;
pub(crate) mod store_folder;
pub(crate) mod version_installer;
