//! What the engine costs on this machine, by runs of real networks in memory and of small labs, and
//! what a network asks of it.
//!
//! ```text
//!  networks.rs   random networks ─┬─▶ run.rs  the engine's workers ─▶ calibrate.rs ─▶ EngineCosts
//!                                 └─▶ demand.rs  counts per packet ─┘
//!  labs.rs       two hosts of a lab: ports, TCP, start
//! ```
//!
//! Speeds are per second for which a worker had its core. So other work on the machine does not
//! count as a cost, except by what it does to caches and clocks.

mod calibrate;
mod demand;
mod labs;
mod networks;
mod run;

pub use calibrate::{Calibration, CalibrationError, CalibrationPoint, calibrate};
pub use demand::{DemandError, DemandOptions, EngineWorkers, demand};
pub use networks::{QUEUES, RandomNetwork};
pub use run::{Carried, Offered, offer, saturate, spread};
