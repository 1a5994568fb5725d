//! The maps of a program: rows, counters, ports, and the state of the packet at work.

use super::layout::{PORT_COUNTERS, RECORD, STATE, ToUser};
use fastpath_switch::outcome::DropReason;
use fastpath_sys::bpf::{Map, MapKind, MapSpec, RingBuffer};
use std::io;

/// Bytes of the ring buffer of test runs.
const RING: u32 = 256 * RECORD as u32;

/// The maps of a program but those of its tables.
#[derive(Debug)]
pub(super) struct Maps {
    /// The state of the packet at work on each CPU.
    pub(super) state: Map,
    /// Where packets enter: by interface, or in test runs the one entry.
    pub(super) ingress: Map,
    /// The rows of all rules.
    pub(super) rows: Map,
    /// Packets and bytes: of rules, in the order of their rows, then of groups and their buckets.
    pub(super) counters: Map,
    /// By the place of a port: its interface.
    pub(super) ports: Map,
    /// By the place of a port.
    pub(super) port_counters: Map,
    /// By the place of a reason.
    pub(super) drops: Map,
    /// By table.
    pub(super) misses: Map,
    /// By the number of a reason.
    pub(super) to_user: Map,
    /// The outcomes of test runs.
    pub(super) ring: Option<RingBuffer>,
}

/// How many entries the maps need.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapSizes {
    pub(super) rows: usize,
    pub(super) stride: usize,
    pub(super) counters: usize,
    pub(super) ports: usize,
    pub(super) is_test: bool,
}

/// Makes a map without types; it has at least one entry.
pub(super) fn map(kind: MapKind, name: &str, key: u32, value: u32, entries: usize) -> io::Result<Map> {
    let entries = entries.max(1) as u32;
    Map::create(&MapSpec { kind, name, key, value, entries, types: None, inner: None })
}

impl Maps {
    pub(super) fn new(sizes: MapSizes) -> io::Result<Maps> {
        use MapKind::{Array, Hash, PerCpuArray};
        let MapSizes { rows, stride, counters, ports, is_test } = sizes;
        let ring = |name| -> io::Result<RingBuffer> {
            let kind = MapKind::RingBuffer;
            let map = Map::create(&MapSpec {
                kind,
                name,
                key: 0,
                value: 0,
                entries: RING,
                types: None,
                inner: None,
            })?;
            RingBuffer::new(map, RING)
        };
        Ok(Maps {
            state: map(PerCpuArray, "fp_state", 4, STATE, 1)?,
            ingress: map(
                if is_test { Array } else { Hash },
                "fp_ingress",
                4,
                16,
                if is_test { 1 } else { ports },
            )?,
            rows: map(Array, "fp_rows", 4, stride as u32, rows)?,
            counters: map(PerCpuArray, "fp_counters", 4, 16, counters)?,
            ports: map(Array, "fp_ports", 4, 8, ports)?,
            port_counters: map(PerCpuArray, "fp_port_counts", 4, PORT_COUNTERS, ports)?,
            drops: map(PerCpuArray, "fp_drops", 4, 8, DropReason::ALL.len())?,
            misses: map(PerCpuArray, "fp_misses", 4, 8, 256)?,
            to_user: map(PerCpuArray, "fp_to_user", 4, 8, ToUser::ALL.len())?,
            ring: if is_test { Some(ring("fp_ring")?) } else { None },
        })
    }
}

/// Returns the sums over all CPUs of the words of an entry.
pub(super) fn sums<const N: usize>(map: &Map, entry: u32) -> io::Result<[u64; N]> {
    let all = map.lookup(&entry.to_ne_bytes())?.unwrap_or_default();
    let mut sums = [0; N];
    for value in all.chunks_exact(8 * N) {
        for (sum, word) in sums.iter_mut().zip(value.as_chunks::<8>().0) {
            *sum += u64::from_ne_bytes(*word);
        }
    }
    Ok(sums)
}
