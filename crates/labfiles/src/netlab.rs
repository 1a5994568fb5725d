//! netlab's topologies: the nodes of device `linux`, all links, and the addresses that netlab
//! assigns.
//!
//! ```text
//!  defaults ─┐                                   addressing, prefix ─▶ Pools
//!  groups ───┼─▶ nodes.rs ─▶ hosts and stubs                             │
//!  nodes ────┘       links ─▶ links.rs (one form) ─▶ link.rs ◀───────────┘
//! ```
//!
//! Devices other than `linux` need images and configurations that netlab makes. They are refused
//! with their lines, or are stubs. Keys of modules (`ospf`, `bgp`, …), providers and tools have no
//! effect here and are named (`known.rs`). Other keys are mistakes.
//!
//! Read first: `netlab/link.rs`.

mod groups;
mod impair;
mod known;
mod link;
mod links;
mod nodes;
mod pools;
mod tables;

use crate::Options;
use crate::fields::{map, text_of, texts, truth, truth_of, whole};
use crate::yaml::Yaml;
use fastpath_spec::{Built, LinkNames};
use fastpath_text::mistake::{Code, Remarks};
use fastpath_text::tree::Tree;
use groups::Groups;
use known::{Ignored, Level};
use link::Network;
use nodes::Defaults;
use pools::Pools;

/// netlab's largest number of a node, unless `defaults.const` says another.
const ID_MAX: u32 = 150;

/// What `defaults` says of other parts.
struct OfDefaults<'y> {
    nodes: Defaults<'y>,
    addressing: Option<&'y Yaml<'y>>,
    /// Whether groups make their members.
    makes: bool,
    /// Whether `tc` has an effect.
    impairs: bool,
}

/// Returns whether the file is one of netlab.
pub(crate) fn is_one(yaml: &Yaml) -> bool {
    let Tree::Table(table) = &yaml.value else { return false };
    let has = |key: &str| table.entries.iter().any(|entry| entry.key.split('.').next() == Some(key));
    !has("topology") && (has("nodes") || has("groups") && has("links"))
}

/// Reads a topology.
pub(crate) fn read(yaml: &Yaml, options: &Options, remarks: &mut Remarks) -> Built {
    let whole = tables::expanded(yaml, remarks);
    let mut ignored = Ignored::default();
    let mut top = map("the file", &whole, remarks);
    // Titles and texts for people.
    top.know(["name", "message"]);
    let [nodes, links, groups, addressing, prefix] =
        ["nodes", "links", "groups", "addressing", "prefix"].map(|key| top.placed(key));
    if let Some(yaml) = top.placed("plugin") {
        let plugins = texts(yaml, "plugin", remarks);
        ignored.declare("plugin", plugins.into_iter().map(|(_, name)| name.to_owned()));
    }
    for (key, what) in [
        ("_include", "files that are included are not read"),
        ("fabric", "the plugin fabric makes nodes and links, which are not read"),
    ] {
        if let Some(entry) = top.get(key) {
            remarks.mistake(entry.key_at, what, "write their nodes and links here");
        }
    }
    let defaults = defaults(top.placed("defaults"), &mut ignored, remarks);
    ignored.take(&mut top, Level::Top, "");
    top.finish(remarks);
    let groups = Groups::read(groups, defaults.makes, &mut ignored, remarks);
    let mut built = Built::default();
    let nodes = nodes::read(nodes, (&groups, &defaults.nodes), (&mut built, options), &mut ignored, remarks);
    if remarks.is_clean() && !nodes.values().any(|node| node.runs) {
        remarks.mistake_of_running(
            0,
            "no node is of device linux, so nothing runs",
            "write a node of device: linux",
        );
    }
    let links = links.map(|links| links::all(links, &nodes, remarks)).unwrap_or_default();
    let pools = Pools::read([defaults.addressing, addressing, prefix], &mut ignored, remarks);
    let names = LinkNames::reserving(std::iter::empty());
    let mut network = Network { built: &mut built, nodes, pools, names, impairs: defaults.impairs };
    for link in &links {
        network.add(link, &mut ignored, remarks);
    }
    nodes::finish(&network.nodes, remarks);
    network.pools.finish(remarks);
    ignored.finish(remarks);
    built
}

/// Reads the defaults. netlab takes any key there: one that is nearly a key that counts is a
/// mistake, and others are named.
fn defaults<'y>(yaml: Option<&'y Yaml<'y>>, ignored: &mut Ignored, remarks: &mut Remarks) -> OfDefaults<'y> {
    const KEYS: [&str; 9] = [
        "device",
        "interfaces",
        "addressing",
        "const",
        "tc",
        "attributes",
        "groups",
        "link_attr",
        "node_attr",
    ];
    let nodes = Defaults { device: None, mtu: None, id_max: ID_MAX };
    let mut of = OfDefaults { nodes, addressing: None, makes: false, impairs: true };
    let Some(yaml) = yaml else { return of };
    let mut fields = map("defaults", yaml, remarks);
    let device = fields.placed("device");
    of.nodes.device = text_of(&mut fields, "device", remarks).zip(device).map(|(name, yaml)| (yaml.at, name));
    of.addressing = fields.placed("addressing");
    if let Some(yaml) = fields.placed("interfaces") {
        let mut inner = map("defaults.interfaces", yaml, remarks);
        let mtu = inner.placed("mtu");
        of.nodes.mtu = mtu.and_then(|yaml| whole(yaml, "mtu", nodes::MTU_MIN..=nodes::MTU_MAX, remarks));
        inner.finish(remarks);
    }
    if let Some(yaml) = fields.placed("const") {
        let mut inner = map("defaults.const", yaml, remarks);
        if let Some(yaml) = inner.placed("MAX_NODE_ID") {
            of.nodes.id_max = whole(yaml, "MAX_NODE_ID", 1..=u32::MAX - 1, remarks).unwrap_or(ID_MAX);
        }
        ignored.take_rest(&mut inner, &["MAX_NODE_ID"]);
        inner.finish(remarks);
    }
    if let Some(yaml) = fields.placed("tc") {
        let mut inner = map("defaults.tc", yaml, remarks);
        if let Some(yaml) = inner.placed("enable").filter(|yaml| truth(yaml) != Some(true)) {
            of.impairs = false;
            remarks.warn(Code::Ignored, yaml.at, "tc of links is ignored: defaults.tc.enable is not true");
        }
        inner.finish(remarks);
    }
    if let Some(yaml) = fields.placed("groups") {
        let mut inner = map("defaults.groups", yaml, remarks);
        of.makes = truth_of(&mut inner, "_auto_create", remarks);
        ignored.take_rest(&mut inner, &["_auto_create"]);
        inner.finish(remarks);
    }
    declared(fields.placed("attributes"), ignored);
    for level in ["link", "node"] {
        let key = format!("{level}_attr");
        let list = fields.placed(&key).map(|yaml| texts(yaml, &key, remarks));
        ignored.declare(level, list.unwrap_or_default().into_iter().map(|(_, name)| name.to_owned()));
    }
    ignored.take(&mut fields, Level::Defaults, "");
    ignored.take_rest(&mut fields, &KEYS);
    fields.finish(remarks);
    of
}

/// Notes the attributes that a topology declares: `attributes: {link: {cost: int}}`.
fn declared(attributes: Option<&Yaml>, ignored: &mut Ignored) {
    let Some(Tree::Table(levels)) = attributes.map(|yaml| &yaml.value) else { return };
    for level in &levels.entries {
        let names = tables::table_of(Some(&level.placed)).entries.into_iter();
        ignored.declare(&level.key, names.map(|entry| entry.key.into_owned()));
    }
}
