//! What the engine costs on this machine, by runs of real networks in memory and of small labs, and
//! what a network asks of it.
//!
//! ```text
//!  networks.rs   random networks ─┬─▶ run.rs  the engine's workers ─▶ calibrate.rs ─▶ EngineCosts
//!                                 └─▶ demand.rs  counts per packet ─┘
//!  labs.rs       random small labs ─▶ lab_run.rs: TAP ports, TCP, lateness, start
//! ```
//!
//! Speeds are per second for which a worker had its core. So other work on the machine does not
//! count as a cost, except by what it does to caches and clocks.

mod calibrate;
mod calibration_error;
mod demand;
mod lab_run;
mod labs;
mod lateness;
mod networks;
mod run;

pub use calibrate::{Calibration, CalibrationPoint, calibrate};
pub use calibration_error::CalibrationError;
pub use demand::{DemandError, DemandOptions, EngineWorkers, demand};
pub use lab_run::{LabRun, run_lab};
pub use networks::{FirstLink, QUEUES, RandomNetwork};
pub use run::{Carried, Offered, offer, saturate, spread};
