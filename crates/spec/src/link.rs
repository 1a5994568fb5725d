//! The links of a description: ends, values, directions, traces.
//!
//! ```toml
//! [[link]]
//! between  = ["a", "r"]
//! name     = "access"              # absent: "a-r"
//! mtu      = 1500
//! # the names of its interfaces at the two nodes; "" or absent: eth0, eth1, …
//! interfaces = ["eth1", "uplink"]
//! # values of a kind of access, from the first node up; all given here win over them
//! preset   = "lte"
//! group    = "cell"                # what its traces start with: `group.rs`
//! trace    = "lte.csv"             # values over time: `trace_source.rs`
//! rate     = "10Mbit"              # and every other value of a pipe: `pipe.rs`
//! # one direction: its values win over those of the link; or forward, backward
//! a_to_r   = { rate = "256kbit" }
//! ```

use crate::description::{DirectionDescription, LinkDescription};
use crate::fields::{Field, Fields};
use crate::files::Files;
use crate::mistake::Remarks;
use crate::{pipe, schema_parts, trace_source};
use serde_json::{Map, Value, json};

/// The smallest MTU (RFC 791) and the largest a TAP takes.
pub(crate) const MTU: std::ops::RangeInclusive<u64> = 68..=65_521;
/// What to write for the ends of a link.
pub(crate) const TWO_ENDS: &str = "write between = [\"a\", \"b\"]";

/// Reads the table of a link. `is_node` tells whether there is a node of a name.
pub(crate) fn read(
    mut fields: Fields,
    is_node: impl Fn(&str) -> bool,
    files: &Files,
    remarks: &mut Remarks,
) -> LinkDescription {
    let between = fields.get("between");
    if between.is_none() {
        remarks.mistake(fields.at, "link has no ends", TWO_ENDS);
    }
    let ends = between.as_ref().and_then(|field| ends(field, remarks));
    let name = fields.get("name").and_then(|field| Some(field.text("access", remarks)?.to_owned()));
    let mtu = fields.get("mtu").and_then(|field| field.whole(MTU, remarks)).map(|mtu| mtu as u32);
    let values = pipe::read(&mut fields, files, remarks);
    let [preset, group] = [("preset", "lte"), ("group", "cell")]
        .map(|(key, example)| Some(fields.get(key)?.text(example, remarks)?.to_owned()));
    let traces = fields.get("trace").map(|field| trace_source::read(&field, remarks)).unwrap_or_default();
    let interfaces = fields.get("interfaces").map(|field| interfaces(&field, remarks)).unwrap_or_default();
    let mut link = LinkDescription {
        name,
        interfaces,
        mtu,
        preset,
        group,
        values,
        traces,
        ..LinkDescription::default()
    };
    if let Some([a, b]) = ends {
        link.forward = direction(&mut fields, "forward", format!("{a}_to_{b}"), files, remarks);
        link.backward = direction(&mut fields, "backward", format!("{b}_to_{a}"), files, remarks);
        // The names of the directions may be meant for other nodes.
        if ![a, b].into_iter().all(is_node) {
            fields.allow(|key| key.contains("_to_"));
        }
        link.between = [a.to_owned(), b.to_owned()];
    } else {
        fields.allow(|key| key.contains("_to_") || matches!(key, "forward" | "backward"));
    }
    fields.finish(remarks);
    link
}

fn ends<'d>(field: &Field<'d>, remarks: &mut Remarks) -> Option<[&'d str; 2]> {
    let Some([first, second]) = field.elements().and_then(|e| <[Field; 2]>::try_from(e).ok()) else {
        remarks.mistake(field.at, "between is not a list of two nodes", TWO_ENDS);
        return None;
    };
    let [a, b] = [first, second].map(|end| end.text("a", remarks));
    Some([a?, b?])
}

/// Reads the names of the two interfaces of a link; empty text is none.
fn interfaces(field: &Field, remarks: &mut Remarks) -> [Option<String>; 2] {
    let Some([first, second]) = field.elements().and_then(|e| <[Field; 2]>::try_from(e).ok()) else {
        let instead = "write interfaces = [\"eth1\", \"eth1\"]";
        remarks.mistake(field.at, "interfaces is not a list of two names", instead);
        return [None, None];
    };
    [first, second].map(|end| {
        let name = end.text("eth1", remarks)?;
        (!name.is_empty()).then(|| name.to_owned())
    })
}

/// Reads a direction, under its canonical key or the one made of its nodes.
fn direction(
    fields: &mut Fields,
    canonical: &str,
    by_nodes: String,
    files: &Files,
    remarks: &mut Remarks,
) -> DirectionDescription {
    let key = if fields.peek(canonical).is_some() { canonical.to_owned() } else { by_nodes };
    let table = fields.get(&key).and_then(|field| field.table(key, "{ rate = \"256kbit\" }", remarks));
    let Some(mut direction) = table else { return DirectionDescription::default() };
    let values = pipe::read(&mut direction, files, remarks);
    let traces = direction.get("trace").map(|field| trace_source::read(&field, remarks));
    direction.finish(remarks);
    DirectionDescription { values, traces }
}

/// Writes a link in the canonical form.
pub(crate) fn write(link: &LinkDescription) -> Value {
    let LinkDescription { name, between, interfaces, mtu, preset, group, values, traces, forward, backward } =
        link;
    let mut table: Map<String, Value> = Map::new();
    for (key, value) in [("name", name), ("preset", preset), ("group", group)] {
        if let Some(value) = value {
            table.insert(key.to_owned(), json!(value));
        }
    }
    table.insert("between".to_owned(), json!(between));
    if interfaces.iter().any(Option::is_some) {
        let names = interfaces.each_ref().map(|name| name.as_deref().unwrap_or_default());
        table.insert("interfaces".to_owned(), json!(names));
    }
    if let Some(mtu) = mtu {
        table.insert("mtu".to_owned(), json!(mtu));
    }
    pipe::write_into(values, &mut table);
    if !traces.is_empty() {
        table.insert("trace".to_owned(), trace_source::write(traces));
    }
    for (key, direction) in [("forward", forward), ("backward", backward)] {
        if *direction == DirectionDescription::default() {
            continue;
        }
        let mut inner = Map::new();
        pipe::write_into(&direction.values, &mut inner);
        if let Some(traces) = &direction.traces {
            inner.insert("trace".to_owned(), trace_source::write(traces));
        }
        table.insert(key.to_owned(), Value::Object(inner));
    }
    Value::Object(table)
}

/// The schema of a link.
pub(crate) fn schema() -> Value {
    let mut properties = pipe::properties();
    properties.extend(schema_parts::properties([
        (
            "between",
            "The names of two nodes.",
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 }),
        ),
        (
            "interfaces",
            "The names of its interfaces at the two nodes; empty: eth0, eth1 and so on.",
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 }),
        ),
        ("name", "Unique among links; a-b if left out.", schema_parts::reference("name")),
        (
            "mtu",
            "The largest packet above Ethernet, bytes.",
            json!({ "type": "integer", "minimum": MTU.start(), "maximum": MTU.end() }),
        ),
        ("preset", "Values of a kind of access, by name.", preset_names()),
        ("group", "The group that its traces start with.", schema_parts::reference("name")),
        ("trace", "Values over time, of both directions.", trace_source::schema()),
        ("forward", "Values from the first node to the second.", schema_parts::reference("direction")),
        ("backward", "Values from the second node to the first.", schema_parts::reference("direction")),
    ]));
    let mut schema = schema_parts::table(properties, &["between"]);
    schema["patternProperties"] = json!({ "_to_": schema_parts::reference("direction") });
    schema
}

fn preset_names() -> Value {
    let names: Vec<&str> = crate::preset::all().iter().map(|preset| preset.name.as_str()).collect();
    json!({ "enum": names })
}

/// The schema of one direction of a link.
pub(crate) fn direction_schema() -> Value {
    let mut properties = pipe::properties();
    properties.extend(schema_parts::properties([("trace", "Values over time.", trace_source::schema())]));
    schema_parts::table(properties, &[])
}
