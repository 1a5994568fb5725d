//! `fastpath lab`: hosts as network namespaces of this machine, real programs in them, and the
//! audit.

use super::replay;
use crate::network_file::load_with_warnings;
use crate::{Answer, explain, notice};
use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use fastpath_engine::control::HttpAddress;
use fastpath_engine::{FrameAccounting, Idle, Late, Report, Workers};
use fastpath_lab::audit::{Audit, Options, Progress, Verdict, audit};
use fastpath_lab::{EnterError, Lab, UpError};
use fastpath_spec::{Spec, Topology};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The seed when neither the command line nor the spec gives one.
pub(super) const SEED: u64 = 1;
/// How often a wait looks for signals.
const POLL: Duration = Duration::from_millis(10);
/// How long a command gets to end when we are told to, before each stronger means.
const GRACE: Duration = Duration::from_secs(2);

/// Run real programs on hosts of a network: each host is a network namespace of this machine.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fastpath lab run examples/emulab-fig2-1.ns --audit
  fastpath lab run net.toml -- sh -c 'fastpath lab exec n0 -- ping -c3 n3'
  fastpath lab up net.toml &   fastpath lab exec n0 -- iperf3 -c n1   fastpath lab down")]
pub(crate) struct LabCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Up(Up),
    Exec(Exec),
    Down(Down),
    List(List),
    Run(Run),
}

/// Bring a network up and stay until told to end (Ctrl-C, `fastpath lab down`).
#[derive(Args)]
struct Up {
    #[command(flatten)]
    network: NetworkArgs,
}

/// Bring a network up, audit it or run a command, and remove it again.
#[derive(Args)]
struct Run {
    #[command(flatten)]
    network: NetworkArgs,
    /// Measure RTT, rate, loss and TCP goodput of every pair of hosts, beside what the spec
    /// implies.
    #[arg(long)]
    audit: bool,
    /// Print one JSON object: the audit, or without one at the end what `fastpath ctl report
    /// --json` says.
    #[arg(long)]
    json: bool,
    /// The host to run the command on; otherwise it runs beside the hosts and may use `fastpath lab
    /// exec`.
    #[arg(long, value_name = "HOST", requires = "command")]
    on: Option<String>,
    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "audit")]
    command: Vec<OsString>,
}

#[derive(Args)]
pub(super) struct NetworkArgs {
    /// The network: a spec file (TOML) or an Emulab script (.ns).
    spec: PathBuf,
    /// What to call the lab; otherwise the name of the spec file without its extension.
    #[arg(long)]
    name: Option<String>,
    /// The seed of every random choice; otherwise the one in the spec, otherwise 1.
    #[arg(long)]
    seed: Option<u64>,
    /// Where to write what became of every packet on every link, for Wireshark: times and reasons
    /// are comments.
    #[arg(long, value_name = "FILE.pcapng")]
    ledger: Option<PathBuf>,
    /// Where else to listen for `fastpath ctl`'s requests, as HTTP: 127.0.0.1:8080, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    #[command(flatten)]
    real_time: RealTimeArgs,
}

/// How the engine keeps time; the [engine] table of the spec says the same.
#[derive(Args)]
pub(super) struct RealTimeArgs {
    /// Exit with 1, and name the links, if a frame was released later than this; otherwise what the
    /// spec says.
    #[arg(long, value_name = "TIME")]
    tolerance: Option<fastpath_units::Duration>,
    /// What becomes of frames that are later than tolerated.
    #[arg(long, value_name = "FATE")]
    late: Option<LateArg>,
    /// Spin instead of sleeping when nothing is due: the most exact, and a core of its own for each
    /// worker.
    #[arg(long)]
    busy: bool,
    /// How many threads share links that exchange no frames; each gets a core of its own. A network
    /// in one piece, with groups of links or with a ledger has one.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    workers: Option<NonZeroUsize>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LateArg {
    /// They go out late, and are counted.
    Deliver,
    /// They are dropped, and counted as late.
    Drop,
}

fn at_least_one(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "write a number from 1")
}

impl RealTimeArgs {
    pub(super) fn apply_to(&self, options: &mut fastpath_engine::Options) {
        options.tolerance = self.tolerance;
        options.late = self.late.map(|late| match late {
            LateArg::Deliver => Late::Deliver,
            LateArg::Drop => Late::Drop,
        });
        options.idle = self.busy.then_some(Idle::Busy);
        options.workers = self.workers.map(Workers::Count);
    }
}

/// Run a command on a host of a running lab; its exit code is ours.
#[derive(Args)]
struct Exec {
    /// The host; before it the lab, if several are up.
    #[arg(value_names = ["LAB", "HOST"], num_args = 1..=2, required = true)]
    place: Vec<String>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// End a lab and remove all of it, also what a killed engine has left behind.
#[derive(Args)]
struct Down {
    /// The lab, or its spec file; may be left out if there is only one.
    lab: Option<String>,
}

/// Show the labs of this user.
#[derive(Args)]
struct List {
    /// Print one JSON array.
    #[arg(long)]
    json: bool,
}

impl LabCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        match self.action {
            Action::Up(up) => up.run(),
            Action::Exec(exec) => exec.run(),
            Action::Down(down) => down.run(),
            Action::List(list) => list.run(),
            Action::Run(run) => run.run(),
        }
    }
}

impl Up {
    fn run(self) -> anyhow::Result<Answer> {
        let stop = stop_on_signals()?;
        let lab = self.network.up()?;
        let hosts: Vec<String> = lab.hosts().iter().map(host_line).collect();
        // Whoever reads this may go away after the first line; the lab stays.
        let _ = writeln!(
            io::stdout(),
            "lab {} is up (process {}):\n{}",
            lab.name(),
            std::process::id(),
            hosts.join("\n")
        );
        stay(lab, &stop)
    }
}

/// Waits for a signal or the engine's end, then removes the lab.
pub(super) fn stay(lab: Lab, stop: &AtomicBool) -> anyhow::Result<Answer> {
    while !stop.load(Ordering::Relaxed) && !lab.has_ended() {
        thread::sleep(POLL);
    }
    finish(lab)
}

impl Run {
    fn run(self) -> anyhow::Result<Answer> {
        let stop = stop_on_signals()?;
        let lab = match self.network.up() {
            Err(error) if self.audit && is_not_permitted(&error) => return self.replay_instead(&error),
            lab => lab?,
        };
        let mut answer = Answer::Yes;
        if self.audit {
            let found = audit_with_progress(&lab, &stop)?;
            self.print(&found)?;
            answer = if found.verdict == Verdict::Pass { Answer::Yes } else { Answer::No };
        }
        if let Some(code) = self.command(&lab, &stop)?.filter(|&code| code != 0) {
            answer = Answer::Exit(code);
        }
        if self.audit {
            // The audit has told the books already.
            let report = lab.down()?;
            let kept = finish_promise(&report);
            return Ok(match answer {
                Answer::Yes if !kept => Answer::No,
                answer => answer,
            });
        }
        let report = lab.down()?;
        if self.json {
            writeln!(io::stdout(), "{}", serde_json::to_string(&report)?)?;
        }
        match (finish_report(&report), answer) {
            (Answer::No, Answer::Yes) => Ok(Answer::No),
            (_, answer) => Ok(answer),
        }
    }

    /// Where there can be no hosts, the same network carries the capture that stands beside its
    /// description.
    fn replay_instead(&self, why: &anyhow::Error) -> anyhow::Result<Answer> {
        let capture = self.network.spec.with_extension("pcap");
        if !capture.is_file() {
            bail!(
                "{}; a capture at {} would be replayed in virtual time instead",
                explain(why),
                capture.display()
            );
        }
        eprintln!("fastpath: {}", explain(why));
        eprintln!("fastpath: replaying {} through the network in virtual time instead", capture.display());
        replay::at_first_host(&self.network.spec, &capture, self.network.seed, self.json)
    }

    fn print(&self, found: &Audit) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(found)?)?;
        } else {
            writeln!(out, "{found}")?;
        }
        Ok(())
    }

    /// Runs the command, if there is one; gives its exit code as a shell would.
    fn command(&self, lab: &Lab, stop: &AtomicBool) -> anyhow::Result<Option<u8>> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments);
        let started = match &self.on {
            Some(name) => {
                let have =
                    || lab.hosts().iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
                let host = lab.host(name).ok_or_else(|| anyhow!("no host {name} (have: {})", have()))?;
                lab.spawn(host, &mut command)
            }
            None => lab.prepare(&mut command).spawn(),
        };
        let child = started.with_context(|| program.to_string_lossy().into_owned())?;
        Ok(Some(exit_code(wait(child, stop)?)))
    }
}

impl NetworkArgs {
    fn up(&self) -> anyhow::Result<Lab> {
        self.start(Lab::up)
    }

    /// Brings the network up the given way.
    pub(super) fn start(
        &self,
        way: impl FnOnce(Topology, &str, fastpath_engine::Options) -> Result<Lab, UpError>,
    ) -> anyhow::Result<Lab> {
        let Spec { topology, engine } = load_with_warnings(&self.spec)?.spec;
        let seed = self.seed.or(topology.seed).unwrap_or(SEED);
        let network = fastpath_net::Options {
            executors: fastpath::switch::compiled(notice),
            ..fastpath_net::Options::with_seed(seed)
        };
        let name = self.name.clone().unwrap_or_else(|| name_of(&self.spec));
        let mut options = fastpath_engine::Options {
            packet_log: self.ledger.clone(),
            http: self.http.clone(),
            ..fastpath_engine::Options::new(network)
        };
        self.real_time.apply_to(&mut options);
        options.fill_from(&engine);
        let lab = way(topology, &name, options)?;
        if let Some(address) = lab.http() {
            eprintln!("fastpath: control at http://{address}/");
        }
        Ok(lab)
    }
}

impl Exec {
    fn run(self) -> anyhow::Result<Answer> {
        let (lab, host) = match &self.place[..] {
            [lab, host] => (lab.clone(), host),
            [host] => (the_lab(|lab| lab.alive)?, host),
            _ => bail!("say LAB HOST or HOST before --"),
        };
        match fastpath_lab::exec(&lab, host, &self.command) {
            Ok(never) => match never {},
            // As env(1) and sh(1) say it.
            Err(error @ EnterError::Program { .. }) => {
                eprintln!("fastpath: {error}");
                let missing = matches!(&error, EnterError::Program { source, .. }
                    if source.kind() == io::ErrorKind::NotFound);
                Ok(Answer::Exit(if missing { 127 } else { 126 }))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Down {
    fn run(self) -> anyhow::Result<Answer> {
        let name = match &self.lab {
            Some(lab) if lab.contains('/') || Path::new(lab).is_file() => name_of(Path::new(lab)),
            Some(lab) => lab.clone(),
            None => the_lab(|_| true)?,
        };
        let ended = fastpath_lab::down(&name)?;
        let programs = if ended > 0 { format!(", {ended} programs left in it ended") } else { String::new() };
        writeln!(io::stdout(), "lab {name} is down{programs}")?;
        Ok(Answer::Yes)
    }
}

impl List {
    fn run(self) -> anyhow::Result<Answer> {
        let labs = fastpath_lab::list();
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&labs)?)?;
            return Ok(Answer::Yes);
        }
        for lab in labs {
            let state = if lab.alive { "up" } else { "dead, `fastpath lab down` removes it" };
            writeln!(out, "{} ({state}, process {})", lab.name, lab.pid)?;
            for (host, addresses) in &lab.hosts {
                writeln!(out, "  {host:<12} {}", addresses.join(" "))?;
            }
        }
        Ok(Answer::Yes)
    }
}

/// The lab meant by a command that names none: that of the environment, or the only one.
pub(super) fn the_lab(counts: impl Fn(&fastpath_lab::Listed) -> bool) -> anyhow::Result<String> {
    if let Ok(name) = env::var("FASTPATH_LAB") {
        return Ok(name);
    }
    let names: Vec<String> = fastpath_lab::list().into_iter().filter(counts).map(|lab| lab.name).collect();
    match &names[..] {
        [name] => Ok(name.clone()),
        [] => bail!(
            "no lab is up; `fastpath lab up SPEC` brings one up (to reach a `fastpath shell` or `netem`, start it with \
             --http unix:PATH and say --socket PATH)"
        ),
        several => bail!("which lab? there are {}", several.join(", ")),
    }
}

fn name_of(spec: &Path) -> String {
    spec.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

fn host_line(host: &fastpath_lab::Host) -> String {
    let addresses: Vec<String> = host.addresses.iter().map(ToString::to_string).collect();
    format!("  {:<12} {}", host.name, addresses.join(" "))
}

fn is_not_permitted(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(UpError::is_refusal)
}

/// Removes the lab, and says how it went.
fn finish(lab: Lab) -> anyhow::Result<Answer> {
    Ok(finish_report(&lab.down()?))
}

/// Says where all frames went, and whether they were in time.
fn finish_report(report: &Report) -> Answer {
    finish_books(report);
    let kept = finish_promise(report);
    let has_ports = report.ports.iter().all(|port| port.failure.is_none());
    if report.conservation.balances() && kept && has_ports { Answer::Yes } else { Answer::No }
}

/// Says where all frames went, and what became of jitters.
pub(super) fn finish_books(report: &Report) {
    // Nobody may be listening any more; the exit code says it too.
    let _ = writeln!(io::stderr(), "{}", books_line(&report.conservation));
    for pipe in report.links.iter().flat_map(|link| &link.directions) {
        if let Some(delays) = &pipe.jitter {
            let _ = writeln!(io::stderr(), "{} → {}: {delays}", pipe.from, pipe.to);
        }
    }
}

/// Where all frames are, and why some were dropped.
pub(super) fn books_line(books: &FrameAccounting) -> String {
    let dropped: u64 = books.dropped.values().sum();
    let reasons: Vec<String> = books.dropped.iter().map(|(why, n)| format!("{n} {why}")).collect();
    let why = if dropped == 0 { String::new() } else { format!(" ({})", reasons.join(", ")) };
    let FrameAccounting { total_in, delivered, held, .. } = books;
    format!("frames: {total_in} in = {delivered} delivered + {dropped} dropped{why} + {held} held")
}

/// Says how late frames were and what kept the workers from their work; false if a tolerance was
/// asked for and not kept.
fn finish_promise(report: &Report) -> bool {
    let mut err = io::stderr().lock();
    let ports = report.ports.iter().map(|port| port.lateness).filter(|late| late.frames > 0);
    if let Some(worst) = ports.clone().max_by(|a, b| a.p99_us.total_cmp(&b.p99_us)) {
        let max = ports.map(|late| late.max_us).fold(0.0, f64::max);
        let _ = writeln!(
            err,
            "released late: p50 {:.1} p99 {:.1} µs on the worst link, at most {max:.1} µs; {} frames by more than {}",
            worst.p50_us, worst.p99_us, report.lateness.late, report.lateness.tolerance
        );
    }
    for (number, worker) in report.workers.iter().enumerate() {
        let (paused, preempted) = (&worker.stalled, &worker.preempted);
        let _ = writeln!(
            err,
            "worker {number}: load {:.0} %; the machine paused {} times, {:.1} ms (at most {:.1}); other threads had \
             its core {} times, {:.1} ms",
            100.0 * worker.load,
            paused.count,
            paused.total_ms,
            paused.longest_ms,
            preempted.count,
            preempted.total_ms
        );
    }
    if report.is_broken() {
        for line in report.broken() {
            let _ = writeln!(err, "fastpath: {line}");
        }
        let _ = writeln!(err, "fastpath: the tolerance of {} was broken", report.lateness.tolerance);
    }
    !report.is_broken()
}

fn audit_with_progress(lab: &Lab, stop: &AtomicBool) -> anyhow::Result<Audit> {
    let bar = crate::progress::bar(0, "{msg} ({elapsed})");
    bar.enable_steady_tick(Duration::from_millis(200));
    let show = |progress: Progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.step);
    };
    let found = audit(lab, Options::default(), stop, &show);
    bar.finish_and_clear();
    Ok(found?)
}

/// A flag that the usual signals set in place of ending the process, so that everything is removed
/// first.
pub(super) fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Waits for the command. When told to stop, it gets time to end by itself (a terminal has sent it
/// the signal too), then is told, then is killed.
fn wait(mut child: Child, stop: &AtomicBool) -> anyhow::Result<ExitStatus> {
    let pid = Pid::from_raw(i32::try_from(child.id()).context("process number")?);
    let mut means = [None, Some(Signal::SIGTERM), Some(Signal::SIGKILL)].into_iter();
    let mut deadline: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let due = deadline.is_none_or(|deadline| Instant::now() >= deadline);
        if stop.load(Ordering::Relaxed) && due {
            ensure!(means.len() > 0, "the command does not end, even when killed");
            if let Some(Some(signal)) = means.next() {
                kill(pid, signal)?;
            }
            deadline = Some(Instant::now() + GRACE);
        }
        thread::sleep(POLL);
    }
}

pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
