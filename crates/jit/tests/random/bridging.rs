//! Random VLANs of ports, and mirrors.

use super::pick;
use fastpath_switch::bridging::{
    Bridging, Mirror, MirrorCounters, MirrorOutput, MirrorSelection, PortVlans, VlanMode,
};
use fastpath_switch::port;
use fastpath_units::Rng;

const PORTS: [u32; 8] = [1, 2, 3, 4, 5, 7, 2000, port::LOCAL];

fn any_vlans(rng: &mut Rng) -> PortVlans {
    let modes = [VlanMode::Access, VlanMode::Trunk, VlanMode::NativeTagged, VlanMode::NativeUntagged];
    let trunks = (rng.below(2) == 0).then(|| (0..rng.below(4)).map(|_| rng.below(4) as u16).collect());
    PortVlans { mode: pick(rng, &modes), tag: rng.below(4) as u16, trunks }
}

fn any_mirror(rng: &mut Rng) -> Mirror {
    let mut some = || (0..rng.below(3)).map(|_| pick(rng, &PORTS)).collect();
    let (from, to) = (some(), some());
    let vlans = (0..rng.below(3)).map(|_| rng.below(4) as u16).collect();
    let all = rng.below(3) == 0;
    Mirror {
        selection: MirrorSelection { all, from, to, vlans },
        output: match rng.below(3) {
            0 => MirrorOutput::Vlan(rng.below(4) as u16),
            _ => MirrorOutput::Port(pick(rng, &PORTS)),
        },
        snap_len: (rng.below(4) == 0).then(|| 14 + rng.below(40) as usize),
        counters: MirrorCounters::default(),
    }
}

/// Returns random ones, plain ones often.
pub(super) fn any_bridging(rng: &mut Rng) -> Bridging {
    let mut bridging = Bridging::default();
    if rng.below(2) == 0 {
        let ports: Vec<u32> = PORTS.into_iter().filter(|_| rng.below(2) == 0).collect();
        bridging.vlans = ports.into_iter().map(|port| (port, any_vlans(rng))).collect();
        bridging.flood_vlans = (0..rng.below(2)).map(|_| rng.below(4) as u16).collect();
    }
    if rng.below(3) == 0 {
        bridging.mirrors = (0..1 + rng.below(3)).map(|_| any_mirror(rng)).collect();
    }
    bridging
}
