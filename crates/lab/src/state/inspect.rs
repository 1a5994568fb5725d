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
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

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
    /// The processes that run on it.
    pub pids: Vec<i32>,
    /// The same, with their commands.
    pub programs: Vec<InspectedProgram>,
    /// The file with the output of the commands that the description has for it, if there is one.
    pub log: Option<PathBuf>,
    /// Addresses with prefix lengths, in the order of the interfaces.
    pub addresses: Vec<String>,
}

/// A program that runs on a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InspectedProgram {
    /// Its process.
    pub pid: i32,
    /// Its command line; of a process that ends just now, nothing.
    pub command: String,
}

/// Returns the last `bytes_max` bytes of the output of the commands that a description has for a
/// host, from the start of a line; `None` if there is no such host or output.
pub fn log(lab: &str, host: &str, bytes_max: u64) -> Option<String> {
    let (directory, state) = alive(lab).ok()?;
    // The name is that of a host, so it is not a path.
    state.hosts.get(host)?;
    let mut file = File::open(directory.join(format!("{host}.log"))).ok()?;
    let skipped = file.metadata().ok()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(skipped)).ok()?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let first_line = if skipped > 0 { text.find('\n').map_or(0, |end| end + 1) } else { 0 };
    Some(text[first_line..].to_owned())
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
        let pids = namespace.as_ref().and_then(|(_, inode)| programs.get(inode.as_ref()?));
        let pids = pids.cloned().unwrap_or_default();
        let log = host.map(|_| directory.join(format!("{}.log", node.name)));
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
            programs: pids.iter().map(|&pid| InspectedProgram { pid, command: command(pid) }).collect(),
            pids,
            log: log.filter(|log| log.exists()),
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

/// Returns the command line of a process.
fn command(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    words.split('\0').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
