//! A link: a [`Pipe`] of `fastpath-link`, the same code that carries frames in a network.
//!
//! ```toml
//! [[link]]
//! name = "link"
//! per = "flow"                  # a link for each flow; or "port"; absent: one link for all frames
//! rate = "10Mbit"               # this key and the following are those of a link of a network spec
//! delay = "10ms"
//! queue = { kind = "codel" }
//! ```
//!
//! The keys of a network spec are rate, overhead, delay, loss, queue, jitter, reorder, duplicate,
//! corrupt, slots, state and preset. Their syntax and their defaults are the same here.
//!
//! One direction is simulated: frames enter the link at its near end and leave at the far end. A
//! link never blocks the unit before it. A frame for which there is no room is dropped, as the
//! queue discipline decides. A copy that `duplicate` makes is a packet of its own and visits the
//! rest of the route.
//!
//! Link number n of the first `[[link]]` draws from the random stream of direction `a_to_b` of link
//! number n of a network with the same seed. The same frames therefore leave at the same picosecond
//! in both (`tests/link.rs`).
//!
//! - A frame's length in the link is its size without the FCS of 4 bytes, as in a network.
//! - The five-tuple hash is the flow number, and the traffic class is 0.
//! - Traces (`trace`, `group`) and `mtu` belong to networks only.

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType};
use crate::environment::{Environment, What};
use crate::keys::{self, FileValue, read_word};
use crate::outcome::{LinkUse, Use};
use crate::ports::PortsSpec;
use crate::queue::Full;
use crate::route::OpGroup;
use crate::spec::Name;
use crate::stats::TimeWeighted;
use fastpath_link::{Alteration, Counters, DropReason, Fate, Packet, Pipe, PipeSpec, Verdict};
use fastpath_text::fields::Field;
use fastpath_text::mistake::{Mistake, Remarks};
use fastpath_units::{Bytes, Fraction, Rate, Rng, Time};
use serde_json::Value;

/// The frame check sequence, which a link does not count.
const FCS: u32 = 4;
/// The random streams of one `[[link]]`: two for each of its links, as in a network.
const STREAMS: u64 = 1 << 33;

#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    name: Name,
    per: Per,
    /// The values under the keys of a network spec: byte offset, key and value.
    values: Vec<(usize, String, Value)>,
    /// What the values mean; set by the check.
    pipe: Box<PipeSpec>,
}

/// The frames that share one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Per {
    /// All frames that visit the unit.
    #[default]
    Unit,
    /// The frames for one output port.
    Port,
    /// The frames of one flow.
    Flow,
}

read_word!(Per as "what shares one link": ["unit" => Per::Unit, "port" => Per::Port, "flow" => Per::Flow]);

impl FileValue for LinkSpec {
    const EXAMPLE: &'static str = "{ name = \"link\", rate = \"10Mbit\" }";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<LinkSpec> {
        let mut fields = keys::table(field, "link", LinkSpec::EXAMPLE, remarks)?;
        let name = keys::value(&mut fields, "name", None, remarks);
        let per = keys::value(&mut fields, "per", Some(Per::Unit), remarks);
        let mut values = Vec::new();
        for key in ["preset"].iter().chain(fastpath_spec::keys()) {
            let Some(field) = fields.get(key) else { continue };
            values
                .extend(field.json("\"10Mbit\"", remarks).map(|value| (field.at, (*key).to_owned(), value)));
        }
        keys::finish(fields, remarks);
        // In the order of the file.
        values.sort_by_key(|(at, ..)| *at);
        Some(LinkSpec { name: name?, per: per?, values, pipe: Box::default() })
    }
}

impl LinkSpec {
    /// Writes the link as the only one of a network of two hosts, in the canonical form (JSON).
    /// Each value has a line, and the byte offset of its place in the machine file is returned for
    /// each line.
    fn as_network(&self) -> (String, Vec<usize>) {
        let head = "{ \"nodes\": [{ \"kind\": \"host\", \"name\": \"a\" }, { \"kind\": \"host\", \"name\": \"b\" }], ";
        let mut text = format!("{head}\"links\": [{{ \"between\": [\"a\", \"b\"]");
        let mut places = vec![self.name.at];
        for (at, key, value) in &self.values {
            text += &format!(",\n\"{key}\": {value}");
            places.push(*at);
        }
        (text + " }] }", places)
    }
}

impl UnitType for LinkSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, _machine: &Surroundings, remarks: &mut Remarks) {
        let (text, places) = self.as_network();
        match fastpath_spec::read_json(&text, fastpath_spec::NO_FILES) {
            Ok((spec, _)) => *self.pipe = spec.topology.links[0].pipes[0].clone(),
            Err(mistakes) => {
                for Mistake { line, what, instead, .. } in mistakes {
                    remarks.mistake(places.get(line - 1).copied().unwrap_or(self.name.at), what, instead);
                }
            }
        }
    }

    fn widen(&mut self, _ports: &PortsSpec) -> Option<String> {
        let before = self.pipe.rate?;
        let after = Rate::from_bps(2 * before.as_bps())?;
        self.pipe.rate = Some(after);
        Some(format!("{before} → {after}"))
    }

    fn uses_network_streams(&self) -> bool {
        true
    }

    /// A link draws from streams of its own.
    fn shares(&self, _work: &[OpGroup]) -> bool {
        false
    }
}

pub(crate) struct EmulatedLink {
    spec: PipeSpec,
    per: Per,
    seed: u64,
    first_stream: u64,
    /// By port, by flow, or one; a link exists from its first frame on.
    links: Vec<Option<Running>>,
    /// Frames inside, the delay line included.
    inside: TimeWeighted,
}

/// A link in use.
struct Running {
    /// Carries the numbers of packets.
    pipe: Pipe<u32>,
    /// The time of the next event.
    due: Option<Time>,
    /// Frames inside, as counted last.
    held: u64,
}

impl EmulatedLink {
    /// Takes what has left link `number` by now, and schedules the next exit.
    fn advance(&mut self, env: &mut Environment, number: u32) {
        let now = env.now();
        let Some(link) = self.links[number as usize].as_mut() else { return };
        while let Some(exit) = link.pipe.pop(now) {
            let packet = exit.packet.data;
            match exit.fate {
                Fate::Dropped(reason) => env.drop(packet, drop_name(reason)),
                Fate::Delivered { .. } => leave(env, packet, number),
                Fate::Altered(Alteration { copies, .. }) => {
                    for _ in 0..copies {
                        let copy = env.copy(packet);
                        match link.pipe.copies_at() {
                            Some(at) => link.pipe.put_copy(at, Packet { data: copy, ..exit.packet }),
                            None => leave(env, copy, number),
                        }
                    }
                    leave(env, packet, number);
                }
            }
        }
        self.inside.set(now, self.inside.level() + link.pipe.held().packets - link.held);
        link.held = link.pipe.held().packets;
        // An event that is no longer the next one does no harm: it finds nothing to do.
        let next = link.pipe.next_at().map(|at| at.max(now));
        if let Some(at) = next.filter(|&at| link.due.is_none_or(|due| due <= now || at < due)) {
            link.due = Some(at);
            env.at(at, What::Done, number);
        }
    }
}

/// Ends the visit of `packet` to link `number`.
fn leave(env: &mut Environment, packet: u32, number: u32) {
    env.end_leg(packet, number);
    env.pass_on(packet, None);
}

/// The reason of a drop, in the words of the other units.
fn drop_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "queue full",
        other => other.name(),
    }
}

impl UnitModel for EmulatedLink {
    type Spec = LinkSpec;

    fn new(spec: &LinkSpec, setup: &Setup) -> EmulatedLink {
        EmulatedLink {
            spec: (*spec.pipe).clone(),
            per: spec.per,
            seed: setup.seed,
            first_stream: STREAMS * setup.of_type as u64,
            links: Vec::new(),
            inside: TimeWeighted::default(),
        }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        let now = env.now();
        let p = env.packets[packet as usize];
        let number = match self.per {
            Per::Unit => 0,
            Per::Port => p.port_out,
            Per::Flow => p.flow,
        };
        if self.links.len() <= number as usize {
            self.links.resize_with(number as usize + 1, || None);
        }
        // At one instant a departure comes before an arrival.
        self.advance(env, number);
        let (spec, stream) = (&self.spec, self.first_stream + 2 * u64::from(number));
        let link = self.links[number as usize].get_or_insert_with(|| Running {
            pipe: Pipe::new(spec, Rng::stream(self.seed, stream)),
            due: None,
            held: 0,
        });
        env.start(packet);
        let frame = Packet { flow: p.flow, ..Packet::new(p.size.saturating_sub(FCS), packet) };
        if let Verdict::Dropped(reason, packet) = link.pipe.push(now, frame) {
            env.drop(packet, drop_name(reason));
        }
        self.advance(env, number);
        true
    }

    fn handle(&mut self, env: &mut Environment, _what: What, number: u32) {
        self.advance(env, number);
    }

    fn release(&mut self, _env: &mut Environment, _number: u32) {}

    fn full(&self) -> Full {
        Full::Drop
    }

    fn usage(&self, end: Time) -> Use {
        let used: Vec<Counters> = self.links.iter().flatten().map(|link| link.pipe.counters()).collect();
        let count = |of: fn(&Counters) -> u64| used.iter().map(of).sum::<u64>();
        let (packets, bytes) = (count(|c| c.delivered.packets), count(|c| c.delivered.bytes));
        let wire = Bytes(bytes + packets * u64::from(self.spec.overhead));
        let sent = |rate: Rate| rate.transmission(wire, Fraction::ZERO).0.as_secs_f64();
        let possible = end.as_secs_f64() * used.len() as f64;
        let busy = self.spec.rate.filter(|_| possible > 0.0).map_or(0.0, |rate| sent(rate) / possible);
        Use {
            busy: busy.min(1.0),
            queue_mean: self.inside.mean(end),
            queue_max: self.inside.max(),
            link: Some(LinkUse {
                links: used.len() as u64,
                marked: count(|c| c.marked),
                corrupted: count(|c| c.corrupted),
                duplicated: count(|c| c.duplicated),
            }),
            ..Use::default()
        }
    }
}
