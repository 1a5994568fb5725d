//! Runs: a directory with `run.json`, which says where the run comes from, and, if it was recorded
//! over time, with time series of links and flows. `docs/reference/run-records.md` describes the
//! files.
//!
//! ```text
//!  lab ── a Sample in every interval ─▶ RunWriter ──┐
//!                                                   ├─▶ DIR/run.json, *.csv ─▶ Run::read
//!  experiment ── a Repetition ──────────────────────┘
//! ```

mod events;
mod head;
mod over_time;
mod read;
mod write;

pub use over_time::{Bins, GAP_INTERVALS, SeriesRows};
pub use read::{FlowSeries, LinkSeries, Run, RunSeries, TimedText};
pub use write::RunWriter;

/// The version of the format. It changes when a reader of the older one would misread the files.
const FORMAT: u64 = 1;
/// The file that makes a directory the record of a run.
pub(crate) const RUN: &str = "run.json";
const LINKS: &str = "links.csv";
const FLOWS: &str = "flows.csv";
const EVENTS: &str = "events.csv";

/// The columns of `links.csv` before the drops by reason. Counts are of the `interval_s` that ends
/// at `time_s`; the queue is that at `time_s`.
const LINK_COLUMNS: [&str; 14] = [
    "time_s",
    "link",
    "from",
    "bytes_in",
    "bytes_out",
    "frames_in",
    "frames_out",
    "marked",
    "queue_frames",
    "queue_bytes",
    "queue_delay_s",
    "late",
    "lateness_max_s",
    INTERVAL,
];
/// The time since the sample before, which is longer than asked for when the sampler did not run.
/// Records of version 0.1 have no such column.
const INTERVAL: &str = "interval_s";
/// What the columns of drops begin with.
const DROPPED: &str = "dropped.";
/// The columns of `flows.csv`.
const FLOW_COLUMNS: [&str; 9] = [
    "time_s",
    "flow",
    "bytes_in",
    "bytes_out",
    "rtt_count",
    "rtt_mean_s",
    "rtt_min_s",
    "rtt_max_s",
    INTERVAL,
];
/// The columns of `events.csv`.
const EVENT_COLUMNS: [&str; 2] = ["time_s", "event"];
