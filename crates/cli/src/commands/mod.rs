//! One command, one file.

pub(crate) mod check;
#[cfg(target_os = "linux")]
pub(crate) mod complete;
pub(crate) mod completions;
#[cfg(target_os = "linux")]
pub(crate) mod ctl;
pub(crate) mod draw;
pub(crate) mod evaluate;
#[cfg(target_os = "linux")]
pub(crate) mod lab;
pub(crate) mod man;
#[cfg(target_os = "linux")]
pub(crate) mod measure;
pub(crate) mod model;
#[cfg(target_os = "linux")]
pub(crate) mod netem;
pub(crate) mod presets;
pub(crate) mod replay;
pub(crate) mod report;
#[cfg(target_os = "linux")]
pub(crate) mod run;
#[cfg(target_os = "linux")]
pub(crate) mod shell;
pub(crate) mod sim;
pub(crate) mod sweep;
pub(crate) mod switch;
