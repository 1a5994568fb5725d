//! The dashboard in a browser: Chromium, driven by Playwright (`dashboard.py`).
#![cfg(target_os = "linux")]

mod common;

use common::skip;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");

/// A network that runs until this is dropped.
struct Running {
    child: Child,
    state: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let ended = Command::new(PROGRAM)
            .args(["lab", "down", "dashboard"])
            .env("FASTPATH_STATE_DIR", &self.state)
            .stdout(Stdio::null())
            .status();
        if !ended.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

/// Brings a lab up. Returns the address of its dashboard; `None` where labs are not permitted.
fn up(spec: &Path) -> Option<(Running, String)> {
    let state = std::env::temp_dir().join(format!("fastpath-dashboard-{}", std::process::id()));
    let mut child = Command::new(PROGRAM)
        .args(["lab", "up"])
        .arg(spec)
        .args(["--name", "dashboard", "--dashboard"])
        .env("FASTPATH_STATE_DIR", &state)
        .env_remove("FASTPATH_LAB")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let running = Running { child, state };
    let address =
        lines.by_ref().find_map(|line| Some(line.ok()?.split_once("dashboard at ")?.1.to_owned()))?;
    // The rest is read, so that the network never waits for it.
    std::thread::spawn(move || lines.for_each(drop));
    Some((running, address))
}

/// Returns a Python that has Playwright: that of `cargo xtask test`, or of the system.
fn python() -> Option<PathBuf> {
    let target = Path::new(PROGRAM).ancestors().find(|path| path.join("playwright/bin/python3").exists());
    let own = target.map(|target| target.join("playwright/bin/python3"));
    own.into_iter().chain(["python3".into()]).find(|python| {
        let check = Command::new(python).args(["-c", "import playwright.sync_api"]).output();
        check.is_ok_and(|check| check.status.success())
    })
}

#[test]
fn the_dashboard_shows_and_changes_the_network_of_emulabs_figure() {
    let test = "the_dashboard_shows_and_changes_the_network_of_emulabs_figure";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let chromium = Path::new("/usr/bin/chromium");
    let Some(python) = python().filter(|_| chromium.exists()) else {
        return skip(test, "needs Chromium, and Playwright for Python");
    };
    let spec = root.join("examples/emulab-fig2-1.ns");
    let nodes: Vec<String> =
        fastpath::load(&spec).unwrap().spec.topology.nodes.iter().map(|node| node.name.clone()).collect();
    let Some((_running, address)) = up(&spec) else { return skip(test, "cannot bring a lab up") };
    let mut browser = Command::new(python);
    browser.arg(root.join("crates/cli/tests/dashboard.py")).arg(address).arg(chromium).args(nodes);
    let said = browser.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
