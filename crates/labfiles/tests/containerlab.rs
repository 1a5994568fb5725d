//! containerlab's topology files as descriptions.

use fastpath_labfiles::{Options, check, describe};
use fastpath_spec::{Description, HostOrigin, NO_FILES, NodeRole, Warning};

fn options() -> Options<'static> {
    Options {
        files: NO_FILES,
        variables: &|_| None,
        only_linux: false,
        ignore_images: false,
        to_draw: false,
        impairments: None,
    }
}

fn read_with(text: &str, options: &Options) -> (Description, Vec<Warning>) {
    match describe(text, options) {
        Ok(read) => read,
        Err(mistakes) => {
            panic!("{}", mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn read(text: &str) -> Description {
    let (description, warnings) = read_with(text, &options());
    assert_eq!(warnings, []);
    description
}

fn said_with(text: &str, options: &Options) -> Vec<String> {
    check(text, options).mistakes.iter().map(ToString::to_string).collect()
}

/// Two hosts behind a bridge.
const LAN: &str = "\
name: lan
topology:
  defaults:
    kind: linux
    image: one
    exec: [id]
    env: {A: 1, B: x}
  kinds:
    linux: {binds: ['conf/__clabNodeName__:/etc/app', './all:/all:rw,z'], env: {B: y}}
  groups:
    server: {image: two, cmd: 'httpd -f', exec: ['ip link set eth1 up', id]}
  nodes:
    a:
      exec: ['ip addr add 10.0.0.1/24 dev eth1', 'sh -c \"echo $HOME > /x\"']
    b:
      group: server
      sysctls: {net.ipv6.conf.all.forwarding: 1}
      tmpfs: {/run: ''}
      binds: ['own:/all:ro']
    br: {kind: bridge, image: ''}
  links:
    - endpoints: ['a:eth1', 'br:e1']
    - endpoints: [b:eth1, br:e2]
      mtu: 1500
      rate: 10Mbit
      loss: 0.01
";

#[test]
fn a_node_has_what_its_group_its_kind_and_the_defaults_give() {
    let description = read(LAN);
    let [a, b, br] = description.nodes.as_slice() else { panic!("three nodes") };
    assert_eq!((a.kind, b.kind, br.kind), (NodeRole::Host, NodeRole::Host, NodeRole::Switch));
    assert_eq!(
        (&a.host.origin, &b.host.origin),
        (&HostOrigin::Image("one".into()), &HostOrigin::Image("two".into()))
    );
    assert_eq!(b.host.command, ["httpd", "-f"]);
    // A command is not one of a shell, so the words stay.
    assert_eq!(a.exec, ["id", "ip addr add 10.0.0.1/24 dev eth1", "sh -c 'echo $HOME > /x'"]);
    assert_eq!(b.exec, ["id", "ip link set eth1 up"]);
    let env: Vec<String> = a.host.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["A=1", "B=y"]);
    let binds = |node: &fastpath_spec::NodeDescription| -> Vec<String> {
        node.host.binds.iter().map(ToString::to_string).collect()
    };
    assert_eq!(binds(a), ["conf/a:/etc/app", "./all:/all"]);
    assert_eq!(binds(b), ["conf/b:/etc/app", "own:/all:ro"]);
    assert_eq!(b.host.private, ["/run"]);
    let sysctls: Vec<&str> = b.sysctls.keys().map(String::as_str).collect();
    assert_eq!(sysctls, ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"]);
    assert!(!a.assign && a.addresses.is_empty());
}

#[test]
fn links_have_the_interfaces_and_the_values_of_the_file() {
    let description = read(LAN);
    let [first, second] = description.links.as_slice() else { panic!("two links") };
    assert_eq!(first.interfaces, [Some("eth1".to_owned()), Some("e1".to_owned())]);
    assert_eq!((first.mtu, second.mtu), (Some(9500), Some(1500)));
    for direction in [&second.forward, &second.backward] {
        assert!(direction.values.rate.is_some() && direction.values.loss.is_some());
    }
    let checked = check(LAN, &options());
    let topology = checked.value.expect("a valid network").topology;
    assert_eq!(topology.nodes[0].interfaces[0].name, "eth1");
    assert!(topology.nodes[0].interfaces[0].addresses.is_empty());
}

#[test]
fn images_may_be_ignored() {
    let options = Options { ignore_images: true, ..options() };
    let (description, warnings) = read_with(LAN, &options);
    assert_eq!(description.nodes[1].host.origin, HostOrigin::New);
    assert!(description.nodes[1].host.command.is_empty() && description.nodes[0].exec.len() == 3);
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(said[0], "5:12: image of a, b is ignored: --images ignore");
}

/// A typed link with addresses, and nodes that a lab cannot run.
const MIXED: &str = "\
name: mixed
mgmt: {network: x}
topology:
  nodes:
    a: {kind: linux, image: i, mgmt-ipv4: 172.20.20.2}
    b: {kind: linux, image: i}
    srl: {kind: nokia_srlinux}
    h: {kind: linux, image: i, network-mode: host}
  links:
    - type: veth
      endpoints:
        - {node: a, interface: eth1, mac: '02:00:00:00:00:0a', ipv4: 10.0.0.1/24, delay: 5ms}
        - {node: b, interface: eth1}
    - endpoints: ['a:eth2', 'srl:ethernet-1/1']
    - endpoints: ['srl:e1', 'srl:e2']
    - endpoints: ['b:eth3', 'host:machine0']
    - {type: dummy, endpoint: {node: b, interface: d0}}
    - {type: vxlan, endpoint: {node: b, interface: v0}, remote: 10.9.9.9, vni: 1, dst-port: 4}
";

#[test]
fn nodes_and_links_that_a_lab_cannot_have_are_named_with_their_lines() {
    let said = said_with(MIXED, &options());
    assert!(said[0].starts_with("7:17: node srl: a lab has no kind nokia_srlinux"), "{said:#?}");
    assert!(said[1].starts_with("8:46: node h: network-mode host shares"), "{said:#?}");
    assert!(said[2].starts_with("18:7: a link of type vxlan leads to another machine"), "{said:#?}");
    assert_eq!(said.len(), 3);
}

#[test]
fn with_only_linux_other_nodes_are_stubs() {
    let options = Options { only_linux: true, ..options() };
    let (description, warnings) = read_with(MIXED, &options);
    let stubs: Vec<&str> = description
        .nodes
        .iter()
        .filter(|node| node.kind == NodeRole::Router)
        .map(|node| &*node.name)
        .collect();
    assert_eq!(stubs, ["srl", "h", "dummy-3"]);
    let ends: Vec<&[String; 2]> = description.links.iter().map(|link| &link.between).collect();
    assert_eq!(
        ends,
        [
            &["a".into(), "b".into()],
            &["a".into(), "srl".into()],
            &["b".into(), "host-machine0".into()],
            &["b".into(), "dummy-3".to_owned()]
        ]
    );
    let a = &description.nodes[0];
    assert_eq!(
        (a.addresses[0].value.to_string(), a.macs[0].value.to_string()),
        ("10.0.0.1/24".into(), "02:00:00:00:00:0a".into())
    );
    let link = &description.links[0];
    assert!(link.forward.values.delay.is_some() && link.backward.values.delay.is_none());
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    for expected in [
        "2:1: mgmt is ignored: no link leads to mgmt-net, and a lab has no other management network",
        "5:43: mgmt-ipv4 of a is ignored: there is no management network",
        "7:17: srl is a stub: a lab has no kind nokia_srlinux (but linux, bridge, ovs-bridge)",
        "15:7: the link is left out: both ends are on srl, which is a stub",
    ] {
        assert!(said.iter().any(|said| said == expected), "{expected}: {said:#?}");
    }
    let checked = check(MIXED, &options);
    assert_eq!(checked.mistakes, []);
    let none = MIXED.replace("kind: linux", "kind: x");
    assert!(said_with(&none, &options).iter().any(|said| said.contains("no node is of kind linux")));
}

#[test]
fn impairments_may_stand_in_a_file_of_their_own() {
    let overlay = "['*']\ndelay = '1ms'\n[a-br]\ndelay = '2ms'\n['b:eth1']\ndelay = '3ms'\n";
    let with = Options { impairments: Some(("slow.toml", overlay)), ..options() };
    let (description, _) = read_with(LAN, &with);
    let delay = |link: usize| {
        let link = &description.links[link];
        [&link.forward, &link.backward].map(|direction| direction.values.delay.unwrap().to_string())
    };
    assert_eq!((delay(0), delay(1)), (["2ms", "2ms"].map(str::to_owned), ["3ms", "1ms"].map(str::to_owned)));
    for (overlay, expected) in [
        (
            "[a-c]\nrate = '1Mbit'\n",
            "slow.toml:1:2: there is no link or endpoint 'a-c'; write \"*\", an endpoint",
        ),
        ("[a-br]\nrat = '1Mbit'\n", "slow.toml:2:1: link a-br has no key 'rat'; write rate"),
    ] {
        let with = Options { impairments: Some(("slow.toml", overlay)), ..options() };
        let said = said_with(LAN, &with);
        assert!(said[0].contains(expected), "{said:?}");
    }
}

#[test]
fn stages_and_delays_are_commands_before_those_of_the_node() {
    let text = "\
topology:
  nodes:
    a:
      kind: linux
      image: i
      startup-delay: 3
      exec: [main]
      stages:
        healthy: {exec: [{command: last, phase: on-exit}]}
        create: {wait-for: [{node: b, stage: create}], exec: [{command: late, phase: on-exit}, {command: first}]}
        configure: {exec: [{command: outside, target: host}]}
    b: {kind: linux, image: i}
";
    let (description, warnings) = read_with(text, &options());
    assert_eq!(description.nodes[0].exec, ["sleep 3", "first", "late", "main", "last"]);
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|said| said == "11:28: a command of a is ignored: its target is host"),
        "{said:#?}"
    );
}

#[test]
fn variables_of_the_environment_are_filled_in() {
    let text = "topology:\n  nodes:\n    a: {kind: linux, image: 'x:${TAG:-3}', cmd: 'echo $NONE', env-files: [e], env: {N: $TAG}}\n";
    let files = |name: &str| if name == "e" { Ok("M=1\nN=0\n".to_owned()) } else { Err("none".to_owned()) };
    let with =
        Options { files: &files, variables: &|name| (name == "TAG").then(|| "9".to_owned()), ..options() };
    let (description, _) = read_with(text, &with);
    let host = &description.nodes[0].host;
    assert_eq!(
        (&host.origin, &host.command[..]),
        (&HostOrigin::Image("x:9".into()), &["echo".to_owned(), "$NONE".to_owned()][..])
    );
    let env: Vec<String> = host.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["M=1", "N=9"]);
}

#[test]
fn mistakes_are_answered_with_what_to_write() {
    for (text, expected) in [
        ("name: x\n", "1:1: this is not a topology; write topology: with nodes"),
        ("topology:\n  nodes: [a]\n", "2:10: nodes is a list, not a map; write KEY: VALUE"),
        (
            "topology:\n  nodes:\n    a: {kind: linux}\n",
            "3:5: node a has no image; write image: IMAGE, or --images ignore",
        ),
        (
            "topology:\n  nodes:\n    a: {imagge: x, kind: linux}\n",
            "3:9: node a has no key 'imagge'; write image",
        ),
        ("topology:\n  nodes:\n    a:\n", "3:5: node a has no kind; write kind: linux, or kind: bridge"),
        (
            "topology:\n  nodes:\n    a: {kind: linux, image: i, exec: [\"echo 'a\"]}\n",
            "3:39: the command has a quote without an end",
        ),
        ("topology:\n  nodes:\n    a: {kind: linux, image: i, binds: [x]}\n", "3:40: 'x:' does not place"),
        (
            "topology:\n  nodes: {a: {kind: linux, image: i}}\n  links:\n    - endpoints: [a:eth1, c:eth1]\n",
            "4:27: there is no node 'c'; write a",
        ),
        (
            "topology:\n  nodes: {a: {kind: linux, image: i}}\n  links:\n    - endpoints: [a:eth1]\n",
            "4:7: the link has 1 endpoints; write endpoints",
        ),
        (
            "topology:\n  nodes: {a: {kind: linux, image: i}}\n  links:\n    - {type: vetth}\n",
            "4:7: there is no link of type 'vetth'; write type: veth",
        ),
        (
            "topology:\n  nodes: {a: {kind: linux, image: i}}\n  links:\n    - {endpoints: [a:1, a:2], delay: 1}\n",
            "4:31: ",
        ),
        ("topology:\n  nodes:\n{{ range }}\n", "3:1: this is a template of Go"),
    ] {
        let said = said_with(text, &options());
        assert!(said.iter().any(|said| said.starts_with(expected)), "{text}: {said:#?}");
    }
}

/// A node with links out of the lab.
const OUT: &str = "\
name: out
mgmt: {ipv4-subnet: 192.0.2.0/24, network: custom}
topology:
  nodes:
    a: {kind: linux, image: i}
    b: {kind: linux, image: i}
  links:
    - endpoints: ['a:eth1', 'host:a-veth']
      delay: 3ms
    - endpoints: ['macvlan:eno1', 'a:eth2']
    - {type: mgmt-net, endpoint: {node: a, interface: eth3, ipv4: 192.0.2.7/24}, host-interface: x}
    - endpoints: ['b:eth3', 'mgmt-net:y']# joined too
";

#[test]
fn links_out_of_the_lab_are_ports_and_an_uplink() {
    let (description, warnings) = read_with(OUT, &options());
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["2:35: network of mgmt is ignored: its network is an uplink"]);
    let node = |name: &str| description.nodes.iter().find(|node| node.name == name).unwrap();
    let port = |name: &str| node(name).port.as_ref().unwrap().to_string();
    assert_eq!((port("host-a-veth"), port("macvlan-eno1")), ("tap:a-veth".into(), "eno1".into()));
    assert_eq!(node("mgmt-net").kind, NodeRole::Switch);
    let uplink = node("mgmt-net-uplink");
    assert_eq!(uplink.kind, NodeRole::Uplink);
    let addresses: Vec<String> = uplink.addresses.iter().map(|address| address.value.to_string()).collect();
    assert_eq!(addresses, ["192.0.2.1/24", "3fff:172:20:20::1/64"]);
    let ends: Vec<String> = description.links.iter().map(|link| link.between.join(" ")).collect();
    let expected =
        ["a host-a-veth", "macvlan-eno1 a", "mgmt-net-uplink mgmt-net", "a mgmt-net", "b mgmt-net"];
    assert_eq!(ends, expected);
    assert!(description.links[0].forward.values.delay.is_some());
    assert_eq!(description.links[1].interfaces, [None, Some("eth2".to_owned())]);
    assert_eq!(check(OUT, &options()).mistakes, []);
    for (text, expected) in [
        ("['host:x', 'macvlan:y']", "both ends of the link are outside the lab"),
        ("['a:eth9', 'host:a-veth']", "another link leads to host:a-veth"),
        ("['a:eth9', 'host:a name']", "'a name' cannot be an interface of the machine"),
    ] {
        let said = said_with(&format!("{OUT}    - endpoints: {text}\n"), &options());
        assert!(said.len() == 1 && said[0].contains(expected), "{said:?}");
    }
}

#[test]
fn a_node_shares_the_network_of_another_and_traffic_is_that_of_a_spec() {
    let text = "\
name: shared
traffic:
  - {from: a, to: b, rate: 1Mbit}
topology:
  nodes:
    a: {kind: linux}
    b: {kind: linux, network-mode: none}
    m: {kind: linux, network-mode: host, exec: [id]}
    c: {kind: linux, network-mode: 'container:web'}
  links:
    - endpoints: ['a:eth1', 'b:eth1']
";
    let options = Options { ignore_images: true, ..options() };
    let (description, _) = read_with(text, &options);
    let origins: Vec<&HostOrigin> = description.nodes.iter().map(|node| &node.host.origin).collect();
    let attached = |text: &str| HostOrigin::Attached(text.parse().unwrap());
    let (machine, web) = (attached("netns:/proc/self/ns/net"), attached("container:web"));
    assert_eq!(origins, [&HostOrigin::New, &HostOrigin::New, &machine, &web]);
    assert_eq!((description.traffic.len(), &*description.traffic[0].from), (1, "a"));
    for (from, to, expected) in [
        ("mode: none", "mode: nonne", "7:36: network-mode nonne of b is not known here"),
        ("rate: 1Mbit", "rait: 1Mbit", "3:3: traffic: "),
    ] {
        let said = said_with(&text.replace(from, to), &options);
        assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
    }
}

#[test]
fn names_without_effect_are_mistakes_or_named() {
    for (from, to, expected) in [
        ("group: server", "group: servr", "16:14: there is no group 'servr'; write server"),
        (
            "exec: ['ip addr",
            "stages: {healty: {}}\n      exec: ['ip addr",
            "stages of a has no key 'healty'; write healthy",
        ),
        (
            "exec: ['ip addr",
            "stages: {exit: {exec: [{command: id, phase: on-entqer}]}}\n      exec: ['ip addr",
            "there is no phase 'on-entqer'; write on-enter",
        ),
        ("own:/all:ro", "own:/all:rro", "'rro' is not a mode of a bind"),
    ] {
        let said = said_with(&LAN.replace(from, to), &options());
        assert!(said.iter().any(|said| said.contains(expected)), "{to}: {said:#?}");
    }
    for (from, to, expected) in [
        ("{/run: ''}", "{/run: 'size=1m'}", "options of tmpfs /run of b are ignored: it has any size"),
        ("group: server", "group: x", "group x of b is not below groups: it gives nothing"),
        ("  groups:", "    other: {image: x}\n  groups:", "kind other changes nothing: no node has it"),
        ("tmpfs:", "hostname: y\n      tmpfs:", "hostname of b is ignored: a host has the name of its node"),
        ("kind: bridge,", "kind: bridge, exec: [id],", "exec of br is ignored: a switch runs no programs"),
    ] {
        let (_, warnings) = read_with(&LAN.replace(from, to), &options());
        let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|said| said.ends_with(expected)), "{to}: {said:#?}");
    }
}

#[test]
fn a_file_is_drawn_whatever_its_nodes_are() {
    let text = "name: c\ntopology:\n  nodes:\n    spine: {kind: nokia_srlinux, image: srl, labels: {graph-posX: 40, graph-posY: '10'}}\n    \
        leaf|1: {kind: host}\n    unknown: {}\n    sim: {kind: linux}\n    shared: {kind: linux, image: x, network-mode: host}\n  \
        links:\n    - endpoints: ['spine:e1', 'leaf|1:e1']\n    - endpoints: ['unknown:e1', 'sim:eth1']\n    \
        - endpoints: ['sim:eth2', 'host:a_name_that_no_interface_has']\n";
    let refused = check(text, &options()).into_result().expect_err("a lab cannot run it");
    assert!(refused.len() > 3, "{refused:?}");
    let drawn = check(text, &Options { to_draw: true, ..options() }).into_result();
    let (spec, _) = drawn.unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let nodes = &spec.topology.nodes;
    let kind = |name: &str| {
        let node = nodes.iter().find(|node| node.name == name).expect("the node");
        (node.look.foreign_kind.as_deref(), node.look.position)
    };
    assert_eq!(kind("spine"), (Some("nokia_srlinux"), Some([40.0, 10.0])));
    assert_eq!(kind("leaf|1"), (Some("host"), None));
    assert_eq!(kind("sim"), (None, None));
    assert_eq!((nodes.len(), spec.topology.links.len()), (6, 3));
    // What is not a topology is refused here too.
    let wrong = check(
        "name: c\ntopology: {nodes: {a: {kind: linux}}, links: [{endpoints: ['a:eth1', 'b:eth1']}]}",
        &Options { to_draw: true, ..options() },
    );
    assert!(wrong.into_result().is_err());
}
