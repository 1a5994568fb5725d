//! Forwarding by VLANs, against a twin that has no bytes.

use super::*;
use crate::outcome::DropReason;
use crate::{Action, FlowMod, Instructions, Limits, Match, PacketOutcome, Port, Switch, interp, port};
use fastpath_units::{Duration, Rng, Time};

/// A frame without its bytes: destination, source, tag as ethertype, priority and VLAN.
type Plain = (u8, u8, Option<(u16, u16, u16)>);

fn frame((to, from, tag): Plain) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from];
    if to == 0xff {
        frame[..6].fill(0xff);
    }
    if let Some((ethertype, priority, vlan)) = tag {
        frame.extend(ethertype.to_be_bytes());
        frame.extend((priority << 13 | vlan).to_be_bytes());
    }
    frame.extend([8, 0]);
    frame.extend([7; 46]);
    frame
}

/// A switch with these ports that forwards by addresses.
fn normal_switch(ports: impl IntoIterator<Item = u32>) -> Switch {
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    ports.into_iter().for_each(|number| switch.set_port(number, Port::up()));
    let normal = Instructions::apply([Action::output(port::NORMAL)]);
    switch.flow_mod(Time::ZERO, &FlowMod::add(0, 0, Match::any(), normal)).unwrap();
    switch
}

fn outputs(outcomes: &[PacketOutcome]) -> Vec<(u32, Vec<u8>)> {
    let output = |outcome: &PacketOutcome| match outcome {
        PacketOutcome::Output { port, frame, .. } => Some((*port, frame.clone())),
        _ => None,
    };
    outcomes.iter().filter_map(output).collect()
}

/// A learning switch in the obvious way: a list of what was learned, and no bytes.
#[derive(Default)]
struct Twin {
    bridging: Bridging,
    ports: Vec<u32>,
    /// VLAN, address, port.
    learned: Vec<(u16, u8, u32)>,
}

impl Twin {
    /// Returns where a frame goes and how it looks there.
    fn forward(&mut self, in_port: u32, (to, from, tag): Plain) -> Vec<(u32, Plain)> {
        let (ethertype, priority, id) = tag.unwrap_or((0x8100, 0, 0));
        let on = |port: u32| self.bridging.vlans.get(&port);
        let in_trunk = |port: u32, vlan: u16| {
            let Some(vlans) = on(port) else { return true };
            let is_native = vlans.mode != VlanMode::Trunk && vlans.tag != 0;
            if is_native && (vlan == vlans.tag || vlan == 0) {
                return vlan == vlans.tag;
            }
            vlans.trunks.as_ref().is_none_or(|trunks| trunks.contains(vlan))
        };
        let vlan = match on(in_port).map(|vlans| (vlans.mode, vlans.tag)) {
            Some((VlanMode::Access, _)) if id != 0 => return Vec::new(),
            Some((VlanMode::Access | VlanMode::NativeTagged | VlanMode::NativeUntagged, own)) if id == 0 => {
                own
            }
            _ if in_trunk(in_port, id) => id,
            _ => return Vec::new(),
        };
        let learns = !self.bridging.flood_vlans.contains(vlan);
        if learns {
            self.learned.retain(|(in_vlan, address, _)| (*in_vlan, *address) != (vlan, from));
            self.learned.push((vlan, from, in_port));
        }
        let behind = self.learned.iter().find(|(in_vlan, address, _)| (*in_vlan, *address) == (vlan, to));
        let to_ports: Vec<u32> = match behind {
            Some((_, _, port)) => vec![*port],
            None => self.ports.clone(),
        };
        let mut copies = Vec::new();
        for port in to_ports.into_iter().filter(|port| *port != in_port) {
            let (mode, own) = on(port).map_or((VlanMode::Trunk, 0), |vlans| (vlans.mode, vlans.tag));
            let carries = if mode == VlanMode::Access { own == vlan } else { in_trunk(port, vlan) };
            let is_bare = mode == VlanMode::Access || mode == VlanMode::NativeUntagged && own == vlan;
            let tag = (!is_bare && (vlan, priority) != (0, 0)).then_some((ethertype, priority, vlan));
            if carries || behind.is_some() {
                copies.push((port, (to, from, tag)));
            }
        }
        copies
    }
}

fn any_vlans(rng: &mut Rng) -> PortVlans {
    let modes = [VlanMode::Access, VlanMode::Trunk, VlanMode::NativeTagged, VlanMode::NativeUntagged];
    let trunks = (rng.below(2) == 0).then(|| (0..rng.below(4)).map(|_| rng.below(4) as u16).collect());
    PortVlans { mode: modes[rng.below(4) as usize], tag: rng.below(4) as u16, trunks }
}

#[test]
fn frames_are_forwarded_in_their_vlan_as_by_a_switch_without_bytes() {
    let (mut sent, mut dropped, mut flooded) = (0, 0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let ports = [1, 2, 3, 4, port::LOCAL];
        let mut switch = normal_switch(ports);
        let vlans = ports.into_iter().filter(|_| rng.below(4) > 0).collect::<Vec<_>>();
        let vlans = vlans.into_iter().map(|port| (port, any_vlans(&mut rng))).collect();
        let flood_vlans = (0..rng.below(3)).map(|_| rng.below(4) as u16).collect();
        let bridging = Bridging { vlans, flood_vlans, mirrors: Vec::new() };
        switch.set_bridging(bridging.clone());
        let mut twin = Twin { bridging, ports: ports.to_vec(), learned: Vec::new() };
        for second in 0..60 {
            let in_port = ports[rng.below(5) as usize];
            let ethertype = if rng.below(4) == 0 { 0x88a8 } else { 0x8100 };
            let tag = (rng.below(3) > 0).then(|| (ethertype, rng.below(3) as u16, rng.below(4) as u16));
            let to = if rng.below(4) == 0 { 0xff } else { 2 * rng.below(4) as u8 };
            let plain = (to, 2 * rng.below(4) as u8, tag);
            let now = Time::ZERO + Duration::from_secs(second);
            let outcomes = interp(&mut switch, now, in_port, &frame(plain));
            let expected = twin.forward(in_port, plain);
            let expected: Vec<_> = expected.into_iter().map(|(port, plain)| (port, frame(plain))).collect();
            assert_eq!(
                outputs(&outcomes),
                expected,
                "seed {seed}, {plain:?} on {in_port}, {:?}",
                twin.bridging
            );
            sent += expected.len();
            flooded += usize::from(expected.len() > 1);
            dropped += usize::from(outcomes.contains(&PacketOutcome::Drop(DropReason::Vlan)));
        }
    }
    assert!(sent > 10_000 && flooded > 2000 && dropped > 2000, "{sent} {flooded} {dropped}");
}

#[test]
fn addresses_are_forgotten_when_the_vlans_of_ports_change() {
    let mut switch = normal_switch(1..=3);
    let send = |switch: &mut Switch, in_port, to, from| {
        let outcomes = interp(switch, Time::ZERO, in_port, &frame((to, from, None)));
        outputs(&outcomes).into_iter().map(|(port, _)| port).collect::<Vec<_>>()
    };
    assert_eq!(send(&mut switch, 1, 4, 2), [2, 3]);
    assert_eq!(send(&mut switch, 2, 2, 4), [1]);
    let access = |tag| PortVlans { mode: VlanMode::Access, tag, trunks: None };
    let vlans = [(1, access(5)), (2, access(5)), (3, access(6))].into();
    switch.set_bridging(Bridging { vlans, ..Bridging::default() });
    assert_eq!(send(&mut switch, 2, 2, 4), [1], "flooded in VLAN 5");
    assert_eq!(send(&mut switch, 3, 2, 4), []);
}

#[test]
fn an_output_that_is_named_leaves_as_it_is() {
    let mut switch = normal_switch(1..=2);
    let output = Instructions::apply([Action::output(2)]);
    switch.flow_mod(Time::ZERO, &FlowMod::add(0, 9, Match::any(), output)).unwrap();
    let access = PortVlans { mode: VlanMode::Access, tag: 9, trunks: None };
    switch.set_bridging(Bridging { vlans: [(2, access)].into(), ..Bridging::default() });
    let tagged = frame((4, 2, Some((0x8100, 0, 7))));
    assert_eq!(outputs(&interp(&mut switch, Time::ZERO, 1, &tagged)), [(2, tagged)]);
}

fn mirror(selection: MirrorSelection, output: MirrorOutput) -> Mirror {
    Mirror { selection, output, snap_len: None, counters: MirrorCounters::default() }
}

/// A switch with the rule that port 1 sends to ports 2 and 3, and mirrors.
fn mirrored_switch(mirrors: Vec<Mirror>) -> Switch {
    let mut switch = normal_switch(1..=6);
    let matching = Match::new(&[crate::FieldMatch::exact(crate::Field::InPort, 1)]).unwrap();
    let both = Instructions::apply([
        Action::output(2),
        Action::SetField(crate::Field::EthSrc, 0x0200_0000_0063),
        Action::output(3),
    ]);
    switch.flow_mod(Time::ZERO, &FlowMod::add(0, 9, matching, both)).unwrap();
    switch.set_bridging(Bridging { mirrors, ..Bridging::default() });
    switch
}

/// Returns the ports of the outputs of a frame on a port, and the last byte of the source of each.
fn copies(switch: &mut Switch, in_port: u32) -> Vec<(u32, u8)> {
    let outcomes = interp(switch, Time::ZERO, in_port, &frame((0xff, 2, None)));
    outputs(&outcomes).into_iter().map(|(port, frame)| (port, frame[11])).collect()
}

#[test]
fn a_mirror_copies_what_arrives_and_what_leaves_as_it_was_there_and_once() {
    let from =
        |ports: &[u32]| MirrorSelection { from: ports.iter().copied().collect(), ..Default::default() };
    let to = |ports: &[u32]| MirrorSelection { to: ports.iter().copied().collect(), ..Default::default() };
    let all = MirrorSelection { all: true, ..Default::default() };
    let at = MirrorOutput::Port;
    let one = |selection, output| mirrored_switch(vec![mirror(selection, output)]);
    assert_eq!(copies(&mut one(from(&[1]), at(4)), 1), [(2, 2), (3, 99), (4, 2)]);
    assert_eq!(copies(&mut one(to(&[3]), at(4)), 1), [(2, 2), (3, 99), (4, 99)]);
    assert_eq!(copies(&mut one(to(&[2, 3]), at(4)), 1), [(2, 2), (3, 99), (4, 2)]);
    assert_eq!(copies(&mut one(all.clone(), at(4)), 1), [(2, 2), (3, 99), (4, 2)]);
    assert_eq!(copies(&mut one(from(&[2]), at(4)), 1), [(2, 2), (3, 99)]);
    // The output of a mirror is for nothing else.
    assert_eq!(copies(&mut one(from(&[2]), at(4)), 3), [(1, 2), (2, 2), (5, 2), (6, 2)]);
    let mut switch = one(from(&[1, 4]), at(4));
    let outcomes = interp(&mut switch, Time::ZERO, 4, &frame((0xff, 2, None)));
    assert_eq!(outcomes, [PacketOutcome::Drop(DropReason::MirrorPort)]);
    assert_eq!(switch.port(4).unwrap().counters.rx_packets, 1);
}

#[test]
fn mirrors_of_mirrors_end_and_count_packets() {
    let all = || MirrorSelection { all: true, ..Default::default() };
    let at = MirrorOutput::Port;
    let pair = vec![mirror(all(), at(4)), mirror(all(), at(5))];
    let counters = pair.iter().map(|mirror| mirror.counters.clone()).collect::<Vec<_>>();
    let mut switch = mirrored_switch(pair);
    assert_eq!(copies(&mut switch, 1), [(2, 2), (3, 99), (4, 2), (5, 2)]);
    assert_eq!(counters.iter().map(MirrorCounters::get).collect::<Vec<_>>(), [(1, 60), (1, 60)]);
    // One copy at each place is enough.
    let same = vec![mirror(all(), at(4)), mirror(all(), at(4))];
    assert_eq!(copies(&mut mirrored_switch(same), 1), [(2, 2), (3, 99), (4, 2)]);
    // A port that is the output of one mirror and selected by another.
    let chain = vec![
        mirror(MirrorSelection { from: [1].into(), ..Default::default() }, at(4)),
        mirror(MirrorSelection { to: [4].into(), ..Default::default() }, at(5)),
    ];
    assert_eq!(copies(&mut mirrored_switch(chain), 1), [(2, 2), (3, 99), (4, 2), (5, 2)]);
}

#[test]
fn mirrors_choose_vlans_cut_frames_and_send_into_a_vlan() {
    let access = |tag| PortVlans { mode: VlanMode::Access, tag, trunks: None };
    let vlans = || [(1, access(10)), (2, access(10)), (3, access(20))].into();
    let all = |vlans: &[u16]| MirrorSelection {
        all: true,
        vlans: vlans.iter().copied().collect(),
        ..Default::default()
    };
    let run = |mirror: Mirror, in_port: u32| {
        let mut switch = normal_switch(1..=4);
        switch.set_bridging(Bridging { vlans: vlans(), mirrors: vec![mirror], ..Bridging::default() });
        outputs(&interp(&mut switch, Time::ZERO, in_port, &frame((0xff, 2, None))))
    };
    let (bare, of_10) = (frame((0xff, 2, None)), frame((0xff, 2, Some((0x8100, 0, 10)))));
    let to_4 = run(mirror(all(&[10]), MirrorOutput::Port(4)), 1);
    assert_eq!(to_4, [(2, bare.clone()), (4, of_10.clone())], "port 4 is a trunk");
    assert_eq!(run(mirror(all(&[10]), MirrorOutput::Port(4)), 3), [], "VLAN 20 is not chosen");
    let cut = Mirror { snap_len: Some(20), ..mirror(all(&[]), MirrorOutput::Port(4)) };
    assert_eq!(run(cut, 1), [(2, bare.clone()), (4, of_10[..20].to_vec())]);
    // Port 3 is an access port of VLAN 20, port 4 carries all VLANs.
    let of_20 = frame((0xff, 2, Some((0x8100, 0, 20))));
    let into_20 = run(mirror(all(&[10]), MirrorOutput::Vlan(20)), 1);
    assert_eq!(into_20, [(2, bare.clone()), (4, of_10), (3, bare), (4, of_20)]);
}
