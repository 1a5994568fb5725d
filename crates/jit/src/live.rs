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

use crate::cells::{FlowCell, PortCell, TableCell};
use crate::native::{self, Code, CompileError, Worker};
use crate::program::{Added, BaseTable, Choice, Chunk, GroupView, PORT_CELLS, PortTable, Program, TableData};
use arc_swap::ArcSwap;
use fastpath_switch::flow::{Counters, Rank};
use fastpath_switch::meter::Meter;
use fastpath_switch::plan::{DeltaRun, Rule, Update};
use fastpath_switch::port::PortCounters;
use fastpath_switch::{Changes, Switch, TablePlan};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::mem;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

/// The changes that a table may have on top of its base, at least and at most. From half of it on,
/// further changes should wait for a rebuild in progress. Building a base takes time in proportion
/// to the table, so more rules allow more changes per base; otherwise the time to load a table
/// would grow with the square of its size.
const ROOM: RangeInclusive<usize> = 8192..=65_536;
/// One rule of this many in a base may have changed.
const ROOM_SHARE: usize = 8;

/// The changes since the start of a job that are applied immediately: less than half a millisecond.
const TAKEN_AT_ONCE: usize = 512;

/// The work of an update on the last counts of replaced tables, in reads of a cell. With [`CREDIT`]
/// it takes less than a quarter of a millisecond.
const SETTLED_AT_ONCE: usize = 4096;
/// The cost of crediting a flow, in reads of a cell: it has to be found in a table of any size.
const CREDIT: usize = 32;

/// No further bases are built while this many replaced tables wait for their last counts.
const RETIRED_MAX: usize = 2;

/// The newest program, where workers find it.
#[derive(Debug)]
pub(crate) struct Shared {
    newest: ArcSwap<Program>,
    /// Its address, which workers compare once per burst.
    address: AtomicUsize,
}

/// The counters of a worker that do not belong to a program.
#[derive(Debug)]
pub(crate) struct WorkerCells {
    pub(crate) id: usize,
    pub(crate) tables: Box<[TableCell]>,
    pub(crate) ports: Box<[PortCell]>,
}

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
    /// Replaced programs that workers may still run. They are held here so that no worker has to
    /// free one.
    programs: Vec<Arc<Program>>,
    garbage: Garbage,
    code: Arc<Code>,
    groups: BTreeMap<u32, Arc<GroupView>>,
    meters: BTreeMap<u32, LiveMeter>,
    /// The changes since the start of the job in progress, by table.
    since: Option<BTreeMap<u8, BTreeSet<Rank>>>,
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
    added: AddedCells,
}

/// A table that was replaced.
#[derive(Debug)]
struct Retired {
    id: u8,
    table: LiveTable,
    /// The number of its rules that are credited for the last time.
    settled: usize,
}

/// The cells of rules added since a base was built: one for every flow that was ever added, by its
/// serial number.
#[derive(Debug, Default)]
struct AddedCells {
    cells: Vec<Arc<Chunk>>,
    /// The values last read of each flow, for each worker.
    read: Vec<Box<[Counters]>>,
    flows: Vec<(Rank, u64)>,
    slots: BTreeMap<u64, u32>,
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
    /// Apply changes made since the job started to its result.
    CatchUp(Box<JobResult>, Vec<Changed>),
    /// Only free memory.
    Free(Garbage),
}

/// Flows of a table that have changed, and their present rules, if they still exist.
struct Changed {
    table: u8,
    ranks: BTreeSet<Rank>,
    rules: Vec<Rule>,
}

/// The result of a [`Job`].
#[derive(Debug)]
pub struct JobResult {
    /// The tables that were rebuilt.
    tables: BTreeMap<u8, LiveTable>,
    /// `None` if there is nothing to take over.
    code: Option<Code>,
}

impl Shared {
    pub(crate) fn newest(&self) -> Arc<Program> {
        self.newest.load_full()
    }

    /// Returns whether `program` is not the newest.
    #[inline]
    pub(crate) fn is_newer(&self, program: &Arc<Program>) -> bool {
        // The address of a program that is held is not reused.
        self.address.load(Ordering::Acquire) != Arc::as_ptr(program).addr()
    }

    /// Publishes a program; returns the one before.
    fn publish(&self, program: Program) -> Arc<Program> {
        let program = Arc::new(program);
        let address = Arc::as_ptr(&program).addr();
        let old = self.newest.swap(program);
        self.address.store(address, Ordering::Release);
        old
    }
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
        let empty = Program {
            tables: Vec::new(),
            code: Arc::clone(&code),
            ports: PortTable::new(switch),
            groups: BTreeMap::new(),
            meters: BTreeMap::new(),
            normal: switch.normal().share(),
        };
        let empty = Arc::new(empty);
        let address = AtomicUsize::new(Arc::as_ptr(&empty).addr());
        let shared = Arc::new(Shared { newest: ArcSwap::new(empty), address });
        let mut live = Live {
            shared,
            stations,
            read: read.collect(),
            tables: tables.into_values().collect(),
            retired: Vec::new(),
            programs: Vec::new(),
            garbage: Garbage::default(),
            code,
            groups: BTreeMap::new(),
            meters: BTreeMap::new(),
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

    fn update_table(&mut self, switch: &Switch, id: u8, changes: &Changes) {
        if matches!(changes, Changes::Few(ranks) if ranks.is_empty()) {
            return;
        }
        let table = &mut self.tables[usize::from(id)];
        let mut plan = table.data.plan.clone();
        if plan.update(&switch.tables()[usize::from(id)], changes) == Update::Unchanged {
            return;
        }
        match changes {
            Changes::Few(ranks) => {
                if let Some(since) = &mut self.since {
                    since.entry(id).or_default().extend(ranks.iter().cloned());
                }
            }
            // A new base: the result of a job for the old one is of no use.
            Changes::Many => self.since = None,
        }
        let (added, gone) = plan.changes();
        let room = room(&plan);
        let is_large = added + gone > room;
        // Rows and cells belong to the base: a plan with another base needs all of them again.
        let is_other = !plan.shares_base(&table.data.plan);
        if is_other || is_large || !table.add(&plan, self.stations.len(), room) {
            let settled = if plan.is_settled() { plan } else { plan.rebuilt() };
            let base = Arc::new(BaseTable::new(&settled, self.stations.len()));
            self.since = None;
            self.replace(id, LiveTable::new((settled, base)));
            self.recompile();
        }
    }

    /// Generates the code of all tables immediately.
    fn recompile(&mut self) {
        let tables: Vec<_> =
            self.tables.iter().map(|table| (table.data.plan.clone(), Arc::clone(&table.data.base))).collect();
        // Where code could be generated it can be again. If not, the code of the old bases is of no
        // use for the new ones.
        self.code = Arc::new(native::compile(&tables).unwrap_or_else(|_| native::without_code()));
    }

    fn replace(&mut self, id: u8, table: LiveTable) {
        let old = mem::replace(&mut self.tables[usize::from(id)], table);
        self.retired.push(Retired { id, table: old, settled: 0 });
    }

    /// Returns work that would make lookups faster: new bases for tables that have changed, and new
    /// code; or work that frees memory. `None` if nothing is to be done, such work is in progress,
    /// or replaced tables still have counts to be credited.
    pub fn job(&mut self) -> Option<Job> {
        if self.since.is_some() {
            return None;
        }
        let workers = self.stations.len();
        let is_due = self.tables.iter().any(|table| !table.data.plan.is_settled());
        if !is_due || self.retired.len() >= RETIRED_MAX {
            let garbage = self.garbage.take();
            let is_clean = garbage.tables.is_empty() && garbage.code.is_empty();
            return (!is_clean).then_some(Job { task: Task::Free(garbage), workers });
        }
        self.since = Some(BTreeMap::new());
        let tables = self.tables.iter().map(|LiveTable { data, .. }| {
            (data.plan.clone(), data.plan.is_settled().then(|| Arc::clone(&data.base)))
        });
        let task = Task::Make(tables.collect(), self.garbage.take());
        Some(Job { task, workers })
    }

    /// Returns whether further changes should wait: many already wait for a base that a job is
    /// building.
    pub fn is_behind(&self) -> bool {
        let waits = |LiveTable { data, added, .. }: &LiveTable| {
            let (count, gone) = data.plan.changes();
            added.flows.len().max(count + gone) > room(&data.plan) / 2
        };
        self.since.is_some() && self.tables.iter().any(waits)
    }

    /// Takes over the result of a job. Changes made meanwhile become the delta of the new bases. If
    /// they are many, the result is not used yet: another job is returned, which applies some of
    /// them first.
    #[must_use]
    pub fn finish(&mut self, switch: &mut Switch, mut made: JobResult) -> Option<Job> {
        let code = made.code.take()?;
        let Some(mut since) = self.since.take() else {
            self.garbage.tables.extend(made.tables.into_values());
            return None;
        };
        // The tables that are not replaced have their changes already.
        since.retain(|id, ranks| made.tables.contains_key(id) && !ranks.is_empty());
        if since.values().map(BTreeSet::len).sum::<usize>() > TAKEN_AT_ONCE {
            let changes = since.iter_mut().map(|(id, ranks)| Changed::some(*id, ranks, switch)).collect();
            self.since = Some(since);
            let made = Box::new(JobResult { code: Some(code), ..made });
            return Some(Job { task: Task::CatchUp(made, changes), workers: self.stations.len() });
        }
        for (id, table) in made.tables {
            self.replace(id, table);
        }
        self.code = Arc::new(code);
        for (id, ranks) in since {
            self.update_table(switch, id, &Changes::Few(ranks));
        }
        self.update(switch);
        None
    }

    /// Forgets a job that failed.
    pub fn give_up(&mut self) {
        self.since = None;
    }

    /// Adds the counts of the workers since the last call to the switch.
    pub fn settle(&mut self, switch: &mut Switch) {
        for (station, CellValues { tables, ports }) in self.stations.iter().zip(&mut self.read) {
            for (id, (cell, read)) in (0..).zip(station.tables.iter().zip(tables)) {
                let (lookups, matched) = cell.since(read);
                if lookups != 0 {
                    switch.credit_hits(id, lookups, matched);
                }
            }
            let known: Vec<(u32, usize)> = self.shared.newest().ports.cells().collect();
            for (number, cell) in known {
                let passed = station.ports[cell].since(&mut ports[cell]);
                if passed != PortCounters::default() {
                    switch.credit_port(number, &passed);
                }
            }
        }
        for (id, table) in (0..).zip(&mut self.tables) {
            table.settle(id, switch);
        }
        self.retired.iter_mut().for_each(|Retired { id, table, .. }| table.settle(*id, switch));
        self.settle_retired(switch, usize::MAX);
        self.groups.iter().for_each(|(id, group)| group.settle(*id, switch));
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
        let mut place = 0;
        while let Some(Retired { id, table, settled }) = self.retired.get_mut(place) {
            if Arc::strong_count(&table.data) > 1 || Arc::strong_count(&table.data.base) > 1 {
                place += 1;
                continue;
            }
            // The last worker's writes are visible with its release of the program.
            fence(Ordering::Acquire);
            *settled = table.settle_from(*settled, *id, switch, &mut work);
            if *settled < table.len() {
                return;
            }
            let done = self.retired.remove(place);
            self.garbage.tables.push(done.table);
        }
    }

    /// Publishes a program of the present state.
    fn publish(&mut self, switch: &mut Switch) {
        self.renew_groups(switch);
        self.renew_meters(switch);
        let groups = self.groups.iter().filter_map(|(id, view)| {
            Some((*id, (Arc::clone(view), Choice::new(switch.group(*id)?, switch))))
        });
        let old = self.shared.publish(Program {
            tables: self.tables.iter().map(|table| Arc::clone(&table.data)).collect(),
            code: Arc::clone(&self.code),
            ports: PortTable::new(switch),
            groups: groups.collect(),
            meters: self.meters.iter().map(|(id, live)| (*id, Arc::clone(&live.meter))).collect(),
            normal: switch.normal().share(),
        });
        if !Arc::ptr_eq(&old.code, &self.code) {
            self.garbage.code.push(Arc::clone(&old.code));
        }
        self.programs.push(old);
    }

    fn renew_groups(&mut self, switch: &mut Switch) {
        let is_same = |view: &GroupView, switch: &Switch, id: u32| {
            switch.group(id).is_some_and(|group| Arc::ptr_eq(&group.buckets, &view.buckets))
        };
        self.groups.retain(|id, view| is_same(view, switch, *id));
        for (id, group) in switch.groups() {
            self.groups.entry(id).or_insert_with(|| Arc::new(GroupView::new(group)));
        }
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

impl AddedCells {
    /// Returns the index of the cell of a rule.
    fn slot(&mut self, rule: &Rule, workers: usize) -> u32 {
        let AddedCells { cells, read, flows, slots } = self;
        *slots.entry(rule.serial).or_insert_with(|| {
            let slot = flows.len();
            if Chunk::place(slot).0 == cells.len() {
                cells.push(Arc::new(Chunk::new(workers)));
            }
            read.push(vec![Counters::default(); workers].into());
            flows.push((rule.rank.clone(), rule.serial));
            slot as u32
        })
    }
}

impl LiveTable {
    fn new((plan, base): (TablePlan, Arc<BaseTable>)) -> LiveTable {
        let base_read = base.cells.iter().map(|cells| vec![Counters::default(); cells.len()]).collect();
        let data = Arc::new(TableData { plan, base, added: Vec::new() });
        LiveTable { data, base_read, added: AddedCells::default() }
    }

    /// Takes a plan with other runs. Returns false if more flows than `room` would have been added
    /// since the base was built.
    fn add(&mut self, plan: &TablePlan, workers: usize, room: usize) -> bool {
        // Runs that existed before keep their rows.
        let old = self.data.plan.runs().iter().zip(&self.data.added);
        let old: BTreeMap<*const DeltaRun, Arc<Added>> =
            old.map(|(run, added)| (Arc::as_ptr(run), Arc::clone(added))).collect();
        let known = |run: &Arc<DeltaRun>| old.get(&Arc::as_ptr(run));
        let news = plan.runs().iter().filter(|run| known(run).is_none()).flat_map(|run| run.rules());
        let new = news.filter(|rule| !self.added.slots.contains_key(&rule.serial)).count();
        if self.added.flows.len() + new > room {
            return false;
        }
        let base = Arc::clone(&self.data.base);
        let added = plan.runs().iter().map(|run| match known(run) {
            Some(added) => Arc::clone(added),
            None => {
                let places = run.rules().iter().map(|rule| self.added.slot(rule, workers)).collect();
                Arc::new(Added::new(&base, run.rules(), places, self.added.cells.clone()))
            }
        });
        let added = added.collect();
        self.data = Arc::new(TableData { plan: plan.clone(), base, added });
        true
    }

    /// Returns the number of rules: those of the base, then those added.
    fn len(&self) -> usize {
        self.data.plan.rules().len() + self.added.flows.len()
    }

    /// Credits the counts of all rules.
    fn settle(&mut self, id: u8, switch: &mut Switch) {
        let mut work = usize::MAX;
        self.settle_from(0, id, switch, &mut work);
    }

    /// Credits the counts of the rules from number `from` on, with `work` as the limit. Returns the
    /// rule to continue with.
    fn settle_from(&mut self, from: usize, id: u8, switch: &mut Switch, work: &mut usize) -> usize {
        for place in from..self.len() {
            if *work == 0 {
                return place;
            }
            let credited = self.settle_place(place, id, switch);
            *work = work.saturating_sub(1 + credited * CREDIT);
        }
        self.len()
    }

    /// Credits the counts of one flow, as a rule of the base and as an added one.
    fn settle_flow(&mut self, id: u8, switch: &mut Switch, rank: &Rank, serial: u64) {
        let rules = self.data.plan.rules();
        let added = self.added.slots.get(&serial).map(|slot| rules.len() + *slot as usize);
        let based = rules.binary_search_by(|rule| rule.rank.cmp(rank)).ok();
        for place in based.into_iter().chain(added) {
            self.settle_place(place, id, switch);
        }
    }

    /// Credits the counts of one rule. Returns how often the flow had to be found for that.
    fn settle_place(&mut self, place: usize, id: u8, switch: &mut Switch) -> usize {
        let LiveTable { data, base_read, added } = self;
        let mut credited = 0;
        let mut credit = |rank: &Rank, serial, cell: &FlowCell, read: &mut Counters| {
            if let Some((counted, last_used)) = cell.since(read) {
                switch.credit(id, rank, serial, counted, last_used);
                credited += 1;
            }
        };
        match place.checked_sub(data.plan.rules().len()) {
            None => {
                let Rule { rank, serial, .. } = &data.plan.rules()[place];
                for (cells, read) in data.base.cells.iter().zip(base_read) {
                    credit(rank, *serial, &cells[place], &mut read[place]);
                }
            }
            Some(slot) => {
                let (rank, serial) = &added.flows[slot];
                let (chunk, place) = Chunk::place(slot);
                for (cell, read) in added.cells[chunk].cells(place).zip(&mut added.read[slot]) {
                    credit(rank, *serial, cell, read);
                }
            }
        }
        credited
    }
}

impl Changed {
    /// Takes some of the pending ranks.
    fn some(table: u8, waiting: &mut BTreeSet<Rank>, switch: &Switch) -> Changed {
        let ranks = (0..TAKEN_AT_ONCE).map_while(|_| waiting.pop_first()).collect();
        let rules = Rule::current(&switch.tables()[usize::from(table)], &ranks);
        Changed { table, ranks, rules }
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
            Task::CatchUp(mut made, changes) => {
                for Changed { table, ranks, rules } in changes {
                    let Some(table) = made.tables.get_mut(&table) else { continue };
                    let mut plan = table.data.plan.clone();
                    plan.take_in(&ranks, rules);
                    // Whether there are too many is checked when the result is taken over.
                    table.add(&plan, self.workers, usize::MAX);
                }
                Ok(*made)
            }
            Task::Free(garbage) => {
                drop(garbage);
                Ok(JobResult { tables: BTreeMap::new(), code: None })
            }
        }
    }
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

/// Returns how many changes a plan may have on top of its base.
fn room(plan: &TablePlan) -> usize {
    (plan.rules().len() / ROOM_SHARE).clamp(*ROOM.start(), *ROOM.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Fate;
    use fastpath_switch::interp::DropReason;
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
        assert!(live.finish(&mut switch, made).is_none());
        assert_eq!(live.tables_in_code(), [0, 1]);
        assert_eq!(run(&mut worker, 60), Fate::Forward { port: 3, queue: 0 });
    }
}
