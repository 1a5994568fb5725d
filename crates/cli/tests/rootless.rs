//! Labs and shells of a user without rights on this machine: an id of its own, no capabilities.
#![cfg(target_os = "linux")]

mod common;

use common::{skip, user_without_rights};
use fastpath_lab::Namespace;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
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
        self.command_after(&[], arguments)
    }

    /// As [`User::command`], started by the command `prefix`.
    fn command_after(&self, prefix: &[&str], arguments: &[&str]) -> Command {
        let words = [prefix, &self.words].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(PROGRAM).args(arguments).current_dir(&self.directory);
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
        // In its user namespace a user may change only files of its own.
        let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(&root).status();
        assert!(owned.unwrap().success());
        Some(root)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn is_there(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

/// Returns the processes with these words in their command line.
fn processes_with(words: &str) -> Vec<String> {
    let lines =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(words)).collect()
}

/// Starts a server that answers every connection with a word. It ends with the process.
fn serve(listener: TcpListener) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(b"served\n");
        }
    });
}

/// Returns a machine with a name server, which is a network namespace. Servers at its own addresses
/// stand for the internet: www4.example has one address of IPv4, www6.example one of IPv6.
fn machine() -> Namespace {
    const CONFIGURE: &str = "ip link set lo up && ip link add wan type veth peer name lan && \
        ip link set lan up && ip link set wan up && ip address add 203.0.113.2/24 dev wan && \
        ip address add 2001:db8::2/64 dev wan nodad && ip route add default via 203.0.113.1 && \
        ip -6 route add default via 2001:db8::1 && ip address add 198.51.100.80/32 dev lo && \
        ip address add 2001:db8:80::80/128 dev lo nodad";
    let machine = Namespace::new().unwrap();
    let configure = || Command::new("sh").args(["-c", CONFIGURE]).status();
    assert!(machine.within(configure).unwrap().unwrap().success());
    for address in ["198.51.100.80:80", "[2001:db8:80::80]:80"] {
        serve(machine.within(|| TcpListener::bind(address)).unwrap().unwrap());
    }
    let names = machine.within(|| UdpSocket::bind("127.0.0.53:53")).unwrap().unwrap();
    thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((len, from)) = names.recv_from(&mut query) {
            names.send_to(&answer_dns(&query[..len]), from).unwrap();
        }
    });
    machine
}

/// Answers a question for an address (RFC 1035 §4).
fn answer_dns(query: &[u8]) -> Vec<u8> {
    // The name ends with a label without bytes, then the type and the class follow.
    let end = 12 + query[12..].iter().position(|byte| *byte == 0).unwrap();
    let kind = query[end + 2];
    let data = match (&query[12..end], kind) {
        (b"\x04www4\x07example", 1) => Ipv4Addr::new(198, 51, 100, 80).octets().to_vec(),
        (b"\x04www6\x07example", 28) => {
            Ipv6Addr::new(0x2001, 0xdb8, 0x80, 0, 0, 0, 0, 0x80).octets().to_vec()
        }
        _ => Vec::new(),
    };
    let mut answer = [&query[..2], &[0x81, 0x80, 0, 1, 0, u8::from(!data.is_empty()), 0, 0, 0, 0]].concat();
    answer.extend_from_slice(&query[12..end + 5]);
    if !data.is_empty() {
        answer.extend_from_slice(&[0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
        answer.extend_from_slice(&data);
    }
    answer
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
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    serve(listener);
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
    let argument = user.directory.join("state").display().to_string();
    assert_eq!(processes_with(&argument).len(), 1, "its program");
    // The program goes with its uplink, before the lab.
    fs::write(user.directory.join("net.toml"), "[host.web]\n").unwrap();
    let (code, text) = user.run(&["lab", "apply", "net.toml"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(processes_with(&argument), Vec::<String>::new());
    assert_eq!(user.run(&["lab", "down"]).0, 0);
    assert!(up.wait().unwrap().success());
    assert_eq!(user.files(), ["net.toml", "state"]);
}

#[test]
fn programs_of_a_user_reach_the_internet_by_pasta_and_by_slirp4netns() {
    let test = "internet of a user";
    let Some(user) = User::new(test, &["nft", "bash", "ip"]) else { return };
    let machine = machine();
    let spec = "[host.web]\n[switch.s]\n[uplink.internet]\n[[link]]\nbetween = ['web', 's']\n\
                [[link]]\nbetween = ['s', 'internet']\ndelay = '5ms'\n";
    fs::write(user.directory.join("net.toml"), spec).unwrap();
    // As systemd-resolved and Docker have it: a server that only this machine reaches.
    let resolv = user.directory.join("resolv.conf");
    fs::write(&resolv, "nameserver 127.0.0.53\noptions timeout:5\n").unwrap();
    let see = format!(
        "mount --make-rprivate / && mount --bind {} /etc/resolv.conf && exec \"$@\"",
        resolv.display()
    );
    for program in ["pasta", "slirp4netns"] {
        if !is_there(program) {
            skip(test, &format!("{program} is missing"));
            continue;
        }
        // A PATH without the other program.
        let bin = format!("bin-{program}");
        let script = "mkdir $1 && for p in /usr/sbin/* /usr/bin/*; do case ${p##*/} in \
                      pasta*|passt*|slirp4netns) ;; *) ln -sf $p $1/ ;; esac; done && \
                      ln -sf $(command -v $0) $1/";
        let mut make = Command::new("sh");
        make.args(["-c", script, program, &bin]).current_dir(&user.directory);
        assert!(make.status().unwrap().success());
        let fetch = "for v in 4 6; do test -e /sys/class/net/wan || cat < /dev/tcp/www$v.example/80; done; getent ahostsv4 web";
        let words = ["lab", "run", "--on", "web", "net.toml", "--", "bash", "-c", fetch];
        let mut command = user.command_after(&["unshare", "-m", "sh", "-c", &see, "sh"], &words);
        command.env("PATH", user.directory.join(&bin));
        let output = machine.within(|| command.output()).unwrap().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(text.starts_with("served\nserved\n"), "{program}: {text}{errors}");
        assert!(text.contains("STREAM web"), "{program}: names of the lab: {text}{errors}");
    }
    let left = fs::read_dir(user.directory.join("state")).unwrap().count();
    assert_eq!(left, 0, "nothing is left");
}
