//! Without controllers, in fail-standalone mode: the switch learns addresses and forwards by them, as one without
//! OpenFlow does (§6.3.2).
//!
//! It is its own small controller: a flow below the highest priority sends what is not known to the agent, which
//! floods it and adds a flow for each pair of stations seen. All its flows carry [`COOKIE`] and go with it.

use fastpath_engine::switching::{Control, QueuedPacketIn};
use fastpath_switch::port;
use fastpath_switch::{Action, Field, FieldMatch, FlowCommand, FlowMod, Instructions, Match};
use fastpath_wire::MacAddr;
use std::collections::BTreeMap;

/// The mark of the flows made here.
pub(super) const COOKIE: u64 = 0xfa57_0000_5741_4e44;
/// Stations remembered; beyond them, their frames are flooded.
const STATIONS_MAX: usize = 8192;
/// Seconds without a frame until a pair of stations is forgotten.
const IDLE: u16 = 300;

/// Where stations are.
#[derive(Debug, Default)]
pub(super) struct Standalone {
    stations: BTreeMap<MacAddr, u32>,
}

impl Standalone {
    /// Begins: what no other flow of table 0 takes comes here.
    pub(super) fn begin(control: &Control) -> Standalone {
        let to_agent = Instructions::apply([Action::output(port::CONTROLLER)]);
        let miss = FlowMod { cookie: COOKIE, ..FlowMod::add(0, u16::MAX - 1, Match::any(), to_agent) };
        // The table may be full: then what is there goes on to serve.
        let _ = control.change(|switch, now| switch.flow_mod(now, &miss));
        Standalone::default()
    }

    /// Ends: a controller is back.
    pub(super) fn end(self, control: &Control) {
        let mine = FlowMod { cookie: COOKIE, cookie_mask: u64::MAX, ..FlowMod::delete_all() };
        let _ = control.change(|switch, now| switch.flow_mod(now, &mine));
    }

    /// Learns from a frame and forwards it.
    pub(super) fn take(&mut self, control: &Control, packet: &QueuedPacketIn) {
        let in_port = packet.head.context.in_port;
        let Some((dst, src)) = addresses(&packet.frame) else { return };
        if !src.is_multicast() && self.stations.get(&src) != Some(&in_port) {
            let to_src = Match::new(&[mac(Field::EthDst, src)]).unwrap_or_default();
            let moved = FlowMod {
                command: FlowCommand::Delete,
                matching: to_src,
                cookie: COOKIE,
                cookie_mask: u64::MAX,
                table_id: 0,
                ..FlowMod::delete_all()
            };
            let _ = control.change(|switch, now| switch.flow_mod(now, &moved));
            if self.stations.len() < STATIONS_MAX || self.stations.contains_key(&src) {
                self.stations.insert(src, in_port);
            }
        }
        let known = self.stations.get(&dst).copied().filter(|_| !dst.is_multicast());
        if let Some(to) = known {
            let pair = [
                FieldMatch::exact(Field::InPort, in_port.into()),
                mac(Field::EthSrc, src),
                mac(Field::EthDst, dst),
            ];
            let matching = Match::new(&pair).unwrap_or_default();
            let flow = FlowMod {
                cookie: COOKIE,
                idle_timeout: IDLE,
                ..FlowMod::add(0, u16::MAX, matching, Instructions::apply([Action::output(to)]))
            };
            let _ = control.change(|switch, now| switch.flow_mod(now, &flow));
        }
        let to = known.unwrap_or(port::FLOOD);
        // The port of entry may have gone since.
        let _ = control.packet_out(in_port, &[Action::output(to)], &packet.frame);
    }
}

fn mac(field: Field, address: MacAddr) -> FieldMatch {
    FieldMatch::exact(field, address.0.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

/// Destination and source.
fn addresses(frame: &[u8]) -> Option<(MacAddr, MacAddr)> {
    let (dst, rest) = frame.split_first_chunk::<6>()?;
    Some((MacAddr(*dst), MacAddr(*rest.first_chunk::<6>()?)))
}
