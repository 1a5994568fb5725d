//! A port of a switch, as its workers share it.
//!
//! ```text
//!            channel: polled by one worker; any worker sends by it, behind its lock
//!  port ─┬─ channel 0 ◀── worker 0            or, split by flows: a channel for each worker
//!        └─ queues: any worker adds frames; the owner lets them leave
//! ```
//!
//! A worker keeps the frames that wait for a channel in a backlog of its own, in their order. All
//! frames of a flow pass one worker, so they leave in order.

use crate::port::{Port, PortCounters};
use fastpath_link::port_queues::{Policing, PortQueues};
use fastpath_net::Frame;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Attempts to take a channel before the core is yielded to other threads, one of which may hold it: a
/// channel is held for a burst, and waking a sleeper takes longer.
const SPINS_MAX: u32 = 1000;

/// A port that a data path is given.
pub struct SwitchPort {
    /// Its number in the switch.
    pub number: u32,
    /// One open port, polled by one of the workers; or one for each worker, between which the
    /// kernel splits what arrives by flows.
    pub channels: Vec<Box<dyn Port>>,
}

/// See the head of this file.
pub(super) struct SharedPort {
    pub(super) number: u32,
    /// The worker that empties the queues, and that polls the channel if it is the only one.
    pub(super) owner: usize,
    channels: Box<[Mutex<PortChannel>]>,
    is_open: AtomicBool,
    has_queues: AtomicBool,
    queues: Mutex<Option<PortQueues<QueuedFrame>>>,
    has_policing: AtomicBool,
    policing: Mutex<Option<Policing>>,
}

/// An open port, and its counters when a worker last looked. Those of two workers share no cache
/// line.
#[repr(align(128))]
pub(super) struct PortChannel {
    /// `None` once it has failed or was removed.
    pub(super) port: Option<Box<dyn Port>>,
    counted: PortCounters,
}

/// A frame in a queue of a port.
#[derive(Debug)]
pub(super) enum QueuedFrame {
    /// In the pool of the port's owner.
    Own(Frame),
    /// The bytes of a frame of another worker.
    Copied(Box<[u8]>),
}

impl QueuedFrame {
    pub(super) fn len(&self) -> usize {
        match self {
            QueuedFrame::Own(frame) => frame.len(),
            QueuedFrame::Copied(bytes) => bytes.len(),
        }
    }
}

impl PortChannel {
    /// Returns the frames that the port has sent and dropped since the last call.
    pub(super) fn since(&mut self) -> (u64, u64) {
        let Some(port) = &mut self.port else { return (0, 0) };
        let before = std::mem::replace(&mut self.counted, port.counters());
        let now = self.counted;
        (now.tx_frames - before.tx_frames, now.tx_dropped() - before.tx_dropped())
    }
}

impl SharedPort {
    pub(super) fn new(port: SwitchPort, owner: usize) -> SharedPort {
        let SwitchPort { number, channels } = port;
        let channel = |port| Mutex::new(PortChannel { port: Some(port), counted: PortCounters::default() });
        SharedPort {
            number,
            owner,
            channels: channels.into_iter().map(channel).collect(),
            is_open: AtomicBool::new(true),
            has_queues: AtomicBool::new(false),
            queues: Mutex::new(None),
            has_policing: AtomicBool::new(false),
            policing: Mutex::new(None),
        }
    }

    /// Returns the channel by which a worker sends, and from which it receives if
    /// [`SharedPort::is_polled_by`] says so.
    pub(super) fn channel(&self, worker: usize) -> MutexGuard<'_, PortChannel> {
        let channel = &self.channels[worker % self.channels.len()];
        loop {
            for _ in 0..SPINS_MAX {
                match channel.try_lock() {
                    Ok(channel) => return channel,
                    Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
                }
            }
            std::thread::yield_now();
        }
    }

    /// Returns whether a worker receives from the port.
    pub(super) fn is_polled_by(&self, worker: usize) -> bool {
        self.channels.len() > 1 || worker == self.owner
    }

    /// Returns whether frames can leave: the port has not failed and was not removed.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Takes the open ports out of the channels, and adds what they have sent and dropped since
    /// workers last looked to `counted`.
    pub(super) fn close(&self, counted: &mut (u64, u64)) -> Vec<Box<dyn Port>> {
        self.is_open.store(false, Ordering::Release);
        let mut ports = Vec::new();
        for worker in 0..self.channels.len() {
            let mut channel = self.channel(worker);
            let (sent, dropped) = channel.since();
            *counted = (counted.0 + sent, counted.1 + dropped);
            ports.extend(channel.port.take());
        }
        ports
    }

    /// Returns whether frames wait in queues before they leave.
    #[inline]
    pub(super) fn has_queues(&self) -> bool {
        self.has_queues.load(Ordering::Acquire)
    }

    pub(super) fn queues(&self) -> MutexGuard<'_, Option<PortQueues<QueuedFrame>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the queues; what waits in the old ones is to be dropped by the caller.
    pub(super) fn set_queues(
        &self,
        queues: Option<PortQueues<QueuedFrame>>,
    ) -> Option<PortQueues<QueuedFrame>> {
        let mut present = self.queues();
        self.has_queues.store(queues.is_some(), Ordering::Release);
        std::mem::replace(&mut *present, queues)
    }

    /// Returns the policer of what arrives, if the port has one.
    pub(super) fn policing(&self) -> Option<MutexGuard<'_, Option<Policing>>> {
        let is_bounded = self.has_policing.load(Ordering::Acquire);
        is_bounded.then(|| self.policing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_policing(&self, policing: Option<Policing>) {
        let mut present = self.policing.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_policing.store(policing.is_some(), Ordering::Release);
        *present = policing;
    }
}
