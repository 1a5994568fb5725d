//! A switch between real ports, driven by controllers.

use super::rules::SwitchArgs;
use crate::Answer;
use crate::signals::stop_on_signals;
use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use fastpath::switch::{executor, number_ports};
use fastpath_engine::Notice;
use fastpath_engine::port::{self, OpenContext, Port};
use fastpath_engine::switching::{Control, Datapath, LinkWatch, PacketInLimit, SwitchAccounting, serve};
use fastpath_openflow::agent::{self, Agent, Doorbell, FailMode, Listen, PortInfo, Target, TlsFiles};
use fastpath_spec::{ParsePortNameError, PortName};
use fastpath_wire::MacAddr;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Memory for frames that wait for ports.
const POOL: NonZeroUsize = NonZeroUsize::new(64 << 20).expect("not zero");
/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Where controllers are and how to talk to them.
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
    /// Listen for those who watch what controllers say and hear (`ovs-ofctl snoop`).
    #[arg(long, value_name = "ADDRESS")]
    snoop: Vec<Listen>,
    /// What the switch is called, 16 hexadecimal digits.
    #[arg(long, value_name = "HEX", default_value = "0000000000000001", value_parser = datapath_id)]
    datapath_id: u64,
    /// What to do while no controller can be reached.
    #[arg(long, value_enum, default_value = "secure")]
    fail_mode: Mode,
    /// Packets for controllers a second at most; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = PacketInLimit::default().per_second)]
    packet_in_rate: u32,
    /// Seconds of silence after which a controller is asked whether it is there; 0 for never.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    probe_interval: u64,
    /// Seconds to wait at most before a controller is dialled again.
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    max_backoff: u64,
    /// The switch's private key (PEM), for TLS.
    #[arg(long, value_name = "FILE", requires_all = ["certificate", "ca_cert"])]
    private_key: Option<PathBuf>,
    /// The switch's certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "private_key")]
    certificate: Option<PathBuf>,
    /// The certificate (PEM) of the authority that controllers' certificates are from.
    #[arg(long, value_name = "FILE", requires = "private_key")]
    ca_cert: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Go on with the flows there are.
    Secure,
    /// Learn addresses and forward by them.
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

/// Serves until told to end.
pub(super) fn run(switch_args: &SwitchArgs, args: ServeArgs, as_json: bool) -> anyhow::Result<Answer> {
    let stop = stop_on_signals()?;
    let notice = Notice::to_stderr();
    let names: Vec<String> = args.ports.iter().map(|port| port.name.clone()).collect();
    let numbers = number_ports(names.iter().map(String::as_str))?;
    let mut switch = switch_args.switch();
    let by_name = numbers.iter().map(|(number, name)| ((*name).to_owned(), *number)).collect();
    let mut ports: Vec<(u32, Box<dyn Port>)> = Vec::new();
    let mut interfaces = Vec::new();
    let mut context = OpenContext::new(args.ports.iter().map(|attachment| attachment.port.clone()), &notice);
    for ((number, _), attachment) in numbers.iter().zip(&args.ports) {
        ports.push((*number, port::open(&attachment.port, &mut context)?));
        switch.set_port(*number, fastpath_switch::Port::up());
        interfaces.extend(attachment.port.interface().map(|name| (*number, name.to_owned())));
    }
    switch_args.load(&mut switch, &by_name)?;
    let links = LinkWatch::new(interfaces).context("watching links")?;
    let info = |(number, name): &(u32, &str)| {
        let own = MacAddr::from_index(0x0f00_0000 | *number);
        let hw_addr = links.hw_addr(*number).map_or(own, MacAddr);
        (*number, PortInfo { name: (*name).to_owned(), hw_addr })
    };
    let info: BTreeMap<u32, PortInfo> = numbers.iter().map(info).collect();

    let doorbell = Doorbell::new()?;
    let best = executor(&mut switch, &|text: &str| notice.send(text));
    let limit = PacketInLimit { per_second: args.packet_in_rate, ..PacketInLimit::default() };
    let control = Control::new(switch, best, limit, doorbell.ringer())?;
    let running = serve(&control, Datapath::new(&control, ports, POOL, notice.clone()))?;
    let files = match (args.private_key, args.certificate, args.ca_cert) {
        (Some(private_key), Some(certificate), Some(ca_certificate)) => {
            Some(TlsFiles { private_key, certificate, ca_certificate })
        }
        _ => None,
    };
    let agent = Agent::start(
        &control,
        doorbell,
        agent::Options {
            datapath_id: args.datapath_id,
            ports: info,
            listen: args.listen.clone(),
            snoop: args.snoop.clone(),
            connect: args.connect,
            tls: files,
            fail_mode: match args.fail_mode {
                Mode::Secure => FailMode::Secure,
                Mode::Standalone => FailMode::Standalone,
            },
            probe_every: Duration::from_secs(args.probe_interval),
            backoff_max: Duration::from_secs(args.max_backoff),
            links: Some(links),
            notice,
        },
    )?;
    announce(&agent, &args.listen, &args.snoop)?;
    while !stop.load(Ordering::Relaxed) {
        ensure!(
            !agent.has_failed() && !running.has_failed(),
            "a thread of the switch has ended; please report it"
        );
        std::thread::sleep(LOOK);
    }
    drop(agent);
    let states = port_states(&control, &numbers);
    summary(&running.stop(), &states, as_json)
}

/// Says that the switch is there and where it listens, which scripts wait for.
fn announce(agent: &Agent, listen: &[Listen], snoop: &[Listen]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for (listen, at) in listen.iter().chain(snoop).zip(agent.listening()) {
        writeln!(out, "listening on {}", Listen { at: *at, ..*listen })?;
    }
    writeln!(out, "switching (process {})", std::process::id())?;
    out.flush()?;
    Ok(())
}

/// A port's number, name and counters.
type PortState = (u32, String, fastpath_switch::PortCounters);

fn port_states(control: &Control, numbers: &[(u32, &str)]) -> Vec<PortState> {
    let state = |(number, name): &(u32, &str)| {
        let counters = control.read(|switch, _| switch.port(*number).map(|port| port.counters));
        (*number, (*name).to_owned(), counters.unwrap_or_default())
    };
    numbers.iter().map(state).collect()
}

/// What became of every packet; the answer is no when the books do not balance.
pub(super) fn summary(
    books: &SwitchAccounting,
    ports: &[PortState],
    as_json: bool,
) -> anyhow::Result<Answer> {
    let balance = books.balances();
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
        let books = json!({
            "received": books.received, "injected": books.injected, "copied": books.copied,
            "sent": books.sent, "to_controllers": books.to_controllers, "dropped": books.dropped,
            "held": books.held, "balance": balance,
        });
        writeln!(out, "{}", json!({ "books": books, "ports": ports }))?;
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
        let dropped: u64 = books.dropped.values().sum();
        let reasons: Vec<String> =
            books.dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        writeln!(
            out,
            "{} received + {} packet-outs + {} copies = {} sent + {} to controllers + {dropped} dropped{reasons} + {} held",
            books.received, books.injected, books.copied, books.sent, books.to_controllers, books.held
        )?;
    }
    if !balance {
        bail!("the books do not balance; please report it");
    }
    Ok(Answer::Yes)
}
