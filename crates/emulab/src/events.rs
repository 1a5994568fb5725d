//! Events: what `$ns at` does to links, queues, programs and the run.
//!
//! Events wait until the script has been read. Then they happen in the order of their times, as in
//! ns-2: an event may call a procedure, which may be written after the event, and which may make
//! more events. What happens to the network and to traffic is noted with its time.

use crate::objects::usage;
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{Act, Event, Object, Pending, PendingAct};
use crate::state::Interp;
use crate::syntax::Value;
use crate::{builtins, elsewhere, event_lists, programs, quantity, queues, rtmodel};
use fastpath_text::mistake::{Code, nearest};
use fastpath_units::Time;

/// The commands of `$ns` about events. `None` if `name` is another command.
pub(crate) fn simulator(tcl: &mut Interp, name: &str, words: &[Value]) -> Option<TclResult> {
    Some(match (name, words) {
        ("at", [time, act]) => at(tcl, time, act),
        ("after", [delay, act]) => after(tcl, delay, act),
        ("now", []) => now(tcl),
        ("event-timeline", []) => event_lists::new_list(tcl, false).map(|(_, handle)| handle),
        ("event-sequence", words) => event_lists::new_sequence(tcl, words),
        ("event-group", words) => event_lists::new_group(tcl, words),
        ("at", _) => usage("$ns at 10.0 \"$link delay 20ms\""),
        ("after", _) => usage("$ns after 10.0 \"$link down\""),
        ("rtmodel" | "rtmodel-at", words) => return rtmodel::simulator(tcl, name, words),
        ("now", _) => usage("$ns now"),
        ("event-timeline", _) => usage("$ns event-timeline"),
        _ => return None,
    })
}

/// `$ns at 10.0 "$link down"`.
fn at(tcl: &mut Interp, time: &Value, act: &Value) -> TclResult {
    if &**time == "swapout" {
        tcl.warn(Code::Ignored, "an event at swapout is ignored: no testbed is swapped out");
        return Ok(Value::default());
    }
    let at = quantity::time(time)?;
    if tcl.now.is_some_and(|now| at < now) {
        return mistake("this event is before the one that makes it", "write a later time");
    }
    let act = PendingAct::Script(event_lists::prepared(tcl, act)?);
    event_lists::wait(tcl, at, tcl.at, act, tcl.now.is_some());
    Ok(Value::default())
}

/// `$ns after 10.0 "$link down"`.
fn after(tcl: &mut Interp, delay: &Value, act: &Value) -> TclResult {
    let delay = quantity::delay(delay, 1.0)?;
    let act = PendingAct::Script(event_lists::prepared(tcl, act)?);
    let at = tcl.now.unwrap_or(Time::ZERO).saturating_add(delay);
    event_lists::wait(tcl, at, tcl.at, act, tcl.now.is_some());
    Ok(Value::default())
}

/// `$ns now`: seconds.
fn now(tcl: &mut Interp) -> TclResult {
    let seconds = tcl.now.unwrap_or(Time::ZERO).since(Time::ZERO).as_secs_f64();
    Ok(Value::from(format!("{seconds:?}")))
}

/// Lets all events happen, in the order of time.
pub(crate) fn happen(tcl: &mut Interp) {
    while let Some(((at, _), pending)) = tcl.simulator.pending.pop_first() {
        if tcl.is_spent {
            return;
        }
        let Pending { place, act, is_of_event } = pending;
        tcl.at = place;
        if let Some(end) = tcl.simulator.end.filter(|end| at > *end) {
            if !is_of_event {
                let end = end.since(Time::ZERO);
                tcl.warn(
                    Code::Ignored,
                    format!("this event is ignored: the script ends the run before, at {end}"),
                );
            }
            continue;
        }
        (tcl.now, tcl.is_value) = (Some(at), false);
        let outcome = match &act {
            PendingAct::Script(text) => script(tcl, at, text),
            PendingAct::Words(words) => tcl.call(words).map(drop),
            PendingAct::Model(model, is_down) => rtmodel::happen(tcl, at, *model, *is_down),
        };
        if let Err(interrupt) = outcome {
            report(tcl, place, interrupt);
        }
    }
    tcl.now = None;
}

fn report(tcl: &mut Interp, place: usize, interrupt: Interrupt) {
    match interrupt {
        Interrupt::Mistake(what, instead) => tcl.blame(place, what, instead),
        Interrupt::Placed(at, what, instead) => tcl.blame(at, what, instead),
        _ => {}
    }
}

/// Events of objects, with `;` between them, or a script.
fn script(tcl: &mut Interp, now: Time, text: &Value) -> Result<(), Interrupt> {
    if !is_object(tcl, text) {
        return procedure(tcl, now, text);
    }
    for part in event_lists::parts(text) {
        if is_object(tcl, &part) {
            let words = tcl.elements(&part)?;
            tcl.call(&words)?;
        } else if !part.trim().is_empty() {
            procedure(tcl, now, &part)?;
        }
    }
    Ok(())
}

/// Whether the first word is an object.
fn is_object(tcl: &Interp, text: &str) -> bool {
    let first = text.split_whitespace().next();
    first.is_some_and(|first| tcl.simulator.object(first).is_some())
}

/// A script whose first word is not an object: a procedure, or commands of Tcl.
fn procedure(tcl: &mut Interp, now: Time, text: &Value) -> Result<(), Interrupt> {
    let name = text.split(|c: char| c.is_whitespace() || c == ';').find(|word| !word.is_empty());
    let Some(name) = name.map(|name| name.trim_start_matches("::").to_owned()) else { return Ok(()) };
    let is_substituted = name.starts_with(['$', '[']);
    if !is_substituted && !tcl.procedures.contains_key(&name) && !builtins::NAMES.contains(&name.as_str()) {
        let known: Vec<&str> = tcl.procedures.keys().map(String::as_str).collect();
        let meant = nearest(&name, known).map_or_else(String::new, |meant| format!("; write {meant}"));
        tcl.warn(
            Code::Ignored,
            format!("this event is ignored: '{name}' is neither an object nor a procedure{meant}"),
        );
        return Ok(());
    }
    let place = tcl.at;
    tcl.is_lenient = true;
    let outcome = tcl.eval(text);
    let is_stopped = tcl.simulator.end == Some(now);
    if let Err(interrupt) = outcome {
        report(tcl, place, interrupt);
        // It would have come to its end in ns-2.
        if !is_stopped && ends_run(tcl, &name) {
            tcl.simulator.end_at(now);
        }
    }
    tcl.is_lenient = false;
    Ok(())
}

/// Whether the text of a procedure ends the run: a command `exit`, or `halt` or `stop` of the
/// simulator, which is called `ns` nearly everywhere.
fn ends_run(tcl: &Interp, name: &str) -> bool {
    let Some(procedure) = tcl.procedures.get(name) else { return false };
    let mut commands = procedure.body.split(['\n', ';', '{', '}']).map(str::split_whitespace);
    commands.any(|mut words| match (words.next(), words.next()) {
        (Some("exit"), _) => true,
        (Some("$ns" | "$ns_"), Some(word)) => matches!(word, "halt" | "stop"),
        _ => false,
    })
}

/// Whether these words, which begin after the object, are an event of it.
pub(crate) fn is_event(tcl: &Interp, object: Object, words: &[Value]) -> bool {
    let name = words.first().map_or("", |word| word.trim());
    tcl.now.is_some()
        && match object {
            Object::Link(_) | Object::Lan(_) | Object::Direction(..) => {
                !matches!(name, "queue" | "NsQueue" | "set" | "link" | "trace" | "errormodule")
            }
            Object::Queue(..) => words.len() == 3 && name == "set",
            Object::Program(_) | Object::EventList(_) | Object::Group(_) => true,
            Object::Simulator => elsewhere::ENDS.contains(&name) || elsewhere::EVENTS.contains(&name),
            _ => false,
        }
}

/// What an object does at this time.
pub(crate) fn event(tcl: &mut Interp, object: Object, words: &[Value]) -> Result<(), Interrupt> {
    let now = tcl.now.unwrap_or(Time::ZERO);
    let (links, ends, in_lan) = match object {
        Object::Program(program) => return programs::event(tcl, now, program, words),
        Object::EventList(list) => return event_lists::start(tcl, now, list, words),
        Object::Group(group) => {
            tcl.simulator.groups[group].is_used = true;
            for member in tcl.simulator.groups[group].members.clone() {
                let words: Vec<Value> = [member].iter().chain(words).cloned().collect();
                tcl.spend(64)?;
                tcl.call(&words)?;
            }
            return Ok(());
        }
        Object::Simulator => return run_event(tcl, now, words),
        Object::Lan(lan) => (tcl.simulator.lans[lan].links.clone(), [true, true], true),
        Object::Link(link) => (vec![link], [true, true], false),
        Object::Direction(link, ends) | Object::Queue(link, ends) => (vec![link], ends, false),
        _ => return Err(Interrupt::Reported),
    };
    for link in links {
        tcl.spend(64)?;
        if let Some(act) = act_of(tcl, link, ends, words, in_lan)? {
            tcl.simulator.events.push(Event { at: now, link, ends, act });
        }
    }
    Ok(())
}

fn run_event(tcl: &mut Interp, now: Time, words: &[Value]) -> Result<(), Interrupt> {
    match words {
        [name] if elsewhere::ENDS.contains(&name.trim()) => tcl.simulator.end_at(now),
        [name, ..] if elsewhere::ENDS.contains(&name.trim()) => return usage("$ns at 10.0 \"$ns halt\""),
        [name, ..] => {
            tcl.warn(Code::Ignored, format!("'{}' is ignored: it is for the machines of a testbed", &**name))
        }
        [] => {}
    }
    Ok(())
}

/// Returns what an event does with a link. A lan has half of a value at each of its sides.
fn act_of(
    tcl: &mut Interp,
    link: usize,
    ends: [bool; 2],
    words: &[Value],
    in_lan: bool,
) -> Result<Option<Act>, Interrupt> {
    let act = match (words.first().map_or("", |word| word), words.get(1..).unwrap_or_default()) {
        ("up", []) => Act::Up,
        ("down", []) => Act::Down,
        ("bandwidth", [rate]) => Act::Rate(quantity::rate(rate)?),
        ("bandwidth", [rate, both]) if &**both == "duplex" => Act::Rate(quantity::rate(rate)?),
        ("bandwidth", _) => return usage("$link bandwidth 10Mb duplex"),
        // The event agent counts in milliseconds.
        ("delay", [delay]) => {
            let delay = quantity::delay(delay, 0.001)?;
            Act::Delay(if in_lan { quantity::half(delay) } else { delay })
        }
        ("plr", [loss]) => {
            let loss = quantity::loss(loss)?;
            Act::Loss(if in_lan { quantity::root(loss) } else { loss })
        }
        ("set", [name, value]) => {
            return Ok(queues::parameter(tcl, link, ends, name, value)?.map(Act::Queue));
        }
        ("create" | "clear" | "reset", []) => {
            tcl.warn(
                Code::Ignored,
                format!("{} is ignored: it is for the machines of a testbed", &*words[0]),
            );
            return Ok(None);
        }
        (other, _) => {
            let known = ["up", "down", "bandwidth", "delay", "plr"];
            let instead = match nearest(other, known).filter(|meant| *meant != other) {
                Some(meant) => format!("write {meant}"),
                None => "write up, down, bandwidth 10Mb, delay 10ms, or plr 0.01".to_owned(),
            };
            let values = words.len().saturating_sub(1);
            return mistake(format!("'{other}' with {values} values is not an event of a link"), instead);
        }
    };
    Ok(Some(act))
}
