//! What changes by itself: the events of the spec, changes asked for while the network runs, and
//! traces.
//!
//! ```text
//!  events of the spec, by time ─┐
//!  asked for, by time ──────────┼─▶ next_at() ─▶ pop(at) ─▶ (pipe, change)
//!  tracks, by next step ────────┘
//! ```
//!
//! At one instant events of the spec come first, then what was asked for, in the order of asking,
//! then tracks in the order of the spec. A track is exact however long it runs: its steps are at
//! start + rounds × length + time of the step.

use fastpath_link::Change;
use fastpath_spec::trace::Timeline;
use fastpath_spec::{Direction, End, LinkId, Start, Topology};
use fastpath_units::{Duration, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Changes that may be waiting for their time.
const ASKED_MAX: usize = 1 << 16;

/// No more changes can wait for their time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{ASKED_MAX} changes are waiting for their time: wait until some have happened")]
pub struct ScheduleFull;

/// A link or one of its pipes, and what changes.
pub type LinkChange = (LinkId, Direction, Change);

#[derive(Debug)]
pub(crate) struct Schedule {
    /// The first event of the topology that has not happened.
    next_event: usize,
    /// By time and order of asking.
    asked: BTreeMap<(Time, u64), LinkChange>,
    asked_count: u64,
    /// One per track of the topology.
    players: Vec<Player>,
    /// Steps to come: at most one per track. One that its track no longer waits for is passed over.
    turns: BinaryHeap<Reverse<(Time, usize)>>,
    /// By group: true until its first packet.
    waiting: Vec<bool>,
    waits: bool,
    next_at: Option<Time>,
}

/// A track under way.
#[derive(Clone, Copy, Debug)]
struct Player {
    /// When it started.
    start: Time,
    round: u64,
    /// The step to come; the number of steps stands for the end.
    index: usize,
    /// When that is.
    turn: Option<Time>,
}

impl Schedule {
    pub(crate) fn new(topology: &Topology) -> Schedule {
        let idle = Player { start: Time::ZERO, round: 0, index: 0, turn: None };
        let mut schedule = Schedule {
            next_event: 0,
            asked: BTreeMap::new(),
            asked_count: 0,
            players: vec![idle; topology.tracks.len()],
            turns: BinaryHeap::new(),
            waiting: topology.groups.iter().map(|group| group.start == Start::FirstPacket).collect(),
            waits: false,
            next_at: None,
        };
        schedule.waits = schedule.waiting.contains(&true);
        for (index, track) in topology.tracks.iter().enumerate() {
            if let Some(at) = topology.start_of(track) {
                schedule.start_track(index, at);
            }
        }
        schedule.look(topology);
        schedule
    }

    /// When the next change is.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.next_at
    }

    /// The longest round of the tracks that start over for ever.
    pub(crate) fn endless_round(&self, topology: &Topology) -> Option<Duration> {
        let tracks = self.players.iter().zip(&topology.tracks);
        let endless = tracks.filter(|(player, track)| player.turn.is_some() && track.end == End::Repeat);
        endless.map(|(_, track)| track.timeline.length()).max()
    }

    /// When each track of the topology starts or has started last; `None`: it waits for a packet or
    /// a command.
    pub(crate) fn starts(&self) -> impl Iterator<Item = Option<Time>> {
        let has_started = |player: &Player| player.turn.is_some() || (player.round, player.index) != (0, 0);
        self.players.iter().map(move |player| has_started(player).then_some(player.start))
    }

    /// True if a group waits for its first packet.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// A packet comes to `link` at `now`: groups that have waited for it start.
    pub(crate) fn packet(&mut self, now: Time, link: LinkId, topology: &Topology) {
        for group in 0..self.waiting.len() {
            if self.waiting[group] && topology.groups[group].links.contains(&link) {
                self.start(now, group, topology);
            }
        }
    }

    /// The tracks of a group start at `at`, from their beginning if they have run before.
    pub(crate) fn start(&mut self, at: Time, group: usize, topology: &Topology) {
        self.waiting[group] = false;
        self.waits = self.waiting.contains(&true);
        for (index, track) in topology.tracks.iter().enumerate() {
            if track.group == Some(group) {
                self.start_track(index, at);
            }
        }
        self.look(topology);
    }

    /// Changes for later, all or none.
    pub(crate) fn ask(
        &mut self,
        at: Time,
        changes: Vec<LinkChange>,
        topology: &Topology,
    ) -> Result<(), ScheduleFull> {
        if self.asked.len() + changes.len() > ASKED_MAX {
            return Err(ScheduleFull);
        }
        for change in changes {
            self.asked_count += 1;
            self.asked.insert((at, self.asked_count), change);
        }
        self.look(topology);
        Ok(())
    }

    /// The next change of those at `at`.
    pub(crate) fn pop(&mut self, at: Time, topology: &Topology) -> Option<LinkChange> {
        let due = self.take(at, topology);
        self.look(topology);
        due
    }

    fn take(&mut self, at: Time, topology: &Topology) -> Option<LinkChange> {
        if let Some(event) = topology.events.get(self.next_event).filter(|event| event.at <= at) {
            self.next_event += 1;
            return Some((event.link, event.direction, event.change.clone()));
        }
        if let Some(entry) = self.asked.first_entry().filter(|entry| entry.key().0 <= at) {
            return Some(entry.remove());
        }
        while let Some(&Reverse((turn, index))) = self.turns.peek().filter(|turn| turn.0.0 <= at) {
            self.turns.pop();
            if self.players[index].turn == Some(turn) {
                let track = &topology.tracks[index];
                let direction = if track.pipe == 0 { Direction::Forward } else { Direction::Backward };
                return Some((track.link, direction, self.play(index, topology)));
            }
        }
        None
    }

    fn start_track(&mut self, index: usize, at: Time) {
        self.players[index] = Player { start: at, round: 0, index: 0, turn: Some(at) };
        self.turns.push(Reverse((at, index)));
    }

    /// The change of a track whose turn it is, and its next turn.
    fn play(&mut self, index: usize, topology: &Topology) -> Change {
        let track = &topology.tracks[index];
        let spec = &topology.link(track.link).pipes[track.pipe];
        let player = &mut self.players[index];
        let steps = match &track.timeline {
            Timeline::Opportunities(opportunities) => {
                let length = opportunities.period();
                if player.index == 1 {
                    player.turn = None;
                    return match track.end {
                        End::Reset => {
                            Change { opportunities: Some(spec.opportunities.clone()), ..Change::default() }
                        }
                        _ => Change { opportunities: Some(None), paused: Some(true), ..Change::default() },
                    };
                }
                let mut opportunities = opportunities.clone();
                (opportunities.from, opportunities.offset) = (player.start, track.offset);
                player.index = 1;
                player.turn = match track.end {
                    End::Repeat | End::Hold => None,
                    // What leaves at the very end still does: the trace ends just after its last
                    // opportunity.
                    End::Reset | End::Stop => {
                        let left = length.saturating_sub(track.offset).saturating_add(Duration::from_ps(1));
                        player.start.checked_add(left)
                    }
                };
                if let Some(turn) = player.turn {
                    self.turns.push(Reverse((turn, index)));
                }
                return Change { opportunities: Some(Some(opportunities)), ..Change::default() };
            }
            Timeline::Steps(steps) => steps,
        };
        if player.turn == Some(player.start) && player.round == 0 && player.index == 0 {
            // With an offset it begins within a step.
            player.index = steps.steps().partition_point(|step| step.at <= track.offset) - 1;
            let so_far = steps.merged(player.index);
            player.next(steps.steps().len(), track.end);
            self.schedule_turn(index, track, steps);
            return so_far.change();
        }
        if player.index == steps.steps().len() {
            player.turn = None;
            match track.end {
                End::Reset => steps.undo(spec),
                _ => Change { paused: Some(true), ..Change::default() },
            }
        } else {
            let change = steps.steps()[player.index].values.change();
            player.next(steps.steps().len(), track.end);
            self.schedule_turn(index, track, steps);
            change
        }
    }

    fn schedule_turn(
        &mut self,
        index: usize,
        track: &fastpath_spec::Track,
        steps: &fastpath_spec::trace::Steps,
    ) {
        let player = &mut self.players[index];
        let past_end = player.index == steps.steps().len();
        let place = steps.steps().get(player.index).map_or(steps.length(), |step| step.at);
        let place = u128::from(player.round) * u128::from(steps.length().as_ps()) + u128::from(place.as_ps());
        let after = u64::try_from(place - u128::from(track.offset.as_ps())).ok().map(Duration::from_ps);
        let holds = past_end && track.end == End::Hold;
        // Past the end of time there are no turns.
        player.turn = after.filter(|_| !holds).and_then(|after| player.start.checked_add(after));
        if let Some(turn) = player.turn {
            self.turns.push(Reverse((turn, index)));
        }
    }

    /// Finds when the next change is.
    fn look(&mut self, topology: &Topology) {
        while let Some(&Reverse((turn, index))) = self.turns.peek() {
            if self.players[index].turn == Some(turn) {
                break;
            }
            self.turns.pop();
        }
        let event = topology.events.get(self.next_event).map(|event| event.at);
        let asked = self.asked.first_key_value().map(|((at, _), _)| *at);
        let turn = self.turns.peek().map(|turn| turn.0.0);
        self.next_at = [event, asked, turn].into_iter().flatten().min();
    }
}

impl Player {
    /// On to the next step.
    fn next(&mut self, count: usize, end: End) {
        self.index += 1;
        if self.index == count && end == End::Repeat {
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

    fn topology(trace: &str, end: End, offset: Duration, start: Option<Start>) -> Topology {
        let mut topology = Topology::default();
        let [a, b] = ["a", "b"].map(|name| topology.add_node(name, NodeKind::Host { port: None }));
        let own = PipeSpec { rate: Rate::from_bps(9), ..PipeSpec::default() };
        let link = topology.connect("a-b", a, b, [own, PipeSpec::default()]);
        topology.groups =
            start.map(|start| Group { name: "g".to_owned(), start, links: vec![link] }).into_iter().collect();
        topology.tracks.push(Track {
            link,
            pipe: 0,
            source: "trace".to_owned(),
            timeline: Timeline::read(Format::Csv, trace).unwrap(),
            end,
            offset,
            group: start.map(|_| 0),
        });
        topology
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_ms(ms)
    }

    /// The first changes: when in milliseconds, and the rate in bit/s; 0 is a pause.
    fn changes(schedule: &mut Schedule, topology: &Topology, most: usize) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        while let Some(at) = schedule.next_at().filter(|_| found.len() < most) {
            let (_, _, change) = schedule.pop(at, topology).expect("next_at is truthful");
            let rate = change.rate.flatten().map_or(0, Rate::as_bps);
            found.push((at.as_ns() / 1_000_000, if change.paused == Some(true) { 0 } else { rate }));
        }
        found
    }

    const TRACE: &str = "duration_ms,rate_bps\n10,1\n20,2\n30,3\n";

    #[test]
    fn a_trace_ends_as_it_is_told_to() {
        let run = |end, most| {
            let topology = topology(TRACE, end, Duration::ZERO, None);
            changes(&mut Schedule::new(&topology), &topology, most)
        };
        let once = [(0, 1), (10, 2), (30, 3)];
        assert_eq!(run(End::Hold, 9), once);
        assert_eq!(run(End::Stop, 9), [&once[..], &[(60, 0)]].concat());
        assert_eq!(run(End::Reset, 9), [&once[..], &[(60, 9)]].concat());
        assert_eq!(run(End::Repeat, 5), [&once[..], &[(60, 1), (70, 2)]].concat());
    }

    #[test]
    fn an_offset_begins_within_a_step_with_all_that_was_set_before() {
        let topology = topology(TRACE, End::Repeat, Duration::from_ms(15), None);
        let found = changes(&mut Schedule::new(&topology), &topology, 5);
        assert_eq!(found, [(0, 2), (15, 3), (45, 1), (55, 2), (75, 3)]);
        let sparse = "duration_ms,rate_bps,delay_ms\n10,1,5\n20,2,\n30,,7\n";
        let topology = self::topology(sparse, End::Hold, Duration::from_ms(30), None);
        let mut schedule = Schedule::new(&topology);
        let (_, _, change) = schedule.pop(Time::ZERO, &topology).unwrap();
        assert_eq!((change.rate, change.delay), (Some(Rate::from_bps(2)), Some(Duration::from_ms(7))));
        assert_eq!(schedule.next_at(), None);
    }

    #[test]
    fn groups_start_at_their_time_with_a_packet_or_when_told_and_again() {
        let at = topology(TRACE, End::Hold, Duration::ZERO, Some(Start::At(ms(100))));
        assert_eq!(changes(&mut Schedule::new(&at), &at, 9), [(100, 1), (110, 2), (130, 3)]);
        let first = topology(TRACE, End::Hold, Duration::ZERO, Some(Start::FirstPacket));
        let mut schedule = Schedule::new(&first);
        assert_eq!((schedule.next_at(), schedule.waits()), (None, true));
        schedule.packet(ms(7), LinkId(0), &first);
        assert_eq!((changes(&mut schedule, &first, 2), schedule.waits()), (vec![(7, 1), (17, 2)], false));
        // A new start forgets the turn that was to come.
        schedule.start(ms(20), 0, &first);
        assert_eq!(changes(&mut schedule, &first, 9), [(20, 1), (30, 2), (50, 3)]);
    }

    #[test]
    fn at_one_instant_events_come_first_then_what_was_asked_for_then_tracks() {
        let mut topology = topology(TRACE, End::Hold, Duration::ZERO, None);
        let to = |bps| Change { rate: Some(Rate::from_bps(bps)), ..Change::default() };
        let event =
            fastpath_spec::Event { at: ms(10), link: LinkId(0), direction: Direction::Both, change: to(7) };
        topology.events.push(event);
        let mut schedule = Schedule::new(&topology);
        for bps in [5, 6] {
            schedule.ask(ms(10), vec![(LinkId(0), Direction::Both, to(bps))], &topology).unwrap();
        }
        let found = changes(&mut schedule, &topology, 9);
        assert_eq!(found, [(0, 1), (10, 7), (10, 5), (10, 6), (10, 2), (30, 3)]);
    }

    #[test]
    fn no_more_changes_wait_than_there_is_room_for() {
        let topology = topology(TRACE, End::Hold, Duration::ZERO, None);
        let mut schedule = Schedule::new(&topology);
        let mut ask =
            || schedule.ask(ms(1), vec![(LinkId(0), Direction::Both, Change::default())], &topology);
        assert!((0..ASKED_MAX).all(|_| ask().is_ok()));
        assert_eq!(ask(), Err(ScheduleFull));
    }
}
