//! Checks actions of Open vSwitch (ovs-actions(7)).

use super::{ActionsOf, CLONES_MAX, KnownFields, Targets, check_output, list_of};
use crate::Refusal;
use crate::action::Action;
use crate::extension::{Bits, Bundle, Extension, Learn, Multipath, Source, Spec, Target};
use crate::field::Field;
use crate::flow::{ClearActions, Instructions};

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
        Extension::CheckLen { to, .. } if to.width != 1 => Err(Refusal::ActionBadArgument(to.width.into())),
        Extension::CheckLen { to, .. } => known.check_written(*to),
        Extension::Resubmit { .. }
        | Extension::Note(_)
        | Extension::Sample { .. }
        | Extension::Exit
        | Extension::Controller { .. }
        | Extension::PopQueue => Ok(()),
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
