//! `ct` and the `nat` in it, in messages (NXAST_CT, NXAST_NAT).
//!
//! Read first: `nx_action_conntrack` and `nx_action_nat` in `ofp-actions.c` of Open vSwitch.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::nx_bits::{
    EXPERIMENTER, NICIRA, ReadActions, WriteActions, action, packed, read_header, write_packed,
};
use fastpath_switch::connections::{Alg, Commit, NatRequest, NatSide, NatSpec, PortChoice};
use fastpath_switch::extension::{Ct, Zone};

/// NXAST_CT.
pub(super) const CT: u16 = 35;
/// NXAST_NAT.
const NAT: u16 = 36;
/// The table that means none (NX_CT_RECIRC_NONE).
const NO_TABLE: u8 = 0xff;
/// Flags of `ct`.
const COMMIT: u16 = 1;
const FORCE: u16 = 2;
/// Flags of `nat`.
const SRC: u16 = 1;
const DST: u16 = 2;
const PERSISTENT: u16 = 4;
const HASH: u16 = 8;
const RANDOM: u16 = 16;
/// The parts of a range, in their order.
const V4_MIN: u16 = 1;
const V4_MAX: u16 = 2;
const V6_MIN: u16 = 4;
const V6_MAX: u16 = 8;
const PORT_MIN: u16 = 16;
const PORT_MAX: u16 = 32;
/// Bytes of an action of Nicira up to its subtype.
const HEAD_LEN: usize = 10;

/// Reads `ct`, after the subtype.
pub(super) fn read(r: &mut ByteReader<'_>, inner: ReadActions) -> Result<Ct, Fault> {
    let (flags, source, place, table) = (r.u16()?, r.array::<4>()?, r.u16()?, r.u8()?);
    r.skip(3)?;
    let commit = match flags {
        0 => Commit::No,
        COMMIT => Commit::Yes,
        3 => Commit::Force,
        _ => return Err(Fault::ActionBadArgument),
    };
    let alg = match r.u16()? {
        0 => None,
        port => Some(Alg::of_port(port).ok_or(Fault::ActionBadArgument)?),
    };
    let zone = match source {
        [0, 0, 0, 0] => Zone::Number(place),
        _ => {
            let named = read_header(&mut ByteReader::new(&source, Fault::ActionBadLen))?;
            Zone::Field(packed(place, named)?)
        }
    };
    let nat = read_nat(r)?;
    let exec = match r.is_empty() {
        true => Vec::new(),
        false => {
            let rest = *r;
            r.rest();
            inner(rest.deeper().ok_or(Fault::ActionBadArgument)?)?
        }
    };
    Ok(Ct { commit, table: Some(table).filter(|table| *table != NO_TABLE), zone, nat, alg, exec })
}

/// Reads `nat`, if it is the first of the actions inside.
fn read_nat(r: &mut ByteReader<'_>) -> Result<Option<NatRequest>, Fault> {
    let mut ahead = *r;
    let Ok(head) = ahead.array::<HEAD_LEN>() else { return Ok(None) };
    let [kind, len, _, _, subtype] = [0, 2, 4, 6, 8].map(|at| u16::from_be_bytes([head[at], head[at + 1]]));
    let vendor = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    if (kind, vendor, subtype) != (EXPERIMENTER, NICIRA, NAT) {
        return Ok(None);
    }
    let mut r = r.part(len.into(), Fault::ActionBadLen)?;
    r.skip(HEAD_LEN + 2)?;
    let (flags, present) = (r.u16()?, r.u16()?);
    let is_known = flags & !(SRC | DST | PERSISTENT | HASH | RANDOM) == 0 && present & !0x3f == 0;
    if !is_known || flags & (SRC | DST) == SRC | DST || flags & (HASH | RANDOM) == HASH | RANDOM {
        return Err(Fault::ActionBadArgument);
    }
    let mut part = |bit: u16, len: usize| match present & bit {
        0 => Ok(None),
        _ => r.number(len).map(Some),
    };
    let v4 = (part(V4_MIN, 4)?, part(V4_MAX, 4)?);
    let v6 = (part(V6_MIN, 16)?, part(V6_MAX, 16)?);
    let ports = (part(PORT_MIN, 2)?, part(PORT_MAX, 2)?);
    let is_v6 = v6 != (None, None);
    if is_v6 && v4 != (None, None) {
        return Err(Fault::ActionBadArgument);
    }
    let addresses = range(if is_v6 { v6 } else { v4 })?;
    let ports = range(ports)?.map(|(low, high)| (low as u16, high as u16));
    let side = match flags & (SRC | DST) {
        0 if flags == 0 && addresses.is_none() && ports.is_none() => return Ok(Some(NatRequest::Existing)),
        0 => return Err(Fault::ActionBadArgument),
        SRC => NatSide::Source,
        _ => NatSide::Destination,
    };
    if ports.is_some() && addresses.is_none() {
        return Err(Fault::ActionBadArgument);
    }
    let choice = match flags & (HASH | RANDOM) {
        HASH => PortChoice::Hash,
        RANDOM => PortChoice::Random,
        _ => PortChoice::Default,
    };
    let is_persistent = flags & PERSISTENT != 0;
    Ok(Some(NatRequest::New(NatSpec { side, addresses, is_v6, ports, choice, is_persistent })))
}

/// Returns a range whose end may be missing.
fn range(ends: (Option<u128>, Option<u128>)) -> Result<Option<(u128, u128)>, Fault> {
    match ends {
        (None, None) => Ok(None),
        (Some(low), high) if low > 0 && high.is_none_or(|high| high >= low) => {
            Ok(Some((low, high.unwrap_or(low))))
        }
        _ => Err(Fault::ActionBadArgument),
    }
}

/// Writes `ct`.
pub(super) fn write(out: &mut Vec<u8>, ct: &Ct, inner: WriteActions) {
    action(out, CT, |out| {
        out.u16(match ct.commit {
            Commit::No => 0,
            Commit::Yes => COMMIT,
            Commit::Force => COMMIT | FORCE,
        });
        match ct.zone {
            Zone::Number(zone) => {
                out.zeros(4);
                out.u16(zone);
            }
            Zone::Field(bits) => {
                // The field comes first here.
                let mut packed = Vec::new();
                write_packed(&mut packed, bits);
                packed.rotate_left(2);
                out.extend_from_slice(&packed);
            }
        }
        out.u8(ct.table.unwrap_or(NO_TABLE));
        out.zeros(3);
        out.u16(ct.alg.map_or(0, Alg::port));
        if let Some(nat) = &ct.nat {
            write_nat(out, nat);
        }
        inner(out, &ct.exec);
    });
}

fn write_nat(out: &mut Vec<u8>, nat: &NatRequest) {
    let NatRequest::New(spec) = nat else { return action(out, NAT, |out| out.zeros(6)) };
    action(out, NAT, |out| {
        let side = if spec.side == NatSide::Source { SRC } else { DST };
        let choice = match spec.choice {
            PortChoice::Default => 0,
            PortChoice::Hash => HASH,
            PortChoice::Random => RANDOM,
        };
        let (min, max, len) = if spec.is_v6 { (V6_MIN, V6_MAX, 16) } else { (V4_MIN, V4_MAX, 4) };
        // An end that is the beginning is left out, as Open vSwitch does.
        let ends = |(low, high): (u128, u128), (min, max): (u16, u16)| match high == low {
            true => (min, vec![low]),
            false => (min | max, vec![low, high]),
        };
        let (addresses, ports) = (spec.addresses, spec.ports.map(|(low, high)| (low.into(), high.into())));
        let (of_addresses, addresses) = addresses.map_or((0, Vec::new()), |range| ends(range, (min, max)));
        let (of_ports, ports) = ports.map_or((0, Vec::new()), |range| ends(range, (PORT_MIN, PORT_MAX)));
        out.zeros(2);
        out.u16(side | choice | if spec.is_persistent { PERSISTENT } else { 0 });
        out.u16(of_addresses | of_ports);
        addresses.into_iter().for_each(|address| out.number(address, len));
        ports.into_iter().for_each(|port| out.number(port, 2));
    });
}
