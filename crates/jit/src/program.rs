//! A program: everything that a worker needs to know of a switch at one moment. Programs are
//! immutable. A change makes a new program, which shares what has not changed.
//!
//! ```text
//!  Program ─┬─ tables ── plan, rows (operations of rules), cells (counters)
//!           ├─ code      of the tables' bases
//!           └─ ports, groups, meters
//! ```

use crate::base_table::BaseTable;
use crate::cells::{AddedCells, FlowCell, GroupCell, GroupCells};
use crate::native::code::Code;
use crate::port_table::PortTable;
use crate::table_list::TableList;
use crate::template::GENERIC;
use fastpath_plan::TablePlan;
use fastpath_plan::{RuleNumber, Shelf};
use fastpath_switch::flow::Counters;
use fastpath_switch::group::{Bucket, Group, GroupKind};
use fastpath_switch::meter::Meter;
use fastpath_switch::normal::Normal;
use fastpath_switch::{Action, ActionSet, Bridging, Connections, CookieCounts, GroupIdentity, Switch};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The row of the rules added since a base was built: Rust executes them.
static ADDED_ROW: [u64; 1] = [GENERIC as u64];

/// A switch at one moment.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) tables: TableList<TableData>,
    /// How many flows of each table have each cookie.
    pub(crate) cookies: Arc<[CookieCounts]>,
    pub(crate) code: Arc<Code>,
    pub(crate) ports: Arc<PortTable>,
    pub(crate) groups: Arc<BTreeMap<u32, (Arc<GroupView>, Choice)>>,
    pub(crate) meters: Arc<BTreeMap<u32, Arc<Mutex<Meter>>>>,
    /// The address table of the switch.
    pub(crate) normal: Normal,
    /// The connections of the switch.
    pub(crate) connections: Connections,
    /// The VLANs of ports, and the mirrors.
    pub(crate) bridging: Arc<Bridging>,
}

/// One table: the plan that finds its rules, their operations, and their counters.
#[derive(Clone, Debug)]
pub(crate) struct TableData {
    pub(crate) plan: TablePlan,
    pub(crate) base: Arc<BaseTable>,
    /// For each change of the plan, the cells of its rule for each worker.
    pub(crate) cells: Shelf<Option<AddedCells>>,
}

/// A group as the data path sees it.
#[derive(Debug)]
pub(crate) struct GroupView {
    pub(crate) buckets: Arc<[Bucket]>,
    identity: GroupIdentity,
    /// The actions of each bucket, in the order of execution.
    pub(crate) actions: Vec<Vec<Action>>,
    /// The cells of each worker.
    pub(crate) cells: Box<[GroupCells]>,
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

impl Program {
    /// Returns the same program with other tables.
    pub(crate) fn with_tables(&self, tables: TableList<TableData>, code: &Arc<Code>) -> Program {
        Program {
            tables,
            code: Arc::clone(code),
            cookies: Arc::clone(&self.cookies),
            ports: Arc::clone(&self.ports),
            groups: Arc::clone(&self.groups),
            meters: Arc::clone(&self.meters),
            normal: self.normal.share(),
            connections: self.connections.share(),
            bridging: Arc::clone(&self.bridging),
        }
    }
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

impl TableData {
    /// Returns the cell in which a worker counts a rule.
    pub(crate) fn cell(&self, worker: usize, found: RuleNumber) -> Option<&FlowCell> {
        match found.added() {
            Some(slot) => self.cells.get(slot)?.as_ref()?.of(worker),
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

impl GroupView {
    pub(crate) fn new(group: &Group, workers: usize) -> GroupView {
        let actions =
            group.buckets.iter().map(|bucket| ActionSet::of(&bucket.actions).in_order().cloned().collect());
        GroupView {
            buckets: Arc::clone(&group.buckets),
            identity: group.identity.clone(),
            actions: actions.collect(),
            cells: (0..workers).map(|_| GroupCells::new(group.buckets.len())).collect(),
        }
    }

    /// Adds the counts since the last call to the switch.
    pub(crate) fn settle(&self, id: u32, switch: &mut Switch) {
        for cells in &self.cells {
            let buckets: Vec<Counters> = cells.buckets.iter().map(GroupCell::take).collect();
            switch.credit_group(id, &self.identity, cells.group.take(), &buckets);
        }
    }
}
