//! The JSON Schema (draft 2020-12) of descriptions, made of the parts that stand next to the
//! readers. It is committed as `docs/schema/topology.json`.

use crate::description::NodeRole;
use crate::{engine_settings, event, group, link, node, pipe};
use serde_json::{Map, Value, json};

/// Where the schema is published.
const ID: &str = "https://example.invalid/fastpath/schema/topology.json";

/// Returns the JSON Schema of descriptions: a file as an author writes it, or the canonical form.
pub fn json_schema() -> Value {
    let mut definitions = Map::new();
    let mut define = |name: &str, schema: Value| _ = definitions.insert(name.to_owned(), schema);
    quantities(&mut define);
    pipe::definitions(&mut define);
    define("link", link::schema());
    define("direction", link::direction_schema());
    define("event", event::schema());
    define("engine", engine_settings::schema());
    for (key, kind) in node::KINDS {
        define(key, node::schema(kind));
    }
    define("node", node::canonical_schema());
    define("file", file());
    define("canonical", canonical());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "A network that fastpath emulates",
        "description": "A spec file (TOML, here as JSON) or the canonical form of a description.",
        "anyOf": [reference("file"), reference("canonical")],
        "$defs": definitions,
    })
}

/// The file as an author writes it: `[host.a]`, `[[link]]`, `a_to_b`.
fn file() -> Value {
    let by_name = |schema: Value| json!({ "type": "object", "additionalProperties": schema });
    let list = |name: &str| json!({ "type": "array", "items": reference(name) });
    let mut all = properties([
        ("seed", "The seed of everything random.", seed()),
        ("engine", "The settings of a run in real time.", reference("engine")),
        ("link", "Links between nodes.", list("link")),
        ("event", "Changes at times of the run.", list("event")),
        ("group", "Links whose traces start together, by name.", by_name(table(group_properties(), &[]))),
    ]);
    let what = |kind: NodeRole| match kind {
        NodeRole::Host => "Hosts by name: frames enter and leave the network here.",
        NodeRole::Router => "Routers by name: they forward IP packets.",
        NodeRole::Switch => "Switches by name: they forward frames by learned addresses.",
        NodeRole::OpenFlow => "Switches by name that forward frames by OpenFlow tables.",
    };
    all.extend(properties(node::KINDS.map(|(key, kind)| (key, what(kind), by_name(reference(key))))));
    table(all, &[])
}

/// The canonical form: lists of nodes, links, events and groups.
fn canonical() -> Value {
    let list = |schema: Value| json!({ "type": "array", "items": schema });
    let mut group = group_properties();
    group.insert("name".to_owned(), reference("name"));
    let all = properties([
        ("seed", "The seed of everything random.", seed()),
        ("engine", "The settings of a run in real time.", reference("engine")),
        ("nodes", "Hosts, routers and switches.", list(reference("node"))),
        ("links", "Links between nodes.", list(reference("link"))),
        ("events", "Changes at times of the run.", list(reference("event"))),
        ("groups", "Links whose traces start together.", list(table(group, &["name"]))),
    ]);
    table(all, &["nodes"])
}

fn seed() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn group_properties() -> Map<String, Value> {
    match group::properties() {
        Value::Object(properties) => properties,
        _ => Map::new(),
    }
}

fn quantities(define: &mut dyn FnMut(&str, Value)) {
    let text = |what: &str, pattern: &str, examples: Value| json!({ "type": "string", "description": what, "pattern": pattern, "examples": examples });
    define("rate", text("Bits per second.", r"^\s*[0-9]", json!(["10Mbit", "256kbit"])));
    define("duration", text("A time.", r"^\s*[0-9]", json!(["25ms", "1.5s"])));
    define("bytes", text("A number of bytes.", r"^\s*[0-9]", json!(["1514B", "64KiB"])));
    define("limit", text("A number of packets or bytes.", r"^\s*[0-9]", json!(["50p", "64KiB"])));
    define(
        "probability",
        json!({
            "description": "A percentage, \"none\", or a number below 1.",
            "anyOf": [
                { "type": "string", "pattern": r"^(none|\s*[0-9].*)$" },
                { "type": "number", "minimum": 0, "exclusiveMaximum": 1 },
            ],
            "examples": ["1%", 0.01],
        }),
    );
    define("name", json!({ "type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$" }));
}

/// A reference to a definition.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A schema with a description.
pub(crate) fn described(what: &str, mut schema: Value) -> Value {
    schema["description"] = json!(what);
    schema
}

/// Properties of a table: key, description, schema.
pub(crate) fn properties<const N: usize>(all: [(&str, &str, Value); N]) -> Map<String, Value> {
    all.into_iter().map(|(key, what, schema)| (key.to_owned(), described(what, schema))).collect()
}

/// A table with these keys and no others.
pub(crate) fn table(properties: Map<String, Value>, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// One value or a list of them.
pub(crate) fn one_or_list(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "array", "items": schema }] })
}
