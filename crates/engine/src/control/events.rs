//! `GET /events`: the state of all links as server-sent events (HTML Living Standard, §9.2).
//!
//! ```text
//!  workers ──snapshot, every PERIOD──▶ sampler ──one text for all──▶ broadcast ─▶ reader ─▶ socket
//!                (while there are readers)                        (bounded)      └▶ reader ─▶ …
//! ```
//!
//! The lateness and the load in a row are those of the time since the sample before; `null` without
//! a frame, or without a rate.
//!
//! A reader first receives an event `state` with all links, then events `sample` with what has
//! changed since the sample before. A reader that falls behind receives `state` again, with the
//! number of samples that it has missed. No worker and no other reader waits for it.

use super::history::History;
use super::streaming::{StreamBody, Streams};
use crate::headroom::pipe_load;
use crate::report::{LinkReport, PipeReport, Report, WorkerReport};
use crate::worker_group::WorkerGroup;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use fastpath_link::DropReason;
use fastpath_spec::{NodeId, Topology, default_values};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// The interval between samples.
const PERIOD: Duration = Duration::from_millis(400);
/// Samples that wait for a slow reader before it misses some.
const WAITING_MAX: usize = 4;

/// The counters and gauges of a direction in the order of a row, after the number of the direction:
/// twice the number of its link in `state`, plus one for the way back. Reasons of drops follow.
const FIELDS: [&str; 11] = [
    "frames_in",
    "bytes_in",
    "frames_out",
    "bytes_out",
    "marked",
    "queued_frames",
    "queued_bytes",
    "queueing_delay_us",
    "late",
    // Of frames released since the sample before.
    "lateness_p99_us",
    // The used share of the rate since the sample before.
    "load",
];

/// The samples that all readers share.
#[derive(Clone)]
pub(super) struct Feed(Arc<Shared>);

struct Shared {
    samples: broadcast::Sender<Arc<Sample>>,
    is_sampled: AtomicBool,
    history: Arc<Mutex<History>>,
}

/// The state of the network, and the event with what is new in it.
struct Sample {
    report: Report,
    rows: Vec<Value>,
    interfaces: Vec<[String; 2]>,
    changes: usize,
    event: Bytes,
}

impl Feed {
    pub(super) fn new(history: Arc<Mutex<History>>) -> Feed {
        let (samples, _) = broadcast::channel(WAITING_MAX);
        Feed(Arc::new(Shared { samples, is_sampled: AtomicBool::new(false), history }))
    }

    /// Starts to take samples, unless that is under way. It ends with the last reader.
    fn start(&self, workers: WorkerGroup) {
        if self.0.is_sampled.swap(true, Ordering::Relaxed) {
            return;
        }
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut last: Option<Arc<Sample>> = None;
            let mut ticks = tokio::time::interval(PERIOD);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while shared.samples.receiver_count() > 0 {
                ticks.tick().await;
                let Some(report) = workers.report() else { break };
                let changes = shared.history.lock().unwrap_or_else(PoisonError::into_inner).len();
                let last_alike = last.as_ref().filter(|last| has_links_of(&last.report, &report));
                let interfaces = match last_alike {
                    Some(last) => last.interfaces.clone(),
                    None => interfaces(workers.current().topology()),
                };
                let rows = rows(last_alike.map(|last| &last.report), &report);
                let mut now = Sample { report, rows, interfaces, changes, event: Bytes::new() };
                now.event = match last_alike {
                    Some(last) => sample(last, &now),
                    None => state(&now, 0),
                };
                let now = Arc::new(now);
                // An error means that the last reader has gone.
                let _ = shared.samples.send(Arc::clone(&now));
                last = Some(now);
            }
            shared.is_sampled.store(false, Ordering::Relaxed);
        });
    }
}

/// Stream the state of the links and what changes in it, as server-sent events.
#[utoipa::path(get, path = "/events",
    responses((status = 200, body = String, content_type = "text/event-stream")))]
pub(super) async fn events(
    State(feed): State<Feed>,
    State(workers): State<WorkerGroup>,
    Extension(streams): Extension<Streams>,
) -> Response {
    let mut samples = feed.0.samples.subscribe();
    feed.start(workers);
    let (sender, body) = StreamBody::new(streams, 1);
    tokio::spawn(async move {
        // Events that this reader has missed since `state` was sent last; at first it has none.
        let (mut missed, mut needs_state) = (0, true);
        loop {
            let sample = match samples.recv().await {
                Ok(sample) => sample,
                Err(RecvError::Lagged(count)) => {
                    missed += count;
                    needs_state = true;
                    continue;
                }
                Err(RecvError::Closed) => return,
            };
            let event = match needs_state {
                true => state(&sample, missed),
                false => sample.event.clone(),
            };
            needs_state = false;
            if sender.send(event).await.is_err() {
                return;
            }
        }
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::new(body)).into_response()
}

/// List the changes of this run.
#[utoipa::path(get, path = "/changes", responses((status = 200, body = serde_json::Value)))]
pub(super) async fn changes(State(history): State<Arc<Mutex<History>>>) -> Json<Value> {
    Json(history.lock().unwrap_or_else(PoisonError::into_inner).to_json())
}

/// Get the changes of this run as events of a spec, which repeat it.
#[utoipa::path(get, path = "/changes.toml",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn changes_as_events(
    State(history): State<Arc<Mutex<History>>>,
    State(workers): State<WorkerGroup>,
) -> Response {
    let current = workers.current();
    let text = history.lock().unwrap_or_else(PoisonError::into_inner).to_toml(current.topology());
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

fn has_links_of(a: &Report, b: &Report) -> bool {
    let is_same = |(a, b): (&LinkReport, &LinkReport)| {
        let [a, b] = [a, b].map(|link| (&link.name, link.directions.each_ref().map(|pipe| &pipe.from)));
        a == b
    };
    a.links.len() == b.links.len() && a.links.iter().zip(&b.links).all(is_same)
}

/// The names of the interfaces of each link, at its first node and its second.
fn interfaces(topology: &Topology) -> Vec<[String; 2]> {
    let name = |(node, interface): (NodeId, usize)| topology.node(node).interfaces[interface].name.clone();
    topology.links.iter().map(|link| link.ends.map(name)).collect()
}

fn state(Sample { report, rows, interfaces, changes, .. }: &Sample, missed: u64) -> Bytes {
    let fields: Vec<String> = FIELDS
        .iter()
        .map(|&field| field.to_owned())
        .chain(DropReason::ALL.map(|reason| format!("dropped.{}", reason.name())))
        .collect();
    let links: Vec<Value> =
        report.links.iter().zip(interfaces).map(|(of, interfaces)| link(of, interfaces)).collect();
    let failures: Vec<Value> = report
        .ports
        .iter()
        .filter_map(|port| Some(json!({ "host": port.host, "failure": port.failure.as_ref()? })))
        .collect();
    event(
        "state",
        &json!({ "at_s": report.uptime_s, "missed": missed, "changes": changes, "period_ms": PERIOD.as_millis() as u64,
            "tolerance": report.lateness.tolerance, "defaults": default_values(), "fields": fields,
            "links": links, "rows": rows, "failures": failures, "workers": workers(report) }),
    )
}

fn sample(last: &Sample, Sample { report, rows, changes, .. }: &Sample) -> Bytes {
    let rows: Vec<&Value> =
        last.rows.iter().zip(rows).filter(|(before, now)| before != now).map(|(_, now)| now).collect();
    let parameters: Vec<Value> = directions(&last.report)
        .zip(directions(report))
        .filter(|((_, before), (_, pipe))| parameters(before) != parameters(pipe))
        .map(|(_, (index, pipe))| json!([index, parameters(pipe)]))
        .collect();
    event(
        "sample",
        &json!({ "at_s": report.uptime_s, "changes": changes, "rows": rows, "parameters": parameters,
            "workers": workers(report) }),
    )
}

/// The load of each worker in the last second, what is left of it, and what it lacks.
fn workers(report: &Report) -> Vec<Value> {
    let worker = |worker: &WorkerReport| {
        json!({ "load": thousandth(worker.recent_load), "headroom": thousandth(worker.headroom),
            "warning": worker.warning })
    };
    report.workers.iter().map(worker).collect()
}

fn thousandth(share: f64) -> f64 {
    (1e3 * share).round() / 1e3
}

fn directions(report: &Report) -> impl Iterator<Item = (usize, &PipeReport)> {
    report.links.iter().flat_map(|link| &link.directions).enumerate()
}

/// The rows of all directions. Links of the report `last` are the same.
fn rows(last: Option<&Report>, report: &Report) -> Vec<Value> {
    let before = last.into_iter().flat_map(directions).map(|(_, pipe)| Some(pipe));
    let pairs = directions(report).zip(before.chain(std::iter::repeat(None)));
    let seconds = report.uptime_s - last.map_or(0.0, |last| last.uptime_s);
    pairs.map(|((index, pipe), before)| row(index, before, pipe, seconds)).collect()
}

fn link(link: &LinkReport, interfaces: &[String; 2]) -> Value {
    let ends = [&link.directions[0].from, &link.directions[0].to];
    json!({ "name": link.name, "ends": ends, "interfaces": interfaces, "directions": link.directions.each_ref().map(parameters) })
}

fn parameters(pipe: &PipeReport) -> Value {
    json!({ "rate": pipe.rate, "delay": pipe.delay, "loss": pipe.loss, "queue": pipe.queue, "state": pipe.state,
        "overhead": pipe.overhead, "values": pipe.values, "traces": pipe.traces,
        "opportunities": pipe.opportunities })
}

fn row(index: usize, before: Option<&PipeReport>, pipe: &PipeReport, seconds: f64) -> Value {
    let tenth = |us: f64| (10.0 * us).round() / 10.0;
    let lateness = pipe.lateness.unwrap_or_default();
    let recent = lateness.p99_us_since(&before.and_then(|pipe| pipe.lateness).unwrap_or_default());
    let mut row = vec![
        json!(index),
        json!(pipe.frames_in),
        json!(pipe.bytes_in),
        json!(pipe.frames_out),
        json!(pipe.bytes_out),
        json!(pipe.marked),
        json!(pipe.queued_frames),
        json!(pipe.queued_bytes),
        json!(tenth(pipe.queueing_delay_us)),
        json!(lateness.late),
        json!(recent.map(tenth)),
        json!(pipe_load(before, pipe, seconds).map(thousandth)),
    ];
    row.extend(
        DropReason::ALL.map(|reason| json!(pipe.dropped.get(reason.name()).copied().unwrap_or_default())),
    );
    Value::Array(row)
}

fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
