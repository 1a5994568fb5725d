//! The control interface of a running engine: HTTP with JSON, over a Unix socket and optionally a
//! second address.
//!
//! ```text
//!  ctl, curl, Prometheus ──HTTP──▶ server.rs ─▶ routes.rs ──▶ WorkerGroup ──▶ workers
//!                                  (a thread of its own, never the data path)
//!  GET  /report /links /links/{name} /groups /presets /switches/{node} /connections /metrics
//!  GET  /openapi.json
//!  GET  / (the dashboard) /events /picture /nodes /nodes/{name}/log /changes /changes.toml
//!  GET  /capture?link=a-b&drops=true   (pcapng, until the client ends its request or disconnects)
//!  POST /set   {"changes":[{"link":"a-b","from":"a","set":{"rate":"1Mbit"}}],"at":"10s"}
//!  POST /apply {"description":{…},"dry_run":true}     the network that is to run (labs)
//!  POST /connections/flush {"zone":1}
//!  POST /groups/{name}/start   POST /groups/{name}/stop   POST /restore   POST /stop
//! ```
//!
//! Every answer is JSON except the metrics. An error is `{"error":"…"}` with a status other than
//! 200.
//!
//! Read first: this file (requests and answers). `routes.rs` answers requests, `change.rs` reads
//! changes, and `client.rs` sends requests.

mod address;
mod apply;
mod capture;
mod capture_client;
mod change;
mod client;
mod connections;
mod events;
mod history;
mod metrics;
mod nodes;
mod presets;
mod refused;
mod routes;
mod samples;
mod server;
mod streaming;
mod switch_page;
mod switches;
pub(crate) mod values;
mod web;

pub use address::{BadAddress, HttpAddress};
pub use apply::{Applied, AppliedChange, Apply, ApplyQueue, ApplyRequest, ApplyRequests, apply_requests};
pub use capture_client::CaptureStream;
pub use change::ChangeError;
pub(crate) use change::make as make_changes;
pub use client::{CallError, call, percent_encoded};
pub use connections::{ConnectionList, ConnectionReport, Flush, Flushed, TupleReport};
pub use nodes::Nodes;
pub(crate) use routes::Behind;
pub use routes::openapi;
pub use server::HttpEndpoint;
pub(crate) use server::Server;
pub use switch_page::SwitchPage;
pub use web::Dashboard;

use crate::report::Report;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The longest request body, bytes.
pub const REQUEST_MAX: usize = 64 << 10;
/// The longest body of a request to change nodes and links, bytes.
pub const APPLY_MAX: usize = 64 << 20;

/// A request to a running engine.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// The state of links with their parameters and counters, of ports, and the frame accounting.
    Report,
    /// The groups of links.
    Groups,
    /// The topology that runs.
    Topology,
    /// The connections that OpenFlow nodes track.
    Connections,
    /// Ends connections that OpenFlow nodes track.
    Flush(Flush),
    /// New values for links, all at one instant.
    Set(Changes),
    /// Starts the traces of a group now.
    Start {
        /// The group.
        group: String,
    },
    /// Changes the nodes and links of a lab.
    Apply(Box<Apply>),
    /// Ends the engine.
    Stop,
}

/// New values for links, applied at one instant, all or none. Frames that links hold stay.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// The changes. Where one link is named twice, they apply in this order.
    pub changes: Vec<Setting>,
    /// Time of the change since the engine started: `12.5s`. Absent: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "12.5s")]
    pub at: Option<String>,
}

/// New values for a link, or for all links of a group.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Name of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "a-b")]
    pub link: Option<String>,
    /// Name of a group, instead of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Change only the direction of the link that leads from this node. Absent: both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Values by the keys of a link in a spec, written as there: `"1Mbit"`, a table as an object
    /// (`{"kind": "codel"}`) or as TOML text. Absent values stay.
    #[schema(schema_with = values::schema)]
    pub set: Map<String, Value>,
}

/// The links that get the values of their description again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// Names of links. Absent: all links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = json!(["a-b"]))]
    pub links: Option<Vec<String>>,
}

/// The time at which a change or has happened.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Done {
    /// Seconds since the engine started.
    pub at_s: f64,
}

/// Links that are changed together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// When its traces start: `at 10s`, `first-packet` or `command`.
    pub start: String,
    /// Its links.
    pub links: Vec<String>,
}

/// The error of a request that changed nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// What is wrong, where, and what to write instead.
    pub error: String,
}

/// The answer of an engine.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Response {
    /// The answer to [`Request::Report`].
    Report(Box<Report>),
    /// The answer to [`Request::Groups`].
    Groups(Vec<GroupReport>),
    /// The answer to [`Request::Topology`]: a description in the canonical form.
    Topology(Value),
    /// The answer to [`Request::Connections`].
    Connections(ConnectionList),
    /// The answer to [`Request::Flush`].
    Flushed(Flushed),
    /// The answer to [`Request::Apply`].
    Applied(Applied),
    /// The answer to all other requests.
    Done(Done),
    /// The request failed and changed nothing, for this reason.
    Error(String),
}
