//! The name servers that hosts of a lab with an uplink ask, and those that the uplink asks.

use fastpath_spec::{NodeKind, Topology};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

/// Returns /etc/resolv.conf for the hosts of a lab with an uplink; `None` without one. The name
/// server is the uplink. Search domains and options are those of this machine.
pub(crate) fn resolv_conf(topology: &Topology, machine: &str) -> Option<String> {
    let uplink = topology.nodes.iter().find(|node| matches!(node.kind, NodeKind::Uplink { .. }))?;
    let first = uplink.interfaces.first()?;
    let mut text = String::new();
    for address in &first.addresses {
        writeln!(text, "nameserver {}", address.addr()).expect("writing to a string");
    }
    let kept = |line: &&str| matches!(line.split_whitespace().next(), Some("search" | "domain" | "options"));
    for line in machine.lines().filter(kept) {
        writeln!(text, "{line}").expect("writing to a string");
    }
    Some(text)
}

/// Returns the name servers in the text of resolv.conf(5): without any, the one of this machine.
pub(super) fn servers(text: &str) -> Vec<IpAddr> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        // An address with a zone ("fe80::1%eth0") is none of std::net.
        words.next().filter(|word| *word == "nameserver").and_then(|_| words.next()?.parse().ok())
    };
    let servers: Vec<IpAddr> = text.lines().filter_map(of_line).collect();
    if servers.is_empty() { vec![Ipv4Addr::LOCALHOST.into()] } else { servers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_ask_the_uplink_and_the_uplink_asks_whom_the_machine_asks() {
        let machine = "# generated\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\nnameserver 2001:db8::53\n\
                       search example.org\noptions edns0\n";
        let servers: Vec<String> = servers(machine).iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["127.0.0.53", "2001:db8::53"]);
        assert_eq!(super::servers("search x\n"), [IpAddr::from([127, 0, 0, 1])], "resolv.conf(5)");
        let spec = "[host.a]\n[uplink.u]\n[[link]]\nbetween = ['a', 'u']";
        let (topology, _) = fastpath_spec::parse(spec).unwrap();
        let text = resolv_conf(&topology, machine).unwrap();
        assert_eq!(
            text,
            "nameserver 10.1.1.3\nnameserver fd00:0:0:1::3\nsearch example.org\noptions edns0\n"
        );
    }
}
