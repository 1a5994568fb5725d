//! A peer where it is installed: rattan (<https://github.com/stack-rs/rattan>, `cargo install
//! rattan`), which holds its ends of two veth pairs by packet sockets.
//!
//! ```text
//!   left ═veth═ rattan ═veth═ right
//! ```
//!
//! Right is where it is started. Left it makes itself, by name under `/run`, with locks among the
//! temporary files: it is given a mount namespace in which both places are its own, so that nothing
//! stays behind however it ends.

use super::PartError;
use fastpath_lab::Namespace;
use fastpath_units::Duration;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(super) const PROGRAM: &str = "rattan";
/// Says which process it is and what the address of the other side is; ends when nobody needs it
/// any more.
const INSIDE: &str = "echo $$ $RATTAN_BASE; exec cat";
/// It takes a fifth of a second.
const START_MAX_MS: u16 = 10_000;
/// The same for its end.
const END_MAX_MS: u16 = 2000;

/// What it does to frames, the same in both directions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Treatment {
    Delay(Duration),
    /// Of each frame, independently.
    Loss(f64),
    /// Bits per second of what begins with the IP header, and packets that wait at most.
    Rate {
        bps: u64,
        queue: u32,
    },
}

/// The program, until it is dropped.
#[derive(Debug)]
pub(super) struct Rattan {
    /// Lives as long as its standard input.
    child: Child,
}

impl Rattan {
    /// Starts it with its right side in a namespace; gives its left side, and the address of the
    /// right one.
    pub(super) fn start(
        program: &Path,
        treatment: Treatment,
        right: &Namespace,
    ) -> Result<(Rattan, Namespace, IpAddr), PartError> {
        let failed = |error: io::Error| PartError::Peer(error.to_string());
        let spawned = right.within(|| spawn(program, treatment)).and_then(|spawned| spawned);
        let (child, said) = spawned.map_err(failed)?;
        let rattan = Rattan { child };
        let line = first_line(said).map_err(failed)?;
        let (process, address) = inside(&line).ok_or_else(|| PartError::Peer(line.trim().to_owned()))?;
        let left = Namespace::of_process(process).map_err(|error| PartError::Peer(error.to_string()))?;
        Ok((rattan, left, address))
    }
}

/// What the program inside says, or else what rattan has to say instead.
fn first_line(said: PipeReader) -> io::Result<String> {
    if poll(&mut [PollFd::new(said.as_fd(), PollFlags::POLLIN)], PollTimeout::from(START_MAX_MS))? == 0 {
        return Ok(format!("it says nothing for {} s", START_MAX_MS / 1000));
    }
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    Ok(if line.is_empty() { "it ends at once".to_owned() } else { line })
}

/// A process in the left namespace, and the address of the right side.
fn inside(line: &str) -> Option<(u32, IpAddr)> {
    let (process, address) = line.trim().split_once(' ')?;
    Some((process.parse().ok()?, address.parse().ok()?))
}

impl Drop for Rattan {
    fn drop(&mut self) {
        // The program inside ends with its standard input, then rattan, which takes it along.
        drop(self.child.stdin.take());
        if let Ok(process) = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()) {
            let _ =
                poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], PollTimeout::from(END_MAX_MS));
        }
        // Nothing happens to whoever has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it from a thread that ends soon: the thread never leaves its new mount namespace.
fn spawn(program: &Path, treatment: Treatment) -> io::Result<(Child, PipeReader)> {
    // It may be installed under what is hidden in a moment.
    let program = File::open(program)?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    for directory in ["run", "tmp"] {
        let directory = Path::new("/").join(directory);
        mount(Some("tmpfs"), &directory, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    }
    // Its messages come here too; what comes later finds nobody, and is no more than a message.
    let (said, says) = io::pipe()?;
    let child = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
        .arg("link")
        .args(treatment.words())
        .args(["--", "sh", "-c", INSIDE])
        .envs([("RUST_LOG", "error"), ("NO_COLOR", "1")])
        .stdin(Stdio::piped())
        .stdout(says.try_clone()?)
        .stderr(says)
        .spawn()?;
    Ok((child, said))
}

impl Treatment {
    fn words(self) -> Vec<String> {
        let both = |what: &str, value: String| {
            ["up", "down"]
                .into_iter()
                .flat_map(|way| [format!("--{way}link-{what}"), value.clone()])
                .collect()
        };
        match self {
            Treatment::Delay(delay) => both("delay", format!("{}ns", delay.as_ps() / 1000)),
            Treatment::Loss(probability) => both("loss", probability.to_string()),
            Treatment::Rate { bps, queue } => {
                let limit = format!("{{\"packet_limit\":{queue}}}");
                let parts = [
                    ("bandwidth", format!("{bps}bps")),
                    ("queue", "droptail".to_owned()),
                    ("queue-args", limit),
                ];
                parts.into_iter().flat_map(|(what, value)| both(what, value)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field;
    use crate::skip;
    use fastpath_lab::programs_in;

    #[test]
    fn what_does_not_work_says_why() {
        let test = "what_does_not_work_says_why";
        let Ok(right) = Namespace::new() else { return skip(test, "no namespaces here") };
        let start = |program: &str| Rattan::start(Path::new(program), Treatment::Loss(0.0), &right);
        let why = |program: &str| start(program).unwrap_err().to_string();
        // It takes the arguments for what to print.
        assert!(why("/bin/echo").starts_with("link --uplink-loss 0 --downlink-loss 0 -- sh"));
        assert!(why("/bin/cat").contains("unrecognized option"), "{}", why("/bin/cat"));
        assert_eq!(why("/bin/false"), "it ends at once");
        assert!(why("/nowhere/rattan").contains("No such file"));
    }

    #[test]
    fn the_real_one_has_two_sides_and_takes_them_along() {
        let test = "the_real_one_has_two_sides_and_takes_them_along";
        let Ok(right) = Namespace::new() else { return skip(test, "no namespaces here") };
        let Some(program) = field::program(PROGRAM) else { return skip(test, "rattan is not installed") };
        let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
        let before = mounts();
        let (rattan, left, address) =
            Rattan::start(&program, Treatment::Delay(Duration::ZERO), &right).unwrap();
        assert!(left.inode() != right.inode() && address.is_ipv4());
        let interfaces = || [&left, &right].map(|side| side.within(field::interface).unwrap().is_ok());
        assert_eq!(interfaces(), [true, true]);
        let has_programs = || [&left, &right].map(|side| !programs_in(&[side.inode()].into()).is_empty());
        assert_eq!(has_programs(), [true, true]);
        drop(rattan);
        assert_eq!(has_programs(), [false, false]);
        assert_eq!(mounts(), before);
    }

    #[test]
    fn both_directions_are_treated_alike() {
        let words = |treatment: Treatment| treatment.words().join(" ");
        assert_eq!(
            words(Treatment::Delay(Duration::from_ms(5))),
            "--uplink-delay 5000000ns --downlink-delay 5000000ns"
        );
        assert_eq!(words(Treatment::Loss(0.03)), "--uplink-loss 0.03 --downlink-loss 0.03");
        assert_eq!(
            words(Treatment::Rate { bps: 64_000, queue: 50 }),
            "--uplink-bandwidth 64000bps --downlink-bandwidth 64000bps --uplink-queue droptail --downlink-queue droptail \
             --uplink-queue-args {\"packet_limit\":50} --downlink-queue-args {\"packet_limit\":50}"
        );
    }
}
