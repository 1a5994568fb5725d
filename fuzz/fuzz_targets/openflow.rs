//! See `fastpath_fuzz::openflow`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fastpath_fuzz::openflow(data));
