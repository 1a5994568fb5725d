//! What commands print of a switch: where all packets went.

use super::{Render, json_line};
use fastpath::switch::PortCounters;
#[cfg(target_os = "linux")]
use fastpath::switching::ServedSummary;
use fastpath::switching::{Explanation, OfflineAccounting, OfflineSummary};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

impl Render for Explanation {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{self}")
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, self.json())
    }
}

impl Render for OfflineSummary {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let OfflineAccounting { received, copied, sent, sent_without_file, to_controllers, .. } =
            &self.packets;
        writeln!(
            out,
            "{received} received + {copied} copies = {sent} written + {sent_without_file} to ports without --out + \
             {to_controllers} to controllers (none here) + {}",
            drops(&self.packets.dropped)
        )?;
        let cut = self.packets.cut_by_snap_length;
        if cut > 0 {
            writeln!(out, "{cut} packets were captured in part; the captured part was switched")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let port = |(number, name): &(u32, String)| port_json(*number, name, &self.port(*number));
        let ports: Vec<Value> = self.ports.iter().map(port).collect();
        json_line(out, &json!({ "books": self.packets, "ports": ports, "tables": self.tables }))
    }
}

#[cfg(target_os = "linux")]
impl Render for ServedSummary {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let ServedSummary { packets, ports, workers } = self;
        for (number, name, c) in ports {
            writeln!(
                out,
                "port {number} ({name}): rx {} packets {} bytes, tx {} packets {} bytes, {} dropped",
                c.rx_packets,
                c.rx_bytes,
                c.tx_packets,
                c.tx_bytes,
                c.rx_dropped + c.tx_dropped
            )?;
        }
        if workers.len() > 1 {
            for (number, worker) in workers.iter().enumerate() {
                writeln!(out, "worker {number}: {} received", worker.received)?;
            }
        }
        writeln!(
            out,
            "{} received + {} packet-outs + {} copies = {} sent + {} to controllers + {} + {} held",
            packets.received,
            packets.injected,
            packets.copied,
            packets.sent,
            packets.to_controllers,
            drops(&packets.dropped),
            packets.held
        )?;
        let missed = packets.missed_by_controllers;
        if missed > 0 {
            writeln!(out, "{missed} messages were dropped: their controllers did not read them")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &served_json(self))
    }
}

/// The bridges of a database, by name. A bridge that was removed and added has two entries.
#[cfg(target_os = "linux")]
pub(crate) struct BridgeSummaries(pub(crate) Vec<(String, ServedSummary)>);

#[cfg(target_os = "linux")]
impl Render for BridgeSummaries {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, summary) in &self.0 {
            writeln!(out, "bridge {name}")?;
            summary.text(out)?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let bridge = |(name, summary): &(String, ServedSummary)| {
            let mut bridge = served_json(summary);
            bridge["name"] = json!(name);
            bridge
        };
        json_line(out, &json!({ "bridges": self.0.iter().map(bridge).collect::<Vec<_>>() }))
    }
}

#[cfg(target_os = "linux")]
fn served_json(ServedSummary { packets, ports, workers }: &ServedSummary) -> Value {
    let ports: Vec<Value> = ports.iter().map(|(number, name, c)| port_json(*number, name, c)).collect();
    let accounting = json!({
        "received": packets.received, "injected": packets.injected, "copied": packets.copied,
        "sent": packets.sent, "to_controllers": packets.to_controllers, "dropped": packets.dropped,
        "held": packets.held, "balance": packets.balances(),
        "missed_by_controllers": packets.missed_by_controllers,
    });
    json!({ "books": accounting, "ports": ports, "workers": workers })
}

/// What each of several workers polls, in a line for each; nothing for one worker.
#[cfg(target_os = "linux")]
pub(crate) fn workers(polled: &[Vec<u32>]) -> String {
    if polled.len() == 1 {
        return String::new();
    }
    let line = |(number, ports): (usize, &Vec<u32>)| {
        let ports: Vec<String> = ports.iter().map(u32::to_string).collect();
        format!("worker {number} polls ports {}\n", ports.join(", "))
    };
    polled.iter().enumerate().map(line).collect()
}

fn port_json(number: u32, name: &str, c: &PortCounters) -> Value {
    json!({
        "number": number, "name": name,
        "rx_packets": c.rx_packets, "rx_bytes": c.rx_bytes, "rx_dropped": c.rx_dropped,
        "tx_packets": c.tx_packets, "tx_bytes": c.tx_bytes, "tx_dropped": c.tx_dropped,
    })
}

/// `3 dropped (no match 2, ttl 1)`
fn drops(dropped: &BTreeMap<&'static str, u64>) -> String {
    let count: u64 = dropped.values().sum();
    let reasons: Vec<String> = dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
    format!("{count} dropped{reasons}")
}
