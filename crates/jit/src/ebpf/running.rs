//! A switch in the kernel on interfaces, replaced while packets flow.
//!
//! ```text
//!  interface ─ tcx ─▶ entry ─ tail call ─▶ slot: the tables of one state ─▶ interface
//!                       └── empty slot, or a packet of user space ─▶ the stack and packet sockets
//! ```
//!
//! All interfaces share one slot, so a replacement is one step for all of them: each packet meets the
//! rules of one state. The counts of the former program are read when no CPU runs it any more.
//! Programs, maps and links are descriptors: the kernel ends them with this process.

use super::code::TC_OK;
use super::maps::map;
use super::{KernelError, KernelTables};
use fastpath_bpf::asm::Assembler;
use fastpath_bpf::asm::Reg::{R0, R2, R3};
use fastpath_bpf::helpers::helper;
use fastpath_switch::Switch;
use fastpath_sys::bpf::{Attached, LoadedProgram, Map, MapKind, MapSpec, ProgramKind, ProgramSpec};
use fastpath_units::Time;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

/// A switch in the kernel.
#[derive(Debug)]
pub struct KernelSwitch {
    slot: Map,
    entry: LoadedProgram,
    grace: Grace,
    /// By port.
    interfaces: BTreeMap<u32, u32>,
    tables: KernelTables,
    attached: Vec<Attached>,
}

/// Waits until no CPU runs what was replaced.
#[derive(Debug)]
struct Grace {
    maps: Map,
    inner: Map,
}

impl KernelSwitch {
    /// Makes the program of a switch, whose ports are these interfaces of the thread's network
    /// namespace, by number. It runs once it is attached.
    ///
    /// # Errors
    /// As for [`KernelTables::new`].
    pub fn new(switch: &Switch, interfaces: BTreeMap<u32, u32>) -> Result<KernelSwitch, KernelError> {
        let tables = KernelTables::new(switch, &interfaces)?;
        let slot = map(MapKind::Programs, "fp_slot", 4, 4, 1)?;
        slot.set(&[0; 4], tables.program().as_fd())?;
        let entry = entry(&slot)?;
        Ok(KernelSwitch { slot, entry, grace: Grace::new()?, interfaces, tables, attached: Vec::new() })
    }

    /// Attaches the program to all its interfaces.
    ///
    /// # Errors
    /// An interface is not there, or the kernel has no tcx (Linux 6.6).
    pub fn attach(&mut self) -> io::Result<()> {
        for interface in self.interfaces.values() {
            self.attached.push(self.entry.attach_tcx(*interface)?);
        }
        Ok(())
    }

    /// Takes over a change of the switch in one step, and adds the last counts of the former rules.
    /// `now` is the time of use of flows that have new counts.
    ///
    /// # Errors
    /// As for [`KernelTables::new`]: the former rules stay in force.
    pub fn update(&mut self, switch: &mut Switch, now: Time) -> Result<(), KernelError> {
        let tables = KernelTables::new(switch, &self.interfaces)?;
        self.slot.set(&[0; 4], tables.program().as_fd())?;
        let mut former = std::mem::replace(&mut self.tables, tables);
        self.grace.wait()?;
        former.credit(switch, now)?;
        Ok(())
    }

    /// Gives all packets to user space, and adds the last counts to the switch.
    ///
    /// # Errors
    /// A system call failed.
    pub fn stop(mut self, switch: &mut Switch, now: Time) -> io::Result<()> {
        self.slot.remove(&[0; 4])?;
        self.grace.wait()?;
        self.tables.credit(switch, now)
    }

    /// Adds the counts since the last call to the switch.
    ///
    /// # Errors
    /// A system call failed.
    pub fn credit(&mut self, switch: &mut Switch, now: Time) -> io::Result<()> {
        self.tables.credit(switch, now)
    }

    /// Returns the tables in force.
    pub fn tables(&self) -> &KernelTables {
        &self.tables
    }

    /// Returns the program at the interfaces, for test runs.
    pub fn entry(&self) -> &LoadedProgram {
        &self.entry
    }
}

impl Grace {
    fn new() -> io::Result<Grace> {
        let inner = map(MapKind::Array, "fp_nothing", 4, 4, 1)?;
        let maps = Map::create(&MapSpec {
            kind: MapKind::Maps,
            name: "fp_grace",
            key: 4,
            value: 4,
            entries: 1,
            types: None,
            inner: Some(&inner),
        })?;
        Ok(Grace { maps, inner })
    }

    /// An update of a map of maps returns when the programs that run now have ended.
    fn wait(&self) -> io::Result<()> {
        self.maps.set(&[0; 4], self.inner.as_fd())
    }
}

/// Makes the program that calls the one in the slot.
fn entry(slot: &Map) -> Result<LoadedProgram, KernelError> {
    let mut a = Assembler::new();
    a.load_map(R2, slot);
    a.mov(R3, 0);
    a.call(helper::TAIL_CALL);
    // The slot is empty.
    a.mov(R0, TC_OK);
    a.exit();
    let (instructions, _) = a.finish();
    let spec = ProgramSpec {
        kind: ProgramKind::TcxIngress,
        name: "fp_entry",
        instructions: &instructions,
        types: None,
    };
    Ok(LoadedProgram::load(&spec)?)
}
