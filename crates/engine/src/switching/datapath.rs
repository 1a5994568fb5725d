//! The loop of a worker of a switch: a burst from each of its ports passes the executor, and the
//! frames that leave go to the ports.
//!
//! A forwarder executes packets beside changes of the switch. An executor without one runs behind
//! the lock of the switch, taken once a burst.
//!
//! A frame that leaves moves as a handle. Further copies are made in the pool. Frames that a port
//! does not accept wait, up to a bound; beyond it they are counted as dropped.

use super::accounting::Counts;
use super::attached::{QueuedFrame, SharedPort, SwitchPort};
use super::control::Control;
use super::port_change::PortChange;
use crate::Notice;
use crate::port::{Burst, Port, PortError};
use fastpath_link::port_queues::{Policing, PortQueues, queue_memory};
use fastpath_net::{Frame, FramePool};
use fastpath_switch::execute::Forwarder;
use fastpath_switch::{Outbox, Verdict};
use fastpath_sys::poll::PollSet;
use fastpath_units::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Frames that wait for a port that pushes back.
const BACKLOG_MAX: usize = 1024;
/// The loop spins for this long after the last frame moved.
const LINGER: Duration = Duration::from_us(50);
/// The longest sleep while a port without a descriptor has to be polled.
const POLL_INTERVAL: Duration = Duration::from_us(200);
/// Ports with lower numbers are found in a table.
const LOW: usize = 1 << 16;
/// The longest sleep.
const HEARTBEAT: Duration = Duration::from_ms(500);

/// See the head of this file.
pub struct Datapath {
    control: Control,
    /// The number of this worker.
    worker: usize,
    /// Executes packets without the lock; `None` if the executor needs it.
    forwarder: Option<Box<dyn Forwarder>>,
    ports: PortTable,
    memory: NonZeroUsize,
    burst: Burst,
    out: Outbox,
    poll: PollSet,
    moved_at: Time,
    notice: Notice,
}

/// The ports as a worker sees them, and the place of each by its number.
struct PortTable {
    worker: usize,
    attached: Vec<AttachedPort>,
    places: Vec<Option<usize>>,
    /// The places of ports with numbers from [`LOW`] on.
    high: BTreeMap<u32, usize>,
    pool: FramePool,
    tally: BurstTally,
}

/// What a worker has counted and not reported yet.
#[derive(Default)]
struct BurstTally {
    counts: Counts,
    /// What ports sent and dropped, and frames that were dropped before a port, in all.
    moved: (u64, u64),
    /// Drops not yet subtracted from the port counters of the switch: frames and bytes.
    refused: BTreeMap<u32, (u64, u64)>,
    /// The owners of queues that other frames were added to.
    woken: u64,
}

/// A port and the frames of this worker that wait for it.
struct AttachedPort {
    shared: Arc<SharedPort>,
    backlog: VecDeque<Frame>,
    /// Whether the worker waits for the descriptor of the port.
    is_watched: bool,
    /// Whether the port has frames to be received and no descriptor.
    has_no_fd: bool,
}

impl AttachedPort {
    fn new(shared: Arc<SharedPort>) -> AttachedPort {
        let backlog = VecDeque::with_capacity(BACKLOG_MAX);
        AttachedPort { shared, backlog, is_watched: false, has_no_fd: false }
    }

    fn put(
        &mut self,
        worker: usize,
        pool: &mut FramePool,
        tally: &mut BurstTally,
        frame: (Time, u32, Frame),
    ) {
        let (now, queue, frame) = frame;
        if self.shared.has_queues()
            && self.shared.is_open()
            && let Some(queues) = self.shared.queues().as_mut()
        {
            let is_own = worker == self.shared.owner;
            let frame = if is_own { QueuedFrame::Own(frame) } else { copy_out(pool, frame) };
            match queues.push(now, queue, frame.len(), frame) {
                Ok(()) if is_own => {}
                Ok(()) => tally.woken |= 1 << self.shared.owner,
                Err(frame) => self.refuse(pool, tally, frame),
            }
            return;
        }
        self.put_last(pool, tally, frame);
    }

    /// Queues a frame that has left the queues.
    fn put_last(&mut self, pool: &mut FramePool, tally: &mut BurstTally, frame: Frame) {
        if self.shared.is_open() && self.backlog.len() < BACKLOG_MAX {
            self.backlog.push_back(frame);
        } else {
            self.refuse(pool, tally, QueuedFrame::Own(frame));
        }
    }

    /// Moves what may leave the queues, on the owner.
    fn pop_queues(&mut self, pool: &mut FramePool, tally: &mut BurstTally, now: Time) {
        let shared = Arc::clone(&self.shared);
        let mut queues = shared.queues();
        let Some(queues) = queues.as_mut() else { return };
        queues.pop(now, |frame| match frame {
            Ok(QueuedFrame::Own(frame)) => self.put_last(pool, tally, frame),
            Ok(QueuedFrame::Copied(bytes)) => match pool.insert(&bytes) {
                Some(frame) => self.put_last(pool, tally, frame),
                None => self.refuse(pool, tally, QueuedFrame::Copied(bytes)),
            },
            Err(frame) => self.refuse(pool, tally, frame),
        });
    }

    /// Replaces the queues, on the owner, and drops what waits in the old ones.
    fn set_queues(
        &mut self,
        pool: &mut FramePool,
        tally: &mut BurstTally,
        (now, queues): (Time, Option<PortQueues<QueuedFrame>>),
    ) {
        if let Some(mut old) = self.shared.set_queues(queues) {
            old.drain(now, |frame| self.refuse(pool, tally, frame));
        }
    }

    /// The number of frames that wait, with those in queues on their owner.
    fn waiting(&self, worker: usize) -> u64 {
        let is_counted = worker == self.shared.owner && self.shared.has_queues();
        let queued = if is_counted { self.shared.queues().as_ref().map_or(0, PortQueues::held) } else { 0 };
        self.backlog.len() as u64 + queued
    }

    /// Drops a frame that the port does not take.
    fn refuse(&self, pool: &mut FramePool, tally: &mut BurstTally, frame: QueuedFrame) {
        tally.moved.1 += 1;
        let refused = tally.refused.entry(self.shared.number).or_default();
        *refused = (refused.0 + 1, refused.1 + frame.len() as u64);
        if let QueuedFrame::Own(frame) = frame {
            pool.free(frame);
        }
    }
}

impl Datapath {
    /// Creates the data path of the switch behind `control`, which has one worker, between ports
    /// with these numbers. Frames take at most `memory` bytes. `notice` receives the ports that
    /// fail.
    pub fn new(
        control: &Control,
        ports: Vec<(u32, Box<dyn Port>)>,
        memory: NonZeroUsize,
        notice: Notice,
    ) -> Datapath {
        let channel = |(number, port)| SwitchPort { number, channels: vec![port] };
        let ports = share(control, ports.into_iter().map(channel).collect());
        Datapath::of_worker(control, 0, &ports, memory, notice)
    }

    /// Creates the workers of the switch behind `control`, as many as it has. A port with one
    /// channel goes to the worker that polls the fewest. Frames take at most `memory` bytes in all.
    ///
    /// # Panics
    /// The executor has forwarders, but fewer than there are workers.
    pub fn workers(
        control: &Control,
        ports: Vec<SwitchPort>,
        memory: NonZeroUsize,
        notice: &Notice,
    ) -> Vec<Datapath> {
        let count = control.shared.workers.count();
        let memory = NonZeroUsize::new(memory.get() / count).unwrap_or(NonZeroUsize::MIN);
        let ports = share(control, ports);
        let worker = |worker| Datapath::of_worker(control, worker, &ports, memory, notice.clone());
        let workers: Vec<Datapath> = (0..count).map(worker).collect();
        let forwarders = workers.iter().filter(|worker| worker.forwarder.is_some()).count();
        assert!(forwarders == 0 || forwarders == count, "{count} workers have {forwarders} forwarders");
        workers
    }

    fn of_worker(
        control: &Control,
        worker: usize,
        ports: &[Arc<SharedPort>],
        memory: NonZeroUsize,
        notice: Notice,
    ) -> Datapath {
        let attached = ports.iter().map(|port| AttachedPort::new(Arc::clone(port))).collect();
        let mut datapath = Datapath {
            control: control.clone(),
            worker,
            forwarder: control.forwarder(),
            memory,
            ports: PortTable {
                worker,
                attached,
                places: Vec::new(),
                high: BTreeMap::new(),
                pool: FramePool::new(memory),
                tally: BurstTally::default(),
            },
            burst: Burst::new(),
            out: Outbox::default(),
            poll: PollSet::default(),
            moved_at: control.now(),
            notice,
        };
        datapath.ports.find_places();
        datapath.watch_ports();
        datapath
    }

    /// Runs until the switch is stopped.
    pub(super) fn run(&mut self) {
        while !self.control.shared.stop.load(Ordering::Acquire) {
            if !self.iterate() {
                self.wait();
            }
        }
        self.iterate();
        self.report();
    }

    /// Runs one iteration: a burst from every port of the worker, packet-outs, and the frames that
    /// leave. Returns true if anything moved.
    pub fn iterate(&mut self) -> bool {
        let mut moved = false;
        self.control.shared.workers.begin_turn(self.worker);
        // Also without a packet, so that replaced tables are released.
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.begin(self.control.now());
        }
        for index in 0..self.ports.attached.len() {
            moved |= self.receive(index);
        }
        moved |= self.inject();
        for index in 0..self.ports.attached.len() {
            moved |= self.send(index);
        }
        self.control.shared.workers.end_turn(self.worker);
        if moved {
            self.moved_at = self.control.now();
            self.report();
        }
        moved
    }

    fn receive(&mut self, index: usize) -> bool {
        let attached = &mut self.ports.attached[index];
        if !attached.shared.is_polled_by(self.worker) {
            return false;
        }
        let shared = Arc::clone(&attached.shared);
        let mut channel = shared.channel(self.worker);
        let Some(port) = &mut channel.port else {
            // Another worker has closed it.
            drop(channel);
            if attached.is_watched {
                self.watch_ports();
            }
            return false;
        };
        let result = port.rx_burst(self.control.now(), &mut self.ports.pool, &mut self.burst);
        drop(channel);
        let received = !self.burst.is_empty();
        if received {
            self.execute(&shared);
        }
        if let Err(error) = result {
            self.fail(index, &error);
        }
        received
    }

    /// Executes the burst that arrived on a port.
    fn execute(&mut self, port: &SharedPort) {
        let Datapath { control, forwarder, ports, burst, out, .. } = self;
        let (number, mut is_first) = (port.number, false);
        let mut core = match forwarder {
            Some(_) => None,
            None => Some(control.lock_for_burst()),
        };
        let mut policing = port.policing();
        let mut policing = policing.as_mut().and_then(|policing| policing.as_mut());
        let now = control.now();
        if let Some(forwarder) = forwarder {
            forwarder.begin(now);
            forwarder.prefetch(&mut burst.frames().map(|frame| ports.pool.bytes(frame)));
        }
        for mut frame in burst.drain() {
            ports.tally.counts.received += 1;
            if policing.as_mut().is_some_and(|policing| !policing.admits(now, frame.len())) {
                ports.tally.counts.policed += 1;
                ports.tally.counts.outcomes += 1;
                ports.pool.free(frame);
                continue;
            }
            let bytes = ports.pool.bytes_mut(&mut frame);
            let verdict = match (&mut *forwarder, &mut core) {
                (Some(forwarder), _) => forwarder.execute(number, bytes, out),
                (None, Some(core)) => core.execute(now, number, bytes, out),
                (None, None) => unreachable!("the lock was taken"),
            };
            ports.tally.counts.outcomes += u64::from(verdict != Verdict::Done) + out.fates() as u64;
            match verdict {
                Verdict::Forward { port, queue } => ports.put(port, (now, queue), frame),
                Verdict::Done => ports.pool.free(frame),
            }
            if !out.is_empty() {
                is_first |= ports.deliver(control, now, out);
                if let Some(forwarder) = forwarder {
                    control.learn(now, out);
                    forwarder.begin(now);
                }
                out.clear();
            }
        }
        drop(core);
        if is_first {
            control.notify();
        }
    }

    /// Adds and removes ports, and sends the frames of packet-outs. Returns true if the worker was
    /// told to.
    fn inject(&mut self) -> bool {
        let workers = &self.control.shared.workers;
        if !workers.bell(self.worker).silence() {
            return false;
        }
        let changes = std::mem::take(&mut workers.report(self.worker).port_changes);
        let injected = match self.worker {
            0 => std::mem::take(&mut self.control.exchange().injected),
            _ => VecDeque::new(),
        };
        let has_changes = !changes.is_empty();
        changes.into_iter().for_each(|change| self.change_ports(change));
        let now = self.control.now();
        for (number, queue, bytes) in &injected {
            self.ports.put_copy(*number, (now, *queue), bytes);
        }
        has_changes || !injected.is_empty()
    }

    fn change_ports(&mut self, change: PortChange) {
        let now = self.control.now();
        let ports = &mut self.ports;
        match change {
            PortChange::Attach(port) => ports.attached.push(AttachedPort::new(port)),
            PortChange::Detach(number, closer) => {
                let Some(removed) = ports.remove(number, now) else { return };
                if removed.owner == self.worker {
                    self.control.release_port(removed.owner);
                    // Without a receiver it is closed here.
                    let open = removed.close(&mut ports.tally.moved);
                    open.into_iter().for_each(|port| drop(closer.send(port)));
                }
            }
            PortChange::Queues(number, spec) => {
                ports.of_owner(number, |attached, pool, tally| {
                    attached.set_queues(pool, tally, (now, spec.as_ref().map(PortQueues::new)));
                });
                self.share_memory();
                return;
            }
            PortChange::Policing(number, spec) => {
                return ports.of_owner(number, |attached, _, _| {
                    attached.shared.set_policing(spec.as_ref().map(Policing::new));
                });
            }
        }
        self.ports.find_places();
        self.share_memory();
        self.watch_ports();
    }

    /// Divides the memory for frames in queues among all that this worker empties.
    fn share_memory(&self) {
        let own = || {
            let is_own = |one: &&AttachedPort| one.shared.owner == self.worker && one.shared.has_queues();
            self.ports.attached.iter().filter(is_own)
        };
        let count = |one: &AttachedPort| one.shared.queues().as_ref().map_or(0, PortQueues::count);
        let share = queue_memory(self.memory, own().map(count).sum());
        for one in own() {
            if let Some(queues) = one.shared.queues().as_mut() {
                queues.set_memory_max(share);
            }
        }
    }

    /// Offers a backlog to its port.
    fn send(&mut self, index: usize) -> bool {
        let now = self.control.now();
        let PortTable { worker, attached, pool, tally, .. } = &mut self.ports;
        let attached = &mut attached[index];
        if attached.shared.owner == *worker && attached.shared.has_queues() {
            match attached.shared.is_open() {
                true => attached.pop_queues(pool, tally, now),
                false => attached.set_queues(pool, tally, (now, None)),
            }
        }
        let before = attached.backlog.len();
        if before == 0 {
            return false;
        }
        let shared = Arc::clone(&attached.shared);
        let mut channel = shared.channel(*worker);
        let mut result = Ok(());
        let mut left = before + 1;
        // A call sends a burst; a barrier waits for all that there is room for.
        while let Some(port) = &mut channel.port
            && result.is_ok()
            && (1..left).contains(&attached.backlog.len())
        {
            left = attached.backlog.len();
            result = port.tx_burst(now, pool, &mut attached.backlog);
        }
        let (sent, dropped) = channel.since();
        tally.moved = (tally.moved.0 + sent, tally.moved.1 + dropped);
        let is_closed = channel.port.is_none();
        drop(channel);
        if is_closed {
            // Another worker has closed it.
            for frame in std::mem::take(&mut attached.backlog) {
                attached.refuse(pool, tally, QueuedFrame::Own(frame));
            }
        }
        let moved = attached.backlog.len() < before;
        if let Err(error) = result {
            self.fail(index, &error);
        }
        moved
    }

    /// Removes a port that has failed. Its link is down from now on.
    fn fail(&mut self, index: usize, error: &PortError) {
        let PortTable { attached, pool, tally, .. } = &mut self.ports;
        let attached = &mut attached[index];
        let number = attached.shared.number;
        if !attached.shared.close(&mut tally.moved).is_empty() {
            self.notice.send(&format!("{error}; continuing without this port"));
        }
        if attached.shared.owner == self.worker {
            attached.set_queues(pool, tally, (self.control.now(), None));
        }
        for frame in std::mem::take(&mut attached.backlog) {
            attached.refuse(pool, tally, QueuedFrame::Own(frame));
        }
        self.watch_ports();
        self.control.fail(number);
    }

    /// Adds what the worker has counted to its report, and wakes the workers that it gave frames.
    pub(super) fn report(&mut self) {
        let PortTable { worker, attached, tally, .. } = &mut self.ports;
        let backlog = attached.iter().map(|attached| attached.waiting(*worker)).sum();
        let workers = &self.control.shared.workers;
        let mut report = workers.report(*worker);
        report.counts.add(&std::mem::take(&mut tally.counts));
        (report.sent, report.port_dropped, report.backlog) = (tally.moved.0, tally.moved.1, backlog);
        for (number, (frames, bytes)) in std::mem::take(&mut tally.refused) {
            let refused = report.refused.entry(number).or_default();
            *refused = (refused.0 + frames, refused.1 + bytes);
        }
        drop(report);
        let woken = std::mem::take(&mut tally.woken);
        (0..workers.count())
            .filter(|other| woken >> other & 1 != 0)
            .for_each(|other| workers.bell(other).ring());
        let own = attached.iter().filter(|one| one.shared.owner == *worker && one.shared.has_queues());
        for AttachedPort { shared, .. } in own {
            let counters: Vec<_> = shared.queues().iter().flat_map(PortQueues::counters).collect();
            let counters = counters.into_iter().map(|(queue, counters)| ((shared.number, queue), counters));
            self.control.exchange().queues.extend(counters);
        }
    }

    /// Waits after an iteration in which nothing moved.
    fn wait(&mut self) {
        let now = self.control.now();
        if now.since(self.moved_at) < LINGER {
            std::hint::spin_loop();
            return;
        }
        let (mut longest, mut due) = (HEARTBEAT, None::<Time>);
        for attached in &self.ports.attached {
            let shared = &attached.shared;
            let of_port = match attached.has_no_fd {
                true => shared.channel(self.worker).port.as_ref().and_then(|port| port.next_at()),
                false => None,
            };
            if !attached.backlog.is_empty() || attached.has_no_fd && of_port.is_none() {
                longest = POLL_INTERVAL;
            }
            let has_queues = shared.owner == self.worker && shared.has_queues();
            let of_queues = has_queues.then(|| shared.queues().as_ref()?.next_at()).flatten();
            due = [due, of_port, of_queues].into_iter().flatten().min();
        }
        let sleep = due.map_or(longest, |at| at.since(now).min(longest));
        self.poll.wait(sleep.to_std());
    }

    fn watch_ports(&mut self) {
        self.poll = PollSet::default();
        let workers = &self.control.shared.workers;
        self.poll.add(workers.bell(self.worker).as_fd());
        let mut polled = Vec::new();
        for attached in &mut self.ports.attached {
            (attached.is_watched, attached.has_no_fd) = (false, false);
            if !attached.shared.is_polled_by(self.worker) {
                continue;
            }
            let channel = attached.shared.channel(self.worker);
            let Some(port) = &channel.port else { continue };
            polled.push(attached.shared.number);
            attached.is_watched = true;
            match port.fd() {
                Some(fd) => self.poll.add(fd),
                None => attached.has_no_fd = true,
            }
        }
        workers.report(self.worker).polled = polled;
    }
}

/// Copies a frame out of the pool of a worker, for a queue of another.
fn copy_out(pool: &mut FramePool, frame: Frame) -> QueuedFrame {
    let copy = QueuedFrame::Copied(pool.bytes(&frame).into());
    pool.free(frame);
    copy
}

/// Gives ports to workers.
fn share(control: &Control, ports: Vec<SwitchPort>) -> Vec<Arc<SharedPort>> {
    ports.into_iter().map(|port| Arc::new(control.share_port(port))).collect()
}

impl PortTable {
    /// Finds the place of each port by its number again.
    fn find_places(&mut self) {
        self.places.clear();
        self.high.clear();
        for (place, attached) in self.attached.iter().enumerate() {
            let number = attached.shared.number;
            let low = number as usize;
            if low >= LOW {
                self.high.insert(number, place);
                continue;
            }
            self.places.resize(self.places.len().max(low + 1), None);
            self.places[low] = Some(place);
        }
    }

    #[inline]
    fn place(&self, number: u32) -> Option<usize> {
        let place = self.places.get(number as usize).copied().flatten();
        place.or_else(|| self.high.get(&number).copied())
    }

    /// Removes a port, and drops the frames of this worker that wait for it.
    fn remove(&mut self, number: u32, now: Time) -> Option<Arc<SharedPort>> {
        let place = self.attached.iter().position(|attached| attached.shared.number == number)?;
        let mut removed = self.attached.remove(place);
        let PortTable { worker, pool, tally, .. } = self;
        if removed.shared.owner == *worker {
            removed.set_queues(pool, tally, (now, None));
        }
        tally.moved.1 += removed.backlog.len() as u64;
        removed.backlog.drain(..).for_each(|frame| pool.free(frame));
        Some(removed.shared)
    }

    /// Calls `change` with a port of which this worker is the owner.
    fn of_owner(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut AttachedPort, &mut FramePool, &mut BurstTally),
    ) {
        let PortTable { worker, attached, pool, tally, .. } = self;
        let own = |one: &&mut AttachedPort| one.shared.number == number && one.shared.owner == *worker;
        if let Some(attached) = attached.iter_mut().find(own) {
            change(attached, pool, tally);
        }
    }

    /// Queues a frame for a queue of the port with this number, at a time. A port may have been
    /// removed since the switch decided.
    #[inline]
    fn put(&mut self, number: u32, (now, queue): (Time, u32), frame: Frame) {
        let place = self.place(number);
        let PortTable { worker, attached, pool, tally, .. } = self;
        match place {
            Some(place) => attached[place].put(*worker, pool, tally, (now, queue, frame)),
            None => {
                tally.moved.1 += 1;
                pool.free(frame);
            }
        }
    }

    /// Queues a copy of a frame.
    fn put_copy(&mut self, number: u32, when: (Time, u32), bytes: &[u8]) {
        match self.pool.insert(bytes) {
            Some(frame) => self.put(number, when, frame),
            None => self.tally.counts.pool_full += 1,
        }
    }

    /// Processes the outbox of a packet. Returns true if a packet-in is the first that waits.
    fn deliver(&mut self, control: &Control, now: Time, out: &Outbox) -> bool {
        let mut counts = std::mem::take(&mut self.tally.counts);
        let is_first = control.deliver(now, out, &mut counts, |(number, queue), bytes| {
            self.put_copy(number, (now, queue), bytes);
        });
        counts.add(&self.tally.counts);
        self.tally.counts = counts;
        is_first
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
