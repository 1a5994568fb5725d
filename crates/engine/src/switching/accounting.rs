//! Packet accounting of a switch: received + injected + copied = sent + to controllers + dropped +
//! held.

use fastpath_switch::outcome::DropReason;
use serde::Serialize;
use std::collections::BTreeMap;

/// The packet accounting of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SwitchAccounting {
    /// Frames that arrived on ports.
    pub received: u64,
    /// Packet-outs.
    pub injected: u64,
    /// Copies made: by flooding, groups, several outputs.
    pub copied: u64,
    /// Frames that ports accepted.
    pub sent: u64,
    /// Packet-ins handed to the agent.
    pub to_controllers: u64,
    /// Packets dropped, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Frames that wait for a port, and packet-ins that wait for the agent.
    pub held: u64,
    /// Asynchronous messages that controllers missed because they did not read, or that fit no
    /// message. Packets among them were handed to the agent.
    pub missed_by_controllers: u64,
}

/// The part of a worker in the work of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WorkerSummary {
    /// The ports that it polls. A port that is split by flows is polled by every worker.
    pub ports: Vec<u32>,
    /// Frames that it has received.
    pub received: u64,
}

impl SwitchAccounting {
    /// Returns whether the accounting balances.
    pub fn balances(&self) -> bool {
        let dropped: u64 = self.dropped.values().sum();
        self.received + self.injected + self.copied == self.sent + self.to_controllers + dropped + self.held
    }
}

/// Counters of a running switch: those of a worker, or of controlling threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) received: u64,
    pub(super) injected: u64,
    /// Outcomes of received and injected packets, of every kind.
    pub(super) outcomes: u64,
    pub(super) to_controllers: u64,
    dropped: BTreeMap<DropReason, u64>,
    /// Packet-ins above the rate limit, packet-ins that found the ring full, copies that found the
    /// pool full, and packet-outs beyond those that may wait.
    pub(super) packet_in_limit: u64,
    pub(super) packet_in_full: u64,
    pub(super) pool_full: u64,
    pub(super) injected_full: u64,
    /// Frames above the rate of a policer.
    pub(super) policed: u64,
    pub(super) missed_by_controllers: u64,
}

impl Counts {
    /// Adds the counters of another thread.
    pub(super) fn add(&mut self, other: &Counts) {
        self.received += other.received;
        self.injected += other.injected;
        self.outcomes += other.outcomes;
        self.to_controllers += other.to_controllers;
        self.packet_in_limit += other.packet_in_limit;
        self.packet_in_full += other.packet_in_full;
        self.pool_full += other.pool_full;
        self.injected_full += other.injected_full;
        self.policed += other.policed;
        self.missed_by_controllers += other.missed_by_controllers;
        for (reason, count) in &other.dropped {
            *self.dropped.entry(*reason).or_default() += count;
        }
    }

    pub(super) fn drop(&mut self, reason: DropReason) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    /// Returns the accounting, given what ports sent and dropped and what waits.
    pub(super) fn accounting(&self, sent: u64, port_dropped: u64, held: u64) -> SwitchAccounting {
        let more = [
            ("packet-in-limit", self.packet_in_limit),
            ("packet-in-full", self.packet_in_full),
            ("pool-full", self.pool_full),
            ("packet-out-full", self.injected_full),
            ("ingress-policing", self.policed),
            ("port", port_dropped),
        ];
        let reasons = self.dropped.iter().map(|(reason, count)| (reason.name(), *count));
        SwitchAccounting {
            received: self.received,
            injected: self.injected,
            copied: self.outcomes.saturating_sub(self.received + self.injected),
            sent,
            to_controllers: self.to_controllers,
            dropped: reasons.chain(more).filter(|(_, count)| *count > 0).collect(),
            held,
            missed_by_controllers: self.missed_by_controllers,
        }
    }
}
