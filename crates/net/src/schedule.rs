//! Scheduled changes of links and of the mappings of NATs: the events of the topology, changes
//! requested at run time, and traces.
//!
//! ```text
//!  events of the topology, by time ─┐
//!  rebindings of NATs, by time ─────┤
//!  requested changes, by time ──────┼─▶ next_at() ─▶ pop(at) ─▶ (pipe, change) or (NAT, rebinding)
//!  tracks, by next step ────────────┘
//! ```
//!
//! At one instant the events of the topology come first (links, NATs, traces), then requested
//! changes in the order of their requests, then tracks in the order of the topology. Steps are
//! computed from the start of their track: start + rounds × length + time of the step. So no
//! rounding error accumulates.

use fastpath_link::Change;
use fastpath_spec::trace::Timeline;
use fastpath_spec::{
    Direction, LinkId, NatEvent, NodeId, Rebinding, Start, Topology, TraceAction, TraceEnd, TraceEvent,
};
use fastpath_units::{Duration, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The maximum number of requested changes that have not happened yet.
const REQUESTED_MAX: usize = 1 << 16;

/// The error that too many requested changes are pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{REQUESTED_MAX} changes are already scheduled: retry after some of them have taken effect")]
pub struct ScheduleFull;

/// A change of a link or of one of its directions.
pub type LinkChange = (LinkId, Direction, Change);

/// What was requested for an instant.
#[derive(Debug)]
enum Requested {
    Change(Box<LinkChange>),
    /// The start or the end of the traces of a group.
    Traces(usize, TraceAction),
}

#[derive(Debug)]
pub(crate) struct Schedule {
    /// The index of the first event of the topology that has not happened.
    next_event: usize,
    /// The same for its events of traces.
    next_trace_event: usize,
    /// The next rebindings: time and number of the event.
    rebindings: BTreeSet<(Time, usize)>,
    /// By time and order of request.
    requested: BTreeMap<(Time, u64), Requested>,
    requested_count: u64,
    /// One per track of the topology.
    players: Vec<TrackPlayer>,
    /// The next steps: time and track. An entry that differs from [`TrackPlayer::step_at`] is stale
    /// and skipped.
    steps: BinaryHeap<Reverse<(Time, usize)>>,
    /// By group: true until its first packet.
    awaiting: Vec<bool>,
    awaits_packet: bool,
    next_at: Option<Time>,
}

/// A change that is due.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ScheduledChange {
    Link(Box<LinkChange>),
    Rebind(NodeId, Rebinding),
}

/// Returns the next time of an event after `now`.
fn after(event: &NatEvent, now: Time) -> Option<Time> {
    if event.at > now {
        return Some(event.at);
    }
    let every = event.every.filter(|every| !every.is_zero())?.as_ps();
    let rounds = now.since(event.at).as_ps() / every + 1;
    every.checked_mul(rounds).and_then(|ps| event.at.checked_add(Duration::from_ps(ps)))
}

/// The playback state of a track.
#[derive(Clone, Copy, Debug)]
struct TrackPlayer {
    start: Time,
    round: u64,
    /// The next step; the number of steps stands for the end.
    index: usize,
    /// The time of the next step.
    step_at: Option<Time>,
    /// Whether the next step is the end, because the trace is stopped.
    stops: bool,
}

impl Schedule {
    pub(crate) fn new(topology: &Topology) -> Schedule {
        let mut schedule = Schedule {
            next_event: 0,
            next_trace_event: 0,
            rebindings: topology.nat_events.iter().zip(0..).map(|(event, index)| (event.at, index)).collect(),
            requested: BTreeMap::new(),
            requested_count: 0,
            players: vec![TrackPlayer::IDLE; topology.tracks.len()],
            steps: BinaryHeap::new(),
            awaiting: topology.groups.iter().map(|group| group.start == Start::FirstPacket).collect(),
            awaits_packet: false,
            next_at: None,
        };
        schedule.awaits_packet = schedule.awaiting.contains(&true);
        for (index, track) in topology.tracks.iter().enumerate() {
            if let Some(at) = topology.start_of(track) {
                schedule.start_track(index, at);
            }
        }
        schedule.update_next_at(topology);
        schedule
    }

    /// Takes over the state of `old` at `now`, after all changes that are due by then. `tracks` and
    /// `groups` have the former number of each track and group that stays, `place` that of a link.
    /// A track that is new starts now if its group has started, and events in the past do not
    /// happen.
    pub(crate) fn take_over(
        &mut self,
        old: &mut Schedule,
        now: Time,
        (topology, tracks, groups): (&Topology, &[Option<usize>], &[Option<usize>]),
        place: impl Fn(LinkId) -> Option<LinkId>,
    ) {
        self.next_event = topology.events.partition_point(|event| event.at <= now);
        self.next_trace_event = topology.trace_events.partition_point(|event| event.at <= now);
        self.rebindings = topology
            .nat_events
            .iter()
            .zip(0..)
            .filter_map(|(event, index)| Some((after(event, now)?, index)))
            .collect();
        self.requested = std::mem::take(&mut old.requested)
            .into_iter()
            .filter_map(|(key, requested)| {
                let now = match requested {
                    Requested::Change(change) => {
                        let (link, direction, change) = *change;
                        Requested::Change(Box::new((place(link)?, direction, change)))
                    }
                    Requested::Traces(former, action) => {
                        Requested::Traces(groups.iter().position(|group| *group == Some(former))?, action)
                    }
                };
                Some((key, now))
            })
            .collect();
        self.requested_count = old.requested_count;
        for (awaiting, group) in self.awaiting.iter_mut().zip(groups) {
            *awaiting &= group.is_none_or(|group| old.awaiting[group]);
        }
        self.awaits_packet = self.awaiting.contains(&true);
        self.steps.clear();
        for (index, track) in topology.tracks.iter().enumerate() {
            if let Some(former) = tracks[index] {
                self.players[index] = old.players[former];
                self.steps.extend(self.players[index].step_at.map(|at| Reverse((at, index))));
                continue;
            }
            let start = match track.group.map_or(Start::At(Time::ZERO), |group| topology.groups[group].start)
            {
                Start::At(at) => Some(at.max(now)),
                Start::FirstPacket => track.group.filter(|&group| !self.awaiting[group]).map(|_| now),
                Start::Command => None,
            };
            match start {
                Some(at) => self.start_track(index, at),
                None => self.players[index].step_at = None,
            }
        }
        self.update_next_at(topology);
    }

    /// Returns the time of the next change.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.next_at
    }

    /// Returns the longest period of the running tracks and rebindings that repeat for ever.
    pub(crate) fn repeat_period_max(&self, topology: &Topology) -> Option<Duration> {
        let tracks = self.players.iter().zip(&topology.tracks);
        let repeating =
            tracks.filter(|(player, track)| player.step_at.is_some() && track.end == TraceEnd::Repeat);
        let rebindings = self.rebindings.iter().filter_map(|(_, index)| topology.nat_events[*index].every);
        repeating.map(|(_, track)| track.timeline.length()).chain(rebindings).max()
    }

    /// Returns the next or latest start of each track of the topology; `None` for a track that
    /// waits for a packet or a command.
    pub(crate) fn starts(&self) -> impl Iterator<Item = Option<Time>> {
        self.players.iter().map(|player| player.has_started().then_some(player.start))
    }

    /// Returns whether a group waits for its first packet.
    #[inline]
    pub(crate) fn awaits_packet(&self) -> bool {
        self.awaits_packet
    }

    /// Starts the groups that wait for a packet on `link`, which arrives at `now`.
    pub(crate) fn on_packet(&mut self, now: Time, link: LinkId, topology: &Topology) {
        for group in 0..self.awaiting.len() {
            if self.awaiting[group] && topology.groups[group].links.contains(&link) {
                self.start(now, group, topology);
            }
        }
    }

    /// Starts or restarts the tracks of a group at `at`.
    pub(crate) fn start(&mut self, at: Time, group: usize, topology: &Topology) {
        self.awaiting[group] = false;
        self.awaits_packet = self.awaiting.contains(&true);
        for (index, track) in topology.tracks.iter().enumerate() {
            if track.group == Some(group) {
                self.start_track(index, at);
            }
        }
        self.update_next_at(topology);
    }

    /// Stops the tracks of a group at `at`. A track that has not started does not start either.
    pub(crate) fn stop(&mut self, at: Time, group: usize, topology: &Topology) {
        self.awaiting[group] = false;
        self.awaits_packet = self.awaiting.contains(&true);
        for (index, track) in topology.tracks.iter().enumerate() {
            if track.group == Some(group) {
                let player = &mut self.players[index];
                match player.has_started() && player.start <= at {
                    true => {
                        (player.step_at, player.stops) = (Some(at), true);
                        self.steps.push(Reverse((at, index)));
                    }
                    false => *player = TrackPlayer::IDLE,
                }
            }
        }
        self.update_next_at(topology);
    }

    fn act(&mut self, event: TraceEvent, topology: &Topology) {
        match event.action {
            TraceAction::Start => self.start(event.at, event.group, topology),
            TraceAction::Stop => self.stop(event.at, event.group, topology),
        }
    }

    /// Schedules requested changes: all of them, or none.
    pub(crate) fn add(
        &mut self,
        at: Time,
        changes: Vec<LinkChange>,
        topology: &Topology,
    ) -> Result<(), ScheduleFull> {
        if self.requested.len() + changes.len() > REQUESTED_MAX {
            return Err(ScheduleFull);
        }
        for change in changes {
            self.requested_count += 1;
            self.requested.insert((at, self.requested_count), Requested::Change(Box::new(change)));
        }
        self.update_next_at(topology);
        Ok(())
    }

    /// Starts, restarts or stops the tracks of a group at a time that has not come.
    pub(crate) fn add_trace_event(&mut self, event: TraceEvent, topology: &Topology) {
        self.requested_count += 1;
        let requested = Requested::Traces(event.group, event.action);
        self.requested.insert((event.at, self.requested_count), requested);
        self.update_next_at(topology);
    }

    /// Returns the next change due at `at`.
    pub(crate) fn pop(&mut self, at: Time, topology: &Topology) -> Option<ScheduledChange> {
        let due = self.take(at, topology);
        self.update_next_at(topology);
        due
    }

    fn take(&mut self, at: Time, topology: &Topology) -> Option<ScheduledChange> {
        if let Some(event) = topology.events.get(self.next_event).filter(|event| event.at <= at) {
            self.next_event += 1;
            let change = (event.link, event.direction, event.change.clone());
            return Some(ScheduledChange::Link(Box::new(change)));
        }
        if let Some(&(due, index)) = self.rebindings.first().filter(|(due, _)| *due <= at) {
            self.rebindings.remove(&(due, index));
            let event = &topology.nat_events[index];
            self.rebindings.extend(after(event, due).map(|next| (next, index)));
            return Some(ScheduledChange::Rebind(event.nat, event.rebinding));
        }
        while let Some(event) =
            topology.trace_events.get(self.next_trace_event).filter(|event| event.at <= at)
        {
            self.next_trace_event += 1;
            self.act(*event, topology);
        }
        while let Some(entry) = self.requested.first_entry().filter(|entry| entry.key().0 <= at) {
            let at = entry.key().0;
            match entry.remove() {
                Requested::Change(change) => return Some(ScheduledChange::Link(change)),
                Requested::Traces(group, action) => self.act(TraceEvent { at, group, action }, topology),
            }
        }
        while let Some(&Reverse((step_at, index))) = self.steps.peek().filter(|step_at| step_at.0.0 <= at) {
            self.steps.pop();
            if self.players[index].step_at == Some(step_at) {
                let track = &topology.tracks[index];
                let direction = if track.pipe == 0 { Direction::Forward } else { Direction::Backward };
                let change = (track.link, direction, self.play(index, topology));
                return Some(ScheduledChange::Link(Box::new(change)));
            }
        }
        None
    }

    fn start_track(&mut self, index: usize, at: Time) {
        self.players[index] = TrackPlayer { start: at, step_at: Some(at), ..TrackPlayer::IDLE };
        self.steps.push(Reverse((at, index)));
    }

    /// Returns the change with which a track stops. A trace that has ended may have paused the
    /// link.
    fn end(&mut self, index: usize, topology: &Topology) -> Change {
        self.players[index] = TrackPlayer::IDLE;
        let track = &topology.tracks[index];
        let opportunities = match &track.timeline {
            Timeline::Opportunities(_) => {
                Some(topology.link(track.link).pipes[track.pipe].opportunities.clone())
            }
            Timeline::Steps(_) => None,
        };
        Change { opportunities, paused: Some(false), ..Change::default() }
    }

    /// Returns the change of the current step of a track, and schedules the next step.
    fn play(&mut self, index: usize, topology: &Topology) -> Change {
        let track = &topology.tracks[index];
        let spec = &topology.link(track.link).pipes[track.pipe];
        if self.players[index].stops {
            return self.end(index, topology);
        }
        let player = &mut self.players[index];
        let steps = match &track.timeline {
            Timeline::Opportunities(opportunities) => {
                let length = opportunities.period();
                if player.index == 1 {
                    player.step_at = None;
                    return match track.end {
                        TraceEnd::Reset => {
                            Change { opportunities: Some(spec.opportunities.clone()), ..Change::default() }
                        }
                        _ => Change { opportunities: Some(None), paused: Some(true), ..Change::default() },
                    };
                }
                let mut opportunities = opportunities.clone();
                (opportunities.from, opportunities.offset) = (player.start, track.offset);
                player.index = 1;
                player.step_at = match track.end {
                    TraceEnd::Repeat | TraceEnd::Hold => None,
                    // The trace ends one picosecond after its length, so that a packet can use the
                    // last opportunity.
                    TraceEnd::Reset | TraceEnd::Stop => {
                        let left = length.saturating_sub(track.offset).saturating_add(Duration::from_ps(1));
                        player.start.checked_add(left)
                    }
                };
                if let Some(step_at) = player.step_at {
                    self.steps.push(Reverse((step_at, index)));
                }
                return Change { opportunities: Some(Some(opportunities)), ..Change::default() };
            }
            Timeline::Steps(steps) => steps,
        };
        if player.step_at == Some(player.start) && player.round == 0 && player.index == 0 {
            // With an offset the track starts within a step.
            player.index = steps.steps().partition_point(|step| step.at <= track.offset) - 1;
            let so_far = steps.merged(player.index);
            player.next(steps.steps().len(), track.end);
            self.schedule_step(index, track, steps);
            return so_far.change();
        }
        if player.index == steps.steps().len() {
            player.step_at = None;
            match track.end {
                TraceEnd::Reset => steps.undo(spec),
                _ => Change { paused: Some(true), ..Change::default() },
            }
        } else {
            let change = steps.steps()[player.index].values.change();
            player.next(steps.steps().len(), track.end);
            self.schedule_step(index, track, steps);
            change
        }
    }

    fn schedule_step(
        &mut self,
        index: usize,
        track: &fastpath_spec::Track,
        steps: &fastpath_spec::trace::Steps,
    ) {
        let player = &mut self.players[index];
        let past_end = player.index == steps.steps().len();
        let at = steps.steps().get(player.index).map_or(steps.length(), |step| step.at);
        let at = u128::from(player.round) * u128::from(steps.length().as_ps()) + u128::from(at.as_ps());
        let after = u64::try_from(at - u128::from(track.offset.as_ps())).ok().map(Duration::from_ps);
        let holds = past_end && track.end == TraceEnd::Hold;
        // A step after `Time::MAX` never happens.
        player.step_at = after.filter(|_| !holds).and_then(|after| player.start.checked_add(after));
        if let Some(step_at) = player.step_at {
            self.steps.push(Reverse((step_at, index)));
        }
    }

    /// Updates the time of the next change.
    fn update_next_at(&mut self, topology: &Topology) {
        while let Some(&Reverse((step_at, index))) = self.steps.peek() {
            if self.players[index].step_at == Some(step_at) {
                break;
            }
            self.steps.pop();
        }
        let event = topology.events.get(self.next_event).map(|event| event.at);
        let trace_event = topology.trace_events.get(self.next_trace_event).map(|event| event.at);
        let requested = self.requested.first_key_value().map(|((at, _), _)| *at);
        let step_at = self.steps.peek().map(|step_at| step_at.0.0);
        let rebinding = self.rebindings.first().map(|(at, _)| *at);
        self.next_at = [event, trace_event, rebinding, requested, step_at].into_iter().flatten().min();
    }
}

impl TrackPlayer {
    const IDLE: TrackPlayer =
        TrackPlayer { start: Time::ZERO, round: 0, index: 0, step_at: None, stops: false };

    /// Whether the track has a next or latest start.
    fn has_started(&self) -> bool {
        self.step_at.is_some() || (self.round, self.index) != (0, 0)
    }

    /// Advances to the next step.
    fn next(&mut self, count: usize, end: TraceEnd) {
        self.index += 1;
        if self.index == count && end == TraceEnd::Repeat {
            (self.round, self.index) = (self.round + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_link::PipeSpec;
    use fastpath_spec::trace::Format;
    use fastpath_spec::{Group, NodeKind, Track};
    use fastpath_units::Rate;

    fn topology(trace: &str, end: TraceEnd, offset: Duration, start: Option<Start>) -> Topology {
        let mut topology = Topology::default();
        let [a, b] = ["a", "b"].map(|name| topology.add_node(name, NodeKind::host()));
        let own = PipeSpec { rate: Rate::from_bps(9), ..PipeSpec::default() };
        let link = topology.connect("a-b", a, b, [own, PipeSpec::default()]);
        topology.groups =
            start.map(|start| Group { name: "g".to_owned(), start, links: vec![link] }).into_iter().collect();
        topology.tracks.push(Track {
            link,
            pipe: 0,
            source: fastpath_spec::TraceSource::File { path: "trace".to_owned(), format: None },
            timeline: Timeline::read(Format::Csv, trace).unwrap(),
            end,
            offset,
            group: start.map(|_| 0),
        });
        topology
    }

    impl Schedule {
        fn pop_link(&mut self, at: Time, topology: &Topology) -> Option<LinkChange> {
            match self.pop(at, topology)? {
                ScheduledChange::Link(change) => Some(*change),
                ScheduledChange::Rebind(..) => panic!("no NAT is there"),
            }
        }
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_ms(ms)
    }

    /// Returns the first changes: time in milliseconds and rate in bit/s; 0 stands for a paused
    /// link.
    fn changes(schedule: &mut Schedule, topology: &Topology, most: usize) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        while let Some(at) = schedule.next_at().filter(|_| found.len() < most) {
            let (_, _, change) = schedule.pop_link(at, topology).expect("a change is due at next_at");
            let rate = change.rate.flatten().map_or(0, Rate::as_bps);
            found.push((at.as_ns() / 1_000_000, if change.paused == Some(true) { 0 } else { rate }));
        }
        found
    }

    const TRACE: &str = "duration_ms,rate_bps\n10,1\n20,2\n30,3\n";

    #[test]
    fn a_trace_ends_as_specified() {
        let run = |end, most| {
            let topology = topology(TRACE, end, Duration::ZERO, None);
            changes(&mut Schedule::new(&topology), &topology, most)
        };
        let once = [(0, 1), (10, 2), (30, 3)];
        assert_eq!(run(TraceEnd::Hold, 9), once);
        assert_eq!(run(TraceEnd::Stop, 9), [&once[..], &[(60, 0)]].concat());
        assert_eq!(run(TraceEnd::Reset, 9), [&once[..], &[(60, 9)]].concat());
        assert_eq!(run(TraceEnd::Repeat, 5), [&once[..], &[(60, 1), (70, 2)]].concat());
    }

    #[test]
    fn an_offset_starts_within_a_step_with_the_values_of_all_earlier_steps() {
        let topology = topology(TRACE, TraceEnd::Repeat, Duration::from_ms(15), None);
        let found = changes(&mut Schedule::new(&topology), &topology, 5);
        assert_eq!(found, [(0, 2), (15, 3), (45, 1), (55, 2), (75, 3)]);
        let sparse = "duration_ms,rate_bps,delay_ms\n10,1,5\n20,2,\n30,,7\n";
        let topology = self::topology(sparse, TraceEnd::Hold, Duration::from_ms(30), None);
        let mut schedule = Schedule::new(&topology);
        let (_, _, change) = schedule.pop_link(Time::ZERO, &topology).unwrap();
        assert_eq!((change.rate, change.delay), (Some(Rate::from_bps(2)), Some(Duration::from_ms(7))));
        assert_eq!(schedule.next_at(), None);
    }

    #[test]
    fn groups_start_at_a_time_or_with_a_packet_or_by_command_and_can_restart() {
        let at = topology(TRACE, TraceEnd::Hold, Duration::ZERO, Some(Start::At(ms(100))));
        assert_eq!(changes(&mut Schedule::new(&at), &at, 9), [(100, 1), (110, 2), (130, 3)]);
        let first = topology(TRACE, TraceEnd::Hold, Duration::ZERO, Some(Start::FirstPacket));
        let mut schedule = Schedule::new(&first);
        assert_eq!((schedule.next_at(), schedule.awaits_packet()), (None, true));
        schedule.on_packet(ms(7), LinkId(0), &first);
        assert_eq!(
            (changes(&mut schedule, &first, 2), schedule.awaits_packet()),
            (vec![(7, 1), (17, 2)], false)
        );
        // A restart discards the pending step.
        schedule.start(ms(20), 0, &first);
        assert_eq!(changes(&mut schedule, &first, 9), [(20, 1), (30, 2), (50, 3)]);
    }

    #[test]
    fn traces_stop_where_they_are_and_can_start_again() {
        let mut topology = topology(TRACE, TraceEnd::Stop, Duration::ZERO, Some(Start::Command));
        let event = |at, action| TraceEvent { at: ms(at), group: 0, action };
        // A stop before the start, a start, a stop on the way, a start up to the end, which pauses
        // the link, and a stop that lets it go on.
        topology.trace_events = vec![
            event(5, TraceAction::Stop),
            event(100, TraceAction::Start),
            event(115, TraceAction::Stop),
            event(200, TraceAction::Start),
            event(300, TraceAction::Stop),
        ];
        let mut schedule = Schedule::new(&topology);
        let mut found = Vec::new();
        while let Some(at) = schedule.next_at() {
            // An event that does nothing yields no change.
            let Some((_, _, change)) = schedule.pop_link(at, &topology) else { continue };
            let rate = change.rate.flatten().map(Rate::as_bps);
            found.push((at.as_ns() / 1_000_000, rate, change.paused));
            let starts: Vec<Option<Time>> = schedule.starts().collect();
            assert_eq!(starts[0].is_some(), ![115, 300].contains(&found[found.len() - 1].0), "{found:?}");
        }
        let expected = [
            (100, Some(1), Some(false)),
            (110, Some(2), Some(false)),
            (115, None, Some(false)),
            (200, Some(1), Some(false)),
            (210, Some(2), Some(false)),
            (230, Some(3), Some(false)),
            (260, None, Some(true)),
            (300, None, Some(false)),
        ];
        assert_eq!(found, expected);
        // By request as by an event.
        let mut schedule = Schedule::new(&topology);
        schedule.next_trace_event = topology.trace_events.len();
        schedule.start(ms(1), 0, &topology);
        assert_eq!(
            schedule.pop_link(ms(1), &topology).map(|(_, _, change)| change.rate),
            Some(Some(Rate::from_bps(1)))
        );
        schedule.add_trace_event(event(2, TraceAction::Stop), &topology);
        assert_eq!(
            schedule.pop_link(ms(2), &topology).map(|(_, _, change)| change.paused),
            Some(Some(false))
        );
        assert_eq!(schedule.next_at(), None);
    }

    #[test]
    fn at_one_instant_events_come_first_then_requested_changes_then_tracks() {
        let mut topology = topology(TRACE, TraceEnd::Hold, Duration::ZERO, None);
        let to = |bps| Change { rate: Some(Rate::from_bps(bps)), ..Change::default() };
        let event =
            fastpath_spec::Event { at: ms(10), link: LinkId(0), direction: Direction::Both, change: to(7) };
        topology.events.push(event);
        let mut schedule = Schedule::new(&topology);
        for bps in [5, 6] {
            schedule.add(ms(10), vec![(LinkId(0), Direction::Both, to(bps))], &topology).unwrap();
        }
        let found = changes(&mut schedule, &topology, 9);
        assert_eq!(found, [(0, 1), (10, 7), (10, 5), (10, 6), (10, 2), (30, 3)]);
    }

    #[test]
    fn the_number_of_requested_changes_is_bounded() {
        let topology = topology(TRACE, TraceEnd::Hold, Duration::ZERO, None);
        let mut schedule = Schedule::new(&topology);
        let mut add =
            || schedule.add(ms(1), vec![(LinkId(0), Direction::Both, Change::default())], &topology);
        assert!((0..REQUESTED_MAX).all(|_| add().is_ok()));
        assert_eq!(add(), Err(ScheduleFull));
    }

    #[test]
    fn nats_are_rebound_once_and_periodically_and_after_a_change_of_the_topology() {
        let mut topology = Topology::default();
        let nat = topology.add_node("x", NodeKind::host());
        let once = NatEvent { at: ms(5), every: None, nat, rebinding: Rebinding::Address };
        let every = Some(Duration::from_ms(2));
        topology.nat_events = vec![NatEvent { at: ms(3), every, nat, rebinding: Rebinding::Port }, once];
        let run = |schedule: &mut Schedule| -> Vec<(u64, Rebinding)> {
            let due = std::iter::from_fn(|| {
                let at = schedule.next_at()?;
                match schedule.pop(at, &topology)? {
                    ScheduledChange::Rebind(node, rebinding) if node == nat => {
                        Some((at.as_ns() / 1_000_000, rebinding))
                    }
                    other => panic!("{other:?}"),
                }
            });
            due.take(4).collect()
        };
        let (port, address) = (Rebinding::Port, Rebinding::Address);
        let mut schedule = Schedule::new(&topology);
        assert_eq!(schedule.repeat_period_max(&topology), every);
        assert_eq!(run(&mut schedule), [(3, port), (5, port), (5, address), (7, port)]);
        let mut later = Schedule::new(&topology);
        later.take_over(&mut schedule, ms(11), (&topology, &[], &[]), Some);
        assert_eq!(run(&mut later), [(13, port), (15, port), (17, port), (19, port)]);
    }
}
