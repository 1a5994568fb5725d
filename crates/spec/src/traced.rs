//! Values on which a trace decides. Whoever changes one beside it is told so: the next step would
//! undo the change, and where opportunities say when packets leave, rate, overhead and slots mean
//! nothing.

use crate::topology::{LinkId, Start, Topology, TraceEnd, Track};
use crate::trace::Timeline;
use fastpath_link::Change;
use fastpath_units::{Duration, Time};
use std::fmt;

/// A value on which a trace decides. Prints as what is so: `link a-b: the trace lte.csv sets its
/// rate`.
#[derive(Clone, Copy, Debug)]
pub struct Traced<'t> {
    /// The key of the value in a spec.
    pub key: &'static str,
    link: &'t str,
    track: &'t Track,
    until: Option<Time>,
}

/// The values in `change` that a trace can decide on, by their keys in a spec.
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
    /// The traces that a pipe follows.
    pub fn tracks_of(&self, link: LinkId, pipe: usize) -> &[Track] {
        let place = |track: &Track| (track.link, track.pipe);
        let first = self.tracks.partition_point(|track| place(track) < (link, pipe));
        let count = self.tracks[first..].partition_point(|track| place(track) == (link, pipe));
        &self.tracks[first..first + count]
    }

    /// When a trace starts; `None`: with a packet or a command, so that nobody knows beforehand.
    pub fn start_of(&self, track: &Track) -> Option<Time> {
        match track.group.map_or(Start::At(Time::ZERO), |group| self.groups[group].start) {
            Start::At(at) => Some(at),
            Start::FirstPacket | Start::Command => None,
        }
    }

    /// Which values of `change`, made at `at`, traces of the pipe decide on then. `starts` says of
    /// each of [`Topology::tracks_of`] when it starts or has started; `None`: it waits.
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
    /// Whether it decides on its values at `at`, its end included, if it has started or starts at
    /// `start`.
    pub fn is_under_way(&self, start: Option<Time>, at: Time) -> bool {
        start.is_some_and(|start| start <= at && self.until(start).is_none_or(|until| at <= until))
    }

    /// When it changes nothing any more, if it starts at `start`; `None`: never.
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
    /// True if a value given beside the trace never has an effect: opportunities without end.
    pub fn is_lasting(&self) -> bool {
        self.until.is_none() && matches!(self.track.timeline, Timeline::Opportunities(_))
    }

    /// What to do about it.
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

    /// What becomes of a change made all the same.
    pub fn outcome(&self) -> String {
        match (&self.track.timeline, self.until) {
            (Timeline::Opportunities(_), Some(until)) => format!("{self}, until {until}"),
            _ => format!("{self}: this stays until its next step"),
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
