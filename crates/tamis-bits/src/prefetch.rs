//! A hint to the processor that bytes will be read soon.

/// Asks for the cache line that holds `bytes[offset]`; nothing happens where the offset lies outside. Never changes a result.
#[inline]
pub fn prefetch(bytes: &[u8], offset: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(byte) = bytes.get(offset) {
        // SAFETY: the address is that of a live reference, and a prefetch neither reads nor writes memory as the
        // language sees it. SSE, which the instruction belongs to, is part of every x86-64 target.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                core::ptr::from_ref(byte).cast(),
            );
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (bytes, offset);
}

#[cfg(test)]
mod tests;
