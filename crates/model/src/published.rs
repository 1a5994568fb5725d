//! Published measurements of data planes, and how well a part of each predicts the rest.
//!
//! The files are facts of other people's measurements: `data/published/README.md` has the source,
//! the unit, the criterion and the licence of each. A set is fitted as its user would do it: by
//! chosen terms, each series of a set on its own.
//!
//! ```text
//!  set ─▶ series ─▶ draw half of the points ─▶ fit ─┬─▶ predict the other half: inside? how far?
//!               └─▶ few cores, small frames ────────┤
//!                                                   └─▶ refused, or a warning that no law is seen
//! ```
//!
//! Not every set has a law. Then the fit must say so: a series is *missed in silence* when its
//! predictions err by more than [`ERROR_MAX_PCT`] and nothing warned.

use crate::check::{Check, CheckVerdict, Halves, half_by};
use crate::families::COVERED;
use crate::fit::{FitError, FitOptions, Weighting};
use crate::table::Table;
use fastpath_units::stats::{median, quantile, sorted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The largest median error where the law fits, %.
pub const ERROR_MAX_PCT: f64 = 5.0;
/// The largest share of fits that miss in silence.
pub const SILENT_MAX: f64 = 0.05;
/// Share of points in the intervals of one set: the bounds that pass. A set has few points, so that
/// its coverage has an error of a few percent. That of all sets together is held to [`COVERED`].
pub const COVERED_OF_SET: [f64; 2] = [0.85, 1.0];
/// The least share of fits that see a law for their predictions to be judged. Where fewer do, they
/// do by chance.
const LAW_SHARE_MIN: f64 = 0.2;

/// A published set of measurements, and how it is fitted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PublishedSet {
    /// Its name: that of its file.
    pub name: &'static str,
    /// The rows.
    pub csv: &'static str,
    /// The cost that is fitted: one core's time per packet.
    pub y: &'static str,
    /// The terms, chosen by the points.
    pub terms: &'static str,
    /// The columns whose words separate the series; each series is fitted on its own.
    pub series: &'static [&'static str],
    /// The column to extrapolate, and the largest value that is fitted.
    pub beyond: Option<(&'static str, f64)>,
}

/// The name of all sets together.
pub const ALL: &str = "all sets";

/// Reads the file `data/published/NAME.csv`.
macro_rules! csv {
    ($name:literal) => {
        include_str!(concat!("../data/published/", $name, ".csv"))
    };
}

/// The sets.
pub const SETS: [PublishedSet; 7] = [
    PublishedSet {
        name: "xdp-paper",
        csv: csv!("xdp-paper"),
        y: "cores/packets_per_second",
        terms: "auto:cores",
        series: &["program"],
        beyond: Some(("cores", 3.0)),
    },
    PublishedSet {
        name: "ixy-languages",
        csv: csv!("ixy-languages"),
        y: "clock_ghz/packets_per_second",
        terms: "auto:batches_per_packet,clock_ghz",
        series: &["language", "limited_by"],
        beyond: None,
    },
    PublishedSet {
        name: "pktgen-xl170",
        csv: csv!("pktgen-xl170"),
        y: "threads/packets_per_second",
        terms: "auto:frame_bytes,threads",
        series: &["burst"],
        beyond: Some(("threads", 5.0)),
    },
    PublishedSet {
        name: "pktgen-r7525",
        csv: csv!("pktgen-r7525"),
        y: "threads/packets_per_second",
        terms: "auto:frame_bytes,threads",
        series: &["burst"],
        beyond: Some(("threads", 5.0)),
    },
    PublishedSet {
        name: "pktgen-bluefield-2",
        csv: csv!("pktgen-bluefield-2"),
        y: "threads/packets_per_second",
        terms: "auto:frame_bytes,threads",
        series: &["burst"],
        beyond: Some(("threads", 4.0)),
    },
    PublishedSet {
        name: "userspace-xdp",
        csv: csv!("userspace-xdp"),
        y: "1/packets_per_second",
        terms: "auto:frame_bytes",
        series: &["program", "runtime", "limited_by"],
        beyond: None,
    },
    PublishedSet {
        name: "netbenches-queues",
        csv: csv!("netbenches-queues"),
        y: "queues/packets_per_second",
        terms: "auto:queues",
        series: &["machine", "release"],
        beyond: None,
    },
];

/// How well a part of a set predicts the rest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// The set.
    pub set: String,
    /// `half`, or `beyond` for an extrapolation.
    pub part: String,
    /// Fits that were tried.
    pub fits: usize,
    /// Fits that were refused, or whose rest has nothing to compare.
    pub refused: usize,
    /// Fits that warned that they see no law.
    pub warned: usize,
    /// Fits without refusal, warning or wide interval whose median error is above
    /// [`ERROR_MAX_PCT`].
    pub silent: usize,
    /// The predictions of the fits that did not warn; without points if all warned or were refused.
    pub check: Check,
}

impl PublishedFigure {
    /// Returns whether few misses are silent.
    pub fn is_announced(&self) -> bool {
        self.silent as f64 <= SILENT_MAX * self.fits as f64
    }

    /// Returns whether enough fits see a law to judge their intervals and errors. An extrapolation
    /// is warned of and not judged.
    pub fn sees_law(&self) -> bool {
        let seen = self.fits - self.refused - self.warned;
        seen as f64 >= LAW_SHARE_MIN * self.fits as f64
    }
}

/// Fits `draws` random halves of each series of each set, and the part to extrapolate from.
///
/// # Errors
/// A set whose text is not a table with its columns.
pub fn published(draws: u64, seed: u64) -> Result<Vec<PublishedFigure>, FitError> {
    let mut figures = Vec::new();
    let mut all = Tally::default();
    for set in &SETS {
        let halves = set.halves(draws, seed)?;
        figures.push(halves.figure(set.name, "half", COVERED_OF_SET));
        let beyond = set.extrapolated()?;
        figures.extend(beyond.map(|beyond| beyond.figure(set.name, "beyond", COVERED_OF_SET)));
        all.merge(halves);
    }
    figures.push(all.figure(ALL, "half", COVERED));
    Ok(figures)
}

impl PublishedSet {
    fn halves(&self, draws: u64, seed: u64) -> Result<Tally, FitError> {
        let table = Table::from_csv(self.csv)?;
        let mut tally = Tally::default();
        for only in self.all_series(&table)? {
            for draw in 0..draws {
                tally.add(self, &table, &only, &Halves::Drawn(seed.wrapping_add(draw)));
            }
        }
        Ok(tally)
    }

    fn extrapolated(&self) -> Result<Option<Tally>, FitError> {
        let Some((column, most)) = self.beyond else { return Ok(None) };
        let table = Table::from_csv(self.csv)?;
        let mut tally = Tally::default();
        for only in self.all_series(&table)? {
            tally.add(self, &table, &only, &Halves::UpTo(column.to_owned(), most));
        }
        Ok(Some(tally))
    }

    /// Returns the words that select each series.
    fn all_series(&self, table: &Table) -> Result<Vec<Vec<(String, String)>>, FitError> {
        let columns = self.series.iter().map(|name| table.texts(name)).collect::<Result<Vec<_>, _>>()?;
        let words = |row: usize| columns.iter().map(|texts| texts[row].clone()).collect::<Vec<_>>();
        let all: BTreeSet<Vec<String>> = (0..table.len()).map(words).collect();
        let named = |words: Vec<String>| {
            self.series.iter().map(|name| (*name).to_owned()).zip(words).collect::<Vec<_>>()
        };
        // What the offered load or the NIC limits says nothing about the program.
        let is_device =
            |only: &Vec<(String, String)>| only.iter().all(|(_, word)| word != "offered" && word != "nic");
        Ok(all.into_iter().map(named).filter(is_device).collect())
    }
}

/// What was seen of the fits of a set.
#[derive(Default)]
struct Tally {
    fits: usize,
    refused: usize,
    warned: usize,
    silent: usize,
    checks: Vec<Check>,
}

impl Tally {
    fn add(&mut self, set: &PublishedSet, table: &Table, only: &[(String, String)], by: &Halves) {
        let options =
            FitOptions { weighting: Weighting::Relative, only: only.to_vec(), ..FitOptions::default() };
        self.fits += 1;
        let Ok((found, check)) = half_by(table, set.y, set.terms, &options, by) else {
            self.refused += 1;
            return;
        };
        if let Halves::UpTo(column, most) = by {
            // The values beyond are outside the range, or the column is in no term: both warn.
            let beyond = |name: &str| (name == column).then_some(most + 1.0);
            let is_used = found.terms.columns().contains(column.as_str());
            let is_warned = !is_used || !found.model().extrapolations(beyond).is_empty();
            self.warned += usize::from(is_warned);
            self.silent += usize::from(!is_warned);
        } else if found.sees_no_law() {
            self.warned += 1;
            return;
        } else {
            // A wide interval says too that little is known.
            let is_off = check.median_pct > ERROR_MAX_PCT && check.width_pct < 2.0 * check.median_pct;
            self.silent += usize::from(is_off);
        }
        self.checks.push(check);
    }

    fn merge(&mut self, other: Tally) {
        self.fits += other.fits;
        self.refused += other.refused;
        self.warned += other.warned;
        self.silent += other.silent;
        self.checks.extend(other.checks);
    }

    fn figure(&self, set: &str, part: &str, bounds: [f64; 2]) -> PublishedFigure {
        let check = pooled(&self.checks, bounds);
        PublishedFigure {
            set: set.to_owned(),
            part: part.to_owned(),
            fits: self.fits,
            refused: self.refused,
            warned: self.warned,
            silent: self.silent,
            check,
        }
    }
}

/// Pools comparisons: points are summed, errors and widths are medians over the comparisons. The
/// coverage holds within `bounds`.
fn pooled(checks: &[Check], bounds: [f64; 2]) -> Check {
    let n: usize = checks.iter().map(|check| check.n).sum();
    if n == 0 {
        let verdict = CheckVerdict::TooNoisy;
        return Check {
            n,
            capped: 0,
            median_pct: 0.0,
            p95_pct: 0.0,
            max_pct: 0.0,
            covered: 0.0,
            width_pct: 0.0,
            repeat: None,
            verdict,
        };
    }
    let covered = checks.iter().map(|check| check.covered * check.n as f64).sum::<f64>() / n as f64;
    let median_pct = median(checks.iter().map(|check| check.median_pct));
    let worst = sorted(checks.iter().map(|check| check.p95_pct));
    let holds = (bounds[0]..=bounds[1]).contains(&covered) && median_pct <= ERROR_MAX_PCT;
    Check {
        n,
        capped: checks.iter().map(|check| check.capped).sum(),
        median_pct,
        p95_pct: quantile(&worst, 0.5),
        max_pct: checks.iter().map(|check| check.max_pct).fold(0.0, f64::max),
        covered,
        width_pct: median(checks.iter().map(|check| check.width_pct)),
        repeat: None,
        verdict: if holds { CheckVerdict::Holds } else { CheckVerdict::Misses },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets where half of the fits or more see no law: cores that share something, or few points.
    const WITHOUT_LAW: [&str; 2] = ["pktgen-r7525", "netbenches-queues"];

    #[test]
    fn halves_predict_the_rest_where_a_law_is_seen_and_are_announced_where_not() {
        let figures = published(6, 1).expect("tables");
        assert_eq!(figures.len(), SETS.len() + 4 + 1);
        for figure in &figures {
            assert!(figure.is_announced(), "{figure:?}");
            if figure.part == "beyond" {
                assert_eq!(figure.refused + figure.warned, figure.fits, "{figure:?}");
                continue;
            }
            assert_eq!(figure.sees_law(), !WITHOUT_LAW.contains(&figure.set.as_str()), "{figure:?}");
            if figure.sees_law() {
                assert_eq!(figure.check.verdict, CheckVerdict::Holds, "{figure:?}");
            }
        }
        let all = figures.last().expect("all sets");
        assert!(all.check.n > 1000 && all.check.median_pct < ERROR_MAX_PCT, "{all:?}");
    }

    #[test]
    fn the_same_seed_draws_the_same_halves() {
        let of = |seed| SETS[5].halves(2, seed).expect("a table").figure("x", "half", COVERED);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
