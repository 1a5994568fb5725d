//! OpenFlow tables: rules in, frames through as arrays, counters out.

use crate::failure::{argument, raise, without_lock};
use fastpath::ofctl::{Mistake, Mistakes, print_instructions, print_match};
use fastpath::switch::port::LinkState;
use fastpath::switch::{FlowCommand, Limits};
use fastpath::switching::{FrameFate, FrameSwitch};
use fastpath::units::{Duration, Time};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mistake in rules: line, what is wrong, what to write.
type RuleMistake = (usize, String, String);
/// Frames between two looks at signals.
const FRAMES_PER_LOOK: usize = 4096;

/// A switch without real ports.
#[pyclass(module = "fastpath._native")]
pub(crate) struct FlowTables(Mutex<FrameSwitch>);

/// What became of frames: one element per copy.
#[derive(Default)]
struct Fates {
    packet: Vec<u32>,
    end: Vec<u8>,
    ends: Vec<&'static str>,
    port: Vec<u32>,
    start: Vec<u64>,
    bytes: Vec<u8>,
}

#[pymethods]
impl FlowTables {
    #[new]
    fn new(ports: Vec<String>, tables: u8, flows: usize) -> PyResult<FlowTables> {
        if !(1..=254).contains(&tables) {
            return Err(argument(format!("{tables} tables; a switch has 1 to 254")));
        }
        let names: Vec<&str> = ports.iter().map(String::as_str).collect();
        let limits = Limits { tables, flows, ..Limits::default() };
        // Without machine code the interpreter gives the same answers.
        FrameSwitch::new(limits, &names, &|_| {}).map(|made| FlowTables(Mutex::new(made))).map_err(raise)
    }

    /// Adds rules. Returns their mistakes.
    fn add(&self, text: &str) -> Vec<RuleMistake> {
        self.lock().add_rules(text).map_or_else(rows, |()| Vec::new())
    }

    /// Deletes flows. Returns how many, and the mistakes in the match.
    fn delete(&self, matching: &str, strict: bool) -> (usize, Vec<RuleMistake>) {
        let command = if strict { FlowCommand::DeleteStrict } else { FlowCommand::Delete };
        match self.lock().delete_flows(matching, command) {
            Ok(deleted) => (deleted, Vec::new()),
            Err(mistakes) => (0, rows(mistakes)),
        }
    }

    /// Takes the link of a port up or down.
    fn set_link(&self, port: u32, up: bool) -> PyResult<()> {
        let state = if up { LinkState::Up } else { LinkState::Down };
        self.lock().set_link(port, state).map_err(raise)
    }

    /// The numbers of the ports by name.
    fn names(&self) -> Vec<(String, u32)> {
        self.lock().names().iter().map(|(name, number)| (name.clone(), *number)).collect()
    }

    /// Sends frames through the tables; one length or port stands for all.
    fn send<'py>(
        &self,
        py: Python<'py>,
        times: PyReadonlyArray1<'py, u64>,
        ports: PyReadonlyArray1<'py, u32>,
        bytes: PyReadonlyArray1<'py, u8>,
        lengths: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (times, ports) = (times.as_slice()?, ports.as_slice()?);
        let (mut bytes, lengths) = (bytes.as_slice()?, lengths.as_slice()?);
        let one_of = |all: &[u32], index: usize| if all.len() == 1 { all[0] } else { all[index] };
        let fates = without_lock(py, |signals| {
            let mut switch = self.lock();
            let mut fates = Fates::default();
            let mut frame = Vec::new();
            for (index, &at) in times.iter().enumerate() {
                if index.is_multiple_of(FRAMES_PER_LOOK) && !signals.go_on(|_| Ok(())) {
                    break;
                }
                let (this, rest) = bytes.split_at(one_of(lengths, index) as usize);
                bytes = rest;
                frame.clear();
                frame.extend_from_slice(this);
                let now = Time::ZERO.saturating_add(Duration::from_ps(at));
                let packet = u32::try_from(index).map_err(argument)?;
                switch.packet(now, one_of(ports, index), &mut frame, &mut |fate, bytes| {
                    fates.add(packet, fate, bytes);
                });
            }
            Ok(fates)
        })?;
        let out = PyDict::new(py);
        out.set_item("packet", fates.packet.into_pyarray(py))?;
        out.set_item("end", fates.end.into_pyarray(py))?;
        out.set_item("ends", fates.ends)?;
        out.set_item("port", fates.port.into_pyarray(py))?;
        out.set_item("start", fates.start.into_pyarray(py))?;
        out.set_item("bytes", fates.bytes.into_pyarray(py))?;
        Ok(out)
    }

    /// Flows, tables, ports and groups with their counters, as JSON.
    fn state(&self) -> String {
        let mut locked = self.lock();
        let names: Vec<(u32, String)> = locked.names().iter().map(|(name, n)| (*n, name.clone())).collect();
        let name_of = |number| names.iter().find(|(n, _)| *n == number).map(|(_, name)| name.clone());
        let switch = locked.switch();
        let (mut flows, mut tables) = (Vec::new(), Vec::new());
        for (id, table) in (0_u8..).zip(switch.tables()) {
            let (lookups, matched) = table.hits();
            if !table.is_empty() || lookups > 0 {
                let (flows, missed) = (table.len(), lookups - matched);
                tables.push(json!({ "table": id, "flows": flows, "lookups": lookups,
                    "matched": matched, "missed": missed }));
            }
            flows.extend(table.flows().map(|(rank, flow)| {
                json!({ "table": id, "priority": rank.priority(), "match": print_match(rank.matching()),
                    "actions": print_instructions(&flow.instructions), "cookie": flow.cookie,
                    "packets": flow.counters.packets, "bytes": flow.counters.bytes,
                    "idle_timeout": flow.idle_timeout, "hard_timeout": flow.hard_timeout })
            }));
        }
        let port = |(number, port): (u32, &fastpath::switch::Port)| {
            let c = port.counters;
            json!({ "port": number, "name": name_of(number), "up": port.link == LinkState::Up,
                "rx_packets": c.rx_packets, "rx_bytes": c.rx_bytes, "rx_dropped": c.rx_dropped,
                "tx_packets": c.tx_packets, "tx_bytes": c.tx_bytes, "tx_dropped": c.tx_dropped })
        };
        let ports: Vec<Value> = switch.ports().map(port).collect();
        json!({ "flows": flows, "tables": tables, "ports": ports }).to_string()
    }

    /// Explains the tables and the path of a packet, as text and as JSON.
    fn explain(&self, packet: Option<&str>, in_port: u32) -> PyResult<(String, String)> {
        let explanation = self.lock().explain(packet, in_port).map_err(raise)?;
        Ok((explanation.to_string(), explanation.json().to_string()))
    }
}

impl FlowTables {
    /// A panic during a call, which is a defect, has been raised there.
    fn lock(&self) -> MutexGuard<'_, FrameSwitch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fates {
    fn add(&mut self, packet: u32, fate: FrameFate, bytes: &[u8]) {
        let (end, port) = match fate {
            FrameFate::Sent(port) => ("sent", port),
            FrameFate::ToControllers => ("controller", 0),
            FrameFate::Dropped(reason) => (reason, 0),
        };
        let known = self.ends.iter().position(|known| *known == end);
        let end = known.unwrap_or_else(|| {
            self.ends.push(end);
            self.ends.len() - 1
        });
        self.packet.push(packet);
        // There are fewer reasons than 256.
        self.end.push(end as u8);
        self.port.push(port);
        self.start.push(self.bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

fn rows(mistakes: Mistakes) -> Vec<RuleMistake> {
    mistakes.into_iter().map(|Mistake { line, what, instead }| (line, what, instead)).collect()
}
