//! The database as programs see it.
