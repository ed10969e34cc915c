//! `tamis_fuzz::index` on inputs that libFuzzer finds.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::index(data));
