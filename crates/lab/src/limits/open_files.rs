//! The limit of open files (RLIMIT_NOFILE). A host needs a descriptor for its namespace, and two
//! for each interface; a connection of traffic over TCP needs two.

use fastpath_spec::Topology;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// For the engine, its control interface, logs and programs.
const OTHER: u64 = 128;

/// A topology needs more open files than this process may have.
#[derive(Debug, thiserror::Error)]
#[error(
    "{hosts} hosts with {interfaces} interfaces{} need {needed} open files, but this process may have {limit}: \
     raise the limit (`ulimit -n {needed}`, or LimitNOFILE={needed} of a service)",
    connections_of(*connections)
)]
pub struct TooManyFiles {
    hosts: u64,
    interfaces: u64,
    connections: u64,
    needed: u64,
    limit: u64,
}

fn connections_of(connections: u64) -> String {
    if connections == 0 { String::new() } else { format!(" and {connections} connections") }
}

/// Raises the soft limit as far as the hosts of the topology need; if this process may, the hard
/// limit too.
pub(crate) fn allow(topology: &Topology) -> Result<(), TooManyFiles> {
    let hosts = topology.hosts().count() as u64;
    let interfaces = topology.hosts().map(|(_, node)| node.interfaces.len() as u64).sum();
    let open = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let connections = topology.transfers.iter().map(|transfer| u64::from(transfer.model.flows)).sum::<u64>();
    // Each transfer has a socket that listens, and waits for all of its own.
    let sockets = 2 * connections + 2 * topology.transfers.len() as u64;
    let needed = open + hosts + 2 * interfaces + sockets + OTHER;
    let Rlimit { current: Some(current), maximum } = getrlimit(Resource::Nofile) else { return Ok(()) };
    if current >= needed {
        return Ok(());
    }
    let wanted = Rlimit { current: Some(needed), maximum: maximum.map(|maximum| maximum.max(needed)) };
    let limit = maximum.unwrap_or(current);
    setrlimit(Resource::Nofile, wanted).map_err(|_| TooManyFiles {
        hosts,
        interfaces,
        connections,
        needed,
        limit,
    })
}
