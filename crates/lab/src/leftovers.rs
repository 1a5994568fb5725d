//! Programs that still run in the namespaces of a lab: found by the inode of their network
//! namespace, and by the environment that a lab gives its programs. The inode alone is not enough:
//! once a namespace has gone, the kernel gives it to the next one, which may be anybody's.

use crate::state::{DIRECTORY_VARIABLE, LAB_VARIABLE};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a program gets to end by itself after SIGTERM, and again after SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// What tells the programs of a lab from others: two variables of their environment.
#[derive(Debug)]
pub(crate) struct Mark([Vec<u8>; 2]);

impl Mark {
    /// That of the lab called `name`, whose directory is in `base`.
    pub(crate) fn new(name: &str, base: &Path) -> Mark {
        let entry = |variable: &str, value: &OsStr| [variable.as_bytes(), b"=", value.as_bytes()].concat();
        Mark([entry(LAB_VARIABLE, name.as_ref()), entry(DIRECTORY_VARIABLE, base.as_os_str())])
    }

    /// The namespaces that are the lab's: a program there has the mark. What it has started in turn
    /// may have dropped it.
    pub(crate) fn namespaces(&self, inodes: &BTreeSet<u64>) -> BTreeSet<u64> {
        let mut programs = by_namespace(inodes);
        programs.retain(|_, pids| pids.iter().any(|&pid| self.is_on(pid)));
        programs.into_keys().collect()
    }

    /// True if the program was started with it.
    fn is_on(&self, pid: Pid) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        self.0.iter().all(|wanted| environment.split(|byte| *byte == 0).any(|entry| entry == wanted))
    }
}

/// Ends every process (but this one) in the lab's namespaces, which have these inodes: SIGTERM,
/// then SIGKILL. Gives the number of those that had to be ended.
pub(crate) fn end_programs(inodes: &BTreeSet<u64>, mark: &Mark) -> usize {
    // Looked at once: who has the mark may end before who has dropped it.
    let inodes = &mark.namespaces(inodes);
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
pub fn programs_in(inodes: &BTreeSet<u64>) -> Vec<Pid> {
    by_namespace(inodes).into_values().flatten().collect()
}

fn by_namespace(inodes: &BTreeSet<u64>) -> BTreeMap<u64, Vec<Pid>> {
    let own = nix::unistd::getpid();
    let mut programs: BTreeMap<u64, Vec<Pid>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).map(Pid::from_raw)
        else {
            continue;
        };
        let Ok(namespace) = fs::metadata(format!("/proc/{pid}/ns/net")) else { continue };
        if pid != own && inodes.contains(&namespace.ino()) {
            programs.entry(namespace.ino()).or_default().push(pid);
        }
    }
    programs
}
