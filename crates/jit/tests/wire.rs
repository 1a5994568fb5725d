//! A switch in the kernel between hosts: TCP and UDP through rules that change addresses, tags and
//! TTLs, with super-packets, and checksums that are not filled in yet.
#![cfg(target_os = "linux")]

use fastpath_jit::ebpf::{KernelError, KernelPort, KernelSwitch};
use fastpath_ofctl::{self as ofctl, PortNames};
use fastpath_switch::{Action, Limits, Port, Switch};
use fastpath_sys::packet::PacketSocket;
use fastpath_units::Time;
use nix::sched::{CloneFlags, setns, unshare};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

/// Bytes of a transfer.
const TRANSFER: usize = 4 << 20;

/// A network namespace, which lives as long as this value.
struct Namespace(File);

impl Namespace {
    fn new() -> Namespace {
        let enter = || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            ip("link set lo up");
            File::open("/proc/thread-self/ns/net").unwrap()
        };
        Namespace(std::thread::spawn(enter).join().unwrap())
    }

    fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| {
            let inside = || {
                setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
                work()
            };
            scope.spawn(inside).join().unwrap()
        })
    }
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// Two hosts at the ports 1 and 2 of a switch. Each has the address .1 or .2 on `eth0`; the first
/// knows the second as 10.9.0.9 too.
struct Wire {
    hosts: [Namespace; 2],
    middle: Namespace,
}

impl Wire {
    fn new() -> Wire {
        let (hosts, middle) = ([Namespace::new(), Namespace::new()], Namespace::new());
        for (end, host) in hosts.iter().enumerate() {
            middle.run(|| {
                let there = format!("/proc/{}/task/{}/ns/net", std::process::id(), nix::unistd::gettid());
                host.run(|| ip(&format!("link add eth0 type veth peer name v{end} netns {there}")));
                ip(&format!("link set v{end} up"));
            });
            host.run(|| {
                let number = end + 1;
                ip(&format!("link set eth0 address 02:00:00:00:00:0{number}"));
                ip(&format!("address add 10.9.0.{number}/24 dev eth0"));
                ip("link set eth0 up");
            });
        }
        hosts[0].run(|| ip("neighbour add 10.9.0.9 lladdr 02:00:00:00:00:99 dev eth0"));
        Wire { hosts, middle }
    }

    /// Sends bytes from the first host to an address of the second, which sends them back.
    fn transfer(&self, listen: &str, connect: &str) {
        let sent: Vec<u8> = (0..TRANSFER).map(|i| (i * 7 + i / 251) as u8).collect();
        let listener = self.hosts[1].run(|| TcpListener::bind((listen, 4000)).unwrap());
        let mut received = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = self.hosts[0].run(|| TcpStream::connect((connect, 4000)).unwrap());
                stream.write_all(&sent).unwrap();
            });
            listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        });
        assert!(received == sent, "{} of {} bytes came, or others", received.len(), sent.len());
    }
}

impl Wire {
    /// Sends a frame with a tag from the first host; it comes with another one, whose other bits
    /// are those of the first.
    fn tagged(&self) {
        let index = || fastpath_sys::interface::index_of("eth0").unwrap();
        let mut there = self.hosts[1].run(|| PacketSocket::open(index(), 2048, 64).unwrap());
        let mut frame = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat();
        frame.extend([0x81, 0x00, 0xa0, 5, 0x88, 0xb5]);
        frame.resize(100, 0x5a);
        let sent =
            self.hosts[0].run(|| PacketSocket::sender(index()).unwrap().send([&frame[..]].into_iter()));
        assert_eq!(sent.unwrap(), 1);
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            let tag = there.receive(|received| (received.tag, received.bytes.get(14..).map(<[u8]>::to_vec)));
            match tag {
                Some((Some(tag), payload)) => {
                    assert_eq!((tag, payload), ([0x8100, 0xa006], Some(frame[18..].to_vec())));
                    return;
                }
                _ => std::thread::yield_now(),
            }
        }
        panic!("no frame with a tag came");
    }
}

const RULES: &str = "
    table=0,priority=30,in_port=1,ip,nw_dst=10.9.0.9,actions=set_field:02:00:00:00:00:02->eth_dst,set_field:10.9.0.2->ip_dst,push_vlan:0x8100,set_field:4103->vlan_vid,goto_table:1
    table=0,priority=30,in_port=2,tcp,nw_src=10.9.0.2,tp_src=4000,actions=set_field:10.9.0.9->ip_src,set_field:02:00:00:00:00:99->eth_src,output:1
    table=0,priority=20,in_port=1,dl_vlan=5,actions=set_field:4102->vlan_vid,output:2
    table=0,priority=20,in_port=2,dl_vlan=6,actions=set_field:4101->vlan_vid,output:1
    table=0,priority=10,in_port=1,actions=output:2
    table=0,priority=10,in_port=2,udp,tp_dst=5001,actions=set_field:5002->udp_dst,dec_ttl,output:1
    table=0,priority=5,in_port=2,actions=output:1
    table=1,priority=1,dl_vlan=7,actions=pop_vlan,dec_ttl,output:2
";

fn switch() -> Switch {
    let mut switch = Switch::new(Limits { tables: 2, ..Limits::default() });
    (1..=2).for_each(|number| switch.set_port(number, Port::up()));
    let lines = ofctl::parse(RULES, &PortNames::new()).unwrap();
    ofctl::load(&mut switch, Time::ZERO, &lines).unwrap();
    switch
}

#[test]
fn hosts_reach_each_other_through_rules_that_change_their_packets() {
    let is_root = nix::unistd::geteuid().is_root();
    let may_enter = || std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok()).join().unwrap();
    if !is_root || !may_enter() || Command::new("ip").arg("-V").output().is_err() {
        return println!("SKIPPED hosts on tables in the kernel: no rights, or no ip(8)");
    }
    let wire = Wire::new();
    let mut switch = switch();
    let mut kernel = match wire.middle.run(|| {
        let at = |name: &str| KernelPort {
            interface: fastpath_sys::interface::index_of(name).unwrap(),
            user: None,
        };
        let mut kernel = KernelSwitch::new(&switch, BTreeMap::from([(1, at("v0")), (2, at("v1"))]))?;
        kernel.attach()?;
        Ok::<_, KernelError>(kernel)
    }) {
        Err(error) if error.is_refusal() => {
            return println!("SKIPPED hosts on tables in the kernel: bpf(2) is not permitted");
        }
        made => made.unwrap_or_else(|error| panic!("{error}")),
    };
    assert_eq!(kernel.tables().in_user(), []);
    wire.transfer("10.9.0.2", "10.9.0.9");
    kernel.tables_mut().credit(&mut switch, Time::ZERO).unwrap();
    let sent: u64 = switch.tables()[1].flows().map(|(_, flow)| flow.counters.bytes).sum();
    // Segments of at most 1514 bytes, each counted with its headers.
    let segments = TRANSFER as u64 / 1448;
    assert!(sent > TRANSFER as u64 + segments * 66, "{sent}");
    let packets: u64 = switch.tables()[1].flows().map(|(_, flow)| flow.counters.packets).sum();
    assert!(packets > segments, "{packets}");
    wire.tagged();
    // The receiver verifies the checksum of a datagram whose port has changed.
    let [first, second] = [0, 1].map(|end| {
        wire.hosts[end]
            .run(|| UdpSocket::bind((if end == 0 { "10.9.0.1" } else { "10.9.0.2" }, 5002)).unwrap())
    });
    first.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    second.send_to(b"hello", "10.9.0.1:5001").unwrap();
    let mut buffer = [0; 16];
    assert_eq!(first.recv(&mut buffer).unwrap(), 5);
    kernel.pause(&mut switch, Time::ZERO).unwrap();
    let udp = switch.tables()[0]
        .flows()
        .find(|(_, flow)| flow.instructions.apply.contains(&Action::DecNwTtl))
        .unwrap();
    assert_eq!(udp.1.counters.packets, 1);
}
