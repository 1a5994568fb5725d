//! How programs start in the hosts of a lab.

use crate::enter::environment;
use crate::host::Host;
use crate::mounts::View;
use crate::scope::Boundary;
use crate::state::{HOSTS, PROC};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};

/// What starting a program in a host of one lab needs, apart from the host.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// The name of the lab.
    pub(crate) lab: String,
    /// The state directory of the lab.
    pub(crate) directory: PathBuf,
    /// The directory of all labs.
    pub(crate) base: PathBuf,
    /// Where the programs are.
    pub(crate) boundary: Boundary,
}

impl Programs {
    /// Starts a program in a host, as `fastpath lab exec` does.
    pub(crate) fn spawn(&self, host: &Host, command: &mut Command) -> io::Result<Child> {
        command.envs(environment(&self.lab, &host.name, &self.base));
        let (hosts, proc) = (self.directory.join(HOSTS), self.directory.join(PROC));
        self.boundary.spawn(&host.namespace, View { hosts: Some(&hosts), proc: Some(&proc) }, command)
    }
}
