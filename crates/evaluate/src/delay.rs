//! Tables 5.2–5.5: round trips through a link without delay, and through links of 5, 30 and 101 ms;
//! their difference is the delay.
//!
//! A virtual machine stands still for milliseconds now and then, which hits echoes through
//! anything. So means are of the echoes within Tukey's fences; how many were outside, and the mean
//! of all, is beside them.

use super::field::{Between, Field};
use super::rattan::{self, Treatment};
use super::{Context, Needs, Outcome, Part, PartError, Rule};
use fastpath_engine::priority::with_high_priority;
use fastpath_lab::audit::echo::{self, Echo};
use fastpath_link::PipeSpec;
use fastpath_model::dist::normal_quantile;
use fastpath_model::latency::summarise;
use fastpath_model::publications::linkem::{TABLE_5_2, TABLES_5_3_TO_5_5};
use fastpath_units::Duration;
use std::time;

/// The thesis' claim for LinkEM.
const TOLERANCE: f64 = 0.01;
/// Ethernet header and FCS, IP and ICMP headers, bytes.
const AROUND: u32 = 14 + 4 + 20 + 8;
/// One echo is sent in each.
const SLOT: time::Duration = time::Duration::from_millis(1);

pub(super) const PART: Part = Part {
    step: "delay",
    needs: Needs::Namespaces,
    ids: |_| {
        let tables = ["table-5.2", "table-5.3", "table-5.4", "table-5.5"];
        tables.iter().flat_map(|table| sizes().map(move |size| format!("{table}/{size}"))).collect()
    },
    seconds: [20.0, 470.0],
    rattan_seconds: [22.0, 310.0],
    run,
};

fn sizes() -> impl Iterator<Item = u32> {
    TABLE_5_2.iter().map(|row| row.0)
}

/// Round trips of one size.
struct Observed {
    /// Of those within the fences.
    mean_ms: f64,
    sd_ms: f64,
    median_ms: f64,
    mean_of_all_ms: f64,
    outside: u64,
    n: u64,
    lost: u64,
}

fn run(context: &Context<'_>) -> Result<Vec<Outcome>, PartError> {
    let ours = |delay| measure(&Between::Taps(PipeSpec { delay, ..PipeSpec::default() }), delay, context);
    let base = ours(Duration::ZERO)?;
    let control = measure(&Between::Nothing, Duration::ZERO, context)?;
    let bridge = measure(&Between::Bridge, Duration::ZERO, context)?;
    let rattan = |delay| {
        let between = Between::Rattan(Treatment::Delay(delay));
        let came = |seen: &Vec<Observed>| seen.iter().all(|seen| seen.n > 0);
        context.peer(rattan::PROGRAM, || measure(&between, delay, context), came)
    };
    let rattan_base = rattan(Duration::ZERO)?;
    let mut outcomes = Vec::new();
    for (i, (size, original)) in TABLE_5_2.into_iter().enumerate() {
        let rule = Rule::AtMost { bound: original, tolerance: 0.0, of: "the original" };
        let outcome = Outcome::new(format!("table-5.2/{size}"), "ms", base[i].mean_ms, base[i].n, rule)
            .original(original)
            .control(control[i].mean_ms)
            .peer("kernel bridge", bridge[i].mean_ms)
            .peer(rattan::PROGRAM, rattan_base.as_ref().map(|base| base[i].mean_ms))
            .interval(Some(base[i].interval(0.0)));
        outcomes.push(base[i].told(outcome));
    }
    for ((name, one_way_ms, rtts), table) in TABLES_5_3_TO_5_5.into_iter().zip(3..) {
        debug_assert!(name.ends_with(&table.to_string()));
        let id = |size: u32| format!("table-5.{table}/{size}");
        if !sizes().any(|size| context.wants(&id(size))) {
            continue;
        }
        let delay = Duration::from_us((one_way_ms * 1000.0) as u64);
        let seen = ours(delay)?;
        let rattan = rattan_base.as_ref().zip(rattan(delay)?);
        for (i, size) in sizes().enumerate() {
            let less_base = seen[i].mean_ms - base[i].mean_ms;
            let target = 2.0 * one_way_ms;
            let rule = Rule::Within { target, tolerance: TOLERANCE };
            let outcome = Outcome::new(id(size), "ms", less_base, seen[i].n, rule)
                .original(rtts[i] - TABLE_5_2[i].1)
                .control(control[i].mean_ms)
                .peer("kernel bridge", bridge[i].mean_ms)
                .peer(rattan::PROGRAM, rattan.as_ref().map(|(base, seen)| seen[i].mean_ms - base[i].mean_ms))
                .interval(Some(seen[i].interval_beside(&base[i])))
                .detail("rtt_ms", seen[i].mean_ms)
                .detail("base_rtt_ms", base[i].mean_ms)
                .detail("median_less_base_ms", seen[i].median_ms - base[i].median_ms)
                .detail("error_percent", 100.0 * (less_base / target - 1.0));
            outcomes.push(
                seen[i]
                    .told(outcome)
                    .note("control and bridge have no delay: theirs is the whole round trip"),
            );
        }
    }
    Ok(outcomes)
}

/// Echoes of every size, each between a pair of its own, taking turns.
fn measure(between: &Between, delay: Duration, context: &Context<'_>) -> Result<Vec<Observed>, PartError> {
    let count = context.either(300, 10_000);
    let all: Vec<Between> = sizes().map(|_| between.clone()).collect();
    let field = Field::new(&all)?;
    let mut echoes = Vec::new();
    for (i, size) in sizes().enumerate() {
        let (from, to, address) = field.pair(i);
        debug_assert_ne!(from.name, to.name);
        echoes.push(Echo::new(from, address, 1, ((size - AROUND) as usize, 2 * delay.to_std()))?);
    }
    with_high_priority(|| echo::run(&mut echoes, count, SLOT, &context.stop))?;
    Ok(echoes.iter_mut().map(Observed::of).collect())
}

impl Observed {
    fn of(echo: &mut Echo) -> Observed {
        let lost = (echo.sent() - echo.rtts_ms.len()) as u64;
        let Ok(all) = summarise(&echo.rtts_ms) else {
            let none = f64::NAN;
            return Observed {
                mean_ms: none,
                sd_ms: none,
                median_ms: none,
                mean_of_all_ms: none,
                outside: 0,
                n: 0,
                lost,
            };
        };
        let (low, high) = all.fences;
        let inside: Vec<f64> =
            echo.rtts_ms.iter().copied().filter(|rtt| (low..=high).contains(rtt)).collect();
        let n = inside.len() as f64;
        let mean_ms = inside.iter().sum::<f64>() / n;
        let squares: f64 = inside.iter().map(|rtt| (rtt - mean_ms).powi(2)).sum();
        Observed {
            mean_ms,
            sd_ms: (squares / (n - 1.0).max(1.0)).sqrt(),
            median_ms: all.five[2],
            mean_of_all_ms: all.mean.value,
            outside: all.outliers as u64,
            n: inside.len() as u64,
            lost,
        }
    }

    /// 95 % of the mean, less `base`.
    fn interval(&self, base: f64) -> [f64; 2] {
        let half = normal_quantile(0.975) * self.sd_ms / (self.n.max(1) as f64).sqrt();
        [self.mean_ms - base - half, self.mean_ms - base + half]
    }

    /// 95 % of the difference of two means.
    fn interval_beside(&self, base: &Observed) -> [f64; 2] {
        let variance = |o: &Observed| o.sd_ms.powi(2) / o.n.max(1) as f64;
        let half = normal_quantile(0.975) * (variance(self) + variance(base)).sqrt();
        [self.mean_ms - base.mean_ms - half, self.mean_ms - base.mean_ms + half]
    }

    fn told(&self, outcome: Outcome) -> Outcome {
        let outcome = outcome
            .detail("sd_ms", self.sd_ms)
            .detail("outside_fences", self.outside as f64)
            .detail("mean_of_all_ms", self.mean_of_all_ms);
        if self.lost > 0 { outcome.detail("unanswered", self.lost as f64) } else { outcome }
    }
}
