//! What each fuzz target does with its bytes, one function per target.
//!
//! Used twice: by the cargo-fuzz targets beside it, for as long as somebody lets them run, and by
//! `xtask/tests/fuzz.rs`, a short seeded run in the ordinary tests. A body panics when a promise is
//! broken.

mod openflow;
mod pcap;
mod rules;
mod spec;
mod trace;
mod wire;

pub use openflow::openflow;
pub use pcap::pcap;
pub use rules::rules;
pub use spec::{ns, spec};
pub use trace::trace;
pub use wire::wire;
