//! The description of a condition: the file with the values of the axes.

use super::axis::{SPEC, label};
use super::plan::Experiment;
use super::step::{RunKind, StepAction};
use fastpath::load;
use fastpath::{Error, Result};
use fastpath_spec::{NetworkSpec, Warning};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

impl Experiment {
    /// The values of a run by the names of the axes.
    pub(super) fn place(&self, run: u64) -> BTreeMap<String, Value> {
        let condition = self.condition(run);
        let values = self
            .axes
            .iter()
            .zip(condition)
            .map(|(axis, index)| (axis.name.clone(), axis.values[index].clone()));
        values.collect()
    }

    /// Replaces `{NAME}` by the value of the axis in a run, and `{seed}` and `{run}` by their
    /// numbers. Other braces stay.
    pub(super) fn fill(&self, text: &str, run: u64) -> String {
        let own = [("seed", self.seed(run).to_string()), ("run", run.to_string())];
        let words = self.axes.iter().zip(self.condition(run)).filter(|(axis, _)| axis.is_word());
        let words = words.map(|(axis, index)| (axis.name.as_str(), label(&axis.values[index])));
        words
            .chain(own)
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), &value))
    }

    /// Returns the network of a run.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with the mistakes of the description and of the values.
    pub(super) fn network(&self, run: u64) -> Result<(NetworkSpec, PathBuf, Vec<Warning>)> {
        let place = self.place(run);
        let file = place.get(SPEC).and_then(Value::as_str).or(self.spec.as_deref()).unwrap_or_default();
        let path = self.base.join(file);
        let loaded = load(&path)?;
        let values: Vec<(&String, &Value)> = place.iter().filter(|(name, _)| name.contains('.')).collect();
        if values.is_empty() {
            return Ok((loaded.spec, path, loaded.warnings));
        }
        let mut description = fastpath_spec::describe(&loaded.spec.topology);
        description.engine = loaded.spec.engine.clone();
        let mut json = description.to_json();
        let mut mistakes = Vec::new();
        for (name, value) in &values {
            if let Err(what) = set(&mut json, name, value) {
                mistakes.push(self.mistake(format!("matrix: {name} = {value}: {what}")));
            }
        }
        if !mistakes.is_empty() {
            return Err(Error::Mistakes(mistakes));
        }
        let directory = path.parent().unwrap_or(std::path::Path::new("")).to_owned();
        let files =
            |file: &str| std::fs::read_to_string(directory.join(file)).map_err(|error| error.to_string());
        match fastpath_spec::read_json(&json.to_string(), &files) {
            Ok((spec, warnings)) => Ok((spec, path, warnings)),
            Err(found) => {
                let values: Vec<String> =
                    values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                let at = |mistake: fastpath_spec::Mistake| {
                    self.mistake(format!(
                        "matrix: {}: {}; {}",
                        values.join(", "),
                        mistake.what,
                        mistake.instead
                    ))
                };
                Err(Error::Mistakes(found.into_iter().map(at).collect()))
            }
        }
    }

    /// Checks what can be checked before anything starts: the description of every condition, the
    /// hosts and links of steps and metrics, the captures.
    pub(super) fn check(&self) -> Result<()> {
        let mut mistakes = Vec::new();
        for condition in 0..self.conditions() {
            match self.network(condition) {
                Ok((spec, ..)) => self.check_names(&spec, &mut mistakes),
                Err(Error::Mistakes(more)) => mistakes.extend(more),
                Err(Error::File { path, source }) => {
                    mistakes.push(self.mistake(format!("{}: {source}", path.display())))
                }
                Err(other) => return Err(other),
            }
        }
        if let RunKind::Replay(replay) = &self.mode {
            for capture in replay.inputs.values() {
                if !self.base.join(capture).is_file() {
                    mistakes
                        .push(self.mistake(format!("replay: {capture} is no file; write that of a capture")));
                }
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        mistakes.retain(|mistake| seen.insert(mistake.clone()));
        if mistakes.is_empty() { Ok(()) } else { Err(Error::Mistakes(mistakes)) }
    }

    fn check_names(&self, spec: &NetworkSpec, mistakes: &mut Vec<String>) {
        let topology = &spec.topology;
        let hosts: Vec<&str> = topology.hosts().map(|(_, host)| host.name.as_str()).collect();
        let links: Vec<&str> = topology.links.iter().map(|link| link.name.as_str()).collect();
        let flows: Vec<&str> = topology.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
        let mut unknown = |what: &str, name: &str, have: &[&str]| {
            if !have.contains(&name) {
                mistakes.push(self.mistake(format!("{what}: {name} is unknown (have: {})", have.join(", "))));
            }
        };
        if let RunKind::Lab(steps) = &self.mode {
            let nodes: Vec<&str> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
            for step in steps {
                let what = format!("step {}", step.name);
                match &step.action {
                    StepAction::Run { on: Some(on), .. } | StepAction::Collect { on: Some(on), .. } => {
                        unknown(&what, on, &nodes)
                    }
                    StepAction::Set(values) => {
                        values
                            .keys()
                            .filter_map(|key| key.rsplit_once('.'))
                            .for_each(|(link, _)| unknown(&what, link, &links));
                    }
                    _ => {}
                }
            }
        }
        if let RunKind::Replay(replay) = &self.mode {
            let places = replay.inputs.keys().chain(&replay.outputs);
            let host = |place: &String| place.split(':').next().unwrap_or_default().to_owned();
            places.map(host).for_each(|place| unknown("replay", &place, &hosts));
        }
        for metric in &self.metrics {
            if let Some(flow) = metric.flow() {
                unknown(&format!("metric {}", metric.name), flow, &flows);
            }
            if let Some(link) = metric.link() {
                unknown(&format!("metric {}", metric.name), link, &links);
            }
        }
    }
}

/// Sets a value of a description in its canonical form. `name` is `link.NAME.KEY`,
/// `link.NAME.A_to_B.KEY`, `host.NAME.KEY` (or another kind of node), or the key of a table at the
/// top, such as `engine.tolerance`.
fn set(description: &mut Value, name: &str, value: &Value) -> Result<(), String> {
    let (section, rest) = name.split_once('.').expect("values have a dot");
    let top = description.as_object_mut().expect("a description is an object");
    let (list, what) = match section {
        "link" => ("links", "link"),
        "host" | "router" | "switch" | "openflow" | "nat" | "uplink" => ("nodes", section),
        "group" => ("groups", "group"),
        "traffic" => ("traffic", "traffic"),
        "engine" => {
            let table = top.entry("engine").or_insert_with(|| Value::Object(Map::new()));
            table.as_object_mut().expect("a table").insert(rest.to_owned(), value.clone());
            return Ok(());
        }
        _ => {
            return Err(format!(
                "{section} is no part of a description; write link, host, router, switch or engine"
            ));
        }
    };
    let entries = top.get_mut(list).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
    let names: Vec<String> =
        entries.iter().filter_map(|entry| Some(entry.get("name")?.as_str()?.to_owned())).collect();
    // A name may contain dots; a key does not.
    let is_of = |known: &&String| rest.strip_prefix(known.as_str()).is_some_and(|key| key.starts_with('.'));
    let Some(index) = names.iter().position(|known| is_of(&known)) else {
        return Err(format!("there is no such {what} (have: {})", names.join(", ")));
    };
    let key = &rest[names[index].len() + 1..];
    let entry = entries[index].as_object_mut().expect("an entry is an object");
    if list != "links" {
        entry.insert(key.to_owned(), value.clone());
        return Ok(());
    }
    let (direction, key) = match key.rsplit_once('.') {
        Some((direction, key)) => (Some(direction), key),
        None => (None, key),
    };
    if !fastpath_spec::is_key(key) {
        if direction.is_some() {
            return Err(format!(
                "{key} is no value of a direction; write rate, delay, loss, queue or another"
            ));
        }
        entry.insert(key.to_owned(), value.clone());
        return Ok(());
    }
    let ends: Vec<String> = entry["between"].as_array().into_iter().flatten().map(label).collect();
    let ways = [
        ("forward", format!("{}_to_{}", ends[0], ends[1])),
        ("backward", format!("{}_to_{}", ends[1], ends[0])),
    ];
    if direction.is_some_and(|direction| ways.iter().all(|(_, name)| name != direction)) {
        return Err(format!("there is no such direction; write {} or {}", ways[0].1, ways[1].1));
    }
    for (way, name) in &ways {
        if direction.is_none_or(|direction| direction == name) {
            let values = entry.entry(*way).or_insert_with(|| Value::Object(Map::new()));
            values.as_object_mut().expect("a direction is an object").insert(key.to_owned(), value.clone());
        }
    }
    Ok(())
}
