//! Descriptions of networks: the canonical form (JSON) in, mistakes with their places out.

use crate::failure::{argument, raise};
use fastpath::spec::{Checked, NetworkSpec, Topology, check_json};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// A mistake: line, column, what is wrong, what to write.
type MistakeRow = (usize, usize, String, String);
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
        let (spec, _) = self.check(description).into_result().map_err(|mistakes| {
            argument(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        })?;
        Ok(spec.topology)
    }
}

/// Checks a description. Returns the resolved one in the canonical form, or None; mistakes; and
/// warnings.
#[pyfunction]
pub(crate) fn check(
    description: &str,
    files: NamedFiles,
) -> (Option<String>, Vec<MistakeRow>, Vec<WarningRow>) {
    let Checked { value, mistakes, warnings } = files.check(description);
    let canonical = value.map(|spec| canonical(&spec));
    let mistakes = mistakes.into_iter().map(|m| (m.line, m.column, m.what, m.instead)).collect();
    let warnings = warnings.into_iter().map(|w| (w.line, w.column, w.what)).collect();
    (canonical, mistakes, warnings)
}

/// Reads a spec file of any format. Returns it in the canonical form, with warnings.
#[pyfunction]
pub(crate) fn check_file(path: PathBuf) -> PyResult<(String, Vec<String>)> {
    let loaded = fastpath::load(&path).map_err(raise)?;
    let warnings = loaded.warnings.iter().map(|warning| fastpath::at(&path, warning)).collect();
    Ok((canonical(&loaded.spec), warnings))
}

/// Draws a topology as SVG.
#[pyfunction]
pub(crate) fn draw(description: &str, files: NamedFiles, title: &str) -> PyResult<String> {
    let topology = files.topology(description)?;
    Ok(fastpath::picture::picture(&topology, title).draw().svg())
}

fn canonical(spec: &NetworkSpec) -> String {
    let mut description = fastpath::spec::describe(&spec.topology);
    description.engine = spec.engine.clone();
    description.to_json().to_string()
}
