//! Values of a link over time: parsers of trace formats, with exact times. Each format has one
//! file.
//!
//! ```text
//!  Mahimahi ──▶ opportunities ─┐
//!  Poisson ───▶ opportunities ─┤
//!  CSV, named columns ▶ steps ─┼─▶ Timeline ─▶ a pipe over time
//!  TheaterQ ──────────▶ steps ─┤
//!  netem-trace ───────▶ steps ─┘
//! ```
//!
//! Times are exact: decimal numbers become picoseconds without rounding, and finer times are
//! refused. Steps are in order, without gaps, and none is empty; otherwise a [`Mistake`] names the
//! line.

#![forbid(unsafe_code)]

pub mod delays;
mod mahimahi;
mod netem_trace;
mod summary;
mod table;
mod theaterq;

use fastpath_link::{
    Change, Duplication, JitterCorrelation, JitterLaw, JitterSpec, Limit, LossSpec, Opportunities, PipeSpec,
    QueueSpec, Reorder,
};
use fastpath_text::mistake::{Mistake, Mistakes};
use fastpath_units::{Duration, Probability, Rate};
use std::sync::Arc;

/// The most steps of a trace: they are held in memory.
const STEPS_MAX: usize = 1 << 21;

/// The shortest step. Shorter ones would cost more time than the packets.
const STEP_MIN: Duration = Duration::from_us(1);

/// The number of wrong lines of a file that are reported.
pub const MISTAKES_MAX: usize = 20;

/// A format of traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// mm-link(1): a line for every opportunity.
    Mahimahi,
    /// Columns with names: time or duration, rate, delay, loss, queue, jitter, duplicate.
    Csv,
    /// TheaterQ's trace files, simple or extended.
    TheaterQ,
    /// The JSON of rattan's crate `netem-trace`.
    NetemTrace,
}

/// The values of a trace over time.
#[derive(Clone, PartialEq, Debug)]
pub enum Timeline {
    /// Successive values.
    Steps(Steps),
    /// Times at which packets may be sent.
    Opportunities(Opportunities),
}

/// Successive values of a pipe, each valid until the next.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    steps: Arc<[TraceStep]>,
    length: Duration,
    /// The keys of a link that any step sets.
    keys: Vec<&'static str>,
}

/// Values from one time of the trace on.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceStep {
    /// From the start of the trace.
    pub at: Duration,
    /// The values from that time on.
    pub values: Values,
}

/// The values of a step. Absent values do not change.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Values {
    /// The rate.
    pub rate: Option<TraceRate>,
    /// The one-way delay.
    pub delay: Option<Duration>,
    /// The loss of each packet, before the queue.
    pub loss: Option<Probability>,
    /// A drop-tail queue of this size.
    pub queue: Option<Limit>,
    /// The standard deviation of a normal jitter; 0 is none.
    pub jitter: Option<(Duration, Reorder)>,
    /// The probability of a duplicate, and how much later the copy leaves.
    pub duplicate: Option<(Probability, Duration)>,
}

/// The sending rate of a link in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceRate {
    /// Rate 0: queued packets wait. The packet in transmission is suspended and resumes later.
    Paused,
    /// A rate.
    Rate(Rate),
    /// Unlimited.
    Unlimited,
}

impl Timeline {
    /// Parses a trace. The error is a list of at most [`MISTAKES_MAX`] mistakes.
    pub fn read(format: Format, text: &str) -> Result<Timeline, Mistakes> {
        Ok(match format {
            Format::Mahimahi => Timeline::Opportunities(mahimahi::mahimahi(text)?),
            Format::Csv => Timeline::Steps(table::read(text)?),
            Format::TheaterQ => Timeline::Steps(theaterq::read(text)?),
            Format::NetemTrace => Timeline::Steps(netem_trace::read(text)?),
        })
    }

    /// Returns its length.
    pub fn length(&self) -> Duration {
        match self {
            Timeline::Steps(steps) => steps.length,
            Timeline::Opportunities(opportunities) => opportunities.period(),
        }
    }

    /// Returns the keys of a link that it sets or replaces.
    pub fn keys(&self) -> &[&'static str] {
        match self {
            Timeline::Steps(steps) => &steps.keys,
            Timeline::Opportunities(_) => &["rate", "overhead", "slots"],
        }
    }

    /// Returns the highest rate and the longest delay in it.
    pub fn extremes(&self) -> (Option<Rate>, Duration) {
        match self {
            Timeline::Opportunities(opportunities) => {
                (Rate::from_bps(opportunities.mean_bps().ceil() as u64), Duration::ZERO)
            }
            Timeline::Steps(steps) => {
                let rate = |step: &TraceStep| match step.values.rate {
                    Some(TraceRate::Rate(rate)) => Some(rate),
                    _ => None,
                };
                let delay = steps.steps.iter().filter_map(|step| step.values.delay).max();
                (steps.steps.iter().filter_map(rate).max(), delay.unwrap_or(Duration::ZERO))
            }
        }
    }

    /// Returns a summary in a sentence.
    pub fn describe(&self) -> String {
        summary::describe(self)
    }
}

impl Steps {
    /// Returns the steps. The first is at 0.
    pub fn steps(&self) -> &[TraceStep] {
        &self.steps
    }

    /// Returns the length of all steps.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Returns the values in force from step `index` on: its own, and those of earlier steps.
    pub fn merged(&self, index: usize) -> Values {
        self.steps[..=index].iter().fold(Values::default(), |before, step| {
            let Values { rate, delay, loss, queue, jitter, duplicate } = &step.values;
            Values {
                rate: rate.or(before.rate),
                delay: delay.or(before.delay),
                loss: loss.or(before.loss),
                queue: queue.or(before.queue),
                jitter: jitter.or(before.jitter),
                duplicate: duplicate.or(before.duplicate),
            }
        })
    }

    /// Returns the change that restores from `spec` every value that the steps set.
    pub fn undo(&self, spec: &PipeSpec) -> Change {
        let mut change = Change::default();
        for key in &self.keys {
            match *key {
                "rate" => (change.rate, change.paused) = (Some(spec.rate), Some(spec.paused)),
                "delay" => change.delay = Some(spec.delay),
                "loss" => change.loss = Some(spec.loss.clone()),
                "queue" => change.queue = Some(spec.queue.clone()),
                "jitter" => change.jitter = Some(spec.jitter.clone()),
                _ => change.duplicate = Some(spec.duplicate),
            }
        }
        change
    }
}

impl Values {
    /// Returns whether the step sets the value of this key of a link. Rate 0 sets the rate.
    pub fn sets(&self, key: &str) -> bool {
        let Values { rate, delay, loss, queue, jitter, duplicate } = self;
        match key {
            "rate" => rate.is_some(),
            "delay" => delay.is_some(),
            "loss" => loss.is_some(),
            "queue" => queue.is_some(),
            "jitter" => jitter.is_some(),
            "duplicate" => duplicate.is_some(),
            _ => false,
        }
    }

    /// Returns the values as a change of a pipe.
    pub fn change(&self) -> Change {
        let mut change = Change {
            delay: self.delay,
            loss: self.loss.map(LossSpec::from),
            queue: self.queue.map(QueueSpec::DropTail),
            duplicate: self.duplicate.map(|(p, later)| Duplication { chance: p.into(), later }),
            ..Change::default()
        };
        match self.rate {
            None => {}
            Some(TraceRate::Paused) => change.paused = Some(true),
            Some(TraceRate::Rate(rate)) => (change.rate, change.paused) = (Some(Some(rate)), Some(false)),
            Some(TraceRate::Unlimited) => (change.rate, change.paused) = (Some(None), Some(false)),
        }
        change.jitter = self.jitter.map(|(sd, order)| {
            let law = JitterLaw::Normal { sd };
            (!sd.is_zero()).then(|| Box::new(JitterSpec { law, correlation: JitterCorrelation::None, order }))
        });
        change
    }
}

/// Builds the steps of a trace.
#[derive(Debug, Default)]
struct Builder {
    steps: Vec<TraceStep>,
    length: Duration,
}

impl Builder {
    /// Adds a step of `length` after the previous one.
    fn push(&mut self, line: usize, length: Duration, values: Values) -> Result<(), Mistake> {
        if length.is_zero() {
            return Err(mistake(line, "the step has no length", "write a duration, or remove the line"));
        }
        if length < STEP_MIN {
            let what = format!("the step lasts {length}, and {STEP_MIN} is the shortest");
            return Err(mistake(line, what, "join it with another step"));
        }
        if self.steps.len() == STEPS_MAX {
            let what = format!("more than {STEPS_MAX} steps");
            return Err(mistake(line, what, "shorten the trace; it can repeat"));
        }
        let end = self.length.as_ps().checked_add(length.as_ps()).map(Duration::from_ps);
        let too_long = || mistake(line, "the trace is longer than 213 days", "shorten it");
        self.steps.push(TraceStep { at: self.length, values });
        self.length = end.ok_or_else(too_long)?;
        Ok(())
    }

    fn finish(self) -> Result<Steps, Mistake> {
        if self.steps.is_empty() {
            return Err(mistake(1, "the trace is empty", "write at least one step"));
        }
        let has = |what: fn(&Values) -> bool| self.steps.iter().any(|step| what(&step.values));
        let keys = [
            ("rate", has(|values| values.rate.is_some())),
            ("delay", has(|values| values.delay.is_some())),
            ("loss", has(|values| values.loss.is_some())),
            ("queue", has(|values| values.queue.is_some())),
            ("jitter", has(|values| values.jitter.is_some())),
            ("duplicate", has(|values| values.duplicate.is_some())),
        ];
        let keys = keys.into_iter().filter_map(|(key, has)| has.then_some(key)).collect();
        Ok(Steps { steps: self.steps.into(), length: self.length, keys })
    }
}

/// Parses line by line and collects the mistakes of all lines.
fn each<T>(
    lines: impl Iterator<Item = T>,
    mut read: impl FnMut(T) -> Result<(), Mistakes>,
) -> Result<(), Mistakes> {
    let mistakes = lines.filter_map(|line| read(line).err()).flatten().take(MISTAKES_MAX);
    let mistakes: Vec<Mistake> = mistakes.collect();
    if mistakes.is_empty() { Ok(()) } else { Err(Mistakes(mistakes)) }
}

fn mistake(line: usize, what: impl Into<String>, instead: impl Into<String>) -> Mistake {
    Mistake { line, column: 1, what: what.into(), instead: instead.into() }
}
