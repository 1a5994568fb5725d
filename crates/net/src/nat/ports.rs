//! The outside ports of one address and protocol of a NAT, and the choice of a free one (RFC 4787
//! §4.2).

use super::protocol::NatProtocol;
use fastpath_spec::NatSettings;
use fastpath_units::Rng;
use std::ops::RangeInclusive;

const WORDS: usize = 65_536 / 64;
/// The bits of even ports in a word.
const EVEN: u64 = 0x5555_5555_5555_5555;

/// A bit for each port: whether it is in use.
#[derive(Debug)]
pub(super) struct Ports {
    used: Box<[u64; WORDS]>,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports { used: Box::new([0; WORDS]) }
    }
}

impl Ports {
    /// Takes a free port for the inside port `wanted`: the same if it is to be preserved and free;
    /// else [another one](Ports::take_other).
    pub(super) fn take(
        &mut self,
        protocol: NatProtocol,
        wanted: u16,
        settings: &NatSettings,
        rng: &mut Rng,
    ) -> Option<u16> {
        let is_in_range = protocol == NatProtocol::Icmp || settings.ports.contains(&wanted);
        if settings.port_preservation && is_in_range && !self.is_used(wanted) {
            self.used[usize::from(wanted) / 64] |= 1 << (wanted % 64);
            return Some(wanted);
        }
        self.take_other(protocol, wanted, settings, rng)
    }

    /// Takes the first free port of the parity of `like` from a random port on, going round; else,
    /// or without parity, the first free one. ICMP identifiers have no range and no parity.
    pub(super) fn take_other(
        &mut self,
        protocol: NatProtocol,
        like: u16,
        settings: &NatSettings,
        rng: &mut Rng,
    ) -> Option<u16> {
        let is_icmp = protocol == NatProtocol::Icmp;
        let range = if is_icmp { 0..=u16::MAX } else { settings.ports.clone() };
        let count = u64::from(range.end() - range.start()) + 1;
        let from = range.start() + rng.below(count) as u16;
        let parity = if like.is_multiple_of(2) { EVEN } else { !EVEN };
        let same = if settings.port_parity && !is_icmp { self.round(from, &range, parity) } else { None };
        let port = same.or_else(|| self.round(from, &range, u64::MAX))?;
        self.used[usize::from(port) / 64] |= 1 << (port % 64);
        Some(port)
    }

    /// Gives a port back.
    pub(super) fn free(&mut self, port: u16) {
        self.used[usize::from(port) / 64] &= !(1 << (port % 64));
    }

    fn is_used(&self, port: u16) -> bool {
        self.used[usize::from(port) / 64] >> (port % 64) & 1 > 0
    }

    /// The first free port among those of `mask`, from `from` to the end of the range, then from
    /// its start.
    fn round(&self, from: u16, range: &RangeInclusive<u16>, mask: u64) -> Option<u16> {
        self.first(from, *range.end(), mask).or_else(|| self.first(*range.start(), from, mask))
    }

    fn first(&self, from: u16, last: u16, mask: u64) -> Option<u16> {
        let (from, last) = (usize::from(from), usize::from(last));
        (from / 64..=last / 64).find_map(|word| {
            let start = if word == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
            let free = !self.used[word] & mask & start;
            let port = word * 64 + free.trailing_zeros() as usize;
            (free > 0 && port <= last).then_some(port as u16)
        })
    }
}
