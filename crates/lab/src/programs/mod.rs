//! How programs start in the hosts of a lab.

pub(crate) mod commands;
pub(crate) mod ended;
pub(crate) mod enter;
pub(crate) mod keeper;
pub(crate) mod names;
pub(crate) mod process;
pub(crate) mod scope;
pub(crate) mod variables;

use crate::attach;
use crate::host::Host;
use crate::host::first::Inside;
use crate::host::host_namespace::HostNamespace;
use crate::programs::enter::environment;
use crate::programs::scope::Boundary;
use crate::state::lab_files::PROC;
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
    /// The cgroup or PID namespace of the programs.
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
