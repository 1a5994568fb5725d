//! What an engine tells about itself, in words and numbers for people and programs: the answer to `report` on
//! the control socket, and the end of a run.

use crate::port::PortCounters;
use crate::worker::{EdgeState, PipeState, Snapshot};
use fastpath_link::{DropReason, PipeSpec};
use fastpath_net::{NodeKind, Topology};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a running network stands, or stood at its end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Seconds since the engine started.
    pub uptime_s: f64,
    /// Where all frames went.
    pub conservation: Books,
    /// In the order of the spec.
    pub links: Vec<LinkReport>,
    /// One per host interface, in the order of the spec.
    pub ports: Vec<PortReport>,
}

/// Every frame is in one of these. A frame that the network delivered counts as delivered when its port sent it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Books {
    /// Frames that entered at a port, and those made inside (copies, fragments, answers of routers).
    #[serde(rename = "in")]
    pub total_in: u64,
    /// Frames that left by a port, or reached the router they were addressed to.
    pub delivered: u64,
    /// Frames discarded, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Frames still inside.
    pub held: u64,
}

impl Books {
    /// in = delivered + dropped + held.
    pub fn holds(&self) -> bool {
        self.total_in == self.delivered + self.dropped.values().sum::<u64>() + self.held
    }
}

/// A link and its two directions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// From its first node to its second, and back.
    pub directions: [PipeReport; 2],
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PipeReport {
    /// The node it leads from.
    pub from: String,
    /// The node it leads to.
    pub to: String,
    /// `10Mbit`, or `unlimited`.
    pub rate: String,
    /// One way: `25ms`.
    pub delay: String,
    /// `1%`.
    pub loss: String,
    /// `50p`, `64KiB`, `unlimited`, or RED with its thresholds.
    pub queue: String,
    /// Bytes on the wire beyond the frame.
    pub overhead: u32,
    /// Frames that came.
    pub frames_in: u64,
    /// Bytes that came.
    pub bytes_in: u64,
    /// Frames that reached the end.
    pub frames_out: u64,
    /// Bytes that reached the end.
    pub bytes_out: u64,
    /// Frames marked with ECN CE.
    pub marked: u64,
    /// Frames dropped here, by reason; reasons without frames are left out.
    pub dropped: BTreeMap<String, u64>,
    /// Frames in its queue and on their way.
    pub held: u64,
}

/// A port.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PortReport {
    /// The interface.
    pub name: String,
    /// The host it stands for.
    pub host: String,
    /// What passed.
    pub counters: PortCounters,
    /// Of the frames it sent.
    pub lateness: Lateness,
    /// Why it stopped, if it did.
    pub failure: Option<String>,
}

/// How much later than due frames were handed to a port, microseconds, to 1 %.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Frames measured.
    pub frames: u64,
    /// Median.
    pub p50_us: f64,
    /// Of a hundred, one was later.
    pub p99_us: f64,
    /// Of a thousand, one was later.
    pub p999_us: f64,
    /// The latest.
    pub max_us: f64,
}

impl Report {
    pub(crate) fn of(topology: &Topology, snapshot: &Snapshot) -> Report {
        let hosts = topology.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Host { .. }));
        let edge_hosts = hosts.flat_map(|node| node.interfaces.iter().map(|_| node.name.clone()));
        let links = topology.links.iter().zip(snapshot.pipes.chunks_exact(2));
        Report {
            uptime_s: snapshot.at.as_secs_f64(),
            conservation: books(snapshot),
            links: links
                .map(|(link, pipes)| {
                    let name = |end: usize| topology.node(link.ends[end].0).name.clone();
                    let pipe = |index: usize| pipe_report(name(index), name(1 - index), &pipes[index]);
                    LinkReport { name: link.name.clone(), directions: [pipe(0), pipe(1)] }
                })
                .collect(),
            ports: edge_hosts.zip(&snapshot.edges).map(|(host, edge)| port_report(host, edge)).collect(),
        }
    }
}

/// The network's books, carried on through the ports.
fn books(snapshot: &Snapshot) -> Books {
    let network = &snapshot.conservation;
    let mut dropped: BTreeMap<String, u64> =
        network.dropped.iter().map(|(&reason, &count)| (reason.to_owned(), count)).collect();
    let (mut lost, mut waiting) = (0, 0);
    for edge in &snapshot.edges {
        let counters = &edge.counters;
        let reasons = [
            ("port-refused", counters.tx_refused),
            ("port-down", counters.tx_down),
            ("port-full", counters.tx_full),
        ];
        for (reason, count) in reasons.into_iter().filter(|&(_, count)| count > 0) {
            *dropped.entry(reason.to_owned()).or_default() += count;
        }
        lost += counters.tx_dropped();
        waiting += edge.waiting as u64;
    }
    Books {
        total_in: network.total_in(),
        delivered: network.delivered - lost - waiting,
        dropped,
        held: network.held + waiting,
    }
}

fn pipe_report(from: String, to: String, pipe: &PipeState) -> PipeReport {
    let PipeSpec { rate, overhead, delay, loss, queue, .. } = &pipe.spec;
    let counters = &pipe.counters;
    let drops = DropReason::ALL.map(|reason| (reason.name().to_owned(), counters.dropped_for(reason)));
    PipeReport {
        from,
        to,
        rate: rate.map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string()),
        delay: delay.to_string(),
        loss: loss.to_string(),
        queue: queue.to_string(),
        overhead: *overhead,
        frames_in: counters.pushed.packets,
        bytes_in: counters.pushed.bytes,
        frames_out: counters.delivered.packets,
        bytes_out: counters.delivered.bytes,
        marked: counters.marked,
        dropped: drops.into_iter().filter(|(_, count)| *count > 0).collect(),
        held: pipe.held.packets,
    }
}

fn port_report(host: String, edge: &EdgeState) -> PortReport {
    PortReport {
        name: edge.name.clone(),
        host,
        counters: edge.counters,
        lateness: lateness(&edge.lateness),
        failure: edge.failure.clone(),
    }
}

fn lateness(histogram: &Histogram<u32>) -> Lateness {
    let us = |ns: u64| ns as f64 / 1000.0;
    Lateness {
        frames: histogram.len(),
        p50_us: us(histogram.value_at_quantile(0.5)),
        p99_us: us(histogram.value_at_quantile(0.99)),
        p999_us: us(histogram.value_at_quantile(0.999)),
        max_us: us(histogram.max()),
    }
}
