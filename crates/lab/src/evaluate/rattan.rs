//! A peer where it is installed: rattan (<https://github.com/stack-rs/rattan>, `cargo install rattan`), which holds its ends
//! of two veth pairs by packet sockets.
//!
//! ```text
//!   left ═veth═ rattan ═veth═ right
//! ```
//!
//! Right is where it is started. Left it makes itself, by name under `/run`, with locks among the temporary files: it is given
//! a mount namespace in which both places are its own, so that nothing stays behind however it ends.

use super::PartError;
use crate::namespace::Namespace;
use fastpath_units::Duration;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(super) const PROGRAM: &str = "rattan";
/// Says which process it is and what the address of the other side is; ends when nobody needs it any more.
const INSIDE: &str = "echo $$ $RATTAN_BASE; exec cat";
/// It takes a fifth of a second.
const START_MAX_MS: u16 = 10_000;

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
    /// Starts it with its right side in a namespace; gives its left side, and the address of the right one.
    pub(super) fn start(
        program: &Path,
        treatment: Treatment,
        right: &Namespace,
    ) -> Result<(Rattan, Namespace, IpAddr), PartError> {
        let failed = |said: String| PartError::Peer { program: PROGRAM, said };
        let spawned = right.within(|| spawn(program, treatment)).and_then(|spawned| spawned);
        let mut rattan = Rattan { child: spawned.map_err(|error| failed(error.to_string()))? };
        let said = rattan.said().map_err(|error| failed(error.to_string()))?;
        let (process, address) = inside(&said).ok_or_else(|| failed(said))?;
        let left = Namespace::of_process(process).map_err(|error| failed(error.to_string()))?;
        Ok((rattan, left, address))
    }

    /// What the program inside says, or else the last that rattan says.
    fn said(&mut self) -> io::Result<String> {
        let mut stdout = BufReader::new(self.child.stdout.take().expect("it is piped"));
        let mut last = "it does not start".to_owned();
        loop {
            let mut polled = [PollFd::new(stdout.get_ref().as_fd(), PollFlags::POLLIN)];
            let mut line = String::new();
            let has_ended = stdout.buffer().is_empty()
                && poll(&mut polled, PollTimeout::from(START_MAX_MS))? == 0
                || stdout.read_line(&mut line)? == 0;
            if has_ended || inside(&line).is_some() {
                return Ok(if has_ended { last } else { line });
            }
            last = line.trim().to_owned();
        }
    }
}

/// A process in the left namespace, and the address of the right side.
fn inside(line: &str) -> Option<(u32, IpAddr)> {
    let (process, address) = line.trim().split_once(' ')?;
    Some((process.parse().ok()?, address.parse().ok()?))
}

impl Drop for Rattan {
    fn drop(&mut self) {
        let _ = self.child.kill();
        // This also closes the standard input, on which the program inside ends.
        let _ = self.child.wait();
    }
}

/// Starts it from a thread that ends soon: the thread never leaves its new mount namespace.
fn spawn(program: &Path, treatment: Treatment) -> io::Result<Child> {
    // It may be installed under what is hidden in a moment.
    let program = File::open(program)?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    for directory in ["run", "tmp"] {
        let directory = Path::new("/").join(directory);
        mount(Some("tmpfs"), &directory, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    }
    Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
        .arg("link")
        .args(treatment.words())
        .args(["--", "sh", "-c", INSIDE])
        .envs([("RUST_LOG", "error"), ("NO_COLOR", "1")])
        .stdin(Stdio::piped())
        // Its messages come here too; what comes later finds nobody, and is no more than a message.
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
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
    use super::super::field;
    use super::*;
    use crate::skip;

    #[test]
    fn what_does_not_work_says_why_and_leaves_nothing() {
        let test = "what_does_not_work_says_why_and_leaves_nothing";
        let Ok(right) = Namespace::new() else { return skip(test, "no namespaces here") };
        let start = |program: &str| Rattan::start(Path::new(program), Treatment::Loss(0.0), &right);
        // It takes the arguments for what to print.
        let error = start("/bin/echo").unwrap_err().to_string();
        assert!(
            error.starts_with("rattan does not work here: link --uplink-loss 0 --downlink-loss 0 -- sh"),
            "{error}"
        );
        let error = start("/bin/false").unwrap_err().to_string();
        assert_eq!(error, "rattan does not work here: it does not start");
        let error = start("/nowhere/rattan").unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
    }

    #[test]
    fn the_real_one_has_two_sides_and_takes_them_along() {
        let test = "the_real_one_has_two_sides_and_takes_them_along";
        let Ok(right) = Namespace::new() else { return skip(test, "no namespaces here") };
        let Some(program) = field::program(PROGRAM) else { return skip(test, "rattan is not installed") };
        let (rattan, left, address) =
            Rattan::start(&program, Treatment::Delay(Duration::ZERO), &right).unwrap();
        assert!(left.inode() != right.inode() && address.is_ipv4());
        let interfaces = || [&left, &right].map(|side| side.within(field::interface).unwrap().is_ok());
        assert_eq!(interfaces(), [true, true]);
        let directory = format!("/proc/{}", rattan.child.id());
        assert!(Path::new(&directory).exists());
        drop(rattan);
        assert!(!Path::new(&directory).exists());
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
