//! The report of an engine, for people and programs: the answer to `report` on the control socket,
//! and the result of a run.

use crate::control::values;
use crate::delays::DelayReport;
use crate::lateness::{BOUNDS_NS, Releases};
use crate::packet_log::PacketLogReport;
use crate::port::PortCounters;
use crate::snapshot::{EdgeState, PipeState, Snapshot, WorkerState};
use crate::worker_clock::InterruptionTotals;
use fastpath_link::{CrossCounters, DropReason, LinkState, PipeSpec};
use fastpath_net::PipeId;
use fastpath_spec::trace::Timeline;
use fastpath_spec::{self as spec, Late, LinkId, Topology, Track};
use fastpath_traffic::{FlowReport, TransferReport};
use fastpath_units::{Duration, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The state of a running network, or its state at the end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Report {
    /// Seconds since the engine started.
    pub uptime_s: f64,
    /// The seed of its random choices, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Frame accounting over all links and ports.
    #[serde(rename = "conservation")]
    pub accounting: FrameAccounting,
    /// The links, in the order of the spec.
    pub links: Vec<LinkReport>,
    /// One for each interface of a host, in the order of the spec.
    pub ports: Vec<PortReport>,
    /// The tolerance for late frames, and how many exceeded it.
    #[serde(default, alias = "promise")]
    pub lateness: LatenessReport,
    /// The worker threads.
    #[serde(default)]
    pub workers: Vec<WorkerReport>,
    /// The per-packet log, if one is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_log: Option<PacketLogReport>,
    /// What was sent and received of the traffic of the spec, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub traffic: Vec<FlowReport>,
    /// What its connections carried, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub transfers: Vec<TransferReport>,
}

/// How late a frame may be released, and how many frames were later.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LatenessReport {
    /// The tolerance: `1ms`.
    pub tolerance: String,
    /// Whether the spec or the command line gives the tolerance. Otherwise it only defines which
    /// frames count as late.
    pub stated: bool,
    /// Frames on all links that were released later, or dropped because they were later.
    pub late: u64,
}

/// The state of a worker thread.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WorkerReport {
    /// The core it is bound to.
    pub core: Option<u32>,
    /// Number of ports it serves.
    pub ports: usize,
    /// Seconds in which it moved frames.
    pub busy_s: f64,
    /// `busy_s` as a fraction of the time it has run.
    pub load: f64,
    /// Seconds for which its thread had a core, polling included.
    #[serde(default)]
    pub cpu_s: f64,
    /// The fraction of the last second in which it moved frames; `load` in the first second.
    #[serde(default)]
    pub recent_load: f64,
    /// How much more it can carry: 1 − `recent_load`.
    #[serde(default)]
    pub headroom: f64,
    /// What it lacks for its load, while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Number of sleeps.
    pub sleeps: u64,
    /// Stalls: the worker neither ran nor waited for a core. A hypervisor or interrupts had the
    /// core, or the process was stopped.
    #[serde(alias = "paused")]
    pub stalled: Interruptions,
    /// Preemptions: other threads had its core.
    pub preempted: Interruptions,
    /// Bytes of memory for frames.
    pub pool_bytes: usize,
    /// Frames that it has passed on to other workers, where the network is cut.
    #[serde(default)]
    pub passed_on: u64,
    /// Seconds that it spent on that, and on taking frames from other workers.
    #[serde(default)]
    pub handover_s: f64,
}

/// Intervals in which a worker was to run and did not run, by the kernel's account of its thread.
/// Its own work is not among them, however long it takes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Interruptions {
    /// Number of intervals.
    pub count: u64,
    /// Their sum.
    pub total_ms: f64,
    /// The longest interval.
    pub longest_ms: f64,
}

/// Frame accounting: in = delivered + dropped + held. A frame that the network delivered counts as
/// delivered when its port has sent it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FrameAccounting {
    /// Frames that entered at a port, and frames made inside (copies, fragments, answers of
    /// routers).
    #[serde(rename = "in")]
    pub total_in: u64,
    /// Frames that left by a port, or reached the router that they were addressed to.
    pub delivered: u64,
    /// Frames dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Frames still inside.
    pub held: u64,
}

impl FrameAccounting {
    /// Returns whether in = delivered + dropped + held.
    pub fn balances(&self) -> bool {
        self.total_in == self.delivered + self.dropped.values().sum::<u64>() + self.held
    }
}

/// A link and its two directions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// From its first node to its second, and back.
    pub directions: [PipeReport; 2],
    /// Where it runs: `kernel` or `user`. Only in a lab it may be in the kernel.
    #[serde(default)]
    pub data_path: String,
    /// Why it does not run in the kernel, in a lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_path_reason: Option<String>,
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PipeReport {
    /// The node it leads from.
    pub from: String,
    /// The node it leads to.
    pub to: String,
    /// `10Mbit`, or `unlimited`.
    pub rate: String,
    /// One-way delay: `25ms`.
    pub delay: String,
    /// `1%`.
    pub loss: String,
    /// `50p`, `64KiB`, `unlimited`, or a discipline with its parameters.
    pub queue: String,
    /// Bytes on the wire per frame beyond the frame itself.
    pub overhead: u32,
    /// All values that differ from the default, by the keys of a link in a spec, as `set` of `POST
    /// /set` takes them. A value that `set` cannot express (a table of more than 1000 times) is a
    /// text that describes it.
    #[serde(default)]
    #[schema(schema_with = values::schema)]
    pub values: BTreeMap<String, Value>,
    /// The transmission opportunities that it follows in place of a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opportunities: Option<String>,
    /// The active traces, each with the values that it sets: `lte.csv: rate, delay`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<String>,
    /// `up`, `down`, or `paused` (nothing is sent for a while).
    #[serde(default)]
    pub state: String,
    /// Frames that arrived.
    pub frames_in: u64,
    /// Bytes that arrived.
    pub bytes_in: u64,
    /// Frames that left at the far end.
    pub frames_out: u64,
    /// Bytes that left at the far end.
    pub bytes_out: u64,
    /// Frames marked with ECN CE.
    pub marked: u64,
    /// Frames that were duplicated.
    #[serde(default)]
    pub duplicated: u64,
    /// Frames that left with flipped bits.
    #[serde(default)]
    pub corrupted: u64,
    /// Frames dropped here, by reason. Reasons without frames are left out.
    pub dropped: BTreeMap<String, u64>,
    /// Cross traffic, where there is or was any. No other count includes it, except those of the
    /// queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross: Option<CrossReport>,
    /// Frames in its queue and in flight.
    pub held: u64,
    /// Frames in its queue, including the frame on the wire.
    #[serde(default)]
    pub queued_frames: u64,
    /// Bytes of these frames.
    #[serde(default)]
    pub queued_bytes: u64,
    /// Queueing delay, in microseconds: how long the frame on the wire has been in the queue. If
    /// frames wait while none is on the wire, it is the delay of the frame that left last.
    #[serde(default)]
    pub queueing_delay_us: f64,
    /// The configured and the measured delays behind the queue, where there is jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<DelayReport>,
    /// The lateness of frames released to a host, or of frames that came to a router or switch of
    /// another worker. A direction that leads to one of the same worker has none, because a frame
    /// goes on there as of the instant it was due.
    #[serde(default)]
    pub lateness: Option<Lateness>,
}

/// Cross traffic of a link in one direction: packets that no host sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CrossReport {
    /// Frames that were sent on the wire.
    pub frames_sent: u64,
    /// Bytes of these frames.
    pub bytes_sent: u64,
    /// Frames that the queue dropped, or that found the link down.
    pub frames_dropped: u64,
    /// Frames in the queue, including one on the wire.
    pub frames_queued: u64,
}

impl CrossReport {
    fn of(counters: &CrossCounters) -> Option<CrossReport> {
        (counters.offered.packets > 0).then(|| CrossReport {
            frames_sent: counters.sent.packets,
            bytes_sent: counters.sent.bytes,
            frames_dropped: counters.dropped.packets,
            frames_queued: counters.queued().packets,
        })
    }
}

/// A port.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PortReport {
    /// The interface.
    pub name: String,
    /// The kind of port and what the kernel granted: `AF_PACKET`; empty for memory.
    #[serde(default)]
    pub kind: String,
    /// The host that the interface belongs to.
    pub host: String,
    /// Its counters.
    pub counters: PortCounters,
    /// The lateness of the frames it sent.
    pub lateness: Lateness,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// The lateness of frames when they were handed to a port, in microseconds, to 1 % (10 % with more
/// than 1024 ports).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Lateness {
    /// Frames measured.
    pub frames: u64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
    /// Sum over all frames.
    #[serde(default)]
    pub sum_us: f64,
    /// Frames later than tolerated, including those dropped for it.
    #[serde(default)]
    pub late: u64,
    /// Late frames that would have been in time without an interruption of the worker.
    #[serde(default)]
    pub late_interrupted: u64,
    /// Frames no later than each of [`BOUNDS_NS`].
    #[serde(default)]
    pub within: [u64; BOUNDS_NS.len()],
}

impl Lateness {
    /// Returns the 99th percentile of the frames since `before`, a state of the same direction, in
    /// microseconds; `None` if there are none. It is interpolated between [`BOUNDS_NS`].
    pub(crate) fn p99_us_since(&self, before: &Lateness) -> Option<f64> {
        let frames = self.frames.checked_sub(before.frames).filter(|frames| *frames > 0)?;
        let wanted = 0.99 * frames as f64;
        let (mut below, mut bound) = (0.0, 0.0);
        for (index, &next) in BOUNDS_NS.iter().enumerate() {
            let within = self.within[index].saturating_sub(before.within[index]) as f64;
            let next = next as f64 / 1e3;
            if within >= wanted {
                let part = (wanted - below) / (within - below).max(1.0);
                return Some((bound + part * (next - bound)).min(self.max_us));
            }
            (below, bound) = (within, next);
        }
        Some(self.max_us)
    }

    /// Returns a sentence about frames later than `tolerance`; `None` if there are none.
    fn complaint(&self, tolerance: &str) -> Option<String> {
        let Lateness { frames, p50_us, p99_us, max_us, late, late_interrupted, .. } = self;
        let why = match late_interrupted {
            0 => String::new(),
            some => format!(", {some} of them because the host stalled or other threads had the core"),
        };
        let times = format!("p50 {p50_us:.1} p99 {p99_us:.1} max {max_us:.1} µs of {frames} released");
        (*late > 0).then(|| format!("{late} frames more than {tolerance} late{why} ({times})"))
    }
}

impl Report {
    /// Returns a sentence for each direction of a link that released frames later than tolerated.
    pub fn broken(&self) -> Vec<String> {
        let directions =
            self.links.iter().flat_map(|link| link.directions.iter().map(move |pipe| (link, pipe)));
        let broken = directions.filter_map(|(link, pipe)| {
            let complaint = pipe.lateness?.complaint(&self.lateness.tolerance)?;
            Some(format!("link {}, {} → {}: {complaint}", link.name, pipe.from, pipe.to))
        });
        broken.collect()
    }

    /// Returns whether a tolerance was given and exceeded.
    pub fn is_broken(&self) -> bool {
        self.lateness.stated && self.lateness.late > 0
    }

    /// Returns the number of frames that were lost between hosts and links, which no spec asks for:
    /// the engine did not read or send them in time.
    pub fn lost_under_load(&self) -> u64 {
        self.ports.iter().map(|port| port.counters.rx_overrun + port.counters.tx_full).sum()
    }

    /// Returns a sentence for each flow of the traffic that was not sent as asked for.
    pub fn shortfalls(&self) -> Vec<String> {
        self.traffic.iter().filter_map(FlowReport::shortfall).collect()
    }

    /// Why the machine did not carry the run, if so: frames or traffic that were lost in it, or a
    /// port that failed. How late frames may be is for the caller to say.
    pub fn disturbed(&self) -> Option<String> {
        let lost = self.lost_under_load();
        if lost > 0 {
            return Some(format!(
                "{lost} frames were lost between hosts and links: the machine was too slow"
            ));
        }
        let failed = self.ports.iter().find_map(|port| port.failure.clone());
        failed.or_else(|| self.shortfalls().into_iter().next())
    }

    /// Returns whether all frames are accounted for and were released in time, none was lost
    /// because the engine did not keep up, all traffic was sent, no port failed, and the per-packet
    /// log is complete.
    pub fn is_good(&self) -> bool {
        let has_log = self.packet_log.as_ref().is_none_or(PacketLogReport::is_complete);
        let has_ports = self.ports.iter().all(|port| port.failure.is_none());
        let is_carried = self.lost_under_load() == 0 && self.shortfalls().is_empty();
        self.accounting.balances() && !self.is_broken() && has_ports && has_log && is_carried
    }

    pub(crate) fn of(topology: &Topology, snapshot: &Snapshot) -> Report {
        let hosts = topology.nodes.iter().filter(|node| node.kind.is_edge());
        let edge_hosts = hosts.flat_map(|node| node.interfaces.iter().map(|_| node.name.clone()));
        let links = topology.links.iter().zip(snapshot.pipes.chunks_exact(2));
        let mut lateness_of = vec![None; 2 * topology.links.len()];
        let interfaces = topology.hosts().flat_map(|(_, host)| &host.interfaces);
        for (interface, edge) in interfaces.zip(&snapshot.edges) {
            // The pipe that leads to end 1 is the first of the two.
            lateness_of[2 * interface.link.0 as usize + 1 - interface.end] = Some(lateness(&edge.releases));
        }
        let mut late_drops = BTreeMap::new();
        for (PipeId { link, index }, releases) in &snapshot.handovers {
            lateness_of[2 * link.0 as usize + index] = Some(lateness(releases));
            // A worker drops what comes late from another one, behind the end of the pipe.
            if snapshot.policy.late == Late::Drop && releases.late > 0 {
                late_drops.insert((link.0, *index), releases.late);
            }
        }
        let mut lateness_of = lateness_of.chunks_exact(2);
        Report {
            uptime_s: snapshot.at.as_secs_f64(),
            seed: None,
            accounting: accounting(snapshot),
            links: links
                .zip(0..)
                .map(|((link, pipes), number)| {
                    let name = |end: usize| topology.node(link.ends[end].0).name.clone();
                    let lateness = lateness_of.next().expect("two for each link");
                    let pipe = |index: usize| {
                        let mut pipe = pipe_report(name(index), name(1 - index), &pipes[index]);
                        pipe.lateness = lateness[index];
                        pipe.traces =
                            traces(topology.tracks_of(LinkId(number), index), &pipes[index], snapshot.at);
                        if let Some(late) = late_drops.get(&(number, index)) {
                            *pipe.dropped.entry(DropReason::Late.name().to_owned()).or_default() += late;
                        }
                        pipe
                    };
                    let directions = [pipe(0), pipe(1)];
                    let (data_path, data_path_reason) = data_path(snapshot, &link.name);
                    LinkReport { name: link.name.clone(), directions, data_path, data_path_reason }
                })
                .collect(),
            ports: edge_hosts.zip(&snapshot.edges).map(|(host, edge)| port_report(host, edge)).collect(),
            lateness: LatenessReport {
                tolerance: snapshot.policy.tolerance.to_string(),
                stated: snapshot.policy.is_stated,
                late: snapshot.releases().map(|releases| releases.late).sum(),
            },
            workers: snapshot.workers.iter().map(|worker| worker_report(worker, snapshot.at)).collect(),
            packet_log: snapshot.packet_log.clone(),
            traffic: Vec::new(),
            transfers: Vec::new(),
        }
    }
}

/// Where a link runs, and why not in the kernel.
fn data_path(snapshot: &Snapshot, link: &str) -> (String, Option<String>) {
    let Some(reasons) = &snapshot.user_space else { return ("user".to_owned(), None) };
    let reason = reasons.get(link).cloned();
    (if reason.is_none() { "kernel" } else { "user" }.to_owned(), reason)
}

/// The accounting of the network, continued through the ports.
fn accounting(snapshot: &Snapshot) -> FrameAccounting {
    let network = &snapshot.accounting;
    let mut dropped: BTreeMap<String, u64> =
        network.dropped.iter().map(|(&reason, &count)| (reason.to_owned(), count)).collect();
    let (mut lost, mut waiting) = (0, 0);
    let of_edges = snapshot.edges.iter().map(|edge| (&edge.counters, edge.waiting));
    for (counters, held) in of_edges.chain([(&snapshot.removed_ports, 0)]) {
        let reasons = [
            ("port-refused", counters.tx_refused),
            ("port-down", counters.tx_down),
            ("port-full", counters.tx_full),
            ("late", counters.tx_late),
            ("port-no-memory", counters.tx_no_memory),
        ];
        for (reason, count) in reasons.into_iter().filter(|&(_, count)| count > 0) {
            *dropped.entry(reason.to_owned()).or_default() += count;
        }
        lost += counters.tx_dropped();
        waiting += held as u64;
    }
    FrameAccounting {
        total_in: network.total_in(),
        delivered: network.delivered - lost - waiting,
        dropped,
        held: network.held + waiting,
    }
}

/// The traces that are active at `at`, with the values they set.
fn traces(tracks: &[Track], pipe: &PipeState, at: Time) -> Vec<String> {
    let started = tracks.iter().zip(&pipe.trace_starts);
    let under_way = started.filter(|(track, start)| track.is_under_way(**start, at));
    under_way.map(|(track, _)| format!("{}: {}", track.source, track.timeline.keys().join(", "))).collect()
}

fn pipe_report(from: String, to: String, pipe: &PipeState) -> PipeReport {
    let PipeSpec { rate, overhead, delay, loss, queue, state, paused, opportunities, .. } = &pipe.spec;
    let state = match state {
        LinkState::Down => "down",
        LinkState::Up if *paused => "paused",
        LinkState::Up => "up",
    };
    let counters = &pipe.counters;
    PipeReport {
        from,
        to,
        rate: rate.map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string()),
        delay: delay.to_string(),
        loss: loss.to_string(),
        queue: queue.to_string(),
        overhead: *overhead,
        values: spec::values(&pipe.spec).into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        opportunities: opportunities.clone().map(|times| Timeline::Opportunities(times).describe()),
        traces: Vec::new(),
        state: state.to_owned(),
        frames_in: counters.pushed.packets,
        bytes_in: counters.pushed.bytes,
        frames_out: counters.delivered.packets,
        bytes_out: counters.delivered.bytes,
        marked: counters.marked,
        duplicated: counters.duplicated,
        corrupted: counters.corrupted,
        dropped: counters.dropped_by_reason(),
        cross: CrossReport::of(&counters.cross),
        held: pipe.held.packets,
        queued_frames: pipe.queue.volume.packets,
        queued_bytes: pipe.queue.volume.bytes,
        queueing_delay_us: pipe.queue.delay.as_secs_f64() * 1e6,
        jitter: pipe.delays.as_ref().and_then(|delays| DelayReport::of(&pipe.spec, delays)),
        lateness: None,
    }
}

fn port_report(host: String, edge: &EdgeState) -> PortReport {
    PortReport {
        name: edge.name.clone(),
        kind: edge.kind.clone(),
        host,
        counters: edge.counters,
        lateness: lateness(&edge.releases),
        failure: edge.failure.clone(),
    }
}

fn lateness(releases: &Releases) -> Lateness {
    let lateness = releases.lateness();
    let us = |duration: Option<Duration>| duration.map_or(0.0, |duration| duration.as_ps() as f64 / 1e6);
    Lateness {
        frames: lateness.count(),
        p50_us: us(lateness.quantile(0.5)),
        p99_us: us(lateness.quantile(0.99)),
        p999_us: us(lateness.quantile(0.999)),
        max_us: us(lateness.max()),
        sum_us: lateness.sum_ps() as f64 / 1e6,
        late: releases.late,
        late_interrupted: releases.late_interrupted,
        within: lateness.within(BOUNDS_NS.map(Duration::from_ns)),
    }
}

fn worker_report(worker: &WorkerState, at: Time) -> WorkerReport {
    let load = worker.busy.as_secs_f64() / at.since(Time::ZERO).max(Duration::from_ns(1)).as_secs_f64();
    WorkerReport {
        core: worker.core,
        ports: worker.edges,
        busy_s: worker.busy.as_secs_f64(),
        load,
        cpu_s: worker.cpu.as_secs_f64(),
        recent_load: load,
        headroom: (1.0 - load).max(0.0),
        warning: None,
        sleeps: worker.sleeps,
        stalled: interruptions(&worker.stalled),
        preempted: interruptions(&worker.preempted),
        pool_bytes: worker.pool_reserved,
        passed_on: worker.passed_on,
        handover_s: worker.handover.as_secs_f64(),
    }
}

fn interruptions(gaps: &InterruptionTotals) -> Interruptions {
    let InterruptionTotals { count, total, longest } = *gaps;
    Interruptions { count, total_ms: total.as_ms_f64(), longest_ms: longest.as_ms_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_log_that_is_cut_short_is_not_good() {
        let report = |log: &str| -> Report {
            let text = format!(
                r#"{{"uptime_s":1,"conservation":{{"in":0,"delivered":0,"dropped":{{}},"held":0}},"links":[],"ports":[],
                "packet_log":{{"path":"x","written":5,{log}}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        assert!(report(r#""missing":0"#).is_good());
        assert!(!report(r#""missing":3"#).is_good());
        assert!(!report(r#""missing":0,"failure":"No space left on device""#).is_good());
    }

    #[test]
    fn losses_that_no_spec_asks_for_are_not_good() {
        let report = |counters: PortCounters| -> Report {
            let lateness = serde_json::json!({ "frames": 0, "p50_us": 0.0, "p99_us": 0.0, "p999_us": 0.0, "max_us": 0.0 });
            let port = serde_json::json!({ "name": "eth0", "host": "a", "lateness": lateness, "counters": counters });
            serde_json::from_value(serde_json::json!({ "uptime_s": 1.0, "links": [], "ports": [port],
                "conservation": { "in": 0, "delivered": 0, "dropped": {}, "held": 0 } }))
            .unwrap()
        };
        assert!(report(PortCounters { rx_frames: 1, ..PortCounters::default() }).is_good());
        for lost in [
            PortCounters { rx_overrun: 1, ..PortCounters::default() },
            PortCounters { tx_full: 1, ..PortCounters::default() },
        ] {
            let report = report(lost);
            assert!(!report.is_good(), "{lost:?}");
            assert_eq!(report.lost_under_load(), 1, "{lost:?}");
        }
    }
}
