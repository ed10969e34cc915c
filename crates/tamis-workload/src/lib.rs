//! Seeded generators of keys, queries and operations.
