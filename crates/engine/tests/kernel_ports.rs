//! Ports on real interfaces in real network namespaces: AF_PACKET and TAP carry the kernel's own
//! TCP.
#![cfg(target_os = "linux")]

mod common;

use common::lab::{Lab, Namespace, TRANSFER, ip, move_link, receive, with_namespaces, with_taps};
use common::{finish, options, two_hosts};
use fastpath_engine::port::{AfPacket, Burst, Port, TapPort};
use fastpath_engine::switching::LinkWatch;
use fastpath_engine::{Idle, Notice, Report, attach, start};
use fastpath_link::{CorruptSpec, PipeSpec};
use fastpath_net::{EdgeId, Frame, FramePool};
use fastpath_spec::{NodeKind, Topology};
use fastpath_switch::port::LinkState;
use fastpath_units::{Duration, Probability, Rate, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, Tcp, tcp_flags};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::UdpGsoSegment;
use std::collections::VecDeque;
use std::net::{IpAddr, UdpSocket};
use std::time::Instant;

#[test]
fn tcp_through_taps_arrives_whole_and_the_link_sees_segments() {
    with_taps("tcp_through_taps_arrives_whole_and_the_link_sees_segments", || {
        let lab = Lab::with_taps(PipeSpec::default(), options(Idle::Save));
        lab.transfer("10.9.0.2");
        lab.transfer("fd00:9::2");
        let report = finish(lab.running);
        let forward = &report.links[0].directions[0];
        // No segment is longer than the MTU allows: there are at least as many as that takes.
        assert!(forward.frames_in as usize >= 2 * TRANSFER / 1460, "{forward:?}");
        assert!(forward.bytes_in / forward.frames_in <= 1514, "{forward:?}");
        assert_eq!(report.ports.iter().map(|port| port.counters.rx_malformed).sum::<u64>(), 0);
    });
}

#[test]
fn tcp_arrives_whole_when_the_link_cuts_super_packets() {
    with_taps("tcp_arrives_whole_when_the_link_cuts_super_packets", || {
        let some = |share| Probability::new(share).expect("a probability");
        let pipe = PipeSpec {
            rate: Rate::from_bps(500_000_000),
            delay: Duration::from_us(200),
            loss: some(0.002).into(),
            duplicate: some(0.05).into(),
            corrupt: Some(CorruptSpec::Packets(some(0.002).into())),
            ..PipeSpec::default()
        };
        let lab = Lab::with_taps(pipe, options(Idle::Save));
        lab.transfer("10.9.0.2");
        lab.transfer("fd00:9::2");
        let report = finish(lab.running);
        assert_eq!(report.ports.iter().map(|port| port.counters.tx_refused).sum::<u64>(), 0);
    });
}

#[test]
fn the_link_of_a_tap_follows_the_interface_into_another_namespace() {
    with_taps("the_link_of_a_tap_follows_the_interface_into_another_namespace", || {
        let [home, host] = [Namespace::new(), Namespace::new()];
        let (_port, links) = home.run(|| {
            let port = TapPort::open("t0").unwrap();
            let links = LinkWatch::new([(7, &port as &dyn Port, "t0")]).unwrap();
            (port, links)
        });
        let is_up = || {
            let states: Vec<_> = links.states().collect();
            let [(7, state)] = states[..] else { panic!("{states:?}") };
            state == LinkState::Up
        };
        let mut seen = vec![is_up()];
        let mut then = |namespace: &Namespace, command: &str| {
            namespace.run(|| ip(command));
            seen.push(is_up());
        };
        then(&home, "link set t0 up");
        then(&home, "link set t0 down");
        then(&home, "link set t0 name t1");
        then(&home, "link set t1 up");
        move_link(&home, "t1", &host);
        then(&host, "link set t1 down");
        then(&host, "link set t1 up");
        // An interface of the old name is another one.
        then(&home, "link add t1 type veth peer name t9");
        then(&host, "link set t1 down");
        then(&host, "link set t1 name t2 up");
        move_link(&host, "t2", &home);
        then(&home, "link set t2 up");
        then(&home, "link delete t2");
        let [down, up] = [false, true];
        assert_eq!(seen, [down, up, down, down, up, down, up, up, down, up, up, down]);
    });
}

#[test]
fn tcp_crosses_from_a_tap_to_a_packet_socket() {
    with_namespaces("tcp_crosses_from_a_tap_to_a_packet_socket", || {
        let lab = Lab::with_tap_and_veth(PipeSpec::default(), options(Idle::Save));
        lab.transfer("10.9.0.2");
        let report = finish(lab.running);
        let forward = &report.links[0].directions[0];
        assert!(forward.bytes_in / forward.frames_in <= 1514, "{forward:?}");
    });
}

#[test]
fn datagrams_sent_together_arrive_one_by_one() {
    with_taps("datagrams_sent_together_arrive_one_by_one", || {
        const SIZE: usize = 1000;
        let lab = Lab::with_taps(PipeSpec::default(), options(Idle::Save));
        for addresses in [["10.9.0.1:0", "10.9.0.2:0"], ["[fd00:9::1]:0", "[fd00:9::2]:0"]] {
            let [source, sink] =
                [0, 1].map(|end| lab.hosts[end].run(|| UdpSocket::bind(addresses[end]).unwrap()));
            setsockopt(&source, UdpGsoSegment, &(SIZE as i32)).unwrap();
            sink.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            let sent: Vec<u8> = (0..9 * SIZE + 300).map(|i| (i / 7) as u8).collect();
            assert_eq!(source.send_to(&sent, sink.local_addr().unwrap()).unwrap(), sent.len());
            let mut buffer = [0; 2 * SIZE];
            for part in sent.chunks(SIZE) {
                let len = receive(&sink, &mut buffer);
                assert_eq!(&buffer[..len], part);
            }
        }
        let report = finish(lab.running);
        let forward = &report.links[0].directions[0];
        assert!(forward.frames_in >= 20, "the link sees datagrams: {forward:?}");
    });
}

#[test]
fn tcp_through_packet_sockets_arrives_whole_with_the_hosts_offloads_on() {
    with_namespaces("tcp_through_packet_sockets_arrives_whole_with_the_hosts_offloads_on", || {
        let lab = Lab::with_veths(PipeSpec::default(), options(Idle::Save));
        lab.transfer("10.9.0.2");
        lab.transfer("fd00:9::2");
        let report = finish(lab.running);
        let forward = &report.links[0].directions[0];
        assert!(forward.frames_in as usize >= 2 * TRANSFER / 1460, "{forward:?}");
        assert_eq!(report.ports.iter().map(|port| port.counters.rx_malformed).sum::<u64>(), 0);
    });
}

#[test]
fn vlan_tags_removed_by_the_kernel_are_restored() {
    with_namespaces("vlan_tags_removed_by_the_kernel_are_restored", || {
        let lab = Lab::with_veths(PipeSpec::default(), options(Idle::Save));
        let [mut source, mut sink] = [0, 1].map(|end| lab.hosts[end].run(|| AfPacket::open("eth0").unwrap()));
        let mut pool = FramePool::default();
        // To and from unused addresses; VLAN 5 with priority 1; an experimental type (IEEE 802,
        // 0x88b5).
        let mut tagged = vec![2, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 2, 0x81, 0, 0x20, 5, 0x88, 0xb5];
        tagged.extend(1..=50);
        let mut frames: VecDeque<Frame> = pool.insert(&tagged).into_iter().collect();
        source.tx_burst(Time::ZERO, &mut pool, &mut frames).unwrap();
        let (mut burst, mut seen, start) = (Burst::new(), Vec::new(), Instant::now());
        while !seen.contains(&tagged) {
            assert!(start.elapsed().as_secs() < 5, "what came was {seen:x?}");
            sink.rx_burst(Time::ZERO, &mut pool, &mut burst).unwrap();
            for frame in burst.drain() {
                seen.push(pool.bytes(&frame).to_vec());
                pool.free(frame);
            }
        }
        finish(lab.running);
    });
}

#[test]
fn of_many_taps_those_with_frames_are_served_and_removed_ones_are_noticed() {
    with_taps("of_many_taps_those_with_frames_are_served_and_removed_ones_are_noticed", || {
        const LINKS: usize = 10;
        let mut topology = Topology::default();
        for link in 0..LINKS {
            let ends = ["a", "b"].map(|end| topology.add_node(format!("{end}{link}"), NodeKind::host()));
            topology.connect(format!("l{link}"), ends[0], ends[1], Default::default());
        }
        let host = Namespace::new();
        let (running, mut stations) = host.run(|| {
            let names: Vec<String> = (0..2 * LINKS).map(|edge| format!("tap{edge}")).collect();
            let open = |(edge, name): (usize, &String)| {
                let tap = TapPort::open(name).unwrap();
                ip(&format!("link set {name} up"));
                (EdgeId(edge as u32), Box::new(tap) as Box<dyn Port>)
            };
            let running = start(topology, names.iter().enumerate().map(open).collect(), options(Idle::Save));
            let stations: Vec<_> = names.iter().map(|name| AfPacket::open(name).unwrap()).collect();
            (running.unwrap(), stations)
        });
        let mut pool = FramePool::default();
        let (mut burst, start) = (Burst::new(), Instant::now());
        for edge in [0, 5, 19] {
            let mut wanted = vec![2, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 2, 0x88, 0xb5];
            wanted.extend([edge as u8; 50]);
            let mut frames: VecDeque<Frame> = pool.insert(&wanted).into_iter().collect();
            stations[edge].tx_burst(Time::ZERO, &mut pool, &mut frames).unwrap();
            let mut has_come = false;
            while !has_come {
                assert!(start.elapsed().as_secs() < 5, "nothing came to the other end of {edge}");
                stations[edge ^ 1].rx_burst(Time::ZERO, &mut pool, &mut burst).unwrap();
                for frame in burst.drain() {
                    has_come |= pool.bytes(&frame) == wanted;
                    pool.free(frame);
                }
            }
        }
        host.run(|| ip("link delete tap7"));
        while running.report().unwrap().ports[7].failure.is_none() {
            assert!(start.elapsed().as_secs() < 10, "the removal was not noticed");
        }
        finish(running);
    });
}

/// Sends frames by one port and returns what the other receives of their kind, in order.
fn carried(from: &mut dyn Port, to: &mut dyn Port, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut pool = FramePool::default();
    let mut left: VecDeque<Frame> = frames.iter().filter_map(|bytes| pool.insert(bytes)).collect();
    let (mut burst, mut found, start) = (Burst::new(), Vec::new(), Instant::now());
    while found.len() < frames.len() {
        assert!(start.elapsed().as_secs() < 10, "{} of {} frames came", found.len(), frames.len());
        from.tx_burst(Time::ZERO, &mut pool, &mut left).unwrap();
        to.rx_burst(Time::ZERO, &mut pool, &mut burst).unwrap();
        for mut frame in burst.drain() {
            assert!(pool.copy_out(&mut frame));
            let bytes = pool.bytes(&frame).to_vec();
            pool.free(frame);
            found.extend((bytes[..2] == [2, 9]).then_some(bytes));
        }
    }
    found
}

/// Small frames go in batches, super-packets one by one: whatever the mix, the order stays.
#[test]
fn frames_pass_a_tap_in_order_however_many_come_together() {
    with_taps("frames_pass_a_tap_in_order_however_many_come_together", || {
        Namespace::new().run(|| {
            let mut tap = TapPort::open("eth0").unwrap();
            ip("link set eth0 up");
            let mut station = AfPacket::open("eth0").unwrap();
            let mut rng = Rng::new(4);
            let ends = [1, 2].map(|i| (MacAddr([2, 9, 0, 0, 0, i]), IpAddr::from([10, 9, 0, i])));
            for round in 0..60 {
                if round == 30 {
                    tap.allow_whole();
                }
                let (mut seq, count) = (0, 1 + rng.below(150));
                let frames: Vec<Vec<u8>> = (0..count)
                    .map(|number| {
                        let payload = vec![number as u8; 20 + rng.below(1400) as usize];
                        let ip = Ip::between(ends[0], ends[1]);
                        match rng.below(1 + round % 3) {
                            0 => ip.udp(7, 7, &payload),
                            // Segments that follow one another join.
                            _ => {
                                let segment = Tcp { seq, flags: tcp_flags::ACK, ..Tcp::default() };
                                seq += 1000;
                                ip.tcp(&segment, &[7; 1000])
                            }
                        }
                    })
                    .collect();
                assert!(carried(&mut station, &mut tap, &frames) == frames, "round {round}, from the host");
                assert!(carried(&mut tap, &mut station, &frames) == frames, "round {round}, to the host");
            }
            assert_eq!(tap.counters().rx_dropped() + tap.counters().tx_dropped(), 0);
        });
    });
}

#[test]
fn frames_the_kernel_dropped_because_they_were_not_read_are_counted() {
    with_taps("frames_the_kernel_dropped_because_they_were_not_read_are_counted", || {
        Namespace::new().run(|| {
            let mut port = TapPort::open("eth0").unwrap();
            ip("address add 10.9.0.1/24 dev eth0");
            ip("link set eth0 up");
            ip("neighbor add 10.9.0.2 lladdr 02:00:00:00:00:02 dev eth0");
            let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
            let start = Instant::now();
            while port.counters().rx_overrun == 0 {
                assert!(start.elapsed().as_secs() < 10, "nothing was counted");
                // A full queue may also refuse.
                (0..1000).for_each(|_| drop(socket.send_to(b"unread", "10.9.0.2:9")));
            }
        });
    });
}

#[test]
fn the_delay_of_the_link_is_seen_by_the_hosts() {
    with_taps("the_delay_of_the_link_is_seen_by_the_hosts", || {
        [Idle::Save, Idle::Sleep].into_iter().for_each(the_delay_is_seen);
    });
}

fn the_delay_is_seen(idle: Idle) {
    let pipe = PipeSpec { delay: Duration::from_ms(20), ..PipeSpec::default() };
    let lab = Lab::with_taps(pipe, options(idle));
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
            receive(&socket, &mut buffer);
            sent_at.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    rtt_ms.sort_by(f64::total_cmp);
    // No round trip is early. The fastest is not late; other tests may take the cores during
    // the others.
    assert!((40.0..140.0).contains(&rtt_ms[0]), "{rtt_ms:?}");
    finish(lab.running);
}

#[test]
fn an_interface_that_is_removed_is_reported_and_the_rest_goes_on() {
    with_taps("an_interface_that_is_removed_is_reported_and_the_rest_goes_on", || {
        let lab = Lab::with_veths(PipeSpec::default(), options(Idle::Save));
        lab.middle.run(|| ip("link delete va"));
        let failed = |report: Report| report.ports[0].failure.clone();
        let start = Instant::now();
        while failed(lab.running.report().unwrap()).is_none() {
            assert!(start.elapsed().as_secs() < 5, "the engine did not notice");
        }
        assert_eq!(failed(finish(lab.running)).as_deref(), Some("port va: the interface is gone"));

        let lab = Lab::with_taps(PipeSpec::default(), options(Idle::Save));
        lab.hosts.iter().for_each(|host| host.run(|| ip("link delete eth0")));
        let report = lab.running.join().unwrap();
        assert!(report.ports.iter().all(|port| port.failure.is_some()), "{:?}", report.ports);
    });
}

#[test]
fn an_interface_that_is_down_loses_frames_and_comes_back() {
    with_namespaces("an_interface_that_is_down_loses_frames_and_comes_back", || {
        let lab = Lab::with_veths(PipeSpec::default(), options(Idle::Save));
        lab.middle.run(|| ip("link set vb down"));
        lab.hosts[0].run(|| UdpSocket::bind("10.9.0.1:0").unwrap().send_to(b"lost", "10.9.0.2:9").unwrap());
        let start = Instant::now();
        while lab.running.report().unwrap().ports[1].counters.tx_down == 0 {
            assert!(start.elapsed().as_secs() < 5, "nothing was counted");
        }
        lab.middle.run(|| ip("link set vb up"));
        lab.transfer("10.9.0.2");
        assert_eq!(finish(lab.running).ports[1].failure, None);
    });
}

#[test]
fn interfaces_that_cannot_be_opened_say_why() {
    with_taps("interfaces_that_cannot_be_opened_say_why", || {
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
            let error = |ports| {
                attach(&two_hosts(PipeSpec::default(), ports), &Notice::none()).err().unwrap().to_string()
            };
            assert!(error([Some("eth7"), Some("eth8")]).starts_with("port eth7: no such interface"));
            // A port that the spec lacks is named before one that this machine lacks.
            assert!(
                error([Some("eth7"), None]).contains("[host.b]") && error([None, None]).contains("[host.a]")
            );
            let _tap = TapPort::open("tap0").unwrap();
            assert!(error([Some("tap0"), Some("tap0")]).starts_with("hosts a and b: both have port tap0"));
            assert!(TapPort::open("tap0").err().unwrap().to_string().starts_with("port tap0: in use"));
        });
    });
}

#[test]
fn receive_offload_is_off_while_the_port_is_open_and_restored_after() {
    with_taps("receive_offload_is_off_while_the_port_is_open_and_restored_after", || {
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

#[test]
fn channels_of_an_interface_have_whole_flows_in_order_and_do_not_see_what_they_send() {
    with_taps("channels_of_an_interface_have_whole_flows_in_order_and_do_not_see_what_they_send", || {
        const FLOWS: u8 = 32;
        const FRAMES: u8 = 10;
        let (mut tap, mut channels) = Namespace::new().run(|| {
            let tap = TapPort::open("tap0").unwrap();
            ip("link set tap0 up");
            (tap, AfPacket::open_channels("tap0", 2).unwrap())
        });
        let frame = |flow: u8, number: u8| {
            let end = |last: u8| (MacAddr([2, 9, 9, 9, 9, last]), IpAddr::from([10, 7, last, flow]));
            Ip::between(end(1), end(2)).udp(1000 + u16::from(flow), 53, &[flow, number])
        };
        let mut pool = FramePool::default();
        let numbers = (0..FRAMES).flat_map(|number| (0..FLOWS).map(move |flow| (flow, number)));
        let mut frames: VecDeque<Frame> =
            numbers.filter_map(|(flow, number)| pool.insert(&frame(flow, number))).collect();
        let own = frame(200, 0);
        let mut sent: VecDeque<Frame> = pool.insert(&own).into_iter().collect();
        channels[0].tx_burst(Time::ZERO, &mut pool, &mut sent).unwrap();
        // By flow: the channel, and the numbers in order.
        let mut seen = vec![Vec::new(); FLOWS.into()];
        let (mut burst, start) = (Burst::new(), Instant::now());
        while seen.iter().map(Vec::len).sum::<usize>() < usize::from(FLOWS) * usize::from(FRAMES) {
            assert!(start.elapsed().as_secs() < 10, "{seen:?}");
            tap.tx_burst(Time::ZERO, &mut pool, &mut frames).unwrap();
            for (channel, port) in channels.iter_mut().enumerate() {
                port.rx_burst(Time::ZERO, &mut pool, &mut burst).unwrap();
                for frame in burst.drain() {
                    let bytes = pool.bytes(&frame).to_vec();
                    pool.free(frame);
                    assert_ne!(bytes, own, "the frame that was sent came back");
                    if bytes[6..8] == [2, 9] {
                        let payload = &bytes[42..];
                        seen[usize::from(payload[0])].push((channel, payload[1]));
                    }
                }
            }
        }
        for numbers in &seen {
            let channel = numbers[0].0;
            assert_eq!(*numbers, (0..FRAMES).map(|number| (channel, number)).collect::<Vec<_>>());
        }
        // The hash of the kernel has a random start: one in 2^31 of them puts all into one.
        assert!((0..2).all(|channel| seen.iter().any(|numbers| numbers[0].0 == channel)));
    });
}
