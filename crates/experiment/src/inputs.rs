//! What a run is made of beside its network: its steps with the words of its condition, the
//! contents of captures, traces and programs. A finished run is compared with what its experiment
//! says now.
//!
//! The network itself is compared as the description that is kept with the run. Comments, metrics
//! and expectations are not among them: they change without a new run.

use super::plan::Experiment;
use super::step::{ReplayInputs, RunKind, RunStep, StepAction};
use fastpath::{Error, Result};
use fastpath_spec::{Description, NetworkSpec, Topology};
use fastpath_units::matrix::fnv1a;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Longest value that is shown of what differs, characters.
const SHOWN_MAX: usize = 60;
/// What names a file of a command.
const FILE: &str = "file ";
/// What the checksum of a content begins with.
const CONTENT: &str = "content:";

/// The inputs of a run, by what they are.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Inputs {
    /// A text, or the checksum of a content.
    pub(super) values: BTreeMap<String, String>,
    /// The files that commands name, as they were.
    files: Vec<(PathBuf, Stamp)>,
}

/// What shows that a file was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

/// Contents that were read before, which many runs share.
#[derive(Debug, Default)]
pub(super) struct Contents(Mutex<BTreeMap<PathBuf, (Stamp, String)>>);

impl Contents {
    fn of(&self, path: &Path) -> std::io::Result<(Stamp, String)> {
        let stamp = Stamp::of(path)?;
        // One run reads a file, and the others wait for its checksum.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stamp, sum)) = known.get(path).filter(|(known, _)| *known == stamp) {
            return Ok((*stamp, sum.clone()));
        }
        let sum = checksum(&fs::read(path)?);
        known.insert(path.to_owned(), (stamp, sum.clone()));
        Ok((stamp, sum))
    }
}

impl Stamp {
    fn of(path: &Path) -> std::io::Result<Stamp> {
        let about = fs::metadata(path)?;
        Ok(Stamp { modified: about.modified().ok(), length: about.len() })
    }
}

fn checksum(content: &[u8]) -> String {
    format!("{CONTENT}{:016x}", fnv1a(content))
}

impl Inputs {
    /// Returns the inputs of a run, as they are now.
    ///
    /// # Errors
    /// A capture cannot be read.
    pub(super) fn of(
        plan: &Experiment,
        run: u64,
        network: &NetworkSpec,
        contents: &Contents,
    ) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        inputs.put("seed", plan.seed(run).to_string());
        inputs.traces(&network.topology);
        match &plan.mode {
            RunKind::Replay(replay) => inputs.replay(plan, replay, contents)?,
            RunKind::Lab(steps) => {
                let tolerance = plan.tolerance.map(|tolerance| tolerance.to_string());
                inputs.put("tolerance", tolerance.unwrap_or_else(|| "not given".to_owned()));
                inputs.put("late_share", plan.late_share.to_string());
                // In real time nothing is said, as by former versions.
                if plan.is_virtual {
                    inputs.put("time", "virtual");
                }
                // Without an audit nothing is said, as by former versions.
                if plan.audit {
                    inputs.put("audit", "of the machine, before the run");
                }
                let engine = Description { engine: network.engine.clone(), ..Description::default() };
                inputs.put("engine", engine.to_json()["engine"].to_string());
                inputs.steps(plan, run, steps, contents);
                let topology = &network.topology;
                let timed = topology.commands.iter().map(|command| &command.command);
                let exec = topology.nodes.iter().flat_map(|node| node.kind.exec());
                for command in timed.chain(exec) {
                    inputs.files_of(command.split_whitespace(), contents);
                }
            }
        }
        Ok(inputs)
    }

    fn put(&mut self, what: impl Into<String>, value: impl Into<String>) {
        self.values.insert(what.into(), value.into());
    }

    /// The description has the names of the files only.
    fn traces(&mut self, topology: &Topology) {
        for track in &topology.tracks {
            let way = ["forward", "backward"].get(track.pipe).copied().unwrap_or("another direction");
            let link = &topology.link(track.link).name;
            let what = format!("trace {} of link {link}, {way}", track.source);
            self.put(what, checksum(format!("{:?}", track.timeline).as_bytes()));
        }
    }

    fn replay(&mut self, plan: &Experiment, replay: &ReplayInputs, contents: &Contents) -> Result<()> {
        for (host, file) in &replay.inputs {
            let path = plan.base.join(&**file);
            let (_, sum) = contents.of(&path).map_err(Error::file(&path))?;
            self.put(format!("capture of {host}"), sum);
        }
        let outputs: Vec<&str> = replay.outputs.iter().map(|host| &**host).collect();
        self.put("out", outputs.join(", "));
        self.put("until", replay.until.map_or("not given".to_owned(), |end| end.to_string()));
        Ok(())
    }

    fn steps(&mut self, plan: &Experiment, run: u64, steps: &[RunStep], contents: &Contents) {
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        self.put("steps", names.join(", "));
        for step in steps {
            let text = step.action.json(&|word| plan.fill(word, run));
            self.put(format!("step {}", step.name), text.to_string());
            let StepAction::Run { command, .. } = &step.action else { continue };
            let words: Vec<String> = command.iter().map(|word| plan.fill(word, run)).collect();
            self.files_of(words.iter().flat_map(|word| word.split_whitespace()), contents);
        }
    }

    /// Notes the files that words of a command name, and the programs that they may call: a shell's
    /// text, `env`, `timeout` and pipes have several. What the kernel makes at each reading is
    /// no input.
    fn files_of<'t>(&mut self, words: impl Iterator<Item = &'t str>, contents: &Contents) {
        for word in words {
            let word = word.trim_matches(|c: char| "'\"`;&|()<>".contains(c));
            let path = Path::new(word);
            let is_of_kernel = ["/proc", "/sys", "/dev"].iter().any(|tree| path.starts_with(tree));
            if word.is_empty() || is_of_kernel {
                continue;
            }
            let file = if path.is_file() { Some(path.to_owned()) } else { in_path(word) };
            if let Some(file) = file {
                self.file(&file, contents);
            }
        }
    }

    fn file(&mut self, path: &Path, contents: &Contents) {
        if let Ok((stamp, sum)) = contents.of(path) {
            self.files.push((path.to_owned(), stamp));
            self.put(format!("{FILE}{}", path.display()), sum);
        }
    }

    /// Returns the files that commands name relative to the directory of work.
    pub(super) fn relative_files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path()).filter(|path| path.is_relative())
    }

    /// Forgets the files that the run wrote: they are results of it.
    pub(super) fn without_results(mut self) -> Inputs {
        for (path, stamp) in &self.files {
            if Stamp::of(path).ok() != Some(*stamp) {
                self.values.remove(&format!("{FILE}{}", path.display()));
            }
        }
        self
    }

    /// Returns what differs between the inputs that were and these, in words.
    pub(super) fn differences(&self, was: &BTreeMap<String, String>) -> Vec<String> {
        let mut differences = Vec::new();
        for (what, was) in was {
            match self.values.get(what) {
                Some(is) if is == was => {}
                Some(is) if is.starts_with(CONTENT) => {
                    differences.push(format!("{what} has another content"))
                }
                Some(is) => differences.push(format!("{what} was {}, is {}", shown(was), shown(is))),
                None => differences.push(format!("{what} is not there any more")),
            }
        }
        // A file that was not there, or that the run wrote, was no input.
        let new = self.values.keys().filter(|what| !was.contains_key(*what) && !what.starts_with(FILE));
        differences.extend(new.map(|what| format!("{what} is new")));
        differences
    }
}

/// The file of a program that is found by its name.
fn in_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return None;
    }
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).map(|directory| directory.join(program)).find(|path| path.is_file())
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns where two descriptions differ first, and the values there. `None`: they are equal.
pub(super) fn difference(was: &Value, is: &Value) -> Option<String> {
    fn walk(path: &str, was: &Value, is: &Value) -> Option<String> {
        if was == is {
            return None;
        }
        let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match (was, is) {
            (Value::Object(old), Value::Object(new)) => {
                let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
                keys.map(|key| {
                    (key, old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null))
                })
                .find_map(|(key, old, new)| walk(&below(key), old, new))
            }
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                let name = |entry: &Value, index: usize| {
                    let name = entry.get("name").and_then(Value::as_str);
                    name.map_or_else(|| index.to_string(), str::to_owned)
                };
                let pairs = old.iter().zip(new).enumerate();
                pairs
                    .map(|(index, (old, new))| (name(old, index), old, new))
                    .find_map(|(name, old, new)| walk(&below(&name), old, new))
            }
            _ => Some(format!("{path} was {}, is {}", shown(&was.to_string()), shown(&is.to_string()))),
        }
    }
    walk("", was, is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_is_named_with_its_values() {
        let was = json!({"links": [{"name": "a-b", "forward": {"delay": "1ms"}}], "nodes": []});
        let mut is = was.clone();
        assert_eq!(difference(&was, &is), None);
        is["links"][0]["forward"]["delay"] = json!("2ms");
        let said = difference(&was, &is).unwrap();
        assert_eq!(said, "links.a-b.forward.delay was \"1ms\", is \"2ms\"");
        is["links"] = json!([]);
        assert!(difference(&was, &is).unwrap().starts_with("links was [{"));
    }

    #[test]
    fn a_file_that_was_no_input_is_not_a_difference() {
        let texts = |texts: &[(&str, &str)]| -> BTreeMap<String, String> {
            texts.iter().map(|(what, value)| ((*what).to_owned(), (*value).to_owned())).collect()
        };
        let is = Inputs {
            values: texts(&[("file log", "content:1"), ("file x", "content:2"), ("until", "2s")]),
            files: Vec::new(),
        };
        assert_eq!(is.differences(&texts(&[("file x", "content:2"), ("until", "2s")])), [""; 0]);
        let was = texts(&[("file x", "content:3"), ("out", "b"), ("until", "1s")]);
        let said = ["file x has another content", "out is not there any more", "until was 1s, is 2s"];
        assert_eq!(is.differences(&was), said);
        assert_eq!(is.differences(&texts(&[("file x", "content:2")])), ["until is new"]);
    }
}
