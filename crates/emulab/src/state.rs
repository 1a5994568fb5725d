//! The state of a script that is evaluated: its variables, procedures and objects, and its budget.
//! It evaluates nothing; `interp.rs` does.

use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::Simulator;
use crate::syntax::{Value, elements, length};
use fastpath_text::mistake::{Code, Remarks, nearest};
use fastpath_units::{Rng, Time};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The budget of a script: about 200,000 commands, or 100 megabytes of processed text. Every piece
/// of memory that evaluation holds was paid for, so the budget bounds memory too.
const FUEL: u64 = 100 << 20;
/// What a node or link adds to the budget: large networks need long loops.
const OBJECT_FUEL: u64 = 2048;
/// The cost of a command, in bytes of processed text.
pub(crate) const COMMAND_FUEL: u64 = 256;
/// The cost of a word, a part of a word, or an element of a list.
pub(crate) const WORD_FUEL: u64 = 32;
/// The most nested calls and bodies.
const DEPTH_MAX: usize = 100;
/// The most bytes of one value.
pub(crate) const VALUE_MAX: usize = 1 << 22;

/// The most warnings.
const SAID_MAX: usize = 1000;

/// Variables by name; the elements of an array as `name(index)`.
pub(crate) type Variables = BTreeMap<String, Value>;

#[derive(Debug, Default)]
pub(crate) struct CallFrame {
    pub(crate) variables: Variables,
    /// Names that refer to a variable of the global frame, and its name there.
    pub(crate) globals: BTreeMap<String, String>,
    /// The namespace that commands are evaluated in, with `::` at its end; empty: the global one.
    pub(crate) namespace: String,
    /// Variables that were set and not read, with the place of it, and those that were read.
    pub(crate) unread: BTreeMap<String, usize>,
    pub(crate) read: BTreeSet<String>,
}

/// A procedure: parameters with their defaults, and the body.
#[derive(Debug)]
pub(crate) struct Procedure {
    pub(crate) parameters: Vec<(String, Option<Value>)>,
    /// The namespace that it was written in, with `::` at its end; empty: the global one.
    pub(crate) namespace: String,
    pub(crate) body: Value,
    /// Where the script writes it.
    pub(crate) at: usize,
    pub(crate) is_called: Cell<bool>,
}

/// A script being evaluated.
pub(crate) struct Interp<'t> {
    pub(crate) remarks: Remarks<'t>,
    pub(crate) simulator: Simulator,
    pub(crate) procedures: BTreeMap<String, Rc<Procedure>>,
    pub(crate) rng: Rng,
    /// The place of the current command.
    pub(crate) at: usize,
    pub(crate) frames: Vec<CallFrame>,
    pub(crate) depth: usize,
    fuel: u64,
    /// The time of the event that happens. `None` while the script is read.
    pub(crate) now: Option<Time>,
    /// Whether a procedure is an event: what it does wrong is warned of.
    pub(crate) is_lenient: bool,
    /// Whether the budget is spent.
    pub(crate) is_spent: bool,
    /// The warnings so far: a loop repeats them.
    said: BTreeSet<(usize, String)>,
    /// Whether the command stands in brackets: its value is used.
    pub(crate) is_value: bool,
    /// The places of the commands that were evaluated.
    #[cfg(test)]
    pub(crate) visited: BTreeSet<usize>,
    /// Whether a mistake may have left variables unset. Missing variables are then not reported.
    pub(crate) incomplete: bool,
}

impl<'t> Interp<'t> {
    /// A script with the variables that it has from the start.
    pub(crate) fn new(remarks: Remarks<'t>) -> Interp<'t> {
        let mut globals = CallFrame::default();
        let given = [("argc", "0"), ("argv", ""), ("argv0", "fastpath"), ("tcl_version", "8.4")];
        // Emulab's variables of an experiment (parse.tcl).
        let emulab = ["pid", "gid", "eid", "uid"].map(|name| (name, "fastpath"));
        for (name, value) in given {
            globals.variables.insert(name.to_owned(), Value::from(value));
        }
        for (name, value) in emulab {
            globals.variables.insert(format!("GLOBALS::{name}"), Value::from(value));
        }
        Interp {
            remarks,
            simulator: Simulator::default(),
            procedures: BTreeMap::new(),
            rng: Rng::new(0),
            at: 0,
            frames: vec![globals],
            depth: 0,
            fuel: FUEL,
            now: None,
            is_lenient: false,
            is_spent: false,
            said: BTreeSet::new(),
            is_value: false,
            #[cfg(test)]
            visited: BTreeSet::new(),
            incomplete: false,
        }
    }

    /// Adds what a new node or link may cost to the budget.
    pub(crate) fn grant(&mut self) {
        self.fuel += OBJECT_FUEL;
    }

    /// Returns the elements of a list.
    pub(crate) fn elements(&mut self, list: &Value) -> Result<Vec<Value>, Interrupt> {
        self.spend(list.len() as u64 + length(list) as u64 * WORD_FUEL)?;
        Ok(elements(list))
    }

    pub(crate) fn get(&mut self, name: &str) -> TclResult {
        let (frame, name) = self.resolve(name);
        self.note_read(frame, &name);
        let variables = &self.frames[frame].variables;
        if let Some(value) = variables.get(&name) {
            return Ok(value.clone());
        }
        if self.incomplete {
            return Err(Interrupt::Reported);
        }
        let instead = match nearest(&name, variables.keys().map(String::as_str)) {
            Some(meant) => format!("write ${meant}"),
            None => format!("write set {name} … first"),
        };
        mistake(format!("there is no variable '{name}'"), instead)
    }

    /// Sets a variable. An object gets the name of the first global variable that holds it.
    pub(crate) fn set(&mut self, name: &str, value: Value) -> TclResult {
        if value.len() > VALUE_MAX {
            return self.exhausted();
        }
        self.spend((name.len() + value.len()) as u64)?;
        let (frame, name) = self.resolve(name);
        if frame == 0 {
            self.simulator.name_object(&value, &name);
        }
        self.frames[frame].variables.insert(name, value.clone());
        Ok(value)
    }

    /// Removes a variable or array. Returns whether there was one.
    pub(crate) fn unset(&mut self, name: &str) -> bool {
        let (frame, name) = self.resolve(name);
        let variables = &mut self.frames[frame].variables;
        let indices: Vec<String> = array(variables, &name).map(|(key, _)| key.clone()).collect();
        indices.iter().for_each(|key| _ = variables.remove(key));
        variables.remove(&name).is_some() || !indices.is_empty()
    }

    /// Changes a variable's text in place; a new one starts empty.
    pub(crate) fn modify(&mut self, name: &str, change: impl FnOnce(&mut String)) -> TclResult {
        let (frame, name) = self.resolve(name);
        let value = self.frames[frame].variables.entry(name).or_default();
        value.at = None;
        let text = Rc::make_mut(&mut value.text);
        let before = text.len();
        change(text);
        let (grown, len, value) = (text.len().abs_diff(before), text.len(), value.clone());
        self.spend(grown as u64)?;
        if len > VALUE_MAX { self.exhausted() } else { Ok(value) }
    }

    /// Notes that the script sets a variable here. An object gives the variable's name to what it
    /// makes, and is not noted.
    pub(crate) fn note_set(&mut self, name: &str, value: &str) {
        if self.simulator.object(value).is_some() {
            return;
        }
        let (frame, name) = self.resolve(name);
        let (base, at) = (base(&name).to_owned(), self.at);
        let frame = &mut self.frames[frame];
        if !frame.read.contains(&base) {
            frame.unread.entry(base).or_insert(at);
        }
    }

    fn note_read(&mut self, frame: usize, name: &str) {
        let base = base(name);
        let frame = &mut self.frames[frame];
        if !frame.read.contains(base) {
            frame.unread.remove(base);
            frame.read.insert(base.to_owned());
        }
    }

    /// Warns of the variables of a frame that nothing has read.
    pub(crate) fn warn_of_unread(&mut self, frame: &CallFrame) {
        for (name, &at) in &frame.unread {
            self.warn_at(Code::Unused, at, format!("the variable '{name}' is set and never read"));
        }
    }

    pub(crate) fn exists(&mut self, name: &str) -> bool {
        let (frame, name) = self.resolve(name);
        self.note_read(frame, &name);
        let variables = &self.frames[frame].variables;
        variables.contains_key(&name) || array(variables, &name).next().is_some()
    }

    /// The elements of an array as index and value, in the order of the indices.
    pub(crate) fn array(&mut self, name: &str) -> Result<Vec<(String, Value)>, Interrupt> {
        let (frame, name) = self.resolve(name);
        self.note_read(frame, &name);
        let index = |key: &String| key[name.len() + 1..key.len() - 1].to_owned();
        let count = array(&self.frames[frame].variables, &name).count();
        self.spend(count as u64 * WORD_FUEL)?;
        let pairs = array(&self.frames[frame].variables, &name);
        Ok(pairs.map(|(key, value)| (index(key), value.clone())).collect())
    }

    /// Makes a name refer to the variable of a namespace (`variable`) or to the global one
    /// (`global`) in this procedure.
    pub(crate) fn import(&mut self, name: &str, is_of_namespace: bool) {
        let name = name.strip_prefix("::").unwrap_or(name);
        let prefix = if is_of_namespace { self.namespace() } else { "" };
        let global = format!("{prefix}{name}");
        // The part after the last colons is the name here.
        let local = name.rfind("::").map_or(name, |end| &name[end + 2..]).to_owned();
        if self.frames.len() > 1 {
            self.frames.last_mut().expect("a frame").globals.insert(local, global);
        }
    }

    /// The namespace of the procedure or of `namespace eval`.
    pub(crate) fn namespace(&self) -> &str {
        &self.frames.last().expect("the global frame").namespace
    }

    /// Returns the frame of a variable and its name there. In a namespace a name is one of the
    /// namespace, or else a global one that exists.
    fn resolve(&self, name: &str) -> (usize, String) {
        let plain = name.strip_prefix("::").unwrap_or(name);
        let (base, index) = plain.split_at(plain.find('(').unwrap_or(plain.len()));
        let last = self.frames.len() - 1;
        let frame = &self.frames[last];
        if let Some(global) = frame.globals.get(base).filter(|_| name == plain) {
            return (0, format!("{global}{index}"));
        }
        if name != plain || base.contains("::") {
            return (0, plain.to_owned());
        }
        if last > 0 || frame.namespace.is_empty() {
            return (last, plain.to_owned());
        }
        let own = format!("{}{plain}", frame.namespace);
        let is_set = |name: &str, base: &str| {
            frame.variables.contains_key(name) || array(&frame.variables, base).next().is_some()
        };
        let is_only_global = !is_set(&own, &format!("{}{base}", frame.namespace)) && is_set(plain, base);
        (0, if is_only_global { plain.to_owned() } else { own })
    }

    pub(crate) fn warn(&mut self, code: Code, what: impl Into<String>) {
        self.warn_at(code, self.at, what);
    }

    /// Warns of something at a place, once.
    pub(crate) fn warn_at(&mut self, code: Code, at: usize, what: impl Into<String>) {
        let what = what.into();
        if self.said.len() < SAID_MAX && self.said.insert((at, what.clone())) {
            self.remarks.warn(code, at, what);
        }
    }

    /// Warns of a command that reads a value and does nothing with it.
    pub(crate) fn warn_if_unused(&mut self, key: &str) {
        if !self.is_value {
            self.warn(Code::Unused, format!("this reads {key} and does nothing with it"));
        }
    }

    /// Reports a mistake. In a procedure that is an event it is a warning: ns-2 would run the
    /// script up to there.
    pub(crate) fn blame(&mut self, at: usize, what: impl Into<String>, instead: impl Into<String>) {
        let (what, instead) = (what.into(), instead.into());
        match self.is_lenient {
            true => self.warn_at(
                Code::Ignored,
                at,
                format!("the rest of this event is ignored: {what}; {instead}"),
            ),
            false => self.remarks.mistake(at, what, instead),
        }
    }

    /// Spends the cost of `bytes` of text.
    pub(crate) fn spend(&mut self, bytes: u64) -> Result<(), Interrupt> {
        match self.fuel.checked_sub(bytes) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => self.exhausted(),
        }
    }

    pub(crate) fn exhausted<T>(&mut self) -> Result<T, Interrupt> {
        let what = "the script does more than a description of a network needs (an endless loop?)";
        self.is_spent = true;
        self.blame(self.at, what, "write a loop that ends");
        Err(Interrupt::Stop)
    }

    /// Counts a nested call or body. The caller subtracts it from `depth` at its end.
    pub(crate) fn deeper(&mut self) -> Result<(), Interrupt> {
        if self.depth == DEPTH_MAX {
            return mistake("calls are nested too deeply (an endless recursion?)", "write a loop instead");
        }
        self.depth += 1;
        Ok(())
    }
}

/// The name of the array of an element, or the name of a variable.
fn base(name: &str) -> &str {
    &name[..name.find('(').unwrap_or(name.len())]
}

fn array<'v>(variables: &'v Variables, name: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    let open = format!("{name}(");
    variables.range(open.clone()..).take_while(move |(key, _)| key.starts_with(&open))
}
