//! Routing daemons in kernel routers. Times bound only how long a test may take.
#![cfg(target_os = "linux")]

mod common;

use common::{run, start, up_with};
use fastpath_engine::control::{Changes, Request, Response, Setting, call};
use fastpath_lab::{Lab, UpError, control_socket};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

const SECONDS_MAX: &str = "90";

fn set_state(lab: &Lab, link: &str, state: &str) {
    let set = [("state".to_owned(), state.into())].into_iter().collect();
    let setting = Setting { link: Some(link.to_owned()), set, ..Setting::default() };
    let request = Request::Set(Changes { changes: vec![setting], at: None });
    let answer = call(&control_socket(lab.name()).unwrap(), &request).unwrap();
    assert!(matches!(answer, Response::Done(_)), "{answer:?}");
}

/// Waits until a script succeeds on a node.
fn await_success(lab: &Lab, node: &str, script: &str) {
    let script = format!("until {script}; do sleep 0.1; done >&2");
    let (output, text) = run(lab, node, &["timeout", SECONDS_MAX, "sh", "-c", &script]);
    assert!(output.status.success(), "{node}: {script}: {}", &text[text.len().saturating_sub(3000)..]);
}

fn v4(lab: &Lab, host: &str) -> IpAddr {
    let addresses = lab.host(host).unwrap().addresses().into_iter().map(|net| net.addr());
    addresses.into_iter().find(IpAddr::is_ipv4).expect("an IPv4 address")
}

/// a – r – (p | q) – t – b. A neighbor is dead after a minute, so only its carrier tells sooner.
fn square(daemon: &str, protocol: &str) -> String {
    let router = |name: &str| format!("[router.{name}]\ndaemon = '{daemon}'\n{protocol}\n");
    let routers: String = ["r", "p", "q", "t"].map(router).concat();
    let ends = [["a", "r"], ["r", "p"], ["r", "q"], ["p", "t"], ["q", "t"], ["t", "b"]];
    let links: String = ends.map(|[a, b]| format!("[[link]]\nbetween = ['{a}', '{b}']\n")).concat();
    format!("[host.a]\n[host.b]\n{routers}{links}")
}

/// Traffic between the hosts of a square moves when its link goes down.
fn traffic_moves(test: &str, program: &str, spec: &str) -> Option<Lab> {
    let lab = up_with(test, program, spec)?;
    let b = v4(&lab, "b");
    await_success(&lab, "a", &format!("ping -n -c1 -W1 {b}"));
    // Both paths are there before one goes.
    let towards = |link: &str| {
        let place = lab.topology().node(lab.topology().node_named("r").unwrap());
        let link = lab.topology().link_named(link).unwrap();
        place.interfaces.iter().find(|interface| interface.link == link).unwrap().name.clone()
    };
    for (down, other) in [("r-p", "r-q"), ("r-q", "r-p")] {
        let far = if other == "r-q" { "q" } else { "p" };
        await_success(&lab, far, &format!("ip route show | grep -q '^{}'", subnet(&lab, "t-b")));
        set_state(&lab, down, "down");
        await_success(&lab, "r", &format!("ip route get {b} | grep -q 'dev {}'", towards(other)));
        await_success(&lab, "a", &format!("ping -n -c1 -W1 {b}"));
        set_state(&lab, down, "up");
        await_success(&lab, far, "true");
        let back = if down == "r-p" { "p" } else { "q" };
        await_success(&lab, back, &format!("ping -n -c1 -W1 {}", v4(&lab, "r")));
    }
    Some(lab)
}

/// Ends a lab. The files of its daemons go with its directory.
fn ends_without_a_trace(lab: Lab) {
    let directory = control_socket(lab.name()).unwrap().parent().unwrap().to_owned();
    assert!(directory.exists());
    lab.down().unwrap();
    assert!(!directory.exists(), "{directory:?}");
}

/// The IPv4 subnet of a link.
fn subnet(lab: &Lab, link: &str) -> String {
    let (node, interface) = lab.topology().link(lab.topology().link_named(link).unwrap()).ends[0];
    let addresses = &lab.topology().node(node).interfaces[interface].addresses;
    addresses.iter().find(|net| net.addr().is_ipv4()).unwrap().trunc().to_string()
}

#[test]
fn traffic_over_ospf_of_frr_moves_when_a_link_loses_its_carrier() {
    let spec = square("frr", "ospf = { hello = '1s', dead = '60s' }");
    let Some(lab) = traffic_moves("OSPF of FRR", "vtysh", &spec) else { return };
    let (_, text) = run(&lab, "r", &["vtysh", "-c", "show ip ospf neighbor"]);
    assert!(text.contains("Full"), "{text}");
    // IPv6 converges too, and the machine has no files of the lab.
    let b =
        lab.host("b").unwrap().addresses().into_iter().map(|net| net.addr()).find(IpAddr::is_ipv6).unwrap();
    await_success(&lab, "a", &format!("ping -n -c1 -W1 {b}"));
    assert!(
        !std::path::Path::new("/run/frr/zebra.vty").exists()
            && !std::path::Path::new("/etc/frr/zebra.conf").exists()
    );
    ends_without_a_trace(lab);
}

#[test]
fn traffic_over_ospf_of_bird_moves_when_a_link_loses_its_carrier() {
    let spec = square("bird", "ospf = { hello = '1s', dead = '60s' }");
    let Some(lab) = traffic_moves("OSPF of BIRD", "bird", &spec) else { return };
    let (_, text) = run(&lab, "r", &["birdc", "show", "ospf", "neighbors", "ospf_ipv4"]);
    assert!(text.contains("Full"), "{text}");
    ends_without_a_trace(lab);
}

#[test]
fn bgp_by_address_and_unnumbered_and_isis_reach_the_far_host() {
    for (daemon, protocol) in [
        ("frr", "bgp = { hello = '1s', dead = '60s' }"),
        ("frr", "bgp = { unnumbered = true, hello = '1s', dead = '60s' }"),
        ("bird", "bgp = true"),
        ("frr", "isis = { hello = '1s', dead = '60s' }"),
    ] {
        let program = if daemon == "frr" { "vtysh" } else { "bird" };
        let Some(lab) = up_with("BGP and IS-IS", program, &square(daemon, protocol)) else { return };
        await_success(&lab, "a", &format!("ping -n -c1 -W1 {}", v4(&lab, "b")));
    }
}

#[test]
fn a_stream_of_pim_reaches_the_receivers_that_joined_and_no_other() {
    let router = |name: &str| {
        format!(
            "[router.{name}]\ndaemon = 'frr'\nospf = {{ hello = '1s', dead = '60s' }}\npim = {{ rp = '10.9.0.1', hello = '1s', dead = '60s' }}\n"
        )
    };
    let spec = format!(
        "[host.a]\naddress = '10.9.0.2/24'\n[host.b]\n[host.c]\n[host.d]\n{}addresses = {{ a-r = '10.9.0.1/24' }}\n{}
        [[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 's']\n[[link]]\nbetween = ['s', 'b']
        [[link]]\nbetween = ['s', 'c']\n[[link]]\nbetween = ['s', 'd']",
        router("r"),
        router("s")
    );
    let Some(lab) = up_with("PIM", "vtysh", &spec) else { return };
    let group = Ipv4Addr::new(239, 1, 2, 3);
    let socket = |host: &str, joins: bool| {
        let IpAddr::V4(own) = v4(&lab, host) else { unreachable!("an IPv4 address") };
        let make = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 5001)).unwrap();
            if joins {
                socket.join_multicast_v4(&group, &own).unwrap();
            }
            socket.set_multicast_ttl_v4(9).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        lab.host(host).unwrap().namespace.within(make).unwrap()
    };
    await_success(&lab, "a", &format!("ping -n -c1 -W1 {}", v4(&lab, "b")));
    let (sender, receivers) = (socket("a", false), ["b", "c"].map(|host| socket(host, true)));
    let deadline = Instant::now() + Duration::from_secs(90);
    let mut counts = [0, 0];
    let payload = [7; 1000];
    let (_open, pace) = std::sync::mpsc::channel::<()>();
    while counts.iter().any(|count| *count < 100) {
        assert!(Instant::now() < deadline, "{counts:?}");
        sender.send_to(&payload, (group, 5001)).unwrap();
        // The pace of the stream: a wait for a message that does not come.
        let _ = pace.recv_timeout(Duration::from_millis(5));
        for (receiver, count) in receivers.iter().zip(&mut counts) {
            while receiver.recv(&mut [0; 2000]).is_ok() {
                *count += 1;
            }
        }
    }
    let (_, text) = run(&lab, "d", &["cat", "/sys/class/net/eth0/statistics/rx_bytes"]);
    let received: u64 = text.trim().parse().unwrap();
    assert!(received < 50_000, "d has joined nothing and received {received} bytes");
}

#[test]
fn the_author_s_configuration_runs_and_a_wrong_one_is_refused_with_its_line() {
    let spec = |config: &str| {
        format!(
            "[host.a]\n[router.r]\ndaemon = 'frr'\nconfig = '''\n{config}\n'''\n[[link]]\nbetween = ['a', 'r']"
        )
    };
    let Some(lab) =
        up_with("configuration", "vtysh", &spec("hostname mine\nip route 192.0.2.0/24 blackhole"))
    else {
        return;
    };
    await_success(&lab, "r", "ip route show | grep -q '^blackhole 192.0.2.0/24'");
    let wrong = fastpath_spec::parse(&spec("hostname mine\nrouter ospff")).unwrap().0;
    let options = fastpath_engine::Options::new(fastpath_net::Options::default());
    let name = format!("wrong-config-{}", std::process::id());
    let refused = Lab::up(wrong, &name, options).expect_err("a wrong configuration");
    assert!(matches!(refused, UpError::Daemon(_)), "{refused}");
    let text = refused.to_string();
    assert!(
        text.contains("router r: vtysh refuses the configuration")
            && text.contains("line 2: % Unknown command"),
        "{text}"
    );
    let mut program = start(&lab, "r", &["pidof", "staticd"]);
    assert!(program.wait().unwrap().success());
}
