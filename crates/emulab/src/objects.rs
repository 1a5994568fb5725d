//! The objects that words name: what all files of commands share.

use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{Creation, Object, Simulator};
use crate::state::Interp;
use crate::syntax::Value;

/// Adds an object and returns its handle.
pub(crate) fn add(tcl: &mut Interp, object: Object) -> TclResult {
    match tcl.simulator.add(object) {
        Some(index) => Ok(Value::from(Simulator::handle(index))),
        None => tcl.exhausted(),
    }
}

/// Adds an object that stands at the current command. Returns it and its handle.
pub(crate) fn made(tcl: &mut Interp, object: Object) -> Result<(Creation, Value), Interrupt> {
    let Some(index) = tcl.simulator.add(object) else { return tcl.exhausted() };
    Ok((Creation { object: index, at: tcl.at }, Value::from(Simulator::handle(index))))
}

/// A mistake of a command with the wrong number of words.
pub(crate) fn usage<T>(usage: &str) -> Result<T, Interrupt> {
    mistake("wrong number of arguments", format!("write {usage}"))
}

/// Returns the object of a word. `wanted` is the expected kind, for the mistake.
pub(crate) fn object(tcl: &mut Interp, word: &Value, wanted: &str) -> Result<Object, Interrupt> {
    match tcl.simulator.object(word.trim()) {
        Some(Object::Broken) => Err(Interrupt::Reported),
        Some(object) => Ok(object),
        None => {
            mistake(format!("'{}' is not a {wanted}", &**word), format!("write the ${wanted}'s variable"))
        }
    }
}

/// Returns the node of a word.
pub(crate) fn node(tcl: &mut Interp, word: &Value) -> Result<usize, Interrupt> {
    match object(tcl, word, "node")? {
        Object::Node(node) => Ok(node),
        _ => mistake(format!("{} is not a node", shown(tcl, word)), "write a node"),
    }
}

/// Returns the name of an object, or the word.
pub(crate) fn shown(tcl: &Interp, word: &str) -> String {
    tcl.simulator.name_of(word.trim()).unwrap_or(word).to_owned()
}
