//! `fastpath measure events`: events per second of the simulator's kernel, on the two models that
//! simulators are compared with.

use super::{Output, bar, show, tool, warn};
use crate::{Answer, print};
use clap::{Args, ValueEnum};
use fastpath_measure::Watch;
use fastpath_report::Record;
use fastpath_sim::classic::{RunCounts, mm1, pipe32};
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// One in this many customers is served before the measurement, as warm-up.
const WARM_UP: u64 = 20;
/// Interval between two updates of the progress bar.
const TICK: Duration = Duration::from_millis(200);

/// Measure events per second of the simulator on a textbook model.
#[derive(Args)]
pub(super) struct EventsCommand {
    /// The model.
    #[arg(long, default_value = "mm1")]
    model: Model,
    /// Customers to serve (pipe32: laps through all 32 servers); by default about a second of work.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    customers: Option<u64>,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Model {
    /// One server, Poisson arrivals, 80 % load.
    Mm1,
    /// A closed ring of 32 exponential servers and 64 customers.
    Pipe32,
}

impl EventsCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let file = self.output.open()?;
        let (name, run, usual): (_, fn(u64, u64) -> RunCounts, _) = match self.model {
            Model::Mm1 => ("mm1", mm1, 10_000_000),
            Model::Pipe32 => ("pipe32", pipe32, 300_000),
        };
        let customers = self.customers.unwrap_or(usual);
        let bar = bar();
        show(&bar)("warming up", 0, 1);
        // The warm-up touches the memory, and shows how long the run will take.
        let start = Instant::now();
        run(customers.div_ceil(WARM_UP), self.seed);
        let expected = start.elapsed() * WARM_UP as u32;
        let watch = Watch::start();
        let (work, seconds) = shown(&bar, expected, || {
            let start = Instant::now();
            let work = run(customers, self.seed);
            (work, start.elapsed().as_secs_f64().max(1e-9))
        });
        bar.finish_and_clear();
        let provenance = watch.provenance(&tool(), self.seed, work.events);
        let results = results(&work, seconds);
        let parameters =
            Map::from_iter([("model".to_owned(), json!(name)), ("seed".to_owned(), json!(self.seed))]);
        let record = Record { kind: "events".to_owned(), provenance, parameters, results, platform: None };
        self.output.write(file, std::slice::from_ref(&record))?;
        let mut out = io::stdout().lock();
        if self.output.json {
            let mut value = serde_json::to_value(&record)?;
            if let Value::Object(top) = &mut value {
                // The results are also at the top level, for scripts.
                top.insert("model".to_owned(), json!(name));
                top.extend(record.results.clone());
            }
            writeln!(out, "{value}")?;
        } else {
            let of = |count: u64| print::number(count as f64 / seconds);
            writeln!(out, "{name}: {} events/s, {} customers/s", of(work.events), of(work.customers))?;
        }
        warn(&record);
        Ok(Answer::Yes)
    }
}

/// Does `work`, which tells nothing of itself and takes about as long as `expected`, and shows how
/// far it should be.
fn shown<T>(bar: &ProgressBar, expected: Duration, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = mpsc::channel::<()>();
    let ms = |time: Duration| time.as_millis() as usize;
    std::thread::scope(|scope| {
        let start = Instant::now();
        scope.spawn(move || {
            // The channel is closed when the work is done.
            while waiting.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                show(bar)("ms", ms(start.elapsed()), ms(expected));
            }
        });
        let found = work();
        drop(done);
        found
    })
}

fn results(work: &RunCounts, seconds: f64) -> Map<String, Value> {
    let per_second = |count: u64| json!(count as f64 / seconds);
    Map::from_iter([
        ("events".to_owned(), json!(work.events)),
        ("customers".to_owned(), json!(work.customers)),
        ("seconds".to_owned(), json!(seconds)),
        ("events_per_second".to_owned(), per_second(work.events)),
        ("customers_per_second".to_owned(), per_second(work.customers)),
        ("trace_hash".to_owned(), json!(format!("{:016x}", work.trace_hash))),
    ])
}
