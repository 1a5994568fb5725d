//! Transfers over QUIC through a pipe of the test: times of the handshake, losses, copies and
//! reordering, flipped bits, addresses that change, seeds, and what is left when all is over.

use fastpath_quic::QuicTransfer;
use fastpath_traffic::{
    CongestionControl, FIRST_PORT, FrameWay, QUIC_DATAGRAM_MIN, TransferEnds, TransferModel,
    TransferProtocol, TransferReport, TransferSide, Workload,
};
use fastpath_units::{Bytes, Duration, Rng, Time};
use fastpath_wire::build::Ip;
use fastpath_wire::{Headers, MacAddr};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const MTU: u32 = 1500;

/// What happens to a frame: copies with delays, and whether a bit of them flips.
type Fate<'f> = dyn FnMut(TransferSide, usize, &mut Vec<u8>) -> Vec<Duration> + 'f;

/// A run to its end.
struct Run {
    transfer: QuicTransfer,
    report: TransferReport,
    end: Time,
    /// Time, side and bytes of all frames that were sent.
    sent: Vec<(Time, TransferSide, usize)>,
}

fn address(last: u8, is_v6: bool) -> IpAddr {
    if is_v6 { format!("2001:db8::{last}") } else { format!("10.0.0.{last}") }.parse().unwrap()
}

fn bulk(size: u64) -> TransferModel {
    TransferModel {
        protocol: TransferProtocol::Quic,
        flows: 1,
        workload: Workload::Bulk(Some(Bytes(size))),
        congestion: CongestionControl::Cubic,
        ecn: false,
    }
}

#[expect(clippy::disallowed_methods, reason = "instants have no other beginning")]
fn anchor() -> Instant {
    Instant::now()
}

fn way(from: IpAddr, to: IpAddr, door: u32) -> FrameWay {
    FrameWay { ip: Ip::between((MAC, from), (MAC, to)), door }
}

/// Runs a transfer through `fate` until nothing more happens, or until `stop`.
fn run(model: &TransferModel, seed: u64, is_v6: bool, stop: Time, fate: &mut Fate<'_>) -> Run {
    let ways = (way(address(1, is_v6), address(2, is_v6), 0), 5001, MTU);
    let times = (Time::from_ps(7), stop);
    let mut transfer = QuicTransfer::new(model, ways, times, &mut Rng::new(seed), anchor());
    let (mut travelling, mut sent, mut now) = (BTreeMap::new(), Vec::new(), Time::ZERO);
    let mut count = 0;
    loop {
        transfer.advance(now);
        while let Some((door, len)) = transfer.transmit(now) {
            let side = if door == 0 { TransferSide::From } else { TransferSide::To };
            let mut frame = transfer.written(len).to_vec();
            sent.push((now, side, len));
            for delay in fate(side, sent.len(), &mut frame) {
                travelling.insert((now + delay, count), (side, frame.clone()));
                count += 1;
            }
        }
        let wish = transfer.next_at();
        let arrival = travelling.first_key_value().map(|((at, _), _)| *at);
        let Some(next) = wish.into_iter().chain(arrival).min() else { break };
        now = now.max(next);
        while let Some(entry) = travelling.first_entry().filter(|entry| entry.key().0 <= now) {
            let (side, frame) = entry.remove();
            let to = if side == TransferSide::From { TransferSide::To } else { TransferSide::From };
            transfer.deliver(now, to, &frame, &mut |own, to| Some(way(own, to, 1)));
        }
    }
    let ends = TransferEnds { name: "t", from: "a", to: "b" };
    let report = transfer.report(model, ends, now);
    Run { transfer, report, end: now, sent }
}

/// Runs a transfer over a way of 20 ms each.
fn plain(model: &TransferModel, seed: u64) -> Run {
    run(model, seed, false, Time::MAX, &mut |_, _, _| vec![Duration::from_ms(20)])
}

#[test]
fn a_handshake_takes_one_round_trip_and_short_data_half_of_one_more() {
    let run = plain(&bulk(5000), 1);
    assert!(run.report.complete && run.report.received_bytes == 5000, "{}", run.report);
    assert!((run.report.received_s - 0.06).abs() < 1e-6, "{}", run.report);
    assert_eq!((run.report.retransmitted, run.report.timeouts, run.report.marked), (0, None, Some(0)));
    assert!((run.report.rtt_min_ms.unwrap() - 40.0).abs() < 1e-5, "{}", run.report);
    // Ethernet, IPv4 and UDP have 42 bytes.
    let least = QUIC_DATAGRAM_MIN as usize + 42;
    let (start, first) = (run.sent[0].0, run.sent[0]);
    assert_eq!((first.1, first.2), (TransferSide::From, least));
    // The flight of the server: hello, certificates and what they need.
    let flight: Vec<_> = run.sent.iter().filter(|sent| sent.1 == TransferSide::To).collect();
    let bytes: usize =
        flight.iter().filter(|sent| sent.0 < start + Duration::from_ms(21)).map(|sent| sent.2 - 42).sum();
    assert!((2300..=3600).contains(&bytes), "{bytes}");
    // Data leaves after one round trip.
    let data = run.sent.iter().filter(|sent| sent.1 == TransferSide::From && sent.2 > 1000).nth(1).unwrap();
    assert!(data.0 >= start + Duration::from_ms(40) && data.0 < start + Duration::from_ms(41), "{data:?}");
}

#[test]
fn a_seed_gives_the_same_packets_and_another_does_not() {
    for is_v6 in [false, true] {
        let sent = |seed| {
            let mut rng = Rng::new(seed);
            let mut fate = move |_: TransferSide, _: usize, _: &mut Vec<u8>| match rng.below(20) {
                0 => Vec::new(),
                _ => vec![Duration::from_ms(20)],
            };
            run(&TransferModel { flows: 3, ..bulk(200_000) }, seed, is_v6, Time::MAX, &mut fate).sent
        };
        assert_eq!(sent(1), sent(1));
        assert_ne!(sent(1), sent(2));
    }
    // Without losses the seed shows too: in ids, and in numbers that are skipped.
    let [first, second] = [1, 2].map(|seed| plain(&bulk(300_000), seed).sent);
    assert_ne!(first, second);
}

#[test]
fn all_bytes_arrive_over_ways_that_lose_copy_and_reorder() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let (loss, copies) = (rng.below(12), rng.below(5));
        let congestion = if seed % 2 == 0 { CongestionControl::Cubic } else { CongestionControl::Reno };
        let size = 1 + rng.below(400_000);
        let model = TransferModel { flows: 1 + rng.below(4) as u32, congestion, ..bulk(size) };
        let mut fate = |_: TransferSide, _: usize, _: &mut Vec<u8>| {
            let count = if rng.below(100) < loss { 0 } else { 1 + usize::from(rng.below(100) < copies) };
            (0..count).map(|_| Duration::from_us(5000 + rng.below(4000))).collect()
        };
        let run = run(&model, seed, seed % 3 == 0, Time::MAX, &mut fate);
        assert!(run.report.complete, "{seed}: {}", run.report);
        assert_eq!(run.report.flow_bytes, vec![size; model.flows as usize], "{seed}");
        assert_eq!(run.transfer.open_connections(), [0, 0], "{seed}");
    }
}

#[test]
fn packets_with_flipped_bits_are_dropped() {
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let mut fate = |_: TransferSide, _: usize, frame: &mut Vec<u8>| {
            if rng.below(20) == 0 {
                // Behind the headers; nothing looks at checksums here.
                let bit = 42 * 8 + rng.below((frame.len() - 42) as u64 * 8) as usize;
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            vec![Duration::from_ms(3)]
        };
        let run = run(&bulk(300_000), seed, false, Time::MAX, &mut fate);
        assert!(run.report.complete && run.report.received_bytes == 300_000, "{seed}: {}", run.report);
    }
}

#[test]
fn a_connection_goes_on_when_its_address_and_port_change() {
    let mut is_moved = false;
    let mut fate = |side: TransferSide, index: usize, frame: &mut Vec<u8>| {
        // A NAT that gives another outside address and port after 60 frames.
        is_moved |= index > 60;
        let outside = (if is_moved { 9 } else { 8 }, if is_moved { 4000 } else { 3000 });
        let payload = frame[42..].to_vec();
        *frame = match side {
            TransferSide::From => Ip::between((MAC, address(outside.0, false)), (MAC, address(2, false)))
                .udp(outside.1, 5001, &payload),
            TransferSide::To => {
                let port = Headers::parse(frame).transport.unwrap().dst_port;
                if port != outside.1 {
                    return Vec::new();
                }
                Ip::between((MAC, address(2, false)), (MAC, address(1, false)))
                    .udp(5001, FIRST_PORT, &payload)
            }
        };
        vec![Duration::from_ms(5)]
    };
    let run = run(&bulk(1_000_000), 1, false, Time::MAX, &mut fate);
    assert!(run.report.complete, "{}", run.report);
    assert_eq!(run.transfer.open_connections(), [0, 0]);
}

#[test]
fn many_short_flows_leave_nothing_behind() {
    let run = plain(&TransferModel { flows: 2000, ..bulk(1000) }, 3);
    assert!(run.report.complete && run.report.flow_bytes.iter().all(|bytes| *bytes == 1000));
    assert_eq!(run.transfer.open_connections(), [0, 0]);
    assert!(run.end < Time::ZERO + Duration::from_secs(2), "{:?}", run.end);
}

#[test]
fn an_end_that_hears_nothing_gives_up_and_a_stop_ends_all() {
    let run_dead = run(&bulk(1000), 1, false, Time::MAX, &mut |_, _, _| Vec::new());
    assert!(!run_dead.report.complete && run_dead.transfer.is_over(run_dead.end));
    // 30 s without an answer; the server has not heard of it.
    assert!((run_dead.end.as_ps() as f64 / 1e12 - 30.0).abs() < 1.0, "{:?}", run_dead.end);
    assert_eq!(run_dead.transfer.open_connections(), [0, 0]);
    let endless = TransferModel { workload: Workload::Bulk(None), ..bulk(0) };
    let stop = Time::ZERO + Duration::from_secs(2);
    // 10 ms each way, and a bound by the window of 3 MiB.
    let stopped = run(&endless, 1, false, stop, &mut |_, _, _| vec![Duration::from_ms(10)]);
    assert!(stopped.sent.iter().all(|(at, _, _)| *at < stop) && stopped.transfer.is_over(stop));
    let most = 3.0 * f64::from(1 << 20) * 2.0 / 0.02;
    let received = stopped.report.received_bytes as f64;
    assert!(!stopped.report.complete && received > 1e6 && received < most, "{}", stopped.report);
}
