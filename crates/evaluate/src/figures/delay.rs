//! Tables 5.2–5.5: round-trip times (RTT) over a link without delay, and over links of 5, 30 and
//! 101 ms. The difference is the delay.
//!
//! Ours, the control and the peers are measured in turns, in rounds. Host stalls of milliseconds
//! lengthen some round trips, whatever the path. Means are therefore of the echoes within Tukey's
//! fences. The number of echoes outside and the mean of all are reported too.

use super::{Figure, Measurement, Needs};
use crate::testbed::rattan::{self, RattanLink};
use crate::testbed::{Between, Testbed};
use crate::{MeasurementError, Round, Rounds, RunContext};
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
    seconds: [30.0, 480.0],
    rattan_seconds: [30.0, 320.0],
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

/// The round trips of every size in one round.
type Sizes = Vec<Echoes>;

/// Round trips of one size in one round.
struct Echoes {
    rtts_ms: Vec<f64>,
    lost: u64,
}

/// All paths, measured in turns.
#[derive(Default)]
struct Paths {
    control: Rounds<Sizes>,
    bridge: Rounds<Sizes>,
    /// Without delay, and with each delay that is wanted.
    ours: [Rounds<Sizes>; 4],
    rattan: [Rounds<Sizes>; 4],
}

/// The delays of the tables, one way: none, and those of tables 5.3 to 5.5.
fn delays() -> [Duration; 4] {
    let mut delays = [Duration::ZERO; 4];
    for (delay, (_, one_way_ms, _)) in delays[1..].iter_mut().zip(TABLES_5_3_TO_5_5) {
        *delay = Duration::from_us((one_way_ms * 1000.0) as u64);
    }
    delays
}

fn run(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let rounds = context.either(3, 5);
    let count = context.either(300, 10_000) / rounds;
    let wanted = |table: usize| {
        table == 0 || sizes().any(|size| context.wants(&format!("table-5.{}/{size}", table + 2)))
    };
    let mut paths = Paths::default();
    for _ in 0..rounds {
        paths.control.add(measure(&Between::Nothing, Duration::ZERO, count, context)?);
        paths.bridge.add(measure(&Between::Bridge, Duration::ZERO, count, context)?);
        for (table, delay) in delays().into_iter().enumerate().filter(|(table, _)| wanted(*table)) {
            let ours = Between::Taps(PipeSpec { delay, ..PipeSpec::default() });
            paths.ours[table].add(measure(&ours, delay, count, context)?);
            let rattan = Between::Rattan(RattanLink::Delay(delay));
            let carried = |round: &Round<Sizes>| round.seen.iter().all(|seen| !seen.rtts_ms.is_empty());
            let found = context.peer(rattan::PROGRAM, || measure(&rattan, delay, count, context), carried)?;
            found.into_iter().for_each(|round| paths.rattan[table].add(round));
        }
    }
    Ok(results(paths, context))
}

/// Returns the round trips of every size over all quiet rounds, and what disturbed them if none
/// was.
fn merged(rounds: Rounds<Sizes>) -> (Vec<Observed>, Option<String>) {
    let (rounds, disturbed) = rounds.finish();
    let sizes = rounds.first().map_or(0, Vec::len);
    let of_size = |i: usize| {
        let own = || rounds.iter().map(|round| &round[i]);
        let rtts_ms: Vec<f64> = own().flat_map(|echoes| echoes.rtts_ms.iter().copied()).collect();
        Observed::of(&rtts_ms, own().map(|echoes| echoes.lost).sum())
    };
    ((0..sizes).map(of_size).collect(), disturbed)
}

fn results(paths: Paths, context: &RunContext<'_>) -> Vec<EvaluatedFigure> {
    let (control, _) = merged(paths.control);
    let (bridge, _) = merged(paths.bridge);
    let mut ours = paths.ours.map(merged).into_iter();
    let mut rattan = paths.rattan.map(|rounds| merged(rounds).0).into_iter();
    let (base, base_disturbed) = ours.next().expect("the path without delay");
    let rattan_base = rattan.next().filter(|base| !base.is_empty());
    let mut results = Vec::new();
    for (i, (size, original)) in TABLE_5_2.into_iter().enumerate() {
        let criterion = Criterion::at_most(original, 0.0, "the original");
        let result =
            EvaluatedFigure::new(format!("table-5.2/{size}"), "ms", base[i].mean_ms, base[i].n, criterion)
                .original(original)
                .control(control[i].mean_ms)
                .peer("kernel bridge", bridge[i].mean_ms)
                .peer(rattan::PROGRAM, rattan_base.as_ref().map(|base| base[i].mean_ms))
                .interval(Some(base[i].interval(0.0)))
                .disturbed(base_disturbed.clone());
        results.push(base[i].with_details(result));
    }
    for (((name, one_way_ms, rtts), table), (seen, disturbed)) in
        TABLES_5_3_TO_5_5.into_iter().zip(3..).zip(ours)
    {
        debug_assert!(name.ends_with(&table.to_string()));
        let rattan = rattan_base.as_ref().zip(rattan.next().filter(|seen| !seen.is_empty()));
        for (i, size) in sizes().enumerate().filter(|(i, _)| *i < seen.len()) {
            let id = format!("table-5.{table}/{size}");
            let less_base = seen[i].mean_ms - base[i].mean_ms;
            let target = 2.0 * one_way_ms;
            let criterion = Criterion::Within { target, tolerance: TOLERANCE };
            let result = EvaluatedFigure::new(id, "ms", less_base, seen[i].n, criterion)
                .original(rtts[i] - TABLE_5_2[i].1)
                .control(control[i].mean_ms)
                .peer("kernel bridge", bridge[i].mean_ms)
                .peer(rattan::PROGRAM, rattan.as_ref().map(|(base, seen)| seen[i].mean_ms - base[i].mean_ms))
                .interval(Some(seen[i].interval_of_difference(&base[i])))
                .detail("rtt_ms", seen[i].mean_ms)
                .detail("base_rtt_ms", base[i].mean_ms)
                .detail("median_less_base_ms", seen[i].median_ms - base[i].median_ms)
                .detail("error_percent", 100.0 * (less_base / target - 1.0))
                .disturbed(disturbed.clone().or_else(|| base_disturbed.clone()));
            results.push(seen[i].with_details(result).note(
                "the values without emulator and of the bridge are whole round trips: they have no delay",
            ));
        }
    }
    results.retain(|result| context.wants(&result.id));
    results
}

/// Sends echoes of every size, each size between its own pair of hosts, in turns.
fn measure(
    between: &Between,
    delay: Duration,
    count: usize,
    context: &RunContext<'_>,
) -> Result<Round<Sizes>, MeasurementError> {
    let all: Vec<Between> = sizes().map(|_| between.clone()).collect();
    context.round(|watch| {
        let testbed = Testbed::new(&all)?;
        let mut echoes = Vec::new();
        for (i, size) in sizes().enumerate() {
            let (from, to, address) = testbed.pair(i);
            debug_assert_ne!(from.name, to.name);
            echoes.push(Echo::new(from, address, 1, ((size - AROUND) as usize, 2 * delay.to_std()))?);
        }
        with_high_priority(|| watch.of_thread(|| echo::run(&mut echoes, count, SLOT, &context.stop)))?;
        let of_size =
            |echo: Echo| Echoes { lost: (echo.sent() - echo.rtts_ms.len()) as u64, rtts_ms: echo.rtts_ms };
        Ok((echoes.into_iter().map(of_size).collect(), testbed.report()))
    })
}

impl Observed {
    fn of(rtts_ms: &[f64], lost: u64) -> Observed {
        let Ok(all) = summarise(rtts_ms) else {
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
        let inside: Vec<f64> = rtts_ms.iter().copied().filter(|rtt| (low..=high).contains(rtt)).collect();
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
