//! Counters of the database.
