//! Makes the bridges what the database describes.
//!
//! What is not wanted any more goes first, in all bridges, so that an interface can move from one
//! bridge to another. What cannot be opened has an error, and is tried again.

use super::OvsdbSwitches;
use super::bridge::{self, PortAttachment, RunningBridge, RunningPort};
use super::numbers;
use fastpath_engine::port::{OpenError, PatchPort, Port};
use fastpath_engine::switching::interface;
use fastpath_ovsdb::{BridgeSpec, Configuration, InterfaceKind, InterfaceSpec, Uuid};
use fastpath_wire::MacAddr;
use std::collections::BTreeMap;

/// Most bridges that have ended and whose counts are kept.
const ENDED_MAX: usize = 1024;

/// An interface that is to be a port of a bridge.
struct Wanted<'a> {
    bridge: &'a BridgeSpec,
    interface: &'a InterfaceSpec,
    number: u32,
    /// Its name; for a patch port that of its peer, and whether it comes first of the two.
    kind: &'a InterfaceKind,
}

impl OvsdbSwitches {
    /// Makes the bridges what is wanted.
    pub(super) fn apply(&mut self) {
        let Some(wanted) = self.wanted.take() else { return };
        self.errors.clear();
        self.say_notes(&wanted);
        self.remove_bridges(&wanted);
        self.add_bridges(&wanted);
        let ports = self.wanted_ports(&wanted);
        self.detach_others(&ports);
        // Before a port is attached, so that no frame of it is in another VLAN.
        for spec in &wanted.bridges {
            if let Some(bridge) = self.bridges.get_mut(&spec.name) {
                bridge.follow_bridging(spec);
            }
        }
        self.attach_missing(&ports);
        self.attach_patches(&ports);
        for spec in &wanted.bridges {
            if let Some(bridge) = self.bridges.get_mut(&spec.name) {
                bridge.follow(spec, &wanted);
                bridge.follow_queues(spec);
            }
        }
        self.refused.retain(|row, _| self.errors.contains_key(row));
        self.wanted = Some(wanted);
    }

    /// Says once what is written and not done.
    fn say_notes(&mut self, wanted: &Configuration) {
        let mut notes: Vec<String> = wanted.notes.clone();
        for bridge in &wanted.bridges {
            let name = &bridge.name;
            notes.extend(bridge.notes.iter().map(|note| format!("bridge {name}: {note}")));
            for controller in &bridge.controllers {
                let target = &controller.target;
                notes.extend(
                    controller.notes.iter().map(|note| format!("bridge {name}: controller {target}: {note}")),
                );
            }
            for port in &bridge.ports {
                let of_port = port.notes.iter().map(|note| format!("port {}: {note}", port.name));
                let of_interface = port.interfaces.iter().flat_map(|interface| {
                    let of = move |note| format!("interface {}: {note}", interface.name);
                    interface.notes.iter().map(of)
                });
                notes.extend(of_port.chain(of_interface).map(|note| format!("bridge {name}: {note}")));
            }
        }
        // What is not written any more may be said again.
        self.said.retain(|said| notes.contains(said));
        for note in notes {
            if self.said.insert(note.clone()) {
                self.say(note);
            }
        }
    }

    fn remove_bridges(&mut self, wanted: &Configuration) {
        let stays = |name: &String| wanted.bridges.iter().any(|one| one.name == *name && one.error.is_none());
        let gone: Vec<String> = self.bridges.keys().filter(|name| !stays(name)).cloned().collect();
        for name in gone {
            if let Some(bridge) = self.bridges.remove(&name) {
                self.say(format!("bridge {name}: removed"));
                self.ended.push((name, bridge.stop()));
            }
        }
        let too_many = self.ended.len().saturating_sub(ENDED_MAX);
        self.ended.drain(..too_many);
    }

    fn add_bridges(&mut self, wanted: &Configuration) {
        let run_dir = self.run_dir();
        for spec in &wanted.bridges {
            if let Some(error) = &spec.error {
                self.refuse(spec.uuid, &format!("bridge {}", spec.name), error.clone());
                continue;
            }
            if self.bridges.contains_key(&spec.name) {
                continue;
            }
            let options = &self.options;
            match RunningBridge::start(spec, self.switch.clone(), options.packet_in_rate, &options.notice) {
                Ok(bridge) => {
                    if let Some(run_dir) = &run_dir {
                        bridge.serve_in(run_dir, &spec.name);
                    }
                    self.bridges.insert(spec.name.clone(), bridge);
                    self.say(format!("bridge {}: added", spec.name));
                }
                Err(why) => self.refuse(spec.uuid, &format!("bridge {}", spec.name), why),
            }
        }
    }

    /// Returns the ports that the bridges are to have, and numbers them.
    fn wanted_ports<'a>(&mut self, wanted: &'a Configuration) -> Vec<Wanted<'a>> {
        let mut ports = Vec::new();
        for spec in &wanted.bridges {
            let interfaces = || spec.ports.iter().flat_map(|port| &port.interfaces);
            let Some(bridge) = self.bridges.get_mut(&spec.name) else {
                for one in interfaces() {
                    self.errors.insert(one.uuid, format!("bridge {}: see its status", spec.name));
                }
                continue;
            };
            let usable = interfaces().filter(|one| one.kind.is_ok());
            bridge.numbers = numbers::assign(usable, &bridge.numbers);
            let numbers = bridge.numbers.clone();
            for interface in interfaces() {
                match (&interface.kind, numbers.get(&interface.uuid)) {
                    (Ok(kind), Some(number)) => {
                        ports.push(Wanted { bridge: spec, interface, number: *number, kind });
                    }
                    (Ok(_), None) => self.refuse(
                        interface.uuid,
                        &format!("interface {}", interface.name),
                        "there are no numbers left for ports".to_owned(),
                    ),
                    (Err(why), _) => {
                        self.refuse(interface.uuid, &format!("interface {}", interface.name), why.clone());
                    }
                }
            }
        }
        ports
    }

    /// Detaches the ports that are not wanted as they are, and those that have failed.
    fn detach_others(&mut self, ports: &[Wanted<'_>]) {
        for (bridge_name, bridge) in &mut self.bridges {
            let stays = |name: &str, port: &RunningPort| {
                let wanted = ports.iter().find(|one| {
                    one.bridge.name == *bridge_name && one.interface.name == name && one.number == port.number
                });
                wanted.is_some_and(|one| is_same(&port.attachment, one.kind))
                    && !bridge.control.has_failed(port.number)
            };
            let gone = bridge.ports.iter().filter(|(name, port)| !stays(name, port));
            for name in gone.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
                bridge.detach(&name);
            }
        }
    }

    /// Opens and attaches the interfaces of this machine that are not ports yet, and adjusts all.
    fn attach_missing(&mut self, ports: &[Wanted<'_>]) {
        for one in ports.iter().filter(|one| !matches!(one.kind, InterfaceKind::Patch { .. })) {
            let Some(bridge) = self.bridges.get_mut(&one.bridge.name) else { continue };
            let name = &one.interface.name;
            let result = if bridge.ports.contains_key(name) { Ok(()) } else { attach(bridge, one) };
            let result = result.and_then(|()| adjust(one));
            if let Err(why) = result {
                self.refuse(one.interface.uuid, &format!("interface {name}"), why);
            }
        }
    }

    /// Joins the patch ports that name each other.
    fn attach_patches(&mut self, ports: &[Wanted<'_>]) {
        let patches: BTreeMap<&str, (&Wanted<'_>, &str)> = ports
            .iter()
            .filter_map(|one| match one.kind {
                InterfaceKind::Patch { peer } => Some((&*one.interface.name, (one, &**peer))),
                InterfaceKind::System | InterfaceKind::Internal => None,
            })
            .collect();
        for (name, (one, peer)) in &patches {
            let why = match patches.get(peer) {
                None => format!("options:peer: there is no patch port {peer}"),
                Some((_, back)) if back != name => {
                    format!("options:peer: the peer of {peer} is {back}")
                }
                Some((other, _)) => {
                    if *name < *peer
                        && let Err(why) = self.join(one, other)
                    {
                        self.errors.insert(other.interface.uuid, why.clone());
                        self.refuse(one.interface.uuid, &format!("interface {name}"), why);
                    }
                    continue;
                }
            };
            if let Some(bridge) = self.bridges.get_mut(&one.bridge.name) {
                bridge.detach(name);
            }
            self.refuse(one.interface.uuid, &format!("interface {name}"), why);
        }
    }

    /// Joins two patch ports, unless they are joined.
    fn join(&mut self, one: &Wanted<'_>, other: &Wanted<'_>) -> Result<(), String> {
        let ends = [one, other];
        let attachment = |end: &Wanted<'_>| {
            let port = self.bridges.get(&end.bridge.name)?.ports.get(&end.interface.name)?;
            Some(port.attachment.clone())
        };
        if attachment(one).is_some() && attachment(one) == attachment(other) {
            return Ok(());
        }
        let pair =
            PatchPort::pair(ends.map(|end| &*end.interface.name)).map_err(|error| error.to_string())?;
        let number = self.next_pair;
        self.next_pair += 1;
        for (end, open) in ends.into_iter().zip(pair) {
            let Some(bridge) = self.bridges.get_mut(&end.bridge.name) else { continue };
            bridge.detach(&end.interface.name);
            let hw_addr = bridge::patch_hw_addr(end.number);
            let port = RunningPort::new(end.number, PortAttachment::Patch(number), hw_addr);
            bridge.attach(&end.interface.name, port, Box::new(open));
        }
        Ok(())
    }

    /// Records why a row is not in force, and says it once.
    fn refuse(&mut self, row: Uuid, what: &str, why: String) {
        let text = format!("{what}: {why}");
        if self.refused.get(&row) != Some(&text) {
            self.say(text.clone());
            self.refused.insert(row, text);
        }
        self.errors.insert(row, why);
    }
}

fn is_same(attachment: &PortAttachment, kind: &InterfaceKind) -> bool {
    matches!(
        (attachment, kind),
        (PortAttachment::System, InterfaceKind::System)
            | (PortAttachment::Internal, InterfaceKind::Internal)
            | (PortAttachment::Patch(_), InterfaceKind::Patch { .. })
    )
}

/// Opens an interface of this machine and attaches it; `Err` says why it is not possible.
fn attach(bridge: &mut RunningBridge, one: &Wanted<'_>) -> Result<(), String> {
    let name = &one.interface.name;
    let (open, attachment): (Box<dyn Port>, _) = match one.kind {
        InterfaceKind::System => {
            let open = interface::open_existing(name).map_err(|error| match error {
                // Without a list of interfaces, which changes.
                OpenError::NoSuchInterface { .. } => "there is no interface of this name".to_owned(),
                error => error.to_string(),
            })?;
            (open, PortAttachment::System)
        }
        InterfaceKind::Internal => {
            let open = interface::open_internal(name).map_err(|error| error.to_string())?;
            interface::adjust(name, hw_addr(one), None).map_err(|error| format!("mac: {error}"))?;
            (open, PortAttachment::Internal)
        }
        InterfaceKind::Patch { .. } => return Ok(()),
    };
    let hw_addr = interface::properties(name).map_or(MacAddr::ZERO, |(address, _)| MacAddr(address));
    bridge.attach(name, RunningPort::new(one.number, attachment, hw_addr), open);
    Ok(())
}

/// The hardware address that an interface is to have. The local port has that of its bridge.
fn hw_addr(one: &Wanted<'_>) -> Option<[u8; 6]> {
    let of_bridge = bridge::is_local(one.number).then(|| bridge::hw_addr(one.bridge));
    one.interface.hw_addr.or(of_bridge)
}

/// Gives an interface its MTU. An interface that programs have moved to another network namespace
/// is theirs.
fn adjust(one: &Wanted<'_>) -> Result<(), String> {
    let name = &one.interface.name;
    if one.interface.mtu.is_none() || interface::properties(name).is_err() {
        return Ok(());
    }
    interface::adjust(name, None, one.interface.mtu).map_err(|error| format!("mtu_request: {error}"))
}
