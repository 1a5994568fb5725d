//! `GET /switches/{node}`: the tables of an OpenFlow node, with their counters.

use super::refused::{Refused, ended};
use crate::switch_report::{SwitchCopy, SwitchReport};
use crate::switching::Control;
use crate::worker_group::WorkerGroup;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fastpath_link::LinkState;
use fastpath_spec::{Node, NodeKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The switches of OpenFlow nodes with controllers, by the names of the nodes.
pub(super) type ServedSwitches = Arc<[(String, Control)]>;

/// Get the tables, flows, groups and ports of an OpenFlow node, with their counters.
#[utoipa::path(get, path = "/switches/{node}",
    params(("node" = String, Path, description = "The OpenFlow node.", example = "b")),
    responses((status = 200, body = SwitchReport), (status = 404, body = super::Failure),
        (status = 503, body = super::Failure)))]
pub(super) async fn switch(
    State(workers): State<WorkerGroup>,
    State(switches): State<ServedSwitches>,
    Path(name): Path<String>,
) -> Result<Json<SwitchReport>, Refused> {
    let current = workers.current();
    let topology = current.topology();
    let is_own = |node: &&Node| node.name == name && matches!(node.kind, NodeKind::OpenFlow { .. });
    let Some(node) = topology.nodes.iter().find(is_own) else {
        let what = format!("no OpenFlow node is called '{}'", name.escape_debug());
        return Err(Refused(StatusCode::NOT_FOUND, what));
    };
    let interfaces = (1..).zip(&node.interfaces);
    let names: BTreeMap<u32, String> =
        interfaces.map(|(port, interface)| (port, topology.link(interface.link).name.clone())).collect();
    // A switch with controllers has its tables with them.
    let served = switches.iter().find(|(node, _)| *node == name);
    let copy = match served {
        Some((_, control)) => control.read(SwitchCopy::of),
        None => current.switch(&name).ok_or_else(ended)?,
    };
    let mut report = copy.report(&names);
    // A node counts at its links: its ports are theirs.
    let snapshot = current.snapshot().ok_or_else(ended)?;
    for (port, interface) in report.ports.iter_mut().zip(&node.interfaces) {
        let pipe = |end: usize| &snapshot.pipes[2 * interface.link.0 as usize + end];
        let (out, back) = (pipe(interface.end), pipe(1 - interface.end));
        (port.rx_packets, port.rx_bytes) = (back.counters.delivered.packets, back.counters.delivered.bytes);
        (port.tx_packets, port.tx_bytes) = (out.counters.pushed.packets, out.counters.pushed.bytes);
        port.up = out.spec.state == LinkState::Up;
    }
    Ok(Json(report))
}
