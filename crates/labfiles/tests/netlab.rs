//! netlab's topologies as descriptions.

use fastpath_labfiles::{Options, check};
use fastpath_spec::{NO_FILES, Topology};

fn options(only_linux: bool) -> Options<'static> {
    Options {
        files: NO_FILES,
        variables: &|_| None,
        only_linux,
        ignore_images: false,
        to_draw: false,
        impairments: None,
    }
}

fn said(text: &str, only_linux: bool) -> Vec<String> {
    check(text, &options(only_linux)).mistakes.iter().map(ToString::to_string).collect()
}

fn shown(topology: &Topology) -> Vec<String> {
    let interfaces = topology.nodes.iter().flat_map(|node| {
        node.interfaces.iter().map(move |interface| {
            let addresses: Vec<String> = interface.addresses.iter().map(ToString::to_string).collect();
            format!("{} {} {}", node.name, interface.name, addresses.join(" "))
        })
    });
    interfaces.collect()
}

const TOPOLOGY: &str = "\
defaults.device: linux
module: [ospf]
nodes:
  h-1:
  h2: {id: 20}
  r1: {device: frr}
  r2: {device: frr}
links:
- h-1-h2
- r1-r2
- h-1-h2-r1
- {h2: {ipv4: 192.168.7.9/24}, r2: , prefix: 192.168.7.0/24, mtu: 1400}
- group: edge
  members:
  - [h-1, r2]
";

#[test]
fn hosts_have_the_addresses_and_interfaces_that_netlab_gives() {
    let checked = check(TOPOLOGY, &options(true));
    assert_eq!(checked.mistakes, []);
    let topology = checked.value.unwrap().topology;
    assert_eq!(
        shown(&topology),
        [
            "h-1 eth1 172.16.0.1/24",
            "h-1 eth2 172.16.1.1/24",
            "h-1 eth3 172.16.2.1/24",
            "h2 eth1 172.16.0.20/24",
            "h2 eth2 172.16.1.20/24",
            "h2 eth3 192.168.7.9/24",
            "r1 eth1 ",
            "r1 eth2 ",
            "r2 eth1 ",
            "r2 eth2 ",
            "r2 eth3 ",
            "lan-3 eth0 ",
            "lan-3 eth1 ",
            "lan-3 eth2 ",
        ]
    );
    let warnings: Vec<String> = checked.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings.contains(&"6:16: r1 is a stub: a lab has no device frr (but linux)".to_owned()),
        "{warnings:#?}"
    );
    assert!(warnings.iter().any(|said| said.starts_with("2:1: module is ignored")), "{warnings:#?}");
}

#[test]
fn devices_that_a_lab_cannot_run_are_named_with_their_lines() {
    assert_eq!(
        said(TOPOLOGY, false),
        [
            "6:16: node r1: a lab has no device frr (but linux); write device: linux, or --kinds linux, which puts a stub in its place",
            "7:16: node r2: a lab has no device frr (but linux); write device: linux, or --kinds linux, which puts a stub in its place",
        ]
    );
    let group = "groups:\n  x: {device: eos, members: [a]}\nnodes: [a, b]\nlinks: [a-b]\n";
    let all = said(group, false);
    assert!(all[0].starts_with("2:15: node a: a lab has no device eos"), "{all:?}");
    assert!(all[1].starts_with("3:12: node b: no device is given"), "{all:?}");
    assert!(said(group, true)[0].contains("no node is of device linux, so nothing runs"));
    let unknown = said("defaults: {device: linux}\nnodes: [ab, ac]\nlinks: [ab-ax]\n", false);
    assert!(unknown[0].starts_with("3:9: there is no node 'ax'; write a"), "{unknown:?}");
}

/// Two hosts on two links.
const PAIR: &str = "\
defaults.device: linux
nodes: [a, b]
links:
- a-b
- {a: , b: }
";

fn warned(text: &str) -> Vec<String> {
    let checked = check(text, &options(true));
    assert_eq!(checked.mistakes, [], "{text}");
    checked
        .warnings
        .iter()
        .filter(|warning| warning.code.word() != "default")
        .map(ToString::to_string)
        .collect()
}

/// The interfaces of a text without mistakes.
fn of(text: &str) -> Vec<String> {
    let checked = check(text, &options(true));
    assert_eq!(checked.mistakes, [], "{text}");
    shown(&checked.value.unwrap().topology)
}

#[test]
fn unknown_words_of_every_level_are_mistakes_with_what_is_meant() {
    for (text, expected) in [
        ("lniks: [a-b]", "4:1: the file has no key 'lniks'; write links"),
        ("links: [{a: , b: , mtuu: 1400}]", "4:20: a link has no key 'mtuu'; write mtu"),
        ("links: [{a: , bx: }]", "4:15: a link has no key 'bx'; write b"),
        ("links: [{a: , b: {ipv5: 1}}]", "4:19: b of a link has no key 'ipv5'; write ipv4"),
        ("links: [{a: , b: , type: lann}]", "4:26: there is no link of type 'lann'; write lan"),
        ("links: [{a: , b: , type: stub}]", "4:26: a link of type stub has 1 nodes, not 2"),
        ("links: [{ax: , bx: }]", "4:10: there is no node 'ax'; write a"),
        ("links: [{a: , b: , tc: {dlay: 1}}]", "4:25: tc has no key 'dlay'; write delay"),
        ("links: [{a: , b: , tc: {delay: fast}}]", "4:32: delay of tc is not a time; write delay: 10ms"),
        ("links: [{a: , b: , tc: {loss: 101}}]", "4:31: loss of tc is not a number of percent"),
        ("links: [{a: , b: , tc: {rate: 10M}}]", "4:31: rate of tc is not a whole number of kbit/s"),
        ("links: [{a: , b: , prefix: 10.0.0.1/24}]", "4:28: 10.0.0.1/24 is an address in a subnet"),
        ("links: [{a: , b: , prefix: {ipv4: no}}]", "4:35: 'no' is not a prefix of IPv4"),
        ("links: [{a: , b: , pool: mine}]", "4:26: there is no pool 'mine'; write one of"),
        ("links: [{a: , b: , role: lann}]", "4:26: role is not the name of a pool; write lan"),
        ("links: [{a: {ifindex: 1}, b: {ifindex: x}}]", "4:40: ifindex is not a whole number"),
        ("links: [{a: text, b: }]", "4:13: a of a link is text, not a map"),
        ("links: [{group: g, a: , b: }]", "4:17: a group of links has no list of members"),
        ("links: [a-]", "4:9: there is no node ''"),
        ("links: [[]]", "4:9: the link has no nodes"),
        ("links: [{a: , b: , prefix: {ipv4: 10.0.0.0/32}}]", "4:9: 10.0.0.0/32 has no addresses for 2 nodes"),
        ("groups: {g: [a, c]}", "4:17: there is no node or group 'c'; write a"),
        ("groups: {g: {membres: [a]}}", "4:14: group g has no key 'membres'; write members"),
        (
            "addressing: {lan: {ipv4: 10.0.0.0/8, prefixx: 24}}",
            "4:38: pool lan has no key 'prefixx'; write prefix",
        ),
        ("addressing: {lan: 10.0.0.0/33}", "4:19: '10.0.0.0/33' is not a prefix of IPv4"),
        ("addressing: {lan: {ipv4: 10.0.0.0/24, prefix: 16}}", "4:26: a subnet of 10.0.0.0/24 cannot have"),
        ("defaults: {devic: linux}", "1:1: there is already a value of 'defaults'"),
    ] {
        let text = format!("defaults.device: linux\nnodes: [a, b]\n# {{{{ a comment }}}}\n{text}\n");
        let said = said(&text, false);
        if expected.contains("already") {
            assert!(!said.is_empty(), "{text}");
            continue;
        }
        assert!(said.iter().any(|said| said.starts_with(expected)), "{text}: {said:#?}");
    }
    for (nodes, expected) in [
        ("{a: {id: seven}, b: }", "2:17: id is not a whole number from 1 to 150; write id: 1"),
        ("{a: {id: 151}, b: }", "2:17: id is not a whole number from 1 to 150"),
        ("{a: {id: 3}, b: {id: 3}}", "2:29: node a has the id 3 too; write another number"),
        ("{a: {devcie: linux}, b: }", "2:13: node a has no key 'devcie'; write device"),
        ("{a: {role: hosst}, b: }", "2:19: 'hosst' is not a role of a node; write role: host"),
        ("{a: {clone.count: 2}, b: }", "2:13: clone of a makes other nodes"),
        ("[a, {b: }]", "2:12: the node has no name"),
    ] {
        let said = said(&format!("defaults.device: linux\nnodes: {nodes}\nlinks: [a-b]\n"), false);
        assert!(said.iter().any(|said| said.starts_with(expected)), "{nodes}: {said:#?}");
    }
    let said = said("defaults: {devic: linux}\nnodes: [a, b]\nlinks: [a-b]\n", false);
    assert!(said[0].starts_with("1:12: defaults has no key 'devic'; write device"), "{said:#?}");
}

#[test]
fn words_without_effect_are_named_once() {
    let text = "\
provider: clab
defaults: {device: linux, devices.linux.image: x, attributes.link.cost: int}
plugin: [mine]
validate: {}
mine: {x: 1}
nodes: {a: {module: [ospf], clab.image: x}, b: {module: [bgp]}}
groups: {g: [a], h: {members: [b], config: [x]}}
addressing: {mgmt.start: 5, core: 10.9.0.0/16}
prefix: {spare: 10.8.0.0/24}
links:
- {a: {ospf: }, b: , bandwidth: 100, ospf.cost: 3, cost: 4}
- {a: , b: , ospf.cost: 3, role: passive}
";
    assert_eq!(
        warned(text),
        [
            "1:1: provider is ignored: hosts are namespaces of this machine",
            "2:27: devices of defaults is ignored: modules configure devices other than linux",
            "3:1: plugin is ignored: plugins are programs of netlab",
            "4:1: validate is ignored: tests of a lab are those of a spec ([[expect]])",
            "5:1: mine is ignored: the topology declares it for other programs",
            "6:13: module of a, b is ignored: modules configure devices other than linux",
            "6:29: clab of a is ignored: hosts are namespaces of this machine",
            "7:10: group g changes nothing: it gives no device, role or mtu",
            "7:18: group h changes nothing: it gives no device, role or mtu",
            "7:36: config of group h is ignored: it is of another program",
            "8:14: pool mgmt changes nothing: no link has addresses of it",
            "8:19: start of pool mgmt is ignored: it is for management networks",
            "8:29: pool core changes nothing: no link has addresses of it",
            "9:10: prefix spare changes nothing: no link has it",
            "11:8: ospf of a on a link is ignored: modules configure devices other than linux",
            "11:22: bandwidth of a link is ignored: it is a metric of routing and limits nothing (write tc: {rate: KBPS})",
            "11:38: ospf of 2 links is ignored: modules configure devices other than linux",
            "11:52: cost of a link is ignored: the topology declares it for other programs",
            "12:28: role of a link is ignored: no pool has its name",
        ]
    );
}

#[test]
fn tc_of_a_link_is_what_netem_of_netlab_does() {
    let text = "\
defaults.device: linux
nodes: [a, b, c]
links:
- {a: , b: {tc: {loss: 2}}, tc: {delay: 10ms, jitter: 1, loss: 0.5, rate: 2000, corrupt: 1, duplicate: 3, reorder: 4}}
- {a: , b: , c: , tc.delay: 0.5s}
";
    let checked = check(text, &options(false));
    assert_eq!(checked.mistakes, []);
    let description = checked.value.unwrap().description;
    let [pair, first, ..] = description.links.as_slice() else { panic!("two links") };
    let json = |change: &_| serde_json::Value::Object(fastpath_spec::change_to_json(change)).to_string();
    let values = json(&pair.forward.values);
    for expected in [
        "\"delay\":\"10ms\"",
        "\"half_width\":\"1ms\"",
        "\"loss\":\"0.5%\"",
        "\"rate\":\"2Mbit\"",
        "\"corrupt\":\"1%\"",
        "\"duplicate\":\"3%\"",
        "\"reorder\":\"4%\"",
        "\"queue\":\"1000p\"",
    ] {
        assert!(values.contains(expected), "{expected}: {values}");
    }
    assert!(json(&pair.backward.values).contains("\"loss\":\"2%\""));
    // netem is at the interface of a node: what the switch sends is not delayed.
    assert_eq!(
        (json(&first.forward.values), json(&first.backward.values)),
        ("{\"delay\":\"500ms\"}".into(), "{}".into())
    );
    let off = text.replace("defaults.device: linux", "defaults: {device: linux, tc.enable: False}");
    assert_eq!(warned(&off), ["1:38: tc of links is ignored: defaults.tc.enable is not true"]);
}

#[test]
fn subnets_are_those_of_prefixes_and_pools() {
    let with = |link: &str, top: &str| {
        let text = PAIR.replace("- {a: , b: }", link);
        let mut all = of(&format!("{text}{top}"));
        all.retain(|interface| interface.contains("eth2"));
        all.join(", ")
    };
    for (link, top, expected) in [
        ("- {a: , b: }", "", "a eth2 172.16.1.1/24, b eth2 172.16.1.2/24"),
        ("- a - b", "", "a eth2 172.16.1.1/24, b eth2 172.16.1.2/24"),
        ("- {a: , b: , prefix: 10.5.0.0/24}", "", "a eth2 10.5.0.1/24, b eth2 10.5.0.2/24"),
        ("- {a: , b: , prefix.ipv4: 10.5.0.0/24}", "", "a eth2 10.5.0.1/24, b eth2 10.5.0.2/24"),
        ("- {a: , b: , prefix: false}", "", "a eth2 , b eth2 "),
        ("- {a: , b: , unnumbered: True}", "", "a eth2 , b eth2 "),
        (
            "- {a: , b: {ipv6: 7}, prefix: {ipv4: 10.5.0.0/24, ipv6: '2001:db8::/64'}}",
            "",
            "a eth2 10.5.0.1/24 2001:db8::1/64, b eth2 10.5.0.2/24 2001:db8::7/64",
        ),
        (
            "- {a: {ipv4: 172.16.1.9/24}, b: {ipv4: 172.16.1.8}}",
            "",
            "a eth2 172.16.1.9/24, b eth2 172.16.1.8/24",
        ),
        ("- {a: {ipv4: false}, b: , prefix.allocation: sequential}", "", "a eth2 , b eth2 172.16.1.2/24"),
        (
            "- {a: , b: , pool: core}",
            "addressing: {core: {ipv4: 10.7.0.0/16, prefix: 29}}\n",
            "a eth2 10.7.0.1/29, b eth2 10.7.0.2/29",
        ),
        (
            "- {a: , b: , role: core}",
            "addressing.core: 10.7.0.0/16\n",
            "a eth2 10.7.0.1/24, b eth2 10.7.0.2/24",
        ),
        (
            "- {a: , b: }",
            "addressing.lan: {ipv6: '2001:db8:1::/48'}\n",
            "a eth2 172.16.1.1/24 2001:db8:1:1::1/64, b eth2 172.16.1.2/24 2001:db8:1:1::2/64",
        ),
        (
            "- {a: , b: , prefix: named}",
            "prefix: {named: {ipv4: 10.6.0.0/24}}\n",
            "a eth2 10.6.0.1/24, b eth2 10.6.0.2/24",
        ),
        ("- {b: , a: , type: p2p}", "", "a eth2 10.1.0.1/30, b eth2 10.1.0.2/30"),
        ("- {a: , b: , prefix: 10.5.0.0/31}", "", "a eth2 10.5.0.0/31, b eth2 10.5.0.1/31"),
        ("- {group: g, prefix: 10.5.0.0/24, members: [a-b]}", "", "a eth2 10.5.0.1/24, b eth2 10.5.0.2/24"),
        ("- {disable: true, a: }\n- [a, b]", "", "a eth2 172.16.1.1/24, b eth2 172.16.1.2/24"),
    ] {
        assert_eq!(with(link, top), expected, "{link} {top}");
    }
    assert_eq!(
        of(&PAIR.replace("- {a: , b: }", "- {a: {ifindex: 7}, b: {ifname: up}}"))[1],
        "a eth7 172.16.1.1/24"
    );
    let full = PAIR.to_owned() + "addressing: {lan: 10.0.0.0/24}\n";
    assert!(said(&full, false)[0].starts_with("5:3: pool lan has no subnet left of 10.0.0.0/24"));
}

#[test]
fn nodes_have_numbers_of_their_own_and_may_be_made_by_groups() {
    let text = "\
defaults.device: frr
groups:
  _auto_create: True
  hosts: {members: [x, y, z], device: linux, node_data.mtu: 1400}
nodes: {z: {id: 1}}
links: {core: [x-y], edge: [{y: , z: , name: '{{ not a template }}'}]}
";
    assert_eq!(
        of(text),
        ["z eth1 172.16.1.1/24", "x eth1 172.16.0.2/24", "y eth1 172.16.0.3/24", "y eth2 172.16.1.3/24",]
    );
    let mtu = |text: &str| -> Vec<Option<u32>> {
        let checked = check(text, &options(false));
        assert_eq!(checked.mistakes, []);
        checked.value.unwrap().description.links.iter().map(|link| link.mtu).collect()
    };
    assert_eq!(mtu(text), [Some(1400), Some(1400)]);
    let other = text.replace("z: {id: 1}", "z: {id: 1, mtu: 1300}");
    assert_eq!(mtu(&other), [Some(1400), Some(1300)]);
    assert_eq!(warned(&other), ["6:29: both ends of the link have mtu 1300, the smaller of 1400 and 1300"]);
    assert_eq!(mtu(&text.replace("z: , name", "z: , mtu: 9000, name")), [Some(1400), Some(9000)]);
}
