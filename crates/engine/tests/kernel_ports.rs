//! Ports on real interfaces in real network namespaces: AF_PACKET and TAP carry the kernel's own TCP.
#![cfg(target_os = "linux")]

mod common;

use common::{Namespace, can_ip, finish, ip, options, skip, two_hosts, with_namespaces};
use fastpath_engine::port::{AfPacket, Port, TapPort};
use fastpath_engine::{Idle, Report, Running, attach, start};
use fastpath_link::PipeSpec;
use fastpath_net::EdgeId;
use fastpath_units::{Duration, Rng};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

const TRANSFER: usize = 4 << 20;

/// Two hosts whose interfaces `eth0` have the addresses 10.9.0.1 and .2, and an engine between them.
struct Lab {
    hosts: [Namespace; 2],
    running: Running,
}

impl Lab {
    /// Hosts on TAP interfaces.
    fn with_taps(pipe: PipeSpec) -> Lab {
        let hosts = [Namespace::new(), Namespace::new()];
        let tap = |end: usize| {
            hosts[end].run(|| {
                let port = TapPort::open("eth0").unwrap();
                configure(end);
                (EdgeId(end as u32), Box::new(port) as Box<dyn Port>)
            })
        };
        let running =
            start(two_hosts(pipe, [None, None]), vec![tap(0), tap(1)], options(Idle::Save)).unwrap();
        Lab { hosts, running }
    }

    /// Hosts on veth pairs whose other ends are `va` and `vb` of a namespace in the middle.
    fn with_veths(pipe: PipeSpec) -> (Lab, Namespace) {
        let hosts = [Namespace::new(), Namespace::new()];
        let middle = Namespace::new();
        for (end, name) in ["va", "vb"].into_iter().enumerate() {
            veth(&middle, name, &hosts[end]);
            hosts[end].run(|| configure(end));
        }
        let topology = two_hosts(pipe, [Some("va"), Some("vb")]);
        let ports = middle.run(|| attach(&topology).unwrap());
        (Lab { hosts, running: start(topology, ports, options(Idle::Save)).unwrap() }, middle)
    }

    /// Sends bytes from the first host to the second by TCP and compares what arrives.
    fn transfer(&self, destination: &str) {
        let mut rng = Rng::new(7);
        let sent: Vec<u8> = (0..TRANSFER / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        let listener = self.hosts[1].run(|| TcpListener::bind((destination, 4000)).unwrap());
        let mut received = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                self.hosts[0]
                    .run(|| TcpStream::connect((destination, 4000)).unwrap().write_all(&sent).unwrap());
            });
            listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        });
        assert!(received == sent, "{} of {} bytes came, or others", received.len(), sent.len());
    }

    fn finish(self) -> Report {
        finish(self.running)
    }
}

/// A veth pair: `name` in `middle`, `eth0` in `host`.
fn veth(middle: &Namespace, name: &str, host: &Namespace) {
    // The pair is made inside the host and one end moved by its namespace's file.
    middle.run(|| {
        let here = std::process::id();
        let thread = nix::unistd::gettid();
        host.run(|| {
            ip(&format!("link add eth0 type veth peer name {name} netns /proc/{here}/task/{thread}/ns/net"))
        });
        ip(&format!("link set {name} up"));
    });
}

fn configure(end: usize) {
    ip(&format!("address add 10.9.0.{}/24 dev eth0", end + 1));
    ip(&format!("address add fd00:9::{}/64 dev eth0 nodad", end + 1));
    ip("link set eth0 up");
}

#[test]
fn tcp_through_taps_arrives_whole_and_the_link_sees_segments() {
    with_namespaces("tcp_through_taps_arrives_whole_and_the_link_sees_segments", || {
        let lab = Lab::with_taps(PipeSpec::default());
        lab.transfer("10.9.0.2");
        lab.transfer("fd00:9::2");
        let report = lab.finish();
        let forward = &report.links[0].directions[0];
        // No segment is longer than the MTU allows: there are at least as many as that takes.
        assert!(forward.frames_in as usize >= 2 * TRANSFER / 1460, "{forward:?}");
        assert!(forward.bytes_in / forward.frames_in <= 1514, "{forward:?}");
        assert_eq!(report.ports.iter().map(|port| port.counters.rx_malformed).sum::<u64>(), 0);
    });
}

#[test]
fn tcp_through_packet_sockets_arrives_whole_with_the_hosts_offloads_on() {
    with_namespaces("tcp_through_packet_sockets_arrives_whole_with_the_hosts_offloads_on", || {
        let (lab, _middle) = Lab::with_veths(PipeSpec::default());
        lab.transfer("10.9.0.2");
        lab.transfer("fd00:9::2");
        let report = lab.finish();
        let forward = &report.links[0].directions[0];
        assert!(forward.frames_in as usize >= 2 * TRANSFER / 1460, "{forward:?}");
        assert_eq!(report.ports.iter().map(|port| port.counters.rx_malformed).sum::<u64>(), 0);
    });
}

#[test]
fn vlan_tags_taken_off_by_the_kernel_come_through() {
    with_namespaces("vlan_tags_taken_off_by_the_kernel_come_through", || {
        if !Namespace::new().run(|| can_ip("link add link lo name v5 type vlan id 5")) {
            return skip("vlan_tags_taken_off_by_the_kernel_come_through", "the kernel has no VLAN devices");
        }
        let (lab, _middle) = Lab::with_veths(PipeSpec::default());
        for (end, host) in lab.hosts.iter().enumerate() {
            host.run(|| {
                ip("link add link eth0 name v5 type vlan id 5");
                ip(&format!("address add 10.5.0.{}/24 dev v5", end + 1));
                ip("link set v5 up");
            });
        }
        lab.transfer("10.5.0.2");
        lab.finish();
    });
}

#[test]
fn the_delay_of_the_link_is_seen_by_the_hosts() {
    with_namespaces("the_delay_of_the_link_is_seen_by_the_hosts", || {
        let lab = Lab::with_taps(PipeSpec { delay: Duration::from_ms(20), ..PipeSpec::default() });
        let echo = lab.hosts[1].run(|| UdpSocket::bind("10.9.0.2:5000").unwrap());
        let socket = lab.hosts[0].run(|| UdpSocket::bind("10.9.0.1:0").unwrap());
        socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let mut rtt_ms: Vec<f64> = (0..11)
            .map(|_| {
                let sent_at = Instant::now();
                socket.send_to(b"ping", "10.9.0.2:5000").unwrap();
                let mut buffer = [0; 16];
                let (len, from) = echo.recv_from(&mut buffer).unwrap();
                echo.send_to(&buffer[..len], from).unwrap();
                socket.recv_from(&mut buffer).unwrap();
                sent_at.elapsed().as_secs_f64() * 1000.0
            })
            .collect();
        rtt_ms.sort_by(f64::total_cmp);
        // The first round also resolves addresses; the median does not.
        assert!(rtt_ms[0] >= 40.0, "{rtt_ms:?}");
        assert!(rtt_ms[5] < 45.0, "{rtt_ms:?}");
        lab.finish();
    });
}

#[test]
fn an_interface_that_is_removed_is_reported_and_the_rest_goes_on() {
    with_namespaces("an_interface_that_is_removed_is_reported_and_the_rest_goes_on", || {
        let (lab, middle) = Lab::with_veths(PipeSpec::default());
        middle.run(|| ip("link delete va"));
        let failed = |report: Report| report.ports[0].failure.clone();
        let start = Instant::now();
        while failed(lab.running.report().unwrap()).is_none() {
            assert!(start.elapsed().as_secs() < 5, "the engine did not notice");
        }
        assert_eq!(failed(lab.finish()).as_deref(), Some("port va: the interface is gone"));

        let lab = Lab::with_taps(PipeSpec::default());
        lab.hosts.iter().for_each(|host| host.run(|| ip("link delete eth0")));
        let report = lab.running.join().unwrap();
        assert!(report.ports.iter().all(|port| port.failure.is_some()), "{:?}", report.ports);
    });
}

#[test]
fn an_interface_that_is_down_loses_frames_and_comes_back() {
    with_namespaces("an_interface_that_is_down_loses_frames_and_comes_back", || {
        let (lab, middle) = Lab::with_veths(PipeSpec::default());
        middle.run(|| ip("link set vb down"));
        lab.hosts[0].run(|| UdpSocket::bind("10.9.0.1:0").unwrap().send_to(b"lost", "10.9.0.2:9").unwrap());
        let start = Instant::now();
        while lab.running.report().unwrap().ports[1].counters.tx_down == 0 {
            assert!(start.elapsed().as_secs() < 5, "nothing was counted");
        }
        middle.run(|| ip("link set vb up"));
        lab.transfer("10.9.0.2");
        assert_eq!(lab.finish().ports[1].failure, None);
    });
}

#[test]
fn interfaces_that_cannot_be_opened_say_why() {
    with_namespaces("interfaces_that_cannot_be_opened_say_why", || {
        Namespace::new().run(|| {
            let error = |name| AfPacket::open(name).err().unwrap().to_string();
            assert_eq!(error("eth7"), "port eth7: no such interface (have: lo)");
            assert!(error("a name that is much too long").contains("no such interface"));
            let _first = AfPacket::open("lo").unwrap();
            let expected = format!(
                "port lo: in use by another engine (process {}): stop that first",
                std::process::id()
            );
            assert_eq!(error("lo"), expected);
            let _tap = TapPort::open("tap0").unwrap();
            assert!(TapPort::open("tap0").err().unwrap().to_string().starts_with("port tap0: in use"));
        });
    });
}

#[test]
fn receive_offload_is_off_while_the_port_is_open_and_restored_after() {
    with_namespaces("receive_offload_is_off_while_the_port_is_open_and_restored_after", || {
        Namespace::new().run(|| {
            let gro = || {
                let output = std::process::Command::new("ethtool").args(["-k", "tap0"]).output();
                output.map(|output| {
                    String::from_utf8(output.stdout).unwrap().contains("generic-receive-offload: on")
                })
            };
            let _tap = TapPort::open("tap0").unwrap();
            let Ok(before) = gro() else { return };
            assert!(before);
            let port = AfPacket::open("tap0").unwrap();
            assert!(!gro().unwrap());
            drop(port);
            assert!(gro().unwrap());
        });
    });
}
