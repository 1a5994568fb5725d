//! What the nodes of a running lab are: for people and for programs that enter them.

use crate::host::first::Inside;
use crate::lab::control_socket;
use crate::programs::enter::{EnterError, alive};
use crate::programs::scope::Boundary;
use crate::state::NamespaceState;
use crate::state::lab_files::PROC;
use fastpath_engine::control::{Request, Response, call};
use fastpath_spec::{Description, NO_FILES};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// A lab that is up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InspectedLab {
    /// Its name.
    pub name: String,
    /// The process that holds it.
    pub pid: i32,
    /// Its nodes, in the order of the description.
    pub nodes: Vec<InspectedNode>,
}

/// A node of a lab that is up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InspectedNode {
    /// Its name.
    pub name: String,
    /// `host`, `router`, `switch`, … as in a spec.
    pub kind: String,
    /// `running`: a network namespace; `attached`: one that the lab found; `emulated`: inside the
    /// engine; `ended`: its container, or the first process of its PID namespace, has ended;
    /// `gone`: its namespace ended.
    pub state: &'static str,
    /// The file of its network namespace, for nsenter(1) and setns(2); of an attached host its name
    /// in the spec. `None` inside the engine.
    pub namespace: Option<String>,
    /// The programs that run on it.
    pub pids: Vec<i32>,
    /// Addresses with prefix lengths, in the order of the interfaces.
    pub addresses: Vec<String>,
}

/// Returns the nodes of the running lab called `name`.
///
/// # Errors
/// The lab is not up, or its engine does not answer.
pub fn inspect(name: &str) -> Result<InspectedLab, EnterError> {
    let (directory, state) = alive(name)?;
    let silent = |why: String| EnterError::Silent { lab: name.to_owned(), why };
    let description = match call(&control_socket(name)?, &Request::Topology) {
        Ok(Response::Topology(topology)) => Description::from_json(&topology.to_string(), NO_FILES)
            .map_err(|mistakes| silent(mistakes.to_string()))?,
        Ok(Response::Error(why)) => return Err(silent(why)),
        Ok(_) => return Err(silent("it is of another version of fastpath".to_owned())),
        Err(error) => return Err(silent(error.to_string())),
    };
    let mut programs: BTreeMap<u64, Vec<i32>> = BTreeMap::new();
    for pid in Boundary::recorded(&directory).map(|boundary| boundary.processes()).unwrap_or_default() {
        if let Ok(namespace) = fs::metadata(format!("/proc/{pid}/ns/net")) {
            programs.entry(namespace.ino()).or_default().push(pid);
        }
    }
    // A program in a PID namespace of the lab sees the processes of the machine only there.
    let proc = Some(directory.join(PROC)).filter(|proc| proc.join("self").exists());
    let proc = proc.unwrap_or_else(|| "/proc".into());
    let node = |node: &fastpath_spec::NodeDescription| {
        let host = state.hosts.get(&node.name);
        let namespace = host.map(|host| match &host.namespace {
            NamespaceState::Held { fd, inode } => (format!("/proc/{}/fd/{fd}", state.pid), Some(*inode)),
            NamespaceState::Attached(name) => (name.clone(), None),
        });
        let has_ended = host.is_some_and(|host| match &host.inside {
            Inside::Process(first) | Inside::Container(first) => !first.runs_in(&proc),
            Inside::View(_) | Inside::Foreign(_) => false,
        });
        let is_there = |file: &str, inode| fs::metadata(file).is_ok_and(|found| found.ino() == inode);
        InspectedNode {
            name: node.name.clone(),
            kind: node.kind.key().to_owned(),
            state: match &namespace {
                Some((_, Some(_))) if has_ended => "ended",
                Some((file, Some(inode))) if is_there(file, *inode) => "running",
                Some((_, Some(_))) => "gone",
                Some((_, None)) => "attached",
                None => "emulated",
            },
            pids: namespace
                .as_ref()
                .and_then(|(_, inode)| programs.get(inode.as_ref()?))
                .cloned()
                .unwrap_or_default(),
            namespace: namespace.map(|(file, _)| file),
            addresses: node.addresses.iter().map(|address| address.value.to_string()).collect(),
        }
    };
    Ok(InspectedLab {
        name: name.to_owned(),
        pid: state.pid,
        nodes: description.nodes.iter().map(node).collect(),
    })
}
