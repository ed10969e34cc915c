//! `tamis_fuzz::table` on inputs that libFuzzer finds.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::table(data));
