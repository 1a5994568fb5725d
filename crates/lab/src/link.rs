//! The links of a lab, as the process that brought it up shows, changes and captures them. Other
//! processes use its control socket.

use crate::lab::Lab;
use fastpath_engine::{CaptureError, CaptureFilter, ChangeError, LinkCapture, LinkReport};
use fastpath_link::{Change, PipeSpec};
use fastpath_spec::mistake::several;
use fastpath_spec::{Direction, Link, LinkId};
use fastpath_units::Time;

/// A link of a running lab.
#[derive(Clone, Copy, Debug)]
pub struct LabLink<'l> {
    lab: &'l Lab,
    id: LinkId,
}

/// Why a link of a lab cannot be shown, changed or captured. It is as before.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The lab has no link with this name.
    #[error("no link is called '{name}' (have: {have})")]
    Unknown {
        /// The name.
        name: String,
        /// The names of its links.
        have: String,
    },
    /// The link does not lead from this node.
    #[error("link {link} does not lead from '{from}' (have: {have})")]
    NoDirection {
        /// The link.
        link: String,
        /// The node.
        from: String,
        /// Its ends.
        have: String,
    },
    /// The lab has no group of links with this name, or its engine has ended.
    #[error("no group is called '{name}' (have: {have})")]
    NoGroup {
        /// The name.
        name: String,
        /// The names of its groups.
        have: String,
    },
    /// The engine has ended, or refuses the change.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The engine captures nothing.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

impl Lab {
    /// Returns the link called `name`.
    ///
    /// # Errors
    /// [`LinkError::Unknown`]
    pub fn link(&self, name: &str) -> Result<LabLink<'_>, LinkError> {
        match self.topology.link_named(name) {
            Some(id) => Ok(LabLink { lab: self, id }),
            None => {
                let have = several(self.topology.links.iter().map(|link| link.name.as_str()));
                Err(LinkError::Unknown { name: name.to_owned(), have })
            }
        }
    }

    /// Returns its links, in the order of the topology.
    pub fn links(&self) -> impl Iterator<Item = LabLink<'_>> {
        (0..self.topology.links.len() as u32).map(|number| LabLink { lab: self, id: LinkId(number) })
    }

    /// Changes several links at one instant: `at`, or now. Frames in them stay. Returns the
    /// instant.
    ///
    /// # Errors
    /// The engine has ended, the time has passed, or a trace sets the values. Nothing has changed.
    pub fn set_links(
        &self,
        at: Option<Time>,
        changes: &[(LabLink<'_>, Direction, Change)],
    ) -> Result<Time, LinkError> {
        let changes = changes.iter().map(|(link, direction, change)| (link.id, *direction, change.clone()));
        let engine = self.engine.as_ref().ok_or(ChangeError::Ended)?;
        Ok(engine.change(at, changes.collect())?)
    }

    /// Starts the traces of a group from their beginning. Returns the instant.
    ///
    /// # Errors
    /// [`LinkError::NoGroup`]; the engine has ended.
    pub fn start_traces(&self, group: &str) -> Result<Time, LinkError> {
        if self.topology.group_named(group).is_none() {
            let have = several(self.topology.groups.iter().map(|group| group.name.as_str()));
            return Err(LinkError::NoGroup { name: group.to_owned(), have });
        }
        let started = self.engine.as_ref().and_then(|engine| engine.start_traces(group));
        Ok(started.ok_or(ChangeError::Ended)?)
    }

    /// Starts a capture of frames of links, as pcapng.
    ///
    /// # Errors
    /// No direction of the links starts at the node of the filter; the engine has ended.
    pub fn capture(&self, filter: &CaptureFilter) -> Result<LinkCapture, LinkError> {
        Ok(self.engine.as_ref().ok_or(CaptureError::Ended)?.capture(filter)?)
    }
}

impl<'l> LabLink<'l> {
    /// Returns its number in the topology of the lab.
    pub fn id(&self) -> LinkId {
        self.id
    }

    /// Returns its description.
    pub fn description(&self) -> &'l Link {
        self.lab.topology.link(self.id)
    }

    /// Returns its name.
    pub fn name(&self) -> &'l str {
        &self.description().name
    }

    /// Returns the names of its first and its second node.
    pub fn ends(&self) -> [&'l str; 2] {
        self.description().ends.map(|(node, _)| self.lab.topology.node(node).name.as_str())
    }

    /// Returns the values in force, from its first node to its second and back.
    ///
    /// # Errors
    /// The engine has ended.
    pub fn pipes(&self) -> Result<[PipeSpec; 2], LinkError> {
        let pipes = self.lab.engine.as_ref().and_then(|engine| engine.pipes(self.id));
        Ok(pipes.ok_or(ChangeError::Ended)?)
    }

    /// Returns its values and counters.
    ///
    /// # Errors
    /// The engine has ended.
    pub fn report(&self) -> Result<LinkReport, LinkError> {
        let mut report = self.lab.report().ok_or(ChangeError::Ended)?;
        Ok(report.links.swap_remove(self.id.0 as usize))
    }

    /// Changes both directions now. Frames in the link stay. Returns the instant of the run.
    ///
    /// # Errors
    /// The engine has ended, or a trace sets the values. Nothing has changed.
    pub fn set(&self, change: Change) -> Result<Time, LinkError> {
        self.lab.set_links(None, &[(*self, Direction::Both, change)])
    }

    /// Changes the direction that leads from a node, now.
    ///
    /// # Errors
    /// As [`LabLink::set`]; [`LinkError::NoDirection`].
    pub fn set_from(&self, node: &str, change: Change) -> Result<Time, LinkError> {
        let ends = self.ends();
        let direction = match ends.iter().position(|end| *end == node) {
            Some(0) => Direction::Forward,
            Some(_) => Direction::Backward,
            None => {
                let (link, from) = (self.name().to_owned(), node.to_owned());
                return Err(LinkError::NoDirection { link, from, have: several(ends.into_iter()) });
            }
        };
        self.lab.set_links(None, &[(*self, direction, change)])
    }
}
