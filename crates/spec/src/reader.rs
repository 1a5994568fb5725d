//! From text to a description: a spec file (TOML), or the canonical form (JSON). Everything is read
//! and nothing resolved; every mistake is reported at once.
//!
//! ```toml
//! seed = 7                         # of all random choices; the command line's --seed wins
//! family = "v4"                    # or "v6": the only addresses; absent: both are assigned
//! routes = "dynamic"               # the engine's routers avoid links that are down; absent: static
//! ecmp   = true                    # they spread flows over all shortest paths; absent: the first
//!
//! [host.a]                         # hosts, routers and switches: `node.rs`
//! address = "10.0.1.2/24"
//! [router.r]
//!
//! [[link]]                         # `link.rs`, and its values `pipe.rs`
//! between  = ["a", "r"]
//! name     = "access"              # absent: "a-r"
//! rate     = "10Mbit"              # bits on the wire per second; absent or "unlimited"
//! delay    = "25ms"                # one way
//! # or a table: bursts, four states, behind the bottleneck (`loss.rs`)
//! loss     = "1%"
//! # or "64KiB", "20ms", or a table: every discipline there is (`queue/`)
//! queue    = "50p"
//! # in addition to the delay; reorder, duplicate, corrupt: `effects.rs`
//! jitter   = { law = "normal", sd = "2ms" }
//! # bytes on the wire beyond the frame, or "ethernet" = 24; cells: `pipe.rs`
//! overhead = 0
//! # what is ready leaves together: `slots.rs`
//! slots    = { min = "1ms", max = "2ms", packets = 32 }
//! # packets that no host sends and that take part of the queue and the rate: `cross.rs`
//! cross    = { rate = "4Mbit", law = "poisson" }
//! state    = "up"                  # "down": nothing passes, and what is queued is dropped
//! a_to_r   = { rate = "256kbit" }  # one direction: its values win over those of the link
//! trace    = "lte.csv"             # values over time (`trace_source.rs`)
//!
//! [[event]]                        # a change at a time of the run: `event.rs`
//! at        = "10s"
//! link      = "access"
//! delay     = "50ms"
//!
//! [[traffic]]                      # what hosts send without programs: `traffic.rs`
//! from      = "a"
//! to        = "b"
//! rate      = "2Mbit"
//!
//! [engine]                         # a run in real time: `engine_settings.rs`
//! tolerance = "1ms"                # a frame released later breaks the run
//! ```
//!
//! A rate without a queue gets drop-tail of 50 packets, or of rate × the link's round trip in
//! packets of 1500 bytes if that is more; a warning says so.

use crate::description::{Description, NodeRole};
use crate::engine_settings::EngineSettings;
use crate::fields::{Field, Fields};
use crate::files::{Files, NO_FILES};
use crate::keys::{Reading, TOP, TopKey, TopPart};
use crate::mistake::{Checked, Mistakes, Remarks, Warning, several};
use crate::node;
use crate::path::{PathStep, SpecPath};
use crate::resolve::resolve_as_read;
use crate::syntax::{parse_json, parse_toml};
use crate::topology::Topology;
use crate::tree::{Placed, Tree, TreeTable};
use std::collections::{BTreeMap, BTreeSet};

/// A description that was read and resolved.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NetworkSpec {
    /// The network.
    pub topology: Topology,
    /// The settings of a run in real time.
    pub engine: EngineSettings,
    /// What the topology was resolved from.
    pub description: Description,
}

/// Reads the topology of a spec file that names no other files. The error is every mistake in the
/// text, in its order.
pub fn parse(text: &str) -> Result<(Topology, Vec<Warning>), Mistakes> {
    read(text, NO_FILES).map(|(spec, warnings)| (spec.topology, warnings))
}

/// Reads a spec file (TOML). `files` returns the text of a file that the spec names.
///
/// # Errors
/// Every mistake in the text and in the files it names, in the order of the text.
pub fn read(text: &str, files: &Files) -> Result<(NetworkSpec, Vec<Warning>), Mistakes> {
    check(text, files).into_result()
}

/// Reads a spec file (TOML), as [`read`] does. The warnings are returned with mistakes too.
pub fn check(text: &str, files: &Files) -> Checked<NetworkSpec> {
    let mut remarks = Remarks::new(text);
    let document = parse_toml(text, &mut remarks);
    check_document(document, remarks, files)
}

/// Reads a spec file (TOML) that is drawn and does not run: it needs no host.
pub fn check_to_draw(text: &str, files: &Files) -> Checked<NetworkSpec> {
    let mut remarks = Remarks::new(text).to_draw();
    let document = parse_toml(text, &mut remarks);
    check_document(document, remarks, files)
}

/// Reads a description in the canonical form that is drawn and does not run: it needs no host.
pub fn check_json_to_draw(text: &str, files: &Files) -> Checked<NetworkSpec> {
    let mut remarks = Remarks::new(text).to_draw();
    let document = parse_json(text, &mut remarks);
    check_document(document, remarks, files)
}

/// Reads a description in the canonical form (JSON).
///
/// # Errors
/// Every mistake in the text and in the files it names, in the order of the text.
pub fn read_json(text: &str, files: &Files) -> Result<(NetworkSpec, Vec<Warning>), Mistakes> {
    check_json(text, files).into_result()
}

/// Reads a description in the canonical form (JSON), as [`read_json`] does. The warnings are
/// returned with mistakes too.
pub fn check_json(text: &str, files: &Files) -> Checked<NetworkSpec> {
    let mut remarks = Remarks::new(text);
    let document = parse_json(text, &mut remarks);
    check_document(document, remarks, files)
}

/// Reads and resolves a document. Returns `None` if its syntax is wrong; `remarks` has the
/// mistakes.
fn check_document(document: Option<TreeTable>, mut remarks: Remarks, files: &Files) -> Checked<NetworkSpec> {
    let Some(document) = document else { return remarks.check(NetworkSpec::default()) };
    let (description, places) = read_table(&document, files, &mut remarks);
    let topology = resolve_into(&description, files, &mut remarks, &|path| places.offset(path));
    remarks.check(NetworkSpec { topology, engine: description.engine.clone(), description })
}

/// Resolves a description that was read from a text: the resolver's mistakes and warnings go to
/// `remarks`, at the byte offset that `place` returns for a path. Where the reader has reported a
/// mistake already, those of the resolver follow from it and are left out.
pub fn resolve_into(
    description: &Description,
    files: &Files,
    remarks: &mut Remarks,
    place: &dyn Fn(&SpecPath) -> usize,
) -> Topology {
    let resolved = resolve_as_read(description, files, remarks.is_clean());
    let said: BTreeSet<usize> = remarks.offsets().clone();
    for mistake in resolved.mistakes {
        let at = place(&mistake.path);
        if !said.contains(&at) {
            remarks.mistake(at, mistake.what, mistake.instead);
        }
    }
    for mistake in resolved.of_running {
        let at = place(&mistake.path);
        if !said.contains(&at) {
            remarks.mistake_of_running(at, mistake.what, mistake.instead);
        }
    }
    let elements = [("nodes", description.nodes.len()), ("links", description.links.len())];
    let paths = elements
        .iter()
        .flat_map(|(list, count)| (0..*count).map(move |index| SpecPath::default().key(list).index(index)));
    let starts: BTreeSet<usize> =
        if said.is_empty() { BTreeSet::new() } else { paths.map(|path| place(&path)).collect() };
    for notice in resolved.notices {
        let at = place(&notice.path);
        // A value may be missing only because it could not be read.
        let end = starts.range(at + 1..).next().copied().unwrap_or(usize::MAX);
        if said.range(at..end).next().is_none() {
            remarks.warn(notice.code, at, notice.what);
        }
    }
    resolved.topology
}

/// Reads a description in the canonical form without resolving it.
pub(crate) fn description_of_json(text: &str, files: &Files) -> Result<Description, Mistakes> {
    let mut remarks = Remarks::new(text);
    let document = parse_json(text, &mut remarks);
    description_of(document, remarks, files)
}

/// Reads a spec file (TOML) without resolving it.
pub(crate) fn description_of_toml(text: &str, files: &Files) -> Result<Description, Mistakes> {
    let mut remarks = Remarks::new(text);
    let document = parse_toml(text, &mut remarks);
    description_of(document, remarks, files)
}

fn description_of(
    document: Option<TreeTable>,
    mut remarks: Remarks,
    files: &Files,
) -> Result<Description, Mistakes> {
    let description = document.map(|document| read_table(&document, files, &mut remarks).0);
    remarks.finish().map(|_| description.unwrap_or_default())
}

/// Where the elements of the lists of a description stand in a text, by the key of the list.
#[derive(Default)]
struct Places<'d>(BTreeMap<&'static str, Vec<(usize, &'d TreeTable<'d>)>>);

impl<'d> Places<'d> {
    fn add(&mut self, list: &'static str, fields: &Fields<'d>, at: usize) {
        self.0.entry(list).or_default().push((at, fields.source()));
    }

    /// The byte offset of what stands at `path`, or of the innermost value around it.
    fn offset(&self, path: &SpecPath) -> usize {
        let [PathStep::Key(list), PathStep::Index(index), rest @ ..] = path.steps() else { return 0 };
        let elements = self.0.get(list.as_str());
        let Some(&(mut at, table)) = elements.and_then(|elements| elements.get(*index)) else { return 0 };
        let mut table = Some(table);
        let mut list: Option<&[Placed]> = None;
        for step in rest {
            let placed = match step {
                PathStep::Key(key) => table.and_then(|table| value_under(table, key)),
                PathStep::Index(index) => match list {
                    Some(elements) => elements.get(*index),
                    // One value in place of a list of one.
                    None => continue,
                },
            };
            let Some(placed) = placed else { return at };
            at = placed.at;
            table = match &placed.value {
                Tree::Table(table) => Some(table),
                _ => None,
            };
            list = match &placed.value {
                Tree::Array(elements) => Some(elements),
                _ => None,
            };
        }
        at
    }
}

/// The value under a key of the canonical form, or under the key an author may write instead.
fn value_under<'d>(table: &'d TreeTable<'d>, key: &str) -> Option<&'d Placed<'d>> {
    let found = table.get(key);
    if found.is_some() {
        return found;
    }
    let reverse = match key {
        "addresses" => return table.get("address"),
        "forward" => false,
        "backward" => true,
        _ => return None,
    };
    let Tree::Array(ends) = &table.get("between")?.value else { return None };
    let [Placed { value: Tree::Text(a), .. }, Placed { value: Tree::Text(b), .. }] = ends.as_slice() else {
        return None;
    };
    table.get(&if reverse { format!("{b}_to_{a}") } else { format!("{a}_to_{b}") })
}

/// Reads a whole document, in the form of an author or the canonical one.
fn read_table<'d>(
    document: &'d TreeTable<'d>,
    files: &Files,
    remarks: &mut Remarks,
) -> (Description, Places<'d>) {
    let is_canonical = document.get("nodes").is_some_and(|nodes| matches!(nodes.value, Tree::Array(_)));
    let mut places = Places::default();
    let mut top = Fields::new("the spec", 0, document);
    let description = Description::default();
    let mut reading = Reading { description, names: BTreeSet::new(), files, remarks };
    for TopKey { key, part, .. } in &TOP {
        match part {
            TopPart::Value(read) => top.get(key).iter().for_each(|field| read(field, &mut reading)),
            TopPart::Table(read) => {
                let table =
                    top.get(key).and_then(|field| field.table(format!("[{key}]"), "{ }", reading.remarks));
                if let Some(fields) = table {
                    read(fields, &mut reading);
                }
            }
            TopPart::Nodes => {
                let read = if is_canonical { canonical_nodes } else { nodes_by_kind };
                for (at, kind, name, fields) in read(&mut top, reading.remarks) {
                    places.add(key, &fields, at);
                    reading.names.insert(name.clone());
                    reading.description.nodes.push(node::read(kind, name, fields, reading.remarks));
                }
            }
            TopPart::Named(word, read) => {
                let tables = match is_canonical {
                    true => named_elements(&mut top, (*key, *word), reading.remarks),
                    false => tables_by_name(&mut top, word, reading.remarks),
                };
                for (at, name, fields) in tables {
                    places.add(key, &fields, at);
                    read(name, fields, &mut reading);
                }
            }
            TopPart::List(word, read) => {
                let given = if is_canonical { key } else { word };
                for fields in tables(top.get(given), given, reading.remarks) {
                    places.add(key, &fields, fields.at);
                    read(fields, &mut reading);
                }
            }
        }
    }
    top.finish(reading.remarks);
    (reading.description, places)
}

type NodeTable<'d> = (usize, NodeRole, String, Fields<'d>);

/// The nodes of a file as an author writes it, in the order of the text: `[host.a]`.
fn nodes_by_kind<'d>(top: &mut Fields<'d>, remarks: &mut Remarks) -> Vec<NodeTable<'d>> {
    let mut found: Vec<NodeTable> = Vec::new();
    for (key, kind) in node::KINDS {
        let Some(field) = top.get(key) else { continue };
        if let Some(elements) = field.elements() {
            // They are read under their names, so that a link that names one is not a mistake too.
            let named = elements.iter().filter_map(|element| listed_node(element, key, remarks));
            let named: Vec<_> = named.map(|(name, fields)| (fields.at, kind, name, fields)).collect();
            let names: Vec<String> = named.iter().map(|(_, _, name, _)| format!("[{key}.{name}]")).collect();
            let names = match names.as_slice() {
                [] => format!("[{key}.NAME]"),
                names => several(names.iter().map(String::as_str)),
            };
            let at = elements.first().map_or(field.at, |first| first.at);
            remarks.mistake(at, format!("{key} is a list of tables"), format!("write {names} for each"));
            found.extend(named);
            continue;
        }
        let Some(mut tables) = field.table(key, "{ }", remarks) else { continue };
        for (at, field) in tables.all() {
            let name = field.key.clone();
            if let Some(fields) = field.table(format!("{key} {name}"), "{ }", remarks) {
                found.push((at, kind, name, fields));
            }
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    found
}

/// A node of another tool's list, `[[host]]` with `name = "a"`.
fn listed_node<'d>(element: &Field<'d>, key: &str, remarks: &mut Remarks) -> Option<(String, Fields<'d>)> {
    let Tree::Table(table) = element.value else { return None };
    let mut fields = Fields::new(key, element.at, table);
    let name = fields.get("name")?.text("a", remarks)?.to_owned();
    fields.what = format!("{key} {name}");
    Some((name, fields))
}

/// The nodes of the canonical form.
fn canonical_nodes<'d>(top: &mut Fields<'d>, remarks: &mut Remarks) -> Vec<NodeTable<'d>> {
    let mut found = Vec::new();
    for mut fields in tables(top.get("nodes"), "nodes", remarks) {
        let name = name_of(&mut fields, remarks);
        if let (Some(name), Some(kind)) = (name, node::kind(&mut fields, remarks)) {
            fields.what = format!("{} {name}", kind.key());
            found.push((fields.at, kind, name, fields));
        }
    }
    found
}

type NamedTable<'d> = (usize, String, Fields<'d>);

/// The tables of a file as an author writes it: `[group.cell]`.
fn tables_by_name<'d>(top: &mut Fields<'d>, word: &str, remarks: &mut Remarks) -> Vec<NamedTable<'d>> {
    let field = top.get(word);
    let Some(mut tables) = field.and_then(|field| field.table(word, "{ }", remarks)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (at, field) in tables.all() {
        let name = field.key.clone();
        if let Some(fields) = field.table(format!("{word} {name}"), "{ start = \"10s\" }", remarks) {
            found.push((at, name, fields));
        }
    }
    found
}

/// The named tables of a list of the canonical form.
fn named_elements<'d>(
    top: &mut Fields<'d>,
    (key, word): (&str, &str),
    remarks: &mut Remarks,
) -> Vec<NamedTable<'d>> {
    let mut found = Vec::new();
    for mut fields in tables(top.get(key), key, remarks) {
        if let Some(name) = name_of(&mut fields, remarks) {
            fields.what = format!("{word} {name}");
            found.push((fields.at, name, fields));
        }
    }
    found
}

/// The name that an element of a canonical list has.
fn name_of(fields: &mut Fields, remarks: &mut Remarks) -> Option<String> {
    let Some(field) = fields.get("name") else {
        remarks.mistake(fields.at, format!("{} has no name", fields.what), "write name = \"a\"");
        return None;
    };
    field.text("a", remarks).map(str::to_owned)
}

/// The tables of `[[key]]`.
fn tables<'d>(field: Option<Field<'d>>, key: &str, remarks: &mut Remarks) -> Vec<Fields<'d>> {
    let Some(field) = field else { return Vec::new() };
    let Some(elements) = field.elements() else {
        let what = format!("{key} is one table, not a list of them");
        remarks.mistake(field.at, what, format!("write [[{key}]]"));
        return Vec::new();
    };
    let what = key.strip_suffix('s').unwrap_or(key);
    elements.iter().filter_map(|element| element.table(what, "{ }", remarks)).collect()
}
