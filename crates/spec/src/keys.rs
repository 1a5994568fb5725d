//! The keys at the top of a description, in one table. The reader, the schema and the writer follow
//! it; so do the matrices of experiments and the Python package.
//!
//! ```text
//!  in a file    seed = 7    [engine]     [host.a]             [[link]]      [group.cell]
//!  canonical    "seed": 7   "engine": {} "nodes": [{ name }]  "links": [{}] "groups": [{ name }]
//! ```
//!
//! The keys of the tables below stand in the file of each table, with their reader, writer and
//! schema side by side.

use crate::description::Description;
use crate::engine_settings::{self, EngineSettings};
use crate::fields::{Field, Fields};
use crate::files::Files;
use crate::mistake::Remarks;
use crate::schema_parts::{reference, table};
use crate::topology::{Family, Routing};
use crate::{event, group, link, node, traffic};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A key at the top of a description.
pub struct TopKey {
    /// The key in the canonical form: `links`.
    pub key: &'static str,
    /// What stands there, for the schema.
    pub(crate) what: &'static str,
    pub(crate) part: TopPart,
    /// Returns the schema of a value, or of one element without its name.
    pub(crate) schema: fn() -> Value,
    /// Returns what the key has in the canonical form; `None`: the key is left out.
    pub(crate) write: fn(&Description) -> Option<Value>,
}

/// What stands under a key at the top, and its reader.
pub(crate) enum TopPart {
    /// One value: `seed = 7`.
    Value(fn(&Field, &mut Reading)),
    /// One table: `[engine]`.
    Table(fn(Fields, &mut Reading)),
    /// Tables by kind and name: `[host.a]`. In the canonical form a list.
    Nodes,
    /// Tables by name, under this key of a file: `[group.cell]`. In the canonical form a list.
    Named(&'static str, fn(String, Fields, &mut Reading)),
    /// A list of tables, under this key of a file: `[[link]]`.
    List(&'static str, fn(Fields, &mut Reading)),
}

/// A description while it is read.
pub(crate) struct Reading<'r, 't, 'f> {
    pub(crate) description: Description,
    /// The names of the nodes read so far.
    pub(crate) names: BTreeSet<String>,
    pub(crate) files: &'r Files<'f>,
    pub(crate) remarks: &'r mut Remarks<'t>,
}

/// The keys at the top, in the order in which they are read: links after the nodes that they name.
pub static TOP: [TopKey; 10] = [
    TopKey {
        key: "seed",
        what: "The seed of all random choices.",
        part: TopPart::Value(|field, reading| {
            reading.description.seed = field.whole(0..=u64::MAX, reading.remarks);
        }),
        schema: || json!({ "type": "integer", "minimum": 0 }),
        write: |description| description.seed.map(|seed| json!(seed)),
    },
    TopKey {
        key: "family",
        what: "The only family of IP addresses; by default both are assigned.",
        part: TopPart::Value(|field, reading| {
            let family = field.word("a family", &Family::WORDS, reading.remarks);
            reading.description.family = family.map(|index| Family::ALL[index]);
        }),
        schema: || json!({ "enum": Family::WORDS }),
        write: |description| description.family.map(|family| json!(family.word())),
    },
    TopKey {
        key: "routes",
        what: "Dynamic: the engine's routers avoid links that are down, from the instant of the change.",
        part: TopPart::Value(|field, reading| {
            let routes = field.word("a kind of routes", &Routing::WORDS, reading.remarks);
            reading.description.routing.is_dynamic = routes == Some(1);
        }),
        schema: || json!({ "enum": Routing::WORDS }),
        write: |description| description.routing.is_dynamic.then(|| json!(Routing::WORDS[1])),
    },
    TopKey {
        key: "ecmp",
        what: "The engine's routers spread flows over all shortest paths.",
        part: TopPart::Value(|field, reading| {
            reading.description.routing.is_multipath = field.switch(reading.remarks).unwrap_or_default();
        }),
        schema: || json!({ "type": "boolean" }),
        write: |description| description.routing.is_multipath.then_some(json!(true)),
    },
    TopKey {
        key: "engine",
        what: "The settings of a run in real time.",
        part: TopPart::Table(|fields, reading| {
            reading.description.engine = engine_settings::read(fields, reading.remarks);
        }),
        schema: || reference("engine"),
        write: |description| {
            (description.engine != EngineSettings::default()).then(|| description.engine.write())
        },
    },
    TopKey {
        key: "nodes",
        what: "Hosts, routers and switches.",
        part: TopPart::Nodes,
        schema: || reference("node"),
        write: |description| Some(description.nodes.iter().map(node::write).collect()),
    },
    TopKey {
        key: "groups",
        what: "Links whose traces start together.",
        part: TopPart::Named("group", |name, fields, reading| {
            reading.description.groups.push(group::read(name, fields, reading.remarks));
        }),
        schema: || table(group::properties(), &[]),
        write: |description| Some(description.groups.iter().map(group::write).collect()),
    },
    TopKey {
        key: "links",
        what: "Links between nodes.",
        part: TopPart::List("link", |fields, reading| {
            let is_node = |name: &str| reading.names.contains(name);
            let link = link::read(fields, is_node, reading.files, reading.remarks);
            reading.description.links.push(link);
        }),
        schema: || reference("link"),
        write: |description| Some(description.links.iter().map(link::write).collect()),
    },
    TopKey {
        key: "events",
        what: "Changes at times of the run.",
        part: TopPart::List("event", |fields, reading| {
            let event = event::read(fields, reading.files, reading.remarks);
            reading.description.events.push(event);
        }),
        schema: || reference("event"),
        write: |description| Some(description.events.iter().map(event::write).collect()),
    },
    TopKey {
        key: "traffic",
        what: "What hosts send to each other without programs.",
        part: TopPart::List("traffic", |fields, reading| {
            let traffic = traffic::read(fields, reading.files, reading.remarks);
            reading.description.traffic.push(traffic);
        }),
        schema: || reference("traffic"),
        write: |description| {
            let traffic = &description.traffic;
            (!traffic.is_empty()).then(|| traffic.iter().map(traffic::write).collect())
        },
    },
];

impl TopKey {
    /// Returns the key that a word of a file stands for: `nodes` for `host`, `links` for `link`,
    /// `engine` for `engine`.
    pub fn of_word(word: &str) -> Option<&'static TopKey> {
        TOP.iter().find(|top| top.words().contains(&word))
    }

    /// Returns the words that stand for the key in a file: `host`, `router` and so on for `nodes`.
    pub fn words(&self) -> Vec<&'static str> {
        match self.part {
            TopPart::Value(_) | TopPart::Table(_) => vec![self.key],
            TopPart::Nodes => node::KINDS.map(|(key, _)| key).to_vec(),
            TopPart::Named(word, _) | TopPart::List(word, _) => vec![word],
        }
    }

    /// Returns whether the canonical form has a list of tables under the key.
    pub fn is_list(&self) -> bool {
        !matches!(self.part, TopPart::Value(_) | TopPart::Table(_))
    }

    /// Returns whether the key has one table.
    pub fn is_table(&self) -> bool {
        matches!(self.part, TopPart::Table(_))
    }

    /// Returns whether the canonical form always has the key.
    pub fn is_always_written(&self) -> bool {
        (self.write)(&Description::default()).is_some()
    }
}

impl std::fmt::Debug for TopKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.key)
    }
}
