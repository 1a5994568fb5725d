//! Labs that change while they run: what stays is not disturbed, and a change that fails leaves the
//! lab as it was.
#![cfg(target_os = "linux")]

mod common;

use common::{run, up_with};
use fastpath_lab::netlink::Netlink;
use fastpath_lab::{ApplyMode, Lab, inspect};
use fastpath_spec::{NO_FILES, read};
use nix::net::if_::if_nametoindex;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Two hosts and a router on a switch, and a host behind the router.
const BASE: &str = "[host.a]\n[host.b]\n[host.far]\n[switch.s]\n[router.r]
    [[link]]\nbetween = ['a', 's']\ndelay = '1ms'\n[[link]]\nbetween = ['b', 's']
    [[link]]\nbetween = ['r', 's']\n[[link]]\nbetween = ['r', 'far']\n";

fn apply(lab: &mut Lab, text: &str) -> Result<Vec<String>, String> {
    let description = read(text, NO_FILES).expect("a valid spec").0.description;
    let applied = lab.apply(&description, NO_FILES, ApplyMode::Change).map_err(|error| error.to_string())?;
    let unexpected = applied.notices.iter().filter(|notice| !notice.ends_with("has no link"));
    assert_eq!(unexpected.collect::<Vec<_>>(), [""; 0]);
    Ok(applied
        .changes
        .iter()
        .map(|change| format!("{} {} {}", change.action, change.kind, change.name))
        .collect())
}

fn address(lab: &Lab, host: &str) -> IpAddr {
    lab.host(host).expect("a host").address().expect("an address")
}

fn pings(lab: &Lab, from: &str, to: &str) -> bool {
    run(lab, from, &["ping", "-n", "-c1", "-W9", to]).0.status.success()
}

/// The interfaces, addresses and routes of a host, as programs see them.
fn seen(lab: &Lab, host: &str) -> String {
    let files = "cd /proc/net; cat /etc/hosts route; cut -c1-32,36- if_inet6 | sort; ls /sys/class/net";
    run(lab, host, &["sh", "-c", files]).1
}

#[test]
fn a_connection_and_a_ping_do_not_notice_a_hundred_changes_beside_them() {
    let Some(mut lab) = up_with("connections during changes", "ping", BASE) else { return };
    let far = SocketAddr::new(address(&lab, "far"), 7000);
    let listener = lab.host("far").unwrap().namespace.within(|| TcpListener::bind(far)).unwrap().unwrap();
    let mut near = lab.host("a").unwrap().namespace.within(|| TcpStream::connect(far)).unwrap().unwrap();
    let (mut there, _) = listener.accept().unwrap();
    there.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut ping = Command::new("ping");
    ping.args(["-n", "-i", "0.05", &address(&lab, "b").to_string()]).stdout(Stdio::piped());
    let ping = lab.spawn(lab.host("a").unwrap(), &mut ping).unwrap();
    let addresses = ["a", "b", "far"].map(|host| address(&lab, host));
    for round in 0..100u8 {
        // The new host and its link come first, where they would renumber all others.
        let text = match round % 2 {
            0 => format!("[host.x{round}]\n[[link]]\nbetween = ['x{round}', 's']\n{BASE}"),
            _ => BASE.to_owned(),
        };
        let changes = apply(&mut lab, &text).unwrap();
        let before = round / 2 * 2;
        let action = if round % 2 == 0 { ["add host", "add link"] } else { ["remove link", "remove host"] };
        let mut expected = [format!("x{before}"), format!("x{before}-s")];
        if round % 2 == 1 {
            expected.reverse();
        }
        assert_eq!(changes, [0, 1].map(|place| format!("{} {}", action[place], expected[place])));
        near.write_all(&[round]).unwrap();
        let mut byte = [0];
        there.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [round]);
    }
    assert_eq!(["a", "b", "far"].map(|host| address(&lab, host)), addresses);
    // On SIGINT it prints its counts.
    let interrupt = Command::new("kill").args(["-INT", &ping.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let text = String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap();
    let lost = text.lines().find(|line| line.contains("packet loss")).unwrap_or(&text);
    let counts: Vec<u64> = lost.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    // The last request may be on its way.
    assert!(counts[0] - counts[1] <= 1 && counts[0] > 1, "{text}");
    let report = lab.down().unwrap();
    assert!(report.accounting.balances(), "{:?}", report.accounting);
}

#[test]
fn a_changed_lab_is_the_one_that_its_description_says() {
    let Some(mut lab) = up_with("a changed lab", "ping", BASE) else { return };
    let mut sleeper = Command::new("sleep");
    let mut sleeper = lab.spawn(lab.host("b").unwrap(), sleeper.arg("1000")).unwrap();
    // b goes with its program, far moves behind a new router, a gets a second link.
    let text = "[host.a]\n[host.far]\n[host.c]\n[switch.s]\n[router.r]\n[router.q]
        [[link]]\nbetween = ['a', 's']\ndelay = '2ms'\n[[link]]\nbetween = ['r', 's']
        [[link]]\nbetween = ['r', 'q']\n[[link]]\nbetween = ['q', 'far']\n[[link]]\nbetween = ['a', 'c']\n";
    let changes = apply(&mut lab, text).unwrap();
    let expected = "add host c, change link a-s, add router q, add link r-q, add link q-far, add link a-c";
    for change in expected.split(", ") {
        assert!(changes.contains(&change.to_owned()), "{change} in {changes:?}");
    }
    assert!(!sleeper.wait().unwrap().success(), "it ended with its host");
    assert!(pings(&lab, "a", "far") && pings(&lab, "far", "a") && pings(&lab, "c", "a"));
    assert!(lab.host("b").is_none());
    let nodes = inspect(lab.name()).unwrap().nodes;
    let states: Vec<String> = nodes.iter().map(|node| format!("{} {}", node.name, node.state)).collect();
    assert_eq!(states, ["a running", "far running", "c running", "s emulated", "r emulated", "q emulated"]);
    let interfaces = run(&lab, "a", &["ls", "/sys/class/net"]).1;
    assert_eq!(interfaces.split_whitespace().collect::<Vec<_>>(), ["eth0", "eth1", "lo"]);
    // Back again: nothing of the change is left in the hosts that stay.
    let before = {
        let Some(fresh) = up_with("the same lab, started again", "ping", BASE) else { return };
        ["a", "far"].map(|host| seen(&fresh, host))
    };
    apply(&mut lab, BASE).unwrap();
    assert_eq!(["a", "far"].map(|host| seen(&lab, host)), before);
    assert!(pings(&lab, "a", "b") && pings(&lab, "b", "far"));
}

#[test]
fn a_change_that_fails_half_way_leaves_the_lab_as_it_was() {
    let Some(mut lab) = up_with("a change that fails", "ping", BASE) else { return };
    // A host and an interface are made, until an interface has the name that the next one gets.
    let other = lab.host("b").unwrap().namespace.within(|| {
        let own = File::open("/proc/thread-self/ns/net")?;
        Netlink::open()?.add_veth("eth1", "other", own.as_fd())
    });
    other.unwrap().unwrap();
    let before = ["a", "b", "far"].map(|host| seen(&lab, host));
    let topology = lab.topology().clone();
    let taken = format!("[host.y]\n[[link]]\nbetween = ['y', 'a']\n{BASE}[[link]]\nbetween = ['b', 'far']\n");
    let why = apply(&mut lab, &taken).unwrap_err();
    assert!(why.starts_with("host b: ") && why.contains("eth1"), "{why}");
    assert_eq!(*lab.topology(), topology);
    assert_eq!(["a", "b", "far"].map(|host| seen(&lab, host)), before);
    assert!(pings(&lab, "a", "far") && pings(&lab, "b", "a"));
    // Without the cause it succeeds.
    let other =
        lab.host("b").unwrap().namespace.within(|| Netlink::open()?.remove_link(if_nametoindex("eth1")?));
    other.unwrap().unwrap();
    let changes = apply(&mut lab, &taken).unwrap();
    // Hosts that stay get addresses.
    let expected =
        ["add host y", "change host a", "change host b", "change host far", "add link y-a", "add link b-far"];
    assert_eq!(changes, expected);
    assert!(pings(&lab, "y", "a") && pings(&lab, "far", "b"));
    let none = fastpath_spec::Description::default();
    assert!(lab.apply(&none, NO_FILES, ApplyMode::DryRun).unwrap_err().to_string().contains("no host"));
}

#[test]
fn a_lab_without_links_stays_and_gets_some() {
    let alone = "[host.a]\n[host.b]\n";
    let Some(mut lab) = up_with("a lab without links", "ping", alone) else { return };
    assert!(run(&lab, "a", &["true"]).0.status.success());
    assert!(!lab.has_ended());
    for _ in 0..2 {
        apply(&mut lab, &format!("{alone}[[link]]\nbetween = ['a', 'b']\n")).unwrap();
        assert!(pings(&lab, "a", "b"));
        apply(&mut lab, alone).unwrap();
        assert!(run(&lab, "b", &["true"]).0.status.success() && !lab.has_ended());
    }
    assert!(lab.down().unwrap().accounting.balances());
}

#[test]
fn the_per_packet_log_goes_on_while_a_lab_changes() {
    let test = "a log during changes";
    if up_with(test, "ping", BASE).is_none() {
        return;
    }
    let path = std::env::temp_dir().join(format!("fastpath-changes-{}.pcapng", std::process::id()));
    let (topology, _) = fastpath_spec::parse(BASE).unwrap();
    let network = fastpath_net::Options::default();
    let options =
        fastpath_engine::Options { packet_log: Some(path.clone()), ..fastpath_engine::Options::new(network) };
    let mut lab = Lab::up(topology, &format!("log-{}", std::process::id()), options).unwrap();
    assert!(pings(&lab, "a", "b"));
    // The new link is the first: it renumbers all others.
    apply(&mut lab, &format!("[host.x]\n[[link]]\nbetween = ['x', 's']\n{BASE}")).unwrap();
    assert!(pings(&lab, "x", "far"));
    apply(&mut lab, BASE).unwrap();
    assert!(pings(&lab, "a", "far"));
    let report = lab.down().unwrap();
    let log = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(report.packet_log.is_some_and(|log| log.is_complete() && log.written > 10));
    // Interfaces are named as links, and the packets of each have the addresses of their ends.
    let mut reader = fastpath_wire::pcap::CaptureReader::new(&log[..]).unwrap();
    let mut interfaces = std::collections::BTreeSet::new();
    while let Some(packet) = reader.read_packet().unwrap() {
        interfaces.insert(packet.interface);
    }
    // Those of x-s come after the eight of the four links and those of the switch and the router.
    assert!(interfaces.iter().max() > Some(&9), "{interfaces:?}");
    assert!(log.windows(8).any(|bytes| bytes == b"x-s/x_to"));
}
