//! Sets the soname of the shared library with the ABI version: `libtamis.so.1`.

use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/version.rs");
    // The version is defined once, in the source of `tamis_abi_version`.
    let source = fs::read_to_string("src/version.rs").expect("the source file exists");
    let number = source.split("TAMIS_ABI_VERSION: u32 = ").nth(1).and_then(|rest| rest.split(';').next());
    let number = number.expect("src/version.rs defines TAMIS_ABI_VERSION");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtamis.so.{number}");
    }
}
