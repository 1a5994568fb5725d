//! A switch between real ports, driven by controllers.

use super::rules::SwitchArgs;
use crate::Answer;
use crate::signals::stop_on_signals;
use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use fastpath::switch::{FailMode, Listen, ServedSummary, ServerOptions, SwitchServer, Target, TlsFiles};
use fastpath_spec::{ParsePortNameError, PortName};
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Interval between two checks for signals and failures.
const POLL: Duration = Duration::from_millis(50);

/// Ports, and controllers and how to reach them.
#[derive(Args)]
pub(super) struct ServeArgs {
    /// Add a port: NAME=IFACE, NAME=xdp:IFACE, NAME=tap:IFACE, NAME=memory (not attached), or
    /// IFACE. LOCAL=tap:IFACE is the port to this host (OFPP_LOCAL). May be repeated.
    #[arg(long = "port", value_name = "NAME=KIND")]
    pub(super) ports: Vec<Attachment>,
    /// Listen for controllers: ptcp:PORT:ADDRESS or ptls:PORT:ADDRESS. May be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Vec<Listen>,
    /// Dial a controller: tcp:ADDRESS:PORT or tls:ADDRESS:PORT. May be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) connect: Vec<Target>,
    /// Serve a copy of all OpenFlow messages on this address (`ovs-ofctl snoop`).
    #[arg(long, value_name = "ADDRESS")]
    snoop: Vec<Listen>,
    /// Datapath id of the switch, 16 hexadecimal digits.
    #[arg(long, value_name = "HEX", default_value = "0000000000000001", value_parser = datapath_id)]
    datapath_id: u64,
    /// What to do while no controller of --connect answers, or without --connect.
    #[arg(long, value_enum, default_value = "secure")]
    fail_mode: Mode,
    /// Largest number of packet-ins per second; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = ServerOptions::default().packet_in_rate)]
    packet_in_rate: u32,
    /// Seconds of silence after which a controller gets an echo request; 0 for never.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    probe_interval: u64,
    /// Longest wait in seconds before the switch connects to a controller again.
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    max_backoff: u64,
    /// The switch's private key (PEM), for TLS.
    #[arg(long, value_name = "FILE", requires_all = ["certificate", "ca_cert"])]
    private_key: Option<PathBuf>,
    /// The switch's certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "private_key")]
    certificate: Option<PathBuf>,
    /// The certificate (PEM) of the authority that signs controllers' certificates.
    #[arg(long, value_name = "FILE", requires = "private_key")]
    ca_cert: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Keep forwarding by the existing flows.
    Secure,
    /// Forward as a learning switch. Without --connect: what matches no rule.
    Standalone,
}

/// A port of the switch, and what it attaches to.
#[derive(Clone, Debug)]
pub(super) struct Attachment {
    name: String,
    port: PortName,
}

impl FromStr for Attachment {
    type Err = String;

    fn from_str(text: &str) -> Result<Attachment, String> {
        let (name, port) = text.split_once('=').map_or((None, text), |(name, port)| (Some(name), port));
        let port: PortName = port.parse().map_err(|error: ParsePortNameError| {
            format!("{error}: {}, each with NAME= before it", error.instead())
        })?;
        let name = name.or(port.interface()).unwrap_or(port.kind()).to_owned();
        Ok(Attachment { name, port })
    }
}

fn datapath_id(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace(':', "");
    u64::from_str_radix(&digits, 16).map_err(|_| "write up to 16 hexadecimal digits".to_owned())
}

/// Serves the switch until a signal ends it.
pub(super) fn run(switch_args: &SwitchArgs, args: ServeArgs, as_json: bool) -> anyhow::Result<Answer> {
    let stop = stop_on_signals()?;
    for listen in args.listen.iter().filter(|listen| listen.is_exposed()) {
        eprintln!(
            "fastpath: {listen}: every host that reaches it may control the switch: write \
             ptcp:{port}:127.0.0.1, or ptls:{port}:{ip} with certificates",
            port = listen.at.port(),
            ip = listen.at.ip()
        );
    }
    for snoop in args.snoop.iter().filter(|snoop| snoop.is_exposed()) {
        eprintln!("fastpath: {snoop}: every host that reaches it may read all messages of the switch");
    }
    let tls = match (args.private_key, args.certificate, args.ca_cert) {
        (Some(private_key), Some(certificate), Some(ca_certificate)) => {
            Some(TlsFiles { private_key, certificate, ca_certificate })
        }
        _ => None,
    };
    let options = ServerOptions {
        ports: args.ports.into_iter().map(|attachment| (attachment.name, attachment.port)).collect(),
        rules: switch_args.rules.clone(),
        datapath_id: args.datapath_id,
        listen: args.listen,
        snoop: args.snoop,
        connect: args.connect,
        tls,
        fail_mode: match args.fail_mode {
            Mode::Secure => FailMode::Secure,
            Mode::Standalone => FailMode::Standalone,
        },
        packet_in_rate: args.packet_in_rate,
        probe_every: Duration::from_secs(args.probe_interval),
        backoff_max: Duration::from_secs(args.max_backoff),
        ..ServerOptions::default()
    };
    let server = SwitchServer::start(switch_args.switch(), options)?;
    announce(&server)?;
    while !stop.load(Ordering::Relaxed) {
        ensure!(!server.has_failed(), "internal error: a thread of the switch has ended; please report this");
        std::thread::sleep(POLL);
    }
    print(&server.stop(), as_json)
}

/// Prints the addresses on which the switch listens. Scripts wait for these lines.
fn announce(server: &SwitchServer) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for listen in server.listening() {
        writeln!(out, "listening on {listen}")?;
    }
    writeln!(out, "switching (process {})", std::process::id())?;
    out.flush()?;
    Ok(())
}

/// Prints where every packet went.
fn print(summary: &ServedSummary, as_json: bool) -> anyhow::Result<Answer> {
    let ServedSummary { packets, ports } = summary;
    let balance = packets.balances();
    let mut out = io::stdout().lock();
    if as_json {
        let ports: Vec<_> = ports
            .iter()
            .map(|(number, name, c)| {
                json!({
                    "number": number, "name": name,
                    "rx_packets": c.rx_packets, "rx_bytes": c.rx_bytes, "rx_dropped": c.rx_dropped,
                    "tx_packets": c.tx_packets, "tx_bytes": c.tx_bytes, "tx_dropped": c.tx_dropped,
                })
            })
            .collect();
        let accounting = json!({
            "received": packets.received, "injected": packets.injected, "copied": packets.copied,
            "sent": packets.sent, "to_controllers": packets.to_controllers, "dropped": packets.dropped,
            "held": packets.held, "balance": balance,
        });
        writeln!(out, "{}", json!({ "books": accounting, "ports": ports }))?;
    } else {
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
        let dropped: u64 = packets.dropped.values().sum();
        let reasons: Vec<String> =
            packets.dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        writeln!(
            out,
            "{} received + {} packet-outs + {} copies = {} sent + {} to controllers + {dropped} dropped{reasons} + {} held",
            packets.received,
            packets.injected,
            packets.copied,
            packets.sent,
            packets.to_controllers,
            packets.held
        )?;
    }
    if !balance {
        bail!("internal error: packet accounting does not balance; please report this");
    }
    Ok(Answer::Yes)
}
