//! Checks actions of Open vSwitch (ovs-actions(7)).

use super::{ActionsOf, CLONES_MAX, KnownFields, Targets, check_output, list_of};
use crate::Refusal;
use crate::action::{Action, Controller};
use crate::extension::{Bits, Bundle, Ct, Extension, Learn, Multipath, Source, Spec, Target, Zone};
use crate::field::Field;
use crate::flow::{ClearActions, Instructions};
use crate::limits::USERDATA_MAX;
use fastpath_conntrack::{Alg, Commit, NatRequest, NatSpec};

/// Checks that clauses of conjunctions stand alone: a packet that matches one does nothing else.
pub(super) fn clauses(instructions: &Instructions) -> Result<(), Refusal> {
    let is_alone = |action: &Action| match action {
        Action::Extension(extension) => {
            matches!(**extension, Extension::Conjunction { .. } | Extension::Note(_))
        }
        _ => false,
    };
    let Instructions { meter, apply, clear, write, metadata, goto } = instructions;
    let is_plain = meter.is_none()
        && write.is_empty()
        && metadata.is_none()
        && goto.is_none()
        && *clear == ClearActions::Keep;
    match instructions.is_clause() && !(is_plain && apply.iter().all(is_alone)) {
        true => Err(Refusal::ClauseNotAlone),
        false => Ok(()),
    }
}

/// Checks actions of a set: of Open vSwitch's only those that have a place in it. Of others only
/// the
/// last would be executed.
pub(super) fn in_set(actions: &[Action]) -> Result<(), Refusal> {
    let has_place = |action: &Action| match action {
        Action::Extension(extension) => {
            matches!(**extension, Extension::Set { .. } | Extension::Move { .. } | Extension::Resubmit { .. })
        }
        _ => true,
    };
    if actions.iter().all(has_place) { Ok(()) } else { Err(Refusal::NotInSet) }
}

/// Checks one action.
pub(super) fn check(
    targets: &Targets<'_>,
    owner: ActionsOf<'_>,
    extension: &Extension,
    known: &KnownFields,
    clones: usize,
) -> Result<(), Refusal> {
    match extension {
        Extension::Set { field, value, mask, .. } => {
            if value & !mask != 0 || mask & !field.ones() != 0 || *mask == 0 {
                return Err(Refusal::ActionBadSetArgument(field.name()));
            }
            known.check_written(Bits::all(*field))
        }
        Extension::Move { from, to } => {
            if from.width != to.width {
                return Err(Refusal::ActionBadArgument(to.width.into()));
            }
            known.check_read(*from)?;
            known.check_written(*to)
        }
        Extension::Push(bits) | Extension::OutputTo { port: bits, .. } => known.check_read(*bits),
        Extension::Pop(bits) => known.check_written(*bits),
        Extension::Truncated { port, max_len } => match max_len {
            ..14 => Err(Refusal::ActionBadArgument(*max_len)),
            _ => check_output(owner, *port),
        },
        Extension::Enqueue { port, .. } => check_output(owner, *port),
        Extension::Resubmit { table: Some(table), .. } if *table >= targets.limits.tables => {
            Err(Refusal::RequestBadTable(*table))
        }
        Extension::Learn(learn) => check_learn(targets, learn, known),
        Extension::Multipath(multipath) => check_multipath(multipath, known),
        Extension::Bundle(bundle) => check_bundle(bundle, owner, known),
        Extension::Clone(_) if clones == CLONES_MAX => Err(Refusal::ActionTooMany(CLONES_MAX)),
        Extension::Clone(actions) => list_of(targets, owner, actions, &mut known.clone(), clones + 1),
        Extension::Conjunction { clause, clauses, .. } => {
            let is_valid = (2..=64).contains(clauses) && clause < clauses;
            match (is_valid, owner) {
                (true, ActionsOf::Flow(_) | ActionsOf::FlowOf10) => Ok(()),
                _ => Err(Refusal::ActionBadArgument((*clauses).into())),
            }
        }
        Extension::Meter(id) => check_meter(targets, *id),
        Extension::CheckLen { to, .. } if to.width != 1 => Err(Refusal::ActionBadArgument(to.width.into())),
        Extension::CheckLen { to, .. } => known.check_written(*to),
        Extension::Ct(ct) => check_ct(targets, ct, known),
        Extension::Controller(Controller { userdata, .. }) if userdata.len() > USERDATA_MAX => {
            Err(Refusal::UserdataTooLong(userdata.len()))
        }
        Extension::FinTimeout { .. } => known.check_present(Field::TcpSrc),
        Extension::Resubmit { is_original: true, .. } => known.check_present(Field::IpProto),
        Extension::Resubmit { .. }
        | Extension::DebugRecirc
        | Extension::DebugSlow
        | Extension::CtClear
        | Extension::Note(_)
        | Extension::Sample { .. }
        | Extension::Exit
        | Extension::Controller(_)
        | Extension::PopQueue => Ok(()),
    }
}

fn check_meter(targets: &Targets<'_>, id: u32) -> Result<(), Refusal> {
    if targets.meters.contains_key(&id) { Ok(()) } else { Err(Refusal::ActionBadMeter(id)) }
}

/// Checks `ct`: it needs IP, and `exec` only changes mark and label of the connection.
fn check_ct(targets: &Targets<'_>, ct: &Ct, known: &KnownFields) -> Result<(), Refusal> {
    known.check_present(Field::IpProto)?;
    if let Some(table) = ct.table.filter(|table| *table >= targets.limits.tables) {
        return Err(Refusal::RequestBadTable(table));
    }
    if let Zone::Field(bits) = ct.zone {
        known.check_read(bits)?;
        if bits.width != 16 {
            return Err(Refusal::ActionBadArgument(bits.width.into()));
        }
    }
    let needs_commit = !ct.exec.is_empty() || matches!(ct.nat, Some(NatRequest::New(_)));
    if needs_commit && ct.commit == Commit::No {
        return Err(Refusal::CtNeedsCommit);
    }
    if let Some(NatRequest::New(NatSpec { addresses: Some(_), is_v6, .. })) = ct.nat {
        known.check_present(if is_v6 { Field::Ipv6Src } else { Field::Ipv4Src })?;
    }
    match ct.alg {
        Some(Alg::Ftp) => known.check_present(Field::TcpSrc)?,
        Some(Alg::Tftp) => known.check_present(Field::UdpSrc)?,
        None => {}
    }
    if targets.limits.actions < ct.exec.len() {
        return Err(Refusal::ActionTooMany(targets.limits.actions));
    }
    ct.exec.iter().try_for_each(|action| check_exec(action, known))
}

/// Checks an action of `exec`.
fn check_exec(action: &Action, known: &KnownFields) -> Result<(), Refusal> {
    let (field, value, mask) = match action {
        Action::SetField(field, value) => (*field, *value, field.ones()),
        Action::Extension(extension) => match &**extension {
            Extension::Set { field, value, mask, .. } => (*field, *value, *mask),
            Extension::Move { from, to } => {
                if from.width != to.width || !to.is_within_field() {
                    return Err(Refusal::ActionBadArgument(to.width.into()));
                }
                known.check_read(*from)?;
                (to.field, 0, to.mask())
            }
            _ => return Err(Refusal::NotInExec),
        },
        _ => return Err(Refusal::NotInExec),
    };
    if !matches!(field, Field::CtMark | Field::CtLabel) {
        return Err(Refusal::NotInExec);
    }
    match value & !mask != 0 || mask & !field.ones() != 0 || mask == 0 {
        true => Err(Refusal::ActionBadSetArgument(field.name())),
        false => Ok(()),
    }
}

fn check_multipath(multipath: &Multipath, known: &KnownFields) -> Result<(), Refusal> {
    let room = 1u64 << multipath.to.width.min(63);
    if multipath.links == 0 || multipath.links > 65_536 || u64::from(multipath.links) > room {
        return Err(Refusal::ActionBadArgument(multipath.links));
    }
    known.check_written(multipath.to)
}

fn check_bundle(bundle: &Bundle, owner: ActionsOf<'_>, known: &KnownFields) -> Result<(), Refusal> {
    bundle.members.iter().try_for_each(|port| check_output(owner, *port))?;
    bundle.to.map_or(Ok(()), |to| match to.width {
        16.. => known.check_written(to),
        width => Err(Refusal::ActionBadArgument(width.into())),
    })
}

/// Checks that bits can be set, of some packets.
fn check_writable(bits: Bits) -> Result<(), Refusal> {
    let field = bits.field;
    if !(field.is_settable() || matches!(field, Field::VlanTci | Field::InPort)) {
        return Err(Refusal::ActionBadSetType(field.name()));
    }
    if bits.is_within_field() { Ok(()) } else { Err(Refusal::ActionBadArgument(bits.width.into())) }
}

fn check_learn(targets: &Targets<'_>, learn: &Learn, known: &KnownFields) -> Result<(), Refusal> {
    if learn.table >= targets.limits.tables {
        return Err(Refusal::RequestBadTable(learn.table));
    }
    for Spec { source, target } in &learn.specs {
        if let Source::Packet(bits) = source {
            known.check_read(*bits)?;
        }
        match target {
            Target::Match(bits) if !bits.is_within_field() => {
                return Err(Refusal::ActionBadArgument(bits.width.into()));
            }
            // The packets of the new flow have what its match says.
            Target::Load(bits) => check_writable(*bits)?,
            Target::Match(_) | Target::Output => {}
        }
    }
    if let Some(result) = learn.result {
        known.check_written(result)?;
    }
    learn.check_match()
}

impl KnownFields {
    /// Checks that bits can be read from every packet.
    fn check_read(&self, bits: Bits) -> Result<(), Refusal> {
        if !bits.is_within_field() {
            return Err(Refusal::ActionBadArgument(bits.width.into()));
        }
        self.check_present(bits.field)
    }

    /// Checks that bits can be set in every packet.
    fn check_written(&self, bits: Bits) -> Result<(), Refusal> {
        check_writable(bits)?;
        // As Open vSwitch has it, bits of a tag are set where there is one.
        if bits.field == Field::VlanVid { Ok(()) } else { self.check_read(bits) }
    }
}
