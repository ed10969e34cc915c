//! Bit vectors, rank, select, packed integers and vector kernels of Tamis.

mod key_head;

pub use key_head::key_head;
