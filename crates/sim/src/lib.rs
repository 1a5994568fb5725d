//! Discrete events in virtual time, and the machines built of them.
#![forbid(unsafe_code)]
