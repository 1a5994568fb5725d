//! The parameters of queues: `$queue set limit_ 40`.

use crate::ns_queue::{NsQueue, OtherQueue, QueueParameter};
use crate::objects::usage;
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::RedSetting;
use crate::state::Interp;
use crate::syntax::Value;
use crate::{class_values, elsewhere, ns_queue, quantity};
use fastpath_text::mistake::{Code, choice, nearest};
use fastpath_units::{Duration, Probability};

/// Returns the queue of a type, with the values of its class. A type that is not there is reported,
/// and DropTail in its place: the link is made, and what follows is checked.
pub(crate) fn of_type(tcl: &mut Interp, word: &Value) -> Result<NsQueue, Interrupt> {
    let name = word.trim();
    let Some((mut queue, said)) = NsQueue::named(name) else {
        let (what, instead) = match ns_queue::REFUSED.iter().find(|(known, _)| *known == name) {
            Some((_, why)) => {
                (format!("there is no queue like '{name}' here: {why}"), "write DropTail or RED".to_owned())
            }
            None => (format!("there is no queue type '{name}'"), choice(name, ns_queue::types())),
        };
        tcl.blame(tcl.at, what, instead);
        return Ok(NsQueue { other: Some(OtherQueue::Refused), ..NsQueue::default() });
    };
    if let Some(said) = said {
        tcl.warn(Code::Different, said);
    }
    for [key, value] in class_values::of(tcl, &format!("Queue/{name}")) {
        match parse(&key, &value)? {
            Some(parameter) => queue.set(parameter),
            None if elsewhere::QUEUE_PARAMETERS.contains(&&*key) => {
                tcl.warn(Code::Ignored, format!("{} is ignored", &*key));
            }
            None => return unknown(&key),
        }
    }
    Ok(queue)
}

/// Sets or reads a parameter of the queues at the marked ends of a link.
pub(crate) fn set(tcl: &mut Interp, link: usize, ends: [bool; 2], words: &[Value]) -> TclResult {
    match words {
        [name] => {
            tcl.warn_if_unused(name);
            read(tcl, link, ends, name)
        }
        [name, value] => {
            if let Some(parameter) = parameter(tcl, link, ends, name, value)? {
                tcl.simulator.change_pipes(link, ends, |pipe| pipe.queue.set(parameter));
            }
            Ok(value.clone())
        }
        _ => usage("$queue set limit_ 50"),
    }
}

/// Returns the parameter of these words. `None` if it is ignored, with a warning.
pub(crate) fn parameter(
    tcl: &mut Interp,
    link: usize,
    ends: [bool; 2],
    name: &Value,
    value: &Value,
) -> Result<Option<QueueParameter>, Interrupt> {
    let found = parse(name, value)?;
    if is_automatic(name, value) {
        let default = if &**name == "thresh_" { NsQueue::default().min } else { NsQueue::default().max };
        tcl.warn(Code::Different, format!("{} 0 is {default} here: ns-2 computes it", &**name));
    }
    match found {
        Some(parameter) if !has(tcl, link, ends, parameter) => {
            tcl.warn(Code::Ignored, format!("{} is ignored: this type of queue does not have it", &**name));
            return Ok(None);
        }
        Some(parameter) if parameter.is_of_red() => {
            let name = name.to_string();
            tcl.simulator.red_settings.push(RedSetting { place: tcl.at, link, ends, name });
        }
        Some(_) => {}
        None if elsewhere::QUEUE_PARAMETERS.contains(&&**name) => {
            tcl.warn(Code::Ignored, format!("{} is ignored", &**name));
        }
        None => return unknown(name),
    }
    Ok(found)
}

/// Whether the type of a queue at these ends of a link was refused.
pub(crate) fn is_refused(tcl: &Interp, link: usize, ends: [bool; 2]) -> bool {
    let mut pipes = tcl.simulator.links[link].pipes.iter().zip(ends).filter(|(_, marked)| *marked);
    pipes.any(|(pipe, _)| pipe.as_ref().is_some_and(|pipe| pipe.queue.other == Some(OtherQueue::Refused)))
}

/// Whether a queue at these ends of a link has a parameter.
fn has(tcl: &Interp, link: usize, ends: [bool; 2], parameter: QueueParameter) -> bool {
    let mut pipes = tcl.simulator.links[link].pipes.iter().zip(ends).filter(|(_, marked)| *marked);
    pipes.any(|(pipe, _)| pipe.as_ref().is_some_and(|pipe| parameter.is_of(&pipe.queue)))
}

fn unknown<T>(name: &str) -> Result<T, Interrupt> {
    let known = PARAMETERS.into_iter().chain(elsewhere::QUEUE_PARAMETERS);
    let meant = nearest(name, known).map_or_else(|| PARAMETERS.join(", "), str::to_owned);
    mistake(format!("a queue has no '{name}'"), format!("write {meant}"))
}

fn read(tcl: &mut Interp, link: usize, ends: [bool; 2], name: &str) -> TclResult {
    let pipes = tcl.simulator.links[link].pipes.iter().zip(ends);
    let queue = pipes.filter(|(_, marked)| *marked).find_map(|(pipe, _)| pipe.as_ref());
    let queue = queue.map(|pipe| pipe.queue.clone()).unwrap_or_default();
    let other = queue.other;
    let seconds = |time: Duration| format!("{:?}", time.as_secs_f64());
    Ok(Value::from(match (name, other) {
        ("buckets_" | "maxbins_", Some(OtherQueue::Fair { flows, .. })) => flows.to_string(),
        ("quantum_", Some(OtherQueue::Fair { quantum, .. })) => quantum.0.to_string(),
        ("target_", Some(OtherQueue::Fair { target, .. } | OtherQueue::CoDel { target, .. })) => {
            seconds(target)
        }
        ("interval_", Some(OtherQueue::Fair { interval, .. } | OtherQueue::CoDel { interval, .. })) => {
            seconds(interval)
        }
        (name, _) => return read_common(tcl, name, &queue),
    }))
}

/// Reads a parameter that queues of all types have.
fn read_common(tcl: &mut Interp, name: &str, queue: &NsQueue) -> TclResult {
    let NsQueue { red, gentle, ecn, in_bytes, limit, min, max, weight, linterm, mean_packet, .. } = *queue;
    let flag = |flag: bool| u8::from(flag).to_string();
    Ok(Value::from(match name {
        "limit_" | "maxqueue_" | "blimit_" => limit.to_string(),
        "thresh_" => min.to_string(),
        "maxthresh_" => max.to_string(),
        "q_weight_" => format!("{:?}", weight.get()),
        "linterm_" => format!("{linterm:?}"),
        "mean_pktsize_" => mean_packet.to_string(),
        "queue-in-bytes_" => flag(in_bytes),
        "red_" => flag(red),
        "gentle_" => flag(gentle),
        "setbit_" => flag(ecn),
        other if elsewhere::QUEUE_PARAMETERS.contains(&other) => {
            tcl.warn(
                Code::Different,
                format!("{other} is not known when the script is read: it is read as 0"),
            );
            "0".to_owned()
        }
        other => return unknown(other),
    }))
}

/// The parameters of a queue that are executed.
const PARAMETERS: [&str; 17] = [
    "limit_",
    "maxqueue_",
    "blimit_",
    "buckets_",
    "maxbins_",
    "quantum_",
    "target_",
    "interval_",
    "thresh_",
    "maxthresh_",
    "q_weight_",
    "linterm_",
    "mean_pktsize_",
    "queue-in-bytes_",
    "red_",
    "gentle_",
    "setbit_",
];

/// Whether ns-2 computes this threshold itself.
fn is_automatic(name: &str, value: &str) -> bool {
    matches!(name, "thresh_" | "maxthresh_") && value.trim().parse::<f64>() == Ok(0.0)
}

fn parse(name: &str, value: &Value) -> Result<Option<QueueParameter>, Interrupt> {
    let bad = || format!("'{}' is not a value of {name}", &**value);
    let count = || match value.trim().parse::<f64>() {
        Ok(n) if (1.0..=1e9).contains(&n) => Ok(n as u32),
        _ => mistake(bad(), "write a number from 1"),
    };
    let time = || match quantity::delay(value, 1.0)? {
        Duration::ZERO => mistake(bad(), "write seconds, such as 0.005"),
        time => Ok(time),
    };
    let flag = || match value.trim() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => mistake(bad(), "write true or false"),
    };
    Ok(Some(match name {
        "limit_" | "maxqueue_" | "blimit_" => QueueParameter::Limit(count()?),
        "buckets_" | "maxbins_" => QueueParameter::Flows(u16::try_from(count()?).unwrap_or(u16::MAX)),
        "quantum_" => QueueParameter::Quantum(count()?),
        "target_" => QueueParameter::Target(time()?),
        "interval_" => QueueParameter::Interval(time()?),
        // ns-2 computes a threshold of 0 from the rate: these are the least of what it computes.
        "thresh_" if is_automatic(name, value) => QueueParameter::Min(NsQueue::default().min),
        "maxthresh_" if is_automatic(name, value) => QueueParameter::Max(NsQueue::default().max),
        "thresh_" => QueueParameter::Min(count()?),
        "maxthresh_" => QueueParameter::Max(count()?),
        "q_weight_" => match value.trim().parse().ok().and_then(Probability::new) {
            Some(weight) => QueueParameter::Weight(weight),
            None => return mistake(bad(), "write a number from 0 to 1"),
        },
        "linterm_" => match value.trim().parse::<f64>() {
            Ok(linterm) if (1.0..=1e9).contains(&linterm) => QueueParameter::Linterm(linterm),
            _ => return mistake(bad(), "write a number from 1, such as 10"),
        },
        "mean_pktsize_" => QueueParameter::MeanPacket(count()?),
        "queue-in-bytes_" => QueueParameter::InBytes(flag()?),
        "red_" => QueueParameter::Red(flag()?),
        "gentle_" => QueueParameter::Gentle(flag()?),
        "setbit_" => QueueParameter::Ecn(flag()?),
        _ => return Ok(None),
    }))
}
