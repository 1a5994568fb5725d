//! A resolved topology is a description with nothing left out: resolving it again gives the same
//! topology.

use fastpath_spec::{
    DaemonProgram, Description, DirectionDescription, EventDescription, Forward, GroupDescription,
    HostOrigin, HostSettings, KernelRouter, LinkDescription, NO_FILES, NodeDescription, NodeRole, OnLink,
    ProtocolKind, ProtocolSettings, RoutingDaemon, RuleSource, Start, Topology, TraceDescription, TraceEnd,
    TraceSource, describe, parse_change, read, resolve,
};
use fastpath_units::{Duration, Time};
use proptest::prelude::*;

/// Describes the topology, writes that as JSON, reads it and resolves it.
fn again(topology: &Topology, files: &fastpath_spec::Files) -> Topology {
    let text = describe(topology).to_json().to_string();
    let description =
        Description::from_json(&text, files).unwrap_or_else(|mistakes| panic!("{text}\n{}", mistakes[0]));
    match resolve(&description, files) {
        Ok((topology, _)) => topology,
        Err(mistakes) => panic!("{text}\n{}", mistakes[0]),
    }
}

#[test]
fn every_example_is_resolved_to_itself() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files =
        |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).map_err(|error| error.to_string());
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let path = entry.expect("an example").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).expect("text");
            let (spec, _) = read(&text, &files).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
            assert_eq!(again(&spec.topology, &files), spec.topology, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen} examples in {folder}");
}

#[test]
fn a_description_is_plain_data() {
    let text = r#"{
        "seed": 7,
        "nodes": [{"name": "a", "kind": "host"}, {"name": "b", "kind": "host", "address": "10.0.0.2/24"}],
        "links": [{"between": ["a", "b"], "rate": "10Mbit", "queue": "9p", "forward": {"loss": "1%"}}],
        "events": [{"at": "10s", "link": "a-b", "direction": "forward", "delay": "50ms"}],
        "groups": [],
        "engine": {"tolerance": "1ms", "workers": 2}
    }"#;
    let description: Description = serde_json::from_str(text).expect("a description");
    assert_eq!((description.seed, description.nodes.len(), description.links.len()), (Some(7), 2, 1));
    assert_eq!(description.links[0].forward.values, parse_change("loss = '1%'").unwrap());
    let written = serde_json::to_string(&description).expect("plain data");
    assert_eq!(serde_json::from_str::<Description>(&written).expect("a description"), description);
    let wrong: Result<Description, _> = serde_json::from_str(&text.replace("10Mbit", "10Mbyte"));
    assert!(wrong.unwrap_err().to_string().contains("'10Mbyte' is not a rate"));
}

#[test]
fn mistakes_of_a_description_carry_their_paths() {
    let link = |a: &str, b: &str| LinkDescription::new(a, b);
    let mut lossy = link("a", "b");
    lossy.preset = Some("let".to_owned());
    lossy.forward.traces = Some(vec![TraceDescription {
        source: TraceSource::File { path: "x.csv".to_owned(), format: None },
        end: TraceEnd::Repeat,
        offset: Duration::ZERO,
    }]);
    let mut node = NodeDescription::host("b");
    node.addresses.push(OnLink { link: Some("c".to_owned()), value: "10.0.0.2/24".parse().unwrap() });
    let event = EventDescription { links: vec!["a-b".into(), "l".into()], ..EventDescription::default() };
    let description = Description {
        nodes: vec![NodeDescription::host("a"), node, NodeDescription::host("a")],
        links: vec![link("a", "x"), lossy],
        events: vec![event],
        ..Description::default()
    };
    let said: Vec<String> =
        resolve(&description, NO_FILES).unwrap_err().iter().map(ToString::to_string).collect();
    let expected = [
        "nodes[2].name: there is already a node 'a'; ",
        "links[0].between[1]: there is no node 'x'; ",
        "links[1].preset: there is no preset 'let'; write \"lte\"",
        "links[1].forward.trace[0].file: x.csv: no files can be read here; ",
        "nodes[1].addresses.c[0]: b has no link 'c'; ",
        "events[0].link[1]: there is no link 'l'; ",
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}");
    }
}

const VALUES: &[&str] = &[
    "rate = '10Mbit'\nqueue = '50p'",
    "rate = '1.000001Mbit'\ndelay = '1.5ms'",
    "overhead = 'ethernet'\nrate = '300kbit'\nqueue = { kind = 'codel', ecn = true }",
    "overhead = -14",
    "overhead = { bytes = 8, cell = 48, cell_overhead = 5 }",
    "loss = '1%'",
    "loss = 'none'",
    "loss = ['0.5%', { probability = 0.123456789, at = 'egress' }]",
    "loss = { kind = 'outage', start = '1s', for = '200ms', every = '5s', at = 'egress' }",
    "loss = { probability = '0%', ecn = true }",
    "queue = 'unlimited'\nstate = 'down'",
    "queue = '20ms'\nrate = '1Mbit'",
    "queue = { kind = 'red', limit = '64KiB', min = '5KiB', max = '15KiB', gentle = false }",
    "queue = { kind = 'prio', bands = [{ dscp = ['EF'], limit = '10p' }, { limit = '100p' }] }",
    "jitter = { law = 'normal', sd = '1ms', half_life = '50ms', reorder = 'drop' }",
    "jitter = { law = 'pareto', mean = '2ms', shape = 2.1 }",
    "jitter = { law = 'table', values = ['1ms', '2.5ms'] }\nreorder = '25%'",
    "jitter = 'none'\nduplicate = { probability = '1%', later = '5ms' }\ncorrupt = { bits = 1e-6 }",
    "slots = { mean = '2ms', law = { law = 'exponential', mean = '1ms' } }",
    "slots = 'none'\nrate = 'unlimited'",
];

/// What a random description is made of.
#[derive(Clone, Debug)]
struct Parts {
    kinds: Vec<u8>,
    links: Vec<(usize, usize, [Option<usize>; 3], u8)>,
    events: Vec<(u64, usize, u8, usize)>,
    seed: Option<u64>,
}

fn parts() -> impl Strategy<Value = Parts> {
    let value = || proptest::option::of(0..VALUES.len());
    let link = (0usize..6, 0usize..6, [value(), value(), value()], 0u8..64);
    let event = (0u64..20, 0usize..8, 0u8..3, 0..VALUES.len());
    (
        proptest::collection::vec(0u8..8, 1..6),
        proptest::collection::vec(link, 0..8),
        proptest::collection::vec(event, 0..4),
        proptest::option::of(any::<u64>()),
    )
        .prop_map(|(kinds, links, events, seed)| Parts { kinds, links, events, seed })
}

fn node(index: usize, kind: u8) -> NodeDescription {
    let role = match kind {
        0..=2 => NodeRole::Host,
        3 | 7 => NodeRole::Router,
        4 => NodeRole::Switch,
        5 => NodeRole::Uplink,
        _ => NodeRole::OpenFlow,
    };
    let mut node = NodeDescription::new(role, format!("n{index}"));
    node.host = host(index, kind);
    if role == NodeRole::Uplink {
        let listen = ["8080", "udp:53", "10.0.0.1:1", "udp:[::1]:9"][index % 4].parse().expect("a port");
        node.uplink.forwards.push(Forward { listen, host: "first".to_owned(), port: 80 });
    }
    if kind == 0 {
        node.assign = index.is_multiple_of(2);
        node.sysctls = [("net.ipv4.ip_forward".to_owned(), index.to_string())].into();
        node.exec = vec!["echo \"a\"".to_owned(), format!("sleep {index} &")];
    }
    node.kernel = (kind == 7).then(|| KernelRouter { daemon: daemon(index).map(Box::new) });
    if role == NodeRole::OpenFlow {
        node.rules = Some(RuleSource::Text("priority=1,actions=flood".to_owned()));
    }
    node
}

/// No daemon, or one with some protocols or the author's configuration.
fn daemon(index: usize) -> Option<RoutingDaemon> {
    let settings = ProtocolSettings {
        hello: index.is_multiple_of(2).then_some(1),
        dead: index.is_multiple_of(3).then_some(4),
        area: Some("0.0.0.7".to_owned()),
        ..ProtocolSettings::default()
    };
    let bgp = ProtocolSettings {
        asn: Some(65000 + index as u32),
        unnumbered: index % 2 == 1,
        ..ProtocolSettings::default()
    };
    let program = [DaemonProgram::Frr, DaemonProgram::Bird][index % 2];
    (!index.is_multiple_of(4)).then(|| RoutingDaemon {
        program,
        router_id: (index % 3 == 1).then(|| "1.2.3.4".parse().expect("an address")),
        protocols: [(ProtocolKind::Ospf, settings), (ProtocolKind::Bgp, bgp)]
            .into_iter()
            .take(index % 4)
            .collect(),
        config: (index % 4 == 3).then(|| "router ospf\nexit\n".to_owned()),
        static_routes: index.is_multiple_of(3),
    })
}

/// The settings of a host of each origin.
fn host(index: usize, kind: u8) -> HostSettings {
    let origin = match (kind, index % 3) {
        (0 | 7, _) => HostOrigin::New,
        (1, _) => return HostSettings { origin: attached(index), ..HostSettings::default() },
        (2, 0) => HostOrigin::Image("localhost/i:1".to_owned()),
        (2, _) => HostOrigin::RootFs("files".to_owned()),
        _ => return HostSettings::default(),
    };
    let command = if origin.is_container() { vec!["sleep".to_owned(), "1 h".to_owned()] } else { Vec::new() };
    let env = [("A".to_owned(), index.to_string())].into_iter().filter(|_| index.is_multiple_of(2)).collect();
    let binds = ["/p:/q:ro", "r:/s"].iter().take(index % 3).map(|bind| bind.parse().expect("a bind"));
    let private = ["/var/run"].iter().take(index % 2).map(|&directory| directory.to_owned()).collect();
    let binds = binds.collect();
    HostSettings { origin, command, env, binds, private, pid_namespace: index % 2 == 1 }
}

fn attached(index: usize) -> HostOrigin {
    let kind = ["netns:a", "netns:/a", "pid:1", "container:a"][index % 4];
    HostOrigin::Attached(format!("{kind}{index}").parse().expect("a namespace"))
}

fn description(parts: &Parts) -> Description {
    let mut nodes: Vec<NodeDescription> = vec![NodeDescription::host("first")];
    nodes.extend(parts.kinds.iter().enumerate().map(|(index, kind)| node(index, *kind)));
    let values = |value: Option<usize>| {
        value.map(|value| parse_change(VALUES[value]).expect("values")).unwrap_or_default()
    };
    let mut links = Vec::new();
    for (a, b, [both, forward, backward], options) in &parts.links {
        let [a, b] = [a, b].map(|end| end % nodes.len());
        if a == b {
            continue;
        }
        let mut link = LinkDescription::new(&nodes[a].name, &nodes[b].name);
        // Values of the link and of both directions at once are refused.
        link.values = values(both.filter(|_| forward.is_none() || backward.is_none()));
        link.forward = DirectionDescription { values: values(*forward), traces: None };
        link.backward = DirectionDescription { values: values(*backward), traces: None };
        link.interfaces[0] = (options & 32 > 0).then(|| format!("up{}", links.len()));
        link.mtu = (options & 1 > 0).then_some(1000 + u32::from(*options) * 20);
        link.preset = (options & 2 > 0).then(|| "lte".to_owned());
        link.group = (options & 4 > 0).then(|| format!("g{}", options & 1));
        link.name = (options & 8 > 0).then(|| format!("l{}", links.len()));
        if options & 16 > 0 && both.is_none() && backward.is_none() {
            link.backward.traces = Some(vec![TraceDescription {
                source: TraceSource::Poisson {
                    rate: "1Mbit".parse().unwrap(),
                    length: Duration::from_secs(2),
                    seed: 3,
                },
                end: TraceEnd::Repeat,
                offset: Duration::from_ms(u64::from(*options)),
            }]);
        }
        links.push(link);
    }
    let named: Vec<(usize, String)> =
        links.iter().enumerate().filter_map(|(index, link)| Some((index, link.name.clone()?))).collect();
    let mut events = Vec::new();
    for (at, link, direction, value) in &parts.events {
        let Some((index, name)) = named.get(link % named.len().max(1)) else { continue };
        if links[*index].backward.traces.is_some() {
            continue;
        }
        events.push(EventDescription {
            at: Duration::from_ms(at * 700),
            links: vec![name.clone()],
            group: None,
            direction: [None, Some("forward"), Some("backward")][usize::from(*direction)].map(str::to_owned),
            values: values(Some(*value)),
            ..EventDescription::default()
        });
        if direction == &2 {
            events.push(EventDescription {
                at: Duration::from_ms(at * 300),
                host: Some("first".to_owned()),
                exec: Some(format!("echo '{at}' > /dev/null")),
                ..EventDescription::default()
            });
        }
    }
    let groups = vec![GroupDescription {
        name: "g1".to_owned(),
        start: Start::At(Time::ZERO + Duration::from_secs(1)),
    }];
    Description { seed: parts.seed, nodes, links, events, groups, ..Description::default() }
}

proptest! {
    #[test]
    fn a_random_description_is_resolved_to_itself(parts in parts()) {
        let description = description(&parts);
        let text = description.to_json().to_string();
        prop_assert_eq!(&Description::from_json(&text, NO_FILES).unwrap(), &description);
        match resolve(&description, NO_FILES) {
            Ok((topology, _)) => {
                prop_assert_eq!(&again(&topology, NO_FILES), &topology);
                // In its own place it has the same topology.
                let resolved = fastpath_spec::resolve_in_place_of(&description, NO_FILES, &topology);
                prop_assert_eq!(resolved.map(|(topology, _)| topology), Ok(topology));
            }
            // A random trace and the rate of a link contradict each other.
            Err(mistakes) => prop_assert!(
                mistakes.iter().all(|mistake| mistake.what.contains("a trace says when")),
                "{:?}", mistakes
            ),
        }
    }
}

/// What was assigned stays when the description changes, wherever the new lines are.
#[test]
fn a_description_in_place_of_another_keeps_what_was_assigned() {
    let (first, _) = fastpath_spec::parse(
        "[host.a]\n[host.b]\n[switch.s]\n[host.c]\n[host.d]\n[[link]]\nbetween = ['a', 's']\n\
         [[link]]\nbetween = ['b', 's']\n[[link]]\nbetween = ['c', 'd']\n[[link]]\nbetween = ['c', 's']",
    )
    .expect("a valid spec");
    // A host and a link come first, b and its link go, and c's first link goes too.
    let text = "[host.new]\n[host.a]\n[switch.s]\n[host.c]\n[host.d]\n[[link]]\nbetween = ['new', 's']\n\
                [[link]]\nbetween = ['d', 'new']\n[[link]]\nbetween = ['a', 's']\n\
                [[link]]\nbetween = ['c', 's']";
    let description = read(text, NO_FILES).expect("a valid spec").0.description;
    let (second, _) = fastpath_spec::resolve_in_place_of(&description, NO_FILES, &first).expect("valid");
    let own = |topology: &Topology, node: &str, link: &str| {
        let node = topology.node(topology.node_named(node).unwrap());
        let id = topology.link_named(link).unwrap();
        let interface = node.interfaces.iter().find(|interface| interface.link == id).unwrap();
        (interface.name.clone(), interface.mac, interface.addresses.clone(), topology.link(id).stream)
    };
    for (node, link) in [("a", "a-s"), ("c", "c-s")] {
        assert_eq!(own(&first, node, link), own(&second, node, link));
    }
    assert_eq!(own(&second, "c", "c-s").0, "eth1", "an interface is not renamed");
    let shown = |node: &str, link: &str| {
        let (name, mac, addresses, stream) = own(&second, node, link);
        format!("{name} {} {} {stream}", mac.unwrap(), addresses[0])
    };
    // The lowest numbers that are free, not those of interfaces that go: an address in the subnet
    // of the switch, a subnet, a stream.
    assert_eq!(shown("new", "new-s"), "eth0 02:00:00:00:00:08 10.1.1.3/24 1");
    assert_eq!(shown("d", "d-new"), "eth1 02:00:00:00:00:02 10.1.2.2/24 2");
    // A given address comes first, and the others of its segment follow.
    let given = text.replace("[host.a]", "[host.a]\naddress = '10.9.0.7/16'");
    let description = read(&given, NO_FILES).expect("a valid spec").0.description;
    let (third, _) = fastpath_spec::resolve_in_place_of(&description, NO_FILES, &second).expect("valid");
    let subnet = third.nodes.iter().filter(|node| ["a", "c"].contains(&node.name.as_str()));
    let subnet: Vec<String> = subnet.map(|node| node.interfaces[0].addresses[0].to_string()).collect();
    assert_eq!(subnet, ["10.9.0.7/16", "10.9.0.3/16"]);
}
