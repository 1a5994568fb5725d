//! Parts of the JSON Schema that the files next to the readers make theirs of.

use serde_json::{Map, Value, json};

/// A reference to a definition.
pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A schema with a description.
pub fn described(what: &str, mut schema: Value) -> Value {
    schema["description"] = json!(what);
    schema
}

/// Properties of a table: key, description, schema.
pub fn properties<const N: usize>(all: [(&str, &str, Value); N]) -> Map<String, Value> {
    all.into_iter().map(|(key, what, schema)| (key.to_owned(), described(what, schema))).collect()
}

/// A table with these keys and no others.
pub fn table(properties: Map<String, Value>, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// One value or a list of them.
pub fn one_or_list(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "array", "items": schema }] })
}
