//! `ct`, parsed and printed (ovs-actions(7)).

use crate::fields::Meaning;
use crate::subfield::{parse_bits, print_bits};
use crate::syntax::{name_and_argument, split};
use crate::{PortNames, Wrong, value, wrong};
use fastpath_switch::action::Action;
use fastpath_switch::connections::{Alg, Commit, NatRequest, NatSide, NatSpec, PortChoice};
use fastpath_switch::extension::{Ct, Zone};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Parses a list of actions, as `exec` has them.
type ParseActions = fn(&str, &PortNames, Meaning) -> Result<Vec<Action>, Wrong>;

/// Parses the argument of `ct`.
pub(crate) fn parse_ct(
    argument: &str,
    (ports, meaning): (&PortNames, Meaning),
    parse_actions: ParseActions,
) -> Result<Ct, Wrong> {
    let mut ct = Ct::default();
    let mut is_forced = false;
    for word in split(argument) {
        let (name, text) = key_and_value(word)?;
        match name {
            "commit" if text.is_empty() => ct.commit = Commit::Yes,
            "force" if text.is_empty() => is_forced = true,
            "table" => ct.table = Some(value::number("table", text, 254)? as u8),
            "zone" => {
                ct.zone = match text.starts_with(|c: char| c.is_ascii_digit()) {
                    true => Zone::Number(value::number("zone", text, 0xffff)? as u16),
                    false => Zone::Field(parse_bits(text)?),
                }
            }
            "nat" => ct.nat = Some(parse_nat(text)?),
            "exec" => ct.exec = parse_actions(text, ports, meaning)?,
            "alg" => match Alg::of_name(text) {
                Some(alg) => ct.alg = Some(alg),
                None => return wrong(format!("ct has no helper '{text}'"), "write alg=ftp or alg=tftp"),
            },
            _ => {
                return wrong(
                    format!("ct has no '{word}'"),
                    "write ct(commit,force,table=N,zone=N,nat(…),exec(…),alg=ftp) with those that are needed",
                );
            }
        }
    }
    match (is_forced, ct.commit) {
        (true, Commit::No) => wrong("force stands without commit", "write ct(commit,force,…)"),
        (true, _) => Ok(Ct { commit: Commit::Force, ..ct }),
        (false, _) => Ok(ct),
    }
}

/// Splits `NAME=VALUE`, `NAME(VALUE)` or `NAME`.
fn key_and_value(word: &str) -> Result<(&str, &str), Wrong> {
    match (word.find('='), word.find('(')) {
        (Some(at), open) if open.is_none_or(|open| at < open) => Ok((&word[..at], &word[at + 1..])),
        _ => name_and_argument(word),
    }
}

/// Parses the argument of `nat`.
fn parse_nat(argument: &str) -> Result<NatRequest, Wrong> {
    let mut found = None;
    let mut spec = NatSpec {
        side: NatSide::Source,
        addresses: None,
        is_v6: false,
        ports: None,
        choice: PortChoice::Default,
        is_persistent: false,
    };
    for word in split(argument) {
        let (name, text) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "src" | "dst" => {
                let side = if name == "src" { NatSide::Source } else { NatSide::Destination };
                if found.replace(side).is_some() {
                    return wrong("nat has src or dst twice", "write one of them, once");
                }
                spec.side = side;
                if !text.is_empty() {
                    parse_range(text, &mut spec)?;
                }
            }
            "persistent" if text.is_empty() => spec.is_persistent = true,
            "hash" | "random" if text.is_empty() && spec.choice != PortChoice::Default => {
                return wrong("nat has hash and random", "write one of them");
            }
            "hash" if text.is_empty() => spec.choice = PortChoice::Hash,
            "random" if text.is_empty() => spec.choice = PortChoice::Random,
            _ => {
                return wrong(
                    format!("nat has no '{word}'"),
                    "write nat(src=ADDRESS-ADDRESS:PORT-PORT,random), nat(dst=…) or nat",
                );
            }
        }
    }
    match (found, spec.is_persistent || spec.choice != PortChoice::Default) {
        (Some(_), _) => Ok(NatRequest::New(spec)),
        (None, true) => wrong("nat has neither src nor dst", "write nat(src=…) or nat(dst=…)"),
        (None, false) => Ok(NatRequest::Existing),
    }
}

/// Parses `ADDRESS-ADDRESS:PORT-PORT`; addresses of IPv6 with ports are in brackets.
fn parse_range(text: &str, spec: &mut NatSpec) -> Result<(), Wrong> {
    let bad = || wrong(format!("nat cannot be to '{text}'"), "write ADDRESS-ADDRESS:PORT-PORT, for example");
    let is_bracketed = text.starts_with('[');
    let is_v6 = is_bracketed || text.matches(':').count() > 1;
    let (addresses, ports) = match (is_v6, is_bracketed) {
        (true, true) => match text.rfind(']') {
            Some(at) => (&text[..=at], text[at + 1..].strip_prefix(':')),
            None => return bad(),
        },
        (true, false) => (text, None),
        (false, _) => text.split_once(':').map_or((text, None), |(head, ports)| (head, Some(ports))),
    };
    if is_bracketed && ports.is_none() && !text.ends_with(']') {
        return bad();
    }
    let address = |text: &str| {
        let inside = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        match inside.parse().ok()? {
            IpAddr::V4(one) if !is_v6 => Some(u128::from(one.to_bits())),
            IpAddr::V6(one) if is_v6 => Some(one.to_bits()),
            _ => None,
        }
    };
    let (low, high) = addresses.split_once('-').unwrap_or((addresses, addresses));
    spec.is_v6 = is_v6;
    spec.addresses = match (address(low), address(high)) {
        (Some(low), Some(high)) if low <= high && low > 0 => Some((low, high)),
        _ => return bad(),
    };
    if let Some(ports) = ports {
        let (low, high) = ports.split_once('-').unwrap_or((ports, ports));
        let port = |text: &str| value::number("a port", text, 0xffff).map(|port| port as u16);
        spec.ports = match (port(low)?, port(high)?) {
            (low, high) if low <= high && low > 0 => Some((low, high)),
            _ => return bad(),
        };
    }
    Ok(())
}

/// Prints `ct`.
pub(crate) fn print_ct(ct: &Ct, print_actions: fn(&[Action]) -> String) -> String {
    let mut words = Vec::new();
    if ct.commit != Commit::No {
        words.push("commit".to_owned());
    }
    if ct.commit == Commit::Force {
        words.push("force".to_owned());
    }
    words.extend(ct.table.map(|table| format!("table={table}")));
    match ct.zone {
        Zone::Number(0) => {}
        Zone::Number(zone) => words.push(format!("zone={zone}")),
        Zone::Field(bits) => words.push(format!("zone={}", print_bits(bits))),
    }
    words.extend(ct.nat.as_ref().map(print_nat));
    if !ct.exec.is_empty() {
        words.push(format!("exec({})", print_actions(&ct.exec)));
    }
    words.extend(ct.alg.map(|alg| format!("alg={}", alg.name())));
    match words.is_empty() {
        true => "ct".to_owned(),
        false => format!("ct({})", words.join(",")),
    }
}

fn print_nat(nat: &NatRequest) -> String {
    let NatRequest::New(spec) = nat else { return "nat".to_owned() };
    let side = if spec.side == NatSide::Source { "src" } else { "dst" };
    let address = |bits: u128| match spec.is_v6 {
        false => Ipv4Addr::from_bits(bits as u32).to_string(),
        true if spec.ports.is_some() => format!("[{}]", Ipv6Addr::from_bits(bits)),
        true => Ipv6Addr::from_bits(bits).to_string(),
    };
    let mut range = String::new();
    if let Some((low, high)) = spec.addresses {
        range = format!("={}", address(low));
        if high != low {
            range += &format!("-{}", address(high));
        }
        match spec.ports {
            Some((low, high)) if low != high => range += &format!(":{low}-{high}"),
            Some((port, _)) => range += &format!(":{port}"),
            None => {}
        }
    }
    let mut words = vec![format!("{side}{range}")];
    words.extend(spec.is_persistent.then(|| "persistent".to_owned()));
    match spec.choice {
        PortChoice::Default => {}
        PortChoice::Hash => words.push("hash".to_owned()),
        PortChoice::Random => words.push("random".to_owned()),
    }
    format!("nat({})", words.join(","))
}
