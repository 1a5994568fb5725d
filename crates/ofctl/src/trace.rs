//! The path of a packet through the tables as text, as `ovs-appctl ofproto/trace` shows them: each
//! lookup, the actions that were executed, indented by resubmits, and what the path depends on.

use crate::{print_instructions, print_match};
use fastpath_switch::connections::CtState;
use fastpath_switch::field::FIELDS;
use fastpath_switch::meter::MeterResult;
use fastpath_switch::normal::ForwardingDecision;
use fastpath_switch::trace::{Lookup, Trace, TraceEvent, TraceStep};
use fastpath_switch::{ConnectionFields, Field, FieldMatch, Instructions, Key, Match, port};
use std::fmt::Write;

/// Spaces of a level.
const INDENT: usize = 4;
/// Bits of a register.
const REGISTER: u32 = 32;

/// Prints the steps of a path, a line each, then the packet at its end and what the path depends
/// on.
pub fn print_trace(trace: &Trace) -> String {
    let mut text = String::new();
    let mut line = |depth: usize, words: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:indent$}{words}", "", indent = depth * INDENT);
    };
    // What flows do after their actions, until those have ended: by depth.
    let mut waiting: Vec<(usize, String)> = Vec::new();
    for TraceStep { depth, event } in &trace.steps {
        if matches!(event, TraceEvent::Lookup(_) | TraceEvent::ActionSet) {
            while let Some((depth, rest)) = waiting.pop_if(|(other, _)| *other >= *depth) {
                line(depth + 1, &rest);
            }
        }
        match event {
            TraceEvent::Lookup(lookup) => {
                line(*depth, &lookup_text(lookup));
                waiting.extend(rest_of(lookup).map(|rest| (*depth, rest)));
            }
            TraceEvent::ActionSet => line(*depth, "action set"),
            event => line(depth + 1, &print_step(event)),
        }
    }
    while let Some((depth, rest)) = waiting.pop() {
        line(depth + 1, &rest);
    }
    let (arrived, ended) = (print_key(&trace.arrived), print_key(&trace.ended));
    let ended = if arrived == ended { "unchanged".to_owned() } else { ended };
    line(0, &format!("final flow: {ended}"));
    let looked_at = print_fields(trace.looked_at.iter().copied());
    line(
        0,
        &format!("depends on: {}", if looked_at.is_empty() { "no bits of the packet" } else { &looked_at }),
    );
    text
}

fn lookup_text(lookup: &Lookup) -> String {
    let Lookup { table_id, rank, connection, key, .. } = lookup;
    let tracked =
        print_tracked(connection).map(|state| format!("ct_state={state},ct_zone={}", connection.zone));
    let carried = Some(print_carried(key)).filter(|fields| !fields.is_empty());
    let with: Vec<String> = carried.into_iter().chain(tracked).collect();
    let with = if with.is_empty() { String::new() } else { format!("  (with {})", with.join(",")) };
    let Some(rank) = rank else { return format!("table {table_id}: no flow matches{with}") };
    let matching = print_match(rank.matching());
    let comma = if matching.is_empty() { "" } else { "," };
    format!("table {table_id}: priority={}{comma}{matching}{with}", rank.priority())
}

/// Returns what a flow does after its list of actions: write the action set, go to a table.
fn rest_of(lookup: &Lookup) -> Option<String> {
    lookup.rank.as_ref()?;
    let instructions = &*lookup.instructions;
    let rest = Instructions { apply: Instructions::default().apply, meter: None, ..instructions.clone() };
    let has_rest = rest != Instructions::default();
    let is_empty = !has_rest && instructions.apply.is_empty();
    (has_rest || is_empty).then(|| print_instructions(&rest))
}

/// Prints a step of a path.
pub fn print_step(event: &TraceEvent) -> String {
    match event {
        TraceEvent::Lookup(lookup) => lookup_text(lookup),
        TraceEvent::ActionSet => "action set".to_owned(),
        TraceEvent::Action(action) => print_instructions(&Instructions::apply([action.clone()])),
        TraceEvent::Bucket { group, bucket } => format!("bucket {bucket} of group {group}"),
        TraceEvent::Metered { id, result } => {
            let result = match result {
                MeterResult::Pass => "passes".to_owned(),
                MeterResult::Remark(levels) => format!("raises the drop precedence by {levels}"),
                MeterResult::Drop => "drops".to_owned(),
            };
            format!("meter {id} {result}")
        }
        TraceEvent::Tracked(connection) => tracked_text(connection),
        TraceEvent::Located(located) => match located {
            ForwardingDecision::Port(port) => format!("the destination is behind port {port}"),
            ForwardingDecision::Flood => "the destination is not known: to all other ports".to_owned(),
            ForwardingDecision::Filter => {
                "the destination is behind the port of entry, or reserved".to_owned()
            }
        },
    }
}

fn tracked_text(connection: &ConnectionFields) -> String {
    let ConnectionFields { zone, mark, label, .. } = connection;
    let state = print_tracked(connection).unwrap_or_default();
    let mark = if *mark == 0 { String::new() } else { format!(",ct_mark={mark:#x}") };
    let label = if *label == 0 { String::new() } else { format!(",ct_label={label:#x}") };
    format!("tracked: ct_state={state},ct_zone={zone}{mark}{label}")
}

/// Prints the flags of a tracked packet, as `+trk+est`; `None` before `ct`.
pub fn print_tracked(connection: &ConnectionFields) -> Option<String> {
    let bits = connection.state.bits();
    let names = CtState::NAMES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 != 0);
    (bits != 0).then(|| names.map(|(_, name)| format!("+{name}")).collect())
}

/// Prints metadata, registers and marks that are not 0.
pub fn print_carried(key: &Key) -> String {
    print_of(key, is_carried)
}

/// Prints the fields of a packet, as in a rule.
pub fn print_key(key: &Key) -> String {
    print_of(key, |field| field == Field::InPort || is_carried(field) || !field.is_pipeline())
}

/// Whether a field is not in frames, but goes with a packet through the tables. Connections are
/// shown apart.
fn is_carried(field: Field) -> bool {
    let is_port = matches!(field, Field::InPort | Field::InPhyPort);
    field.is_pipeline() && !is_port && !field.info().name.starts_with("ct_")
}

fn print_of(key: &Key, is_shown: impl Fn(Field) -> bool) -> String {
    let shown = FIELDS.iter().map(|info| info.field).filter(|field| is_shown(*field));
    print_fields(shown.filter_map(|field| value_of(key, field)))
}

/// Returns a field of a packet; `None` if it has none, or one that is not set and not in its frame.
/// Of registers those that are not 0 are exact.
fn value_of(key: &Key, field: Field) -> Option<FieldMatch> {
    let value = key.get(field)?;
    if !is_carried(field) {
        return Some(FieldMatch::exact(field, value));
    }
    let part = |place: u32| u128::from(u32::MAX) << (place * REGISTER);
    let mask = match field.info().name.starts_with("xxreg") {
        true => (0..4).map(part).filter(|part| value & part != 0).sum(),
        false => field.ones(),
    };
    let is_unset = value == 0 || field == Field::ActsetOutput && value == u128::from(port::UNSET);
    (!is_unset).then_some(FieldMatch { field, value, mask })
}

/// Prints fields as in a rule; one that a rule could not have beside the others is left out.
pub fn print_fields(fields: impl Iterator<Item = FieldMatch>) -> String {
    let mut kept = Vec::new();
    let mut matching = Match::any();
    for field in fields {
        kept.push(field);
        match Match::new(&kept) {
            Ok(wider) => matching = wider,
            Err(_) => drop(kept.pop()),
        }
    }
    print_match(&matching)
}
