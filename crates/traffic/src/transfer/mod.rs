//! Connections of TCP between two hosts, as frames in the time of the caller.
//!
//! ```text
//!  TransferModel ─▶ TcpTransfer ─ transmit ─▶ frame at the first or the second host
//!                      ▲
//!                      └─ deliver ◀─ frame that has arrived at one of them
//! ```
//!
//! Each connection has an end at both hosts ([`fastpath_tcp::Connection`]) and a workload. The
//! second host knows its connections by the address from which they come, which a NAT may have
//! changed.

mod calls;
mod flow;
mod model;
mod program;
mod report;

pub use calls::FlowCalls;
pub use model::{QUIC_DATAGRAM_MIN, TransferModel, TransferProtocol, Workload};
pub use program::{TransferProgram, TransferWrites};
pub use report::{AnswerTime, TransferEnds, TransferReport, TransportCounts};

use fastpath_tcp::{FrameForm, TcpOptions, parse_segment};
use fastpath_units::{Distribution, Rng, Time};
use fastpath_wire::build::{Ip, tcp_flags};
use fastpath_wire::{Headers, protocol};
use flow::TransferFlow;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The port of the first connection of a transfer at its first host; the others follow.
pub const FIRST_PORT: u16 = 49_152;

/// An end of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TransferSide {
    /// The host that opens the connections.
    From,
    /// The host that they lead to.
    To,
}

/// How a host sends to another.
#[derive(Clone, Copy, Debug)]
pub struct FrameWay {
    /// The addresses of its frames.
    pub ip: Ip,
    /// Where they enter the network: a number of the caller.
    pub door: u32,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct TcpTransfer {
    flows: Vec<TransferFlow>,
    /// By flow: what its ends send. The second host answers once it has heard of the connection.
    forms: Vec<[Option<(u32, FrameForm)>; 2]>,
    mss: u32,
    /// The connections of the second host, by the address from which they come.
    known: BTreeMap<(IpAddr, u16), usize>,
    port: u16,
    start: Time,
    stop: Time,
    calls: FlowCalls,
    /// Who sent the last frame.
    last: (usize, TransferSide),
    /// Flows that may have something to send now.
    ready: Vec<usize>,
    answers: Distribution,
}

impl TcpTransfer {
    /// A transfer from `start` on; from `stop` on nothing is sent. `way`: from the first host to
    /// the second. `mtu`: of their interfaces, bytes.
    ///
    /// # Panics
    /// There are more flows than ports.
    pub fn new(
        model: &TransferModel,
        (way, port, mtu): (FrameWay, u16, u32),
        (start, stop): (Time, Time),
        rng: &mut Rng,
    ) -> TcpTransfer {
        assert!(model.flows <= u32::from(u16::MAX - FIRST_PORT), "a port for each flow");
        let TransferModel { congestion, ecn, .. } = *model;
        let options = TcpOptions { congestion, ecn, ..TcpOptions::for_mtu(mtu, way.ip.header_len() as u32) };
        let (mut flows, mut forms) = (Vec::new(), Vec::new());
        for flow in 0..model.flows {
            let client = FIRST_PORT + flow as u16;
            flows.push(TransferFlow::new(&model.workload, options, (start, stop), Rng::new(rng.next_u64())));
            let form = FrameForm::new(way.ip, [client, port], options.mss, [flow, 0]);
            forms.push([Some((way.door, form)), None]);
        }
        let calls = FlowCalls::at_start(model.flows, start);
        let (known, ready, answers) = (BTreeMap::new(), Vec::new(), Distribution::growing());
        TcpTransfer {
            flows,
            forms,
            mss: options.mss,
            known,
            port,
            start,
            stop,
            calls,
            last: (0, TransferSide::From),
            ready,
            answers,
        }
    }

    /// Returns when it wants to be called next, [`Time::ZERO`] for at once; `None` if it waits for
    /// frames, or for nothing.
    pub fn next_at(&self) -> Option<Time> {
        if !self.ready.is_empty() {
            return Some(Time::ZERO);
        }
        let next = self.calls.next_at()?;
        (next < self.stop).then_some(next)
    }

    /// Does what is due by `now`.
    pub fn advance(&mut self, now: Time) {
        while let Some(flow) = self.calls.due(now) {
            let next = self.flows[flow].next_at();
            if next.is_some_and(|next| next > now) {
                self.calls.call(flow, next);
            } else if now < self.stop {
                self.flows[flow].advance(now, &mut self.answers);
                self.ready.push(flow);
            }
        }
    }

    /// Writes the next frame that is sent now. Returns by which door, and how many bytes of
    /// [`TcpTransfer::written`] it has.
    pub fn transmit(&mut self, now: Time) -> Option<(u32, usize)> {
        if now >= self.stop {
            self.ready.clear();
        }
        while let Some(&flow) = self.ready.last() {
            let Some((side, segment)) = self.flows[flow].transmit(now) else {
                self.ready.pop();
                self.calls.call(flow, self.flows[flow].next_at());
                continue;
            };
            if let Some((door, form)) = &mut self.forms[flow][side as usize] {
                let len = form.write(&segment).len();
                self.last = (flow, side);
                return Some((*door, len));
            }
        }
        None
    }

    /// Returns the frame of the last [`TcpTransfer::transmit`], which had this many bytes.
    ///
    /// # Panics
    /// Nothing was sent.
    pub fn written(&self, len: usize) -> &[u8] {
        let (flow, side) = self.last;
        let (_, form) = self.forms[flow][side as usize].as_ref().expect("it has sent a frame");
        form.written(len)
    }

    /// Takes a frame that has arrived at one of the hosts. `way`: from the second host, from its
    /// own address to another; `None` if there is none. `false`: the frame is not of this transfer.
    pub fn deliver(
        &mut self,
        now: Time,
        side: TransferSide,
        frame: &[u8],
        way: &mut dyn FnMut(IpAddr, IpAddr) -> Option<FrameWay>,
    ) -> bool {
        let headers = Headers::parse(frame);
        let tcp = headers.transport.filter(|transport| transport.protocol == protocol::TCP);
        let Some(((source, destination), tcp)) = headers.addresses().zip(tcp) else { return false };
        let (from, to) = ((source, tcp.src_port), (destination, tcp.dst_port));
        let at = tcp.offset;
        let len = headers.packet_end().map_or(0, |end| end.saturating_sub(at));
        let opens = opened(&frame[at..]);
        let Some(flow) = self.flow_of(side, (from, to), opens, way) else { return false };
        let initial = match side {
            TransferSide::From => [0, flow as u32],
            TransferSide::To => [flow as u32, 0],
        };
        let near = self.flows[flow].near(side);
        if let Some(segment) = parse_segment(frame, (at, len), initial, near) {
            self.flows[flow].receive(now, side, &segment, &mut self.answers);
            self.ready.push(flow);
        }
        true
    }

    /// The connection of a frame from one address and port to another, at a side.
    fn flow_of(
        &mut self,
        side: TransferSide,
        (from, to): ((IpAddr, u16), (IpAddr, u16)),
        opens: Option<usize>,
        way: &mut dyn FnMut(IpAddr, IpAddr) -> Option<FrameWay>,
    ) -> Option<usize> {
        match side {
            TransferSide::From => {
                let flow = usize::from(to.1.checked_sub(FIRST_PORT)?);
                let (_, form) = self.forms.get(flow)?[0].as_ref()?;
                (from.1 == self.port && form.destination() == from.0).then_some(flow)
            }
            TransferSide::To if to.1 != self.port => None,
            TransferSide::To => {
                if let Some(flow) = self.known.get(&from) {
                    return Some(*flow);
                }
                // Its SYN has the number of the flow, wherever a NAT has it come from.
                let flow = opens?;
                let answering = self.forms.get_mut(flow)?;
                let FrameWay { ip, door } = way(to.0, from.0)?;
                answering[1] =
                    Some((door, FrameForm::new(ip, [self.port, from.1], self.mss, [0, flow as u32])));
                self.known.insert(from, flow);
                Some(flow)
            }
        }
    }

    /// Whether nothing more happens: all has arrived, or the stop has passed.
    pub fn is_over(&self, now: Time) -> bool {
        now >= self.stop || self.flows.iter().all(|flow| flow.program().is_complete())
    }

    /// Returns the results.
    pub fn report(&self, model: &TransferModel, ends: TransferEnds, now: Time) -> TransferReport {
        let counts: Vec<_> = self.flows.iter().flat_map(TransferFlow::counts).collect();
        let transport = TransportCounts {
            segments: counts.iter().map(|counts| counts.segments).sum(),
            retransmitted: counts.iter().map(|counts| counts.retransmitted).sum(),
            timeouts: Some(counts.iter().map(|counts| counts.timeouts).sum()),
            marked: Some(counts.iter().map(|counts| counts.marked).sum()),
            rtt_min: self.flows.iter().filter_map(TransferFlow::rtt_min).min(),
        };
        let times = (self.start, self.stop.min(now));
        let programs = self.flows.iter().map(TransferFlow::program);
        TransferReport::new((model, ends), times, programs, transport, &self.answers)
    }
}

/// The sequence number of a SYN that opens a connection.
fn opened(tcp: &[u8]) -> Option<usize> {
    let opens = *tcp.get(13)? & (tcp_flags::SYN | tcp_flags::ACK) == tcp_flags::SYN;
    opens.then(|| u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]) as usize)
}
