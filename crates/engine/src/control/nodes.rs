//! `GET /nodes` and `GET /nodes/{name}/log`: what runs on the hosts of a lab. The lab knows, not
//! the engine ([`Nodes`]).

use super::refused::Refused;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// What a lab tells of its nodes. Both functions may take a while: they run on threads of their
/// own.
#[derive(Clone)]
pub struct Nodes {
    /// Returns the nodes, with their programs, as the answer to `GET /nodes`; `Err` says why not.
    pub list: Arc<dyn Fn() -> Result<Value, String> + Send + Sync>,
    /// Returns the end of the log of the host with this name; `None`: it has none.
    pub log: Arc<ReadLog>,
}

/// Returns the end of the log of the host with a name.
type ReadLog = dyn Fn(&str) -> Option<String> + Send + Sync;

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nodes")
    }
}

fn no_lab() -> Refused {
    let what = "programs run on the hosts of a lab (fastpath lab up --dashboard)".to_owned();
    Refused(StatusCode::NOT_FOUND, what)
}

fn broken(why: impl ToString) -> Refused {
    Refused(StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
}

/// List the nodes of a lab: its name, their namespaces, programs and addresses.
///
/// It has the keys of `fastpath lab inspect --json`. It is there with --dashboard.
#[utoipa::path(get, path = "/nodes",
    responses((status = 200, body = serde_json::Value), (status = 404, body = super::Failure)))]
pub(super) async fn nodes(State(nodes): State<Option<Nodes>>) -> Result<Json<Value>, Refused> {
    let nodes = nodes.ok_or_else(no_lab)?;
    let listed = tokio::task::spawn_blocking(move || (nodes.list)()).await.map_err(broken)?;
    listed.map(Json).map_err(broken)
}

/// Get the end of the output of the commands that a description starts on a host.
#[utoipa::path(get, path = "/nodes/{name}/log",
    params(("name" = String, Path, description = "The host.", example = "a")),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 404, body = super::Failure)))]
pub(super) async fn log(
    State(nodes): State<Option<Nodes>>,
    Path(name): Path<String>,
) -> Result<Response, Refused> {
    let nodes = nodes.ok_or_else(no_lab)?;
    let what = format!("{} has no log: its description starts no command there", name.escape_debug());
    let found = tokio::task::spawn_blocking(move || (nodes.log)(&name)).await.map_err(broken)?;
    let text = found.ok_or(Refused(StatusCode::NOT_FOUND, what))?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}
