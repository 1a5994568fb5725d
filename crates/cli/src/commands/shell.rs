//! `fastpath shell`: a program behind an emulated link.

use super::lab::{SEED, exit_code, finish_books};
use crate::Answer;
use anyhow::{Context, anyhow, bail};
use clap::Args;
use fastpath_engine::Options;
use fastpath_engine::control::HttpAddress;
use fastpath_lab::shell::{Block, Shell};
use fastpath_spec::{self as spec, Spec, Topology};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the wait for the program looks for signals and the engine's end.
const POLL: Duration = Duration::from_millis(10);

/// Run a program, or your shell, behind an emulated link to where you are.
///
/// Inside there is one interface, eth0, and everything goes over the link: "up" away from the
/// program, "down" towards it. Every address of the machine (or shell) it was started from can be
/// reached, the nearest one is in FASTPATH_SHELL_OUTSIDE; beyond that as far as it forwards
/// packets. Shells can be started in shells, and their links add up.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fastpath shell --delay 20ms
  fastpath shell --preset lte -- curl http://100.68.0.1/
  fastpath shell --delay 40ms --rate 5Mbit --queue '{ kind = \"fq-codel\" }' -- iperf3 -c 10.0.0.1
  fastpath shell --trace-up up.trace --trace-down down.trace --delay 20ms --queue 100p
  fastpath shell --up rate=1Mbit --down rate=16Mbit -- fastpath shell --loss 1%

From inside to the internet, let the machine forward and masquerade:
  sysctl -w net.ipv4.ip_forward=1
  iptables -t nat -A POSTROUTING -s 100.64.0.0/10 -j MASQUERADE")]
pub(crate) struct ShellArgs {
    /// The values of a kind of access: lte, starlink, … (fastpath presets). All others given win
    /// over them.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// One way, in each direction: 20ms.
    #[arg(long)]
    delay: Option<String>,
    /// In each direction: 1%, or a table as in a description.
    #[arg(long)]
    loss: Option<String>,
    /// In each direction: 10Mbit.
    #[arg(long)]
    rate: Option<String>,
    /// In each direction: 50p, 64KiB, 20ms, or a table as in a description.
    #[arg(long)]
    queue: Option<String>,
    /// Bytes on the wire beyond the frame: a number, or ethernet.
    #[arg(long)]
    overhead: Option<String>,
    /// A value for the way up alone. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    up: Vec<String>,
    /// A value for the way down alone. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    down: Vec<String>,
    /// A Mahimahi trace in place of a rate for the way up.
    #[arg(long, value_name = "FILE")]
    trace_up: Option<PathBuf>,
    /// A Mahimahi trace in place of a rate for the way down.
    #[arg(long, value_name = "FILE")]
    trace_down: Option<PathBuf>,
    /// The seed of every random choice.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Where to write what became of every packet, for Wireshark.
    #[arg(long, value_name = "FILE.pcapng")]
    ledger: Option<PathBuf>,
    /// Where else to listen for `fastpath ctl`'s requests, as HTTP: 127.0.0.1:8080, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// The program and its arguments; otherwise your shell.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl ShellArgs {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let block = Block::find()?;
        let topology = self.topology(block)?;
        let network = fastpath_net::Options::with_seed(self.seed);
        let options =
            Options { packet_log: self.ledger.clone(), http: self.http.clone(), ..Options::new(network) };
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        // What is typed at the terminal is for the program, which gets it too.
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        let shell = Shell::start(topology, block, options)?;
        let status = self.command(&shell, &stop)?;
        finish_books(&shell.stop()?);
        Ok(Answer::Exit(exit_code(status)))
    }

    fn command(&self, shell: &Shell, stop: &AtomicBool) -> anyhow::Result<ExitStatus> {
        let default = || vec![env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())];
        let words = if self.command.is_empty() { default() } else { self.command.clone() };
        let mut child = shell
            .spawn(Command::new(&words[0]).args(&words[1..]))
            .with_context(|| words[0].to_string_lossy().into_owned())?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if stop.load(Ordering::Relaxed) || shell.has_ended() {
                child.kill()?;
                return Ok(child.wait()?);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Two hosts and the link between them, described as any other network is.
    fn topology(&self, block: Block) -> anyhow::Result<Topology> {
        let [outside, inside] = block.ends();
        let mut text = format!(
            "[host.outside]\naddress = \"{outside}\"\n[host.inside]\naddress = \"{inside}\"\n\
             routes = {{ default = \"{}\" }}\n[[link]]\nbetween = [\"inside\", \"outside\"]\nname = \"shell\"\n",
            outside.addr()
        );
        let both = [
            ("preset", &self.preset),
            ("delay", &self.delay),
            ("loss", &self.loss),
            ("rate", &self.rate),
            ("queue", &self.queue),
            ("overhead", &self.overhead),
        ];
        for (key, value) in both {
            if let Some(value) = value {
                writeln!(text, "{}", spec::assignment(key, value))?;
            }
        }
        for (direction, values, path) in [
            ("inside_to_outside", &self.up, &self.trace_up),
            ("outside_to_inside", &self.down, &self.trace_down),
        ] {
            let mut values: Vec<String> =
                values.iter().map(|value| assignment(value)).collect::<Result<_, _>>()?;
            if let Some(path) = path {
                let has_queue = values.iter().any(|value| value.starts_with("queue"));
                if !has_queue && self.queue.is_none() && self.preset.is_none() {
                    // As mm-link has it.
                    values.push(spec::assignment("queue", "unlimited"));
                }
                let file = spec::assignment("file", &path.display().to_string());
                values.push(format!("trace = {{ {file}, format = \"mahimahi\" }}"));
            }
            writeln!(text, "{direction} = {{ {} }}", values.join(", "))?;
        }
        let files = |path: &str| fs::read_to_string(path).map_err(|error| error.to_string());
        match spec::read(&text, &files) {
            Ok((Spec { mut topology, .. }, warnings)) => {
                warnings.iter().for_each(|warning| eprintln!("fastpath: {}", warning.what));
                for node in &mut topology.nodes {
                    node.interfaces[0].addresses.retain(|address| address.addr().is_ipv4());
                }
                Ok(topology)
            }
            Err(mistakes) => {
                let lines: Vec<String> =
                    mistakes.iter().map(|mistake| format!("{}; {}", mistake.what, mistake.instead)).collect();
                Err(anyhow!(lines.join("\n")))
            }
        }
    }
}

/// `rate=1Mbit` as an assignment of a description.
fn assignment(text: &str) -> anyhow::Result<String> {
    match text.split_once('=') {
        Some((key, value)) if spec::is_key(key) => Ok(spec::assignment(key, value)),
        _ => bail!("'{text}' is no value of a link: write for example rate=1Mbit"),
    }
}
