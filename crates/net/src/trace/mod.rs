//! Traces from elsewhere: text in, what a link takes out. One format, one file.

mod mahimahi;

pub use mahimahi::{TraceError, mahimahi};
