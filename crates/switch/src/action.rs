//! Actions, their names and numbers, and the action set.
//!
//! To add an action: its variant, its row in [`ACTIONS`] and its arm in [`Action::parts`] here, and
//! its arm in [`perform`](crate::execute::perform()), which calls a function of `edit.rs`. Rule
//! files, messages, table features, the interpreter, compiled tables and their differential test
//! read [`ACTIONS`]. An argument that can be wrong is also checked in `check.rs`.
//!
//! Read first: OpenFlow 1.3.5 §5.10 (action set), §5.12 (actions).

use crate::extension::bits::Bits;
use crate::extension::learn::Learn;
use crate::extension::spread::{Bundle, Multipath};
use crate::field::Field;
use crate::port;
use crate::reason::PacketInReason;
use fastpath_conntrack::{Alg, Commit, NatRequest};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The highest number of a group (OFPG_MAX), which `group.rs` gives its public name.
pub(crate) const GROUP_MAX: u32 = 0xffff_ff00;

/// An action on a packet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// Send a copy out of a port, ordinary or reserved (see [`port`]).
    Output {
        /// The port.
        port: u32,
        /// The most bytes that a packet-in carries; 0xffff for the whole frame.
        max_len: u16,
    },
    /// Process the packet by a group.
    Group(u32),
    /// Use this queue of the output port.
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
    /// Decrement the TTL of the outermost MPLS entry.
    DecMplsTtl,
    /// Set the TTL of the IP header.
    SetNwTtl(u8),
    /// Decrement the TTL of the IP header.
    DecNwTtl,
    /// An action of Open vSwitch.
    Extension(Arc<Extension>),
    /// Set the id of the outermost VLAN tag. A packet without a tag gets one of EtherType 0x8100
    /// (OpenFlow 1.0 OFPAT_SET_VLAN_VID).
    ModVlanVid(u16),
    /// Set the priority of the outermost VLAN tag. A packet without a tag gets one of EtherType
    /// 0x8100 (OpenFlow 1.0 OFPAT_SET_VLAN_PCP).
    ModVlanPcp(u8),
}

/// An action of Open vSwitch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Extension {
    /// Sets the bits of `mask` (`load`, and `set_field` with a mask).
    Set {
        /// The field.
        field: Field,
        /// The new bits, within `mask`.
        value: u128,
        /// The bits that change.
        mask: u128,
        /// Whether it was written as `load`.
        is_load: bool,
    },
    /// Copies bits; nothing happens if the packet lacks one of the fields.
    Move {
        /// The source.
        from: Bits,
        /// The destination, of the same width.
        to: Bits,
    },
    /// Puts bits on the packet's stack.
    Push(Bits),
    /// Takes bits from the stack; of an empty stack nothing happens.
    Pop(Bits),
    /// Sends a copy to the port whose number is in a field (`output:reg0`).
    OutputTo {
        /// The number of the port.
        port: Bits,
        /// The most bytes of a packet-in.
        max_len: u16,
    },
    /// Sends a copy of at most `max_len` bytes out of a port.
    Truncated {
        /// The port.
        port: u32,
        /// Bytes of the frame that are kept.
        max_len: u32,
    },
    /// Looks the packet up in a table, executes what is found, and goes on here.
    Resubmit {
        /// The port of entry in that lookup; `None` for the present one.
        in_port: Option<u32>,
        /// The table; `None` for the present one.
        table: Option<u8>,
        /// Whether the lookup sees protocol, addresses and ports of the first packet of the
        /// connection, in the place of those of this packet.
        is_original: bool,
    },
    /// Lowers the timeouts of the flow that this action is in, if the packet has FIN or RST of TCP.
    FinTimeout {
        /// The idle timeout in seconds; 0 leaves it.
        idle: u16,
        /// The hard timeout in seconds; 0 leaves it.
        hard: u16,
    },
    /// Puts the packet through the data path once more, which has no effect on it here.
    DebugRecirc,
    /// Has the packet executed by the slow path, which has no effect on it here.
    DebugSlow,
    /// Adds or renews a flow.
    Learn(Learn),
    /// Puts the number of a link, chosen by a hash, into a field.
    Multipath(Multipath),
    /// Sends to one of several ports that can send, or puts its number into a field.
    Bundle(Bundle),
    /// Bytes without a meaning here.
    Note(Vec<u8>),
    /// Executes actions on a copy.
    Clone(Vec<Action>),
    /// This flow is one of the clauses of a conjunction.
    Conjunction {
        /// The conjunction.
        id: u32,
        /// The clause, from 0.
        clause: u8,
        /// The number of clauses.
        clauses: u8,
    },
    /// Reports some of the packets to a collector, if there is one: there is none here.
    Sample {
        /// Packets of 65,535 that are reported.
        probability: u16,
        /// The set of collectors.
        collector_set: u32,
        /// Observation domain of IPFIX.
        domain: u32,
        /// Observation point of IPFIX.
        point: u32,
        /// The port that is reported; 0 for none.
        sampling_port: u32,
        /// The direction that is reported: 0 default, 1 ingress, 2 egress.
        direction: u8,
    },
    /// Tracks the connection of the packet.
    Ct(Ct),
    /// Forgets what tracking said of the packet.
    CtClear,
    /// Ends the actions of this packet, at every depth.
    Exit,
    /// Sends a packet-in.
    Controller(Controller),
    /// Sends a copy by a queue of a port; the queue of the packet stays.
    Enqueue {
        /// The port.
        port: u32,
        /// Its queue.
        queue: u32,
    },
    /// Goes back to the default queue.
    PopQueue,
    /// Applies a meter (OpenFlow 1.5 OFPAT_METER), which may drop the packet.
    Meter(u32),
    /// Sets one bit to whether the frame is longer than this.
    CheckLen {
        /// Bytes of the frame without FCS.
        longer_than: u16,
        /// The bit.
        to: Bits,
    },
}

/// A packet-in that an action of Open vSwitch sends.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Controller {
    /// The most bytes of the frame.
    pub max_len: u16,
    /// The reason that is given.
    pub reason: PacketInReason,
    /// The number of the controllers that it is for; 0 for those that have not chosen one.
    pub id: u16,
    /// At most [`USERDATA_MAX`](crate::limits::USERDATA_MAX) bytes for the controller, which only NXT_PACKET_IN2 has.
    pub userdata: Vec<u8>,
    /// The meter that lets it pass; one that does not exist lets all pass.
    pub meter: Option<u32>,
    /// Whether the actions of the packet end here, at every depth and without its action set, until
    /// the controller resumes it.
    pub pauses: bool,
}

/// How a packet is tracked (`ct`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ct {
    /// Whether it commits the connection.
    pub commit: Commit,
    /// The table in which a copy goes on.
    pub table: Option<u8>,
    /// The zone.
    pub zone: Zone,
    /// NAT.
    pub nat: Option<NatRequest>,
    /// The protocol whose further connections are expected, if this commits the connection.
    pub alg: Option<Alg>,
    /// Actions that set mark and label of the connection.
    pub exec: Vec<Action>,
}

/// Where a zone comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Zone {
    /// This one.
    Number(u16),
    /// 16 bits of the packet.
    Field(Bits),
}

impl Default for Zone {
    fn default() -> Zone {
        Zone::Number(0)
    }
}

/// The action set of a packet: at most one action of each type (of set-field, one for each field).
/// It is executed in the order of §5.10, whatever the order in which actions were written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ActionSet {
    actions: BTreeMap<Slot, Action>,
}

/// The place of an action in the set: its row in [`ACTIONS`], and the bits of a field that it sets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Slot {
    row: u8,
    bits: Option<(Field, u128)>,
}

/// The names and the argument of an action type.
#[derive(Clone, Debug)]
pub struct ActionInfo {
    /// The number of the type in messages (OFPAT_). The numbers 1 to 10 are those of OpenFlow 1.0
    /// only; see [`ActionInfo::is_of_13`].
    pub number: u16,
    /// The name in rule files, as ovs-ofctl prints it.
    pub name: &'static str,
    /// The argument.
    pub argument: Argument,
}

/// The argument of an action, with the function that makes the action from it.
#[derive(Clone, Debug)]
pub enum Argument {
    /// No argument.
    None(Action),
    /// A TTL: 8 bits in messages.
    Ttl(fn(u8) -> Action),
    /// An EtherType: 16 bits in messages, hexadecimal in rule files.
    EtherType(fn(u16) -> Action),
    /// A number of at most `max`: 32 bits in messages.
    Number {
        /// The greatest number that rule files may use.
        max: u32,
        /// Makes the action.
        make: fn(u32) -> Action,
    },
    /// Output, set-field and extensions: syntax and message body of their own.
    Own,
}

impl ActionInfo {
    /// Returns whether messages of OpenFlow 1.3 have this type.
    pub const fn is_of_13(&self) -> bool {
        self.number == 0 || self.number > 10 && self.number != EXTENSION
    }
}

const fn row(number: u16, name: &'static str, argument: Argument) -> ActionInfo {
    ActionInfo { number, name, argument }
}

/// All action types, in the order in which an action set executes them (§5.10). Rule files and
/// messages are read and written by this table.
pub const ACTIONS: &[ActionInfo] = &[
    row(12, "copy_ttl_in", Argument::None(Action::CopyTtlIn)),
    row(18, "pop_vlan", Argument::None(Action::PopVlan)),
    row(27, "pop_pbb", Argument::None(Action::PopPbb)),
    row(20, "pop_mpls", Argument::EtherType(Action::PopMpls)),
    row(19, "push_mpls", Argument::EtherType(Action::PushMpls)),
    row(26, "push_pbb", Argument::EtherType(Action::PushPbb)),
    row(17, "push_vlan", Argument::EtherType(Action::PushVlan)),
    row(11, "copy_ttl_out", Argument::None(Action::CopyTtlOut)),
    row(16, "dec_mpls_ttl", Argument::None(Action::DecMplsTtl)),
    row(24, "dec_ttl", Argument::None(Action::DecNwTtl)),
    row(1, "mod_vlan_vid", Argument::Number { max: 0xfff, make: |id| Action::ModVlanVid(id as u16) }),
    row(2, "mod_vlan_pcp", Argument::Number { max: 7, make: |level| Action::ModVlanPcp(level as u8) }),
    row(25, "set_field", Argument::Own),
    row(15, "set_mpls_ttl", Argument::Ttl(Action::SetMplsTtl)),
    row(23, "mod_nw_ttl", Argument::Ttl(Action::SetNwTtl)),
    row(21, "set_queue", Argument::Number { max: u32::MAX, make: Action::SetQueue }),
    row(22, "group", Argument::Number { max: GROUP_MAX, make: Action::Group }),
    row(EXTENSION, "extension", Argument::Own),
    row(0, "output", Argument::Own),
];

/// The number that stands for all actions of Open vSwitch; no message has it.
pub const EXTENSION: u16 = 63;
/// In [`ROWS`]: no action has this number.
const NO_ROW: u8 = u8::MAX;
/// The row in [`ACTIONS`] of each number.
const ROWS: [u8; 64] = {
    let mut rows = [NO_ROW; 64];
    let mut row = 0;
    while row < ACTIONS.len() {
        rows[ACTIONS[row].number as usize] = row as u8;
        row += 1;
    }
    rows
};

/// Returns the action type of a number (OFPAT_).
pub fn by_number(number: u16) -> Option<&'static ActionInfo> {
    ACTIONS.get(usize::from(*ROWS.get(usize::from(number))?)).filter(|_| number != EXTENSION)
}

impl Action {
    /// Returns the output to a port; a packet-in carries the whole frame.
    pub fn output(port: u32) -> Action {
        Action::Output { port, max_len: port::NO_BUFFER }
    }

    /// Returns the number of the type (OFPAT_) and the argument; 0 for an action that has no
    /// argument, or one of its own form.
    pub fn parts(&self) -> (u16, u32) {
        match *self {
            Action::Output { .. } => (0, 0),
            Action::ModVlanVid(id) => (1, id.into()),
            Action::ModVlanPcp(level) => (2, level.into()),
            Action::CopyTtlOut => (11, 0),
            Action::CopyTtlIn => (12, 0),
            Action::SetMplsTtl(ttl) => (15, ttl.into()),
            Action::DecMplsTtl => (16, 0),
            Action::PushVlan(ethertype) => (17, ethertype.into()),
            Action::PopVlan => (18, 0),
            Action::PushMpls(ethertype) => (19, ethertype.into()),
            Action::PopMpls(ethertype) => (20, ethertype.into()),
            Action::SetQueue(queue) => (21, queue),
            Action::Group(id) => (22, id),
            Action::SetNwTtl(ttl) => (23, ttl.into()),
            Action::DecNwTtl => (24, 0),
            Action::SetField(..) => (25, 0),
            Action::PushPbb(ethertype) => (26, ethertype.into()),
            Action::PopPbb => (27, 0),
            Action::Extension(_) => (EXTENSION, 0),
        }
    }

    /// Returns whether generated code can leave the packet's registers and stack alone: all actions
    /// but those of Open vSwitch and those that set what is in no header.
    pub fn is_standard(&self) -> bool {
        match self {
            Action::Extension(_) => false,
            Action::SetField(field, _) => field.is_standard() && *field != Field::InPort,
            _ => true,
        }
    }

    /// Returns itself and all actions inside it.
    pub fn all(&self) -> Vec<&Action> {
        let inner = match self {
            Action::Extension(extension) => extension.inner(),
            _ => &[],
        };
        std::iter::once(self).chain(inner.iter().flat_map(Action::all)).collect()
    }

    /// Returns how much memory it takes, actions inside it included.
    pub fn bytes(&self) -> usize {
        let outside = match self {
            Action::Extension(extension) => size_of::<Extension>() + extension.bytes(),
            _ => 0,
        };
        size_of::<Action>() + outside
    }

    /// Returns the groups that it names.
    pub fn groups(&self) -> Vec<u32> {
        match self {
            Action::Group(id) => vec![*id],
            Action::Extension(extension) => extension.inner().iter().flat_map(Action::groups).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the meters that it applies.
    pub fn meters(&self) -> Vec<u32> {
        match self {
            Action::Extension(extension) => match **extension {
                Extension::Meter(id) => vec![id],
                _ => extension.inner().iter().flat_map(Action::meters).collect(),
            },
            _ => Vec::new(),
        }
    }

    /// Returns the ports, ordinary and reserved, that it may send copies to and that it names.
    pub fn ports(&self) -> Vec<u32> {
        match self {
            Action::Output { port, .. } => vec![*port],
            Action::Extension(extension) => extension.ports(),
            _ => Vec::new(),
        }
    }

    /// Returns the row of its type.
    pub fn info(&self) -> &'static ActionInfo {
        &ACTIONS[usize::from(self.row())]
    }

    fn row(&self) -> u8 {
        let (number, _) = self.parts();
        ROWS[usize::from(number)]
    }

    fn slot(&self) -> Slot {
        let bits = match self {
            Action::SetField(field, _) => Some((*field, field.ones())),
            Action::Extension(extension) => match &**extension {
                Extension::Set { field, mask, .. } => Some((*field, *mask)),
                Extension::Move { to, .. } => Some((to.field, to.mask())),
                // The last, and only where nothing else sends the packet.
                _ => return Slot { row: ACTIONS.len() as u8, bits: None },
            },
            _ => None,
        };
        Slot { row: self.row(), bits }
    }
}

impl Extension {
    /// Returns how much memory it takes beside itself.
    fn bytes(&self) -> usize {
        let own = match self {
            Extension::Learn(learn) => size_of_val(&learn.specs[..]),
            Extension::Bundle(bundle) => size_of_val(&bundle.members[..]),
            Extension::Note(bytes) => bytes.len(),
            Extension::Controller(controller) => controller.userdata.len(),
            _ => 0,
        };
        own + self.inner().iter().map(Action::bytes).sum::<usize>()
    }

    /// Returns all actions inside this one.
    pub fn inner(&self) -> &[Action] {
        match self {
            Extension::Clone(actions) => actions,
            Extension::Ct(ct) => &ct.exec,
            _ => &[],
        }
    }

    /// Returns the ports that it may send copies to and that it names.
    pub(crate) fn ports(&self) -> Vec<u32> {
        match self {
            Extension::Truncated { port, .. } | Extension::Enqueue { port, .. } => vec![*port],
            Extension::Bundle(bundle) => bundle.members.clone(),
            Extension::Clone(actions) => actions.iter().flat_map(Action::ports).collect(),
            _ => Vec::new(),
        }
    }
}

impl ActionSet {
    /// Returns the set that results from writing these actions, in order, to the empty set.
    pub fn of(actions: &[Action]) -> ActionSet {
        let mut set = ActionSet::default();
        set.write(actions);
        set
    }

    /// Adds actions; each replaces the one of its type.
    pub fn write(&mut self, actions: &[Action]) {
        self.actions.extend(actions.iter().map(|action| (action.slot(), action.clone())));
    }

    /// Removes all actions.
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    /// Returns all actions: written in this order they make the same set.
    pub fn all(&self) -> impl Iterator<Item = &Action> {
        self.actions.values()
    }

    /// Returns the port of its output, if it is executed: not beside a group.
    pub fn output(&self) -> Option<u32> {
        let has_group = self.actions.values().any(|action| matches!(action, Action::Group(_)));
        let port = self.actions.values().find_map(|action| match action {
            Action::Output { port, .. } => Some(*port),
            _ => None,
        });
        port.filter(|_| !has_group)
    }

    /// Returns the actions in the order of execution. With a group there is no output (§5.10), with
    /// either no resubmit (ovs-actions(7)).
    pub fn in_order(&self) -> impl Iterator<Item = &Action> {
        let has_group = self.actions.values().any(|action| matches!(action, Action::Group(_)));
        let sends = has_group || self.actions.values().any(|one| matches!(one, Action::Output { .. }));
        let is_kept = move |action: &&Action| match action {
            Action::Output { .. } => !has_group,
            Action::Extension(extension) => !(sends && matches!(**extension, Extension::Resubmit { .. })),
            _ => true,
        };
        self.actions.values().filter(is_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_makes_the_action_of_its_number_with_its_argument() {
        for ActionInfo { number, name, argument } in ACTIONS.iter().cloned() {
            let (made, wanted) = match argument {
                Argument::None(action) => (action, 0),
                Argument::Ttl(make) => (make(7), 7),
                Argument::EtherType(make) => (make(0x8847), 0x8847),
                Argument::Number { max, make } => (make(max), max),
                Argument::Own => continue,
            };
            assert_eq!(made.parts(), (number, wanted), "{name}");
            assert_eq!(made.info().name, name);
        }
    }

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
        let executed: Vec<_> = ActionSet::of(&written).in_order().cloned().collect();
        assert_eq!(executed, written.iter().rev().cloned().collect::<Vec<_>>());
    }

    #[test]
    fn later_writes_replace_earlier_ones_and_a_group_hides_the_output() {
        let mut set = ActionSet::of(&[Action::output(1), Action::SetField(Field::EthDst, 1)]);
        set.write(&[
            Action::output(2),
            Action::SetField(Field::EthDst, 2),
            Action::SetField(Field::EthSrc, 3),
        ]);
        let executed: Vec<_> = set.in_order().cloned().collect();
        let [dst, src] = [Action::SetField(Field::EthDst, 2), Action::SetField(Field::EthSrc, 3)];
        assert_eq!(executed, [dst, src, Action::output(2)]);
        set.write(&[Action::Group(5)]);
        assert_eq!(set.in_order().last(), Some(&Action::Group(5)));
        set.clear();
        assert_eq!(set.in_order().count(), 0);
    }
}
