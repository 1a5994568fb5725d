//! Generates or reads the tables to measure: routes, access lists, MAC tables and pipelines from a
//! seed or from a file, and the flows that match them.

use super::{Made, SwitchQuestion};
use fastpath_switch::field::Field;
use fastpath_switch::flow::WriteMetadata;
use fastpath_switch::workload::{self, Filter};
use fastpath_switch::{Action, FieldMatch, FlowMod, Instructions, Key, Limits, Match, Port, Refusal, Switch};
use fastpath_units::{Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, Tcp};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, fs, io};

/// The ingress port.
pub(super) const IN: u32 = 1;
/// The egress port.
pub(super) const OUT: u32 = 2;
/// Maximum number of generated rules.
const COUNT_MAX: usize = 2_000_000;

/// The tables to measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rules {
    /// This many IPv4 routes.
    Cidr(usize),
    /// IPv4 routes from a file, with a prefix at the start of each line.
    CidrFile(PathBuf),
    /// This many five-tuple filters.
    Acl(usize),
    /// Five-tuple filters from a file in ClassBench format.
    AclFile(PathBuf),
    /// This many MAC addresses.
    Mac(usize),
    /// Three tables: router MAC, 64 filters, 912 routes that set MACs and decrement the TTL.
    Gateway,
    /// Three tables: 16 services, 64 shares of clients each, back ends.
    LoadBalancer,
}

/// Why rules could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The name of the tables is unknown.
    #[error(
        "table {0}: not known (have: cidr:N, cidr:FILE, acl:N, acl:FILE, mac:N, pipeline:gateway, pipeline:load-balancer; N up to {COUNT_MAX})"
    )]
    Unknown(String),
    /// The file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A line is not a rule.
    #[error("{path}:{line}: not a rule: {text:?}")]
    Line {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// The file contains no rules.
    #[error("{0}: no rules")]
    Empty(String),
    /// The switch refuses the rules.
    #[error("the switch refuses the rules: {0}")]
    Refused(#[from] Refusal),
}

/// Prints the rules in the syntax of [`Rules::from_str`].
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rules::Cidr(count) => write!(f, "cidr:{count}"),
            Rules::CidrFile(file) => write!(f, "cidr:{}", file.display()),
            Rules::Acl(count) => write!(f, "acl:{count}"),
            Rules::AclFile(file) => write!(f, "acl:{}", file.display()),
            Rules::Mac(count) => write!(f, "mac:{count}"),
            Rules::Gateway => f.write_str("pipeline:gateway"),
            Rules::LoadBalancer => f.write_str("pipeline:load-balancer"),
        }
    }
}

impl FromStr for Rules {
    type Err = RulesError;

    fn from_str(text: &str) -> Result<Rules, RulesError> {
        let unknown = || RulesError::Unknown(text.to_owned());
        let (kind, what) = text.split_once(':').ok_or_else(unknown)?;
        let count = || what.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
        let is_number = what.bytes().all(|byte| byte.is_ascii_digit());
        match (kind, what) {
            ("cidr", _) if is_number => count().map(Rules::Cidr).ok_or_else(unknown),
            ("acl", _) if is_number => {
                count().filter(|count| *count <= 65_535).map(Rules::Acl).ok_or_else(unknown)
            }
            ("mac", _) => count().map(Rules::Mac).ok_or_else(unknown),
            ("cidr", file) => Ok(Rules::CidrFile(file.into())),
            ("acl", file) => Ok(Rules::AclFile(file.into())),
            ("pipeline", "gateway") => Ok(Rules::Gateway),
            ("pipeline", "load-balancer") => Ok(Rules::LoadBalancer),
            _ => Err(unknown()),
        }
    }
}

/// Returns a switch with the rules of `question`, and the matching traffic.
pub(super) fn make(question: &SwitchQuestion) -> Result<Made, RulesError> {
    let seed = question.seed;
    let one = |filters: Vec<Filter>| one_table(filters, question);
    match &question.rules {
        Rules::Cidr(count) => one(workload::routes(*count, seed)),
        Rules::CidrFile(path) => one(read(path, route)?),
        Rules::Acl(count) => one(workload::filters(*count, seed)),
        Rules::AclFile(path) => {
            let lists = read(path, classbench)?;
            // Earlier lines have higher priority.
            let falling = (0..=u16::MAX).rev().chain(std::iter::repeat(0));
            one(lists
                .into_iter()
                .zip(falling)
                .flat_map(|(list, at)| list.into_iter().map(move |m| (at, m)))
                .collect())
        }
        Rules::Mac(count) => one(workload::macs(*count, seed)),
        Rules::Gateway => gateway(question),
        Rules::LoadBalancer => load_balancer(question),
    }
}

fn empty(tables: u8, flows: usize) -> Switch {
    let flows = flows.max(1 << 20) + 4096;
    let mut switch = Switch::new(Limits { tables, flows, ..Limits::default() });
    [IN, OUT, OUT + 1].into_iter().for_each(|number| switch.set_port(number, Port::up()));
    switch
}

fn add(
    switch: &mut Switch,
    table: u8,
    (priority, matching): Filter,
    what: Instructions,
) -> Result<(), RulesError> {
    switch.flow_mod(Time::ZERO, &FlowMod::add(table, priority, matching, what))?;
    Ok(())
}

fn one_table(filters: Vec<Filter>, question: &SwitchQuestion) -> Result<Made, RulesError> {
    let mut switch = empty(1, filters.len());
    for filter in &filters {
        add(&mut switch, 0, filter.clone(), Instructions::apply([Action::output(OUT)]))?;
    }
    let keys = workload::matching_keys(&filters, question.flows, question.seed + 1);
    let frames = keys.iter().map(frame).collect();
    Ok(Made { switch, rules: filters.len(), largest: 0, follow: keys, frames })
}

fn exact(fields: &[(Field, u128)]) -> Result<Match, Refusal> {
    let fields: Vec<FieldMatch> =
        fields.iter().map(|(field, value)| FieldMatch::exact(*field, *value)).collect();
    Match::new(&fields)
}

/// Frames for the router ─▶ filters ─▶ routes that set MACs, decrement the TTL and send.
fn gateway(question: &SwitchQuestion) -> Result<Made, RulesError> {
    const ROUTER: u128 = 0x0200_0000_00fe;
    let mut switch = empty(3, 0);
    let goto = |table| Instructions { goto: Some(table), ..Instructions::default() };
    let for_router = [(Field::InPort, IN.into()), (Field::EthDst, ROUTER), (Field::EthType, 0x0800)];
    add(&mut switch, 0, (10, exact(&for_router)?), goto(1))?;
    // Denied frames end here; all others go to the routes.
    for filter in workload::filters(64, question.seed) {
        add(&mut switch, 1, filter, Instructions::default())?;
    }
    add(&mut switch, 1, (0, Match::any()), goto(2))?;
    let routes = workload::routes(912, question.seed);
    for (hop, route) in (0..).zip(&routes) {
        let next_hop = 0x0200_0001_0000 + u128::from(hop % 16u32);
        let apply = [
            Action::SetField(Field::EthSrc, ROUTER),
            Action::SetField(Field::EthDst, next_hop),
            Action::DecNwTtl,
            Action::output(OUT),
        ];
        add(&mut switch, 2, route.clone(), Instructions::apply(apply))?;
    }
    let denied: Vec<Match> = switch.tables()[1].flows().map(|(rank, _)| rank.matching().clone()).collect();
    let denied = |key: &Key| denied.iter().any(|matching| !matching.is_any() && matching.matches(key));
    let follow = workload::matching_keys(&routes, question.flows * 2, question.seed + 1);
    let keys = follow.iter().copied().filter(|key| !denied(key)).map(|mut key| {
        key.put(Field::EthDst, ROUTER);
        key
    });
    let follow: Vec<Key> = keys.take(question.flows).collect();
    let frames = follow.iter().map(frame).collect();
    Ok(Made { switch, rules: 1 + 65 + 912, largest: 2, follow, frames })
}

/// Services ─▶ shares of clients by the low bits of their addresses ─▶ back ends.
fn load_balancer(question: &SwitchQuestion) -> Result<Made, RulesError> {
    const SERVICES: u32 = 16;
    const SHARES: u32 = 64;
    let mut switch = empty(3, 0);
    let service = |n: u32| u128::from(0xc612_0000 + n);
    let tcp = |n: u32| {
        [(Field::EthType, 0x0800), (Field::IpProto, 6), (Field::Ipv4Dst, service(n)), (Field::TcpDst, 80)]
    };
    let mut shares = Vec::new();
    for n in 0..SERVICES {
        let metadata = Some(WriteMetadata { value: u64::from(n) + 1, mask: u64::MAX });
        let what = Instructions { metadata, goto: Some(1), ..Instructions::default() };
        add(&mut switch, 0, (10, exact(&tcp(n))?), what)?;
        for share in 0..SHARES {
            let client = FieldMatch::masked(Field::Ipv4Src, share.into(), u128::from(SHARES - 1));
            let kind = FieldMatch::exact(Field::EthType, 0x0800);
            let matching =
                Match::new(&[kind, FieldMatch::exact(Field::Metadata, u128::from(n) + 1), client])?;
            let backend = u128::from(0x0a00_0000 + n * 256 + share % 8);
            let apply = vec![Action::SetField(Field::Ipv4Dst, backend)];
            let what = Instructions { apply, goto: Some(2), ..Instructions::default() };
            shares.push((10, matching.clone()));
            add(&mut switch, 1, (10, matching), what)?;
        }
        for backend in 0..8u32 {
            let address = u128::from(0x0a00_0000 + n * 256 + backend);
            let matching = exact(&[(Field::EthType, 0x0800), (Field::Ipv4Dst, address)])?;
            let mac = 0x0200_0002_0000 + address % 0x1_0000;
            let apply = [Action::SetField(Field::EthDst, mac), Action::output(OUT)];
            add(&mut switch, 2, (10, matching), Instructions::apply(apply))?;
        }
    }
    let mut rng = Rng::new(question.seed);
    let mut follow = workload::random_keys(question.flows, question.seed + 1);
    let mut frames = Vec::new();
    for key in &mut follow {
        let n = rng.below(SERVICES.into()) as u32;
        tcp(n).iter().for_each(|(field, value)| key.put(*field, *value));
        frames.push(frame(key));
        // At the second table the packet carries the metadata of its service.
        key.put(Field::Metadata, u128::from(n) + 1);
    }
    let rules = SERVICES + SERVICES * SHARES + SERVICES * 8;
    Ok(Made { switch, rules: rules as usize, largest: 1, follow, frames })
}

/// Returns a frame of 60 bytes with the addresses, protocol and ports of a key.
fn frame(key: &Key) -> Vec<u8> {
    let bits = |field: Field| {
        key.words()[usize::from(field.info().word)] >> field.info().shift & field.ones() as u64
    };
    let mac = |field| {
        let [_, _, mac @ ..] = bits(field).to_be_bytes();
        MacAddr(mac)
    };
    let address = |field| Ipv4Addr::from_bits(bits(field) as u32).into();
    let from = (mac(Field::EthSrc), address(Field::Ipv4Src));
    let to = (mac(Field::EthDst), address(Field::Ipv4Dst));
    let ip = Ip { ttl: 64, ..Ip::between(from, to) };
    let (src_port, dst_port) = (bits(Field::TcpSrc) as u16, bits(Field::TcpDst) as u16);
    let mut frame = match bits(Field::IpProto) {
        6 => ip.tcp(&Tcp { src_port, dst_port, ..Tcp::default() }, b""),
        17 => ip.udp(src_port, dst_port, b""),
        other => ip.packet(other as u8, &[0; 8]),
    };
    frame.resize(60, 0);
    frame
}

fn read<T>(path: &Path, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, RulesError> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| RulesError::File { path: name.clone(), source })?;
    let mut rules = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let wrong = || RulesError::Line { path: name.clone(), line, text: text.to_owned() };
        rules.push(parse(text).ok_or_else(wrong)?);
    }
    if rules.is_empty() { Err(RulesError::Empty(name)) } else { Ok(rules) }
}

/// Parses `192.0.2.0/24`; the rest of the line is ignored.
fn route(line: &str) -> Option<Filter> {
    let (value, mask, len) = prefix(line.split([' ', '\t', ',']).next()?)?;
    let kind = FieldMatch::exact(Field::EthType, 0x0800);
    let matching = Match::new(&[kind, FieldMatch::masked(Field::Ipv4Dst, value, mask)]).ok()?;
    Some((len, matching))
}

fn prefix(text: &str) -> Option<(u128, u128, u16)> {
    let (address, len) = text.split_once('/').unwrap_or((text, "32"));
    let address: Ipv4Addr = address.parse().ok()?;
    let len: u32 = len.parse().ok().filter(|len| *len <= 32)?;
    let mask = u32::MAX.checked_shl(32 - len).unwrap_or(0);
    Some(((address.to_bits() & mask).into(), mask.into(), len as u16))
}

/// Parses `@src/len dst/len low : high low : high protocol/mask …` into one match for every pair of
/// prefixes of the port ranges.
fn classbench(line: &str) -> Option<Vec<Match>> {
    let words: Vec<&str> = line.strip_prefix('@')?.split_whitespace().collect();
    let [src, dst, src_low, ":", src_high, dst_low, ":", dst_high, protocol, ..] = words[..] else {
        return None;
    };
    let (number, mask) = protocol.split_once('/')?;
    let hex = |text: &str| u8::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let protocol = match hex(mask)? {
        0 => None,
        _ => Some(hex(number)?),
    };
    let mut common = vec![FieldMatch::exact(Field::EthType, 0x0800)];
    for (field, text) in [(Field::Ipv4Src, src), (Field::Ipv4Dst, dst)] {
        let (value, mask, _) = prefix(text)?;
        common.push(FieldMatch::masked(field, value, mask));
    }
    common.extend(protocol.map(|number| FieldMatch::exact(Field::IpProto, number.into())));
    let ports = match protocol {
        Some(6) => Some((Field::TcpSrc, Field::TcpDst)),
        Some(17) => Some((Field::UdpSrc, Field::UdpDst)),
        _ => None,
    };
    // Ports are matched for TCP and UDP only.
    let Some((src_port, dst_port)) = ports else { return Some(vec![Match::new(&common).ok()?]) };
    let mut matches = Vec::new();
    for (src, src_mask) in range(src_low.parse().ok()?, src_high.parse().ok()?)? {
        for (dst, dst_mask) in range(dst_low.parse().ok()?, dst_high.parse().ok()?)? {
            let ports = [
                FieldMatch::masked(src_port, src.into(), src_mask.into()),
                FieldMatch::masked(dst_port, dst.into(), dst_mask.into()),
            ];
            matches.push(Match::new(&[&common[..], &ports].concat()).ok()?);
        }
    }
    Some(matches)
}

/// Returns the prefixes, as value and mask, that cover the ports from `low` to `high`.
fn range(low: u16, high: u16) -> Option<Vec<(u16, u16)>> {
    let (mut low, high) = (u32::from(low), u32::from(high));
    if low > high {
        return None;
    }
    let mut prefixes = Vec::new();
    while low <= high {
        // The largest aligned block that begins at `low` and ends at or before `high`.
        let mut size = 1u32;
        while size < 0x1_0000 && low % (size * 2) == 0 && low + size * 2 - 1 <= high {
            size *= 2;
        }
        prefixes.push((low as u16, (0x1_0000 - size) as u16));
        low += size;
    }
    Some(prefixes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_range_becomes_the_fewest_prefixes() {
        assert_eq!(range(0, 65535).unwrap(), [(0, 0)]);
        assert_eq!(range(80, 80).unwrap(), [(80, 0xffff)]);
        assert_eq!(range(1024, 65535).unwrap().len(), 6);
        for port in 0..=65535u16 {
            let is_in = range(6881, 6999).unwrap().iter().any(|(value, mask)| port & mask == *value);
            assert_eq!(is_in, (6881..=6999).contains(&port));
        }
        assert_eq!(range(2, 1), None);
    }

    #[test]
    fn a_classbench_line_becomes_matches() {
        let line = "@10.0.0.0/8\t192.0.2.1/32\t0 : 65535\t80 : 81\t0x06/0xFF\t0x0000/0x0200";
        assert_eq!(classbench(line).unwrap().len(), 1);
        assert_eq!(classbench("@10.0.0.0/8\t192.0.2.1/32\t0 : 65535\t80 : 82\t0x11/0xFF").unwrap().len(), 2);
        assert_eq!(classbench("@10.0.0.0/8\t192.0.2.1/32\t0 : 65535\t80 : 82\t0x00/0x00").unwrap().len(), 1);
        assert_eq!(classbench("10.0.0.0/8 192.0.2.1/32"), None);
    }

    #[test]
    fn names_of_tables_are_parsed() {
        let rules = |text: &str| text.parse::<Rules>().ok();
        assert_eq!(rules("cidr:912"), Some(Rules::Cidr(912)));
        assert_eq!(rules("cidr:routes.txt"), Some(Rules::CidrFile("routes.txt".into())));
        for text in [
            "cidr:912",
            "cidr:routes.txt",
            "acl:7",
            "acl:a/b.txt",
            "mac:3",
            "pipeline:gateway",
            "pipeline:load-balancer",
        ] {
            assert_eq!(rules(text).map(|rules| rules.to_string()).as_deref(), Some(text));
        }
        assert_eq!(rules("pipeline:gateway"), Some(Rules::Gateway));
        assert_eq!(
            [rules("acl:70000"), rules("pipeline:x"), rules("cidr"), rules("mac:0")],
            [None, None, None, None]
        );
    }

    #[test]
    fn every_frame_of_every_table_is_forwarded() {
        for text in ["cidr:50", "acl:200", "mac:100", "pipeline:gateway", "pipeline:load-balancer"] {
            let rules = text.parse().unwrap();
            let effort = crate::Effort::Quick;
            let mut made = make(&SwitchQuestion { rules, flows: 200, seed: 3, effort }).unwrap();
            assert_eq!(made.frames.len(), 200, "{text}");
            for frame in &made.frames {
                let outcomes = fastpath_switch::interp(&mut made.switch, Time::ZERO, IN, frame);
                let is_out = |o: &fastpath_switch::PacketOutcome| matches!(o, fastpath_switch::PacketOutcome::Output { port: OUT, frame, .. } if frame.len() == 60);
                assert!(outcomes.len() == 1 && is_out(&outcomes[0]), "{text}: {outcomes:?}");
            }
        }
    }
}
