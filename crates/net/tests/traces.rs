//! Compares traces in a spec with independent models: a loop over single opportunities, and exact
//! fractions.

use fastpath_net::{Network, Options};
use fastpath_spec as spec;
use fastpath_spec::Topology;
use fastpath_units::{Duration, Rng, Time};
use std::collections::VecDeque;

const FRAME: usize = 1514;

fn topology(text: &str, files: &[(&str, &str)]) -> Topology {
    let find = |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
    };
    spec::read(text, &find).unwrap_or_else(|mistakes| panic!("{}", mistakes[0])).0.topology
}

fn network(topology: Topology) -> Network {
    Network::new(topology, Options::with_seed(5))
}

/// Sends frames with these times (in picoseconds) and lengths from the first host. Returns the
/// number of the frame and the time of each delivery at the second host until `end`.
fn run(network: &mut Network, arrivals: &[(u64, usize)], end: u64) -> Vec<(u32, u64)> {
    let mut delivered = Vec::new();
    let edge = network.edge_of(fastpath_spec::NodeId(0), 0).unwrap();
    let drain = |network: &mut Network, until: u64, delivered: &mut Vec<(u32, u64)>| {
        while let Some(delivery) = network.pop(Time::from_ps(until)) {
            let bytes = network.pool().bytes(&delivery.frame);
            let number = u32::from_be_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
            delivered.push((number, delivery.at.as_ps()));
            network.pool_mut().free(delivery.frame);
        }
    };
    for (number, &(at, len)) in arrivals.iter().enumerate() {
        drain(network, at, &mut delivered);
        let mut frame = network.pool_mut().alloc(len).unwrap();
        let bytes = network.pool_mut().bytes_mut(&mut frame);
        bytes.fill(0);
        // Broadcast, with the EtherType for local experiments (IEEE 802, 88b5).
        bytes[..6].fill(0xff);
        bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
        bytes[len - 4..].copy_from_slice(&(number as u32).to_be_bytes());
        network.push(Time::from_ps(at), edge, frame);
    }
    drain(network, end, &mut delivered);
    delivered
}

const LINK: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\nqueue = \"unlimited\"\n";
const MS: u64 = 1_000_000_000;

/// The largest queue of the model of mm-link.
#[derive(Clone, Copy)]
enum Most {
    /// Packets, with the one in transmission.
    Packets(usize),
    /// Packets that wait, as `--uplink-queue-args=packets=N`.
    Waiting(usize),
    /// Bytes that wait, as `--uplink-queue-args=bytes=N`.
    WaitingBytes(usize),
}

/// mm-link according to its documentation: a loop over the opportunities, 1504 bytes each.
fn mahimahi(trace: &[u64], arrivals: &[(u64, usize)], limit: Most, end: u64) -> Vec<(u32, u64)> {
    let (mut waiting, mut left) = (VecDeque::new(), 0usize);
    let mut coming: VecDeque<(u32, u64, usize)> =
        arrivals.iter().enumerate().map(|(number, &(at, len))| (number as u32, at, len)).collect();
    let mut delivered = Vec::new();
    for round in 0.. {
        let start = round * trace[trace.len() - 1] * MS;
        for time in trace {
            let now = start + time * MS;
            if now > end {
                return delivered;
            }
            while coming.front().is_some_and(|&(_, at, _)| at < now) {
                let (number, _, len) = coming.pop_front().unwrap();
                // The first of the list is in transmission if some of its bytes are sent.
                let held = waiting.iter().skip(usize::from(left > 0));
                let bytes: usize = held.clone().map(|&(_, len)| len).sum();
                let has_room = match limit {
                    Most::Packets(most) => waiting.len() < most,
                    Most::Waiting(most) => held.count() < most,
                    Most::WaitingBytes(most) => bytes + len - 10 <= most,
                };
                if has_room {
                    // Mahimahi counts no Ethernet header (14 bytes), but 4 bytes of its tunnel.
                    waiting.push_back((number, len - 14 + 4));
                }
            }
            let mut bytes = 1504;
            while bytes > 0 {
                let Some(&(number, len)) = waiting.front() else { break };
                if left == 0 {
                    left = len;
                }
                let sent = left.min(bytes);
                (left, bytes) = (left - sent, bytes - sent);
                if left == 0 {
                    waiting.pop_front();
                    delivered.push((number, now));
                }
            }
        }
    }
    unreachable!("the trace repeats for ever")
}

fn arrivals(seed: u64, count: usize, gap: u64) -> Vec<(u64, usize)> {
    let mut rng = Rng::new(seed);
    let mut at = 0;
    (0..count)
        .map(|_| {
            at += 1 + rng.below(gap);
            (at, 60 + rng.below(FRAME as u64 - 59) as usize)
        })
        .collect()
}

#[test]
fn opportunities_of_mahimahi_deliver_as_its_documentation_describes() {
    let mut rng = Rng::new(3);
    for seed in 0..20 {
        let mut time = 0;
        let trace: Vec<u64> = (0..50)
            .map(|_| {
                time += rng.below(4);
                time
            })
            .chain([400])
            .collect();
        let text: String = trace.iter().map(|ms| format!("{ms}\n")).collect();
        let arrivals = arrivals(seed, 3000, 3 * MS / 2);
        let end = 5000 * MS;
        for (queue, limit) in [
            ("\"20p\"", Most::Packets(20)),
            ("{ kind = \"mahimahi\", packets = 20 }", Most::Waiting(20)),
            ("{ kind = \"mahimahi\", bytes = 9000 }", Most::WaitingBytes(9000)),
        ] {
            let spec = LINK.replace("\"unlimited\"", queue) + "trace = \"cell.up\"\n";
            let mut network = network(topology(&spec, &[("cell.up", &text)]));
            let expected = mahimahi(&trace, &arrivals, limit, end);
            assert_eq!(run(&mut network, &arrivals, end), expected, "seed {seed}, {queue}");
        }
    }
}

/// Returns the bits × 10¹² sent between two times by rates, each of which starts at a picosecond.
fn capacity(rates: &[(u64, u64)], from: u64, to: u64) -> u128 {
    let ends = rates.iter().skip(1).map(|(at, _)| *at).chain([u64::MAX]);
    let sent = |(&(at, rate), end): (&(u64, u64), u64)| {
        u128::from(end.min(to).saturating_sub(at.max(from))) * u128::from(rate)
    };
    rates.iter().zip(ends).map(sent).sum()
}

/// Returns when frames leave a link with a varying rate: the time at which all bits since the last
/// idle period are sent, rounded down.
fn piecewise(rates: &[(u64, u64)], arrivals: &[(u64, usize)]) -> Vec<(u32, u64)> {
    let (mut busy_since, mut picobits) = (0, 0);
    let leave = |(number, &(arrival, len)): (usize, &(u64, usize))| {
        if capacity(rates, busy_since, arrival) >= picobits {
            (busy_since, picobits) = (arrival, 0);
        }
        picobits += 8_000_000_000_000 * len as u128;
        // The interval in which the last bit is sent.
        let piece = (0..rates.len()).rev().find(|&piece| {
            let from = rates[piece].0.max(busy_since);
            rates[piece].1 > 0 && capacity(rates, busy_since, from) < picobits
        });
        let (from, rate) = rates[piece.unwrap()];
        let from = from.max(busy_since);
        let left = picobits - capacity(rates, busy_since, from);
        (number as u32, from + u64::try_from(left / u128::from(rate)).unwrap())
    };
    arrivals.iter().enumerate().map(leave).collect()
}

#[test]
fn departures_are_exact_if_the_rate_changes_during_a_frame() {
    for seed in 0..20 {
        let mut rng = Rng::new(100 + seed);
        let mut at_us = 0;
        let mut rates = Vec::new();
        let mut text = "time_us,rate_bps\n".to_owned();
        for _ in 0..300 {
            // One of six rates is 0, a paused link.
            let rate = [7_000_000, 9_000_000, 10_000_000, 1_000_000, 0, 8_000_000][rng.below(6) as usize];
            rates.push((at_us * 1_000_000, rate));
            text += &format!("{at_us},{rate}\n");
            at_us += 1 + rng.below(2000);
        }
        rates.push((at_us * 1_000_000, 1_000_000));
        text += &format!("{at_us},1000000\n");
        let spec = LINK.to_owned() + "trace = { file = \"rate.csv\", end = \"hold\" }\n";
        let mut network = network(topology(&spec, &[("rate.csv", &text)]));
        let arrivals = arrivals(seed, 300, 2 * MS);
        let found = run(&mut network, &arrivals, u64::MAX / 2);
        assert_eq!(found, piecewise(&rates, &arrivals), "seed {seed}");
    }
}

#[test]
fn delays_and_losses_follow_their_trace_to_the_microsecond() {
    let text = "time_us,delay_us,loss_%\n0,5,0\n1,3,100\n2,9,0\n3\n";
    let spec = LINK.to_owned() + "trace = \"a.csv\"\n";
    let mut network = network(topology(&spec, &[("a.csv", text)]));
    let us = 1_000_000;
    // In the first, second and third microsecond of each period. A change precedes the frames of
    // its instant.
    let arrivals: Vec<_> =
        [0, us - 1, us, 2 * us - 1, 2 * us, 3 * us - 1, 3 * us].map(|at| (at, 60)).to_vec();
    let found = run(&mut network, &arrivals, MS);
    // 9 µs later, but not before the preceding frame.
    let expected = [(0, 5 * us), (1, 6 * us - 1), (4, 11 * us), (5, 12 * us - 1), (6, 12 * us - 1)];
    assert_eq!(found, expected);
}

#[test]
fn links_of_a_group_start_together_with_the_first_packet_of_any() {
    let spec = "[host.a]\n[host.b]\n[host.c]\n[switch.s]\n[group.cell]\nstart = \"first-packet\"\n\
                [[link]]\nbetween = [\"a\", \"s\"]\ngroup = \"cell\"\ntrace = \"t.csv\"\n\
                [[link]]\nbetween = [\"b\", \"s\"]\ngroup = \"cell\"\ntrace = \"t.csv\"\n\
                [[link]]\nbetween = [\"c\", \"s\"]\n";
    let text = "duration_ms,delay_ms\n10,1\n10,2\n";
    let mut network = network(topology(spec, &[("t.csv", text)]));
    let delay = |network: &Network, link: u32| network.pipe(fastpath_spec::LinkId(link), 0).spec().delay;
    let ms = Duration::from_ms;
    assert_eq!(network.next_at(), None);
    let at = |ms: u64| Time::from_ps(ms * MS);
    assert_eq!(run(&mut network, &[(100 * MS, 60)], 100 * MS), []);
    assert_eq!((delay(&network, 0), delay(&network, 1)), (ms(1), ms(1)));
    network.advance(at(111));
    assert_eq!((delay(&network, 0), delay(&network, 1), delay(&network, 2)), (ms(2), ms(2), ms(0)));
    network.start_or_stop_group(at(115), 0, fastpath_spec::TraceAction::Start);
    assert_eq!((delay(&network, 0), delay(&network, 1)), (ms(1), ms(1)));
    network.advance(at(124));
    assert_eq!(delay(&network, 0), ms(1));
    network.advance(at(125));
    assert_eq!(delay(&network, 0), ms(2));
}

#[test]
fn the_slow_pantheon_path_loses_behind_its_queue() {
    let text = include_str!("../../../examples/pantheon-0.57mbit.toml");
    let mut network = network(topology(text, &[]));
    let length = network.topology().tracks[0].timeline.length().as_ps();
    // The queue is always full: each opportunity carries one packet of 1500 bytes.
    let arrivals: Vec<_> = (0..length / (10 * MS)).map(|i| (1 + 10 * i * MS, FRAME)).collect();
    let found = run(&mut network, &arrivals, length + 28 * MS);
    let timeline = |track: usize| network.topology().tracks[track].timeline.clone();
    let fastpath_spec::trace::Timeline::Opportunities(opportunities) = timeline(0) else {
        panic!("the example has opportunities");
    };
    assert_eq!(timeline(0), timeline(1), "both directions have the trace");
    // mm-link, then mm-loss, then mm-delay: a packet is at 28 ms after an opportunity.
    let times: Vec<u64> = opportunities.times().iter().map(|time| time.as_ps() + 28 * MS).collect();
    assert!(found.iter().all(|(_, at)| times.binary_search(at).is_ok()));
    // 4.77 % of what the link has sent is lost: within the binomial 99.9 % interval.
    let (n, lost) = (times.len() as f64, (times.len() - found.len()) as f64);
    assert!((lost - 0.0477 * n).abs() < 3.29 * (n * 0.0477 * 0.9523).sqrt(), "{lost} of {n}");
    // TCP carries 1448 bytes in a packet that counts 1504.
    let goodput = found.len() as f64 * 1448.0 * 8.0 / (length as f64 / 1e6);
    assert!((goodput - 0.523).abs() < 0.02, "{goodput} Mbit/s");
    // 14 packets wait, whatever is in transmission.
    let mut network = self::network(topology(text, &[]));
    let together = run(&mut network, &[(0, FRAME); 40], length);
    let queue = network.pipe(fastpath_spec::LinkId(0), 0).counters();
    assert_eq!(queue.dropped_for(fastpath_link::DropReason::QueueFull), 40 - 14);
    assert!(together.len() <= 14);
}

#[test]
fn the_fast_pantheon_path_delivers_at_its_rate_with_a_full_queue() {
    let text = include_str!("../../../examples/pantheon-100mbit.toml");
    let mut network = network(topology(text, &[]));
    // Of 400 frames at one instant one is sent and 173 wait. The k-th leaves after k · 1504 · 8
    // bits at 100.42 Mbit/s.
    let found = run(&mut network, &[(0, FRAME); 400], MS * 1000);
    let exact = |k: u64| (u128::from(k) * 1504 * 8 * 1_000_000_000_000 / 100_420_000) as u64 + 27 * MS;
    let expected: Vec<_> = (0..174).map(|k| (k as u32, exact(k + 1))).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_cellular_example_delivers_according_to_its_traces() {
    let [spec, up, down] = [
        include_str!("../../../examples/cellular.toml"),
        include_str!("../../../examples/cellular-up.trace"),
        include_str!("../../../examples/cellular-down.csv"),
    ];
    let files = [("cellular-up.trace", up), ("cellular-down.csv", down)];
    // More traffic than either direction carries, so the queue is always full. The first frame
    // starts both traces.
    let arrivals: Vec<_> = (0..25 * 4 * 1000).map(|i| (i * MS / 4, FRAME)).collect();

    // Uplink: each line is an opportunity for one frame, which arrives 30 ms later. The first frame
    // arrives at the instant at which the trace starts.
    let mut network = network(topology(spec, &files));
    let found = run(&mut network, &arrivals, 25_000 * MS + 30 * MS);
    let lines: Vec<u64> = up.lines().map(|line| line.parse().unwrap()).collect();
    let round = lines[lines.len() - 1];
    let by = |ms: u64| {
        ms / round * lines.len() as u64 + lines.iter().filter(|at| **at <= ms % round).count() as u64
    };
    assert_eq!(found.len() as u64, by(25_000), "opportunities in 25 s");
    for ms in [100, 5_000, 9_999, 10_000, 10_001, 20_003] {
        let arrived = found.iter().filter(|(_, at)| *at <= (ms + 30) * MS).count() as u64;
        assert_eq!(arrived, by(ms), "opportunities in {ms} ms");
    }

    // Downlink: frames of 12112 bits at rates that change every 100 ms. Bits are counted in units
    // of 10⁻² Mbit/s × ms.
    let turned = spec.replace("phone_to_server = ", "x = ").replace("server_to_phone", "phone_to_server");
    let turned = turned.replace("x = { delay", "server_to_phone = { delay");
    let mut network = self::network(topology(&turned, &files));
    let found = run(&mut network, &arrivals, 25_000 * MS);
    let steps: Vec<(u64, u64, u64)> = down
        .lines()
        .skip(1)
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .filter_map(|line| {
            let mut cells = line.split(',');
            let time = cells.next()?.parse().ok()?;
            let rate = (cells.next()?.parse::<f64>().ok()? * 100.0).round() as u64;
            Some((time, rate, cells.next()?.parse().ok()?))
        })
        .collect();
    let mut expected = Vec::new();
    // A hundredth of a Mbit/s for one ms is ten bits. The k-th frame leaves when k · 12112 bits are
    // sent.
    let (mut sent, mut last) = (0u128, 0u64);
    for pair in steps.windows(2) {
        let (from, rate, delay) = pair[0];
        let length = u128::from(pair[1].0 - from) * u128::from(MS);
        let until = sent + u128::from(rate) * 10_000 * length;
        loop {
            let need = (expected.len() as u128 + 1) * 12_112 * 1_000_000_000_000;
            if rate == 0 || need > until {
                break;
            }
            let into = (need - sent) / (u128::from(rate) * 10_000);
            let left = u128::from(from) * u128::from(MS) + into;
            last = last.max(left as u64 + delay * MS);
            expected.push(last);
        }
        sent = until;
    }
    expected.retain(|at| *at <= 25_000 * MS);
    let times: Vec<u64> = found.iter().map(|(_, at)| *at).collect();
    for (k, (got, exact)) in times.iter().zip(&expected).enumerate() {
        assert!(got.abs_diff(*exact) <= 1, "frame {k}: {got}, expected {exact}");
    }
    assert_eq!(times.len(), expected.len());
}
