//! The network simulator of the QUIC interop runner: its scenarios as networks between two
//! interfaces of this machine.

pub use fastpath_labfiles::quic_sim::{ACCESS, BOTTLENECK, Endpoint};

use crate::error::{Error, Result};
use crate::load::Loaded;
use std::path::PathBuf;

/// Reads a scenario, such as `simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25`. The client is
/// behind the first endpoint, the server behind the second.
///
/// # Errors
/// [`Error::Mistakes`] with every mistake: its column in the scenario, and what to write.
///
/// ```
/// use fastpath::quic_sim::{Endpoint, read};
///
/// let endpoints = ["eth0", "eth1"].map(|interface| {
///     let port = interface.parse().expect("a port");
///     Endpoint { port, mac: None, mtu: None }
/// });
/// let network = read("simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25", &endpoints)?;
/// assert_eq!(network.spec.topology.links.len(), 3);
/// # Ok::<(), fastpath::Error>(())
/// ```
pub fn read(scenario: &str, endpoints: &[Endpoint; 2]) -> Result<Loaded> {
    let checked = fastpath_labfiles::quic_sim::check(scenario, endpoints);
    let (spec, warnings) = checked.into_result().map_err(|mistakes| {
        let said = mistakes
            .iter()
            .map(|mistake| format!("scenario:{}: {}; {}", mistake.column, mistake.what, mistake.instead));
        Error::Mistakes(said.collect())
    })?;
    Ok(Loaded { spec, warnings, path: PathBuf::from("scenario"), files: Vec::new() })
}
