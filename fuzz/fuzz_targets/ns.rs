//! See `fastpath_fuzz::ns`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fastpath_fuzz::ns(data));
