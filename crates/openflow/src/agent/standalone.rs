//! Fail-standalone mode: without controllers, the switch learns addresses and forwards by them, as
//! a switch without OpenFlow does (§6.3.2). A flow of the highest priority sends everything to
//! NORMAL. It carries [`COOKIE`] and is removed when a controller is back.

use fastpath_engine::switching::Control;
use fastpath_switch::port;
use fastpath_switch::{Action, FlowCommand, FlowMod, Instructions, Match};

/// The cookie of this flow.
const COOKIE: u64 = 0xfa57_0000_5741_4e44;

/// Starts standalone mode. If the table is full, the installed flows go on forwarding.
pub(super) fn begin(control: &Control) {
    let _ = control.change_flows(&[], |switch, now| switch.flow_mod(now, &everything()));
}

/// Ends standalone mode.
pub(super) fn end(control: &Control) {
    let gone = FlowMod { command: FlowCommand::DeleteStrict, cookie_mask: u64::MAX, ..everything() };
    let _ = control.change_flows(&[], |switch, now| switch.flow_mod(now, &gone));
}

fn everything() -> FlowMod {
    let normal = Instructions::apply([Action::output(port::NORMAL)]);
    FlowMod { cookie: COOKIE, ..FlowMod::add(0, u16::MAX, Match::any(), normal) }
}
