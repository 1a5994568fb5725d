//! Links that go down and up as models of ns-2 have them: `$ns rtmodel`, `$ns rtmodel-at`
//! (rtglib/dynamics.tcl).
//!
//! A model of intervals begins with the links up. `Deterministic` has equal intervals,
//! `Exponential` draws each from an exponential law with that mean. At the finish time the links
//! are up.

use crate::class_values;
use crate::event_lists::wait;
use crate::objects::{add, node, usage};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::quantity;
use crate::simulator::{Act, Event, LinkEnd, LinkModel, Object, PendingAct};
use crate::state::Interp;
use crate::syntax::Value;
use fastpath_text::mistake::{Code, choice};
use fastpath_units::math::ln;
use fastpath_units::{Duration, Rng, Time};

/// The laws of ns-2.
const LAWS: [&str; 4] = ["Deterministic", "Exponential", "Manual", "Trace"];
/// The stream of random numbers of all models, as ns-2 has one (`rtglibRNG`).
const STREAM: u64 = 1 << 32;

/// The commands of `$ns` about models. `None` if `name` is another command.
pub(crate) fn simulator(tcl: &mut Interp, name: &str, words: &[Value]) -> Option<TclResult> {
    Some(match (name, words) {
        ("rtmodel-at", [at, operation, nodes @ ..]) if matches!(nodes.len(), 1 | 2) => {
            manual(tcl, at, operation, nodes)
        }
        ("rtmodel-at", _) => usage("$ns rtmodel-at 1.0 down $n0 $n1"),
        ("rtmodel", [law, parameters, nodes @ ..]) if matches!(nodes.len(), 1 | 2) => {
            model(tcl, law, parameters, nodes)
        }
        ("rtmodel", _) => usage("$ns rtmodel Deterministic {0.5 2.0 1.0} $n0 $n1"),
        _ => return None,
    })
}

/// `rtmodel-at 1.0 down $n0 $n1`: once.
fn manual(tcl: &mut Interp, at: &Value, operation: &Value, nodes: &[Value]) -> TclResult {
    let at = quantity::time(at)?;
    let is_down = match operation.trim() {
        "down" => true,
        "up" => false,
        other => return mistake(format!("'{other}' is neither down nor up"), "write down or up"),
    };
    if tcl.now.is_some_and(|now| at < now) {
        return mistake("this event is before the one that makes it", "write a later time");
    }
    let links = links(tcl, nodes)?;
    let (up, down) = (Duration::ZERO, Duration::ZERO);
    start(tcl, LinkModel { place: tcl.at, links, is_random: false, up, down, finish: None }, at, is_down)
}

fn model(tcl: &mut Interp, law: &Value, parameters: &Value, nodes: &[Value]) -> TclResult {
    let words = tcl.elements(parameters)?;
    let law = law.trim();
    match (law, &words[..]) {
        ("Manual", [operation, at]) => return manual(tcl, at, operation, nodes),
        ("Manual", _) => return usage("$ns rtmodel Manual {down 1.0} $n0 $n1"),
        ("Trace", _) => {
            let instead = "write $ns rtmodel-at 1.0 down $n0 $n1 for each of its lines";
            return mistake("rtmodel Trace reads a file, and no file is read", instead);
        }
        ("Deterministic" | "Exponential", words) if words.len() <= 4 => {}
        ("Deterministic" | "Exponential", _) => {
            return usage(&format!("$ns rtmodel {law} {{START UP DOWN FINISH}} $n0 $n1"));
        }
        _ => return mistake(format!("there is no model '{law}' of links"), choice(law, LAWS)),
    }
    let is_random = law == "Exponential";
    // The defaults of ns-2 (ns-default.tcl).
    let (up, down) = if is_random { ("10.0", "1.0") } else { ("2.0", "1.0") };
    let defaults =
        [("startTime_", "0.5"), ("upInterval_", up), ("downInterval_", down), ("finishTime_", "-")];
    // Two times are the intervals; ns-2 takes none of fewer.
    let first = if words.len() == 2 { 1 } else { 0 };
    let given = |place: usize| {
        let word = place.checked_sub(first).and_then(|place| words.get(place));
        word.filter(|word| words.len() > 1 && !word.is_empty() && &***word != "-").cloned()
    };
    let class = format!("rtModel/{law}");
    let mut values = defaults.iter().enumerate().map(|(place, (key, default))| {
        let value = given(place).or_else(|| class_values::find(tcl, &class, key));
        value.unwrap_or_else(|| Value::from(*default))
    });
    let values = [(); 4].map(|()| values.next().unwrap_or_default());
    if let [word] = &words[..] {
        tcl.warn(Code::Ignored, format!("'{}' is ignored: a model has two, three or four times", &**word));
    }
    let [begin, up, down, finish] = &values;
    let begin = quantity::time(begin)?;
    let (up, down) = (quantity::delay(up, 1.0)?, quantity::delay(down, 1.0)?);
    if up.is_zero() || down.is_zero() {
        return mistake("an interval of 0 has no end of events", "write an interval above 0");
    }
    let finish = if &**finish == "-" { None } else { Some(quantity::time(finish)?) };
    if is_random {
        tcl.warn(Code::Different, "random numbers are the same in every run, and not those of ns-2");
    }
    let links = links(tcl, nodes)?;
    let model = LinkModel { place: tcl.at, links, is_random, up, down, finish };
    let at = begin.saturating_add(interval(tcl, &model, model.up));
    if finish.is_some_and(|finish| at > finish) {
        tcl.warn(Code::Unused, "this model finishes before its links go down");
        return add(tcl, Object::Other);
    }
    start(tcl, model, at, true)
}

/// The links between two nodes, or all of one.
fn links(tcl: &mut Interp, nodes: &[Value]) -> Result<Vec<usize>, Interrupt> {
    let ends = nodes.iter().map(|word| node(tcl, word)).collect::<Result<Vec<_>, _>>()?;
    let all = tcl.simulator.links.iter().enumerate();
    let found: Vec<usize> = all
        .filter(|(_, link)| ends.iter().all(|node| link.ends.contains(&LinkEnd::Node(*node))))
        .map(|(index, _)| index)
        .collect();
    tcl.spend(tcl.simulator.links.len() as u64)?;
    match found.is_empty() {
        true => mistake("no link joins these nodes", "write $ns duplex-link for them before"),
        false => Ok(found),
    }
}

fn start(tcl: &mut Interp, model: LinkModel, at: Time, is_down: bool) -> TclResult {
    let index = tcl.simulator.models.len();
    tcl.simulator.models.push(model);
    wait(tcl, at, tcl.at, PendingAct::Model(index, is_down), tcl.now.is_some());
    add(tcl, Object::Other)
}

/// Takes links down or up, and lets the model's next event wait.
pub(crate) fn happen(tcl: &mut Interp, now: Time, index: usize, is_down: bool) -> Result<(), Interrupt> {
    let model = tcl.simulator.models[index].clone();
    let act = if is_down { Act::Down } else { Act::Up };
    for &link in &model.links {
        tcl.spend(64)?;
        tcl.simulator.events.push(Event { at: now, link, ends: [true, true], act: act.clone() });
    }
    if model.up.is_zero() || model.finish.is_some_and(|finish| now >= finish) {
        return Ok(());
    }
    let is_endless = tcl.simulator.end.or(model.finish).is_none();
    let is_alone = || tcl.simulator.pending.values().all(|other| matches!(other.act, PendingAct::Model(..)));
    if is_endless && is_alone() {
        let instead = "write its finish time, {0.5 2.0 1.0 60}, or $ns at 60 \"$ns halt\"";
        return Err(Interrupt::Placed(
            model.place,
            "this model of links never ends".to_owned(),
            instead.to_owned(),
        ));
    }
    let length = interval(tcl, &model, if is_down { model.down } else { model.up });
    let next = now.saturating_add(length);
    let at = match model.finish.filter(|finish| next > *finish) {
        None => next,
        // The links that are down come up at the end.
        Some(finish) if is_down => finish,
        Some(_) => return Ok(()),
    };
    wait(tcl, at, model.place, PendingAct::Model(index, !is_down), true);
    Ok(())
}

/// An interval of a model: exact, or drawn with this mean.
fn interval(tcl: &mut Interp, model: &LinkModel, mean: Duration) -> Duration {
    if !model.is_random {
        return mean;
    }
    let rng = tcl.simulator.model_rng.get_or_insert_with(|| Rng::stream(0, STREAM));
    let uniform = (rng.unit_f64() + f64::EPSILON / 4.0).min(1.0 - f64::EPSILON);
    // At least a picosecond: an event is after the one before.
    let length = (-ln(uniform) * mean.as_ps() as f64).round().max(1.0);
    Duration::from_ps(length as u64)
}
