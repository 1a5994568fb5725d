//! Simulates packet processors: reads machines, programs and workloads by name or from files, and
//! runs them with `fastpath_sim`.
//!
//! ```text
//! machine: shipped, a file, this-host=RECORDS ─┐
//! program: shipped, a file, pipeline=RECORDS  ─┼─▶ Simulation ─▶ Case ─▶ fastpath_sim ─▶ Outcome
//! workload, changes, seed                     ─┘
//! ```

mod experiment;
mod files;
mod measured;
mod parallel;
mod run;
mod source;

pub use experiment::ExperimentResults;
pub use files::{PointFiles, PointRow};
pub use parallel::side_by_side;
pub use run::{SimulationRun, run};
pub use source::{Simulation, WORKLOAD, machine_text, parse_change, program_text};
