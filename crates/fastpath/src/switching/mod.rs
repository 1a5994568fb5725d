//! OpenFlow switches: rule files, captures and frames through tables offline, a switch between real
//! ports, and the structures made from tables.

mod executor;
mod explain;
mod frames;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod nodes;
#[cfg(target_os = "linux")]
pub mod ofctl;
mod offline;
#[cfg(target_os = "linux")]
mod ovsdb;
mod ports;
#[cfg(target_os = "linux")]
mod server;

pub use executor::{compiled, executor, executor_for};
pub use explain::{Explanation, explain};
pub use frames::{FrameFate, FrameSwitch};
#[cfg(target_os = "linux")]
pub use nodes::attach_controllers;
pub use offline::{
    CaptureAtPort, NamedCapture, OfflineAccounting, OfflineCaptures, OfflineSummary, TableCounters,
    switch_captures,
};
#[cfg(target_os = "linux")]
pub use ovsdb::{OvsdbOptions, OvsdbSwitches, ParseRemoteError, Remote};
pub use ports::{load_rules, number_ports};
#[cfg(target_os = "linux")]
pub use server::{
    FailMode, FrameSplit, Listen, NamedPort, ServedSummary, ServerOptions, SwitchServer, Target, TlsFiles,
    Versions, parse_datapath_id,
};
