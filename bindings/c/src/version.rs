//! The versions of the library and of its interface.

use std::ffi::c_char;

/// The number of the interface that this header describes. It is raised when a program must be compiled again; functions that are
/// added do not raise it.
pub const TAMIS_ABI_VERSION: u32 = 1;

/// The version of the library, such as `0.1.0`. The text lives as long as the library.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The number of the library's interface: compare it with TAMIS_ABI_VERSION, that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_abi_version() -> u32 {
    TAMIS_ABI_VERSION
}
