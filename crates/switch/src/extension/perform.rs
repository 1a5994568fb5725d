//! What the actions of Open vSwitch do with a packet. The interpreter and compiled tables both call
//! this.

use super::bits::Bits;
use super::spread::Bundle;
use crate::action::Extension;
use crate::execute::effects::{Effects, Ending, Packet, output, set_field};
use crate::field::Field;
use crate::key::Key;
use crate::port;
use fastpath_wire::Headers;
use std::ops::ControlFlow::{self, Break, Continue};

/// The most values on the stack of a packet.
const STACK_MAX: usize = 1024;

/// Executes one action. `Break` means that the packet ended here.
pub(crate) fn perform<E: Effects>(
    extension: &Extension,
    packet: &mut Packet,
    effects: &mut E,
) -> ControlFlow<()> {
    match extension {
        Extension::Resubmit { in_port, table } => effects.resubmit(packet, *in_port, *table),
        Extension::Clone(actions) => {
            effects.clone_of(packet, actions);
            Continue(())
        }
        // Apart, because actions inside each other take stack.
        other => perform_alone(other, packet, effects),
    }
}

/// Executes an action that has no others in it.
#[inline(never)]
fn perform_alone<E: Effects>(extension: &Extension, packet: &mut Packet, effects: &mut E) -> ControlFlow<()> {
    match extension {
        Extension::Set { field, value, mask, .. } => set(packet, *field, *value, *mask),
        Extension::Move { from, to } => {
            if let Some(value) = read(packet, *from) {
                put(packet, *to, value);
            }
        }
        Extension::Push(bits) => push(packet, *bits),
        Extension::Pop(bits) => pop(packet, *bits),
        Extension::OutputTo { port, max_len } => {
            if let Some(number) = read(packet, *port) {
                output(packet, port::of_16_bits(number as u32), *max_len, effects);
            }
        }
        Extension::Truncated { port, max_len } => {
            let mut short = packet.clone();
            short.frame.truncate(*max_len as usize);
            output(&short, *port, port::NO_BUFFER, effects);
        }
        Extension::Learn(learn) => {
            if let Some(flow) = learn.flow(&key_of(packet)) {
                effects.learn(flow);
            }
        }
        Extension::Multipath(multipath) => {
            let link = multipath.link(&key_of(packet));
            put(packet, multipath.to, link.into());
        }
        Extension::Bundle(bundle) => forward_by(bundle, packet, effects),
        Extension::Note(_)
        | Extension::Sample { .. }
        | Extension::Conjunction { .. }
        | Extension::Resubmit { .. }
        | Extension::Clone(_) => {}
        Extension::Exit => {
            packet.ending = Ending::Exit;
            return Break(());
        }
        Extension::Controller { max_len, reason } => effects.packet_in(packet, Some(*reason), *max_len),
        Extension::Enqueue { port, queue } => {
            let before = std::mem::replace(&mut packet.queue, *queue);
            output(packet, *port, port::NO_BUFFER, effects);
            packet.queue = before;
        }
        Extension::PopQueue => packet.queue = 0,
        Extension::CheckLen { longer_than, to } => {
            let is_longer = packet.frame.len() > usize::from(*longer_than);
            put(packet, *to, is_longer.into());
        }
    }
    Continue(())
}

fn push(packet: &mut Packet, bits: Bits) {
    if packet.stack.len() < STACK_MAX {
        let value = read(packet, bits).unwrap_or(0);
        packet.stack.push(value);
    }
}

fn pop(packet: &mut Packet, bits: Bits) {
    if let Some(value) = packet.stack.pop() {
        put(packet, bits, value);
    }
}

fn forward_by<E: Effects>(bundle: &Bundle, packet: &mut Packet, effects: &mut E) {
    let port = bundle.port(&key_of(packet), |port| effects.may_send(port));
    match (bundle.to, port) {
        (Some(to), port) => put(packet, to, port.unwrap_or(port::ANY).into()),
        (None, Some(port)) => output(packet, port, port::NO_BUFFER, effects),
        (None, None) => {}
    }
}

fn key_of(packet: &Packet) -> Key {
    Key::extract(&packet.frame, &Headers::parse(&packet.frame), packet.context)
}

/// Returns the value of bits of a packet; `None` if it does not have the field.
fn read(packet: &Packet, bits: Bits) -> Option<u128> {
    bits.of(&key_of(packet))
}

/// Sets bits of a packet to a value.
fn put(packet: &mut Packet, to: Bits, value: u128) {
    set(packet, to.field, (value & to.ones()) << to.from, to.mask());
}

/// Sets the bits of `mask`.
fn set(packet: &mut Packet, field: Field, value: u128, mask: u128) {
    let Some(old) = read(packet, Bits::all(field)) else { return };
    set_field(packet, field, old & !mask | value & mask);
}
