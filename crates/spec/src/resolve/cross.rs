//! Checks of cross traffic: a link without a rate has nothing to share, and a load above the rate
//! is named.

use super::Resolver;
use super::link::DIRECTIONS;
use crate::mistake::Code;
use crate::path::SpecPath;
use crate::topology::{LinkId, Topology};
use crate::trace::Timeline;
use fastpath_link::{CrossSpec, PipeSpec};
use fastpath_units::Rate;

impl Resolver<'_> {
    /// Makes the checks. The topology has its events and traces.
    pub(super) fn cross(&mut self) {
        let (mut rateless, mut loads) = (Vec::new(), Vec::new());
        for (number, link) in self.topology.links.iter().enumerate() {
            let id = LinkId(number as u32);
            for end in 0..2 {
                let states = states(&self.topology, id, end);
                if states.iter().all(|(_, cross)| cross.is_none()) {
                    continue;
                }
                if !has_rate(&self.topology, id, end, &states) {
                    rateless.push((id, end));
                    continue;
                }
                let over = states.iter().find_map(|(rate, cross)| {
                    let (rate, cross) = ((*rate)?, (*cross)?);
                    (cross.rate >= rate).then_some((rate, cross.rate))
                });
                loads.extend(over.map(|over| (id, end, link.name.clone(), over)));
            }
        }
        for (id, end) in rateless {
            let what = format!("link {} has cross traffic and no rate", self.topology.link(id).name);
            self.mistake(self.cross_path(id, end), what, "write rate = \"10Mbit\" too, or remove cross");
        }
        // Most links have the same values in both directions: one sentence is enough.
        loads.dedup_by(|next, first| (next.0, next.3) == (first.0, first.3));
        for (id, end, link, (rate, cross)) in loads {
            let text = format!(
                "link {link}: its cross traffic of {cross} is not below its rate of {rate}: the queue stays full, and others lose packets"
            );
            self.warn(Code::Unexpected, self.cross_path(id, end), text);
        }
    }

    /// Where the cross traffic of a pipe stands: in its direction, in its link, or in an event.
    fn cross_path(&self, id: LinkId, end: usize) -> SpecPath {
        let described = &self.description.links[self.described[id.0 as usize]];
        let directions = [&described.forward, &described.backward];
        if directions[end].values.cross.is_some() {
            return self.link_path(id).key(DIRECTIONS[end]).key("cross");
        }
        if described.values.cross.is_some() {
            return self.link_path(id).key("cross");
        }
        let name = &self.topology.link(id).name;
        let is_of_link = |names: &[String]| names.is_empty() || names.contains(name);
        let mut events = self.description.events.iter();
        let event =
            events.position(|event| matches!(event.values.cross, Some(Some(_))) && is_of_link(&event.links));
        event.map_or_else(|| self.link_path(id), |index| SpecPath::of("events", index).key("cross"))
    }
}

/// The rate and the cross traffic of a pipe at the start, and after each event that changes it.
fn states(topology: &Topology, id: LinkId, end: usize) -> Vec<(Option<Rate>, Option<CrossSpec>)> {
    let mut pipe: PipeSpec = topology.link(id).pipes[end].clone();
    let mut states = vec![(pipe.rate, pipe.cross)];
    let of_pipe = topology
        .events
        .iter()
        .filter(|event| event.link == id && event.direction.pipes().any(|own| own == end));
    for event in of_pipe {
        pipe.rate = event.change.rate.unwrap_or(pipe.rate);
        pipe.cross = event.change.cross.unwrap_or(pipe.cross);
        states.push((pipe.rate, pipe.cross));
    }
    states
}

/// Whether a pipe has a rate at any time, or opportunities.
fn has_rate(
    topology: &Topology,
    id: LinkId,
    end: usize,
    states: &[(Option<Rate>, Option<CrossSpec>)],
) -> bool {
    let by_trace = || {
        topology.tracks_of(id, end).iter().any(|track| match &track.timeline {
            Timeline::Opportunities(_) => true,
            timeline @ Timeline::Steps(_) => timeline.extremes().0.is_some(),
        })
    };
    states.iter().any(|(rate, _)| rate.is_some()) || by_trace()
}
