//! What the commands of labs print: the labs of a user, the nodes of one, and what a change did.

use super::{Render, json_line};
use fastpath_engine::control::Applied;
use fastpath_lab::{InspectedLab, Listed};
use std::io::{self, Write};

/// What a change of a running network did, or in a dry run would do.
pub(crate) struct AppliedChanges<'a> {
    /// The lab.
    pub(crate) lab: &'a str,
    /// The changes.
    pub(crate) applied: &'a Applied,
    /// Whether nothing has been changed.
    pub(crate) is_dry_run: bool,
}

impl Render for AppliedChanges<'_> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let AppliedChanges { lab, applied, is_dry_run } = self;
        for change in &applied.changes {
            let sign = match change.action.as_str() {
                "add" => '+',
                "remove" => '-',
                _ => '~',
            };
            let line = format!("{sign} {:<8} {:<16} {}", change.kind, change.name, change.details.join(", "));
            writeln!(out, "{}", line.trim_end())?;
        }
        if applied.changes.is_empty() {
            return writeln!(out, "lab {lab}: no difference");
        }
        let verb = if *is_dry_run { "would change" } else { "has changed" };
        let count = |action: &str| applied.changes.iter().filter(|change| change.action == action).count();
        let (added, removed) = (count("add"), count("remove"));
        let changed = applied.changes.len() - added - removed;
        writeln!(out, "lab {lab} {verb}: {added} added, {changed} changed, {removed} removed")
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, self.applied)
    }
}

impl Render for InspectedLab {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "lab {} is up (process {})", self.name, self.pid)?;
        let width = self.nodes.iter().map(|node| node.name.len()).max().unwrap_or_default().max(4);
        writeln!(
            out,
            "  {:<width$} {:<9} {:<9} {:<20} {:<8} addresses",
            "node", "kind", "state", "namespace", "programs"
        )?;
        for node in &self.nodes {
            let namespace = node.namespace.as_deref().unwrap_or("-");
            let programs =
                if node.namespace.is_some() { node.pids.len().to_string() } else { "-".to_owned() };
            let addresses = node.addresses.join(" ");
            let line = format!(
                "  {:<width$} {:<9} {:<9} {namespace:<20} {programs:<8} {addresses}",
                node.name, node.kind, node.state
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, self)
    }
}

/// The labs of a user.
impl Render for [Listed] {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for lab in self {
            match (lab.alive, lab.starting) {
                (true, false) => writeln!(out, "{} (up, process {})", lab.name, lab.pid)?,
                (true, true) => writeln!(out, "{} (being started, process {})", lab.name, lab.pid)?,
                (false, _) => writeln!(
                    out,
                    "{0} (dead: process {1} was killed; `fastpath lab down {0}` removes what it left)",
                    lab.name, lab.pid
                )?,
            }
            for (host, addresses) in &lab.hosts {
                let gone = if lab.detached.contains(host) { " (its namespace is gone)" } else { "" };
                writeln!(out, "  {host:<12} {}{gone}", addresses.join(" "))?;
            }
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &self)
    }
}
