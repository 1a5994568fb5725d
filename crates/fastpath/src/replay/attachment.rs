//! `HOST` and `HOST:INTERFACE`: the edges of a network where a capture enters or is written.

use crate::error::{Error, Result};
use fastpath_net::{Edge, EdgeId};
use fastpath_spec::{Node, Topology};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A host of a network, or one interface of it. Written `HOST` or `HOST:INTERFACE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostInterface {
    host: String,
    interface: Option<String>,
}

/// A host or interface and the capture that belongs to it. Written `HOST=FILE` or
/// `HOST:INTERFACE=FILE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureAt {
    /// Where the capture enters, or what is written to it.
    pub at: HostInterface,
    /// The capture.
    pub file: PathBuf,
}

impl CaptureAt {
    /// A capture at all interfaces of a host.
    pub fn new(host: &str, file: &Path) -> CaptureAt {
        CaptureAt { at: HostInterface { host: host.to_owned(), interface: None }, file: file.to_owned() }
    }
}

impl HostInterface {
    /// Returns all edges of the host, or the edge of the named interface.
    pub(crate) fn edges(&self, topology: &Topology, edges: &[Edge]) -> Result<Vec<EdgeId>> {
        let HostInterface { host, interface } = self;
        let id = topology.node_named(host).ok_or_else(|| self.no_host(topology))?;
        let node = topology.node(id);
        if !node.kind.is_edge() {
            return Err(self.no_host(topology));
        }
        let wanted = |name: &str| interface.as_deref().is_none_or(|interface| interface == name);
        let indices = node.interfaces.iter().enumerate().filter(|(_, interface)| wanted(&interface.name));
        let edge = |(interface, _)| edges.iter().position(|edge| *edge == Edge { node: id, interface });
        let found: Vec<EdgeId> = indices.filter_map(edge).map(|index| EdgeId(index as u32)).collect();
        if found.is_empty() {
            return Err(Error::Argument(format!(
                "{self}: no such interface of {host} (have: {})",
                interface_names(node)
            )));
        }
        Ok(found)
    }

    /// Returns the only edge. A host with several interfaces needs the name of one.
    pub(crate) fn edge(&self, topology: &Topology, edges: &[Edge]) -> Result<EdgeId> {
        match self.edges(topology, edges)?[..] {
            [edge] => Ok(edge),
            _ => {
                let host = &self.host;
                let node = topology.nodes.iter().find(|node| node.name == *host);
                let have = node.map(interface_names).unwrap_or_default();
                Err(Error::Argument(format!(
                    "{self}: {host} has several interfaces; write {host}:INTERFACE (have: {have})"
                )))
            }
        }
    }

    fn no_host(&self, topology: &Topology) -> Error {
        let hosts: Vec<&str> = topology.hosts().map(|(_, host)| host.name.as_str()).collect();
        Error::Argument(format!("{}: no such host (have: {})", self.host, hosts.join(", ")))
    }
}

fn interface_names(node: &Node) -> String {
    node.interfaces.iter().map(|interface| interface.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl FromStr for HostInterface {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<HostInterface, String> {
        let (host, interface) = match text.split_once(':') {
            Some((host, interface)) => (host, Some(interface.to_owned())),
            None => (text, None),
        };
        if host.is_empty() {
            return Err("the host is empty: write HOST or HOST:INTERFACE".to_owned());
        }
        Ok(HostInterface { host: host.to_owned(), interface })
    }
}

impl FromStr for CaptureAt {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<CaptureAt, String> {
        let (at, file) = text.split_once('=').ok_or("write HOST=FILE, or HOST:INTERFACE=FILE")?;
        if at.is_empty() || file.is_empty() {
            return Err("host and file cannot be empty: write HOST=FILE".to_owned());
        }
        Ok(CaptureAt { at: at.parse()?, file: file.into() })
    }
}

impl fmt::Display for HostInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            Some(interface) => write!(f, "{}:{interface}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

impl fmt::Display for CaptureAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.at, self.file.display())
    }
}
