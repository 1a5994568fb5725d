//! The loop of a switch: a burst from each port passes the executor, and the frames that leave go
//! to the ports.
//!
//! A forwarder executes packets beside changes of the switch. An executor without one runs behind
//! the lock of the switch, taken once a burst.
//!
//! A frame that leaves moves as a handle. Further copies are made in the pool. Frames that a port
//! does not accept wait, up to a bound; beyond it they are counted as dropped.

use super::control::Control;
use super::port_change::PortChange;
use super::port_queues::{Policing, PortQueues, queue_memory};
use crate::Notice;
use crate::port::{Burst, Port, PortCounters, PortError};
use fastpath_net::{Frame, FramePool};
use fastpath_switch::execute::Forwarder;
use fastpath_switch::{Outbox, Verdict};
use fastpath_sys::poll::PollSet;
use fastpath_units::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
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
    /// Executes packets without the lock; `None` if the executor needs it.
    forwarder: Option<Box<dyn Forwarder>>,
    ports: PortTable,
    /// What removed ports sent and dropped: frames.
    departed: (u64, u64),
    pool: FramePool,
    memory: NonZeroUsize,
    burst: Burst,
    out: Outbox,
    poll: PollSet,
    moved_at: Time,
    notice: Notice,
}

/// The ports, and the place of each by its number.
#[derive(Default)]
struct PortTable {
    attached: Vec<AttachedPort>,
    places: Vec<Option<usize>>,
    /// The places of ports with numbers from [`LOW`] on.
    high: BTreeMap<u32, usize>,
    /// Frames for ports that have been removed.
    lost: u64,
}

/// A port and the frames that wait for it.
struct AttachedPort {
    /// Its number in the switch.
    number: u32,
    /// `None` once it has failed.
    port: Option<Box<dyn Port>>,
    backlog: VecDeque<Frame>,
    /// Its queues, before the backlog.
    queues: Option<PortQueues<Frame>>,
    policing: Option<Policing>,
    /// The counters of a port that has failed, and of frames dropped before the port.
    counters: PortCounters,
    /// Drops not yet added to the port counters of the switch: frames and bytes.
    refused: (u64, u64),
}

impl AttachedPort {
    fn new(number: u32, port: Box<dyn Port>) -> AttachedPort {
        AttachedPort {
            number,
            port: Some(port),
            backlog: VecDeque::with_capacity(BACKLOG_MAX),
            queues: None,
            policing: None,
            counters: PortCounters::default(),
            refused: (0, 0),
        }
    }

    /// The counters of the port, with those of frames dropped before it.
    fn all_counters(&mut self) -> PortCounters {
        let mut counters = self.counters;
        if let Some(port) = &mut self.port {
            counters += port.counters();
        }
        counters
    }

    fn put(&mut self, pool: &mut FramePool, (now, queue): (Time, u32), frame: Frame) {
        let len = frame.len();
        match &mut self.queues {
            Some(queues) if self.port.is_some() => {
                if let Err(frame) = queues.push(now, queue, len, frame) {
                    self.refuse(pool, frame);
                }
            }
            _ => self.put_last(pool, frame),
        }
    }

    /// Queues a frame that has left the queues.
    fn put_last(&mut self, pool: &mut FramePool, frame: Frame) {
        if self.port.is_some() && self.backlog.len() < BACKLOG_MAX {
            self.backlog.push_back(frame);
        } else {
            self.refuse(pool, frame);
        }
    }

    /// Moves what may leave the queues.
    fn pop_queues(&mut self, pool: &mut FramePool, now: Time) {
        let Some(mut queues) = self.queues.take() else { return };
        queues.pop(now, |frame| match frame {
            Ok(frame) => self.put_last(pool, frame),
            Err(frame) => self.refuse(pool, frame),
        });
        self.queues = Some(queues);
    }

    /// Ends the queues, and drops what waits in them.
    fn end_queues(&mut self, pool: &mut FramePool, now: Time) {
        if let Some(mut queues) = self.queues.take() {
            queues.drain(now, |frame| self.refuse(pool, frame));
        }
    }

    /// The number of frames that wait.
    fn waiting(&self) -> u64 {
        self.backlog.len() as u64 + self.queues.as_ref().map_or(0, PortQueues::held)
    }

    /// Drops a frame that the port does not take.
    fn refuse(&mut self, pool: &mut FramePool, frame: Frame) {
        if self.port.is_some() {
            self.counters.tx_full += 1;
        } else {
            self.counters.tx_down += 1;
        }
        self.refused.0 += 1;
        self.refused.1 += frame.len() as u64;
        pool.free(frame);
    }
}

impl Datapath {
    /// Creates the data path of the switch behind `control`, between ports with these numbers.
    /// Frames take at most `memory` bytes. `notice` receives the ports that fail.
    pub fn new(
        control: &Control,
        ports: Vec<(u32, Box<dyn Port>)>,
        memory: NonZeroUsize,
        notice: Notice,
    ) -> Datapath {
        let mut datapath = Datapath {
            control: control.clone(),
            forwarder: control.forwarder(),
            ports: PortTable::default(),
            departed: (0, 0),
            pool: FramePool::new(memory),
            memory,
            burst: Burst::new(),
            out: Outbox::default(),
            poll: PollSet::default(),
            moved_at: control.now(),
            notice,
        };
        datapath.ports.attached =
            ports.into_iter().map(|(number, port)| AttachedPort::new(number, port)).collect();
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
        self.update_accounting();
    }

    /// Runs one iteration: a burst from every port, packet-outs, and the frames that leave. Returns
    /// true if anything moved.
    pub fn iterate(&mut self) -> bool {
        let mut moved = false;
        self.control.begin_turn();
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
        self.control.end_turn();
        if moved {
            self.moved_at = self.control.now();
            self.update_accounting();
        }
        moved
    }

    fn receive(&mut self, index: usize) -> bool {
        let attached = &mut self.ports.attached[index];
        let number = attached.number;
        let Some(port) = &mut attached.port else { return false };
        let result = port.rx_burst(self.control.now(), &mut self.pool, &mut self.burst);
        let received = !self.burst.is_empty();
        if received {
            self.execute(number);
        }
        if let Err(error) = result {
            self.fail(index, &error);
        }
        received
    }

    /// Executes the burst that arrived on a port.
    fn execute(&mut self, number: u32) {
        let Datapath { control, forwarder, ports, pool, burst, out, .. } = self;
        let (mut received, mut outcomes, mut policed, mut is_first) = (0, 0, 0, false);
        let mut core = match forwarder {
            Some(_) => None,
            None => Some(control.lock_for_burst()),
        };
        let now = control.now();
        if let Some(forwarder) = forwarder {
            forwarder.begin(now);
        }
        let mut policing = ports.policing_of(number);
        for mut frame in burst.drain() {
            received += 1;
            if policing.as_mut().is_some_and(|policing| !policing.admits(now, frame.len())) {
                (policed, outcomes) = (policed + 1, outcomes + 1);
                pool.free(frame);
                continue;
            }
            let bytes = pool.bytes_mut(&mut frame);
            let verdict = match (&mut *forwarder, &mut core) {
                (Some(forwarder), _) => forwarder.execute(number, bytes, out),
                (None, Some(core)) => core.execute(now, number, bytes, out),
                (None, None) => unreachable!("the lock was taken"),
            };
            outcomes += u64::from(verdict != Verdict::Done) + out.fates() as u64;
            match verdict {
                Verdict::Forward { port, queue } => ports.put(pool, port, (now, queue), frame),
                Verdict::Done => pool.free(frame),
            }
            if !out.is_empty() {
                let (mut exchange, mut full) = (control.exchange(), 0);
                is_first |= exchange.deliver(now, out, |(number, queue), bytes| match pool.insert(bytes) {
                    Some(copy) => ports.put(pool, number, (now, queue), copy),
                    None => full += 1,
                });
                exchange.counts.pool_full += full;
                drop(exchange);
                if let Some(forwarder) = forwarder {
                    control.learn(now, out);
                    forwarder.begin(now);
                }
                out.clear();
            }
        }
        drop(core);
        ports.return_policing(number, policing);
        let mut exchange = control.exchange();
        exchange.counts.received += received;
        exchange.counts.policed += policed;
        exchange.counts.outcomes += outcomes;
        drop(exchange);
        if is_first {
            control.notify();
        }
    }

    /// Adds and removes ports, and sends the frames of packet-outs.
    fn inject(&mut self) -> bool {
        if !self.control.shared.bell.silence() {
            return false;
        }
        let mut exchange = self.control.exchange();
        let injected = std::mem::take(&mut exchange.injected);
        let changes = std::mem::take(&mut exchange.port_changes);
        drop(exchange);
        changes.into_iter().for_each(|change| self.change_ports(change));
        let now = self.control.now();
        for (number, queue, bytes) in &injected {
            match self.pool.insert(bytes) {
                Some(frame) => self.ports.put(&mut self.pool, *number, (now, *queue), frame),
                None => self.control.exchange().counts.pool_full += 1,
            }
        }
        !injected.is_empty()
    }

    fn change_ports(&mut self, change: PortChange) {
        match change {
            PortChange::Attach(number, port) => self.ports.attached.push(AttachedPort::new(number, port)),
            PortChange::Detach(number, closer) => {
                let place = self.ports.attached.iter().position(|attached| attached.number == number);
                let Some(place) = place else { return };
                let mut removed = self.ports.attached.remove(place);
                removed.end_queues(&mut self.pool, self.control.now());
                let counters = removed.all_counters();
                self.departed.0 += counters.tx_frames;
                self.departed.1 += counters.tx_dropped();
                self.ports.lost += removed.backlog.len() as u64;
                removed.backlog.drain(..).for_each(|frame| self.pool.free(frame));
                if let Some(port) = removed.port {
                    // Without a receiver it is closed here.
                    let _ = closer.send(port);
                }
            }
            PortChange::Queues(number, spec) => {
                let now = self.control.now();
                if let Some(attached) = self.ports.attached.iter_mut().find(|one| one.number == number) {
                    attached.end_queues(&mut self.pool, now);
                    attached.queues = spec.as_ref().map(PortQueues::new);
                }
                self.share_memory();
                return;
            }
            PortChange::Policing(number, spec) => {
                if let Some(attached) = self.ports.attached.iter_mut().find(|one| one.number == number) {
                    attached.policing = spec.as_ref().map(Policing::new);
                }
                return;
            }
        }
        self.ports.find_places();
        self.share_memory();
        self.watch_ports();
    }

    /// Divides the memory for frames in queues among all of them.
    fn share_memory(&mut self) {
        let queues = || self.ports.attached.iter().filter_map(|attached| attached.queues.as_ref());
        let share = queue_memory(self.memory, queues().map(PortQueues::count).sum());
        let queues = self.ports.attached.iter_mut().filter_map(|attached| attached.queues.as_mut());
        queues.for_each(|queues| queues.set_memory_max(share));
    }

    /// Offers a backlog to its port.
    fn send(&mut self, index: usize) -> bool {
        let attached = &mut self.ports.attached[index];
        if attached.queues.is_some() {
            attached.pop_queues(&mut self.pool, self.control.now());
        }
        let before = attached.backlog.len();
        let (Some(port), true) = (&mut attached.port, before > 0) else { return false };
        let result = port.tx_burst(self.control.now(), &mut self.pool, &mut attached.backlog);
        let moved = attached.backlog.len() < before;
        if let Err(error) = result {
            self.fail(index, &error);
        }
        moved
    }

    /// Removes a port that has failed. Its link is down from now on.
    fn fail(&mut self, index: usize, error: &PortError) {
        let attached = &mut self.ports.attached[index];
        if let Some(mut port) = attached.port.take() {
            attached.counters += port.counters();
            self.notice.send(&format!("{error}; continuing without this port"));
        }
        attached.end_queues(&mut self.pool, self.control.now());
        for frame in std::mem::take(&mut attached.backlog) {
            attached.refuse(&mut self.pool, frame);
        }
        let number = attached.number;
        self.watch_ports();
        self.control.fail(number);
    }

    /// Adds the counters of the ports to the accounting.
    fn update_accounting(&mut self) {
        let (mut sent, mut dropped) = self.departed;
        dropped += self.ports.lost;
        let mut backlog = 0;
        let mut exchange = self.control.exchange();
        for attached in &mut self.ports.attached {
            let counters = attached.all_counters();
            sent += counters.tx_frames;
            dropped += counters.tx_dropped();
            backlog += attached.waiting();
            if let Some(queues) = &attached.queues {
                let counters =
                    queues.counters().map(|(queue, counters)| ((attached.number, queue), counters));
                exchange.queues.extend(counters);
            }
            if attached.refused != (0, 0) {
                let (frames, bytes) = std::mem::take(&mut attached.refused);
                let refused = exchange.refused.entry(attached.number).or_default();
                *refused = (refused.0 + frames, refused.1 + bytes);
            }
        }
        (exchange.sent, exchange.port_dropped, exchange.backlog) = (sent, dropped, backlog);
    }

    /// Waits after an iteration in which nothing moved.
    fn wait(&mut self) {
        let now = self.control.now();
        if now.since(self.moved_at) < LINGER {
            std::hint::spin_loop();
            return;
        }
        let must_poll = |attached: &AttachedPort| {
            let has_no_signal = |port: &dyn Port| port.fd().is_none() && port.next_at().is_none();
            !attached.backlog.is_empty() || attached.port.as_deref().is_some_and(has_no_signal)
        };
        let longest = if self.ports.attached.iter().any(must_poll) { POLL_INTERVAL } else { HEARTBEAT };
        let of_port = |attached: &AttachedPort| attached.port.as_deref()?.next_at();
        let of_queues = |attached: &AttachedPort| attached.queues.as_ref()?.next_at();
        let attached = self.ports.attached.iter();
        let due = attached.flat_map(|attached| [of_port(attached), of_queues(attached)]).flatten().min();
        let sleep = due.map_or(longest, |at| at.since(now).min(longest));
        self.poll.wait(sleep.to_std());
    }

    fn watch_ports(&mut self) {
        self.poll = PollSet::default();
        self.poll.add(self.control.shared.bell.as_fd());
        for port in self.ports.attached.iter().filter_map(|attached| attached.port.as_deref()) {
            if let Some(fd) = port.fd() {
                self.poll.add(fd);
            }
        }
    }
}

impl PortTable {
    /// Finds the place of each port by its number again.
    fn find_places(&mut self) {
        self.places.clear();
        self.high.clear();
        for (place, attached) in self.attached.iter().enumerate() {
            let low = attached.number as usize;
            if low >= LOW {
                self.high.insert(attached.number, place);
                continue;
            }
            self.places.resize(self.places.len().max(low + 1), None);
            self.places[low] = Some(place);
        }
    }

    fn place(&self, number: u32) -> Option<usize> {
        let place = self.places.get(number as usize).copied().flatten();
        place.or_else(|| self.high.get(&number).copied())
    }

    /// Takes the policer of a port, until it is returned.
    fn policing_of(&mut self, number: u32) -> Option<Policing> {
        let place = self.place(number)?;
        self.attached[place].policing.take()
    }

    fn return_policing(&mut self, number: u32, policing: Option<Policing>) {
        if let (Some(policing), Some(place)) = (policing, self.place(number)) {
            self.attached[place].policing = Some(policing);
        }
    }

    /// Queues a frame for a queue of the port with this number, at a time. A port may have been
    /// removed since the switch decided.
    fn put(&mut self, pool: &mut FramePool, number: u32, when: (Time, u32), frame: Frame) {
        match self.place(number) {
            Some(place) => self.attached[place].put(pool, when, frame),
            None => {
                self.lost += 1;
                pool.free(frame);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::NullPort;
    use crate::switching::PacketInLimit;
    use fastpath_switch::port::LinkState;
    use fastpath_switch::{Limits, Planned, Switch};

    /// A port on a removed interface.
    struct Gone;

    impl Port for Gone {
        fn name(&self) -> &str {
            "gone"
        }

        fn rx_burst(&mut self, _: Time, _: &mut FramePool, _: &mut Burst) -> Result<(), PortError> {
            Err(PortError::Gone { name: self.name().to_owned() })
        }

        fn tx_burst(&mut self, _: Time, _: &mut FramePool, _: &mut VecDeque<Frame>) -> Result<(), PortError> {
            Ok(())
        }

        fn counters(&mut self) -> PortCounters {
            PortCounters::default()
        }
    }

    #[test]
    fn a_port_that_failed_is_reported_and_stays_down_whatever_its_interface_says() {
        let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
        (1..=2).for_each(|number| switch.set_port(number, fastpath_switch::Port::up()));
        let executor = Box::new(Planned::new(&mut switch));
        let control = Control::new(switch, executor, PacketInLimit::default(), || ()).unwrap();
        let ports: Vec<(u32, Box<dyn Port>)> = vec![(1, Box::new(Gone)), (2, Box::new(NullPort::new("p2")))];
        let mut datapath =
            Datapath::new(&control, ports, NonZeroUsize::new(1 << 16).unwrap(), Notice::none());
        let links = || control.read(|switch, _| [1, 2].map(|number| switch.port(number).unwrap().link));
        let changes = || control.take_link_changes().into_iter().collect::<Vec<_>>();
        datapath.iterate();
        assert_eq!((links(), changes()), ([LinkState::Down, LinkState::Up], vec![1]));
        for link in [LinkState::Up, LinkState::Down, LinkState::Up] {
            control.set_link(1, link);
            control.set_link(2, link);
        }
        assert_eq!((links(), changes()), ([LinkState::Down, LinkState::Up], vec![2]));
        assert!(changes().is_empty());
    }

    #[test]
    fn ports_come_and_go_while_frames_move_and_the_accounting_balances() {
        use crate::port::Memory;
        use fastpath_switch::{Action, FlowMod, Instructions, Match, port};
        let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
        let flood = Instructions::apply([Action::output(port::FLOOD)]);
        switch.flow_mod(Time::ZERO, &FlowMod::add(0, 1, Match::any(), flood)).unwrap();
        let executor = Box::new(Planned::new(&mut switch));
        let control = Control::new(switch, executor, PacketInLimit::default(), || ()).unwrap();
        let mut datapath =
            Datapath::new(&control, Vec::new(), NonZeroUsize::new(1 << 16).unwrap(), Notice::none());
        let mut ends = Vec::new();
        for number in [1, 2, port::LOCAL] {
            let (port, end) = Memory::new("p", 1 << 16);
            ends.push(end);
            control.attach(number, Box::new(port));
        }
        datapath.iterate();
        ends[0].send([&[0; 60][..]]);
        datapath.iterate();
        assert_eq!([1, 2].map(|end: usize| ends[end].recv(9, |_| ())), [1, 0], "LOCAL is not flooded to");
        let leaves = std::thread::spawn({
            let control = control.clone();
            move || control.detach(2)
        });
        while !leaves.is_finished() {
            datapath.iterate();
        }
        assert!(leaves.join().unwrap().is_some());
        assert!(control.read(|switch, _| switch.port(2).is_none()));
        ends[0].send([&[0; 60][..]]);
        datapath.iterate();
        assert_eq!(ends[1].recv(9, |_| ()), 0);
        let (port, end) = Memory::new("p", 1 << 16);
        control.attach(2, Box::new(port));
        datapath.iterate();
        ends[0].send([&[0; 60][..]]);
        datapath.iterate();
        assert_eq!(end.recv(9, |_| ()), 1);
        let accounting = control.accounting();
        assert!(accounting.balances() && accounting.sent == 2, "{accounting:?}");
        control.stop();
        assert!(control.detach(1).is_none(), "the worker has ended");
    }
}
