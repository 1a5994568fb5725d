//! Values of a link over time: traces from elsewhere, text in, exact steps out. One format, one
//! file.
//!
//! ```text
//!  Mahimahi ──▶ opportunities ─┐
//!  Poisson ───▶ opportunities ─┤
//!  CSV, named columns ▶ steps ─┼─▶ Timeline ─▶ Track (topology.rs) ─▶ Schedule (schedule.rs) ─▶ changes of a pipe
//!  TheaterQ ──────────▶ steps ─┤
//!  netem-trace ───────▶ steps ─┘
//! ```
//!
//! Times are exact: decimal numbers become picoseconds without rounding, and finer ones are
//! refused. Steps follow each other without a gap, in order, none of no length; what is not so is a
//! [`Mistake`] with its line.

pub(crate) mod delays;
mod mahimahi;
mod netem_trace;
mod summary;
mod table;
mod theaterq;

use crate::mistake::Mistake;
use fastpath_link::{
    Change, Duplication, JitterCorrelation, JitterLaw, JitterSpec, Limit, LossSpec, Opportunities, PipeSpec,
    QueueSpec, Reorder,
};
use fastpath_units::{Duration, Probability, Rate};
use std::sync::Arc;

/// More steps than this are refused: they are held in memory.
const STEPS_MAX: usize = 1 << 21;

/// Shorter steps are refused: a link would be busier changing than carrying.
const STEP_MIN: Duration = Duration::from_us(1);

/// More wrong lines of a file than this are not reported.
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

/// What a trace holds.
#[derive(Clone, PartialEq, Debug)]
pub enum Timeline {
    /// Values, one after the other.
    Steps(Steps),
    /// Moments at which packets may be sent.
    Opportunities(Opportunities),
}

/// Values of a pipe, each set until the next.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    steps: Arc<[Step]>,
    length: Duration,
    /// Of a link: what any step sets.
    keys: Vec<&'static str>,
}

/// Values from a moment of the trace on.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// From the start of the trace.
    pub at: Duration,
    /// What is so from then on.
    pub values: Values,
}

/// The values of a step; what is absent stays as it is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Values {
    /// A rate, or what stands in its place.
    pub rate: Option<Pace>,
    /// One way.
    pub delay: Option<Duration>,
    /// Of each packet, before the queue.
    pub loss: Option<Probability>,
    /// A drop-tail queue of this size.
    pub queue: Option<Limit>,
    /// The standard deviation of a normal jitter; 0 is none.
    pub jitter: Option<(Duration, Reorder)>,
    /// Of each packet, and how much later the copy leaves.
    pub duplicate: Option<(Probability, Duration)>,
}

/// How fast a link sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Not at all: what is queued waits, and the packet on the wire goes on later where it was.
    Paused,
    /// At this rate.
    Rate(Rate),
    /// At once.
    Unlimited,
}

impl Timeline {
    /// Reads a trace. The error is what is wrong with its lines, at most [`MISTAKES_MAX`] of them.
    pub fn read(format: Format, text: &str) -> Result<Timeline, Vec<Mistake>> {
        Ok(match format {
            Format::Mahimahi => Timeline::Opportunities(mahimahi::mahimahi(text)?),
            Format::Csv => Timeline::Steps(table::read(text)?),
            Format::TheaterQ => Timeline::Steps(theaterq::read(text)?),
            Format::NetemTrace => Timeline::Steps(netem_trace::read(text)?),
        })
    }

    /// How long it is.
    pub fn length(&self) -> Duration {
        match self {
            Timeline::Steps(steps) => steps.length,
            Timeline::Opportunities(opportunities) => opportunities.period(),
        }
    }

    /// Which keys of a link it sets, or stands in the place of.
    pub fn keys(&self) -> &[&'static str] {
        match self {
            Timeline::Steps(steps) => &steps.keys,
            Timeline::Opportunities(_) => &["rate", "overhead", "slots"],
        }
    }

    /// The highest rate and the longest delay it ever asks for.
    pub(crate) fn extremes(&self) -> (Option<Rate>, Duration) {
        match self {
            Timeline::Opportunities(opportunities) => {
                (Rate::from_bps(opportunities.mean_bps().ceil() as u64), Duration::ZERO)
            }
            Timeline::Steps(steps) => {
                let rate = |step: &Step| match step.values.rate {
                    Some(Pace::Rate(rate)) => Some(rate),
                    _ => None,
                };
                let delay = steps.steps.iter().filter_map(|step| step.values.delay).max();
                (steps.steps.iter().filter_map(rate).max(), delay.unwrap_or(Duration::ZERO))
            }
        }
    }

    /// What it holds, in a sentence.
    pub fn describe(&self) -> String {
        summary::describe(self)
    }
}

impl Steps {
    /// The steps, the first at 0.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How long they last in all.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// What is so from the step at `index` on: its values, and those that earlier ones have left.
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

    /// Back to what `spec` says of all that the steps set.
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
    /// As a change of a pipe.
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
            Some(Pace::Paused) => change.paused = Some(true),
            Some(Pace::Rate(rate)) => (change.rate, change.paused) = (Some(Some(rate)), Some(false)),
            Some(Pace::Unlimited) => (change.rate, change.paused) = (Some(None), Some(false)),
        }
        change.jitter = self.jitter.map(|(sd, order)| {
            let law = JitterLaw::Normal { sd };
            (!sd.is_zero()).then(|| Box::new(JitterSpec { law, correlation: JitterCorrelation::None, order }))
        });
        change
    }
}

/// Steps being put one after the other.
#[derive(Debug, Default)]
struct Builder {
    steps: Vec<Step>,
    length: Duration,
}

impl Builder {
    /// A step that follows the one before and lasts `length`.
    fn push(&mut self, line: usize, length: Duration, values: Values) -> Result<(), Mistake> {
        if length.is_zero() {
            return Err(mistake(line, "the step has no length", "give it a time, or remove the line"));
        }
        if length < STEP_MIN {
            let what = format!("the step lasts {length}, and {STEP_MIN} is the shortest");
            return Err(mistake(line, what, "join it with another"));
        }
        if self.steps.len() == STEPS_MAX {
            let what = format!("more than {STEPS_MAX} steps");
            return Err(mistake(line, what, "shorten the trace: it can start over at its end"));
        }
        let end = self.length.as_ps().checked_add(length.as_ps()).map(Duration::from_ps);
        let too_long = || mistake(line, "the trace is longer than 213 days", "shorten it");
        self.steps.push(Step { at: self.length, values });
        self.length = end.ok_or_else(too_long)?;
        Ok(())
    }

    fn finish(self) -> Result<Steps, Mistake> {
        if self.steps.is_empty() {
            return Err(mistake(1, "the trace is empty", "give it at least one step"));
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

/// Reads line after line, whatever is wrong with those above.
fn each<T>(
    lines: impl Iterator<Item = T>,
    mut read: impl FnMut(T) -> Result<(), Vec<Mistake>>,
) -> Result<(), Vec<Mistake>> {
    let mistakes = lines.filter_map(|line| read(line).err()).flatten().take(MISTAKES_MAX);
    let mistakes: Vec<Mistake> = mistakes.collect();
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

fn mistake(line: usize, what: impl Into<String>, instead: impl Into<String>) -> Mistake {
    Mistake { line, column: 1, what: what.into(), instead: instead.into() }
}
