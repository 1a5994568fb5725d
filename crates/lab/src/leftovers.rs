//! Programs that still run in the namespaces of a lab: found by the inode of their network namespace.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

/// How long a program gets to end by itself after SIGTERM, and again after SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// Ends every process (but this one) in the namespaces with these inodes: SIGTERM, then SIGKILL. Gives the
/// number of those that had to be ended.
pub(crate) fn end_programs(inodes: &BTreeSet<u64>) -> usize {
    let found = programs_in(inodes);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let deadline = Instant::now() + GRACE;
        let mut told = BTreeSet::new();
        loop {
            let left = programs_in(inodes);
            if left.is_empty() {
                return found.len();
            }
            // Looked for again each round: a program may have started another one meanwhile.
            for pid in left {
                if told.insert(pid) {
                    // It may be gone already: then there is nothing to end.
                    let _ = kill(pid, signal);
                }
            }
            if Instant::now() >= deadline {
                break;
            }
            thread::sleep(POLL);
        }
    }
    found.len()
}

/// Processes, without this one, whose main thread is in one of the namespaces.
pub(crate) fn programs_in(inodes: &BTreeSet<u64>) -> Vec<Pid> {
    let own = nix::unistd::getpid();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Pid::from_raw))
        .filter(|&pid| pid != own)
        .filter(|pid| {
            fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|file| inodes.contains(&file.ino()))
        })
        .collect()
}
