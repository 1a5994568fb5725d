//! What the integration tests share: small topologies, and network namespaces that vanish by themselves.
#![allow(dead_code)] // each test program uses a part

use fastpath_engine::{Idle, Options, Report, Running};
use fastpath_link::PipeSpec;
use fastpath_net::{NodeKind, Topology};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::num::NonZeroUsize;
use std::process::Command;

/// Two hosts and a link with the same parameters in both directions, attached to interfaces if named.
pub(crate) fn two_hosts(pipe: PipeSpec, ports: [Option<&str>; 2]) -> Topology {
    let mut topology = Topology::default();
    let mut host =
        |name, port: Option<&str>| topology.add_node(name, NodeKind::Host { port: port.map(str::to_owned) });
    let ends = [host("a", ports[0]), host("b", ports[1])];
    topology.connect("a-b", ends[0], ends[1], [pipe.clone(), pipe]);
    topology
}

/// Options of a quiet run.
pub(crate) fn options(idle: Idle) -> Options {
    let network = fastpath_net::Options { seed: 1, pool_limit: NonZeroUsize::new(64 << 20).unwrap() };
    Options { idle, notice: |_| {}, ..Options::new(network) }
}

/// Ends a run and checks its books.
pub(crate) fn finish(running: Running) -> Report {
    let report = running.stop().expect("the worker lives");
    assert!(report.conservation.holds(), "{:?}", report.conservation);
    report
}

/// A network namespace without a name. It lives as long as this value, and so do the devices in it.
pub(crate) struct Namespace(File);

impl Namespace {
    /// An empty one; only its loopback is up.
    pub(crate) fn new() -> Namespace {
        let enter = || {
            unshare(CloneFlags::CLONE_NEWNET).expect("permitted, as checked before");
            ip("link set lo up");
            File::open("/proc/thread-self/ns/net").unwrap()
        };
        Namespace(std::thread::spawn(enter).join().unwrap())
    }

    /// Runs `work` in a thread inside.
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| {
            let inside = || {
                setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
                work()
            };
            scope.spawn(inside).join().unwrap()
        })
    }
}

/// Runs ip(8) in the thread's namespace.
pub(crate) fn ip(arguments: &str) {
    assert!(can_ip(arguments), "ip {arguments}");
}

/// As [`ip`]; true if it succeeds.
pub(crate) fn can_ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split_whitespace()).output().expect("ip runs").status.success()
}

/// Runs `test` where namespaces may be made: here as root, else in this test program again inside a user
/// namespace. Where neither is possible the test is skipped, and says so.
pub(crate) fn with_namespaces(name: &str, test: impl FnOnce()) {
    const INSIDE: &str = "FASTPATH_TEST_INSIDE";
    if Command::new("ip").arg("-V").output().is_err() {
        return skip(name, "ip(8) is not installed");
    }
    let probe = || std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok()).join().unwrap();
    if probe() {
        return test();
    }
    let program = std::env::current_exe().unwrap();
    let again = Command::new("unshare")
        .args(["-Urn", program.to_str().unwrap(), "--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .output();
    match again {
        Ok(output) if std::env::var_os(INSIDE).is_none() && !is_refusal(&output.stderr) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "inside a user namespace:\n{text}");
        }
        _ => skip(name, "network namespaces are not permitted"),
    }
}

fn is_refusal(stderr: &[u8]) -> bool {
    stderr.starts_with(b"unshare: ")
}

/// Says that a test did not run, where the summary of all tests looks for it.
pub(crate) fn skip(name: &str, why: &str) {
    use std::io::Write;
    let line = format!("SKIPPED: {name}: {why}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("FASTPATH_SKIP_LOG") {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
        log.and_then(|mut log| log.write_all(line.as_bytes()))
            .expect("the log of skipped tests can be written");
    }
}
