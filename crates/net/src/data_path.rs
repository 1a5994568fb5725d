//! Which links and switches of a lab hold no frame and can run in the kernel, and why the others
//! cannot.
//!
//! A link can if both of its pipes hold nothing (`fastpath_link::instant`), nothing in the
//! description changes them, and each end is a host in a namespace of the lab, or a switch all of
//! whose links can. Links that meet in switches are an *island*: they run in one place, because
//! frames are counted, learned and lost in one order.

use crate::spanning_tree;
use fastpath_link::instant::InstantSpec;
use fastpath_spec::{DataPathChoice, HostKind, HostOrigin, LinkId, NodeId, NodeKind, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// The most links of a switch in the kernel: a flood goes by the queue of arriving packets, which
/// has room for 1,000 (`net.core.netdev_max_backlog`).
const PORTS_MAX: usize = 500;

/// Where a link runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DataPath {
    /// In the kernel: the number of its island.
    Kernel(usize),
    /// In the engine, for this reason.
    User(String),
}

/// What a run wants of its links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataPathNeeds {
    /// What the author chose.
    pub choice: DataPathChoice,
    /// Flows are counted.
    pub has_flows: bool,
    /// There is a per-packet log.
    pub has_log: bool,
}

/// Where the links of a topology run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DataPathPlan {
    /// By link.
    pub links: Vec<DataPath>,
    /// By island: its links and its switches.
    pub islands: Vec<Island>,
    /// Whether a single segment matters in the kernel: interfaces must send no super-packets.
    pub splits_segments: bool,
}

/// Links that run in one place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Island {
    /// In order.
    pub links: Vec<LinkId>,
    /// In order.
    pub switches: Vec<NodeId>,
}

impl DataPathPlan {
    /// Decides for each link of a lab.
    pub fn of(topology: &Topology, needs: DataPathNeeds) -> DataPathPlan {
        if let Some(reason) = refusal_of_all(needs) {
            return DataPathPlan::all_user(topology, reason);
        }
        let own = (0..topology.links.len() as u32).map(LinkId);
        let mut reasons: Vec<Option<String>> =
            own.map(|link| refusal_of_link(topology, link, needs)).collect();
        refuse_switches(topology, &mut reasons);
        let islands = islands(topology, &reasons);
        let mut links: Vec<DataPath> =
            reasons.into_iter().map(|reason| DataPath::User(reason.unwrap_or_default())).collect();
        for (number, island) in islands.iter().enumerate() {
            island.links.iter().for_each(|link| links[link.0 as usize] = DataPath::Kernel(number));
        }
        let acts = |link: &LinkId| {
            let pipes = &topology.link(*link).pipes;
            pipes.iter().any(|pipe| InstantSpec::of(pipe).is_ok_and(|law| !law.is_clear()))
        };
        let in_kernel = || islands.iter().flat_map(|island| &island.links);
        let splits_segments = in_kernel().next().is_some() && (needs.has_log || in_kernel().any(acts));
        DataPathPlan { links, islands, splits_segments }
    }

    /// Every link in the engine, for one reason.
    pub fn all_user(topology: &Topology, reason: impl Into<String>) -> DataPathPlan {
        let reason = reason.into();
        let links = topology.links.iter().map(|_| DataPath::User(reason.clone())).collect();
        DataPathPlan { links, islands: Vec::new(), splits_segments: false }
    }

    /// Whether a link runs in the kernel.
    pub fn has_kernel(&self) -> bool {
        !self.islands.is_empty()
    }

    /// Returns which interfaces of each node forward, as the switches of the engine do.
    pub fn forwarding(topology: &Topology) -> Vec<Vec<bool>> {
        spanning_tree::forwarding(topology)
    }
}

fn refusal_of_all(needs: DataPathNeeds) -> Option<&'static str> {
    match needs {
        DataPathNeeds { choice: DataPathChoice::User, .. } => Some("--data-path user"),
        DataPathNeeds { has_flows: true, .. } => Some("the run is recorded, with its flows"),
        DataPathNeeds { choice: DataPathChoice::Auto, has_log: true, .. } => Some(
            "the per-packet log has an entry for each segment; --data-path kernel turns super-packets off",
        ),
        _ => None,
    }
}

/// Why a link cannot run in the kernel, whatever the others are.
fn refusal_of_link(topology: &Topology, id: LinkId, needs: DataPathNeeds) -> Option<String> {
    let link = topology.link(id);
    for pipe in &link.pipes {
        match InstantSpec::of(pipe) {
            Err(what) => return Some(format!("it has {what}")),
            Ok(law) if needs.choice == DataPathChoice::Auto && law.is_down => {
                return Some("it is down at the start".to_owned());
            }
            Ok(law) if needs.choice == DataPathChoice::Auto && acts_on_segments(&law) => {
                let what = "its losses, copies or flipped bits are those of single segments";
                return Some(format!("{what}; --data-path kernel turns super-packets off"));
            }
            Ok(_) => {}
        }
    }
    if topology.events.iter().any(|event| event.link == id) {
        return Some("an event changes it".to_owned());
    }
    if topology.tracks.iter().any(|track| track.link == id) {
        return Some("it follows a trace".to_owned());
    }
    link.ends.iter().find_map(|(node, _)| refusal_of_end(topology, *node))
}

/// Whether a law does different things to the segments of a super-packet.
fn acts_on_segments(law: &InstantSpec) -> bool {
    !InstantSpec { is_down: false, ..law.clone() }.is_clear()
}

/// Why a node is not one end of a link in the kernel.
fn refusal_of_end(topology: &Topology, id: NodeId) -> Option<String> {
    let node = topology.node(id);
    let name = &node.name;
    match &node.kind {
        NodeKind::Host { kind: HostKind::Port(port), .. } => {
            Some(format!("host {name} is the interface {port} of this machine"))
        }
        NodeKind::Host { kind: HostKind::Namespace(settings), .. } => match &settings.origin {
            HostOrigin::Attached(attach) => Some(format!("host {name} is in {attach}")),
            HostOrigin::New | HostOrigin::Image(_) | HostOrigin::RootFs(_) => None,
        },
        NodeKind::Switch if node.interfaces.len() > PORTS_MAX => {
            Some(format!("switch {name} has more than {PORTS_MAX} links, to which the kernel cannot flood"))
        }
        NodeKind::KernelRouter { .. } | NodeKind::Switch => None,
        NodeKind::Router { .. } | NodeKind::Nat { .. } => Some(format!("{name} is a router of the engine")),
        NodeKind::Uplink { .. } => Some(format!("{name} is an uplink")),
        NodeKind::OpenFlow { .. } => Some(format!("{name} has OpenFlow tables")),
    }
}

/// Refuses the links of each switch of which one is refused, until nothing changes.
fn refuse_switches(topology: &Topology, reasons: &mut [Option<String>]) {
    loop {
        let mut found = None;
        for node in topology.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Switch)) {
            let links: Vec<LinkId> = node.interfaces.iter().map(|interface| interface.link).collect();
            let refused = links.iter().find(|link| reasons[link.0 as usize].is_some());
            let is_mixed = links.iter().any(|link| reasons[link.0 as usize].is_none());
            if let (Some(refused), true) = (refused, is_mixed) {
                let name = &topology.link(*refused).name;
                found = Some((links, format!("switch {} joins it to link {name}", node.name)));
                break;
            }
        }
        let Some((links, reason)) = found else { return };
        for link in links {
            reasons[link.0 as usize].get_or_insert_with(|| reason.clone());
        }
    }
}

/// Groups the links that are not refused by the switches that join them.
fn islands(topology: &Topology, reasons: &[Option<String>]) -> Vec<Island> {
    let mut islands: Vec<Island> = Vec::new();
    let mut of_switch: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for first in (0..topology.links.len() as u32).map(LinkId) {
        if reasons[first.0 as usize].is_some() || !seen.insert(first) {
            continue;
        }
        let mut island = Island { links: vec![first], switches: Vec::new() };
        let mut waiting = vec![first];
        while let Some(link) = waiting.pop() {
            for (id, _) in topology.link(link).ends {
                let node = topology.node(id);
                if !matches!(node.kind, NodeKind::Switch) || of_switch.contains_key(&id) {
                    continue;
                }
                of_switch.insert(id, islands.len());
                island.switches.push(id);
                for next in node.interfaces.iter().map(|interface| interface.link) {
                    if seen.insert(next) {
                        island.links.push(next);
                        waiting.push(next);
                    }
                }
            }
        }
        island.links.sort();
        island.switches.sort();
        islands.push(island);
    }
    islands
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts a to f, switches s and t, a router r, and these links.
    fn plan(links: &str, needs: DataPathNeeds) -> (Topology, Vec<String>) {
        let hosts: String = "abcdef".chars().map(|name| format!("[host.{name}]\n")).collect();
        let text = format!("{hosts}[switch.s]\n[switch.t]\n[router.r]\n{links}");
        let (topology, _) = fastpath_spec::parse(&text).unwrap();
        let plan = DataPathPlan::of(&topology, needs);
        let said = plan.links.iter().zip(&topology.links).map(|(path, link)| match path {
            DataPath::Kernel(island) => format!("{} {island}", link.name),
            DataPath::User(reason) => format!("{}: {reason}", link.name),
        });
        let said = said.collect();
        (topology, said)
    }

    fn link(a: &str, b: &str, rest: &str) -> String {
        format!("[[link]]\nbetween = ['{a}', '{b}']\n{rest}\n")
    }

    #[test]
    fn links_that_meet_in_switches_run_in_one_place() {
        let links = [
            link("a", "s", ""),
            link("b", "s", ""),
            link("s", "t", ""),
            link("c", "t", ""),
            link("d", "e", ""),
            link("e", "f", "delay = '1ms'"),
            link("f", "r", ""),
        ];
        let (_, said) = plan(&links.concat(), DataPathNeeds::default());
        let expected = [
            "a-s 0",
            "b-s 0",
            "s-t 0",
            "c-t 0",
            "d-e 1",
            "e-f: it has a delay",
            "f-r: r is a router of the engine",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn one_link_that_waits_keeps_its_switches_in_user_space() {
        let links = [
            link("a", "s", ""),
            link("b", "s", "rate = '1Gbit'"),
            link("s", "t", ""),
            link("c", "t", ""),
            link("d", "e", ""),
        ];
        let (_, said) = plan(&links.concat(), DataPathNeeds::default());
        assert_eq!(said[0], "a-s: switch s joins it to link b-s");
        assert_eq!(said[3], "c-t: switch t joins it to link s-t");
        assert_eq!(said[4], "d-e 0");
    }

    #[test]
    fn what_acts_on_segments_is_in_the_kernel_on_request() {
        let links = [link("a", "b", "loss = '1%'"), link("c", "d", "")].concat();
        let (_, said) = plan(&links, DataPathNeeds::default());
        assert!(said[0].contains("--data-path kernel turns super-packets off"), "{said:?}");
        assert_eq!(said[1], "c-d 0");
        let kernel = DataPathNeeds { choice: DataPathChoice::Kernel, ..DataPathNeeds::default() };
        let (topology, said) = plan(&links, kernel);
        assert_eq!(said, ["a-b 0", "c-d 1"]);
        assert!(DataPathPlan::of(&topology, kernel).splits_segments);
        for needs in [
            DataPathNeeds { choice: DataPathChoice::User, ..kernel },
            DataPathNeeds { has_flows: true, ..kernel },
        ] {
            assert!(!DataPathPlan::of(&topology, needs).has_kernel());
        }
        let events = format!("{links}[[event]]\nat = '1s'\nlink = 'c-d'\ndelay = '1ms'\n");
        assert_eq!(plan(&events, kernel).1[1], "c-d: an event changes it");
    }
}
