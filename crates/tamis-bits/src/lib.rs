//! Bit vectors, rank, select, packed integers and vector kernels of Tamis.
//!
//! Everything here works in place over borrowed bytes: constructors check lengths once, and reads outside return zeros
//! or `None`. Formats are little-endian; only keys are read big-endian ([`key_head()`]), so that the order of the
//! integers is the order of the keys.

mod aligned;
mod ascending;
pub mod bitmap;
mod bits;
pub mod elias_fano;
pub mod kernel;
mod key_head;
pub mod line;
mod mix64;
mod owned_slice;
pub mod packed;
mod prefetch;
pub mod rank;
pub mod scatter_bits;

pub use aligned::AlignedBytes;
pub use ascending::Ascending;
pub use bitmap::{Bitmap, BitmapShape};
pub use bits::{BitBuilder, Bits};
pub use elias_fano::{EliasFano, EliasFanoShape, MarkedEliasFano};
pub use key_head::{common_prefix_length, key_head, long_key_head};
pub use mix64::mix64;
pub use owned_slice::OwnedSlice;
pub use packed::PackedInts;
pub use prefetch::{CACHE_LINE, prefetch};
pub use rank::{RankBits, RankShape, Select};
