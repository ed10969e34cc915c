//! Helpers for tests: take results like a C caller.

use std::{
    ffi::{CString, c_char},
    mem::MaybeUninit,
};

/// A text, which is freed; `None` for null.
pub(crate) fn take_text(text: MaybeUninit<*mut c_char>) -> Option<String> {
    // SAFETY: the functions under test wrote it.
    let text = unsafe { text.assume_init() };
    // SAFETY: `own` created it.
    (!text.is_null()).then(|| unsafe { CString::from_raw(text) }.into_string().unwrap_or_default())
}

/// A handle; `None` for null.
pub(crate) fn take_box<T>(handle: MaybeUninit<*mut T>) -> Option<Box<T>> {
    // SAFETY: the functions under test wrote it.
    let handle = unsafe { handle.assume_init() };
    // SAFETY: `put_handle` created it.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}

/// A result in the memory of the caller.
pub(crate) fn written<T>(result: &mut MaybeUninit<T>) -> &mut T {
    // SAFETY: the functions under test wrote it.
    unsafe { result.assume_init_mut() }
}
