//! Fits a linear cost model `y = Σ b·term` to a table: ordinary, weighted or robust least squares,
//! with intervals, residuals, leave-one-out errors, and a reason instead of an answer when the
//! points cannot carry the terms.
//!
//! The steps, in order: read the columns, split off what the wire or a NIC limits
//! ([`crate::regime`]), solve (`linear.rs`), judge. What comes out serialises to the JSON scripts
//! rely on.

use crate::Estimate;
use crate::caps::{Caps, limits, uncapped};
use crate::column_unit::{ColumnUnit, Dimension};
use crate::dist::{normal_quantile, t_quantile};
use crate::fcs::{Fcs, FcsError, FcsOrTable};
use crate::linear::{self, Dependent, Solution};
use crate::model::{Model, Range};
use crate::regime::{self, CapHints, Limit, Regime};
use crate::robust;
use crate::select;
use crate::table::{Table, TableError};
use crate::terms::{Factor, Shape, Term, TermError, Terms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Condition number of the scaled columns above which Belsley (1991) speaks of strong collinearity.
const CONDITION_WARN: f64 = 30.0;
/// Variance inflation above which a coefficient's interval is mostly collinearity.
const VIF_WARN: f64 = 10.0;
/// A point of this leverage fixes a coefficient alone; it cannot be left out.
const LEVERAGE_ONE: f64 = 1.0 - 1e-9;
/// Below this many degrees of freedom the interval rests on hardly any spread.
const FREEDOM_WARN: usize = 3;

/// How the coefficients are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Least squares.
    #[default]
    LeastSquares,
    /// Huber's M-estimator: points further than 1.345 robust standard deviations count less.
    Huber,
}

/// How much each point counts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// All alike: absolute errors are minimised.
    #[default]
    Equal,
    /// By 1/y²: relative errors are minimised, for costs that span decades.
    Relative,
    /// By a column of positive weights (1/variance).
    Column(String),
}

/// Which quantile widens the intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantile {
    /// Student's t, right for few points.
    #[default]
    StudentT,
    /// The normal distribution's, as seed 001's journal used it; too narrow for few points.
    Normal,
}

/// What to do with points the wire or a NIC limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regimes {
    /// Leave them out of the fit if the rest can carry the terms; otherwise keep them and warn.
    #[default]
    Auto,
    /// Leave them out or refuse.
    Split,
    /// Do not look for them.
    Off,
}

/// Options of [`fit`]; the default is ordinary least squares with 95 % Student intervals.
#[derive(Clone, PartialEq, Debug)]
pub struct FitOptions {
    /// How the coefficients are found.
    pub method: Method,
    /// How much each point counts.
    pub weighting: Weighting,
    /// Which quantile widens the intervals.
    pub quantile: Quantile,
    /// Confidence level of every interval, between 0 and 1.
    pub level: f64,
    /// What to do with points the wire or a NIC limits.
    pub regimes: Regimes,
    /// Fit only rows where each of these columns reads as given (`("forwarding", "ip4")`). Regimes
    /// are looked for in the whole table all the same: other rows show where the caps are.
    pub only: Vec<(String, String)>,
    /// Which columns tell the regimes apart.
    pub hints: CapHints,
    /// The unit of y where the column's name carries none.
    pub y_unit: Option<ColumnUnit>,
}

impl Default for FitOptions {
    fn default() -> FitOptions {
        FitOptions {
            method: Method::default(),
            weighting: Weighting::default(),
            quantile: Quantile::default(),
            level: 0.95,
            regimes: Regimes::default(),
            only: Vec::new(),
            hints: CapHints::default(),
            y_unit: None,
        }
    }
}

/// A fitted model and everything needed to judge it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fit {
    /// Each term's coefficient with its interval, by the term as written; unit: y's per unit of the
    /// term.
    pub coefficients: BTreeMap<String, Estimate>,
    /// Share of the (weighted) variance explained; about zero instead of the mean without `const`.
    pub r2: f64,
    /// The same, corrected for the number of terms.
    pub r2_adjusted: f64,
    /// How far the points lie from the model.
    pub residuals: Residuals,
    /// Median over points of |error| when the point is predicted by a fit without it, % of y.
    pub loo_median_pct: f64,
    /// What the reader should know before believing the rest.
    pub warnings: Vec<String>,
    /// What was fitted.
    pub y: String,
    /// The terms, in the order of `covariance`.
    pub terms: Terms,
    /// How the coefficients were found.
    pub method: Method,
    /// How much each point counted.
    pub weighting: Weighting,
    /// Which quantile widened the intervals.
    pub quantile: Quantile,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Points fitted.
    pub n: usize,
    /// Points minus terms.
    pub degrees_of_freedom: usize,
    /// Residual standard deviation, unit of y (relative to y when weighted so).
    pub residual_sd: f64,
    /// Covariance of the coefficients.
    pub covariance: Vec<Vec<f64>>,
    /// Condition number of the columns scaled to length 1.
    pub condition: f64,
    /// Variance inflation by term, constant excluded.
    pub vif: BTreeMap<String, f64>,
    /// Seconds in one unit of y, when y is a time (or cores per rate) and its unit is known.
    pub seconds_per_unit: Option<f64>,
    /// Whether frame sizes count the FCS, where the table or the caller says.
    #[serde(default)]
    pub fcs: Option<Fcs>,
    /// Where each column of the terms was measured.
    #[serde(default)]
    pub ranges: BTreeMap<String, Range>,
    /// The regimes found, the processor's first; empty when they were not looked for.
    pub regimes: Vec<Regime>,
    /// Point by point, in the order of the text.
    pub points: Vec<Point>,
}

/// How far the points lie from the model, relative to the measured value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Residuals {
    /// Share of points (0 … 1) within 0.5 %.
    pub within_0_5_pct: f64,
    /// Share within 1 %.
    pub within_1_pct: f64,
    /// Share within 3 %.
    pub within_3_pct: f64,
    /// The largest, in %.
    pub max_pct: f64,
}

/// One fitted point.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Its line in the text.
    pub line: u64,
    /// Measured y.
    pub measured: f64,
    /// The model's y.
    pub fitted: f64,
    /// (measured − fitted)/measured in %.
    pub residual_pct: f64,
    /// The same against a fit without this point; none when the point alone fixes a coefficient.
    pub loo_pct: Option<f64>,
    /// What the point counted, 1 for all unless weighted or robust.
    pub weight: f64,
}

/// Why there is no fit.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum FitError {
    /// The table is wrong.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Frame sizes counted in two ways.
    #[error(transparent)]
    Fcs(#[from] FcsError),
    /// A term is wrong.
    #[error(transparent)]
    Term(#[from] TermError),
    /// The unit given for y is not the one its columns carry.
    #[error(
        "y = `{y}` carries another unit than the one given (--y-unit): leave that out, or correct the table"
    )]
    OtherUnit {
        /// What is fitted.
        y: String,
    },
    /// No row is as asked for.
    #[error("no row left where `{column}` reads `{text}`: correct the selection")]
    NoRow {
        /// The column.
        column: String,
        /// What it should read.
        text: String,
    },
    /// y is zero or negative.
    #[error("line {line}: y = {value} and a cost is above zero: correct or remove the row")]
    NotPositive {
        /// Line of the text.
        line: u64,
        /// y there.
        value: f64,
    },
    /// A weight is zero or negative.
    #[error("line {line}: weight {value} is not above zero: correct or remove the row")]
    BadWeight {
        /// Line of the text.
        line: u64,
        /// The weight.
        value: f64,
    },
    /// Fewer points than terms + 1.
    #[error(
        "{points} points cannot carry {terms} terms with an error bar: measure {needed} or more, or leave terms out"
    )]
    TooFew {
        /// Points there are.
        points: usize,
        /// Terms asked for.
        terms: usize,
        /// Points needed.
        needed: usize,
    },
    /// A term is a combination of others in these points.
    #[error(
        "term `{term}` cannot be told from {on} in these {points} points: vary it on its own, or leave it out"
    )]
    Collinear {
        /// The term.
        term: String,
        /// What it is a combination of.
        on: String,
        /// Points there are.
        points: usize,
    },
    /// A term is zero in every point.
    #[error("term `{term}` is 0 in every point: measure with another value, or leave it out")]
    Zero {
        /// The term.
        term: String,
    },
    /// The processor-limited points alone cannot carry the terms.
    #[error(
        "of {total} points only {cpu} are limited by the processor, the others by a line rate or a packet-rate cap; without those: {reason}"
    )]
    Capped {
        /// All points.
        total: usize,
        /// Those the processor limits.
        cpu: usize,
        /// Why they do not suffice.
        reason: Box<FitError>,
    },
    /// Numbers so large or small that the arithmetic overflows.
    #[error("the numbers of `{y}` and its terms are too large or too small to compute with: use other units")]
    Overflow {
        /// What was to be fitted.
        y: String,
    },
    /// A confidence level outside 0 … 1.
    #[error("confidence level {level} must lie between 0 and 1, such as 0.95")]
    Level {
        /// The level asked for.
        level: f64,
    },
}

/// Fits `y` (a column, or a product like `cores/rate`) by `terms` (`const,p,h,p*h`), or by terms
/// chosen over some columns (`auto:p,h`).
///
/// # Errors
/// [`FitError`] says what, where, and what to do; nothing is guessed away silently.
///
/// ```
/// use fastpath_model::{Table, fit::{fit, FitOptions}};
/// let table = Table::from_csv("p,T_ns\n64,45.1\n128,51.6\n256,64.3\n512,90.2\n")?;
/// let found = fit(&table, "T_ns", "const,p", &FitOptions::default())?;
/// assert!(found.coefficients["p"].covers(0.1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fit(table: &Table, y: &str, terms: &str, options: &FitOptions) -> Result<Fit, FitError> {
    if !(options.level > 0.0 && options.level < 1.0) {
        return Err(FitError::Level { level: options.level });
    }
    if let Some(columns) = select::columns(terms) {
        return select::fit_chosen(table, y, &columns, options);
    }
    let (y, terms): (Term, Terms) = (quote(y, table).parse()?, quote(terms, table).parse()?);
    let mut used: Vec<&str> = y.columns().collect();
    used.extend(terms.columns());
    if let Weighting::Column(name) = &options.weighting {
        used.push(name);
    }
    let (table, notes) = table.without_words(&used)?;
    table.check_units(&used)?;
    let fcs = Fcs::agreed(Fcs::of(&table)?, options.hints.fcs)?;
    let options = &FitOptions { hints: CapHints { fcs, ..options.hints.clone() }, ..options.clone() };
    let job = Job { y: &y, terms: &terms, options };
    job.check_unit(&table)?;
    let limits = limits(&table, &y, options)?;
    let rows = only(&table, &options.only)?;
    let (table, limits) = (table.keep(&rows), limits.map(|limits| limits.keep(&rows)));
    let (mut found, caps) = uncapped(&table, limits.as_ref(), options.regimes, |table| job.run(table))?;
    found.tell(notes, caps);
    Ok(found)
}

/// Quotes what is a column's name as it stands, such as `packets/s`, so that it is not read as a
/// product: alone, or in a product such as `cores/packets/s`.
pub(crate) fn quote(text: &str, table: &Table) -> String {
    let mut names: Vec<&str> =
        table.names().iter().map(String::as_str).filter(|name| name.contains(['*', '/', '^', '('])).collect();
    // The longest first, for it may contain another.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let part = |part: &str| {
        let (mut done, mut rest) = (String::new(), part);
        while let Some(c) = rest.chars().next() {
            let quoted = rest.strip_prefix('"').and_then(|inside| inside.find('"')).map(|end| end + 2);
            let is_start = !done.ends_with(|before: char| before.is_alphanumeric() || before == '_');
            match names.iter().find(|name| is_start && rest.starts_with(**name)) {
                Some(name) => {
                    done += &format!("\"{name}\"");
                    rest = &rest[name.len()..];
                }
                None => {
                    let (taken, left) = rest.split_at(quoted.unwrap_or(c.len_utf8()));
                    done += taken;
                    rest = left;
                }
            }
        }
        done
    };
    text.split(',').map(part).collect::<Vec<_>>().join(",")
}

/// The rows that read as asked for.
pub(crate) fn only(table: &Table, wanted: &[(String, String)]) -> Result<Vec<usize>, FitError> {
    let mut rows: Vec<usize> = (0..table.len()).collect();
    for (column, text) in wanted {
        let matching = table.rows_where(column, text)?;
        rows.retain(|row| matching.binary_search(row).is_ok());
        if rows.is_empty() {
            return Err(FitError::NoRow { column: column.clone(), text: text.clone() });
        }
    }
    Ok(rows)
}

struct Job<'a> {
    y: &'a Term,
    terms: &'a Terms,
    options: &'a FitOptions,
}

/// The numbers of the rows in one canonical order, so that the order of the text cannot change a
/// bit.
struct Data {
    y: Vec<f64>,
    columns: Vec<Vec<f64>>,
    weights: Vec<f64>,
    lines: Vec<u64>,
}

impl Job<'_> {
    fn run(&self, table: &Table) -> Result<Fit, FitError> {
        let data = self.read(table)?;
        let (n, k) = (data.y.len(), data.columns.len());
        if n <= k {
            return Err(FitError::TooFew { points: n, terms: k, needed: k + 1 });
        }
        let solve = |weights: &[f64]| {
            linear::solve(&data.columns, &data.y, weights).map_err(|d| self.dependent(&d, n))
        };
        let (solution, weights, variance) = match self.options.method {
            Method::LeastSquares => {
                let solution = solve(&data.weights)?;
                let variance = variance(&data, &solution);
                (solution, data.weights.clone(), variance)
            }
            Method::Huber => robust::huber(&data.columns, &data.y, &data.weights, &solve)?,
        };
        let covariance: Vec<Vec<f64>> =
            solution.covariance.iter().map(|row| row.iter().map(|c| c * variance).collect()).collect();
        let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
        if !finite(&solution.coefficients)
            || !covariance.iter().all(|row| finite(row))
            || !variance.is_finite()
        {
            return Err(FitError::Overflow { y: self.y.text().to_owned() });
        }
        let width = match self.options.quantile {
            Quantile::StudentT => t_quantile(0.5 + self.options.level / 2.0, (n - k) as f64),
            Quantile::Normal => normal_quantile(0.5 + self.options.level / 2.0),
        };
        let coefficients = self.by_term(|j| {
            Some(Estimate::around(solution.coefficients[j], width * covariance[j][j].max(0.0).sqrt()))
        });
        let points = points(&data, &solution, &weights);
        let (r2, r2_adjusted) = self.r2(&points);
        let vif = self.by_term(|j| self.inflation(j, &data, &solution));
        Ok(Fit {
            coefficients,
            r2,
            r2_adjusted,
            residuals: Residuals::of(&points),
            loo_median_pct: median(points.iter().filter_map(|p| p.loo_pct.map(f64::abs))),
            warnings: self.judge(&solution, &vif, &points, n - k),
            y: self.y.text().to_owned(),
            terms: self.terms.clone(),
            method: self.options.method,
            weighting: self.options.weighting.clone(),
            quantile: self.options.quantile,
            level: self.options.level,
            n,
            degrees_of_freedom: n - k,
            residual_sd: variance.sqrt(),
            covariance,
            condition: solution.condition,
            vif,
            seconds_per_unit: self.seconds_per_unit(),
            fcs: self.options.hints.fcs,
            ranges: self.ranges(table)?,
            regimes: Vec::new(),
            points,
        })
    }

    fn read(&self, table: &Table) -> Result<Data, FitError> {
        let y = self.y.column(table)?;
        if let Some(row) = y.iter().position(|y| *y <= 0.0) {
            return Err(FitError::NotPositive { line: table.line(row), value: y[row] });
        }
        let columns = self.terms.iter().map(|t| t.column(table)).collect::<Result<Vec<_>, _>>()?;
        let weights = match &self.options.weighting {
            Weighting::Equal => vec![1.0; y.len()],
            Weighting::Relative => y.iter().map(|y| 1.0 / (y * y)).collect(),
            Weighting::Column(name) => table.numbers(name)?,
        };
        if let Some(row) = weights.iter().position(|w| *w <= 0.0) {
            return Err(FitError::BadWeight { line: table.line(row), value: weights[row] });
        }
        let mut order: Vec<usize> = (0..y.len()).collect();
        order.sort_by(|&a, &b| {
            let key = |i: usize| columns.iter().map(move |c| c[i]).chain([y[i], weights[i]]);
            key(a).zip(key(b)).map(|(x, y)| x.total_cmp(&y)).find(|o| o.is_ne()).unwrap_or(a.cmp(&b))
        });
        let sorted = |v: &[f64]| order.iter().map(|&i| v[i]).collect::<Vec<f64>>();
        Ok(Data {
            y: sorted(&y),
            columns: columns.iter().map(|c| sorted(c)).collect(),
            weights: sorted(&weights),
            lines: order.iter().map(|&i| table.line(i)).collect(),
        })
    }

    fn ranges(&self, table: &Table) -> Result<BTreeMap<String, Range>, FitError> {
        let range = |name: &str| {
            let values = table.numbers(name)?;
            let (low, high) =
                values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
            Ok((name.to_owned(), Range { low, high }))
        };
        self.terms.columns().into_iter().map(range).collect()
    }

    fn dependent(&self, found: &Dependent, points: usize) -> FitError {
        let text = |j: usize| self.terms.iter().nth(j).map_or("", Term::text).to_owned();
        let term = text(found.column);
        if found.on.is_empty() {
            return FitError::Zero { term };
        }
        let on = found.on.iter().map(|&j| format!("`{}`", text(j))).collect::<Vec<_>>().join(" + ");
        FitError::Collinear { term, on, points }
    }

    fn by_term<T>(&self, value: impl Fn(usize) -> Option<T>) -> BTreeMap<String, T> {
        self.terms.iter().enumerate().filter_map(|(j, t)| Some((t.text().to_owned(), value(j)?))).collect()
    }

    fn has_const(&self) -> bool {
        self.terms.iter().any(Term::is_const)
    }

    fn r2(&self, points: &[Point]) -> (f64, f64) {
        let sum = |part: &dyn Fn(&Point) -> f64| points.iter().map(|p| p.weight * part(p)).sum::<f64>();
        let mean = if self.has_const() { sum(&|p| p.measured) / sum(&|_| 1.0) } else { 0.0 };
        let total = sum(&|p| (p.measured - mean).powi(2));
        let left = sum(&|p| (p.measured - p.fitted).powi(2));
        if total <= f64::EPSILON * sum(&|p| p.measured.powi(2)) {
            // Every y alike: nothing to explain, and a constant explains it.
            return (1.0, 1.0);
        }
        let (n, k) = (points.len() as f64, self.terms.count() as f64);
        let free = if self.has_const() { n - 1.0 } else { n };
        (1.0 - left / total, 1.0 - left / total * free / (n - k))
    }

    /// How much the other terms inflate the variance of coefficient `j`; none for the constant. By
    /// the weights given, as the covariance is, and not by those a robust fit ended with.
    fn inflation(&self, j: usize, data: &Data, solution: &Solution) -> Option<f64> {
        let weights = &data.weights;
        if self.terms.iter().nth(j)?.is_const() {
            return None;
        }
        let total: f64 = weights.iter().sum();
        let x = &data.columns[j];
        let mean = if self.has_const() {
            x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() / total
        } else {
            0.0
        };
        let spread: f64 = x.iter().zip(weights).map(|(x, w)| w * (x - mean).powi(2)).sum();
        Some(solution.covariance[j][j] * spread)
    }

    /// What the reader should know.
    fn judge(
        &self,
        solution: &Solution,
        vif: &BTreeMap<String, f64>,
        points: &[Point],
        freedom: usize,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let inflated: Vec<String> =
            vif.iter().filter(|(_, v)| **v > VIF_WARN).map(|(t, v)| format!("`{t}` ({v:.0})")).collect();
        if !inflated.is_empty() {
            warnings.push(format!(
                "collinear: the variance of {} is inflated more than tenfold by the other terms; vary them independently",
                inflated.join(", ")
            ));
        } else if solution.condition > CONDITION_WARN {
            warnings.push(format!(
                "collinear: condition number {:.0} of the scaled terms exceeds 30; the constant is poorly separated",
                solution.condition
            ));
        }
        if freedom < FREEDOM_WARN {
            warnings.push(format!(
                "{} points for {} terms: the error bars rest on {freedom} degrees of freedom",
                points.len(),
                self.terms.count()
            ));
        }
        let alone = points.iter().filter(|p| p.loo_pct.is_none()).count();
        if alone > 0 {
            warnings.push(format!(
                "{alone} points each fix a coefficient alone; no leave-one-out error for them"
            ));
        }
        if self.is_rate() {
            warnings.push(
                "y is a rate, and costs add up where rates do not: fit 1/rate, cores/rate, or bytes/rate for bit rates"
                    .to_owned(),
            );
        }
        if !self.has_const() {
            warnings.push(
                "no constant term: R² is taken about zero and is not comparable with others".to_owned(),
            );
        }
        let down = points.iter().filter(|p| p.weight < 0.5).count();
        if self.options.method == Method::Huber && down > 0 && self.options.weighting == Weighting::Equal {
            warnings.push(format!("{down} outlying points count less than half"));
        }
        warnings
    }

    /// Refuses a unit of y that contradicts its columns.
    fn check_unit(&self, table: &Table) -> Result<(), FitError> {
        let Some(given) = self.options.y_unit else { return Ok(()) };
        let carried = match self.y.factors() {
            [Factor { column, shape: Shape::Plain, power: 1 }] => table.unit(column)?,
            _ => self.seconds_by_name().map(|scale| ColumnUnit { dimension: Dimension::Time, scale }),
        };
        match carried {
            Some(carried) if !carried.agrees(given) => {
                Err(FitError::OtherUnit { y: self.y.text().to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Seconds per unit of y, by the unit given or by its columns' names.
    fn seconds_per_unit(&self) -> Option<f64> {
        match self.options.y_unit {
            Some(unit) => (unit.dimension == Dimension::Time).then_some(unit.scale),
            None => self.seconds_by_name(),
        }
    }

    /// The same by the names: y must be a time, one over a rate, or bytes over a bit rate, and all
    /// its other columns bare counts.
    fn seconds_by_name(&self) -> Option<f64> {
        let (mut seconds, mut times, mut bytes, mut bit_rates) = (1.0, 0, 0, 0);
        for Factor { column, shape, power } in self.y.factors() {
            let unit = ColumnUnit::of_column(column);
            let scale = unit.map_or(1.0, |unit| unit.scale);
            match unit.map(|unit| unit.dimension) {
                _ if *shape != Shape::Plain => return None,
                None if regime::is_frame(column) => bytes += power,
                None => {}
                Some(Dimension::Time) => times += power,
                Some(Dimension::Rate) => times -= power,
                Some(Dimension::Size) => bytes += power,
                Some(Dimension::BitRate) => bit_rates += power,
                Some(_) => return None,
            }
            seconds *= scale.powi(*power);
        }
        match (times, bytes, bit_rates) {
            (1, 0, 0) => Some(seconds),
            (0, 1, -1) => Some(8.0 * seconds),
            _ => None,
        }
    }

    /// Whether y is a rate as it stands.
    fn is_rate(&self) -> bool {
        let dimension = |factor: &Factor| ColumnUnit::of_column(&factor.column).map(|unit| unit.dimension);
        self.y.factors().iter().any(|factor| {
            factor.power == 1 && matches!(dimension(factor), Some(Dimension::Rate | Dimension::BitRate))
        })
    }
}

fn variance(data: &Data, solution: &Solution) -> f64 {
    let fitted = linear::apply(&data.columns, &solution.coefficients, data.y.len());
    let left: f64 =
        data.y.iter().zip(&fitted).zip(&data.weights).map(|((y, f), w)| w * (y - f).powi(2)).sum();
    left / (data.y.len() - data.columns.len()) as f64
}

fn points(data: &Data, solution: &Solution, weights: &[f64]) -> Vec<Point> {
    let fitted = linear::apply(&data.columns, &solution.coefficients, data.y.len());
    let mut points: Vec<Point> = (0..data.y.len())
        .map(|i| {
            let residual_pct = 100.0 * (data.y[i] - fitted[i]) / data.y[i];
            let leverage = solution.leverage[i];
            Point {
                line: data.lines[i],
                measured: data.y[i],
                fitted: fitted[i],
                residual_pct,
                loo_pct: (leverage < LEVERAGE_ONE).then(|| residual_pct / (1.0 - leverage)),
                weight: weights[i],
            }
        })
        .collect();
    points.sort_by_key(|p| p.line);
    points
}

impl Residuals {
    fn of(points: &[Point]) -> Residuals {
        let within = |pct: f64| {
            points.iter().filter(|p| p.residual_pct.abs() <= pct).count() as f64 / points.len() as f64
        };
        Residuals {
            within_0_5_pct: within(0.5),
            within_1_pct: within(1.0),
            within_3_pct: within(3.0),
            max_pct: points.iter().map(|p| p.residual_pct.abs()).fold(0.0, f64::max),
        }
    }
}

impl Fit {
    /// The fit, saved without the unit of y, with the one that its user knows.
    ///
    /// # Errors
    /// [`FitError::OtherUnit`] if it has another.
    pub fn with_unit(mut self, unit: ColumnUnit) -> Result<Fit, FitError> {
        let time = self.seconds_per_unit.map(|scale| ColumnUnit { dimension: Dimension::Time, scale });
        if time.or(ColumnUnit::of_column(&self.y)).is_some_and(|own| !own.agrees(unit)) {
            return Err(FitError::OtherUnit { y: self.y });
        }
        self.seconds_per_unit = (unit.dimension == Dimension::Time).then_some(unit.scale);
        Ok(self)
    }

    /// Notes of the table and its caps, before the fit's own warnings.
    pub(crate) fn tell(&mut self, notes: Vec<String>, caps: Caps) {
        self.warnings.splice(0..0, notes.into_iter().chain(caps.told));
        self.regimes = caps.regimes;
    }

    /// Whether the fit is of points that the processor limits, and others were looked for.
    pub(crate) fn is_uncapped(&self) -> bool {
        self.regimes.iter().any(|regime| regime.limit == Limit::Cpu && self.n <= regime.points)
    }

    /// The model alone, for predictions.
    pub fn model(&self) -> Model {
        Model {
            terms: self.terms.clone(),
            coefficients: self.terms.iter().map(|t| self.coefficients[t.text()].value).collect(),
            covariance: self.covariance.clone(),
            residual_sd: self.residual_sd,
            relative_residual: self.weighting == Weighting::Relative,
            width: match self.quantile {
                Quantile::StudentT => t_quantile(0.5 + self.level / 2.0, self.degrees_of_freedom as f64),
                Quantile::Normal => normal_quantile(0.5 + self.level / 2.0),
            },
            seconds_per_unit: self.seconds_per_unit,
            fcs: self.fcs,
            ranges: self.ranges.clone(),
        }
    }
}

impl From<FcsOrTable> for FitError {
    fn from(error: FcsOrTable) -> FitError {
        match error {
            FcsOrTable::Fcs(error) => error.into(),
            FcsOrTable::Table(error) => error.into(),
        }
    }
}

/// The median of at least one number; of an even count the mean of both in the middle. Panics if
/// there is none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    assert!(!sorted.is_empty(), "a median needs a value");
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}
