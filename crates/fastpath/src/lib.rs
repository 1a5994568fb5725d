//! The library behind the `fastpath` program: load a network, replay captures through it, run real
//! programs in it, switch by OpenFlow tables, measure, fit, simulate, sweep and evaluate.
//!
//! ```text
//!  file ─▶ load ─▶ Loaded ─┬─▶ Replay     captures through the network in virtual time
//!                          ├─▶ virtual_time   protocol stacks on hosts without a clock
//!                          └─▶ lab        real programs on hosts of this machine (Linux)
//!  rules ─▶ switching                     captures, or ports with controllers (Linux)
//!  machine + program + workload ─▶ simulate, sweep
//!  measure ─▶ records ─▶ model ─▶ report
//! ```
//!
//! Each of the crates below is usable alone; they are re-exported here under short names. This
//! crate adds what reads files and combines them. `examples/` has a runnable program of at most 40
//! lines for each operation.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod capacity;
#[cfg(target_os = "linux")]
pub mod capture;
pub mod dask;
mod error;
#[cfg(target_os = "linux")]
pub mod guest_run;
#[cfg(target_os = "linux")]
pub mod link_loads;
mod load;
mod log_file;
#[cfg(target_os = "linux")]
pub mod measurements;
pub mod models;
#[cfg(target_os = "linux")]
pub mod origin;
#[cfg(target_os = "linux")]
mod packets;
pub mod picture;
pub mod quic_sim;
#[cfg(target_os = "linux")]
mod recorder;
pub mod records;
pub mod replay;
#[cfg(target_os = "linux")]
pub mod shell;
pub mod simulate;
pub mod sweep;
pub mod switching;

pub use error::{Error, Result};
pub use load::{DEFAULT_SEED, Loaded, Reading, at, check, check_with, load, load_with, name_of};
#[cfg(target_os = "linux")]
pub use load::{apply_request, engine_options};
pub use log_file::LogFile;
#[cfg(target_os = "linux")]
pub use packets::PacketsRecorder;
#[cfg(target_os = "linux")]
pub use recorder::Recorder;
pub use replay::{Replay, ReplaySummary};

pub use fastpath_link as link;
pub use fastpath_model as model;
pub use fastpath_net as net;
pub use fastpath_ofctl as ofctl;
pub use fastpath_record as record;
pub use fastpath_report as report;
pub use fastpath_sim as sim;
pub use fastpath_sockets as virtual_time;
pub use fastpath_spec as spec;
pub use fastpath_switch as switch;
pub use fastpath_units as units;
pub use fastpath_wire as wire;

#[cfg(target_os = "linux")]
pub use fastpath_audit as audit;
#[cfg(target_os = "linux")]
pub use fastpath_engine as engine;
#[cfg(target_os = "linux")]
pub use fastpath_evaluate as evaluate;
#[cfg(target_os = "linux")]
pub use fastpath_guest as guest;
#[cfg(target_os = "linux")]
pub use fastpath_lab as lab;
#[cfg(target_os = "linux")]
pub use fastpath_measure as measure;

/// What most programs need: `use fastpath::prelude::*;`.
pub mod prelude {
    pub use crate::simulate::Simulation;
    pub use crate::{Error, Loaded, Replay, ReplaySummary, Result, load};
    pub use fastpath_net::Network;
    pub use fastpath_spec::Topology;
    pub use fastpath_units::{Bytes, Duration, Rate, Time};
}
