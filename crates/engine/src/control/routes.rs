//! The routes of the control interface. The OpenAPI document is made from the same declarations.

use super::capture::{self, OpenCaptures};
use super::change::ChangeError;
use super::events::{self, Feed};
use super::history::{History, Made};
use super::refused::{Refused, ended};
use super::{
    APPLY_MAX, Applied, Apply, ApplyQueue, Changes, Done, Failure, GroupReport, Nodes, REQUEST_MAX, Restore,
    change, connections, metrics, nodes, presets, samples, switches, web,
};
use crate::report::{LinkReport, Report};
use crate::switching::Control;
use crate::worker_group::WorkerGroup;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRef, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use fastpath_spec::{LinkId, Topology, TraceAction};
use fastpath_units::Time;
use std::sync::{Arc, Mutex, PoisonError};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The state shared by the handlers. Those in other files take the parts that they use.
#[derive(Clone)]
pub(super) struct Engine {
    pub(super) workers: WorkerGroup,
    pub(super) apply: Option<ApplyQueue>,
    pub(super) switches: switches::ServedSwitches,
    pub(super) nodes: Option<Nodes>,
    picture: Option<MakePicture>,
    pub(super) feed: Feed,
    pub(super) history: Arc<Mutex<History>>,
    pub(super) captures: OpenCaptures,
    /// The report of the last metrics.
    scraped: Arc<Mutex<Option<Report>>>,
}

/// Makes the answer to `GET /picture`.
type MakePicture = fn(&Topology) -> serde_json::Value;

/// What answers requests.
pub(crate) struct Behind {
    pub(crate) workers: WorkerGroup,
    /// Changes the nodes and links of a lab.
    pub(crate) apply: Option<ApplyQueue>,
    /// The switches of OpenFlow nodes with controllers, by the names of the nodes.
    pub(crate) switches: Vec<(String, Control)>,
    /// What a lab tells of its nodes.
    pub(crate) nodes: Option<Nodes>,
    pub(crate) picture: Option<MakePicture>,
}

impl Engine {
    pub(super) fn new(behind: Behind) -> Engine {
        let Behind { workers, apply, switches, nodes, picture } = behind;
        let history = Arc::default();
        let feed = Feed::new(Arc::clone(&history));
        let (switches, captures) = (switches.into(), OpenCaptures::default());
        let scraped = Arc::default();
        Engine { workers, apply, switches, nodes, picture, feed, history, captures, scraped }
    }

    /// Lists a change that was made.
    fn record(&self, at: Time, made: impl IntoIterator<Item = Made>) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        made.into_iter().for_each(|made| history.add(at, made));
    }
}

impl FromRef<Engine> for WorkerGroup {
    fn from_ref(engine: &Engine) -> WorkerGroup {
        engine.workers.clone()
    }
}

impl FromRef<Engine> for Feed {
    fn from_ref(engine: &Engine) -> Feed {
        engine.feed.clone()
    }
}

impl FromRef<Engine> for Arc<Mutex<History>> {
    fn from_ref(engine: &Engine) -> Arc<Mutex<History>> {
        Arc::clone(&engine.history)
    }
}

impl FromRef<Engine> for OpenCaptures {
    fn from_ref(engine: &Engine) -> OpenCaptures {
        engine.captures.clone()
    }
}

impl FromRef<Engine> for Option<Nodes> {
    fn from_ref(engine: &Engine) -> Option<Nodes> {
        engine.nodes.clone()
    }
}

impl FromRef<Engine> for switches::ServedSwitches {
    fn from_ref(engine: &Engine) -> switches::ServedSwitches {
        Arc::clone(&engine.switches)
    }
}

#[derive(OpenApi)]
#[openapi(info(
    title = "fastpath control",
    description = "Inspect a running network and change its links. Quantities are texts with units, as in a spec."
))]
struct Document;

type Answer<T> = Result<Json<T>, Refused>;

/// Returns all routes.
pub(super) fn router(engine: Engine) -> Router {
    let router = declared().split_for_parts().0;
    web::add_files(router)
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(REQUEST_MAX))
        .with_state(engine)
}

async fn nothing_here() -> Refused {
    Refused(StatusCode::NOT_FOUND, "no such path: see /openapi.json".to_owned())
}

async fn wrong_method() -> Refused {
    Refused(StatusCode::METHOD_NOT_ALLOWED, "method not allowed: see /openapi.json".to_owned())
}

/// Returns the OpenAPI document. Each operation has example requests.
pub fn openapi() -> serde_json::Value {
    let document = declared().split_for_parts().1;
    let mut document = serde_json::to_value(document).expect("a document is plain data");
    samples::add(&mut document);
    document
}

fn declared() -> OpenApiRouter<Engine> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(report))
        .routes(routes!(topology))
        .routes(routes!(links))
        .routes(routes!(link))
        .routes(routes!(groups))
        .routes(routes!(start))
        .routes(routes!(stop_traces))
        .routes(routes!(set))
        .routes(routes!(restore))
        .routes(routes!(presets::presets))
        .routes(routes!(switches::switch))
        .routes(routes!(connections::connections))
        .routes(routes!(connections::flush))
        .routes(routes!(nodes::nodes))
        .routes(routes!(nodes::log))
        .routes(routes!(apply))
        .routes(routes!(stop))
        .routes(routes!(prometheus))
        .routes(routes!(events::events))
        .routes(routes!(events::changes))
        .routes(routes!(events::changes_as_events))
        .routes(routes!(picture))
        .routes(routes!(capture::capture, capture::capture_until_end))
        .routes(routes!(document))
}

/// Get the state of links and ports, lateness, and the frame accounting.
#[utoipa::path(get, path = "/report", responses((status = 200, body = Report), (status = 503, body = Failure)))]
async fn report(State(engine): State<Engine>) -> Answer<Report> {
    engine.report().map(Json)
}

/// Return the resolved topology in the canonical form of a description.
///
/// Values of links that have changed since it started or was applied are in /report.
#[utoipa::path(get, path = "/topology", responses((status = 200, body = serde_json::Value)))]
async fn topology(State(engine): State<Engine>) -> Json<serde_json::Value> {
    Json(fastpath_spec::describe(engine.workers.current().topology()).to_json())
}

/// List the links with their parameters and counters.
#[utoipa::path(get, path = "/links", responses((status = 200, body = Vec<LinkReport>), (status = 503, body = Failure)))]
async fn links(State(engine): State<Engine>) -> Answer<Vec<LinkReport>> {
    Ok(Json(engine.report()?.links))
}

/// Get one link.
#[utoipa::path(get, path = "/links/{name}", params(("name" = String, Path, description = "The link.", example = "a-b")),
    responses((status = 200, body = LinkReport), (status = 404, body = Failure), (status = 503, body = Failure)))]
async fn link(State(engine): State<Engine>, Path(name): Path<String>) -> Answer<LinkReport> {
    let current = engine.workers.current();
    let id = change::link(current.topology(), &name).map_err(|why| Refused(StatusCode::NOT_FOUND, why))?;
    let snapshot = current.snapshot().ok_or_else(ended)?;
    Ok(Json(Report::of(current.topology(), &snapshot).links.swap_remove(id.0 as usize)))
}

/// List the groups of links that are changed together.
#[utoipa::path(get, path = "/groups", responses((status = 200, body = Vec<GroupReport>)))]
async fn groups(State(engine): State<Engine>) -> Json<Vec<GroupReport>> {
    Json(change::groups(engine.workers.current().topology()))
}

/// Start the traces of a group, from their beginning if they have run before.
#[utoipa::path(post, path = "/groups/{name}/start",
    params(("name" = String, Path, description = "The group.", example = "cell")),
    responses((status = 200, body = Done), (status = 404, body = Failure), (status = 503, body = Failure)))]
async fn start(State(engine): State<Engine>, headers: HeaderMap, Path(name): Path<String>) -> Answer<Done> {
    engine.traces(&headers, name, TraceAction::Start)
}

/// Stop the traces of a group. The values of their last steps stay.
///
/// Links that followed opportunities have their own rates again.
#[utoipa::path(post, path = "/groups/{name}/stop",
    params(("name" = String, Path, description = "The group.", example = "cell")),
    responses((status = 200, body = Done), (status = 404, body = Failure), (status = 503, body = Failure)))]
async fn stop_traces(
    State(engine): State<Engine>,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Answer<Done> {
    engine.traces(&headers, name, TraceAction::Stop)
}

/// Set values of links, all at one instant, all or none.
#[utoipa::path(post, path = "/set", request_body(content = Changes, examples(
    ("1" = (summary = "Set a rate and a delay of a link, in both directions, now",
        value = json!({"changes": [{"link": "a-b", "set": {"rate": "5Mbit", "delay": "20ms"}}]}))),
    ("2" = (summary = "Set the loss and the queue of one direction",
        value = json!({"changes": [{"link": "a-b", "from": "a", "set": {"loss": "2%", "queue": {"kind": "codel"}}}]}))),
    ("3" = (summary = "Set all links of a group at a time of the run",
        value = json!({"changes": [{"group": "cell", "set": {"delay": "80ms"}}], "at": "3600s"}))),
    ("4" = (summary = "Take two links down at one instant",
        value = json!({"changes": [{"link": "a-b", "set": {"state": "down"}}, {"link": "b-c", "set": {"state": "down"}}]}))),
    )), responses((status = 200, body = Done),
    (status = 400, body = Failure), (status = 409, body = Failure), (status = 413, body = Failure),
    (status = 415, body = Failure), (status = 503, body = Failure)))]
async fn set(
    State(engine): State<Engine>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer<Done> {
    is_json(&headers)?;
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Refused(StatusCode::PAYLOAD_TOO_LARGE, format!("a request is at most {REQUEST_MAX} bytes"))
        }
        status => Refused(status, rejection.body_text()),
    })?;
    let wrong = |why| Refused(StatusCode::BAD_REQUEST, why);
    let changes: Changes = serde_json::from_slice(&body)
        .map_err(|error| wrong(format!("not a request: {error}: see /openapi.json")))?;
    let current = engine.workers.current();
    let (at, found) = change::read(current.topology(), &changes).map_err(wrong)?;
    let at = change::make(&current, at, found).map_err(refused_change)?;
    engine.record(at, changes.changes.into_iter().map(Made::Set));
    Ok(done(at))
}

/// Give links the values of the description again, all at one instant.
///
/// What an active trace sets stays.
#[utoipa::path(post, path = "/restore", request_body(content = Restore, examples(
    ("1" = (summary = "Give a link the values of the description again", value = json!({"links": ["a-b"]}))),
    ("2" = (summary = "Give all links the values of the description again", value = json!({}))),
    )), responses((status = 200, body = Done), (status = 400, body = Failure), (status = 409, body = Failure),
    (status = 503, body = Failure)))]
async fn restore(
    State(engine): State<Engine>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer<Done> {
    is_json(&headers)?;
    let wrong = |why| Refused(StatusCode::BAD_REQUEST, why);
    let body = body.map_err(|rejection| Refused(rejection.status(), rejection.body_text()))?;
    let Restore { links } = serde_json::from_slice(&body)
        .map_err(|error| wrong(format!("not a request: {error}: see /openapi.json")))?;
    let current = engine.workers.current();
    let topology = current.topology();
    let named = |names: Vec<String>| names.iter().map(|name| change::link(topology, name)).collect();
    let all = || Ok((0..topology.links.len() as u32).map(LinkId).collect());
    let links: Vec<LinkId> = links.map_or_else(all, named).map_err(wrong)?;
    let snapshot = current.snapshot().ok_or_else(ended)?;
    let changes = change::restored(topology, &snapshot, &links);
    if changes.is_empty() {
        return Ok(done(snapshot.at));
    }
    let at = change::make(&current, None, changes.clone()).map_err(refused_change)?;
    engine.record(at, changes.iter().map(|changed| Made::Set(change::setting(topology, changed))));
    Ok(done(at))
}

fn refused_change(error: ChangeError) -> Refused {
    let status = match error {
        ChangeError::Traced(_) | ChangeError::Past { .. } | ChangeError::BelowLookahead(_) => {
            StatusCode::CONFLICT
        }
        ChangeError::Ended | ChangeError::Full(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    Refused(status, error.to_string())
}

/// Get this document.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200, body = serde_json::Value)))]
async fn document() -> Json<serde_json::Value> {
    Json(openapi())
}

/// Get the places of nodes on a map, with --dashboard.
// The layout of a large network takes a while, so another thread computes it.
#[utoipa::path(get, path = "/picture",
    responses((status = 200, body = serde_json::Value), (status = 404, body = Failure)))]
async fn picture(State(engine): State<Engine>) -> Answer<serde_json::Value> {
    let Some(picture) = engine.picture else {
        let what = "there is no picture: start the network with --dashboard".to_owned();
        return Err(Refused(StatusCode::NOT_FOUND, what));
    };
    let topology = engine.workers.current().topology().clone();
    let drawn = tokio::task::spawn_blocking(move || picture(&topology)).await;
    drawn.map(Json).map_err(|error| Refused(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// Make another description the network of a lab: add and remove nodes and links by difference.
///
/// What is in both keeps its frames, clocks, queues, random numbers, traces and connections. Either
/// everything changes or nothing. Only labs can change their nodes and links.
#[utoipa::path(post, path = "/apply", request_body(content = Apply, examples(
    ("1" = (summary = "Show what would change in a lab of two hosts", value = json!({"description": {"nodes": [
        {"name": "a", "kind": "host"}, {"name": "b", "kind": "host"}],
        "links": [{"between": ["a", "b"], "delay": "20ms"}]}, "dry_run": true}))),
    )), responses((status = 200, body = Applied),
    (status = 400, body = Failure), (status = 409, body = Failure), (status = 413, body = Failure),
    (status = 415, body = Failure), (status = 503, body = Failure)))]
async fn apply(State(engine): State<Engine>, headers: HeaderMap, body: Body) -> Answer<Applied> {
    is_json(&headers)?;
    let Some(queue) = &engine.apply else {
        let what = "only a lab (fastpath lab up) can change its nodes and links";
        return Err(Refused(StatusCode::CONFLICT, what.to_owned()));
    };
    let too_long = |_| {
        let what = format!("a description and its files are at most {APPLY_MAX} bytes");
        Refused(StatusCode::PAYLOAD_TOO_LARGE, what)
    };
    let body = axum::body::to_bytes(body, APPLY_MAX).await.map_err(too_long)?;
    let wrong =
        |error| Refused(StatusCode::BAD_REQUEST, format!("not a request: {error}: see /openapi.json"));
    let apply: Apply = serde_json::from_slice(&body).map_err(wrong)?;
    let is_change = !apply.dry_run;
    let answered =
        queue.send(apply).map_err(|why| Refused(StatusCode::SERVICE_UNAVAILABLE, why.to_owned()))?;
    let applied = answered.await.map_err(|_| ended())?;
    let applied = applied.map_err(|why| Refused(StatusCode::CONFLICT, why))?;
    if is_change && !applied.changes.is_empty() {
        let at = engine.workers.current().snapshot().ok_or_else(ended)?.at;
        engine.record(at, [Made::Applied(applied.changes.len())]);
    }
    Ok(Json(applied))
}

/// End the engine.
#[utoipa::path(post, path = "/stop", responses((status = 200, body = Done), (status = 415, body = Failure)))]
async fn stop(State(engine): State<Engine>, headers: HeaderMap) -> Answer<Done> {
    is_json(&headers)?;
    let at = engine.workers.current().snapshot().map(|snapshot| snapshot.at).ok_or_else(ended)?;
    engine.workers.stop();
    Ok(done(at))
}

/// Get counters and gauges in the Prometheus text format.
#[utoipa::path(get, path = "/metrics",
    responses((status = 200, body = String, content_type = "text/plain"), (status = 503, body = Failure)))]
async fn prometheus(State(engine): State<Engine>) -> Result<Response, Refused> {
    let report = engine.report()?;
    let mut scraped = engine.scraped.lock().unwrap_or_else(PoisonError::into_inner);
    let text = metrics::metrics(&report, scraped.as_ref());
    *scraped = Some(report);
    drop(scraped);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

impl Engine {
    fn report(&self) -> Result<Report, Refused> {
        self.workers.report().ok_or_else(ended)
    }

    /// Starts or stops the traces of a group.
    fn traces(&self, headers: &HeaderMap, name: String, action: TraceAction) -> Answer<Done> {
        is_json(headers)?;
        let current = self.workers.current();
        let group =
            change::group(current.topology(), &name).map_err(|why| Refused(StatusCode::NOT_FOUND, why))?;
        let at = current.traces(group, action).ok_or_else(ended)?;
        self.record(at, [Made::Traces(name, action)]);
        Ok(done(at))
    }
}

/// A request that changes something must declare that it is JSON. A page in a browser cannot do
/// that without the user's consent.
fn is_json(headers: &HeaderMap) -> Result<(), Refused> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let what = "write the header 'content-type: application/json'".to_owned();
    Err(Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, what))
}

fn done(at: fastpath_units::Time) -> Json<Done> {
    Json(Done { at_s: at.as_secs_f64() })
}
