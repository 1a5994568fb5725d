//! The scoreboard against a slow twin: a list of segments that is looked through whole each time.

use crate::scoreboard::Scoreboard;
use crate::segment::StreamRange;
use fastpath_units::{Duration, Rng, Time};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Standing {
    Out,
    Sacked,
    Lost,
    Again,
}

#[derive(Clone, Debug)]
struct Slow {
    range: StreamRange,
    sent_at: Time,
    fate: Standing,
    is_again: bool,
}

#[derive(Clone, Debug, Default)]
struct SlowBoard {
    all: Vec<Slow>,
    recent: Option<(Time, u64, Duration)>,
}

impl SlowBoard {
    fn in_flight(&self) -> u64 {
        self.all.iter().filter(|segment| matches!(segment.fate, Standing::Out | Standing::Again)).count()
            as u64
    }

    fn acknowledge(&mut self, now: Time, ack: u64, sack: &[StreamRange], rtt_min: Option<Duration>) -> u64 {
        let mut arrived = 0;
        let mut update = |segment: &Slow| {
            arrived += 1;
            let rtt = now.since(segment.sent_at);
            if segment.is_again && rtt_min.is_some_and(|least| rtt < least) {
                return;
            }
            let position = (segment.sent_at, segment.range.1);
            if self.recent.is_none_or(|(at, end, _)| position > (at, end)) {
                self.recent = Some((segment.sent_at, segment.range.1, rtt));
            }
        };
        for segment in
            self.all.iter().filter(|segment| segment.range.1 <= ack && segment.fate != Standing::Sacked)
        {
            update(segment);
        }
        self.all.retain(|segment| segment.range.1 > ack);
        for (from, to) in sack {
            for segment in &mut self.all {
                let is_within = *from <= segment.range.0 && segment.range.1 <= *to;
                if is_within && segment.fate != Standing::Sacked {
                    update(segment);
                    segment.fate = Standing::Sacked;
                }
            }
        }
        arrived
    }

    fn detect(&mut self, now: Time, tolerance: Duration) -> u64 {
        let Some((at, end, rtt)) = self.recent else { return 0 };
        let mut lost = 0;
        for segment in &mut self.all {
            let is_before = (segment.sent_at, segment.range.1) < (at, end);
            let is_due = segment.sent_at + rtt + tolerance <= now;
            if matches!(segment.fate, Standing::Out | Standing::Again) && is_before && is_due {
                segment.fate = Standing::Lost;
                lost += 1;
            }
        }
        lost
    }

    fn next_lost(&self) -> Option<StreamRange> {
        self.all.iter().find(|segment| segment.fate == Standing::Lost).map(|segment| segment.range)
    }
}

#[test]
fn equal_to_a_list_that_is_looked_through() {
    for seed in 0..300 {
        run(seed);
    }
}

/// Sends, acknowledges, loses, times out at random; both boards say the same after each step.
fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut below = |end: u64| (rng.unit_f64() * end as f64) as u64;
    let (mut fast, mut slow) = (Scoreboard::default(), SlowBoard::default());
    let (mut now, mut next, mut una) = (Time::ZERO, 1_u64, 1_u64);
    for step in 0..400 {
        now += Duration::from_us(1 + below(3000));
        match below(10) {
            0..4 => {
                for _ in 0..=below(4) {
                    let range = (next, next + 1 + below(1448));
                    next = range.1;
                    fast.send(range, now);
                    slow.all.push(Slow { range, sent_at: now, fate: Standing::Out, is_again: false });
                }
            }
            4..8 => {
                let starts: Vec<StreamRange> = slow.all.iter().map(|segment| segment.range).collect();
                if starts.is_empty() {
                    continue;
                }
                let is_cumulative = below(3) == 0;
                let mut pick = || starts[below(starts.len() as u64) as usize];
                if is_cumulative {
                    una = pick().1;
                }
                let mut sack = [pick(), pick()].map(|range| (range.0, pick().1)).to_vec();
                sack.retain(|(from, to)| from < to && *from >= una);
                sack.sort_unstable();
                let least = (below(2) == 0).then_some(Duration::from_us(500));
                let acked = fast.acknowledge(now, una, sack.iter().copied(), least);
                assert_eq!(
                    acked.segments,
                    slow.acknowledge(now, una, &sack, least),
                    "seed {seed}, step {step}"
                );
                let tolerance = Duration::from_us(below(4000));
                assert_eq!(
                    fast.detect(now, tolerance).0,
                    slow.detect(now, tolerance),
                    "seed {seed}, step {step}"
                );
            }
            8 => {
                while let Some(range) = fast.next_lost().filter(|_| below(4) > 0) {
                    assert_eq!(slow.next_lost(), Some(range), "seed {seed}, step {step}");
                    fast.send_again(range, now);
                    let again = slow.all.iter_mut().find(|segment| segment.range == range).unwrap();
                    (again.fate, again.sent_at, again.is_again) = (Standing::Again, now, true);
                }
            }
            _ if below(3) == 0 => {
                fast.unmark();
                for segment in slow.all.iter_mut().filter(|segment| segment.fate != Standing::Sacked) {
                    segment.fate = Standing::Out;
                }
            }
            _ => {
                let tolerance = Duration::from_us(below(4000));
                fast.time_out(now, tolerance);
                for (place, segment) in slow.all.iter_mut().enumerate() {
                    let is_recent =
                        slow.recent.is_some_and(|(_, _, rtt)| segment.sent_at + rtt + tolerance > now);
                    if matches!(segment.fate, Standing::Out | Standing::Again) && !(place > 0 && is_recent) {
                        segment.fate = Standing::Lost;
                    }
                }
            }
        }
        assert_eq!(fast.in_flight(), slow.in_flight(), "seed {seed}, step {step}");
        assert_eq!(fast.next_lost(), slow.next_lost(), "seed {seed}, step {step}");
        assert_eq!(fast.outstanding(), slow.all.len() as u64);
    }
}
