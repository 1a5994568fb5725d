//! VLANs of ports and mirrors: from names to port numbers.

use fastpath_ovsdb::{BridgeSpec, MirrorDestination, MirrorSpec, PortVlans, Uuid, VlanMode};
use fastpath_switch::bridging::{self, MIRRORS_MAX, MirrorOutput, MirrorSelection};
use std::collections::{BTreeMap, BTreeSet};

/// What was set last, by numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct BridgingState {
    pub(super) vlans: BTreeMap<u32, bridging::PortVlans>,
    pub(super) flood_vlans: bridging::VlanSet,
    pub(super) mirrors: Vec<(Uuid, MirrorSelection, MirrorOutput, Option<usize>)>,
}

/// Returns what the database asks for.
pub(super) fn wanted(spec: &BridgeSpec, numbers: &BTreeMap<Uuid, u32>) -> BridgingState {
    let numbers_of = |port: &fastpath_ovsdb::PortSpec| -> Vec<u32> {
        port.interfaces.iter().filter_map(|one| numbers.get(&one.uuid).copied()).collect()
    };
    let mut state =
        BridgingState { flood_vlans: spec.flood_vlans.iter().copied().collect(), ..Default::default() };
    for port in &spec.ports {
        let vlans = port_vlans(&port.vlans);
        if vlans != bridging::PortVlans::all() {
            state.vlans.extend(numbers_of(port).into_iter().map(|number| (number, vlans.clone())));
        }
    }
    let named = |names: &BTreeSet<String>| -> BTreeSet<u32> {
        spec.ports.iter().filter(|port| names.contains(&port.name)).flat_map(numbers_of).collect()
    };
    let mirror = |one: &MirrorSpec| {
        let output = match one.output.as_ref().ok()? {
            MirrorDestination::Port(name) => {
                let port = spec.ports.iter().find(|port| port.name == *name)?;
                MirrorOutput::Port(*numbers_of(port).first()?)
            }
            MirrorDestination::Vlan(vlan) => MirrorOutput::Vlan(*vlan),
        };
        let selection = MirrorSelection {
            all: one.select_all,
            from: named(&one.from),
            to: named(&one.to),
            vlans: one.vlans.iter().copied().collect(),
        };
        Some((one.uuid, selection, output, one.snap_len.map(usize::from)))
    };
    state.mirrors = spec.mirrors.iter().filter_map(mirror).take(MIRRORS_MAX).collect();
    state
}

fn port_vlans(spec: &PortVlans) -> bridging::PortVlans {
    let mode = match spec.mode {
        VlanMode::Access => bridging::VlanMode::Access,
        VlanMode::Trunk => bridging::VlanMode::Trunk,
        VlanMode::NativeTagged => bridging::VlanMode::NativeTagged,
        VlanMode::NativeUntagged => bridging::VlanMode::NativeUntagged,
    };
    // The trunks of an access port mean nothing.
    let has_trunks = mode != bridging::VlanMode::Access && !spec.trunks.is_empty();
    let trunks = has_trunks.then(|| spec.trunks.iter().copied().collect());
    bridging::PortVlans { mode, tag: spec.tag, trunks }
}
