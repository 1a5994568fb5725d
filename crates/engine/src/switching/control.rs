//! The control side of a running switch: requests, counters, packet-ins, packet-outs and expiry.

use super::accounting::{Counts, SwitchAccounting, WorkerSummary};
use super::attached::{SharedPort, SwitchPort};
use super::packet_ins::{PacketInLimit, PacketIns, QueuedPacketIn};
use super::port_change::{PortChange, QueueSpecs};
use super::workers::{SwitchWorkers, WorkerReport};
use crate::clock::Clock;
use crate::port::Port;
use fastpath_link::port_queues::QueueCounters;
use fastpath_switch::execute::{CreditPosition, Executor, Forwarder, Outbox, OutboxEntry, PacketInHead};
use fastpath_switch::interp;
use fastpath_switch::key::PipelineFields;
use fastpath_switch::outcome::{LearnedChange, PacketOutcome};
use fastpath_switch::port::{self, LinkState};
use fastpath_switch::{Action, Continuation, Flow, Rank, Refusal, Removed, Switch, Table, Verdict};
use fastpath_units::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Yields to the scheduler at most before a thread takes the lock. A waiting thread needs one.
const YIELDS_MAX: usize = 16;

/// Frames of packet-outs that may wait for the worker.
const INJECTED_MAX: usize = 4096;

/// Flows that may expire while the worker waits.
const EXPIRED_AT_ONCE: usize = 128;

/// Interval at which a thread that waits for the worker looks whether the worker has ended.
const DETACH_CHECK: Duration = Duration::from_millis(50);

/// A handle of a running switch. Clones are handles of the same switch.
#[derive(Clone)]
pub struct Control {
    pub(super) shared: Arc<Shared>,
}

/// What the workers, the builder and the controlling threads share.
pub(super) struct Shared {
    pub(super) core: Mutex<Core>,
    /// Locked for moments only, also while the core is.
    exchange: Mutex<Exchange>,
    pub(super) workers: SwitchWorkers,
    /// Number of controlling threads that wait for the lock. The worker lets them go first between
    /// bursts.
    waiting: AtomicUsize,
    /// Whether the worker waits for the lock.
    burst_waits: AtomicBool,
    /// Wakes the worker of a network in which the switch is a node.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Whether the worker of a network has something to do for the switch.
    is_due: AtomicBool,
    pub(super) stop: AtomicBool,
    pub(super) build: Condvar,
    /// Whether the builder waits, without a time limit, for something to do.
    pub(super) is_builder_idle: AtomicBool,
    /// Whether further changes should wait for the builder.
    pub(super) behind: AtomicBool,
    clock: Clock,
    /// Called when the first packet-in waits.
    notify: Box<dyn Fn() + Send + Sync>,
}

/// The switch and its executor.
pub(super) struct Core {
    pub(super) switch: Switch,
    pub(super) executor: Box<dyn Executor>,
    /// The generation of the switch when the executor last applied its changes.
    pub(super) generation: u64,
    /// Ports with links that have changed since the last query.
    link_changes: BTreeSet<u32>,
    /// Ports that have failed.
    failed: BTreeSet<u32>,
    pub(super) wants_builder: bool,
    /// Whether a controlling thread has freed much memory.
    pub(super) is_memory_free: bool,
}

/// What the workers and controlling threads exchange beside the tables.
pub(super) struct Exchange {
    packet_ins: PacketIns,
    /// Frames of packet-outs, and the ports and queues that they leave by. The first worker sends
    /// them.
    pub(super) injected: VecDeque<(u32, u32, Vec<u8>)>,
    /// The queues of ports that have some, and since when they have them.
    pub(super) queue_specs: Arc<QueueSpecs>,
    /// The counters of queues, by port and queue, as the worker last reported them.
    pub(super) queues: BTreeMap<(u32, u32), QueueCounters>,
    /// The counters of controlling threads, and of the packet-ins of all.
    pub(super) counts: Counts,
    /// The number of ports that each worker polls.
    polled: Vec<usize>,
}

impl Control {
    /// Creates a switch that is ready to run, executed by `executor`, with one worker. `notify` is
    /// called when a packet-in waits, when a link has changed, and when there is room for further
    /// changes.
    ///
    /// The operating system refuses a descriptor.
    pub fn new(
        switch: Switch,
        executor: Box<dyn Executor>,
        limit: PacketInLimit,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Control> {
        Control::with_workers(switch, executor, limit, NonZeroUsize::MIN, notify)
    }

    /// Creates a switch as [`Control::new`] does, with this many workers. The executor should have
    /// as many forwarders.
    ///
    /// The operating system refuses a descriptor.
    pub fn with_workers(
        mut switch: Switch,
        mut executor: Box<dyn Executor>,
        limit: PacketInLimit,
        workers: NonZeroUsize,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Control> {
        executor.update(&mut switch);
        let core = Core {
            generation: switch.generation(),
            switch,
            executor,
            link_changes: BTreeSet::new(),
            failed: BTreeSet::new(),
            wants_builder: true,
            is_memory_free: false,
        };
        let exchange = Exchange {
            packet_ins: PacketIns::new(limit),
            injected: VecDeque::new(),
            queue_specs: Arc::default(),
            queues: BTreeMap::new(),
            counts: Counts::default(),
            polled: vec![0; workers.get()],
        };
        let shared = Shared {
            core: Mutex::new(core),
            exchange: Mutex::new(exchange),
            workers: SwitchWorkers::new(workers)?,
            waiting: AtomicUsize::new(0),
            burst_waits: AtomicBool::new(false),
            wake: OnceLock::new(),
            is_due: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            build: Condvar::new(),
            is_builder_idle: AtomicBool::new(false),
            behind: AtomicBool::new(false),
            clock: Clock::start(),
            notify: Box::new(notify),
        };
        Ok(Control { shared: Arc::new(shared) })
    }

    /// Returns the time of the switch.
    pub fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// Changes the switch. The change is in force for every packet received after this returns.
    pub fn change<R>(&self, change: impl FnOnce(&mut Switch, Time) -> R) -> R {
        self.credit();
        let mut core = self.lock();
        // Groups, meters and ports, for which the time is short.
        self.credit_part(&mut core, CreditPosition::default());
        self.change_locked(&mut core, change)
    }

    /// As [`Control::change`], for changes that remove at most these flows, by table and rank. The
    /// counters of those whose removal is reported are brought up to date. The time this takes does
    /// not grow with the number of flows.
    pub fn change_flows<R>(&self, flows: &[(u8, Rank)], change: impl FnOnce(&mut Switch, Time) -> R) -> R {
        let mut core = self.lock();
        let inner = &mut *core;
        let is_reported = |(table, rank): &&(u8, Rank)| {
            let table = inner.switch.tables().get(usize::from(*table));
            let table = table.filter(|table| !table.reports_none());
            table.and_then(|table| table.flow(rank)).is_some_and(Flow::is_reported)
        };
        let reported: Vec<(u8, Rank)> = flows.iter().filter(is_reported).cloned().collect();
        inner.executor.credit_flows(&mut inner.switch, &reported);
        self.change_locked(&mut core, change)
    }

    fn change_locked<R>(&self, core: &mut Core, change: impl FnOnce(&mut Switch, Time) -> R) -> R {
        let result = change(&mut core.switch, self.now());
        self.bring_up_to_date(core);
        result
    }

    /// Lets the builder return memory to the system that the caller has freed.
    pub fn release_memory(&self) {
        let mut core = self.lock();
        core.is_memory_free = true;
        self.wake_builder(&mut core);
    }

    /// Adds the flows that a packet of a forwarder has learned. They are in force when this
    /// returns.
    pub(super) fn learn(&self, now: Time, out: &Outbox) {
        if out.learned().next().is_none() {
            return;
        }
        let mut core = self.lock_for_burst();
        let due = next_of_learned(&core.switch, out);
        let is_current = core.generation == core.switch.generation();
        let (change, tables) = core.switch.learn_all(now, out.learned());
        match change {
            LearnedChange::None if is_current => core.generation = core.switch.generation(),
            LearnedChange::Flows if is_current => {
                let inner = &mut *core;
                inner.executor.update_flows(&mut inner.switch, &tables);
                self.updated(inner);
            }
            _ => self.bring_up_to_date(&mut core),
        }
        let is_earlier = next_of_learned(&core.switch, out).is_some_and(|at| due.is_none_or(|due| at < due));
        drop(core);
        // Whoever removes flows that have timed out sleeps until then.
        if is_earlier {
            self.notify();
        }
    }

    /// Reads the switch after its counters were brought up to date.
    pub fn read<R>(&self, look: impl FnOnce(&Switch, Time) -> R) -> R {
        self.credit();
        look(&self.lock().switch, self.now())
    }

    /// Brings the counters of the switch up to date, in parts: packets pass in between.
    pub fn credit(&self) {
        let mut position = Some(CreditPosition::default());
        while let Some(from) = position {
            position = self.credit_part(&mut self.lock(), from);
        }
    }

    /// Brings part of the counters of the switch up to date. Returns where to continue.
    fn credit_part(&self, core: &mut Core, from: CreditPosition) -> Option<CreditPosition> {
        let is_first = from == CreditPosition::default();
        // The counters of ports are in the first part. What a port had refused before is already
        // counted as sent.
        let mut refused = Vec::new();
        if is_first {
            let reports = self.shared.workers.reports();
            reports.for_each(|mut report| refused.extend(std::mem::take(&mut report.refused)));
        }
        let next = core.executor.credit_part(&mut core.switch, from);
        for (number, (frames, bytes)) in refused {
            if let Some(port) = core.switch.port_mut(number) {
                // They may be of a port of this number that was removed.
                port.counters.tx_packets = port.counters.tx_packets.saturating_sub(frames);
                port.counters.tx_bytes = port.counters.tx_bytes.saturating_sub(bytes);
                port.counters.tx_dropped += frames;
            }
        }
        next
    }

    /// Waits until every frame that a worker had begun with has been offered to its port. No frame
    /// leaves by an earlier state of the switch after that, except those for which a port has no
    /// room.
    pub fn wait_for_burst(&self) {
        self.shared.workers.wait_for_turns(&self.shared.stop);
    }

    /// Processes an outbox of a worker; `send` receives the frames that leave, and drops are added
    /// to `counts`. Returns true if a packet-in is the first that waits.
    pub(super) fn deliver(
        &self,
        now: Time,
        out: &Outbox,
        counts: &mut Counts,
        mut send: impl FnMut((u32, u32), &[u8]),
    ) -> bool {
        let mut is_first = false;
        for (entry, frame) in out.entries() {
            match entry {
                OutboxEntry::Output { port, queue } => send((*port, *queue), frame),
                OutboxEntry::Controller(head) => {
                    is_first |= self.exchange().packet_in(now, (**head).clone(), frame);
                }
                // Before the next packet.
                OutboxEntry::Learn(_) => {}
                OutboxEntry::Drop(reason) => counts.drop(*reason),
            }
        }
        is_first
    }

    /// Returns what executes the packets of one worker without the lock, if the executor has that
    /// for another worker.
    pub(super) fn forwarder(&self) -> Option<Box<dyn Forwarder>> {
        self.lock().executor.forwarder()
    }

    /// Locks what the threads exchange.
    pub(super) fn exchange(&self) -> MutexGuard<'_, Exchange> {
        self.shared.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the switch without bringing its counters up to date. The time this takes does not grow
    /// with the number of flows.
    pub fn peek<R>(&self, look: impl FnOnce(&Switch) -> R) -> R {
        look(&self.lock().switch)
    }

    /// Returns whether further changes should wait, because many wait already for lookup structures
    /// that are being built. `notify` of [`Control::new`] is called when that has ended. A change
    /// is in force at once in any case, but without waiting the controlling thread may have to
    /// build the structures itself.
    pub fn is_behind(&self) -> bool {
        self.shared.behind.load(Ordering::Acquire)
    }

    /// Executes a packet-out. The worker sends its frames.
    ///
    /// The reason why it is refused.
    pub fn packet_out(&self, in_port: u32, actions: &[Action], frame: &[u8]) -> Result<(), Refusal> {
        self.packet_out_with(&PipelineFields::of_port(in_port), actions, frame)
    }

    /// As [`Control::packet_out`], for a packet with further fields outside of its frame.
    ///
    /// The reason why it is refused.
    pub fn packet_out_with(
        &self,
        fields: &PipelineFields,
        actions: &[Action],
        frame: &[u8],
    ) -> Result<(), Refusal> {
        let mut core = self.lock();
        let now = self.now();
        let core = &mut *core;
        let outcomes = if actions.iter().any(enters_tables) {
            // It passes the meters of the switch, of which the executor may have copies.
            self.credit_part(core, CreditPosition::default());
            let outcomes = interp::packet_out_with(&mut core.switch, now, fields, actions, frame);
            core.executor.update(&mut core.switch);
            outcomes?
        } else {
            interp::packet_out_with(&mut core.switch, now, fields, actions, frame)?
        };
        self.inject(now, outcomes);
        Ok(())
    }

    /// Resumes a packet that was paused. The worker sends its frames.
    pub fn resume(&self, fields: &PipelineFields, continuation: &Continuation, frame: &[u8]) {
        let mut core = self.lock();
        let (now, core) = (self.now(), &mut *core);
        self.credit_part(core, CreditPosition::default());
        let outcomes = interp::resume(&mut core.switch, now, fields, continuation, frame);
        core.executor.update(&mut core.switch);
        self.inject(now, outcomes);
    }

    /// Passes on the outcomes of a packet that came from a controller.
    fn inject(&self, now: Time, outcomes: Vec<PacketOutcome>) {
        let mut exchange = self.exchange();
        exchange.counts.injected += 1;
        let mut is_first = false;
        for outcome in outcomes {
            exchange.counts.outcomes += u64::from(!matches!(outcome, PacketOutcome::Learn(_)));
            match outcome {
                PacketOutcome::Output { port, queue, frame } if exchange.injected.len() < INJECTED_MAX => {
                    exchange.injected.push_back((port, queue, frame));
                }
                PacketOutcome::Output { .. } => exchange.counts.injected_full += 1,
                PacketOutcome::Controller(packet) => {
                    let mut out = Outbox::default();
                    out.push_outcome(&PacketOutcome::Controller(packet));
                    for (entry, frame) in out.entries() {
                        if let OutboxEntry::Controller(head) = entry {
                            is_first |= exchange.packet_in(now, (**head).clone(), frame);
                        }
                    }
                }
                // The interpreter has added it.
                PacketOutcome::Learn(_) => {}
                PacketOutcome::Drop(reason) => exchange.counts.drop(reason),
            }
        }
        drop(exchange);
        self.ring_first();
        if is_first {
            (self.shared.notify)();
        }
    }

    /// Removes the flows that have reached a timeout, some at a time: packets pass in between.
    pub fn expire(&self) -> Vec<Removed> {
        let mut removed = Vec::new();
        loop {
            let mut core = self.lock();
            let now = self.now();
            let due: Vec<(u8, Rank)> = core.switch.due(now).take(EXPIRED_AT_ONCE).collect();
            if due.is_empty() {
                return removed;
            }
            let inner = &mut *core;
            // Whether they were used since then is known only then.
            inner.executor.credit_flows(&mut inner.switch, &due);
            removed.extend(inner.switch.expire_some(now, due.len()));
            self.bring_up_to_date(inner);
        }
    }

    /// Returns when a flow may next expire.
    pub fn next_at(&self) -> Option<Time> {
        self.lock().switch.next_at()
    }

    /// Takes the packet-ins that wait.
    pub fn take_packet_ins(&self) -> VecDeque<QueuedPacketIn> {
        let mut exchange = self.exchange();
        let packets = exchange.packet_ins.take();
        exchange.counts.to_controllers += packets.len() as u64;
        packets
    }

    /// Counts asynchronous messages that controllers missed because they did not read.
    pub fn note_missed(&self, messages: u64) {
        self.exchange().counts.missed_by_controllers += messages;
    }

    /// Sets the link state of a port. The link of a port that failed stays down, whatever its
    /// interface says. Calls `notify` of [`Control::new`] if the state changes.
    pub fn set_link(&self, number: u32, link: LinkState) {
        let mut core = self.lock();
        let link = if core.failed.contains(&number) { LinkState::Down } else { link };
        self.set_link_locked(&mut core, number, link);
    }

    /// Records that a port has failed.
    pub(super) fn fail(&self, number: u32) {
        let mut core = self.lock();
        core.failed.insert(number);
        self.set_link_locked(&mut core, number, LinkState::Down);
    }

    fn set_link_locked(&self, core: &mut Core, number: u32, link: LinkState) {
        if let Some(port) = core.switch.port(number).copied().filter(|port| port.link != link) {
            core.switch.set_port(number, fastpath_switch::Port { link, ..port });
            core.link_changes.insert(number);
            self.bring_up_to_date(core);
            self.notify();
        }
    }

    /// Returns whether a port has failed since it was added.
    pub fn has_failed(&self, number: u32) -> bool {
        self.lock().failed.contains(&number)
    }

    /// Adds a port while the switch runs. Frames pass it once the workers have taken it.
    pub fn attach(&self, number: u32, port: Box<dyn Port>) {
        let port = self.share_port(SwitchPort { number, channels: vec![port] });
        self.change_ports(&PortChange::Attach(Arc::new(port)));
        self.change(|switch, _| switch.set_port(number, fastpath_switch::Port::up()));
    }

    /// Removes a port while the switch runs, and returns it, so that the caller closes it. `None`
    /// if it has failed, or the worker has ended.
    pub fn detach(&self, number: u32) -> Option<Box<dyn Port>> {
        // Nothing passes the port, so that all that it counted is credited before it goes.
        self.change(|switch, _| {
            let closed = port::config::PORT_DOWN;
            let _ = switch.port_mod(number, closed, closed);
        });
        self.wait_for_burst();
        let (sender, receiver) = mpsc::channel();
        let mut exchange = self.exchange();
        Arc::make_mut(&mut exchange.queue_specs).remove(&number);
        exchange.queues.retain(|(port, _), _| *port != number);
        drop(exchange);
        self.change_ports(&PortChange::Detach(number, sender));
        self.change(|switch, _| switch.remove_port(number));
        let removed = loop {
            match receiver.recv_timeout(DETACH_CHECK) {
                Err(RecvTimeoutError::Timeout) if !self.shared.stop.load(Ordering::Acquire) => {}
                removed => break removed.ok(),
            }
        };
        let mut core = self.lock();
        core.failed.remove(&number);
        core.link_changes.remove(&number);
        removed
    }

    /// Gives a port to the worker that polls the fewest ports.
    pub(super) fn share_port(&self, port: SwitchPort) -> SharedPort {
        let mut exchange = self.exchange();
        let least = exchange.polled.iter().enumerate().min_by_key(|(_, count)| **count);
        let owner = least.map_or(0, |(worker, _)| worker);
        exchange.polled[owner] += 1;
        SharedPort::new(port, owner)
    }

    /// Notes that a worker no longer polls a port of its own.
    pub(super) fn release_port(&self, owner: usize) {
        self.exchange().polled[owner] -= 1;
    }

    /// Tells every worker of a change of ports.
    pub(super) fn change_ports(&self, change: &PortChange) {
        let workers = &self.shared.workers;
        // Changes of several threads have the same order for all workers.
        let exchange = self.exchange();
        workers.reports().for_each(|mut report| report.port_changes.push(change.clone()));
        drop(exchange);
        workers.ring_all();
    }

    /// Returns what each worker polls and has received.
    pub fn workers(&self) -> Vec<WorkerSummary> {
        let of = |report: MutexGuard<'_, WorkerReport>| WorkerSummary {
            ports: report.polled.clone(),
            received: report.counts.received,
        };
        self.shared.workers.reports().map(of).collect()
    }

    /// Takes the ports with links that have changed since the last call.
    pub fn take_link_changes(&self) -> BTreeSet<u32> {
        std::mem::take(&mut self.lock().link_changes)
    }

    /// Returns the accounting. Frames that ports hold count as the workers last
    /// reported them.
    pub fn accounting(&self) -> SwitchAccounting {
        let exchange = self.exchange();
        let (mut counts, mut sent, mut dropped) = (exchange.counts.clone(), 0, 0);
        let mut held = (exchange.packet_ins.len() + exchange.injected.len()) as u64;
        for report in self.shared.workers.reports() {
            counts.add(&report.counts);
            sent += report.sent;
            dropped += report.port_dropped;
            held += report.backlog;
        }
        counts.accounting(sent, dropped, held)
    }

    fn bring_up_to_date(&self, core: &mut Core) {
        if core.generation != core.switch.generation() {
            core.executor.update(&mut core.switch);
            self.updated(core);
        }
    }

    /// Notes that the executor has applied all changes.
    fn updated(&self, core: &mut Core) {
        core.generation = core.switch.generation();
        self.shared.behind.store(core.executor.is_behind(), Ordering::Release);
        self.wake_builder(core);
        self.wake_forwarders(core);
    }

    fn wake_builder(&self, core: &mut Core) {
        core.wants_builder = true;
        // A builder that waits for a quiet moment looks by itself.
        if self.shared.is_builder_idle.load(Ordering::Relaxed) {
            self.shared.build.notify_one();
        }
    }

    /// Wakes the workers if replaced memory waits for them.
    pub(super) fn wake_forwarders(&self, core: &Core) {
        if core.executor.waits_for_forwarder() && !self.wake_network() {
            self.shared.workers.ring_all();
        }
    }

    /// Wakes the worker that sends the frames of packet-outs.
    fn ring_first(&self) {
        if !self.wake_network() {
            self.shared.workers.bell(0).ring();
        }
    }

    /// Wakes the worker of the network in which this switch is a node. Returns whether it is one.
    fn wake_network(&self) -> bool {
        let Some(wake) = self.shared.wake.get() else { return false };
        self.shared.is_due.store(true, Ordering::Release);
        wake();
        true
    }

    /// Sets what wakes the worker of the network in which this switch is a node.
    pub(crate) fn wake_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A switch is a node of one network.
        let _ = self.shared.wake.set(Box::new(wake));
    }

    /// Returns the frames of packet-outs, by port, if the worker has something to do.
    pub(crate) fn take_injected(&self) -> Option<VecDeque<(u32, u32, Vec<u8>)>> {
        let is_due =
            self.shared.is_due.load(Ordering::Relaxed) && self.shared.is_due.swap(false, Ordering::AcqRel);
        is_due.then(|| std::mem::take(&mut self.exchange().injected))
    }

    /// Takes the lock for a controlling thread. A worker that waits for it goes first: the lock
    /// itself is not fair, and work in parts would stop the worker for all of them.
    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        for _ in 0..YIELDS_MAX {
            if !self.shared.burst_waits.load(Ordering::Relaxed) {
                break;
            }
            std::thread::yield_now();
        }
        self.shared.waiting.fetch_add(1, Ordering::Relaxed);
        let core = lock(&self.shared.core);
        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
        core
    }

    /// Takes the lock for a worker without a forwarder, which lets waiting controlling threads go
    /// first.
    pub(super) fn lock_for_burst(&self) -> MutexGuard<'_, Core> {
        for _ in 0..YIELDS_MAX {
            if self.shared.waiting.load(Ordering::Relaxed) == 0 {
                break;
            }
            std::thread::yield_now();
        }
        self.shared.burst_waits.store(true, Ordering::Relaxed);
        let core = lock(&self.shared.core);
        self.shared.burst_waits.store(false, Ordering::Relaxed);
        core
    }

    pub(super) fn notify(&self) {
        (self.shared.notify)();
    }

    /// Ends the workers and the builder.
    pub(super) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.workers.ring_all();
        // With the lock held the builder is either before its check of `stop` or waiting.
        let _core = lock(&self.shared.core);
        self.shared.build.notify_all();
    }
}

impl Core {
    /// Passes a frame through the tables, for a worker without a forwarder.
    pub(super) fn execute(&mut self, now: Time, in_port: u32, frame: &mut [u8], out: &mut Outbox) -> Verdict {
        self.executor.execute(&mut self.switch, now, in_port, frame, out)
    }
}

impl Exchange {
    /// Adds a packet-in. Returns true if it is the first that waits.
    fn packet_in(&mut self, now: Time, head: PacketInHead, frame: &[u8]) -> bool {
        self.packet_ins.push(now, head, frame, &mut self.counts)
    }
}

/// Returns when a flow of the tables that packets learn into may next expire.
fn next_of_learned(switch: &Switch, out: &Outbox) -> Option<Time> {
    let tables = out.learned().filter_map(|one| switch.tables().get(usize::from(one.table_id())));
    tables.filter_map(Table::next_at).min()
}

/// Returns whether an action of a packet-out may send the packet through tables, or change them.
fn enters_tables(action: &Action) -> bool {
    matches!(action, Action::Output { port: port::TABLE, .. } | Action::Group(_) | Action::Extension(_))
}

/// Takes the lock. A panic of another thread ends the switch in any case, and the switch is
/// consistent between requests.
pub(super) fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Control")
    }
}

#[cfg(test)]
mod tests;
