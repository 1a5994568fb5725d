//! What every unit type implements: [`UnitType`] for its description in a machine file,
//! [`UnitModel`] for its behaviour in a run.
//!
//! ```text
//! offer ──► [queue] ──► server ──► pass_on ──► (the run offers it to the next unit) ──► release
//! ```
//!
//! A server keeps its packet until the next unit has taken it. That is how a full queue pushes
//! back, and how a circle of full queues becomes a deadlock.

use crate::cache::{CacheSpec, Touches};
use crate::environment::{Environment, What};
use crate::memory::MemorySpec;
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::Full;
use crate::route::{OpGroup, Region, Route};
use crate::spec::{Clock, Name, out_of_range};
use fastpath_text::mistake::Remarks;
use fastpath_units::Time;

/// The most threads or cores of one unit.
pub(crate) const SERVERS_MAX: u32 = 1024;
/// The most servers of a station, which need no search for a free one.
pub(crate) const STATION_SERVERS_MAX: u32 = 65_536;

/// A unit as a machine file describes it.
pub(crate) trait UnitType {
    fn name(&self) -> &Name;

    /// Checks the description and completes what the file leaves open.
    fn check(&mut self, machine: &Surroundings, remarks: &mut Remarks);

    /// The clock in which programs on the unit count cycles, if it runs programs.
    fn clock(&self) -> Option<Clock> {
        None
    }

    /// The number of servers, cores or engines, where it can be chosen.
    fn servers(&self) -> Option<u32> {
        None
    }

    /// Sets the number of servers, cores or engines; false if the unit cannot have that many.
    fn set_servers(&mut self, _servers: u32, _ports: &PortsSpec) -> bool {
        false
    }

    /// Adds a little capacity and returns the change in words, `1 → 2`; `None` if there is nothing
    /// to add.
    fn widen(&mut self, ports: &PortsSpec) -> Option<String> {
        let before = self.servers()?;
        // Some units divide the ports among their servers, and then one more is not possible.
        let after = [before + 1, 2 * before].into_iter().find(|&n| self.set_servers(n, ports))?;
        Some(format!("{before} → {after}"))
    }

    /// True if the unit draws from the random streams that a network of the same seed uses for its
    /// links. The run then keeps its other draws away from these streams.
    fn uses_network_streams(&self) -> bool {
        false
    }

    /// True if the order of its events at one instant depends on those of other units. A run with
    /// it is not cut.
    fn mixes_instants(&self) -> bool {
        false
    }

    /// True if the unit writes packets to the memory of a host.
    fn writes_packets(&self) -> bool {
        false
    }

    /// True if programs on the unit can refer to the packet that a bus has written.
    fn reads_packets(&self) -> bool {
        false
    }

    /// True if the unit, with this work for each packet, draws from the generator of the run, or
    /// uses memories or locks in a way that others can see. All such units of a run are simulated
    /// in one part of it.
    fn shares(&self, _work: &[OpGroup]) -> bool {
        true
    }
}

/// The parts of a machine file that units refer to.
pub(crate) struct Surroundings<'a> {
    pub(crate) ports: &'a PortsSpec,
    /// Names of the memories.
    pub(crate) memories: &'a [String],
    pub(crate) caches: &'a [CacheSpec],
}

/// The arguments from which a unit is built, except its description.
pub(crate) struct Setup<'a> {
    pub(crate) ports: &'a PortsSpec,
    /// Names of the memories, in the order of [`Environment::memories`].
    pub(crate) memories: &'a [String],
    pub(crate) memory: &'a [MemorySpec],
    pub(crate) caches: &'a [CacheSpec],
    pub(crate) route: &'a Route,
    /// The unit's number in the machine, and among the units of its type.
    pub(crate) number: usize,
    pub(crate) of_type: usize,
    /// Links of the workload.
    pub(crate) links: u32,
    pub(crate) seed: u64,
}

impl Setup<'_> {
    /// The references into each region of the program by a unit with this many threads.
    pub(crate) fn touches(&self, threads: u32) -> Vec<Touches> {
        let regions = self.route.regions.iter();
        let touches = |region: &Region| {
            let cache = &self.caches[region.cache];
            region.size.map_or_else(|| cache.touches_of_packet(), |bytes| cache.touches(bytes, threads))
        };
        regions.map(touches).collect()
    }
}

/// A unit in a run.
pub(crate) trait UnitModel {
    /// Its description in a machine file.
    type Spec: UnitType;

    fn new(spec: &Self::Spec, setup: &Setup) -> Self;

    /// Takes `packet` into the queue or a server; false if there is no room.
    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool;

    /// Handles an event that the unit has scheduled.
    fn handle(&mut self, env: &mut Environment, what: What, server: u32);

    /// The packet that `server` held has been taken or dropped: the server may take its next
    /// packet.
    fn release(&mut self, env: &mut Environment, server: u32);

    /// The behaviour when there is no room for a packet.
    fn full(&self) -> Full;

    /// Returns the share of the unit that was used in the run that ended at `end`.
    fn usage(&self, end: Time) -> Use;

    /// Sentences about packets that wait for ever, once nothing else can happen; `name` is the
    /// unit's.
    fn stranded(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Checks a number of servers, threads or cores.
pub(crate) fn check_servers(name: &Name, what: &str, n: u32, remarks: &mut Remarks) {
    if !(1..=SERVERS_MAX).contains(&n) {
        out_of_range(name, what, "from 1 to 1024", remarks);
    }
}

/// Sets `servers` to `n` if `n` is in range.
pub(crate) fn put_servers(servers: &mut u32, n: u32) -> bool {
    let is_possible = (1..=SERVERS_MAX).contains(&n);
    if is_possible {
        *servers = n;
    }
    is_possible
}
