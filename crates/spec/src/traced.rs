//! Values that a trace sets. A change of such a value is reported: the next step of the trace would
//! undo it. On a pipe that follows opportunities, rate, overhead and slots have no effect.

use crate::topology::{LinkId, Start, Topology, Track};
use crate::trace::Timeline;
use crate::trace_source::TraceEnd;
use fastpath_link::Change;
use fastpath_units::{Duration, Time};
use std::fmt;

/// A value that a trace sets. Prints as a sentence: `link a-b: the trace lte.csv sets its rate`.
#[derive(Clone, Copy, Debug)]
pub struct Traced<'t> {
    /// The key in a spec.
    pub key: &'static str,
    link: &'t str,
    track: &'t Track,
    until: Option<Time>,
}

/// Returns the keys of the values in `change` that a trace can set.
pub(crate) fn keys(change: &Change) -> impl Iterator<Item = &'static str> {
    [
        ("rate", change.rate.is_some()),
        ("overhead", change.overhead.is_some() || change.framing.is_some()),
        ("delay", change.delay.is_some()),
        ("loss", change.loss.is_some()),
        ("queue", change.queue.is_some()),
        ("jitter", change.jitter.is_some()),
        ("duplicate", change.duplicate.is_some()),
        ("slots", change.slots.is_some()),
    ]
    .into_iter()
    .filter_map(|(key, is_set)| is_set.then_some(key))
}

impl Topology {
    /// Returns the traces that a pipe follows.
    pub fn tracks_of(&self, link: LinkId, pipe: usize) -> &[Track] {
        let place = |track: &Track| (track.link, track.pipe);
        let first = self.tracks.partition_point(|track| place(track) < (link, pipe));
        let count = self.tracks[first..].partition_point(|track| place(track) == (link, pipe));
        &self.tracks[first..first + count]
    }

    /// Returns when a trace starts. `None` if it starts with a packet or a command.
    pub fn start_of(&self, track: &Track) -> Option<Time> {
        match track.group.map_or(Start::At(Time::ZERO), |group| self.groups[group].start) {
            Start::At(at) => Some(at),
            Start::FirstPacket | Start::Command => None,
        }
    }

    /// Returns the values of `change`, made at `at`, that active traces of the pipe set. `starts`
    /// has the start of each of [`Topology::tracks_of`]; `None` if it waits for a packet or a
    /// command.
    pub fn traced<'t>(
        &'t self,
        (link, pipe): (LinkId, usize),
        change: &Change,
        at: Time,
        starts: impl Iterator<Item = Option<Time>>,
    ) -> Vec<Traced<'t>> {
        let under_way = |(track, start): &(&Track, Option<Time>)| track.is_under_way(*start, at);
        let tracks: Vec<_> = self.tracks_of(link, pipe).iter().zip(starts).filter(under_way).collect();
        let traced = |key| {
            let &(track, start) = tracks.iter().find(|(track, _)| track.timeline.keys().contains(&key))?;
            Some(Traced { key, link: &self.link(link).name, track, until: track.until(start?) })
        };
        keys(change).filter_map(traced).collect()
    }
}

impl Track {
    /// Returns whether the trace is active at `at`, its end included, if it starts at `start`.
    pub fn is_under_way(&self, start: Option<Time>, at: Time) -> bool {
        start.is_some_and(|start| start <= at && self.until(start).is_none_or(|until| at <= until))
    }

    /// Returns when its last change is, if it starts at `start`. `None` if it repeats for ever.
    pub fn until(&self, start: Time) -> Option<Time> {
        let last = match (&self.timeline, self.end) {
            (_, TraceEnd::Repeat) | (Timeline::Opportunities(_), TraceEnd::Hold) => return None,
            (Timeline::Steps(steps), TraceEnd::Hold) => {
                steps.steps().last().map_or(Duration::ZERO, |step| step.at)
            }
            (_, TraceEnd::Reset | TraceEnd::Stop) => self.timeline.length(),
        };
        start.checked_add(last.saturating_sub(self.offset))
    }
}

impl Traced<'_> {
    /// Returns whether a value given in addition to the trace never has an effect: the trace has
    /// opportunities and repeats for ever.
    pub fn is_lasting(&self) -> bool {
        self.until.is_none() && matches!(self.track.timeline, Timeline::Opportunities(_))
    }

    /// Returns whether a value that the link has from its start is never in force: the trace, which
    /// starts with the run, sets it at once and does not return it.
    pub(crate) fn is_always_set(&self) -> bool {
        let is_set_at_once = match &self.track.timeline {
            Timeline::Steps(steps) => steps.steps().first().is_some_and(|step| step.values.sets(self.key)),
            Timeline::Opportunities(_) => true,
        };
        is_set_at_once && self.track.end != TraceEnd::Reset
    }

    /// Returns what to write instead.
    pub fn instead(&self) -> String {
        let key = self.key;
        let ends = match &self.track.timeline {
            Timeline::Steps(_) => "\"hold\", \"reset\" or \"stop\"",
            Timeline::Opportunities(_) => "\"reset\" or \"stop\"",
        };
        match self.until {
            Some(until) => format!("leave {key} out, or change it after {until}, when the trace has ended"),
            None => format!("leave {key} out, or end the trace in the spec (end = {ends})"),
        }
    }

    /// Returns a sentence about the effect of the change.
    pub fn outcome(&self) -> String {
        match (&self.track.timeline, self.until) {
            (Timeline::Opportunities(_), Some(until)) => format!("{self}, until {until}"),
            _ => format!("{self}: the change lasts until the next step of the trace"),
        }
    }
}

impl fmt::Display for Traced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traced { key, link, track, .. } = self;
        match &track.timeline {
            Timeline::Steps(_) => write!(f, "link {link}: the trace {} sets its {key}", track.source),
            Timeline::Opportunities(_) => write!(
                f,
                "link {link}: a trace says when packets leave, in place of rate, overhead and slots"
            ),
        }
    }
}
