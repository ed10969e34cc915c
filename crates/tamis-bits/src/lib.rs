//! Bit vectors, rank, select, packed integers and vector kernels of Tamis.
//!
//! Everything here works in place over borrowed bytes: a constructor checks lengths once, and what it gives out can be
//! indexed behind that check. Formats are little-endian; only keys are read big-endian ([`key_head`]), so that the order of
//! the integers is the order of the keys.

mod aligned;
mod key_head;
pub mod line;
mod prefetch;

pub use aligned::AlignedBytes;
pub use key_head::key_head;
pub use prefetch::prefetch;
