//! Programs that still run in the namespaces of a lab. They are found by the inode of their network
//! namespace and by the environment that a lab gives its programs. The inode alone is not enough:
//! the kernel reuses it after a namespace is removed.

use crate::variables;
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

/// Time for a program to end after SIGTERM, and again after SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// The environment of a lab's programs: two variables that identify the lab.
#[derive(Debug)]
pub(crate) struct Mark([Vec<u8>; 2]);

impl Mark {
    /// Returns the mark of the lab called `name` with its directory in `base`.
    pub(crate) fn new(name: &str, base: &Path) -> Mark {
        let entry = |variable: &str, value: &OsStr| [variable.as_bytes(), b"=", value.as_bytes()].concat();
        Mark([entry(variables::LAB, name.as_ref()), entry(variables::DIRECTORY, base.as_os_str())])
    }

    /// Returns the namespaces in which a program has the mark. Its children may have dropped it.
    pub(crate) fn namespaces(&self, inodes: &BTreeSet<u64>) -> BTreeSet<u64> {
        let mut programs = by_namespace(inodes);
        programs.retain(|_, pids| pids.iter().any(|&pid| self.is_on(pid)));
        programs.into_keys().collect()
    }

    /// Whether the program was started with the mark.
    fn is_on(&self, pid: Pid) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        self.0.iter().all(|wanted| environment.split(|byte| *byte == 0).any(|entry| entry == wanted))
    }
}

/// Ends every other process in the lab's namespaces, which have these inodes: SIGTERM, then
/// SIGKILL. Returns their number.
pub(crate) fn end_programs(inodes: &BTreeSet<u64>, mark: &Mark) -> usize {
    // Determined once: a program with the mark may end before one that has dropped it.
    let inodes = &mark.namespaces(inodes);
    let found = programs_in(inodes);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let deadline = Instant::now() + GRACE;
        let mut signalled = BTreeSet::new();
        loop {
            let left = programs_in(inodes);
            if left.is_empty() {
                return found.len();
            }
            // Searched again each time: a program may have started another one meanwhile.
            for pid in left {
                if signalled.insert(pid) {
                    // It may have ended already.
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

/// Returns the other processes with a main thread in one of the namespaces with these inodes.
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
