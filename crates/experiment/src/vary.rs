//! The description of a condition: the file with the values of the axes.

use super::axis::Factor;
use super::plan::Experiment;
use fastpath::load;
use fastpath::{Error, Result};
use fastpath_spec::{Description, Mistake, NetworkSpec, TOP, TopKey, Warning};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The key of values over time, of a link or of a direction.
const TRACE: &str = "trace";

/// The network of a condition.
pub(super) struct ConditionNetwork {
    pub(super) spec: NetworkSpec,
    /// The file of its description.
    pub(super) path: PathBuf,
    /// The files that the description and the values name, such as traces.
    pub(super) files: Vec<PathBuf>,
    /// Warnings with their places.
    pub(super) warnings: Vec<String>,
}

/// A value of the description that varies, in one condition.
struct Varied<'a> {
    axis: &'a Factor,
    index: usize,
}

impl Varied<'_> {
    /// Byte offset of the value in the file of the experiment.
    fn at(&self) -> usize {
        self.axis.places[self.index]
    }

    fn value(&self) -> &Value {
        &self.axis.values[self.index]
    }

    fn words(&self) -> String {
        format!("{} = {}", self.axis.name, self.value())
    }
}

impl Experiment {
    /// Returns the network of a run.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with the mistakes of the description and of the values.
    pub(super) fn network(&self, run: u64) -> Result<ConditionNetwork> {
        self.network_of(self.condition(run))
    }

    /// Returns the network of a condition: the index of the value of each axis.
    ///
    /// # Errors
    /// As [`Experiment::network`].
    pub(super) fn network_of(&self, condition: Vec<usize>) -> Result<ConditionNetwork> {
        let chosen: Vec<Varied> =
            self.axes.iter().zip(condition).map(|(axis, index)| Varied { axis, index }).collect();
        let file = chosen.iter().find(|varied| varied.axis.is_spec()).and_then(|spec| spec.value().as_str());
        let path = self.base.join(file.or(self.spec.as_deref()).unwrap_or_default());
        let loaded = load(&path)?;
        let values: Vec<Varied> =
            chosen.into_iter().filter(|varied| varied.axis.name.contains('.')).collect();
        if values.is_empty() {
            let shown = |warning: &Warning| fastpath::at(&path, warning);
            let warnings = loaded.warnings.iter().map(shown).collect();
            return Ok(ConditionNetwork { spec: loaded.spec, path, files: loaded.files, warnings });
        }
        let named = RefCell::new(loaded.files);
        match self.with_values(&loaded.spec, (&path, &named), &values) {
            Ok((spec, warnings)) => {
                // What the file causes has its place there, and the rest that of the values.
                let shown = |warning: Warning| {
                    let known = loaded.warnings.iter().find(|known| known.what == warning.what);
                    known.map_or_else(
                        || self.mistake(values[0].at(), &warning.what),
                        |known| fastpath::at(&path, known),
                    )
                };
                let warnings = warnings.into_iter().map(shown).collect();
                Ok(ConditionNetwork { spec, path, files: named.into_inner(), warnings })
            }
            Err(together) => {
                // Values that are wrong alone are the ones to name; otherwise they do not fit
                // together.
                let read =
                    |value| self.with_values(&loaded.spec, (&path, &named), std::slice::from_ref(value));
                let alone: Vec<String> =
                    values.iter().filter_map(|value| read(value).err()).flatten().collect();
                Err(Error::Mistakes(if alone.is_empty() { together } else { alone }))
            }
        }
    }

    /// Returns a network with other values; or the mistakes, at the places of the values. The files
    /// that it reads are added to `named`.
    fn with_values(
        &self,
        spec: &NetworkSpec,
        (path, named): (&Path, &RefCell<Vec<PathBuf>>),
        values: &[Varied],
    ) -> Result<(NetworkSpec, Vec<Warning>), Vec<String>> {
        let mut json = description(spec, values).to_json();
        let mut mistakes = Vec::new();
        for varied in values {
            if let Err(what) = set(&mut json, &varied.axis.name, varied.value()) {
                mistakes.push(self.mistake(varied.at(), format!("{}: {what}", varied.words())));
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let files = |file: &str| {
            let path = directory.join(file);
            let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            named.borrow_mut().push(path);
            Ok(text)
        };
        fastpath_spec::read_json(&json.to_string(), &files).map_err(|found| {
            let words: Vec<String> = values.iter().map(Varied::words).collect();
            let words = words.join(", ");
            let at = |Mistake { what, instead, .. }| {
                self.mistake(values[0].at(), format!("{words}: {what}; {instead}"))
            };
            found.into_iter().map(at).collect()
        })
    }
}

/// Returns the description that values are set in: that of the resolved network. Where a preset or
/// a trace varies it is the one that the author wrote, because a resolved value wins over a preset.
fn description(spec: &NetworkSpec, values: &[Varied]) -> Description {
    let is_of_author = |varied: &Varied| {
        varied.axis.name.starts_with("link.") && varied.axis.name.ends_with(".preset")
            || varied.axis.name.rsplit('.').next() == Some(TRACE)
    };
    if !values.iter().any(is_of_author) || spec.description.nodes.is_empty() {
        return Description { engine: spec.engine.clone(), ..fastpath_spec::describe(&spec.topology) };
    }
    let mut description = spec.description.clone();
    // Axes name links that the author left without a name.
    for (link, resolved) in description.links.iter_mut().zip(&spec.topology.links) {
        link.name.get_or_insert_with(|| resolved.name.clone());
    }
    description
}

/// Sets a value of a description in its canonical form. `name` is `link.NAME.KEY`,
/// `link.NAME.A_to_B.KEY`, `host.NAME.KEY` (or another kind of node), or the key of a table at the
/// top, such as `engine.tolerance`.
fn set(description: &mut Value, name: &str, value: &Value) -> Result<(), String> {
    let (section, rest) = name.split_once('.').expect("values have a dot");
    let top = description.as_object_mut().expect("a description is an object");
    // A value alone has no keys.
    let has_keys = |place: &&TopKey| place.is_table() || place.is_list();
    let Some(place) = TopKey::of_word(section).filter(has_keys) else {
        let words: Vec<&str> = TOP.iter().filter(has_keys).flat_map(TopKey::words).collect();
        return Err(format!("{section} is not a part of a description; write one of {}", words.join(", ")));
    };
    if place.is_table() {
        let table = top.entry(place.key).or_insert_with(|| Value::Object(Map::new()));
        table.as_object_mut().expect("a table").insert(rest.to_owned(), value.clone());
        return Ok(());
    }
    let (list, what) = (place.key, section);
    let entries = top.get_mut(list).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
    let names: Vec<String> =
        entries.iter().filter_map(|entry| Some(entry.get("name")?.as_str()?.to_owned())).collect();
    if names.is_empty() && !entries.is_empty() {
        return Err(format!("an entry of {list} has no name, and only values under a name can vary"));
    }
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
    set_in_link(entry, key, value)
}

/// Sets a key of a link: of both directions, or of the one that is named before the key.
fn set_in_link(entry: &mut Map<String, Value>, key: &str, value: &Value) -> Result<(), String> {
    let (direction, key) = match key.rsplit_once('.') {
        Some((direction, key)) => (Some(direction), key),
        None => (None, key),
    };
    if !fastpath_spec::is_key(key) && (key != TRACE || direction.is_none()) {
        if direction.is_some() {
            return Err(format!(
                "{key} is not a value of a direction; write rate, delay, loss, queue, trace or another"
            ));
        }
        entry.insert(key.to_owned(), value.clone());
        return Ok(());
    }
    let ends: Vec<String> =
        entry["between"].as_array().into_iter().flatten().map(super::axis::label).collect();
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
