//! The events of a description: changes of links, starts and stops of traces, commands on hosts and
//! rebindings of NATs, at times of the run. Values that an event does not name stay.
//!
//! ```toml
//! [[event]]
//! at        = "10s"
//! link      = "access"             # or a list of links, or group = "cell"
//! direction = "a_to_r"             # or "forward", "backward"; absent or "both": both
//! delay     = "50ms"               # any value of a link
//!
//! [[event]]                        # starts the traces of a group, or stops them
//! at        = "15s"
//! group     = "cell"
//! traces    = "start"
//!
//! [[event]]                        # starts a command of sh(1) on a host of a lab
//! at        = "20s"
//! host      = "a"
//! exec      = "iperf3 -c b -t 5"
//!
//! [[event]]                        # gives the mappings of a NAT other outside ports
//! at        = "5s"
//! nat       = "home"
//! rebind    = "port"               # or "address": another address of the pool, and other ports
//! every     = "3s"                 # absent: once
//! ```

use crate::description::EventDescription;
use crate::fields::{Field, Fields};
use crate::files::Files;
use crate::mistake::Remarks;
use crate::topology::{Rebinding, TraceAction};
use crate::write::text;
use crate::{pipe, schema_parts};
use fastpath_link::Change;
use fastpath_units::Duration;
use serde_json::{Map, Value, json};

/// Reads the table of an event.
pub(crate) fn read(mut fields: Fields, files: &Files, remarks: &mut Remarks) -> EventDescription {
    let start = fields.at;
    let at = match fields.get("at") {
        Some(field) => field.quantity::<Duration>("10s", remarks),
        None => {
            remarks.mistake(start, "event has no time", "write at = \"10s\"");
            None
        }
    };
    let links = fields.get("link").map(|field| links(&field, remarks)).unwrap_or_default();
    let group = fields.get("group").and_then(|field| field.text("cell", remarks).map(str::to_owned));
    let direction = fields.get("direction").and_then(|field| Some(field.text("a_to_b", remarks)?.to_owned()));
    let host = fields.get("host").and_then(|field| Some(field.text("a", remarks)?.to_owned()));
    let exec = fields.get("exec").and_then(|field| Some(field.text("iperf3 -c b -t 5", remarks)?.to_owned()));
    let traces = fields.get("traces").and_then(|field| traces(&field, remarks));
    let nat = fields.get("nat").and_then(|field| Some(field.text("home", remarks)?.to_owned()));
    let rebind = fields.get("rebind").and_then(|field| {
        let words = REBINDINGS.map(|(word, _)| word);
        field.word("what a NAT rebinds", &words, remarks).map(|word| REBINDINGS[word].1)
    });
    let every = fields.get("every").and_then(|field| crate::queue::positive(&field, "3s", remarks));
    let values = pipe::read(&mut fields, files, remarks);
    let others = ["host", "exec", "traces", "nat", "rebind", "every"];
    let is_command = others.iter().any(|key| fields.peek(key).is_some());
    if !is_command && values == Change::default() && !pipe::KEYS.iter().any(|key| fields.peek(key).is_some())
    {
        let what = "the event changes nothing";
        remarks.mistake(start, what, format!("write one of {}", pipe::KEYS.join(", ")));
    }
    fields.finish(remarks);
    let at = at.unwrap_or(Duration::ZERO);
    EventDescription { at, links, group, direction, values, traces, host, exec, nat, rebind, every }
}

fn links(field: &Field, remarks: &mut Remarks) -> Vec<String> {
    field.texts("a-b", remarks).into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// The words of [`TraceAction`].
const ACTIONS: [(&str, TraceAction); 2] = [("start", TraceAction::Start), ("stop", TraceAction::Stop)];

/// The words of [`Rebinding`].
const REBINDINGS: [(&str, Rebinding); 2] = [("port", Rebinding::Port), ("address", Rebinding::Address)];

fn traces(field: &Field, remarks: &mut Remarks) -> Option<TraceAction> {
    let words = ACTIONS.map(|(word, _)| word);
    field.word("what traces do", &words, remarks).map(|word| ACTIONS[word].1)
}

/// Writes an event in the canonical form.
pub(crate) fn write(event: &EventDescription) -> Value {
    let EventDescription { at, links, group, direction, values, traces, host, exec, nat, rebind, every } =
        event;
    let mut table: Map<String, Value> = Map::new();
    table.insert("at".to_owned(), text(at));
    match links.as_slice() {
        [] => {}
        [one] => _ = table.insert("link".to_owned(), json!(one)),
        several => _ = table.insert("link".to_owned(), json!(several)),
    }
    for (key, value) in
        [("group", group), ("direction", direction), ("host", host), ("exec", exec), ("nat", nat)]
    {
        if let Some(value) = value {
            table.insert(key.to_owned(), json!(value));
        }
    }
    if let Some((word, _)) = ACTIONS.iter().find(|(_, action)| Some(*action) == *traces) {
        table.insert("traces".to_owned(), json!(word));
    }
    if let Some((word, _)) = REBINDINGS.iter().find(|(_, rebinding)| Some(*rebinding) == *rebind) {
        table.insert("rebind".to_owned(), json!(word));
    }
    if let Some(every) = every {
        table.insert("every".to_owned(), text(every));
    }
    pipe::write_into(values, &mut table);
    Value::Object(table)
}

/// The schema of an event.
pub(crate) fn schema() -> Value {
    let mut properties = pipe::properties();
    properties.extend(schema_parts::properties([
        ("at", "The time of the run at which it happens.", schema_parts::reference("duration")),
        ("link", "The links that it changes.", schema_parts::one_or_list(json!({ "type": "string" }))),
        ("group", "The group whose links it changes, in place of link.", json!({ "type": "string" })),
        (
            "direction",
            "One direction of a single link: \"a_to_b\" by its nodes, \"forward\" or \"backward\".",
            json!({ "type": "string" }),
        ),
        (
            "traces",
            "Starts the traces of the group from their beginning, or stops them; in place of values.",
            json!({ "enum": ["start", "stop"] }),
        ),
        ("host", "The host on which exec starts, in place of link.", json!({ "type": "string" })),
        ("exec", "A command (sh) that a lab starts on the host.", json!({ "type": "string" })),
        ("nat", "The NAT whose mappings change, in place of link.", json!({ "type": "string" })),
        (
            "rebind",
            "What the mappings of the NAT get: other ports, or another address of its pool and other ports.",
            json!({ "enum": REBINDINGS.map(|(word, _)| word) }),
        ),
        (
            "every",
            "The time from one rebinding to the next; absent: once.",
            schema_parts::reference("duration"),
        ),
    ]));
    schema_parts::table(properties, &["at"])
}
