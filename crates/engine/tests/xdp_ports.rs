//! AF_XDP ports on real interfaces in real network namespaces, with the kernel's own TCP and
//! offloads.
#![cfg(target_os = "linux")]

mod common;

use common::lab::{Lab, Namespace, TRANSFER, configure, ip, receive, veth_with_queues, with_namespaces};
use common::{finish, options, two_hosts};
use fastpath_engine::port::{AfPacket, AfXdp, Burst, OpenError, Port, XdpMemory, XdpMode};
use fastpath_engine::{Idle, Notice, Options, Report, attach, start};
use fastpath_link::PipeSpec;
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Instant;

const WAYS: [&str; 2] = ["xdp-generic:", "xdp-native:"];

/// Runs `test` where XDP programs may be loaded. (In a user namespace they may not, which has its
/// own test.)
fn with_xdp(name: &str, test: impl FnOnce()) {
    with_namespaces(name, || {
        let refused = Namespace::new().run(|| {
            let opened = AfXdp::open("lo", Some(XdpMode::Generic), &mut XdpMemory::default());
            opened.err().filter(|error| matches!(error, OpenError::NotPermitted { .. }))
        });
        match refused {
            Some(_) => common::lab::skip(name, "loading an XDP program is not permitted"),
            None => test(),
        }
    });
}

fn kinds(report: &Report) -> Vec<&str> {
    report.ports.iter().map(|port| port.kind.split(',').next().unwrap_or_default()).collect()
}

#[test]
fn tcp_through_xdp_sockets_arrives_whole_with_the_hosts_offloads_on() {
    with_xdp("tcp_through_xdp_sockets_arrives_whole_with_the_hosts_offloads_on", || {
        for way in WAYS {
            let lab = Lab::with_ports(way, PipeSpec::default(), options(Idle::Save));
            lab.transfer("10.9.0.2");
            lab.transfer("fd00:9::2");
            let report = finish(lab.running);
            let kind = if way == WAYS[0] { "AF_XDP (generic" } else { "AF_XDP (native" };
            assert_eq!(kinds(&report), [kind; 2]);
            let forward = &report.links[0].directions[0];
            assert!(forward.frames_in as usize >= 2 * TRANSFER / 1460, "{way} {forward:?}");
            assert!(forward.bytes_in / forward.frames_in <= 1514, "{way} {forward:?}");
            assert_eq!(report.ports.iter().map(|port| port.counters.rx_malformed).sum::<u64>(), 0);
        }
    });
}

#[test]
fn tagged_frames_come_through_xdp_sockets() {
    with_xdp("tagged_frames_come_through_xdp_sockets", || {
        for way in WAYS {
            let lab = Lab::with_ports(way, PipeSpec::default(), options(Idle::Save));
            let [mut source, mut sink] =
                [0, 1].map(|end| lab.hosts[end].run(|| AfPacket::open("eth0").unwrap()));
            let mut pool = FramePool::default();
            let mut tagged = vec![2, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 2, 0x81, 0, 0x20, 5, 0x88, 0xb5];
            tagged.extend(1..=50);
            let mut frames: VecDeque<Frame> = pool.insert(&tagged).into_iter().collect();
            source.tx_burst(Time::ZERO, &mut pool, &mut frames).unwrap();
            let (mut burst, mut has_come, start) = (Burst::new(), false, Instant::now());
            while !has_come {
                assert!(start.elapsed().as_secs() < 5, "{way}");
                sink.rx_burst(Time::ZERO, &mut pool, &mut burst).unwrap();
                for frame in burst.drain() {
                    has_come |= pool.bytes(&frame) == tagged;
                    pool.free(frame);
                }
            }
            finish(lab.running);
        }
    });
}

/// A path from a packet socket to an AF_XDP socket. The first bytes of a frame are its number.
struct XdpPath {
    source: AfPacket,
    sink: AfXdp,
    pool: FramePool,
    sent: u64,
    _ends: [Namespace; 2],
}

impl XdpPath {
    fn new() -> XdpPath {
        let ends = [Namespace::new(), Namespace::new()];
        veth_with_queues(&ends[1], "va", &ends[0], 1);
        let source = ends[0].run(|| {
            ip("link set eth0 up");
            AfPacket::open("eth0").unwrap()
        });
        let sink =
            ends[1].run(|| AfXdp::open("va", Some(XdpMode::Generic), &mut XdpMemory::default()).unwrap());
        XdpPath { source, sink, pool: FramePool::default(), sent: 0, _ends: ends }
    }

    fn send(&mut self, count: u64) {
        let frame = |number: u64| {
            let mut bytes = [0xff; 60];
            bytes[6..14].copy_from_slice(&number.to_be_bytes());
            bytes
        };
        let mut frames: VecDeque<Frame> =
            (self.sent..self.sent + count).map(|number| self.pool.insert(&frame(number)).unwrap()).collect();
        while !frames.is_empty() {
            self.source.tx_burst(Time::ZERO, &mut self.pool, &mut frames).unwrap();
        }
        self.sent += count;
    }

    /// Reads until all sent frames have arrived or were dropped. One more frame marks the end, and
    /// is sent again if it is lost.
    fn read(&mut self) {
        let (mut burst, first, start) = (Burst::new(), self.sent, Instant::now());
        let (mut asked, mut has_come) = (0, false);
        while !has_come {
            let waited = start.elapsed();
            assert!(waited.as_secs() < 20, "nothing comes");
            if waited.as_millis() >= asked {
                self.send(1);
                asked = waited.as_millis() + 20;
            }
            self.sink.rx_burst(Time::ZERO, &mut self.pool, &mut burst).unwrap();
            for frame in burst.drain() {
                let bytes = self.pool.bytes(&frame);
                has_come |= u64::from_be_bytes(*bytes[6..].first_chunk().unwrap()) >= first;
                self.pool.free(frame);
            }
        }
    }

    fn overrun(&mut self) -> u64 {
        self.sink.counters().rx_overrun
    }
}

#[test]
fn a_socket_that_was_behind_takes_longer_bursts_until_it_keeps_up() {
    with_xdp("a_socket_that_was_behind_takes_longer_bursts_until_it_keeps_up", || {
        let mut path = XdpPath::new();
        // The kernel holds few chunks: of 700 frames before a poll, those beyond 512 are lost.
        let stall = |path: &mut XdpPath| {
            let (before, start) = (path.overrun(), Instant::now());
            path.send(700);
            while path.overrun() == before {
                assert!(start.elapsed().as_secs() < 20, "700 frames found room");
            }
            path.read();
        };
        stall(&mut path);
        let before = path.overrun();
        for _ in 0..3 {
            path.send(700);
            path.read();
        }
        assert_eq!(path.overrun(), before, "as many as it has are lost to one that was behind");
        // Until no long burst has arrived for a while, and the kernel holds few chunks again.
        for _ in 0..500 {
            path.send(31);
            path.read();
        }
        assert_eq!(path.overrun(), before);
        stall(&mut path);
    });
}

#[test]
fn frames_of_every_queue_arrive() {
    with_xdp("frames_of_every_queue_arrive", || {
        for way in WAYS {
            let (hosts, middle) = ([Namespace::new(), Namespace::new()], Namespace::new());
            for (end, name) in ["va", "vb"].into_iter().enumerate() {
                veth_with_queues(&middle, name, &hosts[end], 4);
                hosts[end].run(|| configure(end));
            }
            let names = ["va", "vb"].map(|name| format!("{way}{name}"));
            let topology = two_hosts(PipeSpec::default(), names.each_ref().map(|name| Some(name.as_str())));
            let ports = middle.run(|| attach(&topology, &Notice::none()).unwrap());
            let running = start(topology, ports, options(Idle::Save)).unwrap();
            let sink = hosts[1].run(|| UdpSocket::bind("10.9.0.2:5000").unwrap());
            sink.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            // Many flows, so that every queue gets some.
            for number in 0..64u8 {
                let source = hosts[0].run(|| UdpSocket::bind("10.9.0.1:0").unwrap());
                source.send_to(&[number], "10.9.0.2:5000").unwrap();
                let mut buffer = [0];
                receive(&sink, &mut buffer);
                assert_eq!(buffer, [number]);
            }
            let report = finish(running);
            assert!(report.ports[0].kind.contains("4 queues"), "{}", report.ports[0].kind);
        }
    });
}

#[test]
fn a_removed_interface_under_xdp_is_reported_and_one_that_was_down_recovers() {
    with_xdp("a_removed_interface_under_xdp_is_reported_and_one_that_was_down_recovers", || {
        for way in WAYS {
            let lab = Lab::with_ports(way, PipeSpec::default(), options(Idle::Save));
            lab.middle.run(|| ip("link set vb down"));
            lab.hosts[0].run(|| UdpSocket::bind("10.9.0.1:0").unwrap().send_to(b"x", "10.9.0.2:9").unwrap());
            lab.middle.run(|| ip("link set vb up"));
            lab.transfer("10.9.0.2");
            lab.middle.run(|| ip("link delete va"));
            let failed = |report: Report| report.ports[0].failure.clone();
            let start = Instant::now();
            while failed(lab.running.report().unwrap()).is_none() {
                assert!(start.elapsed().as_secs() < 5, "the engine did not notice, {way}");
            }
            assert_eq!(failed(finish(lab.running)).as_deref(), Some("port va: the interface is gone"));
        }
    });
}

#[test]
fn where_xdp_is_unavailable_a_packet_socket_is_used_with_a_notice() {
    with_namespaces("where_xdp_is_unavailable_a_packet_socket_is_used_with_a_notice", || {
        let (hosts, middle) = ([Namespace::new(), Namespace::new()], Namespace::new());
        for (end, name) in ["va", "vb"].into_iter().enumerate() {
            veth_with_queues(&middle, name, &hosts[end], 1);
            hosts[end].run(|| configure(end));
            middle.run(|| ip(&format!("link set {name} mtu 9000")));
        }
        let topology = two_hosts(PipeSpec::default(), [Some("xdp:va"), Some("xdp:vb")]);
        let said = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&said);
        let notice = Notice::new(move |text| log.lock().unwrap().push(text.to_owned()));
        let ports = middle.run(|| attach(&topology, &notice).unwrap());
        let running = start(topology, ports, Options { notice, ..options(Idle::Save) }).unwrap();
        let lab = Lab { hosts, middle, running };
        lab.transfer("10.9.0.2");
        assert_eq!(kinds(&finish(lab.running)), ["AF_PACKET"; 2]);
        let said = said.lock().unwrap();
        assert_eq!(
            said[0],
            "AF_XDP unavailable (port va: its MTU of 9000 exceeds the 3818 bytes that AF_XDP carries), falling back to AF_PACKET"
        );
    });
}
