//! A switch between real ports, driven by controllers.

use super::rules::SwitchArgs;
use crate::data_path_arg::DataPathArg;
use crate::signals::stop_on_signals;
use crate::{Answer, view};
use anyhow::ensure;
use clap::{Args, ValueEnum};
use fastpath::switching::{
    FailMode, FrameSplit, Listen, NamedPort, Remote, ServerOptions, SwitchServer, Target, TlsFiles, Versions,
    parse_datapath_id,
};
use fastpath_engine::control::HttpAddress;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Interval between two checks for signals and failures.
pub(super) const POLL: Duration = Duration::from_millis(50);

/// Arguments that describe one switch, where a database describes all.
const OF_ONE_SWITCH: [&str; 15] = [
    "ports",
    "listen",
    "connect",
    "snoop",
    "rules",
    "data_path",
    "workers",
    "split",
    "dashboard",
    "datapath_id",
    "fail_mode",
    "probe_interval",
    "max_backoff",
    "inputs",
    "outputs",
];

/// Ports, and controllers and how to reach them.
#[derive(Args)]
pub(super) struct ServeArgs {
    /// Add a port: IFACE, NAME=IFACE, NAME=xdp:IFACE, NAME=tap:IFACE or NAME=memory (not attached).
    /// LOCAL=tap:IFACE is the port to this machine (OFPP_LOCAL). May be repeated.
    #[arg(long = "port", value_name = "NAME=KIND")]
    pub(super) ports: Vec<NamedPort>,
    /// Listen for controllers: ptcp:PORT:ADDRESS or ptls:PORT:ADDRESS. May be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Vec<Listen>,
    /// Connect to a controller: tcp:ADDRESS:PORT or tls:ADDRESS:PORT. May be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) connect: Vec<Target>,
    /// Versions of OpenFlow that controllers may use: some of 1.0, 1.3, 1.4 and 1.5. Each
    /// connection uses the highest that its controller has too.
    #[arg(long, value_name = "VERSIONS", default_value = "1.0,1.3")]
    openflow: Versions,
    /// Serve the bridges of an Open vSwitch database, as ovs-vswitchd does: unix:PATH,
    /// tcp:HOST:PORT or ssl:HOST:PORT. `ovs-vsctl` adds and removes bridges, ports and controllers.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = OF_ONE_SWITCH)]
    pub(super) ovsdb: Option<Remote>,
    /// Serve a copy of all OpenFlow messages on this address, for `ovs-ofctl snoop`.
    #[arg(long, value_name = "ADDRESS")]
    snoop: Vec<Listen>,
    /// Where packets are executed: kernel (tables on tcx; user space executes what the kernel has
    /// not; needs root), user, or auto (the kernel if ports and rules allow it).
    #[arg(long, value_enum, value_name = "WHERE", default_value = "user")]
    data_path: DataPathArg,
    /// Threads that move packets, each with a core of its own to keep busy. Every port is polled by
    /// one of them; --split flow divides the traffic of a port.
    #[arg(long, value_name = "N", default_value = "1")]
    workers: NonZeroUsize,
    /// How --workers share what arrives: port (each port has one worker), or flow (the kernel
    /// splits the traffic of each IFACE by a hash of its flows). Flows stay in order.
    #[arg(long, value_enum, value_name = "HOW", default_value = "port")]
    split: Split,
    /// Serve a page that shows the tables, ports and counters of the switch, and print its address.
    /// Without ADDRESS the page is on a free port of 127.0.0.1.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    dashboard: Option<HttpAddress>,
    /// Datapath id of the switch, 16 hexadecimal digits.
    #[arg(long, value_name = "HEX", default_value = "0000000000000001", value_parser = parse_datapath_id)]
    datapath_id: u64,
    /// What to do without --connect, and while no controller of --connect answers.
    #[arg(long, value_enum, default_value = "secure")]
    fail_mode: Mode,
    /// Maximum number of packet-ins per second. 0 is no limit.
    #[arg(long, value_name = "N", default_value_t = ServerOptions::default().packet_in_rate)]
    pub(super) packet_in_rate: u32,
    /// Seconds of silence after which a controller gets an echo request. 0 is never.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    probe_interval: u64,
    /// Maximum wait, in seconds, before the switch connects to a controller again.
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    max_backoff: u64,
    /// The switch's private key (PEM), for TLS.
    #[arg(long, value_name = "FILE", requires_all = ["certificate", "ca_cert"])]
    private_key: Option<PathBuf>,
    /// The switch's certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "private_key")]
    certificate: Option<PathBuf>,
    /// Certificate (PEM) of the authority that signs the certificates of controllers, or of the
    /// database server.
    #[arg(long, value_name = "FILE", requires = "private_key")]
    ca_cert: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Keep forwarding by the existing flows.
    Secure,
    /// Forward all packets as a learning switch. Without --connect, only those that match no rule.
    Standalone,
}

impl ServeArgs {
    /// Keys and certificates.
    pub(super) fn tls(&self) -> Option<TlsFiles> {
        let (private_key, certificate, ca_certificate) =
            (self.private_key.clone()?, self.certificate.clone()?, self.ca_cert.clone()?);
        Some(TlsFiles { private_key, certificate, ca_certificate })
    }

    /// Whether several workers, or a split between them, were asked for.
    pub(super) fn has_workers(&self) -> bool {
        self.workers.get() > 1 || matches!(self.split, Split::Flow)
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Split {
    /// Each port is polled by one worker.
    Port,
    /// Every worker polls a part of the flows of each interface.
    Flow,
}

/// Serves the switch until a signal ends it.
pub(super) fn run(switch_args: &SwitchArgs, args: ServeArgs, as_json: bool) -> anyhow::Result<Answer> {
    let stop = stop_on_signals()?;
    let tls = args.tls();
    let options = ServerOptions {
        ports: args.ports.into_iter().map(|NamedPort { name, port }| (name, port)).collect(),
        rules: switch_args.rules.clone(),
        datapath_id: args.datapath_id,
        versions: args.openflow,
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
        data_path: args.data_path.into(),
        workers: args.workers,
        split: match args.split {
            Split::Port => FrameSplit::Ports,
            Split::Flow => FrameSplit::Flows,
        },
        dashboard: args.dashboard,
        ..ServerOptions::default()
    };
    options.warnings().iter().for_each(|warning| eprintln!("fastpath: {warning}"));
    let server = SwitchServer::start(switch_args.switch(), options)?;
    if let Some(address) = server.dashboard() {
        eprintln!("fastpath: dashboard at {address}");
    }
    announce(&server)?;
    while !stop.load(Ordering::Relaxed) {
        ensure!(!server.has_failed(), "internal error: a thread of the switch has ended; please report this");
        std::thread::sleep(POLL);
    }
    let summary = server.stop();
    view::print(&summary, as_json)?;
    ensure!(
        summary.packets.balances(),
        "internal error: packet accounting does not balance; please report this"
    );
    Ok(Answer::Yes)
}

/// Prints the addresses on which the switch listens. Scripts wait for these lines.
fn announce(server: &SwitchServer) -> anyhow::Result<()> {
    let listening = server.listening().iter().map(|listen| format!("listening on {listen}\n"));
    let (path, process) = (server.data_path(), std::process::id());
    let listening: String = listening.collect();
    let workers = view::workers(&server.polled());
    let text = format!("{listening}data path: {path}\n{workers}switching (process {process})\n");
    // At once: a script may read one line and close the pipe.
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
