//! Random actions of Open vSwitch.

use super::{TABLES, pick, value};
use fastpath_switch::connections::{Alg, Commit, NatRequest, NatSide, NatSpec, PortChoice};
use fastpath_switch::extension::{
    Algorithm, Bits, Bundle, Controller, Ct, Extension, HashFields, Learn, Multipath, Source, Spec, Target,
    Zone,
};
use fastpath_switch::field::{FIELDS, Field};
use fastpath_switch::outcome::PacketInReason;
use fastpath_switch::{Action, port};
use fastpath_units::Rng;
use std::sync::Arc;

/// Returns bits of a field that every packet has, mostly registers.
fn bits(rng: &mut Rng) -> Bits {
    let register = Bits::register(rng.below(16) as u8);
    let whole = match rng.below(8) {
        0 => Bits::all(pick(rng, &[Field::EthSrc, Field::EthDst, Field::Metadata, Field::TunnelId])),
        1 => Bits::all(Field::VlanTci),
        2 => Bits::all(FIELDS[rng.below(FIELDS.len() as u64) as usize].field),
        3 => Bits::all(Field::Registers4),
        _ => register,
    };
    let from = rng.below(u64::from(whole.width)) as u8;
    match rng.below(3) {
        0 => Bits {
            from: whole.from + from,
            width: 1 + rng.below(u64::from(whole.width - from)) as u8,
            ..whole
        },
        _ => whole,
    }
}

/// Returns bits of another field that are as wide.
fn as_wide(rng: &mut Rng, width: u8) -> Bits {
    for _ in 0..10 {
        let bits = bits(rng);
        if bits.width >= width {
            return Bits { width, ..bits };
        }
    }
    Bits { width, ..Bits::all(Field::Registers8) }
}

fn learn(rng: &mut Rng) -> Learn {
    let mut specs = Vec::new();
    for _ in 0..1 + rng.below(3) {
        let to = bits(rng);
        let source = match rng.below(2) {
            0 => Source::Value(value(rng, to.field) & to.ones()),
            _ => Source::Packet(as_wide(rng, to.width)),
        };
        let target = match rng.below(3) {
            0 => Target::Match(to),
            1 => Target::Load(to),
            _ => Target::Output,
        };
        specs.push(Spec { source, target });
    }
    Learn {
        table: rng.below(TABLES.into()) as u8,
        priority: rng.below(6) as u16,
        cookie: rng.below(2),
        idle_timeout: 0,
        hard_timeout: rng.below(2) as u16,
        send_flow_rem: rng.below(4) == 0,
        delete_learned: rng.below(3) == 0,
        fin_idle_timeout: rng.below(2) as u16,
        fin_hard_timeout: rng.below(3) as u16,
        limit: if rng.below(3) == 0 { 1 + rng.below(3) as u32 } else { 0 },
        result: (rng.below(3) == 0).then(|| as_wide(rng, 1)),
        specs,
    }
}

/// Returns a `ct` over two zones and few addresses, so that connections meet again.
fn ct(rng: &mut Rng) -> Ct {
    let side = pick(rng, &[NatSide::Source, NatSide::Destination]);
    let first = 0x0a00_0001 + u128::from(rng.below(4));
    let spec = NatSpec {
        side,
        addresses: (rng.below(3) > 0).then_some((first, first + u128::from(rng.below(3)))),
        is_v6: false,
        ports: (rng.below(3) == 0).then(|| (5000, 5000 + rng.below(4) as u16)),
        choice: pick(rng, &[PortChoice::Default, PortChoice::Hash, PortChoice::Random]),
        is_persistent: rng.below(2) == 0,
    };
    let commit = pick(rng, &[Commit::No, Commit::Yes, Commit::Yes, Commit::Force]);
    let nat = match rng.below(4) {
        0 => Some(NatRequest::Existing),
        1 if commit != Commit::No => Some(NatRequest::New(spec)),
        _ => None,
    };
    let exec = match rng.below(3) {
        0 if commit != Commit::No => {
            let to = Bits { width: 32, ..Bits::all(Field::CtLabel) };
            let load = Extension::Move { from: as_wide(rng, 32), to };
            vec![Action::SetField(Field::CtMark, rng.below(4).into()), Action::Extension(Arc::new(load))]
        }
        _ => Vec::new(),
    };
    let zone = match rng.below(4) {
        0 => Zone::Field(as_wide(rng, 16)),
        _ => Zone::Number(rng.below(2) as u16),
    };
    Ct {
        commit,
        table: (rng.below(3) > 0).then(|| rng.below(TABLES.into()) as u8),
        zone,
        nat,
        alg: pick(rng, &[None, None, Some(Alg::Ftp), Some(Alg::Tftp)]),
        exec,
    }
}

fn conjunction(rng: &mut Rng) -> Extension {
    Extension::Conjunction { id: 1 + rng.below(3) as u32, clause: rng.below(2) as u8, clauses: 2 }
}

/// Returns an action of Open vSwitch. Many are refused, because their flow's match does not say
/// what
/// they need.
pub(super) fn any_extension(rng: &mut Rng) -> Action {
    Action::Extension(Arc::new(any(rng)))
}

/// Returns an action that tracks packets.
pub(super) fn tracking(rng: &mut Rng) -> Action {
    Action::Extension(Arc::new(Extension::Ct(ct(rng))))
}

/// Returns a clause of a conjunction.
pub(super) fn clause(rng: &mut Rng) -> Action {
    Action::Extension(Arc::new(conjunction(rng)))
}

fn any(rng: &mut Rng) -> Extension {
    let port = 1 + rng.below(6) as u32;
    match rng.below(33) {
        0..4 => {
            let to = bits(rng);
            let (value, mask) = (value(rng, to.field), to.mask());
            Extension::Set { field: to.field, value: value & mask, mask, is_load: true }
        }
        4..7 => {
            let to = bits(rng);
            Extension::Move { from: as_wide(rng, to.width), to }
        }
        7 => Extension::Push(bits(rng)),
        8 => Extension::Pop(bits(rng)),
        9 => Extension::OutputTo { port: as_wide(rng, 16), max_len: 64 },
        10 => Extension::Truncated { port, max_len: 14 + rng.below(60) as u32 },
        11..14 => {
            let in_port = (rng.below(3) == 0).then_some(port);
            let table = (rng.below(6) > 0).then(|| rng.below(TABLES.into()) as u8);
            Extension::Resubmit { in_port, table, is_original: rng.below(3) == 0 }
        }
        14 | 15 => Extension::Learn(learn(rng)),
        16 => Extension::Multipath(Multipath {
            fields: pick(rng, &HashFields::ALL),
            basis: rng.below(3) as u16,
            algorithm: pick(rng, &Algorithm::ALL),
            links: 1 + rng.below(4) as u32,
            argument: rng.below(9) as u32,
            to: as_wide(rng, 8),
        }),
        17 => Extension::Bundle(Bundle {
            fields: pick(rng, &HashFields::ALL),
            basis: rng.below(3) as u16,
            is_backup: rng.below(2) == 0,
            members: vec![port, 1 + rng.below(6) as u32],
            to: (rng.below(2) == 0).then(|| as_wide(rng, 16)),
        }),
        18 => Extension::Note(vec![1, 2]),
        19 => Extension::Clone(vec![any_extension(rng), Action::output(port), Action::Group(1)]),
        20 => pick(rng, &[Extension::Exit, Extension::PopQueue, Extension::Meter(1)]),
        21 => {
            let reason = pick(rng, &[PacketInReason::Action, PacketInReason::NoMatch]);
            Extension::Controller(Controller {
                max_len: port::NO_BUFFER,
                reason,
                id: rng.below(2) as u16,
                userdata: vec![7; rng.below(3) as usize],
                meter: (rng.below(3) == 0).then(|| 1 + rng.below(3) as u32),
                pauses: rng.below(3) == 0,
            })
        }
        24..28 => Extension::Ct(ct(rng)),
        28 => Extension::CtClear,
        29 => Extension::FinTimeout { idle: rng.below(3) as u16, hard: rng.below(3) as u16 },
        30 => pick(rng, &[Extension::DebugRecirc, Extension::DebugSlow]),
        22 => Extension::Enqueue { port, queue: rng.below(3) as u32 },
        _ => Extension::CheckLen { longer_than: 60, to: as_wide(rng, 1) },
    }
}
