//! A network and its parts deliver the same frames at the same times, whatever the parts are. Here
//! the parts run one after another, window by window; `fastpath` runs them side by side.
//!
//! `FASTPATH_CUT_CASES=10000` tries more networks.

mod random;

use fastpath_net::{Crossings, EdgeId, FrameAccounting, Network, Options, PartClock, Partition, Windows};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::{Duration, Rng, Time};
use std::collections::VecDeque;
use std::num::NonZeroUsize;

type Sent = [(Time, EdgeId, Vec<u8>)];
/// What arrived at each edge, in order, and the accounting.
type Outcome = (Vec<Vec<(Time, Vec<u8>)>>, FrameAccounting);

const OPTIONS: Options = Options::with_seed(7);
/// Traces that repeat have no end, so runs have one.
const END: Time = Time::from_ps(10_000_000_000_000);

fn cases() -> u64 {
    std::env::var("FASTPATH_CUT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

fn pop_until(network: &mut Network, until: Time, arrived: &mut [Vec<(Time, Vec<u8>)>]) {
    while let Some(delivery) = network.pop(until) {
        let bytes = network.pool().bytes(&delivery.frame).to_vec();
        arrived[delivery.edge.0 as usize].push((delivery.at, bytes));
        network.pool_mut().free(delivery.frame);
    }
}

fn push(network: &mut Network, (at, edge, bytes): &(Time, EdgeId, Vec<u8>)) {
    let frame = network.pool_mut().insert(bytes).expect("the pool is not full");
    network.push(*at, *edge, frame);
}

fn whole(topology: &Topology, sent: &Sent) -> Outcome {
    let mut network = Network::new(topology.clone(), OPTIONS);
    let mut arrived = vec![Vec::new(); network.edges().len()];
    for frame in sent {
        pop_until(&mut network, frame.0, &mut arrived);
        push(&mut network, frame);
    }
    pop_until(&mut network, END, &mut arrived);
    (arrived, network.accounting())
}

fn parts(topology: &Topology, partition: &Partition) -> Vec<Network> {
    let part = |part| {
        let mut network = Network::new(topology.clone(), OPTIONS);
        network.cut(partition, part);
        network
    };
    (0..partition.count()).map(part).collect()
}

fn in_parts(topology: &Topology, partition: &Partition, sent: &Sent) -> Outcome {
    let count = partition.count();
    let mut networks = parts(topology, partition);
    let mut arrived = vec![Vec::new(); networks[0].edges().len()];
    let edges: Vec<_> = networks[0].edges().collect();
    let part = |edge: EdgeId| partition.part_of(edges[edge.0 as usize].node);
    let mut inputs: Vec<std::vec::IntoIter<(Time, EdgeId, Vec<u8>)>> = (0..count)
        .map(|of| sent.iter().filter(|frame| part(frame.1) == of).cloned().collect::<Vec<_>>().into_iter())
        .collect();
    let windows = Windows::new(partition);
    loop {
        let clock = |part: usize| {
            let input = inputs[part].as_slice().first().map(|frame| frame.0);
            let next = [networks[part].next_at(), input].into_iter().flatten().min();
            let awaited = (0..count).filter_map(|from| networks[from].next_crossing(part)).min();
            PartClock { next: next.filter(|at| *at <= END), awaited: awaited.filter(|at| *at <= END) }
        };
        let clocks: Vec<PartClock> = (0..count).map(clock).collect();
        let Some((_, ends)) = windows.ends(&clocks) else { break };
        for (part, network) in networks.iter_mut().enumerate() {
            let end = ends[part].min(END + Duration::from_ps(1));
            while inputs[part].as_slice().first().is_some_and(|frame| frame.0 < end) {
                let frame = inputs[part].next().expect("it is the first");
                pop_until(network, frame.0, &mut arrived);
                push(network, &frame);
            }
            pop_until(network, end.saturating_sub(Duration::from_ps(1)), &mut arrived);
            network.end_window(end);
        }
        for from in 0..count {
            for to in 0..count {
                let mut crossings = Crossings::default();
                networks[from].take_crossings(to, &mut crossings);
                let now = ends[to];
                networks[to].receive(&mut crossings).unwrap_or_else(|error| {
                    panic!("{error}: {clocks:?} {ends:?} to {to} {now} {partition:?}")
                });
            }
        }
    }
    let mut accounting = FrameAccounting::default();
    for network in &networks {
        network.check_order().unwrap_or_else(|error| panic!("{error}"));
        accounting.add(network.accounting());
    }
    (arrived, accounting)
}

/// As workers run parts in real time: each looks at its part a while after something is due, and
/// passes frames on when that is decided. None is late, because the lags are shorter than the
/// lookaheads.
fn by_the_clock(topology: &Topology, partition: &Partition, sent: &Sent, rng: &mut Rng) -> Outcome {
    let count = partition.count();
    let mut networks = parts(topology, partition);
    let mut arrived = vec![Vec::new(); networks[0].edges().len()];
    let edges: Vec<_> = networks[0].edges().collect();
    let part = |edge: EdgeId| partition.part_of(edges[edge.0 as usize].node);
    let mut inputs: Vec<VecDeque<(Time, EdgeId, Vec<u8>)>> =
        (0..count).map(|of| sent.iter().filter(|frame| part(frame.1) == of).cloned().collect()).collect();
    let mut mail: Vec<Crossings> = (0..count * count).map(|_| Crossings::default()).collect();
    let lag_max = partition.lookahead_min().map_or(1, |lookahead| lookahead.as_ps() / 64);
    let mut now = Time::ZERO;
    loop {
        let next = |part: usize| {
            let network = &networks[part];
            let input = inputs[part].front().map(|frame| frame.0);
            [network.next_at(), network.next_handover(), input].into_iter().flatten().min()
        };
        let has_mail =
            mail.iter().any(|crossings| !crossings.is_empty()) || networks.iter().any(Network::has_crossings);
        let next = (0..count).filter_map(next).chain(has_mail.then_some(now)).min();
        let Some(next) = next.filter(|at| *at <= END) else { break };
        now = now.max(next).saturating_add(Duration::from_ps(rng.below(lag_max + 1))).min(END);
        for (part, network) in networks.iter_mut().enumerate() {
            for from in 0..count {
                network.receive_any(&mut mail[from * count + part], Some, |pipe, due, now| {
                    assert!(due >= now, "{pipe:?} is late: {due} {now}");
                    true
                });
            }
            while let Some(frame) = inputs[part].pop_front_if(|frame| frame.0 <= now) {
                pop_until(network, frame.0, &mut arrived);
                push(network, &frame);
            }
            pop_until(network, now, &mut arrived);
            network.hand_over(now);
            // A worker whose mailbox is in use comes back later.
            for to in (0..count).filter(|_| rng.below(4) > 0 || now == END) {
                mail[part * count + to].append(network.crossings_mut(to));
            }
        }
        if now == END && !networks.iter().any(Network::has_crossings) {
            break;
        }
    }
    let mut accounting = FrameAccounting::default();
    let (mut passed_on, mut received) = (0, 0);
    for network in &mut networks {
        network.check_order().unwrap_or_else(|error| panic!("{error}"));
        accounting.add(network.accounting());
        let [own_passed_on, own_received] = network.crossed();
        (passed_on, received) = (passed_on + own_passed_on, received + own_received);
    }
    accounting.held += passed_on - received;
    (arrived, accounting)
}

fn has_nat(topology: &Topology) -> bool {
    topology.nodes.iter().any(|node| matches!(node.kind, NodeKind::Nat { .. }))
}

#[test]
fn parts_have_the_results_of_the_whole() {
    let (mut cut, mut delivered, mut with_nat, mut invalid) = (0, 0, 0, 0);
    for seed in 0..cases() {
        let text = random::network(seed);
        let (topology, _) = match fastpath_spec::parse(&text) {
            Ok(parsed) => parsed,
            Err(mistakes) => {
                println!("seed {seed}: {}", mistakes[0]);
                invalid += 1;
                continue;
            }
        };
        let sent = random::frames(&topology, seed);
        let expected = whole(&topology, &sent);
        assert!(expected.1.balances(), "{:?}", expected.1);
        delivered += expected.1.delivered;
        for count in [2, 3, 8].map(|count| NonZeroUsize::new(count).expect("above 0")) {
            for partition in [Partition::new(&topology, count), Partition::random(&topology, count, seed)] {
                let got = in_parts(&topology, &partition, &sent);
                let parts = partition.count();
                assert_eq!(got.1, expected.1, "seed {seed}, {parts} parts {partition:?}\n{text}");
                for (edge, (got, expected)) in got.0.iter().zip(&expected.0).enumerate() {
                    let place = got.iter().zip(expected).position(|(got, expected)| got != expected);
                    assert_eq!(
                        (place, got.len()),
                        (None, expected.len()),
                        "seed {seed}, edge {edge}\n{text}"
                    );
                }
                cut += usize::from(parts > 1);
                with_nat += usize::from(parts > 1 && has_nat(&topology));
            }
        }
    }
    // The tests are about something.
    assert!(invalid < cases() / 4, "{invalid} descriptions have mistakes");
    let runs = (cases() - invalid) as usize * 6;
    assert!(
        cut > runs / 2 && with_nat > runs / 8,
        "{cut} of {runs} networks were cut, {with_nat} with a NAT"
    );
    assert!(delivered > 30 * cases(), "{delivered} frames arrived");
}

#[test]
fn parts_that_run_by_the_clock_have_the_results_of_the_whole() {
    let (mut cut, mut delivered) = (0, 0);
    for seed in 0..cases() {
        let Ok((topology, _)) = fastpath_spec::parse(&random::network(seed)) else { continue };
        let sent = random::frames(&topology, seed);
        let mut rng = Rng::new(seed);
        let count = NonZeroUsize::new(2 + rng.below(3) as usize).expect("above 0");
        let partition = Partition::with_lookahead(&topology, count, Duration::from_us(10));
        if partition.count() == 1 {
            continue;
        }
        let (expected, got) = (whole(&topology, &sent), by_the_clock(&topology, &partition, &sent, &mut rng));
        assert_eq!(got.1, expected.1, "seed {seed} {partition:?}");
        assert_eq!(got.0, expected.0, "seed {seed} {partition:?}");
        (cut, delivered) = (cut + 1, delivered + got.1.delivered);
    }
    assert!(
        cut > cases() / 4 && delivered > 10 * cases(),
        "{cut} networks were cut, {delivered} frames arrived"
    );
}
