//! Where the links of a lab run, as `fastpath check` prints it: in the kernel, or in user space and
//! why.

use fastpath::net::data_path::{DataPath, DataPathNeeds, DataPathPlan};
use fastpath_spec::mistake::{printable, several};
use fastpath_spec::{DataPathChoice, Topology};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The data paths of a topology in a lab of root's.
pub(super) struct DataPaths<'t> {
    topology: &'t Topology,
    plan: DataPathPlan,
    /// Whether the author asks where links run.
    is_asked: bool,
}

impl<'t> DataPaths<'t> {
    /// Decides for each link; `asked` is the choice of the command line.
    pub(super) fn new(
        topology: &'t Topology,
        of_file: Option<DataPathChoice>,
        asked: Option<DataPathChoice>,
    ) -> DataPaths<'t> {
        let choice = asked.or(of_file).unwrap_or_default();
        // As a lab has it.
        let in_lab = topology.clone().with_namespaces();
        let plan = DataPathPlan::of(&in_lab, DataPathNeeds { choice, ..DataPathNeeds::default() });
        DataPaths { topology, plan, is_asked: asked.is_some() }
    }

    /// Writes a line for the kernel and one for each reason. Nothing if no link can be in the
    /// kernel and the author does not ask.
    pub(super) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.plan.has_kernel() && !self.is_asked {
            return Ok(());
        }
        let links = || self.topology.links.iter().zip(&self.plan.links);
        let in_kernel: Vec<&str> = links()
            .filter(|(_, path)| matches!(path, DataPath::Kernel(_)))
            .map(|(link, _)| link.name.as_str())
            .collect();
        let line = |names: &[&str], place: &str| {
            let (count, links) = (names.len(), if names.len() == 1 { "link" } else { "links" });
            printable(&format!("  {count} {links} {place}: {}", several(names.iter().copied()))).to_string()
        };
        if !in_kernel.is_empty() {
            let single = if self.plan.splits_segments { ", where hosts send no super-packets" } else { "" };
            writeln!(out, "{}", line(&in_kernel, &format!("in the kernel, in a lab of root's{single}")))?;
        }
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (link, path) in links() {
            let DataPath::User(reason) = path else { continue };
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, names)) => names.push(&link.name),
                None => reasons.push((reason, vec![&link.name])),
            }
        }
        for (reason, names) in reasons {
            writeln!(out, "{}", line(&names, &format!("in user space ({reason})")))?;
        }
        Ok(())
    }

    /// Returns the same for each link as JSON.
    pub(super) fn value(&self) -> Value {
        let of_link = |(link, path): (&fastpath_spec::Link, &DataPath)| match path {
            DataPath::Kernel(_) => json!({ "link": link.name, "data_path": "kernel" }),
            DataPath::User(reason) => {
                json!({ "link": link.name, "data_path": "user", "data_path_reason": reason })
            }
        };
        self.topology.links.iter().zip(&self.plan.links).map(of_link).collect()
    }
}
