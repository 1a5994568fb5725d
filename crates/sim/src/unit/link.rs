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
use crate::outcome::{LinkUse, Use};
use crate::ports::PortsSpec;
use crate::queue::Full;
use crate::spec::{Name, Source, SpecError, SpecProblem};
use crate::stats::TimeWeighted;
use fastpath_link::{Alteration, Counters, DropReason, Fate, Packet, Pipe, PipeSpec, Verdict};
use fastpath_units::{Bytes, Fraction, Rate, Rng, Time};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::ops::Range;
use toml::{Spanned, Value};

/// The frame check sequence, which a link does not count.
const FCS: u32 = 4;
/// The random streams of one `[[link]]`: two for each of its links, as in a network.
const STREAMS: u64 = 1 << 33;

#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    name: Name,
    per: Per,
    /// The keys of a network spec, and the places of their values in the file.
    values: Vec<(String, Range<usize>)>,
    /// What the values mean; set by the check.
    pipe: Box<PipeSpec>,
}

/// The frames that share one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Per {
    /// All frames that visit the unit.
    #[default]
    Unit,
    /// The frames for one output port.
    Port,
    /// The frames of one flow.
    Flow,
}

impl<'de> Deserialize<'de> for LinkSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LinkSpec, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = LinkSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a link: a name and the keys of a link of a network")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LinkSpec, A::Error> {
                let (mut name, mut per, mut values) = (None, Per::default(), Vec::new());
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "name" => name = Some(map.next_value()?),
                        "per" => per = map.next_value()?,
                        "source" => drop(map.next_value::<String>()?),
                        _ => values.push((key, map.next_value::<Spanned<Value>>()?.span())),
                    }
                }
                let name = name.ok_or_else(|| A::Error::missing_field("name"))?;
                Ok(LinkSpec { name, per, values, pipe: Box::default() })
            }
        }
        from.deserialize_map(Keys)
    }
}

impl LinkSpec {
    /// Writes the link as a network of two hosts. Returns the text, and for each of its lines the
    /// line of the machine file that it comes from.
    fn as_network(&self, source: Source) -> (String, Vec<usize>) {
        let line_of = |at: usize| 1 + source.text[..at].matches('\n').count();
        let mut text = "host = { a = {}, b = {} }\n[[link]]\nbetween = [\"a\", \"b\"]\n".to_owned();
        let mut lines = vec![line_of(self.name.span().start); 3];
        for (key, place) in &self.values {
            let value = &source.text[place.clone()];
            text += &format!("{key} = {value}\n");
            lines.extend((0..=value.matches('\n').count()).map(|line| line_of(place.start) + line));
        }
        (text, lines)
    }
}

impl UnitType for LinkSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, _machine: &Surroundings, source: Source) -> Result<(), SpecError> {
        let is_known = |key: &str| key == "preset" || fastpath_spec::is_key(key);
        if let Some((key, place)) = self.values.iter().find(|(key, _)| !is_known(key)) {
            let known = format!("name, per, preset, {}", fastpath_spec::keys().join(", "));
            let problem = SpecProblem::Unknown { what: "the key of a link", name: key.clone(), known };
            return Err(source.error(place.start, problem));
        }
        let (text, lines) = self.as_network(source);
        match fastpath_spec::parse(&text) {
            Ok((topology, _)) => *self.pipe = topology.links[0].pipes[0].clone(),
            Err(mistakes) => {
                let first = &mistakes[0];
                let line = lines.get(first.line - 1).or(lines.last()).copied().unwrap_or(1);
                let problem = SpecProblem::Link { what: first.what.clone(), instead: first.instead.clone() };
                return Err(SpecError { file: source.file.to_owned(), line, problem });
            }
        }
        Ok(())
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
        let frame = Packet { len: p.size.saturating_sub(FCS), flow: p.flow, traffic_class: 0, data: packet };
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
