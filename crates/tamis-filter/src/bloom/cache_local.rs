//! Cache-local Bloom filters: family 1 of `docs/format/filter.md`.

mod builder;
mod reader;

pub use builder::CacheLocalBuilder;
pub use reader::CacheLocalFilter;

#[cfg(test)]
mod tests;
