//! Captures that start and end while frames cross a network change nothing, and miss nothing.

use fastpath_link::DropReason;
use fastpath_net::capture::{CaptureChunk, CaptureOrder, CaptureTap, CaptureWriter, ChunkSink};
use fastpath_net::{Delivery, EdgeId, FrameAccounting, Network, Observer, Options, PipeId};
use fastpath_spec as spec;
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, Tcp, tcp_flags};
use fastpath_wire::pcap::CaptureReader;
use fastpath_wire::vnet::{Gso, GsoKind};
use proptest::prelude::*;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// Links with loss before and behind the queue, full queues, copies, flipped bits, and a switch.
const SPEC: &str = r#"
[host.a]
[host.b]
[host.c]
[switch.s]
[[link]]
between = ["a", "s"]
rate = "5Mbit"
delay = "1ms"
queue = { kind = "codel", limit = "40p", ecn = true }
loss = "5%"
corrupt = "10%"
duplicate = { probability = "10%", later = "2ms" }
[[link]]
between = ["s", "b"]
rate = "3Mbit"
queue = "20p"
loss = { probability = "5%", at = "egress" }
duplicate = "10%"
jitter = { law = "uniform", half_width = "1ms", reorder = "allow" }
[[link]]
between = ["s", "c"]
"#;

/// Keeps the chunks of a capture; takes none beyond `room`.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<CaptureChunk>>>);

impl ChunkSink for Kept {
    fn offer(&mut self, chunk: CaptureChunk) -> Option<CaptureChunk> {
        self.0.lock().unwrap().push(chunk);
        None
    }
}

/// A sink whose reader is too slow for anything.
struct Full;

impl ChunkSink for Full {
    fn offer(&mut self, chunk: CaptureChunk) -> Option<CaptureChunk> {
        Some(chunk)
    }
}

/// Every pipe of the spec.
fn all() -> Vec<Option<u32>> {
    (0..6).map(Some).collect()
}

fn order(id: u64, interfaces: Vec<Option<u32>>, sink: impl ChunkSink + 'static) -> CaptureOrder {
    CaptureOrder { id, interfaces, has_drops: true, snap_len: usize::MAX, sink: Box::new(sink) }
}

/// A super-packet of TCP from a to b, or the other way.
fn super_packet(
    network: &mut Network<CaptureTap>,
    from: u8,
    payload: usize,
) -> Vec<(EdgeId, fastpath_net::Frame)> {
    let end = |i: u8| (MacAddr([2, 0, 0, 0, 0, i]), IpAddr::from([10, 0, 0, i]));
    let tcp = Tcp { flags: tcp_flags::ACK, ..Tcp::default() };
    let bytes = Ip::between(end(from), end(1 - from)).tcp(&tcp, &vec![from; payload]);
    let pool = network.pool_mut();
    let mut slot = pool.alloc_super_packet().expect("the pool is not full");
    pool.truncate(&mut slot, bytes.len());
    pool.bytes_mut(&mut slot).copy_from_slice(&bytes);
    let gso = Gso { kind: GsoKind::TcpV4, size: 1000, ecn: false };
    let segments = pool.keep_super_packet(slot, gso).expect("a super-packet");
    segments.map(|segment| (EdgeId(from.into()), segment)).collect()
}

type Arrived = Vec<(Time, EdgeId, Vec<u8>)>;

/// Sends traffic and calls `before` with the number of each step. Returns the network and what
/// arrived.
fn run(
    seed: u64,
    mut before: impl FnMut(u64, &mut CaptureTap),
) -> (Network<CaptureTap>, Arrived, FrameAccounting) {
    let (topology, _) = spec::parse(SPEC).expect("a valid spec");
    let mut network = Network::observed(topology, Options::with_seed(seed), CaptureTap::default());
    let (mut rng, mut arrived, mut due) = (Rng::new(seed), Vec::new(), Vec::new());
    for step in 0..400 {
        before(step, network.observer_mut());
        let now = Time::ZERO + Duration::from_ms(2 * step);
        if step < 250 {
            let payload = 1 + rng.next_u64() as usize % 12_000;
            let mut burst = super_packet(&mut network, (rng.next_u64() % 2) as u8, payload);
            network.push_burst(now, &mut burst);
        }
        network.pop_burst(now + Duration::from_ms(1), usize::MAX, &mut due);
        for Delivery { at, edge, mut frame } in due.drain(..) {
            assert!(network.pool_mut().copy_out(&mut frame));
            arrived.push((at, edge, network.pool().bytes(&frame).to_vec()));
            network.pool_mut().free(frame);
        }
    }
    let accounting = network.accounting();
    (network, arrived, accounting)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_hundred_starts_and_ends_lose_reorder_and_delay_no_frame(seed: u64) {
        let (_, plain, accounting) = run(seed, |_, _| ());
        let (mut rng, mut started) = (Rng::new(seed ^ 1), 0);
        let (network, arrived, same) = run(seed, |step, tap| {
            if rng.next_u64().is_multiple_of(3) {
                return;
            }
            tap.end(started);
            started += 1;
            let some = (0..6).map(|pipe| (rng.next_u64() % 2 == 0).then_some(pipe)).collect();
            match step % 5 {
                0 => tap.start(order(started, some, Full)),
                1 => {}
                _ => tap.start(order(started, some, Kept::default())),
            }
        });
        prop_assert!(started > 100, "{started}");
        prop_assert!(arrived == plain);
        prop_assert_eq!(same, accounting);
        prop_assert!(network.accounting().balances());
    }

    #[test]
    fn a_capture_has_every_frame_of_its_links_with_its_bytes_and_fate(seed: u64) {
        let kept = Kept::default();
        let sink = kept.clone();
        let (network, arrived, _) = run(seed, move |step, tap| match step {
            0 => tap.start(order(1, all(), sink.clone())),
            399 => tap.end(1),
            _ => {}
        });
        let mut counts = [(0, 0); 6];
        let mut to_hosts = Vec::new();
        let mut writer = CaptureWriter::new(
            network.topology(),
            &[0, 1, 2].map(spec::LinkId).map(|link| [0, 1].map(|index| PipeId { link, index })).concat(),
            0,
        );
        let mut chunks = kept.0.lock().unwrap();
        for (chunk, frame) in chunks.iter().flat_map(|chunk| chunk.frames().iter().map(move |frame| (chunk, frame))) {
            prop_assert_eq!(frame.actual, frame.at);
            let count = &mut counts[frame.interface as usize];
            if is_drop(frame.outcome) {
                count.1 += 1;
            } else {
                count.0 += 1;
                // The pipes that lead to a, b and c.
                if let Some(edge) = [1, 2, 4].iter().position(|pipe| *pipe == frame.interface) {
                    to_hosts.push((frame.at, EdgeId(edge as u32), chunk.bytes_of(frame).to_vec()));
                }
            }
        }
        prop_assert!(to_hosts == arrived);
        let mut in_file = [0; 6];
        // In the order of time, whatever the order of chunks.
        chunks.reverse();
        writer.write_until(&mut chunks, Time::ZERO + Duration::from_ms(100));
        writer.write_until(&mut chunks, Time::MAX);
        prop_assert!(chunks.is_empty());
        let file = writer.take();
        let mut reader = CaptureReader::new(&file[..]).unwrap();
        let mut last = None;
        while let Some(packet) = reader.read_packet().unwrap() {
            prop_assert!(packet.ns >= last);
            last = packet.ns;
            in_file[packet.interface as usize] += 1;
        }
        for (pipe, (passed, dropped)) in counts.into_iter().enumerate() {
            let counters = network.pipe(spec::LinkId(pipe as u32 / 2), pipe % 2).counters();
            prop_assert_eq!(passed, counters.delivered.packets + counters.duplicated);
            prop_assert_eq!(dropped, DropReason::ALL.map(|reason| counters.dropped_for(reason)).iter().sum::<u64>());
            prop_assert_eq!(in_file[pipe], passed + dropped);
        }
    }
}

fn is_drop(outcome: fastpath_net::packet_log::PacketOutcome) -> bool {
    use fastpath_link::Fate;
    use fastpath_net::packet_log::PacketOutcome;
    matches!(outcome, PacketOutcome::Refused(_) | PacketOutcome::Left(Fate::Dropped(_)))
}

#[test]
fn a_file_has_an_interface_for_each_pipe_comments_and_what_is_missing() {
    let kept = Kept::default();
    let sink = kept.clone();
    let (network, ..) = run(7, move |step, tap| {
        if step == 0 {
            let order = order(1, vec![None, None, Some(0), None, None, Some(1)], sink.clone());
            tap.start(CaptureOrder { snap_len: 60, ..order });
        }
        tap.flush(Time::ZERO, true);
    });
    let link = |link| PipeId { link: spec::LinkId(link), index: 0 };
    let pipes = [link(1), PipeId { index: 1, ..link(2) }];
    let mut writer = CaptureWriter::new(network.topology(), &pipes, 1_000_000_000);
    writer.write_until(&mut kept.0.lock().unwrap(), Time::MAX);
    writer.write_statistics(Time::ZERO, [0, 9].into_iter(), false);
    let file = writer.take();
    let text = String::from_utf8_lossy(&file);
    for part in [
        "s-b/s_to_b",
        "link s-c from c to s",
        "dropped=queue-full at=0.",
        "dropped=loss at=0.",
        "delivered=0.",
        " actual=0.",
        " duplicated=1",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    let mut longest = 0;
    while let Some(packet) = reader.read_packet().unwrap() {
        assert!(packet.interface == 0 && packet.data.len() <= 60 && packet.ns >= Some(1_000_000_000));
        longest = longest.max(packet.orig_len);
    }
    assert_eq!(longest, 1054);
    // Only the interface that misses frames has statistics: type 5, 52 bytes with both counts.
    let statistics = &file[file.len() - 52..];
    assert_eq!((statistics[0], statistics[4], statistics[8]), (5, 52, 1));
    assert_eq!((statistics[24], statistics[36]), (9, 9));
}
