//! Losses of ns-2: `new ErrorModel`, and the links it is put on (tcl/lib/ns-errmodel.tcl).
//!
//! A model of packets loses each packet with the probability `rate_`, in one direction of a link.
//! Models of bits and bytes, and those with states, lists and tables, are refused.

use crate::class_values;
use crate::objects::{made, usage};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::quantity;
use crate::simulator::{Act, ErrorModel, Event, Object};
use crate::state::Interp;
use crate::syntax::Value;
use fastpath_text::mistake::{Code, choice};
use fastpath_units::Probability;

/// The commands of a model.
const METHODS: [&str; 5] = ["set", "unit", "ranvar", "drop-target", "target"];
const UNITS: [&str; 3] = ["pkt", "byte", "bit"];

/// `new ErrorModel`, `new ErrorModel/Uniform 0.01 pkt`. `None` for other classes.
pub(crate) fn new(tcl: &mut Interp, class: &str, words: &[Value]) -> Option<TclResult> {
    let kind = class.strip_prefix("ErrorModel")?;
    Some(match (kind, words) {
        ("", []) => model(tcl),
        ("/Uniform", [rate, unit @ ..]) if unit.len() < 2 => model(tcl).and_then(|handle| {
            let index = tcl.simulator.error_models.len() - 1;
            set_rate(tcl, index, rate)?;
            unit.iter().try_for_each(|unit| set_unit(tcl, index, unit))?;
            Ok(handle)
        }),
        ("" | "/Uniform", _) => usage("new ErrorModel/Uniform 0.01 pkt"),
        _ => mistake(
            format!("losses of {class} are not there: each packet is lost with the same probability"),
            "write new ErrorModel, with rate_ and unit pkt",
        ),
    })
}

fn model(tcl: &mut Interp) -> TclResult {
    let index = tcl.simulator.error_models.len();
    let (made, handle) = made(tcl, Object::ErrorModel(index))?;
    let links = Vec::new();
    tcl.simulator.error_models.push(ErrorModel {
        made,
        rate: Probability::NEVER,
        is_of_packets: true,
        links,
    });
    for [key, value] in class_values::of(tcl, "ErrorModel") {
        method(tcl, index, &[Value::from("set"), key, value])?;
    }
    Ok(handle)
}

/// A command of a model.
pub(crate) fn method(tcl: &mut Interp, index: usize, words: &[Value]) -> TclResult {
    match words {
        [set, key] if &**set == "set" && key.trim() == "rate_" => {
            tcl.warn_if_unused(key);
            Ok(Value::from(format!("{:?}", tcl.simulator.error_models[index].rate.get())))
        }
        [set, key, value] if &**set == "set" && key.trim() == "rate_" => {
            set_rate(tcl, index, value)?;
            Ok(value.clone())
        }
        [set, key, value] if &**set == "set" && matches!(key.trim(), "unit_" | "unit") => {
            set_unit(tcl, index, value)?;
            Ok(value.clone())
        }
        [set, key, ..] if &**set == "set" => {
            tcl.warn(Code::Ignored, format!("{} of an ErrorModel is ignored: rate_ is what is lost", &**key));
            Ok(Value::from("0"))
        }
        [unit, word] if &**unit == "unit" => set_unit(tcl, index, word).map(|()| Value::default()),
        [unit] if &**unit == "unit" => {
            tcl.warn_if_unused("unit");
            Ok(Value::from(if tcl.simulator.error_models[index].is_of_packets { "pkt" } else { "bit" }))
        }
        [name, variable] if &**name == "ranvar" => ranvar(tcl, variable),
        [name, ..] if matches!(&**name, "drop-target" | "target") => Ok(Value::default()),
        [name, ..] => mistake(format!("an ErrorModel has no command '{}'", &**name), choice(name, METHODS)),
        [] => usage("$em set rate_ 0.01"),
    }
}

/// A random variable from 0 to 1 is the one that a model has.
fn ranvar(tcl: &mut Interp, word: &Value) -> TclResult {
    let Some(Object::Variable(variable)) = tcl.simulator.object(word.trim()) else {
        return mistake(
            format!("'{}' is not a random variable", &**word),
            "write [new RandomVariable/Uniform]",
        );
    };
    if tcl.simulator.variables[variable].parameters != [0.0, 1.0] {
        let what = "ranvar is ignored: each packet is lost with the probability rate_, independently";
        tcl.warn(Code::Different, what);
    }
    Ok(Value::default())
}

fn set_unit(tcl: &mut Interp, index: usize, unit: &Value) -> Result<(), Interrupt> {
    let unit = unit.trim();
    if !UNITS.contains(&unit) {
        return mistake(format!("there is no unit '{unit}' of errors"), choice(unit, UNITS));
    }
    tcl.simulator.error_models[index].is_of_packets = unit == "pkt";
    let is_used = !tcl.simulator.error_models[index].links.is_empty();
    if is_used && unit != "pkt" { bytes_are_refused() } else { Ok(()) }
}

fn bytes_are_refused<T>() -> Result<T, Interrupt> {
    mistake(
        "errors of bits and bytes are not there: they depend on the sizes of packets",
        "write $em unit pkt",
    )
}

fn set_rate(tcl: &mut Interp, index: usize, rate: &Value) -> Result<(), Interrupt> {
    let rate = quantity::loss(rate)?;
    tcl.simulator.error_models[index].rate = rate;
    for (link, ends) in tcl.simulator.error_models[index].links.clone() {
        lose(tcl, link, ends, rate)?;
    }
    Ok(())
}

/// Changes the losses of the directions of a link, now.
fn lose(tcl: &mut Interp, link: usize, ends: [bool; 2], rate: Probability) -> Result<(), Interrupt> {
    tcl.spend(64)?;
    match tcl.now {
        None => tcl.simulator.change_pipes(link, ends, |pipe| pipe.loss = rate),
        Some(at) => tcl.simulator.events.push(Event { at, link, ends, act: Act::Loss(rate) }),
    }
    Ok(())
}

/// Puts a model on the directions of a link: `$ns lossmodel $em $n0 $n1`.
pub(crate) fn put(tcl: &mut Interp, word: &Value, link: usize, ends: [bool; 2]) -> TclResult {
    let index = match tcl.simulator.object(word.trim()) {
        Some(Object::ErrorModel(index)) => index,
        Some(Object::Broken) => return Err(Interrupt::Reported),
        _ => {
            return mistake(
                format!("'{}' is not an ErrorModel", &**word),
                "write set em [new ErrorModel] before",
            );
        }
    };
    let ErrorModel { rate, is_of_packets, .. } = tcl.simulator.error_models[index];
    if !is_of_packets {
        return bytes_are_refused();
    }
    tcl.simulator.error_models[index].links.push((link, ends));
    lose(tcl, link, ends, rate)?;
    Ok(Value::default())
}
