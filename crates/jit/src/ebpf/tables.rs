//! A switch in the kernel: its program, its maps, and the counts that come back.

use super::code::{Code, TC_OK};
use super::layout::{
    IN_FLAGS, IN_PORT, IN_SLOT, IN_USER, OP, OUTCOMES, PENDING, RECORD_DROP, RECORD_HEAD, RECORD_OUTPUT,
    ROW_HEAD, SEGMENTS, ToUser, port as bits,
};
use super::lookups::{self, Lookups, TablePart};
use super::maps::{MapSizes, Maps, sums};
use super::rows::{self, Op, Places};
use super::{INSTRUCTIONS_MAX, KernelError, KernelTable, TABLES_MAX};
use fastpath_bpf::asm::Reg::{R0, R1, R3, R5, R6, R9};
use fastpath_bpf::asm::Size::Word;
use fastpath_bpf::asm::{Assembler, Cond};
use fastpath_bpf::helpers::skb;
use fastpath_plan::TablePlan;
use fastpath_switch::field::{HEADER_WORDS, STANDARD};
use fastpath_switch::flow::{Counters, Rank};
use fastpath_switch::outcome::DropReason;
use fastpath_switch::port::PortCounters;
use fastpath_switch::{GroupIdentity, PacketOutcome, Switch};
use fastpath_sys::bpf::{LoadedProgram, Map, ProgramKind, ProgramSpec, TestPacket, TestRun};
use fastpath_units::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The interface that packets of test runs seem to come from.
const LOOPBACK: u32 = 1;

/// The tables of a switch in one state, as a program of the kernel.
///
/// Another state of the switch needs another of these.
#[derive(Debug)]
pub struct KernelTables {
    program: LoadedProgram,
    maps: Maps,
    /// What the program looks up in; it holds them too.
    _lookups: Lookups,
    /// The rules by row: table, rank and serial number of the flow, and the last counts.
    flows: Vec<CountedFlow>,
    /// The ports by place, with the last counts.
    ports: Vec<(u32, u32, PortCounters)>,
    groups: Vec<CountedGroup>,
    drops: [u64; DropReason::ALL.len()],
    misses: BTreeMap<u8, u64>,
    /// Packets of flows whose counts were added alone, not yet counted at their tables.
    credited: BTreeMap<u8, u64>,
    in_user: Vec<InUser>,
    instructions: usize,
}

/// A program that does nothing, to compare with.
#[derive(Debug)]
pub struct EmptyProgram(LoadedProgram);

/// Makes a program that does nothing.
///
/// # Errors
/// bpf(2) is not permitted.
pub fn empty_program() -> Result<EmptyProgram, KernelError> {
    let mut a = Assembler::new();
    a.mov(R0, TC_OK);
    a.exit();
    let (instructions, _) = a.finish();
    let spec = ProgramSpec {
        kind: ProgramKind::TcxIngress,
        name: "fp_empty",
        instructions: &instructions,
        types: None,
    };
    Ok(EmptyProgram(LoadedProgram::load(&spec)?))
}

impl EmptyProgram {
    /// Returns the mean time of a run, in nanoseconds.
    ///
    /// # Errors
    /// A system call failed.
    pub fn time(&self, frame: &[u8], repeat: u32) -> io::Result<u32> {
        Ok(self.0.test_run(TestPacket { bytes: frame, interface: LOOPBACK }, repeat)?.duration_ns)
    }
}

/// Where a port is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelPort {
    /// The index of its interface.
    pub interface: u32,
    /// The index of the interface (TAP) by which user space gets what the kernel does not execute,
    /// and sends by this port; without it such packets just go on.
    pub user: Option<u32>,
}

/// What the kernel did with packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelCounts {
    /// Packets that arrived and stayed in the kernel.
    pub received: u64,
    /// Packets and copies that left.
    pub sent: u64,
    /// Packets and copies that were dropped, by reason.
    pub dropped: BTreeMap<DropReason, u64>,
}

/// A rule that user space executes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InUser {
    /// Its table.
    pub table_id: u8,
    /// Its priority and match.
    pub rank: Rank,
    /// What the kernel has not.
    pub because: String,
}

/// What a test run says of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trial {
    /// Its outcomes.
    Done(Vec<PacketOutcome>),
    /// User space has to execute it. Nothing was counted.
    InUser(ToUser),
}

#[derive(Debug)]
struct CountedFlow {
    table_id: u8,
    rank: Rank,
    serial: u64,
    counted: Counters,
}

#[derive(Debug)]
struct CountedGroup {
    id: u32,
    identity: GroupIdentity,
    /// The place of its counter; those of its buckets follow.
    place: u32,
    counted: Vec<Counters>,
}

/// The operations of a rule, or why user space executes it.
type Operations = Result<Vec<Op>, rows::Reason>;

/// What is made of the rules of a switch.
struct Rules {
    tables: Vec<KernelTable>,
    flows: Vec<CountedFlow>,
    /// What each rule does, or why in user space; and the next table.
    rows: Vec<(Operations, Option<u8>)>,
    groups: Vec<CountedGroup>,
    counters: usize,
}

impl KernelTables {
    /// Makes the program of a switch with these ports, by number.
    ///
    /// # Errors
    /// The whole pipeline needs user space; bpf(2) is not permitted; the kernel refuses the
    /// program.
    pub fn new(switch: &Switch, ports: &BTreeMap<u32, KernelPort>) -> Result<KernelTables, KernelError> {
        KernelTables::make(switch, Some(ports))
    }

    /// Makes a program for [`KernelTables::trial`]: it tells its outcomes and sends nothing.
    ///
    /// # Errors
    /// As for [`KernelTables::new`].
    pub fn for_trials(switch: &Switch) -> Result<KernelTables, KernelError> {
        KernelTables::make(switch, None)
    }

    fn make(switch: &Switch, at: Option<&BTreeMap<u32, KernelPort>>) -> Result<KernelTables, KernelError> {
        let places: BTreeMap<u32, u32> = switch.ports().map(|(number, _)| number).zip(0..).collect();
        let rules = Rules::new(switch, &places)?;
        let most = rules.rows.iter().map(|(ops, _)| ops.as_ref().map_or(0, Vec::len)).max().unwrap_or(0);
        let sizes = MapSizes {
            rows: rules.rows.len(),
            stride: ROW_HEAD as usize + OP as usize * most,
            counters: rules.counters,
            ports: places.len(),
            is_test: at.is_none(),
        };
        let maps = Maps::new(sizes)?;
        for (number, (ops, goto)) in (0u32..).zip(&rules.rows) {
            let row = rows::row(number, ops.as_deref(), *goto, sizes.stride);
            maps.rows.update(&number.to_ne_bytes(), &row)?;
        }
        let mut ports = Vec::new();
        for (number, place) in &places {
            let port = at.and_then(|known| known.get(number));
            let (interface, user) = port.map_or((0, 0), |port| (port.interface, port.user.unwrap_or(0)));
            maps.ports.update(&place.to_ne_bytes(), &u64::from(interface).to_ne_bytes())?;
            let flags = rows::flags(switch, *number);
            if interface != 0 {
                maps.ingress.update(&interface.to_ne_bytes(), &ingress(*number, *place, flags, user))?;
            }
            ports.push((*number, flags, PortCounters::default()));
        }
        let (program, lookups, instructions) = load(&maps, &rules, most)?;
        let in_user = rules.in_user();
        let Rules { tables: known, flows, groups, .. } = rules;
        let misses = known.iter().map(|table| (table.id, 0)).collect();
        let drops = [0; DropReason::ALL.len()];
        Ok(KernelTables {
            program,
            maps,
            _lookups: lookups,
            flows,
            ports,
            groups,
            drops,
            misses,
            credited: BTreeMap::new(),
            in_user,
            instructions,
        })
    }

    /// Returns the rules that user space executes, with the reasons.
    pub fn in_user(&self) -> &[InUser] {
        &self.in_user
    }

    /// Returns the number of instructions of the program.
    pub fn instructions(&self) -> usize {
        self.instructions
    }

    /// Returns the program, to attach it.
    pub fn program(&self) -> &LoadedProgram {
        &self.program
    }

    /// Returns how many packets went to user space, by the reasons of [`ToUser::ALL`].
    pub fn to_user(&self) -> io::Result<[u64; ToUser::ALL.len()]> {
        let mut counts = [0; ToUser::ALL.len()];
        for (count, reason) in counts.iter_mut().zip(ToUser::ALL) {
            [*count] = sums(&self.maps.to_user, reason as u32)?;
        }
        Ok(counts)
    }

    /// Runs a frame that arrives on a port, made by [`KernelTables::for_trials`].
    ///
    /// # Errors
    /// A system call failed: the frame is shorter than an Ethernet header, for example.
    pub fn trial(&mut self, in_port: u32, frame: &[u8]) -> io::Result<Trial> {
        let place = self.ports.iter().position(|(number, ..)| *number == in_port);
        let flags = place.map_or(0, |place| self.ports[place].1);
        self.maps.ingress.update(&[0; 4], &ingress(in_port, place.unwrap_or(0) as u32, flags, 0))?;
        let before = self.to_user()?;
        let run = self.program.test_run(TestPacket { bytes: frame, interface: LOOPBACK }, 1)?;
        let mut outcomes = Vec::new();
        if let Some(ring) = &mut self.maps.ring {
            ring.read(|record| outcomes.extend(outcome(record)));
        }
        if run.verdict == TC_OK as u32 {
            let after = self.to_user()?;
            let more =
                ToUser::ALL.into_iter().find(|reason| after[*reason as usize] != before[*reason as usize]);
            return Ok(Trial::InUser(more.unwrap_or(ToUser::Packet)));
        }
        Ok(Trial::Done(outcomes))
    }

    /// Runs a packet that arrives on an interface as often as this, of which no copy leaves last.
    /// Copies before the last one leave.
    ///
    /// # Errors
    /// A system call failed.
    pub fn time(&self, interface: u32, frame: &[u8], repeat: u32) -> io::Result<TestRun> {
        self.program.test_run(TestPacket { bytes: frame, interface }, repeat)
    }

    /// Adds the counts since the last call to the switch. A flow that has new ones was used `now`.
    ///
    /// # Errors
    /// A system call failed.
    pub fn credit(&mut self, switch: &mut Switch, now: Time) -> io::Result<KernelCounts> {
        let mut matched = std::mem::take(&mut self.credited);
        for (row, flow) in (0u32..).zip(&mut self.flows) {
            if let Some(more) = counts(&self.maps.counters, row, &mut flow.counted)? {
                *matched.entry(flow.table_id).or_default() += more.packets;
                switch.credit(flow.table_id, &flow.rank, flow.serial, more, now);
            }
        }
        for (table_id, before) in &mut self.misses {
            let [misses] = sums(&self.maps.misses, u32::from(*table_id))?;
            let matched = matched.get(table_id).copied().unwrap_or(0);
            switch.credit_hits(*table_id, matched + (misses - *before), matched);
            *before = misses;
        }
        for group in &mut self.groups {
            let more = (group.place..).zip(&mut group.counted);
            let more: io::Result<Vec<Counters>> = more
                .map(|(place, counted)| Ok(counts(&self.maps.counters, place, counted)?.unwrap_or_default()))
                .collect();
            let more = more?;
            switch.credit_group(group.id, &group.identity, more[0], &more[1..]);
        }
        let mut passed = KernelCounts::default();
        for (place, (number, _, before)) in (0u32..).zip(&mut self.ports) {
            let [rx_packets, rx_bytes, tx_packets, tx_bytes, rx_dropped, tx_dropped] =
                sums(&self.maps.port_counters, place)?;
            let now = PortCounters { rx_packets, rx_bytes, tx_packets, tx_bytes, rx_dropped, tx_dropped };
            let more = since(&now, before);
            passed.received += more.rx_packets + more.rx_dropped;
            passed.sent += more.tx_packets;
            switch.credit_port(*number, &more);
            *before = now;
        }
        for (place, (reason, before)) in (0u32..).zip(DropReason::ALL.into_iter().zip(&mut self.drops)) {
            let [dropped] = sums(&self.maps.drops, place)?;
            if dropped != *before {
                passed.dropped.insert(reason, dropped - *before);
            }
            *before = dropped;
        }
        Ok(passed)
    }

    /// Adds the counts of some flows, by table and rank, since they were last added.
    ///
    /// # Errors
    /// A system call failed.
    pub fn credit_flows(&mut self, switch: &mut Switch, flows: &[(u8, Rank)], now: Time) -> io::Result<()> {
        for (row, flow) in (0u32..).zip(&mut self.flows) {
            let is_asked = flows.iter().any(|(table, rank)| *table == flow.table_id && *rank == flow.rank);
            if is_asked && let Some(more) = counts(&self.maps.counters, row, &mut flow.counted)? {
                let hits = self.credited.entry(flow.table_id).or_default();
                *hits += more.packets;
                switch.credit(flow.table_id, &flow.rank, flow.serial, more, now);
            }
        }
        Ok(())
    }
}

impl Rules {
    fn new(switch: &Switch, ports: &BTreeMap<u32, u32>) -> Result<Rules, KernelError> {
        let ids = reachable(switch);
        if ids.len() > TABLES_MAX {
            return Err(KernelError::InUser(format!("it has {} tables, more than {TABLES_MAX}", ids.len())));
        }
        if !switch.bridging().mirrors.is_empty() {
            return Err(KernelError::InUser("it has mirrors".to_owned()));
        }
        let (mut tables, mut flows) = (Vec::new(), Vec::new());
        for id in ids {
            let table = &switch.tables()[usize::from(id)];
            let plan = TablePlan::new(table);
            if let Some(why) = in_user_because(&plan) {
                return Err(KernelError::InUser(format!("table {id} {why}")));
            }
            let first_row = flows.len() as u32;
            flows.extend(plan.rules().iter().map(|rule| CountedFlow {
                table_id: id,
                rank: rule.rank.clone(),
                serial: rule.serial,
                counted: Counters::default(),
            }));
            tables.push(KernelTable { id, first_row, plan });
        }
        let mut counters = flows.len();
        let mut groups = Vec::new();
        for (id, group) in switch.groups() {
            let counted = vec![Counters::default(); 1 + group.buckets.len()];
            let (identity, place) = (group.identity.clone(), counters as u32);
            groups.push(CountedGroup { id, identity, place, counted });
            counters += 1 + group.buckets.len();
        }
        let group_places = groups.iter().map(|group| (group.id, group.place)).collect();
        let mut written = switch.tables().iter().flat_map(fastpath_switch::Table::flows);
        let has_sets = written.any(|(_, flow)| !flow.instructions.write.is_empty());
        let places = Places { switch, ports, groups: &group_places, has_sets };
        let rules = tables.iter().flat_map(|table: &KernelTable| table.plan.rules());
        let rows = rules
            .map(|rule| (rows::operations(&rule.instructions, &places), rule.instructions.goto))
            .collect();
        Ok(Rules { tables, flows, rows, groups, counters })
    }

    fn in_user(&self) -> Vec<InUser> {
        let rules = self.flows.iter().zip(&self.rows);
        let because = rules.filter_map(|(flow, (ops, _))| Some((flow, ops.as_ref().err()?)));
        because
            .map(|(flow, because)| InUser {
                table_id: flow.table_id,
                rank: flow.rank.clone(),
                because: because.clone(),
            })
            .collect()
    }
}

/// Returns what a table needs that the program does not have.
fn in_user_because(plan: &TablePlan) -> Option<&'static str> {
    let wanted = plan.wanted();
    let beyond = wanted[0] >> STANDARD != 0 || wanted[HEADER_WORDS..].iter().any(|word| *word != 0);
    match (plan.has_clauses(), beyond) {
        (true, _) => Some("has conjunctions"),
        (_, true) => Some("matches fields of Open vSwitch that OpenFlow 1.3 does not have"),
        (false, false) => None,
    }
}

/// Returns the tables that packets can reach, in order.
fn reachable(switch: &Switch) -> BTreeSet<u8> {
    let mut ids = BTreeSet::from([0]);
    let mut next = Some(0u8);
    // A rule leads to later tables only.
    while let Some(id) = next {
        let table = &switch.tables()[usize::from(id)];
        ids.extend(table.flows().filter_map(|(_, flow)| flow.instructions.goto));
        next = ids.range(id + 1..).next().copied();
    }
    ids
}

/// Emits and loads the program. Returns it with the maps that it looks up in, and its length.
fn load(maps: &Maps, rules: &Rules, most: usize) -> Result<(LoadedProgram, Lookups, usize), KernelError> {
    let mut parts: Vec<Vec<TablePart<'_>>> = Vec::new();
    for table in &rules.tables {
        parts.push(lookups::parts(&table.plan, parts.iter().map(Vec::len).sum())?);
    }
    let lookups = Lookups::new(&parts)?;
    let mut code = Code::new(maps, &lookups);
    code.start();
    code.parse();
    let written = rules.rows.iter().filter_map(|(ops, _)| ops.as_ref().ok()).flatten();
    let slots = written.filter(|op| op.slot < 64).fold(0u64, |slots, op| slots | 1 << op.slot);
    code.tables(&rules.tables, &parts, slots);
    code.effects();
    code.ends();
    code.enter_function(most as i16);
    code.take_function();
    let len = code.a.len();
    if len > INSTRUCTIONS_MAX {
        let why = format!("its program has {len} instructions, more than {INSTRUCTIONS_MAX}");
        return Err(KernelError::InUser(why));
    }
    let (instructions, _) = code.a.finish();
    let spec = ProgramSpec {
        kind: ProgramKind::TcxIngress,
        name: "fp_tables",
        instructions: &instructions,
        types: None,
    };
    Ok((LoadedProgram::load(&spec)?, lookups, len))
}

impl Code<'_> {
    /// Emits the start: state and port of entry.
    fn start(&mut self) {
        let maps = self.maps;
        let (foreign, known, receives, gone) =
            (self.a.label(), self.a.label(), self.a.label(), self.a.label());
        self.a.mov(R6, R1);
        self.a.mov(R3, 0);
        self.look_up(&maps.state, R3);
        self.a.jump_if(Cond::Eq, R0, 0, foreign);
        self.a.mov(R9, R0);
        match maps.ring {
            Some(_) => self.a.mov(R3, 0),
            None => self.a.load(Word, R3, R6, skb::IFINDEX),
        }
        self.look_up(&maps.ingress, R3);
        self.a.jump_if(Cond::Ne, R0, 0, known);
        self.a.place(foreign);
        self.a.mov(R0, TC_OK);
        self.a.exit();
        self.a.place(known);
        for (at, offset) in [(IN_PORT, 0), (IN_SLOT, 4), (IN_USER, 12), (IN_FLAGS, 8)] {
            self.a.load(Word, R3, R0, offset);
            self.put(at, R3);
        }
        self.a.jump_if(Cond::Set, R3, bits::RECEIVES as i32, receives);
        [SEGMENTS, OUTCOMES, PENDING].iter().for_each(|at| self.put_number(*at, i32::from(*at == SEGMENTS)));
        let absent = self.a.label();
        self.a.jump_if(Cond::Eq, R3, 0, absent);
        self.get(R3, IN_SLOT);
        self.look_up(&maps.port_counters, R3);
        self.a.jump_if(Cond::Eq, R0, 0, gone);
        self.get(R3, SEGMENTS);
        self.add(32, R3, R5);
        self.a.place(absent);
        self.a.place(gone);
        self.drop(DropReason::Ingress);
        let give_up = self.give_up;
        self.a.jump(give_up);
        self.a.place(receives);
    }
}

/// Returns an entry of the map of ingress ports.
fn ingress(number: u32, place: u32, flags: u32, user: u32) -> Vec<u8> {
    [number, place, flags, user].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Returns the counts of an entry since `before`, which becomes the present ones.
fn counts(map: &Map, place: u32, before: &mut Counters) -> io::Result<Option<Counters>> {
    let [packets, bytes] = sums(map, place)?;
    let more = Counters { packets: packets - before.packets, bytes: bytes - before.bytes };
    *before = Counters { packets, bytes };
    Ok((more != Counters::default()).then_some(more))
}

fn since(now: &PortCounters, before: &PortCounters) -> PortCounters {
    PortCounters {
        rx_packets: now.rx_packets - before.rx_packets,
        rx_bytes: now.rx_bytes - before.rx_bytes,
        tx_packets: now.tx_packets - before.tx_packets,
        tx_bytes: now.tx_bytes - before.tx_bytes,
        rx_dropped: now.rx_dropped - before.rx_dropped,
        tx_dropped: now.tx_dropped - before.tx_dropped,
    }
}

/// Reads a record of a test run.
fn outcome(record: &[u8]) -> Option<PacketOutcome> {
    let word = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
    match word(0)? as i32 {
        RECORD_OUTPUT => {
            let head = RECORD_HEAD as usize;
            let mut frame = record.get(head..head + word(8)? as usize)?.to_vec();
            if word(12)? != 0 {
                // The tag that the kernel keeps beside the frame.
                let [high, low] = (word(16)? as u16).to_be_bytes();
                let [first, second] = (word(20)? as u16).to_ne_bytes();
                frame.splice(12..12, [first, second, high, low]);
            }
            Some(PacketOutcome::Output { port: word(4)?, queue: 0, frame })
        }
        RECORD_DROP => DropReason::ALL.get(word(4)? as usize).map(|reason| PacketOutcome::Drop(*reason)),
        _ => None,
    }
}
