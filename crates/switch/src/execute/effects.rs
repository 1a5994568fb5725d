//! A packet while it is executed, and the effects that its actions have on everything else.

use crate::action::Action;
use crate::bridging::{Bridging, VlanTag};
use crate::continuation::{FlowName, Paused};
use crate::edit;
use crate::field::Field;
use crate::flow::FlowMod;
use crate::key::PipelineFields;
use crate::normal::{self, ForwardingDecision};
use crate::outcome::DropReason;
use crate::port;
use crate::reason::PacketInReason;
use fastpath_conntrack::{CtState, PacketView, TrackRequest, Tracked};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A packet while it is executed.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    /// The frame as it is now.
    pub frame: Vec<u8>,
    /// Port of entry, metadata and tunnel id.
    pub context: PipelineFields,
    /// The queue of the port that it leaves by; 0 is the default queue.
    pub queue: u32,
    /// What `push` put there.
    pub stack: Vec<u128>,
    /// Whether its actions have ended at every depth.
    pub ending: Ending,
    /// How `ct` has translated it, and in which zone. That stays when an action clears what
    /// tracking said.
    pub translated: (u16, CtState),
    /// What is kept of a packet that an action has paused.
    pub paused: Option<Box<Paused>>,
}

/// Whether the actions of a packet have ended at every depth, not only those of one list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ending {
    /// They go on.
    #[default]
    None,
    /// By `exit`: the action set is executed.
    Exit,
    /// By a bound on resubmits.
    Bound,
    /// With a packet-in, until a controller resumes it: the action set is not executed.
    Paused,
}

impl Packet {
    /// Returns a packet that has just arrived by a port.
    pub fn new(frame: Vec<u8>, in_port: u32) -> Packet {
        Packet { frame, context: PipelineFields::of_port(in_port), ..Packet::default() }
    }
}

/// A packet-in to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketInRequest<'a> {
    /// The reason. Without one it is that of the flow: OFPR_NO_MATCH for a table-miss flow, else
    /// OFPR_ACTION.
    pub reason: Option<PacketInReason>,
    /// The most bytes of the frame.
    pub max_len: u16,
    /// The number of the controllers that it is for.
    pub controller: u16,
    /// Bytes for the controller.
    pub userdata: &'a [u8],
}

impl PacketInRequest<'_> {
    /// Returns a packet-in for all controllers that have not chosen a number.
    pub fn new(reason: Option<PacketInReason>, max_len: u16) -> PacketInRequest<'static> {
        PacketInRequest { reason, max_len, controller: 0, userdata: &[] }
    }
}

/// The ports that a flooded packet is sent to. The port of entry is never one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloodScope {
    /// The ordinary ports (OFPP_ALL and OFPP_FLOOD).
    Ordinary,
    /// The ordinary ports and OFPP_LOCAL, as a learning switch floods (OFPP_NORMAL).
    WithLocal,
}

/// The effects of actions other than edits of the packet. Every method counts what it sends, and
/// bounds it.
pub trait Effects {
    /// Sends a copy of the packet out of a port that is not reserved, or out of OFPP_LOCAL.
    fn send(&mut self, packet: &Packet, port: u32);

    /// Sends a copy out of every port of the scope that may send, except the port of entry.
    fn flood(&mut self, packet: &Packet, scope: FloodScope);

    /// Returns the ports that [`Effects::flood`] sends to, in the order of their numbers.
    fn flood_ports(&self, in_port: u32, scope: FloodScope) -> Vec<u32>;

    /// Applies a meter. `Break` means that the packet ended here.
    fn police(&mut self, packet: &mut Packet, meter: u32) -> ControlFlow<()>;

    /// Returns the VLANs of ports and the mirrors.
    fn bridging(&self) -> &Arc<Bridging>;

    /// Decides where OFPP_NORMAL forwards a packet of a VLAN, and learns its source address.
    fn locate(&mut self, packet: &Packet, vlan: u16) -> ForwardingDecision;

    /// Returns the flow that packet-ins name now.
    fn flow_name(&self) -> FlowName;

    /// Sends a packet-in.
    fn packet_in(&mut self, packet: &Packet, request: PacketInRequest<'_>);

    /// Applies a meter, which may change the packet. Returns whether it lets the packet pass; one
    /// that does not exist does.
    fn passes_meter(&mut self, packet: &mut Packet, id: u32) -> bool;

    /// Sends the packet through the tables (OFPP_TABLE, in packet-outs only).
    fn enter_tables(&mut self, packet: &Packet);

    /// Looks the packet up in a table, the present one if none is given, as if it had come from a
    /// port and, if `is_original`, were the first packet of its connection; executes the rule, and
    /// returns. Without a rule nothing happens. `Break`: the packet has ended.
    fn resubmit(
        &mut self,
        packet: &mut Packet,
        in_port: Option<u32>,
        table: Option<u8>,
        is_original: bool,
    ) -> ControlFlow<()>;

    /// Executes tables from this one on, with an action set of its own that begins as the present
    /// one. `Break`: the packet has reached the bound on resubmits.
    fn recirculate(&mut self, packet: &mut Packet, table: u8) -> ControlFlow<()>;

    /// Finds the connection of a packet; `None` as packet: one that cannot be tracked.
    fn track(&mut self, packet: Option<&PacketView<'_>>, request: &TrackRequest) -> Tracked;

    /// Returns whether a port exists and may send.
    fn may_send(&self, port: u32) -> bool;

    /// Executes actions on a copy of the packet, and then its action set.
    fn clone_of(&mut self, packet: &Packet, actions: &[Action]);

    /// Adds a flow, or renews it, before the next packet. Returns false, and does not add it, if
    /// its table has at least `limit` flows of its cookie; a limit of 0 is none.
    fn learn(&mut self, flow: FlowMod, limit: u32) -> bool;

    /// Lowers the timeouts of the flow that is executed, before the next packet; 0 leaves one.
    fn shorten(&mut self, idle: u16, hard: u16);

    /// Processes a copy of the packet by each bucket that the group selects.
    fn group(&mut self, packet: &Packet, id: u32);

    /// Ends this copy of the packet and notes the reason.
    fn drop(&mut self, reason: DropReason);
}

/// Sets a field, in the frame or beside it.
pub(crate) fn set_field(packet: &mut Packet, field: Field, value: u128) {
    if packet.context.set(field, value) {
        return;
    }
    match field {
        Field::VlanTci => edit::set_vlan_tci(&mut packet.frame, value as u16),
        _ => edit::set_field(&mut packet.frame, field, value),
    }
}

/// Sends a copy of the packet to a port, ordinary or reserved (§7.2.5). The packet itself goes on
/// unchanged.
pub fn output<E: Effects>(packet: &Packet, port: u32, max_len: u16, effects: &mut E) {
    let in_port = packet.context.in_port;
    match port {
        port::CONTROLLER => effects.packet_in(packet, PacketInRequest::new(None, max_len)),
        port::IN_PORT => effects.send(packet, in_port),
        port::TABLE => effects.enter_tables(packet),
        port::NORMAL => forward_normally(packet, effects),
        port::ALL | port::FLOOD => effects.flood(packet, FloodScope::Ordinary),
        _ if port == in_port => effects.drop(DropReason::NoOtherPort),
        _ => effects.send(packet, port),
    }
}

/// Forwards a copy of the packet by its VLAN and the addresses learned in it (OFPP_NORMAL).
fn forward_normally<E: Effects>(packet: &Packet, effects: &mut E) {
    let Some(tag) = VlanTag::of(&packet.frame) else { return effects.drop(DropReason::Vlan) };
    let has_empty_tag = tag.ethertype != 0 && tag.is_empty();
    if !effects.bridging().is_plain() || has_empty_tag {
        return forward_in_vlan(packet, tag, effects);
    }
    match effects.locate(packet, tag.vlan()) {
        ForwardingDecision::Port(number) => effects.send(packet, number),
        ForwardingDecision::Flood => effects.flood(packet, FloodScope::WithLocal),
        ForwardingDecision::Filter => effects.drop(DropReason::NoOtherPort),
    }
}

/// Returns the ports that a flooded packet of a VLAN is sent to.
fn flooded<E: Effects>(effects: &E, bridging: &Bridging, in_port: u32, vlan: u16) -> Vec<u32> {
    let mut ports = effects.flood_ports(in_port, FloodScope::WithLocal);
    ports.retain(|number| bridging.vlans_of(*number).carries(vlan) && !bridging.is_mirror_output(*number));
    ports
}

/// Forwards where ports carry some VLANs only, or are mirrors' outputs.
fn forward_in_vlan<E: Effects>(packet: &Packet, before: VlanTag, effects: &mut E) {
    let bridging = Arc::clone(effects.bridging());
    let in_port = packet.context.in_port;
    if bridging.is_mirror_output(in_port) {
        return effects.drop(DropReason::MirrorPort);
    }
    let Some(tag) = bridging.vlans_of(in_port).admit(before) else { return effects.drop(DropReason::Vlan) };
    let decision = match bridging.flood_vlans.contains(tag.vlan()) {
        true if normal::is_reserved(&packet.frame) => ForwardingDecision::Filter,
        true => ForwardingDecision::Flood,
        false => effects.locate(packet, tag.vlan()),
    };
    let ports = match decision {
        ForwardingDecision::Filter => Vec::new(),
        // It was learned there, so the port carries the VLAN.
        ForwardingDecision::Port(number) if bridging.is_mirror_output(number) => {
            return effects.drop(DropReason::MirrorPort);
        }
        ForwardingDecision::Port(number) => vec![number],
        ForwardingDecision::Flood => flooded(effects, &bridging, in_port, tag.vlan()),
    };
    if ports.is_empty() {
        return effects.drop(DropReason::NoOtherPort);
    }
    for number in ports {
        let mut copy = packet.clone();
        bridging.vlans_of(number).release(tag).put(&mut copy.frame, before);
        effects.send(&copy, number);
    }
}
