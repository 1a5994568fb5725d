//! The commands of a description: `exec` of a host, once the lab is up, and events with `exec`.
//!
//! ```text
//!  exec = ["x", "y"]     sh -c x ─▶ ends ─▶ sh -c y ─▶ ends      one after another on one host
//!  [[event]] at, exec              at ─▶ sh -c z                 at its time, whatever runs
//! ```
//!
//! One thread starts the commands and waits for them. Their output goes to `HOST.log` in the state
//! directory of the lab. A command that fails is reported and does not end the lab.

use crate::host::Host;
use crate::programs::Programs;
use crate::programs::process::Process;
use fastpath_engine::{Clock, Notice};
use fastpath_spec::HostCommand;
use fastpath_units::{Duration, Time};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Hosts whose commands run at the same time.
const HOSTS_MAX: usize = 16;
/// A command that runs longer is reported, and the lab counts as prepared.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between two looks at the flag that ends a wait.
const POLL: std::time::Duration = std::time::Duration::from_millis(50);
/// Bytes of output that a report of a failure shows.
const SHOWN_MAX: u64 = 400;

/// The commands of a lab. On drop those that have not started never start.
#[derive(Debug)]
pub(crate) struct Commands {
    /// The thread ends when this is closed, after the commands that run.
    open: Option<PipeWriter>,
    progress: Arc<Readiness>,
    thread: Option<JoinHandle<()>>,
}

/// The progress of the commands.
#[derive(Debug, Default)]
struct Readiness {
    prepared: Mutex<bool>,
    /// The lab ends its programs: how they end is of no interest.
    closed: AtomicBool,
    changed: Condvar,
}

/// Commands that run one after another on a host.
struct Sequence {
    host: Arc<Host>,
    waiting: VecDeque<String>,
    /// Whether the lab is prepared only when they have ended.
    is_first: bool,
}

/// A command that runs.
struct Started {
    sequence: Sequence,
    command: String,
    child: Child,
    process: Process,
    log: PathBuf,
    /// The length of the log when it started.
    log_from: u64,
    overdue_at: Time,
}

impl Commands {
    /// Starts the commands of `first` now and those of `timed` at their times by `clock`.
    pub(crate) fn start(
        programs: Programs,
        first: Vec<(Arc<Host>, Vec<String>)>,
        timed: Vec<(Arc<Host>, HostCommand)>,
        clock: Clock,
        notice: Notice,
    ) -> io::Result<Commands> {
        let progress = Arc::new(Readiness::default());
        let sequence = |(host, commands): (Arc<Host>, Vec<String>)| Sequence {
            host,
            waiting: commands.into(),
            is_first: true,
        };
        let first: VecDeque<Sequence> =
            first.into_iter().filter(|(_, commands)| !commands.is_empty()).map(sequence).collect();
        if first.is_empty() && timed.is_empty() {
            progress.finish();
            return Ok(Commands { open: None, progress, thread: None });
        }
        let (closed, open) = io::pipe()?;
        let runner = Runner {
            programs,
            waiting: first,
            timed: timed.into(),
            started: Vec::new(),
            clock,
            notice,
            progress: Arc::clone(&progress),
        };
        let thread =
            thread::Builder::new().name("fastpath-commands".to_owned()).spawn(move || runner.run(&closed))?;
        Ok(Commands { open: Some(open), progress, thread: Some(thread) })
    }

    /// Waits until the first commands have ended or are overdue, or `stop` is set.
    pub(crate) fn wait(&self, stop: &AtomicBool) {
        let mut prepared = self.progress.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        while !*prepared && !stop.load(Ordering::Relaxed) {
            let waited = self.progress.changed.wait_timeout(prepared, POLL);
            prepared = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts no more commands. Those that run go on.
    pub(crate) fn close(&mut self) {
        self.progress.closed.store(true, Ordering::Relaxed);
        self.open = None;
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        self.close();
        // A panic in the thread has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Readiness {
    fn finish(&self) {
        *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

/// The state of the thread.
struct Runner {
    programs: Programs,
    waiting: VecDeque<Sequence>,
    timed: VecDeque<(Arc<Host>, HostCommand)>,
    started: Vec<Started>,
    clock: Clock,
    notice: Notice,
    progress: Arc<Readiness>,
}

impl Runner {
    /// Runs until nothing is left or `closed` has no writer.
    fn run(mut self, closed: &PipeReader) {
        loop {
            self.start_due();
            if !self
                .waiting
                .iter()
                .chain(self.started.iter().map(|started| &started.sequence))
                .any(|s| s.is_first)
            {
                self.progress.finish();
            }
            if self.started.is_empty() && self.timed.is_empty() {
                return;
            }
            let ended: Vec<&Process> = self.started.iter().map(|started| &started.process).collect();
            match Process::wait_any(&ended, closed.as_fd(), self.until_next()) {
                Ok(true) => break,
                Ok(false) => self.collect(),
                Err(error) => {
                    self.say(&format!("waiting for commands of hosts: {error}"));
                    break;
                }
            }
        }
        self.progress.finish();
        // The lab is ending them.
        self.started.into_iter().for_each(|mut started| _ = started.child.wait());
    }

    /// The time until a command is due or overdue.
    fn until_next(&self) -> Option<std::time::Duration> {
        let due = self.timed.front().map(|(_, command)| command.at);
        let overdue = self.started.iter().filter(|started| started.sequence.is_first);
        let next = overdue.map(|started| started.overdue_at).chain(due).min()?;
        Some(next.saturating_sub(self.clock.now() - Time::ZERO).since(Time::ZERO).to_std())
    }

    fn say(&self, text: &str) {
        if !self.progress.closed.load(Ordering::Relaxed) {
            self.notice.send(text);
        }
    }

    fn start_due(&mut self) {
        let now = self.clock.now();
        while let Some((host, command)) = self.timed.pop_front_if(|(_, command)| command.at <= now) {
            self.advance(Sequence { host, waiting: VecDeque::from([command.command]), is_first: false });
        }
        while self.started.iter().filter(|started| started.sequence.is_first).count() < HOSTS_MAX
            && let Some(sequence) = self.waiting.pop_front()
        {
            self.advance(sequence);
        }
    }

    /// Starts the next command of a sequence. One that cannot start is reported, and the one after
    /// it starts.
    fn advance(&mut self, mut sequence: Sequence) {
        while let Some(command) = sequence.waiting.pop_front() {
            match self.spawn(&sequence.host, &command) {
                Ok((child, process, log, log_from)) => {
                    let overdue_at = self.clock.now() + PATIENCE;
                    self.started.push(Started {
                        sequence,
                        command,
                        child,
                        process,
                        log,
                        log_from,
                        overdue_at,
                    });
                    return;
                }
                Err(error) => {
                    let host = &sequence.host.name;
                    self.say(&format!("host {host}: exec '{command}': {error}"));
                }
            }
        }
    }

    fn spawn(&self, host: &Host, command: &str) -> io::Result<(Child, Process, PathBuf, u64)> {
        let path = self.programs.directory.join(format!("{}.log", host.name));
        let mut log = OpenOptions::new().create(true).append(true).open(&path)?;
        writeln!(log, "$ {command}")?;
        let log_from = log.metadata()?.len();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command);
        shell.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = self.programs.spawn(host, &mut shell)?;
        let process = Process::of_child(&child)?;
        Ok((child, process, path, log_from))
    }

    /// Collects the commands that have ended, and starts what comes after them.
    fn collect(&mut self) {
        let now = self.clock.now();
        let mut index = 0;
        while let Some(started) = self.started.get_mut(index) {
            let outcome = started.look(now);
            if let Some(text) = outcome.remark {
                self.say(&text);
            }
            if outcome.has_ended {
                let started = self.started.swap_remove(index);
                self.advance(started.sequence);
            } else {
                index += 1;
            }
        }
    }
}

/// What is known of a command that was started.
struct Outcome {
    has_ended: bool,
    remark: Option<String>,
}

impl Started {
    /// Looks whether the command has ended. One that is overdue no longer counts as first.
    fn look(&mut self, now: Time) -> Outcome {
        let (host, command) = (&self.sequence.host.name, &self.command);
        match self.child.try_wait() {
            Ok(None) if self.sequence.is_first && self.overdue_at <= now => {
                self.sequence.is_first = false;
                let remark = format!(
                    "host {host}: exec '{command}' has run for {PATIENCE}, and the lab does not wait for it; \
                     write '{command} &' if it is to run on"
                );
                Outcome { has_ended: false, remark: Some(remark) }
            }
            Ok(None) => Outcome { has_ended: false, remark: None },
            Ok(Some(status)) if status.success() => Outcome { has_ended: true, remark: None },
            Ok(Some(status)) => Outcome { has_ended: true, remark: Some(self.failure(status)) },
            Err(error) => {
                Outcome { has_ended: true, remark: Some(format!("host {host}: exec '{command}': {error}")) }
            }
        }
    }

    fn failure(&self, status: ExitStatus) -> String {
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
        };
        let said = last_line(&self.log, self.log_from).unwrap_or_default();
        let said = if said.is_empty() { said } else { format!(": {said}") };
        format!("host {}: exec '{}': {how}{said}", self.sequence.host.name, self.command)
    }
}

/// Returns the last line of a file that does not begin before `from`.
fn last_line(path: &PathBuf, from: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(from.max(length.saturating_sub(SHOWN_MAX))))?;
    let mut bytes = Vec::new();
    file.take(SHOWN_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned())
}
