//! Cost models of packet processing, fitted with honest intervals.
#![forbid(unsafe_code)]
