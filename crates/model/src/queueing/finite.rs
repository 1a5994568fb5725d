//! Queues with a limited number of places or of customers: M/M/c/K, M/G/1/K, and the repair of
//! machines M/M/c//N.
//!
//! (Gross, Shortle, Thompson & Harris, *Fundamentals of Queueing Theory*, 4th ed., 2008, §2.5,
//! §2.7, §5.1.7.)

use super::formula::{QueueError, SERVERS_MAX, positive};
use super::spread::{LawSpread, Times};

/// Maximum number of places of a queue with exponential services, and of sources.
pub const PLACES_MAX: u32 = 100_000;
/// Maximum number of places of a queue with other services.
pub const PLACES_MAX_GENERAL: u32 = 10_000;

/// How many customers an arrival that is admitted finds.
#[derive(Clone, PartialEq, Debug)]
pub struct StateSeen {
    /// Number of servers.
    pub servers: u32,
    /// The probability to find n customers, by n.
    pub probabilities: Vec<f64>,
}

/// A queue of limited places or customers in steady state.
#[derive(Clone, PartialEq, Debug)]
pub struct Finite {
    /// Customers served per time.
    pub throughput: f64,
    /// Share of the arrivals that find no place and are lost.
    pub lost: f64,
    /// Share of the servers busy.
    pub utilisation: f64,
    /// Mean number waiting or served.
    pub in_system: f64,
    /// Mean time waiting and served, of customers that are served.
    pub sojourn: f64,
    /// Probability that a customer that is admitted waits.
    pub waits: f64,
    /// What arrivals find.
    pub seen: StateSeen,
}

fn within(what: &'static str, value: u32, low: u32, high: u32) -> Result<(), QueueError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(QueueError::Refused(format!("{what} {value}: write a number from {low} to {high}")))
}

/// The stationary probabilities of a chain of states by the ratios of neighbours: computed as
/// logarithms, so that they neither overflow nor vanish.
pub(super) fn birth_death(ratios: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut logs = vec![0.0];
    let mut log = 0.0;
    for ratio in ratios {
        log += ratio.ln();
        logs.push(log);
    }
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn mean_of(probabilities: &[f64]) -> f64 {
    probabilities.iter().enumerate().map(|(n, p)| n as f64 * p).sum()
}

/// Solves M/M/c/K: at most `places` customers, those in service included. An arrival that finds
/// no place is lost. The load may be above 1. With as many places as servers it is Erlang's loss
/// system, and holds for any distribution of services.
///
/// # Errors
/// [`QueueError`] for numbers out of range.
pub fn mmck(arrival: f64, service: f64, servers: u32, places: u32) -> Result<Finite, QueueError> {
    let offered = positive("arrival rate", arrival)? / positive("service rate", service)?;
    within("servers", servers, 1, SERVERS_MAX)?;
    within("places (they include those in service)", places, servers, PLACES_MAX)?;
    let p = birth_death((1..=places).map(|n| offered / f64::from(n.min(servers))));
    let lost = p[places as usize];
    let throughput = arrival * (1.0 - lost);
    let in_system = mean_of(&p);
    let probabilities: Vec<f64> = p[..places as usize].iter().map(|p| p / (1.0 - lost)).collect();
    Ok(Finite {
        throughput,
        lost,
        utilisation: throughput / service / f64::from(servers),
        in_system,
        sojourn: in_system / throughput,
        waits: probabilities.iter().skip(servers as usize).sum(),
        seen: StateSeen { servers, probabilities },
    })
}

/// Solves M/M/c//N, the repair of machines: each of `sources` customers is away for a mean time
/// `think` of any distribution, and then needs a service of one of `servers`.
///
/// # Errors
/// [`QueueError`] for numbers out of range.
pub fn repair(sources: u32, think: f64, service: f64, servers: u32) -> Result<Finite, QueueError> {
    within("sources", sources, 1, PLACES_MAX)?;
    within("servers", servers, 1, SERVERS_MAX)?;
    let each = 1.0 / positive("think time", think)?;
    positive("service rate", service)?;
    let states = |sources: u32| {
        birth_death(
            (1..=sources).map(|n| f64::from(sources - n + 1) * each / (f64::from(n.min(servers)) * service)),
        )
    };
    let p = states(sources);
    let in_system = mean_of(&p);
    let busy: f64 = p.iter().enumerate().map(|(n, p)| p * (n as f64).min(f64::from(servers))).sum();
    let throughput = busy * service;
    // A customer that arrives finds the system of all the others (Sevcik & Mitrani 1981).
    let probabilities = if sources == 1 { vec![1.0] } else { states(sources - 1) };
    Ok(Finite {
        throughput,
        lost: 0.0,
        utilisation: busy / f64::from(servers),
        in_system,
        sojourn: in_system / throughput,
        waits: probabilities.iter().skip(servers as usize).sum(),
        seen: StateSeen { servers, probabilities },
    })
}

/// Solves M/G/1/K: one server, at most `places` customers, the one in service included.
///
/// # Errors
/// [`QueueError`] for numbers out of range, or services of which only the variation is known.
pub fn mg1k(arrival: f64, service: Times, places: u32) -> Result<Finite, QueueError> {
    let load = positive("arrival rate", arrival)? * positive("service time", service.mean)?;
    within("places (they include the one in service)", places, 1, PLACES_MAX_GENERAL)?;
    let more = arrivals_exceed(arrival, service, places as usize)?;
    let departures = departure_states(&more, places as usize, 1.0);
    let total: f64 = departures.iter().sum();
    let pi: Vec<f64> = departures.iter().map(|p| p / total).collect();
    // Departures see π; arrivals see P_j = π_j/(π_0 + ρ), and no place otherwise.
    let lost = 1.0 - 1.0 / (pi[0] + load);
    let throughput = arrival * (1.0 - lost);
    let in_system = mean_of(&pi) / (pi[0] + load) + f64::from(places) * lost;
    Ok(Finite {
        throughput,
        lost,
        utilisation: throughput * service.mean,
        in_system,
        sojourn: in_system / throughput,
        waits: 1.0 - pi[0],
        seen: StateSeen { servers: 1, probabilities: pi },
    })
}

/// Returns the probabilities to find n = 0 … `count`−1 customers in M/D/1.
pub(super) fn md1_states(load: f64, count: usize) -> Vec<f64> {
    let service = Times { mean: load, spread: LawSpread::Constant };
    let more = arrivals_exceed(1.0, service, count).expect("constant times are a distribution");
    departure_states(&more, count, 1.0 - load)
}

/// Returns the probabilities that more than n = 0 … `count`−1 arrive in a service.
fn arrivals_exceed(arrival: f64, service: Times, count: usize) -> Result<Vec<f64>, QueueError> {
    let load = arrival * service.mean;
    let phases = |p: f64| move |n: usize| p.powf(n as f64 + 1.0);
    Ok(match service.spread {
        LawSpread::Constant => {
            (0..count).map(|n| statrs::function::gamma::gamma_lr(n as f64 + 1.0, load)).collect()
        }
        LawSpread::Exponential => (0..count).map(phases(load / (1.0 + load))).collect(),
        // Negative binomial: more than n arrivals before `k` ends of phases.
        LawSpread::Erlang(k) => {
            let p = load / (load + f64::from(k));
            (0..count).map(|n| statrs::function::beta::beta_reg(n as f64 + 1.0, f64::from(k), p)).collect()
        }
        LawSpread::Hyper(_) => {
            let [a, b] = service.spread.hyper_phases().map(|(p, mean)| (p, mean * load));
            let phase = |(p, load): (f64, f64), n: usize| p * (load / (1.0 + load)).powf(n as f64 + 1.0);
            (0..count).map(|n| phase(a, n) + phase(b, n)).collect()
        }
        LawSpread::Variation(_) => {
            return Err(QueueError::Refused(
                "a queue of limited places depends on more than the variation of the services: write constant, exponential, erlang:K or hyper:CV2 instead of cv2".to_owned(),
            ));
        }
    })
}

/// Returns what departures leave behind, in proportion: π_j·a_0 = π_0·P(A ≥ j) + Σ π_i·P(A > j−i),
/// i = 1 … j−1. All terms are positive (Ramaswami 1988), so nothing cancels.
fn departure_states(more: &[f64], count: usize, first: f64) -> Vec<f64> {
    let none = 1.0 - more[0];
    let mut pi = vec![first];
    for j in 1..count {
        let sum: f64 = (1..j).map(|i| pi[i] * more[j - i]).sum::<f64>() + pi[0] * more[j - 1];
        pi.push(sum / none);
        if sum / none > 1e200 {
            pi.iter_mut().for_each(|p| *p *= 1e-200);
        }
    }
    pi
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::{erlang_b, mg1};

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} {b}");
    }

    #[test]
    fn as_many_places_as_servers_is_erlang_s_loss_system() {
        let queue = mmck(5.0, 1.0, 10, 10).expect("in range");
        close(queue.lost, erlang_b(5.0, 10).expect("in range"));
        assert!((queue.lost - 0.018_385).abs() < 1e-6, "printed tables");
        close(queue.waits, 0.0);
        close(queue.sojourn, 1.0);
    }

    #[test]
    fn m_m_1_k_has_its_closed_form() {
        // P_K = (1−ρ)ρᴷ/(1−ρᴷ⁺¹); at ρ = 1 all states are equally likely.
        let queue = mmck(0.8, 1.0, 1, 5).expect("in range");
        close(queue.lost, 0.2 * 0.8f64.powi(5) / (1.0 - 0.8f64.powi(6)));
        let even = mmck(1.0, 1.0, 1, 9).expect("in range");
        close(even.lost, 0.1);
        close(even.in_system, 4.5);
        // Overload: the server is always busy.
        close(mmck(50.0, 1.0, 1, 100).expect("in range").throughput, 1.0);
    }

    #[test]
    fn m_g_1_k_with_exponential_services_is_m_m_1_k() {
        for (load, places) in [(0.3, 40), (0.9, 7), (1.0, 12), (3.0, 400)] {
            let a = mg1k(load, Times::exponential(1.0), places).expect("in range");
            let b = mmck(load, 1.0, 1, places).expect("in range");
            for (x, y) in
                [(a.lost, b.lost), (a.in_system, b.in_system), (a.sojourn, b.sojourn), (a.waits, b.waits)]
            {
                close(x, y);
            }
            let erlang =
                mg1k(load, Times { mean: 1.0, spread: LawSpread::Erlang(1) }, places).expect("in range");
            close(erlang.in_system, b.in_system);
        }
    }

    #[test]
    fn with_many_places_m_g_1_k_has_the_mean_of_m_g_1() {
        for spread in [LawSpread::Constant, LawSpread::Erlang(4), LawSpread::Hyper(3.0)] {
            let finite = mg1k(0.7, Times { mean: 1.0, spread }, 600).expect("in range");
            let infinite = mg1(0.7, 1.0, spread.variation()).expect("stable");
            assert!((finite.sojourn / infinite.sojourn - 1.0).abs() < 1e-9, "{spread}");
            assert!(finite.lost < 1e-12);
        }
    }

    #[test]
    fn machines_are_repaired_as_in_the_textbook() {
        // Two machines that are up as long as a repair takes.
        let one = repair(2, 1.0, 1.0, 1).expect("in range");
        // p ∝ 1, 2, 2.
        close(one.in_system, (2.0 + 4.0) / 5.0);
        close(one.throughput, 0.8);
        let two = repair(2, 1.0, 1.0, 2).expect("in range");
        close(two.in_system, 1.0);
        close(two.sojourn, 1.0);
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
        let few = mmck(1.0, 1.0, 4, 3).expect_err("fewer places than servers").to_string();
        assert_eq!(few, "places (they include those in service) 3: write a number from 4 to 100000");
        let variation = mg1k(1.0, Times { mean: 0.5, spread: LawSpread::Variation(1.0) }, 3);
        assert!(variation.expect_err("no distribution").to_string().contains("write constant, exponential"));
    }
}
