//! Descriptions of networks: the canonical form (JSON) in, mistakes with their places out.

use crate::failure::{argument, raise};
use fastpath::spec::{Checked, Description, Mistake, NO_FILES, NetworkSpec, TOP, Topology, check_json};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// A mistake: line, column, what is wrong, what to write.
type MistakeRow = (usize, usize, String, String);
/// A mistake: place, what is wrong, what to write.
type PlacedMistake = (String, String, String);
/// A warning: line, column, what.
type WarningRow = (usize, usize, String);

/// The files that a description names: texts in memory by name, otherwise below a directory.
#[derive(FromPyObject)]
pub(crate) struct NamedFiles {
    texts: HashMap<String, String>,
    directory: PathBuf,
}

impl NamedFiles {
    fn read(&self, name: &str) -> Result<String, String> {
        match self.texts.get(name) {
            Some(text) => Ok(text.clone()),
            None => fs::read_to_string(self.directory.join(name)).map_err(|error| error.to_string()),
        }
    }

    pub(crate) fn check(&self, description: &str) -> Checked<NetworkSpec> {
        check_json(description, &|name| self.read(name))
    }

    /// Returns the topology of a description without mistakes.
    pub(crate) fn topology(&self, description: &str) -> PyResult<Topology> {
        let checked = self.check(description).into_result();
        let (spec, _) = checked.map_err(|mistakes| argument(lines(&mistakes)))?;
        Ok(spec.topology)
    }
}

/// Checks a description. Returns the resolved one in the canonical form (empty with mistakes);
/// mistakes; and warnings.
#[pyfunction]
pub(crate) fn check(description: &str, files: NamedFiles) -> (String, Vec<MistakeRow>, Vec<WarningRow>) {
    let Checked { value, mistakes, warnings } = files.check(description);
    let resolved = value.map(|spec| resolved(&spec)).unwrap_or_default();
    let warnings = warnings.into_iter().map(|w| (w.line, w.column, w.what)).collect();
    (resolved, mistakes.into_iter().map(row).collect(), warnings)
}

/// Reads a spec file of any format. Returns the resolved description in the canonical form, or
/// None; mistakes with their places; and warnings.
#[pyfunction]
pub(crate) fn check_file(path: PathBuf) -> PyResult<(Option<String>, Vec<PlacedMistake>, Vec<String>)> {
    let Checked { value, mistakes, warnings } = fastpath::check(&path).map_err(raise)?;
    let placed = |m: Mistake| (format!("{}:{}:{}", path.display(), m.line, m.column), m.what, m.instead);
    let warnings = warnings.iter().map(|warning| fastpath::at(&path, warning)).collect();
    Ok((value.map(|spec| resolved(&spec)), mistakes.into_iter().map(placed).collect(), warnings))
}

/// Reads a description without resolving it. Returns it in the canonical form (empty with
/// mistakes), and mistakes.
#[pyfunction]
pub(crate) fn canonical(description: &str, files: NamedFiles) -> (String, Vec<MistakeRow>) {
    match Description::from_json(description, &|name| files.read(name)) {
        Ok(description) => (description.to_json().to_string(), Vec::new()),
        Err(mistakes) => (String::new(), mistakes.into_iter().map(row).collect()),
    }
}

/// Reads the text of a spec file (TOML) without resolving it. Returns it as [`canonical`].
#[pyfunction]
pub(crate) fn canonical_of_toml(text: &str, files: NamedFiles) -> (String, Vec<MistakeRow>) {
    match Description::from_toml(text, &|name| files.read(name)) {
        Ok(description) => (description.to_json().to_string(), Vec::new()),
        Err(mistakes) => (String::new(), mistakes.into_iter().map(row).collect()),
    }
}

/// Returns a description that another directory can have: in the canonical form, with absolute
/// paths of the files of hosts, and the texts of the files that it names.
#[pyfunction]
pub(crate) fn portable(description: &str, files: NamedFiles) -> PyResult<(String, HashMap<String, String>)> {
    let texts = RefCell::new(HashMap::new());
    let read = |name: &str| {
        let text = files.read(name)?;
        texts.borrow_mut().insert(name.to_owned(), text.clone());
        Ok(text)
    };
    let checked = check_json(description, &read).into_result();
    let (mut spec, _) = checked.map_err(|mistakes| argument(lines(&mistakes)))?;
    spec.description.nodes.iter_mut().for_each(|node| node.host.below(&files.directory));
    Ok((spec.description.to_json().to_string(), texts.into_inner()))
}

/// Returns a description in the canonical form as the text of a spec file.
#[pyfunction]
pub(crate) fn to_toml(description: &str) -> PyResult<String> {
    let read = Description::from_json(description, NO_FILES);
    Ok(read.map_err(|mistakes| argument(lines(&mistakes)))?.to_toml())
}

/// Returns the keys at the top of a description; whether each has a list, and whether the canonical
/// form always has it.
pub(crate) fn top() -> Vec<(&'static str, bool, bool)> {
    TOP.iter().map(|top| (top.key, top.is_list(), top.is_always_written())).collect()
}

/// Draws a topology as SVG.
#[pyfunction]
pub(crate) fn draw(description: &str, files: NamedFiles, title: &str) -> PyResult<String> {
    let topology = files.topology(description)?;
    Ok(fastpath::picture::picture(&topology, title).draw().svg())
}

fn row(mistake: Mistake) -> MistakeRow {
    (mistake.line, mistake.column, mistake.what, mistake.instead)
}

fn lines(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn resolved(spec: &NetworkSpec) -> String {
    let mut description = fastpath::spec::describe(&spec.topology);
    description.engine = spec.engine.clone();
    description.to_json().to_string()
}
