//! netlab's topologies as descriptions.

use fastpath_labfiles::{Options, check};
use fastpath_spec::{NO_FILES, Topology};

fn options(only_linux: bool) -> Options<'static> {
    Options { files: NO_FILES, variables: &|_| None, only_linux, ignore_images: false, impairments: None }
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
