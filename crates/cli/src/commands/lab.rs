//! `fastpath lab`: hosts as network namespaces of this machine, real programs in them, and the
//! audit.

use super::virtual_time::{self, TimeArg};
use super::{again, replay};
use crate::accounting::{print_lateness, print_report};
use crate::lab_words::{ExecWords, exec_words, lab_of};
use crate::network_args::NetworkArgs;
use crate::network_file::{ReadingArgs, is_about_words};
use crate::signals::{POLL, exit_code, poll, stand_in, stop_on_signals, wait};
use crate::view::{self, AppliedChanges};
use crate::{Answer, explain, progress};
use anyhow::{Context, anyhow, bail};
use clap::Args;
use fastpath::guest_run::{LOG, PACKETS, RECORD, is_inside};
use fastpath::origin::{tests, with_origin};
use fastpath::{PacketsRecorder, Recorder};
use fastpath_audit::{Audit, AuditProgress, AuditVerdict, Options, audit};
use fastpath_engine::control::{Request, Response, call};
use fastpath_lab::{EnterError, Lab, NO_PROGRAMS, UpError};
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The tolerance of an audit if none is given. A network whose frames are later is not the one that
/// the spec describes.
const AUDIT_TOLERANCE: fastpath_units::Duration = fastpath_units::Duration::from_ms(100);

/// Run real programs on emulated hosts, each a network namespace.
///
/// A lab is not a sandbox: it separates networks, not programs. Programs in a lab that root brought
/// up are root on this machine.
#[derive(Args)]
pub(crate) struct LabCommand {
    #[command(subcommand)]
    action: Action,
}

subcommands! {
    Action {
        Up(Up),
        Exec(Exec),
        Apply(Apply),
        Inspect(Inspect),
        Down(Down),
        List(List),
        Run(Run),
        Again(again::Again),
    }
}

/// Bring a lab up until Ctrl-C or `fastpath lab down`.
#[derive(Args)]
struct Up {
    #[command(flatten)]
    network: NetworkArgs,
    /// Only to say why not.
    #[arg(long, value_name = "TIME", default_value = "real", hide = true)]
    time: TimeArg,
}

/// Bring a lab up, audit it or run a command, remove it.
#[derive(Args)]
struct Run {
    #[command(flatten)]
    network: NetworkArgs,
    /// Measure RTT, rate, loss and TCP goodput of every pair of hosts, and compare them with the
    /// spec file. The default of --tolerance is then 100ms. Measurements that fail while the
    /// machine takes the core away are repeated, and those that fail to the end are "disturbed":
    /// the exit code is then 2.
    #[arg(long)]
    audit: bool,
    /// Print one JSON object: the audit, or without --audit the report of `fastpath ctl report
    /// --json`. Its key `run` has the version, seed, network and machine. What the command prints
    /// goes to standard error.
    #[arg(long)]
    json: bool,
    /// Write the verdicts of the audit to this file too, as JUnit XML for continuous integration.
    #[arg(long, value_name = "FILE.xml", requires = "audit")]
    junit: Option<PathBuf>,
    /// Record time series of links and flows in this new directory. `fastpath report DIR` draws
    /// them.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Interval of the time series. In virtual time it is 100ms by default.
    #[arg(long, value_name = "TIME", default_value = "10ms", requires = "record")]
    record_interval: fastpath_units::Duration,
    /// Run in real time, or in virtual time: exact and the same every time, whatever else the
    /// machine does. Programs then compute in no time. Needs the kernel of `fastpath guest build`.
    #[arg(long, value_name = "TIME", default_value = "real")]
    time: TimeArg,
    /// Run the command on this host. By default it runs outside the hosts, and can reach them with
    /// `fastpath lab exec`.
    #[arg(long, value_name = "HOST", requires = "command")]
    on: Option<String>,
    /// The command and its arguments. Optional with --audit. Also optional if the spec file has
    /// [[traffic]]: the lab then ends when its traffic ends.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Run a command, or a shell, on a host of a lab.
///
/// Without a command, $SHELL is started, or sh.
#[derive(Args)]
struct Exec {
    /// The lab if several are up, the host, the command and its arguments. `--` may precede the
    /// command.
    #[arg(value_names = ["LAB", "HOST", "COMMAND"], required = true, trailing_var_arg = true)]
    words: Vec<OsString>,
}

/// Change a running lab to the network of another spec file.
///
/// Nodes and links that both have keep their frames, queues, addresses, programs and connections.
/// If a change fails, nothing changes.
#[derive(Args)]
struct Apply {
    /// The new network: a spec file (TOML or JSON), an Emulab script (.ns) or a containerlab file
    /// (.yml).
    spec: PathBuf,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Name of the lab. By default the name of the spec file without its extension, or the only lab
    /// that is up.
    #[arg(long)]
    name: Option<String>,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// List the nodes of a running lab: namespaces, programs, addresses, state.
#[derive(Args)]
struct Inspect {
    /// Name of the lab. Needed only if several are up.
    lab: Option<String>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Remove a lab, even if its engine was killed.
#[derive(Args)]
struct Down {
    /// Name of the lab, or its spec file. Needed only if several labs are up.
    lab: Option<String>,
    /// End an unnamed lab without asking, even if it was started from another terminal.
    #[arg(long)]
    yes: bool,
}

/// List this user's labs.
#[derive(Args)]
struct List {
    /// Print one JSON array instead of text.
    #[arg(long)]
    json: bool,
}

impl LabCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        self.action.run()
    }
}

impl Up {
    fn run(self) -> anyhow::Result<Answer> {
        if self.time == TimeArg::Virtual {
            bail!(
                "lab up has no virtual time: whoever enters such a lab from outside would bring the machine's time; write `fastpath lab run SPEC --time virtual -- COMMAND`"
            );
        }
        let stop = stop_on_signals()?;
        let lab = self.network.start(Lab::up)?;
        lab.wait_for_exec(&stop);
        let hosts: Vec<String> = lab.hosts().iter().map(|host| host_line(host)).collect();
        // The reader may close the pipe after the first line; the lab stays up.
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

/// Waits for a signal or the end of the engine, then removes the lab.
pub(super) fn stay(mut lab: Lab, stop: &AtomicBool) -> anyhow::Result<Answer> {
    while !stop.load(Ordering::Relaxed) && !lab.has_ended() {
        lab.serve(POLL);
    }
    Ok(print_report(&lab.down()?))
}

impl Run {
    fn run(mut self) -> anyhow::Result<Answer> {
        let stop = stop_on_signals()?;
        if self.time == TimeArg::Virtual {
            return virtual_time::run(&self.network, self.record.as_deref(), self.junit.as_deref(), &stop);
        }
        self.run_in_real_time(&stop)
    }

    fn run_in_real_time(&mut self, stop: &AtomicBool) -> anyhow::Result<Answer> {
        if self.audit {
            self.network.default_tolerance(AUDIT_TOLERANCE);
        }
        self.network.records_flows = self.record.is_some();
        if self.looks_back() {
            self.network.packet_log = Some(Path::new(RECORD).join(LOG));
        }
        let mut lab = match self.network.start(Lab::up) {
            Err(error) if self.audit && is_not_permitted(&error) => return self.replay_instead(&error),
            lab => lab?,
        };
        let record = |directory: &PathBuf| -> anyhow::Result<Recorder> {
            Ok(Recorder::start(directory, &self.network.origin()?, &lab, self.record_interval)?)
        };
        // A run in virtual time can be looked at afterwards.
        let packets =
            self.looks_back().then(|| PacketsRecorder::start(&Path::new(RECORD).join(PACKETS), &lab));
        let packets = packets.transpose()?;
        let recorder = self.record.as_ref().map(record).transpose()?;
        lab.wait_for_exec(stop);
        if !self.audit && self.command.is_empty() {
            if !lab.topology().has_traffic() {
                bail!("nothing to run: write -- COMMAND, or [[traffic]] in the spec");
            }
            lab.wait_for_traffic(stop);
        }
        let mut answer = if self.audit { self.audited(&lab, stop)? } else { Answer::Yes };
        if let Some(code) = self.command(&mut lab, stop)?.filter(|&code| code != 0) {
            answer = Answer::Exit(code);
        }
        if let Some(recorder) = recorder {
            recorder.finish(&lab, &self.command)?;
        }
        let report = lab.down()?;
        packets.map_or(Ok(()), PacketsRecorder::finish)?;
        if self.audit {
            // The audit has printed the frame accounting already.
            let in_time = print_lateness(&report);
            return Ok(match answer {
                Answer::Yes if !in_time => Answer::No,
                answer => answer,
            });
        }
        if self.json {
            writeln!(io::stdout(), "{}", with_origin(&report, &self.network.origin()?))?;
        }
        match (print_report(&report), answer) {
            (Answer::No, Answer::Yes) => Ok(Answer::No),
            (_, answer) => Ok(answer),
        }
    }

    /// Audits the lab and prints what was found.
    fn audited(&self, lab: &Lab, stop: &AtomicBool) -> anyhow::Result<Answer> {
        let found = audit_with_progress(lab, stop)?;
        if let Some(file) = &self.junit {
            let at = || format!("{}: cannot write the audit", file.display());
            std::fs::write(file, tests(&found).xml()).with_context(at)?;
        }
        self.print(&found)?;
        Ok(match found.verdict {
            AuditVerdict::Pass => Answer::Yes,
            AuditVerdict::Fail => Answer::No,
            AuditVerdict::Disturbed => Answer::Disturbed,
        })
    }

    /// Whether this is the command in a guest, whose record has all packets.
    fn looks_back(&self) -> bool {
        is_inside() && self.record.as_deref() == Some(Path::new(RECORD))
    }

    /// Replays the capture next to the description through the same network, where namespaces are
    /// not permitted.
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
        let file = (&*self.network.spec, &self.network.reading.reading());
        replay::at_first_host(file, &capture, self.network.seed, self.json)
    }

    fn print(&self, found: &Audit) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", with_origin(found, &self.network.origin()?))?;
        } else {
            writeln!(out, "{found}")?;
        }
        Ok(())
    }

    /// Runs the command, if there is one. Returns its exit code as a shell reports it.
    fn command(&self, lab: &mut Lab, stop: &AtomicBool) -> anyhow::Result<Option<u8>> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments);
        if self.json {
            // Standard output is one JSON object.
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let started = match &self.on {
            Some(name) => {
                let have =
                    || lab.hosts().iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
                let host = lab
                    .host(name)
                    .ok_or_else(|| anyhow!("no host {name} (have: {}){NO_PROGRAMS}", have()))?;
                lab.spawn(host, &mut command)
            }
            None => lab.prepare(&mut command).spawn(),
        };
        let child = started.with_context(|| program.to_string_lossy().into_owned())?;
        let poll = poll();
        Ok(Some(exit_code(wait(child, stop, || lab.serve(poll))?)))
    }
}

impl Exec {
    fn run(self) -> anyhow::Result<Answer> {
        let ExecWords { lab, host, command } = exec_words(self.words)?;
        let started = match command.is_empty() {
            true => fastpath_lab::exec_shell(&lab, &host),
            false => fastpath_lab::exec(&lab, &host, &command),
        };
        match started {
            // The program is a child if it cannot take the place of this process.
            Ok(child) => Ok(Answer::Exit(exit_code(stand_in(child)?))),
            // The exit codes of env(1) and sh(1).
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

impl Apply {
    fn run(self) -> anyhow::Result<Answer> {
        let (mut apply, warnings) = fastpath::apply_request(&self.spec, &self.reading.reading())?;
        let shown = warnings.iter().filter(|warning| is_about_words(warning));
        shown.for_each(|warning| eprintln!("{}", fastpath::at(&self.spec, warning)));
        apply.dry_run = self.dry_run;
        let lab = self.name.map_or_else(|| lab_of(&self.spec), Ok)?;
        let applied = match call(&fastpath_lab::control_socket(&lab)?, &Request::Apply(Box::new(apply)))? {
            Response::Applied(applied) => applied,
            Response::Error(why) => bail!("lab {lab} is unchanged: {why}"),
            _ => bail!("unexpected answer of lab {lab} (another version of fastpath?)"),
        };
        if !self.json {
            // The warnings of the description have been printed with their places.
            let known = |notice: &&String| warnings.iter().all(|warning| warning.what != **notice);
            applied.notices.iter().filter(known).for_each(|notice| eprintln!("fastpath: {notice}"));
        }
        let changes = AppliedChanges { lab: &lab, applied: &applied, is_dry_run: self.dry_run };
        view::print(&changes, self.json)?;
        Ok(Answer::Yes)
    }
}

impl Inspect {
    fn run(self) -> anyhow::Result<Answer> {
        let name = self.lab.map_or_else(|| fastpath_lab::only_lab(|lab| lab.alive), Ok)?;
        view::print(&fastpath_lab::inspect(&name)?, self.json)?;
        Ok(Answer::Yes)
    }
}

impl Down {
    fn run(self) -> anyhow::Result<Answer> {
        let name = match &self.lab {
            Some(lab) if lab.contains('/') || Path::new(lab).is_file() => fastpath::name_of(Path::new(lab)),
            Some(lab) => lab.clone(),
            None => {
                let name = fastpath_lab::only_lab(|_| true)?;
                if !self.yes && !is_meant(&name)? {
                    return Ok(Answer::No);
                }
                name
            }
        };
        let ended = fastpath_lab::down(&name)?;
        let programs = if ended > 0 { format!(", programs ended: {ended}") } else { String::new() };
        writeln!(io::stdout(), "lab {name} is down{programs}")?;
        Ok(Answer::Yes)
    }
}

/// Whether the user wants to end a lab that was not named. Asks if it was started from another
/// terminal.
fn is_meant(name: &str) -> anyhow::Result<bool> {
    let labs = fastpath_lab::list();
    let other = labs.iter().find(|lab| lab.name == name && lab.alive && !lab.same_session);
    let Some(lab) = other.filter(|_| env::var_os("FASTPATH_LAB").is_none()) else { return Ok(true) };
    let what = format!(
        "lab {name} (process {}, {} hosts) was started from another terminal",
        lab.pid,
        lab.hosts.len()
    );
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        bail!("{what}; write `fastpath lab down {name}`, or --yes");
    }
    eprint!("fastpath: {what}. End it? [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

impl List {
    fn run(self) -> anyhow::Result<Answer> {
        let labs = fastpath_lab::list();
        if labs.is_empty() && !self.json {
            eprintln!("fastpath: no lab is up; start one with `fastpath lab up SPEC`");
        }
        view::print(labs.as_slice(), self.json)?;
        Ok(Answer::Yes)
    }
}

fn host_line(host: &fastpath_lab::Host) -> String {
    let addresses: Vec<String> = host.addresses().iter().map(ToString::to_string).collect();
    format!("  {:<12} {}", host.name, addresses.join(" "))
}

fn is_not_permitted(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(UpError::is_refusal)
}

fn audit_with_progress(lab: &Lab, stop: &AtomicBool) -> anyhow::Result<Audit> {
    let bar = progress::bar(0, "{msg} ({elapsed})");
    bar.enable_steady_tick(Duration::from_millis(200));
    let show = |progress: AuditProgress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.step);
    };
    let found = audit(lab, Options::default(), stop, &show);
    bar.finish_and_clear();
    Ok(found?)
}
