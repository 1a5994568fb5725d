//! Two ends over a link of the test: a rate, a delay, a queue, losses, marks, lateness.

use fastpath_tcp::{CongestionControl, Connection, Segment, TcpOptions};
use fastpath_units::{Duration, Rng, Time};
use std::collections::BTreeMap;

/// One direction.
#[derive(Clone, Debug)]
struct Pipe {
    bps: u64,
    delay: Duration,
    /// Segments that may wait.
    limit: usize,
    loss: f64,
    /// The share that arrives later by up to `late_by`.
    late: f64,
    late_by: Duration,
    /// Segments that wait from which on they are marked.
    marks_from: usize,
    free_at: Time,
    waiting: Vec<Time>,
    rng: Rng,
    dropped: u64,
    marked: u64,
    waited_most: usize,
}

impl Pipe {
    fn new(bps: u64, delay_ms: u64, limit: usize, seed: u64) -> Pipe {
        Pipe {
            bps,
            delay: Duration::from_ms(delay_ms),
            limit,
            loss: 0.0,
            late: 0.0,
            late_by: Duration::ZERO,
            marks_from: usize::MAX,
            free_at: Time::ZERO,
            waiting: Vec::new(),
            rng: Rng::new(seed),
            dropped: 0,
            marked: 0,
            waited_most: 0,
        }
    }

    fn send(&mut self, now: Time, mut segment: Segment) -> Option<(Time, Segment)> {
        self.waiting.retain(|leaves| *leaves > now);
        self.waited_most = self.waited_most.max(self.waiting.len());
        if self.waiting.len() >= self.limit || self.rng.unit_f64() < self.loss {
            self.dropped += 1;
            return None;
        }
        if self.waiting.len() >= self.marks_from && segment.ecn == 2 {
            segment.ecn = 3;
            self.marked += 1;
        }
        let bits = (u64::from(segment.len) + 66) * 8;
        self.free_at = self.free_at.max(now) + Duration::from_ps(bits * 1_000_000_000_000 / self.bps);
        self.waiting.push(self.free_at);
        let late = match self.rng.unit_f64() < self.late {
            true => Duration::from_ps((self.rng.unit_f64() * self.late_by.as_ps() as f64) as u64),
            false => Duration::ZERO,
        };
        Some((self.free_at + self.delay + late, segment))
    }
}

/// Runs both ends until `end`. Returns the time at which both were over, or `end`.
fn run(client: &mut Connection, server: &mut Connection, pipes: &mut [Pipe; 2], end: Time) -> Time {
    let mut flying: BTreeMap<(Time, u64), (usize, Segment)> = BTreeMap::new();
    let (mut now, mut count) = (Time::ZERO, 0);
    while now < end && !(client.is_over() && server.is_over()) {
        while let Some(entry) = flying.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, segment) = entry.remove();
            [&mut *client, &mut *server][to].receive(now, &segment);
        }
        for from in 0..2 {
            let own = [&mut *client, &mut *server];
            own[from].advance(now);
            while let Some(segment) = own[from].transmit(now) {
                if let Some((at, segment)) = pipes[from].send(now, segment) {
                    count += 1;
                    flying.insert((at, count), (1 - from, segment));
                }
            }
        }
        let next = [client.next_at(), server.next_at(), flying.keys().next().map(|(at, _)| *at)];
        let Some(next) = next.into_iter().flatten().min() else {
            assert!(client.is_over() && server.is_over(), "nothing happens: {client:?} {server:?}");
            break;
        };
        assert!(next > now || next == now && !flying.is_empty(), "time goes on at {now}");
        now = next;
    }
    now
}

fn ends(congestion: CongestionControl, ecn: bool) -> [Connection; 2] {
    let options = TcpOptions { congestion, ecn, ..TcpOptions::for_mtu(1500, 20) };
    [Connection::client(options), Connection::server(options)]
}

const CONTROLS: [CongestionControl; 2] = [CongestionControl::Cubic, CongestionControl::Reno];

#[test]
fn everything_arrives_whatever_is_lost() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let [mut client, mut server] = ends(CONTROLS[seed as usize % 2], seed % 3 == 0);
        let delay = 1 + (rng.unit_f64() * 80.0) as u64;
        let mut pipes = [0, 1].map(|side| {
            let mut pipe = Pipe::new(5_000_000, delay, 20, seed * 2 + side);
            pipe.loss = [0.0, 0.02, 0.2][(seed % 3) as usize];
            (pipe.late, pipe.late_by) = (0.1, Duration::from_ms(delay));
            pipe
        });
        let (there, back) = ((rng.unit_f64() * 3e5) as u64, (rng.unit_f64() * 1e5) as u64);
        client.write(there);
        client.close();
        server.write(back);
        server.close();
        run(&mut client, &mut server, &mut pipes, Time::ZERO + Duration::from_secs(3600));
        assert!(client.is_over() && server.is_over(), "seed {seed}: {client:?} {server:?}");
        assert_eq!((server.received(), client.received()), (there, back), "seed {seed}");
        assert_eq!((client.acknowledged(), server.acknowledged()), (there, back), "seed {seed}");
    }
}

#[test]
fn a_link_is_filled() {
    for congestion in CONTROLS {
        let [mut client, mut server] = ends(congestion, false);
        // 10 Mbit/s, 40 ms: a queue of one product of rate and round trip, 34 segments.
        let mut pipes = [Pipe::new(10_000_000, 20, 34, 1), Pipe::new(10_000_000, 20, 1000, 2)];
        client.write(u64::from(u32::MAX));
        let end = Time::ZERO + Duration::from_secs(60);
        run(&mut client, &mut server, &mut pipes, end);
        let goodput = server.received() as f64 * 8.0 / 60.0;
        let most = 10e6 * 1448.0 / 1514.0;
        assert!(goodput > 0.97 * most && goodput <= most, "{congestion:?}: {goodput}");
        let counts = client.counts();
        // What was lost last may not be known to be.
        let known = pipes[0].dropped - counts.retransmitted;
        assert!(known <= 1, "{congestion:?}: what is lost is sent again once: {counts:?}");
        assert_eq!(counts.timeouts, 0, "{congestion:?}");
    }
}

#[test]
fn a_lone_loss_costs_one_recovery_and_a_lost_tail_one_probe() {
    let [mut client, mut server] = ends(CongestionControl::Reno, false);
    let mut pipes = [Pipe::new(100_000_000, 20, 1000, 1), Pipe::new(100_000_000, 20, 1000, 2)];
    client.write(1448 * 9);
    client.close();
    server.close();
    // The last of the first flight is lost: 9 segments of data and a FIN, of which 8 arrive.
    let mut sent = 0;
    let mut flying: Vec<(Time, usize, Segment)> = Vec::new();
    let mut now = Time::ZERO;
    while !(client.is_over() && server.is_over()) {
        let due: Vec<_> = flying.extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, to, segment) in due {
            [&mut client, &mut server][to].receive(now, &segment);
        }
        for from in 0..2 {
            let own = [&mut client, &mut server];
            own[from].advance(now);
            while let Some(segment) = own[from].transmit(now) {
                sent += u32::from(from == 0 && segment.len > 0);
                if from == 0 && sent == 9 && (segment.fin || segment.len > 0) {
                    sent += u32::from(segment.fin);
                    continue;
                }
                let (at, segment) = pipes[from].send(now, segment).unwrap();
                flying.push((at, 1 - from, segment));
            }
        }
        let flights = flying.iter().map(|(at, ..)| *at);
        let next = flights.chain(client.next_at()).chain(server.next_at()).min();
        now = next.map_or(now, |next| next.max(now));
    }
    assert_eq!(server.received(), 1448 * 9);
    assert_eq!((client.counts().timeouts, client.counts().probes), (0, 1));
    assert!(now < Time::ZERO + Duration::from_ms(300), "{now}");
}

#[test]
fn late_segments_are_not_lost_ones() {
    let [mut client, mut server] = ends(CongestionControl::Cubic, false);
    let mut pipes = [Pipe::new(10_000_000, 20, 1000, 3), Pipe::new(10_000_000, 20, 1000, 4)];
    // Late by less than a quarter of the round trip.
    (pipes[0].late, pipes[0].late_by) = (0.05, Duration::from_ms(8));
    client.write(5_000_000);
    client.close();
    server.close();
    run(&mut client, &mut server, &mut pipes, Time::ZERO + Duration::from_secs(60));
    assert_eq!(server.received(), 5_000_000);
    let counts = client.counts();
    // The first ones teach it.
    assert!(counts.retransmitted < counts.segments / 200, "{counts:?}");
}

#[test]
fn marks_take_the_place_of_losses() {
    for congestion in CONTROLS {
        let [mut client, mut server] = ends(congestion, true);
        let mut pipes = [Pipe::new(10_000_000, 20, 1000, 5), Pipe::new(10_000_000, 20, 1000, 6)];
        pipes[0].marks_from = 30;
        client.write(20_000_000);
        client.close();
        server.close();
        run(&mut client, &mut server, &mut pipes, Time::ZERO + Duration::from_secs(60));
        assert_eq!(server.received(), 20_000_000);
        let counts = client.counts();
        assert_eq!((counts.retransmitted, pipes[0].dropped), (0, 0), "{congestion:?}");
        assert!(counts.marked > 3 && pipes[0].marked >= counts.marked, "{congestion:?}: {counts:?}");
        assert!(pipes[0].waited_most < 120, "{congestion:?}: {}", pipes[0].waited_most);
    }
    // Without it nothing is marked.
    let [mut client, mut server] = ends(CongestionControl::Cubic, false);
    let mut pipes = [Pipe::new(10_000_000, 20, 1000, 5), Pipe::new(10_000_000, 20, 1000, 6)];
    pipes[0].marks_from = 0;
    client.write(1_000_000);
    client.close();
    server.close();
    run(&mut client, &mut server, &mut pipes, Time::ZERO + Duration::from_secs(60));
    assert_eq!((server.received(), pipes[0].marked), (1_000_000, 0));
}

#[test]
fn a_dead_link_is_asked_less_and_less_often() {
    let [mut client, mut server] = ends(CongestionControl::Cubic, false);
    let mut pipes = [Pipe::new(10_000_000, 20, 1000, 7), Pipe::new(10_000_000, 20, 1000, 8)];
    pipes[0].loss = 1.0;
    client.write(1000);
    let end = Time::ZERO + Duration::from_secs(100);
    run(&mut client, &mut server, &mut pipes, end);
    // After 1, 3, 7, 15, 31, 63 s; after 127 s it gives up.
    assert_eq!((client.counts().timeouts, server.received()), (6, 0));
    client.advance(Time::ZERO + Duration::from_secs(127));
    assert_eq!((client.next_at(), client.transmit(end)), (None, None));
}
