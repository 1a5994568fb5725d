//! The JSON Schema (draft 2020-12) of descriptions, made of the parts that stand next to the
//! readers. It is committed as `docs/schema/topology.json`.

use crate::keys::{TOP, TopKey, TopPart};
use crate::schema_parts::{properties, reference, table};
use crate::{engine_settings, event, link, node, pipe, traffic};
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
    define("traffic", traffic::schema());
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
    let mut all = Map::new();
    for TopKey { key, what, part, schema, .. } in &TOP {
        match part {
            TopPart::Value(_) | TopPart::Table(_) => all.extend(properties([(*key, *what, schema())])),
            TopPart::Nodes => all.extend(properties(
                node::KINDS.map(|(key, kind)| (key, node::what(kind), by_name(reference(key)))),
            )),
            TopPart::Named(word, _) => {
                let what = format!("{}, by name.", what.trim_end_matches('.'));
                all.extend(properties([(*word, what.as_str(), by_name(schema()))]));
            }
            TopPart::List(word, _) => all.extend(properties([(*word, *what, list(schema()))])),
        }
    }
    table(all, &[])
}

/// The canonical form: lists of nodes, links, events and groups.
fn canonical() -> Value {
    let mut all = Map::new();
    for TopKey { key, what, part, schema, .. } in &TOP {
        let schema = match part {
            TopPart::Value(_) | TopPart::Table(_) => schema(),
            TopPart::Nodes | TopPart::List(..) => list(schema()),
            TopPart::Named(..) => {
                let mut element = schema();
                element["properties"]["name"] = reference("name");
                element["required"] = json!(["name"]);
                list(element)
            }
        };
        all.extend(properties([(*key, *what, schema)]));
    }
    table(all, &["nodes"])
}

fn list(schema: Value) -> Value {
    json!({ "type": "array", "items": schema })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use crate::tree::{Tree, TreeTable};
    use crate::{describe, read};
    use toml::de::DeTable;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/topology.json");
    const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

    fn to_json(tree: &Tree) -> Value {
        match tree {
            Tree::Text(text) => json!(text),
            Tree::Integer(number) => {
                json!(i64::from_str_radix(&number.digits, number.radix).expect("a small number"))
            }
            Tree::Float(number) => json!(number.parse::<f64>().expect("a number")),
            Tree::Boolean(value) => json!(value),
            Tree::Date | Tree::Null => Value::Null,
            Tree::Array(elements) => elements.iter().map(|element| to_json(&element.value)).collect(),
            Tree::Table(table) => table_to_json(table),
        }
    }

    fn table_to_json(table: &TreeTable) -> Value {
        let entry = |entry: &crate::tree::TreeEntry| (entry.key.to_string(), to_json(&entry.placed.value));
        Value::Object(table.entries.iter().map(entry).collect())
    }

    fn toml(text: &str) -> Value {
        table_to_json(&TreeTable::of_toml(DeTable::parse(text).expect("TOML").into_inner()))
    }

    /// Why a value is refused; none: it is valid.
    fn refused(value: &Value) -> Vec<String> {
        let validator = jsonschema::validator_for(&json_schema()).expect("a schema");
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    #[test]
    fn the_committed_schema_is_current() {
        let current = format!("{:#}\n", json_schema());
        let committed = std::fs::read_to_string(FILE).unwrap_or_default();
        let how = "run `cargo run -- check --schema > docs/schema/topology.json`";
        assert!(committed == current, "docs/schema/topology.json is out of date: {how}");
    }

    #[test]
    fn every_example_is_valid_as_written_and_as_resolved() {
        let files: &Files =
            &|name| std::fs::read_to_string(format!("{EXAMPLES}/{name}")).map_err(|error| error.to_string());
        let mut seen = 0;
        for entry in std::fs::read_dir(EXAMPLES).expect("the examples") {
            let path = entry.expect("an example").path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            assert_eq!(refused(&toml(&text)), Vec::<String>::new(), "{}", path.display());
            let (spec, _) = read(&text, files).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
            let resolved = describe(&spec.topology).to_json();
            assert_eq!(refused(&resolved), Vec::<String>::new(), "{}, resolved", path.display());
            seen += 1;
        }
        assert!(seen >= 5, "{seen} examples in {EXAMPLES}");
    }

    #[test]
    fn what_readers_refuse_the_schema_refuses() {
        let link = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n";
        for wrong in [
            "[hots.a]".to_owned(),
            "[host.a]\nadress = '10.0.0.1/24'".to_owned(),
            "[[host]]\nname = 'a'".to_owned(),
            "[host.a]\nattach = 'blue'".to_owned(),
            "[host.a]\nbinds = ['x:y']".to_owned(),
            "[host.a]\nprivate = 'run'".to_owned(),
            "[router.r]\nimage = 'x'".to_owned(),
            "[[link]]\nrate = '1Mbit'".to_owned(),
            format!("{link}latency = '1ms'"),
            format!("{link}delay = 25"),
            format!("{link}loss = {{ kind = 'gilbert' }}"),
            format!("{link}jitter = '2ms'"),
            format!("{link}queue = 50"),
            format!("{link}a_to_b = {{ mtu = 1500 }}"),
            format!("{link}mtu = 20"),
            format!("{link}[engine]\nidle = 'lazy'"),
        ] {
            assert!(read(&wrong, crate::NO_FILES).is_err(), "{wrong}");
            assert!(!refused(&toml(&wrong)).is_empty(), "{wrong}");
        }
    }

    /// The keys that a mistake names, in `write one of …`.
    fn keys_of(text: &str, what: &str) -> Vec<String> {
        let mistakes = read(text, crate::NO_FILES).unwrap_err();
        let of = |mistake: &&crate::Mistake| mistake.what == format!("{what} has no key 'zzzzzzzzzzzz'");
        let instead = &mistakes.iter().find(of).expect("an unknown key").instead;
        let keys = instead.strip_prefix("write one of ").expect("a list");
        let mut keys: Vec<String> =
            keys.split(", ").filter(|key| !key.contains("_to_")).map(str::to_owned).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    #[test]
    fn the_schema_has_the_keys_that_the_readers_know() {
        let known = |name: &str, besides: &[&str]| {
            let schema = &json_schema()["$defs"][name];
            let keys = schema["properties"].as_object().expect("properties").keys().cloned();
            keys.filter(|key| !besides.contains(&key.as_str())).collect::<Vec<String>>()
        };
        let nodes = "[host.a]\nzzzzzzzzzzzz = 1\n[router.r]\nkind = 'kernel'\nzzzzzzzzzzzz = 1\n[openflow.o]\nzzzzzzzzzzzz = 1\n";
        let text = format!(
            "{nodes}[[link]]\nbetween = ['a', 'r']\nzzzzzzzzzzzz = 1\nr_to_a = {{ zzzzzzzzzzzz = 1 }}\n\
             [[event]]\nzzzzzzzzzzzz = 1\n[engine]\nzzzzzzzzzzzz = 1\n"
        );
        assert_eq!(keys_of(&text, "host a"), known("host", &[]));
        assert_eq!(keys_of(&text, "router r"), known("router", &[]));
        assert_eq!(keys_of(&text, "link"), known("link", &["forward", "backward"]));
        assert_eq!(keys_of(&text, "r_to_a"), known("direction", &[]));
        assert_eq!(keys_of(&text, "event"), known("event", &[]));
        let of_kind = |kind| keys_of(&format!("[[traffic]]\nkind = '{kind}'\nzzzzzzzzzzzz = 1\n"), "traffic");
        let mut of_traffic = [of_kind("on-off"), of_kind("request")].concat();
        of_traffic.sort();
        of_traffic.dedup();
        assert_eq!(of_traffic, known("traffic", &[]));
        assert_eq!(keys_of(&text, "[engine]"), known("engine", &[]));
        assert_eq!(keys_of("zzzzzzzzzzzz = 1", "the spec"), known("file", &[]));
    }
}
