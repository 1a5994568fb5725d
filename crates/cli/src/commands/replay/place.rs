//! `HOST=FILE` and `HOST:INTERFACE=FILE`: which file belongs to which edges of the network.

use anyhow::{Context, bail};
use fastpath_net::{EdgeId, Network, Observer};
use fastpath_spec::{Node, NodeKind, Topology};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A host, or one interface of it, and the file for what passes there.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    host: String,
    interface: Option<String>,
    pub(crate) file: PathBuf,
}

impl Place {
    pub(crate) fn new(host: &str, file: &Path) -> Place {
        Place { host: host.to_owned(), interface: None, file: file.to_owned() }
    }

    /// The edges meant: all of the host's, or the one named.
    pub(crate) fn edges<O: Observer>(&self, network: &Network<O>) -> anyhow::Result<Vec<EdgeId>> {
        let topology = network.topology();
        let id = topology.node_named(&self.host).with_context(|| self.no_host(topology))?;
        let node = topology.node(id);
        if !matches!(node.kind, NodeKind::Host { .. }) {
            bail!("{self}: {}", self.no_host(topology));
        }
        let wanted = |name: &str| self.interface.as_deref().is_none_or(|interface| interface == name);
        let places = node.interfaces.iter().enumerate().filter(|(_, interface)| wanted(&interface.name));
        let edges: Vec<EdgeId> = places.filter_map(|(place, _)| network.edge_of(id, place)).collect();
        if edges.is_empty() {
            bail!("{self}: no such interface of {} (have: {})", self.host, interfaces(node));
        }
        Ok(edges)
    }

    /// The one edge meant; a host with several interfaces needs the name of one.
    pub(crate) fn edge<O: Observer>(&self, network: &Network<O>) -> anyhow::Result<EdgeId> {
        match self.edges(network)?[..] {
            [edge] => Ok(edge),
            _ => {
                let node = network.topology().nodes.iter().find(|node| node.name == self.host);
                let have = node.map(interfaces).unwrap_or_default();
                bail!(
                    "{self}: {0} has several interfaces; write {0}:INTERFACE=FILE (have: {have})",
                    self.host
                )
            }
        }
    }

    fn no_host(&self, topology: &Topology) -> String {
        let hosts: Vec<&str> = topology.hosts().map(|(_, host)| host.name.as_str()).collect();
        format!("{}: no such host (have: {})", self.host, hosts.join(", "))
    }
}

fn interfaces(node: &Node) -> String {
    node.interfaces.iter().map(|interface| interface.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Place {
    type Err = String;
    fn from_str(text: &str) -> Result<Place, String> {
        let (place, file) = text.split_once('=').ok_or("write HOST=FILE, or HOST:INTERFACE=FILE")?;
        let (host, interface) = match place.split_once(':') {
            Some((host, interface)) => (host, Some(interface.to_owned())),
            None => (place, None),
        };
        if host.is_empty() || file.is_empty() {
            return Err("host and file cannot be empty: write HOST=FILE".to_owned());
        }
        Ok(Place { host: host.to_owned(), interface, file: file.into() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            Some(interface) => write!(f, "{}:{interface}={}", self.host, self.file.display()),
            None => write!(f, "{}={}", self.host, self.file.display()),
        }
    }
}
