//! Prefetch instructions.

/// Bytes of a cache line.
pub const CACHE_LINE: usize = 64;

/// Prefetches the cache line of `bytes[offset]`, which may be out of bounds. Never changes a result.
#[inline]
pub fn prefetch(bytes: &[u8], offset: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch neither reads nor writes memory in the sense of the language, and does nothing at an invalid
    // address. SSE, which provides the instruction, is part of every x86-64 target.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
            bytes.as_ptr().wrapping_add(offset).cast(),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (bytes, offset);
}

#[cfg(test)]
mod tests;
