//! The parameters of queues: `$queue set limit_ 40`.

use crate::elsewhere;
use crate::objects::usage;
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{NsQueue, QueueParameter, RedSetting};
use crate::state::Interp;
use crate::syntax::Value;
use fastpath_text::mistake::{Code, nearest};
use fastpath_units::Probability;

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
    match found {
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

fn unknown<T>(name: &str) -> Result<T, Interrupt> {
    let known = PARAMETERS.into_iter().chain(elsewhere::QUEUE_PARAMETERS);
    let meant = nearest(name, known).map_or_else(|| PARAMETERS.join(", "), str::to_owned);
    mistake(format!("a queue has no '{name}'"), format!("write {meant}"))
}

fn read(tcl: &mut Interp, link: usize, ends: [bool; 2], name: &str) -> TclResult {
    let pipes = tcl.simulator.links[link].pipes.iter().zip(ends);
    let queue = pipes.filter(|(_, marked)| *marked).find_map(|(pipe, _)| pipe.as_ref());
    let queue = queue.map(|pipe| pipe.queue.clone()).unwrap_or_default();
    let NsQueue { red, gentle, ecn, in_bytes, limit, min, max, weight, linterm, mean_packet } = queue;
    let flag = |flag: bool| u8::from(flag).to_string();
    Ok(Value::from(match name {
        "limit_" => limit.to_string(),
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
const PARAMETERS: [&str; 10] = [
    "limit_",
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

fn parse(name: &str, value: &Value) -> Result<Option<QueueParameter>, Interrupt> {
    let bad = || format!("'{}' is not a value of {name}", &**value);
    let count = || match value.trim().parse::<f64>() {
        Ok(n) if (1.0..=1e9).contains(&n) => Ok(n as u32),
        _ => mistake(bad(), "write a number from 1"),
    };
    let flag = || match value.trim() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => mistake(bad(), "write true or false"),
    };
    Ok(Some(match name {
        "limit_" => QueueParameter::Limit(count()?),
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
