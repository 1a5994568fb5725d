//! Measures the cost of one more operation per packet by the method of the LINC journal 2014. A
//! plain forwarder does an operation N times per packet. The slope of the time over N is the cost
//! of the operation, with its interval.

use super::emulate::StationTable;
use super::pipeline::{self, Device, Source};
use super::timing::Ring;
use super::{Progress, on_core};
use fastpath_engine::port::{Burst, Memory, MemoryEnd, Port};
use fastpath_model::fit::{FitError, FitOptions, fit};
use fastpath_model::{Estimate, Table};
use fastpath_net::{EdgeId, Frame, FramePool};
use fastpath_plan::TablePlan;
use fastpath_switch::{FlowMod, Instructions, Key, Limits, Match, Switch, workload};
use fastpath_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hint::black_box;

const RING: usize = 1 << 20;
const BURST: usize = 64;
const FRAME: usize = 64;
/// Operations per packet at each point of the regression.
const TIMES: [usize; 6] = [0, 1, 2, 4, 8, 16];
/// Passes over all points of the regression; each pass measures every point once.
const REPEATS: usize = 3;
/// Entries of the table and number of counters.
const ENTRIES: usize = 10_000;
/// Routes of the flow table, and distinct keys looked up in it.
const ROUTES: usize = 100;
const KEYS: usize = 256;
const TAG: [u8; 4] = [0x81, 0x00, 0x00, 0x64];
const MACS: usize = 12;

/// An operation on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extra {
    /// Looks up one of 10 000 addresses (an exact match).
    Lookup,
    /// Increments one of 10 000 counters.
    CounterUpdate,
    /// Writes a word to a ring and reads it back.
    MessagePass,
    /// Pushes a VLAN tag and pops it: two copies of the frame.
    EncapsulateDecapsulate,
    /// Searches a flow table of 100 routes entry by entry.
    TableInterpretation,
    /// Looks a packet up in the same table, compiled to the structure that suits it.
    CompiledTable,
}

/// All operations.
pub const EXTRAS: [Extra; 6] = [
    Extra::Lookup,
    Extra::CounterUpdate,
    Extra::MessagePass,
    Extra::EncapsulateDecapsulate,
    Extra::TableInterpretation,
    Extra::CompiledTable,
];

/// The cost of an operation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OperationCost {
    /// Time of one operation, ns, with its 95 % interval, truncated at 0. An interval that begins
    /// at 0 does not distinguish the operation from no operation.
    pub cost_ns: Estimate,
    /// Time of the forwarder without the operation, ns.
    pub forwarder_ns: Estimate,
    /// Coefficient of determination of the linear fit.
    pub r2: f64,
    /// The measured points: operations per packet, ns per packet.
    pub points: Vec<(usize, f64)>,
}

/// Measures one operation with `packets` packets per point.
///
/// # Errors
/// [`FitError`] when no line can be fitted to the times.
pub fn operation(extra: Extra, packets: u64, progress: Progress<'_>) -> Result<OperationCost, FitError> {
    let points = on_core(0, || points(extra, packets, progress));
    let (times, ns): (Vec<f64>, Vec<f64>) = points.iter().map(|(n, ns)| (*n as f64, *ns)).unzip();
    let table = Table::from_columns(&[("n", &times), ("T_ns", &ns)])?;
    let found = fit(&table, "T_ns", "const,n", &FitOptions::default())?;
    Ok(OperationCost {
        cost_ns: found.coefficients["n"].not_below_zero(),
        forwarder_ns: found.coefficients["const"].not_below_zero(),
        r2: found.r2,
        points,
    })
}

fn points(extra: Extra, packets: u64, progress: Progress<'_>) -> Vec<(usize, f64)> {
    let mut points = Vec::new();
    for repeat in 0..REPEATS {
        for (i, times) in TIMES.into_iter().enumerate() {
            progress("operations", repeat * TIMES.len() + i, REPEATS * TIMES.len());
            let (mut device, end) = Forwarder::new(extra, times);
            let mut source = Frames { next: 0 };
            let cost = pipeline::run(&mut device, &mut source, &end, packets, &|_, _, _| {});
            points.push((times, cost.median_ns));
        }
    }
    points
}

/// A forwarder that does the operation `times` times per packet.
struct Forwarder {
    port: Memory,
    pool: FramePool,
    burst: Burst,
    out: VecDeque<Frame>,
    extra: Extra,
    times: usize,
    table: StationTable,
    counters: Vec<u64>,
    ring: Ring,
    scratch: Vec<u8>,
    routes: Routes,
}

/// A flow table, interpreted and compiled, and the keys to look up.
struct Routes {
    entries: Vec<Match>,
    compiled: TablePlan,
    keys: Vec<Key>,
}

impl Routes {
    fn new() -> Routes {
        let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
        for (priority, matching) in workload::routes(ROUTES, 1) {
            let add = FlowMod::add(0, priority, matching, Instructions::default());
            switch.flow_mod(Time::ZERO, &add).expect("room for some routes");
        }
        let compiled = TablePlan::new(&switch.tables()[0]);
        let entries = compiled.rules().iter().map(|rule| rule.rank.matching().clone()).collect();
        Routes { entries, compiled, keys: workload::random_keys(KEYS, 2) }
    }
}

impl Forwarder {
    fn new(extra: Extra, times: usize) -> (Forwarder, MemoryEnd) {
        let (port, end) = Memory::new("memory", RING);
        let mut table = StationTable::new(ENTRIES);
        (0..ENTRIES).for_each(|entry| table.insert(address(entry), EdgeId(entry as u32)));
        let forwarder = Forwarder {
            port,
            pool: FramePool::default(),
            burst: Burst::new(),
            out: VecDeque::with_capacity(2 * BURST),
            extra,
            times,
            table,
            counters: vec![0; ENTRIES],
            ring: Ring::new(),
            scratch: vec![0; FRAME + TAG.len()],
            routes: Routes::new(),
        };
        (forwarder, end)
    }

    fn work(&mut self, mut frame: Frame) -> Option<Frame> {
        for round in 0..self.times {
            let bytes = self.pool.bytes(&frame);
            // A different entry each time, as different packets would select.
            let entry = (usize::from(u16::from_le_bytes([bytes[14], bytes[15]])) + round * 613) % ENTRIES;
            match self.extra {
                Extra::Lookup => drop(black_box(self.table.get(&black_box(address(entry))))),
                Extra::CounterUpdate => self.counters[entry] += 1,
                Extra::MessagePass => {
                    self.ring.push(entry as u64);
                    black_box(self.ring.pop());
                }
                Extra::TableInterpretation => {
                    let key = black_box(&self.routes.keys[entry % KEYS]);
                    black_box(self.routes.entries.iter().position(|matching| matching.matches(key)));
                }
                Extra::CompiledTable => {
                    let key = black_box(&self.routes.keys[entry % KEYS]);
                    black_box(self.routes.compiled.find(key).number());
                }
                Extra::EncapsulateDecapsulate => {
                    frame = self.encapsulate(frame)?;
                    frame = self.decapsulate(frame)?;
                }
            }
        }
        Some(frame)
    }

    fn encapsulate(&mut self, frame: Frame) -> Option<Frame> {
        let bytes = self.pool.bytes(&frame);
        let len = bytes.len() + TAG.len();
        self.scratch[..MACS].copy_from_slice(&bytes[..MACS]);
        self.scratch[MACS..MACS + TAG.len()].copy_from_slice(&TAG);
        self.scratch[MACS + TAG.len()..len].copy_from_slice(&bytes[MACS..]);
        self.pool.free(frame);
        self.pool.insert(&self.scratch[..len])
    }

    fn decapsulate(&mut self, frame: Frame) -> Option<Frame> {
        let bytes = self.pool.bytes(&frame);
        let len = bytes.len() - TAG.len();
        self.scratch[..MACS].copy_from_slice(&bytes[..MACS]);
        self.scratch[MACS..len].copy_from_slice(&bytes[MACS + TAG.len()..]);
        self.pool.free(frame);
        self.pool.insert(&self.scratch[..len])
    }
}

impl Device for Forwarder {
    const STAGES: &'static [&'static str] = &["receive", "operations", "send"];

    fn burst(&mut self, mark: &mut impl FnMut(usize)) -> usize {
        // A memory port never fails.
        let _ = self.port.rx_burst(Time::ZERO, &mut self.pool, &mut self.burst);
        let frames = self.burst.len();
        if frames == 0 {
            return 0;
        }
        self.out.extend(self.burst.drain());
        mark(0);
        for _ in 0..self.out.len() {
            let frame = self.out.pop_front().and_then(|frame| self.work(frame));
            self.out.extend(frame);
        }
        mark(1);
        pipeline::send(&mut self.port, Time::ZERO, &mut self.pool, &mut self.out);
        mark(2);
        frames
    }
}

fn address(entry: usize) -> [u8; 6] {
    let [.., a, b] = (entry as u32).to_be_bytes();
    [2, 7, 0, 0, a, b]
}

struct Frames {
    next: u16,
}

impl Source for Frames {
    fn burst(&self) -> usize {
        BURST
    }

    fn give(&mut self, packets: usize, end: &MemoryEnd) -> usize {
        let mut frame = [0x5a; FRAME];
        (0..packets)
            .map(|_| {
                self.next = self.next.wrapping_mul(25_173).wrapping_add(13_849);
                frame[14..16].copy_from_slice(&self.next.to_le_bytes());
                end.send([&frame[..]])
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_leaves_the_frame_unchanged() {
        for extra in EXTRAS {
            let (mut forwarder, end) = Forwarder::new(extra, 3);
            let frame: Vec<u8> = (0..FRAME as u8).collect();
            end.send([&frame[..]]);
            forwarder.turn(&mut |_| {});
            assert_eq!(end.recv(9, |bytes| assert_eq!(bytes, frame)), 1, "{extra:?}");
            assert_eq!(forwarder.pool.live(), 0);
        }
    }

    #[test]
    fn the_interpreted_and_the_compiled_table_find_the_same_entry() {
        let routes = Routes::new();
        for key in &routes.keys {
            let interpreted = routes.entries.iter().position(|matching| matching.matches(key));
            let compiled = routes.compiled.find(key).number() as usize;
            assert_eq!(interpreted.unwrap_or(compiled), compiled);
        }
    }

    #[test]
    fn counters_count_every_operation() {
        let (mut forwarder, end) = Forwarder::new(Extra::CounterUpdate, 5);
        Frames { next: 1 }.fill(&end);
        forwarder.turn(&mut |_| {});
        assert_eq!(forwarder.counters.iter().sum::<u64>(), 5 * 64);
    }

    #[test]
    fn copying_a_frame_twice_costs_something() {
        let found = operation(Extra::EncapsulateDecapsulate, 2000, &|_, _, _| {}).unwrap();
        assert!(found.cost_ns.value > 0.0 && found.points.len() == TIMES.len() * REPEATS, "{found:?}");
    }
}
