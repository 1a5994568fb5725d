//! Cores: each runs a packet's leg to completion, memory stalls included, then takes its next from
//! the scheduler.
//!
//! A core's memory references are not events: their latencies are added up when the packet starts,
//! each drawn from the cache hierarchy. (An event per reference costs a hundred times more and
//! changes nothing a core can see, since it waits for each anyway.)

use super::{What, World};
use crate::machine::{CoresSpec, Full};
use crate::outcome::Use;
use crate::program::{Cursor, Leg, Op};
use crate::scheduler::{Scheduler, Work};
use crate::stats::TimeWeighted;
use fastpath_units::{Duration, Time};
use std::collections::VecDeque;

pub(crate) struct Cores {
    pub(crate) full: Full,
    scheduler: Scheduler,
    /// The work each core holds.
    cores: Vec<Option<Work>>,
    idle: usize,
    /// What a refused packet costs, and what refused ones have cost that no core has paid yet.
    refusal: Duration,
    debt: Duration,
    /// What a span of work becomes beside the ticks.
    stretch: f64,
    busy: TimeWeighted,
    waiting: TimeWeighted,
    /// Scratch: packets leaving at one finish.
    leaving: VecDeque<u32>,
}

/// A machine whose ticks take all its time still does a packet now and then.
const LEAST_LEFT: f64 = 1e-3;
/// Draws beyond this number are replaced by their expectation: the sum of many is its mean anyway.
const DRAWS_MAX: u32 = 16;

impl Cores {
    pub(crate) fn new(spec: &CoresSpec, links: u32) -> Cores {
        // Ticks are short and frequent beside packets' waits: what they leave over is shared by all
        // packets alike.
        let ticks = spec.tick.as_ref().map_or(0.0, |t| {
            f64::from(links) * t.per_link.as_secs_f64() / (t.every.as_secs_f64() * f64::from(spec.cores))
        });
        Cores {
            full: spec.queue.full,
            scheduler: Scheduler::new(&spec.scheduler, spec.cores, spec.queue.limit),
            cores: vec![None; spec.cores as usize],
            idle: spec.cores as usize,
            refusal: spec.refusal,
            debt: Duration::ZERO,
            stretch: 1.0 / (1.0 - ticks).max(LEAST_LEFT),
            busy: TimeWeighted::default(),
            waiting: TimeWeighted::default(),
            leaving: VecDeque::new(),
        }
    }

    pub(crate) fn offer(&mut self, world: &mut World, packet: u32) -> bool {
        let p = &world.packets[packet as usize];
        let work = Work {
            packet,
            flow: p.flow,
            priority: (p.flow % world.workload.priorities) as u8,
            group: (p.flow % world.workload.groups) as u8,
            tag: world.route.legs[p.leg].tag,
        };
        let fits = self.scheduler.push(work);
        if fits {
            self.dispatch(world);
        } else if self.full == Full::Drop {
            self.debt += self.refusal;
        }
        fits
    }

    /// Gives idle cores what the scheduler has for them.
    fn dispatch(&mut self, world: &mut World) {
        if self.idle > 0 {
            for core in 0..self.cores.len() {
                if !self.scheduler.has_work() {
                    break;
                }
                if self.cores[core].is_none()
                    && let Some((work, overhead)) = self.scheduler.pull(core as u32)
                {
                    self.idle -= 1;
                    self.busy.set(world.now(), self.busy.level() + 1);
                    self.run(world, core as u32, work, overhead);
                }
            }
        }
        self.waiting.set(world.now(), self.scheduler.waiting() as u64);
    }

    fn run(&mut self, world: &mut World, core: u32, work: Work, overhead: Duration) {
        self.cores[core as usize] = Some(work);
        world.start(work.packet);
        let leg = &world.route.legs[world.packets[work.packet as usize].leg];
        let owed = std::mem::take(&mut self.debt);
        let mut span = owed + overhead + leg_time(world, leg, work.packet, self.cores.len() as u32);
        if self.stretch > 1.0 {
            span = Duration::from_ps((span.as_ps() as f64 * self.stretch) as u64);
        }
        world.after(span, What::Done, core);
    }

    pub(crate) fn handle(&mut self, world: &mut World, core: u32) {
        let work = self.cores[core as usize].expect("a busy core has work");
        world.end_leg(work.packet, core);
        let next = world.packets[work.packet as usize].leg;
        let mut holds = false;
        match world.route.legs.get(next) {
            Some(leg) if leg.unit == usize::from(world.unit) => {
                // More to do here under another tag: at once, or later and elsewhere if the tag is
                // taken.
                if self.scheduler.switch(work, leg.tag, &mut self.leaving) {
                    holds = true;
                    self.run(world, core, Work { tag: leg.tag, ..work }, Duration::ZERO);
                }
            }
            _ => self.scheduler.finish(work, &mut self.leaving),
        }
        while let Some(packet) = self.leaving.pop_front() {
            let mine = packet == work.packet;
            holds |= mine;
            world.hand_on(packet, mine.then_some(core));
        }
        if !holds {
            self.free(world, core);
        }
        self.dispatch(world);
    }

    fn free(&mut self, world: &mut World, core: u32) {
        self.cores[core as usize] = None;
        self.idle += 1;
        self.busy.set(world.now(), self.busy.level() - 1);
    }

    pub(crate) fn release(&mut self, world: &mut World, core: u32) {
        self.free(world, core);
        self.dispatch(world);
    }

    /// Who waits before `name` for ever, once nothing else can happen.
    pub(crate) fn stranded(&self, name: &str) -> Vec<String> {
        let groups = self.scheduler.waiting_by_group();
        let idle = |(group, n): (u8, usize)| {
            format!(
                "{n} packets of group {group} wait before {name}, and no idle core of it takes that group"
            )
        };
        if self.idle > 0 { groups.into_iter().map(idle).collect() } else { Vec::new() }
    }

    pub(crate) fn usage(&self, end: Time) -> Use {
        let busy = self.busy.mean(end) / self.cores.len() as f64;
        Use { busy, queue_mean: self.waiting.mean(end), queue_max: self.waiting.max(), ..Use::default() }
    }
}

/// The time a core spends on `packet` in `leg`.
fn leg_time(world: &mut World, leg: &Leg, packet: u32, cores: u32) -> Duration {
    let size = world.packets[packet as usize].size;
    let chunks = world.route.chunks(size);
    let (mut cursor, mut span, mut draws) = (Cursor::default(), Duration::ZERO, 0);
    while let Some(op) = cursor.next(leg, size, chunks) {
        span += match op {
            Op::Compute { fixed, per_byte } => fixed + per_byte.times(size),
            Op::Access { memory, access, bytes } => {
                world.memories[usize::from(memory)].expected(access, bytes)
            }
            Op::Touch { region } => {
                let (bytes, cache) = world.route.regions[usize::from(region)];
                draws += 1;
                let cache = &world.caches[cache];
                if draws <= DRAWS_MAX {
                    cache.draw(bytes, cores, &mut world.rng)
                } else {
                    cache.expected(bytes, cores)
                }
            }
            // A run-to-completion program's critical sections are its scheduler's atomic tags.
            Op::Enter(_) | Op::Leave(_) => Duration::ZERO,
        };
    }
    span
}
