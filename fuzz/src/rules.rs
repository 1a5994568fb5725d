//! Rules of a switch, and a frame for it.

use fastpath_ofctl::{self as ofctl, PortNames};
use fastpath_plan::Plan;
use fastpath_switch::{Limits, Port, Switch, interp};
use fastpath_units::Time;

/// Bytes that part the rules from the frame.
const PART: &[u8] = b"\n--\n";

/// Whatever comes is rules or mistakes, the switch takes or refuses them, and what becomes of the
/// frame is the same whether flows are found one by one or by a plan.
pub fn rules(bytes: &[u8]) {
    let at = bytes.windows(PART.len()).position(|window| window == PART);
    let (text, frame) = at.map_or((bytes, &[][..]), |at| (&bytes[..at], &bytes[at + PART.len()..]));
    let Ok(lines) = ofctl::parse(&String::from_utf8_lossy(text), &PortNames::new()) else { return };
    let mut switch = Switch::new(Limits { tables: 4, flows: 64, ..Limits::default() });
    (1..=3).for_each(|number| switch.set_port(number, Port::up()));
    // What is refused is not there; the rest is.
    let _ = ofctl::load(&mut switch, Time::ZERO, &lines);
    let plan = Plan::new(&mut switch);
    let mut planned = switch.clone();
    let expected = interp(&mut switch, Time::ZERO, 1, frame);
    assert!(!expected.is_empty());
    assert_eq!(fastpath_switch::interp::interp_by(&plan, &mut planned, Time::ZERO, 1, frame), expected);
}
