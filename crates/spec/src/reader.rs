//! The spec file: TOML in, a checked [`Topology`] out, or every mistake at once.
//!
//! ```toml
//! seed = 7                         # of everything random; the command line's --seed wins
//!
//! [host.a]                         # an edge: a namespace in a lab, a port in `run`, a capture in `replay`
//! address = "10.0.1.2/24"          # or addresses = ["10.0.1.2/24", "fd00::2/64"]; absent: assigned
//! mac     = "02:00:00:00:00:2a"    # absent: assigned
//! port    = "eth1"                 # the interface of this machine that `run` attaches; "xdp:eth1", "packet:eth1": how
//! routes  = { "192.168.0.0/16" = "10.0.1.7" }     # beside those computed; "default" is 0.0.0.0/0 or ::/0
//! [router.r]                       # forwards packets; with several links addresses and mac are by link:
//! addresses = { a-r = "10.0.1.1/24", uplink = ["10.0.2.1/24"] }
//! [switch.s]                       # forwards frames
//! [openflow.o]                     # forwards frames by OpenFlow tables: port 1 is its first link, or the node's name there
//! rules = "in_port=a,ip,actions=dec_ttl,output:b"  # in the syntax of ovs-ofctl, or file = "rules.txt" beside the spec
//!
//! [[link]]
//! between  = ["a", "r"]
//! name     = "access"              # absent: "a-r"
//! rate     = "10Mbit"              # bits on the wire per second; absent or "unlimited"
//! delay    = "25ms"                # one way
//! loss     = "1%"                  # or a table: bursts, four states, behind the bottleneck (`loss.rs`)
//! queue    = "50p"                 # or "64KiB", "20ms", or a table: every discipline there is (`queue.rs`)
//! jitter   = { law = "normal", sd = "2ms" }       # beside the delay; reorder, duplicate, corrupt: `effects.rs`
//! overhead = 0                     # bytes on the wire beyond the frame, or "ethernet" = 24; cells: `pipe.rs`
//! slots    = { min = "1ms", max = "2ms", packets = 32 }         # what is ready leaves together: `slots.rs`
//! state    = "up"                  # "down": nothing passes, and what is queued is dropped
//! mtu      = 1500
//! a_to_r   = { rate = "256kbit" }  # one direction: its values win over those of the link
//! preset   = "lte"                 # values of a kind of access, from the first node up; all given here win over them
//! trace    = "lte.csv"             # values over time; group = "cell" starts those of several links together (`trace.rs`)
//!
//! [[event]]                        # a change at a time of the run; what is not named stays
//! at        = "10s"
//! link      = "access"             # or a list of links, or group = "cell"
//! direction = "a_to_r"             # absent: both
//! delay     = "50ms"               # any value of a link
//!
//! [engine]                         # a run in real time: idle, late and workers are in `engine.rs`
//! tolerance = "1ms"                # a frame released later breaks the run
//! ```
//!
//! A rate without a queue gets drop-tail of 50 packets, or of rate × the link's round trip in
//! packets of 1500 bytes if that is more; a warning says so.
//!
//! The TOML is read with the `toml` crate's `DeTable`: spans on every key and value, and all syntax
//! errors of a file at once. toml_edit keeps formatting nobody needs here; serde would stop at the
//! first mistake.

use crate::engine_settings::{self, EngineSettings};
use crate::fields::{Field, Fields};
use crate::mistake::{Mistake, Remarks, Warning, nearest, several};
use crate::node::{self, NodeDraft};
use crate::topology::{Direction, Event, Group, LinkId, NodeId, NodeKind, Start, Topology, Track};
use crate::trace_key::{self, Files, TraceDraft};
use crate::traced::{self, Traced};
use crate::tree::{Table, Tree};
use crate::{address, default_queue, pipe};
use fastpath_link::{Change, PipeSpec};
use fastpath_units::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};
use toml::de::DeTable;

/// The smallest MTU (RFC 791) and the largest a TAP takes.
const MTU: std::ops::RangeInclusive<u64> = 68..=65_521;
/// Nodes and links in one spec.
const COUNT_MAX: usize = 1 << 20;

/// A description that was read: the network, and the settings of its engine.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Spec {
    /// The network.
    pub topology: Topology,
    /// The settings of a run in real time.
    pub engine: EngineSettings,
}

/// Reads the topology of a spec that names no other files. The error is every mistake in the text,
/// in its order.
pub fn parse(text: &str) -> Result<(Topology, Vec<Warning>), Vec<Mistake>> {
    let no_files: &Files = &|_| Err("no files can be read here".to_owned());
    read(text, no_files).map(|(spec, warnings)| (spec.topology, warnings))
}

/// Reads a spec. `files` returns the text of a file that the spec names, or says why it cannot.
///
/// # Errors
/// Every mistake in the text and in the files it names, in the order of the text.
pub fn read(text: &str, files: &Files) -> Result<(Spec, Vec<Warning>), Vec<Mistake>> {
    let mut remarks = Remarks::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        remarks.mistake(at, format!("this is not TOML: {}", error.message()), syntax_advice(error.message()));
    }
    if !errors.is_empty() {
        // What could be recovered is incomplete: judging it would report things that are there.
        return Err(remarks.finish().unwrap_err());
    }
    let document = Table::of_toml(document.into_inner());
    let mut reader = Reader::new(remarks, files);
    reader.read(&document);
    if reader.remarks.is_clean() {
        reader.check();
    }
    let spec = Spec { topology: reader.topology, engine: reader.engine };
    reader.remarks.finish().map(|warnings| (spec, warnings))
}

/// Whether a value of a link can be given under `key`.
pub fn is_key(key: &str) -> bool {
    pipe::KEYS.contains(&key)
}

/// The keys under which values of a link can be given.
pub fn keys() -> &'static [&'static str] {
    &pipe::KEYS
}

/// Reads values of a link as a spec has them (`rate = "1Mbit"`, one a line), as a change to a
/// running one. The error is every mistake in the text.
pub fn parse_change(text: &str) -> Result<Change, Vec<Mistake>> {
    let mut remarks = Remarks::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        remarks.mistake(at, error.message(), syntax_advice(error.message()));
    }
    if !errors.is_empty() {
        return Err(remarks.finish().unwrap_err());
    }
    let document = Table::of_toml(document.into_inner());
    let mut fields = Fields::new("a link", 0, &document);
    let no_files: &Files = &|_| Err("files are read when a network starts: write values".to_owned());
    let change = pipe::read(&mut fields, no_files, &mut remarks);
    let named = !document.entries.is_empty();
    fields.finish(&mut remarks);
    if change == Change::default() && !named {
        remarks.mistake(0, "nothing to change", format!("write one of {}", pipe::KEYS.join(", ")));
    }
    remarks.finish().map(|_| change)
}

/// What to write where the TOML parser complains.
fn syntax_advice(message: &str) -> &'static str {
    let advice = [
        ("must be quoted", "write it in \"quotes\""),
        ("duplicate key", "write it once"),
        ("unclosed", "write what closes it"),
    ];
    let found = advice.iter().find(|(symptom, _)| message.contains(symptom));
    found.map_or("write KEY = VALUE, text in \"quotes\"", |(_, advice)| advice)
}

/// Whether a name can be a file's, a namespace's and a word on a command line.
pub fn is_name(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=32).contains(&name.len()) && name.chars().all(known) && !name.starts_with(['-', '.'])
}

/// A spec being read.
pub(crate) struct Reader<'t> {
    pub(crate) remarks: Remarks<'t>,
    pub(crate) files: &'t Files<'t>,
    pub(crate) topology: Topology,
    engine: EngineSettings,
    nodes: BTreeMap<String, NodeId>,
    links: BTreeMap<String, LinkId>,
    pub(crate) drafts: Vec<NodeDraft>,
    /// Offset of each link's table.
    link_at: Vec<usize>,
    /// The pipes whose queue was not given.
    unqueued: BTreeSet<(LinkId, usize)>,
}

impl<'t> Reader<'t> {
    fn new(remarks: Remarks<'t>, files: &'t Files<'t>) -> Reader<'t> {
        Reader {
            remarks,
            files,
            topology: Topology::default(),
            engine: EngineSettings::default(),
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            drafts: Vec::new(),
            link_at: Vec::new(),
            unqueued: BTreeSet::new(),
        }
    }

    fn read(&mut self, document: &Table) {
        let mut top = Fields::new("the spec", 0, document);
        self.topology.seed = top.get("seed").and_then(|field| field.whole(0..=u64::MAX, &mut self.remarks));
        let engine = top.get("engine");
        if let Some(table) = engine.and_then(|field| field.table("[engine]", "{ }", &mut self.remarks)) {
            self.engine = engine_settings::read(table, &mut self.remarks);
        }
        self.read_nodes(&mut top);
        self.read_groups(&mut top);
        let links = self.tables(top.get("link"), "link");
        let name = |table: &Fields| match table.peek("name")? {
            Tree::Text(name) => Some(name.to_string()),
            _ => None,
        };
        let reserved = links.iter().filter_map(name).collect();
        for table in links {
            self.read_link(table, &reserved);
        }
        node::attach(self);
        for table in self.tables(top.get("event"), "event") {
            self.read_event(table);
        }
        self.topology.events.sort_by_key(|event| event.at);
        top.finish(&mut self.remarks);
    }

    fn read_nodes<'d>(&mut self, top: &mut Fields<'d>) {
        let mut found: Vec<(usize, &'static str, Field<'d>)> = Vec::new();
        for kind in ["host", "router", "switch", "openflow"] {
            let Some(group) = top.get(kind) else { continue };
            let Some(mut group) = group.table(kind, "{ }", &mut self.remarks) else { continue };
            found.extend(group.all().into_iter().map(|(at, field)| (at, kind, field)));
        }
        found.sort_by_key(|(at, ..)| *at);
        for (at, kind, field) in found {
            let name = field.key.clone();
            if !is_name(&name) {
                let what = format!("'{}' cannot be the name of a node", name.escape_debug());
                self.remarks.mistake(
                    at,
                    what,
                    "write up to 32 letters, digits, '_', '-', '.', a letter or digit first",
                );
            }
            let Some(fields) = field.table(format!("{kind} {name}"), "{ }", &mut self.remarks) else {
                continue;
            };
            let id = NodeId(self.drafts.len() as u32);
            if self.nodes.len() >= COUNT_MAX || self.nodes.insert(name.clone(), id).is_some() {
                let what = format!("there is a node '{name}' already");
                self.remarks.mistake(
                    at,
                    what,
                    "write another name: hosts, routers and switches share one set",
                );
            }
            let (kind, draft) = node::read(kind, &name, at, fields, self.files, &mut self.remarks);
            self.topology.add_node(name, kind);
            self.drafts.push(draft);
        }
    }

    fn read_groups(&mut self, top: &mut Fields) {
        let Some(all) = top.get("group") else { return };
        let Some(mut all) = all.table("group", "{ }", &mut self.remarks) else { return };
        for (at, field) in all.all() {
            let name = field.key.clone();
            if !is_name(&name) {
                let what = format!("'{}' cannot be the name of a group", name.escape_debug());
                self.remarks.mistake(at, what, "write up to 32 letters, digits, '_', '-', '.'");
            }
            let Some(mut fields) =
                field.table(format!("group {name}"), "{ start = \"10s\" }", &mut self.remarks)
            else {
                continue;
            };
            let start = trace_key::start(&mut fields, &mut self.remarks);
            fields.finish(&mut self.remarks);
            self.topology.groups.push(Group { name, start, links: Vec::new() });
        }
    }

    /// The group that a link names; what is not declared starts with the run.
    fn read_group(&mut self, field: &Field) -> Option<usize> {
        let name = field.text("cell", &mut self.remarks)?;
        if let Some(group) = self.topology.group_named(name) {
            return Some(group);
        }
        if !is_name(name) {
            let what = format!("'{}' cannot be the name of a group", name.escape_debug());
            self.remarks.mistake(field.at, what, "write up to 32 letters, digits, '_', '-', '.'");
            return None;
        }
        let start = Start::At(Time::ZERO);
        self.topology.groups.push(Group { name: name.to_owned(), start, links: Vec::new() });
        Some(self.topology.groups.len() - 1)
    }

    /// The tables of `[[key]]`.
    fn tables<'d>(&mut self, field: Option<Field<'d>>, key: &str) -> Vec<Fields<'d>> {
        let Some(field) = field else { return Vec::new() };
        let Some(elements) = field.elements() else {
            let what = format!("{key} is one table, not a list of them");
            self.remarks.mistake(field.at, what, format!("write [[{key}]]"));
            return Vec::new();
        };
        elements.iter().filter_map(|element| element.table(key, "{ }", &mut self.remarks)).collect()
    }

    fn read_link(&mut self, mut fields: Fields, reserved: &BTreeSet<String>) {
        let at = fields.at;
        let between = fields.get("between");
        if between.is_none() {
            self.remarks.mistake(at, "link has no ends", "write between = [\"a\", \"b\"]");
        }
        let ends = between.as_ref().and_then(|field| self.ends(field));
        let given_name =
            fields.get("name").and_then(|field| Some((field.at, field.text("access", &mut self.remarks)?)));
        let mtu = fields.get("mtu").and_then(|field| field.whole(MTU, &mut self.remarks));
        let values = pipe::read(&mut fields, self.files, &mut self.remarks);
        let presets = self.read_preset(&mut fields);
        let group = fields.get("group").and_then(|field| self.read_group(&field));
        let traces = fields.get("trace").map(|field| trace_key::read(&field, self.files, &mut self.remarks));
        let Some([a, b]) = ends else {
            // The names of the directions are not known: leave keys that look like one alone.
            fields.allow(|key| key.contains("_to_"));
            return fields.finish(&mut self.remarks);
        };
        let names = [a, b].map(|id| self.topology.node(id).name.clone());
        let name = match given_name {
            Some((at, name)) => {
                self.check_link_name(at, name);
                name.to_owned()
            }
            None => self.link_name(&names.join("-"), reserved),
        };
        let directions = self.read_directions(&names, &values, &mut fields);
        let given = directions.each_ref().map(|(direction, _)| direction.clone());
        let pipe = |end: usize| {
            let mut pipe = PipeSpec::default();
            for change in [&presets[end], &values, &directions[end].0] {
                change.apply_to(&mut pipe);
            }
            pipe
        };
        let pipes = [pipe(0), pipe(1)];
        let link = self.topology.connect(name.clone(), a, b, pipes);
        if let Some(group) = group {
            self.topology.groups[group].links.push(link);
        }
        for (end, (direction, own)) in directions.into_iter().enumerate() {
            let tracks = own.or_else(|| traces.clone()).unwrap_or_default();
            let queued = tracks.iter().any(|track| track.timeline.keys().contains(&"queue"));
            if [&presets[end], &values, &direction].iter().all(|change| change.queue.is_none()) && !queued {
                self.unqueued.insert((link, end));
            }
            for TraceDraft { source, timeline, end: after, offset } in tracks {
                let track = Track { link, pipe: end, source, timeline, end: after, offset, group };
                self.topology.tracks.push(track);
            }
            if let Some(mtu) = mtu {
                let (node, index) = self.topology.link(link).ends[end];
                self.topology.nodes[node.0 as usize].interfaces[index].mtu = mtu as u32;
            }
        }
        if mtu.is_some_and(|mtu| mtu < u64::from(address::IPV6_MTU_MIN)) {
            self.remarks
                .warn(at, format!("link {name}: IPv6 needs an mtu of 1280, so it gets no IPv6 addresses"));
        }
        self.refuse_beside_opportunities(link, &names, &fields, &values, &given);
        fields.finish(&mut self.remarks);
        self.links.insert(name, link);
        self.link_at.push(at);
    }

    /// Values of a link, or of its directions, in whose place opportunities stand from the start
    /// for good.
    fn refuse_beside_opportunities(
        &mut self,
        link: LinkId,
        [a, b]: &[String; 2],
        fields: &Fields,
        values: &Change,
        directions: &[Change; 2],
    ) {
        let topology = &self.topology;
        let in_vain = |end: usize, change: &Change| {
            let starts = topology.tracks_of(link, end).iter().map(|track| topology.start_of(track));
            let mut found = topology.traced((link, end), change, Time::ZERO, starts);
            found.retain(Traced::is_lasting);
            found
        };
        for (end, key) in [format!("{a}_to_{b}"), format!("{b}_to_{a}")].iter().enumerate() {
            for traced in in_vain(end, &directions[end]) {
                let at = fields.place(&[key, traced.key]).unwrap_or(fields.at);
                self.remarks.mistake(at, traced.to_string(), traced.instead());
            }
        }
        // A value of the link counts where the direction has none of its own.
        let of_ends = [0, 1].map(|end| in_vain(end, values));
        for traced in of_ends.iter().flatten() {
            let own = |end: usize| traced::keys(&directions[end]).any(|key| key == traced.key);
            let is_vain = |end: usize| of_ends[end].iter().any(|other| other.key == traced.key);
            if (0..2).all(|end| own(end) || is_vain(end)) {
                let at = fields.place(&[traced.key]).unwrap_or(fields.at);
                self.remarks.mistake(at, traced.to_string(), traced.instead());
            }
        }
    }

    fn ends(&mut self, field: &Field) -> Option<[NodeId; 2]> {
        const TWO: &str = "write between = [\"a\", \"b\"]";
        let Some([first, second]) = field.elements().and_then(|e| <[Field; 2]>::try_from(e).ok()) else {
            self.remarks.mistake(field.at, "between is not a list of two nodes", TWO);
            return None;
        };
        let ends = [first, second].map(|end| {
            let name = end.text("a", &mut self.remarks)?;
            let id = self.nodes.get(name).copied();
            if id.is_none() {
                let instead = match nearest(name, self.nodes.keys().map(String::as_str)) {
                    Some(meant) => format!("write \"{meant}\""),
                    None => format!("write [host.{name}], or the name of a node"),
                };
                self.remarks.mistake(end.at, format!("there is no node '{name}'"), instead);
            }
            id
        });
        let [Some(a), Some(b)] = ends else { return None };
        if a == b {
            self.remarks.mistake(field.at, "the link joins a node to itself", TWO);
            return None;
        }
        Some([a, b])
    }

    fn check_link_name(&mut self, at: usize, name: &str) {
        if !is_name(name) {
            let what = format!("'{}' cannot be the name of a link", name.escape_debug());
            self.remarks.mistake(at, what, "write up to 32 letters, digits, '_', '-', '.'");
        }
        if self.links.contains_key(name) {
            let what = format!("there is a link '{name}' already");
            self.remarks.mistake(at, what, "write another name");
        }
    }

    /// `a-b`, or `a-b-2` if there is one already.
    fn link_name(&self, base: &str, reserved: &BTreeSet<String>) -> String {
        let free = |name: &String| !self.links.contains_key(name) && !reserved.contains(name);
        let numbered = (2..).map(|n| format!("{base}-{n}"));
        std::iter::once(base.to_owned()).chain(numbered).find(free).expect("numbers do not end")
    }

    /// The values of a preset, from the first node to the second and back.
    fn read_preset(&mut self, fields: &mut Fields) -> [Change; 2] {
        let Some(field) = fields.get("preset") else { return Default::default() };
        let Some(name) = field.text("lte", &mut self.remarks) else { return Default::default() };
        let found = crate::preset::named(name);
        if found.is_none() {
            let names: Vec<&str> = crate::preset::all().iter().map(|preset| preset.name.as_str()).collect();
            let instead = match nearest(name, names.iter().copied()) {
                Some(meant) => format!("write \"{meant}\""),
                None => format!("write one of {}", names.join(", ")),
            };
            self.remarks.mistake(field.at, format!("there is no preset '{name}'"), instead);
        }
        found.map_or_else(Default::default, |preset| [preset.up, preset.down])
    }

    fn read_directions(
        &mut self,
        names: &[String; 2],
        link: &Change,
        fields: &mut Fields,
    ) -> [(Change, Option<Vec<TraceDraft>>); 2] {
        let [a, b] = names;
        let read = [format!("{a}_to_{b}"), format!("{b}_to_{a}")].map(|key| {
            let field = fields.get(&key)?;
            let example = "{ rate = \"256kbit\" }";
            let mut direction = field.table(key, example, &mut self.remarks)?;
            let values = pipe::read(&mut direction, self.files, &mut self.remarks);
            let traces = direction.get("trace");
            let traces = traces.map(|field| trace_key::read(&field, self.files, &mut self.remarks));
            direction.finish(&mut self.remarks);
            Some((field.at, values, traces))
        });
        if let [Some((_, forward, _)), Some((at, backward, _))] = &read {
            let thrice =
                written(link).into_iter().zip(written(forward)).zip(written(backward)).zip(pipe::KEYS);
            for (_, key) in thrice.filter(|(((link, forward), backward), _)| *link && *forward && *backward) {
                let what = format!("{key} is given for the link and for both of its directions");
                self.remarks.mistake(*at, what, format!("remove {key} from the link or from a direction"));
            }
        }
        read.map(|direction| direction.map_or_else(Default::default, |(_, values, traces)| (values, traces)))
    }

    fn read_event(&mut self, mut fields: Fields) {
        let start = fields.at;
        let at = fields.get("at").and_then(|field| field.quantity::<Duration>("10s", &mut self.remarks));
        if fields.peek("at").is_none() {
            self.remarks.mistake(start, "event has no time", "write at = \"10s\"");
        }
        let links = self.event_links(start, &mut fields);
        let direction = match (fields.get("direction"), links.as_slice()) {
            (Some(field), [link]) => self.event_direction(&field, *link),
            (Some(field), [_, _, ..]) => {
                let what = "a direction is one of a single link, and this changes several";
                self.remarks.mistake(field.at, what, "write an event for each link");
                None
            }
            _ => Some(Direction::Both),
        };
        let change = pipe::read(&mut fields, self.files, &mut self.remarks);
        if change == Change::default() && !pipe::KEYS.iter().any(|key| fields.peek(key).is_some()) {
            let what = "the event changes nothing";
            self.remarks.mistake(start, what, format!("write one of {}", pipe::KEYS.join(", ")));
        }
        if let (Some(at), Some(direction)) = (at, direction) {
            self.check_beside_traces(Time::ZERO + at, &links, direction, &change, &fields);
        }
        fields.finish(&mut self.remarks);
        if let (Some(at), Some(direction)) = (at, direction) {
            let event = |link| Event { at: Time::ZERO + at, link, direction, change: change.clone() };
            self.topology.events.extend(links.into_iter().map(event));
        }
    }

    /// Changes of values on which a trace decides at that time: opportunities make them mean
    /// nothing, steps undo them.
    fn check_beside_traces(
        &mut self,
        at: Time,
        links: &[LinkId],
        direction: Direction,
        change: &Change,
        fields: &Fields,
    ) {
        let topology = &self.topology;
        for pipe in links.iter().flat_map(|&link| direction.pipes().map(move |end| (link, end))) {
            let starts = topology.tracks_of(pipe.0, pipe.1).iter().map(|track| topology.start_of(track));
            for traced in topology.traced(pipe, change, at, starts) {
                let place = fields.place(&[traced.key]).unwrap_or(fields.at);
                if traced.is_lasting() {
                    self.remarks.mistake(place, traced.to_string(), traced.instead());
                } else {
                    self.remarks.warn(place, traced.outcome());
                }
            }
        }
    }

    /// What an event changes: `link = "a-b"`, a list of them, or `group = "cell"`.
    fn event_links(&mut self, start: usize, fields: &mut Fields) -> Vec<LinkId> {
        match (fields.get("link"), fields.get("group")) {
            (Some(field), None) => {
                let elements = field.elements().unwrap_or_else(|| vec![field.clone()]);
                elements.iter().filter_map(|field| self.event_link(field)).collect()
            }
            (None, Some(field)) => {
                let Some(name) = field.text("cell", &mut self.remarks) else { return Vec::new() };
                if let Some(group) = self.topology.group_named(name) {
                    return self.topology.groups[group].links.clone();
                }
                let names = self.topology.groups.iter().map(|group| group.name.as_str());
                let instead = match nearest(name, names) {
                    Some(meant) => format!("write \"{meant}\""),
                    None => "write the name of a group, as links have it".to_owned(),
                };
                self.remarks.mistake(field.at, format!("there is no group '{name}'"), instead);
                Vec::new()
            }
            (Some(_), Some(field)) => {
                self.remarks.mistake(field.at, "event has a link and a group", "keep one of them");
                Vec::new()
            }
            (None, None) => {
                let instead = "write link = \"a-b\", link = [\"a-b\", \"b-c\"] or group = \"cell\"";
                self.remarks.mistake(start, "event has no link", instead);
                Vec::new()
            }
        }
    }

    fn event_link(&mut self, field: &Field) -> Option<LinkId> {
        let name = field.text("a-b", &mut self.remarks)?;
        let link = self.links.get(name).copied();
        if link.is_none() {
            let instead = match nearest(name, self.links.keys().map(String::as_str)) {
                Some(meant) => format!("write \"{meant}\""),
                None => "write the name of a link, by default its ends: \"a-b\"".to_owned(),
            };
            self.remarks.mistake(field.at, format!("there is no link '{name}'"), instead);
        }
        link
    }

    fn event_direction(&mut self, field: &Field, link: LinkId) -> Option<Direction> {
        let [a, b] = self.topology.link(link).ends.map(|(node, _)| self.topology.node(node).name.clone());
        let (forward, backward) = (format!("{a}_to_{b}"), format!("{b}_to_{a}"));
        match field.text(&forward, &mut self.remarks)? {
            text if text == forward => Some(Direction::Forward),
            text if text == backward => Some(Direction::Backward),
            other => {
                let what = format!("'{other}' is not a direction of link {}", self.topology.link(link).name);
                self.remarks.mistake(field.at, what, format!("write \"{forward}\" or \"{backward}\""));
                None
            }
        }
    }

    /// What can be judged only when everything is read.
    fn check(&mut self) {
        let Some(first) = self.topology.hosts().next().map(|(id, _)| id) else {
            self.remarks.mistake(0, "there is no host, so nothing can enter or leave", "write [host.a]");
            return;
        };
        let given = self.drafts.iter().flat_map(|draft| draft.macs.iter().copied()).collect();
        let mut problems = address::settle_macs(&mut self.topology, &given);
        problems.extend(address::assign(&mut self.topology));
        for (node, interface, error) in problems {
            let at = self.drafts[node.0 as usize].position(interface, &error);
            let at = at.or_else(|| {
                Some(self.link_at[self.topology.node(node).interfaces.get(interface)?.link.0 as usize])
            });
            self.remarks.mistake(at.unwrap_or(0), error.to_string(), error.instead());
        }
        self.warn_of_unreachable(first);
        for (pipes, text) in default_queue::fill(&mut self.topology, &self.unqueued) {
            let at = pipes.first().map_or(0, |(link, _)| self.link_at[link.0 as usize]);
            self.remarks.warn(at, text);
        }
        for (link, text) in default_queue::timeless(&self.topology) {
            self.remarks.warn(self.link_at[link.0 as usize], text);
        }
    }

    /// Hosts that no chain of links joins to the first one.
    fn warn_of_unreachable(&mut self, first: NodeId) {
        let topology = &self.topology;
        let mut joined = vec![false; topology.nodes.len()];
        let mut waiting = vec![first];
        while let Some(node) = waiting.pop() {
            if !std::mem::replace(&mut joined[node.0 as usize], true) {
                waiting.extend(
                    topology.node(node).interfaces.iter().map(|interface| topology.peer(interface).0),
                );
            }
        }
        let mut apart = Vec::new();
        for (index, node) in topology.nodes.iter().enumerate() {
            let at = self.drafts[index].at;
            if node.interfaces.is_empty() {
                self.remarks.warn(at, format!("{} has no link", node.name));
            } else if !joined[index] && matches!(node.kind, NodeKind::Host { .. }) {
                apart.push((at, node.name.as_str()));
            }
        }
        if let Some(&(at, _)) = apart.first() {
            let names = several(apart.iter().map(|(_, name)| *name));
            self.remarks.warn(at, format!("no links join {names} to {}", topology.node(first).name));
        }
    }
}

/// Which of [`pipe::KEYS`] are set.
fn written(values: &Change) -> [bool; pipe::KEYS.len()] {
    let Change {
        rate,
        overhead,
        delay,
        loss,
        queue,
        egress_loss,
        jitter,
        reorder,
        duplicate,
        corrupt,
        opportunities: _,
        framing,
        slots,
        loss_ecn: _,
        state,
        paused: _,
    } = values;
    [
        rate.is_some(),
        overhead.is_some() || framing.is_some(),
        delay.is_some(),
        loss.is_some() || egress_loss.is_some(),
        queue.is_some(),
        jitter.is_some(),
        reorder.is_some(),
        duplicate.is_some(),
        corrupt.is_some(),
        slots.is_some(),
        state.is_some(),
    ]
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
