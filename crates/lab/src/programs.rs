//! How programs start in the hosts of a lab.

use crate::attach;
use crate::enter::environment;
use crate::first::Inside;
use crate::host::Host;
use crate::host_namespace::HostNamespace;
use crate::lab_files::PROC;
use crate::scope::Boundary;
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
        // What the command was given itself counts more than the settings of the host.
        let own: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
        let of_host = host.env.iter().filter(|(name, _)| own.iter().all(|own| *own != name.as_str()));
        command.envs(of_host).envs(environment(&self.lab, &host.name, &self.base));
        let found = match &host.namespace {
            HostNamespace::Own(_) => None,
            HostNamespace::Attached(there) => {
                attach::find(there.name()).map_err(io::Error::other)?.process.map(Inside::Foreign)
            }
        };
        let inside = found.as_ref().unwrap_or(&host.inside);
        self.boundary.spawn(&host.namespace, inside, Some(&self.directory.join(PROC)), command)
    }
}
