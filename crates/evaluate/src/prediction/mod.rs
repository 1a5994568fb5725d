//! The accuracy of fitted models on this machine: half of a grid predicts the other half, and one
//! platform predicts another.
//!
//! ```text
//!  this platform ─▶ host record, grid ─▶ fit half of the grid ─▶ the other half
//!                                    └─▶ fit all of it ──┬─▶ a slower core (work is added)
//!                                                        ├─▶ copies without wide vectors (glibc)
//!                                                        └─▶ another build of this program
//! ```
//!
//! Platforms are measured in turns, because the machine may change its speed meanwhile. The
//! acceptance criteria are fixed before anything is measured: they are in
//! `fastpath_model::check`.
//!
//! Read first: this file, then `rounds.rs` (measures) and `platform.rs` (reads what was measured).
//! Costs of known shape show the same of many shapes and sizes of samples
//! (`fastpath_model::families`): how often intervals hold, and how wide they are; and so do
//! measurements that others published (`fastpath_model::published`).

mod forecast;
mod platform;
mod rounds;

use fastpath_measure::{Effort, Progress, Slowdown};
use fastpath_model::check::{Check, CheckError, CheckVerdict, MEDIAN_PCT, P95_PCT, elsewhere, half};
use fastpath_model::families::{COVERED, FamilyFigure, families};
use fastpath_model::fit::{FitError, FitOptions, Weighting, fit};
use fastpath_model::predict::{RECORD_SD, TRANSFER_SD, Transfer};
use fastpath_model::published::{ALL, COVERED_OF_SET, ERROR_MAX_PCT, PublishedFigure, SILENT_MAX, published};
use fastpath_model::table::TableError;
use fastpath_record::ObservationError;
use platform::MeasuredPlatform;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// The change between rounds of the ratio of two platforms, %, above which a miss may be the
/// machine's.
const DRIFT_MAX_PCT: f64 = 5.0;
/// The terms fitted for another platform: a part that grows with the frame and a part that does
/// not.
const TERMS: &str = "const,p,h";
/// Samples of each family and size: quick, and full.
const FAMILY_SAMPLES: [u64; 2] = [10, 40];
/// Random halves of each series of published measurements: quick, and full.
const PUBLISHED_DRAWS: [u64; 2] = [4, 20];
/// The seed of the samples.
const FAMILY_SEED: u64 = 1;
/// The terms fitted to half of the grid.
const TERMS_HALF: &str = "auto:p,h";

/// A restriction of this platform, measured as another platform.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RestrictedPlatform {
    /// A core slowed down by additional work after each operation.
    SlowerCore(Slowdown),
    /// Copies without wide vectors, where the C library is glibc on x86.
    NarrowCopies,
}

/// The measurements, and the program that makes them.
#[derive(Clone, PartialEq, Debug)]
pub struct PredictionOptions {
    /// Number of packets and rounds.
    pub effort: Effort,
    /// The `fastpath` program that measures.
    pub program: PathBuf,
    /// The restricted platforms.
    pub platforms: Vec<RestrictedPlatform>,
    /// Other builds of the program, each one more platform.
    pub builds: Vec<PathBuf>,
    /// The directory that keeps the records; `None` removes them afterwards.
    pub output: Option<PathBuf>,
}

/// A figure: its acceptance criterion and the result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PredictionFigure {
    /// Its stable name.
    pub id: String,
    /// The quantity, with its unit.
    pub quantity: String,
    /// The criterion: the largest error (%) or the smallest coverage that passes.
    pub asked: f64,
    /// The measured value.
    pub ours: f64,
    /// Whether it meets the criterion.
    pub pass: bool,
    /// Whether it cannot be judged because the machine changed its speed too much.
    pub noisy: bool,
    /// The comparison with fixed terms, where the points chose the terms.
    pub fixed: Option<Check>,
    /// The change of the two platforms' ratio between rounds, %; `None` within one platform.
    pub drift_pct: Option<f64>,
    /// The comparison of predicted and measured points.
    #[serde(flatten)]
    pub check: Check,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PredictionError {
    /// A file or directory cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// A file holds something other than records, or records of which no table can be made.
    #[error("{path}: {source}")]
    Record {
        /// The file.
        path: String,
        /// The reason.
        source: ObservationError,
    },
    /// A file without a host record.
    #[error("{0}: contains no platform: measure with `fastpath measure host`")]
    NoPlatform(String),
    /// The records of a file are not a grid of costs.
    #[error("{path}: {source}")]
    Table {
        /// The file.
        path: String,
        /// The reason.
        source: TableError,
    },
    /// The rounds of a platform have different points.
    #[error("{0}: its grid differs from that of the first round")]
    OtherGrid(String),
    /// A directory without the records of an earlier run.
    #[error("{0}: no here-costs-1.jsonl in it: keep records there with --output")]
    NothingKept(String),
    /// A program that measures failed.
    #[error("{platform}: {command}: {message}")]
    Program {
        /// The platform.
        platform: String,
        /// The program and its arguments.
        command: String,
        /// Its error output.
        message: String,
    },
    /// The model cannot be fitted.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// Half of the grid cannot be compared with the other half.
    #[error(transparent)]
    Half(#[from] CheckError),
    /// A platform cannot be compared.
    #[error("{platform}: {source}")]
    Compare {
        /// The platform.
        platform: String,
        /// The reason.
        source: CheckError,
    },
}

impl PredictionError {
    fn file(path: &Path) -> impl Fn(io::Error) -> PredictionError {
        move |source| PredictionError::File { path: path.display().to_string(), source }
    }

    fn record(path: &Path) -> impl Fn(ObservationError) -> PredictionError {
        move |source| PredictionError::Record { path: path.display().to_string(), source }
    }

    fn table(path: &Path) -> impl Fn(TableError) -> PredictionError {
        move |source| PredictionError::Table { path: path.display().to_string(), source }
    }
}

/// Measures all platforms, this one first, and returns the figures.
///
/// # Errors
/// [`PredictionError`].
pub fn predict(
    options: &PredictionOptions,
    progress: Progress<'_>,
) -> Result<Vec<PredictionFigure>, PredictionError> {
    figures(&rounds::measure(options, progress)?)
}

/// Returns the figures of the records that an earlier run kept in `directory`.
///
/// # Errors
/// [`PredictionError`].
pub fn predict_from_records(directory: &Path) -> Result<Vec<PredictionFigure>, PredictionError> {
    figures(&platform::kept(directory)?)
}

/// Returns a figure for each family of costs and size of sample: how often the intervals of chosen
/// terms hold, and how wide they are. Nothing is measured.
///
/// # Errors
/// [`PredictionError::Fit`].
pub fn predict_families(effort: Effort) -> Result<Vec<PredictionFigure>, PredictionError> {
    let figure = |FamilyFigure { family, sample, chosen, fixed }: FamilyFigure| PredictionFigure {
        id: format!("family/{}/{sample}/covered", family.replace(' ', "-")),
        quantity: format!("{family}, {sample} points: share of new points in the interval"),
        asked: COVERED[0],
        ours: chosen.covered,
        pass: chosen.verdict == CheckVerdict::Holds,
        noisy: false,
        fixed: Some(fixed),
        drift_pct: None,
        check: chosen,
    };
    Ok(families(FAMILY_SAMPLES[effort as usize], FAMILY_SEED)?.into_iter().map(figure).collect())
}

/// Returns two figures for each published set of measurements and each way to divide it: how often
/// the intervals hold where a law is seen, and how many fits miss without a refusal or a warning.
/// Nothing is measured.
///
/// # Errors
/// [`PredictionError::Fit`].
pub fn predict_published(effort: Effort) -> Result<Vec<PredictionFigure>, PredictionError> {
    let all = published(PUBLISHED_DRAWS[effort as usize], FAMILY_SEED)?;
    Ok(all.iter().flat_map(of_published).collect())
}

fn of_published(found: &PublishedFigure) -> Vec<PredictionFigure> {
    let PublishedFigure { set, part, fits, refused, warned, silent, check } = found;
    let percent = |count: usize| format!("{:.0} %", 100.0 * count as f64 / *fits as f64);
    let silent = *silent as f64 / *fits as f64;
    let figure = |id: &str, quantity: String, asked: f64, ours: f64, pass: bool| PredictionFigure {
        id: format!("published/{}/{part}/{id}", set.replace(' ', "-")),
        quantity: format!("{set}, {part}: {quantity}"),
        asked,
        ours,
        pass,
        noisy: false,
        fixed: None,
        drift_pct: None,
        check: *check,
    };
    let words = format!(
        "share of {fits} fits that err by more than {ERROR_MAX_PCT} % unannounced ({} refused, {} warned)",
        percent(*refused),
        percent(*warned)
    );
    let mut figures = vec![figure("silent", words, SILENT_MAX, silent, found.is_announced())];
    if part == "half" && found.sees_law() {
        let words = "share of other points in the interval".to_owned();
        let asked = if set == ALL { COVERED } else { COVERED_OF_SET };
        let holds = check.verdict == CheckVerdict::Holds;
        figures.push(figure("covered", words, asked[0], check.covered, holds));
    }
    figures
}

/// Explains the figures: the widths assumed, and what `noisy` means where a figure is.
pub fn prediction_remarks(figures: &[PredictionFigure]) -> Vec<String> {
    let mut remarks = vec![format!(
        "criteria are fixed before the measurement; the interval allows {:.0} % for the scaling between platforms and {:.0} % for each record",
        100.0 * TRANSFER_SD,
        100.0 * RECORD_SD
    )];
    if figures.iter().any(|figure| figure.fixed.is_some()) {
        remarks.push(format!(
            "fixed: what a fit by {TERMS} gives; chosen terms are {TERMS_HALF}; of families {:.0} to {:.0} % must be covered",
            100.0 * COVERED[0],
            100.0 * COVERED[1]
        ));
    }
    if figures.iter().any(|figure| figure.id.starts_with("published/")) {
        remarks.push(format!(
            "published: half of the points, drawn at random, predicts the other half; beyond: few cores predict more, with a warning; \
             where a law is seen, {:.0} to {:.0} % of all sets together must be covered, with a median error of {ERROR_MAX_PCT} %",
            100.0 * COVERED[0],
            100.0 * COVERED[1]
        ));
    }
    if figures.iter().any(|figure| figure.noisy) {
        remarks.push(format!(
            "too noisy to judge: the points do not repeat within the criterion, or the platforms' ratio drifted by \
             more than {DRIFT_MAX_PCT} % between rounds"
        ));
    }
    remarks
}

fn figures(measured: &[MeasuredPlatform]) -> Result<Vec<PredictionFigure>, PredictionError> {
    let [here, others @ ..] = measured else { return Ok(Vec::new()) };
    let options = FitOptions { weighting: Weighting::Relative, ..FitOptions::default() };
    let of = |platform: &MeasuredPlatform| {
        let name = platform.name.clone();
        move |source| PredictionError::Table { path: name.clone(), source }
    };
    let costs = here.costs().map_err(of(here))?;
    let (_, check) = half(&costs, "T_ns", TERMS_HALF, &options)?;
    let (_, fixed) = half(&costs, "T_ns", TERMS, &options)?;
    let halved = |id: &str, quantity: &str, asked, ours| PredictionFigure {
        id: id.to_owned(),
        quantity: quantity.to_owned(),
        asked,
        ours,
        pass: ours <= asked,
        noisy: ours > asked && check.verdict == CheckVerdict::TooNoisy,
        fixed: Some(fixed),
        drift_pct: None,
        check,
    };
    let mut figures = vec![
        halved(
            "half-grid-median-pct",
            "half of a grid predicts the other: median error, %",
            MEDIAN_PCT,
            check.median_pct,
        ),
        halved(
            "half-grid-p95-pct",
            "half of a grid predicts the other: error of 95 % of the points, %",
            P95_PCT,
            check.p95_pct,
        ),
    ];
    let whole = fit(&costs, "T_ns", TERMS, &options)?;
    for there in others {
        let (from, to) = (here.platform(), there.platform());
        let transfer = Transfer { from, to, record_sd: RECORD_SD, transfer_sd: TRANSFER_SD };
        let their_costs = there.costs().map_err(of(there))?;
        let check = elsewhere(&whole, &their_costs, &options, &transfer)
            .map_err(|source| PredictionError::Compare { platform: there.name.clone(), source })?;
        let drift = there.drift_pct(here).map_err(of(there))?;
        figures.push(PredictionFigure {
            id: format!("{}-covered", there.name),
            quantity: format!(
                "{} predicted from this platform: share of its points in the interval",
                there.name
            ),
            asked: whole.level,
            ours: check.covered,
            pass: check.verdict == CheckVerdict::Holds,
            noisy: check.verdict != CheckVerdict::Holds && drift > DRIFT_MAX_PCT,
            fixed: None,
            drift_pct: Some(drift),
            check,
        });
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::platform::HERE;
    use super::*;
    use fastpath_model::Table;
    use fastpath_model::platform::Platform;
    use fastpath_model::platform::ScoreKind;
    use fastpath_units::Rng;

    const ROUNDS: usize = 5;

    /// A platform `compute` and `copy` times slower than that of Netcope 2017, with a bend in the
    /// cost of copies; `drift` is how much slower its last round was, `noise` how far points
    /// scatter.
    fn measured(name: &str, (compute, copy): (f64, f64), drift: f64, noise: f64) -> MeasuredPlatform {
        let mut rng = Rng::new(7);
        let mut found = MeasuredPlatform { name: name.to_owned(), ..MeasuredPlatform::default() };
        for round in 0..ROUNDS {
            let slower = if round + 1 == ROUNDS { drift } else { 1.0 };
            let mut csv = "p,h,T_ns,spread_pct\n".to_owned();
            for p in [64.0, 128.0, 192.0, 256.0, 512.0, 768.0, 1024.0, 1514.0] {
                for h in [0.0, 10.0, 20.0, 50.0] {
                    let bytes = 0.101 * p - 0.05 * f64::max(p - 256.0, 0.0);
                    let scatter = 1.0 + noise * (2.0 * rng.unit_f64() - 1.0);
                    let t = slower * (compute * (38.6 + 4.07 * h) + copy * bytes) * scatter;
                    csv += &format!("{p},{h},{t},{}\n", 100.0 * noise);
                }
            }
            found.costs.push(Table::from_csv(&csv).unwrap());
            found.platforms.push(Platform {
                name: name.to_owned(),
                score: 30e3 / compute,
                score_kind: ScoreKind::Own,
                copy_bits_per_s: 100e9 / copy,
                rate_pps: None,
                packet_bytes: None,
                wire: None,
            });
        }
        found
    }

    fn judged(measured: &[MeasuredPlatform]) -> Vec<(String, bool, bool)> {
        figures(measured).unwrap().into_iter().map(|f| (f.id, f.pass, f.noisy)).collect()
    }

    fn named(figures: [(&str, bool, bool); 3]) -> Vec<(String, bool, bool)> {
        figures.map(|(id, pass, noisy)| (id.to_owned(), pass, noisy)).into()
    }

    #[test]
    fn platforms_that_scale_as_their_records_say_are_predicted() {
        let found =
            judged(&[measured(HERE, (1.0, 1.0), 1.0, 0.005), measured("there", (1.6, 0.7), 1.0, 0.005)]);
        let all = [
            ("half-grid-median-pct", true, false),
            ("half-grid-p95-pct", true, false),
            ("there-covered", true, false),
        ];
        assert_eq!(found, named(all));
    }

    #[test]
    fn a_wrong_record_is_a_miss_and_a_drifting_machine_is_too_noisy_to_know() {
        let here = || measured(HERE, (1.0, 1.0), 1.0, 0.005);
        let mut wrong = measured("there", (1.6, 0.7), 1.0, 0.005);
        wrong.platforms.iter_mut().for_each(|platform| platform.score = 60e3);
        assert_eq!(judged(&[here(), wrong])[2], ("there-covered".to_owned(), false, false));
        let mut drifting = measured("there", (1.6, 0.7), 1.3, 0.005);
        drifting.platforms.iter_mut().for_each(|platform| platform.score = 60e3);
        assert_eq!(judged(&[here(), drifting])[2], ("there-covered".to_owned(), false, true));
    }

    #[test]
    fn points_that_do_not_repeat_are_too_noisy_to_know() {
        let found =
            judged(&[measured(HERE, (1.0, 1.0), 1.0, 0.2), measured("there", (1.0, 1.0), 1.0, 0.005)]);
        assert!(found[..2].iter().all(|(_, pass, noisy)| !pass && *noisy), "{found:?}");
    }

    #[test]
    fn rounds_are_made_one_by_their_medians() {
        let platform = measured("there", (2.0, 0.5), 1.3, 0.0);
        let costs = platform.costs().unwrap();
        assert!((costs.numbers("T_ns").unwrap()[0] - (2.0 * 38.6 + 0.5 * 6.464)).abs() < 1e-9);
        assert_eq!((platform.platform().score, platform.platform().copy_bits_per_s), (15e3, 200e9));
        let drift = platform.drift_pct(&measured(HERE, (1.0, 1.0), 1.0, 0.0)).unwrap();
        assert!((drift - 30.0).abs() < 1e-6, "{drift}");
    }
}
