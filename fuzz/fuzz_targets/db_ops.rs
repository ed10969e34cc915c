//! `tamis_fuzz::db_ops` on inputs that libFuzzer finds.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::db_ops(data));
