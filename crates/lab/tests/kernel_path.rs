//! Links and switches that run in the kernel: what programs, counters and the log see is what the
//! engine would show, and a link that must wait moves to user space while frames flow.
#![cfg(target_os = "linux")]

mod common;

use common::{run, skip_test};
use fastpath_engine::{CaptureFilter, DataPathChoice, Notice, Options, Report};
use fastpath_lab::netlink::{LinkParameters, Netlink};
use fastpath_lab::{ApplyMode, Lab, UpError};
use fastpath_link::Change;
use fastpath_net::{EdgeId, Network};
use fastpath_spec::{LinkId, NO_FILES, Topology, read};
use fastpath_units::{Duration, Time};
use fastpath_wire::pcap::CaptureReader;
use nix::net::if_::if_nametoindex;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const STAR: &str = "[host.a]\n[host.b]\n[host.c]\n[switch.s]
    [[link]]\nbetween = ['a', 's']\n[[link]]\nbetween = ['b', 's']\n[[link]]\nbetween = ['c', 's']\n";
const PAIR: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n";
const SEED: u64 = 36;

/// What a lab said, line by line.
type Said = Arc<Mutex<Vec<String>>>;

fn topology(spec: &str) -> Topology {
    fastpath_spec::parse(spec).unwrap_or_else(|mistakes| panic!("{mistakes:?}")).0
}

/// Brings a lab up. `None`, and a reported skip, without the right to program the kernel.
fn up(test: &str, spec: &str, choice: DataPathChoice, log: Option<PathBuf>) -> Option<(Lab, Said)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let said = Said::default();
    let copy = Arc::clone(&said);
    let notice = Notice::new(move |text| copy.lock().unwrap().push(text.to_owned()));
    let network = fastpath_net::Options { seed: SEED, ..fastpath_net::Options::default() };
    let options = Options { notice, data_path: choice, packet_log: log, ..Options::new(network) };
    let name = format!("kernel-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    match Lab::up(topology(spec), &name, options) {
        Ok(lab) if choice == DataPathChoice::Auto && !in_kernel(&lab.report().unwrap()) => {
            skip_test(test, &said.lock().unwrap().join(" "));
            None
        }
        Ok(lab) => Some((lab, said)),
        Err(UpError::NotPermitted(why)) => {
            skip_test(test, &why.to_string());
            None
        }
        Err(UpError::DataPath(why)) => {
            skip_test(test, &why.to_string());
            None
        }
        Err(other) => panic!("{test}: {other}"),
    }
}

fn in_kernel(report: &Report) -> bool {
    report.links.iter().all(|link| link.data_path == "kernel")
}

fn address(lab: &Lab, host: &str) -> IpAddr {
    lab.host(host).expect("a host").address().expect("an address")
}

/// A socket of a host, at port 7.
fn socket(lab: &Lab, host: &str) -> UdpSocket {
    let at = SocketAddr::new(address(lab, host), 7);
    let socket = lab.host(host).unwrap().namespace.within(|| UdpSocket::bind(at)).unwrap().unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    socket
}

/// Sends datagrams with these numbers, and returns the numbers that come, until none comes.
fn exchange(lab: &Lab, from: &UdpSocket, to: (&str, &UdpSocket), numbers: std::ops::Range<u32>) -> Vec<u32> {
    let there = SocketAddr::new(address(lab, to.0), 7);
    let mut received = Vec::new();
    let mut take = |is_waited_for: bool| {
        let mut bytes = [0; 64];
        to.1.set_nonblocking(!is_waited_for).unwrap();
        while let Ok(len) = to.1.recv(&mut bytes) {
            assert_eq!(len, 46);
            received.push(u32::from_be_bytes(bytes[..4].try_into().unwrap()));
        }
    };
    for number in numbers {
        let mut bytes = [0; 46];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        from.send_to(&bytes, there).unwrap();
        // The receiver's buffer holds a few hundred.
        if number % 100 == 99 {
            take(false);
        }
    }
    take(true);
    received
}

#[test]
fn hosts_on_a_switch_and_on_a_bare_link_meet_in_the_kernel_and_every_frame_is_counted() {
    for spec in [STAR, PAIR] {
        let Some((lab, _)) = up("meeting in the kernel", spec, DataPathChoice::Auto, None) else { return };
        let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
        let received = exchange(&lab, &a, ("b", &b), 0..1000);
        assert!(received.iter().copied().eq(0..1000), "{:?}", gaps(&received));
        assert_eq!(exchange(&lab, &b, ("a", &a), 0..10), (0..10).collect::<Vec<_>>());
        assert_eq!(exchange(&lab, &a, ("b", &b), 0..1000).len(), 1000);
        let report = lab.report().unwrap();
        let frames = |host: &str| {
            let port = report.ports.iter().find(|port| port.host == host).unwrap();
            (port.counters.rx_frames, port.counters.tx_frames, port.counters.rx_bytes)
        };
        // 46 bytes of UDP in 88 bytes of Ethernet.
        assert_eq!(frames("a"), (2000, 10, 2000 * 88), "{:?}", report.accounting);
        assert_eq!(frames("b"), (10, 2000, 10 * 88));
        if spec == STAR {
            // Flooded until the switch knew b.
            assert_eq!(frames("c"), (0, 1000, 0));
            assert_eq!(report.accounting.total_in, 3010);
        }
        assert!(report.is_good() && report.accounting.balances(), "{:?}", report.accounting);
        assert_eq!(report.workers.iter().map(|worker| worker.busy_s).sum::<f64>(), 0.0, "no frame came");
    }
}

#[test]
fn tcp_is_counted_by_segments() {
    use std::io::{Read, Write};
    let Some((lab, _)) = up("segments in the kernel", PAIR, DataPathChoice::Auto, None) else { return };
    let at = SocketAddr::new(address(&lab, "b"), 7000);
    let listener =
        lab.host("b").unwrap().namespace.within(|| std::net::TcpListener::bind(at)).unwrap().unwrap();
    let mut near =
        lab.host("a").unwrap().namespace.within(|| std::net::TcpStream::connect(at)).unwrap().unwrap();
    let (mut there, _) = listener.accept().unwrap();
    const BYTES: usize = 20_000_000;
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        let mut count = 0;
        while let Ok(len @ 1..) = there.read(&mut buffer) {
            count += len;
        }
        count
    });
    near.write_all(&vec![7; BYTES]).unwrap();
    drop(near);
    assert_eq!(reader.join().unwrap(), BYTES);
    let report = lab.report().unwrap();
    let [forward, _] = &report.links[0].directions;
    // Segments of 1428 bytes and 86 of headers over IPv6, or 1448 and 66 over IPv4. A busy machine
    // makes TCP send some twice, so the mean length is compared, and the sum only from below.
    let payload = if at.is_ipv4() { 1448 } else { 1428 };
    let (frames, bytes) = (forward.frames_in, forward.bytes_in);
    assert!(frames >= (BYTES / payload) as u64, "{frames}");
    assert!(bytes >= BYTES as u64 + frames * 60, "{bytes} in {frames}");
    let mean = bytes as f64 / frames as f64 - payload as f64;
    assert!((0.0..90.0).contains(&mean), "{bytes} in {frames}");
}

/// The links of the star: losses, copies, and both.
fn lossy_star() -> String {
    let effects = [
        "loss = '10%'",
        "duplicate = '7%'\nloss = { kind = 'gilbert-elliott', to_bad = '2%', to_good = '20%', loss_in_bad = '90%', loss_in_good = '1%' }",
        "",
    ];
    let hosts = "[host.a]\n[host.b]\n[host.c]\n[switch.s]\n".to_owned();
    hosts
        + &["a", "b", "c"]
            .iter()
            .zip(effects)
            .map(|(host, effect)| format!("[[link]]\nbetween = ['{host}', 's']\n{effect}\n"))
            .collect::<String>()
}

/// What the engine's network does with the same frames: the numbers that reach b.
fn in_virtual_time(spec: &str, count: u32) -> (Vec<u32>, Network) {
    let topology = topology(spec);
    let macs =
        ["a", "b"].map(|name| topology.node(topology.node_named(name).unwrap()).interfaces[0].mac.unwrap());
    let options = fastpath_net::Options { seed: SEED, ..fastpath_net::Options::default() };
    let mut network = Network::new(topology, options);
    let mut received = Vec::new();
    for number in 0..count {
        let at = Time::ZERO + Duration::from_us(u64::from(number));
        let bytes = [&macs[1].0[..], &macs[0].0, &[0x86, 0xdd], &number.to_be_bytes(), &[0; 70]].concat();
        let frame = network.pool_mut().insert(&bytes).expect("room");
        network.push(at, EdgeId(0), frame);
        while let Some(delivery) = network.pop(at) {
            if delivery.edge == EdgeId(1) {
                let bytes = network.pool().bytes(&delivery.frame);
                received.push(u32::from_be_bytes(bytes[14..18].try_into().unwrap()));
            }
            network.pool_mut().free(delivery.frame);
        }
    }
    (received, network)
}

#[test]
fn losses_and_copies_are_those_of_replay() {
    const COUNT: u32 = 3000;
    let spec = lossy_star();
    let Some((lab, said)) = up("losses in the kernel", &spec, DataPathChoice::Kernel, None) else { return };
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    let received = exchange(&lab, &a, ("b", &b), 0..COUNT);
    let (expected, network) = in_virtual_time(&spec, COUNT);
    assert!(received == expected, "{} of {}: {:?}", received.len(), expected.len(), gaps(&received));
    assert!(expected.len() < 2800 && expected.len() > 2000, "{}", expected.len());
    let report = lab.report().unwrap();
    assert!(in_kernel(&report), "{said:?}");
    for (number, link) in (0..).zip(&report.links) {
        for (index, pipe) in link.directions.iter().enumerate() {
            let counters = network.pipe(LinkId(number), index).counters();
            let found =
                (pipe.frames_in, pipe.frames_out, pipe.duplicated, pipe.dropped.values().sum::<u64>());
            let dropped = counters.dropped().packets;
            assert_eq!(
                found,
                (counters.pushed.packets, counters.delivered.packets, counters.duplicated, dropped)
            );
        }
    }
    assert!(report.accounting.balances());
}

#[test]
fn the_log_has_an_entry_for_each_frame_and_link() {
    let path = std::env::temp_dir().join(format!("fastpath-kernel-log-{}.pcapng", std::process::id()));
    let spec = lossy_star();
    let choice = DataPathChoice::Kernel;
    let Some((lab, _)) = up("the log of the kernel", &spec, choice, Some(path.clone())) else { return };
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    let received = exchange(&lab, &a, ("b", &b), 0..500);
    let report = lab.down().unwrap();
    let log = report.packet_log.clone().unwrap();
    assert!(log.is_complete(), "{log:?}");
    let file = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    let count = std::iter::from_fn(|| reader.read_packet().unwrap().map(drop)).count() as u64;
    // The comments are texts in the file.
    let with = |part: &str| file.windows(part.len()).filter(|text| *text == part.as_bytes()).count() as u64;
    let pipes = report.links.iter().flat_map(|link| &link.directions);
    let (frames, lost): (u64, u64) = pipes.fold((0, 0), |(frames, lost), pipe| {
        (frames + pipe.frames_in, lost + pipe.dropped.values().sum::<u64>())
    });
    assert_eq!(count, frames);
    assert_eq!(with("dropped=loss"), lost);
    assert_eq!(with("frame=1 "), 2, "the first frame passed its two links with one number");
    assert!(!received.is_empty());
}

/// Where numbers are missing or out of order.
fn gaps(received: &[u32]) -> Vec<(u32, u32)> {
    let pairs = received.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.filter(|(one, next)| one + 1 != *next).collect()
}

#[test]
fn a_link_that_must_wait_moves_to_user_space_and_loses_nothing() {
    let Some((lab, said)) = up("moving to user space", STAR, DataPathChoice::Auto, None) else { return };
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    let there = SocketAddr::new(address(&lab, "b"), 7);
    b.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
    let reader = std::thread::spawn(move || {
        let (mut received, mut bytes) = (Vec::new(), [0; 4]);
        while b.recv(&mut bytes).is_ok() {
            received.push(u32::from_be_bytes(bytes));
        }
        received
    });
    for number in 0..4000u32 {
        a.send_to(&number.to_be_bytes(), there).unwrap();
        if number == 2000 {
            let change = Change { delay: Some(Duration::from_ms(2)), ..Change::default() };
            lab.link("b-s").unwrap().set(change).unwrap();
        }
        // The receiver's buffer holds a few hundred.
        if number % 100 == 0 {
            let read = || lab.report().unwrap().ports[1].counters.tx_frames;
            let start = std::time::Instant::now();
            while read() < u64::from(number) && start.elapsed().as_secs() < 60 {}
        }
    }
    let received = reader.join().unwrap();
    assert!(received.iter().copied().eq(0..4000), "{} of 4000: {:?}", received.len(), gaps(&received));
    let report = lab.report().unwrap();
    assert!(report.links.iter().all(|link| link.data_path == "user"), "{:?}", report.links);
    let reason = report.links[0].data_path_reason.clone().unwrap();
    assert_eq!(reason, "link b-s: it has a delay");
    let said = said.lock().unwrap().join("\n");
    assert!(said.contains("now in user space: a-s, b-s, c-s: link b-s: it has a delay"), "{said}");
    assert!(report.is_good() && report.accounting.balances(), "{:?}", report.accounting);
    let sent: u64 = report.ports.iter().map(|port| port.counters.rx_frames).sum();
    assert_eq!(sent, 4000, "both places are counted");
}

#[test]
fn a_capture_and_an_apply_find_the_frames() {
    let Some((mut lab, _)) = up("captures of the kernel's links", STAR, DataPathChoice::Auto, None) else {
        return;
    };
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    assert_eq!(exchange(&lab, &a, ("b", &b), 0..10).len(), 10);
    let filter = CaptureFilter { links: vec![LinkId(0)], ..CaptureFilter::default() };
    let mut capture = lab.capture(&filter).unwrap();
    assert_eq!(exchange(&lab, &a, ("b", &b), 0..10).len(), 10);
    let bytes = capture.read(std::time::Duration::from_secs(20)).unwrap();
    let mut reader = CaptureReader::new(&bytes[..]).unwrap();
    let count = std::iter::from_fn(|| reader.read_packet().unwrap().map(drop)).count();
    assert_eq!(count, 10);
    let more = format!("{STAR}[host.d]\n[[link]]\nbetween = ['d', 's']\n");
    let description = read(&more, NO_FILES).expect("a valid spec").0.description;
    lab.apply(&description, NO_FILES, ApplyMode::Change).unwrap();
    let (output, text) = run(&lab, "d", &["ping", "-n", "-c1", "-W9", &address(&lab, "a").to_string()]);
    assert!(output.status.success(), "{text}");
}

#[test]
fn a_change_beside_an_island_leaves_it_in_the_kernel() {
    let beside = format!("{PAIR}[host.x]\n[host.y]\n[[link]]\nbetween = ['x', 'y']\ndelay = '1ms'\n");
    let Some((mut lab, _)) = up("a change beside", &beside, DataPathChoice::Kernel, None) else { return };
    let more = beside
        .replace("1ms", "2ms")
        .replace("[host.x]", "[host.w]\n[host.x]\n[[link]]\nbetween = ['w', 'x']");
    let description = read(&more, NO_FILES).expect("a valid spec").0.description;
    lab.apply(&description, NO_FILES, ApplyMode::Change).unwrap();
    let report = lab.report().unwrap();
    let places: Vec<(&str, &str)> = report.links.iter().map(|link| (&*link.name, &*link.data_path)).collect();
    assert_eq!(places[0], ("a-b", "kernel"));
    assert!(places[1..].iter().all(|(_, place)| *place == "user"), "{places:?}");
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    assert_eq!(exchange(&lab, &a, ("b", &b), 0..10).len(), 10);
}

#[test]
fn a_loss_that_changes_stays_in_the_kernel_where_segments_are_single() {
    let spec = PAIR.to_owned() + "loss = '50%'\n";
    let Some((lab, _)) = up("a loss that changes", &spec, DataPathChoice::Kernel, None) else { return };
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    let lossy = exchange(&lab, &a, ("b", &b), 0..400).len();
    // ± 5 σ of the binomial.
    assert!((150..250).contains(&lossy), "{lossy}");
    let none = Change { loss: Some(fastpath_link::LossSpec::Never), ..Change::default() };
    lab.link("a-b").unwrap().set_from("a", none).unwrap();
    assert_eq!(exchange(&lab, &a, ("b", &b), 0..400).len(), 400);
    let down = Change { state: Some(fastpath_link::LinkState::Down), ..Change::default() };
    lab.link("a-b").unwrap().set(down).unwrap();
    let report = lab.report().unwrap();
    assert!(in_kernel(&report));
}

#[test]
fn an_interface_that_goes_down_or_away_is_named() {
    let Some((lab, said)) = up("interfaces that go", STAR, DataPathChoice::Auto, None) else { return };
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    assert_eq!(exchange(&lab, &b, ("a", &a), 0..1).len(), 1);
    let of_b = |work: &(dyn Fn(&mut Netlink, u32) + Sync)| {
        let namespace = &lab.host("b").unwrap().namespace;
        namespace.within(|| work(&mut Netlink::open().unwrap(), if_nametoindex("eth0").unwrap())).unwrap();
    };
    let until = |is_so: &dyn Fn(&Report) -> bool| {
        let start = std::time::Instant::now();
        let there = SocketAddr::new(address(&lab, "b"), 7);
        while !is_so(&lab.report().unwrap()) {
            assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", lab.report());
            a.send_to(&[0; 46], there).unwrap();
            std::thread::yield_now();
        }
    };
    of_b(&|netlink, index| netlink.take_down(index).unwrap());
    until(&|report| report.ports[1].counters.tx_down > 0);
    of_b(&|netlink, index| netlink.bring_up(index, LinkParameters::default()).unwrap());
    let down = lab.report().unwrap();
    until(&|report| report.ports[1].counters.tx_frames > down.ports[1].counters.tx_frames + 10);
    assert!(lab.report().unwrap().accounting.balances());
    of_b(&|netlink, index| netlink.remove_link(index).unwrap());
    until(&|report| report.ports[1].failure.is_some());
    assert!(said.lock().unwrap().iter().any(|line| line.contains("eth0 of host b was removed")), "{said:?}");
}

#[test]
fn long_frames_pass_and_what_is_too_long_for_a_host_is_counted() {
    let long = PAIR.to_owned() + "mtu = 9000\n";
    let Some((lab, _)) = up("long frames", &long, DataPathChoice::Auto, None) else { return };
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    let there = SocketAddr::new(address(&lab, "b"), 7);
    a.send_to(&[1; 8000], there).unwrap();
    assert_eq!(b.recv(&mut [0; 9000]).unwrap(), 8000);
    // A host with another address takes frames that the kernel must queue, and then sees their
    // size.
    let namespace = &lab.host("b").unwrap().namespace;
    let shorten = || -> std::io::Result<()> {
        let index = if_nametoindex("eth0")?;
        Netlink::open()?.bring_up(index, LinkParameters { mac: Some([2, 0, 0, 0, 9, 9]), mtu: Some(1500) })
    };
    namespace.within(shorten).unwrap().unwrap();
    let before = lab.report().unwrap();
    a.send_to(&[1; 8000], there).unwrap();
    let after = lab.report().unwrap();
    let refused = after.ports[1].counters.tx_refused - before.ports[1].counters.tx_refused;
    let sent = after.ports[1].counters.tx_frames - before.ports[1].counters.tx_frames;
    // It may ask for the new address first.
    assert!(refused == 1 || sent <= 1, "{:?}", after.ports[1].counters);
    assert!(after.accounting.balances());
}

#[test]
fn a_link_that_moved_still_counts_what_a_host_that_is_down_does_not_get() {
    let Some((lab, _)) = up("down after a move", STAR, DataPathChoice::Auto, None) else { return };
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    assert_eq!(exchange(&lab, &b, ("a", &a), 0..1).len(), 1);
    let slower = Change { delay: Some(Duration::from_us(100)), ..Change::default() };
    lab.link("a-s").unwrap().set(slower).unwrap();
    let namespace = &lab.host("b").unwrap().namespace;
    let down = || Netlink::open().unwrap().take_down(if_nametoindex("eth0").unwrap()).unwrap();
    namespace.within(down).unwrap();
    let there = SocketAddr::new(address(&lab, "b"), 7);
    let start = std::time::Instant::now();
    while lab.report().unwrap().ports[1].counters.tx_down == 0 {
        assert!(start.elapsed().as_secs() < 60, "{:?}", lab.report());
        a.send_to(&[0; 46], there).unwrap();
        std::thread::yield_now();
    }
    assert!(lab.report().unwrap().accounting.balances());
}

#[test]
fn a_link_that_was_removed_and_comes_again_begins_at_zero() {
    let both = format!("{PAIR}[host.c]\n[[link]]\nbetween = ['a', 'c']\n");
    let Some((mut lab, said)) = up("a link again", &both, DataPathChoice::Auto, None) else { return };
    let (a, b) = (socket(&lab, "a"), socket(&lab, "b"));
    assert_eq!(exchange(&lab, &a, ("b", &b), 0..5).len(), 5);
    drop((a, b));
    let without = both.replace("[[link]]\nbetween = ['a', 'b']\n", "");
    for text in [&without, &both] {
        let description = read(text, NO_FILES).expect("a valid spec").0.description;
        lab.apply(&description, NO_FILES, ApplyMode::Change).unwrap();
    }
    let report = lab.report().unwrap();
    let link = report.links.iter().find(|link| link.name == "a-b").unwrap();
    assert_eq!((link.directions[0].frames_in, &*link.data_path), (0, "user"));
    assert!(report.ports.iter().all(|port| port.failure.is_none()), "{:?}", report.ports);
    assert!(report.accounting.balances());
    assert!(said.lock().unwrap().iter().all(|line| !line.contains("a-b")), "{said:?}");
}

#[test]
fn what_is_asked_for_and_not_possible_is_refused() {
    let delayed = PAIR.to_owned() + "delay = '1ms'\n";
    let name = format!("kernel-not-{}", std::process::id());
    let options =
        || Options { data_path: DataPathChoice::Kernel, ..Options::new(fastpath_net::Options::default()) };
    match Lab::up(topology(&delayed), &name, options()) {
        Err(UpError::DataPath(why)) => {
            let expected = "--data-path kernel: no link can run in the kernel (it has a delay): write --data-path auto, or user";
            assert_eq!(why.to_string(), expected);
        }
        Err(UpError::NotPermitted(why)) => skip_test("what is not possible", &why.to_string()),
        other => panic!("{other:?}"),
    }
}
