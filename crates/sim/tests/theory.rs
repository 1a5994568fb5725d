//! The kernel and its statistics compared with exact queueing theory, and with an independent
//! implementation.
//!
//! Seeds are fixed, so the tests are repeatable. With 99.9 % intervals a *correct* simulator fails
//! one choice of seed in a thousand.

use fastpath_sim::classic::{StationRun, ring, station};
use fastpath_sim::kernel::Kernel;
use fastpath_sim::random::{Exponential, exponential};
use fastpath_sim::stats::{Confidence, Series};
use fastpath_units::{Duration, Rng, Time};
use std::collections::VecDeque;

const SERVICE_S: f64 = 1e-6;

/// Runs a queue of `servers` at `load` per server, mean service 1 µs, and gives the run.
fn run(servers: u64, load: f64, seed: u64, service: impl FnMut() -> Duration) -> StationRun {
    let gap = Duration::from_ps((1e6 / (load * servers as f64)).round() as u64);
    let mut gaps = Exponential::new(Rng::stream(seed, 0));
    station(servers, 1_000_000, || gaps.draw(gap), service)
}

/// Exponential services of mean 1 µs.
fn markov(seed: u64) -> impl FnMut() -> Duration {
    let mut services = Exponential::new(Rng::stream(seed, 1));
    move || services.draw(Duration::from_us(1))
}

#[track_caller]
fn assert_wait(run: &StationRun, expected_s: f64) {
    let interval = run.waits.estimate(Confidence::P999).expect("a long run");
    assert!(interval.contains(expected_s), "theory {expected_s:e}, simulated {interval:?}");
    assert!(interval.relative() < 0.15, "the interval is too wide: {interval:?}");
}

/// The probability of waiting in M/M/c with offered load `a` (Erlang C), by the Erlang B recursion.
fn erlang_c(servers: u64, a: f64) -> f64 {
    let b = (1..=servers).fold(1.0, |b, n| a * b / (n as f64 + a * b));
    let rho = a / servers as f64;
    b / (1.0 - rho + rho * b)
}

#[test]
fn m_m_1_waits_rho_over_mu_minus_lambda() {
    for (load, seed) in [(0.3, 1), (0.5, 2), (0.8, 3)] {
        let run = run(1, load, seed, markov(seed));
        assert_wait(&run, load / (1.0 - load) * SERVICE_S);
        // Utilisation is not a series; its standard error here is under 0.4 %.
        assert!((run.busy.mean(run.end) / load - 1.0).abs() < 0.015, "{}", run.busy.mean(run.end));
    }
}

#[test]
fn m_m_c_waits_by_erlang_c() {
    for (servers, load, seed) in [(2, 0.7, 4), (8, 0.8, 5), (32, 0.85, 6)] {
        let a = load * servers as f64;
        let expected = erlang_c(servers, a) * SERVICE_S / (servers as f64 - a);
        assert_wait(&run(servers, load, seed, markov(seed)), expected);
    }
}

#[test]
fn m_d_1_waits_half_as_long_as_m_m_1() {
    for (load, seed) in [(0.5, 7), (0.8, 8)] {
        let run = run(1, load, seed, || Duration::from_us(1));
        assert_wait(&run, load / (2.0 * (1.0 - load)) * SERVICE_S);
    }
}

#[test]
fn the_wrong_theory_is_rejected() {
    // The test can fail: the mean of M/D/1 lies far outside the interval of M/M/1.
    let interval = run(1, 0.8, 3, markov(3)).waits.estimate(Confidence::P999).unwrap();
    assert!(!interval.contains(0.8 / (2.0 * 0.2) * SERVICE_S));
}

#[test]
fn intervals_of_runs_too_short_for_their_load_are_marked() {
    // The 95 % interval covers the mean in 69.5 % of runs of 47 000 customers at ρ = 0.95.
    for (load, marked) in [(0.95, 19..=20), (0.5, 0..=1)] {
        let gap = Duration::from_ps((1e6 / load) as u64);
        let is_marked = |seed: &u64| {
            let mut gaps = Exponential::new(Rng::stream(*seed, 0));
            let run = station(1, 47_000, || gaps.draw(gap), markov(*seed));
            !run.waits.is_long_enough()
        };
        let count = (0..20).filter(is_marked).count();
        assert!(marked.contains(&count), "ρ = {load}: {count} of 20");
    }
}

#[test]
fn waits_are_lindleys_recursion_to_the_picosecond() {
    // W' = max(0, W + S − A), without an event list, on the same random numbers: both draw services
    // in customer order, and gaps from a separate stream.
    let gaps = || Exponential::new(Rng::stream(9, 0));
    let (mut theirs, mean) = (gaps(), Duration::from_ns(1250));
    let simulated = station(1, 100_000, || theirs.draw(mean), markov(9));
    let (mut gaps, mut service, mut wait, mut series) = (gaps(), markov(9), 0i64, Series::default());
    // The gap before the first customer.
    gaps.draw(mean);
    for _ in 0..100_000 {
        series.add(wait as f64 / 1e12);
        wait = (wait + service().as_ps() as i64 - gaps.draw(mean).as_ps() as i64).max(0);
    }
    let (ours, lindley) = (simulated.waits.estimate(Confidence::P95), series.estimate(Confidence::P95));
    assert_eq!(ours.map(|i| i.mean), lindley.map(|i| i.mean));
}

/// Poisson arrivals into exponential single servers of `means_ns` in series: the time each customer
/// spends in all.
fn tandem(gap: Duration, means_ns: &[u64], customers: u64, seed: u64) -> Series {
    #[derive(Clone, Copy)]
    enum Event {
        Arrival,
        Done(usize),
    }
    let (mut kernel, mut rng, mut stays) = (Kernel::new(), Rng::new(seed), Series::default());
    let mut queues = vec![VecDeque::<Time>::new(); means_ns.len()];
    kernel.schedule(Time::from_ps(1), Event::Arrival);
    let mut left = 0;
    while left < customers {
        let (entered, arrived, at) = match kernel.next().expect("an arrival is always pending") {
            Event::Arrival => {
                kernel.after(exponential(&mut rng, gap), Event::Arrival);
                (None, Some(kernel.now()), 0)
            }
            Event::Done(at) => {
                let customer = queues[at].pop_front();
                if !queues[at].is_empty() {
                    kernel.after(exponential(&mut rng, Duration::from_ns(means_ns[at])), Event::Done(at));
                }
                if at + 1 == means_ns.len() { (customer, None, at) } else { (None, customer, at + 1) }
            }
        };
        if let Some(entered) = entered {
            stays.add((kernel.now() - entered).as_secs_f64());
            left += 1;
        }
        if let Some(arrived) = arrived {
            queues[at].push_back(arrived);
            if queues[at].len() == 1 {
                kernel.after(exponential(&mut rng, Duration::from_ns(means_ns[at])), Event::Done(at));
            }
        }
    }
    stays
}

#[test]
fn stations_in_series_are_independent_as_burke_says() {
    // Stay = Σ 1/(μ − λ) with λ = 1/2000 ns.
    let stays = tandem(Duration::from_ns(2000), &[1000, 1600, 500], 400_000, 10);
    let expected: f64 = [1000.0, 1600.0, 500.0].iter().map(|m| 1e-9 / (1.0 / m - 1.0 / 2000.0)).sum();
    let interval = stays.estimate(Confidence::P999).unwrap();
    assert!(interval.contains(expected) && interval.relative() < 0.1, "{expected:e} {interval:?}");
}

/// The throughput, in laps per mean service, of `n` customers in a closed network of single
/// exponential servers with `demands`, by Buzen's convolution (Buzen 1973).
fn buzen(demands: &[f64], n: usize) -> f64 {
    let mut g = vec![0.0; n + 1];
    g[0] = 1.0;
    for demand in demands {
        for k in 1..=n {
            g[k] += demand * g[k - 1];
        }
    }
    g[n - 1] / g[n]
}

#[test]
fn a_closed_ring_has_the_product_forms_throughput() {
    for (servers, customers, seed) in [(3, 5, 1), (8, 8, 2), (32, 64, 3)] {
        let laps = 400_000 / servers as u64;
        let run = ring(servers, customers, laps, Duration::from_us(1), seed);
        let simulated = laps as f64 / run.end.as_secs_f64() * SERVICE_S;
        let exact = buzen(&vec![1.0; servers as usize], customers as usize);
        // Equal demands: N/(N+M−1) checks the convolution.
        assert!((exact - f64::from(customers) / f64::from(customers + servers - 1)).abs() < 1e-12);
        // 400 000 services: the standard error of the rate is below 0.3 %.
        assert!((simulated / exact - 1.0).abs() < 0.01, "{servers}/{customers}: {simulated} {exact}");
        let busy = run.busy.iter().map(|b| b.mean(run.end)).sum::<f64>() / f64::from(servers);
        assert!((busy / exact - 1.0).abs() < 0.01, "utilisation {busy}, exact {exact}");
    }
}
