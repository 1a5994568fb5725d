//! The default queue of a pipe for which none is given.

use crate::mistake::several;
use crate::topology::{Link, LinkId, Topology};
use fastpath_link::{Limit, QueueSpec};
use fastpath_units::{Bytes, Duration, Rate};
use std::collections::{BTreeMap, BTreeSet};

/// The default of Dummynet, ns-2 and Emulab, in packets.
pub const DEFAULT_QUEUE_PACKETS: u32 = 50;
/// The packet size by which a bandwidth-delay product is counted in packets.
const PACKET_BYTES: u64 = 1500;

/// Gives every pipe of `unqueued` that has a rate at any time a drop-tail queue. Its limit is the
/// larger of [`DEFAULT_QUEUE_PACKETS`] and the highest rate × the longest round trip of the link.
/// Returns for each limit the pipes and a sentence about them.
pub(crate) fn fill(
    topology: &mut Topology,
    unqueued: &BTreeSet<(LinkId, usize)>,
) -> Vec<(Vec<(LinkId, usize)>, String)> {
    let limits = Extremes::of(topology);
    let mut chosen: BTreeMap<u32, Vec<(LinkId, usize)>> = BTreeMap::new();
    for &(link, end) in unqueued {
        let Some(rate) = limits.rate[link.0 as usize][end] else { continue };
        let round_trip =
            limits.delay[link.0 as usize].into_iter().fold(Duration::ZERO, Duration::saturating_add);
        let Bytes(product) = rate.bytes_in(round_trip);
        let packets =
            u32::try_from(product.div_ceil(PACKET_BYTES)).unwrap_or(u32::MAX).max(DEFAULT_QUEUE_PACKETS);
        topology.links[link.0 as usize].pipes[end].queue = QueueSpec::DropTail(Limit::Packets(packets));
        chosen.entry(packets).or_default().push((link, end));
    }
    let sentence = |(packets, pipes): (u32, Vec<(LinkId, usize)>)| {
        // The two directions of a link are adjacent.
        let mut names: Vec<&str> = pipes.iter().map(|(link, _)| topology.link(*link).name.as_str()).collect();
        names.dedup();
        let text = format!(
            "no queue given for {}: drop-tail of {packets} packets (at least {DEFAULT_QUEUE_PACKETS}, at least rate × round trip)",
            several(names.into_iter())
        );
        (pipes, text)
    };
    chosen.into_iter().map(sentence).collect()
}

/// Returns the links with a queue limited in time that never drops because no rate is ever set,
/// with a sentence for each.
pub(crate) fn timeless(topology: &Topology) -> Vec<(LinkId, String)> {
    let limits = Extremes::of(topology);
    let pipes = topology.links.iter().zip(&limits.rate).enumerate();
    let without = |(number, (link, rates)): (usize, (&Link, &[Option<Rate>; 2]))| {
        let timed = |end: usize| matches!(link.pipes[end].queue, QueueSpec::DropTailTime(_));
        let text = "its queue is limited in time and never drops, because the link has no rate";
        (0..2)
            .any(|end| timed(end) && rates[end].is_none())
            .then(|| (LinkId(number as u32), format!("link {}: {text}", link.name)))
    };
    pipes.filter_map(without).collect()
}

/// The highest rate and the longest delay of each pipe, including events and traces.
struct Extremes {
    rate: Vec<[Option<Rate>; 2]>,
    delay: Vec<[Duration; 2]>,
}

impl Extremes {
    fn of(topology: &Topology) -> Extremes {
        let mut extremes = Extremes {
            rate: topology.links.iter().map(|link| link.pipes.each_ref().map(|pipe| pipe.rate)).collect(),
            delay: topology.links.iter().map(|link| link.pipes.each_ref().map(|pipe| pipe.delay)).collect(),
        };
        for event in &topology.events {
            for end in event.direction.pipes() {
                let rate = &mut extremes.rate[event.link.0 as usize][end];
                *rate = (*rate).max(event.change.rate.flatten());
                let delay = &mut extremes.delay[event.link.0 as usize][end];
                *delay = (*delay).max(event.change.delay.unwrap_or(Duration::ZERO));
            }
        }
        for track in &topology.tracks {
            let (fastest, longest) = track.timeline.extremes();
            let rate = &mut extremes.rate[track.link.0 as usize][track.pipe];
            *rate = (*rate).max(fastest);
            let delay = &mut extremes.delay[track.link.0 as usize][track.pipe];
            *delay = (*delay).max(longest);
        }
        extremes
    }
}
