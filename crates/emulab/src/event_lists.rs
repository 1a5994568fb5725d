//! Emulab's timelines, sequences and groups of events (ns2ir: timeline.tcl, sequence.tcl,
//! event.tcl).
//!
//! A timeline has events at times from its start. The events of a sequence follow each other: each
//! waits for the end of the one before, which takes no time but for `run` of a timeline or a
//! sequence. How long a program runs is not known, so nothing can follow its `run`.

use crate::objects::{made, object, shown, usage};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{EventGroup, EventList, ListedEvent, Object, Pending, PendingAct};
use crate::state::Interp;
use crate::syntax::{Value, list};
use crate::{builtins, quantity};
use fastpath_text::mistake::{Code, nearest};
use fastpath_units::{Duration, Time};

/// The most events that events make.
const FOLLOWING_MAX: u64 = 10_000;
/// The deepest nesting of sequences.
const DEPTH_MAX: usize = 20;

/// Lets an event wait for its time.
pub(crate) fn wait(tcl: &mut Interp, at: Time, place: usize, act: PendingAct, is_of_event: bool) {
    let Some(waited) = tcl.simulator.waited.checked_add(1) else { return };
    if tcl.now.is_some() {
        tcl.simulator.following += 1;
        if tcl.simulator.following > FOLLOWING_MAX {
            tcl.warn_at(
                Code::Ignored,
                place,
                "events make events without end: this one and later ones are ignored",
            );
            return;
        }
    }
    tcl.simulator.waited = waited;
    tcl.simulator.pending.insert((at, waited), Pending { place, act, is_of_event });
}

/// What braces kept gets its variables here, so that an event in a loop has those of its turn.
/// Commands in it are evaluated at the time of the event.
pub(crate) fn prepared(tcl: &mut Interp, act: &Value) -> TclResult {
    match act.at.is_some() && act.contains('$') && !act.contains('[') {
        true => builtins::substituted(tcl, act),
        false => Ok(act.clone()),
    }
}

/// The pieces between the semicolons that are outside of braces and quotes.
pub(crate) fn parts(text: &Value) -> Vec<Value> {
    let (mut depth, mut is_quoted, mut from) = (0i32, false, 0);
    let mut ends = Vec::new();
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b'"' => is_quoted = !is_quoted,
            b';' if depth <= 0 && !is_quoted => ends.push(index),
            _ => {}
        }
    }
    ends.push(text.len());
    let piece = |end: usize| {
        let start = std::mem::replace(&mut from, end + 1);
        let at = text.at.map(|base| base + start);
        Value { at, ..Value::from(&text[start..end]) }
    };
    ends.into_iter().map(piece).collect()
}

/// Makes a timeline or a sequence. Returns its number and its handle.
pub(crate) fn new_list(tcl: &mut Interp, is_sequence: bool) -> Result<(usize, Value), Interrupt> {
    tcl.simulator.is_emulab = true;
    let index = tcl.simulator.lists.len();
    let (made, handle) = made(tcl, Object::EventList(index))?;
    tcl.simulator.lists.push(EventList { made, is_sequence, events: Vec::new(), is_started: false });
    Ok((index, handle))
}

/// `$ns event-sequence {…}`: a command a line.
pub(crate) fn new_sequence(tcl: &mut Interp, words: &[Value]) -> TclResult {
    let (index, handle) = new_list(tcl, true)?;
    if words.len() > 1 {
        tcl.warn(
            Code::Ignored,
            "what a sequence does on errors is ignored: the exit codes of programs are reported",
        );
    }
    let Some(body) = words.first() else { return Ok(handle) };
    for (place, words) in tcl.words_of(body)? {
        let event = ListedEvent { after: Duration::ZERO, place, act: PendingAct::Words(words) };
        tcl.simulator.lists[index].events.push(event);
    }
    Ok(handle)
}

/// `$timeline at 10.0 "$link down"`, `$sequence append "$link down"`.
pub(crate) fn list_method(tcl: &mut Interp, index: usize, words: &[Value]) -> TclResult {
    let is_sequence = tcl.simulator.lists[index].is_sequence;
    let (after, act) = match words {
        [at, time, act] if &**at == "at" && !is_sequence => {
            (quantity::time(time)?.since(Time::ZERO), PendingAct::Script(prepared(tcl, act)?))
        }
        [append, act] if &**append == "append" && is_sequence => {
            for part in parts(act) {
                let act = PendingAct::Words(tcl.elements(&part)?);
                let event = ListedEvent { after: Duration::ZERO, place: tcl.at, act };
                tcl.simulator.lists[index].events.push(event);
            }
            return Ok(Value::default());
        }
        [name, ..] if matches!(&**name, "start" | "run") => {
            return mistake("this is started by an event", "write $ns at 0 \"$timeline start\"");
        }
        _ if is_sequence => return usage("$sequence append \"$link down\""),
        _ => return usage("$timeline at 10.0 \"$link down\""),
    };
    let event = ListedEvent { after, place: tcl.at, act };
    tcl.simulator.lists[index].events.push(event);
    Ok(Value::default())
}

/// `$ns at 10.0 "$timeline start"`.
pub(crate) fn start(tcl: &mut Interp, now: Time, index: usize, words: &[Value]) -> Result<(), Interrupt> {
    match words {
        [name] if matches!(name.trim(), "start" | "run") => {}
        [name] if name.trim() == "reset" => {
            tcl.warn(Code::Ignored, "reset is ignored: each start of a timeline or sequence begins again");
            return Ok(());
        }
        [name, ..] => {
            let meant = nearest(name, ["start", "run", "reset"]).unwrap_or("start");
            let what = format!("'{}' is not an event of a timeline or sequence", &**name);
            return mistake(what, format!("write {meant}"));
        }
        [] => return usage("$ns at 10.0 \"$timeline start\""),
    }
    expand(tcl, now, index, 0)
}

/// Lets the events of a list wait for their times. What a sequence waits for comes before its next
/// event, at equal times too.
fn expand(tcl: &mut Interp, now: Time, index: usize, depth: usize) -> Result<(), Interrupt> {
    tcl.simulator.lists[index].is_started = true;
    let EventList { is_sequence, events, .. } = tcl.simulator.lists[index].clone();
    let mut following = Some(Duration::ZERO);
    for ListedEvent { after, place, act } in events {
        tcl.spend(64)?;
        let after = match is_sequence {
            false => after,
            true => match following {
                Some(after) => {
                    following = duration(tcl, &act, 0).map(|length| after.saturating_add(length));
                    after
                }
                None => {
                    let what = "this event waits for the end of a program, and when that is is not known";
                    let instead = "write $program start before it, or $ns at 10.0 with this event";
                    tcl.blame(place, what, instead);
                    return Ok(());
                }
            },
        };
        let at = now.saturating_add(after);
        match run_list(tcl, &act).filter(|_| is_sequence && depth < DEPTH_MAX) {
            Some(list) => expand(tcl, at, list, depth + 1)?,
            None => wait(tcl, at, place, act, false),
        }
    }
    Ok(())
}

/// The list that an event runs and waits for.
fn run_list(tcl: &Interp, act: &PendingAct) -> Option<usize> {
    let PendingAct::Words(words) = act else { return None };
    match &words[..] {
        [name, verb] if verb.trim() == "run" => match tcl.simulator.object(name.trim()) {
            Some(Object::EventList(list)) => Some(list),
            _ => None,
        },
        _ => None,
    }
}

/// How long a sequence waits for an event of it. `None` if that is not known.
fn duration(tcl: &Interp, act: &PendingAct, depth: usize) -> Option<Duration> {
    let PendingAct::Words(words) = act else { return Some(Duration::ZERO) };
    let [name, verb, ..] = &words[..] else { return Some(Duration::ZERO) };
    if verb.trim() != "run" {
        return Some(Duration::ZERO);
    }
    match tcl.simulator.object(name.trim()) {
        Some(Object::EventList(index)) => {
            let list = &tcl.simulator.lists[index];
            let ends = |event: &ListedEvent| match list.is_sequence {
                true if depth < DEPTH_MAX => duration(tcl, &event.act, depth + 1),
                true => None,
                false => Some(event.after),
            };
            let lengths: Option<Vec<Duration>> = list.events.iter().map(ends).collect();
            let lengths = lengths?.into_iter();
            Some(match list.is_sequence {
                true => lengths.fold(Duration::ZERO, Duration::saturating_add),
                false => lengths.max().unwrap_or(Duration::ZERO),
            })
        }
        Some(Object::Program(_) | Object::Group(_)) => None,
        _ => Some(Duration::ZERO),
    }
}

/// `new EventGroup $ns`, `$ns event-group "$a $b"`.
pub(crate) fn new_group(tcl: &mut Interp, words: &[Value]) -> TclResult {
    tcl.simulator.is_emulab = true;
    let index = tcl.simulator.groups.len();
    let (made, handle) = made(tcl, Object::Group(index))?;
    tcl.simulator.groups.push(EventGroup { made, members: Vec::new(), is_used: false });
    match words {
        [] => {}
        [members] => {
            let members = tcl.elements(members)?;
            add_members(tcl, index, &members)?;
        }
        _ => return usage("$ns event-group \"$link0 $link1\""),
    }
    Ok(handle)
}

/// `$group add $link0 $link1`.
pub(crate) fn group_method(tcl: &mut Interp, index: usize, words: &[Value]) -> TclResult {
    match words {
        [add, members @ ..] if &**add == "add" && !members.is_empty() => {
            add_members(tcl, index, members)?;
            Ok(Value::default())
        }
        [members] if &**members == "members" => {
            Ok(list(tcl.simulator.groups[index].members.iter().map(|member| member.text.as_str())))
        }
        _ => usage("$group add $link0 $link1"),
    }
}

fn add_members(tcl: &mut Interp, index: usize, members: &[Value]) -> Result<(), Interrupt> {
    let kind = |object: Object| match object {
        Object::Link(_) | Object::Lan(_) => Some("link"),
        Object::Queue(..) => Some("queue"),
        Object::Program(_) => Some("program"),
        Object::Source(_) | Object::Agent(_) => Some("source"),
        Object::Node(_) => Some("node"),
        _ => None,
    };
    for word in members {
        let Some(own) = kind(object(tcl, word, "link")?) else {
            let what = format!("{} cannot be in a group of events", shown(tcl, word));
            return mistake(what, "write links, queues, programs or sources of traffic");
        };
        let first = tcl.simulator.groups[index].members.first();
        let other = first.and_then(|member| kind(tcl.simulator.object(member)?));
        if other.is_some_and(|other| other != own) {
            let what = format!("{} is not of the kind of the group's others", shown(tcl, word));
            return mistake(what, "write a group for each kind");
        }
        if tcl.simulator.groups[index].members.iter().any(|member| **member == **word) {
            tcl.warn(Code::Unused, format!("{} is in the group already", shown(tcl, word)));
            continue;
        }
        tcl.simulator.groups[index].members.push(word.clone());
    }
    Ok(())
}
