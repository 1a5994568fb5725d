//! The keys of netlab that have no effect for a lab of Linux hosts. Each is named where it stands.

use fastpath_text::fields::Fields;
use fastpath_text::mistake::{Code, Remarks, nearest, several};
use std::collections::BTreeMap;

/// A kind of map in a topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    Top,
    Defaults,
    Group,
    Node,
    Link,
    /// What a link has for one of its nodes.
    End,
}

/// Why a key has no effect.
const MODULE: &str = "modules configure devices other than linux";
const PROVIDER: &str = "hosts are namespaces of this machine";
const TOOL: &str = "it is of another program";

/// Modules, and plugins with keys of their own, have keys at every level.
const MODULES: [&str; 29] = [
    "bfd",
    "bgp",
    "bonding",
    "configlets",
    "dhcp",
    "ebgp",
    "eigrp",
    "evpn",
    "files",
    "firewall",
    "gateway",
    "isis",
    "lag",
    "mlag",
    "mpls",
    "multilab",
    "ospf",
    "ospfv3",
    "proxy_arp",
    "ripv2",
    "routing",
    "sr",
    "srv6",
    "stp",
    "vlan",
    "vlans",
    "vrf",
    "vrfs",
    "vxlan",
];
const PROVIDERS: [&str; 5] = ["clab", "external", "libvirt", "provider", "virtualbox"];
const TOOLS: [&str; 13] = [
    "ansible",
    "config",
    "d2",
    "edgeshark",
    "graph",
    "graphite",
    "nso",
    "nuts",
    "report",
    "skip_config",
    "suzieq",
    "tools",
    "vars",
];

/// The other keys without effect.
const OTHERS: [(Level, &[(&str, &str)]); 5] = [
    (
        Level::Top,
        &[
            ("components", "no node includes one"),
            ("module", MODULE),
            ("plugin", "plugins are programs of netlab"),
            ("validate", "tests of a lab are those of a spec ([[expect]])"),
            ("version", "it is that of netlab"),
        ],
    ),
    (
        Level::Defaults,
        &[
            ("automation", TOOL),
            ("devices", MODULE),
            ("hints", TOOL),
            ("inventory", TOOL),
            ("links", MODULE),
            ("module", MODULE),
            ("multilab", TOOL),
            ("netlab", TOOL),
            ("outputs", TOOL),
            ("paths", TOOL),
            ("ports", TOOL),
            ("providers", PROVIDER),
            ("validate", TOOL),
            ("warnings", TOOL),
        ],
    ),
    (
        Level::Node,
        &[
            ("box", PROVIDER),
            ("cpu", PROVIDER),
            ("loopback", "hosts have no loopback addresses of netlab"),
            ("memory", PROVIDER),
            ("mgmt", "there is no management network"),
            ("module", MODULE),
            ("unmanaged", TOOL),
        ],
    ),
    (
        Level::Link,
        &[
            ("bandwidth", "it is a metric of routing and limits nothing (write tc: {rate: KBPS})"),
            ("bridge", "a LAN has a switch of the lab"),
            ("linkindex", "it is given by netlab"),
            ("ra", MODULE),
            ("shutdown", "all interfaces are up"),
            ("vlan_name", MODULE),
        ],
    ),
    (
        Level::End,
        &[
            ("bandwidth", "it is a metric of routing and limits nothing (write tc: {rate: KBPS})"),
            ("ra", MODULE),
            ("role", MODULE),
            ("shutdown", "all interfaces are up"),
            ("vlan_name", MODULE),
        ],
    ),
];

/// The keys without effect that were found.
#[derive(Default)]
pub(super) struct Ignored {
    /// By level and key: where it stands first, whose it is, and why it has no effect.
    found: BTreeMap<(Level, String), (usize, Vec<String>, &'static str)>,
    /// Attributes that a topology declares itself, by the word of their level.
    own: Vec<(String, String)>,
}

impl Ignored {
    /// Notes that the topology declares attributes: those of `defaults.attributes`, and those of
    /// plugins, which have the name of the plugin.
    pub(super) fn declare(&mut self, level: &str, names: impl IntoIterator<Item = String>) {
        self.own.extend(names.into_iter().map(|name| (level.to_owned(), name)));
    }

    fn reason(&self, level: Level, key: &str) -> Option<&'static str> {
        // A group has the keys of its nodes.
        let of_level = if level == Level::Group { Level::Node } else { level };
        let others = OTHERS.iter().find(|(of, _)| *of == of_level).map_or(&[][..], |(_, keys)| keys);
        let word = match level {
            Level::Top | Level::Defaults => "global",
            Level::Group | Level::Node => "node",
            Level::Link => "link",
            Level::End => "interface",
        };
        let is_own = |(of, name): &(String, String)| {
            let holds = of == word || of == "plugin" || (of == "link" && level == Level::End);
            holds && name.split('.').next() == Some(key)
        };
        let internal = ["_", "netlab_", "ansible_"].iter().any(|start| key.starts_with(start));
        let of_other = others.iter().find(|(other, _)| *other == key).map(|(_, why)| *why);
        of_other
            .or_else(|| MODULES.contains(&key).then_some(MODULE))
            .or_else(|| PROVIDERS.contains(&key).then_some(PROVIDER))
            .or_else(|| TOOLS.contains(&key).then_some(TOOL))
            .or_else(|| self.own.iter().any(is_own).then_some("the topology declares it for other programs"))
            .or_else(|| internal.then_some(TOOL))
    }

    /// Takes the keys of a map that have no effect; `of`: whose map it is.
    pub(super) fn take(&mut self, fields: &mut Fields, level: Level, of: &str) {
        for entry in &fields.source().entries {
            let Some(why) = self.reason(level, &entry.key) else { continue };
            fields.know([&*entry.key]);
            self.note(level, &entry.key, (entry.key_at, of), why);
        }
    }

    /// Takes the keys of defaults that are not near to a known one: netlab takes any.
    pub(super) fn take_rest(&mut self, fields: &mut Fields, known: &[&str]) {
        for entry in &fields.source().entries {
            let is_far = nearest(&entry.key, known.iter().copied()).is_none();
            if is_far && self.reason(Level::Defaults, &entry.key).is_none() {
                fields.know([&*entry.key]);
                self.note(Level::Defaults, &entry.key, (entry.key_at, ""), "it is of netlab");
            }
        }
    }

    /// Notes one key.
    pub(super) fn note(&mut self, level: Level, key: &str, (at, of): (usize, &str), why: &'static str) {
        let found = self.found.entry((level, key.to_owned())).or_insert((at, Vec::new(), why));
        found.1.push(of.to_owned());
    }

    /// Names every key.
    pub(super) fn finish(self, remarks: &mut Remarks) {
        for ((level, key), (at, of, why)) in self.found {
            let whose = match (level, of.len()) {
                (Level::Top, _) => String::new(),
                (Level::Defaults, _) => " of defaults".to_owned(),
                (Level::Link, 1) => " of a link".to_owned(),
                (Level::Link, count) => format!(" of {count} links"),
                (Level::End, 1) => format!(" of {} on a link", of[0]),
                (Level::End, count) => format!(" of {count} ends of links"),
                (Level::Group, _) => format!(" of group {}", several(of.iter().map(String::as_str))),
                (Level::Node, _) => format!(" of {}", several(of.iter().map(String::as_str))),
            };
            remarks.warn(Code::Ignored, at, format!("{key}{whose} is ignored: {why}"));
        }
    }
}
