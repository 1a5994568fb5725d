//! Connections that others expect.

use crate::nat::NatSide;
use crate::tuple::FlowTuple;
use std::collections::BTreeMap;

/// The first packet of an expected connection; its source port may be any.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ExpectKey {
    zone: u16,
    src: u128,
    dst: u128,
    dst_port: u16,
    protocol: u8,
    is_v6: bool,
}

/// What is known of an expected connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Expectation {
    /// The connection that expects it, and its first tuple.
    pub(crate) owner: u32,
    pub(crate) parent: FlowTuple,
    /// The receiver's address and port behind NAT, and the sender's before it.
    pub(crate) receiver: (u128, u16),
    pub(crate) sender: u128,
}

/// The expected connections of all zones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectations {
    all: BTreeMap<ExpectKey, Expectation>,
}

impl Expectation {
    /// Returns the tuple of replies to the first packet, with NAT as that of the connection that
    /// expected it.
    pub(crate) fn reply(&self, first: &FlowTuple) -> FlowTuple {
        let ((src, src_port), dst) = (self.receiver, self.sender);
        FlowTuple { src, dst, src_port, dst_port: first.src_port, ..*first }
    }

    /// Returns what NAT translates of the first packet.
    pub(crate) fn side(&self, first: &FlowTuple) -> Option<NatSide> {
        match (self.receiver != (first.dst, first.dst_port), self.sender != first.src) {
            (true, _) => Some(NatSide::Destination),
            (false, true) => Some(NatSide::Source),
            (false, false) => None,
        }
    }
}

impl ExpectKey {
    pub(crate) fn new(tuple: &FlowTuple, zone: u16) -> ExpectKey {
        let FlowTuple { src, dst, dst_port, protocol, is_v6, .. } = *tuple;
        ExpectKey { zone, src, dst, dst_port, protocol, is_v6 }
    }

    /// Returns the same with another port.
    pub(crate) fn with_port(self, dst_port: u16) -> ExpectKey {
        ExpectKey { dst_port, ..self }
    }
}

impl Expectations {
    /// Returns what is expected as the connection of a first packet.
    pub(crate) fn find(&self, tuple: &FlowTuple, zone: u16) -> Option<Expectation> {
        if self.all.is_empty() {
            return None;
        }
        self.all.get(&ExpectKey::new(tuple, zone)).copied()
    }

    pub(crate) fn get(&self, key: &ExpectKey) -> Option<&Expectation> {
        self.all.get(key)
    }

    pub(crate) fn insert(&mut self, key: ExpectKey, expectation: Expectation) {
        self.all.insert(key, expectation);
    }

    /// Forgets what a connection expects.
    pub(crate) fn remove(&mut self, key: &ExpectKey, owner: u32) {
        if self.all.get(key).is_some_and(|one| one.owner == owner) {
            self.all.remove(key);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }
}
