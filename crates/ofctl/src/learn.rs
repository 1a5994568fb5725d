//! The arguments of `learn`, parsed and printed.

use crate::subfield::{names_bits, parse_bits, parse_value, print_bits};
use crate::syntax::split;
use crate::{PRIORITY, Wrong, value, wrong};
use fastpath_switch::extension::{Bits, Learn, Source, Spec, Target};

/// The table of a learned flow without one.
const TABLE: u8 = 1;

/// Parses `SETTING=VALUE,…,FIELD=VALUE,…,load:…,output:…`.
pub(crate) fn parse_learn(argument: &str) -> Result<Learn, Wrong> {
    let mut learn = Learn {
        table: TABLE,
        priority: PRIORITY,
        cookie: 0,
        idle_timeout: 0,
        hard_timeout: 0,
        send_flow_rem: false,
        delete_learned: false,
        fin_idle_timeout: 0,
        fin_hard_timeout: 0,
        limit: 0,
        result: None,
        specs: Vec::new(),
    };
    for word in split(argument) {
        let (key, text) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "table" => learn.table = value::number(key, text, 254)? as u8,
            "priority" => learn.priority = value::number(key, text, 0xffff)? as u16,
            "cookie" => learn.cookie = value::number(key, text, u64::MAX)?,
            "idle_timeout" => learn.idle_timeout = value::number(key, text, 0xffff)? as u16,
            "hard_timeout" => learn.hard_timeout = value::number(key, text, 0xffff)? as u16,
            "send_flow_rem" => learn.send_flow_rem = true,
            "delete_learned" => learn.delete_learned = true,
            "fin_idle_timeout" => learn.fin_idle_timeout = value::number(key, text, 0xffff)? as u16,
            "fin_hard_timeout" => learn.fin_hard_timeout = value::number(key, text, 0xffff)? as u16,
            "limit" => learn.limit = value::number(key, text, u32::MAX.into())? as u32,
            "result_dst" => learn.result = Some(result(text)?),
            _ => learn.specs.push(spec(word)?),
        }
    }
    Ok(learn)
}

/// Parses the bit of the result.
fn result(text: &str) -> Result<Bits, Wrong> {
    let bits = parse_bits(text)?;
    match bits.width {
        1 => Ok(bits),
        width => wrong(format!("result_dst is one bit, not {width}"), "write for example result_dst=reg0[0]"),
    }
}

fn spec(word: &str) -> Result<Spec, Wrong> {
    if let Some(rest) = word.strip_prefix("output:") {
        let source = match names_bits(rest) {
            true => Source::Packet(parse_bits(rest)?),
            false => Source::Value(value::number("a port", rest, 0xffff)?.into()),
        };
        return Ok(Spec { source, target: Target::Output });
    }
    if let Some(rest) = word.strip_prefix("load:") {
        let Some((from, to)) = rest.split_once("->") else {
            return wrong(format!("load has no -> in '{rest}'"), "write load:VALUE->FIELD[]");
        };
        let to = parse_bits(to)?;
        return Ok(Spec { source: source(from, to)?, target: Target::Load(to) });
    }
    let (name, text) = word.split_once('=').unwrap_or((word, word));
    let to = parse_bits(name)?;
    Ok(Spec { source: source(text, to)?, target: Target::Match(to) })
}

/// Parses where the value for some bits comes from.
fn source(text: &str, to: Bits) -> Result<Source, Wrong> {
    if !names_bits(text) {
        return Ok(Source::Value(parse_value("a value of learn", to, text)?));
    }
    let from = parse_bits(text)?;
    match from.width == to.width {
        true => Ok(Source::Packet(from)),
        false => wrong(
            format!("{} bits of {text} do not fit {} bits", from.width, to.width),
            "write ranges of the same width: FIELD[0..15]",
        ),
    }
}

/// Prints it as [`parse_learn`] reads it.
pub(crate) fn print_learn(learn: &Learn) -> String {
    let mut words = vec![format!("table={}", learn.table)];
    let mut add = |name: &str, value: u64, usual: u64| {
        if value != usual {
            words.push(format!("{name}={value}"));
        }
    };
    add("idle_timeout", learn.idle_timeout.into(), 0);
    add("hard_timeout", learn.hard_timeout.into(), 0);
    add("fin_idle_timeout", learn.fin_idle_timeout.into(), 0);
    add("fin_hard_timeout", learn.fin_hard_timeout.into(), 0);
    add("priority", learn.priority.into(), PRIORITY.into());
    if learn.send_flow_rem {
        words.push("send_flow_rem".to_owned());
    }
    if learn.delete_learned {
        words.push("delete_learned".to_owned());
    }
    if learn.cookie != 0 {
        words.push(format!("cookie={:#x}", learn.cookie));
    }
    if learn.limit != 0 {
        words.push(format!("limit={}", learn.limit));
    }
    words.extend(learn.result.map(|bits| format!("result_dst={}", print_bits(bits))));
    words.extend(learn.specs.iter().map(print_spec));
    format!("learn({})", words.join(","))
}

fn print_spec(spec: &Spec) -> String {
    match (spec.source, spec.target) {
        (Source::Packet(from), Target::Match(to)) if from == to => print_bits(to),
        (source, Target::Match(to)) => format!("{}={}", print_bits(to), print_source(source)),
        (source, Target::Load(to)) => format!("load:{}->{}", print_source(source), print_bits(to)),
        (source, Target::Output) => format!("output:{}", print_source(source)),
    }
}

fn print_source(source: Source) -> String {
    match source {
        Source::Value(value) => format!("{value:#x}"),
        Source::Packet(bits) => print_bits(bits),
    }
}
