//! Priorities: classes of Poisson arrivals, of which the first goes first.
//!
//! (Cobham 1954; Kleinrock, *Queueing Systems* II, 1976, §3.3–3.4; several servers: Davis 1966,
//! Buzen & Bondi 1983.)

use super::formula::{QueueError, Steady, mmc, positive, steady};
use super::spread::Times;

/// What happens to a customer in service when one of an earlier class arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preemption {
    /// Its service ends first.
    None,
    /// Its service stops, and goes on where it stopped.
    Resume,
}

/// The arrival rate and the services of a class.
pub type Rank = (f64, Times);

/// Solves one server with priorities, M/G/1. The mean of each class by its place. A wait is the
/// sojourn without the own service: interruptions are part of it.
///
/// # Errors
/// [`QueueError`] when all classes together are unstable, or a number is out of range.
pub fn single(classes: &[Rank], preemption: Preemption) -> Result<Vec<Steady>, QueueError> {
    let total = check(classes, 1)?;
    let all_residual: f64 = residual(classes);
    let _ = total;
    let (mut before, mut found) = (0.0, Vec::new());
    for (k, (arrival, service)) in classes.iter().enumerate() {
        let load = arrival * service.mean;
        let after = before + load;
        let spare = (1.0 - before) * (1.0 - after);
        let wait = match preemption {
            Preemption::None => all_residual / spare,
            Preemption::Resume => service.mean * before / (1.0 - before) + residual(&classes[..=k]) / spare,
        };
        let waits = if preemption == Preemption::None { total } else { f64::NAN };
        found.push(steady(*arrival, service.mean, load, waits, wait));
        before = after;
    }
    Ok(found)
}

/// Solves several servers with priorities, where all classes have exponential services of one
/// mean.
///
/// # Errors
/// [`QueueError`] when all classes together are unstable, or a number is out of range.
pub fn multiple(
    arrivals: &[f64],
    service: f64,
    servers: u32,
    preemption: Preemption,
) -> Result<Vec<Steady>, QueueError> {
    let classes: Vec<Rank> = arrivals.iter().map(|a| (*a, Times::exponential(1.0 / service))).collect();
    check(&classes, servers)?;
    let all = mmc(arrivals.iter().sum(), service, servers)?;
    let total_rate = f64::from(servers) * service;
    let (mut before, mut in_system, mut found) = (0.0, 0.0, Vec::new());
    for arrival in arrivals {
        let after = before + arrival;
        let wait = match preemption {
            Preemption::None => {
                all.waits / total_rate / ((1.0 - before / total_rate) * (1.0 - after / total_rate))
            }
            // The first k classes are a queue M/M/c of their own.
            Preemption::Resume => {
                let up_to = mmc(after, service, servers)?.in_system;
                let own = up_to - in_system;
                in_system = up_to;
                own / arrival - 1.0 / service
            }
        };
        let waits = if preemption == Preemption::None { all.waits } else { f64::NAN };
        found.push(steady(*arrival, 1.0 / service, arrival / total_rate, waits, wait));
        before = after;
    }
    Ok(found)
}

/// The mean rest of the service that an arrival finds: Σ λ·E[S²]/2.
fn residual(classes: &[Rank]) -> f64 {
    classes.iter().map(|(arrival, service)| arrival * service.second_moment() / 2.0).sum()
}

/// Returns the load of all classes on each server.
fn check(classes: &[Rank], servers: u32) -> Result<f64, QueueError> {
    let mut load = 0.0;
    for (arrival, service) in classes {
        load += positive("arrival rate", *arrival)? * positive("service time", service.mean)?;
    }
    load /= f64::from(servers.max(1));
    if load >= 1.0 { Err(QueueError::Unstable { load }) } else { Ok(load) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::{LawSpread, mg1, mm1};

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} {b}");
    }

    #[test]
    fn cobham_s_waits_have_their_textbook_values() {
        // Two classes of exponential services of mean 1, each at load 0.4: W₀ = 0.8.
        let classes = [(0.4, Times::exponential(1.0)), (0.4, Times::exponential(1.0))];
        let found = single(&classes, Preemption::None).expect("stable");
        close(found[0].wait, 0.8 / 0.6);
        close(found[1].wait, 0.8 / (0.6 * 0.2));
        let found = single(&classes, Preemption::Resume).expect("stable");
        // The first class does not see the second.
        close(found[0].sojourn, mm1(0.4, 1.0).expect("stable").sojourn);
        close(found[1].sojourn, 1.0 / 0.6 + 0.8 / (0.6 * 0.2));
    }

    #[test]
    fn priorities_conserve_work() {
        // Σ ρ_k·W_k does not depend on the order (Kleinrock 1965).
        let spreads = [LawSpread::Constant, LawSpread::Hyper(3.0), LawSpread::Erlang(2)];
        let classes: Vec<Rank> =
            spreads.iter().zip([1.0, 0.5, 2.0]).map(|(s, mean)| (0.25, Times { mean, spread: *s })).collect();
        let sum = |classes: &[Rank]| -> f64 {
            let found = single(classes, Preemption::None).expect("stable");
            found.iter().map(|q| q.utilisation * q.wait).sum()
        };
        let mut turned = classes.clone();
        turned.reverse();
        close(sum(&classes), sum(&turned));
    }

    #[test]
    fn one_class_is_the_queue_without_priorities() {
        let service = Times { mean: 0.5, spread: LawSpread::Erlang(3) };
        for preemption in [Preemption::None, Preemption::Resume] {
            close(
                single(&[(1.2, service)], preemption).expect("stable")[0].wait,
                mg1(1.2, 0.5, 1.0 / 3.0).expect("stable").wait,
            );
            close(
                multiple(&[3.0], 1.0, 4, preemption).expect("stable")[0].wait,
                mmc(3.0, 1.0, 4).expect("stable").wait,
            );
        }
    }

    #[test]
    fn several_servers_with_one_are_the_single_server() {
        for preemption in [Preemption::None, Preemption::Resume] {
            let classes: Vec<Rank> = [0.2, 0.3, 0.4].map(|a| (a, Times::exponential(1.0))).to_vec();
            let one = single(&classes, preemption).expect("stable");
            let many = multiple(&[0.2, 0.3, 0.4], 1.0, 1, preemption).expect("stable");
            for (a, b) in one.iter().zip(&many) {
                close(a.wait, b.wait);
            }
        }
    }
}
