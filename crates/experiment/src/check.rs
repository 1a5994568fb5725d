//! Checks an experiment against its networks before anything starts: the description of every
//! condition, and the names of hosts, links, groups and flows that steps and metrics use.

use super::plan::Experiment;
use super::step::{ReplayInputs, RunKind, StepAction};
use super::vary::ConditionNetwork;
use fastpath::{Error, Result};
use fastpath_spec::{NetworkSpec, Topology};
use fastpath_text::fields::Name;
use fastpath_text::mistake::{Remarks, choice};
use std::collections::BTreeSet;

/// Mistakes that several conditions share: byte offset, what is wrong, what to write.
type MistakeSet = BTreeSet<(usize, String, String)>;

impl Experiment {
    /// Reports what is wrong in this file, and returns the mistakes in descriptions and in the
    /// values of axes, with their places. Warnings about the networks are kept.
    ///
    /// # Errors
    /// The operating system refuses something other than a file.
    pub(super) fn check_networks(&mut self, remarks: &mut Remarks) -> Result<Vec<String>> {
        let (mut lines, mut seen, mut found) = (Vec::new(), BTreeSet::new(), MistakeSet::new());
        let mut warned = BTreeSet::new();
        for condition in 0..self.conditions() {
            match self.network(condition) {
                Ok(ConditionNetwork { spec, warnings, .. }) => {
                    warned.extend(warnings);
                    self.check_names(&spec.topology, &mut found);
                }
                Err(Error::Mistakes(more)) => {
                    lines.extend(more.into_iter().filter(|line| seen.insert(line.clone())));
                }
                Err(Error::File { path, source }) => {
                    let what = format!("{}: {source}", path.display());
                    found.insert((
                        self.spec_place(condition),
                        what,
                        "write the file of a network".to_owned(),
                    ));
                }
                Err(other) => return Err(other),
            }
        }
        if let RunKind::Replay(replay) = &self.mode {
            for (_, capture) in replay.inputs.iter().filter(|(_, file)| !self.base.join(&**file).is_file()) {
                remarks.mistake(capture.at, format!("{capture} is not a file"), "write that of a capture");
            }
        }
        if lines.is_empty() && found.is_empty() {
            self.check_effects(&mut found)?;
        }
        for (at, what, instead) in found {
            remarks.mistake(at, what, instead);
        }
        self.warnings = warned.into_iter().collect();
        Ok(lines)
    }

    /// Reports values of the description that make the same network as another value of their axis.
    fn check_effects(&self, found: &mut MistakeSet) -> Result<()> {
        let first = vec![0; self.axes.len()];
        for (index, axis) in self.axes.iter().enumerate().filter(|(_, axis)| axis.name.contains('.')) {
            let mut networks: Vec<NetworkSpec> = Vec::new();
            for value in 0..axis.values.len() {
                let mut condition = first.clone();
                condition[index] = value;
                let spec = self.network_of(condition)?.spec;
                let is_same =
                    |other: &NetworkSpec| other.topology == spec.topology && other.engine == spec.engine;
                if let Some(same) = networks.iter().position(is_same) {
                    let [value_text, other] = [value, same].map(|value| &axis.values[value]);
                    let what = format!("{} = {value_text} makes the same network as {other}", axis.name);
                    let instead =
                        "write a value that has an effect; what a link gives itself wins over a preset";
                    found.insert((axis.places[value], what, instead.to_owned()));
                }
                networks.push(spec);
            }
        }
        Ok(())
    }

    /// Where the file names the description of a condition.
    fn spec_place(&self, condition: u64) -> usize {
        let axes = self.axes.iter().zip(self.condition(condition));
        let of_axis = axes.filter(|(axis, _)| axis.is_spec()).map(|(axis, index)| axis.places[index]).next();
        of_axis.or(self.spec.as_ref().map(|spec| spec.at)).unwrap_or_default()
    }

    fn check_names(&self, topology: &Topology, found: &mut MistakeSet) {
        match &self.mode {
            RunKind::Lab(steps) => steps.iter().for_each(|step| check_step(&step.action, topology, found)),
            RunKind::Replay(replay) => check_replay(replay, topology, found),
        }
        let flows = || topology.traffic.iter().map(|traffic| traffic.name.as_str());
        let transfers = || topology.transfers.iter().map(|transfer| transfer.name.as_str());
        for metric in &self.metrics {
            match metric.traffic() {
                Some((flow, true)) => known("transfer", flow, transfers(), found),
                Some((flow, false)) => known("flow", flow, flows(), found),
                None => {}
            }
            let Some((link, from)) = metric.link() else { continue };
            known("link", link, links(topology), found);
            let ends = topology.links.iter().find(|known| known.name == **link).map(|link| link.ends);
            if let (Some(ends), Some(from)) = (ends, from) {
                let ends = ends.map(|(node, _)| topology.node(node).name.as_str());
                known(&format!("end of the link {link}"), from, ends, found);
            }
        }
    }
}

fn links(topology: &Topology) -> impl Iterator<Item = &str> {
    topology.links.iter().map(|link| link.name.as_str())
}

/// Reports a name that is not one of `have`.
fn known<'n>(what: &str, name: &Name, have: impl IntoIterator<Item = &'n str>, found: &mut MistakeSet) {
    let have: Vec<&str> = have.into_iter().collect();
    if !have.contains(&&**name) {
        found.insert((name.at, format!("there is no {what} '{name}'"), choice(name, have)));
    }
}

fn check_step(action: &StepAction, topology: &Topology, found: &mut MistakeSet) {
    match action {
        StepAction::Run { on: Some(on), .. } | StepAction::Collect { on: Some(on), .. } => {
            known("node", on, topology.nodes.iter().map(|node| node.name.as_str()), found);
        }
        StepAction::Set(values) => {
            values.iter().for_each(|value| known("link", &value.link, links(topology), found));
        }
        StepAction::Start(group) => {
            known("group", group, topology.groups.iter().map(|group| group.name.as_str()), found);
        }
        StepAction::Run { .. } | StepAction::Collect { .. } | StepAction::Wait(_) => {}
    }
}

fn check_replay(replay: &ReplayInputs, topology: &Topology, found: &mut MistakeSet) {
    for place in replay.inputs.iter().map(|(place, _)| place).chain(&replay.outputs) {
        let (host, interface) = match place.split_once(':') {
            Some((host, interface)) => (host, Some(interface)),
            None => (&**place, None),
        };
        let host = Name { text: host.to_owned(), at: place.at };
        known("host", &host, topology.hosts().map(|(_, host)| host.name.as_str()), found);
        let node = topology.hosts().map(|(_, node)| node).find(|node| node.name == *host);
        if let (Some(node), Some(interface)) = (node, interface) {
            let interface = Name { text: interface.to_owned(), at: place.at };
            let have = node.interfaces.iter().map(|interface| interface.name.as_str());
            known(&format!("interface of {host}"), &interface, have, found);
        }
    }
}
