//! Queueing formulas with exact answers: M/M/1, M/M/c, M/D/1, M/G/1, G/M/1, tandems, and closed
//! networks by Buzen's convolution and by mean value analysis.
//!
//! (Kleinrock, *Queueing Systems* I, 1975; Buzen, CACM 16(9), 1973; Reiser & Lavenberg, JACM 27(2),
//! 1980.) Rates are per any unit of time, times in the same unit.

use super::spread::{LawSpread, Times};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum number of customers of a closed network.
pub const CUSTOMERS_MAX: usize = 100_000;
/// Maximum number of servers of a queue, and of stations of a network.
pub const SERVERS_MAX: u32 = 10_000;

/// A queue in steady state.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Steady {
    /// Share of the servers busy, below 1.
    pub utilisation: f64,
    /// Probability that an arrival waits.
    pub waits: f64,
    /// Mean number waiting, Lq.
    pub queue_len: f64,
    /// Mean number waiting or served, L.
    pub in_system: f64,
    /// Mean time waiting, Wq.
    pub wait: f64,
    /// Mean time waiting and served, W.
    pub sojourn: f64,
}

/// A closed network in steady state.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Closed {
    /// Customers per time around the loop.
    pub throughput: f64,
    /// Share of time each station is busy.
    pub utilisation: Vec<f64>,
    /// Mean number at each station.
    pub queue_len: Vec<f64>,
}

/// Why there is no steady state.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The arrival rate is at least the service rate.
    #[error(
        "load {load:.4} is not below 1: the queue grows without bound; lower the arrival rate or add servers"
    )]
    Unstable {
        /// Arrival rate over service rate of all servers.
        load: f64,
    },
    /// Words that contradict each other, or that no formula answers.
    #[error("{0}")]
    Refused(String),
    /// A number out of range.
    #[error(
        "{what} = {value}: out of range; rates and times are above 0, servers at most 10000, customers at most 100000"
    )]
    Range {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
    },
}

/// Returns `value` if it is finite and above 0.
pub(super) fn positive(what: &'static str, value: f64) -> Result<f64, QueueError> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(QueueError::Range { what, value }) }
}

pub(super) fn steady(arrival: f64, service_time: f64, utilisation: f64, waits: f64, wait: f64) -> Steady {
    let sojourn = wait + service_time;
    Steady { utilisation, waits, queue_len: arrival * wait, in_system: arrival * sojourn, wait, sojourn }
}

/// Solves M/M/1: Poisson arrivals, exponential service, one server.
///
/// # Errors
/// [`QueueError`] when unstable or out of range.
pub fn mm1(arrival: f64, service: f64) -> Result<Steady, QueueError> {
    mmc(arrival, service, 1)
}

/// Solves M/M/c: `servers` servers of rate `service` each, one queue.
///
/// # Errors
/// [`QueueError`] when unstable or out of range.
pub fn mmc(arrival: f64, service: f64, servers: u32) -> Result<Steady, QueueError> {
    let offered = positive("arrival rate", arrival)? / positive("service rate", service)?;
    let waits = erlang_c(offered, servers)?;
    let c = f64::from(servers);
    Ok(steady(arrival, 1.0 / service, offered / c, waits, waits / (c * service - arrival)))
}

/// Returns Erlang's B: the probability that all `servers` are busy, where arrivals that find all of
/// them busy are lost. `offered` is the arrival rate over the service rate.
///
/// # Errors
/// [`QueueError::Range`].
pub fn erlang_b(offered: f64, servers: u32) -> Result<f64, QueueError> {
    positive("offered load", offered)?;
    if servers == 0 || servers > SERVERS_MAX {
        return Err(QueueError::Range { what: "servers", value: f64::from(servers) });
    }
    // 1/B(k) = 1 + k/a · 1/B(k−1), in the stable direction.
    Ok((1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b)))
}

/// Returns Erlang's C: the probability that an arrival at an M/M/c queue waits.
///
/// # Errors
/// [`QueueError`] when unstable or out of range.
pub fn erlang_c(offered: f64, servers: u32) -> Result<f64, QueueError> {
    let b = erlang_b(offered, servers)?;
    let load = offered / f64::from(servers);
    if load >= 1.0 { Err(QueueError::Unstable { load }) } else { Ok(b / (1.0 - load * (1.0 - b))) }
}

/// Solves M/D/1: Poisson arrivals, constant service time, one server.
///
/// # Errors
/// [`QueueError`] when unstable or out of range.
pub fn md1(arrival: f64, service_time: f64) -> Result<Steady, QueueError> {
    mg1(arrival, service_time, 0.0)
}

/// Solves M/G/1 by Pollaczek and Khinchine: `variation` is the squared coefficient of variation of
/// the service time, 0 for constant, 1 for exponential.
///
/// # Errors
/// [`QueueError`] when unstable or out of range.
pub fn mg1(arrival: f64, service_time: f64, variation: f64) -> Result<Steady, QueueError> {
    let load = positive("arrival rate", arrival)? * positive("service time", service_time)?;
    if !(variation.is_finite() && variation >= 0.0) {
        return Err(QueueError::Range { what: "variation", value: variation });
    }
    if load >= 1.0 {
        return Err(QueueError::Unstable { load });
    }
    let wait = load * service_time * (1.0 + variation) / (2.0 * (1.0 - load));
    Ok(steady(arrival, service_time, load, load, wait))
}

/// Solves G/M/1: independent `gaps` between arrivals, exponential service. With σ the root of σ =
/// A*(μ(1−σ)), where A* is the Laplace transform of the gaps, an arrival waits with probability σ,
/// and the sojourn time is exponential with rate μ(1−σ) (Kleinrock 1975, §6.4). Returns the queue
/// and σ.
///
/// # Errors
/// [`QueueError`] when unstable or out of range, or for gaps of which only the variation is known.
pub fn gm1(gaps: Times, service: f64) -> Result<(Steady, f64), QueueError> {
    let arrival = 1.0 / positive("mean gap", gaps.mean)?;
    let load = arrival / positive("service rate", service)?;
    if load >= 1.0 {
        return Err(QueueError::Unstable { load });
    }
    if let LawSpread::Variation(_) = gaps.spread {
        return Err(QueueError::Refused(
            "G/M/1 depends on more than the variation of the gaps: write constant, exponential, erlang:K or hyper:CV2 instead of cv2".to_owned(),
        ));
    }
    // f(σ) = A*(μ(1−σ)) − σ is convex, with f(1) = 0 and f < 0 between the root and 1.
    let f = |sigma: f64| gaps.transform(service * (1.0 - sigma)) - sigma;
    let mut high = 0.5;
    while f(high) >= 0.0 {
        high = f64::midpoint(high, 1.0);
        if 1.0 - high < 1e-12 {
            return Err(QueueError::Unstable { load });
        }
    }
    let mut low = 0.0;
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if f(middle) > 0.0 { low = middle } else { high = middle }
    }
    let sigma = f64::midpoint(low, high);
    let wait = sigma / (service * (1.0 - sigma));
    Ok((steady(arrival, 1.0 / service, load, sigma, wait), sigma))
}

/// Solves exponential queues in a row, (service rate, servers) each. By Burke's theorem each is an
/// independent M/M/c queue.
///
/// # Errors
/// [`QueueError`] of the first stage that is unstable or out of range.
pub fn tandem(arrival: f64, stages: &[(f64, u32)]) -> Result<Vec<Steady>, QueueError> {
    stages.iter().map(|(service, servers)| mmc(arrival, *service, *servers)).collect()
}

/// Solves a closed network of single exponential servers by Buzen's convolution. `demands` is the
/// mean service time per round at each station.
///
/// # Errors
/// [`QueueError::Range`].
pub fn buzen(demands: &[f64], customers: usize) -> Result<Closed, QueueError> {
    check_closed(demands, customers)?;
    // Scaled to the largest demand, so that the constants neither overflow nor vanish too early.
    let largest = demands.iter().copied().fold(0.0, f64::max);
    let relative: Vec<f64> = demands.iter().map(|d| d / largest).collect();
    let mut g = vec![0.0; customers + 1];
    g[0] = 1.0;
    for d in &relative {
        for n in 1..=customers {
            g[n] += d * g[n - 1];
        }
    }
    let throughput = g[customers - 1] / g[customers];
    let queue_len = |d: f64| {
        // Σ dⁿ G(N−n)/G(N) by Horner's scheme from the far end.
        (0..customers).fold(0.0, |sum, n| (sum + g[n] / g[customers]) * d)
    };
    Ok(Closed {
        throughput: throughput / largest,
        utilisation: relative.iter().map(|d| d * throughput).collect(),
        queue_len: relative.iter().map(|d| queue_len(*d)).collect(),
    })
}

/// Solves the same network by mean value analysis, with `think` time without queueing per round (0
/// for none).
///
/// # Errors
/// [`QueueError::Range`].
pub fn mva(demands: &[f64], customers: usize, think: f64) -> Result<Closed, QueueError> {
    check_closed(demands, customers)?;
    if !(think.is_finite() && think >= 0.0) {
        return Err(QueueError::Range { what: "think time", value: think });
    }
    let mut queue_len = vec![0.0; demands.len()];
    let mut throughput = 0.0;
    for n in 1..=customers {
        let times: Vec<f64> = demands.iter().zip(&queue_len).map(|(d, q)| d * (1.0 + q)).collect();
        throughput = n as f64 / (think + times.iter().sum::<f64>());
        queue_len = times.iter().map(|t| throughput * t).collect();
    }
    Ok(Closed { throughput, utilisation: demands.iter().map(|d| d * throughput).collect(), queue_len })
}

fn check_closed(demands: &[f64], customers: usize) -> Result<(), QueueError> {
    if customers == 0 || customers > CUSTOMERS_MAX {
        return Err(QueueError::Range { what: "customers", value: customers as f64 });
    }
    if demands.is_empty() || demands.len() > SERVERS_MAX as usize {
        return Err(QueueError::Range { what: "stations", value: demands.len() as f64 });
    }
    demands.iter().try_for_each(|d| positive("demand", *d).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} {b}");
    }

    #[test]
    fn the_single_server_formulas_have_their_textbook_values() {
        let q = mm1(0.8, 1.0).expect("stable");
        close(q.in_system, 4.0);
        close(q.sojourn, 5.0);
        close(q.queue_len, 3.2);
        // Half of the wait with constant service.
        close(md1(0.8, 1.0).expect("stable").wait, 2.0);
        assert_eq!(mg1(0.8, 1.0, 1.0).expect("stable").wait, mm1(0.8, 1.0).expect("stable").wait);
    }

    #[test]
    fn erlang_values_agree_with_printed_tables() {
        // Erlang B: 10 servers, 5 erlang 0.018385; C: 5 servers, 4 erlang 0.5541; C: 10 servers, 8
        // erlang 0.4092.
        assert!((erlang_b(5.0, 10).expect("in range") - 0.018_385).abs() < 1e-6);
        assert!((erlang_c(4.0, 5).expect("stable") - 0.5541).abs() < 1e-4);
        assert!((erlang_c(8.0, 10).expect("stable") - 0.4092).abs() < 1e-4);
    }

    #[test]
    fn g_m_1_is_m_m_1_with_poisson_arrivals_and_d_m_1_by_its_root() {
        let (q, sigma) = gm1(Times { mean: 1.0 / 0.8, spread: LawSpread::Exponential }, 1.0).expect("stable");
        close(sigma, 0.8);
        close(q.wait, mm1(0.8, 1.0).expect("stable").wait);
        // D/M/1 at load 0.5: σ = exp(−2(1−σ)) = 0.203188.
        let (_, sigma) = gm1(Times { mean: 2.0, spread: LawSpread::Constant }, 1.0).expect("stable");
        assert!((sigma - 0.203_188).abs() < 1e-6, "{sigma}");
        assert!(gm1(Times { mean: 1.0, spread: LawSpread::Constant }, 1.0).is_err());
    }

    #[test]
    fn overload_and_nonsense_are_refused() {
        assert_eq!(mm1(1.0, 1.0), Err(QueueError::Unstable { load: 1.0 }));
        assert!(mmc(1.0, 1.0, 0).is_err() && mm1(-1.0, 1.0).is_err() && mm1(f64::NAN, 1.0).is_err());
        assert!(buzen(&[], 1).is_err() && buzen(&[1.0], 0).is_err() && mva(&[1.0], 1, -1.0).is_err());
    }

    #[test]
    fn balanced_closed_networks_have_the_closed_form() {
        // K equal stations, N customers: X = N/(N + K − 1)/D.
        let closed = buzen(&[2.0; 32], 64).expect("in range");
        close(closed.throughput, 64.0 / 95.0 / 2.0);
        close(closed.queue_len[7], 2.0);
    }

    #[test]
    fn a_tandem_holds_what_its_stages_hold() {
        let stages = tandem(3.0, &[(4.0, 1), (2.0, 2), (10.0, 1)]).expect("stable");
        close(stages[0].in_system, 3.0);
        close(stages[1].in_system, mmc(3.0, 2.0, 2).expect("stable").in_system);
        assert!(tandem(3.0, &[(4.0, 1), (2.0, 1)]).is_err());
    }

    proptest! {
        #[test]
        fn buzen_and_mean_value_analysis_agree(demands in prop::collection::vec(0.01f64..5.0, 1..6), customers in 1usize..60) {
            let (a, b) = (buzen(&demands, customers).expect("in range"), mva(&demands, customers, 0.0).expect("in range"));
            prop_assert!((a.throughput / b.throughput - 1.0).abs() < 1e-9);
            for (x, y) in a.queue_len.iter().zip(&b.queue_len) {
                prop_assert!((x - y).abs() < 1e-8 * customers as f64);
            }
            prop_assert!((a.queue_len.iter().sum::<f64>() - customers as f64).abs() < 1e-8 * customers as f64);
        }

        #[test]
        fn more_servers_of_the_same_total_rate_wait_less_and_little_s_law_holds(load in 0.05f64..0.95, servers in 1u32..40) {
            let one = mm1(load, 1.0).expect("stable");
            let many = mmc(load, 1.0 / f64::from(servers), servers).expect("stable");
            prop_assert!(many.wait <= one.wait * (1.0 + 1e-12));
            prop_assert!((many.in_system - load * many.sojourn).abs() < 1e-9);
        }
    }
}
