//! Merges many short passes over a grid into one result per point and removes the host's changes of
//! speed.
//!
//! A shared host changes its speed by tens of percent for tenths of a second. A pass over the grid
//! that is equally short runs at one speed at most points. A measured time is therefore the product
//! of a factor of the point and a factor of the pass. Medians separate the two (Tukey's median
//! polish of their logarithms, 1977). The median pass has a factor of 1, so that results are at the
//! host's usual speed.

use fastpath_units::stats::median;
use serde_json::{Map, Value, json};

/// Minimum number of points: with fewer, the factor of a pass would be the noise of those points.
const POINTS_MIN: usize = 8;
/// Rounds of the median polish: it converges with the second.
const ROUNDS: usize = 2;
/// Names of results that are times.
const TIMES: [&str; 4] = ["T_ns", "mean_ns", "p90_ns", "ns"];
/// Name of the result that is a rate.
const RATE: &str = "packets_per_second";
/// Name of the result that is summed over passes.
const COUNT: &str = "rounds";

/// The results of one point in one pass, by name.
pub type Results = Map<String, Value>;

/// Merges the passes of each point into one result; every point has the same number of passes.
/// Times and rates are medians over passes. `spread_pct` is the difference between the medians of
/// odd and even passes. All other values are those of the pass with the median time.
pub fn typical(points: Vec<Vec<Results>>) -> Vec<Results> {
    let times: Vec<Vec<f64>> = points.iter().map(|passes| passes.iter().map(time).collect()).collect();
    let factors = factors(&times);
    points.into_iter().zip(times).map(|(passes, times)| of_point(passes, &times, &factors)).collect()
}

fn time(results: &Results) -> f64 {
    results.get("T_ns").and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// Returns the slowdown of each pass relative to the usual speed.
fn factors(times: &[Vec<f64>]) -> Vec<f64> {
    let passes = times.first().map_or(0, Vec::len);
    let mut factors = vec![1.0; passes];
    if times.len() < POINTS_MIN {
        return factors;
    }
    for _ in 0..ROUNDS {
        let usual: Vec<f64> =
            times.iter().map(|times| median(times.iter().zip(&factors).map(|(t, f)| t / f))).collect();
        for (pass, factor) in factors.iter_mut().enumerate() {
            *factor = median(times.iter().zip(&usual).map(|(times, usual)| times[pass] / usual));
        }
        let middle = median(factors.iter().copied());
        factors.iter_mut().for_each(|factor| *factor /= middle);
    }
    factors
}

fn of_point(mut passes: Vec<Results>, times: &[f64], factors: &[f64]) -> Results {
    let count = passes.len();
    if count == 1 {
        return passes.swap_remove(0);
    }
    let polished: Vec<f64> = times.iter().zip(factors).map(|(t, f)| t / f).collect();
    let median_of_every_other = |from: usize| median(polished.iter().copied().skip(from).step_by(2));
    let spread = 100.0 * (median_of_every_other(0) / median_of_every_other(1) - 1.0).abs();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| polished[a].total_cmp(&polished[b]));
    let values: Vec<Value> = passes.into_iter().map(Value::Object).collect();
    let of: Vec<(&Value, f64)> = order.iter().map(|&pass| (&values[pass], factors[pass])).collect();
    let Value::Object(mut found) = merge("", &of) else { unreachable!("an object of objects") };
    if let Some(sum) = sum_of_stages(&found) {
        found.insert("stages_minus_whole_pct".to_owned(), json!(100.0 * (sum / time(&found) - 1.0)));
    }
    found.insert("passes".to_owned(), json!(count));
    found.insert("spread_pct".to_owned(), json!(spread));
    found
}

/// Merges one value over all passes. The passes are sorted by time, each with its factor.
fn merge(name: &str, of: &[(&Value, f64)]) -> Value {
    let middle = of[of.len() / 2].0;
    let numbers = |scaled: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        of.iter().filter_map(|(value, factor)| Some(scaled(value.as_f64()?, *factor))).collect()
    };
    match middle {
        Value::Object(fields) => {
            let field = |name: &String| {
                let of: Vec<_> =
                    of.iter().filter_map(|(value, factor)| Some((value.get(name)?, *factor))).collect();
                (name.clone(), merge(name, &of))
            };
            Value::Object(fields.keys().map(field).collect())
        }
        Value::Array(items) => {
            let item = |i: usize| {
                let of: Vec<_> =
                    of.iter().filter_map(|(value, factor)| Some((value.get(i)?, *factor))).collect();
                merge("", &of)
            };
            Value::Array((0..items.len()).map(item).collect())
        }
        Value::Number(_) if TIMES.contains(&name) => json!(median(numbers(&|x, factor| x / factor))),
        Value::Number(_) if name == RATE => json!(median(numbers(&|x, factor| x * factor))),
        Value::Number(_) if name == COUNT => {
            json!(of.iter().filter_map(|(value, _)| value.as_u64()).sum::<u64>())
        }
        other => other.clone(),
    }
}

fn sum_of_stages(results: &Results) -> Option<f64> {
    results.get("stages")?.as_array()?.iter().map(|stage| stage.get("ns")?.as_f64()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Rng;
    use fastpath_units::stats::sorted;

    fn results(t: f64) -> Results {
        let stages = json!([{"name": "a", "ns": 0.25 * t}, {"name": "b", "ns": 0.7 * t}]);
        let found =
            json!({"T_ns": t, "packets_per_second": 1e9 / t, "stages": stages, "rounds": 3, "kind": "x"});
        found.as_object().expect("an object").clone()
    }

    /// Points of 50, 60, … ns on a host that is 1.7 times slower for some passes in a row. Times
    /// vary by up to 1 %, and some points are preempted.
    fn shared_machine(points: usize, passes: usize, seed: u64) -> Vec<Vec<Results>> {
        let mut rng = Rng::new(seed);
        let mut slow = false;
        let mut times = vec![Vec::new(); points];
        for _ in 0..passes {
            for (point, times) in times.iter_mut().enumerate() {
                slow ^= rng.unit_f64() < 0.02;
                let speed = if slow { 1.7 } else { 1.0 };
                let preempted = if rng.unit_f64() < 0.02 { 3.0 } else { 1.0 };
                times.push(results(
                    (50.0 + 10.0 * point as f64) * speed * preempted * (1.0 + 0.01 * rng.unit_f64()),
                ));
            }
        }
        times
    }

    #[test]
    fn points_keep_their_proportions_on_a_host_with_two_speeds() {
        for seed in 0..20 {
            let found = typical(shared_machine(40, 200, seed));
            let scales: Vec<f64> =
                found.iter().enumerate().map(|(point, r)| time(r) / (50.0 + 10.0 * point as f64)).collect();
            let middle = median(scales.iter().copied());
            let errors = sorted(scales.iter().map(|scale| (scale / middle - 1.0).abs()));
            assert!(errors[20] < 0.01 && errors[38] < 0.05, "seed {seed}: {} {}", errors[20], errors[38]);
            assert!((1.0..1.72).contains(&middle), "{middle}");
        }
    }

    #[test]
    fn times_and_rates_are_medians_and_rounds_are_summed() {
        let passes = vec![vec![results(12.0), results(10.0), results(10.4)]];
        let [found] = &typical(passes)[..] else { panic!("one point") };
        assert_eq!(
            (time(found), &found["rounds"], &found["passes"], &found["kind"]),
            (10.4, &json!(9), &json!(3), &json!("x"))
        );
        assert_eq!(found["packets_per_second"], json!(1e9 / 10.4));
        assert_eq!(found["stages"][1], json!({"name": "b", "ns": 0.7 * 10.4}));
        let minus = found["stages_minus_whole_pct"].as_f64().expect("a number");
        assert!((minus + 5.0).abs() < 1e-9, "{minus}");
        let spread = found["spread_pct"].as_f64().expect("a number");
        assert!((spread - 12.0).abs() < 1e-9, "medians 11.2 and 10: {spread}");
    }

    #[test]
    fn a_single_pass_is_left_unchanged() {
        assert_eq!(typical(vec![vec![results(7.0)]]), [results(7.0)]);
        assert!(typical(Vec::new()).is_empty());
    }
}
