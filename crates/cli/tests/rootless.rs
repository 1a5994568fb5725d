//! Labs and shells of a user without rights on this machine: an id of its own, no capabilities.
#![cfg(target_os = "linux")]

mod common;

use common::{skip, user_without_rights};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");

/// A directory of the user, and how the user runs programs.
struct User {
    words: Vec<&'static str>,
    directory: PathBuf,
}

impl User {
    /// Returns `None` and reports a skip where the test cannot run.
    fn new(test: &str, programs: &[&str]) -> Option<User> {
        let words = match user_without_rights() {
            Ok(words) => words,
            Err(why) => {
                skip(test, &why);
                return None;
            }
        };
        let is_there = |program: &&&str| {
            let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
            found.is_ok_and(|output| output.status.success())
        };
        if let Some(program) = programs.iter().find(|program| !is_there(program)) {
            skip(test, &format!("{program} is missing"));
            return None;
        }
        let directory = std::env::temp_dir().join(format!(
            "fastpath-user-{}-{}",
            test.replace(' ', "-"),
            std::process::id()
        ));
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        Some(User { words, directory })
    }

    /// Returns the command `fastpath ARGUMENTS` of the user.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.words[0]);
        command.args(&self.words[1..]).arg(PROGRAM).args(arguments).current_dir(&self.directory);
        command.env("FASTPATH_STATE_DIR", self.directory.join("state")).env_remove("FASTPATH_LAB");
        command.env("TMPDIR", &self.directory).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        (status.code().unwrap_or(-1), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    /// Brings a lab up and waits until it is.
    fn up(&self, spec: &str) -> Child {
        fs::write(self.directory.join("net.toml"), spec).unwrap();
        let mut command = self.command(&["lab", "up", "net.toml"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if !line.contains("is up") {
            let mut text = String::new();
            child.stderr.as_mut().unwrap().read_to_string(&mut text).unwrap();
            panic!("{line}{text}");
        }
        child
    }

    /// Names in the directory of the user.
    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Makes a root file system with busybox. `None` and a skip without it.
    fn root(&self, test: &str) -> Option<PathBuf> {
        let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new);
        let Some(busybox) = busybox.into_iter().find(|path| path.exists()) else {
            skip(test, "busybox-static is not installed");
            return None;
        };
        let root = self.directory.join("root");
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::copy(busybox, root.join("bin/busybox")).unwrap();
        for program in ["sh", "cat", "hostname", "ping", "sleep", "touch", "tr"] {
            symlink("busybox", root.join("bin").join(program)).unwrap();
        }
        Some(root)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Returns the processes with these words in their command line.
fn processes_with(words: &str) -> Vec<String> {
    let lines =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(words)).collect()
}

/// Starts a server on the loopback interface of this machine that answers every connection with a
/// word. Returns its port. It ends with the process.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(b"served\n");
        }
    });
    port
}

#[test]
fn a_container_of_a_user_without_rights_comes_up_and_goes() {
    let test = "container of a user";
    let Some(user) = User::new(test, &["crun"]) else { return };
    let Some(root) = user.root(test) else { return };
    let mark = format!("95{}", std::process::id());
    let mut up = user.up(&format!(
        "[host.a]\nrootfs = '{}'\ncommand = ['sleep', '{mark}']\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n",
        root.display()
    ));
    // From another process of the user, which is outside the user namespace of the lab.
    let look = "hostname; cat /proc/1/comm; touch /bin/new && cat /proc/[0-9]*/comm | tr '\\n' ' '";
    let (code, text) = user.run(&["lab", "exec", "a", "--", "sh", "-c", look]);
    assert!(code == 0 && text.starts_with("a\nsleep\n") && text.contains("sleep sh"), "{code}: {text}");
    assert!(!root.join("bin/new").exists(), "the files of the directory stay");
    for (from, to) in [("a", "b"), ("b", "a")] {
        let (code, text) = user.run(&["lab", "exec", from, "--", "ping", "-c1", "-W20", to]);
        assert_eq!(code, 0, "{text}");
    }
    assert_eq!(processes_with(&mark).len(), 1);
    let (code, text) = user.run(&["lab", "down"]);
    assert_eq!(code, 0, "{text}");
    assert!(up.wait().unwrap().success());
    assert_eq!(processes_with(&mark), Vec::<String>::new());
    assert_eq!(user.files(), ["net.toml", "root", "state"]);
}

#[test]
fn a_shell_of_a_user_without_rights_reaches_this_machine_through_its_link() {
    let test = "shell of a user";
    let Some(user) = User::new(test, &["nft", "ping", "bash", "pasta"]) else { return };
    let port = server();
    let script = format!(
        "ls /sys/class/net; cat < /dev/tcp/$FASTPATH_SHELL_OUTSIDE/{port}; \
         ping -n -q -c3 -i.01 -W9 $FASTPATH_SHELL_OUTSIDE; \
         {PROGRAM} shell --delay 5ms -- bash -c 'cat < /dev/tcp/100.68.0.1/{port}'; exit 7"
    );
    let (code, text) = user.run(&["shell", "--delay", "20ms", "--", "bash", "-c", &script]);
    assert_eq!(code, 7, "{text}");
    assert!(text.starts_with("eth0\nlo\nserved\n"), "{text}");
    // A shell in the shell reaches the machine too.
    assert_eq!(text.matches("served\n").count(), 2, "{text}");
    let least = text.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next());
    let least: f64 =
        least.and_then(|least| least.parse().ok()).unwrap_or_else(|| panic!("no answer: {text}"));
    assert!(least >= 40.0, "{text}");
    assert_eq!(user.files(), [""; 0], "nothing is left");
    assert_eq!(processes_with(&user.directory.display().to_string()), Vec::<String>::new());
}

#[test]
fn an_uplink_of_a_user_without_rights_leads_to_this_machine() {
    let test = "uplink of a user";
    let Some(user) = User::new(test, &["nft", "bash", "pasta"]) else { return };
    let mut up = user.up("[host.web]\n[uplink.internet]\n[[link]]\nbetween = ['web', 'internet']\n");
    let (code, text) = user.run(&["lab", "exec", "web", "--", "cat", "/etc/resolv.conf"]);
    assert!(code == 0 && text.contains("nameserver 10."), "{code}: {text}");
    let (code, text) = user.run(&["lab", "exec", "internet", "--", "ls", "/sys/class/net"]);
    assert!(code == 0 && text.contains("up0"), "{code}: {text}");
    assert_eq!(user.run(&["lab", "down"]).0, 0);
    assert!(up.wait().unwrap().success());
    assert_eq!(user.files(), ["net.toml", "state"]);
}
