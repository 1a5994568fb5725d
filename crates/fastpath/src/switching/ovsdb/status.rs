//! What is written to the database: how the bridges are.

use super::bridge::{self, PortAttachment, RunningBridge, RunningPort};
use super::{numbers, queues};
use fastpath_engine::switching::interface;
use fastpath_openflow::agent::{AgentState, Listen, Target};
use fastpath_openflow::message::Role;
use fastpath_ovsdb::{
    BridgeSpec, Configuration, ControllerSpec, Datum, InterfaceSpec, PortSpec, RowUpdate, Uuid,
};
use std::collections::BTreeMap;

/// The types of data paths: all of them are this program.
const DATAPATH_TYPES: [&str; 2] = ["netdev", "system"];
/// The types of interfaces.
const INTERFACE_TYPES: [&str; 4] = ["internal", "patch", "system", "tap"];

/// Returns how the bridges are, without statistics.
pub(super) fn updates(
    wanted: &Configuration,
    bridges: &BTreeMap<String, RunningBridge>,
    errors: &BTreeMap<Uuid, String>,
) -> Vec<RowUpdate> {
    let version = concat!("fastpath ", env!("CARGO_PKG_VERSION"));
    let root = [
        ("cur_cfg", Datum::one(wanted.next_cfg)),
        ("ovs_version", Datum::one(version)),
        ("datapath_types", Datum::set(DATAPATH_TYPES)),
        ("iface_types", Datum::set(INTERFACE_TYPES)),
    ];
    let mut updates = vec![RowUpdate::new("Open_vSwitch", wanted.root, root)];
    for spec in &wanted.bridges {
        let running = bridges.get(&spec.name);
        let state = running.map(RunningBridge::agent_state).unwrap_or_default();
        updates.push(bridge_update(spec, running, &state, errors.get(&spec.uuid)));
        let memory = running.and_then(queues::memory_of_each);
        for port in &spec.ports {
            updates.push(port_update(port, running, memory));
            let interfaces = port.interfaces.iter();
            updates.extend(interfaces.map(|one| interface_update(one, running, errors.get(&one.uuid))));
        }
        if let Some(running) = running {
            let controllers = spec.controllers.iter();
            updates.extend(controllers.map(|one| controller_update(one, running, &state)));
        }
    }
    updates
}

/// Returns the counters of all interfaces.
pub(super) fn statistics(
    wanted: &Configuration,
    bridges: &BTreeMap<String, RunningBridge>,
) -> Vec<RowUpdate> {
    let mut updates = Vec::new();
    for spec in &wanted.bridges {
        let Some(running) = bridges.get(&spec.name) else { continue };
        let counters = running.counters();
        for interface in spec.ports.iter().flat_map(|port| &port.interfaces) {
            let Some(port) = running.ports.get(&interface.name) else { continue };
            let Some(c) = counters.get(&port.number) else { continue };
            let pairs = [
                ("rx_packets", c.rx_packets),
                ("rx_bytes", c.rx_bytes),
                ("rx_dropped", c.rx_dropped),
                ("tx_packets", c.tx_packets),
                ("tx_bytes", c.tx_bytes),
                ("tx_dropped", c.tx_dropped),
            ];
            let pairs = pairs.map(|(name, count)| (name, i64::try_from(count).unwrap_or(i64::MAX)));
            updates.push(RowUpdate::new("Interface", interface.uuid, [("statistics", Datum::map(pairs))]));
        }
    }
    for (mirror, (packets, bytes)) in bridges.values().flat_map(RunningBridge::mirrored) {
        let pairs = [("tx_packets", packets), ("tx_bytes", bytes)];
        let pairs = pairs.map(|(name, count)| (name, i64::try_from(count).unwrap_or(i64::MAX)));
        updates.push(RowUpdate::new("Mirror", mirror, [("statistics", Datum::map(pairs))]));
    }
    updates
}

fn bridge_update(
    spec: &BridgeSpec,
    running: Option<&RunningBridge>,
    state: &AgentState,
    error: Option<&String>,
) -> RowUpdate {
    let id = running.map(|_| format!("{:016x}", bridge::datapath_id(spec)));
    let mut status = unsupported(&spec.notes);
    let unserved = state.unserved.iter().map(|(path, why)| format!("{}: {why}", path.display()));
    let errors: Vec<String> = error.cloned().into_iter().chain(unserved).collect();
    if !errors.is_empty() {
        status.push(("error", errors.join("; ")));
    }
    RowUpdate::new("Bridge", spec.uuid, [("datapath_id", Datum::set(id)), ("status", Datum::map(status))])
}

fn port_update(spec: &PortSpec, running: Option<&RunningBridge>, memory: Option<usize>) -> RowUpdate {
    let mut status = unsupported(&spec.notes);
    let has_queues = |bridge: &RunningBridge| {
        let mut ports = spec.interfaces.iter().filter_map(|one| bridge.ports.get(&one.name));
        ports.any(|port| port.queues.is_some())
    };
    if running.is_some_and(has_queues) {
        status.extend(memory.map(|bytes| ("queue_bytes_max", bytes.to_string())));
    }
    RowUpdate::new("Port", spec.uuid, [("status", Datum::map(status))])
}

fn interface_update(
    spec: &InterfaceSpec,
    running: Option<&RunningBridge>,
    error: Option<&String>,
) -> RowUpdate {
    let port = running.and_then(|bridge| Some((bridge, bridge.ports.get(&spec.name)?)));
    let mut columns = BTreeMap::from([
        ("ofport", Datum::one(port.map_or(-1, |(_, port)| numbers::in_database(port.number)))),
        ("error", Datum::set(error.cloned())),
    ]);
    let mut status = unsupported(&spec.notes);
    let facts = port.map(|(bridge, port)| facts(&spec.name, bridge, port)).unwrap_or_default();
    status.extend(facts.driver.map(|driver| ("driver_name", driver.to_owned())));
    columns.insert("status", Datum::map(status));
    let up = |is_up: bool| if is_up { "up" } else { "down" };
    columns.insert("admin_state", Datum::set(facts.is_up.map(up)));
    columns.insert("link_state", Datum::set(facts.has_link.map(up)));
    columns.insert("mac_in_use", Datum::set(facts.hw_addr));
    columns.insert("mtu", Datum::set(facts.mtu));
    columns.insert("ifindex", Datum::set(facts.index));
    RowUpdate { table: "Interface", row: spec.uuid, columns }
}

/// What is known of the interface of a port.
#[derive(Default)]
struct InterfaceFacts {
    driver: Option<&'static str>,
    is_up: Option<bool>,
    has_link: Option<bool>,
    hw_addr: Option<String>,
    mtu: Option<i64>,
    index: Option<i64>,
}

fn facts(name: &str, bridge: &RunningBridge, port: &RunningPort) -> InterfaceFacts {
    let has_link = bridge.is_link_up(port.number);
    let hw_addr = Some(port.hw_addr.to_string());
    let driver = match port.attachment {
        PortAttachment::System => "packet socket",
        PortAttachment::Internal => "tap",
        PortAttachment::Patch(_) => {
            let (driver, has_link) = (Some("patch"), Some(has_link));
            return InterfaceFacts { driver, is_up: has_link, has_link, hw_addr, ..Default::default() };
        }
    };
    let index = bridge.links.index(port.number);
    // An interface that was moved to another network namespace is not seen by its name.
    let mtu = interface::properties(name).ok().and_then(|(_, mtu)| i64::try_from(mtu).ok());
    InterfaceFacts {
        driver: Some(driver),
        is_up: bridge.links.is_up(port.number),
        has_link: Some(has_link),
        hw_addr,
        mtu,
        index: index.map(i64::from),
    }
}

fn controller_update(spec: &ControllerSpec, bridge: &RunningBridge, state: &AgentState) -> RowUpdate {
    let mut status = unsupported(&spec.notes);
    let (mut role, mut failure) = (None, bridge.refused.get(&spec.uuid).cloned());
    if failure.is_none()
        && let Ok(target) = spec.target.parse::<Target>()
        && let Some(dialled) = state.dialled.iter().find(|one| one.target == target)
    {
        role = dialled.role;
        failure = dialled.failure.clone().filter(|_| role.is_none());
        status.push(("state", if role.is_some() { "ACTIVE" } else { "BACKOFF" }.to_owned()));
    } else if failure.is_none()
        && let Ok(listen) = spec.target.parse::<Listen>()
    {
        failure = state.deaf.iter().find(|(deaf, _)| *deaf == listen).map(|(_, why)| why.clone());
    }
    failure = failure.or_else(|| state.tls.clone().filter(|_| spec.target.contains("sl:")));
    status.extend(failure.map(|why| ("last_error", why)));
    let name = role.map(|role| match role {
        Role::Master => "master",
        Role::Slave => "slave",
        _ => "other",
    });
    let columns = [
        ("is_connected", Datum::one(role.is_some())),
        ("role", Datum::set(name)),
        ("status", Datum::map(status)),
    ];
    RowUpdate::new("Controller", spec.uuid, columns)
}

/// The entry of a status column for what is written and not done.
fn unsupported(notes: &[String]) -> Vec<(&'static str, String)> {
    if notes.is_empty() { Vec::new() } else { vec![("unsupported", notes.join("; "))] }
}
