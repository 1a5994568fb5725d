//! Checks actions and instructions before a switch accepts them (OpenFlow 1.3.5 §6.4, §7.2.5).

mod extension;

use crate::Refusal;
use crate::action::Action;
use crate::field::{ETHERTYPE_PBB, Field, Needs, VLAN_PRESENT};
use crate::flow::Instructions;
use crate::group::Group;
use crate::limits::Limits;
use crate::matching::{FieldMatch, Match};
use crate::meter::Meter;
use crate::port;
use fastpath_wire::ethertype;
use std::collections::BTreeMap;

/// The most clones inside each other.
const CLONES_MAX: usize = 16;

/// The header fields that every packet of an action list is known to have: from the match of the
/// flow, then from the actions before.
#[derive(Clone, Copy, Debug)]
struct KnownFields {
    source: KnownFrom,
    eth_type: Option<u16>,
    ip_proto: Option<u8>,
    icmpv6_type: Option<u8>,
    is_tagged: bool,
}

/// The source of the knowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KnownFrom {
    /// The match of a flow. An action that needs a field which the match does not require is
    /// inconsistent.
    Match,
    /// Nothing (groups, packet-outs): the headers are not known in advance, so every action is
    /// consistent.
    Nothing,
}

/// What a switch has that instructions and actions may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets<'s> {
    pub(crate) limits: &'s Limits,
    pub(crate) groups: &'s BTreeMap<u32, Group>,
    pub(crate) meters: &'s BTreeMap<u32, Meter>,
}

/// The owner of an action list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ActionsOf<'a> {
    /// A flow with this match.
    Flow(&'a Match),
    /// A flow of OpenFlow 1.0. An action on a header that a packet does not have does nothing, so
    /// every action is consistent.
    FlowOf10,
    /// A bucket of a group.
    Bucket,
    /// A packet-out.
    PacketOut,
}

/// Checks the instructions of a flow for `table_id`.
pub(crate) fn instructions(
    targets: &Targets<'_>,
    table_id: u8,
    owner: ActionsOf<'_>,
    instructions: &Instructions,
) -> Result<(), Refusal> {
    actions(targets, owner, &instructions.apply)?;
    actions(targets, owner, &instructions.write)?;
    extension::in_set(&instructions.write)?;
    extension::clauses(instructions)?;
    if let Some(table) = instructions.goto
        && (table <= table_id || table >= targets.limits.tables)
    {
        return Err(Refusal::InstructionBadTable(table));
    }
    match instructions.meter {
        Some(id) if !targets.meters.contains_key(&id) => Err(Refusal::MeterInvalid(id)),
        _ => Ok(()),
    }
}

/// Checks a list of actions.
pub(crate) fn actions(targets: &Targets<'_>, owner: ActionsOf<'_>, list: &[Action]) -> Result<(), Refusal> {
    let limit = targets.limits.actions;
    if list.len() > limit {
        return Err(Refusal::ActionTooMany(limit));
    }
    if matches!(owner, ActionsOf::Bucket) {
        extension::in_set(list)?;
    }
    list_of(targets, owner, list, &mut KnownFields::new(owner), 0)
}

/// Checks a list of actions in `clones` clones, given what is known of its packets.
fn list_of(
    targets: &Targets<'_>,
    owner: ActionsOf<'_>,
    list: &[Action],
    known: &mut KnownFields,
    clones: usize,
) -> Result<(), Refusal> {
    for action in list {
        match *action {
            Action::Output { port, .. } => check_output(owner, port)?,
            Action::Group(id) if !targets.groups.contains_key(&id) => {
                return Err(Refusal::ActionBadOutGroup(id));
            }
            Action::SetField(field, value) => known.check_set(field, value)?,
            Action::Extension(ref extension) => {
                extension::check(targets, owner, extension, known, clones)?;
            }
            Action::PushVlan(kind) if !matches!(kind, ethertype::VLAN | ethertype::SERVICE_VLAN) => {
                return Err(Refusal::ActionBadTag(kind));
            }
            Action::PushMpls(kind) if !matches!(kind, ethertype::MPLS | ethertype::MPLS_UPSTREAM) => {
                return Err(Refusal::ActionBadTag(kind));
            }
            Action::ModVlanVid(id) if id > 0xfff => return Err(Refusal::ActionBadArgument(id.into())),
            Action::ModVlanPcp(level) if level > 7 => return Err(Refusal::ActionBadArgument(level.into())),
            Action::PushPbb(kind) if kind != ETHERTYPE_PBB => return Err(Refusal::ActionBadTag(kind)),
            _ => {}
        }
        known.follow(action);
    }
    Ok(())
}

fn check_output(owner: ActionsOf<'_>, to: u32) -> Result<(), Refusal> {
    let is_good = match to {
        port::TABLE => matches!(owner, ActionsOf::PacketOut),
        port::IN_PORT | port::ALL | port::FLOOD | port::NORMAL | port::CONTROLLER => true,
        // A port that does not exist may be added later. §7.2.5 allows either answer; frames to it
        // are dropped until then.
        _ => to <= port::MAX || to == port::LOCAL,
    };
    if is_good { Ok(()) } else { Err(Refusal::ActionBadOutPort(to)) }
}

impl KnownFields {
    fn new(owner: ActionsOf<'_>) -> KnownFields {
        let ActionsOf::Flow(matching) = owner else {
            return KnownFields {
                source: KnownFrom::Nothing,
                eth_type: None,
                ip_proto: None,
                icmpv6_type: None,
                is_tagged: true,
            };
        };
        let exact = |field| matching.field(field).filter(FieldMatch::is_exact).map(|f| f.value);
        KnownFields {
            source: KnownFrom::Match,
            eth_type: exact(Field::EthType).map(|value| value as u16),
            ip_proto: exact(Field::IpProto).map(|value| value as u8),
            icmpv6_type: exact(Field::Icmpv6Type).map(|value| value as u8),
            is_tagged: matching
                .field(Field::VlanVid)
                .is_some_and(|f| f.value & u128::from(VLAN_PRESENT) != 0),
        }
    }

    fn check_set(&self, field: Field, value: u128) -> Result<(), Refusal> {
        if !field.is_settable() {
            return Err(Refusal::ActionBadSetType(field.name()));
        }
        // A VLAN id is set with its present bit (§7.2.5.6).
        let is_untagged = field == Field::VlanVid && value & u128::from(VLAN_PRESENT) == 0;
        if value & !field.ones() != 0 || is_untagged {
            return Err(Refusal::ActionBadSetArgument(field.name()));
        }
        self.check_present(field)
    }

    /// Checks that packets have a field.
    fn check_present(&self, field: Field) -> Result<(), Refusal> {
        let is_type = |types: &[u16]| self.eth_type.is_some_and(|kind| types.contains(&kind));
        let is_known = match field.info().needs {
            Needs::Nothing => field != Field::VlanVid || self.is_tagged,
            Needs::VlanTag => self.is_tagged,
            Needs::EthType(types) => is_type(types),
            Needs::IpProto(types, protocol) => is_type(types) && self.ip_proto == Some(protocol),
            Needs::Icmpv6(kinds) => {
                is_type(&[0x86dd]) && self.icmpv6_type.is_some_and(|kind| kinds.contains(&kind))
            }
        };
        if is_known || self.source == KnownFrom::Nothing {
            Ok(())
        } else {
            Err(Refusal::ActionMatchInconsistent(field.name()))
        }
    }

    /// Updates the knowledge for the actions after this one.
    fn follow(&mut self, action: &Action) {
        match *action {
            Action::PushVlan(_) | Action::ModVlanVid(_) | Action::ModVlanPcp(_) => self.is_tagged = true,
            Action::PopVlan => self.is_tagged = false,
            Action::PushMpls(kind) | Action::PushPbb(kind) => {
                *self = KnownFields {
                    eth_type: Some(kind),
                    ip_proto: None,
                    icmpv6_type: None,
                    is_tagged: false,
                    ..*self
                };
            }
            Action::PopMpls(kind) => {
                *self = KnownFields { eth_type: Some(kind), ip_proto: None, icmpv6_type: None, ..*self };
            }
            Action::PopPbb => {
                *self = KnownFields {
                    eth_type: None,
                    ip_proto: None,
                    icmpv6_type: None,
                    is_tagged: false,
                    ..*self
                };
            }
            Action::SetField(Field::EthType, value) => self.eth_type = Some(value as u16),
            Action::SetField(Field::IpProto, value) => self.ip_proto = Some(value as u8),
            Action::SetField(Field::Icmpv6Type, value) => self.icmpv6_type = Some(value as u8),
            _ => {}
        }
    }
}
