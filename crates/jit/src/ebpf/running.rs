//! A switch in the kernel on interfaces, replaced while packets flow.
//!
//! ```text
//!  interface ─ tcx ─▶ entry ─ tail call ─▶ slot: the tables of one state ─▶ interface
//!                       └── empty slot, or a packet of user space ─▶ TAP ─▶ the switch in user space
//!  interface ◀── back ◀── TAP ◀── what user space sends
//! ```
//!
//! All interfaces share one slot, so a replacement is one step for all of them: each packet meets
//! the rules of one state. The counts of the former program are read when no CPU runs it any more.
//! Programs, maps and links are descriptors: the kernel ends them with this process.

use super::code::TC_OK;
use super::maps::map;
use super::{KernelCounts, KernelError, KernelPort, KernelTables};
use fastpath_bpf::asm::Reg::{R0, R1, R2, R3, R6, R10};
use fastpath_bpf::asm::Size::Word;
use fastpath_bpf::asm::{Alu, Assembler, Cond};
use fastpath_bpf::helpers::{helper, skb};
use fastpath_switch::Switch;
use fastpath_sys::bpf::{Attached, LoadedProgram, Map, MapKind, MapSpec, ProgramKind, ProgramSpec};
use fastpath_sys::interface;
use fastpath_sys::packet::PacketSocket;
use fastpath_units::Time;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

/// A switch in the kernel.
#[derive(Debug)]
pub struct KernelSwitch {
    slot: Map,
    entry: LoadedProgram,
    /// What user space sends goes to the port's interface.
    back: LoadedProgram,
    grace: Grace,
    /// By number.
    ports: BTreeMap<u32, KernelPort>,
    tables: KernelTables,
    attached: Vec<Attached>,
    _promiscuous: Vec<PacketSocket>,
}

/// Waits until no CPU runs what was replaced.
#[derive(Debug)]
struct Grace {
    maps: Map,
    inner: Map,
}

impl KernelSwitch {
    /// Makes the program of a switch with these ports, whose interfaces are in the thread's network
    /// namespace, by number. It runs once it is attached.
    ///
    /// # Errors
    /// As for [`KernelTables::new`].
    pub fn new(switch: &Switch, ports: BTreeMap<u32, KernelPort>) -> Result<KernelSwitch, KernelError> {
        let tables = KernelTables::new(switch, &ports)?;
        let slot = map(MapKind::Programs, "fp_slot", 4, 4, 1)?;
        slot.set(&[0; 4], tables.program().as_fd())?;
        let other_end = map(MapKind::Hash, "fp_other_end", 4, 4, 2 * ports.len())?;
        for KernelPort { interface, user } in ports.values() {
            if let Some(user) = user {
                other_end.update(&interface.to_ne_bytes(), &user.to_ne_bytes())?;
                other_end.update(&user.to_ne_bytes(), &interface.to_ne_bytes())?;
            }
        }
        let (entry, back) = (pass("fp_entry", Some(&slot), &other_end)?, pass("fp_back", None, &other_end)?);
        let (grace, attached, _promiscuous) = (Grace::new()?, Vec::new(), Vec::new());
        Ok(KernelSwitch { slot, entry, back, grace, ports, tables, attached, _promiscuous })
    }

    /// Attaches the programs to all interfaces, which take every frame from now on.
    ///
    /// # Errors
    /// An interface is not there, or the kernel has no tcx (Linux 6.6).
    pub fn attach(&mut self) -> io::Result<()> {
        for KernelPort { interface, user } in self.ports.values() {
            self._promiscuous.push(PacketSocket::promiscuous(*interface)?);
            if let Some(user) = user {
                self.attached.push(self.back.attach_tcx(*user)?);
            }
            self.attached.push(self.entry.attach_tcx(*interface)?);
        }
        Ok(())
    }

    /// Takes over a change of the switch in one step, and adds the last counts of the former rules.
    /// `now` is the time of use of flows that have new counts.
    ///
    /// # Errors
    /// As for [`KernelTables::new`]: the former rules stay in force.
    pub fn update(&mut self, switch: &mut Switch, now: Time) -> Result<KernelCounts, KernelError> {
        let mut former = self.resume(KernelTables::new(switch, &self.ports)?)?;
        self.grace.wait()?;
        Ok(former.credit(switch, now)?)
    }

    /// Gives all packets to user space from the next one on, and adds the last counts to the
    /// switch.
    ///
    /// # Errors
    /// A system call failed.
    pub fn pause(&mut self, switch: &mut Switch, now: Time) -> io::Result<KernelCounts> {
        self.slot.remove(&[0; 4])?;
        self.grace.wait()?;
        self.tables.credit(switch, now)
    }

    /// Executes packets by these tables from the next one on. Returns the former ones.
    ///
    /// # Errors
    /// A system call failed.
    pub fn resume(&mut self, tables: KernelTables) -> io::Result<KernelTables> {
        self.slot.set(&[0; 4], tables.program().as_fd())?;
        Ok(std::mem::replace(&mut self.tables, tables))
    }

    /// Returns the ports, by number.
    pub fn ports(&self) -> &BTreeMap<u32, KernelPort> {
        &self.ports
    }

    /// Returns the tables that packets meet, unless they are paused.
    pub fn tables(&self) -> &KernelTables {
        &self.tables
    }

    /// Returns the tables to add their counts.
    pub fn tables_mut(&mut self) -> &mut KernelTables {
        &mut self.tables
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

/// Returns the index of an interface of the thread's network namespace.
///
/// # Errors
/// There is none of this name.
pub fn index_of(name: &str) -> io::Result<u32> {
    interface::index_of(name)
}

/// Sets an interface up, with the MTU of another one. Returns its index.
///
/// # Errors
/// One of them is not there, or this process may not change it.
pub fn set_up_like(name: &str, other: &str) -> io::Result<u32> {
    let any = interface::any_socket()?;
    interface::set_mtu(any.as_fd(), name, interface::mtu(any.as_fd(), other)?)?;
    interface::set_up(any.as_fd(), name)?;
    interface::index_of(name)
}

/// Makes the program that calls the one in the slot; without one, packets pass to the other end.
fn pass(name: &str, slot: Option<&Map>, other_end: &Map) -> Result<LoadedProgram, KernelError> {
    let mut a = Assembler::new();
    a.mov(R6, R1);
    if let Some(slot) = slot {
        a.load_map(R2, slot);
        a.mov(R3, 0);
        a.call(helper::TAIL_CALL);
    }
    // The slot is empty.
    let none = a.label();
    a.load(Word, R1, R6, skb::IFINDEX);
    a.store(Word, R10, -4, R1);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, -4);
    a.load_map(R1, other_end);
    a.call(helper::MAP_LOOKUP);
    a.jump_if(Cond::Eq, R0, 0, none);
    a.load(Word, R1, R0, 0);
    a.mov(R2, 0);
    a.call(helper::REDIRECT);
    a.exit();
    a.place(none);
    a.mov(R0, TC_OK);
    a.exit();
    let (instructions, _) = a.finish();
    let spec = ProgramSpec { kind: ProgramKind::TcxIngress, name, instructions: &instructions, types: None };
    Ok(LoadedProgram::load(&spec)?)
}
