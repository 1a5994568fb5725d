//! Cores: each core runs a packet's leg to completion, memory stalls included, then takes its next
//! packet from the scheduler.
//!
//! ```toml
//! [[cores]]
//! name = "cpu"
//! cores = 12
//! clock = "3GHz"
//! scheduler = { kind = "poll", burst = 32 }  # fifo (the default), poll, sso, openem
//! refusal = "426ns"                          # cost of a packet that is received and dropped
//! tick = { every = "1ms", per_link = "1.9us" }
//! queue = { limit = 512 }
//! ```
//!
//! A core's memory references are not events. Their latencies are added up when the packet starts,
//! each drawn from the cache hierarchy. An event per reference costs a hundred times more and
//! changes nothing that a core can see, because a core waits for each reference.

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType, check_servers, put_servers};
use crate::cache::Touches;
use crate::environment::{Environment, What};
use crate::keys::read_table;
use crate::memory::Memory;
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::{Full, QueueSpec};
use crate::route::{Leg, Op, OpGroup};
use crate::scheduler::{Scheduler, SchedulerSpec, WorkItem};
use crate::spec::{Clock, Name, out_of_range};
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Duration, Time};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct CoresSpec {
    name: Name,
    cores: u32,
    clock: Clock,
    scheduler: SchedulerSpec,
    /// The cost of a packet for which there is no room: a core receives it before it is dropped.
    refusal: Duration,
    /// Periodic work in addition to the packets.
    tick: Option<TickSpec>,
    queue: QueueSpec,
}

/// Periodic work of an emulator's cores: at each timer tick, a visit to every link of the workload
/// (`links`).
#[derive(Clone, Debug)]
struct TickSpec {
    every: Duration,
    per_link: Duration,
}

read_table!(CoresSpec as "cores", "{ name = \"cpu\" }": {
    name,
    cores,
    clock,
    scheduler = SchedulerSpec::Fifo,
    refusal = Duration::ZERO,
    tick = None,
    queue = QueueSpec::default(),
});

read_table!(TickSpec as "tick", "{ every = \"100us\", per_link = \"50ns\" }": { every, per_link });

impl UnitType for CoresSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, _machine: &Surroundings, remarks: &mut Remarks) {
        check_servers(&self.name, "cores", self.cores, remarks);
        self.queue.check_fifo(&self.name, "the scheduler decides the order", remarks);
        if self.queue.limit == 0 {
            out_of_range(&self.name, "queue.limit", "above 0: cores take packets out of it", remarks);
        }
        if self.tick.as_ref().is_some_and(|tick| tick.every.is_zero()) {
            out_of_range(&self.name, "tick.every", "above 0", remarks);
        }
    }

    fn reads_packets(&self) -> bool {
        true
    }

    fn clock(&self) -> Option<Clock> {
        Some(self.clock)
    }

    fn servers(&self) -> Option<u32> {
        Some(self.cores)
    }

    fn set_servers(&mut self, servers: u32, _ports: &PortsSpec) -> bool {
        put_servers(&mut self.cores, servers)
    }

    /// Cores use memories as if these were idle, and no locks. They draw the place of a reference.
    fn shares(&self, work: &[OpGroup]) -> bool {
        let mut ops = work.iter().flat_map(|group| &group.ops);
        ops.any(|(op, _)| matches!(op, Op::Touch { .. }))
    }
}

pub(crate) struct Cores {
    full: Full,
    scheduler: Scheduler,
    /// The work of each leg of the program.
    legs: Vec<Vec<Work>>,
    /// References into each region.
    touches: Vec<Touches>,
    /// The work each core holds.
    cores: Vec<Option<WorkItem>>,
    idle: usize,
    /// The cost of a refused packet, and the cost of refused packets that no core has paid yet.
    refusal: Duration,
    debt: Duration,
    /// The factor by which ticks lengthen all other work.
    stretch: f64,
    busy: TimeWeighted,
    waiting: TimeWeighted,
    /// Scratch: packets leaving at one finish.
    leaving: VecDeque<u32>,
}

/// A group of operations, summed up.
struct Work {
    per_chunk: bool,
    /// Only packets of more bytes than this.
    over: u32,
    fixed: Duration,
    per_byte: Duration,
    /// References into regions, by region, each with its number of repetitions.
    touches: Vec<(u16, u32)>,
}

/// The least share of time for packets, where ticks would take all of it.
const LEAST_LEFT: f64 = 1e-3;
/// Draws beyond this number are replaced by their expectation: a sum of many draws is close to it.
const DRAWS_MAX: u32 = 16;

impl Cores {
    /// Gives idle cores what the scheduler has for them.
    #[inline]
    fn dispatch(&mut self, env: &mut Environment) {
        if self.idle > 0 && self.scheduler.has_work() {
            self.assign(env);
        }
        self.waiting.set(env.now(), self.scheduler.waiting() as u64);
    }

    fn assign(&mut self, env: &mut Environment) {
        for core in 0..self.cores.len() {
            if !self.scheduler.has_work() {
                break;
            }
            if self.cores[core].is_none()
                && let Some((work, overhead)) = self.scheduler.pull(core as u32)
            {
                self.idle -= 1;
                self.busy.set(env.now(), self.busy.level() + 1);
                self.run(env, core as u32, work, overhead);
            }
        }
    }

    fn run(&mut self, env: &mut Environment, core: u32, work: WorkItem, overhead: Duration) {
        self.cores[core as usize] = Some(work);
        env.start(work.packet);
        let owed = std::mem::take(&mut self.debt);
        let mut span = owed + overhead + self.leg_time(env, work.packet);
        if self.stretch > 1.0 {
            span = Duration::from_ps((span.as_ps() as f64 * self.stretch) as u64);
        }
        env.after(span, What::Done, core);
    }

    /// The time a core spends on the current leg of `packet`.
    fn leg_time(&self, env: &mut Environment, packet: u32) -> Duration {
        let (size, leg) = (env.packets[packet as usize].size, env.packets[packet as usize].leg());
        let is_cached = env.packets[packet as usize].is_cached;
        let (mut span, mut draws) = (Duration::ZERO, 0);
        for work in &self.legs[leg] {
            if work.over > 0 && size <= work.over {
                continue;
            }
            let rounds = if work.per_chunk { env.route.chunks(size) } else { 1 };
            span += (work.fixed + work.per_byte * u64::from(size)) * u64::from(rounds);
            for _ in 0..if work.touches.is_empty() { 0 } else { rounds } {
                for &(region, times) in &work.touches {
                    let touches = &self.touches[usize::from(region)];
                    let drawn = times.min(DRAWS_MAX - draws);
                    draws += drawn;
                    for _ in 0..drawn {
                        span += touches.draw(&mut env.rng, is_cached);
                    }
                    span += touches.expected(is_cached) * u64::from(times - drawn);
                }
            }
        }
        span
    }

    fn free(&mut self, env: &mut Environment, core: u32) {
        self.cores[core as usize] = None;
        self.idle += 1;
        self.busy.set(env.now(), self.busy.level() - 1);
    }
}

impl UnitModel for Cores {
    type Spec = CoresSpec;

    fn new(spec: &CoresSpec, setup: &Setup) -> Cores {
        // Ticks are short and frequent compared with the waits of packets: all packets share the
        // time that ticks leave.
        let ticks = spec.tick.as_ref().map_or(0.0, |t| {
            f64::from(setup.links) * t.per_link.as_secs_f64()
                / (t.every.as_secs_f64() * f64::from(spec.cores))
        });
        let memories: Vec<Memory> = setup.memory.iter().map(Memory::new).collect();
        let work = |leg: &Leg| {
            let groups = if leg.unit == setup.number { &leg.groups[..] } else { &[] };
            groups.iter().map(|group| sum(group, &memories)).collect()
        };
        Cores {
            full: spec.queue.full,
            legs: setup.route.legs.iter().map(work).collect(),
            touches: setup.touches(spec.cores),
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

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        let p = &env.packets[packet as usize];
        let work = WorkItem {
            packet,
            flow: p.flow,
            queue: p.queue.map_or(p.flow, u32::from),
            priority: (p.flow % env.workload.priorities) as u8,
            group: (p.flow % env.workload.groups) as u8,
            tag: env.route.legs[p.leg()].tag,
        };
        let fits = self.scheduler.push(work);
        if fits {
            self.dispatch(env);
        } else if self.full == Full::Drop {
            self.debt += self.refusal;
        }
        fits
    }

    fn handle(&mut self, env: &mut Environment, _what: What, core: u32) {
        let work = self.cores[core as usize].expect("a busy core has work");
        env.end_leg(work.packet, core);
        let next = env.packets[work.packet as usize].leg();
        let mut holds = false;
        match env.route.legs.get(next) {
            Some(leg) if leg.unit == usize::from(env.unit) => {
                // More to do here under another tag: at once, or later on any core if the tag is
                // taken.
                if self.scheduler.switch(work, leg.tag, &mut self.leaving) {
                    holds = true;
                    self.run(env, core, WorkItem { tag: leg.tag, ..work }, Duration::ZERO);
                }
            }
            _ => self.scheduler.finish(work, &mut self.leaving),
        }
        while let Some(packet) = self.leaving.pop_front() {
            let is_mine = packet == work.packet;
            holds |= is_mine;
            env.pass_on(packet, is_mine.then_some(core));
        }
        if !holds {
            self.free(env, core);
        }
        self.dispatch(env);
    }

    fn release(&mut self, env: &mut Environment, core: u32) {
        self.free(env, core);
        self.dispatch(env);
    }

    fn full(&self) -> Full {
        self.full
    }

    fn usage(&self, end: Time) -> Use {
        let busy = self.busy.mean(end) / self.cores.len() as f64;
        Use { busy, queue_mean: self.waiting.mean(end), queue_max: self.waiting.max(), ..Use::default() }
    }

    fn stranded(&self, name: &str) -> Vec<String> {
        let groups = self.scheduler.waiting_by_group();
        let idle = |(group, n): (u8, usize)| {
            format!(
                "{n} packets of group {group} wait before {name}, and no idle core of it takes that group"
            )
        };
        if self.idle > 0 { groups.into_iter().map(idle).collect() } else { Vec::new() }
    }
}

/// Sums up the operations of a group. In a run-to-completion program the scheduler's atomic tags
/// are the critical sections, so locks cost nothing.
fn sum(group: &OpGroup, memories: &[Memory]) -> Work {
    let OpGroup { per_chunk, over, .. } = *group;
    let (fixed, per_byte, touches) = (Duration::ZERO, Duration::ZERO, Vec::new());
    let mut work = Work { per_chunk, over, fixed, per_byte, touches };
    let repeated = |span: Duration, times| Duration::from_ps(span.as_ps().saturating_mul(u64::from(times)));
    for &(op, times) in &group.ops {
        match op {
            Op::Compute { fixed, per_byte } => {
                work.fixed = work.fixed.saturating_add(repeated(fixed, times));
                work.per_byte = work.per_byte.saturating_add(repeated(per_byte.times(1), times));
            }
            Op::Access { memory, access, bytes } => {
                let each = memories[usize::from(memory)].expected(access, bytes);
                work.fixed = work.fixed.saturating_add(repeated(each, times));
            }
            Op::Touch { region } => work.touches.push((region, times)),
            Op::Enter(_) | Op::Leave(_) => {}
        }
    }
    work
}
