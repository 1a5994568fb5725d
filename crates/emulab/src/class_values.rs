//! Values of classes: `Agent/TCP set window_ 30`, `Queue/RED set thresh_ 5`. Objects that are made
//! after it have them from the start, those of classes below too.

use crate::objects::usage;
use crate::outcome::TclResult;
use crate::simulator::ClassValue;
use crate::state::Interp;
use crate::syntax::Value;
use fastpath_text::mistake::Code;

/// Classes whose objects take values: the class, or what its name begins with.
const TAKEN: [&str; 6] = ["Agent", "Application", "ErrorModel", "Queue", "rtModel", "Traffic"];
/// The most values of classes.
const VALUES_MAX: usize = 1000;

/// Whether a command is one of a class.
pub(crate) fn is_class(name: &str) -> bool {
    const OTHERS: [&str; 15] = [
        "AddrParams",
        "CBQClass",
        "CMUTrace",
        "DelayLink",
        "LL",
        "Mac",
        "Node",
        "NsQueue",
        "PacketHeaderManager",
        "QueueMonitor",
        "RouteLogic",
        "SimpleLink",
        "Simulator",
        "Trace",
        "TCPSink",
    ];
    name.contains('/') || TAKEN.contains(&name) || OTHERS.contains(&name)
}

/// A command of a class.
pub(crate) fn call(tcl: &mut Interp, class: &str, words: &[Value]) -> TclResult {
    let top = class.split('/').next().unwrap_or(class);
    match words {
        [set, key, value] if &**set == "set" && TAKEN.contains(&top) => {
            if tcl.simulator.class_values.len() == VALUES_MAX {
                return tcl.exhausted();
            }
            tcl.simulator.class_values.push(ClassValue {
                place: tcl.at,
                class: class.to_owned(),
                key: key.trim().to_owned(),
                value: value.clone(),
                is_used: false,
            });
            Ok(value.clone())
        }
        [set, key] if &**set == "set" => {
            if let Some(value) = find(tcl, class, key.trim()) {
                return Ok(value);
            }
            let what = format!("{} of {class} is not known here: it is read as 0", &**key);
            tcl.warn(Code::Different, what);
            Ok(Value::from("0"))
        }
        [set, key, _] if &**set == "set" => {
            tcl.warn(Code::Ignored, format!("{} of {class} is ignored: nothing here has it", &**key));
            Ok(Value::default())
        }
        [name, procedure, ..] if matches!(&**name, "instproc" | "proc") => {
            let what = format!("{} of {class} is ignored: no procedure of a class is called", &**procedure);
            tcl.warn(Code::Ignored, what);
            Ok(Value::default())
        }
        [] => usage(&format!("{class} set KEY VALUE")),
        words => {
            let words = words.iter().map(|word| &**word).collect::<Vec<_>>().join(" ");
            tcl.warn(Code::Ignored, format!("{class} {words} is ignored: nothing here has it"));
            Ok(Value::default())
        }
    }
}

/// The value that a class has of a key, from itself or the nearest class above.
pub(crate) fn find(tcl: &mut Interp, class: &str, key: &str) -> Option<Value> {
    let values = tcl.simulator.class_values.iter_mut().rev();
    let of_class = values.filter(|value| value.key == key && is_above(&value.class, class));
    // Of equally near ones the last.
    let found = of_class.reduce(|best, other| match other.class.len() > best.class.len() {
        true => other,
        false => best,
    })?;
    found.is_used = true;
    Some(found.value.clone())
}

/// The values that a new object of a class has, those of classes above first.
pub(crate) fn of(tcl: &mut Interp, class: &str) -> Vec<[Value; 2]> {
    let values = tcl.simulator.class_values.iter_mut().filter(|value| is_above(&value.class, class));
    let mut found: Vec<_> = values
        .map(|value| {
            value.is_used = true;
            (value.class.len(), [Value::from(value.key.as_str()), value.value.clone()])
        })
        .collect();
    found.sort_by_key(|(depth, _)| *depth);
    found.into_iter().map(|(_, pair)| pair).collect()
}

/// Whether a class is another, or above it.
fn is_above(class: &str, of: &str) -> bool {
    of.strip_prefix(class).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
