//! `fastpath netem`: netem-style impairments on an interface, without the kernel module.

use crate::Answer;
use crate::accounting::print_accounting;
use crate::signals::{POLL, stop_on_signals};
use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use fastpath_engine::Notice;
use fastpath_engine::control::HttpAddress;
use fastpath_lab::interpose::{Interposed, guard};
use fastpath_netem as netem;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

/// Apply impairments to an interface in tc-netem syntax (no sch_netem needed).
#[derive(Args)]
pub(crate) struct NetemCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Dev(Dev),
    #[command(hide = true)]
    Guard {
        interface: String,
    },
}

/// Apply netem-style impairments to an interface's egress until interrupted (Ctrl-C).
///
/// Packets that leave by the interface pass an emulated link, but not the queue disciplines and
/// filters of the interface. The kernel needs clsact, u32 and mirred. Ingress, addresses and routes
/// of the interface do not change. This differs from netem in three points. The delay follows the
/// transmission at the rate, as on a wire. The limit counts packets that wait for the rate, but not
/// packets that are delayed. TCP super-packets (GSO) are segmented before the link, so loss and
/// limit count segments.
#[derive(Args)]
struct Dev {
    /// The interface.
    #[arg(value_name = "IFACE")]
    interface: String,
    /// Write the fate of every packet to this file: times and drop reasons as packet comments. This
    /// option precedes ARGUMENTS.
    #[arg(long, alias = "ledger", value_name = "FILE.pcapng")]
    packet_log: Option<PathBuf>,
    /// Serve the HTTP control API on this address too: 127.0.0.1:8080, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// Impairments, as after `netem` in tc-netem(8).
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl NetemCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        match self.action {
            Action::Dev(dev) => dev.run(),
            Action::Guard { interface } => {
                guard(&interface).with_context(|| format!("{interface}: removing the filter"))?;
                Ok(Answer::Yes)
            }
        }
    }
}

impl Dev {
    fn run(self) -> anyhow::Result<Answer> {
        let arguments = netem::parse_with(&self.arguments, &table)?;
        let topology = arguments.topology();
        if arguments.limit_given && arguments.rate.is_none() && arguments.slot.is_none() {
            eprintln!(
                "fastpath: limit has no effect: it bounds packets that wait for a rate, and no rate is given"
            );
        }
        let stop = stop_on_signals()?;
        let seed = arguments.seed.unwrap_or(fastpath::DEFAULT_SEED);
        let mut options = fastpath::engine_options(seed, Notice::to_stderr());
        options.packet_log.clone_from(&self.packet_log);
        options.http.clone_from(&self.http);
        let mut guard = self.guard()?;
        let interposed = Interposed::start(&self.interface, topology, options)?;
        if let Some(pipe) = guard.0.stdin.as_mut().filter(|_| interposed.added_clsact()) {
            pipe.write_all(b"room was made\n")?;
        }
        writeln!(io::stdout(), "netem is on {} (process {})", self.interface, std::process::id())?;
        io::stdout().flush()?;
        while !stop.load(Ordering::Relaxed) && interposed.is_in_place() {
            std::thread::sleep(POLL);
        }
        let stopped = stop.load(Ordering::Relaxed);
        let report = interposed.stop()?;
        drop(guard);
        ensure!(stopped, "{}: the interface is gone", self.interface);
        print_accounting(&report);
        Ok(Answer::Yes)
    }

    /// Starts a process in its own process group that removes the filter when this process ends,
    /// even by SIGKILL.
    fn guard(&self) -> anyhow::Result<Guard> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["netem", "guard", &self.interface]).stdin(Stdio::piped()).process_group(0);
        Ok(Guard(command.spawn().context("starting the guard of the interface")?))
    }
}

/// Reads the table of a distribution: a file, or one in the directory of tc.
fn table(name: &str) -> Result<String, String> {
    let directory =
        std::env::var_os("TC_LIB_DIR").map_or_else(|| PathBuf::from("/usr/lib/tc"), PathBuf::from);
    let places = [PathBuf::from(name), directory.join(format!("{name}.dist"))];
    let place = places.iter().find(|place| place.is_file());
    let missing = || format!("there is no such distribution, and no file {name} or {}", places[1].display());
    std::fs::read_to_string(place.ok_or_else(missing)?).map_err(|error| error.to_string())
}

/// The process that removes the filter. Dropping it starts the removal and waits for its end.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Its own message has said what went wrong.
        let _ = self.0.wait();
    }
}
