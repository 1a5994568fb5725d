//! NATs and uplinks: their keys, and the mistakes in them.

use fastpath_spec::NodeKind;
use fastpath_spec::{Dependence, NO_FILES, Pooling, describe, parse, resolve};

const LINKS: &str = "\n[[link]]\nbetween = ['a', 'x']\n[[link]]\nbetween = ['x', 'b']\n";

fn said(nodes: &str) -> Vec<String> {
    parse(&format!("[host.a]\n[host.b]\n{nodes}{LINKS}"))
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_nat_has_its_settings_and_is_resolved_to_itself() {
    let text = format!(
        "[host.a]\n[host.b]\naddress = '192.0.2.2/24'\n[nat.x]\ninside = 'a-x'\nmapping = 'address-dependent'\n\
         filtering = 'address-and-port-dependent'\npool = ['192.0.2.10', '192.0.2.11']\npooling = 'arbitrary'\n\
         ports = '5000-5001'\nport_preservation = false\nhairpinning = false\nsessions_max = 9\n\
         timeouts = {{ udp = '30s', icmp = '1s' }}{LINKS}"
    );
    let (topology, _) = parse(&text).unwrap();
    let NodeKind::Nat { nat, .. } = &topology.nodes[2].kind else { panic!("a NAT") };
    assert!(topology.nodes[2].kind.is_router() && nat.inside.iter().eq([&0]));
    let settings = &nat.settings;
    assert_eq!(settings.filtering, Dependence::AddressAndPortDependent);
    assert_eq!((settings.pool.len(), settings.pooling, settings.sessions_max), (2, Pooling::Arbitrary, 9));
    assert_eq!((settings.ports.clone(), settings.timeouts.udp.to_string()), (5000..=5001, "30s".to_owned()));
    assert!(!settings.port_preservation && settings.port_parity && !settings.hairpinning);
    let description = describe(&topology);
    assert_eq!(resolve(&description, NO_FILES).unwrap().0, topology);
    let json = description.to_json().to_string();
    let read = fastpath_spec::Description::from_json(&json, NO_FILES).unwrap();
    assert_eq!(resolve(&read, NO_FILES).unwrap().0, topology);
}

#[test]
fn an_uplink_forwards_ports_to_hosts() {
    let nodes = "[uplink.x]\nforward = { '8080' = 'a:80', 'udp:53' = 'b:5353', '[::1]:22' = 'b:22' }";
    let (topology, _) = parse(&format!("[host.a]\n[host.b]\n{nodes}{LINKS}")).unwrap();
    let NodeKind::Uplink { uplink, .. } = &topology.nodes[2].kind else { panic!("an uplink") };
    let forwards = &uplink.forwards;
    let text =
        |forward: &fastpath_spec::Forward| format!("{} {}:{}", forward.listen, forward.host, forward.port);
    assert_eq!(
        forwards.iter().map(text).collect::<Vec<_>>(),
        ["8080 a:80", "udp:53 b:5353", "[::1]:22 b:22"]
    );
    assert_eq!(resolve(&describe(&topology), NO_FILES).unwrap().0, topology);
}

#[test]
fn mistakes_in_nats_and_uplinks_say_what_to_write() {
    let mut wrong = Vec::new();
    for (nodes, expected) in [
        ("[nat.x]", "3:6: nat x has no inside; write inside = [\"LINK\"], the links of its inside"),
        ("[nat.x]\ninside = 'x-a'", "4:10: x has no link 'x-a'; write x-b"),
        (
            "[nat.x]\ninside = ['a-x', 'x-b']",
            "4:10: all links of nat x are inside, so it translates nothing; leave out the link that leads outside",
        ),
        (
            "[nat.x]\ninside = 'a-x'\nmapping = 'symmetric'",
            "5:11: 'symmetric' is not a value of mapping; write one of endpoint-independent, address-dependent, \
             address-and-port-dependent",
        ),
        (
            "[nat.x]\ninside = 'a-x'\nports = '0-7'",
            "5:9: '0-7' is not a range of ports; write for example ports = \"1024-65535\"",
        ),
        (
            "[nat.x]\ninside = 'a-x'\npool = '198.51.100.1'",
            "5:8: 198.51.100.1 is on no subnet outside of nat x; write an address in 10.1.2.0/24",
        ),
        (
            "[nat.x]\ninside = 'a-x'\ntimeouts = { udp = '0s' }",
            "5:20: a timeout of 0 for udp ends every session at once; write udp = \"60s\"",
        ),
        (
            "[router.x]\ninside = 'a-x'",
            "4:1: router x has no key 'inside'; write one of address, addresses, assign, mac, routes, kind, daemon, ospf, bgp, isis, pim, router_id, config, static_routes, position",
        ),
        (
            "[uplink.x]\nforward = { 'http' = 'a:80' }",
            "4:13: 'http' is not a port of this machine; write \"8080\", \"udp:53\" or \"127.0.0.1:8080\"",
        ),
        (
            "[uplink.x]\nforward = { '80' = 'a:80', '127.0.0.1:80' = 'b:80' }",
            "4:28: port 127.0.0.1:80 is forwarded already, by \"80\"; write another port",
        ),
        (
            "[uplink.x]\nforward = { '80' = 'a' }",
            "4:20: 'a' is not a host and its port; write for example \"a:80\"",
        ),
        ("[uplink.x]\nforward = { '80' = 'wbe:80' }", "4:20: there is no node 'wbe'; write [host.wbe]"),
    ] {
        let expected = expected.replace("\"a:80\"", "\"web:80\"");
        let said = said(nodes);
        if said != [expected.clone()] {
            wrong.push(format!("{said:?}\n  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
