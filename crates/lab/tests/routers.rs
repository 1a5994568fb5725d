//! Routers that are namespaces: the kernel forwards, and programs run in them.
#![cfg(target_os = "linux")]

mod common;

use common::{run, up, up_with};
use fastpath_engine::control::{Changes, Request, Response, Setting, call};
use fastpath_lab::{Lab, control_socket};
use std::net::IpAddr;

/// Sets a link, or the direction of it that leads from a node, up or down.
fn set_state(lab: &Lab, link: &str, from: Option<&str>, state: &str) {
    let set = [("state".to_owned(), state.into())].into_iter().collect();
    let setting = Setting { link: Some(link.to_owned()), from: from.map(str::to_owned), set, group: None };
    let request = Request::Set(Changes { changes: vec![setting], at: None });
    let answer = call(&control_socket(lab.name()).unwrap(), &request).unwrap();
    assert!(matches!(answer, Response::Done(_)), "{answer:?}");
}

/// Waits until the interface of a node has a carrier or none (`1` or `0`).
fn await_carrier(lab: &Lab, node: &str, interface: &str, carrier: &str) {
    let wait =
        format!("until test $(cat /sys/class/net/{interface}/carrier) = {carrier}; do sleep 0.01; done");
    let (output, text) = run(lab, node, &["timeout", "60", "sh", "-c", &wait]);
    assert!(output.status.success(), "{node} {interface}: {text}");
}

/// a – k – r – l – b with kernel routers k and l, and r inside the engine.
const MIXED: &str = "[host.a]\n[host.b]\n[router.k]\nkind = 'kernel'\n[router.r]\n[router.l]\nkind = 'kernel'
    [[link]]\nbetween = ['a', 'k']\n[[link]]\nbetween = ['k', 'r']\ndelay = '2ms'
    [[link]]\nbetween = ['r', 'l']\n[[link]]\nbetween = ['l', 'b']";

#[test]
fn kernel_routers_forward_beside_routers_of_the_engine() {
    let Some(lab) = up_with("kernel routers", "ping", MIXED) else { return };
    for wanted in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        let b = lab.host("b").unwrap();
        let target = b.addresses().iter().map(|net| net.addr()).find(wanted).unwrap();
        // Three routers decrement it.
        for (ttl, arrives) in [("4", true), ("3", false)] {
            let (output, text) =
                run(&lab, "a", &["ping", "-n", "-c1", "-W9", "-t", ttl, &target.to_string()]);
            assert_eq!(output.status.success(), arrives, "{text}");
        }
    }
    let (_, text) =
        run(&lab, "k", &["sh", "-c", "echo $FASTPATH_HOST; ping -n -c1 -W9 b; ls /sys/class/net"]);
    assert!(text.starts_with("k\n") && text.contains(" 0% packet loss"), "{text}");
    assert!(text.ends_with("eth0\neth1\nlo\n"), "{text}");
}

#[test]
fn a_lab_of_kernel_routers_only_is_a_lab() {
    let spec = "[router.k]\nkind = 'kernel'\n[router.l]\nkind = 'kernel'\n[[link]]\nbetween = ['k', 'l']";
    let Some(lab) = up_with("kernel routers only", "ping", spec) else { return };
    let (output, text) = run(&lab, "k", &["ping", "-n", "-c1", "-W9", "l"]);
    assert!(output.status.success(), "{text}");
}

#[test]
fn the_carrier_of_an_interface_follows_the_state_of_its_own_link() {
    let spec = "[host.a]\n[host.b]\n[host.c]\n[switch.s]\n[router.k]\nkind = 'kernel'
        [[link]]\nbetween = ['a', 's']\n[[link]]\nbetween = ['b', 's']
        [[link]]\nbetween = ['k', 's']\n[[link]]\nbetween = ['k', 'c']\nstate = 'down'";
    let Some(lab) = up("carrier", spec) else { return };
    // A link that is down from the start.
    for (node, interface) in [("k", "eth1"), ("c", "eth0")] {
        await_carrier(&lab, node, interface, "0");
    }
    set_state(&lab, "k-c", None, "up");
    await_carrier(&lab, "k", "eth1", "1");
    await_carrier(&lab, "c", "eth0", "1");
    // Behind the switch b keeps its carrier, and so does a link with one direction down.
    set_state(&lab, "b-s", Some("b"), "down");
    set_state(&lab, "a-s", None, "down");
    await_carrier(&lab, "a", "eth0", "0");
    await_carrier(&lab, "b", "eth0", "1");
    await_carrier(&lab, "k", "eth0", "1");
    // What a host sends without a carrier is not lost for want of speed.
    let (_, text) = run(&lab, "a", &["ping", "-q", "-c5", "-i0.01", "-W1", "b"]);
    assert!(text.contains("5 packets transmitted, 0 received"), "{text}");
    set_state(&lab, "a-s", None, "up");
    await_carrier(&lab, "a", "eth0", "1");
    assert_eq!(lab.report().expect("it runs").lost_under_load(), 0);
}
