//! The reference of spec keys, from the JSON Schema of specs.

use serde_json::{Map, Value};
use std::fmt::Write;

/// The sections of the page: a heading, the definition, and whether it is a table of the file.
const TABLES: &[(&str, &str)] = &[
    ("The file", "file"),
    ("`[host.NAME]`", "host"),
    ("`[router.NAME]`", "router"),
    ("`[nat.NAME]`", "nat"),
    ("`[uplink.NAME]`", "uplink"),
    ("`[switch.NAME]`", "switch"),
    ("`[openflow.NAME]`", "openflow"),
    ("`[[link]]`", "link"),
    ("One direction of a link", "direction"),
    ("`[[event]]`", "event"),
    ("`[[traffic]]`", "traffic"),
    ("`[engine]`", "engine"),
];
/// Values that are one of several tables.
const VALUES: &[(&str, &str)] = &[
    ("Queues", "queue"),
    ("Loss", "loss"),
    ("Jitter", "jitter"),
    ("Laws", "law"),
    ("Reordering", "reorder"),
    ("Duplicates", "duplicate"),
    ("Bit errors", "corrupt"),
    ("Slots", "slots"),
    ("Cross traffic", "cross"),
    ("Overhead", "overhead"),
];
/// Values that are texts.
const QUANTITIES: &[&str] = &["rate", "duration", "bytes", "limit", "probability", "name"];

/// Returns the page. A definition that the page does not show is an `Err` with its name.
pub(crate) fn page(schema: &Value) -> Result<String, String> {
    let definitions = schema["$defs"].as_object().ok_or("the schema has no $defs")?;
    let shown =
        |name: &str| TABLES.iter().chain(VALUES).any(|(_, own)| *own == name) || QUANTITIES.contains(&name);
    // The canonical form, which programs write: lists instead of tables by name.
    let other = |name: &&String| !shown(name) && !["canonical", "node"].contains(&name.as_str());
    if let Some(name) = definitions.keys().find(other) {
        return Err(format!("$defs/{name} is not in the reference: add it to xtask/src/book/schema.rs"));
    }
    let mut page = String::from(
        "# Spec files\n\nEvery key of a spec file. A key in **bold** is required. `fastpath check SPEC` reports every \
         mistake; `fastpath check --schema` prints the JSON Schema from which this page is made.\n\n\
         ## Quantities\n\n| | meaning | examples |\n|---|---|---|\n",
    );
    for name in QUANTITIES {
        let definition = &definitions[*name];
        let examples = definition["examples"].as_array().into_iter().flatten();
        let examples: Vec<String> = examples.map(|example| format!("`{example}`")).collect();
        let what = definition["description"].as_str().unwrap_or("Letters, digits, `_`, `-` and `.`.");
        _ = writeln!(page, "| {name} | {what} | {} |", examples.join(", "));
    }
    for (heading, name) in TABLES {
        _ = writeln!(page, "\n## {heading}\n");
        keys(&mut page, &definitions[*name], definitions);
    }
    for (heading, name) in VALUES {
        _ = writeln!(page, "\n## {heading}\n");
        let mut forms = Vec::new();
        flatten(&definitions[*name], &mut forms);
        let (tables, words): (Vec<&Value>, Vec<&Value>) =
            forms.into_iter().partition(|form| form["properties"].is_object());
        for form in words {
            let what = form["description"].as_str().map(|what| format!(": {what}")).unwrap_or_default();
            _ = writeln!(page, "- {}{what}", kind(form));
        }
        for table in tables {
            _ = writeln!(page, "\n### {}\n", heading_of(table, name));
            keys(&mut page, table, definitions);
        }
    }
    Ok(page)
}

/// The alternatives of a schema, without those inside others.
fn flatten<'s>(schema: &'s Value, forms: &mut Vec<&'s Value>) {
    match schema["anyOf"].as_array() {
        Some(alternatives) => alternatives.iter().for_each(|form| flatten(form, forms)),
        None => forms.push(schema),
    }
}

/// `kind = "red"` or `law = "normal"`; the name of the value if neither is fixed.
fn heading_of(table: &Value, name: &str) -> String {
    let word =
        ["kind", "law"].into_iter().find_map(|key| Some((key, table["properties"][key]["const"].as_str()?)));
    word.map_or_else(|| format!("{name} as a table"), |(key, word)| format!("{name}: `{key} = \"{word}\"`"))
}

fn keys(page: &mut String, table: &Value, definitions: &Map<String, Value>) {
    let none = Map::new();
    let properties = table["properties"].as_object().unwrap_or(&none);
    let required: Vec<&str> =
        table["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fixed = |schema: &Value| schema["const"].is_string();
    if properties.values().all(fixed) {
        page.push_str("It has no keys.\n");
        return;
    }
    page.push_str("| key | value | meaning |\n|---|---|---|\n");
    for (key, schema) in properties.iter().filter(|(_, schema)| !fixed(schema)) {
        let name = if required.contains(&key.as_str()) { format!("**`{key}`**") } else { format!("`{key}`") };
        let target = schema["$ref"].as_str().and_then(|path| definitions.get(path.rsplit('/').next()?));
        let what = schema["description"].as_str();
        let what = what.or_else(|| target?["description"].as_str()).unwrap_or_default();
        _ = writeln!(page, "| {name} | {} | {} |", kind(schema), what.replace('|', "\\|"));
    }
    for (pattern, schema) in table["patternProperties"].as_object().unwrap_or(&none) {
        let name = if pattern == "_to_" { "a_to_b" } else { pattern };
        _ = writeln!(
            page,
            "| `{name}` | {} | Values of one direction, by the names of its nodes. |",
            kind(schema)
        );
    }
}

/// What a schema accepts, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(path) = schema["$ref"].as_str() {
        let name = path.rsplit('/').next().unwrap_or_default();
        return match QUANTITIES.contains(&name) {
            true => name.to_owned(),
            false => heading(name).map_or_else(
                || name.to_owned(),
                |heading| format!("[{name}](#{})", super::links::anchor(heading)),
            ),
        };
    }
    if let Some(word) = schema.get("const") {
        return format!("`{word}`");
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        let mut kinds: Vec<String> = forms.iter().map(kind).collect();
        kinds.dedup();
        return kinds.join(" or ");
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", kind(&schema["items"])),
        Some("object") => match schema["properties"].as_object() {
            Some(keys) => {
                let keys: Vec<String> = keys.keys().map(|key| format!("`{key}`")).collect();
                format!("table: {}", keys.join(", "))
            }
            None if schema["additionalProperties"].is_object() => {
                format!("table of {} by name", kind(&schema["additionalProperties"]))
            }
            None => "table".to_owned(),
        },
        Some("string") => "text".to_owned(),
        Some("boolean") => "`true`, `false`".to_owned(),
        Some(other) => other.to_owned(),
        None => "value".to_owned(),
    }
}

fn heading(name: &str) -> Option<&'static str> {
    TABLES.iter().chain(VALUES).find(|(_, own)| *own == name).map(|(heading, _)| *heading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_every_kind_of_the_schema_is_on_the_page() {
        let text = include_str!("../../../docs/schema/topology.json");
        let page = page(&serde_json::from_str(text).unwrap()).unwrap();
        for words in
            ["**`between`**", "`kind = \"fq-codel\"`", "`law = \"pareto\"`", "[queue](#queues)", "`nat`"]
        {
            assert!(page.contains(words), "{words}");
        }
        // Any key in the text of the schema, with the exception of lists that only programs write.
        let schema: Value = serde_json::from_str(text).unwrap();
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            let keys = definition["properties"].as_object().into_iter().flatten();
            for (key, _) in keys.filter(|_| name != "canonical") {
                assert!(page.contains(&format!("`{key}`")), "{name}: {key}");
            }
        }
    }

    #[test]
    fn a_definition_that_no_section_shows_is_an_error() {
        let mut schema: Value =
            serde_json::from_str(include_str!("../../../docs/schema/topology.json")).unwrap();
        schema["$defs"]["radio"] = serde_json::json!({ "type": "object" });
        assert!(page(&schema).unwrap_err().contains("$defs/radio"));
    }
}
