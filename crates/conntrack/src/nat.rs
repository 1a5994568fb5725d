//! Network address translation: what is wanted, and the tuples that may be tried.

use crate::tuple::FlowTuple;
use fastpath_units::Rng;

/// What NAT does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NatRequest {
    /// Translates packets of connections that have a translation.
    Existing,
    /// Also gives a connection that is committed now a translation.
    New(NatSpec),
}

/// A translation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NatSpec {
    /// What is translated.
    pub side: NatSide,
    /// The first and the last address; `None` keeps it.
    pub addresses: Option<(u128, u128)>,
    /// Whether the addresses are those of IPv6. They do not apply to packets of the other family.
    pub is_v6: bool,
    /// The first and the last port. Without them the port stays, if the tuple is free.
    pub ports: Option<(u16, u16)>,
    /// How the port is chosen.
    pub choice: PortChoice,
    /// Whether the address depends on the source address only, so that it is the same for all
    /// connections of a host.
    pub is_persistent: bool,
}

/// The address that is translated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NatSide {
    /// The source.
    Source,
    /// The destination.
    Destination,
}

/// How a port of a range is chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PortChoice {
    /// By a hash, as nothing was said.
    #[default]
    Default,
    /// By a hash.
    Hash,
    /// At random.
    Random,
}

/// Addresses of a range that are tried.
const ADDRESSES_MAX: u128 = 8;
/// Ports in a row that are tried, then half as many from a random one, and so on.
const PORTS_MAX: u32 = 128;
/// The fewest ports in a row.
const PORTS_MIN: u32 = 16;

/// Calls `is_free` with tuples of replies until one is, and returns it.
pub(crate) fn choose(
    spec: &NatSpec,
    first: &FlowTuple,
    hash: impl Fn(&FlowTuple) -> u32,
    rng: &mut Rng,
    mut is_free: impl FnMut(&FlowTuple) -> bool,
) -> Option<FlowTuple> {
    let by_all = hash(first);
    let by_host = hash(&FlowTuple { src: first.src, is_v6: first.is_v6, ..FlowTuple::default() });
    let addresses = spec.addresses.filter(|_| spec.is_v6 == first.is_v6);
    let (low, high) = addresses.unwrap_or(match spec.side {
        NatSide::Source => (first.src, first.src),
        NatSide::Destination => (first.dst, first.dst),
    });
    let count = (high - low).saturating_add(1);
    let start = if spec.is_persistent { by_host } else { by_all };
    for step in 0..count.min(ADDRESSES_MAX) {
        let address = low + (u128::from(start) + step) % count;
        let mut tuple = *first;
        match spec.side {
            NatSide::Source => tuple.src = address,
            NatSide::Destination => tuple.dst = address,
        }
        if !tuple.has_ports() {
            if is_free(&tuple.reversed()) {
                return Some(tuple.reversed());
            }
            continue;
        }
        let offset = if spec.choice == PortChoice::Random { rng.next_u64() as u32 } else { by_all };
        let found = by_ports(spec, &tuple, offset, rng, &mut is_free);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Tries the ports of a translated tuple.
fn by_ports(
    spec: &NatSpec,
    tuple: &FlowTuple,
    offset: u32,
    rng: &mut Rng,
    is_free: &mut impl FnMut(&FlowTuple) -> bool,
) -> Option<FlowTuple> {
    let in_range = |(low, high): (u16, u16)| low + (offset % (u32::from(high - low) + 1)) as u16;
    // The port of ICMP is its identifier, which both directions have.
    let is_icmp = tuple.is_icmp();
    let mut tuple = *tuple;
    if spec.side == NatSide::Destination
        && !is_icmp
        && let Some(range) = spec.ports
    {
        tuple.dst_port = in_range(range);
        let with = |port| FlowTuple { dst_port: port, ..tuple };
        if let Some(found) = scan(range, tuple.dst_port, with, rng, is_free) {
            return Some(found);
        }
    }
    // A clash that the destination does not avoid is avoided by the source port.
    let (range, start) = match spec.ports.filter(|_| spec.side == NatSide::Source) {
        Some(range) => (range, in_range(range)),
        None => (like(tuple.src_port), tuple.src_port),
    };
    scan(range, start, |port| FlowTuple { src_port: port, ..tuple }, rng, is_free)
}

/// The ports that are as privileged as another.
fn like(port: u16) -> (u16, u16) {
    match port {
        0..512 => (port.min(1), 511),
        512..1024 => (600.min(port), 1023),
        1024.. => (1024, u16::MAX),
    }
}

fn scan(
    (low, high): (u16, u16),
    start: u16,
    with: impl Fn(u16) -> FlowTuple,
    rng: &mut Rng,
    is_free: &mut impl FnMut(&FlowTuple) -> bool,
) -> Option<FlowTuple> {
    let count = u32::from(high - low) + 1;
    let mut offset = u32::from(start.saturating_sub(low));
    let mut tries = count.min(PORTS_MAX);
    loop {
        for step in 0..tries {
            let port = low + ((offset + step) % count) as u16;
            let reply = with(port).reversed();
            if is_free(&reply) {
                return Some(reply);
            }
        }
        tries /= 2;
        if count <= PORTS_MAX || tries < PORTS_MIN {
            return None;
        }
        offset = rng.below(count.into()) as u32;
    }
}
