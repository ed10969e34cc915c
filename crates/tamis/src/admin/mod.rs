//! The parts that administer a store: checkpoints, ingested tables, checks, repair.

pub(crate) mod checkpoint;
pub(crate) mod ingest;
pub(crate) mod inspect;
pub(crate) mod link;
pub(crate) mod quarantine;
pub(crate) mod repair;
pub(crate) mod table_writer;
pub(crate) mod verify;
