//! Nothing: the checks are in `tests/tidy.rs`.
