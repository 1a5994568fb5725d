//! The scheduling of a running lab: as root, as a user without rights, and in a cgroup; and what is
//! said at the start where the system does not allow it.
#![cfg(target_os = "linux")]

mod common;

use common::{skip, user_without_rights};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");
const ORDINARY: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\n";
const SLEEPING: &str =
    "engine = { idle = 'sleep' }\n[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\n";
/// Prints name, niceness and scheduling policy of the threads of the parent (proc_pid_stat(5)).
const THREADS: &str = "for t in /proc/$PPID/task/*; do set -- $(sed 's/.*) //' $t/stat); shift 16; n=$1; shift 22; \
    echo \"thread $(cat $t/comm) $n $1\"; done";

/// A directory that everyone may write to, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let directory = std::env::temp_dir().join(format!("fastpath-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        Scratch(directory)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a lab said, and niceness and policy of its worker.
#[derive(Debug)]
struct Scheduling {
    said: String,
    niceness: i32,
    policy: u32,
}

/// Runs a lab by a command prefix; `None` where that is not permitted.
fn scheduling(test: &str, spec: &str, prefix: &[&str]) -> Option<Scheduling> {
    let scratch = Scratch::new(test);
    let file = scratch.0.join("net.toml");
    fs::write(&file, spec).unwrap();
    let words = [prefix, &[PROGRAM]].concat();
    let output = Command::new(words[0])
        .args(&words[1..])
        .args(["lab", "run"])
        .arg(&file)
        .args(["--", "sh", "-c", THREADS])
        .env("FASTPATH_STATE_DIR", scratch.0.join("state"))
        .env_remove("FASTPATH_LAB")
        .current_dir(&scratch.0)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let worker = printed.lines().find_map(|line| line.strip_prefix("thread fastpath-worker "));
    let Some((niceness, policy)) = worker.and_then(|line| line.split_once(' ')) else {
        skip(test, &format!("no lab: {said}{printed}"));
        return None;
    };
    Some(Scheduling { niceness: niceness.parse().unwrap(), policy: policy.parse().unwrap(), said })
}

fn is_root(test: &str) -> bool {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !is_root {
        skip(test, "needs root");
    }
    is_root
}

/// SCHED_OTHER and SCHED_RR (sched(7)).
const OTHER: u32 = 0;
const ROUND_ROBIN: u32 = 2;

#[test]
fn workers_of_root_have_a_high_priority_or_a_real_time_one() {
    let test = "workers-of-root";
    if !is_root(test) {
        return;
    }
    let Some(found) = scheduling(test, ORDINARY, &[]) else { return };
    assert!(found.niceness == -20 && found.policy == OTHER && !found.said.contains("priority"), "{found:?}");
    let Some(found) = scheduling(test, SLEEPING, &[]) else { return };
    assert!(found.policy == ROUND_ROBIN && !found.said.contains("priority"), "{found:?}");
}

#[test]
fn a_user_without_rights_is_told_that_workers_have_no_priority() {
    let test = "workers-of-a-user";
    let words = match user_without_rights() {
        Ok(words) => words,
        Err(why) => return skip(test, &why),
    };
    for spec in [ORDINARY, SLEEPING] {
        let Some(found) = scheduling(test, spec, &words) else { return };
        let is_told = found.said.contains("the engine has the priority of other programs");
        assert!(found.niceness == 0 && found.policy == OTHER && is_told, "{found:?}");
        assert!(found.said.contains("ulimit -e 40"), "{found:?}");
    }
    // With the right to a niceness alone there is no real-time thread.
    let allowed = [&["prlimit", "--nice=40:40"][..], &words].concat();
    if !Command::new("prlimit")
        .args(["--nice=40:40", "true"])
        .output()
        .is_ok_and(|done| done.status.success())
    {
        return skip(test, "prlimit cannot raise the limit of the niceness");
    }
    let Some(found) = scheduling(test, ORDINARY, &allowed) else { return };
    assert!(found.niceness == -20 && !found.said.contains("priority"), "{found:?}");
    let Some(found) = scheduling(test, SLEEPING, &allowed) else { return };
    assert!(found.niceness == -20 && found.said.contains("and not a real-time one"), "{found:?}");
}

/// A cgroup below the first one, removed on drop.
struct Cgroup {
    directory: PathBuf,
    weight: &'static str,
}

impl Cgroup {
    fn new(name: &str) -> Option<Cgroup> {
        let name = format!("fastpath-{name}-{}", std::process::id());
        let kinds = [("/sys/fs/cgroup/cpu", "cpu.shares"), ("/sys/fs/cgroup", "cpu.weight")];
        kinds.into_iter().find_map(|(root, weight)| {
            let group = Cgroup { directory: Path::new(root).join(&name), weight };
            fs::create_dir(&group.directory).ok()?;
            group.weight().is_some().then_some(group)
        })
    }

    fn weight(&self) -> Option<u64> {
        fs::read_to_string(self.directory.join(self.weight)).ok()?.trim().parse().ok()
    }

    /// A command prefix that runs a program in it.
    fn prefix(&self) -> Vec<String> {
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.directory.display());
        ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.directory);
    }
}

#[test]
fn a_cgroup_of_its_own_gets_a_high_weight_and_a_shared_one_is_said() {
    let test = "the-weight-of-a-cgroup";
    if !is_root(test) {
        return;
    }
    let Some(group) = Cgroup::new("weight") else { return skip(test, "no cgroup with a weight") };
    let usual = group.weight().unwrap();
    let prefix = group.prefix();
    let prefix: Vec<&str> = prefix.iter().map(String::as_str).collect();
    let Some(found) = scheduling(test, ORDINARY, &prefix) else { return };
    assert!(group.weight().unwrap() > usual && !found.said.contains("was not raised"), "{found:?}");
    fs::write(group.directory.join(group.weight), usual.to_string()).unwrap();
    let mut other = Command::new("sh")
        .args(["-c", &format!("echo $$ > {}/cgroup.procs; echo in; exec cat", group.directory.display())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It is in the cgroup when it says so.
    let mut said = [0; 2];
    std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut said).unwrap();
    let found = scheduling(test, ORDINARY, &prefix);
    drop(other.stdin.take());
    other.wait().unwrap();
    let Some(found) = found else { return };
    assert_eq!(group.weight(), Some(usual), "the cgroup of others is left as it is");
    assert!(found.said.contains("was not raised (other programs are in the cgroup)"), "{found:?}");
}
