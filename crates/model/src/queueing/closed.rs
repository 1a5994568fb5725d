//! Closed networks of stations with several servers, by the normalising constant.
//!
//! (Gordon & Newell 1967; Buzen, CACM 16(9), 1973.) Mean value analysis of such stations is not
//! stable in floating point (Chandy & Sauer 1980); the convolution here has only positive terms.

use super::finite::birth_death;
use super::formula::{Closed, QueueError, mva, positive};

/// Maximum of stations × customers² of a network with several servers at a station.
pub const WORK_MAX: f64 = 1e9;

/// A station: the mean service time per round, and the number of servers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demand {
    /// Mean service time per round.
    pub time: f64,
    /// Number of servers.
    pub servers: u32,
}

/// Solves a closed network of exponential servers, with `think` time without queueing per round (0
/// for none).
///
/// # Errors
/// [`QueueError`] for numbers out of range.
pub fn closed(stations: &[Demand], customers: usize, think: f64) -> Result<Closed, QueueError> {
    let times: Vec<f64> = stations.iter().map(|station| station.time).collect();
    // Checks the numbers, and is the answer where each station has one server.
    if stations.iter().all(|station| station.servers == 1) {
        return mva(&times, customers, think);
    }
    mva(&times, 1, think)?;
    for station in stations {
        positive("servers of a station", f64::from(station.servers))?;
    }
    if customers == 0 || stations.len() as f64 * (customers as f64).powi(2) > WORK_MAX {
        return Err(QueueError::Refused(format!(
            "customers {customers}: write a number from 1 to {:.0} for {} stations of several servers",
            (WORK_MAX / stations.len() as f64).sqrt().floor(),
            stations.len()
        )));
    }
    Ok(convolve(stations, customers, think))
}

/// The distributions of the numbers at the stations, each alone with arrivals of one rate near the
/// throughput, convolve to the network's. Such a rate keeps all numbers in range.
fn convolve(stations: &[Demand], customers: usize, think: f64) -> Closed {
    let rate = matching_rate(stations, customers, think);
    let mut alone: Vec<Vec<f64>> =
        stations.iter().map(|s| number_at(rate * s.time, s.servers as usize, customers)).collect();
    if think > 0.0 {
        alone.push(number_at(rate * think, customers, customers));
    }
    // before[i]: stations 0 … i−1 together; after: those from i on.
    let mut before = vec![{
        let mut none = vec![0.0; customers + 1];
        none[0] = 1.0;
        none
    }];
    for one in &alone {
        before.push(convolution(before.last().expect("it has a first"), one));
    }
    let all = before.last().expect("it has a first").clone();
    let throughput = rate * all[customers - 1] / all[customers];
    let mut after = before[0].clone();
    let mut queue_len = vec![0.0; alone.len()];
    for i in (0..alone.len()).rev() {
        let others = convolution(&before[i], &after);
        let mean: f64 = (0..=customers).map(|k| k as f64 * alone[i][k] * others[customers - k]).sum();
        queue_len[i] = mean / all[customers];
        after = convolution(&after, &alone[i]);
    }
    queue_len.truncate(stations.len());
    let utilisation = stations.iter().map(|s| throughput * s.time / f64::from(s.servers)).collect();
    Closed { throughput, utilisation, queue_len }
}

/// Returns an arrival rate at which the stations, if each was open with room for `customers`, hold
/// nearly as many.
fn matching_rate(stations: &[Demand], customers: usize, think: f64) -> f64 {
    let held = |rate: f64| -> f64 {
        let mean = |s: &Demand| {
            let distribution = number_at(rate * s.time, s.servers as usize, customers);
            distribution.iter().enumerate().map(|(n, p)| n as f64 * p).sum::<f64>()
        };
        stations.iter().map(mean).sum::<f64>() + rate * think
    };
    let target = 0.9 * customers as f64;
    let (mut low, mut high) = (0.0, 1.0 / stations[0].time);
    while held(high) < target {
        high *= 2.0;
    }
    for _ in 0..40 {
        let rate = f64::midpoint(low, high);
        if held(rate) > target { high = rate } else { low = rate }
    }
    f64::midpoint(low, high)
}

/// The probabilities of 0 … `most` at a station of `offered` load.
fn number_at(offered: f64, servers: usize, most: usize) -> Vec<f64> {
    birth_death((1..=most).map(|n| offered / n.min(servers) as f64))
}

fn convolution(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len()).map(|n| (0..=n).map(|k| a[k] * b[n - k]).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::finite::repair;
    use proptest::prelude::*;

    fn one(time: f64) -> Demand {
        Demand { time, servers: 1 }
    }

    proptest! {
        #[test]
        fn the_convolution_agrees_with_mean_value_analysis(
            demands in prop::collection::vec(0.01f64..5.0, 1..5), customers in 1usize..50, think in 0.0f64..20.0,
        ) {
            let stations: Vec<Demand> = demands.iter().map(|time| one(*time)).collect();
            let a = convolve(&stations, customers, think);
            let b = mva(&demands, customers, think).expect("in range");
            prop_assert!((a.throughput / b.throughput - 1.0).abs() < 1e-9, "{} {}", a.throughput, b.throughput);
            for (x, y) in a.queue_len.iter().zip(&b.queue_len) {
                prop_assert!((x - y).abs() < 1e-8 * customers as f64);
            }
        }

        #[test]
        fn one_station_and_thinking_is_the_repair_of_machines(
            service in 0.1f64..10.0, think in 0.1f64..100.0, servers in 2u32..9, customers in 1usize..80,
        ) {
            let a = closed(&[Demand { time: 1.0 / service, servers }], customers, think).expect("in range");
            let b = repair(customers as u32, think, service, servers).expect("in range");
            prop_assert!((a.throughput / b.throughput - 1.0).abs() < 1e-9);
            prop_assert!((a.queue_len[0] - b.in_system).abs() < 1e-8 * customers as f64);
        }
    }

    #[test]
    fn servers_for_all_are_time_to_think() {
        let a = closed(&[one(1.0), Demand { time: 7.0, servers: 40 }], 40, 0.0).expect("in range");
        let b = mva(&[1.0], 40, 7.0).expect("in range");
        assert!((a.throughput / b.throughput - 1.0).abs() < 1e-9);
    }

    #[test]
    fn many_customers_neither_overflow_nor_vanish() {
        let stations = [Demand { time: 1000.0, servers: 900 }, one(1.0), Demand { time: 3.0, servers: 4 }];
        let found = closed(&stations, 3000, 5000.0).expect("in range");
        // Nearly no one waits: 3000 customers, rounds of 6004 s and a little.
        assert!(found.throughput > 0.499 && found.throughput < 3000.0 / 6004.0, "{}", found.throughput);
        let held: f64 = found.queue_len.iter().sum::<f64>() + 5000.0 * found.throughput;
        assert!((held - 3000.0).abs() < 1e-6, "{held}");
        assert!(
            closed(&stations, 100_000, 0.0)
                .expect_err("too many")
                .to_string()
                .contains("write a number from 1 to 18257")
        );
    }
}
