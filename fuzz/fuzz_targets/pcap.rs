//! See `fastpath_fuzz::pcap`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fastpath_fuzz::pcap(data));
