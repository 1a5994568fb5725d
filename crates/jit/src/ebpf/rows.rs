//! Rules as rows of operations: what a program does with packets that match, as data.
//!
//! A row is a head and operations. An operation has a condition (a field that the packet must
//! have), a place in the action set if it is written there, its effect on the key, and its effect
//! on the packet. What cannot be said so makes a rule of user space, with the reason.

use super::layout::{NOTHING, OP, OPS_MAX, ROW_HEAD, ROW_IN_USER, ROW_LAST, kind, port as bits};
use fastpath_switch::flow::ClearActions;
use fastpath_switch::group::{Group, GroupKind};
use fastpath_switch::outcome::DropReason;
use fastpath_switch::{Action, ActionSet, Field, Instructions, Switch, port};
use std::collections::BTreeMap;

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Op {
    pub(super) kind: u8,
    /// The field that the packet must have, by the bit of its presence.
    pub(super) condition: u8,
    /// The place in the action set, of what is written there.
    pub(super) slot: u8,
    /// The word of the key that changes: it keeps `keep` and gets `put`.
    pub(super) word: u8,
    pub(super) argument: u32,
    pub(super) value: u64,
    pub(super) keep: u64,
    pub(super) put: u64,
}

/// What rows refer to: ports and counters by their place.
#[derive(Debug)]
pub(super) struct Places<'s> {
    pub(super) switch: &'s Switch,
    /// By the number of a port: its place.
    pub(super) ports: &'s BTreeMap<u32, u32>,
    /// By the number of a group: the place of its counter; those of its buckets follow.
    pub(super) groups: &'s BTreeMap<u32, u32>,
    /// Whether some rule writes to action sets.
    pub(super) has_sets: bool,
}

/// Whether something follows that sees the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Behind {
    Nothing,
    Something,
}

/// Why a rule is in user space.
pub(super) type Reason = String;

/// The fields that an action set can set, in its order.
const SETTABLE: [Field; 13] = [
    Field::EthDst,
    Field::EthSrc,
    Field::VlanVid,
    Field::VlanPcp,
    Field::IpDscp,
    Field::IpEcn,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::TunnelId,
];

impl Op {
    const fn new(kind: u8) -> Op {
        let (condition, slot, word) = (NOTHING, NOTHING, NOTHING);
        Op { kind, condition, slot, word, argument: 0, value: 0, keep: 0, put: 0 }
    }

    const fn with(kind: u8, argument: u32, value: u64) -> Op {
        Op { argument, value, ..Op::new(kind) }
    }

    fn count(place: u32) -> Op {
        Op::with(kind::COUNT, place, 0)
    }

    fn drop(reason: DropReason) -> Op {
        Op::with(kind::DROP, reason_number(reason), 0)
    }

    /// Adds the effect on the key of setting a field, and that the packet must have the field.
    fn setting(self, field: Field, value: u128) -> Op {
        let (info, ones) = (field.info(), field.ones() as u64);
        let (keep, put) = (!(ones << info.shift), (value as u64 & ones) << info.shift);
        Op { word: info.word, keep, put, ..self }
    }

    fn if_has(self, field: Field) -> Op {
        Op { condition: field as u8, ..self }
    }

    fn is_outcome(&self) -> bool {
        matches!(self.kind, kind::OUT | kind::OUT_IN | kind::DROP)
    }

    /// Returns it as the program reads it.
    fn bytes(&self) -> [u8; OP as usize] {
        let mut bytes = [0; OP as usize];
        bytes[..4].copy_from_slice(&[self.kind, self.condition, self.slot, self.word]);
        bytes[4..8].copy_from_slice(&self.argument.to_ne_bytes());
        for (at, word) in [(8, self.value), (16, self.keep), (24, self.put)] {
            bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// Returns the place of a reason among all of them.
pub(super) fn reason_number(reason: DropReason) -> u32 {
    DropReason::ALL.iter().position(|other| *other == reason).unwrap_or(0) as u32
}

/// Returns the operations of a rule, or why user space executes it.
pub(super) fn operations(instructions: &Instructions, places: &Places<'_>) -> Result<Vec<Op>, Reason> {
    if instructions.meter.is_some() {
        return Err("a meter".to_owned());
    }
    let mut ops = Vec::new();
    let ends = instructions.goto.is_none() && !places.has_sets;
    for (place, action) in (1..).zip(&instructions.apply) {
        let is_last = ends && place == instructions.apply.len();
        apply(action, places, if is_last { Behind::Nothing } else { Behind::Something }, &mut ops)?;
    }
    if instructions.clear == ClearActions::Clear {
        ops.push(Op::new(kind::CLEAR));
    }
    for action in &instructions.write {
        ops.push(written(action, places)?);
    }
    if let Some(write) = instructions.metadata {
        let (keep, put) = (!write.mask, write.value & write.mask);
        ops.push(Op { word: Field::Metadata.info().word, keep, put, ..Op::new(kind::KEY) });
    }
    if ops.len() > OPS_MAX as usize {
        return Err(format!("more than {OPS_MAX} operations"));
    }
    Ok(ops)
}

/// Adds the operations of an action.
fn apply(action: &Action, places: &Places<'_>, behind: Behind, ops: &mut Vec<Op>) -> Result<(), Reason> {
    match *action {
        Action::Output { port, .. } => output(port, places, ops)?,
        Action::Group(id) => group(id, places, behind, ops)?,
        _ => ops.push(edit(action)?),
    }
    Ok(())
}

/// Returns the operation of an action of the set.
fn written(action: &Action, places: &Places<'_>) -> Result<Op, Reason> {
    let (mut ops, last) = (Vec::new(), 3 + SETTABLE.len() as u8);
    apply(action, places, Behind::Something, &mut ops)?;
    // The order of OpenFlow 1.3.5 §5.10.
    let slot = match *action {
        Action::PopVlan => 0,
        Action::PushVlan(_) => 1,
        Action::DecNwTtl => 2,
        Action::SetField(field, _) => match SETTABLE.iter().position(|other| *other == field) {
            Some(place) => 3 + place as u8,
            None => return Err(format!("set_field of {}", field.name())),
        },
        Action::SetNwTtl(_) => last,
        Action::Output { .. } => last + 1,
        _ => return Err(format!("{} in the action set", action.info().name)),
    };
    match ops[..] {
        [op] => Ok(Op { slot, ..op }),
        _ => Err("a flood in the action set".to_owned()),
    }
}

/// Adds what sends a copy out of a port, ordinary or reserved.
fn output(to: u32, places: &Places<'_>, ops: &mut Vec<Op>) -> Result<(), Reason> {
    match to {
        port::CONTROLLER => return Err("output to the controllers".to_owned()),
        port::NORMAL => return Err("output to NORMAL".to_owned()),
        port::TABLE => return Err("output to TABLE".to_owned()),
        port::IN_PORT => ops.push(Op::new(kind::OUT_IN)),
        port::ALL | port::FLOOD => {
            let ports =
                places.switch.ports().filter(|(number, port)| *number <= port::MAX && port.may_send());
            let ports: Vec<u32> = ports.map(|(number, _)| number).collect();
            match ports[..] {
                [] => ops.push(Op::drop(DropReason::NoOtherPort)),
                // With one port a flood is an output to it.
                [one] => ops.push(send(one, places, 0)),
                _ => ops.extend(ports.iter().map(|number| send(*number, places, bits::FLOOD))),
            }
        }
        number => ops.push(send(number, places, 0)),
    }
    Ok(())
}

fn send(number: u32, places: &Places<'_>, more: u32) -> Op {
    let flags = flags(places.switch, number) | more;
    let place = places.ports.get(&number).copied().unwrap_or(0);
    Op::with(kind::OUT, place, u64::from(flags) << 32 | u64::from(number))
}

/// Returns the bits of a port.
pub(super) fn flags(switch: &Switch, number: u32) -> u32 {
    let Some(port) = switch.port(number) else { return 0 };
    let when = |is_so: bool, bit: u32| if is_so { bit } else { 0 };
    bits::EXISTS | when(port.may_send(), bits::SENDS) | when(port.may_receive(), bits::RECEIVES)
}

/// Adds what a group does. Only the last copy may be changed, and only if nothing comes behind it.
fn group(id: u32, places: &Places<'_>, behind: Behind, ops: &mut Vec<Op>) -> Result<(), Reason> {
    let (Some(group), Some(place)) = (places.switch.group(id), places.groups.get(&id)) else {
        ops.push(Op::drop(DropReason::NoBucket));
        return Ok(());
    };
    ops.push(Op::count(*place));
    let is_live = |index: &usize| places.switch.is_live(&group.buckets[*index]);
    let all = 0..group.buckets.len();
    let chosen: Vec<usize> = match group.kind {
        GroupKind::All | GroupKind::Indirect => all.collect(),
        GroupKind::FastFailover => all.into_iter().find(is_live).into_iter().collect(),
        GroupKind::Select => return share(group, *place, places, behind, ops),
    };
    if chosen.is_empty() {
        ops.push(Op::drop(DropReason::NoBucket));
    }
    for index in &chosen {
        let is_last = Some(index) == chosen.last();
        let behind = if is_last { behind } else { Behind::Something };
        ops.extend(bucket(group, *index, *place, places, behind)?);
    }
    Ok(())
}

/// Adds a group of type select: the packet's point among the weights decides.
fn share(
    group: &Group,
    place: u32,
    places: &Places<'_>,
    behind: Behind,
    ops: &mut Vec<Op>,
) -> Result<(), Reason> {
    let live = (0..group.buckets.len()).filter(|index| places.switch.is_live(&group.buckets[*index]));
    let weights: Vec<(usize, u64)> = live
        .map(|index| (index, group.buckets[index].weight.into()))
        .filter(|(_, weight)| *weight > 0)
        .collect();
    let total: u64 = weights.iter().map(|(_, weight)| weight).sum();
    if total == 0 {
        ops.push(Op::drop(DropReason::NoBucket));
        return Ok(());
    }
    ops.push(Op::with(kind::SHARE, total as u32, 0));
    let mut from = 0;
    for (index, weight) in weights {
        let some = bucket(group, index, place, places, behind)?;
        let keep_out = Op { keep: from, put: from + weight, ..Op::with(kind::SKIP, some.len() as u32, 0) };
        ops.push(keep_out);
        ops.extend(some);
        from += weight;
    }
    Ok(())
}

/// Returns what a bucket does with its copy.
fn bucket(
    group: &Group,
    index: usize,
    place: u32,
    places: &Places<'_>,
    behind: Behind,
) -> Result<Vec<Op>, Reason> {
    let mut ops = vec![Op::count(place + 1 + index as u32)];
    for action in ActionSet::of(&group.buckets[index].actions).in_order() {
        match (action, behind) {
            (Action::Output { port, .. }, _) => output(*port, places, &mut ops)?,
            (Action::Group(_), _) => return Err("a group of groups".to_owned()),
            (action, Behind::Nothing) => ops.push(edit(action)?),
            (other, Behind::Something) => {
                return Err(format!("{} in a bucket, and more behind it", other.info().name));
            }
        }
    }
    if !ops.iter().any(Op::is_outcome) {
        ops.push(Op::drop(DropReason::NoOutput));
    }
    Ok(ops)
}

/// Returns the operation of an action that changes the packet.
fn edit(action: &Action) -> Result<Op, Reason> {
    let op = match *action {
        Action::PushVlan(ethertype) => Op::with(kind::PUSH, ethertype.to_be().into(), 0),
        Action::PopVlan => Op::new(kind::POP),
        Action::DecNwTtl => Op::new(kind::DEC_TTL).if_has(Field::IpProto),
        Action::SetNwTtl(ttl) => Op::with(kind::SET_TTL, ttl.into(), 0).if_has(Field::IpProto),
        Action::SetField(field, value) => set_field(field, value)?,
        Action::Extension(_) => return Err("an action of Open vSwitch".to_owned()),
        _ => return Err(action.info().name.to_owned()),
    };
    Ok(op)
}

fn set_field(field: Field, value: u128) -> Result<Op, Reason> {
    let low = value as u64;
    let op = match field {
        Field::EthDst | Field::EthSrc => {
            let at = if field == Field::EthDst { 0 } else { 6 };
            Op::with(kind::ETH, at, (low << 16).to_be())
        }
        // The bits that are kept, then the new ones.
        Field::VlanVid => Op::with(kind::VLAN, 0xf000, low & 0xfff).if_has(Field::VlanPcp),
        Field::VlanPcp => Op::with(kind::VLAN, 0x1fff, (low & 7) << 13).if_has(Field::VlanPcp),
        Field::IpDscp => Op::with(kind::TOS, 0x03, (low & 0x3f) << 2).if_has(Field::IpProto),
        Field::IpEcn => Op::with(kind::TOS, 0xfc, low & 3).if_has(Field::IpProto),
        Field::Ipv4Src => Op::with(kind::IPV4, 12, (value as u32).to_be().into()).if_has(field),
        Field::Ipv4Dst => Op::with(kind::IPV4, 16, (value as u32).to_be().into()).if_has(field),
        Field::TcpSrc | Field::UdpSrc => Op::with(kind::PORT, 0, (value as u16).to_be().into()).if_has(field),
        Field::TcpDst | Field::UdpDst => Op::with(kind::PORT, 2, (value as u16).to_be().into()).if_has(field),
        Field::TunnelId => Op::new(kind::KEY),
        other => return Err(format!("set_field of {}", other.name())),
    };
    // The bit that says that there is a tag stays.
    let op = op.setting(field, value);
    Ok(if field == Field::VlanVid { Op { keep: !0xfff, put: low & 0xfff, ..op } } else { op })
}

/// Returns a row as the program reads it, of `stride` bytes.
pub(super) fn row(counter: u32, ops: Result<&[Op], &Reason>, goto: Option<u8>, stride: usize) -> Vec<u8> {
    let mut row = Vec::with_capacity(stride);
    let (flags, ops) = match ops {
        Ok(ops) => (0, ops),
        Err(_) => (ROW_IN_USER, &[][..]),
    };
    row.extend(counter.to_ne_bytes());
    row.extend([flags, ops.len() as u8]);
    row.extend(goto.map_or(ROW_LAST, u16::from).to_ne_bytes());
    row.resize(ROW_HEAD as usize, 0);
    ops.iter().for_each(|op| row.extend(op.bytes()));
    row.resize(stride, 0);
    row
}
