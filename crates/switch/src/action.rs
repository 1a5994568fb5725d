//! Actions and the action set.
//!
//! Read first: OpenFlow 1.3.5 §5.10 (action set), §5.12 (actions).

use crate::field::Field;
use crate::port;
use std::collections::BTreeMap;

/// What is done to a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// Send it out of a port, physical or reserved (see [`port`]).
    Output {
        /// The port.
        port: u32,
        /// Bytes that a packet-in carries at most; 0xffff for the whole frame.
        max_len: u16,
    },
    /// Process it by a group.
    Group(u32),
    /// Put it in this queue of the port it leaves by.
    SetQueue(u32),
    /// Set a field to a value.
    SetField(Field, u128),
    /// Insert a VLAN tag with this EtherType.
    PushVlan(u16),
    /// Remove the outermost VLAN tag.
    PopVlan,
    /// Insert an MPLS entry with this EtherType.
    PushMpls(u16),
    /// Remove the outermost MPLS entry; the rest has this EtherType.
    PopMpls(u16),
    /// Wrap in a PBB service instance with this EtherType.
    PushPbb(u16),
    /// Unwrap the PBB service instance.
    PopPbb,
    /// Copy the TTL of the second header to the outermost.
    CopyTtlOut,
    /// Copy the TTL of the outermost header to the second.
    CopyTtlIn,
    /// Set the TTL of the outermost MPLS entry.
    SetMplsTtl(u8),
    /// Count a hop in the outermost MPLS entry.
    DecMplsTtl,
    /// Set the TTL of the IP header.
    SetNwTtl(u8),
    /// Count a hop in the IP header.
    DecNwTtl,
}

/// At most one action of each kind (of set-field: one for each field), executed in the order of
/// §5.10 whatever the order they were written in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ActionSet {
    actions: BTreeMap<Slot, Action>,
}

/// Where an action goes in the set: its place in the order of §5.10, and which of several that
/// share it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Slot(u8, u8);

impl Action {
    /// Output with the whole frame, should it go to the controller.
    pub fn output(port: u32) -> Action {
        Action::Output { port, max_len: port::NO_BUFFER }
    }

    fn slot(&self) -> Slot {
        match self {
            Action::CopyTtlIn => Slot(1, 0),
            Action::PopVlan => Slot(2, 0),
            Action::PopPbb => Slot(2, 1),
            Action::PopMpls(_) => Slot(2, 2),
            Action::PushMpls(_) => Slot(3, 0),
            Action::PushPbb(_) => Slot(4, 0),
            Action::PushVlan(_) => Slot(5, 0),
            Action::CopyTtlOut => Slot(6, 0),
            Action::DecMplsTtl => Slot(7, 0),
            Action::DecNwTtl => Slot(7, 1),
            Action::SetField(field, _) => Slot(8, *field as u8),
            Action::SetMplsTtl(_) => Slot(8, 0xfe),
            Action::SetNwTtl(_) => Slot(8, 0xff),
            Action::SetQueue(_) => Slot(9, 0),
            Action::Group(_) => Slot(10, 0),
            Action::Output { .. } => Slot(11, 0),
        }
    }
}

impl ActionSet {
    /// The set that writing these actions, in turn, to the empty set gives.
    pub fn of(actions: &[Action]) -> ActionSet {
        let mut set = ActionSet::default();
        set.write(actions);
        set
    }

    /// Adds actions; each replaces the one of its kind.
    pub fn write(&mut self, actions: &[Action]) {
        self.actions.extend(actions.iter().map(|action| (action.slot(), *action)));
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    /// The actions to execute, in order: with a group there is no output (§5.10).
    pub fn in_order(&self) -> impl Iterator<Item = Action> + '_ {
        let has_group = self.actions.values().any(|action| matches!(action, Action::Group(_)));
        let is_kept = move |action: &Action| !(has_group && matches!(action, Action::Output { .. }));
        self.actions.values().copied().filter(is_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_executes_in_the_order_of_the_specification() {
        let written = [
            Action::output(2),
            Action::SetQueue(1),
            Action::SetField(Field::EthDst, 7),
            Action::DecNwTtl,
            Action::CopyTtlOut,
            Action::PushVlan(0x8100),
            Action::PushPbb(0x88e7),
            Action::PushMpls(0x8847),
            Action::PopMpls(0x0800),
            Action::CopyTtlIn,
        ];
        let executed: Vec<_> = ActionSet::of(&written).in_order().collect();
        assert_eq!(executed, written.iter().rev().copied().collect::<Vec<_>>());
    }

    #[test]
    fn later_writes_replace_earlier_ones_and_a_group_hides_the_output() {
        let mut set = ActionSet::of(&[Action::output(1), Action::SetField(Field::EthDst, 1)]);
        set.write(&[
            Action::output(2),
            Action::SetField(Field::EthDst, 2),
            Action::SetField(Field::EthSrc, 3),
        ]);
        let executed: Vec<_> = set.in_order().collect();
        let fields = [Action::SetField(Field::EthDst, 2), Action::SetField(Field::EthSrc, 3)];
        assert_eq!(executed, [fields[0], fields[1], Action::output(2)]);
        set.write(&[Action::Group(5)]);
        assert_eq!(set.in_order().last(), Some(Action::Group(5)));
        set.clear();
        assert_eq!(set.in_order().count(), 0);
    }
}
