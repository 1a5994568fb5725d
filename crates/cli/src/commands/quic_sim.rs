//! `fastpath quic-sim`: the network simulator of the QUIC interop runner.
//!
//! ```text
//!  client ─ eth0 ─▶ left ═ bottleneck ═ right ─▶ eth1 ─ server
//!            └── trace_node_left.pcap      └── trace_node_right.pcap
//! ```

mod wait;

use crate::Answer;
use crate::accounting::{print_accounting, print_lateness};
use crate::signals::{POLL, stop_on_signals};
use anyhow::{Context, anyhow, bail};
use clap::Args;
use fastpath::quic_sim::{ACCESS, Endpoint, read};
use fastpath_engine::control::HttpAddress;
use fastpath_engine::{CaptureFilter, LinkCapture, Notice};
use fastpath_lab::{Lab, MachineInterface, NoForwarding};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// The port on which the simulator listens once it is ready. Connections are never accepted.
const READY_PORT: u16 = 57_832;
/// The files of the two captures.
const CAPTURES: [&str; 2] = ["trace_node_left.pcap", "trace_node_right.pcap"];

/// Emulate a scenario of the QUIC interop runner's network simulator.
///
/// SCENARIO is a name and its arguments, as the simulator has them: simple-p2p, drop-rate,
/// corrupt-rate, droplist, blackhole, rebind, udp-cross-traffic, tcp-cross-traffic. The client is
/// behind eth0, the server behind eth1. Addresses, captures and the port that tells when the
/// network is ready are those of the simulator, and so are the variables SCENARIO and
/// WAITFORSERVER. SIGINT or SIGTERM ends the network with exit code 0, and prints what was dropped
/// and why.
#[derive(Args)]
pub(crate) struct QuicSim {
    /// The scenario. By default the variable SCENARIO. Options precede it.
    #[arg(value_name = "SCENARIO", trailing_var_arg = true, allow_hyphen_values = true)]
    scenario: Vec<String>,
    /// The interface of the client.
    #[arg(long, value_name = "IFACE", default_value = "eth0")]
    left: String,
    /// The interface of the server.
    #[arg(long, value_name = "IFACE", default_value = "eth1")]
    right: String,
    /// Seed of every random choice. By default the variable SEED, or 1.
    #[arg(long)]
    seed: Option<u64>,
    /// Directory of the captures.
    #[arg(long, value_name = "DIR", default_value = "/logs")]
    logs: PathBuf,
    /// Write no captures.
    #[arg(long)]
    no_captures: bool,
    /// Print the network in the canonical form of specs, and start nothing.
    #[arg(long)]
    print: bool,
    /// Name of the network, for `fastpath ctl`.
    #[arg(long, default_value = "quic-sim")]
    name: String,
    /// Write the fate of every packet on every link to this file: times and drop reasons as packet
    /// comments.
    #[arg(long, value_name = "FILE.pcapng")]
    packet_log: Option<PathBuf>,
    /// Serve the HTTP control API on this address too: 127.0.0.1:8080, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
}

impl QuicSim {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let scenario = self.scenario()?;
        let network = read(&scenario, &[endpoint(&self.left)?, endpoint(&self.right)?])?;
        if self.print {
            writeln!(io::stdout(), "{:#}", network.spec.description.to_json())?;
            return Ok(Answer::Yes);
        }
        let stop = stop_on_signals()?;
        let mut options = network.engine_options(self.seed()?, Notice::to_stderr())?;
        options.packet_log.clone_from(&self.packet_log);
        options.http.clone_from(&self.http);
        let forwarding = NoForwarding::of(&[&self.left, &self.right])?;
        if let Some(server) = variable("WAITFORSERVER")? {
            wait::for_server(&server, &stop)?;
        }
        writeln!(io::stdout(), "Using scenario: {scenario}")?;
        let mut lab = Lab::attach(network.spec.topology, &self.name, options)?;
        let captures = self.captures(&lab)?;
        let ready = TcpListener::bind((Ipv4Addr::UNSPECIFIED, READY_PORT)).with_context(|| {
            format!("listening on TCP port {READY_PORT}, which tells that the network is ready")
        })?;
        writeln!(io::stdout(), "{} is running (process {})", lab.name(), std::process::id())?;
        io::stdout().flush()?;
        while !stop.load(Ordering::Relaxed) && !lab.has_ended() {
            lab.serve(POLL);
        }
        let is_asked = stop.load(Ordering::Relaxed);
        let report = lab.down()?;
        drop((ready, forwarding));
        print_accounting(&report);
        print_lateness(&report);
        captures.into_iter().try_for_each(Capture::end)?;
        Ok(if is_asked { Answer::Yes } else { Answer::No })
    }

    fn scenario(&self) -> anyhow::Result<String> {
        if !self.scenario.is_empty() {
            return Ok(self.scenario.join(" "));
        }
        let instead = "write for example \"simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25\"";
        variable("SCENARIO")?.ok_or_else(|| anyhow!("there is no scenario: {instead}, or set SCENARIO"))
    }

    fn seed(&self) -> anyhow::Result<Option<u64>> {
        let Some(text) = variable("SEED")?.filter(|_| self.seed.is_none()) else { return Ok(self.seed) };
        let seed = text.parse().map_err(|_| anyhow!("SEED: '{text}' is not a whole number; write SEED=1"))?;
        Ok(Some(seed))
    }

    /// Starts the captures of what passes the two interfaces.
    fn captures(&self, lab: &Lab) -> anyhow::Result<Vec<Capture>> {
        if self.no_captures {
            return Ok(Vec::new());
        }
        let instead = "write --logs DIR, or --no-captures";
        std::fs::create_dir_all(&self.logs).with_context(|| format!("{}: {instead}", self.logs.display()))?;
        let start = |(link, file): (&str, &str)| {
            let filter = CaptureFilter { links: vec![lab.link(link)?.id()], ..CaptureFilter::default() };
            let path = self.logs.join(file);
            let out = File::create(&path).with_context(|| format!("{}: {instead}", path.display()))?;
            Ok(Capture::start(lab.capture(&filter)?, &path, out))
        };
        ACCESS.into_iter().zip(CAPTURES).map(start).collect()
    }
}

/// A capture that is being written.
struct Capture {
    path: PathBuf,
    /// Returns the number of frames that are missing.
    thread: JoinHandle<io::Result<u64>>,
}

impl Capture {
    fn start(capture: LinkCapture, path: &Path, out: File) -> Capture {
        let thread = std::thread::spawn(move || capture.write_to(&mut BufWriter::new(out)));
        Capture { path: path.to_owned(), thread }
    }

    /// Waits for the last frames, once the network has ended.
    fn end(self) -> anyhow::Result<()> {
        let path = self.path.display();
        match self.thread.join() {
            Ok(Ok(0)) => Ok(()),
            Ok(Ok(missed)) => {
                eprintln!("{path}: {missed} frames are missing: the disk was too slow");
                Ok(())
            }
            Ok(Err(error)) => Err(error).with_context(|| path.to_string()),
            Err(_) => bail!("internal error: writing {path} panicked; please report it"),
        }
    }
}

/// Returns the endpoint behind an interface. Opening it reports an interface that is not there.
fn endpoint(interface: &str) -> anyhow::Result<Endpoint> {
    let there = MachineInterface::named(interface).ok();
    Ok(Endpoint {
        port: interface.parse().map_err(|why| anyhow!("{interface}: {why}"))?,
        mac: there.map(|there| there.mac),
        mtu: there.and_then(|there| u32::try_from(there.mtu).ok()),
    })
}

/// Returns a variable of the environment that is not empty.
fn variable(name: &str) -> anyhow::Result<Option<String>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(error).with_context(|| name.to_owned()),
    }
}
