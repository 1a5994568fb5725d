//! The names that programs in hosts resolve: the files that they see as /etc/hosts and
//! /etc/resolv.conf.

use crate::state::claim::Claim;
use crate::state::lab_files::{HOSTS, RESOLV_CONF};
use crate::uplink;
use fastpath_engine::Notice;
use fastpath_spec::{Node, Topology};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Returns /etc/hosts of the lab: this machine's, then every node's addresses.
pub(crate) fn hosts(topology: &Topology) -> String {
    let mut text = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for node in &topology.nodes {
        for address in node.interfaces.iter().flat_map(|interface| &interface.addresses) {
            writeln!(text, "{}\t{}", address.addr(), node.name).expect("writing to a string");
        }
    }
    text
}

/// Writes both files into the directory of a lab, and says where programs will not see them.
pub(crate) fn write(claim: &Claim, topology: &Topology, notice: &Notice) -> io::Result<()> {
    claim.write(HOSTS, hosts(topology).as_bytes())?;
    claim.write(RESOLV_CONF, resolv_conf(topology).as_bytes())?;
    missing_file(topology, Path::new("/etc/hosts")).iter().for_each(|text| notice.send(text));
    Ok(())
}

/// Returns what to say where programs see no names: a file that `machine` does not have cannot be
/// covered by that of the lab. Containers have files of their own.
fn missing_file(topology: &Topology, machine: &Path) -> Option<String> {
    let sees_machine =
        |node: &Node| node.kind.host_settings().is_some_and(|host| !host.origin.is_container());
    (!machine.exists() && topology.nodes.iter().any(sees_machine)).then(|| {
        let path = machine.display();
        format!(
            "names of nodes do not resolve on hosts: this machine has no {path}; make one with `touch {path}`"
        )
    })
}

/// Returns /etc/resolv.conf of the hosts of a lab.
///
/// Hosts of a lab with an uplink ask the uplink. A lab without one has no name server. The servers
/// of the machine cannot be reached from a host, and a program would wait for each of them. Without
/// one the resolver asks 127.0.0.1 (resolv.conf(5)), which refuses at once.
pub(crate) fn resolv_conf(topology: &Topology) -> String {
    let machine = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    uplink::resolv_conf(topology, &machine).unwrap_or_else(none)
}

fn none() -> String {
    "# Names of the lab are in /etc/hosts. There is no way to a name server.\n".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_spec::parse;

    #[test]
    fn a_machine_without_a_file_of_names_is_said() {
        let missing = Path::new("/no-such-directory/hosts");
        let said = |a: &str| {
            let text = format!("[host.a]\n{a}\n[switch.s]\n[[link]]\nbetween = ['a', 's']\n");
            let (topology, _) = parse(&text).unwrap();
            (missing_file(&topology, missing), missing_file(&topology, Path::new("/")))
        };
        let (missing, there) = said("");
        assert!(missing.unwrap().contains("touch /no-such-directory/hosts") && there.is_none());
        assert_eq!(said("image = 'debian'"), (None, None));
    }
}
