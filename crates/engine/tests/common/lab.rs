//! Two hosts as network namespaces with an engine between them. Dropping a value removes what it
//! created.

use super::two_hosts;
use fastpath_engine::port::{AfPacket, Port, TapPort};
use fastpath_engine::{Options, Running, attach, start};
use fastpath_link::PipeSpec;
use fastpath_net::EdgeId;
use fastpath_units::Rng;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;

/// Bytes of [`Lab::transfer`].
pub(crate) const TRANSFER: usize = 4 << 20;

/// Receives the next datagram of a socket with a timeout. A signal that stopped the process, by a
/// debugger or a suspend, interrupts the call (signal(7)).
pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> usize {
    loop {
        match socket.recv(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => return received.expect("a datagram comes"),
        }
    }
}

/// Two hosts whose interfaces `eth0` have the addresses 10.9.0.1 and .2, and an engine between
/// them.
pub(crate) struct Lab {
    pub(crate) hosts: [Namespace; 2],
    /// The namespace of the engine's ends of veth pairs.
    pub(crate) middle: Namespace,
    pub(crate) running: Running,
}

impl Lab {
    /// Hosts on TAP interfaces.
    pub(crate) fn with_taps(pipe: PipeSpec, options: Options) -> Lab {
        let hosts = [Namespace::new(), Namespace::new()];
        let tap = |end: usize| {
            hosts[end].run(|| {
                let port = TapPort::open("eth0").unwrap();
                configure(end);
                (EdgeId(end as u32), Box::new(port) as Box<dyn Port>)
            })
        };
        let running = start(two_hosts(pipe, [None, None]), vec![tap(0), tap(1)], options).unwrap();
        Lab { hosts, middle: Namespace::new(), running }
    }

    /// The first host on a TAP interface, the second on a veth pair.
    pub(crate) fn with_tap_and_veth(pipe: PipeSpec, options: Options) -> Lab {
        let hosts = [Namespace::new(), Namespace::new()];
        let middle = Namespace::new();
        veth(&middle, "vb", &hosts[1]);
        hosts[1].run(|| configure(1));
        let tap = hosts[0].run(|| {
            let port = TapPort::open("eth0").unwrap();
            configure(0);
            Box::new(port) as Box<dyn Port>
        });
        let socket = middle.run(|| Box::new(AfPacket::open("vb").unwrap()) as Box<dyn Port>);
        let ports = vec![(EdgeId(0), tap), (EdgeId(1), socket)];
        let running = start(two_hosts(pipe, [None, None]), ports, options).unwrap();
        Lab { hosts, middle, running }
    }

    /// Hosts on veth pairs whose other ends are `va` and `vb` of a namespace in the middle.
    pub(crate) fn with_veths(pipe: PipeSpec, options: Options) -> Lab {
        Lab::with_ports("", pipe, options)
    }

    /// As [`Lab::with_veths`], on ports of a kind (`xdp:`).
    pub(crate) fn with_ports(way: &str, pipe: PipeSpec, options: Options) -> Lab {
        let hosts = [Namespace::new(), Namespace::new()];
        let middle = Namespace::new();
        for (end, name) in ["va", "vb"].into_iter().enumerate() {
            veth(&middle, name, &hosts[end]);
            hosts[end].run(|| configure(end));
        }
        let ports = ["va", "vb"].map(|name| format!("{way}{name}"));
        let topology = two_hosts(pipe, ports.each_ref().map(|port| Some(port.as_str())));
        let ports = middle.run(|| attach(&topology, &options.notice).unwrap());
        Lab { hosts, middle, running: start(topology, ports, options).unwrap() }
    }

    /// Sends [`TRANSFER`] bytes from the first host to the second by TCP and compares what arrives.
    pub(crate) fn transfer(&self, destination: &str) {
        let mut rng = Rng::new(7);
        let sent: Vec<u8> = (0..TRANSFER / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        let listener = self.hosts[1].run(|| TcpListener::bind((destination, 4000)).unwrap());
        let mut received = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = self.hosts[0].run(|| TcpStream::connect((destination, 4000)).unwrap());
                stream.write_all(&sent).unwrap();
            });
            listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        });
        assert!(received == sent, "{} of {} bytes came, or others", received.len(), sent.len());
    }
}

/// A veth pair: `name` in `middle`, `eth0` in `host`.
pub(crate) fn veth(middle: &Namespace, name: &str, host: &Namespace) {
    veth_with_queues(middle, name, host, 1);
}

/// As [`veth`], with more than one queue in each direction.
pub(crate) fn veth_with_queues(middle: &Namespace, name: &str, host: &Namespace, queues: u32) {
    // The pair is created inside the host, and one end is moved by the file of the other namespace.
    middle.run(|| {
        let there = own_namespace();
        let queues = format!("numtxqueues {queues} numrxqueues {queues}");
        let pair = format!("link add eth0 {queues} type veth peer name {name} netns {there} {queues}");
        host.run(|| ip(&pair));
        ip(&format!("link set {name} up"));
    });
}

/// Moves an interface from one namespace into another.
pub(crate) fn move_link(from: &Namespace, name: &str, to: &Namespace) {
    to.run(|| {
        let there = own_namespace();
        from.run(|| ip(&format!("link set {name} netns {there}")));
    });
}

/// Returns the file of the thread's network namespace, for as long as the thread lives.
fn own_namespace() -> String {
    format!("/proc/{}/task/{}/ns/net", std::process::id(), nix::unistd::gettid())
}

/// Gives `eth0` of the thread's namespace the addresses of the host at this end of the link, and
/// starts it.
pub(crate) fn configure(end: usize) {
    ip(&format!("address add 10.9.0.{}/24 dev eth0", end + 1));
    ip(&format!("address add fd00:9::{}/64 dev eth0 nodad", end + 1));
    ip("link set eth0 up");
}

/// A network namespace without a name. It lives as long as this value, and so do its devices.
pub(crate) struct Namespace(File);

impl Namespace {
    /// Creates an empty namespace; only its loopback is up.
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
    let status = Command::new("ip").args(arguments.split_whitespace()).status().expect("ip runs");
    assert!(status.success(), "ip {arguments}");
}

/// As [`with_namespaces`], for a test that also needs TAP devices.
pub(crate) fn with_taps(name: &str, test: impl FnOnce()) {
    match File::options().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => with_namespaces(name, test),
        Err(error) => skip(name, &format!("/dev/net/tun: {error}")),
    }
}

/// Runs `test` where namespaces may be created: here as root, else in this test program again
/// inside a user namespace. Where neither is possible the test is skipped with a message.
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

/// Records that a test did not run, where the summary of all tests looks for it.
pub(crate) fn skip(name: &str, why: &str) {
    let line = format!("SKIPPED: {name}: {why}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("FASTPATH_SKIP_LOG") {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
        log.and_then(|mut log| log.write_all(line.as_bytes()))
            .expect("the log of skipped tests can be written");
    }
}
