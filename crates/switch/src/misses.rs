//! Packets that match no flow, in OpenFlow 1.0: they go to the controllers. In OpenFlow 1.3 they
//! are dropped unless a flow says otherwise (§5.4), and the tables do only this.
//!
//! While a controller of OpenFlow 1.0 wants these packets, table 0 has a flow of the lowest
//! priority that sends them, unless a controller has added one of its own. The flow is hidden: no
//! controller sees, changes or deletes it, it takes no room, and its packet-ins go to controllers
//! of OpenFlow 1.0 only.

use crate::action::Action;
use crate::execute::PacketInHead;
use crate::flow::{ALL_TABLES, Flow, FlowCommand, FlowMod, Instructions, Rank, flags};
use crate::matching::Match;
use crate::port;
use crate::reason::PacketInReason;
use crate::switch::Switch;
use fastpath_units::Time;

/// The cookie of the flow. OpenFlow 1.3.5 §7.3.4.2 reserves it.
const COOKIE: u64 = u64::MAX;

/// The table of the flow.
const TABLE: u8 = 0;

fn flow() -> FlowMod {
    let send = Instructions::apply([Action::output(port::CONTROLLER)]);
    FlowMod { cookie: COOKIE, ..FlowMod::add(TABLE, 0, Match::any(), send) }
}

fn rank() -> Rank {
    Rank::new(0, Match::any())
}

/// Returns whether a packet-in is of the hidden flow.
pub fn is_miss(head: &PacketInHead) -> bool {
    head.table_id == TABLE && head.cookie == COOKIE && head.reason == PacketInReason::NoMatch
}

/// Returns the hidden flow, if it is there.
pub fn hidden(switch: &Switch) -> Option<&Flow> {
    switch.tables().get(usize::from(TABLE))?.flow(&rank()).filter(|flow| flow.is_hidden())
}

/// Adds the hidden flow, unless there is a flow for the same packets.
pub fn add(switch: &mut Switch, now: Time) {
    if switch.tables().get(usize::from(TABLE)).is_some_and(|table| table.flow(&rank()).is_none()) {
        switch.add_hidden(now, &flow());
    }
}

/// Removes the hidden flow.
pub fn remove(switch: &mut Switch, now: Time) {
    if hidden(switch).is_some() {
        switch.delete(now, &[(TABLE, rank())]);
    }
}

/// Returns whether a request would see the hidden flow.
pub fn is_seen_by(request: &FlowMod) -> bool {
    let FlowMod { command, table_id, priority, matching, .. } = request;
    let is_of_lowest = *priority == 0;
    [TABLE, ALL_TABLES].contains(table_id)
        && match command {
            FlowCommand::Add if is_of_lowest && request.flags & flags::CHECK_OVERLAP != 0 => true,
            FlowCommand::Modify | FlowCommand::Delete => matching.is_any(),
            FlowCommand::Add | FlowCommand::ModifyStrict | FlowCommand::DeleteStrict => {
                matching.is_any() && is_of_lowest
            }
        }
}
