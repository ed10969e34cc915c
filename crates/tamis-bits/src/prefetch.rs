//! A hint to the processor that bytes will be read soon.

/// Asks for the cache line that holds `bytes[offset]`, wherever that lies. Never changes a result.
#[inline]
pub fn prefetch(bytes: &[u8], offset: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch neither reads nor writes memory as the language sees it, and does nothing where there is none. SSE, which the
    // instruction belongs to, is part of every x86-64 target.
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
