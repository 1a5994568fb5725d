//! `fastpath shell`: a program behind an emulated link.

use crate::Answer;
use crate::accounting::print_accounting;
use crate::network_file::is_about_words;
use crate::signals::{POLL, exit_code};
use anyhow::Context;
use clap::Args;
use fastpath::shell::ShellLink;
use fastpath_engine::Notice;
use fastpath_engine::control::HttpAddress;
use fastpath_lab::shell::{AddressBlock, Shell};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Run a program, or a shell, behind an emulated link.
///
/// The program sees one interface, eth0. All its traffic passes the link: "up" is away from the
/// program, "down" is towards it. The program reaches every address of the machine, or of the shell
/// around it. The address next to the link is in FASTPATH_SHELL_OUTSIDE. The program reaches other
/// networks if the machine forwards packets. The shell of a user without rights is joined to the
/// machine by pasta or slirp4netns instead, and needs nft. Shells can be nested: their links are
/// then in series.
#[derive(Args)]
#[command(after_help = "\
To reach the internet, let the machine forward and masquerade:
  sysctl -w net.ipv4.ip_forward=1
  iptables -t nat -A POSTROUTING -s 100.64.0.0/10 -j MASQUERADE")]
pub(crate) struct ShellArgs {
    /// Use the values of a kind of access, such as lte or starlink (see `fastpath presets`). Other
    /// options override them.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// One-way delay of each direction, such as 20ms.
    #[arg(long)]
    delay: Option<String>,
    /// Loss of each direction, such as 1%, or a table as in a spec file.
    #[arg(long)]
    loss: Option<String>,
    /// Rate of each direction, such as 10Mbit.
    #[arg(long)]
    rate: Option<String>,
    /// Queue of each direction: 50p, 64KiB, 20ms, or a table as in a spec file. With a trace, the
    /// packet in transmission is not counted, as in mm-link.
    #[arg(long)]
    queue: Option<String>,
    /// Bytes on the wire beyond those of the frame: a number, or ethernet.
    #[arg(long, value_name = "BYTES")]
    overhead: Option<String>,
    /// Set a value of the up direction. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    up: Vec<String>,
    /// Set a value of the down direction. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    down: Vec<String>,
    /// Use a Mahimahi trace in the up direction, instead of a rate.
    #[arg(long, value_name = "FILE")]
    trace_up: Option<PathBuf>,
    /// Use a Mahimahi trace in the down direction, instead of a rate.
    #[arg(long, value_name = "FILE")]
    trace_down: Option<PathBuf>,
    /// Seed of every random choice.
    #[arg(long, default_value_t = fastpath::DEFAULT_SEED)]
    seed: u64,
    /// Write the fate of every packet on every link to this file: times and drop reasons as packet
    /// comments.
    #[arg(long, alias = "ledger", value_name = "FILE.pcapng")]
    packet_log: Option<PathBuf>,
    /// Serve the HTTP control API on this address too: 127.0.0.1:8080, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// The program and its arguments. By default $SHELL.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl ShellArgs {
    fn link(&self) -> ShellLink {
        ShellLink {
            preset: self.preset.clone(),
            delay: self.delay.clone(),
            loss: self.loss.clone(),
            rate: self.rate.clone(),
            queue: self.queue.clone(),
            overhead: self.overhead.clone(),
            up: self.up.clone(),
            down: self.down.clone(),
            trace_up: self.trace_up.clone(),
            trace_down: self.trace_down.clone(),
        }
    }

    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let block = AddressBlock::find()?;
        let (topology, warnings) = self.link().topology(block)?;
        let shown = warnings.iter().filter(|warning| is_about_words(warning));
        shown.for_each(|warning| eprintln!("fastpath: {}", warning.what));
        let mut options = fastpath::engine_options(self.seed, Notice::to_stderr());
        options.packet_log.clone_from(&self.packet_log);
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
}
