//! `tamis_fuzz::manifest` on inputs that libFuzzer finds.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::manifest(data));
