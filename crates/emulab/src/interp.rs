//! The Tcl interpreter. It evaluates the commands of a script within bounds. After a mistake it
//! continues with the next command, so that all mistakes are found at once.
//!
//! This file, `builtins.rs`, `commands.rs`, `quantity.rs` and `random.rs` use each other: the
//! interpreter runs commands, and a command may evaluate a script.

use crate::expr::{self, ExprError, Number, OPERATORS, Token};
use crate::simulator::Simulator;
use crate::syntax::{Command, Parser, SyntaxError, Value, WordPart, elements, length};
use crate::{builtins, commands, random};
use fastpath_spec::mistake::{Remarks, nearest};
use fastpath_units::Rng;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The budget of a script: about 200,000 commands, or 100 megabytes of processed text. Every piece
/// of memory that evaluation holds was paid for, so the budget bounds memory too.
const FUEL: u64 = 100 << 20;
/// What a node or link adds to the budget: large networks need long loops.
const OBJECT_FUEL: u64 = 2048;
/// The cost of a command, in bytes of processed text.
const COMMAND_FUEL: u64 = 256;
/// The cost of a word, a part of a word, or an element of a list.
const WORD_FUEL: u64 = 32;
/// The most nested calls and bodies.
const DEPTH_MAX: usize = 100;
/// The most bytes of one value.
pub(crate) const VALUE_MAX: usize = 1 << 22;

/// Why a command has no value.
#[derive(Debug)]
pub(crate) enum Interrupt {
    /// A mistake: what, and what to write.
    Mistake(String, String),
    /// A mistake with its place.
    Placed(usize, String, String),
    /// A mistake that was reported already, or follows from one that was.
    Reported,
    Break,
    Continue,
    Return(Value),
    /// Evaluation ends: by `exit`, or because the budget is spent.
    Stop,
}

pub(crate) type TclResult = Result<Value, Interrupt>;

/// A mistake to report at the command that is being evaluated.
pub(crate) fn mistake<T>(what: impl Into<String>, instead: impl Into<String>) -> Result<T, Interrupt> {
    Err(Interrupt::Mistake(what.into(), instead.into()))
}

impl From<ExprError> for Interrupt {
    fn from(error: ExprError) -> Interrupt {
        Interrupt::Mistake(error.to_string(), "write an expression such as {$i * 2 + 1}".to_owned())
    }
}

/// Variables by name; the elements of an array as `name(index)`.
type Variables = BTreeMap<String, Value>;

#[derive(Debug, Default)]
struct CallFrame {
    variables: Variables,
    /// Names that refer to a variable of the global frame, and its name there.
    globals: BTreeMap<String, String>,
    /// The namespace that commands are evaluated in, with `::` at its end; empty: the global one.
    namespace: String,
}

/// A procedure: parameters with their defaults, and the body.
#[derive(Debug)]
pub(crate) struct Procedure {
    pub(crate) parameters: Vec<(String, Option<Value>)>,
    /// The namespace that it was written in, with `::` at its end; empty: the global one.
    pub(crate) namespace: String,
    pub(crate) body: Value,
}

/// A script being evaluated.
pub(crate) struct Interp<'t> {
    pub(crate) remarks: Remarks<'t>,
    pub(crate) simulator: Simulator,
    pub(crate) procedures: BTreeMap<String, Rc<Procedure>>,
    pub(crate) rng: Rng,
    /// The place of the current command.
    pub(crate) at: usize,
    frames: Vec<CallFrame>,
    depth: usize,
    fuel: u64,
    /// Whether a mistake may have left variables unset. Missing variables are then not reported.
    incomplete: bool,
}

impl<'t> Interp<'t> {
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
        let mut interp = Interp {
            remarks,
            simulator: Simulator::default(),
            procedures: BTreeMap::new(),
            rng: Rng::new(0),
            at: 0,
            frames: vec![globals],
            depth: 0,
            fuel: FUEL,
            incomplete: false,
        };
        // ns-2 has one generator from the start.
        let handle = random::new(&mut interp, "RNG").and_then(Result::ok).unwrap_or_default();
        interp.frames[0].variables.insert("defaultRNG".to_owned(), handle);
        interp
    }

    /// Evaluates a whole script. Mistakes are added to the remarks.
    pub(crate) fn run(&mut self, text: &str) {
        let script = Value { text: Rc::new(text.to_owned()), at: Some(0) };
        let mut parser = Parser::new(&script);
        loop {
            let outcome = match parser.next() {
                Ok(None) => return,
                Ok(Some(command)) => self.pay_for(&mut parser).and_then(|()| self.command(&command)),
                Err(error) => {
                    // Where the command would have ended is not known.
                    self.syntax_mistake(error);
                    return;
                }
            };
            match outcome {
                Ok(_) => (),
                Err(Interrupt::Stop) => return,
                Err(Interrupt::Placed(at, what, instead)) => {
                    self.remarks.mistake(at, what, instead);
                    self.incomplete = true;
                }
                Err(_) => self.incomplete = true,
            }
        }
    }

    /// Evaluates a body.
    pub(crate) fn eval(&mut self, script: &Value) -> TclResult {
        self.spend(script.len() as u64)?;
        self.deeper()?;
        let mut parser = Parser::new(script);
        let mut last = Value::default();
        let outcome = loop {
            match parser.next() {
                Ok(None) => break Ok(last),
                Ok(Some(command)) => {
                    let outcome = self.pay_for(&mut parser).and_then(|()| self.command(&command));
                    match outcome {
                        Ok(value) => last = value,
                        Err(flow) => break Err(flow),
                    }
                }
                Err(error) => {
                    self.syntax_mistake(error);
                    break Err(Interrupt::Reported);
                }
            }
        };
        self.depth -= 1;
        outcome
    }

    /// Pays for the words that the parser has made since the last call.
    fn pay_for(&mut self, parser: &mut Parser) -> Result<(), Interrupt> {
        self.spend(std::mem::take(&mut parser.made) * WORD_FUEL)
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

    fn syntax_mistake(&mut self, error: SyntaxError) {
        self.remarks.mistake(error.at().unwrap_or(self.at), error.to_string(), error.instead());
        self.incomplete = true;
    }

    fn command(&mut self, command: &Command) -> TclResult {
        self.spend(COMMAND_FUEL)?;
        let outer = self.at;
        self.at = command.at.unwrap_or(outer);
        let outcome = self.words(&command.words).and_then(|words| self.call(&words));
        let here = std::mem::replace(&mut self.at, outer);
        match outcome {
            Err(Interrupt::Mistake(what, instead)) => Err(Interrupt::Placed(here, what, instead)),
            other => other,
        }
    }

    fn words(&mut self, words: &[Vec<WordPart>]) -> Result<Vec<Value>, Interrupt> {
        words.iter().map(|parts| self.substitute(parts)).collect()
    }

    /// Returns the value of a word.
    pub(crate) fn substitute(&mut self, parts: &[WordPart]) -> TclResult {
        if let [part] = parts {
            return self.part(part);
        }
        let mut text = String::new();
        for part in parts {
            let value = self.part(part)?;
            self.spend(value.len() as u64)?;
            text.push_str(&value);
            if text.len() > VALUE_MAX {
                return self.exhausted();
            }
        }
        Ok(Value::from(text))
    }

    fn part(&mut self, part: &WordPart) -> TclResult {
        match part {
            WordPart::Text(value) => Ok(value.clone()),
            WordPart::Variable { name, index: None } => self.get(name),
            WordPart::Variable { name, index: Some(index) } => {
                let index = self.substitute(index)?;
                self.get(&format!("{name}({})", &*index))
            }
            WordPart::Script(commands) => {
                self.deeper()?;
                let mut last = Ok(Value::default());
                for command in commands {
                    last = self.command(command);
                    if last.is_err() {
                        break;
                    }
                }
                self.depth -= 1;
                last
            }
        }
    }

    /// Calls the command of these words.
    pub(crate) fn call(&mut self, words: &[Value]) -> TclResult {
        let Some((name, arguments)) = words.split_first() else { return Ok(Value::default()) };
        let name: &str = name.strip_prefix("::").unwrap_or(name);
        let local = format!("{}{name}", self.namespace());
        for name in [local.as_str(), name] {
            if let Some(procedure) = self.procedures.get(name).cloned() {
                return self.call_procedure(name, &procedure, arguments);
            }
        }
        if let Some(outcome) = builtins::call(self, name, arguments) {
            return outcome;
        }
        if let Some(outcome) = commands::call(self, name, arguments) {
            return outcome;
        }
        let known = builtins::NAMES.iter().chain(&commands::NAMES).copied();
        match nearest(name, known.chain(self.procedures.keys().map(String::as_str))) {
            Some(meant) => mistake(format!("there is no command '{name}'"), format!("write {meant}")),
            None => mistake(
                format!("there is no command '{name}'"),
                "write a Tcl or Emulab command, or remove it",
            ),
        }
    }

    fn call_procedure(&mut self, name: &str, procedure: &Procedure, arguments: &[Value]) -> TclResult {
        let mut frame = CallFrame { namespace: procedure.namespace.clone(), ..CallFrame::default() };
        let mut arguments = arguments.iter();
        let last = procedure.parameters.len().wrapping_sub(1);
        for (index, (parameter, default)) in procedure.parameters.iter().enumerate() {
            let value = if index == last && parameter == "args" {
                super::syntax::list(arguments.by_ref().map(|value| value.text.as_str()))
            } else if let Some(value) = arguments.next().or(default.as_ref()) {
                value.clone()
            } else {
                return mistake(format!("{name} needs a value for {parameter}"), usage(name, procedure));
            };
            frame.variables.insert(parameter.clone(), value);
        }
        if arguments.next().is_some() {
            return mistake(format!("{name} has more arguments than parameters"), usage(name, procedure));
        }
        self.frames.push(frame);
        let outcome = self.eval(&procedure.body);
        self.frames.pop();
        match outcome {
            Err(Interrupt::Return(value)) => Ok(value),
            other => other,
        }
    }

    /// Returns the value of an expression.
    pub(crate) fn expr(&mut self, text: &Value) -> Result<Number, Interrupt> {
        // Every token has at least one byte.
        self.spend(text.len() as u64 * 8 + COMMAND_FUEL)?;
        let tokens = self.tokens(text)?;
        Ok(expr::evaluate(tokens, &mut self.rng)?)
    }

    fn tokens(&mut self, text: &Value) -> Result<Vec<Token>, Interrupt> {
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(&byte) = text.as_bytes().get(at) {
            if byte.is_ascii_whitespace() || byte == b'\\' {
                at += 1;
                continue;
            }
            let operand = match Parser::operand(text, &mut at) {
                Ok(operand) => operand,
                Err(error) => {
                    self.syntax_mistake(error);
                    return Err(Interrupt::Reported);
                }
            };
            if let Some(parts) = operand {
                let value = self.substitute(&parts)?;
                tokens.push(Token::operand(&value));
                continue;
            }
            let rest = &text[at..];
            let length =
                if byte.is_ascii_digit() || byte == b'.' { number_length(rest) } else { word_length(rest) };
            if length > 0 {
                let word = &rest[..length];
                tokens.push(match Number::parse(word) {
                    Number::Text(word) => Token::Word(word),
                    number => Token::Operand(number),
                });
                at += length;
            } else if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
                tokens.push(Token::Operator(operator));
                at += operator.len();
            } else {
                return Err(ExprError::Syntax(text.to_string()).into());
            }
        }
        Ok(tokens)
    }

    pub(crate) fn get(&mut self, name: &str) -> TclResult {
        let (frame, name) = self.resolve(name);
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

    pub(crate) fn exists(&mut self, name: &str) -> bool {
        let (frame, name) = self.resolve(name);
        let variables = &self.frames[frame].variables;
        variables.contains_key(&name) || array(variables, &name).next().is_some()
    }

    /// The elements of an array as index and value, in the order of the indices.
    pub(crate) fn array(&mut self, name: &str) -> Result<Vec<(String, Value)>, Interrupt> {
        let (frame, name) = self.resolve(name);
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

    /// Evaluates a body in a namespace of the global frame.
    pub(crate) fn eval_in(&mut self, namespace: &str, body: &Value) -> TclResult {
        let namespace = namespace.trim_start_matches("::").trim_end_matches("::");
        let outer = self.namespace().to_owned();
        let inner = if namespace.is_empty() { String::new() } else { format!("{outer}{namespace}::") };
        // Variables of the procedure around are not seen.
        let around = self.frames.split_off(1);
        let before = std::mem::replace(&mut self.frames[0].namespace, inner);
        let outcome = self.eval(body);
        self.frames[0].namespace = before;
        self.frames.extend(around);
        outcome
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

    pub(crate) fn warn(&mut self, what: impl Into<String>) {
        self.remarks.warn(self.at, what);
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
        self.remarks.mistake(self.at, what, "write a loop that ends");
        Err(Interrupt::Stop)
    }

    fn deeper(&mut self) -> Result<(), Interrupt> {
        if self.depth == DEPTH_MAX {
            return mistake("calls are nested too deeply (an endless recursion?)", "write a loop instead");
        }
        self.depth += 1;
        Ok(())
    }
}

fn array<'v>(variables: &'v Variables, name: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    let open = format!("{name}(");
    variables.range(open.clone()..).take_while(move |(key, _)| key.starts_with(&open))
}

fn usage(name: &str, procedure: &Procedure) -> String {
    let parameters = procedure.parameters.iter().map(|(name, _)| format!(" {name}"));
    format!("write {name}{}", parameters.collect::<String>())
}

/// Digits, a point, an exponent, or hexadecimal.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let part_of = |(i, byte): &(usize, &u8)| match byte {
        b'+' | b'-' => *i > 0 && !hexadecimal && matches!(bytes[i - 1], b'e' | b'E'),
        byte => byte.is_ascii_alphanumeric() || **byte == b'.',
    };
    bytes.iter().enumerate().take_while(part_of).count()
}

fn word_length(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}
