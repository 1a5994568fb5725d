//! What the actions of Open vSwitch do with a packet. The interpreter and compiled tables both call
//! this.

use super::bits::Bits;
use super::ct;
use super::learn::Learn;
use super::read::{key_of, read};
use super::spread::Bundle;
use crate::action::{Controller, Extension};
use crate::execute::effects::{Effects, Ending, Packet, PacketInRequest, output, set_field};
use crate::field::Field;
use crate::key::ConnectionFields;
use crate::outcome::DropReason;
use crate::port;
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
        Extension::Resubmit { in_port, table, is_original } => {
            // Without a tracked connection there is no first packet to look up.
            let has_tuple = !is_original || packet.context.connection.original.protocol != 0;
            match has_tuple && (!is_original || read(packet, Bits::all(Field::IpProto)).is_some()) {
                true => effects.resubmit(packet, *in_port, *table, *is_original),
                false => Continue(()),
            }
        }
        Extension::Clone(actions) => {
            effects.clone_of(packet, actions);
            Continue(())
        }
        Extension::Ct(ct) => ct::perform(ct, packet, effects),
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
            let number = read(packet, *port).map(|number| port::of_16_bits(number as u32));
            return output_to(number, *max_len, packet, effects);
        }
        Extension::Truncated { port, max_len } => {
            let mut short = packet.clone();
            short.frame.truncate(*max_len as usize);
            output(&short, *port, port::NO_BUFFER, effects);
        }
        Extension::Learn(learn) => learn_from(learn, packet, effects),
        Extension::Multipath(multipath) => {
            let link = multipath.link(&key_of(packet));
            put(packet, multipath.to, link.into());
        }
        Extension::Bundle(bundle) => forward_by(bundle, packet, effects),
        Extension::FinTimeout { idle, hard } if ends_tcp(packet) => effects.shorten(*idle, *hard),
        Extension::Note(_)
        | Extension::FinTimeout { .. }
        | Extension::DebugRecirc
        | Extension::DebugSlow
        | Extension::Sample { .. }
        | Extension::Conjunction { .. }
        | Extension::Resubmit { .. }
        | Extension::Ct(_)
        | Extension::Clone(_) => {}
        Extension::CtClear => packet.context.connection = ConnectionFields::default(),
        Extension::Exit => {
            packet.ending = Ending::Exit;
            return Break(());
        }
        Extension::Controller(controller) => return send_packet_in(controller, packet, effects),
        Extension::Enqueue { port, queue } => {
            let before = std::mem::replace(&mut packet.queue, *queue);
            output(packet, *port, port::NO_BUFFER, effects);
            packet.queue = before;
        }
        Extension::PopQueue => packet.queue = 0,
        Extension::Meter(id) => return effects.police(packet, *id),
        Extension::CheckLen { longer_than, to } => {
            let is_longer = packet.frame.len() > usize::from(*longer_than);
            put(packet, *to, is_longer.into());
        }
    }
    Continue(())
}

/// Sends a copy to a port whose number was in a field. Reserved numbers are those of 16 bits.
fn output_to<E: Effects>(
    number: Option<u32>,
    max_len: u16,
    packet: &mut Packet,
    effects: &mut E,
) -> ControlFlow<()> {
    match number {
        // As Open vSwitch does: with the bounds of resubmits.
        Some(port::TABLE) => return effects.resubmit(packet, None, Some(0), false),
        Some(number) => output(packet, number, max_len, effects),
        None => {}
    }
    Continue(())
}

/// Sends a packet-in that passes its meter. `Break`: the packet ends with it.
fn send_packet_in<E: Effects>(
    controller: &Controller,
    packet: &mut Packet,
    effects: &mut E,
) -> ControlFlow<()> {
    let mut copy = packet.clone();
    let passes = controller.meter.is_none_or(|id| effects.passes_meter(&mut copy, id));
    if controller.pauses && passes {
        packet.pause(effects.flow_name(), controller.clone());
        return Break(());
    }
    if passes {
        let Controller { max_len, reason, id, userdata, .. } = controller;
        let reason = Some(*reason);
        let request = PacketInRequest { reason, max_len: *max_len, controller: *id, userdata };
        effects.packet_in(&copy, request);
    }
    if !controller.pauses {
        return Continue(());
    }
    effects.drop(DropReason::Meter);
    packet.ending = Ending::Paused;
    Break(())
}

/// Returns whether a packet has FIN or RST of TCP.
fn ends_tcp(packet: &Packet) -> bool {
    /// Both flags (RFC 9293 §3.1).
    const FIN_OR_RST: u128 = 0x5;
    read(packet, Bits::all(Field::TcpFlags)).is_some_and(|flags| flags & FIN_OR_RST != 0)
}

/// Adds the flow of a template, unless there are as many as there may be.
fn learn_from<E: Effects>(learn: &Learn, packet: &mut Packet, effects: &mut E) {
    let Some(flow) = learn.flow(&key_of(packet)) else { return };
    let is_taken = effects.learn(flow, learn.limit);
    if let Some(result) = learn.result {
        put(packet, result, is_taken.into());
    }
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
        // Reserved ports have numbers of 16 bits there.
        (Some(to), port) => {
            let number = port.unwrap_or(port::ANY);
            put(packet, to, if number > port::MAX { number & 0xffff } else { number }.into());
        }
        (None, Some(port)) => output(packet, port, port::NO_BUFFER, effects),
        (None, None) => {}
    }
}

/// Sets bits of a packet to a value.
fn put(packet: &mut Packet, to: Bits, value: u128) {
    set(packet, to.field, (value & to.ones()) << to.from, to.mask());
}

/// Sets the bits of `mask`.
fn set(packet: &mut Packet, field: Field, value: u128, mask: u128) {
    let Some(old) = read(packet, Bits::all(field)) else { return };
    let new = old & !mask | value & mask;
    // The port of entry is written in 16 bits, where the highest are the reserved ones.
    let is_short = field == Field::InPort && mask <= 0xffff;
    set_field(packet, field, if is_short { port::of_16_bits(new as u32 & 0xffff).into() } else { new });
}
