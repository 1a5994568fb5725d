//! What all traffic needs of its hosts: their paths, their namespaces, and when it starts.

use crate::host::Host;
use fastpath_engine::{Clock, Notice};
use fastpath_net::{HostPath, Routes};
use fastpath_spec::{NodeId, Topology, Traffic};
use fastpath_units::Time;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why traffic cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// A host of it is not in the lab.
    #[error("traffic {traffic}: {host} is a port of this machine; name hosts without port")]
    NoHost {
        /// The traffic.
        traffic: String,
        /// The host.
        host: String,
    },
    /// Its hosts have no route.
    #[error(
        "traffic {traffic}: {from} has no route to an address of {to}; join them by links, or give them addresses"
    )]
    NoRoute {
        /// The traffic.
        traffic: String,
        /// The host that sends.
        from: String,
        /// The host that receives.
        to: String,
    },
    /// Its connections cannot be what it says.
    #[error("traffic {traffic}: {what}; {instead}")]
    Connections {
        /// The traffic.
        traffic: String,
        /// What is wrong.
        what: String,
        /// What to write.
        instead: String,
    },
    /// A socket could not be opened.
    #[error("traffic {traffic}: {host}: {source}")]
    Socket {
        /// The traffic.
        traffic: String,
        /// The host.
        host: String,
        /// The reason.
        source: io::Error,
    },
}

/// The path of each flow.
pub(crate) fn paths(topology: &Topology) -> Result<Vec<HostPath>, TrafficError> {
    if topology.traffic.is_empty() {
        return Ok(Vec::new());
    }
    let routes = Routes::compute(topology);
    let path = |traffic: &Traffic| path_of(topology, &routes, (&traffic.name, traffic.from, traffic.to));
    topology.traffic.iter().map(path).collect()
}

/// The path of traffic from one host to another.
pub(crate) fn path_of(
    topology: &Topology,
    routes: &Routes,
    (traffic, from, to): (&str, NodeId, NodeId),
) -> Result<HostPath, TrafficError> {
    HostPath::find(topology, routes, from, to).ok_or_else(|| {
        let [from, to] = [from, to].map(|id| topology.node(id).name.clone());
        TrafficError::NoRoute { traffic: traffic.to_owned(), from, to }
    })
}

/// Does something inside a host of traffic.
pub(crate) fn within<T: Send>(
    (topology, hosts): (&Topology, &[Arc<Host>]),
    (traffic, id): (&str, NodeId),
    work: &(dyn Fn() -> io::Result<T> + Sync),
) -> Result<T, TrafficError> {
    let (traffic, name) = (traffic.to_owned(), topology.node(id).name.clone());
    let Some(host) = hosts.iter().find(|host| host.node() == id) else {
        return Err(TrafficError::NoHost { traffic, host: name });
    };
    let done = host.namespace.within(work).and_then(|done| done);
    done.map_err(|source| TrafficError::Socket { traffic, host: name, source })
}

/// When traffic starts and stops, if it is told to start now. What that changes is said.
pub(crate) fn times_of(
    (name, start, stop): (&str, Time, Option<Time>),
    clock: Clock,
    notice: &Notice,
) -> (Time, Time) {
    let (asked, start) = (start, start.max(clock.now()));
    let stop = stop.unwrap_or(Time::MAX);
    if start > asked && (asked > Time::ZERO || start >= stop) {
        let what = if start >= stop { "sends nothing" } else { "starts late" };
        notice.send(&format!("traffic {name} {what}: the lab was up at {:.3} s", start.as_secs_f64()));
    }
    (start, stop)
}

/// What the other threads share with this one. A thread that panicked has left whole numbers.
pub(crate) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
