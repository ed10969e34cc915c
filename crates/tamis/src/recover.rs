//! From a folder to a database: manifest, then log.
