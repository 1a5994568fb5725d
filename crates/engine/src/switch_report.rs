//! The tables of a switch with their counters: copied by the thread that runs it ([`SwitchCopy`]),
//! put into words by the thread that was asked ([`SwitchReport`]), so that no frame waits for the
//! words.

use fastpath_ofctl::{print_instructions, print_match};
use fastpath_switch::port::{LinkState, PortCounters};
use fastpath_switch::{Connections, Flow, Group, Rank, Switch};
use fastpath_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Flows that a report has, in the order of tables and of priorities.
const FLOWS_MAX: usize = 1000;

/// The tables, ports and groups of a switch, with their counters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SwitchReport {
    /// Tables that have flows or have seen packets.
    pub tables: Vec<TableReport>,
    /// Ports.
    pub ports: Vec<SwitchPortReport>,
    /// Groups.
    pub groups: Vec<GroupCounters>,
    /// Flows: at most 1000, by table and priority.
    pub flows: Vec<FlowEntry>,
    /// Flows that are left out.
    pub omitted: usize,
}

/// A table of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TableReport {
    /// Its number.
    pub table: u8,
    /// Its flows.
    pub flows: usize,
    /// Packets that were looked up in it.
    pub lookups: u64,
    /// Packets that matched a flow.
    pub matched: u64,
}

/// A port of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SwitchPortReport {
    /// Its number.
    pub port: u32,
    /// Its interface, or the link that it belongs to.
    pub name: String,
    /// Whether its link is up.
    pub up: bool,
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames dropped at the port, in both directions.
    pub dropped: u64,
}

/// The counters of a group of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GroupCounters {
    /// Its number.
    pub group: u32,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A flow of a table, in the words of `ovs-ofctl`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FlowEntry {
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// What it matches; empty: all packets.
    #[serde(rename = "match")]
    pub matching: String,
    /// Its instructions: `actions=output:2`.
    pub actions: String,
    /// Packets that it matched.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Its age in seconds.
    pub age_s: f64,
}

/// What a report is made of.
#[derive(Debug)]
pub struct SwitchCopy {
    pub(crate) at: Time,
    /// The connections themselves.
    pub(crate) connections: Connections,
    tables: Vec<TableReport>,
    ports: Vec<(u32, bool, PortCounters)>,
    groups: Vec<GroupCounters>,
    flows: Vec<(u8, Rank, Flow)>,
    omitted: usize,
}

impl SwitchCopy {
    /// Copies the state of a switch whose counters are up to date.
    pub fn of(switch: &Switch, at: Time) -> SwitchCopy {
        let mut tables = Vec::new();
        let (mut flows, mut all) = (Vec::new(), 0);
        for (number, table) in (0..=u8::MAX).zip(switch.tables()) {
            let (lookups, matched) = table.hits();
            if !table.is_empty() || lookups > 0 {
                tables.push(TableReport { table: number, flows: table.len(), lookups, matched });
            }
            all += table.len();
            let room = FLOWS_MAX - flows.len();
            flows.extend(table.flows().take(room).map(|(rank, flow)| (number, rank.clone(), flow.clone())));
        }
        let group = |(group, found): (u32, &Group)| GroupCounters {
            group,
            packets: found.counters.packets,
            bytes: found.counters.bytes,
        };
        SwitchCopy {
            at,
            connections: switch.connections().share(),
            tables,
            ports: switch
                .ports()
                .map(|(number, port)| (number, port.link == LinkState::Up, port.counters))
                .collect(),
            groups: switch.groups().map(group).collect(),
            omitted: all - flows.len(),
            flows,
        }
    }

    /// Returns the report. `names` has the names of ports.
    pub fn report(self, names: &BTreeMap<u32, String>) -> SwitchReport {
        let port = |(number, up, counters): (u32, bool, PortCounters)| SwitchPortReport {
            port: number,
            name: names.get(&number).cloned().unwrap_or_default(),
            up,
            rx_packets: counters.rx_packets,
            rx_bytes: counters.rx_bytes,
            tx_packets: counters.tx_packets,
            tx_bytes: counters.tx_bytes,
            dropped: counters.rx_dropped + counters.tx_dropped,
        };
        let flow = |(table, rank, flow): (u8, Rank, Flow)| FlowEntry {
            table,
            priority: rank.priority(),
            matching: print_match(rank.matching()),
            actions: print_instructions(&flow.instructions),
            packets: flow.counters.packets,
            bytes: flow.counters.bytes,
            age_s: self.at.since(flow.added.min(self.at)).as_secs_f64(),
        };
        SwitchReport {
            tables: self.tables,
            ports: self.ports.into_iter().map(port).collect(),
            groups: self.groups,
            flows: self.flows.into_iter().map(flow).collect(),
            omitted: self.omitted,
        }
    }
}
