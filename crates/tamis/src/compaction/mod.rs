//! Flushes and compactions: what to do, and doing it.
