//! Signals and child processes: stopping in order, and exit codes as a shell reports them.

use anyhow::{Context, ensure};
use fastpath::guest_run::is_inside;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval between two checks for signals and ended processes.
pub(crate) const POLL: Duration = Duration::from_millis(10);
/// That in virtual time, where waiting costs nothing and looking does.
const POLL_IN_VIRTUAL_TIME: Duration = Duration::from_millis(100);
/// Time a command gets to end before the next, stronger signal.
const GRACE: Duration = Duration::from_secs(2);

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set instead of ending the process, so that
/// everything is removed first.
pub(crate) fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Waits for a command. Once `stop` is set, the command gets time to end by itself (a terminal has
/// sent it the signal too), then SIGTERM, then SIGKILL. `pause` passes the time between two checks.
pub(crate) fn wait(
    mut child: Child,
    stop: &AtomicBool,
    mut pause: impl FnMut(),
) -> anyhow::Result<ExitStatus> {
    let pid = Pid::from_raw(i32::try_from(child.id()).context("process number")?);
    let mut signals = [None, Some(Signal::SIGTERM), Some(Signal::SIGKILL)].into_iter();
    let mut deadline: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let due = deadline.is_none_or(|deadline| Instant::now() >= deadline);
        if stop.load(Ordering::Relaxed) && due {
            ensure!(signals.len() > 0, "the command does not end, even when killed");
            if let Some(Some(signal)) = signals.next() {
                kill(pid, signal)?;
            }
            deadline = Some(Instant::now() + GRACE);
        }
        pause();
    }
}

/// Waits for a command that takes the place of this process: signals to this process are passed on.
pub(crate) fn stand_in(mut child: Child) -> anyhow::Result<ExitStatus> {
    use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    let pid = Pid::from_raw(i32::try_from(child.id()).context("process number")?);
    let mut signals = Signals::new([SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
    let has_terminal = io::stdin().is_terminal();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        for signal in signals.wait().filter(|&signal| signal != SIGCHLD) {
            // The terminal has sent these to the command too.
            if !(has_terminal && [SIGINT, SIGQUIT].contains(&signal)) {
                kill(pid, Signal::try_from(signal)?)?;
            }
        }
    }
}

/// Returns the interval between two checks on a command in a lab.
pub(crate) fn poll() -> Duration {
    if is_inside() { POLL_IN_VIRTUAL_TIME } else { POLL }
}

/// Returns the exit code as a shell reports it: 128 + N for a process that signal N ended.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
