//! `GET /connections`, `POST /connections/flush`: the connections that OpenFlow nodes track.

use super::refused::{Refused, ended, parsed};
use super::switches::ServedSwitches;
use crate::switch_report::SwitchCopy;
use crate::worker_group::WorkerGroup;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode};
use fastpath_spec::NodeKind;
use fastpath_switch::Connections;
use fastpath_switch::connections::{Alg, ConnectionInfo, FlowTuple};
use fastpath_units::Time;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use utoipa::ToSchema;

/// The most connections of a list.
const LISTED_MAX: usize = 100_000;

/// Connections that OpenFlow nodes track.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ConnectionList {
    /// The connections, in the order of nodes, zones and tuples.
    pub connections: Vec<ConnectionReport>,
    /// How many more there are.
    pub omitted: usize,
}

/// A connection that a switch tracks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConnectionReport {
    /// The OpenFlow node.
    #[schema(example = "s")]
    pub node: String,
    /// The zone.
    pub zone: u16,
    /// The protocol above IP.
    #[schema(example = 6)]
    pub protocol: u8,
    /// Source and destination of its first packet, with ports (of ICMP: the identifier; type,
    /// code).
    #[schema(example = json!(["10.0.0.1:4000", "10.0.0.2:80"]))]
    pub original: [String; 2],
    /// Source and destination of replies.
    #[schema(example = json!(["10.0.0.2:80", "10.0.0.1:4000"]))]
    pub reply: [String; 2],
    /// The states of the peers of TCP: of the one that began, and of the other.
    #[schema(example = json!(["ESTABLISHED", "ESTABLISHED"]))]
    pub tcp: Option<[String; 2]>,
    /// Its `ct_mark`.
    pub mark: u32,
    /// Its `ct_label`, in hexadecimal.
    #[schema(example = "0x0")]
    pub label: String,
    /// The helper that reads its packets.
    #[schema(example = "ftp")]
    pub helper: Option<String>,
    /// Seconds after which it ends if no packet comes.
    pub expires_s: f64,
    /// The same in the words of `ovs-appctl dpctl/dump-conntrack`.
    #[schema(
        example = "udp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=4000,dport=53),reply=(src=10.0.0.2,dst=10.0.0.1,sport=53,dport=4000)"
    )]
    pub text: String,
}

/// The connections to end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Flush {
    /// Those of this OpenFlow node. Absent: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "s")]
    pub node: Option<String>,
    /// Those of this zone. Absent: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 1)]
    pub zone: Option<u16>,
}

/// How many connections were ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Flushed {
    /// The connections.
    pub connections: usize,
}

/// Returns source and destination with their ports; of ICMP with the identifier, and type and code.
fn ends(tuple: FlowTuple) -> [String; 2] {
    let [src, dst] = tuple.addresses();
    [SocketAddr::new(src, tuple.src_port), SocketAddr::new(dst, tuple.dst_port)].map(|end| end.to_string())
}

impl ConnectionReport {
    fn new(node: &str, one: &ConnectionInfo, now: Time) -> ConnectionReport {
        ConnectionReport {
            node: node.to_owned(),
            zone: one.zone,
            protocol: one.original.protocol,
            original: ends(one.original),
            reply: ends(one.reply),
            tcp: one.tcp.map(|(original, reply)| [original, reply].map(|phase| phase.name().to_owned())),
            mark: one.mark,
            label: format!("{:#x}", one.label),
            helper: one.alg.map(Alg::name).map(str::to_owned),
            expires_s: one.deadline.since(now).as_secs_f64(),
            text: one.to_string(),
        }
    }
}

/// List the connections that the OpenFlow nodes track with `ct`.
#[utoipa::path(get, path = "/connections",
    responses((status = 200, body = ConnectionList), (status = 503, body = super::Failure)))]
pub(super) async fn connections(
    State(workers): State<WorkerGroup>,
    State(switches): State<ServedSwitches>,
) -> Result<Json<ConnectionList>, Refused> {
    let mut list = ConnectionList::default();
    for (node, connections, now) in tables(&workers, &switches, None)? {
        let all = connections.list(now);
        let room = LISTED_MAX - list.connections.len();
        list.omitted += all.len().saturating_sub(room);
        let reports = all.iter().take(room).map(|one| ConnectionReport::new(&node, one, now));
        list.connections.extend(reports);
    }
    Ok(Json(list))
}

/// End connections that OpenFlow nodes track.
#[utoipa::path(post, path = "/connections/flush", request_body(content = Flush, examples(
        ("zone" = (summary = "End the connections of a zone", value = json!({ "zone": 1 }))))),
    responses((status = 200, body = Flushed), (status = 400, body = super::Failure),
        (status = 404, body = super::Failure),
        (status = 503, body = super::Failure)))]
pub(super) async fn flush(
    State(workers): State<WorkerGroup>,
    State(switches): State<ServedSwitches>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Flushed>, Refused> {
    let Flush { node, zone } = parsed(&headers, body)?;
    let tables = tables(&workers, &switches, node.as_deref())?;
    if let (Some(node), true) = (node, tables.is_empty()) {
        let what = format!("no OpenFlow node is called '{}'", node.escape_debug());
        return Err(Refused(StatusCode::NOT_FOUND, what));
    }
    Ok(Json(Flushed { connections: tables.iter().map(|(_, table, _)| table.flush(zone)).sum() }))
}

/// Returns the tables of connections of a node, or of all, with the time there.
fn tables(
    workers: &WorkerGroup,
    switches: &ServedSwitches,
    only: Option<&str>,
) -> Result<Vec<(String, Connections, Time)>, Refused> {
    let current = workers.current();
    let nodes = current.topology().nodes.iter().filter(|node| {
        matches!(node.kind, NodeKind::OpenFlow { .. }) && only.is_none_or(|only| *node.name == *only)
    });
    let table = |name: &str| -> Result<_, Refused> {
        // A switch with controllers has its tables with them.
        let copy = match switches.iter().find(|(node, _)| node == name) {
            Some((_, control)) => control.read(SwitchCopy::of),
            None => current.switch(name).ok_or_else(ended)?,
        };
        Ok((name.to_owned(), copy.connections, copy.at))
    };
    nodes.map(|node| table(&node.name)).collect()
}
