//! Fragments at a NAT (RFC 4787 REQ-14). Only the first fragment of a packet has ports: the others
//! are translated as it was, and wait for it if they come before it.

use crate::pool::Frame;
use fastpath_units::{Duration, Time};
use fastpath_wire::Ipv4;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// The most packets whose first fragment is remembered; one more replaces the oldest.
const PACKETS_MAX: usize = 1024;
/// The most fragments that wait; one more drops the oldest.
const WAITING_MAX: usize = 256;

/// What the fragments of a packet share (RFC 791 §2.3), and the interface they come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PacketKey {
    interface: usize,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    protocol: u8,
    id: u16,
}

impl PacketKey {
    pub(crate) fn new(interface: usize, ip: &Ipv4) -> PacketKey {
        PacketKey { interface, src: ip.src, dst: ip.dst, protocol: ip.protocol, id: ip.id }
    }
}

/// A fragment that came before the first one.
#[derive(Debug)]
pub(crate) struct WaitingFragment {
    pub(crate) frame: Frame,
    pub(crate) interface: usize,
    key: PacketKey,
    expires: Time,
}

/// The packets of which fragments have come. `T` is how the first fragment was translated.
#[derive(Debug)]
pub(crate) struct Fragments<T> {
    timeout: Duration,
    packets: BTreeMap<PacketKey, (T, Time)>,
    /// In the order in which packets expire.
    order: VecDeque<(Time, PacketKey)>,
    waiting: VecDeque<WaitingFragment>,
}

impl<T: Copy> Fragments<T> {
    pub(crate) fn new(timeout: Duration) -> Fragments<T> {
        Fragments { timeout, packets: BTreeMap::new(), order: VecDeque::new(), waiting: VecDeque::new() }
    }

    /// Remembers how a first fragment was translated, and returns the fragments that waited for it.
    pub(crate) fn first(&mut self, at: Time, key: PacketKey, translation: T) -> Vec<WaitingFragment> {
        self.forget(at);
        let expires = at.saturating_add(self.timeout);
        self.packets.insert(key, (translation, expires));
        self.order.push_back((expires, key));
        while self.order.len() > PACKETS_MAX {
            self.forget_oldest();
        }
        let waiting = std::mem::take(&mut self.waiting);
        let (released, waiting): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|w| w.key == key);
        self.waiting = waiting.into();
        released
    }

    /// Returns how the first fragment of a packet was translated.
    pub(crate) fn later(&mut self, at: Time, key: PacketKey) -> Option<T> {
        self.forget(at);
        self.packets.get(&key).map(|(translation, _)| *translation)
    }

    /// Makes a fragment wait for the first one of its packet. Returns the oldest one if there are
    /// too many.
    pub(crate) fn wait(&mut self, at: Time, key: PacketKey, frame: Frame) -> Option<Frame> {
        let expires = at.saturating_add(self.timeout);
        self.waiting.push_back(WaitingFragment { frame, interface: key.interface, key, expires });
        if self.waiting.len() <= WAITING_MAX {
            return None;
        }
        self.waiting.pop_front().map(|oldest| oldest.frame)
    }

    /// Returns when the first waiting fragment expires.
    pub(crate) fn expires_at(&self) -> Option<Time> {
        self.waiting.front().map(|waiting| waiting.expires)
    }

    /// Removes a waiting fragment that has expired at `at`.
    pub(crate) fn pop_expired(&mut self, at: Time) -> Option<Frame> {
        self.expires_at().filter(|end| *end <= at)?;
        self.waiting.pop_front().map(|oldest| oldest.frame)
    }

    /// Returns the number of waiting fragments.
    pub(crate) fn held(&self) -> usize {
        self.waiting.len()
    }

    fn forget(&mut self, at: Time) {
        while self.order.front().is_some_and(|(expires, _)| *expires <= at) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((expires, key)) = self.order.pop_front() else { return };
        // A later first fragment with the same identification has an entry of its own.
        if self.packets.get(&key).is_some_and(|(_, until)| *until == expires) {
            self.packets.remove(&key);
        }
    }
}
