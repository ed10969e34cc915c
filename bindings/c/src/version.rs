//! The versions of the library and of its ABI.

use std::ffi::c_char;

/// The ABI version of this header. It is incremented if programs must be recompiled; new functions
/// do not change it.
pub const TAMIS_ABI_VERSION: u32 = 1;

/// Returns the version of the library, such as `0.1.0`, as a static text.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the ABI version of the library; compare it with TAMIS_ABI_VERSION of the header.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_abi_version() -> u32 {
    TAMIS_ABI_VERSION
}
