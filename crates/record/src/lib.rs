//! Records: what is kept of a measurement or of a run, for reports, models and other programs.
//!
//! ```text
//!  Measurement   one JSON object per line: settings, results, and where they come from
//!     └─ Observation   its numbers and words, as models and simulations read them
//!  Run           a directory: run.json, and time series of links and flows as CSV
//!     └─ Repetition    what an experiment adds to run.json: condition, samples, values
//!  TestSuite     what was judged, as JUnit XML
//! ```
//!
//! This crate alone reads and writes these formats. `docs/reference/records.md` and
//! `docs/reference/run-records.md` describe them. It measures nothing: whoever calls it has a
//! machine, a lab or an experiment.
//!
//! Read first: `measurement.rs`, then `run/mod.rs`.

#![forbid(unsafe_code)]

mod error;
mod guest;
mod junit;
mod measurement;
mod observation;
mod origin;
mod repetition;
mod run;
mod typed;
mod xml;

pub use error::RecordError;
pub use guest::{GuestOrigin, Sums};
pub use junit::{TestCase, TestOutcome, TestSuite};
pub use measurement::{Disturbance, Machine, Measurement, Optimised, Provenance, Tool, fields};
pub use observation::{MachineName, Observation, ObservationError};
pub use origin::Origin;
pub use repetition::Repetition;
pub use run::{
    Bins, FlowSeries, GAP_INTERVALS, LinkSeries, Run, RunSeries, RunWriter, SeriesRows, TimedText,
};
pub use typed::{
    HostMeasurement, HostResults, PipelineMeasurement, PipelineParameters, PipelineResults, RecordedCache,
    RecordedLatency, RecordedStage,
};
pub use xml::escaped;
