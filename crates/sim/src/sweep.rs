//! Many runs: a case, and the axes along which it varies. Each point is a pure function of the
//! sweep and its number, so points can be computed in any order, by any number of threads, on any
//! number of computers.
//!
//! ```text
//! axis machine.cpu.cores=1..4  ┐  grid: every combination
//! axis program.h=0,10,50       ┘  random, Halton: n points of the box that the axes span
//! ```
//!
//! Every row has the hash of the sweep's configuration. Rows with the same hash belong to one
//! table.

use crate::case::{Case, CaseError, Parameter};
use crate::outcome::Outcome;
use fastpath_units::Rng;
use fastpath_units::matrix::{fnv1a, indices};
use std::fmt;
use std::str::FromStr;

/// The most points of a sweep.
pub const POINTS_MAX: u64 = 10_000_000;

/// The bases of a Halton sequence, one per axis: the first primes. With more axes the points of the
/// sequence are correlated.
const BASES: [u64; 16] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53];

/// The columns after the axes.
const COLUMNS: [&str; 17] = [
    "offered",
    "forwarded",
    "dropped",
    "held",
    "offered_pps",
    "forwarded_pps",
    "share",
    "latency_mean_us",
    "latency_p50_us",
    "latency_p99_us",
    "latency_max_us",
    "bottleneck",
    "order_violations",
    "events",
    "seconds",
    "trace_hash",
    "problem",
];

/// A parameter and its values: `machine.cpu.cores=1,2,4`, `workload.size=64..1518`,
/// `machine.cpu.clock=1.0GHz..3.0GHz/5`.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The name of the parameter, as it was written.
    pub name: String,
    parameter: Parameter,
    values: Values,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    List(Vec<String>),
    Range(Span),
}

/// The numbers from `low` to `high`: whole numbers, unless an end is written with a decimal point.
#[derive(Clone, Debug, PartialEq)]
struct Span {
    low: f64,
    high: f64,
    is_whole: bool,
    unit: String,
}

/// The choice of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Every combination; the last axis varies fastest.
    Grid,
    /// This many points, each independent.
    Random(u64),
    /// This many points that fill the space evenly: Halton's sequence (1960), shifted by the seed
    /// (Cranley and Patterson, 1976).
    Halton(u64),
}

/// A case and the points at which it runs.
#[derive(Clone, Debug)]
pub struct Sweep {
    case: Case,
    axes: Vec<Axis>,
    design: Design,
    points: u64,
    configuration: String,
}

/// Why a sweep cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The text is not an axis.
    #[error(
        "axis {0:?}: write NAME=A,B,C or NAME=LOW..HIGH or NAME=LOW..HIGH/COUNT; write the unit after the number"
    )]
    Axis(String),
    /// A value that is there twice.
    #[error("axis {name:?} has {value} twice; write each value once")]
    Repeated {
        /// The axis.
        name: String,
        /// The value.
        value: String,
    },
    /// A grid over a range of real numbers without a count.
    #[error("axis {0:?}: a grid over decimal numbers needs a number of values: write LOW..HIGH/COUNT")]
    Steps(String),
    /// An unknown name.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// Two axes of one parameter.
    #[error("axis {0:?} is given twice")]
    Twice(String),
    /// Too many axes.
    #[error("{0} axes: a Halton sequence has at most 16; use a random sample")]
    Axes(usize),
    /// Too many points, or none.
    #[error("{0:.0} points: a sweep has 1 … {POINTS_MAX}; use a sample instead of a grid, or fewer values")]
    Points(f64),
}

impl FromStr for Axis {
    type Err = SweepError;
    fn from_str(text: &str) -> Result<Axis, SweepError> {
        let bad = || SweepError::Axis(text.to_owned());
        let (name, values) = text.split_once('=').ok_or_else(bad)?;
        let parameter = name.parse()?;
        let is_name = matches!(parameter, Parameter::Machine | Parameter::Program);
        let values = match values.split_once("..").filter(|_| !is_name) {
            Some((low, rest)) => {
                let (high, count) = match rest.split_once('/') {
                    Some((high, count)) => {
                        let count = count.parse().ok().filter(|n| (1..=POINTS_MAX).contains(n));
                        (high, Some(count.ok_or_else(bad)?))
                    }
                    None => (rest, None),
                };
                let span = Span::parse(low, high).ok_or_else(bad)?;
                count.map_or_else(|| Values::Range(span.clone()), |n| Values::List(span.evenly(n)))
            }
            None => Values::List(values.split(',').map(|v| v.trim().to_owned()).collect()),
        };
        if matches!(&values, Values::List(list) if list.iter().any(String::is_empty)) {
            return Err(bad());
        }
        if let Values::List(list) = &values
            && let Some((_, value)) = list.iter().enumerate().find(|(at, value)| list[..*at].contains(value))
        {
            return Err(SweepError::Repeated { name: name.to_owned(), value: value.clone() });
        }
        Ok(Axis { name: name.to_owned(), parameter, values })
    }
}

impl fmt::Display for Axis {
    /// Writes a text that is parsed as the same axis.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.values {
            Values::List(list) => write!(f, "{}={}", self.name, list.join(",")),
            Values::Range(Span { low, high, is_whole, unit }) => {
                // Without a decimal point a number is whole.
                let number = |x: &f64| match x.to_string() {
                    text if *is_whole || text.contains('.') => text,
                    text => format!("{text}.0"),
                };
                write!(f, "{}={}{unit}..{}{unit}", self.name, number(low), number(high))
            }
        }
    }
}

impl Axis {
    /// The names of the files, if `of` is [`Parameter::Machine`] or [`Parameter::Program`] and this
    /// is its axis.
    pub fn names(&self, of: &Parameter) -> &[String] {
        match &self.values {
            Values::List(list) if self.parameter == *of => list,
            _ => &[],
        }
    }

    /// The number of values in a grid.
    fn count(&self) -> Result<u64, SweepError> {
        match &self.values {
            Values::List(list) => Ok(list.len() as u64),
            Values::Range(span) if span.is_whole => Ok((span.high - span.low) as u64 + 1),
            Values::Range(_) => Err(SweepError::Steps(self.name.clone())),
        }
    }

    /// Value number `i` of a grid.
    fn nth(&self, i: u64) -> String {
        match &self.values {
            Values::List(list) => list[i as usize].clone(),
            Values::Range(span) => span.write(span.low + i as f64),
        }
    }

    /// The value at fraction `u` of the range, 0 ≤ u < 1.
    fn at(&self, u: f64) -> String {
        match &self.values {
            Values::List(list) => list[((u * list.len() as f64) as usize).min(list.len() - 1)].clone(),
            Values::Range(span) if span.is_whole => {
                span.write((span.low + (u * (span.high - span.low + 1.0)).floor()).min(span.high))
            }
            Values::Range(span) => span.write(span.low + u * (span.high - span.low)),
        }
    }
}

impl Span {
    fn parse(low: &str, high: &str) -> Option<Span> {
        let split = |text: &str| {
            let unit = text.find(|c: char| !c.is_ascii_digit() && !".-+".contains(c)).unwrap_or(text.len());
            Some((text[..unit].parse::<f64>().ok()?, text[unit..].to_owned(), !text[..unit].contains('.')))
        };
        let ((from, low_unit, low_whole), (to, unit, high_whole)) = (split(low.trim())?, split(high.trim())?);
        // Numbers that an f64 holds exactly.
        let sane = from <= to && from.abs() <= 9e15 && to.abs() <= 9e15;
        let same = low_unit == unit || low_unit.is_empty();
        (sane && same).then_some(Span { low: from, high: to, is_whole: low_whole && high_whole, unit })
    }

    fn evenly(&self, n: u64) -> Vec<String> {
        let step = (self.high - self.low) / (n.max(2) - 1) as f64;
        (0..n).map(|i| self.write(self.low + i as f64 * step)).collect()
    }

    /// Writes `x` with at most six decimals.
    fn write(&self, x: f64) -> String {
        if self.is_whole {
            return format!("{}{}", x.round(), self.unit);
        }
        let text = format!("{x:.6}");
        format!("{}{}", text.trim_end_matches('0').trim_end_matches('.'), self.unit)
    }
}

impl Sweep {
    /// Makes the sweep of `case` along `axes`. The case's seed is also the seed of a sample.
    pub fn new(case: Case, axes: Vec<Axis>, design: Design) -> Result<Sweep, SweepError> {
        for (i, axis) in axes.iter().enumerate() {
            if axes[..i].iter().any(|other| other.parameter == axis.parameter) {
                return Err(SweepError::Twice(axis.name.clone()));
            }
        }
        let points = match design {
            Design::Random(n) | Design::Halton(n) => n as f64,
            Design::Grid => {
                axes.iter().try_fold(1.0, |n, axis| Ok::<f64, SweepError>(n * axis.count()? as f64))?
            }
        };
        if !(1.0..=POINTS_MAX as f64).contains(&points) {
            return Err(SweepError::Points(points));
        }
        if matches!(design, Design::Halton(_)) && axes.len() > BASES.len() {
            return Err(SweepError::Axes(axes.len()));
        }
        // Everything that a row depends on, and the version of the simulator.
        let text = format!("{} {case:?} {axes:?} {design:?}", env!("CARGO_PKG_VERSION"));
        let configuration = format!("{:016x}", fnv1a(text.as_bytes()));
        Ok(Sweep { case, axes, design, points: points as u64, configuration })
    }

    /// The number of points. Points are numbered from 0.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// The hash of everything that the table depends on.
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// The value on each axis at `point`.
    pub fn values(&self, point: u64) -> Vec<String> {
        let seed = self.case.seed;
        match self.design {
            Design::Grid => {
                let count = |axis: &Axis| axis.count().expect("checked when the sweep was made");
                let counts: Vec<u64> = self.axes.iter().map(count).collect();
                self.axes.iter().zip(indices(point, &counts)).map(|(axis, i)| axis.nth(i)).collect()
            }
            Design::Random(_) => {
                let mut rng = Rng::stream(seed, point);
                self.axes.iter().map(|axis| axis.at(rng.unit_f64())).collect()
            }
            Design::Halton(_) => {
                let place = |(i, axis): (usize, &Axis)| {
                    let shift = Rng::stream(seed, i as u64).unit_f64();
                    axis.at((radical_inverse(point + 1, BASES[i]) + shift).fract())
                };
                self.axes.iter().enumerate().map(place).collect()
            }
        }
    }

    /// The case at `point`.
    pub fn case(&self, point: u64) -> Result<Case, CaseError> {
        let mut case = self.case.clone();
        let mut changes: Vec<(&Parameter, String)> =
            self.axes.iter().map(|a| &a.parameter).zip(self.values(point)).collect();
        changes.sort_by(|a, b| a.0.cmp(b.0));
        changes.iter().try_for_each(|(parameter, value)| case.set(parameter, value))?;
        Ok(case)
    }

    /// The names of the columns of the table.
    pub fn columns(&self) -> Vec<String> {
        let axes = self.axes.iter().map(|axis| axis.name.clone());
        let fixed = ["configuration", "point"].into_iter().map(str::to_owned);
        fixed.chain(axes).chain(COLUMNS.into_iter().map(str::to_owned)).collect()
    }

    /// Runs `point` and returns its row. A point that cannot run has the reason in the last column.
    pub fn row(&self, point: u64) -> Vec<String> {
        let found = self.case(point).and_then(|case| case.run());
        let fixed = [self.configuration.clone(), point.to_string()];
        let results = match &found {
            Ok(outcome) => results(outcome).to_vec(),
            Err(error) => {
                let mut cells = vec![String::new(); COLUMNS.len()];
                // A row is one line.
                cells[COLUMNS.len() - 1] = error.to_string().replace('\n', " ");
                cells
            }
        };
        fixed.into_iter().chain(self.values(point)).chain(results).collect()
    }
}

/// The cells of an outcome, in the order of [`COLUMNS`].
fn results(outcome: &Outcome) -> [String; COLUMNS.len()] {
    let latency = |part: fn(&crate::outcome::Latency) -> f64| {
        outcome.latency_us.as_ref().map_or(String::new(), |l| part(l).to_string())
    };
    let stuck = outcome.deadlock.as_ref();
    [
        outcome.offered.to_string(),
        outcome.forwarded.to_string(),
        outcome.dropped.values().sum::<u64>().to_string(),
        outcome.held.to_string(),
        outcome.offered_pps.to_string(),
        outcome.forwarded_pps.to_string(),
        outcome.share().to_string(),
        latency(|l| l.mean),
        latency(|l| l.p50),
        latency(|l| l.p99),
        latency(|l| l.max),
        outcome.bottleneck.clone(),
        outcome.order_violations.to_string(),
        outcome.events.to_string(),
        outcome.seconds.to_string(),
        format!("{:016x}", outcome.trace_hash),
        stuck.map_or(String::new(), |d| format!("deadlock: {}", d.waits.join("; "))),
    ]
}

/// The digits of `n` in base `base`, mirrored at the point (van der Corput).
fn radical_inverse(mut n: u64, base: u64) -> f64 {
    let (mut inverse, mut digit) = (0.0, 1.0 / base as f64);
    while n > 0 {
        inverse += (n % base) as f64 * digit;
        digit /= base as f64;
        n /= base;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped;
    use std::collections::{BTreeMap, BTreeSet};

    fn sweep(axes: &[&str], design: Design, seed: u64) -> Result<Sweep, SweepError> {
        let case = Case {
            machine: shipped::machine_text("xeon-e5-2687wv4").unwrap(),
            program: shipped::program_text("netcope").unwrap(),
            workload: "line-rate,size=64,duration=20us".to_owned(),
            capture: None,
            seed,
            files: BTreeMap::new(),
        };
        Sweep::new(case, axes.iter().map(|a| a.parse()).collect::<Result<_, _>>()?, design)
    }

    fn all(sweep: &Sweep) -> Vec<String> {
        (0..sweep.points()).map(|point| sweep.values(point).join(" ")).collect()
    }

    #[test]
    fn an_axis_is_written_as_it_can_be_read() {
        for text in [
            "machine=ixp1200,cn6880",
            "workload.size=64..1518",
            "machine.cpu.clock=1.0GHz..3.25GHz",
            "program.h=0.0000001..0.5",
            "program.h=-3.0..9000000000000000.0",
            "machine.cpu.clock=1.0GHz..3.0GHz/5",
            "seed=1..3/2",
        ] {
            let axis: Axis = text.parse().unwrap();
            assert_eq!(axis.to_string().parse::<Axis>().unwrap(), axis, "{axis}");
        }
    }

    #[test]
    fn a_grid_is_every_combination_in_order() {
        let grid = sweep(
            &["machine.cpu.cores=1..2", "program.h=0,50", "machine.cpu.clock=1GHz..2.0GHz/3"],
            Design::Grid,
            1,
        );
        let golden = [
            "1 0 1GHz",
            "1 0 1.5GHz",
            "1 0 2GHz",
            "1 50 1GHz",
            "1 50 1.5GHz",
            "1 50 2GHz",
            "2 0 1GHz",
            "2 0 1.5GHz",
            "2 0 2GHz",
            "2 50 1GHz",
            "2 50 1.5GHz",
            "2 50 2GHz",
        ];
        assert_eq!(all(&grid.unwrap()), golden);
    }

    #[test]
    fn samples_are_frozen_by_their_seed_and_fill_their_ranges() {
        let axes = ["machine.cpu.cores=1..12", "workload.size=64..1518", "machine.cpu.clock=1.0GHz..3.0GHz"];
        for design in [Design::Random(400), Design::Halton(400)] {
            let points = all(&sweep(&axes, design, 1).unwrap());
            assert_eq!(points, all(&sweep(&axes, design, 1).unwrap()));
            assert_ne!(points, all(&sweep(&axes, design, 2).unwrap()));
            let cores: BTreeSet<&str> = points.iter().map(|p| p.split(' ').next().unwrap()).collect();
            assert_eq!(cores.len(), 12);
        }
        // Of 400 points of a Halton sequence each of 12 values gets 33 ± 3.
        let points = all(&sweep(&axes, Design::Halton(400), 1).unwrap());
        for cores in 1..=12 {
            let n = points.iter().filter(|p| p.starts_with(&format!("{cores} "))).count();
            assert!((30..=36).contains(&n), "{cores}: {n}");
        }
    }

    #[test]
    fn a_row_has_a_cell_per_column_even_for_a_point_that_cannot_run() {
        let sweep = sweep(&["machine.cpu.cores=1,0"], Design::Grid, 1).unwrap();
        let (columns, good, bad) = (sweep.columns(), sweep.row(0), sweep.row(1));
        assert_eq!((columns.len(), columns.len()), (good.len(), bad.len()));
        let cell = |row: &[String], name: &str| row[columns.iter().position(|c| c == name).unwrap()].clone();
        assert_eq!(cell(&good, "problem"), "");
        assert!(cell(&good, "share").parse::<f64>().unwrap() < 0.2);
        assert!(cell(&bad, "problem").contains("xeon-e5-2687wv4.toml:"), "{bad:?}");
        assert_eq!(cell(&bad, "offered"), "");
    }

    #[test]
    fn the_configuration_covers_everything_the_table_depends_on() {
        let of = |axes: &[&str], design, seed| sweep(axes, design, seed).unwrap().configuration().to_owned();
        let all = [
            of(&["program.h=1,2"], Design::Grid, 1),
            of(&["program.h=1,3"], Design::Grid, 1),
            of(&["program.h=1,2"], Design::Halton(2), 1),
            of(&["program.h=1,2"], Design::Grid, 2),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 4);
        assert_eq!(all[0], of(&["program.h=1,2"], Design::Grid, 1));
    }

    #[test]
    fn bad_sweeps_are_refused() {
        for (axis, says) in [
            ("cores=1", "machine.PATH"),
            ("seed", "NAME=A,B,C"),
            ("seed=", "NAME=A,B,C"),
            ("seed=5..1", "LOW..HIGH"),
            ("seed=1..x", "LOW..HIGH"),
            ("machine.cpu.clock=1GHz..2MHz", "unit"),
            ("machine.cpu.clock=1.0GHz..2GHz", "COUNT"),
            ("seed=1..100000000", "sample"),
        ] {
            let error = sweep(&[axis], Design::Grid, 1).unwrap_err().to_string();
            assert!(error.contains(says), "{axis}: {error}");
        }
        assert!(matches!(sweep(&["seed=1", "seed=2"], Design::Grid, 1), Err(SweepError::Twice(_))));
        assert!(matches!(sweep(&["seed=1"], Design::Random(0), 1), Err(SweepError::Points(_))));
    }
}
