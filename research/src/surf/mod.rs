//! SuRF, and the trie as an index.

pub(crate) mod figures;
pub(crate) mod index;
pub(crate) mod reference;
