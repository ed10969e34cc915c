//! Which tables make up the database, and the manifest that says so.
