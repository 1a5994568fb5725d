//! The Tcl commands that descriptions of networks use.

use crate::expr::Number;
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::state::{Interp, Procedure, VALUE_MAX};
use crate::syntax::{Parser, Value, element, elements, length, list, push_element};
use fastpath_text::mistake::{Code, choice};
use std::cell::Cell;
use std::rc::Rc;

/// The commands below, for suggestions.
pub(crate) const NAMES: [&str; 39] = [
    "set",
    "unset",
    "incr",
    "append",
    "lappend",
    "expr",
    "if",
    "for",
    "foreach",
    "while",
    "proc",
    "return",
    "break",
    "continue",
    "global",
    "variable",
    "list",
    "llength",
    "lindex",
    "lrange",
    "lsearch",
    "lsort",
    "concat",
    "join",
    "split",
    "format",
    "string",
    "puts",
    "source",
    "eval",
    "catch",
    "error",
    "info",
    "array",
    "switch",
    "exit",
    "lreplace",
    "linsert",
    "namespace",
];

/// Calls a Tcl command. Returns `None` if `name` is not one.
pub(crate) fn call(tcl: &mut Interp, name: &str, words: &[Value]) -> Option<TclResult> {
    Some(match name {
        "set" | "unset" | "incr" | "append" | "lappend" | "global" | "variable" | "array" | "info" => {
            variables(tcl, name, words)
        }
        "if" => conditional(tcl, words),
        "for" | "foreach" | "while" | "switch" | "eval" | "catch" => control(tcl, name, words),
        "expr" => tcl.expr(&joined(words)).map(|number| Value::from(number.print())),
        "proc" => procedure(tcl, words),
        "namespace" => namespace(tcl, words),
        "return" => match words {
            [] => Err(Interrupt::Return(Value::default())),
            [value] => Err(Interrupt::Return(value.clone())),
            [option, .., value] if option.starts_with('-') && words.len() % 2 == 1 => {
                Err(Interrupt::Return(value.clone()))
            }
            _ => wrong("return VALUE"),
        },
        "break" => Err(Interrupt::Break),
        "continue" => Err(Interrupt::Continue),
        "list" | "llength" | "lindex" | "lrange" | "lsearch" | "lsort" | "concat" | "join" | "split"
        | "lreplace" | "linsert" => lists(tcl, name, words),
        "format" => format_words(words),
        "string" => string(tcl, words),
        "puts" => puts(tcl, words),
        "error" => mistake(format!("the script says: {}", joined(words).trim()), "correct the script"),
        "exit" => {
            if let Some(now) = tcl.now {
                tcl.simulator.end_at(now);
            }
            Err(Interrupt::Stop)
        }
        "source" => source(tcl, words),
        // Files, programs and the clock are not needed to describe a network.
        "open" | "close" | "flush" | "exec" | "after" | "update" | "package" | "clock" | "rename" => {
            tcl.warn(Code::Ignored, format!("{name} is ignored"));
            // The channel of a file is a word: procedures take it.
            Ok(Value::from(if name == "open" { "file" } else { "" }))
        }
        _ => return None,
    })
}

fn wrong(usage: &str) -> TclResult {
    let name = usage.split(' ').next().unwrap_or(usage);
    mistake(format!("wrong number of arguments for {name}"), format!("write {usage}"))
}

fn truth(number: &Number) -> Result<bool, Interrupt> {
    Ok(number.truth()?)
}

/// Words as `concat` and `eval` join them; one word keeps its place in the text.
fn joined(words: &[Value]) -> Value {
    match words {
        [word] => word.clone(),
        _ => Value::from(words.iter().map(|word| word.trim()).collect::<Vec<_>>().join(" ")),
    }
}

fn variables(tcl: &mut Interp, name: &str, words: &[Value]) -> TclResult {
    match (name, words) {
        ("set", [variable]) => tcl.get(variable),
        ("set", [variable, value]) => {
            tcl.note_set(variable, value);
            tcl.set(variable, value.clone())
        }
        ("set", _) => wrong("set NAME VALUE"),
        ("unset", names) => {
            for name in names.iter().filter(|name| &***name != "-nocomplain") {
                tcl.unset(name);
            }
            Ok(Value::default())
        }
        ("incr", [variable, by @ ..]) if by.len() < 2 => {
            let by = by.first().map_or(Ok(Number::Integer(1)), |by| tcl.expr(by))?;
            let old = tcl.get(variable)?;
            match (Number::parse(&old), by) {
                (Number::Integer(old), Number::Integer(by)) => {
                    let sum = old
                        .checked_add(by)
                        .map_or_else(|| mistake("the number is too large", "write a smaller one"), Ok)?;
                    tcl.set(variable, Value::from(sum.to_string()))
                }
                _ => mistake(format!("'{}' is not a whole number", &*old), "write one"),
            }
        }
        ("incr", _) => wrong("incr NAME ?BY?"),
        ("append", [variable, values @ ..]) => {
            tcl.note_set(variable, "");
            tcl.modify(variable, |text| values.iter().for_each(|value| text.push_str(value)))
        }
        ("lappend", [variable, values @ ..]) => {
            tcl.note_set(variable, "");
            tcl.modify(variable, |text| values.iter().for_each(|value| push_element(text, value)))
        }
        ("append" | "lappend", []) => wrong("lappend NAME VALUE…"),
        ("global", names) => {
            names.iter().for_each(|name| tcl.import(name, false));
            Ok(Value::default())
        }
        ("variable", words) => {
            for pair in words.chunks(2) {
                tcl.import(&pair[0], true);
                if let [name, value] = pair {
                    let name = format!("::{}{}", tcl.namespace(), &**name);
                    tcl.set(&name, value.clone())?;
                }
            }
            Ok(Value::default())
        }
        ("array", words) => array(tcl, words),
        (_, [question, name, ..]) if &**question == "exists" => Ok(boolean(tcl.exists(name))),
        (_, [question, name, ..]) if &**question == "procs" || &**question == "commands" => {
            Ok(if tcl.procedures.contains_key(&**name) { name.clone() } else { Value::default() })
        }
        _ => mistake("only info exists is supported", "write info exists NAME"),
    }
}

fn array(tcl: &mut Interp, words: &[Value]) -> TclResult {
    let [what, name, rest @ ..] = words else { return wrong("array names NAME") };
    match (&**what, rest) {
        ("exists", []) => Ok(boolean(!tcl.array(name)?.is_empty())),
        ("size", []) => Ok(Value::from(tcl.array(name)?.len().to_string())),
        ("names", []) => Ok(list(tcl.array(name)?.iter().map(|(index, _)| index.clone()))),
        ("names" | "get", [pattern]) => {
            let all = tcl.array(name)?;
            for (index, _) in &all {
                spend_on_match(tcl, pattern, index)?;
            }
            let found = all.iter().filter(|(index, _)| glob_match(pattern, index));
            Ok(match &**what {
                "names" => list(found.map(|(index, _)| index.as_str())),
                _ => list(found.flat_map(|(index, value)| [index.as_str(), &**value])),
            })
        }
        ("get", []) => {
            let all = tcl.array(name)?;
            Ok(list(all.iter().flat_map(|(index, value)| [index.as_str(), &**value])))
        }
        ("unset", []) => {
            tcl.unset(name);
            Ok(Value::default())
        }
        ("set", [pairs]) => {
            for pair in tcl.elements(pairs)?.chunks(2) {
                let [index, value] = pair else { return wrong("array set NAME {INDEX VALUE …}") };
                tcl.set(&format!("{}({})", &**name, &**index), value.clone())?;
            }
            Ok(Value::default())
        }
        _ => mistake(
            format!("array {} is not supported", &**what),
            "write array names, get, set, size or exists",
        ),
    }
}

fn boolean(value: bool) -> Value {
    Value::from(if value { "1" } else { "0" })
}

fn conditional(tcl: &mut Interp, words: &[Value]) -> TclResult {
    const USAGE: &str = "if {CONDITION} {BODY} elseif {CONDITION} {BODY} else {BODY}";
    let mut words = words.iter().peekable();
    loop {
        let Some(condition) = words.next() else { return wrong(USAGE) };
        words.next_if(|word| &***word == "then");
        let Some(body) = words.next() else { return wrong(USAGE) };
        if truth(&tcl.expr(condition)?)? {
            let rest: Vec<&str> = words.map(|word| &**word).collect();
            return if is_rest_of_if(&rest) { tcl.eval(body) } else { wrong(USAGE) };
        }
        match words.next() {
            None => return Ok(Value::default()),
            Some(word) if &**word == "elseif" => (),
            Some(word) => {
                let body = if &**word == "else" { words.next() } else { Some(word) };
                return match (body, words.next()) {
                    (Some(body), None) => tcl.eval(body),
                    _ => wrong(USAGE),
                };
            }
        }
    }
}

/// Whether the words after a body that is taken are those of an `if`.
fn is_rest_of_if(words: &[&str]) -> bool {
    match words {
        [] | ["else", _] => true,
        ["elseif", _, "then", _, rest @ ..] | ["elseif", _, _, rest @ ..] => is_rest_of_if(rest),
        [_] => true,
        _ => false,
    }
}

/// Evaluates the body of a loop. Returns false after `break`.
fn turn(tcl: &mut Interp, body: &Value) -> Result<bool, Interrupt> {
    match tcl.eval(body) {
        Ok(_) | Err(Interrupt::Continue) => Ok(true),
        Err(Interrupt::Break) => Ok(false),
        Err(flow) => Err(flow),
    }
}

fn control(tcl: &mut Interp, name: &str, words: &[Value]) -> TclResult {
    match (name, words) {
        ("for", [start, condition, next, body]) => {
            tcl.eval(start)?;
            while truth(&tcl.expr(condition)?)? && turn(tcl, body)? {
                tcl.eval(next)?;
            }
        }
        ("while", [condition, body]) => while truth(&tcl.expr(condition)?)? && turn(tcl, body)? {},
        ("foreach", [names, values, body]) => {
            let names = tcl.elements(names)?;
            if names.is_empty() {
                return wrong("foreach NAME {VALUES} {BODY}");
            }
            for values in tcl.elements(values)?.chunks(names.len()) {
                for (i, name) in names.iter().enumerate() {
                    tcl.set(name, values.get(i).cloned().unwrap_or_default())?;
                }
                if !turn(tcl, body)? {
                    break;
                }
            }
        }
        ("switch", words) => return switch(tcl, words),
        ("eval", [_, ..]) => return tcl.eval(&joined(words)),
        ("catch", [body, rest @ ..]) if rest.len() < 2 => {
            let outcome = tcl.eval(body);
            if let Err(Interrupt::Stop) = outcome {
                return Err(Interrupt::Stop);
            }
            let failed = outcome.is_err();
            if let [variable, ..] = rest {
                tcl.set(variable, outcome.unwrap_or_default())?;
            }
            return Ok(boolean(failed));
        }
        ("for", _) => return wrong("for {START} {CONDITION} {NEXT} {BODY}"),
        ("while", _) => return wrong("while {CONDITION} {BODY}"),
        ("foreach", _) => return wrong("foreach NAME {VALUES} {BODY}"),
        ("catch", _) => return wrong("catch {BODY} VARIABLE"),
        _ => return wrong("eval COMMAND"),
    }
    Ok(Value::default())
}

fn switch(tcl: &mut Interp, words: &[Value]) -> TclResult {
    let options = words.iter().take_while(|word| word.starts_with('-')).count();
    options_of("switch", &words[..options], &["-exact", "-glob", "--"])?;
    let glob = words[..options].iter().any(|word| &**word == "-glob");
    let (value, cases) = match &words[options..] {
        [value, cases] => (value, tcl.elements(cases)?),
        [value, cases @ ..] => (value, cases.to_vec()),
        [] => return wrong("switch VALUE {PATTERN {BODY} … default {BODY}}"),
    };
    if glob {
        let patterns = cases.iter().map(|case| case.len() as u64).sum::<u64>();
        tcl.spend(patterns.saturating_mul(value.len() as u64) / 4)?;
    }
    let matches = |pattern: &str| if glob { glob_match(pattern, value) } else { pattern == &**value };
    let mut taken = false;
    for (index, case) in cases.chunks(2).enumerate() {
        let [pattern, body] = case else { return wrong("switch VALUE {PATTERN {BODY} … default {BODY}}") };
        let last = (index + 1) * 2 == cases.len();
        taken |= matches(pattern) || (last && &**pattern == "default");
        // A body of "-" stands for the next one.
        if taken && &**body != "-" {
            return tcl.eval(body);
        }
    }
    Ok(Value::default())
}

fn procedure(tcl: &mut Interp, words: &[Value]) -> TclResult {
    let [name, parameters, body] = words else { return wrong("proc NAME {PARAMETERS} {BODY}") };
    let parameter = |word: &Value| {
        let mut parts = elements(word).into_iter();
        (parts.next().map(|name| name.to_string()).unwrap_or_default(), parts.next())
    };
    let parameters = tcl.elements(parameters)?.iter().map(parameter).collect();
    let name = match name.strip_prefix("::") {
        Some(global) => global.to_owned(),
        None => format!("{}{}", tcl.namespace(), &**name),
    };
    let namespace = name.rfind("::").map_or("", |end| &name[..end + 2]).to_owned();
    let procedure =
        Procedure { parameters, namespace, body: body.clone(), at: tcl.at, is_called: Cell::new(false) };
    tcl.procedures.insert(name, Rc::new(procedure));
    Ok(Value::default())
}

fn namespace(tcl: &mut Interp, words: &[Value]) -> TclResult {
    match words {
        [what, name, body @ ..] if &**what == "eval" && !body.is_empty() => {
            let outcome = tcl.eval_in(name, &joined(body));
            match outcome {
                Err(Interrupt::Return(value)) => Ok(value),
                other => other,
            }
        }
        [what] if &**what == "current" => {
            Ok(Value::from(format!("::{}", tcl.namespace().trim_end_matches("::"))))
        }
        [what, patterns @ ..] if &**what == "import" => {
            let patterns = patterns.iter().filter(|pattern| &***pattern != "-force");
            for pattern in patterns {
                let pattern = pattern.trim_start_matches("::");
                let (prefix, wanted) = pattern.split_at(pattern.rfind("::").map_or(0, |end| end + 2));
                let is_meant = |name: &str| wanted == "*" && !name.contains("::") || name == wanted;
                let found = tcl.procedures.iter().filter_map(|(name, procedure)| {
                    let name = name.strip_prefix(prefix).filter(|name| is_meant(name))?;
                    Some((name.to_owned(), Rc::clone(procedure)))
                });
                let found: Vec<_> = found.collect();
                tcl.procedures.extend(found);
            }
            Ok(Value::default())
        }
        [what, ..] if matches!(&**what, "export" | "forget" | "delete") => Ok(Value::default()),
        [what, name] if &**what == "exists" => {
            let prefix = format!("{}::", name.trim_start_matches("::"));
            let is_known = tcl.procedures.keys().any(|known| known.starts_with(&prefix));
            Ok(boolean(is_known || prefix == "GLOBALS::"))
        }
        _ => wrong("namespace eval NAME {BODY}"),
    }
}

fn lists(tcl: &mut Interp, name: &str, words: &[Value]) -> TclResult {
    tcl.spend(words.iter().map(|word| word.len() as u64).sum())?;
    let texts = |values: &[Value]| list(values.iter().map(|value| value.text.as_str()));
    Ok(match (name, words) {
        ("list", values) => texts(values),
        ("concat", values) => joined(values),
        ("llength", [values]) => Value::from(length(values).to_string()),
        ("lindex", [values]) => values.clone(),
        ("lindex", [values, index]) => {
            let length = if index.starts_with("end") { length(values) } else { 0 };
            position(index, length)?.and_then(|at| element(values, at)).unwrap_or_default()
        }
        ("lrange", [values, first, last]) => {
            let all = tcl.elements(values)?;
            let first = position(first, all.len())?.unwrap_or(0);
            let after = position(last, all.len())?.map_or(0, |last| last.saturating_add(1)).min(all.len());
            texts(all.get(first..after).unwrap_or_default())
        }
        ("lreplace", [values, first, last, new @ ..]) => {
            let mut all = tcl.elements(values)?;
            let first = position(first, all.len())?.unwrap_or(0).min(all.len());
            let after =
                position(last, all.len())?.map_or(0, |last| last.saturating_add(1)).clamp(first, all.len());
            all.splice(first..after, new.iter().cloned());
            texts(&all)
        }
        ("linsert", [values, at, new @ ..]) => {
            let mut all = tcl.elements(values)?;
            let at =
                if &**at == "end" { all.len() } else { position(at, all.len())?.unwrap_or(0).min(all.len()) };
            all.splice(at..at, new.iter().cloned());
            texts(&all)
        }
        ("lsearch", [options @ .., values, wanted]) => {
            options_of(name, options, &["-exact", "-glob"])?;
            let exact = options.iter().any(|option| &**option == "-exact");
            let found = |value: &Value| if exact { **value == **wanted } else { glob_match(wanted, value) };
            spend_on_match(tcl, wanted, values)?;
            Value::from(tcl.elements(values)?.iter().position(found).map_or(-1, |at| at as i64).to_string())
        }
        ("lsort", [options @ .., values]) => {
            let known = ["-ascii", "-integer", "-real", "-increasing", "-decreasing", "-unique"];
            options_of(name, options, &known)?;
            sorted(options, tcl.elements(values)?)
        }
        ("join" | "split", words) => return joined_or_split(tcl, name, words),
        _ => return wrong(&format!("{name} LIST …")),
    })
}

fn joined_or_split(tcl: &mut Interp, name: &str, words: &[Value]) -> TclResult {
    match (name, words) {
        ("join", [values, separator @ ..]) if separator.len() < 2 => {
            let separator = separator.first().map_or(" ", |separator| separator);
            if length(values).saturating_mul(separator.len()) > VALUE_MAX {
                return tcl.exhausted();
            }
            let all = tcl.elements(values)?;
            Ok(Value::from(all.iter().map(|value| value.text.as_str()).collect::<Vec<_>>().join(separator)))
        }
        ("split", [text, separators @ ..]) if separators.len() < 2 => {
            tcl.spend(text.len() as u64 * 8)?;
            let separators = separators.first().map_or(" \t\n", |separators| separators);
            Ok(match separators.is_empty() {
                true => list(text.chars().map(String::from)),
                false => list(text.split(|c| separators.contains(c))),
            })
        }
        _ => wrong(&format!("{name} LIST …")),
    }
}

/// Refuses an option of a command that is not known.
fn options_of(command: &str, options: &[Value], known: &[&str]) -> Result<(), Interrupt> {
    match options.iter().find(|option| !known.contains(&&***option)) {
        Some(option) => {
            mistake(format!("{command} has no option '{}'", &**option), choice(option, known.iter().copied()))
        }
        None => Ok(()),
    }
}

fn sorted(options: &[Value], mut values: Vec<Value>) -> Value {
    let asked = |wanted: &str| options.iter().any(|option| &**option == wanted);
    let number = |value: &Value| value.trim().parse::<f64>().unwrap_or(0.0);
    if asked("-integer") || asked("-real") {
        values.sort_by(|a, b| number(a).total_cmp(&number(b)));
    } else {
        values.sort_by(|a, b| a.text.cmp(&b.text));
    }
    if asked("-decreasing") {
        values.reverse();
    }
    if asked("-unique") {
        values.dedup_by(|a, b| a.text == b.text);
    }
    list(values.iter().map(|value| value.text.as_str()))
}

/// Parses an index: a number, `end` or `end-N`. `None` if it is before the start.
fn position(index: &Value, length: usize) -> Result<Option<usize>, Interrupt> {
    let index = index.trim();
    let number = |text: &str| {
        text.parse::<i64>()
            .map_or_else(|_| mistake(format!("'{index}' is not an index"), "write a number or end"), Ok)
    };
    let at = match index.strip_prefix("end") {
        Some("") => length as i64 - 1,
        Some(back) => (length as i64 - 1).saturating_add(number(back)?),
        None => number(index)?,
    };
    Ok(usize::try_from(at).ok())
}

fn puts(tcl: &mut Interp, words: &[Value]) -> TclResult {
    let words = match words {
        [option, rest @ ..] if &**option == "-nonewline" => rest,
        all => all,
    };
    match words {
        [text] => tcl.warn(Code::Said, format!("the script says: {}", &**text)),
        [channel, text] if matches!(&**channel, "stdout" | "stderr") => {
            tcl.warn(Code::Said, format!("the script says: {}", &**text));
        }
        // To a file that was not opened.
        [_, _] => (),
        _ => return wrong("puts TEXT"),
    }
    Ok(Value::default())
}

/// `source`: Emulab's tb_compat.tcl makes the defaults those of Emulab. Other files are not read.
fn source(tcl: &mut Interp, words: &[Value]) -> TclResult {
    let [file] = words else { return wrong("source tb_compat.tcl") };
    if file.rsplit('/').next() != Some("tb_compat.tcl") {
        return mistake(
            format!("'{}' is not read: `source` takes tb_compat.tcl only", &**file),
            "write its commands here",
        );
    }
    tcl.simulator.is_emulab = true;
    Ok(Value::default())
}

fn string(tcl: &mut Interp, words: &[Value]) -> TclResult {
    let [what, arguments @ ..] = words else { return wrong("string length TEXT") };
    // A character takes four bytes where a text is indexed.
    tcl.spend(arguments.iter().map(|text| 4 * text.len() as u64).sum())?;
    Ok(match (&**what, arguments) {
        ("length", [text]) => Value::from(text.chars().count().to_string()),
        ("tolower", [text]) => Value::from(text.to_lowercase()),
        ("toupper", [text]) => Value::from(text.to_uppercase()),
        ("trim", [text]) => Value::from(text.trim()),
        ("equal", [a, b]) => boolean(**a == **b),
        ("compare", [a, b]) => Value::from((a.text.cmp(&b.text) as i8).to_string()),
        ("match", [pattern, text]) => {
            spend_on_match(tcl, pattern, text)?;
            boolean(glob_match(pattern, text))
        }
        ("first", [wanted, text]) => {
            let at = text.find(&**wanted).map_or(-1, |at| text[..at].chars().count() as i64);
            Value::from(at.to_string())
        }
        ("index", [text, index]) => {
            let all: Vec<char> = text.chars().collect();
            let found = position(index, all.len())?.and_then(|at| all.get(at));
            Value::from(found.map(|c| c.to_string()).unwrap_or_default())
        }
        ("range", [text, first, last]) => {
            let all: Vec<char> = text.chars().collect();
            let first = position(first, all.len())?.unwrap_or(0);
            let after = position(last, all.len())?.map_or(0, |last| last.saturating_add(1)).min(all.len());
            Value::from(all.get(first..after).unwrap_or_default().iter().collect::<String>())
        }
        _ => {
            return mistake(
                format!("string {} is not supported", &**what),
                "write string length, match, range, …",
            );
        }
    })
}

/// Charges the script for comparisons of a pattern at every place of a text.
fn spend_on_match(tcl: &mut Interp, pattern: &str, text: &str) -> Result<(), Interrupt> {
    tcl.spend((pattern.len() as u64).saturating_mul(text.len() as u64) / 4)
}

/// Tcl's string match without character sets: `*` and `?` are wildcards, other characters match
/// themselves.
fn glob_match(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, t) = (after + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// `format` with %d, %i, %u, %s, %c, %f, %e, %g, %x, %X, %o and %%; flags `-` and `0`, width and
/// precision.
fn format_words(words: &[Value]) -> TclResult {
    let [template, arguments @ ..] = words else { return wrong("format TEMPLATE VALUE…") };
    let mut arguments = arguments.iter();
    let mut out = String::new();
    let mut rest = template.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut spec = String::new();
        while let Some(c) = rest.next_if(|c| matches!(c, '-' | '+' | ' ' | '#' | '.' | 'l' | 'h' | '0'..='9'))
        {
            spec.push(c);
        }
        let Some(kind) = rest.next() else { return wrong("format TEMPLATE VALUE…") };
        if kind == '%' {
            out.push('%');
            continue;
        }
        let Some(value) = arguments.next() else { return wrong("format TEMPLATE VALUE…") };
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok();
        let flags = spec.len() - spec.trim_start_matches(['-', '+', ' ', '#', '0']).len();
        let (before, precision) = spec[flags..]
            .split_once('.')
            .map_or((&spec[flags..], None), |(w, p)| (w, Some(digits(p).unwrap_or(0))));
        let width = digits(before).unwrap_or(0usize).min(1000);
        let text = convert(kind, value, precision.map(|p: usize| p.min(100)))?;
        let missing = width.saturating_sub(text.chars().count());
        let flags = &spec[..flags];
        if flags.contains('-') {
            out.extend([text.as_str(), &" ".repeat(missing)]);
        } else if flags.contains('0') && kind != 's' {
            let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
            out.extend([sign, &"0".repeat(missing), digits]);
        } else {
            out.extend([" ".repeat(missing).as_str(), &text]);
        }
        if out.len() > VALUE_MAX {
            return mistake("the text is too long", "write smaller widths");
        }
    }
    Ok(Value::from(out))
}

fn convert(kind: char, value: &Value, precision: Option<usize>) -> Result<String, Interrupt> {
    let number = Number::parse(value);
    let instead = "write a number";
    let integer = match number {
        Number::Integer(integer) => Some(integer),
        _ => None,
    };
    let real = match number {
        Number::Integer(integer) => Some(integer as f64),
        Number::Real(real) => Some(real),
        Number::Text(_) => None,
    };
    let places = precision.unwrap_or(6);
    let text = match (kind, integer, real) {
        ('s', ..) => Some(value.chars().take(precision.unwrap_or(usize::MAX)).collect()),
        ('d' | 'i' | 'u', Some(integer), _) => Some(integer.to_string()),
        ('x', Some(integer), _) => Some(format!("{integer:x}")),
        ('X', Some(integer), _) => Some(format!("{integer:X}")),
        ('o', Some(integer), _) => Some(format!("{integer:o}")),
        ('c', Some(integer), _) => u32::try_from(integer).ok().and_then(char::from_u32).map(String::from),
        ('f', _, Some(real)) => Some(format!("{real:.places$}")),
        ('e', _, Some(real)) => Some(format!("{real:.places$e}")),
        ('g', _, Some(real)) => Some(format!("{real}")),
        _ => None,
    };
    text.map_or_else(|| mistake(format!("'{}' cannot be printed as %{kind}", &**value), instead), Ok)
}

/// Substitutes variables and commands in a text that was kept in braces.
pub(crate) fn substituted(tcl: &mut Interp, text: &Value) -> TclResult {
    match Parser::quoted(text) {
        Ok(parts) => {
            tcl.spend(text.len() as u64 * 8)?;
            tcl.substitute(&parts)
        }
        Err(_) => Ok(text.clone()),
    }
}
