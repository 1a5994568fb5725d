//! OpenFlow switches: rule files, captures through tables offline, and what tables became.

mod executor;
mod explain;
mod offline;
mod ports;

pub use executor::{compiled, executor};
pub use explain::{Explanation, explain};
pub use offline::{CaptureAtPort, OfflineSummary, SwitchAccounting, TableCounters, switch_captures};
pub use ports::{load_rules, number_ports};
