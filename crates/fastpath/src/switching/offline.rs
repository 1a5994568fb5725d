//! Captures through a switch in virtual time. A packet leaves at the time at which it arrived.

use super::executor::executor;
use super::ports::number_ports;
use crate::error::{Error, Result};
use crate::replay::{BytesRead, Captures};
use fastpath_ofctl::PortNames;
use fastpath_switch::execute::OutboxEntry;
use fastpath_switch::{Executor, Outbox, Port, PortCounters, Switch, Verdict};
use fastpath_units::{Duration, Time};
use fastpath_wire::pcap::{LINKTYPE_ETHERNET, Writer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A capture at a port, by the number of the port.
#[derive(Clone, Debug)]
pub struct CaptureAtPort {
    /// The port.
    pub port: u32,
    /// The capture.
    pub file: PathBuf,
}

/// A capture at a port, by the name of the port: `PORT=FILE`.
#[derive(Clone, Debug)]
pub struct NamedCapture {
    /// The port.
    pub port: String,
    /// The capture.
    pub file: PathBuf,
}

impl FromStr for NamedCapture {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<NamedCapture, &'static str> {
        match text.split_once('=') {
            Some((port, file)) if !port.is_empty() && !file.is_empty() => {
                Ok(NamedCapture { port: port.to_owned(), file: file.into() })
            }
            _ => Err("write PORT=FILE"),
        }
    }
}

/// The captures of a run, at ports with names.
#[derive(Clone, Debug)]
pub struct OfflineCaptures {
    ports: Vec<(u32, String)>,
    inputs: Vec<CaptureAtPort>,
    outputs: Vec<CaptureAtPort>,
}

impl OfflineCaptures {
    /// Numbers the ports in the order in which they are named first.
    ///
    /// # Errors
    /// As [`number_ports`].
    pub fn new(inputs: &[NamedCapture], outputs: &[NamedCapture]) -> Result<OfflineCaptures> {
        let mut names: Vec<&str> = Vec::new();
        for capture in inputs.iter().chain(outputs) {
            if !names.contains(&capture.port.as_str()) {
                names.push(&capture.port);
            }
        }
        let numbers = number_ports(names)?;
        let at_port = |NamedCapture { port, file }: &NamedCapture| {
            let number = numbers.iter().find(|(_, name)| name == port).map_or(0, |(number, _)| *number);
            CaptureAtPort { port: number, file: file.clone() }
        };
        Ok(OfflineCaptures {
            inputs: inputs.iter().map(at_port).collect(),
            outputs: outputs.iter().map(at_port).collect(),
            ports: numbers.into_iter().map(|(number, name)| (number, name.to_owned())).collect(),
        })
    }

    /// Adds the ports to a switch. Returns their numbers by name.
    pub fn add_ports(&self, switch: &mut Switch) -> PortNames {
        self.ports.iter().for_each(|(number, _)| switch.set_port(*number, Port::up()));
        self.ports.iter().map(|(number, name)| (name.clone(), *number)).collect()
    }

    /// Sends the captures through a switch that has the ports.
    ///
    /// # Errors
    /// As [`switch_captures`].
    pub fn run(
        &self,
        switch: Switch,
        notice: &dyn Fn(&str),
        progress: &mut dyn FnMut(BytesRead),
    ) -> Result<OfflineSummary> {
        let summary = switch_captures(switch, &self.inputs, &self.outputs, notice, progress)?;
        Ok(OfflineSummary { ports: self.ports.clone(), ..summary })
    }
}

/// The fates of the packets of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OfflineAccounting {
    /// Packets received.
    pub received: u64,
    /// Copies made of them.
    pub copied: u64,
    /// Packets written to the capture of a port.
    pub sent: u64,
    /// Packets sent to ports without a capture.
    pub sent_without_file: u64,
    /// Packets sent to controllers. There are none offline.
    pub to_controllers: u64,
    /// Packets dropped, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Packets of which the captures hold only the first bytes. Those bytes were switched.
    pub cut_by_snap_length: u64,
    /// Whether received + copied = sent + sent_without_file + to_controllers + dropped.
    pub balance: bool,
}

/// Counters of a table.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TableCounters {
    /// The number of the table.
    pub table: u8,
    /// Flows in it.
    pub flows: usize,
    /// Packets looked up.
    pub lookups: u64,
    /// Packets that matched a flow.
    pub matched: u64,
}

/// The result of [`switch_captures`].
#[derive(Debug)]
pub struct OfflineSummary {
    /// The accounting of all packets.
    pub packets: OfflineAccounting,
    /// Number and name of the ports of [`OfflineCaptures`].
    pub ports: Vec<(u32, String)>,
    /// Counters of tables that have flows or were looked up.
    pub tables: Vec<TableCounters>,
    /// The switch after the run, with its counters.
    pub switch: Switch,
    /// Captures that could not be read to their end.
    pub problems: Vec<Error>,
}

impl OfflineSummary {
    /// Returns the counters of a port.
    pub fn port(&self, number: u32) -> PortCounters {
        self.switch.port(number).map(|port| port.counters).unwrap_or_default()
    }
}

/// Sends captures through a switch whose ports and rules are set, offline. Packets that leave by a
/// port without an output are counted.
///
/// # Errors
/// A file used twice, two outputs of one port, files that cannot be read or written.
pub fn switch_captures(
    switch: Switch,
    inputs: &[CaptureAtPort],
    outputs: &[CaptureAtPort],
    notice: &dyn Fn(&str),
    progress: &mut dyn FnMut(BytesRead),
) -> Result<OfflineSummary> {
    refuse_overwriting(inputs, outputs)?;
    let mut captures = Captures::open(inputs.iter().map(|input| input.file.as_path()))?;
    let mut run = OfflineRun::new(switch, outputs, notice)?;
    let start_ns = captures.start_ns().unwrap_or(0);
    let mut spent = None;
    while let Some(mut packet) = captures.next(spent) {
        let now = Time::ZERO.saturating_add(Duration::from_ns(packet.ns - start_ns));
        run.packets.cut_by_snap_length += u64::from(packet.data.len() < packet.wire_len);
        run.packet(now, packet.ns, inputs[packet.capture].port, &mut packet.data)?;
        if run.packets.received.is_multiple_of(4096) {
            progress(captures.bytes_read());
        }
        spent = Some(packet);
    }
    run.finish(captures.into_problems())
}

/// A run in progress.
struct OfflineRun {
    switch: Switch,
    executor: Box<dyn Executor>,
    outputs: BTreeMap<u32, Output>,
    outbox: Outbox,
    packets: OfflineAccounting,
    /// Outputs, packet-ins and drops of all packets. Each beyond the first of a packet is a copy.
    outcomes: u64,
}

struct Output {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
}

impl OfflineRun {
    fn new(mut switch: Switch, files: &[CaptureAtPort], notice: &dyn Fn(&str)) -> Result<OfflineRun> {
        let mut outputs = BTreeMap::new();
        for CaptureAtPort { port, file: path } in files {
            let create = |path: &Path| Writer::new(BufWriter::new(File::create(path)?), LINKTYPE_ETHERNET);
            let writer = create(path).map_err(Error::file(path))?;
            if outputs.insert(*port, Output { path: path.clone(), writer }).is_some() {
                return Err(Error::Argument(format!("port {port}: it has two outputs; give it one")));
            }
        }
        let executor = executor(&mut switch, notice);
        let (outbox, packets) = (Outbox::default(), OfflineAccounting::default());
        Ok(OfflineRun { switch, executor, outputs, outbox, packets, outcomes: 0 })
    }

    fn packet(&mut self, now: Time, ns: u64, in_port: u32, frame: &mut [u8]) -> Result<()> {
        let OfflineRun { switch, executor, outputs, outbox, packets, .. } = self;
        if switch.next_at().is_some_and(|at| at <= now) {
            executor.credit(switch);
            switch.expire(now);
            executor.update(switch);
        }
        packets.received += 1;
        let verdict = executor.execute(switch, now, in_port, frame, outbox);
        self.outcomes += outbox.fates() as u64;
        if let Verdict::Forward { port, .. } = verdict {
            self.outcomes += 1;
            send(outputs, packets, port, ns, frame)?;
        }
        for (entry, bytes) in outbox.entries() {
            match entry {
                OutboxEntry::Output { port, .. } => send(outputs, packets, *port, ns, bytes)?,
                OutboxEntry::Controller(_) => packets.to_controllers += 1,
                OutboxEntry::Learn(_) => {}
                OutboxEntry::Drop(reason) => *packets.dropped.entry(reason.name()).or_default() += 1,
            }
        }
        outbox.clear();
        Ok(())
    }

    fn finish(mut self, problems: Vec<Error>) -> Result<OfflineSummary> {
        self.executor.credit(&mut self.switch);
        for Output { path, writer } in self.outputs.into_values() {
            writer.finish().map_err(Error::file(&path))?;
        }
        let OfflineRun { switch, mut packets, outcomes, .. } = self;
        packets.copied = outcomes - packets.received;
        let OfflineAccounting { received, copied, sent, sent_without_file, to_controllers, .. } = packets;
        let dropped: u64 = packets.dropped.values().sum();
        packets.balance = received + copied == sent + sent_without_file + to_controllers + dropped;
        if !packets.balance {
            return Err(Error::Accounting(format!("{packets:?}")));
        }
        let counters = |(table, flows): (u8, &fastpath_switch::Table)| {
            let (lookups, matched) = flows.hits();
            TableCounters { table, flows: flows.len(), lookups, matched }
        };
        let tables = (0..).zip(switch.tables()).map(counters);
        let tables = tables.filter(|table| table.flows > 0 || table.lookups > 0).collect();
        Ok(OfflineSummary { packets, ports: Vec::new(), tables, switch, problems })
    }
}

/// Refuses an output that is also an input, or that is named twice.
fn refuse_overwriting(inputs: &[CaptureAtPort], outputs: &[CaptureAtPort]) -> Result<()> {
    let same = |a: &PathBuf, b: &PathBuf| {
        a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
    };
    for (index, output) in outputs.iter().enumerate() {
        let others = inputs.iter().chain(&outputs[..index]);
        if others.into_iter().any(|other| same(&other.file, &output.file)) {
            let file = output.file.display();
            return Err(Error::Argument(format!("{file}: is used twice; write to another file")));
        }
    }
    Ok(())
}

fn send(
    outputs: &mut BTreeMap<u32, Output>,
    packets: &mut OfflineAccounting,
    port: u32,
    ns: u64,
    frame: &[u8],
) -> Result<()> {
    match outputs.get_mut(&port) {
        Some(Output { path, writer }) => {
            writer.write_packet(ns, frame.len() as u32, frame).map_err(Error::file(path))?;
            packets.sent += 1;
        }
        None => packets.sent_without_file += 1,
    }
    Ok(())
}
