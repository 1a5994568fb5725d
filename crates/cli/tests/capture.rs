//! `fastpath capture` and `fastpath extcap` on a running lab.
#![cfg(target_os = "linux")]

mod common;

use common::skip;
use fastpath_wire::pcap::CaptureReader;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");
const SPEC: &str = "[host.a]\n[host.b]\n[[link]]\nname = 'access.1'\nbetween = ['a', 'b']\ndelay = '2ms'\n";

/// A lab that is up until this is dropped.
struct Place {
    directory: PathBuf,
    lab: Option<Child>,
}

impl Place {
    /// Returns `None` where labs are not permitted.
    fn up(test: &str) -> Option<Place> {
        let directory = std::env::temp_dir().join(format!("fastpath-cap-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("capnet.toml"), SPEC).unwrap();
        let mut place = Place { directory, lab: None };
        let mut command = place.command(&["lab", "up", "capnet.toml"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        place.lab = Some(child);
        line.contains("is up").then_some(place)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(words).current_dir(&self.directory).stdin(Stdio::null());
        command.env("FASTPATH_STATE_DIR", self.directory.join("state")).env_remove("FASTPATH_LAB");
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let Output { status, stdout, stderr } = self.command(words).output().unwrap();
        (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    fn ping(&self) -> bool {
        self.run(&["lab", "exec", "a", "--", "ping", "-4", "-c", "2", "-i", "0.2", "b"]).0 == Some(0)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.run(&["lab", "down", "capnet"]);
        self.lab.take().map(|mut lab| lab.wait());
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Waits until a file has bytes.
fn wait_for(path: &Path) {
    let start = Instant::now();
    while fs::metadata(path).map_or(0, |found| found.len()) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "{} stays empty", path.display());
        std::thread::yield_now();
    }
}

/// The frames of a file by interface.
fn frames(path: &Path) -> Vec<(u32, Vec<u8>)> {
    let file = fs::read(path).unwrap();
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    let next = || reader.read_packet().unwrap().map(|packet| (packet.interface, packet.data.to_vec()));
    std::iter::from_fn(next).collect()
}

fn interrupt(child: &Child) {
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
}

#[test]
fn links_of_a_lab_are_captured_by_hand_and_by_wireshark() {
    let test = "links_of_a_lab_are_captured_by_hand_and_by_wireshark";
    let Some(place) = Place::up("lab") else { return skip(test, "cannot bring a lab up") };
    let file = place.directory.join("a.pcapng");
    let child = place
        .command(&["capture", "access.1", "--drops", "--snap", "0", "-w", "a.pcapng"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&file);
    assert!(place.ping());
    interrupt(&child);
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success() && said.contains(" frames captured"), "{said}");
    let is_echo = |(_, data): &&(u32, Vec<u8>)| data.len() == 98 && data[12..14] == [8, 0];
    let all = frames(&file);
    let echoes: Vec<u32> = all.iter().filter(is_echo).map(|frame| frame.0).collect();
    assert_eq!(echoes, [0, 1, 0, 1], "two requests and two answers");

    let (status, listed) = place.run(&["extcap", "--extcap-interfaces", "--extcap-version=4.4"]);
    assert_eq!(status, Some(0));
    let name = "fastpath-capnet:access.1";
    assert!(
        listed.contains(&format!("interface {{value={name}}}{{display=fastpath capnet: access.1 (a - b)}}")),
        "{listed}"
    );
    let fifo = place.directory.join("fifo.pcapng");
    let words = ["extcap", "--capture", "--extcap-interface", name, "--fifo", "fifo.pcapng", "--snap", "60"];
    let child = place.command(&words).spawn().unwrap();
    wait_for(&fifo);
    assert!(place.ping());
    interrupt(&child);
    assert!(child.wait_with_output().unwrap().status.success());
    let all = frames(&fifo);
    assert!(all.len() >= 4 && all.iter().all(|(_, data)| data.len() <= 60), "{}", all.len());

    for (words, code, text) in [
        (&["capture", "nowhere", "-w", "x.pcapng"][..], 2, "no link"),
        (&["capture", "access.1", "-w", "/dev/full"], 2, "the network goes on"),
        (&["extcap", "--capture", "--extcap-interface", "x", "--fifo", "f"], 2, "'x' is gone"),
    ] {
        let (status, said) = place.run(words);
        assert!(status == Some(code) && said.contains(text), "{said}");
    }
    assert!(!place.directory.join("x.pcapng").exists(), "a refused request creates no file");
    assert!(place.ping());
}
