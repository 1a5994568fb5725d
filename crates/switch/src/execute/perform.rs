//! One action on one packet. The interpreter and the compiled data path both execute actions by
//! [`perform`]. They keep counters and ports in different places, which [`Effects`] hides.
//!
//! ```text
//!   action ─▶ perform ─┬─ changes the packet (edit.rs)
//!                      └─ Effects: send, flood, packet-in, group, drop
//! ```
//!
//! Generated code executes frequent actions itself (`jit/src/native/ops.rs`) and calls this for all
//! others.
//!
//! Read first: OpenFlow 1.3.5 §5.12 (actions) and §7.2.5 (reserved ports).

use super::effects::{Effects, Packet, PacketInRequest, output, set_field};
use crate::action::Action;
use crate::edit::{self, Ttl};
use crate::extension;
use crate::outcome::DropReason;
use crate::port;
use crate::reason::PacketInReason;
use std::ops::ControlFlow::{self, Break, Continue};

/// Executes one action. `Break` means that the packet ended here.
#[inline]
pub fn perform<E: Effects>(action: &Action, packet: &mut Packet, effects: &mut E) -> ControlFlow<()> {
    match action {
        Action::Extension(extension) => extension::perform(extension, packet, effects),
        Action::Group(id) => {
            effects.group(packet, *id);
            Continue(())
        }
        // Apart, because actions inside each other take stack.
        other => perform_alone(other, packet, effects),
    }
}

/// Executes an action that has no others in it.
#[inline(never)]
fn perform_alone<E: Effects>(action: &Action, packet: &mut Packet, effects: &mut E) -> ControlFlow<()> {
    let frame = &mut packet.frame;
    match *action {
        Action::Output { port, max_len } => output(packet, port, max_len, effects),
        Action::Group(_) | Action::Extension(_) => {}
        Action::SetQueue(queue) => packet.queue = queue,
        Action::SetField(field, value) => set_field(packet, field, value),
        Action::PushVlan(ethertype) => edit::push_vlan(frame, ethertype),
        Action::PopVlan => edit::pop_vlan(frame),
        Action::PushMpls(ethertype) => edit::push_mpls(frame, ethertype),
        Action::PopMpls(ethertype) => edit::pop_mpls(frame, ethertype),
        Action::PushPbb(ethertype) => edit::push_pbb(frame, ethertype),
        Action::PopPbb => edit::pop_pbb(frame),
        Action::CopyTtlOut => edit::copy_ttl_out(frame),
        Action::CopyTtlIn => edit::copy_ttl_in(frame),
        Action::ModVlanVid(id) => edit::set_vlan(frame, 0xf000, id & 0x0fff),
        Action::ModVlanPcp(level) => edit::set_vlan(frame, 0x1fff, u16::from(level) << 13),
        Action::SetMplsTtl(ttl) => edit::set_mpls_ttl(frame, ttl),
        Action::SetNwTtl(ttl) => edit::set_nw_ttl(frame, ttl),
        Action::DecMplsTtl => {
            let ttl = edit::dec_mpls_ttl(frame);
            return check_ttl(ttl, packet, effects);
        }
        Action::DecNwTtl => {
            let ttl = edit::dec_nw_ttl(frame);
            return check_ttl(ttl, packet, effects);
        }
    }
    Continue(())
}

fn check_ttl<E: Effects>(ttl: Ttl, packet: &Packet, effects: &mut E) -> ControlFlow<()> {
    match ttl {
        Ttl::Alive => Continue(()),
        Ttl::Invalid => {
            invalid_ttl(packet, effects);
            Break(())
        }
    }
}

/// Ends a packet with an invalid TTL: it is not forwarded, and controllers may receive it
/// (§5.12, OFPR_INVALID_TTL).
pub fn invalid_ttl<E: Effects>(packet: &Packet, effects: &mut E) {
    let request = PacketInRequest::new(Some(PacketInReason::InvalidTtl), port::NO_BUFFER);
    effects.packet_in(packet, request);
    effects.drop(DropReason::InvalidTtl);
}
