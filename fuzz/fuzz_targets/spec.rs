//! See `fastpath_fuzz::spec`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fastpath_fuzz::spec(data));
