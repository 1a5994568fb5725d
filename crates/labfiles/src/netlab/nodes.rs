//! The nodes of a topology: hosts of device `linux`, and stubs.

use super::groups::Groups;
use super::known::{Ignored, Level};
use crate::Options;
use crate::fields::{map, text, texts, whole};
use crate::yaml::Yaml;
use fastpath_spec::{Built, NodeDescription, NodeRole};
use fastpath_text::mistake::{Code, Remarks, nearest};
use fastpath_text::tree::{Tree, TreeEntry, TreeTable};
use std::collections::{BTreeMap, BTreeSet};

/// The largest mtu of netlab's older releases.
pub(super) const MTU_MAX: u32 = 65_535;
/// The least mtu here (RFC 791).
pub(super) const MTU_MIN: u32 = 68;

/// A node that was read.
pub(super) struct Node {
    /// netlab's number.
    pub(super) id: u32,
    /// Its index in the description.
    pub(super) index: usize,
    /// Whether programs run on it.
    pub(super) runs: bool,
    /// Whether its role is that of a host, which makes its links LANs.
    pub(super) is_host: bool,
    pub(super) mtu: Option<u32>,
    /// The numbers of its interfaces so far.
    pub(super) interfaces: BTreeSet<u32>,
    /// Where it says its number and its mtu, until a link uses them.
    pub(super) unused: [Option<usize>; 2],
}

impl Node {
    /// Notes that a link uses its number.
    pub(super) fn uses_id(&mut self) {
        self.unused[0] = None;
    }

    /// Returns its mtu, which a link uses.
    pub(super) fn link_mtu(&mut self) -> Option<u32> {
        self.unused[1] = None;
        self.mtu
    }
}

/// Names the values of hosts that no link uses.
pub(super) fn finish(nodes: &Nodes, remarks: &mut Remarks) {
    for (name, node) in nodes.iter().filter(|(_, node)| node.runs) {
        let whys = ["id", "mtu"].into_iter().zip(["no address has it", "its links have others"]);
        for (at, (key, why)) in node.unused.iter().zip(whys) {
            if let Some(at) = *at {
                remarks.warn(Code::Unused, at, format!("{key} of {name} changes nothing: {why}"));
            }
        }
    }
}

/// The nodes by name.
pub(super) type Nodes<'y> = BTreeMap<&'y str, Node>;

/// What holds for nodes that do not say otherwise.
pub(super) struct Defaults<'y> {
    pub(super) device: Option<(usize, &'y str)>,
    pub(super) mtu: Option<u32>,
    /// The largest number of a node.
    pub(super) id_max: u32,
}

/// A node of the text.
struct Given<'y> {
    name: &'y str,
    at: usize,
    own: Option<&'y Yaml<'y>>,
}

/// Reads all nodes.
pub(super) fn read<'y>(
    yaml: Option<&'y Yaml<'y>>,
    (groups, defaults): (&Groups<'y>, &Defaults<'y>),
    (built, options): (&mut Built, &Options),
    ignored: &mut Ignored,
    remarks: &mut Remarks,
) -> Nodes<'y> {
    let mut given = yaml.map(|yaml| named(yaml, remarks)).unwrap_or_default();
    for (name, at) in groups.made() {
        if given.iter().all(|node| node.name != name) {
            given.push(Given { name, at, own: None });
        }
    }
    let mut ids = ids(&given, defaults.id_max, remarks);
    let mut in_groups = BTreeSet::new();
    let mut nodes = Nodes::new();
    for (node, id) in given.iter().zip(ids.drain(..)) {
        let own = node.own.map(|yaml| own(node.name, yaml, ignored, remarks)).unwrap_or_default();
        for (at, group) in &own.groups {
            in_groups.insert(*group);
            if !groups.contains(group) {
                let what =
                    format!("group {} of {} is not below groups, so it changes nothing", group, node.name);
                remarks.warn(Code::Unused, *at, what);
            }
        }
        let layers: Vec<&TreeTable> =
            own.table.into_iter().chain(groups.values(node.name, &own.groups)).collect();
        let read = one(node, id, (&layers, defaults), (&mut *built, options), remarks);
        if nodes.insert(node.name, read).is_some() {
            let what = format!("there is already a node {}", node.name);
            remarks.mistake(node.at, what, "write another name");
        }
    }
    let names: Vec<&str> = nodes.keys().copied().collect();
    groups.check(&names, &in_groups, remarks);
    nodes
}

/// The nodes of a list, a map or a text.
fn named<'y>(nodes: &'y Yaml<'y>, remarks: &mut Remarks) -> Vec<Given<'y>> {
    let plain = |at, name| Given { name, at, own: None };
    match &nodes.value {
        Tree::Null => Vec::new(),
        Tree::Table(table) => {
            let all = table.entries.iter();
            all.map(|TreeEntry { key, key_at, placed }| Given { name: key, at: *key_at, own: Some(placed) })
                .collect()
        }
        Tree::Array(list) => {
            let mut all = Vec::new();
            for yaml in list {
                let name = yaml.get("name").and_then(Yaml::scalar);
                match (yaml.scalar(), name) {
                    (Some(name), _) => all.push(plain(yaml.at, name)),
                    (None, Some(name)) => all.push(Given { own: Some(yaml), ..plain(yaml.at, name) }),
                    (None, None) => remarks.mistake(yaml.at, "the node has no name", "write name: NAME"),
                }
            }
            all
        }
        _ => {
            let text = nodes.scalar().unwrap_or_default();
            text.split_whitespace().map(|name| plain(nodes.at, name)).collect()
        }
    }
}

/// The numbers of nodes: those given, and the least free ones.
fn ids(given: &[Given], max: u32, remarks: &mut Remarks) -> Vec<u32> {
    let mut owners: BTreeMap<u32, &str> = BTreeMap::new();
    let mut ids = Vec::new();
    for node in given {
        let yaml = node.own.and_then(|own| own.get("id")).filter(|yaml| !yaml.is_null());
        let id = yaml.and_then(|yaml| whole(yaml, "id", 1..=max, remarks));
        if let (Some(yaml), Some(id)) = (yaml, id)
            && let Some(other) = owners.insert(id, node.name)
        {
            let what = format!("node {other} has the id {id} too");
            remarks.mistake(yaml.at, what, "write another number");
        }
        ids.push(id);
    }
    let mut next = 1;
    let number = |(id, node): (Option<u32>, &Given)| {
        id.unwrap_or_else(|| {
            while owners.contains_key(&next) {
                next += 1;
            }
            if next == max + 1 {
                let what = format!("there are more than {max} nodes");
                remarks.mistake(node.at, what, "write defaults.const.MAX_NODE_ID: 1000");
            }
            next += 1;
            next - 1
        })
    };
    ids.into_iter().zip(given).map(number).collect()
}

/// What a node says of itself.
#[derive(Default)]
struct Own<'y> {
    table: Option<&'y TreeTable<'y>>,
    groups: Vec<(usize, &'y str)>,
}

fn own<'y>(name: &str, yaml: &'y Yaml<'y>, ignored: &mut Ignored, remarks: &mut Remarks) -> Own<'y> {
    let mut fields = map(format!("node {name}"), yaml, remarks);
    fields.know(["id", "name", "device", "role", "mtu"]);
    let groups = fields.placed("group").map(|yaml| texts(yaml, "group", remarks)).unwrap_or_default();
    for (key, why) in [
        ("include", "components are not read: write their nodes and links"),
        ("clone", "the plugin node.clone is not read: write the nodes"),
    ] {
        if let Some(entry) = fields.get(key) {
            remarks.mistake(entry.key_at, format!("{key} of {name} makes other nodes"), why);
        }
    }
    // Interfaces of a node are those of its links.
    if let Some(entry) = fields.get("interfaces") {
        ignored.note(Level::Node, "interfaces", (entry.key_at, name), "interfaces are those of links");
    }
    ignored.take(&mut fields, Level::Node, name);
    let table = fields.source();
    fields.finish(remarks);
    Own { table: Some(table), groups }
}

/// Adds one node.
fn one(
    node: &Given,
    id: u32,
    (layers, defaults): (&[&TreeTable], &Defaults),
    (built, options): (&mut Built, &Options),
    remarks: &mut Remarks,
) -> Node {
    let value = |key: &str| layers.iter().find_map(|layer| layer.get(key).filter(|yaml| !yaml.is_null()));
    let mtu = value("mtu").and_then(|yaml| whole(yaml, "mtu", MTU_MIN..=MTU_MAX, remarks));
    let device = match value("device") {
        Some(yaml) => text(yaml, "device", remarks).map(|device| (yaml.at, device)),
        None => defaults.device,
    };
    let name = node.name;
    let mut described = NodeDescription { assign: false, ..NodeDescription::host(name) };
    let role = value("role").and_then(|yaml| Some((yaml.at, role(yaml, name, remarks)?)));
    let refusal = match (device, role) {
        (Some((_, "linux")), Some((at, "bridge"))) => {
            let why = "role: bridge is not read: write a link with all that meet there ([a, b, c])";
            Some((at, why.to_owned()))
        }
        (Some((_, "linux")), _) => None,
        (Some((at, device)), _) => {
            Some((at, format!("a lab has no device {} (but linux)", device.escape_debug())))
        }
        (None, _) => Some((node.at, "no device is given".to_owned())),
    };
    if let Some((at, why)) = &refusal {
        if !options.only_linux {
            let instead = "write device: linux, or --kinds linux, which puts a stub in its place";
            remarks.mistake_of_running(*at, format!("node {name}: {why}"), instead);
        } else if !options.to_draw {
            remarks.warn(Code::Different, *at, format!("{name} is a stub: {why}"));
        }
        described.kind = NodeRole::Router;
        described.look.foreign_kind = device.map(|(_, device)| device.to_owned());
    } else if let Some((_, "router" | "gateway")) = role {
        described.sysctls.insert("net.ipv4.ip_forward".to_owned(), "1".to_owned());
    }
    let is_linux = matches!(device, Some((_, "linux")));
    let index = built.add_node(described, node.at);
    Node {
        id,
        index,
        runs: refusal.is_none(),
        is_host: role.map_or(is_linux, |(_, role)| role == "host"),
        mtu: mtu.or(defaults.mtu),
        interfaces: BTreeSet::new(),
        unused: ["id", "mtu"].map(|key| node.own.and_then(|own| own.get(key)).map(|yaml| yaml.at)),
    }
}

/// Reads the role of a node. Older releases of netlab know others, which have no effect.
fn role<'y>(yaml: &'y Yaml, name: &str, remarks: &mut Remarks) -> Option<&'y str> {
    const ROLES: [&str; 4] = ["host", "router", "bridge", "gateway"];
    let role = text(yaml, "role", remarks)?;
    if ROLES.contains(&role) {
        return Some(role);
    }
    let said = role.escape_debug();
    match nearest(role, ROLES) {
        Some(meant) => {
            remarks.mistake(
                yaml.at,
                format!("'{said}' is not a role of a node"),
                format!("write role: {meant}"),
            );
        }
        None => {
            remarks.warn(Code::Ignored, yaml.at, format!("role {said} of {name} is ignored: a lab has none"))
        }
    }
    None
}
