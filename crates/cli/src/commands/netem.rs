//! `fastpath netem`: the arguments of tc's netem on an interface, on kernels without it.

use super::lab::{SEED, finish_books, stop_on_signals};
use crate::Answer;
use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use fastpath_engine::Options;
use fastpath_engine::control::HttpAddress;
use fastpath_lab::interpose::{Interposed, guard};
use fastpath_spec::netem;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(10);

/// Emulate on an existing interface, with the arguments of `tc qdisc add dev IFACE root netem …`.
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

/// Do to what leaves by an interface what netem would, until told to end (Ctrl-C).
///
/// What the machine sends by the interface is redirected to the emulated link (clsact, u32 and
/// mirred must be in the kernel) and sent on from there, past queue disciplines and filters; what
/// arrives there is not touched. Its addresses and routes stay. Unlike netem: the delay follows the
/// transmission at the rate, as on a wire; the limit counts what waits for the rate, not what is
/// under delay; TCP's super-packets are cut before the link, so loss and limit count packets.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fastpath netem dev eth0 delay 100ms loss 1%
  fastpath netem dev lo delay 20ms rate 10mbit limit 50
  fastpath netem dev eth0 loss gemodel 1% 25%")]
struct Dev {
    /// The interface.
    #[arg(value_name = "IFACE")]
    interface: String,
    /// Where to write what became of every packet, for Wireshark. Before the arguments.
    #[arg(long, value_name = "FILE.pcapng")]
    ledger: Option<PathBuf>,
    /// Where else to listen for `fastpath ctl`'s requests, as HTTP: 127.0.0.1:8080, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// As after `netem` in tc-netem(8).
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
            eprintln!("fastpath: limit bounds what waits for the rate, and without a rate nothing waits");
        }
        let stop = stop_on_signals()?;
        let seed = arguments.seed.unwrap_or(SEED);
        let network = fastpath_net::Options::with_seed(seed);
        let options =
            Options { packet_log: self.ledger.clone(), http: self.http.clone(), ..Options::new(network) };
        let mut guard = self.guard()?;
        let interposed = Interposed::start(&self.interface, topology, options)?;
        if let Some(pipe) = guard.0.stdin.as_mut().filter(|_| interposed.made_room()) {
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
        finish_books(&report);
        Ok(Answer::Yes)
    }

    /// A process of its own group that removes the filter when we are gone, however that comes to
    /// be.
    fn guard(&self) -> anyhow::Result<Guard> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["netem", "guard", &self.interface]).stdin(Stdio::piped()).process_group(0);
        Ok(Guard(command.spawn().context("starting the guard of the interface")?))
    }
}

/// The table of a distribution: a file, or one of those in tc's directory.
fn table(name: &str) -> Result<String, String> {
    let directory =
        std::env::var_os("TC_LIB_DIR").map_or_else(|| PathBuf::from("/usr/lib/tc"), PathBuf::from);
    let places = [PathBuf::from(name), directory.join(format!("{name}.dist"))];
    let place = places.iter().find(|place| place.is_file());
    let missing = || format!("there is no such distribution, and no file {name} or {}", places[1].display());
    std::fs::read_to_string(place.ok_or_else(missing)?).map_err(|error| error.to_string())
}

/// The guarding process; dropped, it is told to do its work and waited for.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Its own message has said what went wrong.
        let _ = self.0.wait();
    }
}
