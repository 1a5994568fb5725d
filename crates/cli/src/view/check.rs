//! What `fastpath check` prints of a description, as text and as JSON.

use super::data_paths::DataPaths;
use super::parts::Parts;
use super::{Render, json_line};
use fastpath::at;
use fastpath::replay::WorkerCount;
use fastpath_spec::mistake::printable;
use fastpath_spec::{
    Checked, DataPathChoice, Group, Mistake, NetworkSpec, Start, Topology, Track, Warning, describe,
};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

/// A checked description and its file.
pub(crate) struct CheckedFile<'c> {
    /// The file.
    pub(crate) path: &'c Path,
    /// The description, or its mistakes.
    pub(crate) checked: &'c Checked<NetworkSpec>,
    /// The workers for which the network is cut.
    pub(crate) workers: Option<WorkerCount>,
    /// Where links are to run.
    pub(crate) data_path: Option<DataPathChoice>,
}

impl Render for CheckedFile<'_> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let CheckedFile { path, checked, workers, data_path } = self;
        checked.mistakes.iter().try_for_each(|mistake| writeln!(out, "{}", at(path, mistake)))?;
        let Some(NetworkSpec { topology, engine, .. }) = &checked.value else { return Ok(()) };
        checked.warnings.iter().try_for_each(|warning| writeln!(out, "{}", at(path, warning)))?;
        let name = path.display().to_string();
        writeln!(out, "{}: ok: {}", printable(&name), summary(topology))?;
        let mut tracks = topology.tracks.iter().map(|track| track_line(topology, track));
        tracks.try_for_each(|line| writeln!(out, "{}", printable(&line)))?;
        DataPaths::new(topology, engine.data_path, *data_path).text(out)?;
        let parts = workers.map(|workers| Parts::new(topology, workers));
        parts.iter().try_for_each(|parts| parts.text(out))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut value = json(self.checked);
        if let Some(NetworkSpec { topology, engine, .. }) = &self.checked.value {
            value["data_path"] = DataPaths::new(topology, engine.data_path, self.data_path).value();
            if let Some(workers) = self.workers {
                value["parallel"] = Parts::new(topology, workers).value();
            }
        }
        json_line(out, &value)
    }
}

/// Summarises a topology: `4 hosts, 2 routers and switches, 1 link, 0 scheduled changes`.
fn summary(topology: &Topology) -> String {
    let hosts = topology.hosts().count();
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let others = match topology.nodes.len() - hosts {
        1 => "1 router or switch".to_owned(),
        count => format!("{count} routers and switches"),
    };
    format!(
        "{}, {others}, {}, {}",
        counted(hosts, "host"),
        counted(topology.links.len(), "link"),
        counted(topology.events.len(), "scheduled change"),
    )
}

/// Describes a trace on a link: `  link path, a to b: lte.csv: 600 steps in 60s: rate …`.
fn track_line(topology: &Topology, track: &Track) -> String {
    let link = topology.link(track.link);
    let [from, to] = [track.pipe, 1 - track.pipe].map(|end| &topology.node(link.ends[end].0).name);
    let starts = match track.group.map(|group| &topology.groups[group]) {
        None => String::new(),
        Some(Group { name, start, .. }) => match start {
            Start::At(at) => format!("; starts at {at} (group {name})"),
            Start::FirstPacket => format!("; starts with the first packet (group {name})"),
            Start::Command => format!("; starts on command (group {name})"),
        },
    };
    let what = track.timeline.describe();
    format!("  link {}, {from} to {to}: {}: {what}{starts}", link.name, track.source)
}

fn track_json(topology: &Topology, track: &Track) -> Value {
    let link = topology.link(track.link);
    json!({
        "link": link.name,
        "from": topology.node(link.ends[track.pipe].0).name,
        "source": track.source.to_string(),
        "seconds": track.timeline.length().as_secs_f64(),
        "sets": track.timeline.keys(),
        "summary": track.timeline.describe(),
    })
}

/// What was found in a description as JSON: mistakes, warnings, and the topology if there is one.
fn json(checked: &Checked<NetworkSpec>) -> Value {
    let mut value = json!({
        "ok": checked.value.is_some(),
        "topology": null,
        "mistakes": checked.mistakes.iter().map(mistake_json).collect::<Vec<_>>(),
        "warnings": checked.warnings.iter().map(warning_json).collect::<Vec<_>>(),
    });
    if let Some(NetworkSpec { topology, engine, .. }) = &checked.value {
        let mut description = describe(topology);
        description.engine = engine.clone();
        value["topology"] = description.to_json();
        value["nodes"] = json!(topology.nodes.len());
        value["links"] = json!(topology.links.len());
        value["traces"] = topology.tracks.iter().map(|track| track_json(topology, track)).collect();
    }
    value
}

fn mistake_json(Mistake { line, column, what, instead }: &Mistake) -> Value {
    json!({ "line": line, "column": column, "what": what, "instead": instead })
}

fn warning_json(Warning { line, column, code, what }: &Warning) -> Value {
    json!({ "line": line, "column": column, "code": code.word(), "what": what })
}
