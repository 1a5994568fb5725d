//! A packet that is resumed does what it would have done.

use crate::action::{Action, Controller, Extension};
use crate::extension::Bits;
use crate::flow::{ClearActions, FlowMod, Instructions, WriteMetadata};
use crate::outcome::{PacketInReason, PacketOutcome};
use crate::{Field, Limits, Match, Port, Switch, interp, port};
use fastpath_units::{Rng, Time};
use std::sync::Arc;

const TABLES: u8 = 4;

fn extension(extension: Extension) -> Action {
    Action::Extension(Arc::new(extension))
}

fn pause() -> Extension {
    let (max_len, reason) = (port::NO_BUFFER, PacketInReason::Action);
    Extension::Controller(Controller {
        max_len,
        reason,
        id: 0,
        userdata: Vec::new(),
        meter: None,
        pauses: true,
    })
}

/// Returns actions for a flow of this table.
fn list(rng: &mut Rng, table: u8, depth: u8) -> Vec<Action> {
    let one = |rng: &mut Rng| match rng.below(10) {
        0 | 1 => extension(pause()),
        2 => Action::output(2 + rng.below(3) as u32),
        3 => extension(Extension::Move {
            from: Bits::register(0),
            to: Bits { width: 32, ..Bits::all(Field::EthSrc) },
        }),
        4 => Action::SetField(Field::EthDst, rng.below(1 << 40).into()),
        5 => extension(Extension::Push(Bits { width: 32, ..Bits::all(Field::EthDst) })),
        6 => extension(Extension::Pop(Bits::register(0))),
        7 if depth < 2 => extension(Extension::Clone(list(rng, table, depth + 1))),
        8 if rng.below(4) == 0 => extension(Extension::Exit),
        _ if table + 1 < TABLES => {
            let later = table + 1 + rng.below(u64::from(TABLES - table - 1)) as u8;
            extension(Extension::Resubmit { in_port: None, table: Some(later), is_original: false })
        }
        _ => Action::SetQueue(rng.below(3) as u32),
    };
    (0..rng.below(6)).map(|_| one(rng)).collect()
}

fn instructions(rng: &mut Rng, table: u8) -> Instructions {
    Instructions {
        apply: list(rng, table, 0),
        clear: if rng.below(5) == 0 { ClearActions::Clear } else { ClearActions::Keep },
        write: if rng.below(2) == 0 { vec![Action::output(2 + rng.below(3) as u32)] } else { Vec::new() },
        metadata: (rng.below(3) == 0).then_some(WriteMetadata { value: 3, mask: 7 }),
        goto: (table + 1 < TABLES && rng.below(2) == 0).then_some(table + 1),
        ..Instructions::default()
    }
}

fn without_pauses(actions: &[Action]) -> Vec<Action> {
    let kept = |action: &Action| match action {
        Action::Extension(one) if **one == pause() => None,
        Action::Extension(one) => match &**one {
            Extension::Clone(inner) => Some(extension(Extension::Clone(without_pauses(inner)))),
            _ => Some(action.clone()),
        },
        _ => Some(action.clone()),
    };
    actions.iter().filter_map(kept).collect()
}

/// Returns the outputs of a packet, sorted, and how often it was resumed.
fn outputs(switch: &mut Switch, first: Vec<PacketOutcome>) -> (Vec<(u32, u32, Vec<u8>)>, usize) {
    let (mut found, mut waiting, mut resumed) = (Vec::new(), first, 0);
    while let Some(outcome) = waiting.pop() {
        match outcome {
            PacketOutcome::Output { port, queue, frame } => found.push((port, queue, frame)),
            PacketOutcome::Controller(packet) => {
                let rest = packet.continuation.expect("it is paused");
                let outcomes = interp::resume(switch, Time::ZERO, &packet.context, &rest, &packet.frame);
                waiting.extend(outcomes);
                resumed += 1;
            }
            PacketOutcome::Learn(_) | PacketOutcome::Drop(_) => {}
        }
    }
    found.sort();
    (found, resumed)
}

#[test]
fn a_packet_that_is_resumed_at_once_has_the_outputs_of_one_that_is_not_paused() {
    let (mut all, mut most) = (0, 0);
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let mut switch = Switch::new(Limits { tables: TABLES, ..Limits::default() });
        (1..=4).for_each(|number| switch.set_port(number, Port::up()));
        let mut plain = switch.clone();
        for table in 0..TABLES {
            let what = instructions(&mut rng, table);
            let stripped = Instructions { apply: without_pauses(&what.apply), ..what.clone() };
            switch.flow_mod(Time::ZERO, &FlowMod::add(table, 1, Match::any(), what)).unwrap();
            plain.flow_mod(Time::ZERO, &FlowMod::add(table, 1, Match::any(), stripped)).unwrap();
        }
        let frame: Vec<u8> = (0..60).collect();
        let first = interp(&mut switch, Time::ZERO, 1, &frame);
        let (found, resumed) = outputs(&mut switch, first);
        let wanted = interp(&mut plain, Time::ZERO, 1, &frame);
        assert_eq!(found, outputs(&mut plain, wanted).0, "seed {seed}");
        all += usize::from(resumed > 0 && !found.is_empty());
        most = most.max(resumed);
    }
    assert!(all > 300 && most > 3, "{all} packets were resumed, one {most} times");
}
