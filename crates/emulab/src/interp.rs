//! The Tcl interpreter. It evaluates the commands of a script within bounds. After a mistake it
//! continues with the next command, so that all mistakes are found at once.
//!
//! Evaluation is one recursion over this file, `builtins.rs` and `commands.rs`: the interpreter
//! runs commands, and a command may evaluate a script. The files of commands call the interpreter
//! by the methods of [`Interp`], whose state and type are in `state.rs`.

use crate::expr::{self, ExprError, Number, OPERATORS, Token};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::Object;
use crate::state::{COMMAND_FUEL, CallFrame, Interp, Procedure, VALUE_MAX, WORD_FUEL};
use crate::syntax::{Command, Parser, SyntaxError, Value, WordPart};
use crate::{builtins, commands, events, random};
use fastpath_text::mistake::{Code, Remarks, nearest};
use std::rc::Rc;

/// Returns a script to be evaluated, with the variables that it has from the start.
pub(crate) fn start(remarks: Remarks<'_>) -> Interp<'_> {
    let mut interp = Interp::new(remarks);
    // ns-2 has one generator from the start.
    let handle = random::new(&mut interp, "RNG").and_then(Result::ok).unwrap_or_default();
    interp.frames[0].variables.insert("defaultRNG".to_owned(), handle);
    interp
}

impl Interp<'_> {
    /// Evaluates a whole script, and the events that it makes. Mistakes are added to the remarks.
    pub(crate) fn run(&mut self, text: &str) {
        self.read(text);
        events::happen(self);
        if self.is_spent || self.incomplete {
            return;
        }
        let globals = std::mem::take(&mut self.frames[0]);
        self.warn_of_unread(&globals);
        self.frames[0] = globals;
        let idle = self.procedures.values().filter(|procedure| !procedure.is_called.get());
        let idle: Vec<usize> = idle.map(|procedure| procedure.at).collect();
        idle.into_iter().for_each(|at| self.warn_at(Code::Unused, at, "this procedure is never called"));
    }

    fn read(&mut self, text: &str) {
        let script = Value { text: Rc::new(text.to_owned()), at: Some(0) };
        let mut parser = Parser::new(&script);
        loop {
            let outcome = match parser.next() {
                Ok(None) => return,
                Ok(Some(command)) => self.pay_for(&mut parser).and_then(|()| self.command(&command, false)),
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
                    let outcome = self.pay_for(&mut parser).and_then(|()| self.command(&command, false));
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

    fn syntax_mistake(&mut self, error: SyntaxError) {
        self.blame(error.at().unwrap_or(self.at), error.to_string(), error.instead());
        self.incomplete = true;
    }

    fn command(&mut self, command: &Command, is_value: bool) -> TclResult {
        self.spend(COMMAND_FUEL)?;
        let outer = self.at;
        self.at = command.at.unwrap_or(outer);
        #[cfg(test)]
        self.visited.extend(command.at);
        let words = self.words(&command.words);
        self.is_value = is_value;
        let outcome = words.and_then(|words| self.call(&words));
        let here = std::mem::replace(&mut self.at, outer);
        match outcome {
            Err(Interrupt::Mistake(what, instead)) => Err(Interrupt::Placed(here, what, instead)),
            other => other,
        }
    }

    /// The words of each command of a script, and its place. No command is called.
    pub(crate) fn words_of(&mut self, script: &Value) -> Result<Vec<(usize, Vec<Value>)>, Interrupt> {
        let mut parser = Parser::new(script);
        let mut all = Vec::new();
        loop {
            match parser.next() {
                Ok(None) => return Ok(all),
                Ok(Some(command)) => {
                    self.pay_for(&mut parser)?;
                    let at = command.at.unwrap_or(self.at);
                    #[cfg(test)]
                    self.visited.extend(command.at);
                    all.push((at, self.words(&command.words)?));
                }
                Err(error) => {
                    self.syntax_mistake(error);
                    return Err(Interrupt::Reported);
                }
            }
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
                    last = self.command(command, true);
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
        procedure.is_called.set(true);
        self.frames.push(frame);
        let outcome = self.eval(&procedure.body);
        let frame = self.frames.pop();
        if let (Some(frame), Ok(_) | Err(Interrupt::Return(_))) = (frame, &outcome) {
            self.warn_of_unread(&frame);
        }
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
                self.refuse_broken(&value)?;
                tokens.push(Token::operand(&value));
                continue;
            }
            let rest = &text[at..];
            let length =
                if byte.is_ascii_digit() || byte == b'.' { number_length(rest) } else { word_length(rest) };
            if length > 0 {
                let word = &rest[..length];
                self.refuse_broken(word)?;
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

    /// What follows from a mistake is not reported again.
    fn refuse_broken(&self, word: &str) -> Result<(), Interrupt> {
        match self.simulator.object(word.trim()) {
            Some(Object::Broken) => Err(Interrupt::Reported),
            _ => Ok(()),
        }
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
