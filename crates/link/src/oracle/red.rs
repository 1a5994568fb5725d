//! RED as in Figure 2 of Floyd and Jacobson 1993, line by line, with the gentle variant.

use super::discipline::{AdmissionOracle, Arrival, DisciplineOracle};
use super::exact::PS_PER_S;
use crate::packet::DropReason;
use crate::qdisc::{Limit, QueueSpec, RedIdle, RedSpec};
use fastpath_units::{Duration, Rate, Rng, math};

pub(super) fn oracle(spec: &RedSpec) -> DisciplineOracle {
    DisciplineOracle::Admission(Box::new(Red { spec: *spec, variables: RedVariables::default() }))
}

#[derive(Debug)]
struct Red {
    spec: RedSpec,
    variables: RedVariables,
}

impl AdmissionOracle for Red {
    fn admit(&mut self, arrival: &Arrival<'_>, rng: &mut Rng) -> Result<bool, DropReason> {
        self.variables.admit(arrival, self.spec, rng)
    }

    fn reconfigure(&mut self, spec: &QueueSpec) -> bool {
        let by_packets = |spec: &RedSpec| matches!(spec.limit, Limit::Packets(_));
        match spec {
            QueueSpec::Red(spec) if by_packets(spec) == by_packets(&self.spec) => {
                self.spec = *spec;
                true
            }
            _ => false,
        }
    }
}

/// The "saved variables" of Figure 2.
#[derive(Debug)]
pub(super) struct RedVariables {
    pub(super) avg: f64,
    count: i64,
}

impl Default for RedVariables {
    fn default() -> RedVariables {
        RedVariables { avg: 0.0, count: -1 }
    }
}

impl RedVariables {
    /// Decides about an arrival, with ECN and the hard limit.
    pub(super) fn admit(
        &mut self,
        arrival: &Arrival<'_>,
        spec: RedSpec,
        rng: &mut Rng,
    ) -> Result<bool, DropReason> {
        let selected = self.selects(arrival, spec, rng);
        let ect = arrival.packet.traffic_class & 3 > 0;
        if selected && !(spec.ecn && ect && self.avg < spec.max as f64) {
            return Err(DropReason::Early);
        }
        if !arrival.fits(spec.limit) {
            self.count = 0;
            return Err(DropReason::QueueFull);
        }
        Ok(selected)
    }

    /// The average after an idle time.
    fn idle(&mut self, idle: Duration, rate: Option<Rate>, spec: RedSpec) {
        let w_q = spec.weight.get();
        let Some(rate) = rate.filter(|_| spec.mean_packet.0 > 0) else {
            self.avg = 0.0;
            return;
        };
        let s = u128::from(spec.mean_packet.0) * 8 * PS_PER_S;
        let sent = u128::from(idle.as_ps()) * u128::from(rate.as_bps());
        match spec.idle {
            RedIdle::Time => {
                let m = sent as f64 / s as f64;
                self.avg *= match w_q {
                    _ if m == 0.0 => 1.0,
                    1.0 => 0.0,
                    0.0 => 1.0,
                    _ => math::exp(m * math::ln(1.0 - w_q)),
                };
            }
            RedIdle::Ns2 => self.avg *= raise(1.0 - w_q, sent / s + 1),
            RedIdle::Linux if w_q == 1.0 => self.avg = 0.0,
            RedIdle::Linux if w_q == 0.0 => {}
            RedIdle::Linux => {
                let xmit_time = spec.mean_packet.0 as f64 * 8.0 * 15_625_000.0 / rate.as_bps() as f64;
                let lw = -math::ln(1.0 - w_q) / xmit_time;
                let Some(clog) = (0..32).find(|clog| 31.0 / lw / f64::from(1u32 << clog) < 512.0) else {
                    return;
                };
                let stab = |i: u64| if i == 255 { 31.0 } else { ((i << clog) as f64 * lw).min(31.0).floor() };
                let us_idle = (idle.as_ps() / 1_000_000).min(255 << clog);
                let shift = stab(us_idle >> clog);
                if shift > 0.0 {
                    self.avg *= raise(0.5, shift as u128);
                } else {
                    self.avg *= f64::max(1.0 - us_idle as f64 / (1u64 << clog) as f64, 0.5);
                }
            }
        }
    }

    /// Figure 2: returns true if the arriving packet is marked or dropped.
    fn selects(&mut self, arrival: &Arrival<'_>, spec: RedSpec, rng: &mut Rng) -> bool {
        let RedSpec { limit, min, max, weight, max_p, gentle, mean_packet, .. } = spec;
        let (min_th, max_th, w_q, max_p) = (min as f64, max as f64, weight.get(), max_p.get());
        let by_bytes = matches!(limit, Limit::Bytes(_));
        if arrival.queue.is_empty() {
            self.idle(arrival.now.since(arrival.idle_since), arrival.rate, spec);
        } else {
            let bytes = arrival.queue.iter().sum::<u64>();
            let q = if by_bytes { bytes as f64 } else { arrival.queue.len() as f64 };
            self.avg += w_q * (q - self.avg);
        }
        if self.avg < min_th {
            self.count = -1;
            return false;
        }
        if self.avg >= if gentle { 2.0 * max_th } else { max_th } {
            self.count = 0;
            return true;
        }
        self.count += 1;
        let mut p_b = if self.avg < max_th {
            max_p * (self.avg - min_th) / (max_th - min_th)
        } else {
            max_p + (1.0 - max_p) * (self.avg - max_th) / max_th
        };
        if by_bytes {
            p_b = p_b * f64::from(arrival.packet.len) / mean_packet.0 as f64;
        }
        // p_a = p_b / (1 − count·p_b), which is 1 once the denominator is no larger than p_b.
        let denominator = 1.0 - self.count as f64 * p_b;
        let draw = rng.unit_f64();
        let marked = draw * denominator < p_b;
        if marked {
            self.count = 0;
        }
        marked
    }
}

/// Returns `base`ᵐ by the binary method of Knuth, TAOCP 4.6.3, in the order of the pipe.
fn raise(base: f64, m: u128) -> f64 {
    let m = m.min(u128::from(u64::MAX));
    let mut squares = base;
    let mut product = 1.0;
    for bit in 0..64 {
        if m >> bit & 1 == 1 {
            product *= squares;
        }
        squares *= squares;
    }
    product
}
