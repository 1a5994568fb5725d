//! Choosing one of several links or ports by a hash of the packet (`multipath`, `bundle`).
//!
//! The hash is ours, not that of Open vSwitch: which link a flow takes differs, how flows are
//! spread
//! does not. RFC 2992 compares the algorithms.

use super::bits::Bits;
use crate::field::Field;
use crate::key::Key;
use crate::mix::mix;

/// The fields that are hashed (NX_HASH_FIELDS).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum HashFields {
    /// Source MAC.
    EthSrc = 0,
    /// MACs, tag, EtherType, addresses, protocol and ports, equal in both directions.
    SymmetricL4 = 1,
    /// Addresses and ports of TCP and SCTP, equal in both directions.
    SymmetricL3L4 = 2,
    /// The same, with ports of UDP.
    SymmetricL3L4Udp = 3,
    /// IPv4 or IPv6 source.
    NwSrc = 4,
    /// IPv4 or IPv6 destination.
    NwDst = 5,
    /// Addresses, equal in both directions.
    SymmetricL3 = 6,
}

/// How a hash becomes the number of a link (NX_MP_ALG).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum Algorithm {
    /// The remainder.
    Modulo = 0,
    /// Regions of equal size (RFC 2992).
    HashThreshold = 1,
    /// Highest random weight.
    HighestRandomWeight = 2,
    /// Hashes again until the number is that of a link.
    Iterative = 3,
}

/// Puts the number of a link into a field.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Multipath {
    /// What is hashed.
    pub fields: HashFields,
    /// Start of the hash.
    pub basis: u16,
    /// How the link is chosen.
    pub algorithm: Algorithm,
    /// The number of links, from 1 to 65,536.
    pub links: u32,
    /// Argument of [`Algorithm::Iterative`]: a number of at least `links`.
    pub argument: u32,
    /// Where the number goes.
    pub to: Bits,
}

/// Chooses one of several ports that can send.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bundle {
    /// What is hashed.
    pub fields: HashFields,
    /// Start of the hash.
    pub basis: u16,
    /// Whether the first port that can send is taken (`active_backup`), instead of the one with the
    /// highest random weight (`hrw`).
    pub is_backup: bool,
    /// The ports, in order of preference.
    pub members: Vec<u32>,
    /// Where the number of the port goes (`bundle_load`); `None` sends the packet there.
    pub to: Option<Bits>,
}

/// Returns the hash of a packet.
fn hash_of(fields: HashFields, basis: u16, key: &Key) -> u32 {
    let mut hash = mix(&[u64::from(basis)]);
    let get = |field| key.get(field).unwrap_or(0);
    let mut add = |value: u128| hash = mix(&[hash, value as u64, (value >> 64) as u64]);
    let addresses = || match key.has(Field::Ipv6Src) {
        true => (get(Field::Ipv6Src), get(Field::Ipv6Dst)),
        false => (get(Field::Ipv4Src), get(Field::Ipv4Dst)),
    };
    let ports = |is_udp: bool| {
        let pairs = [
            (Field::TcpSrc, Field::TcpDst, true),
            (Field::SctpSrc, Field::SctpDst, true),
            (Field::UdpSrc, Field::UdpDst, is_udp),
        ];
        let pair = pairs.into_iter().find(|(src, _, counts)| *counts && key.has(*src));
        pair.map_or(0, |(src, dst, _)| get(src) ^ get(dst))
    };
    let (src, dst) = addresses();
    match fields {
        HashFields::EthSrc => add(get(Field::EthSrc)),
        HashFields::NwSrc => add(src),
        HashFields::NwDst => add(dst),
        HashFields::SymmetricL3 => add(src ^ dst),
        HashFields::SymmetricL3L4 | HashFields::SymmetricL3L4Udp => {
            add(src ^ dst);
            add(get(Field::IpProto));
            add(ports(fields == HashFields::SymmetricL3L4Udp));
        }
        HashFields::SymmetricL4 => {
            add(get(Field::EthSrc) ^ get(Field::EthDst));
            add(get(Field::VlanVid));
            add(get(Field::EthType));
            add(src ^ dst);
            add(get(Field::IpProto));
            add(ports(true));
        }
    }
    (hash >> 32) as u32
}

impl HashFields {
    /// All of them, in the order of their numbers.
    pub const ALL: [HashFields; 7] = [
        HashFields::EthSrc,
        HashFields::SymmetricL4,
        HashFields::SymmetricL3L4,
        HashFields::SymmetricL3L4Udp,
        HashFields::NwSrc,
        HashFields::NwDst,
        HashFields::SymmetricL3,
    ];
}

impl Algorithm {
    /// All of them, in the order of their numbers.
    pub const ALL: [Algorithm; 4] =
        [Algorithm::Modulo, Algorithm::HashThreshold, Algorithm::HighestRandomWeight, Algorithm::Iterative];
}

impl Multipath {
    /// Returns the number of the link for a packet.
    pub fn link(&self, key: &Key) -> u32 {
        let links = self.links.max(1);
        let hash = hash_of(self.fields, self.basis, key);
        match self.algorithm {
            Algorithm::Modulo => hash % links,
            Algorithm::HashThreshold => ((u64::from(hash) * u64::from(links)) >> 32) as u32,
            Algorithm::HighestRandomWeight => highest(hash, 0..links),
            Algorithm::Iterative => self.iterate(hash, links),
        }
    }

    /// Hashes until the number is that of a link. The bound is never met by chance: each step ends
    /// with a probability of at least `links` / 2 `argument`.
    fn iterate(&self, hash: u32, links: u32) -> u32 {
        let range = self.argument.max(links).next_power_of_two();
        let mut at = u64::from(hash);
        for _ in 0..64 {
            let number = at as u32 & (range - 1);
            if number < links {
                return number;
            }
            at = mix(&[at]);
        }
        hash % links
    }
}

impl Bundle {
    /// Returns the port for a packet; `None` if none can send.
    pub fn port(&self, key: &Key, may_send: impl Fn(u32) -> bool) -> Option<u32> {
        let mut living = self.members.iter().copied().filter(|port| may_send(*port));
        if self.is_backup {
            return living.next();
        }
        let hash = hash_of(self.fields, self.basis, key);
        living.max_by_key(|port| (weight(hash, *port), std::cmp::Reverse(*port)))
    }
}

fn highest(hash: u32, numbers: impl Iterator<Item = u32>) -> u32 {
    numbers.max_by_key(|number| (weight(hash, *number), std::cmp::Reverse(*number))).unwrap_or(0)
}

fn weight(hash: u32, number: u32) -> u64 {
    mix(&[u64::from(hash) << 32 | u64::from(number)])
}
