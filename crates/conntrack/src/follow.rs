//! Reads the packets of connections with a helper, and expects the connections that they agree on.

use crate::alg::Alg;
use crate::connection::ConnectionRest;
use crate::expect::{ExpectKey, Expectation, Expectations};
use crate::ftp::{FtpMessage, FtpOffer};
use crate::sequence::SegmentShift;
use crate::store::ConnectionStore;
use crate::tuple::{FlowTuple, TCP, UDP};
use crate::view::{PacketKind, PacketView};
use std::ops::Range;

/// The most connections that one expects. The oldest is forgotten for another.
const EXPECTED_MAX: usize = 16;
/// Ports that are tried, if another connection expects one at the same.
const PORTS_MAX: u16 = 128;
/// The first port that is not privileged.
const PORT_MIN: u16 = 1024;

/// How the payload of a packet is to be changed, and the numbers of its segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PayloadEdit {
    /// Bytes of the payload, and what takes their place.
    pub change: Option<(Range<usize>, String)>,
    /// How sequence and acknowledgement number are moved, also in SACK.
    pub shift: SegmentShift,
}

/// What a helper finds wrong with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

impl Alg {
    /// Returns whether it reads connections of a protocol.
    pub(crate) fn reads(self, protocol: u8) -> bool {
        protocol == if self == Alg::Ftp { TCP } else { UDP }
    }
}

/// Takes over a valid packet of a connection. With NAT, returns how its payload changes.
pub(crate) fn follow(
    (store, expectations): (&mut ConnectionStore, &mut Expectations),
    (id, is_reply): (u32, bool),
    packet: &PacketView<'_>,
    has_nat: bool,
) -> Result<Option<Box<PayloadEdit>>, Malformed> {
    let zone = store.line(id).zone;
    let Some(rest) = store.rest_mut(id) else { return Ok(None) };
    let alg = rest.alg;
    let offers = Offers { rest, expectations, owner: (id, zone) };
    match (alg, packet.kind) {
        (Some(Alg::Ftp), PacketKind::Tcp(segment)) => {
            let change = offers.ftp(is_reply, packet.payload, has_nat)?;
            let Some(rest) = store.rest_mut(id).filter(|_| has_nat) else { return Ok(None) };
            let shift = rest.shifts.of(is_reply, segment.seq);
            if let Some((place, text)) = &change {
                rest.shifts.add(is_reply, segment.seq, text.len() as i32 - place.len() as i32);
            }
            let is_none = change.is_none() && shift.is_none();
            Ok((!is_none).then(|| Box::new(PayloadEdit { change, shift })))
        }
        (Some(Alg::Tftp), _) => {
            offers.tftp(is_reply, packet.payload);
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// What a connection expects.
struct Offers<'a> {
    rest: &'a mut ConnectionRest,
    expectations: &'a mut Expectations,
    /// Its number and zone.
    owner: (u32, u16),
}

impl Offers<'_> {
    /// Reads a segment of FTP. Returns the bytes that change.
    fn ftp(
        mut self,
        is_reply: bool,
        payload: &[u8],
        has_nat: bool,
    ) -> Result<Option<(Range<usize>, String)>, Malformed> {
        let [own, other] = self.directions(is_reply);
        let is_v6 = own.is_v6;
        let offer = match FtpMessage::parse(payload, is_reply, is_v6) {
            FtpMessage::Other => return Ok(None),
            FtpMessage::Malformed => return Err(Malformed),
            FtpMessage::Offer(offer) => offer,
        };
        // The address of a third host would send data there (RFC 2577 §3).
        if offer.address.is_some_and(|address| ![own.src, other.dst].contains(&address)) {
            return Err(Malformed);
        }
        let is_moved = has_nat && own.src != other.dst;
        let port = self.expect(is_reply, offer.port, is_moved);
        Ok(is_moved.then(|| FtpOffer::text(&offer, other.dst, port, is_v6)).map(|text| (offer.place, text)))
    }

    /// Reads a packet of TFTP: the server answers a request from another port.
    fn tftp(mut self, is_reply: bool, payload: &[u8]) {
        let is_request = matches!(payload, [0, 1 | 2, ..]);
        if is_request && !is_reply {
            let [own, other] = self.directions(false);
            self.expect_at(false, (own.src_port, other.dst_port));
        }
    }

    /// Returns the tuple of a direction, and that of the other.
    fn directions(&self, is_reply: bool) -> [FlowTuple; 2] {
        let [original, reply] = self.rest.tuples;
        if is_reply { [reply, original] } else { [original, reply] }
    }

    /// Expects a connection to the sender of a packet at a port. Returns the port that the other
    /// side is told.
    fn expect(&mut self, is_reply: bool, port: u16, may_choose: bool) -> u16 {
        let key = self.key(is_reply, port);
        let is_free = |port: u16| {
            let other = self.expectations.get(&key.with_port(port));
            other.is_none_or(|other| other.owner == self.owner.0)
        };
        // Behind one address several hosts may offer the same port.
        let next = |step: u16| match port.checked_sub(PORT_MIN) {
            Some(offset) => PORT_MIN + ((u32::from(offset) + u32::from(step)) % 0xfc00) as u16,
            None => port,
        };
        let tries = if may_choose { PORTS_MAX } else { 1 };
        let told = (0..tries).map(next).find(|port| is_free(*port));
        if let Some(told) = told {
            self.expect_at(is_reply, (port, told));
        }
        told.unwrap_or(port)
    }

    fn key(&self, is_reply: bool, port: u16) -> ExpectKey {
        let [_, other] = self.directions(is_reply);
        ExpectKey::new(&FlowTuple { dst_port: port, ..other }, self.owner.1)
    }

    /// Expects a connection to the sender of a packet, at its port and the one that was told.
    fn expect_at(&mut self, is_reply: bool, (port, told): (u16, u16)) {
        let [own, _] = self.directions(is_reply);
        let (owner, _) = self.owner;
        let key = self.key(is_reply, told);
        let rest = &mut *self.rest;
        rest.expected.retain(|other| *other != key);
        if rest.expected.len() == EXPECTED_MAX {
            self.expectations.remove(&rest.expected.remove(0), owner);
        }
        rest.expected.push(key);
        let (parent, receiver, sender) = (rest.tuples[0], (own.src, port), own.dst);
        self.expectations.insert(key, Expectation { owner, parent, receiver, sender });
    }
}
