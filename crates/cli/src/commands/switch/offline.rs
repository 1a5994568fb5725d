//! `fastpath switch --in … --out …`: captures through a switch, in virtual time.

use super::rules::SwitchArgs;
use crate::{Answer, progress};
use anyhow::ensure;
use clap::Args;
use fastpath::replay::BytesRead;
use fastpath::switch::{CaptureAtPort, OfflineAccounting, OfflineSummary, number_ports, switch_captures};
use fastpath::tables::Port;
use fastpath_spec::mistake::printable;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

/// Captures and the ports where they enter and leave.
#[derive(Args)]
pub(super) struct OfflineArgs {
    /// A capture that arrives on a port. May be repeated.
    #[arg(long = "in", value_name = "PORT=FILE")]
    inputs: Vec<NamedCapture>,
    /// The file for packets that leave by a port. May be repeated.
    #[arg(long = "out", value_name = "PORT=FILE")]
    outputs: Vec<NamedCapture>,
}

/// A port and a capture.
#[derive(Clone, Debug)]
struct NamedCapture {
    port: String,
    file: PathBuf,
}

impl FromStr for NamedCapture {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedCapture, String> {
        match text.split_once('=') {
            Some((port, file)) if !port.is_empty() && !file.is_empty() => {
                Ok(NamedCapture { port: port.to_owned(), file: file.into() })
            }
            _ => Err("write PORT=FILE".to_owned()),
        }
    }
}

impl OfflineArgs {
    pub(super) fn is_given(&self) -> bool {
        !self.inputs.is_empty() || !self.outputs.is_empty()
    }
}

/// Switches the captures and prints the summary.
pub(super) fn run(switch_args: &SwitchArgs, args: &OfflineArgs, as_json: bool) -> anyhow::Result<Answer> {
    ensure!(!args.inputs.is_empty(), "nothing to switch: give --in PORT=FILE");
    let mut names: Vec<&str> = Vec::new();
    for capture in args.inputs.iter().chain(&args.outputs) {
        if !names.contains(&capture.port.as_str()) {
            names.push(&capture.port);
        }
    }
    let numbers = number_ports(names)?;
    let mut switch = switch_args.switch();
    numbers.iter().for_each(|(number, _)| switch.set_port(*number, Port::up()));
    let by_name = numbers.iter().map(|(number, name)| ((*name).to_owned(), *number)).collect();
    switch_args.load(&mut switch, &by_name)?;
    let numbered = |captures: &[NamedCapture]| -> Vec<CaptureAtPort> {
        let numbered = |NamedCapture { port, file }: &NamedCapture| {
            let number = numbers.iter().find(|(_, name)| name == port).map_or(0, |(number, _)| *number);
            CaptureAtPort { port: number, file: file.clone() }
        };
        captures.iter().map(numbered).collect()
    };
    let (inputs, outputs) = (numbered(&args.inputs), numbered(&args.outputs));
    let bar = progress::bar(0, "{bytes} of {total_bytes}, {eta} left");
    let notice = |text: &str| eprintln!("fastpath: {}", printable(text));
    let summary = switch_captures(switch, &inputs, &outputs, &notice, &mut |BytesRead { done, total }| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let summary = summary?;
    summary.problems.iter().for_each(|problem| eprintln!("fastpath: {}", printable(&problem.to_string())));
    print(&summary, &numbers, as_json)?;
    Ok(if summary.problems.is_empty() { Answer::Yes } else { Answer::No })
}

fn print(summary: &OfflineSummary, numbers: &[(u32, &str)], as_json: bool) -> anyhow::Result<()> {
    let OfflineAccounting { received, copied, sent, sent_without_file, to_controllers, dropped, .. } =
        &summary.packets;
    let mut out = io::stdout().lock();
    if as_json {
        let port = |(number, name): &(u32, &str)| -> Value {
            let c = summary.port(*number);
            json!({
                "number": number, "name": name, "rx_packets": c.rx_packets, "rx_bytes": c.rx_bytes,
                "rx_dropped": c.rx_dropped, "tx_packets": c.tx_packets, "tx_bytes": c.tx_bytes,
                "tx_dropped": c.tx_dropped,
            })
        };
        let ports: Vec<Value> = numbers.iter().map(port).collect();
        writeln!(out, "{}", json!({ "books": summary.packets, "ports": ports, "tables": summary.tables }))?;
        return Ok(());
    }
    let reasons: Vec<String> = dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
    let drops: u64 = dropped.values().sum();
    writeln!(
        out,
        "{received} received + {copied} copies = {sent} written + {sent_without_file} to ports without --out + \
         {to_controllers} to controllers (none here) + {drops} dropped{reasons}"
    )?;
    let cut = summary.packets.cut_by_snap_length;
    if cut > 0 {
        writeln!(out, "{cut} packets were captured in part; the captured part was switched")?;
    }
    Ok(())
}
