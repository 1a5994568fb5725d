//! Tables 5.2–5.5: round-trip times (RTT) over a link without delay, and over links of 5, 30 and
//! 101 ms. The difference is the delay.
//!
//! Host stalls of milliseconds lengthen some round trips, whatever the path. Means are therefore of
//! the echoes within Tukey's fences. The number of echoes outside and the mean of all are reported
//! too.

use super::{Figure, Measurement, Needs};
use crate::testbed::rattan::{self, RattanLink};
use crate::testbed::{Between, Testbed};
use crate::{MeasurementError, RunContext};
use fastpath_audit::echo::{self, Echo};
use fastpath_engine::priority::with_high_priority;
use fastpath_link::PipeSpec;
use fastpath_model::dist::normal_quantile;
use fastpath_model::latency::summarise;
use fastpath_model::publications::linkem::{TABLE_5_2, TABLES_5_3_TO_5_5};
use fastpath_report::{Criterion, EvaluatedFigure, Scale};
use fastpath_units::Duration;
use std::time;

/// The accuracy that the publication claims for LinkEM.
const TOLERANCE: f64 = 0.01;
/// Ethernet header and FCS, IP and ICMP headers, bytes.
const AROUND: u32 = 14 + 4 + 20 + 8;
/// Interval between two echoes.
const SLOT: time::Duration = time::Duration::from_millis(1);

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        id: "table-5.2",
        title: "Table 5.2: round-trip time without delay",
        original: "LinkEM, Joglekar 2004, Table 5.2",
        x: Some(("frame size with FCS, bytes", Scale::Log2)),
        y: Some(("round-trip time, ms", Scale::Linear)),
        note: "",
        variants: &[],
    },
    Figure {
        id: "table-5.3",
        title: "Table 5.3: delay accuracy, 5 ms one way",
        original: "LinkEM, Joglekar 2004, Table 5.3",
        x: Some(("frame size with FCS, bytes", Scale::Log2)),
        y: None,
        note: "",
        variants: &[],
    },
    Figure {
        id: "table-5.4",
        title: "Table 5.4: delay accuracy, 30 ms one way",
        original: "LinkEM, Joglekar 2004, Table 5.4",
        x: Some(("frame size with FCS, bytes", Scale::Log2)),
        y: None,
        note: "",
        variants: &[],
    },
    Figure {
        id: "table-5.5",
        title: "Table 5.5: delay accuracy, 101 ms one way",
        original: "LinkEM, Joglekar 2004, Table 5.5",
        x: Some(("frame size with FCS, bytes", Scale::Log2)),
        y: None,
        note: "",
        variants: &[],
    },
];

pub(super) const MEASUREMENTS: &[Measurement] = &[PART];

const PART: Measurement = Measurement {
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
    /// Of the echoes within the fences.
    mean_ms: f64,
    sd_ms: f64,
    median_ms: f64,
    mean_of_all_ms: f64,
    outside: u64,
    n: u64,
    lost: u64,
}

fn run(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let ours = |delay| measure(&Between::Taps(PipeSpec { delay, ..PipeSpec::default() }), delay, context);
    let base = ours(Duration::ZERO)?;
    let control = measure(&Between::Nothing, Duration::ZERO, context)?;
    let bridge = measure(&Between::Bridge, Duration::ZERO, context)?;
    let rattan = |delay| {
        let between = Between::Rattan(RattanLink::Delay(delay));
        let carried = |seen: &Vec<Observed>| seen.iter().all(|seen| seen.n > 0);
        context.peer(rattan::PROGRAM, || measure(&between, delay, context), carried)
    };
    let rattan_base = rattan(Duration::ZERO)?;
    let mut results = Vec::new();
    for (i, (size, original)) in TABLE_5_2.into_iter().enumerate() {
        let criterion = Criterion::at_most(original, 0.0, "the original");
        let result =
            EvaluatedFigure::new(format!("table-5.2/{size}"), "ms", base[i].mean_ms, base[i].n, criterion)
                .original(original)
                .control(control[i].mean_ms)
                .peer("kernel bridge", bridge[i].mean_ms)
                .peer(rattan::PROGRAM, rattan_base.as_ref().map(|base| base[i].mean_ms))
                .interval(Some(base[i].interval(0.0)));
        results.push(base[i].with_details(result));
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
            let criterion = Criterion::Within { target, tolerance: TOLERANCE };
            let result = EvaluatedFigure::new(id(size), "ms", less_base, seen[i].n, criterion)
                .original(rtts[i] - TABLE_5_2[i].1)
                .control(control[i].mean_ms)
                .peer("kernel bridge", bridge[i].mean_ms)
                .peer(rattan::PROGRAM, rattan.as_ref().map(|(base, seen)| seen[i].mean_ms - base[i].mean_ms))
                .interval(Some(seen[i].interval_of_difference(&base[i])))
                .detail("rtt_ms", seen[i].mean_ms)
                .detail("base_rtt_ms", base[i].mean_ms)
                .detail("median_less_base_ms", seen[i].median_ms - base[i].median_ms)
                .detail("error_percent", 100.0 * (less_base / target - 1.0));
            results.push(seen[i].with_details(result).note(
                "the values without emulator and of the bridge are whole round trips: they have no delay",
            ));
        }
    }
    Ok(results)
}

/// Sends echoes of every size, each size between its own pair of hosts, in turns.
fn measure(
    between: &Between,
    delay: Duration,
    context: &RunContext<'_>,
) -> Result<Vec<Observed>, MeasurementError> {
    let count = context.either(300, 10_000);
    let all: Vec<Between> = sizes().map(|_| between.clone()).collect();
    let testbed = Testbed::new(&all)?;
    let mut echoes = Vec::new();
    for (i, size) in sizes().enumerate() {
        let (from, to, address) = testbed.pair(i);
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

    /// The 95 % interval of the mean less `base`.
    fn interval(&self, base: f64) -> [f64; 2] {
        let half = normal_quantile(0.975) * self.sd_ms / (self.n.max(1) as f64).sqrt();
        [self.mean_ms - base - half, self.mean_ms - base + half]
    }

    /// The 95 % interval of the difference of two means.
    fn interval_of_difference(&self, base: &Observed) -> [f64; 2] {
        let variance = |o: &Observed| o.sd_ms.powi(2) / o.n.max(1) as f64;
        let half = normal_quantile(0.975) * (variance(self) + variance(base)).sqrt();
        [self.mean_ms - base.mean_ms - half, self.mean_ms - base.mean_ms + half]
    }

    fn with_details(&self, result: EvaluatedFigure) -> EvaluatedFigure {
        let result = result
            .detail("sd_ms", self.sd_ms)
            .detail("outside_fences", self.outside as f64)
            .detail("mean_of_all_ms", self.mean_of_all_ms);
        if self.lost > 0 { result.detail("unanswered", self.lost as f64) } else { result }
    }
}
