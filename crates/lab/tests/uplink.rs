//! Tests of uplinks: a lab on a machine that is a network namespace, with a second namespace that
//! stands for the internet. No packet leaves this computer. Users without rights: `rootless.rs` of
//! crate cli, since a user namespace is for processes with one thread.
//!
//! ```text
//!  lab: web ── access link ── internet (uplink) ─▶ machine 203.0.113.2 ── 203.0.113.1 the internet
//!                                                                        198.51.100.80 www.example
//! ```
#![cfg(target_os = "linux")]

mod common;

use common::skip_test as skip;
use fastpath_lab::netlink::{LinkParameters, Netlink};
use fastpath_lab::{ApplyMode, Lab, Namespace};
use fastpath_spec::{NO_FILES, read};
use nix::net::if_::if_nametoindex;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// A process of a test: it brings a lab up, runs the command of this variable on the host of the
/// other, and removes the lab.
const COMMAND: &str = "FASTPATH_TEST_COMMAND";
const HOST: &str = "FASTPATH_TEST_HOST";
/// Besides web and the uplink: the access link has a rate and a delay.
const SPEC: &str = "
[host.web]
[host.other]
[switch.s]
[uplink.internet]
forward = { '8080' = 'web:80', 'udp:5353' = 'web:53' }
[[link]]
between = ['web', 's']
[[link]]
between = ['other', 's']
[[link]]
between = ['s', 'internet']
rate = '100Mbit'
delay = '5ms'
";
const SERVER: [&str; 2] = ["198.51.100.80", "2001:db8:80::80"];

/// A machine and an internet, and the files of one test.
struct World {
    machine: Namespace,
    internet: Namespace,
    directory: PathBuf,
}

impl World {
    /// Returns `None` and reports a skip where the test cannot run.
    fn new(test: &str) -> Option<World> {
        for program in ["nft", "curl", "unshare"] {
            let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
            if !found.status.success() {
                skip(test, &format!("{program} is missing"));
                return None;
            }
        }
        let (machine, internet) = match (Namespace::new(), Namespace::new()) {
            (Ok(machine), Ok(internet)) => (machine, internet),
            (Err(why), _) | (_, Err(why)) => {
                skip(test, &why.to_string());
                return None;
            }
        };
        if fs::metadata("/dev/net/tun").is_err() || !nix::unistd::Uid::effective().is_root() {
            skip(test, "not root, or no /dev/net/tun");
            return None;
        }
        let ends = [("wan", 2, &machine), ("lan", 1, &internet)];
        machine.within(|| Netlink::open()?.add_veth("wan", "lan", internet.as_fd())).unwrap().unwrap();
        for (name, number, namespace) in ends {
            let configure = || -> io::Result<()> {
                let mut netlink = Netlink::open()?;
                let index = if_nametoindex(name)?;
                netlink.bring_up(if_nametoindex("lo")?, LinkParameters::default())?;
                netlink.bring_up(index, LinkParameters::default())?;
                for address in [format!("203.0.113.{number}/24"), format!("2001:db8::{number}/64")] {
                    netlink.add_address(index, address.parse().unwrap())?;
                }
                if number == 1 {
                    for address in SERVER {
                        let length = if address.contains(':') { 128 } else { 32 };
                        netlink.add_address(index, format!("{address}/{length}").parse().unwrap())?;
                    }
                } else {
                    for (prefix, via) in [("0.0.0.0/0", "203.0.113.1"), ("::/0", "2001:db8::1")] {
                        netlink.add_route(index, prefix.parse().unwrap(), Some(via.parse().unwrap()))?;
                    }
                }
                Ok(())
            };
            namespace.within(configure).unwrap().unwrap();
        }
        let directory = std::env::temp_dir().join(format!("fastpath-uplink-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("net.toml"), SPEC).unwrap();
        // As systemd-resolved and Docker have it: a server that only this machine reaches.
        fs::write(directory.join("resolv.conf"), "nameserver 127.0.0.53\noptions timeout:5\n").unwrap();
        let world = World { machine, internet, directory };
        world.serve();
        Some(world)
    }

    /// Starts the web server of the internet, and the name server of the machine. The threads end
    /// with the process.
    fn serve(&self) {
        for address in SERVER {
            let address = SocketAddr::new(address.parse().unwrap(), 80);
            let listener = self.internet.within(|| TcpListener::bind(address)).unwrap().unwrap();
            thread::spawn(move || {
                for stream in listener.incoming() {
                    answer_http(stream.unwrap());
                }
            });
        }
        let names = self.machine.within(|| UdpSocket::bind("127.0.0.53:53")).unwrap().unwrap();
        thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((len, from)) = names.recv_from(&mut query) {
                names.send_to(&answer_dns(&query[..len]), from).unwrap();
            }
        });
    }

    /// Returns a process on the machine that brings a lab up, started by the command `prefix`.
    fn lab(&self, prefix: &[&str], host: &str, script: &str) -> Command {
        let resolv = self.directory.join("resolv.conf");
        let see = format!(
            "mount --make-rprivate / && mount --bind {} /etc/resolv.conf && exec \"$@\"",
            resolv.display()
        );
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &see, "sh"]).args(prefix).arg(std::env::current_exe().unwrap());
        command.args(["a_lab_with_an_uplink", "--exact", "--nocapture"]);
        command.current_dir(&self.directory).stdin(Stdio::null());
        command.env("FASTPATH_STATE_DIR", self.directory.join("state")).env(HOST, host).env(COMMAND, script);
        command
    }

    fn spawn(&self, command: &mut Command) -> Child {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.machine.within(|| command.spawn()).unwrap().unwrap()
    }

    fn output(&self, command: &mut Command) -> (i32, String) {
        let Output { status, stdout, stderr } = self.spawn(command).wait_with_output().unwrap();
        (status.code().unwrap_or(-1), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    /// Brings a lab up, and returns its process and that of a program on host web.
    fn up(&self) -> (Child, u32) {
        let mut child = self.spawn(self.lab(&[], "web", "echo ready $$; read x").stdin(Stdio::piped()));
        let mut text = String::new();
        let mut output = BufReader::new(child.stdout.as_mut().unwrap());
        while output.read_line(&mut text).unwrap() > 0 {
            if let Some(pid) = text.lines().last().and_then(|line| line.strip_prefix("ready ")) {
                return (child, pid.parse().unwrap());
            }
        }
        let output = child.wait_with_output().unwrap();
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }

    fn without_forwards(&self) {
        let alone = SPEC.lines().filter(|line| !line.starts_with("forward")).collect::<Vec<_>>().join("\n");
        fs::write(self.directory.join("net.toml"), alone).unwrap();
    }

    fn rules(&self) -> String {
        self.output(Command::new("nft").args(["list", "ruleset"])).1
    }

    /// Waits until the machine has this again, at most 10 s.
    fn becomes(&self, wanted: &[String; 3]) -> bool {
        let (_open, pace) = std::sync::mpsc::channel::<()>();
        (0..200).any(|_| {
            // A wait for a message that does not come.
            let _ = pace.recv_timeout(Duration::from_millis(50));
            self.state() == *wanted
        })
    }

    /// What the machine has: rules, interfaces and settings of forwarding.
    fn state(&self) -> [String; 3] {
        let script = "cd /proc/sys/net; for f in ipv4/ip_forward ipv4/conf/*/forwarding ipv4/conf/*/accept_redirects \
                      ipv6/conf/*/forwarding ipv6/conf/*/accept_ra; do echo $f $(cat $f); done";
        let links = self.machine.within(|| {
            let all = nix::ifaddrs::getifaddrs().unwrap();
            let mut names: Vec<String> = all.map(|interface| interface.interface_name).collect();
            names.sort();
            names.dedup();
            names.join(" ")
        });
        let settings = self.output(Command::new("sh").args(["-c", script])).1;
        [self.rules(), links.unwrap(), settings]
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn answer_http(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    // Up to the empty line.
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        line.clear();
    }
    let peer = stream.peer_addr().unwrap().ip().to_canonical();
    let body = format!("the internet sees {peer}\n");
    let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

/// Answers every question for www.example with the addresses of the server, others with none.
fn answer_dns(query: &[u8]) -> Vec<u8> {
    let mut end = 12;
    let mut name = String::new();
    while query[end] > 0 {
        let len = usize::from(query[end]);
        name += &String::from_utf8_lossy(&query[end + 1..=end + len]);
        name += ".";
        end += len + 1;
    }
    let kind = u16::from_be_bytes([query[end + 1], query[end + 2]]);
    let data = match (name.as_str(), kind, SERVER.map(|address| address.parse().unwrap())) {
        ("www.example.", 1, [IpAddr::V4(address), _]) => address.octets().to_vec(),
        ("www.example.", 28, [_, IpAddr::V6(address)]) => address.octets().to_vec(),
        _ => Vec::new(),
    };
    let mut answer = [&query[..2], &[0x81, 0x80, 0, 1, 0, u8::from(!data.is_empty()), 0, 0, 0, 0]].concat();
    answer.extend_from_slice(&query[12..end + 5]);
    if !data.is_empty() {
        answer.extend_from_slice(&[0xc0, 12, 0, kind as u8, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
        answer.extend_from_slice(&data);
    }
    answer
}

const CURL: &str =
    "for v in 4 6; do curl -$v -s --max-time 20 http://www.example/; done; getent ahostsv4 web";

/// What curl must print on a host of the lab, for the addresses that the internet sees.
fn assert_reached(text: &str) {
    let seen: Vec<&str> = text.lines().filter(|line| line.starts_with("the internet")).collect();
    assert_eq!(seen, ["the internet sees 203.0.113.2", "the internet sees 2001:db8::2"], "{text}");
    assert!(text.contains("STREAM web"), "names of the lab: {text}");
}

/// The process of the other tests; without their variables it does nothing.
#[test]
fn a_lab_with_an_uplink() {
    let (Ok(host), Ok(script)) = (std::env::var(HOST), std::env::var(COMMAND)) else { return };
    // The test harness has begun a line.
    println!();
    let (topology, _) = fastpath_spec::parse(&fs::read_to_string("net.toml").unwrap()).unwrap();
    let network = fastpath_net::Options::default();
    let name = format!("uplink-{}", std::process::id());
    // The uplink comes and goes while the lab runs.
    let later = fs::read_to_string("later.toml").ok();
    let mut lab = match Lab::up(topology, &name, fastpath_engine::Options::new(network)) {
        Ok(lab) => lab,
        Err(error) => {
            println!("error: {error}");
            return;
        }
    };
    let change = |lab: &mut Lab, text: &str| {
        let description = read(text, NO_FILES).unwrap().0.description;
        if let Err(error) = lab.apply(&description, NO_FILES, ApplyMode::Change) {
            println!("error: {error}");
        }
    };
    later.iter().for_each(|later| change(&mut lab, later));
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    lab.spawn(lab.host(&host).unwrap(), &mut command).unwrap().wait().unwrap();
    if later.is_some() {
        change(&mut lab, &fs::read_to_string("net.toml").unwrap());
        let tables = Command::new("nft").args(["list", "tables"]).output().unwrap();
        println!("tables: {:?}", String::from_utf8_lossy(&tables.stdout));
    }
    lab.down().unwrap();
}

#[test]
fn an_uplink_comes_and_goes_while_a_lab_runs() {
    let Some(world) = World::new("apply") else { return };
    let before = world.state();
    fs::rename(world.directory.join("net.toml"), world.directory.join("later.toml")).unwrap();
    let without = "[host.web]\n[host.other]\n[switch.s]\n[[link]]\nbetween = ['web', 's']\n\
                   [[link]]\nbetween = ['other', 's']\n";
    fs::write(world.directory.join("net.toml"), without).unwrap();
    let (_, text) = world.output(&mut world.lab(&[], "other", CURL));
    assert!(!text.contains("error: "), "{text}");
    assert_reached(&text);
    assert!(text.contains("tables: \"\""), "{text}");
    assert!(world.becomes(&before), "{:?} is not {before:?}", world.state());
}

#[test]
fn a_host_reaches_the_internet_by_name_as_root_and_only_one_table_is_added() {
    let test = "root";
    let Some(world) = World::new(test) else { return };
    // Rules of the machine's own.
    let own = "nft add table ip own && nft add chain ip own input '{ type filter hook input priority 0; }'";
    assert_eq!(world.output(Command::new("sh").args(["-c", own])), (0, String::new()));
    let before = world.state();
    let (mut lab, web) = world.up();
    let rules = world.rules();
    let ours = rules.strip_prefix(&before[0]).expect("the machine's own rules come first, unchanged");
    assert_eq!(ours.matches("table ").count(), 1, "{ours}");
    assert!(ours.contains("table inet fastpath_uplink_0_"), "{ours}");
    forwarded_ports_lead_to_hosts(&world, web);
    // A second lab with an uplink: its ports are in use, and without them it works beside the
    // first.
    let (_, text) = world.output(&mut world.lab(&[], "other", CURL));
    assert!(text.contains("error: uplink internet: port 8080 of this machine: Address"), "{text}");
    assert!(text.contains("write another port in forward"), "{text}");
    world.without_forwards();
    let (_, text) = world.output(&mut world.lab(&[], "other", CURL));
    assert_reached(&text);
    // The first still works.
    let web = Namespace::of_process(web).unwrap();
    let fetch = || Command::new("curl").args(["-s", "--max-time", "20", "http://198.51.100.80/"]).output();
    let output = web.within(fetch).unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "the internet sees 203.0.113.2\n");
    drop(lab.stdin.take());
    lab.wait().unwrap();
    // The kernel removes the interfaces of a closed namespace a little later.
    assert!(world.becomes(&before), "{:?} is not {before:?}", world.state());
}

/// Reaches web:80 and web:53 by the ports of the machine. The servers are threads of this process
/// with sockets in the namespace of web.
fn forwarded_ports_lead_to_hosts(world: &World, web: u32) {
    let web = Namespace::of_process(web).unwrap();
    let http = web.within(|| TcpListener::bind("0.0.0.0:80")).unwrap().unwrap();
    let echo = web.within(|| UdpSocket::bind("0.0.0.0:53")).unwrap().unwrap();
    let requests = ["127.0.0.1", "203.0.113.2", "[2001:db8::2]"];
    let server = thread::spawn(move || {
        for _ in requests {
            answer_http(http.accept().unwrap().0);
        }
        let mut buffer = [0; 16];
        let (len, from) = echo.recv_from(&mut buffer).unwrap();
        echo.send_to(&buffer[..len], from).unwrap();
    });
    for address in requests {
        let mut curl = Command::new("curl");
        curl.args(["-s", "--max-time", "60"]).arg(format!("http://{address}:8080/")).stdout(Stdio::piped());
        let place = if address == "127.0.0.1" { &world.machine } else { &world.internet };
        let output = place.within(|| curl.output()).unwrap().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.starts_with("the internet sees 10.1.1."), "{address}: {text}");
    }
    let socket = world.internet.within(|| UdpSocket::bind("203.0.113.1:0")).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.send_to(b"hello", "203.0.113.2:5353").unwrap();
    let mut answer = [0; 16];
    assert_eq!(socket.recv(&mut answer).unwrap(), 5, "udp:5353");
    server.join().unwrap();
}

#[test]
fn after_kill_9_nothing_is_left() {
    let Some(world) = World::new("kill") else { return };
    let before = world.state();
    for round in 0..2 {
        let (mut lab, _) = world.up();
        assert_ne!(world.state(), before);
        lab.kill().unwrap();
        lab.wait().unwrap();
        // The keeper works on its own.
        assert!(world.becomes(&before), "round {round}: {:?} is not {before:?}", world.state());
    }
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let Some(world) = World::new("missing") else { return };
    let hide = "mount -t tmpfs none /usr/sbin && exec \"$@\"";
    let mut command = world.lab(&["sh", "-c", hide, "sh"], "web", "true");
    let (_, text) = world.output(command.env("PATH", "/usr/bin:/bin"));
    assert!(text.contains("error: uplink internet needs nft: install nftables"), "{text}");
}
