//! `fastpath shell`: a program behind an emulated link.

use crate::Answer;
use crate::accounting::print_accounting;
use crate::signals::{POLL, exit_code};
use anyhow::{Context, anyhow, bail};
use clap::Args;
use fastpath_engine::Notice;
use fastpath_engine::control::HttpAddress;
use fastpath_lab::shell::{AddressBlock, Shell};
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

/// Run a program, or a shell, behind an emulated link.
///
/// The program sees one interface, eth0. All its traffic passes the link: "up" is away from the
/// program, "down" is towards it. It reaches every address of the machine (or of the enclosing
/// shell); the nearest one is in FASTPATH_SHELL_OUTSIDE. It reaches further networks if the machine
/// forwards packets. Shells can be nested: their links are in series.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fastpath shell --delay 20ms
  fastpath shell --preset lte -- curl http://100.68.0.1/
  fastpath shell --delay 40ms --rate 5Mbit --queue '{ kind = \"fq-codel\" }' -- iperf3 -c 10.0.0.1
  fastpath shell --trace-up up.trace --trace-down down.trace --delay 20ms --queue 100p
  fastpath shell --up rate=1Mbit --down rate=16Mbit -- fastpath shell --loss 1%

To reach the internet, let the machine forward and masquerade:
  sysctl -w net.ipv4.ip_forward=1
  iptables -t nat -A POSTROUTING -s 100.64.0.0/10 -j MASQUERADE")]
pub(crate) struct ShellArgs {
    /// Use the values of a kind of access: lte, starlink, … (see `fastpath presets`). Options given
    /// here override them.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// One-way delay of each direction: 20ms.
    #[arg(long)]
    delay: Option<String>,
    /// Loss of each direction: 1%, or a table as in a spec.
    #[arg(long)]
    loss: Option<String>,
    /// Rate of each direction: 10Mbit.
    #[arg(long)]
    rate: Option<String>,
    /// Queue of each direction: 50p, 64KiB, 20ms, or a table as in a spec.
    #[arg(long)]
    queue: Option<String>,
    /// Bytes on the wire in addition to the frame: a number, or ethernet.
    #[arg(long)]
    overhead: Option<String>,
    /// Set a value of the up direction only. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    up: Vec<String>,
    /// Set a value of the down direction only. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    down: Vec<String>,
    /// Use a Mahimahi trace instead of a rate in the up direction.
    #[arg(long, value_name = "FILE")]
    trace_up: Option<PathBuf>,
    /// Use a Mahimahi trace instead of a rate in the down direction.
    #[arg(long, value_name = "FILE")]
    trace_down: Option<PathBuf>,
    /// The seed of every random choice.
    #[arg(long, default_value_t = fastpath::DEFAULT_SEED)]
    seed: u64,
    /// Write a per-packet log (pcapng; times and drop reasons as packet comments).
    #[arg(long, value_name = "FILE.pcapng")]
    ledger: Option<PathBuf>,
    /// Also serve the HTTP control API on this address: 127.0.0.1:8080, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// The program and its arguments; by default $SHELL.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl ShellArgs {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let block = AddressBlock::find()?;
        let topology = self.topology(block)?;
        let mut options = fastpath::engine_options(self.seed, Notice::to_stderr());
        options.packet_log.clone_from(&self.ledger);
        options.http.clone_from(&self.http);
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        // Ctrl-C and Ctrl-\\ at the terminal are for the program, which receives them too.
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        let shell = Shell::start(topology, block, options)?;
        let status = self.command(&shell, &stop)?;
        print_accounting(&shell.stop()?);
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

    /// Describes two hosts and the link between them.
    fn topology(&self, block: AddressBlock) -> anyhow::Result<Topology> {
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
                    // The default queue of mm-link.
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

/// Converts `rate=1Mbit` to an assignment of a spec.
fn assignment(text: &str) -> anyhow::Result<String> {
    match text.split_once('=') {
        Some((key, value)) if spec::is_key(key) => Ok(spec::assignment(key, value)),
        _ => bail!("'{text}' is not a value of a link; write for example rate=1Mbit"),
    }
}
