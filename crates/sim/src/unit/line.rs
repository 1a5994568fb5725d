//! A line: output ports that send whole frames, each at the rate and with the framing of its port:
//! preamble before each frame and gap after it, or cells.
//!
//! ```toml
//! [[line]]
//! name = "wire"
//! queue = { limit = 1024, full = "drop" }   # of each port; these are the defaults
//! ```

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType};
use crate::environment::{Environment, What};
use crate::framing::Framing;
use crate::keys::read_table;
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::{Full, Queue, QueueSpec};
use crate::route::OpGroup;
use crate::spec::Name;
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Bytes, Fraction, Rate, Time};

#[derive(Clone, Debug)]
pub(crate) struct LineSpec {
    name: Name,
    /// The queue of each port.
    queue: QueueSpec,
    /// The factor of the ports' rates: only a trial of a wider line sets it.
    speed: u64,
}

read_table!(LineSpec as "line", "{ name = \"wire\" }": {
    name,
    queue = QueueSpec::default(),
} with { speed: 1 });

impl UnitType for LineSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, _machine: &Surroundings, _remarks: &mut Remarks) {}

    fn widen(&mut self, ports: &PortsSpec) -> Option<String> {
        let before = ports.rate.as_bps() * self.speed;
        self.speed *= 2;
        let [before, after] = [before, 2 * before].map(Rate::from_bps);
        let rest = if ports.differ() { ", and the other ports" } else { "" };
        Some(format!("{} → {}{rest}", before?, after?))
    }

    fn shares(&self, _work: &[OpGroup]) -> bool {
        false
    }
}

pub(crate) struct Line {
    full: Full,
    ports: Vec<Port>,
    busy: TimeWeighted,
}

struct Port {
    rate: Rate,
    framing: Framing,
    queue: Queue,
    sending: Option<u32>,
    /// The end of the gap after the last frame, and the remainder of its division.
    ready: Time,
    carried: Fraction,
}

impl Line {
    fn send(&mut self, env: &mut Environment, number: u32, packet: u32) {
        let port = &mut self.ports[number as usize];
        port.sending = Some(packet);
        self.busy.set(env.now(), self.busy.level() + 1);
        env.start(packet);
        let size = env.packets[packet as usize].size;
        let with_gap = port.framing.with_gap(size);
        let with_preamble = with_gap - u64::from(port.framing.gap);
        let start = env.now().max(port.ready);
        // The remainder is carried over frame and gap together, so a busy port never drifts.
        let carried = if start > port.ready { Fraction::ZERO } else { port.carried };
        let (frame, _) = port.rate.transmission(Bytes(with_preamble), carried);
        let (with_gap, left) = port.rate.transmission(Bytes(with_gap), carried);
        port.ready = start + with_gap;
        port.carried = left;
        env.at(start + frame, What::Done, number);
    }
}

impl UnitModel for Line {
    type Spec = LineSpec;

    fn new(spec: &LineSpec, setup: &Setup) -> Line {
        let faster = |rate: Rate| Rate::from_bps(rate.as_bps() * spec.speed).unwrap_or(Rate::MAX);
        let port = |number| Port {
            rate: faster(setup.ports.of(number).0),
            framing: setup.ports.of(number).1,
            queue: Queue::new(&spec.queue),
            sending: None,
            ready: Time::ZERO,
            carried: Fraction::ZERO,
        };
        Line {
            full: spec.queue.full,
            ports: (0..setup.ports.count).map(port).collect(),
            busy: TimeWeighted::default(),
        }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        let number = env.packets[packet as usize].port_out;
        let port = &mut self.ports[number as usize];
        if port.sending.is_some() {
            return port.queue.push(env.now(), packet, env.class(packet));
        }
        self.send(env, number, packet);
        true
    }

    fn handle(&mut self, env: &mut Environment, _what: What, number: u32) {
        let packet = self.ports[number as usize].sending.expect("a sending port has a packet");
        env.end_leg(packet, number);
        env.pass_on(packet, Some(number));
    }

    fn release(&mut self, env: &mut Environment, number: u32) {
        self.ports[number as usize].sending = None;
        self.busy.set(env.now(), self.busy.level() - 1);
        if let Some(packet) = self.ports[number as usize].queue.pop(env.now()) {
            self.send(env, number, packet);
        }
    }

    fn full(&self) -> Full {
        self.full
    }

    fn usage(&self, end: Time) -> Use {
        let queue_max = self.ports.iter().map(|p| p.queue.length.max()).max().unwrap_or(0);
        let queue_mean = self.ports.iter().map(|p| p.queue.length.mean(end)).sum();
        Use { busy: self.busy.mean(end) / self.ports.len() as f64, queue_mean, queue_max, ..Use::default() }
    }
}
