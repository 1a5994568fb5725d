//! The simulation and the formulas, each a test of the other.
//!
//! Seeds are fixed, so the tests are repeatable. Each figure must lie within 2.2 half widths of its
//! 95 % interval: 4.5 standard errors, of which a correct pair fails one choice of seed in about
//! 10 000. Figures of one run depend on one another, so how often intervals hold is asked of one
//! figure over many seeds.

use super::super::priority::Preemption;
use super::super::spread::{LawSpread, Times};
use super::super::system::{PriorityClass, QueueFigures, Queueing, ServerGroup};
use super::super::{QueueError, solve};
use super::{SimulationOptions, simulate};
use crate::Estimate;

const PERCENTS: [f64; 3] = [50.0, 90.0, 99.0];

fn times(mean: f64, spread: LawSpread) -> Times {
    Times { mean, spread }
}

fn markov(mean: f64) -> Times {
    Times::exponential(mean)
}

fn group(service: Times, servers: u32) -> ServerGroup {
    ServerGroup { service, servers }
}

fn single(gaps: Times, service: Times, servers: u32, places: Option<u32>) -> Queueing {
    Queueing::Single { gaps, group: group(service, servers), places }
}

fn class(arrival: f64, service: Times) -> PriorityClass {
    PriorityClass { gaps: markov(1.0 / arrival), service }
}

/// Queues with an exact formula, of a service time of about a microsecond.
fn exact_queues() -> Vec<Queueing> {
    let us = 1e-6;
    let mut queues = vec![
        single(markov(us / 0.7), markov(us), 1, None),
        single(markov(us / 3.0), markov(us), 4, None),
        single(markov(us / 0.8), times(us, LawSpread::Constant), 1, None),
        single(markov(us / 0.6), times(us, LawSpread::Hyper(3.0)), 1, None),
        single(markov(us / 0.7), times(us, LawSpread::Erlang(3)), 1, None),
        single(times(us / 0.8, LawSpread::Constant), markov(us), 1, None),
        single(times(us / 0.8, LawSpread::Erlang(2)), markov(us), 1, None),
        single(times(us / 0.5, LawSpread::Hyper(4.0)), markov(us), 1, None),
        single(markov(us / 1.2), markov(us), 1, Some(6)),
        single(markov(us / 3.5), markov(us), 3, Some(10)),
        single(markov(us / 4.0), times(us, LawSpread::Hyper(2.0)), 5, Some(5)),
        single(markov(us / 0.9), times(us, LawSpread::Constant), 1, Some(5)),
        single(markov(us / 1.5), times(us, LawSpread::Erlang(2)), 1, Some(8)),
        single(markov(us / 0.9), times(us, LawSpread::Hyper(4.0)), 1, Some(12)),
        Queueing::Tandem {
            gaps: markov(us / 0.6),
            stations: vec![group(markov(us), 1), group(markov(2.0 * us), 3)],
        },
        Queueing::Closed {
            stations: vec![group(markov(us), 2)],
            customers: 12,
            think: Some(times(5.0 * us, LawSpread::Constant)),
        },
        Queueing::Closed {
            stations: vec![group(markov(us), 1), group(markov(2.0 * us), 1), group(markov(4.0 * us), 3)],
            customers: 9,
            think: Some(markov(3.0 * us)),
        },
        Queueing::Closed {
            stations: vec![group(markov(us), 1), group(markov(0.9 * us), 1)],
            customers: 5,
            think: None,
        },
    ];
    for preemption in [Preemption::None, Preemption::Resume] {
        queues.push(Queueing::Priority {
            classes: vec![
                class(0.3e6, times(us, LawSpread::Constant)),
                class(0.2e6, times(0.5 * us, LawSpread::Erlang(2))),
                class(0.2e6, times(us, LawSpread::Hyper(2.0))),
            ],
            servers: 1,
            preemption,
        });
        queues.push(Queueing::Priority {
            classes: vec![class(0.8e6, markov(us)), class(1.4e6, markov(us))],
            servers: 3,
            preemption,
        });
    }
    queues
}

/// Pairs of an exact and a simulated figure, named.
fn pairs(exact: &QueueFigures, simulated: &QueueFigures) -> Vec<(String, Estimate, Estimate)> {
    let named = [
        ("throughput", exact.throughput_per_s, simulated.throughput_per_s),
        ("utilisation", exact.utilisation, simulated.utilisation),
        ("lost", exact.lost, simulated.lost),
        ("waits", exact.waits, simulated.waits),
        ("queue", exact.queue_len, simulated.queue_len),
        ("in system", exact.in_system, simulated.in_system),
        ("wait", exact.wait_s, simulated.wait_s),
        ("sojourn", exact.sojourn_s, simulated.sojourn_s),
    ];
    let mut found: Vec<(String, Option<Estimate>, Option<Estimate>)> =
        named.into_iter().map(|(name, a, b)| (name.to_owned(), a, b)).collect();
    for (a, b) in exact.percentiles.iter().zip(&simulated.percentiles) {
        found.push((format!("wait {}", a.percent), a.wait_s, b.wait_s));
        found.push((format!("sojourn {}", a.percent), a.sojourn_s, b.sojourn_s));
    }
    found.into_iter().filter_map(|(name, a, b)| Some((name, a?, b?))).collect()
}

#[test]
fn formulas_and_simulation_agree() {
    let mut all = 0;
    for (seed, queue) in exact_queues().iter().enumerate() {
        let exact = solve(queue, &PERCENTS).expect("in range").expect("a formula");
        let options = SimulationOptions { seed: seed as u64, customers: 640_000 };
        let simulated = simulate(queue, &PERCENTS, options).expect("in range");
        assert_eq!(exact.parts.len(), simulated.parts.len(), "{}", queue.name());
        let mut figures = pairs(&exact.total, &simulated.total);
        for (a, b) in exact.parts.iter().zip(&simulated.parts) {
            assert_eq!(a.name, b.name);
            figures.extend(pairs(&a.figures, &b.figures));
        }
        for (name, a, b) in figures {
            let half = (b.high - b.value).max(b.value - b.low);
            // Figures without chance, such as no loss, have no interval.
            let distance = (a.value - b.value).abs();
            assert!(distance <= 2.2 * half + 1e-12 * a.value, "{}: {name}: {a:?} {b:?}", queue.name());
            all += usize::from(half > 0.0);
        }
    }
    assert!(all > 200, "{all} figures");
}

#[test]
fn intervals_hold_as_often_as_they_state() {
    let queues = exact_queues();
    for queue in [&queues[1], &queues[5], &queues[16]] {
        let exact = solve(queue, &[]).expect("in range").expect("a formula").total.sojourn_s.expect("a mean");
        let covers = |seed: &u64| {
            let options = SimulationOptions { seed: 1000 + seed, customers: 64_000 };
            let found = simulate(queue, &[], options).expect("in range").total.sojourn_s;
            found.is_some_and(|found| found.covers(exact.value))
        };
        let inside = (0..60).filter(covers).count();
        // 57 are expected; fewer than 51 in one of a thousand choices of seeds.
        assert!((51..=60).contains(&inside), "{}: {inside} of 60", queue.name());
    }
}

#[test]
fn the_wrong_formula_is_rejected() {
    let queue = single(markov(1.0 / 0.8), times(1.0, LawSpread::Constant), 1, None);
    let wrong = single(markov(1.0 / 0.8), markov(1.0), 1, None);
    let options = SimulationOptions { seed: 1, customers: 640_000 };
    let simulated = simulate(&queue, &PERCENTS, options).expect("in range").total;
    let exact = solve(&wrong, &PERCENTS).expect("stable").expect("a formula").total;
    let (a, b) = (exact.wait_s.expect("a wait"), simulated.wait_s.expect("a wait"));
    assert!(!b.covers(a.value) && (a.value - b.value) > 20.0 * (b.high - b.value));
}

#[test]
fn approximations_lie_within_a_quarter_of_the_simulation_at_high_load() {
    for (gaps, service) in [
        (LawSpread::Exponential, LawSpread::Constant),
        (LawSpread::Erlang(2), LawSpread::Erlang(4)),
        (LawSpread::Hyper(2.0), LawSpread::Hyper(3.0)),
    ] {
        let queue = single(times(1.0 / 3.6, gaps), times(1.0, service), 4, None);
        let found = solve(&queue, &PERCENTS).expect("stable").expect("an approximation");
        let options = SimulationOptions { seed: 5, customers: 1_000_000 };
        let simulated = simulate(&queue, &PERCENTS, options).expect("in range");
        let [a, b] = [&found, &simulated].map(|x| x.total.wait_s.expect("a wait").value);
        assert!((a / b - 1.0).abs() < 0.25, "{}: {a} {b}", queue.name());
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let queue = &exact_queues()[18];
    let run =
        |seed| simulate(queue, &PERCENTS, SimulationOptions { seed, customers: 20_000 }).expect("in range");
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let options = SimulationOptions { seed: 1, customers: 20_000 };
    let unstable = single(markov(1.0), markov(1.0), 1, None);
    assert_eq!(simulate(&unstable, &[], options), Err(QueueError::Unstable { load: 1.0 }));
    let unknown = single(markov(2.0), times(1.0, LawSpread::Variation(2.0)), 1, None);
    let said = simulate(&unknown, &[], options).expect_err("no distribution").to_string();
    assert!(said.starts_with("cv2:2 states no distribution"), "{said}");
    let few = SimulationOptions { customers: 10, ..options };
    assert!(simulate(&exact_queues()[0], &[], few).is_err());
}

#[test]
fn short_runs_at_high_load_say_so() {
    let queue = single(markov(1.0 / 0.99), markov(1.0), 1, None);
    let run = simulate(&queue, &[], SimulationOptions { seed: 2, customers: 64_000 }).expect("stable");
    assert_eq!(run.warnings.len(), 1, "{:?}", run.total.sojourn_s);
}
