//! The engine between real kernel interfaces on this machine: TCP throughput over TAPs and packet
//! sockets, packets per second over veth pairs, and the round-trip time that it adds. Needs root
//! and ip(8).
//!
//! `cargo bench -p fastpath-engine --bench kernel`
#![cfg(target_os = "linux")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::lab::{Lab, Namespace, configure, ip, veth, with_taps};
use common::{finish, options};
use fastpath_engine::port::{AfXdp, Port, XdpMemory, XdpMode};
use fastpath_engine::{Clock, Idle, Report};
use fastpath_link::PipeSpec;
use fastpath_net::{Frame, FramePool};
use fastpath_units::{Duration, Time};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

const RUN: std::time::Duration = std::time::Duration::from_secs(3);

fn main() {
    with_taps("kernel", || {
        read_clock();
        for idle in [Idle::Save, Idle::Busy] {
            let control = tcp(&direct());
            for (port, lab) in [
                ("tap", Lab::with_taps(PipeSpec::default(), options(idle))),
                ("af_packet", Lab::with_veths(PipeSpec::default(), options(idle))),
                ("xdp-generic", Lab::with_ports("xdp-generic:", PipeSpec::default(), options(idle))),
                ("xdp-native", Lab::with_ports("xdp-native:", PipeSpec::default(), options(idle))),
            ] {
                let rate = tcp(&lab.hosts);
                let ratio = rate / control;
                println!(
                    "tcp {port} {idle:?}: {rate:.2} Gbit/s, {ratio:.2} of a veth pair without engine {}",
                    drops(&finish(lab.running))
                );
            }
        }
        for size in [60, 1514] {
            let bridge = bridged(size);
            println!("packets {size} B over the kernel's bridge: {bridge:.2} Mpps");
            for way in ["", "xdp-generic:", "xdp-native:"] {
                packets(way, size, bridge);
            }
        }
        for (name, delay) in [("0", Duration::ZERO), ("10 ms", Duration::from_ms(10))] {
            for idle in [Idle::Save, Idle::Busy] {
                let pipe = PipeSpec { delay, ..PipeSpec::default() };
                round_trip(
                    &format!("tap {idle:?}, delay {name}"),
                    Lab::with_taps(pipe.clone(), options(idle)),
                );
                for way in ["packet:", "xdp-generic:", "xdp-native:"] {
                    let lab = Lab::with_ports(way, pipe.clone(), options(idle));
                    round_trip(&format!("{way} {idle:?}, delay {name}"), lab);
                }
            }
        }
    });
}

fn read_clock() {
    let clock = Clock::start();
    let n = 10_000_000;
    for _ in 0..n {
        std::hint::black_box(clock.now());
    }
    println!("clock: {:.1} ns a reading", clock.now().as_secs_f64() / f64::from(n) * 1e9);
}

/// Two hosts on one veth pair: the control, with nothing between.
fn direct() -> [Namespace; 2] {
    let hosts = [Namespace::new(), Namespace::new()];
    veth(&hosts[1], "eth0", &hosts[0]);
    hosts.iter().enumerate().for_each(|(end, host)| host.run(|| configure(end)));
    hosts
}

/// One TCP connection as fast as it goes, in Gbit/s.
fn tcp(hosts: &[Namespace; 2]) -> f64 {
    let listener = hosts[1].run(|| TcpListener::bind("10.9.0.2:4000").unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = hosts[0].run(|| TcpStream::connect("10.9.0.2:4000").unwrap());
            let (block, start) = (vec![0u8; 128 << 10], Instant::now());
            while start.elapsed() < RUN {
                stream.write_all(&block).unwrap();
            }
        });
        let (mut stream, _) = listener.accept().unwrap();
        let (mut block, mut bytes, start) = (vec![0u8; 256 << 10], 0, Instant::now());
        loop {
            match stream.read(&mut block).unwrap() {
                0 => return bytes as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e9,
                len => bytes += len,
            }
        }
    })
}

/// Two hosts behind a bridge of the kernel: the performance of the machine itself.
fn bridged(size: usize) -> f64 {
    let (hosts, middle) = ([Namespace::new(), Namespace::new()], Namespace::new());
    middle.run(|| ip("link add br0 type bridge"));
    for (end, name) in ["va", "vb"].into_iter().enumerate() {
        veth(&middle, name, &hosts[end]);
        hosts[end].run(|| configure(end));
        middle.run(|| ip(&format!("link set {name} master br0")));
    }
    middle.run(|| ip("link set br0 up"));
    flood(&hosts, size).1
}

/// Small or large packets as fast as they can be sent, through an engine with ports of a kind.
fn packets(way: &str, size: usize, bridge: f64) {
    let lab = Lab::with_ports(way, PipeSpec::default(), options(Idle::Busy));
    let (sent, came) = flood(&lab.hosts, size);
    let report = finish(lab.running);
    println!(
        "packets {size} B {}: sent {sent:.2}, forwarded {came:.2} Mpps, {:.2} of the bridge {}",
        report.ports[0].kind,
        came / bridge,
        drops(&report)
    );
}

/// Millions of packets per second that an AF_XDP socket in the first host sends and that arrive at
/// the second.
fn flood(hosts: &[Namespace; 2], size: usize) -> (f64, f64) {
    let open = || AfXdp::open("eth0", Some(XdpMode::Generic), &mut XdpMemory::default()).unwrap();
    let mut source = hosts[0].run(open);
    let mut pool = FramePool::default();
    let mut frame = vec![0u8; size];
    // To an unused unicast address, from another one.
    frame[..12].copy_from_slice(&[2, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 2]);
    let mut frames: VecDeque<Frame> = VecDeque::new();
    let (start, before) = (Instant::now(), hosts[1].run(received));
    while start.elapsed() < RUN {
        while frames.len() < 64 {
            frames.push_back(pool.insert(&frame).unwrap());
        }
        source.tx_burst(Time::ZERO, &mut pool, &mut frames).unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let mpps = |frames: u64| frames as f64 / seconds / 1e6;
    (mpps(source.counters().tx_frames), mpps(hosts[1].run(received) - before))
}

/// Packets that `eth0` of the thread's namespace has received.
fn received() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("eth0:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Requests answered one at a time.
fn round_trip(name: &str, lab: Lab) {
    let echo = lab.hosts[1].run(|| UdpSocket::bind("10.9.0.2:5000").unwrap());
    let socket = lab.hosts[0].run(|| UdpSocket::bind("10.9.0.1:0").unwrap());
    socket.connect("10.9.0.2:5000").unwrap();
    let rounds = 200;
    let mut rtt_us = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 64];
            for _ in 0..rounds {
                let (len, from) = echo.recv_from(&mut buffer).unwrap();
                echo.send_to(&buffer[..len], from).unwrap();
            }
        });
        for _ in 0..rounds {
            let start = Instant::now();
            socket.send(&[0; 56]).unwrap();
            socket.recv(&mut [0; 64]).unwrap();
            rtt_us.push(start.elapsed().as_secs_f64() * 1e6);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    });
    rtt_us.sort_by(f64::total_cmp);
    let report = finish(lab.running);
    let late = report.ports[1].lateness;
    println!(
        "round trip {name}: p50 {:.0} p99 {:.0} max {:.0} µs; released late p50 {:.1} p99 {:.1} µs",
        rtt_us[100], rtt_us[198], rtt_us[199], late.p50_us, late.p99_us
    );
}

fn drops(report: &Report) -> String {
    let rx: Vec<u64> = report.ports.iter().map(|port| port.counters.rx_dropped()).collect();
    format!("(dropped {:?}, arriving {rx:?})", report.accounting.dropped)
}
