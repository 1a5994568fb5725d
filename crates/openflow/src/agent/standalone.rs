//! Fail-standalone mode: without controllers, the switch learns addresses and forwards by them, as
//! a switch without OpenFlow does (§6.3.2). A flow of the highest priority sends everything to
//! NORMAL. It carries [`COOKIE`] and is removed when a controller is back.
//!
//! A switch that dials no controller has none to wait for. As in Open vSwitch, the flow then has
//! the lowest priority and is there from the start, so that other flows have precedence over it.

use fastpath_engine::switching::Control;
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::port;
use fastpath_switch::{Action, FlowCommand, FlowMod, Instructions, Match, Rank, Removed};

/// The cookie of this flow.
const COOKIE: u64 = 0xfa57_0000_5741_4e44;

/// Makes a switch that dials no controller forward by learned addresses what matches no other flow.
/// A rule of the user for the same packets stays.
pub(super) fn by_default(control: &Control) {
    let flow = FlowMod { priority: 0, ..everything() };
    let rank = Rank::new(flow.priority, flow.matching.clone());
    let _ = control.change_flows(&[], |switch, now| match switch.tables()[0].flow(&rank) {
        Some(_) => Ok(Vec::new()),
        None => switch.flow_mod(now, &flow),
    });
}

/// Starts standalone mode. If the table is full, the installed flows go on forwarding.
pub(super) fn begin(control: &Control) {
    let _ = control.change_flows(&[], |switch, now| switch.flow_mod(now, &everything()));
}

/// Ends standalone mode.
pub(super) fn end(control: &Control) {
    let gone = FlowMod { command: FlowCommand::DeleteStrict, cookie_mask: u64::MAX, ..everything() };
    let _ = control.change_flows(&[], |switch, now| switch.flow_mod(now, &gone));
}

/// Removes all flows. Returns them.
pub(super) fn restart(control: &Control) -> Vec<Removed> {
    let all = FlowMod {
        command: FlowCommand::Delete,
        ..FlowMod::add(ALL_TABLES, 0, Match::any(), Instructions::default())
    };
    control.change(|switch, now| switch.flow_mod(now, &all)).unwrap_or_default()
}

fn everything() -> FlowMod {
    let normal = Instructions::apply([Action::output(port::NORMAL)]);
    FlowMod { cookie: COOKIE, ..FlowMod::add(0, u16::MAX, Match::any(), normal) }
}
