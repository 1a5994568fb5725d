//! A resolved topology is a description with nothing left out: resolving it again gives the same
//! topology.

use fastpath_spec::{
    Description, EventDescription, LinkDescription, NO_FILES, NodeDescription, OnLink, Topology,
    TraceDescription, TraceEnd, TraceSource, describe, parse_change, read, resolve,
};
use fastpath_units::Duration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

mod random;

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

/// How many random descriptions are tested.
const RANDOM: u64 = 10_000;

/// The files that random descriptions name.
fn named(name: &str) -> Result<String, String> {
    match name {
        "rate.csv" => Ok("time_s,rate_mbps\n0,3\n0.5,8\n".to_owned()),
        "rules.txt" => Ok("priority=1,actions=flood\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    }
}

/// Returns the description as it comes back from JSON and from a spec file, which must be one.
fn through_texts(description: &Description, seed: &dyn std::fmt::Display) -> Description {
    let json = description.to_json().to_string();
    let from_json = Description::from_json(&json, &named);
    let from_json = from_json.unwrap_or_else(|mistakes| panic!("{seed}: {json}\n{}", mistakes[0]));
    let toml = description.to_toml();
    let from_toml = Description::from_toml(&toml, &named);
    let from_toml = from_toml.unwrap_or_else(|mistakes| panic!("{seed}: {toml}\n{}", mistakes[0]));
    assert_eq!(from_json, from_toml, "{seed}: {toml}");
    from_json
}

/// The keys of a table that are not in another, and those of its lists of tables.
fn lost(given: &Value, written: &Value, place: &str, keys: &mut Vec<String>) {
    match (given, written) {
        (Value::Object(given), Value::Object(written)) => {
            for (key, value) in given {
                // An author's key: the canonical form has `addresses`.
                let canonical = if key == "address" { "addresses" } else { key };
                match written.get(canonical) {
                    Some(written) => lost(value, written, &format!("{place}.{key}"), keys),
                    None => keys.push(format!("{place}.{key}")),
                }
            }
        }
        (Value::Array(given), Value::Array(written)) => {
            let pairs = given.iter().zip(written);
            pairs.for_each(|(given, written)| lost(given, written, place, keys));
        }
        _ => {}
    }
}

#[test]
fn random_descriptions_survive_json_toml_and_the_control_interface() {
    let (mut resolved, mut refused, mut not_written) = (0, BTreeSet::new(), BTreeSet::new());
    for seed in 0..RANDOM {
        let given = random::description(seed);
        let text = given.to_string();
        let description = match Description::from_json(&text, &named) {
            Ok(description) => description,
            Err(mistakes) => {
                refused.extend(mistakes.iter().map(|mistake| mistake.what.clone()));
                continue;
            }
        };
        let mut keys = Vec::new();
        lost(&given, &description.to_json(), "", &mut keys);
        not_written.extend(keys);
        assert_eq!(through_texts(&description, &seed), description, "{seed}");
        let Ok((topology, _)) = resolve(&description, &named) else { continue };
        resolved += 1;
        // This is what the control interface returns.
        let answer = describe(&topology);
        assert_eq!(through_texts(&answer, &seed).to_json(), answer.to_json(), "{seed}");
        assert_eq!(again(&topology, &named), topology, "{seed}");
        let in_place = fastpath_spec::resolve_in_place_of(&description, &named, &topology);
        assert_eq!(in_place.map(|(topology, _)| topology), Ok(topology), "{seed}");
    }
    assert!(refused.is_empty(), "random descriptions that cannot be read: {refused:#?}");
    assert!(not_written.is_empty(), "keys that are read and not written: {not_written:#?}");
    assert!(resolved > RANDOM / 6, "only {resolved} of {RANDOM} resolve");
}

/// Adds the keys of every table of a value to those of the tables of the schema.
fn collect(value: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let names = [("links", "link"), ("events", "event"), ("traffic", "traffic")];
    let tables = names.into_iter().flat_map(|(list, name)| {
        value[list].as_array().into_iter().flatten().map(move |table| (name.to_owned(), table))
    });
    let nodes = value["nodes"].as_array().into_iter().flatten();
    let nodes = nodes.map(|node| (format!("node {}", node["kind"].as_str().unwrap_or_default()), node));
    let engine = value.get("engine").map(|engine| ("engine".to_owned(), engine));
    let links = value["links"].as_array().into_iter().flatten();
    let directions = links.flat_map(|link| [link.get("forward"), link.get("backward")]).flatten();
    let directions = directions.map(|direction| ("direction".to_owned(), direction));
    let top = [("canonical".to_owned(), value)];
    for (name, table) in tables.chain(nodes).chain(engine).chain(directions).chain(top) {
        found.entry(name).or_default().extend(table.as_object().expect("a table").keys().cloned());
    }
}

/// Adds the keys of a value and of all below.
fn all_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                keys.insert(key.clone());
                all_keys(value, keys);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| all_keys(value, keys)),
        _ => {}
    }
}

/// Adds the names of the properties of a schema and of all below.
fn properties(schema: &Value, keys: &mut BTreeSet<String>) {
    match schema {
        Value::Object(table) => {
            for (key, value) in table {
                if key == "properties" {
                    keys.extend(value.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
                }
                properties(value, keys);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| properties(value, keys)),
        _ => {}
    }
}

#[test]
fn random_descriptions_have_every_key_of_the_schema_and_no_other() {
    let (mut found, mut below) = (BTreeMap::new(), BTreeSet::new());
    for seed in 0..2000 {
        let given = random::description(seed);
        collect(&given, &mut found);
        all_keys(&given, &mut below);
    }
    let schema = fastpath_spec::json_schema();
    let of = |schema: &Value| -> BTreeSet<String> {
        schema["properties"].as_object().expect("properties").keys().cloned().collect()
    };
    let kinds = schema["$defs"]["node"]["oneOf"].as_array().expect("kinds of nodes");
    let kinds = kinds.iter().map(|kind| {
        (format!("node {}", kind["properties"]["kind"]["const"].as_str().expect("a word")), of(kind))
    });
    let tables = ["link", "direction", "event", "traffic", "engine", "canonical"];
    let tables = tables.into_iter().map(|name| (name.to_owned(), of(&schema["$defs"][name])));
    for (name, keys) in tables.chain(kinds) {
        // A router in the engine has the keys of one in the kernel if it says so.
        let expected: BTreeSet<String> = match name.as_str() {
            "node router" => of_plain_router(&keys),
            _ => keys,
        };
        assert_eq!(found.get(&name), Some(&expected), "{name}: give every key its values in tests/random");
    }
    // Keys of files, not of the canonical form.
    for name in ["file", "host", "router", "nat", "uplink", "switch", "openflow"] {
        below.extend(of(&schema["$defs"][name]));
    }
    let mut all = BTreeSet::new();
    properties(&schema, &mut all);
    let missing: Vec<&String> = all.difference(&below).collect();
    assert!(missing.is_empty(), "give these keys their values in tests/random: {missing:?}");
}

fn of_plain_router(keys: &BTreeSet<String>) -> BTreeSet<String> {
    let plain = ["name", "kind", "address", "addresses", "mac", "routes", "assign", "position"];
    keys.iter().filter(|key| plain.contains(&key.as_str())).cloned().collect()
}

#[test]
fn examples_survive_json_toml_and_the_control_interface() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files =
        |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).map_err(|error| error.to_string());
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let path = entry.expect("an example").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        seen += 1;
        let shown = path.display();
        let text = std::fs::read_to_string(&path).expect("text");
        let (spec, _) = read(&text, &files).unwrap_or_else(|mistakes| panic!("{shown}: {}", mistakes[0]));
        let description = &spec.description;
        assert_eq!(&through_texts(description, &shown), description, "{shown}");
        let answer = describe(&spec.topology);
        assert_eq!(through_texts(&answer, &shown).to_json(), answer.to_json(), "{shown}");
    }
    assert!(seen >= 5, "{seen} examples in {folder}");
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
    for (node, link, names) in [("a", "a-s", ["eth0", "eth0"]), ("c", "c-s", ["eth1", "eth0"])] {
        let (was, is) = (own(&first, node, link), own(&second, node, link));
        assert_eq!((was.1, &was.2, was.3), (is.1, &is.2, is.3));
        assert_eq!([was.0, is.0], names, "named as in a fresh start");
    }
    let shown = |node: &str, link: &str| {
        let (name, mac, addresses, stream) = own(&second, node, link);
        format!("{name} {} {} {stream}", mac.unwrap(), addresses[0])
    };
    // The lowest numbers that are free, not those of interfaces that go: an address in the subnet
    // of the switch, a subnet, a stream.
    assert_eq!(shown("new", "new-s"), "eth0 02:00:00:00:00:08 10.1.1.3/24 1");
    assert_eq!(shown("d", "d-new"), "eth0 02:00:00:00:00:02 10.1.2.2/24 2");
    // A given address comes first, and the others of its segment follow.
    let given = text.replace("[host.a]", "[host.a]\naddress = '10.9.0.7/16'");
    let description = read(&given, NO_FILES).expect("a valid spec").0.description;
    let (third, _) = fastpath_spec::resolve_in_place_of(&description, NO_FILES, &second).expect("valid");
    let subnet = third.nodes.iter().filter(|node| ["a", "c"].contains(&node.name.as_str()));
    let subnet: Vec<String> = subnet.map(|node| node.interfaces[0].addresses[0].to_string()).collect();
    assert_eq!(subnet, ["10.9.0.7/16", "10.9.0.3/16"]);
}
