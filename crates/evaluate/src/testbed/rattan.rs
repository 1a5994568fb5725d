//! The emulator rattan (<https://github.com/stack-rs/rattan>, `cargo install rattan`), where it is
//! installed. It accesses its ends of two veth pairs by packet sockets.
//!
//! ```text
//!   left ═veth═ rattan ═veth═ right
//! ```
//!
//! Rattan is started in the right namespace and makes the left one, with a name under `/run` and
//! locks in the directory of temporary files. It runs in a mount namespace with its own copies of
//! both, so that nothing remains however it ends.

use crate::MeasurementError;
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

pub(crate) const PROGRAM: &str = "rattan";
/// The program that rattan runs on the left. It prints its process and the address of the right
/// side, and ends with its standard input.
const INSIDE: &str = "echo $$ $RATTAN_BASE; exec cat";
/// Time limit of the start, ms. Usually it takes 200 ms.
const START_MAX_MS: u16 = 10_000;
/// Time limit of the end, ms.
const END_MAX_MS: u16 = 2000;

/// What a link of rattan does to frames, the same in both directions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum RattanLink {
    Delay(Duration),
    /// Probability, for each frame independently.
    Loss(f64),
    /// Bits per second from the IP header on, and the maximum queue in packets.
    Rate {
        bps: u64,
        queue: u32,
    },
}

/// A running rattan, which ends on drop.
#[derive(Debug)]
pub(crate) struct Rattan {
    /// It ends with its standard input.
    child: Child,
}

impl Rattan {
    /// Starts rattan in the right namespace. Returns the left namespace, and the address of the
    /// right side.
    pub(crate) fn start(
        program: &Path,
        link: RattanLink,
        right: &Namespace,
    ) -> Result<(Rattan, Namespace, IpAddr), MeasurementError> {
        let failed = |error: io::Error| MeasurementError::Peer(error.to_string());
        let spawned = right.within(|| spawn(program, link)).and_then(|spawned| spawned);
        let (child, output) = spawned.map_err(failed)?;
        let rattan = Rattan { child };
        let line = first_line(output).map_err(failed)?;
        let (process, address) =
            inside(&line).ok_or_else(|| MeasurementError::Peer(line.trim().to_owned()))?;
        let left =
            Namespace::of_process(process).map_err(|error| MeasurementError::Peer(error.to_string()))?;
        Ok((rattan, left, address))
    }
}

/// Returns the first line of the program inside, or of rattan's own messages.
fn first_line(output: PipeReader) -> io::Result<String> {
    if poll(&mut [PollFd::new(output.as_fd(), PollFlags::POLLIN)], PollTimeout::from(START_MAX_MS))? == 0 {
        return Ok(format!("no output for {} s", START_MAX_MS / 1000));
    }
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    Ok(if line.is_empty() { "the program ends at once".to_owned() } else { line })
}

/// Parses the process in the left namespace and the address of the right side.
fn inside(line: &str) -> Option<(u32, IpAddr)> {
    let (process, address) = line.trim().split_once(' ')?;
    Some((process.parse().ok()?, address.parse().ok()?))
}

impl Drop for Rattan {
    fn drop(&mut self) {
        // The program inside ends with its standard input, and then rattan.
        drop(self.child.stdin.take());
        if let Ok(process) = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()) {
            let _ =
                poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], PollTimeout::from(END_MAX_MS));
        }
        // Killing a process that has ended has no effect.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts rattan. The calling thread must end soon: it stays in its new mount namespace.
fn spawn(program: &Path, link: RattanLink) -> io::Result<(Child, PipeReader)> {
    // Open the program first: the mounts below may hide it.
    let program = File::open(program)?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    for directory in ["run", "tmp"] {
        let directory = Path::new("/").join(directory);
        mount(Some("tmpfs"), &directory, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    }
    // Rattan's messages come here too. Later ones are not read.
    let (output, input) = io::pipe()?;
    let child = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
        .arg("link")
        .args(link.arguments())
        .args(["--", "sh", "-c", INSIDE])
        .envs([("RUST_LOG", "error"), ("NO_COLOR", "1")])
        .stdin(Stdio::piped())
        .stdout(input.try_clone()?)
        .stderr(input)
        .spawn()?;
    Ok((child, output))
}

impl RattanLink {
    fn arguments(self) -> Vec<String> {
        let both = |what: &str, value: String| {
            ["up", "down"]
                .into_iter()
                .flat_map(|way| [format!("--{way}link-{what}"), value.clone()])
                .collect()
        };
        match self {
            RattanLink::Delay(delay) => both("delay", format!("{}ns", delay.as_ps() / 1000)),
            RattanLink::Loss(probability) => both("loss", probability.to_string()),
            RattanLink::Rate { bps, queue } => {
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
    use crate::skip;
    use crate::testbed;

    #[test]
    fn a_program_that_does_not_work_reports_why() {
        let test = "a_program_that_does_not_work_reports_why";
        let Ok(right) = Namespace::new() else { return skip(test, "no namespaces here") };
        let start = |program: &str| Rattan::start(Path::new(program), RattanLink::Loss(0.0), &right);
        let why = |program: &str| start(program).unwrap_err().to_string();
        // echo prints the arguments.
        assert!(why("/bin/echo").starts_with("link --uplink-loss 0 --downlink-loss 0 -- sh"));
        assert!(why("/bin/cat").contains("unrecognized option"), "{}", why("/bin/cat"));
        assert_eq!(why("/bin/false"), "the program ends at once");
        assert!(why("/nowhere/rattan").contains("No such file"));
    }

    #[test]
    fn rattan_has_two_sides_and_removes_them() {
        let test = "rattan_has_two_sides_and_removes_them";
        let Ok(right) = Namespace::new() else { return skip(test, "no namespaces here") };
        let Some(program) = testbed::program(PROGRAM) else { return skip(test, "rattan is not installed") };
        let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
        let before = mounts();
        let (rattan, left, address) =
            Rattan::start(&program, RattanLink::Delay(Duration::ZERO), &right).unwrap();
        assert!(left.inode() != right.inode() && address.is_ipv4());
        let interfaces = || [&left, &right].map(|side| side.within(testbed::interface).unwrap().is_ok());
        assert_eq!(interfaces(), [true, true]);
        let is_in = |process: &std::fs::DirEntry, side: &Namespace| {
            let namespace = std::fs::metadata(process.path().join("ns/net"));
            namespace.is_ok_and(|namespace| std::os::unix::fs::MetadataExt::ino(&namespace) == side.inode())
        };
        let processes = || std::fs::read_dir("/proc").unwrap().flatten();
        let own = std::process::id().to_string();
        let has_programs = || {
            [&left, &right].map(|side| {
                processes().any(|process| process.file_name().to_str() != Some(&own) && is_in(&process, side))
            })
        };
        assert_eq!(has_programs(), [true, true]);
        drop(rattan);
        assert_eq!(has_programs(), [false, false]);
        assert_eq!(mounts(), before);
    }

    #[test]
    fn both_directions_are_treated_alike() {
        let arguments = |link: RattanLink| link.arguments().join(" ");
        assert_eq!(
            arguments(RattanLink::Delay(Duration::from_ms(5))),
            "--uplink-delay 5000000ns --downlink-delay 5000000ns"
        );
        assert_eq!(arguments(RattanLink::Loss(0.03)), "--uplink-loss 0.03 --downlink-loss 0.03");
        assert_eq!(
            arguments(RattanLink::Rate { bps: 64_000, queue: 50 }),
            "--uplink-bandwidth 64000bps --downlink-bandwidth 64000bps --uplink-queue droptail --downlink-queue droptail \
             --uplink-queue-args {\"packet_limit\":50} --downlink-queue-args {\"packet_limit\":50}"
        );
    }
}
