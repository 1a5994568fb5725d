//! Tests `fastpath quic-sim` between a client and a server in network namespaces, as the QUIC
//! interop runner has them: addresses, routes, and a kernel in the middle that forwards.
#![cfg(target_os = "linux")]

mod common;

use common::skip;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");
const LINK: &str = "--delay=5ms --bandwidth=100Mbps --queue=100";
const CLIENT: &str = "193.167.0.100";
const SERVER: &str = "193.167.100.100";

/// Joins the namespace of the simulator, whose kernel has addresses and forwards, with those of the
/// client and the server: the numbers of processes in them.
const SETUP: &str = r#"
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
setup() {
  ip link add $1 type veth peer name eth0 netns $2
  ip addr add 193.167.$3.2/24 dev $1
  ip -6 addr add fd00:cafe:cafe:$3::2/64 dev $1 nodad
  ip link set $1 up
  in="nsenter -t $2 -n ip"
  $in addr add 193.167.$3.100/24 dev eth0
  $in -6 addr add fd00:cafe:cafe:$3::100/64 dev eth0 nodad
  $in link set eth0 up
  $in route add 193.167.0.0/16 via 193.167.$3.2
  $in -6 route add fd00:cafe:cafe::/48 via fd00:cafe:cafe:$3::2
}
setup eth0 $1 0 && setup eth1 $2 100 && echo ready && exec cat
"#;

/// The three namespaces, and a directory for captures and state. Removed on drop.
struct Place {
    directory: PathBuf,
    /// Processes that keep the namespaces of the client and the server, and that of the simulator.
    holders: Vec<Child>,
}

/// A running simulator.
struct Sim {
    child: Child,
    start: Instant,
}

impl Place {
    /// Returns `None` and reports a skip if namespaces are not permitted.
    fn new(test: &str) -> Option<Place> {
        let directory = std::env::temp_dir().join(format!("fastpath-quic-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let mut place = Place { directory, holders: Vec::new() };
        for _ in 0..2 {
            match place.hold("ip link set lo up && echo ready && exec cat", &[]) {
                Some(holder) => place.holders.push(holder),
                None => return refused(test),
            }
        }
        let ends: Vec<String> = place.holders.iter().map(|holder| holder.id().to_string()).collect();
        let Some(sim) = place.hold(SETUP, &ends) else { return refused(test) };
        place.holders.push(sim);
        Some(place)
    }

    /// Starts a shell in a namespace of its own, and waits until it is ready.
    fn hold(&self, script: &str, arguments: &[String]) -> Option<Child> {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", script, "sh"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        (first_line(&mut child) == "ready\n").then_some(child)
    }

    fn command(&self, place: usize, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holders[place].id().to_string(), "-n", program]);
        command.env("FASTPATH_STATE_DIR", self.directory.join("state")).env_remove("FASTPATH_LAB");
        command.stdin(Stdio::null()).current_dir(&self.directory);
        command
    }

    /// Starts the simulator with a scenario on the link of these tests, and waits until it runs.
    fn sim(&self, scenario: &str, options: &[&str]) -> Sim {
        let mut command = self.command(2, PROGRAM);
        command.args(["quic-sim", "--logs", "logs"]).args(options).arg(format!("{scenario} {LINK}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said: Vec<String> = lines.map_while(Result::ok).take(2).collect();
        assert!(said.last().is_some_and(|line| line.contains("is running")), "{said:?}");
        Sim { child, start }
    }

    /// Opens a UDP socket in a namespace, at an address or any.
    fn socket(&self, place: usize, address: &str) -> UdpSocket {
        let namespace = File::open(format!("/proc/{}/ns/net", self.holders[place].id())).unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let open = move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            UdpSocket::bind(address).unwrap()
        };
        let socket = std::thread::spawn(open).join().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        socket
    }

    /// A server, and a client that sends to it.
    fn ends(&self) -> (UdpSocket, UdpSocket) {
        let server = self.socket(1, &format!("{SERVER}:4433"));
        let client = self.socket(0, &format!("{CLIENT}:40000"));
        client.connect((SERVER, 4433)).unwrap();
        (server, client)
    }

    fn rules(&self) -> String {
        let output = |family| self.command(2, "ip").args([family, "rule"]).output().unwrap().stdout;
        ["-4", "-6"].map(|family| String::from_utf8(output(family)).unwrap()).concat()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for mut holder in self.holders.drain(..) {
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Sim {
    /// Ends the simulator by a signal, and returns what it said.
    fn end(self, signal: Signal) -> String {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        let Output { status, stderr, .. } = self.child.wait_with_output().unwrap();
        let text = String::from_utf8(stderr).unwrap();
        assert!(status.success(), "{status}: {text}");
        assert!(text.contains("frames: "), "{text}");
        text
    }
}

fn refused(test: &str) -> Option<Place> {
    skip(test, "network namespaces are not permitted, or ip(8) is not installed");
    None
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line
}

/// Sends numbered datagrams of `len` bytes, and returns what has arrived: from where, and the
/// bytes.
fn exchange(from: &UdpSocket, to: &UdpSocket, count: u8, len: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    for number in 0..count {
        let mut payload = vec![0xaa; len];
        payload[len - 1] = number;
        from.send(&payload).unwrap();
        pause(Duration::from_millis(1));
    }
    arrived(to)
}

/// Waits for a packet that does not come, for this long.
fn pause(time: Duration) {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(time)).unwrap();
    assert!(silent.recv(&mut [0]).is_err());
}

/// What arrives until nothing has come for a while.
fn arrived(at: &UdpSocket) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| {
        let (len, from) = at.recv_from(&mut buffer).ok()?;
        Some((from, buffer[..len].to_vec()))
    })
    .collect()
}

fn numbers(arrived: &[(SocketAddr, Vec<u8>)]) -> Vec<u8> {
    arrived.iter().map(|(_, payload)| *payload.last().unwrap()).collect()
}

#[test]
fn packets_pass_the_network_alone_and_nothing_stays() {
    let Some(place) = Place::new("simple") else { return };
    let rules = place.rules();
    let sim = place.sim("simple-p2p", &[]);
    for [server, client] in [[SERVER, CLIENT], ["fd00:cafe:cafe:100::100", "fd00:cafe:cafe:0::100"]] {
        let address: IpAddr = server.parse().unwrap();
        let server = place.socket(1, &SocketAddr::new(address, 4433).to_string());
        let client = place.socket(0, &SocketAddr::new(client.parse().unwrap(), 40000).to_string());
        client.connect((address, 4433)).unwrap();
        let first = exchange(&client, &server, 3, 1200);
        // Each once, although the kernel between them forwards.
        assert_eq!(numbers(&first), [0, 1, 2]);
        let sent = Instant::now();
        client.send(b"ping").unwrap();
        let mut buffer = [0; 16];
        let (_, from) = server.recv_from(&mut buffer).unwrap();
        server.send_to(b"pong", from).unwrap();
        client.recv(&mut buffer).unwrap();
        assert!(sent.elapsed() >= Duration::from_millis(10), "{:?}", sent.elapsed());
    }
    let namespace = File::open(format!("/proc/{}/ns/net", place.holders[0].id())).unwrap();
    let ready = std::thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        TcpStream::connect("193.167.0.2:57832").is_ok()
    });
    assert!(ready.join().unwrap(), "the port that tells that the network is ready");
    assert_ne!(place.rules(), rules);
    sim.end(Signal::SIGTERM);
    assert_eq!(place.rules(), rules);
    for file in ["trace_node_left.pcap", "trace_node_right.pcap"] {
        let bytes = fs::read(place.directory.join("logs").join(file)).unwrap();
        let pings = bytes.windows(4).filter(|window| window == b"ping").count();
        assert_eq!(pings, 2, "{file} of {} bytes", bytes.len());
    }
    let sim = place.sim("simple-p2p", &["--no-captures"]);
    sim.end(Signal::SIGINT);
}

#[test]
fn datagrams_are_lost_by_number_or_by_chance_and_seed() {
    let Some(place) = Place::new("losses") else { return };
    let (server, client) = place.ends();
    let sim = place.sim("droplist --drops_to_server=1,3,4 --drops_to_client=2", &[]);
    assert_eq!(numbers(&exchange(&client, &server, 6, 100)), [1, 4, 5]);
    server.connect((CLIENT, 40000)).unwrap();
    assert_eq!(numbers(&exchange(&server, &client, 4, 100)), [0, 2, 3]);
    let text = sim.end(Signal::SIGTERM);
    assert!(text.contains("4 loss"), "{text}");
    let lossy = |seed: &str| {
        let scenario = "drop-rate --rate_to_server=60 --burst_to_server=2 --rate_to_client=0";
        let sim = place.sim(scenario, &["--seed", seed, "--no-captures"]);
        let server = place.socket(1, &format!("{SERVER}:4434"));
        let client = place.socket(0, &format!("{CLIENT}:40001"));
        client.connect((SERVER, 4434)).unwrap();
        let arrived = numbers(&exchange(&client, &server, 100, 100));
        sim.end(Signal::SIGTERM);
        arrived
    };
    let passed = lossy("7");
    assert_eq!(passed, lossy("7"));
    assert_ne!(passed, lossy("8"));
    let gaps: BTreeSet<u8> = passed.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, BTreeSet::from([1, 2, 3]), "at most two in a row: {passed:?}");
}

#[test]
fn a_byte_of_each_corrupted_datagram_changes_and_its_checksum_is_correct() {
    let Some(place) = Place::new("corrupt") else { return };
    let (server, client) = place.ends();
    let sim = place.sim("corrupt-rate --rate_to_server=100 --burst_to_server=3 --rate_to_client=0", &[]);
    let arrived = exchange(&client, &server, 40, 1200);
    // The kernel of the server discards datagrams with wrong checksums.
    assert_eq!(arrived.len(), 40);
    let wrong = |payload: &[u8]| -> Vec<usize> { (0..1199).filter(|i| payload[*i] != 0xaa).collect() };
    for (place, (_, payload)) in arrived.iter().enumerate() {
        let expected = usize::from(place % 4 != 3);
        assert!(wrong(payload).len() == expected && wrong(payload).iter().all(|i| *i < 50), "{place}");
    }
    let negotiation = [&[0x80, 0, 0, 0, 0, 0, 0][..], &[7; 30]].concat();
    (0..4).for_each(|_| assert_eq!(client.send(&negotiation).unwrap(), 37));
    assert!(self::arrived(&server).iter().all(|(_, payload)| *payload == negotiation));
    sim.end(Signal::SIGTERM);
}

#[test]
fn a_blackhole_takes_everything_for_a_while() {
    let Some(place) = Place::new("blackhole") else { return };
    let (server, client) = place.ends();
    let sim = place.sim("blackhole --on=700ms --off=400ms --direction=toserver", &["--no-captures"]);
    server.connect((CLIENT, 40000)).unwrap();
    let mut sent = Vec::new();
    while sim.start.elapsed() < Duration::from_millis(1800) {
        sent.push(sim.start.elapsed());
        client.send(&[sent.len() as u8]).unwrap();
        server.send(&[sent.len() as u8]).unwrap();
        pause(Duration::from_millis(20));
    }
    let [to_server, to_client] = [&server, &client].map(|end| numbers(&arrived(end)));
    assert_eq!(to_client.len(), sent.len());
    let lost: Vec<usize> = (1..=sent.len()).filter(|i| !to_server.contains(&(*i as u8))).collect();
    assert!(lost.windows(2).all(|pair| pair[1] == pair[0] + 1), "in a row: {lost:?}");
    let (first, last) = (sent[lost[0] - 1], sent[lost[lost.len() - 1] - 1]);
    assert!(last - first <= Duration::from_millis(400) && lost.len() > 5, "{first:?} to {last:?}");
    let text = sim.end(Signal::SIGTERM);
    assert!(text.contains(&format!("{} loss", lost.len())), "{text}");
}

#[test]
fn ports_and_addresses_of_the_client_are_rebound() {
    let Some(place) = Place::new("rebind") else { return };
    for (words, moves) in [("", false), ("--rebind-addr", true)] {
        let (server, client) = place.ends();
        let scenario = format!("rebind --first-rebind=500ms --rebind-freq=400ms {words}");
        let sim = place.sim(&scenario, &["--no-captures"]);
        client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (mut seen, mut answers) = (Vec::new(), 0);
        let mut buffer = [0; 16];
        while sim.start.elapsed() < Duration::from_millis(1700) {
            client.send(b"ping").unwrap();
            let (_, from) = server.recv_from(&mut buffer).unwrap();
            server.send_to(b"pong", from).unwrap();
            // A rebinding may come between.
            answers += usize::from(client.recv(&mut buffer).is_ok());
            if seen.last() != Some(&from) {
                seen.push(from);
            }
        }
        assert_eq!(seen[0], SocketAddr::new(CLIENT.parse().unwrap(), 40000), "before the first rebinding");
        assert!(seen.len() >= 3 && answers > 20, "{seen:?} {answers}");
        let ports: BTreeSet<u16> = seen.iter().map(SocketAddr::port).collect();
        let addresses: BTreeSet<IpAddr> = seen.iter().map(SocketAddr::ip).collect();
        assert!(ports.len() >= 3 && (addresses.len() >= 3) == moves, "{seen:?}");
        sim.end(Signal::SIGTERM);
    }
}

#[test]
fn ports_of_the_engine_send_and_receive_traffic_between_interfaces() {
    let Some(place) = Place::new("traffic") else { return };
    let spec = "[host.client]\nport = 'eth0'\naddress = '193.167.0.100/24'\n\
         [host.server]\nport = 'eth1'\naddress = '193.167.0.101/24'\n[host.source]\n[host.sink]\n\
         [router.r]\n[[link]]\nbetween = ['client', 'r']\n[[link]]\nbetween = ['server', 'r']\n\
         [[link]]\nbetween = ['source', 'r']\n[[link]]\nbetween = ['r', 'sink']\nloss = { kind = 'packets', numbers = [3] }\n\
         [[traffic]]\nfrom = 'source'\nto = 'sink'\nkind = 'constant'\nrate = '800kbit'\nsize = 1000\nstop = '500ms'\n";
    fs::write(place.directory.join("net.toml"), spec.replace("193.167.0.101", "193.167.100.100")).unwrap();
    let mut command = place.command(2, PROGRAM);
    let mut run =
        command.args(["run", "net.toml"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(first_line(&mut run).contains("is running"));
    pause(Duration::from_millis(700));
    let report = place.command(2, PROGRAM).args(["ctl", "report", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let links = report["report"]["links"].as_array().or(report["links"].as_array()).unwrap();
    let sent = |link: &serde_json::Value| link.to_string().contains("\"source-r\"");
    assert!(links.iter().any(sent), "{report}");
    kill(Pid::from_raw(run.id() as i32), Signal::SIGTERM).unwrap();
    let Output { stderr, .. } = run.wait_with_output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert!(text.contains("1 loss"), "{text}");
}

/// Runs a server and a client of aioquic over a scenario. The client opens connections that each
/// ask for `size` bytes until `seconds` have passed. Returns the number of right answers.
fn aioquic(place: &Place, scenario: &str, connections: u32, size: u32, seconds: &str) -> u32 {
    let python = python().expect("the caller has looked");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/quic_sim.py");
    let program = |end: usize, role: &str| {
        let mut command = place.command(end, python.to_str().unwrap());
        command.args([script, role, ".", SERVER, "4433"]).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let mut server = program(1, "server").stdout(Stdio::piped()).spawn().unwrap();
    let is_ready = first_line(&mut server) == "ready\n";
    let sim = place.sim(scenario, &["--no-captures", "--seed", "3"]);
    let mut client = program(0, "client");
    client.args([&connections.to_string(), &size.to_string(), seconds]);
    let mut output = Command::new("timeout");
    output.arg("40").arg(client.get_program()).args(client.get_args());
    let output = output.current_dir(&place.directory).stdin(Stdio::null()).output().unwrap();
    sim.end(Signal::SIGTERM);
    let _ = server.kill();
    let _ = server.wait();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(is_ready && output.status.success(), "{scenario}: {output:?}");
    text.trim().parse().unwrap()
}

/// The Python of the virtual environment that `cargo xtask test` makes, if it has aioquic.
fn python() -> Option<PathBuf> {
    let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../python").canonicalize().ok()?;
    let python = venv.join("bin/python");
    let found = Command::new(&python).args(["-c", "import aioquic"]).output();
    found.is_ok_and(|output| output.status.success()).then_some(python)
}

#[test]
fn connections_of_aioquic_survive_what_the_runner_tests() {
    let test = "aioquic";
    let Some(place) = Place::new(test) else { return };
    if python().is_none() {
        return skip(test, "aioquic is not here (cargo xtask test installs it)");
    }
    // Handshake loss, transfer loss, corruption of handshakes and of transfers.
    let rates = "--rate_to_client=30 --rate_to_server=30 --burst_to_client=3 --burst_to_server=3";
    assert_eq!(aioquic(&place, &format!("drop-rate {rates}"), 5, 1000, "0"), 5);
    let rates = "--rate_to_client=2 --rate_to_server=2";
    assert_eq!(aioquic(&place, &format!("drop-rate {rates}"), 1, 500_000, "0"), 1);
    let rates = "--rate_to_client=20 --rate_to_server=20 --burst_to_client=2 --burst_to_server=2";
    assert_eq!(aioquic(&place, &format!("corrupt-rate {rates}"), 3, 20_000, "0"), 3);
    assert_eq!(aioquic(&place, "droplist --drops_to_client=1 --drops_to_server=2", 1, 100_000, "0"), 1);
    assert!(aioquic(&place, "blackhole --on=1s --off=1s", 1, 2000, "3") > 10);
    assert!(aioquic(&place, "rebind --first-rebind=1s --rebind-freq=1s", 1, 2000, "3") > 10);
    assert!(aioquic(&place, "rebind --first-rebind=1s --rebind-freq=1s --rebind-addr", 1, 2000, "3") > 10);
}

#[test]
fn scenarios_with_mistakes_start_nothing() {
    let run = |arguments: &[&str]| {
        let output = Command::new(PROGRAM).arg("quic-sim").args(arguments).env_remove("SCENARIO").output();
        let Output { status, stdout, stderr } = output.unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };
    let (code, _, text) = run(&["simple-p2p --delay=15ms --bandwidth=fast --queue=25"]);
    assert_eq!(code, Some(2));
    assert!(
        text.contains("scenario:25: --bandwidth: 'fast' is not a rate; write --bandwidth=10Mbps"),
        "{text}"
    );
    assert!(run(&[]).2.contains("there is no scenario: write for example"));
    let (code, text, _) = run(&[
        "--print",
        "drop-rate",
        "--delay=15ms",
        "--bandwidth=10Mbps",
        "--queue=25",
        "--rate_to_client=10",
        "--rate_to_server=0",
        "--burst_to_client=3",
    ]);
    assert_eq!(code, Some(0));
    let network: serde_json::Value = serde_json::from_str(&text).unwrap();
    let loss = &network["links"][0]["backward"]["loss"];
    assert_eq!((loss["of"].as_str(), loss["burst_max"].as_u64()), (Some("udp"), Some(3)), "{network}");
}
