//! A network that is one part of a partition: what leaves its cut pipes passes on to other parts.
//!
//! ```text
//!            part 0                                         part 1
//!  node ─▶ queue ─▶ rate ─▶ delay ─┐ Crossings   ┌─▶ the same pipe, idle ─▶ node
//!                                  └─(exit, fate)┘
//! ```
//!
//! Each part runs the whole topology with the numbers, schedules and routes of the whole, but only
//! its own nodes get frames. The part of the sending node runs a cut pipe up to its delay. The
//! exits are put into the same pipe of the receiving part, which has nothing else in it. So they
//! take their places among the exits of all pipes by time and number, as in the whole network. What
//! a pipe drops before its delay stays with the sender.

use crate::cut_pipes::{Crossing, Crossings, CutPipes, Outbound};
use crate::network::Network;
use crate::observer::Observer;
use crate::partition::Partition;
use crate::wiring::PipeEnd;
use fastpath_link::{Exit, Packet};
use fastpath_spec::LinkId;
use fastpath_units::{Duration, Time};

/// Why a part cannot go on with the results of the whole network.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CutError {
    /// A frame came when the part was past its time.
    #[error("{link}: a frame left at {at}, earlier than its least delay allows: run with --workers 1")]
    Late {
        /// The link.
        link: String,
        /// When the frame left it.
        at: Time,
    },
    /// The memory for frames is used up. Which frames it holds depends on the parts.
    #[error("the frames in the network need more memory than there is for frames: run with --workers 1")]
    PoolFull,
}

impl<O: Observer> Network<O> {
    /// Makes the network, which has not begun, one part of a partition of its topology.
    pub fn cut(&mut self, partition: &Partition, part: usize) {
        let out = (0..partition.count()).map(|_| Crossings::default()).collect();
        let places = vec![u32::MAX; 2 * self.topology.links.len()];
        let mut cut = CutPipes { outbound: Vec::new(), places, out };
        for link in partition.cuts() {
            for index in 0..2 {
                let pipe = 2 * link.link.0 + index as u32;
                let [from, to] = [index, 1 - index].map(|end| link.parts[end]);
                if part != from && part != to {
                    continue;
                }
                // A fast pipe keeps order after a change by what is still in its delay line.
                if link.changes[index] {
                    self.pipes.generalise(Time::ZERO, pipe);
                }
                if part == from {
                    self.pipes.set_label(pipe, PipeEnd::Away.label());
                    cut.places[pipe as usize] = cut.outbound.len() as u32;
                    cut.outbound.push(Outbound {
                        pipe,
                        to,
                        lookahead: link.lookahead[index],
                        is_final: !link.jitters[index],
                        at: Time::ZERO,
                        in_order: true,
                    });
                }
            }
        }
        self.cut = Some(Box::new(cut));
    }

    /// Passes on a frame that leaves a cut pipe.
    #[cold]
    pub(crate) fn pass_on(&mut self, id: u32, exit: Exit<crate::pool::Frame>) {
        let departed = self.pipes.departed(id);
        let Some(cut) = &mut self.cut else { unreachable!("only a part has pipes that lead away") };
        let outbound = &mut cut.outbound[cut.places[id as usize] as usize];
        let Exit { at, packet: Packet { data: frame, .. }, fate } = exit;
        let out = &mut cut.out[outbound.to];
        outbound.note(at);
        let tag = self.observer.crossed(&frame);
        let crossing = Crossing { pipe: id, at, departed, fate, len: frame.len() as u32, tag };
        out.push(crossing, self.pool.bytes(&frame));
        self.pool.free(frame);
    }

    /// Ends a window: everything before `end` has happened and nothing else. Afterwards
    /// [`Network::take_crossings`] has what is known to pass on to other parts.
    pub fn end_window(&mut self, end: Time) {
        let Some(cut) = &mut self.cut else { return };
        let CutPipes { outbound, out, .. } = &mut **cut;
        let done = end.saturating_sub(Duration::from_ps(1));
        for outbound in outbound {
            let horizon = if outbound.is_final { Time::MAX } else { end.saturating_add(outbound.lookahead) };
            let (pool, observer, out) = (&mut self.pool, &mut self.observer, &mut out[outbound.to]);
            let pipe = outbound.pipe;
            self.pipes.take_ahead(done, pipe, horizon, |exit, departed| {
                let Exit { at, packet: Packet { data: frame, .. }, fate } = exit;
                outbound.note(at);
                let tag = observer.crossed(&frame);
                let crossing = Crossing { pipe, at, departed, fate, len: frame.len() as u32, tag };
                out.push(crossing, pool.bytes(&frame));
                pool.free(frame);
            });
        }
    }

    /// Exchanges `crossings`, which are empty, for what passes on to another part.
    pub fn take_crossings(&mut self, part: usize, crossings: &mut Crossings) {
        if let Some(cut) = &mut self.cut {
            std::mem::swap(&mut cut.out[part], crossings);
        }
    }

    /// Returns when the next frame leaves for a part of those that have not been passed on, because
    /// they are on the wire or another one may overtake them; `None` without one.
    pub fn next_crossing(&self, part: usize) -> Option<Time> {
        let outbound = self.cut.iter().flat_map(|cut| &cut.outbound);
        let to_part = outbound.filter(|outbound| outbound.to == part);
        to_part.filter_map(|outbound| self.pipes.next_flight(outbound.pipe)).min()
    }

    /// Takes what another part has passed on, and leaves `crossings` empty.
    ///
    /// # Errors
    /// The results would differ from those of the whole network.
    pub fn receive(&mut self, crossings: &mut Crossings) -> Result<(), CutError> {
        let mut offset = 0;
        for Crossing { pipe, at, departed, fate, len, tag } in crossings.heads.drain(..) {
            if at <= self.now {
                let link = self.topology.link(LinkId(pipe / 2)).name.clone();
                return Err(CutError::Late { link, at });
            }
            let bytes = &crossings.bytes[offset..offset + len as usize];
            offset += len as usize;
            let frame = self.pool.insert(bytes).ok_or(CutError::PoolFull)?;
            self.observer.joined(&frame, tag);
            let packet = Packet { len, flow: 0, traffic_class: 0, data: frame };
            self.pipes.put_exit(pipe, Exit { at, packet, fate }, departed);
        }
        crossings.bytes.clear();
        crossings.first_at = None;
        Ok(())
    }

    /// Returns the error of a pipe whose exits were out of order: its delay was shorter than its
    /// lookahead.
    ///
    /// # Errors
    /// There is one.
    pub fn check_order(&self) -> Result<(), CutError> {
        let mut outbound = self.cut.iter().flat_map(|cut| &cut.outbound);
        let Some(wrong) = outbound.find(|outbound| !outbound.in_order) else { return Ok(()) };
        Err(CutError::Late { link: self.topology.link(LinkId(wrong.pipe / 2)).name.clone(), at: wrong.at })
    }

    /// Returns when the next link changes or the next frame expires that waits in a router.
    pub fn next_turn(&self) -> Option<Time> {
        [self.schedule.next_at(), self.expires_at].into_iter().flatten().min()
    }
}
