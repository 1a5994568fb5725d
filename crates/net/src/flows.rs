//! Flows of a running network, as hosts see them: bytes by 5-tuple, and the round-trip times of TCP
//! by its timestamps (RFC 7323 §3, as pping measures them).
//!
//! ```text
//!  host a ──entered: TSval 7 at t0──▶ … ──▶ host b
//!  host a ◀── … ◀──delivered at t1: TSecr 7── host b        RTT of the flow a > b: t1 − t0
//! ```
//!
//! A segment enters at the edge of its sender, and the first acknowledgement that echoes its
//! timestamp is delivered at the same edge. The RTT contains what the network and the receiver
//! take, and nothing of the sender.

use crate::id::{EdgeId, PipeId};
use crate::observer::Observer;
use crate::pool::{Frame, FramePool};
use fastpath_units::{Duration, Time};
use fastpath_wire::build::tcp_flags;
use fastpath_wire::{Headers, protocol};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Flows that are followed. Packets of others are counted only.
const FLOWS_MAX: usize = 4096;
/// Timestamps of a flow that wait for an acknowledgement: one per millisecond, with Linux.
const WAITING_MAX: usize = 4096;

/// One direction of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// The protocol of the transport layer.
    pub protocol: u8,
    /// The sender: address and port; port 0 without ports.
    pub from: (IpAddr, u16),
    /// The receiver.
    pub to: (IpAddr, u16),
}

/// The counters of a flow since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowCounters {
    /// The flow.
    pub key: FlowKey,
    /// When the sample before was taken, in which the flow need not be.
    pub since: Time,
    /// When this sample was taken.
    pub at: Time,
    /// Bytes of frames that entered at an edge.
    pub bytes_in: u64,
    /// Bytes of frames that reached an edge.
    pub bytes_out: u64,
    /// The round-trip times since the last sample.
    pub rtt: Option<RttSample>,
}

/// Round-trip times of a flow in an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttSample {
    /// Their number.
    pub count: u64,
    /// Their sum.
    pub sum: Duration,
    /// The shortest one.
    pub min: Duration,
    /// The longest one.
    pub max: Duration,
}

/// An [`Observer`] that counts flows.
#[derive(Debug, Default)]
pub struct FlowTable {
    numbers: BTreeMap<FlowKey, usize>,
    flows: Vec<FollowedFlow>,
    /// Frames of flows beyond the limit.
    others: u64,
    sampled_at: Time,
}

#[derive(Debug)]
struct FollowedFlow {
    counters: FlowCounters,
    is_changed: bool,
    /// Timestamps that no acknowledgement has echoed, each with the time of its first segment.
    waiting: VecDeque<(u32, Time)>,
}

/// What is read of a packet.
struct Parsed {
    key: FlowKey,
    /// TSval and TSecr.
    timestamps: Option<(u32, u32)>,
    /// Whether the receiver acknowledges the segment, and whether it acknowledges others.
    has_data: bool,
    is_ack: bool,
}

impl FlowTable {
    /// Returns the flows with packets since the last call, in the order of their first packets.
    pub fn sample(&mut self, now: Time) -> Vec<FlowCounters> {
        let since = std::mem::replace(&mut self.sampled_at, now);
        let changed = self.flows.iter_mut().filter(|flow| flow.is_changed);
        changed
            .map(|flow| {
                let counters = FlowCounters { since, at: now, ..flow.counters };
                (flow.is_changed, flow.counters.rtt) = (false, None);
                counters
            })
            .collect()
    }

    /// Returns the number of frames of flows that are not followed.
    pub fn others(&self) -> u64 {
        self.others
    }

    fn flow(&mut self, key: FlowKey) -> Option<&mut FollowedFlow> {
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None if self.flows.len() == FLOWS_MAX => {
                self.others += 1;
                return None;
            }
            None => {
                self.numbers.insert(key, self.flows.len());
                let (since, at) = (Time::ZERO, Time::ZERO);
                let counters = FlowCounters { key, since, at, bytes_in: 0, bytes_out: 0, rtt: None };
                self.flows.push(FollowedFlow { counters, is_changed: true, waiting: VecDeque::new() });
                self.flows.len() - 1
            }
        };
        let flow = &mut self.flows[number];
        flow.is_changed = true;
        Some(flow)
    }
}

impl Observer for FlowTable {
    const TRACKS_FRAMES: bool = false;

    fn watches(&self, _pipe: PipeId) -> bool {
        false
    }

    fn entered(&mut self, at: Time, _edge: EdgeId, frame: &Frame, pool: &FramePool) {
        let Some(packet) = parse(frame, pool) else { return };
        let Some(flow) = self.flow(packet.key) else { return };
        flow.counters.bytes_in += frame.len() as u64;
        if let (Some((value, _)), true) = (packet.timestamps, packet.has_data)
            && flow.waiting.back().is_none_or(|(last, _)| is_before(*last, value))
        {
            if flow.waiting.len() == WAITING_MAX {
                flow.waiting.pop_front();
            }
            flow.waiting.push_back((value, at));
        }
    }

    fn delivered(&mut self, at: Time, _edge: EdgeId, frame: &Frame, pool: &FramePool) {
        let Some(packet) = parse(frame, pool) else { return };
        if let Some(flow) = self.flow(packet.key) {
            flow.counters.bytes_out += frame.len() as u64;
        }
        let Some((_, echo)) = packet.timestamps.filter(|_| packet.is_ack) else { return };
        let Some(number) = self.numbers.get(&packet.key.reversed()) else { return };
        let flow = &mut self.flows[*number];
        // What is older than the echo has been acknowledged without one of its own.
        while let Some((value, sent_at)) = flow.waiting.pop_front_if(|(value, _)| !is_before(echo, *value)) {
            if value == echo {
                flow.is_changed = true;
                flow.counters.rtt = Some(RttSample::with(flow.counters.rtt, at.since(sent_at)));
            }
        }
    }
}

/// Whether a timestamp is older than another (RFC 7323 §5.2).
fn is_before(a: u32, b: u32) -> bool {
    b.wrapping_sub(a).wrapping_sub(1) < 1 << 31
}

impl RttSample {
    fn with(before: Option<RttSample>, rtt: Duration) -> RttSample {
        let one = RttSample { count: 1, sum: rtt, min: rtt, max: rtt };
        before.map_or(one, |before| RttSample {
            count: before.count + 1,
            sum: before.sum.saturating_add(rtt),
            min: before.min.min(rtt),
            max: before.max.max(rtt),
        })
    }
}

/// Puts together what the parts of a network have counted of the same flows: the part of the sender
/// and that of the receiver each see one side.
#[derive(Debug, Default)]
pub struct MergedFlows {
    /// By flow and part: the bytes in and out so far.
    counts: BTreeMap<FlowKey, Vec<[u64; 2]>>,
}

impl MergedFlows {
    /// Merges the latest [samples](FlowTable::sample) of all parts, always in the same order.
    pub fn merge(&mut self, parts: Vec<Vec<FlowCounters>>) -> Vec<FlowCounters> {
        let (count, mut places, mut whole) = (parts.len(), BTreeMap::new(), Vec::<FlowCounters>::new());
        for (part, flows) in parts.into_iter().enumerate() {
            for flow in flows {
                let counts = self.counts.entry(flow.key).or_insert_with(|| vec![[0; 2]; count]);
                counts[part] = [flow.bytes_in, flow.bytes_out];
                let place = *places.entry(flow.key).or_insert(whole.len());
                let Some(known) = whole.get_mut(place) else {
                    whole.push(flow);
                    continue;
                };
                known.since = known.since.min(flow.since);
                known.at = known.at.max(flow.at);
                // Round trips are measured where the sender is.
                known.rtt = known.rtt.or(flow.rtt);
            }
        }
        for flow in &mut whole {
            let sum = |side: usize| self.counts[&flow.key].iter().map(|part| part[side]).sum();
            (flow.bytes_in, flow.bytes_out) = (sum(0), sum(1));
        }
        whole
    }
}

impl FlowKey {
    fn reversed(self) -> FlowKey {
        FlowKey { from: self.to, to: self.from, ..self }
    }
}

impl fmt::Display for FlowKey {
    /// Prints `tcp 10.0.0.1:5001 > 10.0.0.2:80`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            protocol::TCP => f.write_str("tcp")?,
            protocol::UDP => f.write_str("udp")?,
            protocol::ICMP | protocol::ICMPV6 => f.write_str("icmp")?,
            protocol::SCTP => f.write_str("sctp")?,
            other => write!(f, "protocol {other}")?,
        }
        for ((address, port), before) in [(self.from, " "), (self.to, " > ")] {
            match port {
                0 => write!(f, "{before}{address}")?,
                port => write!(f, "{before}{}", SocketAddr::new(address, port))?,
            }
        }
        Ok(())
    }
}

/// Returns `None` for packets other than IP.
fn parse(frame: &Frame, pool: &FramePool) -> Option<Parsed> {
    let bytes = pool.headers(frame);
    let headers = Headers::parse(bytes);
    let (src, dst) = headers.addresses()?;
    let transport = headers.transport.filter(|transport| transport.protocol != protocol::ICMP);
    let (src_port, dst_port) = transport.map_or((0, 0), |transport| (transport.src_port, transport.dst_port));
    let protocol = headers.transport.map_or_else(|| ip_protocol(&headers), |transport| transport.protocol);
    let key = FlowKey { protocol, from: (src, src_port), to: (dst, dst_port) };
    let mut packet = Parsed { key, timestamps: None, has_data: false, is_ack: false };
    if let Some(tcp) = transport.filter(|transport| transport.protocol == protocol::TCP)
        && let Some(&[offset, flags]) = bytes.get(tcp.offset + 12..tcp.offset + 14)
    {
        let payload = tcp.offset + usize::from(offset >> 4) * 4;
        let end = if frame.has_own_bytes() { headers.packet_end()? } else { frame.len() };
        packet.has_data = end > payload || flags & (tcp_flags::SYN | tcp_flags::FIN) != 0;
        packet.is_ack = flags & tcp_flags::ACK != 0;
        packet.timestamps = bytes.get(tcp.offset + 20..payload).and_then(timestamps);
    }
    Some(packet)
}

fn ip_protocol(headers: &Headers) -> u8 {
    use fastpath_wire::NetworkLayer;
    match &headers.network {
        NetworkLayer::Ipv4(ip) => ip.protocol,
        NetworkLayer::Ipv6(ip) => ip.protocol,
        _ => 0,
    }
}

/// Returns TSval and TSecr of TCP options (RFC 7323 §3.2, RFC 9293 §3.2).
fn timestamps(mut options: &[u8]) -> Option<(u32, u32)> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const TIMESTAMPS: u8 = 8;
    loop {
        match *options {
            [] | [END, ..] => return None,
            [NO_OPERATION, ..] => options = &options[1..],
            [TIMESTAMPS, 10, a, b, c, d, e, f, g, h, ..] => {
                return Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            }
            [_, len, ..] if len >= 2 => options = options.get(usize::from(len)..)?,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: EdgeId = EdgeId(0);
    const B: EdgeId = EdgeId(1);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_ms(ms)
    }

    /// A TCP packet from host `from` with timestamps.
    fn tcp(from: u8, payload: usize, flags: u8, (value, echo): (u32, u32)) -> Vec<u8> {
        let to = 3 - from;
        let mut packet = vec![0; 12];
        packet.extend([8, 0, 0x45, 0]);
        packet.extend((52 + payload as u16).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        packet.extend([0, from, 0, to, 0, 0, 0, 0, 0, 0, 0, 0, 8 << 4, flags, 0, 0, 0, 0, 0, 0]);
        packet.extend([1, 1, 8, 10]);
        packet.extend(value.to_be_bytes());
        packet.extend(echo.to_be_bytes());
        packet.resize(packet.len() + payload, 7);
        packet
    }

    #[test]
    fn the_first_echo_of_a_timestamp_is_a_round_trip() {
        let (mut table, mut pool) = (FlowTable::default(), FramePool::default());
        let mut step = |ms: u64, edge: EdgeId, enters: bool, bytes: Vec<u8>| {
            let frame = pool.insert(&bytes).unwrap();
            match enters {
                true => table.entered(at(ms), edge, &frame, &pool),
                false => table.delivered(at(ms), edge, &frame, &pool),
            }
            pool.free(frame);
        };
        let last = u32::MAX;
        step(0, A, true, tcp(1, 100, 0x10, (last, 5)));
        // The same timestamp later is not the first segment of that time.
        step(1, A, true, tcp(1, 100, 0x10, (last, 5)));
        step(2, A, true, tcp(1, 100, 0x10, (0, 5)));
        step(20, B, false, tcp(1, 100, 0x10, (last, 5)));
        step(25, A, false, tcp(2, 0, 0x10, (9, last)));
        step(26, A, false, tcp(2, 0, 0x10, (9, last)));
        step(32, A, false, tcp(2, 0, 0x10, (9, 0)));
        // An acknowledgement is not acknowledged.
        step(40, A, true, tcp(1, 0, 0x10, (3, 9)));
        step(50, A, false, tcp(2, 0, 0x10, (9, 3)));
        let flows = table.sample(Time::ZERO);
        assert_eq!(flows[0].key.to_string(), "tcp 10.0.0.1:1 > 10.0.0.2:2");
        assert_eq!((flows[0].bytes_in, flows[0].bytes_out), (3 * 166 + 66, 166));
        let ms = Duration::from_ms;
        assert_eq!(flows[0].rtt, Some(RttSample { count: 2, sum: ms(55), min: ms(25), max: ms(30) }));
        assert_eq!((flows.len(), flows[1].rtt), (2, None));
        assert_eq!(table.sample(Time::ZERO), []);
    }

    #[test]
    fn packets_without_ports_and_broken_options_are_counted() {
        let (mut table, mut pool) = (FlowTable::default(), FramePool::default());
        let mut icmp = tcp(1, 0, 0, (0, 0));
        icmp[23] = 1;
        let mut broken = tcp(1, 10, 0x10, (1, 1));
        broken[54..58].copy_from_slice(&[8, 200, 9, 0]);
        for bytes in [icmp, broken, vec![0xff; 60], vec![0; 14]] {
            let frame = pool.insert(&bytes).unwrap();
            table.entered(at(0), A, &frame, &pool);
            table.delivered(at(1), B, &frame, &pool);
            pool.free(frame);
        }
        let names: Vec<String> = table.sample(Time::ZERO).iter().map(|flow| flow.key.to_string()).collect();
        assert_eq!(names, ["icmp 10.0.0.1 > 10.0.0.2", "tcp 10.0.0.1:1 > 10.0.0.2:2"]);
    }

    #[test]
    fn flows_beyond_the_limit_are_counted_together() {
        let (mut table, mut pool) = (FlowTable::default(), FramePool::default());
        for port in 0..=FLOWS_MAX {
            let mut bytes = tcp(1, 0, 0x10, (1, 1));
            bytes[34..36].copy_from_slice(&(port as u16 + 1).to_be_bytes());
            let frame = pool.insert(&bytes).unwrap();
            table.entered(at(0), A, &frame, &pool);
            pool.free(frame);
        }
        assert_eq!((table.sample(Time::ZERO).len(), table.others()), (FLOWS_MAX, 1));
    }
}
