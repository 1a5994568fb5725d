//! A program: everything that a worker needs to know of a switch at one moment. Programs are
//! immutable. A change makes a new program, which shares what has not changed.
//!
//! ```text
//!  Program ─┬─ tables ── plan, rows (operations of rules), cells (counters)
//!           ├─ code      of the tables' bases
//!           └─ ports, groups, meters
//! ```

use crate::cells::{FlowCell, SharedCell};
use crate::native::Code;
use crate::template::{Arena, GENERIC, PORTS, Template, Templates};
use fastpath_switch::flow::Counters;
use fastpath_switch::group::{Bucket, Group, GroupKind};
use fastpath_switch::meter::Meter;
use fastpath_switch::normal::Normal;
use fastpath_switch::plan::{RuleNumber, Shelf};
use fastpath_switch::{Action, ActionSet, Port, Switch, TablePlan, port};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The most words of a row: a template and its operands.
const STRIDE_MAX: usize = 16;
/// The most ports of numbers from [`PORTS`] on that have counters; further ones are treated as if
/// they did not exist.
const HIGH_PORTS: usize = 1024;
/// The most ports that have counters.
pub(crate) const PORT_CELLS: usize = PORTS as usize + HIGH_PORTS;
/// The row of the rules added since a base was built: Rust executes them.
static ADDED_ROW: [u64; 1] = [GENERIC as u64];

/// Bits of [`PortTable::flags`].
pub(crate) mod flags {
    pub(crate) const EXISTS: u8 = 1;
    pub(crate) const SENDS: u8 = 2;
    pub(crate) const RECEIVES: u8 = 4;
    pub(crate) const NO_PACKET_IN: u8 = 8;
}

/// A switch at one moment.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) tables: Vec<Arc<TableData>>,
    pub(crate) code: Arc<Code>,
    pub(crate) ports: PortTable,
    pub(crate) groups: BTreeMap<u32, (Arc<GroupView>, Choice)>,
    pub(crate) meters: BTreeMap<u32, Arc<Mutex<Meter>>>,
    /// The address table of the switch.
    pub(crate) normal: Normal,
}

/// One table: the plan that finds its rules, their operations, and their counters.
#[derive(Clone, Debug)]
pub(crate) struct TableData {
    pub(crate) plan: TablePlan,
    pub(crate) base: Arc<BaseTable>,
    /// For each change of the plan, the cells of its rule for each worker.
    pub(crate) cells: Shelf<Arc<[FlowCell]>>,
}

/// Operations and counters of the rules of a plan's base.
#[derive(Debug)]
pub(crate) struct BaseTable {
    /// The words of a row.
    pub(crate) stride: usize,
    pub(crate) rows: Box<[u64]>,
    pub(crate) arena: Arena,
    pub(crate) templates: Templates,
    /// The cells of each worker.
    pub(crate) cells: Vec<Arc<[FlowCell]>>,
}

/// Ports as the data path sees them.
#[derive(Debug)]
pub(crate) struct PortTable {
    /// Flags by cell. The cell of an ordinary port is its number; higher ports have cells in the
    /// order in which they are listed.
    pub(crate) flags: Box<[u8]>,
    high: BTreeMap<u32, usize>,
    /// The ports that flooding sends to, except the port of entry.
    pub(crate) flood: Vec<u32>,
}

/// A group as the data path sees it.
#[derive(Debug)]
pub(crate) struct GroupView {
    pub(crate) buckets: Arc<[Bucket]>,
    /// The actions of each bucket, in the order of execution.
    pub(crate) actions: Vec<Vec<Action>>,
    pub(crate) cell: SharedCell,
    pub(crate) bucket_cells: Vec<SharedCell>,
}

/// The buckets of a group that process a packet, given the present state of ports and other groups.
#[derive(Debug)]
pub(crate) enum Choice {
    /// All buckets.
    Each,
    /// The first live bucket, if any.
    First(Option<usize>),
    /// One bucket, chosen by weight: copies of the buckets without actions, in which dead buckets
    /// have weight 0.
    Share(Box<[Bucket]>),
}

impl Choice {
    pub(crate) fn new(group: &Group, switch: &Switch) -> Choice {
        match group.kind {
            GroupKind::All | GroupKind::Indirect => Choice::Each,
            GroupKind::FastFailover => {
                Choice::First(group.buckets.iter().position(|bucket| switch.is_live(bucket)))
            }
            GroupKind::Select => {
                let weight = |bucket: &Bucket| if switch.is_live(bucket) { bucket.weight } else { 0 };
                let share = |bucket| Bucket { weight: weight(bucket), ..Bucket::new([]) };
                Choice::Share(group.buckets.iter().map(share).collect())
            }
        }
    }
}

impl BaseTable {
    /// Compiles the rules of a settled plan to rows.
    pub(crate) fn new(plan: &TablePlan, workers: usize) -> BaseTable {
        let (mut arena, mut templates) = (Arena::default(), Templates::default());
        let mut what = Vec::with_capacity(plan.rules().len());
        let mut stride = 1;
        for rule in plan.rules() {
            let known = Template::of(&rule.instructions, &mut arena);
            let known = known.filter(|(_, operands)| operands.len() < STRIDE_MAX);
            let (number, operands) = match known {
                Some((template, operands)) => (templates.add(template), operands),
                None => (GENERIC, Vec::new()),
            };
            stride = stride.max(1 + operands.len());
            what.push((number, operands));
        }
        let rows = lay_out(stride, &what);
        let cells = cells(workers, what.len());
        BaseTable { stride, rows, arena, templates, cells }
    }
}

impl TableData {
    /// Returns the cell in which a worker counts a rule.
    pub(crate) fn cell(&self, worker: usize, found: RuleNumber) -> Option<&FlowCell> {
        match found.added() {
            Some(slot) => self.cells.get(slot)?.get(worker),
            None => self.base.cells[worker].get(found.number() as usize),
        }
    }

    /// Returns the row of a rule.
    pub(crate) fn row(&self, found: RuleNumber) -> &[u64] {
        let stride = self.base.stride;
        match found.added() {
            Some(_) => &ADDED_ROW,
            None => &self.base.rows[found.number() as usize * stride..][..stride],
        }
    }

    /// Returns the action of a number in a row.
    pub(crate) fn action(&self, number: u64) -> Option<Action> {
        self.base.arena.get(number)
    }
}

impl PortTable {
    pub(crate) fn new(switch: &Switch) -> PortTable {
        let mut ports =
            PortTable { flags: vec![0; PORT_CELLS].into(), high: BTreeMap::new(), flood: Vec::new() };
        for (number, port) in switch.ports() {
            if number >= PORTS && ports.high.len() < HIGH_PORTS {
                ports.high.insert(number, PORTS as usize + ports.high.len());
            }
            if let Some(cell) = ports.cell(number) {
                ports.flags[cell] = flags_of(port);
            }
            if number <= port::MAX && port.may_send() {
                ports.flood.push(number);
            }
        }
        ports
    }

    /// Returns the numbers of the ports and their cells.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let low = (0..PORTS).map(|number| (number, number as usize));
        let low = low.filter(|(_, cell)| self.flags[*cell] & flags::EXISTS != 0);
        low.chain(self.high.iter().map(|(number, cell)| (*number, *cell)))
    }

    /// Returns the cell of a port, whether or not the port exists.
    pub(crate) fn cell(&self, number: u32) -> Option<usize> {
        if number < PORTS { Some(number as usize) } else { self.high.get(&number).copied() }
    }

    /// Returns the cell of a port and its flags; 0 if the port does not exist.
    pub(crate) fn get(&self, number: u32) -> (usize, u8) {
        self.cell(number).map_or((0, 0), |cell| (cell, self.flags[cell]))
    }
}

fn flags_of(port: &Port) -> u8 {
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    flags::EXISTS
        | flag(port.may_send(), flags::SENDS)
        | flag(port.may_receive(), flags::RECEIVES)
        | flag(port.config & port::config::NO_PACKET_IN != 0, flags::NO_PACKET_IN)
}

impl GroupView {
    pub(crate) fn new(group: &Group) -> GroupView {
        let actions = group.buckets.iter().map(|bucket| ActionSet::of(&bucket.actions).in_order().collect());
        GroupView {
            buckets: Arc::clone(&group.buckets),
            actions: actions.collect(),
            cell: SharedCell::default(),
            bucket_cells: group.buckets.iter().map(|_| SharedCell::default()).collect(),
        }
    }

    /// Adds the counts since the last call to the switch.
    pub(crate) fn settle(&self, id: u32, switch: &mut Switch) {
        let buckets: Vec<Counters> = self.bucket_cells.iter().map(SharedCell::take).collect();
        switch.credit_group(id, self.cell.take(), &buckets);
    }
}

/// Lays out templates and operands as rows of the same length.
fn lay_out(stride: usize, what: &[(u32, Vec<u64>)]) -> Box<[u64]> {
    let mut rows = vec![0; stride * what.len()];
    for (row, (template, operands)) in rows.chunks_exact_mut(stride).zip(what) {
        row[0] = (*template).into();
        if *template != GENERIC {
            row[1..=operands.len()].copy_from_slice(operands);
        }
    }
    rows.into()
}

/// Allocates cells for each worker.
fn cells(workers: usize, count: usize) -> Vec<Arc<[FlowCell]>> {
    (0..workers).map(|_| (0..count).map(|_| FlowCell::default()).collect()).collect()
}
