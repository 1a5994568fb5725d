//! Subnets of links: pools (`addressing:`), named prefixes (`prefix:` at the top) and the prefixes
//! of links (netlab, `addressing.md`).

use super::known::{Ignored, Level};
use super::tables::merged;
use crate::fields::{map, truth, truth_of, whole};
use crate::yaml::{Yaml, kind};
use fastpath_text::fields::Fields;
use fastpath_text::mistake::{Code, Remarks, choice};
use fastpath_text::tree::{Placed, Tree, TreeEntry, TreeTable};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// netlab's own pools, with the length of their subnets.
const OWN: [(&str, &str, u8); 6] = [
    ("lan", "172.16.0.0/16", 24),
    ("p2p", "10.1.0.0/16", 30),
    ("loopback", "10.0.0.0/24", 32),
    ("router_id", "10.0.0.0/24", 32),
    ("vrf_loopback", "10.2.0.0/24", 32),
    ("mgmt", "192.168.121.0/24", 24),
];

/// The rules by which nodes get addresses of a subnet.
const ALLOCATIONS: [&str; 3] = ["p2p", "sequential", "id_based"];

/// How the nodes on a link get their addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Allocation {
    P2p,
    Sequential,
    IdBased,
}

impl Allocation {
    /// Returns the rule of a word.
    pub(super) fn of(word: &str) -> Option<Allocation> {
        let rules = [Allocation::P2p, Allocation::Sequential, Allocation::IdBased];
        ALLOCATIONS.iter().position(|known| *known == word).map(|found| rules[found])
    }
}

/// The addresses on a link: of IPv4 and IPv6.
#[derive(Clone, Default, Debug)]
pub(super) struct Prefix {
    pub(super) nets: [Option<IpNet>; 2],
    pub(super) allocation: Option<Allocation>,
}

/// A pool.
struct Pool {
    /// Where its author names it; `None`: it is netlab's.
    at: Option<usize>,
    /// Of IPv4 and IPv6: the whole, the length of a subnet, and the number of the next.
    nets: [Option<(IpNet, u8, u128)>; 2],
    allocation: Option<Allocation>,
    is_used: bool,
}

/// A named prefix.
struct Named {
    at: usize,
    prefix: Prefix,
    is_used: bool,
}

/// The pools and named prefixes of a topology.
pub(super) struct Pools {
    pools: BTreeMap<String, Pool>,
    named: BTreeMap<String, Named>,
}

impl Pools {
    /// Reads the pools, those of `defaults` first, and the named prefixes.
    pub(super) fn read(
        [defaults, own, named]: [Option<&Yaml>; 3],
        ignored: &mut Ignored,
        remarks: &mut Remarks,
    ) -> Pools {
        let defaults = defaults.map(|yaml| in_maps(yaml, "defaults.addressing", remarks)).unwrap_or_default();
        let own = own.map(|yaml| in_maps(yaml, "addressing", remarks)).unwrap_or_default();
        let given = merged(&defaults, &own);
        let mut pools = BTreeMap::new();
        for (name, net, length) in OWN {
            let net = net.parse().expect("a prefix of netlab");
            let nets = [Some((net, length, first(name, 0, length))), None];
            pools.insert(name.to_owned(), Pool { at: None, nets, allocation: None, is_used: false });
        }
        let empty = Pool { at: None, nets: [None; 2], allocation: None, is_used: false };
        pools.insert("l2only".to_owned(), empty);
        for entry in &given.entries {
            let pool = pool(entry, pools.remove(&*entry.key), ignored, remarks);
            pools.insert(entry.key.to_string(), pool);
        }
        let mut all = Pools { pools, named: BTreeMap::new() };
        if let Some(yaml) = named {
            for entry in &map("prefix", yaml, remarks).source().entries {
                let prefix = all.prefix_of(&entry.placed, &entry.key, remarks);
                let named = Named { at: entry.key_at, prefix, is_used: false };
                all.named.insert(entry.key.to_string(), named);
            }
        }
        all
    }

    /// Reads a named prefix: text, or a map, which may take a subnet of a pool.
    fn prefix_of(&mut self, yaml: &Yaml, name: &str, remarks: &mut Remarks) -> Prefix {
        if yaml.scalar().is_some() {
            return Prefix { nets: [net(yaml, 0, remarks), None], allocation: None };
        }
        let mut fields = map(format!("prefix {name}"), yaml, remarks);
        let pool = fields.placed("pool");
        let mut prefix = prefix(&mut fields, remarks);
        fields.finish(remarks);
        if let Some(yaml) = pool {
            let of_pool = self.pool(yaml, remarks).and_then(|pool| self.next(&pool, yaml.at, remarks));
            let Prefix { nets, allocation } = of_pool.unwrap_or_default();
            prefix.nets = [nets[0].or(prefix.nets[0]), nets[1].or(prefix.nets[1])];
            prefix.allocation = prefix.allocation.or(allocation);
        }
        prefix
    }

    /// Reads the `prefix` of a link. `None`: it takes a subnet of a pool, perhaps with an
    /// allocation of its own.
    pub(super) fn given(&mut self, yaml: &Yaml, remarks: &mut Remarks) -> Option<Prefix> {
        match (&yaml.value, truth(yaml)) {
            (_, Some(false)) => Some(Prefix::default()),
            (Tree::Table(_), _) => {
                let mut fields = map("prefix", yaml, remarks);
                let has_net = ["ipv4", "ipv6"].iter().any(|key| fields.peek(key).is_some());
                let prefix = prefix(&mut fields, remarks);
                fields.finish(remarks);
                has_net.then_some(prefix)
            }
            (Tree::Text(name), None) => {
                if let Some(named) = self.named.get_mut(&**name) {
                    named.is_used = true;
                    return Some(named.prefix.clone());
                }
                if name.contains(['.', '/']) || self.named.is_empty() {
                    return Some(Prefix { nets: [net(yaml, 0, remarks), None], allocation: None });
                }
                let what = format!("there is no prefix '{}'", name.escape_debug());
                remarks.mistake(yaml.at, what, choice(name, self.named.keys().map(String::as_str)));
                Some(Prefix::default())
            }
            _ => {
                let what = format!("prefix is {}, not a subnet", kind(yaml));
                remarks.mistake(yaml.at, what, "write prefix: 10.0.0.0/24, or false for none");
                Some(Prefix::default())
            }
        }
    }

    /// Whether there is a pool of that name.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.pools.contains_key(name)
    }

    /// The names of the pools.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.pools.keys().map(String::as_str)
    }

    /// Reads the name of a pool.
    pub(super) fn pool(&self, yaml: &Yaml, remarks: &mut Remarks) -> Option<String> {
        let name = yaml.scalar().unwrap_or_default();
        if self.contains(name) {
            return Some(name.to_owned());
        }
        let what = format!("there is no pool '{}'", name.escape_debug());
        remarks.mistake(yaml.at, what, choice(name, self.names()));
        None
    }

    /// Takes the next subnets of a pool.
    pub(super) fn next(&mut self, name: &str, at: usize, remarks: &mut Remarks) -> Option<Prefix> {
        let pool = self.pools.get_mut(name)?;
        pool.is_used = true;
        let mut nets = [None; 2];
        for (net, pool) in nets.iter_mut().zip(&mut pool.nets) {
            let Some((whole, length, next)) = pool else { continue };
            *net = subnet(*whole, *length, *next);
            *next += 1;
            if net.is_none() {
                let what = format!("pool {name} has no subnet left of {whole}");
                remarks.mistake(at, what, format!("write a larger one: addressing: {{{name}: PREFIX}}"));
                return None;
            }
        }
        Some(Prefix { nets, allocation: pool.allocation })
    }

    /// Names the pools and prefixes of the author that no link uses.
    pub(super) fn finish(self, remarks: &mut Remarks) {
        for (name, pool) in &self.pools {
            if let Some(at) = pool.at.filter(|_| !pool.is_used) {
                let what =
                    format!("pool {} changes nothing: no link has addresses of it", name.escape_debug());
                remarks.warn(Code::Unused, at, what);
            }
        }
        for (name, named) in self.named.iter().filter(|(_, named)| !named.is_used) {
            let what = format!("prefix {} changes nothing: no link has it", name.escape_debug());
            remarks.warn(Code::Unused, named.at, what);
        }
    }
}

/// The pools of a map; a text is the IPv4 prefix of one.
fn in_maps<'y>(yaml: &Yaml<'y>, what: &str, remarks: &mut Remarks) -> TreeTable<'y> {
    let table = match &yaml.value {
        Tree::Table(table) => table.clone(),
        _ => {
            map(what, yaml, remarks);
            return TreeTable::default();
        }
    };
    let in_map = |entry: TreeEntry<'y>| {
        let Placed { at, end, .. } = entry.placed;
        let value = match entry.placed.value {
            value @ Tree::Text(_) => {
                let ipv4 = TreeEntry { key: "ipv4".into(), key_at: at, placed: Placed { at, end, value } };
                Tree::Table(TreeTable { entries: vec![ipv4] })
            }
            other => other,
        };
        TreeEntry { placed: Placed { at, end, value }, ..entry }
    };
    TreeTable { entries: table.entries.into_iter().map(in_map).collect() }
}

/// Reads a pool over one of netlab.
fn pool(
    TreeEntry { key, key_at, placed }: &TreeEntry,
    base: Option<Pool>,
    ignored: &mut Ignored,
    remarks: &mut Remarks,
) -> Pool {
    let name = &**key;
    let mut fields = map(format!("pool {name}"), placed, remarks);
    let lengths = [("prefix", 32), ("prefix6", 128)];
    let own = lengths.map(|(key, max)| Some(whole(fields.placed(key)?, key, 1..=max, remarks)? as u8));
    let is_unnumbered = truth_of(&mut fields, "unnumbered", remarks);
    let allocation = allocation(&mut fields, remarks);
    for key in ["start", "mac"] {
        if let Some(entry) = fields.get(key) {
            let why = "it is for management networks";
            ignored.note(Level::Top, &format!("{key} of pool {name}"), (entry.key_at, name), why);
        }
    }
    let base = base.map_or([None; 2], |base| base.nets);
    let mut nets = [None; 2];
    for (family, key) in ["ipv4", "ipv6"].into_iter().enumerate() {
        let usual = if name.contains("loopback") { 32 } else { 24 };
        let known = base[family].map(|(net, length, _)| (net, length));
        let of_base = known.map(|(_, length)| length);
        let length = own[family].or(of_base).unwrap_or(if family == 0 { usual } else { 64 });
        let (at, whole) = match fields.placed(key) {
            None => (placed.at, known.map(|(net, _)| net)),
            Some(yaml) if truth(yaml).is_some() => (yaml.at, None),
            Some(yaml) => (yaml.at, net(yaml, family, remarks)),
        };
        let Some(whole) = whole.filter(|_| !is_unnumbered) else { continue };
        if length < whole.prefix_len() {
            let what = format!("a subnet of {whole} cannot have the length {length}");
            let size = whole.prefix_len();
            remarks.mistake(at, what, format!("write {}: {size} or more", lengths[family].0));
        }
        nets[family] = Some((whole, length, first(name, family, length)));
    }
    fields.finish(remarks);
    Pool { at: Some(*key_at), nets, allocation, is_used: false }
}

/// The number of the first subnet: netlab leaves out the first of loopbacks.
fn first(pool: &str, family: usize, length: u8) -> u128 {
    u128::from(pool == "loopback" || length >= [32, 127][family])
}

/// Returns a subnet of a prefix by its number; `None`: there are fewer.
fn subnet(whole: IpNet, length: u8, number: u128) -> Option<IpNet> {
    let count = length.checked_sub(whole.prefix_len())?;
    if count < 128 && number >> count > 0 {
        return None;
    }
    address(whole.network(), number.checked_shl(u32::from(whole.max_prefix_len() - length))?)
        .and_then(|address| IpNet::new(address, length).ok())
}

/// Returns the address that many behind another.
pub(super) fn address(first: IpAddr, behind: u128) -> Option<IpAddr> {
    match first {
        IpAddr::V4(first) => {
            let number = u32::from(first).checked_add(u32::try_from(behind).ok()?)?;
            Some(Ipv4Addr::from(number).into())
        }
        IpAddr::V6(first) => Some(Ipv6Addr::from(u128::from(first).checked_add(behind)?).into()),
    }
}

/// Reads the keys of a prefix in a map.
fn prefix(fields: &mut Fields, remarks: &mut Remarks) -> Prefix {
    let mut nets = [None; 2];
    for (family, key) in ["ipv4", "ipv6"].into_iter().enumerate() {
        let Some(yaml) = fields.placed(key) else { continue };
        // True: interfaces have the family and no address of it.
        nets[family] = if truth(yaml).is_some() { None } else { net(yaml, family, remarks) };
    }
    Prefix { nets, allocation: allocation(fields, remarks) }
}

fn allocation(fields: &mut Fields, remarks: &mut Remarks) -> Option<Allocation> {
    let yaml = fields.placed("allocation")?;
    let word = yaml.scalar().unwrap_or_default();
    let allocation = Allocation::of(word);
    if allocation.is_none() {
        let what = format!("'{}' is not an allocation of addresses", word.escape_debug());
        remarks.mistake(yaml.at, what, choice(word, ALLOCATIONS));
    }
    allocation
}

/// Reads a subnet of IPv4 or IPv6.
fn net(yaml: &Yaml, family: usize, remarks: &mut Remarks) -> Option<IpNet> {
    let text = yaml.scalar().unwrap_or_default();
    let net = match family {
        0 => text.parse::<Ipv4Net>().ok().map(IpNet::V4),
        _ => text.parse::<Ipv6Net>().ok().map(IpNet::V6),
    };
    let example = ["10.0.0.0/24", "2001:db8:1::/64"][family];
    let Some(net) = net else {
        let what = format!("'{}' is not a prefix of IPv{}", text.escape_debug(), [4, 6][family]);
        remarks.mistake(yaml.at, what, format!("write {example}"));
        return None;
    };
    if net.addr() != net.network() {
        remarks.mistake(
            yaml.at,
            format!("{net} is an address in a subnet"),
            format!("write {}", net.trunc()),
        );
        return None;
    }
    Some(net)
}
