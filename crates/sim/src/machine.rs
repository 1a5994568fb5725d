//! A machine as data: its ports, memories and units, read from TOML.
//!
//! ```toml
//! name = "example"
//! source = "where the numbers come from"
//! ports = { count = 2, rate = "1Gbit" }
//! [[station]]                       # a bus, a DMA engine, an input or output unit
//! name = "pci"
//! rate = "1.056Gbit"
//! [[cores]]
//! name = "cpu"
//! cores = 4
//! clock = "2GHz"
//! scheduler = { kind = "poll" }
//! [[line]]                          # output ports that send whole frames
//! name = "wire"
//! ```
//!
//! Each unit type and its keys are described at the head of its file in `unit/`. The shipped
//! machines are in `machines/`, one file each, and every number there has its source. A number that
//! no source prints is marked *calibrated* or *declared*. A calibrated number is fitted to a
//! published result, which is then no test of the machine.

use crate::cache::CacheSpec;
use crate::keys;
use crate::memory::MemorySpec;
use crate::ports::PortsSpec;
use crate::spec::{Clock, Name, SpecError, result};
use crate::unit::{Surroundings, UnitSpec, UnitType, read_units};
use fastpath_text::document;
use fastpath_text::fields::Fields;
use fastpath_text::mistake::Remarks;

/// A machine: what runs packets.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// The publication or data sheet that describes it.
    pub source: String,
    /// The Ethernet ports.
    pub ports: PortsSpec,
    pub(crate) memory: Vec<MemorySpec>,
    pub(crate) cache: Vec<CacheSpec>,
    /// In the order of the file.
    pub(crate) units: Vec<MachineUnit>,
}

/// A unit of a machine.
#[derive(Clone, Debug)]
pub(crate) struct MachineUnit {
    pub(crate) spec: UnitSpec,
    /// The unit's number in the trace hash. It counts by type and then by position, so that moving
    /// a unit within its file leaves the hash of a run unchanged as long as its type keeps its
    /// order.
    pub(crate) trace_number: u16,
}

impl Machine {
    /// Reads a machine from the text of `file`. The name appears in errors only.
    pub fn parse(file: &str, text: &str) -> Result<Machine, SpecError> {
        let mut remarks = Remarks::new(text);
        let machine = Machine::read(text, &mut remarks);
        result(file, remarks, machine)
    }

    /// Reads a machine; its mistakes go to `remarks`.
    pub(crate) fn read(text: &str, remarks: &mut Remarks) -> Option<Machine> {
        let start = "write TOML: name, source, ports, then [[station]], [[cores]] and other units";
        let document = document::toml(text, "a machine", start, remarks)?;
        let mut fields = Fields::new("the machine", 0, &document);
        let name = keys::value(&mut fields, "name", None, remarks);
        let source = keys::value(&mut fields, "source", None, remarks);
        let ports: Option<PortsSpec> = keys::value(&mut fields, "ports", None, remarks);
        let memory = keys::list(&mut fields, "memory", remarks);
        let cache = keys::list(&mut fields, "cache", remarks);
        let by_type = read_units(&mut fields, remarks).into_iter().zip(0..);
        let mut units: Vec<MachineUnit> =
            by_type.map(|(spec, trace_number)| MachineUnit { spec, trace_number }).collect();
        units.sort_by_key(|unit| unit.spec.get().name().at);
        let ports_at = fields.get("ports").map_or(0, |field| field.at);
        fields.finish(remarks);
        if units.is_empty() && remarks.is_clean() {
            remarks.mistake(
                0,
                "a machine without units is empty",
                "write [[station]], [[cores]] or another unit",
            );
        }
        let mut machine = Machine { name: name?, source: source?, ports: ports?, memory, cache, units };
        machine.check(ports_at, remarks);
        Some(machine)
    }

    fn check(&mut self, ports_at: usize, remarks: &mut Remarks) {
        self.ports.check(ports_at, remarks);
        let mut seen = std::collections::BTreeSet::new();
        let memories = self.memory.iter().map(|m| &m.name).chain(self.cache.iter().map(|c| &c.name));
        for name in memories.chain(self.names()) {
            if !seen.insert(&name.text) {
                let what = format!("the name {name} is used twice");
                remarks.mistake(name.at, what, "write a name of its own for each unit and memory");
            }
        }
        let memories = self.memories();
        let surroundings = Surroundings { ports: &self.ports, memories: &memories, caches: &self.cache };
        self.units.iter_mut().for_each(|unit| unit.spec.get_mut().check(&surroundings, remarks));
        self.memory.iter().for_each(|m| m.check(remarks));
        self.cache.iter().for_each(|c| c.check(remarks));
    }

    fn names(&self) -> impl Iterator<Item = &Name> {
        self.units.iter().map(|unit| unit.spec.get().name())
    }

    /// The names of the units, in the order of the file. A [`Visit`](crate::trace::Visit) numbers
    /// units by it.
    pub fn units(&self) -> Vec<String> {
        self.names().map(|name| name.text.clone()).collect()
    }

    /// The names of the memories, in the order of the file.
    pub(crate) fn memories(&self) -> Vec<String> {
        self.memory.iter().map(|m| m.name.text.clone()).collect()
    }

    fn unit(&self, name: &str) -> Option<&MachineUnit> {
        self.units.iter().find(|unit| unit.spec.get().name().text == name)
    }

    fn unit_mut(&mut self, name: &str) -> Option<&mut MachineUnit> {
        self.units.iter_mut().find(|unit| unit.spec.get().name().text == name)
    }

    /// The description of a unit.
    pub(crate) fn spec(&self, unit: &str) -> Option<&dyn UnitType> {
        Some(self.unit(unit)?.spec.get())
    }

    /// The clock in which programs on `unit` count cycles, if it runs programs.
    pub(crate) fn clock(&self, unit: &str) -> Option<Clock> {
        self.unit(unit)?.spec.get().clock()
    }

    /// The number of servers, cores or engines of `unit`. `None` if the machine has no such unit,
    /// or if the unit has no such number: a wire has one server per port, a link none.
    pub fn servers(&self, unit: &str) -> Option<u32> {
        self.unit(unit)?.spec.get().servers()
    }

    /// The same machine with `servers` servers, cores or engines in `unit`. `None` as for
    /// [`Machine::servers`], and for a number that the unit cannot have.
    pub fn with_servers(&self, unit: &str, servers: u32) -> Option<Machine> {
        let mut machine = self.clone();
        let is_set = machine.unit_mut(unit)?.spec.get_mut().set_servers(servers, &self.ports);
        is_set.then_some(machine)
    }

    /// The same machine with a little more capacity in `unit`, and the change in words: one more
    /// server, core or engine, or twice the rate. `None` if there is nothing to add.
    pub fn widened(&self, unit: &str) -> Option<(Machine, String)> {
        let mut machine = self.clone();
        let change = machine.unit_mut(unit)?.spec.get_mut().widen(&self.ports)?;
        Some((machine, format!("{unit}: {change}")))
    }
}
