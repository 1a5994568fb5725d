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
use crate::fate::Reason;
use crate::id::PipeId;
use crate::network::Network;
use crate::observer::Observer;
use crate::partition::Partition;
use crate::pool::Frame;
use crate::wiring::PipeEnd;
use fastpath_link::{Change, DropReason, Exit, Fate, Packet};
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
    /// Makes the network one part of a partition of its topology: one that has not begun, or after
    /// a change of the topology.
    pub fn cut(&mut self, partition: &Partition, part: usize) {
        let former = self.cut.take();
        let mut cut = CutPipes {
            outbound: Vec::new(),
            places: vec![u32::MAX; 2 * self.topology.links.len()],
            out: (0..partition.count()).map(|_| Crossings::default()).collect(),
            busy: Vec::new(),
            passed_on: former.as_ref().map_or(0, |former| former.passed_on),
            received: former.as_ref().map_or(0, |former| former.received),
        };
        for link in partition.cuts() {
            for index in 0..2 {
                let pipe = 2 * link.link.0 + index as u32;
                let [from, to] = [index, 1 - index].map(|end| link.parts[end]);
                if part != from && part != to {
                    continue;
                }
                // A fast pipe keeps order after a change by what is still in its delay line.
                if link.changes[index] {
                    self.pipes.generalise(self.now, pipe);
                }
                if part == from {
                    self.pipes.set_label(pipe, PipeEnd::Away.label());
                    let place = cut.outbound.len() as u32;
                    cut.places[pipe as usize] = place;
                    cut.busy.push(place);
                    cut.outbound.push(Outbound {
                        pipe,
                        to,
                        lookahead: link.lookahead[index],
                        is_final: !link.jitters[index] && self.pipes.pipe(pipe).spec().jitter.is_none(),
                        at: Time::ZERO,
                        in_order: true,
                        is_busy: true,
                    });
                }
            }
        }
        self.cut = Some(Box::new(cut));
    }

    /// Passes on a frame that leaves a cut pipe.
    #[cold]
    pub(crate) fn pass_on(&mut self, id: u32, exit: Exit<Frame>) {
        let departed = self.pipes.departed(id);
        let Some(cut) = &mut self.cut else { unreachable!("only a part has pipes that lead away") };
        let outbound = &mut cut.outbound[cut.places[id as usize] as usize];
        let exit = Exit { at: outbound.note(exit.at), ..exit };
        cut.passed_on += 1;
        cut.out[outbound.to].push(id, exit, departed, &mut self.pool, &mut self.observer);
    }

    /// Ends a window: everything before `end` has happened and nothing else. Afterwards
    /// [`Network::take_crossings`] has what is known to pass on to other parts.
    pub fn end_window(&mut self, end: Time) {
        let Some(cut) = &mut self.cut else { return };
        let CutPipes { outbound, out, busy, passed_on, .. } = &mut **cut;
        let done = end.saturating_sub(Duration::from_ps(1));
        let (pool, observer, pipes) = (&mut self.pool, &mut self.observer, &mut self.pipes);
        busy.retain(|place| {
            let outbound = &mut outbound[*place as usize];
            let horizon = if outbound.is_final { Time::MAX } else { end.saturating_add(outbound.lookahead) };
            let (pipe, out) = (outbound.pipe, &mut out[outbound.to]);
            pipes.take_ahead(done, pipe, horizon, |mut exit, departed| {
                exit.at = outbound.note(exit.at);
                *passed_on += 1;
                out.push(pipe, exit, departed, pool, observer);
            });
            outbound.is_busy = pipes.holds(pipe);
            outbound.is_busy
        });
    }

    /// In real time: lets everything up to `now` happen, and gets ready for
    /// [`Network::take_crossings`] what is known to pass on to other parts. Returns whether
    /// anything may pass on.
    #[inline]
    pub fn hand_over(&mut self, now: Time) -> bool {
        let Some(cut) = &self.cut else { return false };
        if !cut.busy.is_empty() {
            self.advance(now);
            self.end_window(self.now.saturating_add(Duration::from_ps(1)));
        }
        self.has_crossings()
    }

    /// Returns whether [`Network::hand_over`] may have something to do.
    #[inline]
    pub fn may_hand_over(&self) -> bool {
        self.cut.as_ref().is_some_and(|cut| !cut.busy.is_empty()) || self.has_crossings()
    }

    /// Returns whether [`Network::take_crossings`] has anything.
    pub fn has_crossings(&self) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.out.iter().any(|out| !out.is_empty()))
    }

    /// Returns when the next call of [`Network::hand_over`] has something, at once if not all was
    /// taken; `None` if nothing is in the pipes to other parts.
    pub fn next_handover(&self) -> Option<Time> {
        let cut = self.cut.as_deref()?;
        if self.has_crossings() {
            return Some(self.now);
        }
        let known = |place: &u32| {
            let outbound = &cut.outbound[*place as usize];
            let in_flight = self.pipes.next_flight(outbound.pipe);
            let in_flight =
                in_flight.filter(|_| !outbound.is_final).map(|at| at.saturating_sub(outbound.lookahead));
            [in_flight, self.pipes.next_departure(outbound.pipe)].into_iter().flatten().min()
        };
        cut.busy.iter().filter_map(known).min()
    }

    /// A pipe changes in real time. One that has jitter now no longer knows its exits in order.
    pub(crate) fn note_change(&mut self, pipe: u32, change: &Change) {
        if let (Some(cut), Some(Some(_))) = (&mut self.cut, &change.jitter)
            && let Some(outbound) = cut.outbound.get_mut(cut.places[pipe as usize] as usize)
        {
            outbound.is_final = false;
        }
    }

    /// Returns how many frames have passed on to other parts, and how many have come from them. The
    /// difference over all parts is on its way between them.
    pub fn crossed(&self) -> [u64; 2] {
        self.cut.as_ref().map_or([0; 2], |cut| [cut.passed_on, cut.received])
    }

    /// Exchanges `crossings`, which are empty, for what passes on to another part.
    pub fn take_crossings(&mut self, part: usize, crossings: &mut Crossings) {
        if let Some(cut) = &mut self.cut {
            std::mem::swap(&mut cut.out[part], crossings);
        }
    }

    /// Returns what passes on to another part, for the caller to take.
    ///
    /// # Panics
    /// The network is not a part.
    pub fn crossings_mut(&mut self, part: usize) -> &mut Crossings {
        &mut self.cut.as_mut().expect("a part").out[part]
    }

    /// Drops what passes on to another part, which does not take it.
    pub fn discard_crossings(&mut self, part: usize, reason: Reason) {
        let Some(cut) = &mut self.cut else { return };
        let out = std::mem::take(&mut cut.out[part]);
        cut.passed_on -= out.len() as u64;
        (0..out.len()).for_each(|_| self.counters.count_drop(reason));
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
        crossings.drain(|crossing, bytes| {
            if crossing.at <= self.now {
                let link = self.topology.link(LinkId(crossing.pipe / 2)).name.clone();
                return Err(CutError::Late { link, at: crossing.at });
            }
            self.join(crossing, bytes).ok_or(CutError::PoolFull)
        })
    }

    /// In real time: takes what another part has passed on, and leaves `crossings` empty. A frame
    /// that was due at a node before now reaches it now, and one that was due at an edge is
    /// delivered as of then. `pipe` has by pipe its number, if it is there: the topology may have
    /// changed since they were passed on. `late` is told of frames for nodes: the pipe, when the
    /// frame was due, and the time of the network. It returns whether the frame goes on; otherwise
    /// it is dropped.
    pub fn receive_any(
        &mut self,
        crossings: &mut Crossings,
        pipe: impl Fn(u32) -> Option<u32>,
        mut late: impl FnMut(PipeId, Time, Time) -> bool,
    ) {
        let Ok(()) = crossings.drain::<std::convert::Infallible>(|mut crossing, bytes| {
            let Some(cut) = &mut self.cut else { return Ok(()) };
            let Some(id) = pipe(crossing.pipe) else {
                cut.received += 1;
                self.counters.count_drop(Reason::Removed);
                return Ok(());
            };
            crossing.pipe = id;
            if !PipeEnd::is_edge(self.pipes.label(id)) {
                let due = crossing.at;
                crossing.at = due.max(self.now);
                let pipe = PipeId { link: LinkId(id / 2), index: (id % 2) as usize };
                if !late(pipe, due, self.now) {
                    crossing.fate = Fate::Dropped(DropReason::Late);
                }
            }
            if self.join(crossing, bytes).is_none() {
                self.counters.count_drop(Reason::PoolFull);
            }
            Ok(())
        });
    }

    /// Puts a frame of another part into its pipe; `None` without memory for it.
    fn join(&mut self, crossing: Crossing, bytes: &[u8]) -> Option<()> {
        if let Some(cut) = &mut self.cut {
            cut.received += 1;
        }
        let Crossing { pipe, at, departed, fate, len, tag } = crossing;
        let frame = self.pool.insert(bytes)?;
        if let Some(tag) = tag {
            self.observer.joined(&frame, tag);
        }
        let packet = Packet::new(len, frame);
        self.pipes.put_exit(pipe, Exit { at, packet, fate }, departed);
        Some(())
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
