//! Routers that are namespaces: the kernel forwards, and programs run in them.
#![cfg(target_os = "linux")]

mod common;

use common::{run, up_with};
use std::net::IpAddr;

/// a – k – r – l – b with kernel routers k and l, and r inside the engine.
const MIXED: &str = "[host.a]\n[host.b]\n[router.k]\nkind = 'kernel'\n[router.r]\n[router.l]\nkind = 'kernel'
    [[link]]\nbetween = ['a', 'k']\n[[link]]\nbetween = ['k', 'r']\ndelay = '2ms'
    [[link]]\nbetween = ['r', 'l']\n[[link]]\nbetween = ['l', 'b']";

#[test]
fn kernel_routers_forward_beside_routers_of_the_engine() {
    let Some(lab) = up_with("kernel routers", "ping", MIXED) else { return };
    for wanted in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        let b = lab.host("b").unwrap();
        let target = b.addresses.iter().map(|net| net.addr()).find(wanted).unwrap();
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
