//! A flow of datagrams as its report reads it.

use super::hosts::locked;
use fastpath_spec::{Topology, Traffic};
use fastpath_traffic::{FlowEnds, FlowReport, Packets, Received, Sent};
use fastpath_units::Time;
use std::sync::Mutex;

/// The state of a flow that reports read.
#[derive(Debug)]
pub(crate) struct LabFlow {
    pub(crate) traffic: Traffic,
    /// The names of its hosts.
    ends: [String; 2],
    /// When it starts by the clock of the run: at its start, or when the lab is up.
    start: Time,
    /// Counts what is due, whatever the sender does.
    due: Mutex<DuePackets>,
    pub(crate) sent: Mutex<Sent>,
    pub(crate) received: Mutex<Received>,
}

/// The packets of a flow that were due by some time.
#[derive(Debug)]
struct DuePackets {
    /// Those that were not.
    rest: Packets,
    packets: u64,
    bytes: u64,
}

impl LabFlow {
    /// Traffic that sends `packets` from `start` on.
    pub(crate) fn new(topology: &Topology, traffic: &Traffic, start: Time, packets: Packets) -> LabFlow {
        LabFlow {
            traffic: traffic.clone(),
            ends: [traffic.from, traffic.to].map(|host| topology.node(host).name.clone()),
            start,
            due: Mutex::new(DuePackets { rest: packets, packets: 0, bytes: 0 }),
            sent: Mutex::default(),
            received: Mutex::default(),
        }
    }

    /// Returns the results up to `now`.
    pub(crate) fn report(&self, now: Time) -> FlowReport {
        let end = self.traffic.stop.map_or(now, |stop| stop.min(now)).max(self.start);
        let [from, to] = self.ends.each_ref().map(String::as_str);
        let ends = FlowEnds { name: &self.traffic.name, from, to, start: self.start, end };
        let (asked, asked_bytes) = locked(&self.due).by(end);
        let sent = Sent { asked, asked_bytes, ..*locked(&self.sent) };
        locked(&self.received).report(ends, sent)
    }
}

impl DuePackets {
    /// Returns the packets that were due before `end`, and the bytes of their payload. The end of a
    /// later call is not earlier.
    fn by(&mut self, end: Time) -> (u64, u64) {
        while self.rest.next_at().is_some_and(|due| due < end) {
            let (_, size) = self.rest.next().expect("it is due");
            self.packets += 1;
            self.bytes += u64::from(size);
        }
        (self.packets, self.bytes)
    }
}
