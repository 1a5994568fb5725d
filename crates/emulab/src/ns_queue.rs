//! The queues of ns-2 and what they are here: their types, parameters and defaults.

use fastpath_link::{CodelSpec, FqCodelSpec, Limit, QueueSpec, RedIdle, RedSpec};
use fastpath_units::{Bytes, Duration, Probability};

/// A target of CoDel that no packet exceeds.
const NEVER: Duration = Duration::from_secs(1000);

/// A queue that is neither DropTail nor RED.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum OtherQueue {
    CoDel {
        target: Duration,
        interval: Duration,
    },
    /// One that was refused: what the script does with it is not looked at.
    Refused,
    /// Flows take turns by bytes; a full queue drops from the longest.
    Fair {
        flows: u16,
        quantum: Bytes,
        target: Duration,
        interval: Duration,
    },
}

impl OtherQueue {
    fn set(&mut self, parameter: QueueParameter) {
        match (self, parameter) {
            (OtherQueue::Fair { flows, .. }, QueueParameter::Flows(new)) => *flows = new,
            (OtherQueue::Fair { quantum, .. }, QueueParameter::Quantum(new)) => {
                *quantum = Bytes(u64::from(new))
            }
            (
                OtherQueue::Fair { target, .. } | OtherQueue::CoDel { target, .. },
                QueueParameter::Target(new),
            ) => {
                *target = new;
            }
            (
                OtherQueue::Fair { interval, .. } | OtherQueue::CoDel { interval, .. },
                QueueParameter::Interval(new),
            ) => *interval = new,
            _ => {}
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    DropTail,
    Red,
    Gred,
    CoDel,
    FqCoDel,
    Sfq,
    Fq,
    Drr,
}

/// The types of queues, what each is, and what to say if that is another.
const TYPES: [(&str, Kind, Option<&str>); 20] = [
    ("DropTail", Kind::DropTail, None),
    ("RED", Kind::Red, None),
    ("GRED", Kind::Gred, None),
    ("CoDel", Kind::CoDel, None),
    ("FQ", Kind::Fq, Some("FQ is a fair queue by bytes here (fq-codel without its target)")),
    (
        "SFQ",
        Kind::Sfq,
        Some("SFQ is a fair queue by bytes with 16 buckets here (fq-codel without its target)"),
    ),
    (
        "DRR",
        Kind::Drr,
        Some("DRR is a fair queue of flows here (fq-codel without its target), of nodes in ns-2"),
    ),
    ("SRR", Kind::Drr, Some("SRR is a fair queue of flows here (fq-codel without its target)")),
    (
        "CBQ",
        Kind::Fq,
        Some("CBQ is a fair queue of flows here (fq-codel without its target): its classes are ignored"),
    ),
    (
        "CBQ/WRR",
        Kind::Fq,
        Some("CBQ/WRR is a fair queue of flows here (fq-codel without its target): its classes are ignored"),
    ),
    ("sfqCoDel", Kind::FqCoDel, Some("sfqCoDel is FQ-CoDel here")),
    ("DropTail/PriQueue", Kind::DropTail, Some("DropTail/PriQueue is DropTail here: routes send no packets")),
    ("RED/RIO", Kind::Red, Some("RED/RIO is RED here: packets have no drop precedence")),
    ("RIO", Kind::Red, Some("RIO is RED here: packets have no drop precedence")),
    ("RED/PD", Kind::Red, Some("RED/PD is RED here: no flow is policed")),
    ("PI", Kind::Red, Some("PI is RED here")),
    ("REM", Kind::Red, Some("REM is RED here")),
    ("Vq", Kind::Red, Some("Vq is RED here")),
    ("GK", Kind::Red, Some("GK is RED here")),
    ("Blue", Kind::Red, Some("Blue is RED here")),
];

/// Types of queues that nothing here is near to, and why.
pub(crate) const REFUSED: [(&str, &str); 7] = [
    ("XCP", "XCP tells senders their rates in headers of its own"),
    ("dsRED/edge", "DiffServ of ns-2 marks and polices packets by policies"),
    ("dsRED/core", "DiffServ of ns-2 drops packets by marks of its own"),
    ("dsRED", "DiffServ of ns-2 drops packets by marks of its own"),
    ("JoBS", "JoBS schedules classes by their delays"),
    ("Marker", "Marker classifies packets for other queues"),
    ("Demarker", "Demarker counts packets of Marker"),
];

/// Types, for suggestions.
pub(crate) fn types() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|(name, ..)| *name)
}

/// An ns-2 queue; the defaults are Emulab's and ns-2's.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NsQueue {
    /// What the queue is, if neither DropTail nor RED.
    pub(crate) other: Option<OtherQueue>,
    pub(crate) red: bool,
    pub(crate) gentle: bool,
    pub(crate) ecn: bool,
    pub(crate) in_bytes: bool,
    pub(crate) limit: u32,
    pub(crate) min: u32,
    pub(crate) max: u32,
    pub(crate) weight: Probability,
    /// 1 / max_p.
    pub(crate) linterm: f64,
    pub(crate) mean_packet: u32,
}

/// A parameter of a queue, as `$queue set limit_ 40` gives it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum QueueParameter {
    Limit(u32),
    Min(u32),
    Max(u32),
    Weight(Probability),
    Linterm(f64),
    MeanPacket(u32),
    InBytes(bool),
    Red(bool),
    Gentle(bool),
    Ecn(bool),
    /// Buckets of flows of a fair queue.
    Flows(u16),
    /// Bytes of a turn of a fair queue.
    Quantum(u32),
    /// The times of CoDel.
    Target(Duration),
    Interval(Duration),
}

impl QueueParameter {
    /// Whether only RED has it.
    pub(crate) fn is_of_red(self) -> bool {
        match self {
            QueueParameter::Limit(_) | QueueParameter::InBytes(_) | QueueParameter::Red(_) => false,
            QueueParameter::Min(_) | QueueParameter::Max(_) | QueueParameter::Weight(_) => true,
            QueueParameter::Linterm(_) | QueueParameter::MeanPacket(_) => true,
            QueueParameter::Gentle(_) | QueueParameter::Ecn(_) => true,
            QueueParameter::Flows(_) | QueueParameter::Quantum(_) => false,
            QueueParameter::Target(_) | QueueParameter::Interval(_) => false,
        }
    }

    /// Whether a queue has it that cannot become another.
    pub(crate) fn is_of(self, queue: &NsQueue) -> bool {
        match (self, queue.other) {
            (QueueParameter::Flows(_) | QueueParameter::Quantum(_), other) => {
                matches!(other, Some(OtherQueue::Fair { .. }))
            }
            (QueueParameter::Target(_) | QueueParameter::Interval(_), other) => match other {
                Some(OtherQueue::CoDel { .. }) => true,
                Some(OtherQueue::Fair { target, .. }) => target < NEVER,
                Some(OtherQueue::Refused) | None => false,
            },
            _ => true,
        }
    }
}

impl Default for NsQueue {
    fn default() -> NsQueue {
        NsQueue {
            other: None,
            red: false,
            gentle: false,
            ecn: false,
            in_bytes: false,
            limit: fastpath_spec::DEFAULT_QUEUE_PACKETS,
            min: 5,
            max: 15,
            weight: Probability::new(0.002).expect("0.002 is a probability"),
            linterm: 10.0,
            mean_packet: 500,
        }
    }
}

impl NsQueue {
    /// Returns a queue type by its name in any case, and what to say of it. `None` if it is not
    /// known.
    pub(crate) fn named(name: &str) -> Option<(NsQueue, Option<&'static str>)> {
        let (_, kind, said) = TYPES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
        let queue = NsQueue::default();
        let fair = |flows, quantum| OtherQueue::Fair {
            flows,
            quantum: Bytes(quantum),
            target: NEVER,
            interval: NEVER,
        };
        let (target, interval) = (Duration::from_ms(5), Duration::from_ms(100));
        let fq_codel = OtherQueue::Fair { flows: 1024, quantum: Bytes(1514), target, interval };
        let queue = match kind {
            Kind::DropTail => queue,
            Kind::Red => NsQueue { red: true, ..queue },
            Kind::Gred => NsQueue { red: true, gentle: true, ..queue },
            Kind::CoDel => NsQueue { other: Some(OtherQueue::CoDel { target, interval }), ..queue },
            Kind::FqCoDel => NsQueue { other: Some(fq_codel), ..queue },
            // The defaults of ns-2 (ns-default.tcl).
            Kind::Sfq => NsQueue { other: Some(fair(16, 1514)), limit: 40, ..queue },
            Kind::Fq => NsQueue { other: Some(fair(1024, 1514)), ..queue },
            Kind::Drr => NsQueue { other: Some(fair(10, 250)), in_bytes: true, limit: 25_000, ..queue },
        };
        Some((queue, *said))
    }

    pub(crate) fn set(&mut self, parameter: QueueParameter) {
        match parameter {
            QueueParameter::Limit(limit) => self.limit = limit,
            QueueParameter::Min(min) => self.min = min,
            QueueParameter::Max(max) => self.max = max,
            QueueParameter::Weight(weight) => self.weight = weight,
            QueueParameter::Linterm(linterm) => self.linterm = linterm,
            QueueParameter::MeanPacket(bytes) => self.mean_packet = bytes,
            QueueParameter::InBytes(in_bytes) => self.in_bytes = in_bytes,
            QueueParameter::Red(red) => self.red = red,
            QueueParameter::Gentle(gentle) => self.gentle = gentle,
            QueueParameter::Ecn(ecn) => self.ecn = ecn,
            QueueParameter::Flows(_)
            | QueueParameter::Quantum(_)
            | QueueParameter::Target(_)
            | QueueParameter::Interval(_) => {
                if let Some(other) = &mut self.other {
                    other.set(parameter);
                }
            }
        }
    }

    pub(crate) fn spec(&self) -> QueueSpec {
        let limit = match self.in_bytes {
            true => Limit::Bytes(Bytes(u64::from(self.limit))),
            false => Limit::Packets(self.limit),
        };
        match self.other {
            Some(OtherQueue::CoDel { target, interval }) => {
                return QueueSpec::Codel(CodelSpec { target, interval, limit, ..CodelSpec::default() });
            }
            Some(OtherQueue::Fair { flows, quantum, target, interval }) => {
                let codel = CodelSpec { limit, target, interval, ..CodelSpec::default() };
                return QueueSpec::FqCodel(FqCodelSpec { codel, flows, quantum });
            }
            Some(OtherQueue::Refused) | None => {}
        }
        if !self.red {
            return QueueSpec::DropTail(limit);
        }
        QueueSpec::Red(RedSpec {
            limit,
            min: u64::from(self.min),
            max: u64::from(self.max),
            weight: self.weight,
            max_p: Probability::new(1.0 / self.linterm).expect("linterm is at least 1"),
            gentle: self.gentle,
            ecn: self.ecn,
            mean_packet: Bytes(u64::from(self.mean_packet)),
            idle: RedIdle::Ns2,
        })
    }
}
