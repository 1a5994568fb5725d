//! Traffic of hosts: when a source sends and how much, and what a receiver counts of it.
//!
//! A [`SourceModel`] is data. [`SourceModel::packets`] draws its packets: the same model, times and
//! generator give the same packets. Nothing here reads a clock or knows the headers of protocols.
//!
//! ```text
//!  SourceModel { ArrivalModel, size } + start, stop, Rng ─▶ Packets: (Time, bytes), (Time, bytes), …
//!  Packets ─▶ Pacer ─▶ in real time: when a sender that was held up sends each of them
//!  FlowHeader in each packet ─▶ Received ─▶ FlowReport: lost, delays, jitter
//! ```
//!
//! Rates and sizes count the payload of the transport protocol, as iperf3 and the CBR agent of ns-2
//! count them. Times of a constant rate are exact: the remainder of a picosecond is carried to the
//! next packet.
#![forbid(unsafe_code)]

mod amount_law;
mod header;
mod law;
mod pacer;
mod received;
mod transfer;

pub use amount_law::AmountLaw;
pub use fastpath_tcp::CongestionControl;
pub use header::{FlowHeader, HEADER_LEN};
pub use law::PeriodLaw;
pub use pacer::Pacer;
pub use received::{FlowDelay, FlowEnds, FlowReport, Received, Sent};
pub use transfer::{
    AnswerTime, FIRST_PORT, FlowCalls, FrameWay, QUIC_DATAGRAM_MIN, TcpTransfer, TransferEnds, TransferModel,
    TransferProgram, TransferProtocol, TransferReport, TransferSide, TransferWrites, TransportCounts,
    Workload,
};

use fastpath_units::{Bytes, Duration, Fraction, Rate, Rng, Time, math};

/// A source of packets of one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SourceModel {
    /// When it sends.
    pub arrivals: ArrivalModel,
    /// The payload of a packet, bytes; at least 1.
    pub size: u32,
}

/// When a source sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ArrivalModel {
    /// A packet each size/rate, the first at the start.
    Constant(Rate),
    /// Independent gaps with an exponential law of mean size/rate (a Poisson process).
    Poisson(Rate),
    /// A constant rate during on periods, nothing during off periods. The first period is on. A
    /// packet is sent at the beginning of each on period, whatever its length.
    OnOff {
        /// The rate in an on period.
        rate: Rate,
        /// The length of on periods.
        on: PeriodLaw,
        /// The length of off periods.
        off: PeriodLaw,
    },
}

/// The packets of a G.711 call: 20 ms of speech, 160 bytes, behind 12 bytes of RTP (RFC 3551), in
/// talk spurts and pauses with the exponential laws and means of ITU-T P.59 (1.004 s and 1.587 s).
pub const VOICE: SourceModel = SourceModel {
    arrivals: ArrivalModel::OnOff {
        rate: match Rate::from_bps(172 * 8 * 50) {
            Some(rate) => rate,
            None => panic!("a rate is above 0"),
        },
        on: PeriodLaw::Exponential(Duration::from_ms(1004)),
        off: PeriodLaw::Exponential(Duration::from_ms(1587)),
    },
    size: 172,
};

impl SourceModel {
    /// Returns the packets sent from `start` on, before `stop`.
    ///
    /// # Panics
    /// If the size is 0.
    pub fn packets(&self, start: Time, stop: Time, rng: Rng) -> Packets {
        assert!(self.size > 0, "a source sends packets of at least one byte");
        let mut packets =
            Packets { model: *self, next: start, stop, carried: Fraction::default(), on_until: stop, rng };
        match self.arrivals {
            ArrivalModel::Constant(_) => {}
            // The process is stationary: the first gap is drawn as the others are.
            ArrivalModel::Poisson(_) => packets.next = start.saturating_add(packets.gap()),
            ArrivalModel::OnOff { on, .. } => {
                packets.on_until = start.saturating_add(on.draw(&mut packets.rng))
            }
        }
        packets
    }

    /// Returns the mean rate over a long time, bit/s. On/off: the rate times the share of the on
    /// periods; packets at the beginning of short on periods add to it.
    pub fn mean_bps(&self) -> f64 {
        match self.arrivals {
            ArrivalModel::Constant(rate) | ArrivalModel::Poisson(rate) => rate.as_bps() as f64,
            ArrivalModel::OnOff { rate, on, off } => {
                // An on period of length T sends one packet and one more for each whole gap in it.
                let gap = f64::from(self.size) * 8.0 / rate.as_bps() as f64;
                let packets = on.mean_steps(gap);
                let cycle = on.mean().as_secs_f64() + off.mean().as_secs_f64();
                packets * f64::from(self.size) * 8.0 / cycle.max(f64::MIN_POSITIVE)
            }
        }
    }
}

/// The packets of a source, in the order of time: when each is sent, and its payload in bytes.
#[derive(Clone, Debug)]
pub struct Packets {
    model: SourceModel,
    next: Time,
    stop: Time,
    carried: Fraction,
    /// The end of this on period.
    on_until: Time,
    rng: Rng,
}

impl Packets {
    /// Returns when the next packet is sent; `None` if there is none.
    pub fn next_at(&self) -> Option<Time> {
        (self.next < self.stop).then_some(self.next)
    }

    /// The gap to the next packet within a period.
    fn gap(&mut self) -> Duration {
        let size = Bytes(u64::from(self.model.size));
        match self.model.arrivals {
            ArrivalModel::Constant(rate) | ArrivalModel::OnOff { rate, .. } => {
                let (gap, carried) = rate.transmission(size, self.carried);
                self.carried = carried;
                gap
            }
            ArrivalModel::Poisson(rate) => {
                let mean_ps = size.bits() as f64 * 1e12 / rate.as_bps() as f64;
                // 1 − u is in (0, 1].
                Duration::from_ps((-math::ln(1.0 - self.rng.unit_f64()) * mean_ps) as u64)
            }
        }
    }
}

impl Iterator for Packets {
    type Item = (Time, u32);

    fn next(&mut self) -> Option<(Time, u32)> {
        let at = self.next_at()?;
        let gap = self.gap();
        self.next = at.saturating_add(gap);
        if let ArrivalModel::OnOff { on, off, .. } = self.model.arrivals
            && self.next >= self.on_until
        {
            self.next = self.on_until.saturating_add(off.draw(&mut self.rng));
            self.on_until = self.next.saturating_add(on.draw(&mut self.rng));
            self.carried = Fraction::default();
            // Periods of no length at all must not stop time.
            self.next = self.next.max(at.saturating_add(Duration::from_ps(1)));
        }
        Some((at, self.model.size))
    }
}

#[cfg(test)]
mod tests;
