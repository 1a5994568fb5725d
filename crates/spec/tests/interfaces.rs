//! Names of interfaces, addresses that are not assigned, and kernel parameters of hosts.

use fastpath_spec::{Description, Topology, describe, parse, parse_changes, resolve};

fn names(topology: &Topology) -> Vec<Vec<&str>> {
    topology.nodes.iter().map(|node| node.interfaces.iter().map(|i| i.name.as_str()).collect()).collect()
}

const LINKS: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n";

#[test]
fn interfaces_have_the_names_that_links_give_and_the_others_stay_apart() {
    let text = format!(
        "{LINKS}interfaces = ['', 'up']\n[[link]]\nbetween = ['a', 'b']\ninterfaces = ['eth0', '']\n\
         [[link]]\nbetween = ['a', 'b']\n"
    );
    let (topology, _) = parse(&text).unwrap();
    assert_eq!(names(&topology), [["eth1", "eth0", "eth2"], ["up", "eth1", "eth2"]]);
    let described = describe(&topology);
    let again = Description::from_json(&described.to_json().to_string(), fastpath_spec::NO_FILES).unwrap();
    assert_eq!(resolve(&again, fastpath_spec::NO_FILES).unwrap().0, topology);
}

#[test]
fn what_cannot_be_an_interface_or_a_parameter_is_refused() {
    for (keys, expected) in [
        ("interfaces = ['lo', '']", "5:15: 'lo' cannot be the name of an interface; write up to 15 letters"),
        ("interfaces = ['a/b', '']", "5:15: 'a/b' cannot be the name of an interface; "),
        ("interfaces = ['', '1234567890123456']", "5:19: '1234567890123456' cannot be the name"),
        ("interfaces = ['x']", "5:14: interfaces is not a list of two names; write interfaces = "),
        (
            "interfaces = ['x', '']\n[[link]]\nbetween = ['b', 'a']\ninterfaces = ['', 'x']",
            "8:19: a already has an interface x; write another name",
        ),
        ("[host.c]\nsysctls = { 'kernel.hostname' = 'x' }", "6:33: 'kernel.hostname' is not a parameter"),
        ("[host.c]\nsysctls = { 'net.../x' = '1' }", "6:26: 'net.../x' is not a parameter"),
        ("[host.c]\nassign = 1", "6:10: assign is a whole number, not true or false"),
    ] {
        let said: Vec<String> =
            parse(&format!("{LINKS}{keys}\n")).unwrap_err().iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|said| said.starts_with(expected)), "{keys}: {said:?}");
    }
}

#[test]
fn a_node_that_assigns_nothing_has_only_the_addresses_given() {
    let text = format!(
        "{}\n[[link]]\nbetween = ['a', 'b']\n",
        LINKS.replace("[host.a]", "[host.a]\nassign = false\naddresses = { a-b = '10.0.0.1/24' }")
    );
    let (topology, _) = parse(&text).unwrap();
    let addresses = |node: usize| -> Vec<usize> {
        topology.nodes[node].interfaces.iter().map(|interface| interface.addresses.len()).collect()
    };
    assert_eq!((addresses(0), addresses(1)), (vec![1, 0], vec![2, 2]));
    // The other end has an address of the subnet that is given.
    assert_eq!(topology.nodes[1].interfaces[0].addresses[0].to_string(), "10.0.0.2/24");
    let again = describe(&topology);
    assert!(!again.nodes[0].assign && again.nodes[1].assign);
    assert_eq!(resolve(&again, fastpath_spec::NO_FILES).unwrap().0, topology);
}

#[test]
fn a_file_of_values_has_a_table_for_each_name() {
    let changes = parse_changes("[a-b]\nrate = '1Mbit'\n['a:eth1']\nloss = '1%'\n").unwrap();
    let found: Vec<_> =
        changes.iter().map(|(name, at, change)| (&**name, *at, change.loss.is_some())).collect();
    assert_eq!(found, [("a-b", 1, false), ("a:eth1", 22, true)]);
    for (text, expected) in [
        ("[a-b]\nrat = '1Mbit'\n", "2:1: link a-b has no key 'rat'; write rate"),
        ("rate = '1Mbit'\n", "1:8: rate is text, not a table; write rate = { delay = "),
    ] {
        assert!(parse_changes(text).unwrap_err()[0].to_string().starts_with(expected));
    }
}
