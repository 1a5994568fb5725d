//! The receive queues of a NIC: each flow goes to one queue, and each queue has a bound and a most
//! number of packets per second.
//!
//! ```text
//! hash(flow) mod table ─▶ entry ─▶ queue: at most `limit` packets, at most `cap` per second ─▶
//! ```
//!
//! ```toml
//! [[nic]]
//! name = "nic"
//! queues = 16
//! cap = "35Mpps"                    # of each queue; absent: none
//! spread = "hash"                   # receive side scaling; or "even": flow mod queues
//! table = 128                       # entries of the table of receive side scaling
//! queue = { limit = 1024 }          # of each queue
//! ```
//!
//! The hash is a mixing function of the flow's number, as good as the Toeplitz hash of NICs over
//! random addresses. The entries of the table are dealt to the queues in turn, as drivers do. So
//! few flows load the queues unevenly, and one flow has one queue.
//!
//! The cores behind have queues of their own, or poll these: with `scheduler = { kind = "poll" }`
//! core n takes the packets of the queues n, n + cores, and so on.

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType, check_servers, put_servers};
use crate::environment::{Environment, What};
use crate::keys::{read_table, read_word};
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::{Full, Queue, QueueSpec};
use crate::route::OpGroup;
use crate::spec::{Name, PacketRate, out_of_range};
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Duration, Time};

#[derive(Clone, Debug)]
pub(crate) struct NicSpec {
    name: Name,
    queues: u32,
    cap: Option<PacketRate>,
    spread: QueueSpread,
    table: Option<u32>,
    queue: QueueSpec,
}

/// How flows are spread over the queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QueueSpread {
    /// By a hash and a table: receive side scaling.
    #[default]
    Hash,
    /// In turn.
    Even,
}

/// The entries of the table of common NICs.
const TABLE: u32 = 128;

read_table!(NicSpec as "nic", "{ name = \"nic\", queues = 4 }": {
    name,
    queues = 1,
    cap = None,
    spread = QueueSpread::Hash,
    table = None,
    queue = QueueSpec::default(),
});

read_word!(QueueSpread as "a way to spread flows": ["hash" => QueueSpread::Hash, "even" => QueueSpread::Even]);

impl NicSpec {
    /// The queue of a flow.
    fn queue_of(&self, flow: u32) -> u32 {
        match self.spread {
            QueueSpread::Even => flow % self.queues,
            QueueSpread::Hash => (mixed(flow) % u64::from(self.table.unwrap_or(TABLE))) as u32 % self.queues,
        }
    }
}

/// Mixes the bits of a number (the finaliser of SplitMix64, Steele et al. 2014).
fn mixed(number: u32) -> u64 {
    let mut z = (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl UnitType for NicSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, _machine: &Surroundings, remarks: &mut Remarks) {
        check_servers(&self.name, "queues", self.queues, remarks);
        if self.table.is_some_and(|entries| !(1..=65_536).contains(&entries)) {
            out_of_range(&self.name, "table", "from 1 to 65536", remarks);
        }
        if self.table.is_some() && self.spread == QueueSpread::Even {
            let what = format!("table of {} has no effect: the flows are spread in turn", self.name);
            remarks.mistake(self.name.at, what, "remove it, or write spread = \"hash\"");
        }
    }

    fn servers(&self) -> Option<u32> {
        Some(self.queues)
    }

    fn set_servers(&mut self, servers: u32, _ports: &PortsSpec) -> bool {
        put_servers(&mut self.queues, servers)
    }

    fn shares(&self, _work: &[OpGroup]) -> bool {
        false
    }
}

pub(crate) struct Nic {
    spec: NicSpec,
    /// The time between packets of one queue.
    interval: Duration,
    queues: Vec<ReceiveQueue>,
    busy: TimeWeighted,
}

struct ReceiveQueue {
    waiting: Queue,
    /// The packet that it hands over.
    held: Option<u32>,
}

impl Nic {
    fn serve(&mut self, env: &mut Environment, queue: u32, packet: u32) {
        self.queues[queue as usize].held = Some(packet);
        self.busy.set(env.now(), self.busy.level() + 1);
        env.start(packet);
        env.after(self.interval, What::Done, queue);
    }
}

impl UnitModel for Nic {
    type Spec = NicSpec;

    fn new(spec: &NicSpec, _setup: &Setup) -> Nic {
        let queue = |_| ReceiveQueue { waiting: Queue::new(&spec.queue), held: None };
        Nic {
            interval: spec.cap.map_or(Duration::ZERO, PacketRate::interval),
            queues: (0..spec.queues).map(queue).collect(),
            spec: spec.clone(),
            busy: TimeWeighted::default(),
        }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        let queue = self.spec.queue_of(env.packets[packet as usize].flow);
        env.packets[packet as usize].queue = Some(queue as u16);
        if self.queues[queue as usize].held.is_some() {
            let class = env.class(packet);
            return self.queues[queue as usize].waiting.push(env.now(), packet, class);
        }
        self.serve(env, queue, packet);
        true
    }

    fn handle(&mut self, env: &mut Environment, _what: What, queue: u32) {
        let packet = self.queues[queue as usize].held.expect("a busy queue has a packet");
        env.end_leg(packet, queue);
        env.pass_on(packet, Some(queue));
    }

    fn release(&mut self, env: &mut Environment, queue: u32) {
        self.queues[queue as usize].held = None;
        self.busy.set(env.now(), self.busy.level() - 1);
        if let Some(packet) = self.queues[queue as usize].waiting.pop(env.now()) {
            self.serve(env, queue, packet);
        }
    }

    fn full(&self) -> Full {
        self.spec.queue.full
    }

    fn usage(&self, end: Time) -> Use {
        let lengths = || self.queues.iter().map(|queue| &queue.waiting.length);
        Use {
            busy: self.busy.mean(end) / self.queues.len() as f64,
            queue_mean: lengths().map(|length| length.mean(end)).sum(),
            queue_max: lengths().map(TimeWeighted::max).max().unwrap_or(0),
            ..Use::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(text: &str) -> NicSpec {
        crate::keys::of_text(&format!("name = 'n'\n{text}"))
    }

    /// Flow numbers are fixed, so there is no seed. χ² of 7 degrees of freedom exceeds 24.3 with a
    /// probability of 0.1 %.
    #[test]
    fn a_hash_spreads_many_flows_evenly_and_few_flows_unevenly() {
        let spread = |spec: &NicSpec, flows: u32| {
            let mut count = [0u32; 8];
            (0..flows).for_each(|flow| count[spec.queue_of(flow) as usize] += 1);
            count
        };
        let hash = nic("queues = 8");
        let many = spread(&hash, 80_000).map(|n| (f64::from(n) - 1e4).powi(2) / 1e4);
        assert!(many.iter().sum::<f64>() < 24.3, "{many:?}");
        // 16 flows over 8 queues: the fullest queue has 2 with probability 8!·…, so nearly never.
        assert!(spread(&hash, 16).into_iter().max() > Some(2));
        assert_eq!(spread(&nic("queues = 8\nspread = 'even'"), 16), [2; 8]);
        // A table of 8 entries for 6 queues gives two queues twice the flows.
        let uneven = spread(&nic("queues = 6\ntable = 8"), 80_000);
        assert!(uneven[0] > 19_000 && uneven[2] < 11_000, "{uneven:?}");
    }
}
