//! The values of a pipe: in a link, in one of its directions, in an event, and in a request to
//! change a running network. Read and written under the same keys.

use crate::fields::{Field, Fields};
use crate::files::Files;
use crate::mistake::Remarks;
use crate::schema_parts;
use crate::tree::Tree;
use crate::write::text;
use crate::{cross, effects, loss, queue, slots};
use fastpath_link::{Cells, Change, Ecn, Framing, LinkState, PipeSpec, QueueSpec};
use fastpath_units::{Duration, Rate};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Bytes on an Ethernet wire beyond the frame: preamble 8, FCS 4, gap 12 (IEEE 802.3 §3.1.1,
/// §4.4.2).
pub(crate) const ETHERNET_OVERHEAD: u32 = 24;
/// The largest overhead per frame, in bytes.
const OVERHEAD_MAX: i64 = 1500;
/// The largest payload of a cell, in bytes.
const CELL_MAX: u64 = 65_535;
/// The keys [`read`] knows.
pub(crate) const KEYS: [&str; 12] = [
    "rate",
    "overhead",
    "delay",
    "loss",
    "queue",
    "jitter",
    "reorder",
    "duplicate",
    "corrupt",
    "slots",
    "cross",
    "state",
];

/// Reads the values in a table. `files` returns the text of a file that the table names.
pub(crate) fn read(fields: &mut Fields, files: &Files, remarks: &mut Remarks) -> Change {
    let mut change =
        Change { rate: fields.get("rate").and_then(|field| rate(&field, remarks)), ..Change::default() };
    if let Some(field) = fields.get("overhead") {
        overhead(&field, &mut change, remarks);
    }
    change.delay = fields.get("delay").and_then(|field| field.quantity::<Duration>("25ms", remarks));
    if let Some(field) = fields.get("loss") {
        loss::read(&field, &mut change, remarks);
    }
    change.queue = fields.get("queue").and_then(|field| queue::read(&field, remarks));
    change.jitter = fields.get("jitter").and_then(|field| effects::jitter(&field, files, remarks));
    if let Some(field) = fields.get("reorder") {
        change.reorder = effects::reorder(&field, remarks);
        if let (Some(Some(_)), Some(Tree::Table(jitter))) = (change.reorder, fields.peek("jitter"))
            && let Some(Tree::Text(order)) = jitter.get("reorder").map(|placed| &placed.value)
            && order == "never"
        {
            let what = "jitter has reorder = \"never\", and reorder lets packets overtake";
            remarks.mistake(field.at, what, "remove one of them");
        }
    }
    change.duplicate = fields.get("duplicate").and_then(|field| effects::duplicate(&field, remarks));
    change.corrupt = fields.get("corrupt").and_then(|field| effects::corrupt(&field, remarks));
    change.slots = fields.get("slots").and_then(|field| slots::read(&field, files, remarks));
    change.cross = fields.get("cross").and_then(|field| cross::read(&field, remarks));
    change.state = fields.get("state").and_then(|field| {
        field
            .word("a state of a link", &["up", "down"], remarks)
            .map(|state| [LinkState::Up, LinkState::Down][state])
    });
    change
}

/// Formats a value from a command line as an assignment in TOML. Text needs no quotes on the
/// command line; tables, lists and numbers are written as in a spec.
pub fn assignment(key: &str, value: &str) -> String {
    let value = value.trim();
    if is_literal(key, value) {
        return format!("{key} = {value}");
    }
    let escaped = value.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("{key} = \"{}\"", escaped.collect::<String>())
}

/// Returns whether a value from a command line is a table, a list or a number of TOML.
pub(crate) fn is_literal(key: &str, value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    value.starts_with(['{', '[']) || key == "overhead" && is_whole
}

fn rate(field: &Field, remarks: &mut Remarks) -> Option<Option<Rate>> {
    match field.value {
        Tree::Text(text) if text == "unlimited" => Some(None),
        _ => field.quantity("10Mbit", remarks).map(Some),
    }
}

/// Reads the overhead. Each kind of overhead replaces the other.
fn overhead(field: &Field, change: &mut Change, remarks: &mut Remarks) {
    let plain = |bytes: u32| (Some(bytes), Some(None));
    (change.overhead, change.framing) = match field.value {
        Tree::Text(text) if text == "ethernet" => plain(ETHERNET_OVERHEAD),
        Tree::Text(text) => {
            let instead = "write overhead = \"ethernet\", or a number of bytes";
            remarks.mistake(field.at, format!("overhead '{text}' is not known"), instead);
            return;
        }
        Tree::Table(_) => (Some(0), framing(field, remarks).map(Some)),
        _ => match field
            .integer(-OVERHEAD_MAX..=OVERHEAD_MAX, remarks)
            .map(|bytes| (bytes, u32::try_from(bytes)))
        {
            None => return,
            Some((_, Ok(bytes))) => plain(bytes),
            Some((bytes, Err(_))) => (Some(0), Some(Some(Framing { packet: bytes as i32, cells: None }))),
        },
    };
}

/// `{ bytes = 8, cell = 48, cell_overhead = 5 }`
fn framing(field: &Field, remarks: &mut Remarks) -> Option<Framing> {
    let mut fields = field.table("overhead", "{ bytes = 8, cell = 48, cell_overhead = 5 }", remarks)?;
    let bytes = |field: Field, remarks: &mut Remarks| {
        field.integer(-OVERHEAD_MAX..=OVERHEAD_MAX, remarks).map(|bytes| bytes as i32)
    };
    let packet = fields.get("bytes").map_or(Some(0), |field| bytes(field, remarks));
    let payload = match fields.get("cell") {
        None => Some(None),
        Some(field) => field.whole(1..=CELL_MAX, remarks).map(|bytes| NonZeroU32::new(bytes as u32)),
    };
    let beyond = fields.get("cell_overhead");
    if let (Some(field), Some(None)) = (&beyond, payload) {
        remarks.mistake(field.at, "cell_overhead is given without cell", "write cell = 48 too");
    }
    let overhead = beyond.map_or(Some(0), |field| bytes(field, remarks));
    fields.finish(remarks);
    let (overhead, packet) = (overhead?, packet?);
    Some(Framing { packet, cells: payload?.map(|payload| Cells { payload, overhead }) })
}

/// Writes the values of a change under the keys of a spec.
pub(crate) fn write(change: &Change) -> Vec<(&'static str, Value)> {
    // Every field is named, so that a new one is not forgotten here. Opportunities come from
    // traces, and no key pauses a link.
    let Change { rate, overhead, delay, loss: _, queue, egress_loss: _, jitter, reorder, .. } = change;
    let Change {
        duplicate,
        corrupt,
        framing,
        slots,
        loss_ecn: _,
        cross,
        state,
        opportunities: _,
        paused: _,
        ..
    } = change;
    let none = || json!("none");
    let overhead = match framing {
        Some(Some(framing)) => Some(write_framing(*framing)),
        Some(None) | None => overhead.map(|bytes| json!(bytes)),
    };
    let values = [
        ("rate", rate.as_ref().map(|rate| rate.as_ref().map_or_else(|| json!("unlimited"), text))),
        ("overhead", overhead),
        ("delay", delay.as_ref().map(text)),
        ("loss", loss::write(change)),
        ("queue", queue.as_ref().map(write_queue)),
        ("jitter", jitter.as_ref().map(|jitter| jitter.as_deref().map_or_else(none, effects::write_jitter))),
        ("reorder", reorder.as_ref().map(|law| law.as_ref().map_or_else(none, effects::write_reorder))),
        ("duplicate", duplicate.as_ref().map(effects::write_duplicate)),
        ("corrupt", corrupt.as_ref().map(|law| law.as_ref().map_or_else(none, effects::write_corrupt))),
        ("slots", slots.as_ref().map(|slots| slots.as_deref().map_or_else(none, slots::write))),
        ("cross", cross.as_ref().map(|cross| cross.as_ref().map_or_else(none, cross::write))),
        ("state", state.map(|state| json!(if state == LinkState::Up { "up" } else { "down" }))),
    ];
    values.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// Returns the values of a change by the keys of a link, as
/// [`change_of_json`](crate::change_of_json) reads them.
pub fn change_to_json(change: &Change) -> Map<String, Value> {
    let mut values = Map::new();
    write_into(change, &mut values);
    values
}

/// Writes the values of a change into a table.
pub(crate) fn write_into(change: &Change, table: &mut Map<String, Value>) {
    table.extend(write(change).into_iter().map(|(key, value)| (key.to_owned(), value)));
}

/// Returns the change that gives a new pipe every value of `pipe`, in as few words as possible.
pub(crate) fn complete(pipe: &PipeSpec) -> Change {
    let mut change = Change::to(pipe);
    (change.opportunities, change.paused) = (None, None);
    match pipe.framing {
        Some(_) => change.overhead = None,
        None => change.framing = None,
    }
    if pipe.loss_ecn == Ecn::Off {
        change.loss_ecn = None;
        if pipe.loss.is_never() && !pipe.egress_loss.is_never() {
            change.loss = None;
        }
    }
    if pipe.egress_loss.is_never() {
        change.egress_loss = None;
    }
    change
}

/// Returns the values of `pipe` that are not the default, by their keys. Lists of more than
/// 1000 entries are described, not written.
pub fn values(pipe: &PipeSpec) -> BTreeMap<&'static str, Value> {
    let ideal = complete(&PipeSpec::default());
    let ideal: BTreeMap<&str, Value> = write(&ideal).into_iter().collect();
    let mut values: BTreeMap<&str, Value> = write(&complete(pipe)).into_iter().collect();
    values.retain(|key, value| ideal.get(key) != Some(value));
    values.values_mut().for_each(shorten);
    values
}

/// Returns the values of a pipe that is given none, by their keys.
pub fn default_values() -> Map<String, Value> {
    difference(None, &PipeSpec::default())
}

/// Returns the values that make a pipe with the parameters `from` one with those of `to`, by their
/// keys; without `from` all values of `to`. Opportunities have no key.
pub fn difference(from: Option<&PipeSpec>, to: &PipeSpec) -> Map<String, Value> {
    let ends_egress_loss = to.egress_loss.is_never() && from.is_some_and(|from| !from.egress_loss.is_never());
    let from: BTreeMap<&str, Value> = from.map(|from| write(&complete(from))).into_iter().flatten().collect();
    let to = write(&complete(to)).into_iter().filter(|(key, value)| from.get(key) != Some(value));
    let mut values: Map<String, Value> = to.map(|(key, value)| (key.to_owned(), value)).collect();
    // A loss at the entrance alone leaves that at the exit as it is.
    if let (true, Some(loss)) = (ends_egress_loss, values.get_mut("loss")) {
        let entrance = match loss.take() {
            Value::String(probability) => json!({ "probability": probability }),
            law => law,
        };
        *loss = json!([entrance, { "probability": "0%", "at": "egress" }]);
    }
    values
}

/// Lists with more entries are described in reports.
const ENTRIES_MAX: usize = 1000;

fn shorten(value: &mut Value) {
    match value {
        Value::Array(list) if list.len() > ENTRIES_MAX => *value = json!(format!("{} values", list.len())),
        Value::Array(list) => list.iter_mut().for_each(shorten),
        Value::Object(table) => table.values_mut().for_each(shorten),
        _ => {}
    }
}

fn write_queue(queue: &QueueSpec) -> Value {
    match *queue == QueueSpec::default() {
        true => json!("unlimited"),
        false => queue::write(queue),
    }
}

fn write_framing(Framing { packet, cells }: Framing) -> Value {
    match cells {
        None if packet < 0 => json!(packet),
        None => json!({ "bytes": packet }),
        Some(cells) => json!({ "bytes": packet, "cell": cells.payload, "cell_overhead": cells.overhead }),
    }
}

/// The schemas of the values of a pipe, by name.
pub(crate) fn definitions(define: &mut dyn FnMut(&str, Value)) {
    let bytes = json!({ "type": "integer", "minimum": -OVERHEAD_MAX, "maximum": OVERHEAD_MAX });
    let cells = schema_parts::properties([
        ("bytes", "Bytes in addition to each packet.", bytes.clone()),
        (
            "cell",
            "The payload of a cell, bytes.",
            json!({ "type": "integer", "minimum": 1, "maximum": CELL_MAX }),
        ),
        ("cell_overhead", "Bytes in addition to the payload of each cell.", bytes.clone()),
    ]);
    define("overhead", json!({ "anyOf": [bytes, { "const": "ethernet" }, schema_parts::table(cells, &[])] }));
    define("loss", loss::schema());
    define("queue", queue::schema());
    define("law", effects::law_schema());
    define("jitter", effects::jitter_schema());
    define("reorder", effects::reorder_schema());
    define("duplicate", effects::duplicate_schema());
    define("corrupt", effects::corrupt_schema());
    define("slots", slots::schema());
    define("cross", cross::schema());
}

/// The schemas of [`KEYS`].
pub(crate) fn properties() -> Map<String, Value> {
    let rate = json!({ "anyOf": [{ "const": "unlimited" }, schema_parts::reference("rate")] });
    schema_parts::properties([
        ("rate", "Bits on the wire per second, or \"unlimited\".", rate),
        (
            "overhead",
            "Bytes on the wire beyond each frame: a number, \"ethernet\" (24), or cells.",
            schema_parts::reference("overhead"),
        ),
        ("delay", "The propagation delay, one way.", schema_parts::reference("duration")),
        (
            "loss",
            "A probability or a law; a list has one before the queue and one behind the bottleneck.",
            schema_parts::reference("loss"),
        ),
        (
            "queue",
            "A limit, the longest sojourn time, \"unlimited\", or a discipline.",
            schema_parts::reference("queue"),
        ),
        ("jitter", "A law by which the delay varies, or \"none\".", schema_parts::reference("jitter")),
        ("reorder", "The share of packets that skip the delay.", schema_parts::reference("reorder")),
        ("duplicate", "The share of packets that leave twice.", schema_parts::reference("duplicate")),
        ("corrupt", "The share of packets with a flipped bit.", schema_parts::reference("corrupt")),
        (
            "slots",
            "The slots in which packets leave together, or \"none\".",
            schema_parts::reference("slots"),
        ),
        (
            "cross",
            "Packets that no host sends and that take part of the queue and the rate, or \"none\".",
            schema_parts::reference("cross"),
        ),
        ("state", "Down: nothing passes, and what is queued is dropped.", json!({ "enum": ["up", "down"] })),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::parse_change;
    use crate::write::inline;
    use fastpath_link::{LossPlan, LossSpec, Opportunities, PacketFilter};

    /// A pipe with these values and no others.
    fn pipe(values: &[(&str, String)]) -> PipeSpec {
        let lines: Vec<String> = values.iter().map(|(key, value)| assignment(key, value)).collect();
        let change =
            parse_change(&lines.join("\n")).unwrap_or_else(|mistakes| panic!("{lines:?}: {mistakes:?}"));
        let mut spec = PipeSpec::default();
        change.apply_to(&mut spec);
        spec
    }

    #[test]
    fn what_is_written_reads_back_as_the_same_pipe() {
        for (key, value) in [
            ("rate", "1.000001Mbit"),
            ("overhead", "ethernet"),
            ("overhead", "-14"),
            ("overhead", "{ bytes = 8, cell = 48, cell_overhead = 5 }"),
            ("delay", "1.5ms"),
            ("loss", "0.0001%"),
            ("loss", "{ probability = 0.123456789, at = 'egress' }"),
            ("loss", "{ probability = '1%', ecn = true }"),
            ("loss", "{ kind = 'uniform', probability = '1%', correlation = '25%' }"),
            ("loss", "{ kind = 'gilbert-elliott', to_bad = '1%', to_good = '30%', loss_in_bad = '90%' }"),
            (
                "loss",
                "{ kind = 'four-state', p13 = '1%', p31 = '30%', p32 = '2%', p23 = '40%', p14 = '0.1%' }",
            ),
            ("loss", "{ kind = 'runs', passed = [99, 7], lost = [1, 2] }"),
            ("loss", "{ kind = 'packets', numbers = [3, 17] }"),
            ("loss", "{ kind = 'bytes', offsets = [1000, 90000] }"),
            ("loss", "{ kind = 'outage', start = '1s', for = '200ms', every = '5s' }"),
            (
                "loss",
                "[{ kind = 'packets', numbers = [1] }, { kind = 'packets', numbers = [2], at = 'egress' }]",
            ),
            ("queue", "50p"),
            ("queue", "64KiB"),
            ("queue", "20ms"),
            ("queue", "{ kind = 'drop-tail', limit = '20ms' }"),
            ("queue", "{ kind = 'drop-head', limit = '9p' }"),
            ("queue", "{ kind = 'red', limit = '50p', min = '5p', max = '15p', ecn = true }"),
            ("queue", "{ kind = 'red', limit = '64KiB', min = '5KiB', max = '15KiB', gentle = false }"),
            ("queue", "{ kind = 'ared', limit = '50p', min = '5p', max = '15p' }"),
            ("queue", "{ kind = 'ared', limit = '50p', target = '5ms' }"),
            ("queue", "{ kind = 'codel', target = '1ms', ecn = true }"),
            ("queue", "{ kind = 'fq-codel', flows = 16 }"),
            ("queue", "{ kind = 'pie', alpha = 0.1, ecn = true }"),
            ("queue", "{ kind = 'dualpi2' }"),
            ("queue", "{ kind = 'dualpi2', classic_share = 10 }"),
            ("queue", "{ kind = 'token-bucket', rate = '1Mbit', burst = '10KiB', limit = '100p' }"),
            (
                "queue",
                "{ kind = 'token-bucket', rate = '1Mbit', burst = '10KiB', limit = '100p', peak = '2Mbit', peak_burst = '2KiB' }",
            ),
            ("queue", "{ kind = 'prio', bands = [{ dscp = ['EF'], limit = '10p' }, { limit = '100p' }] }"),
            (
                "queue",
                "{ kind = 'drr', classes = [{ dscp = [46, 8], quantum = '3KiB', limit = '10p' }, { quantum = '1KiB', limit = '20p' }] }",
            ),
            ("jitter", "{ law = 'uniform', half_width = '1ms', reorder = 'allow' }"),
            ("jitter", "{ law = 'normal', sd = '1ms', half_life = '50ms' }"),
            (
                "jitter",
                "{ law = 'lognormal', mean = '1ms', sd = '3ms', correlation = '25%', reorder = 'drop' }",
            ),
            ("jitter", "{ law = 'pareto', mean = '2ms', shape = 2.5 }"),
            ("jitter", "{ law = 'exponential', mean = '2ms' }"),
            ("jitter", "{ law = 'table', values = ['1ms', '2.5ms'] }"),
            ("jitter", "{ law = 'trace', values = ['1ms', '2.5ms'] }"),
            ("reorder", "25%"),
            ("reorder", "{ probability = '25%', correlation = '50%', gap = 5 }"),
            ("duplicate", "1%"),
            ("duplicate", "{ probability = '1%', later = '5ms' }"),
            ("corrupt", "0.1%"),
            ("corrupt", "{ probability = '0.1%', correlation = '10%' }"),
            ("corrupt", "{ bits = 1e-6 }"),
            ("slots", "2ms"),
            ("slots", "{ min = '1ms', max = '3ms', packets = 10, bytes = '15KiB' }"),
            ("slots", "{ mean = '2ms', law = { law = 'exponential', mean = '1ms' } }"),
            ("cross", "4Mbit"),
            ("cross", "{ rate = '4Mbit', law = 'constant' }"),
            ("cross", "{ rate = '4Mbit', packet = 200 }"),
            ("state", "down"),
        ] {
            let asked = pipe(&[(key, value.to_owned())]);
            assert_ne!(asked, PipeSpec::default(), "{value} asks for something");
            let written = values(&asked);
            assert_eq!(written.keys().collect::<Vec<_>>(), [&key], "{value}");
            // As JSON for the control interface, which takes text without its quotes.
            let read: Vec<(&str, String)> = written
                .iter()
                .map(|(key, value)| (*key, value.as_str().map_or_else(|| inline(value), str::to_owned)))
                .collect();
            assert_eq!(pipe(&read), asked, "{value} was written as {read:?}");
        }
    }

    #[test]
    fn the_difference_makes_one_pipe_another_and_every_default_has_a_text() {
        let plain = PipeSpec::default();
        assert_eq!(default_values().len(), KEYS.len());
        let asked = pipe(&[
            ("rate", "5Mbit".to_owned()),
            ("loss", "[{ probability = '1%' }, { probability = '2%', at = 'egress' }]".to_owned()),
            ("overhead", "{ bytes = 8, cell = 48, cell_overhead = 5 }".to_owned()),
            ("queue", "{ kind = 'red', limit = '50p', min = '5p', max = '15p' }".to_owned()),
        ]);
        for (from, to, count) in [(&plain, &asked, 4), (&asked, &plain, 4), (&asked, &asked, 0)] {
            let values = difference(Some(from), to);
            assert_eq!(values.len(), count, "{values:?}");
            let mut made = from.clone();
            if count > 0 {
                crate::change_of_json(&values).unwrap().apply_to(&mut made);
            }
            assert_eq!(made, *to, "{values:?}");
        }
    }

    #[test]
    fn a_pipe_says_nothing_of_defaults_and_little_of_what_is_long() {
        assert!(values(&PipeSpec::default()).is_empty());
        let numbers = vec![1; ENTRIES_MAX + 1].into();
        let loss = LossSpec::Plan(LossPlan::Numbers { numbers, of: PacketFilter::All });
        let said = &values(&PipeSpec { loss, ..PipeSpec::default() })["loss"];
        assert_eq!(said["numbers"], "1001 values");
        let times = Opportunities::new([Duration::from_ms(1)]).ok();
        assert!(values(&PipeSpec { opportunities: times, ..PipeSpec::default() }).is_empty());
    }
}
