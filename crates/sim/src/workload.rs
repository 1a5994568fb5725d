//! The workload: when frames arrive, of which size, on which port, of which flow.
//!
//! A workload is written `line-rate,size=64,ports=4,duration=20ms` or
//! `poisson,rate=10Mpps,size=imix,flows=1000,duration=10ms`.

use fastpath_units::{Bytes, Duration, Fraction, ParseError, Probability, Rate, Rng, Time};
use std::str::FromStr;

use crate::framing::Framing;
use crate::random::exponential;
use crate::spec::PacketRate;

/// Preamble, start delimiter and inter-frame gap: 20 bytes of wire time per frame (IEEE 802.3).
pub const FRAME_GAP: u64 = 20;

/// The traffic offered to a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// When frames arrive.
    pub arrivals: Arrivals,
    /// Sizes of the frames, in bytes with FCS.
    pub sizes: Sizes,
    /// The input ports. A frame leaves by the next port in the list. Empty: all ports of the
    /// machine.
    pub ports: Vec<u32>,
    /// Flows, dealt to the ports in turn.
    pub flows: u32,
    /// Priority classes for a hardware scheduler: flow mod this.
    pub priorities: u32,
    /// Scheduling groups for a hardware scheduler: flow mod this.
    pub groups: u32,
    /// The longest time for which frames arrive.
    pub duration: Duration,
    /// The time at the start that is not counted in rates and latencies; `None` is a tenth of the
    /// duration.
    pub warm_up: Option<Duration>,
    /// Frames stop before the end if half the 95 % interval of the mean latency is within this
    /// share of the mean.
    pub precision: Option<f64>,
}

/// When frames arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Back to back on every port: frame, preamble and gap at the port's rate.
    LineRate,
    /// Evenly spaced: this many per second over all ports.
    Constant(f64),
    /// Independent: this many per second over all ports.
    Poisson(f64),
    /// Line-rate bursts and silences of exponential lengths with these means, on each port.
    OnOff {
        /// Mean burst.
        on: Duration,
        /// Mean silence.
        off: Duration,
    },
    /// Multiplexed links: each TCP-like flow fills a link. Every second frame is acknowledged by a
    /// frame of 64 bytes on another link. Flows arrive on the first port of each pair in the list,
    /// acknowledgements on the second.
    Links {
        /// Bits of IP packets per second on each link.
        rate: Rate,
        /// Links, two for each flow.
        count: u32,
    },
    /// A closed network: a fixed number of customers. Each sends a frame, waits until it has left or
    /// is lost, thinks, and sends the next. Each is a flow of its own.
    Closed {
        /// Customers.
        population: u32,
        /// The mean of the exponential time between a frame's end and the next frame; may be zero.
        think: Duration,
    },
    /// Given times and sizes, from a capture; dealt to the ports in turn.
    List(Vec<(Time, u32)>),
}

/// Sizes of frames.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// One size.
    Fixed(u32),
    /// The simple Internet mix: 7 of 64, 4 of 594, 1 of 1518 bytes.
    Imix,
}

/// Why a text is not a workload.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// Unknown kind.
    #[error(
        "workload {0:?} is unknown (have: line-rate, constant, poisson, on-off, links, closed, pcap=FILE), e.g. line-rate,size=64"
    )]
    Kind(String),
    /// Unknown or missing field.
    #[error(
        "workload field {0:?} is unknown or has no value (have: rate, on, off, size, ports, flows, links, population, think, priorities, groups, duration, warm-up, precision)"
    )]
    Field(String),
    /// A field that the kind does not use.
    #[error("workload {kind}: {field} has no effect on it; remove it, or write one of {own}")]
    NoEffect {
        /// The kind.
        kind: String,
        /// The field.
        field: String,
        /// The fields that have an effect.
        own: String,
    },
    /// A field that is there twice.
    #[error("workload field {0:?} is given twice; write it once")]
    Twice(String),
    /// A value that does not parse.
    #[error("workload {field}={value}: {hint}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What to write.
        hint: &'static str,
    },
    /// A span or rate that does not parse.
    #[error(transparent)]
    Quantity(#[from] ParseError),
    /// More frames than a simulation can run.
    #[error("this workload offers about {0:.0e} frames, more than 1e10: shorten its duration")]
    TooLong(f64),
}

/// The fields that every kind uses.
const COMMON: [&str; 7] = ["ports", "priorities", "groups", "duration", "warm-up", "precision", "flows"];

/// The fields that only some kinds use.
const OWN: [&str; 7] = ["size", "rate", "on", "off", "links", "population", "think"];

/// Returns the fields that a kind uses beside [`COMMON`]; `None`: there is no such kind.
fn own_fields(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "line-rate" => &["size"],
        "constant" | "poisson" => &["size", "rate"],
        // Its rate is that of the ports. Former versions took one, and so does this.
        "on-off" => &["size", "on", "off", "rate"],
        "links" => &["size", "rate", "links"],
        "closed" => &["size", "population", "think"],
        // The capture has the sizes.
        CAPTURE => &[],
        _ => return None,
    })
}

/// The kind of a workload whose frames are those of a capture.
const CAPTURE: &str = "pcap";

/// Whether a kind uses a field. True for unknown kinds and fields, which are mistakes of their own.
pub(crate) fn has_effect(kind: &str, field: &str) -> bool {
    let is_own =
        |own: &[&str]| own.contains(&field) || (COMMON.contains(&field) && !is_overridden(kind, field));
    let is_known = COMMON.contains(&field) || OWN.contains(&field);
    own_fields(kind).is_none_or(is_own) || !is_known
}

fn check_effect(kind: &str, field: &str) -> Result<(), WorkloadError> {
    if has_effect(kind, field) {
        return Ok(());
    }
    let own = own_fields(kind).unwrap_or_default().iter().chain(&COMMON);
    let own: Vec<&str> = own.copied().filter(|field| has_effect(kind, field)).collect();
    let (kind, field) = (kind.to_owned(), field.to_owned());
    Err(WorkloadError::NoEffect { kind, field, own: own.join(", ") })
}

/// Links have two flows each, and a customer is a flow, so that there is nothing to choose.
fn is_overridden(kind: &str, field: &str) -> bool {
    ["links", "closed"].contains(&kind) && field == "flows"
}

/// Returns what is accepted and has no effect in a workload, in words.
pub fn ignored(text: &str) -> Option<&'static str> {
    let mut fields = text.split(',').map(str::trim);
    let is_on_off = fields.next() == Some("on-off");
    (is_on_off && fields.any(|field| field.starts_with("rate=")))
        .then_some("workload on-off: rate has no effect: bursts are at the rate of the ports")
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            arrivals: Arrivals::LineRate,
            sizes: Sizes::Fixed(64),
            ports: Vec::new(),
            flows: 64,
            priorities: 1,
            groups: 1,
            duration: Duration::from_ms(10),
            warm_up: None,
            precision: None,
        }
    }
}

impl FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Workload, WorkloadError> {
        let mut fields = text.split(',').map(str::trim);
        match fields.next().unwrap_or_default() {
            CAPTURE => Err(WorkloadError::Kind(CAPTURE.to_owned())),
            kind => Workload::read(kind, fields),
        }
    }
}

impl Workload {
    /// Reads the fields of a workload whose frames are those of a capture, which is at
    /// [`Workload::arrivals`] afterwards.
    pub(crate) fn of_capture<'t>(fields: impl Iterator<Item = &'t str>) -> Result<Workload, WorkloadError> {
        Workload::read(CAPTURE, fields)
    }

    fn read<'t>(kind: &str, fields: impl Iterator<Item = &'t str>) -> Result<Workload, WorkloadError> {
        let mut seen = Vec::new();
        let mut w = Workload::default();
        let (mut rate, mut on, mut off) = (None, Duration::from_us(100), Duration::from_us(100));
        let (mut links, mut population, mut think) = (2, 64, Duration::ZERO);
        for field in fields {
            let Some((key, value)) = field.split_once('=') else {
                return Err(WorkloadError::Field(field.to_owned()));
            };
            if seen.contains(&key) {
                return Err(WorkloadError::Twice(key.to_owned()));
            }
            seen.push(key);
            check_effect(kind, key)?;
            match key {
                "rate" => rate = Some(value),
                "on" => on = value.parse()?,
                "off" => off = value.parse()?,
                "size" if value == "imix" => w.sizes = Sizes::Imix,
                "size" => w.sizes = Sizes::Fixed(number("size", value, 64..=65535, "64 … 65535 or imix")?),
                "ports" => w.ports = ports(value)?,
                "flows" => w.flows = number("flows", value, 1..=1 << 20, "1 … 1048576")?,
                "links" => links = number("links", value, 2..=1 << 20, "2 … 1048576")?,
                "population" => population = number("population", value, 1..=1 << 20, "1 … 1048576")?,
                "think" => think = value.parse()?,
                "priorities" => w.priorities = number("priorities", value, 1..=8, "1 … 8")?,
                "groups" => w.groups = number("groups", value, 1..=64, "1 … 64")?,
                "duration" => w.duration = value.parse()?,
                "warm-up" => w.warm_up = Some(value.parse()?),
                "precision" => w.precision = Some(precision(value)?),
                _ => return Err(WorkloadError::Field(key.to_owned())),
            }
        }
        if w.warm_up.is_some_and(|warm_up| warm_up >= w.duration) {
            let value = w.warm_up.unwrap_or_default().to_string();
            return Err(WorkloadError::Value { field: "warm-up", value, hint: "shorter than the duration" });
        }
        let rate_text = rate;
        let rate = || pps(rate.unwrap_or("1Mpps"), &w.sizes);
        w.arrivals = match kind {
            "line-rate" => Arrivals::LineRate,
            CAPTURE => Arrivals::List(Vec::new()),
            "constant" => Arrivals::Constant(rate()?),
            "poisson" => Arrivals::Poisson(rate()?),
            "on-off" => Arrivals::OnOff { on, off },
            "links" => {
                if !seen.contains(&"size") {
                    w.sizes = Sizes::Fixed(1518);
                }
                w.flows = links;
                Arrivals::Links { rate: rate_of_link(rate_text)?, count: links }
            }
            "closed" => {
                w.flows = population;
                Arrivals::Closed { population, think }
            }
            _ => return Err(WorkloadError::Kind(kind.to_owned())),
        };
        if let Arrivals::Constant(pps) | Arrivals::Poisson(pps) = w.arrivals {
            let frames = pps * w.duration.as_secs_f64();
            if frames > 1e10 {
                return Err(WorkloadError::TooLong(frames));
            }
        }
        Ok(w)
    }
}

fn number(
    field: &'static str,
    value: &str,
    range: std::ops::RangeInclusive<u32>,
    hint: &'static str,
) -> Result<u32, WorkloadError> {
    let digits = if field == "size" { value.strip_suffix('B').unwrap_or(value) } else { value };
    let n = digits.parse().ok().filter(|n| range.contains(n));
    n.ok_or_else(|| WorkloadError::Value { field, value: value.to_owned(), hint })
}

/// Reads a share above 0 and below 1.
fn precision(value: &str) -> Result<f64, WorkloadError> {
    let share = value.parse::<Probability>().ok().map(Probability::get).filter(|p| (1e-6..1.0).contains(p));
    let hint = "a share of the mean latency from 0.0001% to below 100%, e.g. 1%";
    share.ok_or_else(|| WorkloadError::Value { field: "precision", value: value.to_owned(), hint })
}

/// Reads the bits per second of one link.
fn rate_of_link(rate: Option<&str>) -> Result<Rate, WorkloadError> {
    let hint = "bits per second of each link, e.g. links,rate=128kbit,links=480";
    let missing = || WorkloadError::Value { field: "rate", value: String::new(), hint };
    Ok(rate.ok_or_else(missing)?.parse()?)
}

/// Reads ports: `4` is the first four ports, `0+2` are ports 0 and 2.
fn ports(value: &str) -> Result<Vec<u32>, WorkloadError> {
    let hint = "a number of ports (4) or their numbers (0+2)";
    if value.contains('+') {
        return value.split('+').map(|p| number("ports", p, 0..=1023, hint)).collect();
    }
    Ok((0..number("ports", value, 1..=1024, hint)?).collect())
}

/// Reads frames per second: `10Mpps`, or `5Gbit` at the mean frame size with gap.
fn pps(value: &str, sizes: &Sizes) -> Result<f64, WorkloadError> {
    if !value.ends_with("pps") {
        let rate: Rate = value.parse()?;
        return Ok(rate.as_bps() as f64 / (8.0 * (sizes.mean() + FRAME_GAP as f64)));
    }
    let hint = "frames per second above 0 and below 1e10, e.g. 10Mpps, or bits, e.g. 5Gbit";
    let pps = PacketRate::parse(value).map(PacketRate::per_second);
    pps.ok_or_else(|| WorkloadError::Value { field: "rate", value: value.to_owned(), hint })
}

impl Workload {
    /// The time at the start that is not counted.
    pub(crate) fn warm_up(&self) -> Duration {
        self.warm_up.unwrap_or(Duration::from_ps(self.duration.as_ps() / 10))
    }

    /// The number of multiplexed links, 0 for other workloads.
    pub(crate) fn links(&self) -> u32 {
        if let Arrivals::Links { count, .. } = self.arrivals { count } else { 0 }
    }
}

impl Sizes {
    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed(size) => f64::from(*size),
            Sizes::Imix => (7.0 * 64.0 + 4.0 * 594.0 + 1518.0) / 12.0,
        }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Imix => match rng.below(12) {
                0..=6 => 64,
                7..=10 => 594,
                _ => 1518,
            },
        }
    }
}

/// A frame about to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When its last bit has arrived.
    pub(crate) at: Time,
    pub(crate) size: u32,
    pub(crate) flow: u32,
}

/// The frames of one port, in order. Each port has its own generator, so that another port changes
/// nothing for this one.
#[derive(Clone, Debug)]
pub(crate) struct Generator<'a> {
    workload: &'a Workload,
    rng: Rng,
    rate: Rate,
    framing: Framing,
    /// This port's index among the active ports, and their number.
    port: u32,
    ports: u32,
    /// The flows of this port: flows f with f mod ports = port.
    own_flows: u64,
    /// The mean time between frames, for rates in frames per second.
    interval: Duration,
    at: Time,
    carried: Fraction,
    burst_end: Time,
    sent: usize,
    /// For multiplexed links: when in its period each of this port's links sends, and its number.
    phases: Vec<(Duration, u32)>,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        (rate, framing): (Rate, Framing),
        port: u32,
        ports: u32,
        seed: u64,
        streams: u64,
    ) -> Self {
        let mut rng = Rng::stream(seed, streams + 1 + u64::from(port));
        // Ports are not synchronised: each starts at a random time within its first frame time.
        let first = match workload.arrivals {
            Arrivals::Constant(pps) => Duration::from_secs_f64(f64::from(ports) / pps * rng.unit_f64()),
            Arrivals::LineRate | Arrivals::OnOff { .. } => {
                let frame = Bytes(framing.with_gap(workload.sizes.mean() as u32));
                let (span, _) = rate.transmission(frame, Fraction::ZERO);
                Duration::from_ps(rng.below(span.as_ps().max(1)))
            }
            _ => Duration::ZERO,
        };
        let burst_end = Time::ZERO;
        let at = Time::ZERO + first;
        let phases = match workload.arrivals {
            Arrivals::Links { rate, count } => phases(workload, rate, count, port, ports, seed),
            _ => Vec::new(),
        };
        let interval = match workload.arrivals {
            Arrivals::Constant(pps) | Arrivals::Poisson(pps) => {
                Duration::from_secs_f64(f64::from(ports) / pps)
            }
            _ => Duration::ZERO,
        };
        let own_flows = u64::from(workload.flows.saturating_sub(port).div_ceil(ports).max(1));
        let (carried, sent) = (Fraction::ZERO, 0);
        Generator {
            workload,
            rng,
            rate,
            framing,
            port,
            ports,
            own_flows,
            interval,
            at,
            carried,
            burst_end,
            sent,
            phases,
        }
    }

    /// The next frame, or `None` after the end of the workload.
    pub(crate) fn next(&mut self) -> Option<Arrival> {
        let mut size = self.workload.sizes.draw(&mut self.rng);
        match &self.workload.arrivals {
            Arrivals::LineRate => self.wire(size),
            Arrivals::Constant(_) => self.at += self.interval,
            Arrivals::Poisson(_) => self.at += exponential(&mut self.rng, self.interval),
            Arrivals::OnOff { on, off } => {
                if self.at >= self.burst_end {
                    self.at += exponential(&mut self.rng, *off);
                    self.burst_end = self.at + exponential(&mut self.rng, *on);
                }
                self.wire(size);
            }
            Arrivals::Links { rate, .. } => return self.next_of_links(*rate),
            Arrivals::Closed { .. } => return None,
            Arrivals::List(frames) => {
                let index = self.port as usize + self.sent * self.ports as usize;
                let &(at, given) = frames.get(index)?;
                self.at = self.at.max(at);
                size = given;
            }
        }
        self.sent += 1;
        if self.at.since(Time::ZERO) > self.workload.duration {
            return None;
        }
        let flow = self.port + self.ports * self.rng.below(self.own_flows) as u32;
        Some(Arrival { at: self.at, size, flow })
    }

    /// The next frame of multiplexed links. All links have the same period, so they send in the
    /// order of their phases, period after period.
    fn next_of_links(&mut self, rate: Rate) -> Option<Arrival> {
        let &(phase, flow) = self.phases.get(self.sent % self.phases.len().max(1))?;
        let period = period(&self.workload.sizes, rate) * if self.port.is_multiple_of(2) { 1 } else { 2 };
        let sent = Time::ZERO + period * (self.sent / self.phases.len()) as u64 + phase;
        self.sent += 1;
        let size = if self.port.is_multiple_of(2) { self.workload.sizes.draw(&mut self.rng) } else { 64 };
        // Senders do not stay synchronised: each frame is up to a mean gap late. All frames share
        // one wire, one after the other.
        let gap = period.as_ps() / self.phases.len() as u64;
        self.at = self.at.max(sent + Duration::from_ps(self.rng.below(gap.max(1))));
        self.wire(size);
        let is_due = sent.since(Time::ZERO) <= self.workload.duration;
        is_due.then_some(Arrival { at: self.at, size, flow })
    }

    fn wire(&mut self, size: u32) {
        let (span, left) = self.rate.transmission(Bytes(self.framing.with_gap(size)), self.carried);
        self.at += span;
        self.carried = left;
    }
}

/// Bytes of a frame that do not belong to the IP packet: Ethernet header and FCS.
const NOT_IP: f64 = 18.0;

/// The time between frames of a full link.
fn period(sizes: &Sizes, rate: Rate) -> Duration {
    Duration::from_secs_f64((sizes.mean() - NOT_IP) * 8.0 / rate.as_bps() as f64)
}

/// The links whose frames arrive on port number `port` of `ports`, by their time in the period.
/// Flow f is link f, and its acknowledgements are link count/2 + f. They arrive half a period after
/// the second of the frames that they acknowledge.
fn phases(
    workload: &Workload,
    rate: Rate,
    count: u32,
    port: u32,
    ports: u32,
    seed: u64,
) -> Vec<(Duration, u32)> {
    let (pairs, flows) = ((ports / 2).max(1), count / 2);
    let period = period(&workload.sizes, rate);
    let phase = |flow: u32| {
        let at = Rng::stream(seed, (1 << 32) + u64::from(flow)).below(period.as_ps().max(1));
        let at = Duration::from_ps(at);
        if port.is_multiple_of(2) {
            (at, flow)
        } else {
            (at + Duration::from_ps(period.as_ps() / 2 * 3), flows + flow)
        }
    };
    let mut phases: Vec<_> = (0..flows).filter(|f| f % pairs == port / 2).map(phase).collect();
    phases.sort_unstable();
    phases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(text: &str, port: u32, ports: u32, mbit: u64) -> Vec<Arrival> {
        let workload: Workload = text.parse().unwrap();
        let rate = Rate::from_bps(mbit * 1_000_000).unwrap();
        let mut generator = Generator::new(&workload, (rate, Framing::default()), port, ports, 1, 0);
        std::iter::from_fn(|| generator.next()).collect()
    }

    #[test]
    fn line_rate_is_exact_with_preamble_and_gap() {
        // 6.72 µs per 64-byte frame at 100 Mbit/s: 14 880 or 14 881 frames in 100 ms.
        let all = frames("line-rate,size=64,duration=100ms", 0, 1, 100);
        assert!((14_880..=14_881).contains(&all.len()), "{}", all.len());
        assert!(all.windows(2).all(|w| w[1].at - w[0].at == Duration::from_ns(6720)));
    }

    #[test]
    fn rates_are_shared_by_the_ports() {
        for kind in ["constant", "poisson"] {
            let n = frames(&format!("{kind},rate=10Mpps,duration=10ms"), 1, 4, 100).len();
            assert!((24_000..26_000).contains(&n), "{kind} {n}");
        }
        // Silent for half of the time.
        let n = frames("on-off,on=20us,off=20us,duration=100ms", 0, 1, 1000).len() as f64;
        assert!((n / (100e-3 / 672e-9) - 0.5).abs() < 0.05, "{n}");
    }

    #[test]
    fn bits_per_second_count_the_gap() {
        let w: Workload = "constant,rate=10Gbit,size=64".parse().unwrap();
        let Arrivals::Constant(pps) = w.arrivals else { panic!() };
        assert!((pps - 14_880_952.38).abs() < 0.1, "{pps}");
    }

    #[test]
    fn flows_belong_to_one_port_each_and_imix_has_its_mean() {
        let all = frames("line-rate,size=imix,flows=10,duration=100ms", 1, 4, 1000);
        assert!(all.iter().all(|f| f.flow % 4 == 1 && f.flow < 10));
        let mean = all.iter().map(|f| f64::from(f.size)).sum::<f64>() / all.len() as f64;
        assert!((mean - Sizes::Imix.mean()).abs() < 15.0, "{mean}");
    }

    #[test]
    fn a_capture_is_replayed_at_its_times_and_dealt_to_the_ports() {
        let at = |us, size| (Time::ZERO + Duration::from_us(us), size);
        let arrivals = Arrivals::List(vec![at(1, 64), at(5, 100), at(7, 1518), at(99_000, 64)]);
        let workload = Workload { arrivals, ..Workload::default() };
        let rate = Rate::from_bps(100_000_000).unwrap();
        let frames = |port| {
            let mut generator = Generator::new(&workload, (rate, Framing::default()), port, 2, 1, 0);
            std::iter::from_fn(move || generator.next()).map(|f| (f.at, f.size)).collect::<Vec<_>>()
        };
        // The last frame is after the workload's 10 ms.
        assert_eq!((frames(0), frames(1)), (vec![at(1, 64), at(7, 1518)], vec![at(5, 100)]));
    }

    #[test]
    fn links_are_full_and_every_second_frame_is_acknowledged() {
        // 12 000 bits of IP at 128 kbit/s: 10 ⅔ frames a second on each of 50 links, half as many
        // acknowledgements on 50.
        let text = "links,rate=128kbit,links=200,duration=9s";
        let (data, acks) = (frames(text, 0, 4, 100), frames(text, 1, 4, 100));
        assert_eq!((data.len(), acks.iter().filter(|f| f.size == 64).count()), (50 * 96, acks.len()));
        assert!((50 * 46..=50 * 48).contains(&acks.len()), "{}", acks.len());
        for (all, first) in [(&data, 0), (&acks, 100)] {
            assert!(all.windows(2).all(|w| w[0].at <= w[1].at));
            assert!(all.iter().all(|f| f.flow % 2 == 0 && (first..first + 100).contains(&f.flow)));
        }
        assert!(frames(text, 2, 4, 100).iter().all(|f| f.flow % 2 == 1));
    }

    #[test]
    fn errors_of_workloads_say_what_to_write() {
        for (text, says) in [
            ("links,links=4", "rate=128kbit"),
            ("closed,population=0", "1 … 1048576"),
            ("closed,rate=1Mpps", "population, think"),
            ("closed,flows=3", "no effect"),
            ("poisson,think=1us", "no effect"),
            ("links,rate=128kbit,links=1", "2 … 1048576"),
            ("fast", "line-rate"),
            ("poisson,rate=0pps", "10Mpps"),
            ("line-rate,size=10", "64 … 65535"),
            ("line-rate,speed=3", "duration"),
            ("line-rate,duration=3", "unit"),
            ("constant,rate=1Gpps,duration=1h", "shorten"),
            ("line-rate,ports=x+1", "0+2"),
        ] {
            let error = text.parse::<Workload>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
