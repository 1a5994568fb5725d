//! Nothing of a lab stays on the machine, whatever is killed and when: no process, interface,
//! mount, nft table or cgroup. `FASTPATH_KILL_ROUNDS=100` makes the test as long as wanted.
#![cfg(target_os = "linux")]

mod common;

use common::skip;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest time after which something is killed, from the claim of the name: about twice what
/// bringing the lab up takes.
const DELAY_MAX_MS: u64 = 600;

/// A machine of its own: PID, mount and network namespaces in which nothing else runs.
struct World {
    unshare: Child,
    /// Its first process.
    first: u32,
    directory: PathBuf,
}

impl World {
    fn new() -> World {
        let script = "ip link set lo up; echo ready; exec cat";
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c", script]);
        let mut unshare = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        first_line(&mut unshare);
        let id = unshare.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let directory = std::env::temp_dir().join(format!("fastpath-left-{}", std::process::id()));
        fs::create_dir_all(directory.join("rootfs/bin")).unwrap();
        World { unshare, first: children.trim().parse().unwrap(), directory }
    }

    /// A command in the world.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        // The working directory does not enter a mount namespace.
        let enter = ["sh", "-c", "cd \"$0\" && exec \"$@\""];
        command.args(["-t", &self.first.to_string(), "-m", "-n", "-p", "--"]).args(enter);
        command.arg(&self.directory).args(words).stdin(Stdio::null());
        command.env("FASTPATH_STATE_DIR", self.directory.join("state")).env_remove("FASTPATH_LAB");
        command
    }

    fn output(&self, script: &str) -> String {
        let output = self.command(&["sh", "-c", script]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn kill(&self, pid: i64) {
        self.output(&format!("kill -9 {pid} 2> /dev/null"));
    }

    /// Everything that a lab could leave.
    fn state(&self, lab: &str) -> String {
        let script = format!(
            "for process in /proc/[0-9]*; do echo $(tr '\\0' ' ' < $process/cmdline); done | sort
             ip -o link | cut -d: -f2; cat /proc/self/mounts; nft list ruleset 2> /dev/null
             find /sys/fs/cgroup -type d -name 'fastpath-{lab}-*' 2> /dev/null"
        );
        // The processes that look are in the list; they differ in nothing else. A process that has
        // ended has no words: the first process of the world does not collect any.
        let text = self.output(&script);
        let others = text.lines().filter(|line| !line.is_empty() && !line.contains("for process in"));
        others.collect::<Vec<_>>().join("\n")
    }

    fn json(&self, lab: &str, file: &str) -> Option<serde_json::Value> {
        let path = self.directory.join("state").join(lab).join(file);
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The kernel ends the others with the first process.
        let _ = Command::new("kill").args(["-9", &self.first.to_string()]).status();
        let _ = self.unshare.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

/// Lets time pass: a wait for a message that does not come.
fn pass(duration: Duration) {
    let (_open, message) = channel::<()>();
    let _ = message.recv_timeout(duration);
}

/// Waits until `is_so`, and panics with `what` if it does not become so.
fn wait_until(what: impl Fn() -> String, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{}", what());
        pass(Duration::from_millis(5));
    }
}

/// xorshift (Marsaglia 2003): the numbers need only differ.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

#[test]
fn nothing_stays_whatever_is_killed_and_when() {
    let test = "nothing_stays_whatever_is_killed_and_when";
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new).into_iter().find(|path| path.exists());
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let Some(busybox) = busybox.filter(|_| is_root && is_installed("crun") && is_installed("nsenter")) else {
        return skip(test, "not root, or busybox-static, crun or nsenter is not installed");
    };
    let rounds: u64 = std::env::var("FASTPATH_KILL_ROUNDS").map_or(4, |rounds| rounds.parse().unwrap());
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let mut random = Random(seed);
    let world = World::new();
    fs::copy(busybox, world.directory.join("rootfs/bin/sh")).unwrap();
    let lab = format!("left-{}", std::process::id());
    let before = world.state(&lab);
    for round in 0..rounds {
        let mut stranger = world.command(&["unshare", "--net", "sh", "-c", "echo $$; exec cat"]);
        let mut stranger = stranger.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let attached: i64 = first_line(&mut stranger).parse().unwrap();
        let spec = format!(
            "[host.a]\npid_namespace = true\nprivate = '/mnt'\n[host.b]\nrootfs = 'rootfs'\n\
             [host.c]\nattach = 'pid:{attached}'\n[host.d]\nexec = ['sleep 1000']\n[switch.s]\n{}",
            ["a", "b", "c", "d"].map(|host| format!("[[link]]\nbetween = ['{host}', 's']\n")).concat()
        );
        fs::write(world.directory.join("net.toml"), spec).unwrap();
        let log = fs::File::create(world.directory.join("log")).unwrap();
        let mut up = world.command(&[PROGRAM, "lab", "up", "net.toml", "--name", &lab]);
        let mut up = up.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let said = || fs::read_to_string(world.directory.join("log")).unwrap();
        let engine = || world.json(&lab, "holder.json").and_then(|holder| holder["process"]["pid"].as_i64());
        wait_until(|| format!("it does not start: {}", said()), || engine().is_some());
        let engine = engine().unwrap();
        let (victim, delay) = (random.below(4), random.below(DELAY_MAX_MS));
        pass(Duration::from_millis(delay));
        let first = |host: &str, kind: &str| {
            world
                .json(&lab, "state.json")
                .and_then(|state| state["hosts"][host]["inside"][kind]["pid"].as_i64())
        };
        let chosen = match victim {
            0 => Some(attached),
            1 => first("a", "process"),
            2 => first("b", "container"),
            _ => None,
        };
        if let Some(pid) = chosen {
            world.kill(pid);
            pass(Duration::from_millis(random.below(100)));
        }
        world.kill(engine);
        let _ = up.wait();
        world.kill(attached);
        let _ = stranger.wait();
        let how = format!("seed {seed}, round {round}: victim {victim} killed after {delay} ms");
        let differs = || format!("{how}\n{}\nbefore:\n{before}\nnow:\n{}", said(), world.state(&lab));
        wait_until(differs, || world.state(&lab) == before);
        // What may stay is the directory of the state, until the next `up` or `down`.
        if round % 2 == 1 {
            let down = world.command(&[PROGRAM, "lab", "down", &lab]).output().unwrap();
            assert!(down.status.success(), "{how}: {}", String::from_utf8_lossy(&down.stderr));
            assert!(!world.directory.join("state").join(&lab).exists(), "{how}");
        }
    }
}
