//! `tamis_fuzz::db_ops` with inputs of libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::db_ops(data));
