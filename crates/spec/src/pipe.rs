//! The values of a pipe in a spec, in a link, in one of its directions,
//! in an event, and in what is asked of a running network.

use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::tree::Tree;
use crate::{Files, effects, loss, queue, slots};
use fastpath_link::{Cells, Change, Framing, LinkState};
use fastpath_units::{Duration, Rate};
use std::num::NonZeroU32;

/// Bytes on an Ethernet wire beyond the frame: preamble 8, FCS 4, gap 12 (IEEE 802.3 §3.1.1,
/// §4.4.2).
pub(crate) const ETHERNET_OVERHEAD: u32 = 24;
/// More than this on the wire around each frame is taken for a slip.
const OVERHEAD_MAX: i64 = 1500;
/// No cell is larger.
const CELL_MAX: u64 = 65_535;
/// The keys [`read`] knows.
pub(crate) const KEYS: [&str; 11] = [
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
    "state",
];

/// The values written in a table; `files` gives the files it names.
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
            let what = "the jitter is never to reorder, and reorder lets packets pass by its delay";
            remarks.mistake(field.at, what, "remove one of the two");
        }
    }
    change.duplicate = fields.get("duplicate").and_then(|field| effects::duplicate(&field, remarks));
    change.corrupt = fields.get("corrupt").and_then(|field| effects::corrupt(&field, remarks));
    change.slots = fields.get("slots").and_then(|field| slots::read(&field, files, remarks));
    change.state = fields.get("state").and_then(|field| {
        loss::word(&field, "a state of a link", &["up", "down"], remarks)
            .map(|state| [LinkState::Up, LinkState::Down][state])
    });
    change
}

/// `key = value` in TOML, for a value from a command line: text needs no quotes there, but tables,
/// lists and numbers that are no text are written as in a spec.
pub fn assignment(key: &str, value: &str) -> String {
    let value = value.trim();
    let digits = value.strip_prefix('-').unwrap_or(value);
    let number = key == "overhead" && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty();
    if number || value.starts_with(['{', '[']) {
        return format!("{key} = {value}");
    }
    let escaped = value.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("{key} = \"{}\"", escaped.collect::<String>())
}

fn rate(field: &Field, remarks: &mut Remarks) -> Option<Option<Rate>> {
    match field.value {
        Tree::Text(text) if text == "unlimited" => Some(None),
        _ => field.quantity("10Mbit", remarks).map(Some),
    }
}

/// Either kind of bytes beside the frame replaces the other.
fn overhead(field: &Field, change: &mut Change, remarks: &mut Remarks) {
    let plain = |bytes: u32| (Some(bytes), Some(None));
    (change.overhead, change.framing) = match field.value {
        Tree::Text(text) if text == "ethernet" => plain(ETHERNET_OVERHEAD),
        Tree::Text(text) => {
            let instead = "write overhead = \"ethernet\", or a number of bytes";
            remarks.mistake(field.at, format!("overhead '{text}' is not known"), instead);
            return;
        }
        Tree::Table(_) => (None, framing(field, remarks).map(Some)),
        _ => match field
            .integer(-OVERHEAD_MAX..=OVERHEAD_MAX, remarks)
            .map(|bytes| (bytes, u32::try_from(bytes)))
        {
            None => return,
            Some((_, Ok(bytes))) => plain(bytes),
            Some((bytes, Err(_))) => (None, Some(Some(Framing { packet: bytes as i32, cells: None }))),
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
        remarks.mistake(field.at, "cell_overhead without cells", "write cell = 48 beside it");
    }
    let overhead = beyond.map_or(Some(0), |field| bytes(field, remarks));
    fields.finish(remarks);
    let (overhead, packet) = (overhead?, packet?);
    Some(Framing { packet, cells: payload?.map(|payload| Cells { payload, overhead }) })
}
