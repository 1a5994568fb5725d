//! The tables and columns of the database Open_vSwitch that are read and written here.
//!
//! A schema may be older than these lists. What it lacks is neither monitored nor written.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the database.
pub(crate) const DATABASE: &str = "Open_vSwitch";

/// The columns of each table that are monitored. Statistics are written without being read.
const MONITORED: &[(&str, &[&str])] = &[
    (
        "Open_vSwitch",
        &[
            "bridges",
            "next_cfg",
            "cur_cfg",
            "other_config",
            "ovs_version",
            "datapath_types",
            "iface_types",
            "ssl",
        ],
    ),
    (
        "Bridge",
        &[
            "name",
            "datapath_type",
            "datapath_id",
            "stp_enable",
            "rstp_enable",
            "mcast_snooping_enable",
            "ports",
            "mirrors",
            "netflow",
            "sflow",
            "ipfix",
            "controller",
            "protocols",
            "fail_mode",
            "status",
            "other_config",
            "flood_vlans",
            "flow_tables",
            "auto_attach",
        ],
    ),
    (
        "Port",
        &[
            "name",
            "interfaces",
            "trunks",
            "cvlans",
            "tag",
            "vlan_mode",
            "qos",
            "mac",
            "bond_mode",
            "lacp",
            "status",
            "protected",
            "other_config",
        ],
    ),
    (
        "Interface",
        &[
            "name",
            "type",
            "options",
            "ingress_policing_rate",
            "ingress_policing_burst",
            "ingress_policing_kpkts_rate",
            "ingress_policing_kpkts_burst",
            "mac_in_use",
            "mac",
            "ifindex",
            "ofport",
            "ofport_request",
            "bfd",
            "cfm_mpid",
            "lldp",
            "other_config",
            "status",
            "admin_state",
            "link_state",
            "mtu",
            "mtu_request",
            "error",
        ],
    ),
    (
        "Controller",
        &[
            "type",
            "target",
            "max_backoff",
            "inactivity_probe",
            "connection_mode",
            "local_ip",
            "enable_async_messages",
            "controller_rate_limit",
            "controller_burst_limit",
            "other_config",
            "is_connected",
            "role",
            "status",
        ],
    ),
    ("SSL", &["private_key", "certificate", "ca_cert", "bootstrap_ca_cert"]),
    ("QoS", &["type", "queues", "other_config"]),
    ("Queue", &["dscp", "other_config"]),
    (
        "Mirror",
        &[
            "name",
            "select_all",
            "select_src_port",
            "select_dst_port",
            "select_vlan",
            "output_port",
            "output_vlan",
            "snaplen",
            "filter",
        ],
    ),
];

/// The columns that the server has, by table.
pub(crate) type Columns = BTreeMap<String, BTreeSet<String>>;

/// Reads the tables and columns of a schema (RFC 7047 §3.2).
pub(crate) fn columns(schema: &Value) -> Columns {
    let objects = |json: &Value| json.as_object().cloned().unwrap_or_default();
    let tables = objects(&schema["tables"]);
    let names = |table: &Value| objects(&table["columns"]).into_iter().map(|(name, _)| name).collect();
    tables.iter().map(|(name, table)| (name.clone(), names(table))).collect()
}

/// Returns the `<monitor-requests>` (RFC 7047 §4.1.5) for what the server has of [`MONITORED`].
pub(crate) fn monitor_requests(columns: &Columns) -> Value {
    let mut requests = Map::new();
    for (table, wanted) in MONITORED {
        let Some(has) = columns.get(*table) else { continue };
        let both: Vec<&str> = wanted.iter().copied().filter(|name| has.contains(*name)).collect();
        requests.insert((*table).to_owned(), json!({ "columns": both }));
    }
    Value::Object(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_has_is_monitored() {
        let schema = json!({"tables": {
            "Queue": {"columns": {"dscp": {}, "external_ids": {}}},
            "NetFlow": {"columns": {"targets": {}}},
        }});
        assert_eq!(monitor_requests(&columns(&schema)), json!({"Queue": {"columns": ["dscp"]}}));
        assert_eq!(monitor_requests(&columns(&json!(5))), json!({}));
    }
}
