//! A running switch: its newest program, the workers that run it, and their counts.
//!
//! ```text
//!  Switch ── update ──▶ Program ──▶ Shared ──▶ Worker::begin (once a burst)
//!         ◀── settle ── cells of the workers
//!         job ──▶ new bases and code, made on any thread ──▶ finish
//! ```
//!
//! A change of rules is in force immediately, by a delta on top of the base that the code was
//! generated from. Base and code are rebuilt off the fast path. The counts of a program are
//! credited before it is dropped.

use crate::base_table::BaseTable;
use crate::cells::{AddedCells, FlowCell, PortCell, TableCell};
use crate::live_groups::LiveGroups;
use crate::native::{self, Code, CompileError, Worker};
use crate::port_table::{PORT_CELLS, PortTable};
use crate::program::{Program, TableData};
use crate::serials::Serials;
use crate::shared::{Shared, WorkerCells};
use crate::table_list::TableList;
use fastpath_plan::TablePlan;
use fastpath_plan::{Delta, Rule, Shelf, Update};
use fastpath_switch::execute::CreditPosition;
use fastpath_switch::flow::{Counters, Rank};
use fastpath_switch::meter::Meter;
use fastpath_switch::port::PortCounters;
use fastpath_switch::{Changes, CookieCounts, Switch};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::mem;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

/// The changes on top of a base from which the next base is urgent, if they are also more than
/// [`tolerated`]. So the work on bases is a small multiple of that on changes.
const PRESSING: usize = 4096;
/// The changes on top of a base from which further ones should wait for the job in progress, if
/// they are also more than twice as many as are [`tolerated`].
const BEHIND: usize = 1 << 17;
/// A lookup visits every tuple of the changes. With at most this many it takes hardly longer than
/// without changes.
const FEW_TUPLES: usize = 4;

/// The work of an update on the last counts of replaced tables, in reads of a cell. With [`CREDIT`]
/// it takes less than a quarter of a millisecond.
const SETTLED_AT_ONCE: usize = 4096;
/// The work of a part of settling, in reads of a cell.
const PARTLY_SETTLED: usize = 16_384;
/// The cost of crediting a flow, in reads of a cell: it has to be found in a table of any size.
const CREDIT: usize = 32;

/// No further bases are built while this many replaced tables wait for their last counts.
const RETIRED_MAX: usize = 2;

/// The values of a worker's cells when they were last read.
#[derive(Debug)]
struct CellValues {
    tables: Vec<(u64, u64)>,
    ports: Vec<PortCounters>,
}

/// The control side of a running switch.
#[derive(Debug)]
pub struct Live {
    shared: Arc<Shared>,
    stations: Vec<Arc<WorkerCells>>,
    /// The values last read of each worker.
    read: Vec<CellValues>,
    tables: Vec<LiveTable>,
    /// Replaced tables, until no worker runs them and their counts are credited.
    retired: Vec<Retired>,
    /// The last number of a part of settling that was given to a replaced table.
    parts: usize,
    /// Replaced programs that workers may still run. They are held here so that no worker has to
    /// free one.
    programs: Vec<Arc<Program>>,
    garbage: Garbage,
    code: Arc<Code>,
    /// Whether the code is not that of the present bases.
    is_code_due: bool,
    groups: LiveGroups,
    cookies: Arc<[CookieCounts]>,
    meters: BTreeMap<u32, LiveMeter>,
    /// The tables with more changes than [`BEHIND`] and twice those [`tolerated`].
    far: BTreeSet<u8>,
    /// The changes since the start of the job in progress, by table, for the tables that it builds.
    since: Option<BTreeMap<u8, Since>>,
}

/// Replaced tables and code that nothing uses. The next job frees them, because freeing large
/// tables and unmapping code takes long.
#[derive(Debug, Default)]
struct Garbage {
    tables: Vec<LiveTable>,
    code: Vec<Arc<Code>>,
}

/// A table and the values last read of its cells.
#[derive(Debug)]
struct LiveTable {
    data: Arc<TableData>,
    /// The values last read of the cells, for each worker.
    base_read: Vec<Vec<Counters>>,
    added: AddedFlows,
}

/// A table that was replaced.
#[derive(Debug)]
struct Retired {
    id: u8,
    /// The part of settling that it is.
    part: usize,
    table: LiveTable,
    /// The number of its rules that are credited for the last time.
    settled: usize,
}

/// The flows added since a base was built: one for every flow that was ever added, by its serial
/// number.
#[derive(Debug, Default)]
struct AddedFlows {
    flows: Vec<AddedFlow>,
    /// The values last read of the cells of each flow.
    read: Vec<Counters>,
    by_serial: Serials,
    /// The cells of the rule of each change; none for a removal.
    cells: Shelf<Option<AddedCells>>,
}

/// A flow that was added, and the cell of each worker.
#[derive(Debug)]
struct AddedFlow {
    rank: Rank,
    serial: u64,
    cells: AddedCells,
}

/// Changes since a job started, which will lie on top of its result.
#[derive(Debug, Default)]
struct Since {
    delta: Delta,
    added: AddedFlows,
}

/// A meter in use, and its state in the switch when last credited.
#[derive(Debug)]
struct LiveMeter {
    meter: Arc<Mutex<Meter>>,
    settled: Meter,
}

/// Work that builds bases and code: to be run on any thread.
pub struct Job {
    task: Task,
    workers: usize,
}

enum Task {
    /// Build the bases of tables that have none, and the code of all tables.
    Make(Vec<(TablePlan, Option<Arc<BaseTable>>)>, Garbage),
    /// Only free memory.
    Free(Garbage),
}

/// The result of a [`Job`].
#[derive(Debug)]
pub struct JobResult {
    /// The tables that were rebuilt.
    tables: BTreeMap<u8, LiveTable>,
    /// `None` if there is nothing to take over.
    code: Option<Code>,
}

impl Live {
    /// Compiles a switch in its present state, for `workers` workers.
    ///
    /// No code can be generated for this machine.
    pub fn new(switch: &mut Switch, workers: usize) -> Result<Live, CompileError> {
        let count = usize::from(switch.limits().tables);
        (0..switch.limits().tables).for_each(|id| drop(switch.table_mut(id).take_changes()));
        let plans = switch.tables().iter().map(|table| (TablePlan::new(table), None));
        let (tables, code) = make(plans.collect(), workers)?;
        let station = |id| {
            let tables = (0..count).map(|_| TableCell::default()).collect();
            let ports = (0..PORT_CELLS).map(|_| PortCell::default()).collect();
            Arc::new(WorkerCells { id, tables, ports })
        };
        let stations: Vec<_> = (0..workers).map(station).collect();
        let read = (0..workers).map(|_| CellValues {
            tables: vec![(0, 0); count],
            ports: vec![PortCounters::default(); PORT_CELLS],
        });
        let code = Arc::new(code);
        let cookies: Arc<[_]> = switch.tables().iter().map(|table| table.cookies().share()).collect();
        let empty = Program {
            tables: TableList::new(&[]),
            cookies: Arc::clone(&cookies),
            code: Arc::clone(&code),
            ports: Arc::new(PortTable::new(switch, None)),
            groups: Arc::default(),
            meters: Arc::default(),
            normal: switch.normal().share(),
            connections: switch.connections().share(),
            bridging: Arc::clone(switch.bridging()),
        };
        let mut live = Live {
            shared: Arc::new(Shared::new(empty)),
            stations,
            read: read.collect(),
            tables: tables.into_values().collect(),
            retired: Vec::new(),
            parts: 1 << 16,
            programs: Vec::new(),
            garbage: Garbage::default(),
            code,
            is_code_due: false,
            groups: LiveGroups::default(),
            cookies,
            meters: BTreeMap::new(),
            far: BTreeSet::new(),
            since: None,
        };
        live.publish(switch);
        Ok(live)
    }

    /// Returns the worker of a number below `workers`. Each may be taken once: two would overwrite
    /// each other's counts.
    pub fn worker(&self, id: usize) -> Worker {
        Worker::new(Arc::clone(&self.shared), Arc::clone(&self.stations[id]))
    }

    /// Applies the changes in the switch. When this returns, they are in force for every burst that
    /// begins.
    pub fn update(&mut self, switch: &mut Switch) {
        for id in 0..switch.limits().tables {
            let changes = switch.table_mut(id).take_changes();
            self.update_table(switch, id, &changes);
        }
        self.publish(switch);
        self.settle_retired(switch, SETTLED_AT_ONCE);
    }

    /// Applies the changes of flows in these tables, as [`Live::update`] does. Nothing else of the
    /// switch has changed since the last update, so that the work is that of these tables only.
    pub fn update_flows(&mut self, switch: &mut Switch, tables: &[u8]) {
        let newest = self.shared.newest();
        let mut list = newest.tables.clone();
        for id in tables {
            let changes = switch.table_mut(*id).take_changes();
            self.update_table(switch, *id, &changes);
            list.set(usize::from(*id), Arc::clone(&self.tables[usize::from(*id)].data));
        }
        self.publish_program(newest.with_tables(list, &self.code));
        self.settle_retired(switch, SETTLED_AT_ONCE);
    }

    fn update_table(&mut self, switch: &Switch, id: u8, changes: &Changes) {
        if matches!(changes, Changes::Few(ranks) if ranks.is_empty()) {
            return;
        }
        let table = &mut self.tables[usize::from(id)];
        let mut plan = table.data.plan.clone();
        if plan.update(&switch.tables()[usize::from(id)], changes) == Update::Unchanged {
            return;
        }
        // Rows and cells belong to the base: a plan with another base needs all of them again, and
        // the result of a job for the old one is of no use.
        if !plan.shares_base(&table.data.plan) {
            let base = Arc::new(BaseTable::new(&plan, self.stations.len()));
            self.since = None;
            self.replace(id, LiveTable::new((plan, base)));
            // The code is that of the old base. Rust executes the tables until a job has made new
            // code.
            self.code = Arc::new(native::without_code());
            self.is_code_due = true;
            return;
        }
        if let Some(since) = self.since.as_mut().and_then(|since| since.get_mut(&id)) {
            since.take_in(plan.delta(), table.added.cells.len(), self.stations.len());
        }
        table.take_in(plan, self.stations.len());
        self.note_far(id);
    }

    /// Notes whether a table is far from its base, after every change of either.
    fn note_far(&mut self, id: u8) {
        let plan = &self.tables[usize::from(id)].data.plan;
        match plan.delta().len() > BEHIND.max(2 * tolerated(plan)) {
            true => self.far.insert(id),
            false => self.far.remove(&id),
        };
    }

    fn replace(&mut self, id: u8, table: LiveTable) {
        let old = mem::replace(&mut self.tables[usize::from(id)], table);
        self.parts += 1;
        self.retired.push(Retired { id, part: self.parts, table: old, settled: 0 });
        self.note_far(id);
    }

    /// Returns work that would make lookups faster: new bases for tables that have changed, and new
    /// code; or work that frees memory. `None` if nothing is to be done, such work is in progress,
    /// or replaced tables still have counts to be credited.
    pub fn job(&mut self) -> Option<Job> {
        if self.since.is_some() {
            return None;
        }
        let workers = self.stations.len();
        let is_due = self.tables.iter().any(|table| !table.data.plan.is_settled()) || self.is_code_due;
        if !is_due || self.retired.len() >= RETIRED_MAX {
            let garbage = self.garbage.take();
            let is_clean = garbage.tables.is_empty() && garbage.code.is_empty();
            return (!is_clean).then_some(Job { task: Task::Free(garbage), workers });
        }
        let is_built = |(_, table): &(u8, &LiveTable)| !table.data.plan.is_settled();
        let built = (0..).zip(&self.tables).filter(is_built).map(|(id, _)| (id, Since::default()));
        self.since = Some(built.collect());
        let tables = self.tables.iter().map(|LiveTable { data, .. }| {
            (data.plan.clone(), data.plan.is_settled().then(|| Arc::clone(&data.base)))
        });
        let task = Task::Make(tables.collect(), self.garbage.take());
        Some(Job { task, workers })
    }

    /// Returns whether the next job should not wait for a quiet moment, because many changes lie on
    /// top of a base.
    pub fn is_pressing(&self) -> bool {
        self.plans_changed().any(|(changes, tolerated)| changes > PRESSING.max(tolerated))
    }

    /// Returns whether further changes should wait: many already wait for a base that a job is
    /// building.
    pub fn is_behind(&self) -> bool {
        self.since.is_some() && !self.far.is_empty()
    }

    /// Returns the changes of each table since its base was built, and those [`tolerated`].
    fn plans_changed(&self) -> impl Iterator<Item = (usize, usize)> {
        self.tables.iter().map(|LiveTable { data, .. }| (data.plan.delta().len(), tolerated(&data.plan)))
    }

    /// Takes over the result of a job. The changes made meanwhile lie on top of the new bases.
    pub fn finish(&mut self, switch: &mut Switch, made: JobResult) {
        let Some(code) = made.code else { return };
        let Some(mut since) = self.since.take() else {
            self.garbage.tables.extend(made.tables.into_values());
            return;
        };
        for (id, table) in made.tables {
            let since = since.remove(&id).unwrap_or_default();
            let newest = self.tables[usize::from(id)].data.plan.clone();
            self.replace(id, table.with(since, &newest));
        }
        (self.code, self.is_code_due) = (Arc::new(code), false);
        self.update(switch);
    }

    /// Forgets a job that failed.
    pub fn give_up(&mut self) {
        self.since = None;
    }

    /// Adds the counts of the workers since the last call to the switch.
    pub fn settle(&mut self, switch: &mut Switch) {
        let mut position = Some(CreditPosition::default());
        while let Some(from) = position {
            position = self.settle_part(switch, from);
        }
        self.settle_retired(switch, usize::MAX);
    }

    /// Does part of what [`Live::settle`] does: first tables, ports, groups and meters, then the
    /// flows of each table, then those of replaced tables. Returns where to continue.
    pub fn settle_part(&mut self, switch: &mut Switch, from: CreditPosition) -> Option<CreditPosition> {
        let CreditPosition { part, position } = from;
        if part == 0 {
            self.settle_shared(switch);
            return Some(CreditPosition { part: 1, position: 0 });
        }
        // A table that is replaced between two parts gets a number above all others.
        let (id, table, part) = match self.tables.get_mut(part - 1) {
            Some(table) => ((part - 1) as u8, table, part),
            None => {
                let retired = self.retired.iter_mut().find(|retired| retired.part >= part)?;
                (retired.id, &mut retired.table, retired.part)
            }
        };
        let mut work = PARTLY_SETTLED;
        let position = table.settle_from(position.min(table.len()), id, switch, &mut work);
        let is_done = position == table.len();
        Some(if is_done {
            CreditPosition { part: part + 1, position: 0 }
        } else {
            CreditPosition { part, position }
        })
    }

    /// Settles everything except flows.
    fn settle_shared(&mut self, switch: &mut Switch) {
        let known: Vec<(u32, usize)> = self.shared.newest().ports.cells().collect();
        for (station, CellValues { tables, ports }) in self.stations.iter().zip(&mut self.read) {
            for (id, (cell, read)) in (0..).zip(station.tables.iter().zip(tables)) {
                let (lookups, matched) = cell.since(read);
                if lookups != 0 {
                    switch.credit_hits(id, lookups, matched);
                }
            }
            for (number, cell) in &known {
                let passed = station.ports[*cell].since(&mut ports[*cell]);
                if passed != PortCounters::default() {
                    switch.credit_port(*number, &passed);
                }
            }
        }
        self.groups.settle(switch);
        for (id, live) in &mut self.meters {
            if let Some(meter) = switch.meter_mut(*id).filter(|meter| **meter == live.settled) {
                live.settled = live.meter.lock().unwrap_or_else(PoisonError::into_inner).clone();
                *meter = live.settled.clone();
            }
        }
    }

    /// Does what [`Live::settle`] does, but only for these flows; the time depends on their number
    /// only.
    pub fn settle_flows(&mut self, switch: &mut Switch, flows: &[(u8, Rank)]) {
        for (id, rank) in flows {
            let Some(serial) = switch.tables().get(usize::from(*id)).and_then(|table| table.flow(rank))
            else {
                continue;
            };
            let serial = serial.serial;
            let retired = self.retired.iter_mut().filter(|retired| retired.id == *id);
            let tables = retired.map(|retired| &mut retired.table);
            for table in tables.chain(self.tables.get_mut(usize::from(*id))) {
                table.settle_flow(*id, switch, rank, serial);
            }
        }
    }

    /// Returns whether replaced tables wait for workers or for their last counts.
    pub(crate) fn has_retired(&self) -> bool {
        !self.retired.is_empty()
    }

    /// Credits part of the counts of replaced tables, as every update does. Returns false if
    /// nothing can be done now.
    pub fn tidy(&mut self, switch: &mut Switch) -> bool {
        let progress =
            |live: &Live| (live.retired.len(), live.retired.iter().map(|one| one.settled).sum::<usize>());
        let before = progress(self);
        self.settle_retired(switch, SETTLED_AT_ONCE);
        progress(self) != before
    }

    /// Credits the counts of tables that no worker runs any more, with `work` as the limit, and
    /// releases those that are done.
    fn settle_retired(&mut self, switch: &mut Switch, mut work: usize) {
        self.programs.retain(|program| Arc::strong_count(program) > 1);
        let mut position = 0;
        while let Some(Retired { id, table, settled, .. }) = self.retired.get_mut(position) {
            if Arc::strong_count(&table.data) > 1 || Arc::strong_count(&table.data.base) > 1 {
                position += 1;
                continue;
            }
            // The last worker's writes are visible with its release of the program.
            fence(Ordering::Acquire);
            *settled = table.settle_from(*settled, *id, switch, &mut work);
            if *settled < table.len() {
                return;
            }
            let done = self.retired.remove(position);
            self.garbage.tables.push(done.table);
        }
    }

    /// Publishes a program of the present state.
    fn publish(&mut self, switch: &mut Switch) {
        self.groups.renew(switch, self.stations.len());
        self.renew_meters(switch);
        let ports = Arc::new(PortTable::new(switch, Some(&self.shared.newest().ports)));
        let tables: Vec<_> = self.tables.iter().map(|table| Arc::clone(&table.data)).collect();
        let meters = self.meters.iter().map(|(id, live)| (*id, Arc::clone(&live.meter)));
        self.publish_program(Program {
            tables: TableList::new(&tables),
            cookies: Arc::clone(&self.cookies),
            code: Arc::clone(&self.code),
            ports,
            groups: Arc::new(self.groups.with_choices(switch)),
            meters: Arc::new(meters.collect()),
            normal: switch.normal().share(),
            connections: switch.connections().share(),
            bridging: Arc::clone(switch.bridging()),
        });
    }

    fn publish_program(&mut self, program: Program) {
        let old = self.shared.publish(program);
        if !Arc::ptr_eq(&old.code, &self.code) {
            self.garbage.code.push(Arc::clone(&old.code));
        }
        self.programs.push(old);
    }

    /// A meter whose state in the switch is not the last credited one was changed there: it starts
    /// again from the switch's state.
    fn renew_meters(&mut self, switch: &mut Switch) {
        let gone: Vec<u32> = self.meters.keys().copied().filter(|id| switch.meter(*id).is_none()).collect();
        gone.iter().for_each(|id| drop(self.meters.remove(id)));
        let changed = switch
            .meters()
            .filter(|(id, meter)| self.meters.get(id).is_none_or(|live| live.settled != **meter));
        let changed: Vec<u32> = changed.map(|(id, _)| id).collect();
        for id in changed {
            let Some(meter) = switch.meter_mut(id) else { continue };
            if let Some(old) = self.meters.get(&id) {
                let counted = old.meter.lock().unwrap_or_else(PoisonError::into_inner).counters;
                let settled = old.settled.counters;
                meter.counters.packets += counted.packets - settled.packets;
                meter.counters.bytes += counted.bytes - settled.bytes;
            }
            let live = LiveMeter { meter: Arc::new(Mutex::new(meter.clone())), settled: meter.clone() };
            self.meters.insert(id, live);
        }
    }

    /// Returns the plans of the tables that have rules, by number. For each: how many action
    /// templates it has, and how many of its rules are executed in Rust because they exceed a limit
    /// of templates.
    pub fn plans(&self) -> impl Iterator<Item = (u8, &TablePlan, usize, usize)> {
        (0..).zip(&self.tables).filter_map(|(id, LiveTable { data, .. })| {
            let (added, gone) = data.plan.changes();
            let base = &data.base;
            let in_rust = base.rows.chunks_exact(base.stride).filter(|row| row[0] == 0).count();
            (!data.plan.rules().is_empty() || added + gone > 0).then_some((
                id,
                &data.plan,
                base.templates.list.len(),
                in_rust,
            ))
        })
    }

    /// Returns the tables whose lookups are in the machine code.
    pub fn tables_in_code(&self) -> &[u8] {
        &self.code.tables
    }

    /// Returns the bytes of machine code.
    pub fn code_bytes(&self) -> usize {
        self.code.bytes
    }

    /// Describes the structures of the tables, the reason for each, and their code.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for (id, plan, templates, in_rust) in self.plans() {
            // Writing to a string cannot fail.
            let _ = write!(text, "table {id}: {}", plan.explain());
            let _ = writeln!(text, "  {templates} action templates");
            if in_rust > 0 {
                let _ =
                    writeln!(text, "  {in_rust} rules executed in Rust: too long, or beyond the templates");
            }
        }
        let tables: Vec<String> = self.code.tables.iter().map(u8::to_string).collect();
        let depth = format!("{:?}", self.code.depth).to_lowercase();
        let (bytes, tables) = (self.code.bytes, tables.join(", "));
        let _ = writeln!(text, "code: {bytes} bytes for tables {tables}, parsing to {depth}");
        text
    }
}

impl Garbage {
    /// Takes the items that nothing else holds, so that dropping them frees them. Code stays while
    /// a program holds it: dropping that program would unmap the code in the time of a change.
    fn take(&mut self) -> Garbage {
        let (code, held) =
            mem::take(&mut self.code).into_iter().partition(|code| Arc::strong_count(code) == 1);
        self.code = held;
        Garbage { tables: mem::take(&mut self.tables), code }
    }
}

impl AddedFlows {
    /// Notes the rule of the next change; none for a removal.
    fn note(&mut self, rule: Option<&Rule>, workers: usize) {
        let AddedFlows { flows, read, by_serial, cells } = self;
        let Some(rule) = rule else { return cells.push(None) };
        let (serial, rank) = (rule.serial, &rule.rank);
        let position = by_serial.get(serial).unwrap_or_else(|| {
            let position = flows.len() as u32;
            by_serial.add(serial, position);
            let cells = AddedCells::after(flows.last().map(|flow| &flow.cells), workers);
            flows.push(AddedFlow { rank: rank.clone(), serial, cells });
            read.resize(flows.len() * workers, Counters::default());
            position
        });
        cells.push(Some(flows[position as usize].cells.clone()));
    }
}

impl Since {
    /// Takes over the changes of another delta, from number `from` on.
    fn take_in(&mut self, changes: &Delta, from: usize, workers: usize) {
        for (rank, rule) in changes.since(from) {
            self.added.note(rule, workers);
            self.delta.note(rank.clone(), rule.cloned());
        }
    }
}

impl LiveTable {
    fn new((plan, base): (TablePlan, Arc<BaseTable>)) -> LiveTable {
        let base_read = base.cells.iter().map(|cells| vec![Counters::default(); cells.len()]).collect();
        let data = Arc::new(TableData { plan, base, cells: Shelf::default() });
        LiveTable { data, base_read, added: AddedFlows::default() }
    }

    /// Returns the table with changes on top of its base, among them those of the clauses of
    /// `newest`.
    fn with(self, since: Since, newest: &TablePlan) -> LiveTable {
        let Since { delta, added } = since;
        let plan = self.data.plan.clone().with_delta(delta).with_clauses_of(newest);
        let (base, cells) = (Arc::clone(&self.data.base), added.cells.clone());
        LiveTable { data: Arc::new(TableData { plan, base, cells }), added, ..self }
    }

    /// Takes a plan with further changes.
    fn take_in(&mut self, plan: TablePlan, workers: usize) {
        for (_, rule) in plan.delta().since(self.added.cells.len()) {
            self.added.note(rule, workers);
        }
        let (base, cells) = (Arc::clone(&self.data.base), self.added.cells.clone());
        self.data = Arc::new(TableData { plan, base, cells });
    }

    /// Returns the number of rules: those of the base, then those added.
    fn len(&self) -> usize {
        self.data.plan.rules().len() + self.added.flows.len()
    }

    /// Credits the counts of the rules from number `from` on, with `work` as the limit. Returns the
    /// rule to continue with.
    fn settle_from(&mut self, from: usize, id: u8, switch: &mut Switch, work: &mut usize) -> usize {
        for position in from..self.len() {
            if *work == 0 {
                return position;
            }
            let credited = self.settle_position(position, id, switch);
            *work = work.saturating_sub(1 + credited * CREDIT);
        }
        self.len()
    }

    /// Credits the counts of one flow, as a rule of the base and as an added one.
    fn settle_flow(&mut self, id: u8, switch: &mut Switch, rank: &Rank, serial: u64) {
        let rules = self.data.plan.rules();
        let added = self.added.by_serial.get(serial).map(|position| rules.len() + position as usize);
        let based = rules.binary_search_by(|rule| rule.rank.cmp(rank)).ok();
        for position in based.into_iter().chain(added) {
            self.settle_position(position, id, switch);
        }
    }

    /// Credits the counts of one rule. Returns how often the flow had to be found for that.
    fn settle_position(&mut self, position: usize, id: u8, switch: &mut Switch) -> usize {
        let LiveTable { data, base_read, added } = self;
        let mut credited = 0;
        let mut credit = |rank: &Rank, serial, cell: &FlowCell, read: &mut Counters| {
            if let Some((counted, last_used)) = cell.since(read) {
                switch.credit(id, rank, serial, counted, last_used);
                credited += 1;
            }
        };
        match position.checked_sub(data.plan.rules().len()) {
            None => {
                let Rule { rank, serial, .. } = &data.plan.rules()[position];
                for (cells, read) in data.base.cells.iter().zip(base_read) {
                    credit(rank, *serial, &cells[position], &mut read[position]);
                }
            }
            Some(position) => {
                let AddedFlow { rank, serial, cells } = &added.flows[position];
                let workers = data.base.cells.len();
                let read = &mut added.read[position * workers..][..workers];
                for (cell, read) in (0..workers).filter_map(|worker| cells.of(worker)).zip(read) {
                    credit(rank, *serial, cell, read);
                }
            }
        }
        credited
    }
}

impl Job {
    /// Builds bases and code.
    ///
    /// No code can be generated for this machine.
    pub fn run(self) -> Result<JobResult, CompileError> {
        match self.task {
            Task::Make(tables, garbage) => {
                drop(garbage);
                let (tables, code) = make(tables, self.workers)?;
                Ok(JobResult { tables, code: Some(code) })
            }
            Task::Free(garbage) => {
                drop(garbage);
                Ok(JobResult { tables: BTreeMap::new(), code: None })
            }
        }
    }
}

/// Returns the changes on top of a base that do not make its lookups much slower.
fn tolerated(plan: &TablePlan) -> usize {
    let rules = plan.rules().len();
    if plan.delta().tuples() <= FEW_TUPLES { 2 * rules } else { rules / 2 }
}

/// Builds the tables without a base, by number, and the code of all tables.
fn make(
    plans: Vec<(TablePlan, Option<Arc<BaseTable>>)>,
    workers: usize,
) -> Result<(BTreeMap<u8, LiveTable>, Code), CompileError> {
    let mut rebuilt = BTreeMap::new();
    let mut tables = Vec::with_capacity(plans.len());
    for (id, (plan, base)) in (0..).zip(plans) {
        let table = match base {
            Some(base) => (plan, base),
            None => {
                let plan = if plan.is_settled() { plan } else { plan.rebuilt() };
                let base = Arc::new(BaseTable::new(&plan, workers));
                rebuilt.insert(id, LiveTable::new((plan.clone(), Arc::clone(&base))));
                (plan, base)
            }
        };
        tables.push(table);
    }
    let code = native::compile(&tables)?;
    Ok((rebuilt, code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Fate;
    use fastpath_switch::outcome::DropReason;
    use fastpath_switch::{Action, FlowCommand, FlowMod, Instructions, Limits, Match, PacketOutcome, Port};
    use fastpath_units::Time;

    #[test]
    fn where_no_code_can_be_made_of_new_bases_every_table_is_executed_in_rust() {
        let mut switch = Switch::new(Limits { tables: 2, ..Limits::default() });
        (1..=3).for_each(|number| switch.set_port(number, Port::up()));
        let change = |switch: &mut Switch, command, table, what| {
            let add = FlowMod::add(table, 1, Match::any(), what);
            switch.flow_mod(Time::ZERO, &FlowMod { command, ..add }).unwrap();
        };
        let goto = Instructions { goto: Some(1), ..Instructions::default() };
        change(&mut switch, FlowCommand::Add, 0, goto);
        change(&mut switch, FlowCommand::Add, 1, Instructions::apply([Action::output(2)]));
        let mut live = Live::new(&mut switch, 1).unwrap();
        let mut worker = live.worker(0);
        let run = |worker: &mut Worker, len: usize| {
            worker.begin(Time::ZERO);
            worker.run(1, &mut [0; 60][..len])
        };
        assert_eq!(run(&mut worker, 60), Fate::Forward { port: 2, queue: 0 });
        live.code = Arc::new(native::without_code());
        change(&mut switch, FlowCommand::Modify, 1, Instructions::apply([Action::output(3)]));
        live.update(&mut switch);
        assert!(live.tables_in_code().is_empty());
        assert_eq!(run(&mut worker, 13), Fate::Drop(DropReason::Runt));
        for _ in 0..2 {
            // Frames that Rust executes leave as copies.
            assert_eq!(run(&mut worker, 60), Fate::Done);
            assert!(matches!(worker.outcomes()[..], [PacketOutcome::Output { port: 3, .. }]));
        }
        live.settle(&mut switch);
        let counted = switch
            .tables()
            .iter()
            .map(|table| (table.hits(), table.flows().next().unwrap().1.counters.packets));
        assert_eq!(counted.collect::<Vec<_>>(), [((3, 3), 3); 2]);
        // The next bases have code again.
        let made = live.job().unwrap().run().unwrap();
        live.finish(&mut switch, made);
        assert_eq!(live.tables_in_code(), [0, 1]);
        assert_eq!(run(&mut worker, 60), Fate::Forward { port: 3, queue: 0 });
    }
}
