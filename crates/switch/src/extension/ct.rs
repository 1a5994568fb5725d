//! `ct`: tracks the connection of a packet (ovs-actions(7)).
//!
//! ```text
//!   packet ─▶ view ─▶ table of connections ─▶ state, mark, label, original tuple
//!              │                                  │
//!              └── NAT edits it                   └─▶ a copy with these goes on in `table`
//! ```
//!
//! With `alg` a helper reads the payload: connections that it agrees on are `+rel`.
//!
//! The packet itself goes on with the next action, without what tracking said of it. What NAT
//! edited stays edited.

use super::payload::edit_payload;
use super::read::read;
use super::track::{translate, view};
use crate::action::{Action, Ct, Extension, Zone};
use crate::execute::effects::{Effects, Ending, Packet};
use crate::field::Field;
use crate::key::ConnectionFields;
use crate::outcome::DropReason;
use fastpath_conntrack::{CtState, NotCommitted, PacketKind, TrackRequest};
use std::ops::ControlFlow::{self, Break, Continue};

/// Executes the action. `Break` means that the packet ended here.
pub(super) fn perform<E: Effects>(ct: &Ct, packet: &mut Packet, effects: &mut E) -> ControlFlow<()> {
    let found = track(ct, packet, effects)?;
    let mut step = Continue(());
    if let Some(table) = ct.table {
        let mut copy = packet.clone();
        copy.context.connection = found;
        step = effects.recirculate(&mut copy, table);
        // The bound is that of the whole packet.
        if copy.ending == Ending::Bound {
            packet.ending = Ending::Bound;
        }
    }
    packet.context.connection = ConnectionFields::default();
    step
}

/// Tracks a packet, and translates it. `Break`: its connection could not be committed.
#[inline(never)]
fn track<E: Effects>(ct: &Ct, packet: &mut Packet, effects: &mut E) -> ControlFlow<(), ConnectionFields> {
    let zone = match ct.zone {
        Zone::Number(zone) => zone,
        Zone::Field(bits) => read(packet, bits).unwrap_or(0) as u16,
    };
    let (mark, label) = exec(&ct.exec, packet);
    let before = if packet.translated.0 == zone { packet.translated.1 } else { CtState::default() };
    let nat = ct.nat;
    let request = TrackRequest { zone, commit: ct.commit, nat, alg: ct.alg, mark, label, before };
    let view = view(&packet.frame);
    let is_error = view.is_some_and(|view| view.kind == PacketKind::IcmpError);
    let tracked = effects.track(view.as_ref(), &request);
    match tracked.not_committed {
        Some(NotCommitted::Full) => effects.drop(DropReason::ConnectionsFull),
        Some(NotCommitted::Exhausted) => effects.drop(DropReason::NoFreeTuple),
        None => {}
    }
    if tracked.not_committed.is_some() {
        return Break(());
    }
    if let Some(translation) = tracked.translation {
        translate(&mut packet.frame, &translation, is_error);
    }
    if let Some(edit) = &tracked.payload {
        edit_payload(&mut packet.frame, edit);
    }
    packet.translated = (zone, tracked.state.translation());
    let (state, mark, label, original) = (tracked.state, tracked.mark, tracked.label, tracked.original);
    Continue(ConnectionFields { state, zone, mark, label, original })
}

/// The bits of mark and label that `exec` sets: values and masks.
type Sets = (Option<(u32, u32)>, Option<(u128, u128)>);

fn exec(actions: &[Action], packet: &Packet) -> Sets {
    let (mut mark, mut label) = (None, None);
    let set = |bits: &mut Option<(u128, u128)>, value: u128, mask: u128| {
        let (old, others) = bits.unwrap_or_default();
        *bits = Some((old & !mask | value & mask, others | mask));
    };
    for action in actions {
        let (field, value, mask) = match action {
            Action::SetField(field, value) => (*field, *value, field.ones()),
            Action::Extension(extension) => match &**extension {
                Extension::Set { field, value, mask, .. } => (*field, *value, *mask),
                Extension::Move { from, to } => match read(packet, *from) {
                    Some(value) => (to.field, value << to.from, to.mask()),
                    None => continue,
                },
                _ => continue,
            },
            _ => continue,
        };
        match field {
            Field::CtMark => set(&mut mark, value, mask),
            Field::CtLabel => set(&mut label, value, mask),
            _ => {}
        }
    }
    (mark.map(|(value, mask)| (value as u32, mask as u32)), label)
}

#[cfg(test)]
mod tests;
