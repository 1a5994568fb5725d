//! How well the machine's capacity is predicted: random networks in memory, each predicted
//! first and then measured twice.
//!
//! ```text
//!  seed ─▶ RandomNetwork ─▶ predict ─▶ saturate, saturate ─▶ error, coverage, repeat difference
//!                       └─▶ a random load ─▶ judge ─▶ offer ─▶ carried or not
//! ```
//!
//! The criteria are fixed before anything is measured. A yes is the verdict `carries`; every other
//! verdict is a no.

use fastpath_measure::Progress;
use fastpath_measure::capacity::{
    CalibrationError, DemandOptions, EngineWorkers, Offered, RandomNetwork, demand, offer, saturate,
};
use fastpath_model::Estimate;
use fastpath_model::capacity::{
    CapacityVerdict, Demand, EngineCosts, PacketShape, Predicted, judge, predict,
};
use fastpath_spec::DataPathChoice;
use fastpath_units::Rng;
use fastpath_units::stats::median;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::time::Duration;

/// The largest median error, %: that of Yala (BlueField-2). On a machine whose repeats differ more,
/// [`REPEAT_FACTOR`] times their median difference.
const MEDIAN_PCT: f64 = 3.7;
const REPEAT_FACTOR: f64 = 1.5;
/// Which share of points 95 % intervals cover.
const COVERED: [f64; 2] = [0.90, 0.99];
/// The least share of right answers, and the largest share of wrong yeses.
const RIGHT_MIN: f64 = 0.95;
const WRONG_YES_MAX: f64 = 0.02;
/// Loads as factors of the predicted capacity: even in their logarithm.
const LOADS: [f64; 2] = [0.1, 4.0];
/// Share of the offered packets that a carried load delivers. Those in the network at the end are
/// less.
const DELIVERED_MIN: f64 = 0.98;
/// How often a load is offered until it is carried: other work on the machine only makes it worse.
const ATTEMPTS: usize = 3;
/// Measured time of a saturated run, and of one at a load.
const SPAN: Duration = Duration::from_millis(80);
const LOAD_SPAN: Duration = Duration::from_millis(200);

/// A quantity of a point.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PredictedQuantity {
    /// What was predicted.
    pub predicted: Estimate,
    /// What was measured.
    pub measured: f64,
    /// Whether the interval has the measured value.
    pub covered: bool,
}

impl PredictedQuantity {
    fn new(predicted: Estimate, measured: f64) -> PredictedQuantity {
        PredictedQuantity { predicted, measured, covered: predicted.covers(measured) }
    }
}

/// A network, predicted and measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityPoint {
    /// The seed of the network.
    pub seed: u64,
    /// What a packet passes.
    pub shape: PacketShape,
    /// Packets per second: predicted, and measured first.
    pub packets_per_second: PredictedQuantity,
    /// The same, measured again.
    pub again: f64,
    /// The offered load, packets per second.
    pub load: f64,
    /// The verdict on it.
    pub verdict: CapacityVerdict,
    /// Whether the load was carried.
    pub carried: bool,
    /// 99th percentile of the lateness at the load, in microseconds, of loads below the capacity.
    pub lateness_p99_us: Option<PredictedQuantity>,
    /// Resident memory of the program, bytes.
    pub memory_bytes: PredictedQuantity,
    /// Seconds until it ran.
    pub start_s: Option<PredictedQuantity>,
}

/// A figure with its criterion.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityFigure {
    /// Its stable name.
    pub id: String,
    /// The quantity, with its unit.
    pub quantity: String,
    /// The criterion in words.
    pub asked: String,
    /// The result.
    pub ours: f64,
    /// Whether it meets the criterion.
    pub pass: bool,
}

/// The figures, and the points that they are made of.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityEvaluation {
    /// The figures.
    pub results: Vec<CapacityFigure>,
    /// The share of packet rates that their 95 % intervals cover.
    pub coverage: f64,
    /// The median error of packet rates, %.
    pub median_error_pct: f64,
    /// The median difference of two measurements of a point, %.
    pub repeat_median_pct: f64,
    /// Figures that pass.
    pub passed: usize,
    /// All figures.
    pub total: usize,
    /// The points.
    pub points: Vec<CapacityPoint>,
}

/// Predicts and measures `count` networks from `seed` on.
///
/// # Errors
/// A network without a demand, or a run that fails.
pub fn evaluate_capacity(
    costs: &EngineCosts,
    count: usize,
    seed: u64,
    progress: Progress<'_>,
) -> Result<CapacityEvaluation, CalibrationError> {
    let mut rng = Rng::new(seed);
    let mut points = Vec::new();
    for place in 0..count {
        progress("networks", place, count);
        points.push(point(costs, seed.wrapping_add(place as u64), &mut rng)?);
    }
    Ok(CapacityEvaluation::of(points))
}

fn point(costs: &EngineCosts, seed: u64, rng: &mut Rng) -> Result<CapacityPoint, CalibrationError> {
    let network = RandomNetwork::new(seed);
    let mut asked = demand(&network.topology, &options(&network))?;
    let predicted = predict(costs, &asked)?;
    // Before anything is measured.
    let capacity = predicted.packets_per_second;
    let [low, high] = LOADS.map(f64::ln);
    let load = capacity.value * (low + rng.unit_f64() * (high - low)).exp();
    asked.packets_per_second = load;
    let at_load = predict(costs, &asked)?;
    let (verdict, _) = judge(&asked, &at_load);
    let runs = [(); 2].map(|()| saturate(&network, SPAN, None).map_err(CalibrationError::Run));
    let [first, second] = runs;
    let (first, second) = (first?, second?);
    let (carried, offered) = is_carried(&network, load)?;
    let memory = costs.memory.program_bytes.value;
    let grown = first.grown_bytes.max(second.grown_bytes);
    Ok(CapacityPoint {
        seed,
        packets_per_second: PredictedQuantity::new(capacity, first.packets_per_second),
        again: second.packets_per_second,
        load,
        verdict,
        carried,
        lateness_p99_us: lateness(&asked, &at_load, offered),
        memory_bytes: PredictedQuantity::new(predicted.memory_bytes, memory + grown),
        start_s: predicted.start_s.map(|start| PredictedQuantity::new(start, first.start_s)),
        shape: asked.packet,
    })
}

/// The lateness of a load below the capacity; above it there is none in the long run.
fn lateness(asked: &Demand, predicted: &Predicted, offered: Offered) -> Option<PredictedQuantity> {
    let is_below = predicted.busiest.value < 0.9 && asked.packets_per_second > 0.0;
    is_below.then(|| PredictedQuantity::new(predicted.lateness_p99_us, offered.p99_us))
}

/// Offers a load until it is carried.
fn is_carried(network: &RandomNetwork, load: f64) -> Result<(bool, Offered), CalibrationError> {
    let mut best: Option<Offered> = None;
    for _ in 0..ATTEMPTS {
        let offered = offer(network, load, LOAD_SPAN).map_err(CalibrationError::Run)?;
        let first = *best.get_or_insert(offered);
        if offered.delivered >= DELIVERED_MIN {
            return Ok((true, first));
        }
    }
    Ok((false, best.expect("there is an attempt")))
}

/// The network in memory, on one worker.
fn options(network: &RandomNetwork) -> DemandOptions {
    DemandOptions {
        port: "memory".to_owned(),
        workers: EngineWorkers::AtMost(NonZeroUsize::MIN),
        data_path: DataPathChoice::User,
        has_log: false,
        memory_limit: fastpath_engine::memory_default().get() as f64,
        // No run is broken by lateness, whose coverage is a figure of its own.
        tolerance_us: f64::INFINITY,
        frame_bytes: Some(network.bytes as f64),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

impl CapacityEvaluation {
    /// Judges points.
    fn of(points: Vec<CapacityPoint>) -> CapacityEvaluation {
        let share = |hits: usize, of: usize| hits as f64 / of.max(1) as f64;
        let covered = |of: &[PredictedQuantity]| share(of.iter().filter(|one| one.covered).count(), of.len());
        let rates: Vec<PredictedQuantity> = points.iter().map(|point| point.packets_per_second).collect();
        let error = |one: &PredictedQuantity| 100.0 * (one.predicted.value / one.measured - 1.0).abs();
        let median_error_pct = median(rates.iter().map(error));
        let repeat = |point: &CapacityPoint| {
            let [a, b] = [point.packets_per_second.measured, point.again];
            200.0 * (a - b).abs() / (a + b)
        };
        let repeat_median_pct = median(points.iter().map(repeat));
        let is_right = |point: &&CapacityPoint| (point.verdict == CapacityVerdict::Carries) == point.carried;
        let is_wrong_yes =
            |point: &&CapacityPoint| point.verdict == CapacityVerdict::Carries && !point.carried;
        let right = share(points.iter().filter(is_right).count(), points.len());
        let wrong_yes = share(points.iter().filter(is_wrong_yes).count(), points.len());
        let coverage = covered(&rates);
        let late: Vec<_> = points.iter().filter_map(|point| point.lateness_p99_us).collect();
        let memory: Vec<_> = points.iter().map(|point| point.memory_bytes).collect();
        let start: Vec<_> = points.iter().filter_map(|point| point.start_s).collect();
        let judged =
            Judged { count: points.len(), coverage, median_error_pct, repeat_median_pct, right, wrong_yes };
        let results = judged.figures([covered(&late), covered(&memory), covered(&start)]);
        let (passed, total) = (results.iter().filter(|figure| figure.pass).count(), results.len());
        CapacityEvaluation { results, coverage, median_error_pct, repeat_median_pct, passed, total, points }
    }
}

/// What the criteria are applied to.
struct Judged {
    count: usize,
    coverage: f64,
    median_error_pct: f64,
    repeat_median_pct: f64,
    right: f64,
    wrong_yes: f64,
}

impl Judged {
    /// The figures, with the coverage of lateness, memory and start.
    fn figures(&self, [late, memory, start]: [f64; 3]) -> Vec<CapacityFigure> {
        let Judged { count, coverage, median_error_pct, repeat_median_pct, right, wrong_yes } = *self;
        let most = MEDIAN_PCT.max(REPEAT_FACTOR * repeat_median_pct);
        let [low, high] = COVERED;
        let figure = |id: &str, quantity: &str, asked: String, ours: f64, pass: bool| CapacityFigure {
            id: format!("capacity/{id}"),
            quantity: quantity.to_owned(),
            asked,
            ours,
            pass,
        };
        let of_coverage = |id: &str, what: &str, ours: f64| {
            // Of few points either all or one less are covered.
            let one = 1.0 / count.max(1) as f64;
            let pass = ours >= low && (ours <= high || one > 1.0 - high);
            figure(
                id,
                &format!("{what}: share of 95 % intervals that cover"),
                format!("{low} … {high}"),
                ours,
                pass,
            )
        };
        vec![
            of_coverage("packets/covered", "packets/s", coverage),
            figure(
                "packets/error",
                "packets/s: median error, %",
                format!("≤ {most:.2}"),
                median_error_pct,
                median_error_pct <= most,
            ),
            figure(
                "answers/right",
                "yes or no: share of right answers",
                format!("≥ {RIGHT_MIN}"),
                right,
                right >= RIGHT_MIN,
            ),
            figure(
                "answers/wrong-yes",
                "yes or no: share of wrong yeses",
                format!("≤ {WRONG_YES_MAX}"),
                wrong_yes,
                wrong_yes <= WRONG_YES_MAX,
            ),
            of_coverage("lateness/covered", "lateness p99", late),
            of_coverage("memory/covered", "memory", memory),
            of_coverage("start/covered", "start", start),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(predicted: f64, measured: f64, verdict: CapacityVerdict, carried: bool) -> CapacityPoint {
        let quantity = PredictedQuantity::new(Estimate::around(predicted, 0.1 * predicted), measured);
        CapacityPoint {
            seed: 1,
            shape: PacketShape::default(),
            packets_per_second: quantity,
            again: 1.02 * measured,
            load: 1.0,
            verdict,
            carried,
            lateness_p99_us: Some(quantity),
            memory_bytes: quantity,
            start_s: Some(quantity),
        }
    }

    #[test]
    fn figures_are_judged_by_their_criteria() {
        let mut points = vec![point(103.0, 100.0, CapacityVerdict::Carries, true); 95];
        points.extend(vec![point(130.0, 100.0, CapacityVerdict::Not, false); 5]);
        let found = CapacityEvaluation::of(points.clone());
        assert!((found.coverage - 0.95).abs() < 1e-9 && (found.median_error_pct - 3.0).abs() < 1e-9);
        assert!((found.repeat_median_pct - 1.98).abs() < 0.01, "{}", found.repeat_median_pct);
        assert_eq!((found.passed, found.total), (7, 7), "{:#?}", found.results);
        // Three wrong yeses, and four wrong noes.
        points[..3].fill(point(103.0, 100.0, CapacityVerdict::Carries, false));
        points[3..7].fill(point(103.0, 100.0, CapacityVerdict::UpTo, true));
        let found = CapacityEvaluation::of(points);
        let of = |id: &str| {
            found
                .results
                .iter()
                .find(|figure| figure.id.ends_with(id))
                .map(|figure| (figure.ours, figure.pass))
        };
        assert_eq!(of("right"), Some((0.93, false)));
        assert_eq!(of("wrong-yes"), Some((0.03, false)));
    }

    #[test]
    fn an_error_within_the_difference_of_repeats_passes() {
        let mut one = point(106.0, 100.0, CapacityVerdict::Carries, true);
        let error = |point: &CapacityPoint| {
            let found = CapacityEvaluation::of(vec![point.clone(); 10]);
            found.results.iter().find(|figure| figure.id.ends_with("error")).map(|figure| figure.pass)
        };
        assert_eq!(error(&one), Some(false));
        one.again = 106.0;
        assert_eq!(error(&one), Some(true));
    }
}
