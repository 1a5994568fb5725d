//! A run in a lab: the steps, one after another, with real programs.

use super::evidence::{DirectionCounts, Evidence, Readings, SAMPLE};
use super::metric::GAUGES;
use super::plan::{Experiment, TOLERANCE};
use super::step::{LinkValue, RunStep, StepAction};
use fastpath::guest_run::{LOG, PACKETS, RECORD, is_inside};
use fastpath::{Error, PacketsRecorder, Result};
use fastpath_audit::{Audit, AuditVerdict, audit};
use fastpath_engine::control::{Changes, Request, Response, Setting, call};
use fastpath_engine::{Notice, Report};
use fastpath_lab::{Lab, control_socket};
use fastpath_spec::NetworkSpec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Map;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The time within which a signal to this process is noticed.
const ATTENTION: Duration = Duration::from_millis(200);
/// Time from SIGTERM to SIGKILL for a command that reached its limit.
const GRACE: Duration = Duration::from_secs(2);

/// The audit of the machine in the directory of a run.
const AUDIT: &str = "audit.json";

/// Does a run, after the audit of its machine where that is asked for. What the steps left behind
/// is in the evidence also if one of them fails.
pub(super) fn run(
    plan: &Experiment,
    steps: &[RunStep],
    number: u64,
    (spec, path): (NetworkSpec, &Path),
    directory: &Path,
    stop: &AtomicBool,
) -> Result<Evidence> {
    if plan.audit
        && let Some(failed) = audited(plan, number, (&spec, path), directory, stop)?
    {
        return Ok(failed);
    }
    let looks_back = plan.is_virtual && is_inside();
    let lab = up(plan, number, (spec, path), looks_back, stop)?;
    let packets = looks_back.then(|| PacketsRecorder::start(&Path::new(RECORD).join(PACKETS), &lab));
    let packets = packets.transpose()?;
    let mut evidence = Evidence::default();
    let is_sampled = plan.metrics.iter().any(super::metric::Metric::is_sampled);
    let (end, ended) = channel::<()>();
    let samples = std::thread::scope(|scope| {
        let sampled = &lab;
        let sampler = is_sampled.then(|| scope.spawn(move || sample(sampled, &ended)));
        let run = LabRun { plan, number, directory, lab: &lab, stop };
        evidence.problem = run.steps(steps, &mut evidence.outputs).err();
        drop(end);
        sampler.map(|sampler| sampler.join().expect("the sampler does not panic"))
    });
    evidence.samples = samples;
    let report = lab.down().map_err(|error| Error::Argument(error.to_string()))?;
    packets.map_or(Ok(()), PacketsRecorder::finish)?;
    if !report.accounting.balances() {
        return Err(Error::Accounting(format!("run {number}")));
    }
    evidence.counters = counters(&report);
    evidence.flows.clone_from(&report.traffic);
    evidence.transfers.clone_from(&report.transfers);
    evidence.disturbed = disturbed(plan, &report);
    Ok(evidence)
}

/// Brings the network of a run up, with a log of all packets if the run can be looked at
/// afterwards.
fn up(
    plan: &Experiment,
    number: u64,
    (spec, path): (NetworkSpec, &Path),
    looks_back: bool,
    stop: &AtomicBool,
) -> Result<Lab> {
    let mut options = fastpath::engine_options(plan.seed(number), Notice::to_stderr());
    options.fill_from(&spec.engine);
    options.tolerance = plan.tolerance.or(options.tolerance).or(Some(TOLERANCE));
    options.packet_log = looks_back.then(|| Path::new(RECORD).join(LOG));
    let base = path.parent().unwrap_or(Path::new(""));
    fastpath::switching::attach_controllers(&spec.topology, base, &mut options)?;
    let name = format!("experiment-{}-{number}", std::process::id());
    let lab = Lab::up(spec.topology, &name, options).map_err(|error| Error::Argument(error.to_string()))?;
    lab.wait_for_exec(stop);
    Ok(lab)
}

/// Audits this machine with the network of a run, in a lab of its own: the counters of the run have
/// none of its packets. Returns what the run leaves behind if the machine does not carry the
/// network.
fn audited(
    plan: &Experiment,
    number: u64,
    (spec, path): (&NetworkSpec, &Path),
    directory: &Path,
    stop: &AtomicBool,
) -> Result<Option<Evidence>> {
    let mut spec = spec.clone();
    // Traffic and commands of the description are not what the audit expects on the links.
    spec.topology.traffic.clear();
    spec.topology.transfers.clear();
    spec.topology.commands.clear();
    let lab = up(plan, number, (spec, path), false, stop)?;
    let found = audit(&lab, fastpath_audit::Options::default(), stop, &|_| {});
    let found: Audit = match found {
        Ok(found) => found,
        Err(error) => {
            return Ok(Some(Evidence { problem: Some(format!("audit: {error}")), ..Evidence::default() }));
        }
    };
    lab.down().map_err(|error| Error::Argument(error.to_string()))?;
    let path = directory.join(AUDIT);
    let text = serde_json::to_string_pretty(&found).expect("plain data");
    fs::write(&path, format!("{text}\n")).map_err(Error::file(&path))?;
    let evidence = match found.verdict {
        AuditVerdict::Pass => return Ok(None),
        AuditVerdict::Fail => {
            Evidence { problem: Some(format!("audit: {}", found.failures())), ..Evidence::default() }
        }
        AuditVerdict::Disturbed => {
            Evidence { disturbed: Some(format!("audit: {}", found.disturbances())), ..Evidence::default() }
        }
    };
    Ok(Some(evidence))
}

/// Why the machine did not carry a run, if so.
fn disturbed(plan: &Experiment, report: &Report) -> Option<String> {
    let sent: u64 = report.ports.iter().map(|port| port.lateness.frames).sum();
    let late = report.lateness.late;
    let share = late as f64 / sent.max(1) as f64;
    let late = (share > plan.late_share).then(|| {
        format!("{late} of {sent} frames were released more than {} late", report.lateness.tolerance)
    });
    report.disturbed().or(late)
}

/// Samples the links until `ended` is closed.
fn sample(lab: &Lab, ended: &Receiver<()>) -> Vec<Readings> {
    let mut samples: Vec<Readings> = Vec::new();
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(SAMPLE) {
        let Some(report) = lab.report() else { break };
        let pipes = report.links.iter().flat_map(|link| link.directions.iter().map(move |pipe| (link, pipe)));
        let values = pipes.flat_map(|(link, pipe)| {
            let values =
                [pipe.queueing_delay_us / 1000.0, pipe.queued_frames as f64, pipe.queued_bytes as f64];
            GAUGES.iter().zip(values).map(move |(name, value)| (link, pipe, *name, value))
        });
        for (index, (link, pipe, name, value)) in values.enumerate() {
            match samples.get_mut(index) {
                Some(readings) => readings.values.push(value),
                None => samples.push(Readings {
                    link: link.name.clone(),
                    from: pipe.from.clone(),
                    name: name.to_owned(),
                    values: vec![value],
                }),
            }
        }
    }
    samples
}

/// The counters of all links at the end of a run.
fn counters(report: &Report) -> Vec<Readings> {
    let mut counters = Vec::new();
    for link in &report.links {
        for pipe in &link.directions {
            let counts = DirectionCounts {
                frames: [pipe.frames_in, pipe.frames_out],
                bytes: [pipe.bytes_in, pipe.bytes_out],
                marked: pipe.marked,
                duplicated: pipe.duplicated,
                corrupted: pipe.corrupted,
            };
            counters.extend(counts.readings((&link.name, &pipe.from), &pipe.dropped));
        }
    }
    counters
}

struct LabRun<'a> {
    plan: &'a Experiment,
    number: u64,
    directory: &'a Path,
    lab: &'a Lab,
    stop: &'a AtomicBool,
}

impl LabRun<'_> {
    /// Carries the steps out. The error is why one failed. Commands in the background end with the
    /// lab, in which they are.
    fn steps(&self, steps: &[RunStep], outputs: &mut BTreeMap<String, String>) -> Result<(), String> {
        let mut background: Vec<(String, Child)> = Vec::new();
        for step in steps {
            let failed = |what: String| format!("step {}: {what}", step.name);
            match &step.action {
                StepAction::Run { command, on, background: stays, limit, may_fail } => {
                    let words: Vec<String> =
                        command.iter().map(|word| self.plan.fill(word, self.number)).collect();
                    let output = format!("{}.out", step.name);
                    let path = self.directory.join(&output);
                    let mut child = self.start(&words, on.as_deref(), &step.name, &path).map_err(failed)?;
                    outputs.insert(step.name.clone(), output);
                    if *stays {
                        background.push((step.name.clone(), child));
                        continue;
                    }
                    let status = self.wait(&mut child, *limit).map_err(failed)?;
                    if !status.success() && !may_fail {
                        return Err(failed(format!("{}: {status}{}", words[0], self.last_words(&step.name))));
                    }
                }
                StepAction::Wait(time) => self.pause(*time).map_err(failed)?,
                StepAction::Set(values) => self.ask(Request::Set(changes(values))).map_err(failed)?,
                StepAction::Start(group) => {
                    self.ask(Request::Start { group: group.text.clone() }).map_err(failed)?
                }
                StepAction::Collect { file, on } => {
                    self.collect(file, on.as_deref(), &step.name).map_err(failed)?
                }
            }
        }
        for (_, mut child) in background {
            let _ = child.kill();
            let _ = child.wait();
        }
        Ok(())
    }

    /// Starts a command on a host, or outside the hosts.
    fn start(&self, words: &[String], on: Option<&str>, name: &str, output: &Path) -> Result<Child, String> {
        let file = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(file(output)?);
        command.stderr(file(&self.directory.join(format!("{name}.err")))?);
        let started = match on {
            Some(host) => {
                let host = self.lab.host(host).ok_or_else(|| format!("programs cannot run on {host}"))?;
                self.lab.spawn(host, &mut command)
            }
            None => self.lab.prepare(&mut command).spawn(),
        };
        started.map_err(|error| format!("{}: {error}", words[0]))
    }

    /// Waits for a command. After its limit it is ended; what it has printed is kept.
    fn wait(&self, child: &mut Child, limit: Duration) -> Result<ExitStatus, String> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if ended(child, left.min(ATTENTION))? {
                return child.wait().map_err(|error| error.to_string());
            }
            if self.stop.load(Ordering::Relaxed) || left.is_zero() {
                terminate(child)?;
                return Err(match left.is_zero() {
                    true => format!(
                        "it did not end within {} s and was ended; its output is kept",
                        limit.as_secs_f64()
                    ),
                    false => "interrupted".to_owned(),
                });
            }
        }
    }

    fn pause(&self, time: Duration) -> Result<(), String> {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            std::thread::sleep(left.min(ATTENTION));
        }
    }

    fn ask(&self, request: Request) -> Result<(), String> {
        let socket = control_socket(self.lab.name()).map_err(|error| error.to_string())?;
        match call(&socket, &request).map_err(|error| error.to_string())? {
            Response::Error(why) => Err(why),
            _ => Ok(()),
        }
    }

    /// Copies a file as a host sees it.
    fn collect(&self, file: &str, on: Option<&str>, name: &str) -> Result<(), String> {
        let file = self.plan.fill(file, self.number);
        let own = Path::new(&file).file_name().map_or("file".into(), |name| name.to_string_lossy());
        let output = self.directory.join(format!("{name}-{own}"));
        let words = ["cat", "--", &file].map(str::to_owned);
        let mut child = self.start(&words, on, name, &output)?;
        match self.wait(&mut child, Duration::from_secs(60))?.success() {
            true => Ok(()),
            false => Err(format!("{file} cannot be read{}", self.last_words(name))),
        }
    }

    /// The last line that a command wrote to its standard error, or nothing.
    fn last_words(&self, name: &str) -> String {
        let text = fs::read(self.directory.join(format!("{name}.err"))).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(String::new, |line| format!(": {}", line.trim()))
    }
}

/// Whether a child ends within a time.
fn ended(child: &Child, within: Duration) -> Result<bool, String> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a number");
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    let timeout = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: within.subsec_nanos().into() };
    match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

fn terminate(child: &mut Child) -> Result<(), String> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a number");
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    if !ended(child, GRACE)? {
        let _ = child.kill();
    }
    child.wait().map(drop).map_err(|error| error.to_string())
}

/// `"a-b.delay" = "50ms"` as changes of links, all at one instant.
fn changes(values: &[LinkValue]) -> Changes {
    let mut by_link: BTreeMap<&str, Map<String, serde_json::Value>> = BTreeMap::new();
    for LinkValue { link, key, value } in values {
        by_link.entry(link).or_default().insert(key.clone(), value.clone());
    }
    let setting = |(link, set): (&str, _)| Setting { link: Some(link.to_owned()), set, ..Setting::default() };
    Changes { changes: by_link.into_iter().map(setting).collect(), at: None }
}
