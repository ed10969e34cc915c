//! Zstandard, the only part of the engine that needs a C compiler. Without the feature `zstd` every function refuses.

use std::path::Path;

use crate::error::{Error, Result};

/// Compresses `content` into `stored`; `file` is the table that is written.
#[cfg(feature = "zstd")]
pub(super) fn compress(content: &[u8], stored: &mut Vec<u8>, level: u8, file: &Path) -> Result<()> {
    stored.resize(zstd::zstd_safe::compress_bound(content.len()), 0);
    let length = zstd::bulk::compress_to_buffer(content, stored, level.into())
        .map_err(|error| Error::io("compress", file, error))?;
    stored.truncate(length);
    Ok(())
}

#[cfg(not(feature = "zstd"))]
pub(super) fn compress(_: &[u8], _: &mut Vec<u8>, _: u8, file: &Path) -> Result<()> {
    Err(Error::zstd_unavailable(file))
}

/// Decompresses `stored`, a block of `file`, into `content`. The inner result is the length of the content, or the fault of damaged bytes.
#[cfg(feature = "zstd")]
pub(super) fn decompress(stored: &[u8], content: &mut [u8], _: &Path) -> Result<Result<usize, String>> {
    Ok(zstd::bulk::decompress_to_buffer(stored, content).map_err(|error| error.to_string()))
}

#[cfg(not(feature = "zstd"))]
pub(super) fn decompress(_: &[u8], _: &mut [u8], file: &Path) -> Result<Result<usize, String>> {
    Err(Error::zstd_unavailable(file))
}

/// The length of the frame at the beginning of `bytes`.
#[cfg(feature = "zstd")]
pub(super) fn frame_length(bytes: &[u8]) -> Option<usize> {
    zstd::zstd_safe::find_frame_compressed_size(bytes).ok()
}

#[cfg(not(feature = "zstd"))]
pub(super) const fn frame_length(_: &[u8]) -> Option<usize> {
    None
}
