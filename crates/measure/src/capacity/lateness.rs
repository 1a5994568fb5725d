//! How late frames are, from runs at two loads.

use fastpath_model::Estimate;
use fastpath_model::capacity::LatenessCosts;
use fastpath_units::stats::median;

/// How much further than the runs that were seen another one may be.
const LATENESS_MARGIN: f64 = 1.5;

/// Returns the costs of lateness from median and 99th percentile of runs with little load, and of
/// runs at half of the capacity. Lateness has no law that a few runs show: the interval is what was
/// seen, with a margin.
pub(super) fn seen_lateness([little, much]: &[Vec<[f64; 2]>; 2]) -> LatenessCosts {
    let seen_values = |values: &[f64]| {
        let [low, high] = [
            values.iter().copied().fold(f64::INFINITY, f64::min),
            values.iter().copied().fold(0.0, f64::max),
        ];
        Estimate {
            value: median(values.iter().copied()),
            low: low / LATENESS_MARGIN,
            high: high * LATENESS_MARGIN,
        }
    };
    let of = |place: usize| {
        let idle: Vec<f64> = little.iter().map(|run| run[place]).collect();
        let idle = seen_values(&idle);
        // ρ/(1 − ρ) is 1 at half of the capacity.
        let waiting: Vec<f64> = much.iter().map(|run| (run[place] - idle.value).max(0.0)).collect();
        (idle, seen_values(&waiting))
    };
    let (idle_p50_us, waiting_p50_us) = of(0);
    let (idle_p99_us, waiting_p99_us) = of(1);
    // In a quiet moment nothing disturbs: the 99th percentile comes down to the median.
    let down_to = |p99: Estimate, p50: Estimate| Estimate { low: p99.low.min(p50.low), ..p99 };
    let idle_p99_us = down_to(idle_p99_us, idle_p50_us);
    let waiting_p99_us = down_to(waiting_p99_us, waiting_p50_us);
    LatenessCosts { idle_p50_us, idle_p99_us, waiting_p50_us, waiting_p99_us }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_longer_at_half_of_the_capacity_is_the_step() {
        let little = vec![[2.0, 10.0], [3.0, 20.0], [4.0, 30.0]];
        let much = vec![[5.0, 120.0], [6.0, 220.0], [7.0, 320.0]];
        let found = seen_lateness(&[little, much]);
        assert_eq!((found.idle_p50_us.value, found.idle_p99_us.value), (3.0, 20.0));
        assert_eq!((found.waiting_p50_us.value, found.waiting_p99_us.value), (3.0, 200.0));
        assert_eq!((found.idle_p99_us.low, found.idle_p99_us.high), (2.0 / 1.5, 45.0));
    }
}
