//! The maps of a kernel path's program, and the functions of the program by their labels: what its
//! parts have in common.

use crate::asm::{Assembler, Label};
use crate::layout::{counter, law, learned, node, port};
use crate::types::Types;
use fastpath_sys::bpf::{Map, MapKind, MapSpec};
use std::io;

/// The most addresses that a switch learns, and how long it keeps them, as those of the engine.
pub(crate) const LEARNED_MAX: i32 = 16_384;
pub(crate) const AGEING_NS: u64 = 300_000_000_000;

/// How much there is of everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MapSizes {
    /// Pipes: their numbers are below this.
    pub(crate) pipes: u32,
    /// Switches.
    pub(crate) nodes: u32,
    /// Interfaces: their indices are below this.
    pub(crate) ports: u32,
    /// Members of all switches.
    pub(crate) members: u32,
    /// Bytes of the ring buffer of the per-packet log, a power of two and whole pages; `None`: no log.
    pub(crate) log: Option<u32>,
    /// Whether a pipe has a law.
    pub(crate) has_laws: bool,
}

/// The maps of the per-packet log.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) numbers: Map,
    pub(crate) records: Map,
}

/// The maps of a program.
#[derive(Debug)]
pub(crate) struct Maps {
    pub(crate) ports: Map,
    pub(crate) members: Map,
    pub(crate) counters: Map,
    pub(crate) nodes: Map,
    pub(crate) learned: Map,
    /// By switch: how many addresses it has learned.
    pub(crate) learned_count: Map,
    pub(crate) laws: Map,
    pub(crate) has_laws: bool,
    pub(crate) log: Option<Log>,
}

impl Maps {
    pub(crate) fn create(sizes: &MapSizes) -> io::Result<Maps> {
        let mut types = Types::new();
        let value = types.with_lock(law::SIZE);
        let key = types.int();
        let types = types.load()?;
        let laws = Some((&types, [key, value]));
        let make = |kind, name, (key, value), entries: u32, types| {
            let entries = entries.max(1);
            Map::create(&MapSpec { kind, name, key, value, entries, types, inner: None })
        };
        let array = |name, value, entries| make(MapKind::Array, name, (4, value), entries, None);
        let per_cpu = |name, value, entries| make(MapKind::PerCpuArray, name, (4, value), entries, None);
        let log = |bytes| -> io::Result<Log> {
            let records = make(MapKind::RingBuffer, "fp_records", (0, 0), bytes, None)?;
            Ok(Log { numbers: array("fp_numbers", 8, 3)?, records })
        };
        let addresses = sizes.nodes.max(1).saturating_mul(LEARNED_MAX as u32);
        let of_address = (learned::KEY_SIZE, learned::SIZE);
        Ok(Maps {
            ports: array("fp_ports", port::SIZE, sizes.ports)?,
            members: array("fp_members", 4, sizes.members)?,
            counters: per_cpu("fp_counters", counter::SIZE, sizes.pipes)?,
            nodes: per_cpu("fp_nodes", node::SIZE, sizes.nodes)?,
            learned: make(MapKind::Hash, "fp_learned", of_address, addresses, None)?,
            learned_count: array("fp_count", 8, sizes.nodes)?,
            laws: make(MapKind::Array, "fp_laws", (4, law::SIZE), sizes.pipes, laws)?,
            has_laws: sizes.has_laws,
            log: sizes.log.map(log).transpose()?,
        })
    }

    pub(crate) fn has_log(&self) -> bool {
        self.log.is_some()
    }
}

/// The functions of a program, as labels.
pub(crate) struct Functions {
    pub(crate) measure: Label,
    pub(crate) pass: Label,
    pub(crate) restore: Label,
    pub(crate) find_ecn: Label,
    pub(crate) set_ecn: Label,
    pub(crate) flip_bit: Label,
    pub(crate) settle_tag: Label,
    pub(crate) send: Label,
    pub(crate) transmit: Label,
    pub(crate) count: Label,
    pub(crate) switch: Label,
    pub(crate) flood_one: Label,
    pub(crate) record: Label,
    pub(crate) has_log: bool,
}

impl Functions {
    pub(crate) fn new(a: &mut Assembler, has_log: bool) -> Functions {
        Functions {
            measure: a.label(),
            pass: a.label(),
            restore: a.label(),
            find_ecn: a.label(),
            set_ecn: a.label(),
            flip_bit: a.label(),
            settle_tag: a.label(),
            send: a.label(),
            transmit: a.label(),
            count: a.label(),
            switch: a.label(),
            flood_one: a.label(),
            record: a.label(),
            has_log,
        }
    }
}
