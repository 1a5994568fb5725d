//! `fastpath evaluate prediction`: what a fitted model is worth here. Half of a grid predicts the
//! other half, and one platform another.
//!
//! ```text
//!  this platform ─▶ host record, grid ─▶ fit half of the grid ─▶ the other half
//!                                    └─▶ fit all of it ──┬─▶ a slower core (work is added)
//!                                                        ├─▶ copies without wide vectors (the C library's switch)
//!                                                        └─▶ another build of this program
//! ```
//!
//! Each platform is measured by programs of its own (`measure host`, `measure pipeline`), as a
//! stranger would; in turns, since the machine may change its speed meanwhile. What is asked is
//! fixed before anything is measured: `fastpath_model::check` holds it.

use super::{Figure, tell, verdict};
use crate::commands::measure::{bar, show};
use crate::commands::model::{platforms, source};
use crate::{Answer, print};
use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use fastpath_measure::Slowdown;
use fastpath_model::Table;
use fastpath_model::check::{Check, CheckVerdict, MEDIAN_PCT, P95_PCT, SPREAD, elsewhere, half};
use fastpath_model::fit::{FitOptions, Weighting, fit};
use fastpath_model::platform::Platform;
use fastpath_model::predict::{RECORD_SD, TRANSFER_SD, Transfer};
use fastpath_model::stats::median;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The grid: sizes and steps.
const GRID: [&str; 2] = ["64,128,192,256,384,512,768,1024,1280,1514", "0,5,10,15,20,30,50"];
/// Packets per point and round, and of a quick look.
const PACKETS: &str = "400000";
const PACKETS_QUICK: &str = "200000";
/// Rounds over all platforms, and of a quick look.
const ROUNDS: usize = 5;
const ROUNDS_QUICK: usize = 3;
/// The columns of a grid.
const COLUMNS: [&str; 4] = ["p", "h", "T_ns", SPREAD];
/// A change of the proportion of two platforms between rounds above which a miss may be the
/// machine's.
const DRIFT_MAX_PCT: f64 = 5.0;
/// The place that the others are compared with.
const HERE: &str = "here";
/// glibc's words for its copies: without vectors of more than 16 bytes and without `rep movsb`.
const NARROW: &str =
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM";
/// What is fitted for another platform: a part that grows with the frame and a part that does not.
const TERMS: &str = "const,p,h";
/// What is fitted to half of the grid.
const TERMS_HALF: &str = "auto:p,h";

/// Measure how well fitted models predict points and platforms they have not seen; exit 1 if not as
/// asked, 2 if the machine is too noisy to know.
///
/// Half of a grid of frame sizes and steps predicts the other half: 1 % median error, 95 % of the
/// points within 5 %. And the costs here with two host records predict a restricted platform: 95 %
/// of its points lie in the stated interval.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fastpath evaluate prediction --quick
  fastpath evaluate prediction --build target/debug/fastpath -o records
  fastpath evaluate prediction --records records --json")]
pub(super) struct PredictionCommand {
    /// Fewer packets and rounds: two minutes in place of six.
    #[arg(long)]
    quick: bool,
    /// The restricted platforms.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "slower-core,narrow-copies")]
    platform: Vec<Restricted>,
    /// Another build of this program, as one more platform (may be repeated).
    #[arg(long, value_name = "PROGRAM")]
    build: Vec<PathBuf>,
    /// How many times slower the slower core is.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.6)]
    slowdown: f64,
    /// Keep the records in this directory.
    #[arg(short, long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Measure nothing: the figures of the records kept in this directory.
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["output", "build", "quick"])]
    records: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Restricted {
    /// Work is added after every piece of work.
    SlowerCore,
    /// Copies without wide vectors, where the C library is glibc on x86.
    NarrowCopies,
}

/// A figure: what is asked and what came out.
#[derive(Serialize)]
struct Predicted {
    id: String,
    /// The most (errors in %) or the least (share covered) that passes.
    asked: f64,
    ours: f64,
    pass: bool,
    /// Whether it cannot be told because the machine changed its speed too much.
    noisy: bool,
    /// By how much the two platforms' proportion changed between rounds, %; none within one
    /// platform.
    drift_pct: Option<f64>,
    #[serde(flatten)]
    check: Check,
}

impl Figure for Predicted {
    fn pass(&self) -> bool {
        self.pass
    }
}

/// Where something is measured: a program and what restricts it.
struct Place {
    name: String,
    program: PathBuf,
    slowdown: f64,
    tunables: Option<&'static str>,
}

/// What was measured there, round by round.
#[derive(Default)]
struct Measured {
    name: String,
    platforms: Vec<Platform>,
    costs: Vec<Table>,
}

impl PredictionCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        Slowdown::new(self.slowdown)?;
        let figures = figures(&match &self.records {
            Some(directory) => kept(directory)?,
            None => self.measure()?,
        })?;
        let answer = tell(&figures, self.json, table(&figures), &remarks(&figures))?;
        let missed = figures.iter().any(|f| !f.pass && !f.noisy);
        let noisy = figures.iter().any(|f| f.noisy);
        ensure!(missed || !noisy, "the machine was too noisy to know: measure on a quieter one");
        Ok(answer)
    }

    /// Every place in every round.
    fn measure(&self) -> anyhow::Result<Vec<Measured>> {
        let places = self.places()?;
        let temporary;
        let directory = match &self.output {
            Some(directory) => directory.as_path(),
            None => {
                temporary = Temporary::new()?;
                temporary.0.as_path()
            }
        };
        std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let bar = bar();
        let mut measured: Vec<Measured> =
            places.iter().map(|place| Measured { name: place.name.clone(), ..Measured::default() }).collect();
        let rounds = if self.quick { ROUNDS_QUICK } else { ROUNDS };
        for round in 0..rounds {
            for (i, (place, measured)) in places.iter().zip(&mut measured).enumerate() {
                show(&bar)(&place.name, round * places.len() + i, rounds * places.len());
                let [host, costs] = files(directory, &place.name, round);
                self.round(place, &host, &costs).with_context(|| place.name.clone())?;
                measured.read(&host, &costs)?;
            }
        }
        bar.finish_and_clear();
        Ok(measured)
    }

    /// This platform first.
    fn places(&self) -> anyhow::Result<Vec<Place>> {
        let program = std::env::current_exe().context("finding this program")?;
        let here = |name: &str, slowdown, tunables| Place {
            name: name.to_owned(),
            program: program.clone(),
            slowdown,
            tunables,
        };
        let mut places = vec![here(HERE, 1.0, None)];
        places.extend(self.platform.iter().map(|restricted| match restricted {
            Restricted::SlowerCore => here("slower-core", self.slowdown, None),
            Restricted::NarrowCopies => here("narrow-copies", 1.0, Some(NARROW)),
        }));
        for (i, program) in self.build.iter().enumerate() {
            let program = program.canonicalize().with_context(|| program.display().to_string())?;
            places.push(Place { name: format!("build-{}", i + 1), program, slowdown: 1.0, tunables: None });
        }
        Ok(places)
    }

    /// A host record and a grid of a place, by programs of their own.
    fn round(&self, place: &Place, host: &Path, costs: &Path) -> anyhow::Result<()> {
        for file in [host, costs] {
            // Records are appended.
            std::fs::write(file, "").with_context(|| file.display().to_string())?;
        }
        let [sizes, steps] = GRID;
        let packets = if self.quick { PACKETS_QUICK } else { PACKETS };
        place.go(&["measure", "host", "--quick"], host)?;
        place.go(&["measure", "pipeline", "--size", sizes, "--h", steps, "--packets", packets], costs)
    }
}

/// The host record and the grid of a place in a round.
fn files(directory: &Path, name: &str, round: usize) -> [PathBuf; 2] {
    ["host", "costs"].map(|what| directory.join(format!("{name}-{what}-{}.jsonl", round + 1)))
}

/// What an earlier run kept, this platform first.
fn kept(directory: &Path) -> anyhow::Result<Vec<Measured>> {
    let place = || directory.display().to_string();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(place)? {
        let file = entry.with_context(place)?.file_name();
        names.extend(file.to_str().and_then(|file| file.strip_suffix("-costs-1.jsonl")).map(str::to_owned));
    }
    ensure!(
        names.iter().any(|name| name == HERE),
        "{}: no {HERE}-costs-1.jsonl in it: keep records there with --output",
        place()
    );
    names.sort_by_key(|name| (name != HERE, name.clone()));
    let read = |name: &String| {
        let mut measured = Measured { name: name.clone(), ..Measured::default() };
        let rounds = (0..).map(|round| files(directory, name, round));
        for [host, costs] in rounds.take_while(|[_, costs]| costs.exists()) {
            measured.read(&host, &costs)?;
        }
        Ok(measured)
    };
    names.iter().map(read).collect()
}

impl Measured {
    /// Another round.
    fn read(&mut self, host: &Path, costs: &Path) -> anyhow::Result<()> {
        let mut platform = platforms::load(host)?.swap_remove(0);
        platform.name.clone_from(&self.name);
        let table = source::table(costs)?;
        let points = |table: &Table| anyhow::Ok((table.numbers("p")?, table.numbers("h")?));
        let same = match self.costs.first() {
            None => true,
            Some(first) => points(first)? == points(&table)?,
        };
        ensure!(same, "{}: another grid than in the first round", costs.display());
        self.platforms.push(platform);
        self.costs.push(table);
        Ok(())
    }

    /// The rounds' medians.
    fn platform(&self) -> Platform {
        let middle = |of: &dyn Fn(&Platform) -> f64| median(self.platforms.iter().map(of));
        let (score, copy_bits_per_s) = (middle(&|p| p.score), middle(&|p| p.copy_bits_per_s));
        Platform { score, copy_bits_per_s, ..self.platforms[0].clone() }
    }

    /// The rounds' medians, point by point.
    fn costs(&self) -> anyhow::Result<Table> {
        let columns = COLUMNS.map(|name| {
            let rounds = self.costs.iter().map(|table| table.numbers(name)).collect::<Result<Vec<_>, _>>()?;
            anyhow::Ok(
                (0..self.costs[0].len())
                    .map(|row| median(rounds.iter().map(|r| r[row])))
                    .collect::<Vec<f64>>(),
            )
        });
        let [p, h, t, spread] = columns;
        let [p, h, t, spread] = [p?, h?, t?, spread?];
        let columns: Vec<(&str, &[f64])> = COLUMNS.into_iter().zip([&p[..], &h, &t, &spread]).collect();
        Ok(Table::from_columns(&columns)?)
    }

    /// By how much the proportion of the costs to those `here` changed between rounds, %.
    fn drift_pct(&self, here: &Measured) -> anyhow::Result<f64> {
        let proportions = self.costs.iter().zip(&here.costs).map(|(there, here)| {
            let (there, here) = (there.numbers("T_ns")?, here.numbers("T_ns")?);
            anyhow::Ok(median(there.iter().zip(&here).map(|(there, here)| there / here)))
        });
        let proportions = proportions.collect::<Result<Vec<f64>, _>>()?;
        let (least, most) =
            proportions.iter().fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
        Ok(100.0 * (most / least - 1.0))
    }
}

impl Place {
    fn go(&self, words: &[&str], records: &Path) -> anyhow::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(words).arg("-o").arg(records).stdin(Stdio::null());
        if self.slowdown != 1.0 {
            command.args(["--slowdown", &self.slowdown.to_string()]);
        }
        if let Some(tunables) = self.tunables {
            command.env("GLIBC_TUNABLES", tunables);
        }
        let output = command.output().with_context(|| self.program.display().to_string())?;
        if !output.status.success() {
            bail!(
                "{} {}: {}",
                self.program.display(),
                words.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(())
    }
}

fn figures(measured: &[Measured]) -> anyhow::Result<Vec<Predicted>> {
    let [here, others @ ..] = measured else { bail!("nothing was measured") };
    let options = FitOptions { weighting: Weighting::Relative, ..FitOptions::default() };
    let costs = here.costs()?;
    let (_, check) = half(&costs, "T_ns", TERMS_HALF, &options)?;
    let halved = |id: &str, asked, ours| Predicted {
        id: id.to_owned(),
        asked,
        ours,
        pass: ours <= asked,
        noisy: ours > asked && check.verdict == CheckVerdict::TooNoisy,
        drift_pct: None,
        check,
    };
    let mut figures = vec![
        halved("half-grid-median-pct", MEDIAN_PCT, check.median_pct),
        halved("half-grid-p95-pct", P95_PCT, check.p95_pct),
    ];
    let whole = fit(&costs, "T_ns", TERMS, &options)?;
    for there in others {
        let (from, to) = (here.platform(), there.platform());
        let transfer = Transfer { from, to, record_sd: RECORD_SD, transfer_sd: TRANSFER_SD };
        let check =
            elsewhere(&whole, &there.costs()?, &options, &transfer).with_context(|| there.name.clone())?;
        let drift = there.drift_pct(here)?;
        figures.push(Predicted {
            id: format!("{}-covered", there.name),
            asked: whole.level,
            ours: check.covered,
            pass: check.verdict == CheckVerdict::Holds,
            noisy: check.verdict != CheckVerdict::Holds && drift > DRIFT_MAX_PCT,
            drift_pct: Some(drift),
            check,
        });
    }
    Ok(figures)
}

fn table(figures: &[Predicted]) -> comfy_table::Table {
    let mut table = print::table([
        "figure",
        "asked",
        "ours",
        "points",
        "median error %",
        "95 % within %",
        "repeat %",
        "drift %",
        "",
    ]);
    for figure in figures {
        let Check { n, median_pct, p95_pct, repeat, .. } = figure.check;
        let sign = if figure.id.ends_with("covered") { "≥" } else { "≤" };
        table.add_row([
            figure.id.clone(),
            format!("{sign} {}", print::number(figure.asked)),
            print::number(figure.ours),
            n.to_string(),
            format!("{median_pct:.2}"),
            format!("{p95_pct:.2}"),
            repeat.map_or("–".to_owned(), |r| format!("{:.2}", r.median_pct)),
            figure.drift_pct.map_or("–".to_owned(), |drift| format!("{drift:.2}")),
            if figure.noisy { "TOO NOISY".to_owned() } else { verdict(figure.pass) },
        ]);
    }
    table
}

fn remarks(figures: &[Predicted]) -> Vec<String> {
    let mut remarks = vec![format!(
        "asked before anything was measured; the interval takes {:.0} % for the scaling between platforms and {:.0} % for each record",
        100.0 * TRANSFER_SD,
        100.0 * RECORD_SD
    )];
    if figures.iter().any(|f| f.noisy) {
        remarks.push(format!(
            "too noisy to know: the points themselves do not repeat within what is asked, or the platforms' proportion \
             drifted by more than {DRIFT_MAX_PCT} % between rounds"
        ));
    }
    remarks
}

/// A directory that goes with the run.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> anyhow::Result<Temporary> {
        let path = std::env::temp_dir().join(format!("fastpath-prediction-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Temporary(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What remains is in a directory for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_model::platform::ScoreKind;
    use fastpath_units::Rng;

    /// A platform `compute` and `copy` times slower than the whitepaper's, with a bend in the cost
    /// of copies; `drift` is how much slower its last round was, `noise` how far points scatter.
    fn measured(name: &str, (compute, copy): (f64, f64), drift: f64, noise: f64) -> Measured {
        let mut rng = Rng::new(7);
        let mut found = Measured { name: name.to_owned(), ..Measured::default() };
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
                wire: None,
            });
        }
        found
    }

    fn told(measured: &[Measured]) -> Vec<(String, bool, bool)> {
        figures(measured).unwrap().into_iter().map(|f| (f.id, f.pass, f.noisy)).collect()
    }

    fn named(figures: [(&str, bool, bool); 3]) -> Vec<(String, bool, bool)> {
        figures.map(|(id, pass, noisy)| (id.to_owned(), pass, noisy)).into()
    }

    #[test]
    fn platforms_that_scale_as_their_records_say_are_predicted() {
        let found =
            told(&[measured(HERE, (1.0, 1.0), 1.0, 0.005), measured("there", (1.6, 0.7), 1.0, 0.005)]);
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
        assert_eq!(told(&[here(), wrong])[2], ("there-covered".to_owned(), false, false));
        let mut drifting = measured("there", (1.6, 0.7), 1.3, 0.005);
        drifting.platforms.iter_mut().for_each(|platform| platform.score = 60e3);
        assert_eq!(told(&[here(), drifting])[2], ("there-covered".to_owned(), false, true));
    }

    #[test]
    fn points_that_do_not_repeat_are_too_noisy_to_know() {
        let found = told(&[measured(HERE, (1.0, 1.0), 1.0, 0.2), measured("there", (1.0, 1.0), 1.0, 0.005)]);
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
