//! `GET /capture`: frames of links as pcapng (`fastpath_net::capture`), while the network runs.
//!
//! ```text
//!  workers ──chunks──▶ queue (bounded) ──▶ task: CaptureWriter ──▶ socket
//! ```
//!
//! The capture ends when the client disconnects. A client that sends a body (POST) ends the
//! capture with its body, and receives all frames up to that instant and the statistics of the
//! interfaces. A reader that is too slow misses frames; statistics say how many.

use super::change;
use super::refused::{Refused, ended};
use super::streaming::{StreamBody, Streams};
use crate::capture::{CaptureFilter, CaptureQueue, CaptureRequest, MERGE_INTERVAL, RunClock};
use crate::worker_group::WorkerGroup;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fastpath_net::capture::{CaptureChunk, CaptureWriter};
use fastpath_spec::Topology;
use fastpath_units::Time;
use hyper::body::Body as _;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

/// Captures at a time, which bounds their memory.
const CAPTURES_MAX: usize = 8;
/// How long a connection takes to write the last part.
const WRITE_TIME: std::time::Duration = std::time::Duration::from_millis(10);
/// How long readers have to receive the rest after the network has ended.
const FINISH_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// The number of captures that are running.
#[derive(Clone, Default)]
pub(super) struct OpenCaptures(Arc<AtomicUsize>);

impl OpenCaptures {
    /// Waits until readers have received the rest of their captures, for a limited time.
    pub(super) async fn finish(&self) {
        let start = Instant::now();
        let has_any = self.0.load(Ordering::Relaxed) > 0;
        while self.0.load(Ordering::Relaxed) > 0 && start.elapsed() < FINISH_MAX {
            sleep(WRITE_TIME).await;
        }
        if has_any {
            // Connections write what they have taken.
            sleep(WRITE_TIME).await;
        }
    }
}

/// A running capture. The workers end it when this is dropped.
struct RunningCapture {
    queue: CaptureQueue,
    workers: WorkerGroup,
    open: OpenCaptures,
}

impl Drop for RunningCapture {
    fn drop(&mut self) {
        self.workers.end_capture(self.queue.id);
        self.open.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Capture frames of links as pcapng, until the client disconnects.
#[utoipa::path(get, path = "/capture",
    params(("link" = Option<String>, Query, description = "A link; may be repeated. Absent: all links.", example = "a-b"),
        ("from" = Option<String>, Query, description = "Only the direction that starts at this node."),
        ("drops" = Option<bool>, Query, description = "Whether frames that the links drop are captured too."),
        ("snap" = Option<u32>, Query, description = "At most this number of bytes of each frame.")),
    responses((status = 200, body = String, content_type = "application/x-pcapng"),
        (status = 400, body = super::Failure), (status = 503, body = super::Failure)))]
pub(super) async fn capture(
    workers: State<WorkerGroup>,
    open: State<OpenCaptures>,
    streams: Extension<Streams>,
    query: RawQuery,
    request: Request,
) -> Result<Response, Refused> {
    stream(workers, open, streams, query, request)
}

/// Capture frames of links as pcapng, until the body of the request ends.
#[utoipa::path(post, path = "/capture",
    params(("link" = Option<String>, Query, description = "As for GET.", example = "a-b")),
    responses((status = 200, body = String, content_type = "application/x-pcapng"),
        (status = 400, body = super::Failure), (status = 503, body = super::Failure)))]
pub(super) async fn capture_until_end(
    workers: State<WorkerGroup>,
    open: State<OpenCaptures>,
    streams: Extension<Streams>,
    query: RawQuery,
    request: Request,
) -> Result<Response, Refused> {
    stream(workers, open, streams, query, request)
}

fn stream(
    State(workers): State<WorkerGroup>,
    State(open): State<OpenCaptures>,
    Extension(streams): Extension<Streams>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refused> {
    let wrong = |why| Refused(StatusCode::BAD_REQUEST, why);
    let current = workers.current();
    let wanted = read(current.topology(), query.as_deref().unwrap_or_default()).map_err(wrong)?;
    if open.0.fetch_add(1, Ordering::Relaxed) >= CAPTURES_MAX {
        open.0.fetch_sub(1, Ordering::Relaxed);
        let what = format!("{CAPTURES_MAX} captures are running: end one, or capture more links in one");
        return Err(Refused(StatusCode::SERVICE_UNAVAILABLE, what));
    }
    let Some(queue) = current.capture(&wanted) else {
        open.0.fetch_sub(1, Ordering::Relaxed);
        return Err(ended());
    };
    let (clock, writer) = (queue.clock(), queue.writer(current.topology(), &wanted.pipes));
    let running = RunningCapture { queue, workers: workers.clone(), open };
    let (sender, answer) = StreamBody::new(streams, 1);
    let body = (request.method() == Method::POST).then(|| request.into_body());
    tokio::spawn(send(running, writer, clock, body, sender));
    let headers = [(header::CONTENT_TYPE, "application/x-pcapng"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::new(answer)).into_response())
}

/// The events that a capture waits for.
enum Happened {
    Chunk(Option<CaptureChunk>),
    Tick,
    /// The client wants no more frames.
    BodyEnded,
    ReaderGone,
}

async fn send(
    mut running: RunningCapture,
    mut writer: CaptureWriter,
    clock: RunClock,
    mut body: Option<Body>,
    sender: tokio::sync::mpsc::Sender<Bytes>,
) {
    let is_merged = running.queue.is_merged;
    let mut ticks = interval(MERGE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Frames before the second last tick are written: those of all workers have come.
    let (mut last_tick, mut waiting) = (Time::ZERO, Vec::new());
    loop {
        let written = writer.take();
        if !written.is_empty() && sender.send(Bytes::from(written)).await.is_err() {
            return;
        }
        let happened = {
            let mut gone = pin!(sender.closed());
            let ticks = is_merged.then_some(&mut ticks);
            let mut happened = Happening { running: &mut running, ticks, body: body.as_mut() };
            poll_fn(|context| match gone.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Happened::ReaderGone),
                Poll::Pending => happened.poll(context),
            })
            .await
        };
        match happened {
            Happened::ReaderGone => return,
            Happened::Chunk(Some(chunk)) => {
                waiting.push(chunk);
                if !is_merged {
                    writer.write_until(&mut waiting, Time::MAX);
                }
            }
            Happened::Tick => {
                writer.write_until(&mut waiting, last_tick);
                last_tick = clock.now();
            }
            Happened::BodyEnded => {
                body = None;
                running.workers.end_capture(running.queue.id);
            }
            Happened::Chunk(None) => break,
        }
        writer.write_statistics(clock.now(), running.queue.missed(), false);
    }
    writer.write_until(&mut waiting, Time::MAX);
    writer.write_statistics(clock.now(), running.queue.missed(), true);
    // The reader may have gone.
    let _ = sender.send(Bytes::from(writer.take())).await;
    // There is room again when the connection has taken the last part.
    let _ = sender.reserve().await;
}

/// The sources of [`Happened`].
struct Happening<'a> {
    running: &'a mut RunningCapture,
    ticks: Option<&'a mut Interval>,
    body: Option<&'a mut Body>,
}

impl Happening<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Happened> {
        if let Poll::Ready(chunk) = self.running.queue.chunks.poll_recv(context) {
            return Poll::Ready(Happened::Chunk(chunk));
        }
        if self.ticks.as_mut().is_some_and(|ticks| ticks.poll_tick(context).is_ready()) {
            return Poll::Ready(Happened::Tick);
        }
        let Some(body) = &mut self.body else { return Poll::Pending };
        // The bytes of the body mean nothing; its end does.
        while let Poll::Ready(part) = Pin::new(&mut **body).poll_frame(context) {
            if !matches!(part, Some(Ok(_))) {
                return Poll::Ready(Happened::BodyEnded);
            }
        }
        Poll::Pending
    }
}

/// Reads the query: `link=NAME` for each link (without any: all links), `from=NODE` for the
/// directions from a node only, `drops=true`, `snap=BYTES` (0 for whole frames).
fn read(topology: &Topology, query: &str) -> Result<CaptureRequest, String> {
    let mut filter = CaptureFilter::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value).ok_or_else(|| format!("{key}: not percent-encoded UTF-8"))?;
        match key {
            "link" => filter.links.push(change::link(topology, &value)?),
            "from" => filter.from = Some(value),
            "drops" => {
                filter.drops = value.parse().map_err(|_| format!("drops '{value}': write true or false"))?;
            }
            "snap" => {
                let wrong = |_| format!("snap '{value}': write a number of bytes, such as 128, or 0 for all");
                filter.snap = Some(value.parse().map_err(wrong)?);
            }
            other => {
                return Err(format!(
                    "'{}' is not a key of a capture: write link, from, drops or snap",
                    other.escape_debug()
                ));
            }
        }
    }
    CaptureRequest::of(topology, &filter).map_err(|error| error.to_string())
}

/// Decodes a value of a query (URL Standard, §5.1).
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
