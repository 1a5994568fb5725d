//! The choice of the formula for a queue: exact where one is known, else the approximation of
//! Allen and Cunneen, else none.

use super::closed::{Demand, closed};
use super::finite::{Finite, mg1k, mmck, repair};
use super::formula::{Closed, QueueError, SERVERS_MAX, Steady, erlang_c, gm1, mg1, mmc, steady};
use super::percentile::{Md1Waits, Tails, mmc_sojourn_exceeds, quantile};
use super::priority::{self, Preemption};
use super::spread::{LawSpread, Times};
use super::system::{
    Evidence, Percentile, PriorityClass, QueueAnswer, QueueFigures, QueuePart, Queueing, ServerGroup,
};
use crate::Estimate;

/// Solves a queue, with these percentiles (in percent) where they are known. Returns `None` where
/// no formula is known: then [`simulate`](super::simulate) answers.
///
/// # Errors
/// [`QueueError`] for a queue that grows without bound, and for numbers out of range.
pub fn solve(queue: &Queueing, percents: &[f64]) -> Result<Option<QueueAnswer>, QueueError> {
    check(queue)?;
    match queue {
        Queueing::Single { gaps, group, places: None } => single(*gaps, *group, percents).map(Some),
        Queueing::Single { gaps, group, places: Some(places) } => limited(*gaps, *group, *places, percents),
        Queueing::Priority { classes, servers, preemption } => priorities(classes, *servers, *preemption),
        Queueing::Tandem { gaps, stations } => row(*gaps, stations),
        Queueing::Closed { stations, customers, think } => around(stations, *customers, *think, percents),
    }
}

/// Checks what every method needs: numbers in range, and a steady state.
pub(super) fn check(queue: &Queueing) -> Result<(), QueueError> {
    let servers = |servers: u32| {
        if (1..=SERVERS_MAX).contains(&servers) {
            return Ok(());
        }
        Err(QueueError::Refused(format!("servers {servers}: write a number from 1 to {SERVERS_MAX}")))
    };
    let below_one = |load: f64| if load < 1.0 { Ok(()) } else { Err(QueueError::Unstable { load }) };
    match queue {
        Queueing::Single { gaps, group, places } => {
            servers(group.servers)?;
            match places {
                None => below_one(group.service.mean / gaps.mean / f64::from(group.servers)),
                Some(places) if *places < group.servers => Err(QueueError::Refused(format!(
                    "places {places}: they include those in service: write at least {} for as many servers",
                    group.servers
                ))),
                Some(_) => Ok(()),
            }
        }
        Queueing::Priority { classes, servers: count, .. } => {
            servers(*count)?;
            if classes.is_empty() {
                return Err(QueueError::Refused("no class: write at least one".to_owned()));
            }
            below_one(classes.iter().map(|c| c.service.mean / c.gaps.mean).sum::<f64>() / f64::from(*count))
        }
        Queueing::Tandem { gaps, stations } => stations.iter().enumerate().try_for_each(|(i, s)| {
            servers(s.servers)?;
            let load = s.service.mean / gaps.mean / f64::from(s.servers);
            if load < 1.0 {
                return Ok(());
            }
            Err(QueueError::Refused(format!("station {}: {}", i + 1, QueueError::Unstable { load })))
        }),
        Queueing::Closed { stations, .. } => stations.iter().try_for_each(|s| servers(s.servers)),
    }
}

/// The figures of a queue without limits.
fn figures(q: &Steady, arrival: f64) -> QueueFigures {
    let exact = |x: f64| Some(Estimate::exact(x));
    QueueFigures {
        throughput_per_s: exact(arrival),
        utilisation: exact(q.utilisation),
        lost: exact(0.0),
        waits: exact(q.waits).filter(|waits| !waits.value.is_nan()),
        queue_len: exact(q.queue_len),
        in_system: exact(q.in_system),
        wait_s: exact(q.wait),
        sojourn_s: exact(q.sojourn),
        percentiles: Vec::new(),
    }
}

/// The figures of a queue of limited places or customers.
fn finite_figures(q: &Finite, service: f64) -> QueueFigures {
    // A difference of nearly equal numbers is rounding, not a wait.
    let wait = Some(q.sojourn - service).filter(|wait| *wait > 1e-12 * service).unwrap_or(0.0);
    let exact = |x: f64| Some(Estimate::exact(x));
    QueueFigures {
        throughput_per_s: exact(q.throughput),
        utilisation: exact(q.utilisation),
        lost: exact(q.lost),
        waits: exact(q.waits),
        queue_len: exact(q.throughput * wait),
        in_system: exact(q.in_system),
        wait_s: exact(wait),
        sojourn_s: exact(q.sojourn),
        percentiles: Vec::new(),
    }
}

fn percentiles(
    percents: &[f64],
    wait: impl Fn(f64) -> Option<f64>,
    sojourn: impl Fn(f64) -> Option<f64>,
) -> Vec<Percentile> {
    let at = |percent: &f64| Percentile {
        percent: *percent,
        wait_s: wait(percent / 100.0).map(Estimate::exact),
        sojourn_s: sojourn(percent / 100.0).map(Estimate::exact),
    };
    percents.iter().map(at).collect()
}

fn answer(method: &str, evidence: Evidence, total: QueueFigures, parts: Vec<QueuePart>) -> QueueAnswer {
    QueueAnswer { method: method.to_owned(), evidence, total, parts, warnings: Vec::new() }
}

fn single(gaps: Times, group: ServerGroup, percents: &[f64]) -> Result<QueueAnswer, QueueError> {
    let ServerGroup { service, servers } = group;
    let (arrival, rate) = (1.0 / gaps.mean, 1.0 / service.mean);
    let is_poisson = gaps.is_exponential();
    if is_poisson && service.is_exponential() {
        let q = mmc(arrival, rate, servers)?;
        let spare = f64::from(servers) * rate - arrival;
        let wait = |p| quantile(p, q.sojourn, |t| q.waits * (-spare * t).exp());
        let stay = |p| quantile(p, q.sojourn, |t| mmc_sojourn_exceeds(t, q.waits, spare, rate));
        let percentiles = percentiles(percents, |p| Some(wait(p)), |p| Some(stay(p)));
        let total = QueueFigures { percentiles, ..figures(&q, arrival) };
        return Ok(answer("exact, by Erlang's C (Kleinrock 1975, §3.5)", Evidence::Exact, total, Vec::new()));
    }
    if is_poisson && servers == 1 {
        let q = mg1(arrival, service.mean, service.spread.variation())?;
        let wait = |p: f64| {
            let waits = Md1Waits::new(q.utilisation, p).filter(|_| service.spread == LawSpread::Constant)?;
            Some(quantile(p, 1.0, |t| waits.exceeds(t)) * service.mean)
        };
        let percentiles = percentiles(percents, wait, |p| Some(wait(p)? + service.mean));
        let total = QueueFigures { percentiles, ..figures(&q, arrival) };
        let method = "exact, by Pollaczek and Khinchine (Kleinrock 1975, §5.6)";
        return Ok(answer(method, Evidence::Exact, total, Vec::new()));
    }
    if servers == 1 && service.is_exponential() && gaps.spread.is_distribution() {
        let (q, sigma) = gm1(gaps, rate)?;
        let rest = rate * (1.0 - sigma);
        let wait = |p| quantile(p, q.sojourn, |t| sigma * (-rest * t).exp());
        let stay = |p| quantile(p, q.sojourn, |t| (-rest * t).exp());
        let percentiles = percentiles(percents, |p| Some(wait(p)), |p| Some(stay(p)));
        let total = QueueFigures { percentiles, ..figures(&q, arrival) };
        let method = "exact, by the root of A*(μ(1−σ)) = σ (Kleinrock 1975, §6.4)";
        return Ok(answer(method, Evidence::Exact, total, Vec::new()));
    }
    approximate(gaps, group)
}

/// Allen and Cunneen: the wait of M/M/c, times the mean of both squared coefficients of variation.
fn approximate(gaps: Times, group: ServerGroup) -> Result<QueueAnswer, QueueError> {
    let ServerGroup { service, servers } = group;
    let (arrival, rate) = (1.0 / gaps.mean, 1.0 / service.mean);
    let waits = erlang_c(arrival / rate, servers)?;
    let variation = f64::midpoint(gaps.spread.variation(), service.spread.variation());
    let wait = waits / (f64::from(servers) * rate - arrival) * variation;
    let load = arrival / rate / f64::from(servers);
    let total =
        QueueFigures { waits: None, ..figures(&steady(arrival, service.mean, load, waits, wait), arrival) };
    let method = "approximate, by Allen and Cunneen (Allen 1990, §5.4)";
    let mut found = answer(method, Evidence::Approximate, total, Vec::new());
    found.warnings.push(
        "the approximation has typical errors of 10 %, and larger ones at low load: --simulate SEED measures it".to_owned(),
    );
    Ok(found)
}

fn limited(
    gaps: Times,
    group: ServerGroup,
    places: u32,
    percents: &[f64],
) -> Result<Option<QueueAnswer>, QueueError> {
    let ServerGroup { service, servers } = group;
    let (arrival, rate) = (1.0 / gaps.mean, 1.0 / service.mean);
    if !gaps.is_exponential() {
        return Ok(None);
    }
    if service.is_exponential() {
        let q = mmck(arrival, rate, servers, places)?;
        let total = QueueFigures {
            percentiles: step_percentiles(&q, rate, percents),
            ..finite_figures(&q, service.mean)
        };
        let method = "exact, by its states (Gross et al. 2008, §2.5)";
        return Ok(Some(answer(method, Evidence::Exact, total, Vec::new())));
    }
    if servers == places {
        let q = mmck(arrival, rate, servers, places)?;
        let method = "exact, by Erlang's B, which holds for any services (Gross et al. 2008, §2.6)";
        return Ok(Some(answer(method, Evidence::Exact, finite_figures(&q, service.mean), Vec::new())));
    }
    if servers > 1 {
        return Ok(None);
    }
    let q = mg1k(arrival, service, places)?;
    let method = "exact, by what departures leave behind (Gross et al. 2008, §5.1.7)";
    Ok(Some(answer(method, Evidence::Exact, finite_figures(&q, service.mean), Vec::new())))
}

fn step_percentiles(q: &Finite, rate: f64, percents: &[f64]) -> Vec<Percentile> {
    let tails = Tails::new(&q.seen, rate);
    percentiles(
        percents,
        |p| Some(quantile(p, q.sojourn, |t| tails.wait_exceeds(t))),
        |p| Some(quantile(p, q.sojourn, |t| tails.sojourn_exceeds(t))),
    )
}

fn priorities(
    classes: &[PriorityClass],
    servers: u32,
    preemption: Preemption,
) -> Result<Option<QueueAnswer>, QueueError> {
    let first = classes[0].service;
    let arrivals: Vec<f64> = classes.iter().map(|c| 1.0 / c.gaps.mean).collect();
    if !classes.iter().all(|c| c.gaps.is_exponential()) {
        return Ok(None);
    }
    let (found, method) = if servers == 1 {
        let ranks: Vec<priority::Rank> = arrivals.iter().zip(classes).map(|(a, c)| (*a, c.service)).collect();
        (priority::single(&ranks, preemption)?, "exact, by Cobham (Kleinrock 1976, §3.3–3.4)")
    } else if classes.iter().all(|c| c.service.is_exponential() && c.service.mean == first.mean) {
        let found = priority::multiple(&arrivals, 1.0 / first.mean, servers, preemption)?;
        (found, "exact, by Davis 1966 and Buzen and Bondi 1983")
    } else {
        return Ok(None);
    };
    let sum = |f: fn(&Steady) -> f64| found.iter().map(f).sum::<f64>();
    let total_rate: f64 = arrivals.iter().sum();
    let all = Steady {
        utilisation: sum(|q| q.utilisation),
        waits: found[0].waits,
        queue_len: sum(|q| q.queue_len),
        in_system: sum(|q| q.in_system),
        wait: sum(|q| q.queue_len) / total_rate,
        sojourn: sum(|q| q.in_system) / total_rate,
    };
    let part = |(i, (q, arrival)): (usize, (&Steady, &f64))| QueuePart {
        name: format!("class {}", i + 1),
        figures: figures(q, *arrival),
    };
    let parts = found.iter().zip(&arrivals).enumerate().map(part).collect();
    Ok(Some(answer(method, Evidence::Exact, figures(&all, total_rate), parts)))
}

fn row(gaps: Times, stations: &[ServerGroup]) -> Result<Option<QueueAnswer>, QueueError> {
    if !gaps.is_exponential() || !stations.iter().all(|s| s.service.is_exponential()) {
        return Ok(None);
    }
    let arrival = 1.0 / gaps.mean;
    let found: Vec<Steady> =
        stations.iter().map(|s| mmc(arrival, 1.0 / s.service.mean, s.servers)).collect::<Result<_, _>>()?;
    let sum = |f: fn(&Steady) -> f64| Some(Estimate::exact(found.iter().map(f).sum::<f64>()));
    let total = QueueFigures {
        throughput_per_s: Some(Estimate::exact(arrival)),
        lost: Some(Estimate::exact(0.0)),
        queue_len: sum(|q| q.queue_len),
        in_system: sum(|q| q.in_system),
        wait_s: sum(|q| q.wait),
        sojourn_s: sum(|q| q.sojourn),
        ..QueueFigures::default()
    };
    let parts = found.iter().map(|q| figures(q, arrival)).enumerate().map(station).collect();
    Ok(Some(answer("exact, by Burke's theorem (Kleinrock 1975, §4.8)", Evidence::Exact, total, parts)))
}

fn station((i, figures): (usize, QueueFigures)) -> QueuePart {
    QueuePart { name: format!("station {}", i + 1), figures }
}

fn around(
    stations: &[ServerGroup],
    customers: u32,
    think: Option<Times>,
    percents: &[f64],
) -> Result<Option<QueueAnswer>, QueueError> {
    if !stations.iter().all(|s| s.service.is_exponential()) {
        return Ok(None);
    }
    if let ([only], Some(think)) = (stations, think) {
        let rate = 1.0 / only.service.mean;
        let q = repair(customers, think.mean, rate, only.servers)?;
        let total = QueueFigures {
            percentiles: step_percentiles(&q, rate, percents),
            ..finite_figures(&q, only.service.mean)
        };
        let method = "exact, by its states, for any distribution of the times away (Gross et al. 2008, §2.7)";
        return Ok(Some(answer(method, Evidence::Exact, total, Vec::new())));
    }
    let demands: Vec<Demand> =
        stations.iter().map(|s| Demand { time: s.service.mean, servers: s.servers }).collect();
    let found = closed(&demands, customers as usize, think.map_or(0.0, |think| think.mean))?;
    let method = if demands.iter().all(|d| d.servers == 1) {
        "exact, by mean value analysis (Reiser and Lavenberg 1980)"
    } else {
        "exact, by the normalising constant (Buzen 1973)"
    };
    Ok(Some(closed_answer(method, &found, &demands)))
}

fn closed_answer(method: &str, found: &Closed, demands: &[Demand]) -> QueueAnswer {
    let exact = |x: f64| Some(Estimate::exact(x));
    let times = |held: f64, service: f64, utilisation: Option<f64>| {
        let sojourn = held / found.throughput;
        let wait = (sojourn - service).max(0.0);
        QueueFigures {
            throughput_per_s: exact(found.throughput),
            utilisation: utilisation.and_then(exact),
            queue_len: exact(found.throughput * wait),
            in_system: exact(held),
            wait_s: exact(wait),
            sojourn_s: exact(sojourn),
            lost: exact(0.0),
            ..QueueFigures::default()
        }
    };
    let parts = demands
        .iter()
        .enumerate()
        .map(|(i, demand)| station((i, times(found.queue_len[i], demand.time, Some(found.utilisation[i])))));
    let service = demands.iter().map(|demand| demand.time).sum();
    let total = times(found.queue_len.iter().sum(), service, None);
    answer(method, Evidence::Exact, total, parts.collect())
}
