//! Terms chosen by the points: `auto:p,h` instead of a list of terms. Use it for predictions when
//! the shape of the cost is not known. To learn what a byte costs, name the terms.
//!
//! ```text
//!  const, p, h ──▶ add the shape that leaves     ──▶ drop, one by one, terms that chance explains
//!                  the least leave-one-out error,    or that lower the error by less than 1 %
//!                  while there are two points for
//!                  each term, 16 terms at most
//! ```
//!
//! The shapes are those that packet costs have: a bend at a measured value (`max(p-256,0)`), cache
//! lines (`ceil(p/64)`), and a product of two columns (`p*h`, `max(p-256,0)*h`). The method is
//! Friedman's MARS (1991) on a short list, judged by leave-one-out errors. Only the fitted points
//! are used, so a test half stays unseen.

use super::error::FitError;
use super::options::{FitOptions, Weighting};
use super::prepared::Prepared;
use super::result::Fit;
use super::solve::solve_uncapped;
use crate::dist::t_quantile;
use crate::linear;
use crate::model::Range;
use crate::regime::is_frame;
use crate::terms::{Term, Terms, split};
use std::collections::BTreeSet;

/// Bytes of a cache line.
const CACHE_LINE: u32 = 64;
/// Most bends that are tried per column.
const BENDS_MAX: usize = 12;
/// Most points that the choice uses.
const POINTS_MAX: usize = 1000;
/// Parts of the points that are left out in turn to calibrate the intervals.
const FOLDS: u64 = 5;
/// Most points that calibrate the intervals.
const FOLD_POINTS_MAX: usize = 200;
/// A term's coefficient must differ from 0 at this level, shared among all terms tried
/// (Bonferroni): the best of dozens always lowers the error a little.
const CHANCE_MAX: f64 = 0.05;
/// A term that lowers the error by less than this share is dropped.
const GAIN_MIN: f64 = 0.01;
/// Fewest points per term.
const POINTS_PER_TERM: usize = 2;
/// Fewest points per term that remains, where there are more terms than twice those that were asked
/// for. With fewer points, terms follow precise points of a cost that no term has, and leave no
/// error to see: the intervals are too narrow.
const POINTS_PER_TERM_LEFT: usize = 3;
/// Most terms of a choice. The cost of a packet has fewer.
const TERMS_MAX: usize = 16;
/// A shape that inflates the variance of a coefficient more than this is not tried: the points do
/// not separate it from the others, such as `p` and `ceil(p/64)` where most sizes are multiples of
/// 64. Between them its coefficients would mean nothing.
const INFLATION_MAX: f64 = 1000.0;
/// A fit without a point of this leverage or more is not determined.
const LEVERAGE_ONE: f64 = 1.0 - 1e-9;

/// Returns the columns of `auto:p,h`; none for terms written out.
pub(crate) fn columns(terms: &str) -> Option<Vec<String>> {
    terms.trim_start().strip_prefix("auto:").map(names)
}

fn names(list: &str) -> Vec<String> {
    split(list).into_iter().map(|name| name.trim().trim_matches('"').to_owned()).collect()
}

/// Returns the constant and the named columns as terms.
pub(super) fn plain_terms(names: &[String]) -> String {
    let plain = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",");
    format!("const,{plain}")
}

/// Fits a prepared table by terms chosen over the named columns; `plain` is the constant and those
/// columns.
pub(super) fn fit_chosen(
    prepared: &Prepared,
    names: &[String],
    plain: &Terms,
    options: &FitOptions,
) -> Result<Fit, FitError> {
    // This fit finds whatever is wrong with the points and columns, and which points are capped.
    let plain = solve_uncapped(prepared, plain, options)?;
    let lines: BTreeSet<u64> = plain.points.iter().map(|point| point.line).collect();
    let every = lines.len().div_ceil(POINTS_MAX);
    let table = &prepared.table;
    let rows: Vec<usize> =
        (0..table.len()).filter(|&row| lines.contains(&table.line(row))).step_by(every).collect();
    let (terms, tried) = Choice::new(&prepared.keep(&rows), names, options)?.terms();
    let mut found = solve_uncapped(prepared, &terms.parse()?, options)?;
    let rows: Vec<usize> = rows.iter().copied().step_by(rows.len().div_ceil(FOLD_POINTS_MAX)).collect();
    let factor = selection_factor(&prepared.keep(&rows), names, options);
    found.widen(factor.unwrap_or(1.0));
    let included = match factor {
        Some(factor) => format!("the intervals are {factor:.2} times as wide to include the choice"),
        None => "the intervals do not include the choice, because there are too few points".to_owned(),
    };
    for name in names.iter().filter(|name| !found.terms.columns().contains(name.as_str())) {
        let values = range_of(&prepared.keep(&rows), name)?;
        found.warnings.push(format!(
            "no term of `{name}` was chosen among its values {} … {}: others may cost more or less",
            values.low, values.high
        ));
    }
    found.warnings.push(format!("terms chosen among {tried} by the errors at points left out: {included}"));
    Ok(found)
}

/// Returns the range of a column.
fn range_of(points: &Prepared, name: &str) -> Result<Range, FitError> {
    let values = points.table.numbers(name)?;
    Ok(Range {
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// Returns by how much intervals must be wider to include the choice of terms, 1 at least.
///
/// The choice is repeated without each fifth of the points in turn. The factor is the quantile, at
/// the level of the intervals, of the errors at the points left out over the half-width of their
/// intervals: a conformal calibration (Barber and others, "Predictive Inference with the
/// Jackknife+", 2021). None where too few points are left to choose.
fn selection_factor(points: &Prepared, names: &[String], options: &FitOptions) -> Option<f64> {
    // Repeated measurements of a point are left out together.
    let groups = points.table.groups(&|name| names.iter().any(|n| n == name));
    let fold = |row: usize| mixed(groups[row] as u64) % FOLDS;
    let all = 0..points.table.len();
    let mut ratios: Vec<f64> = Vec::new();
    for left_out in 0..FOLDS {
        let [train, test] = [false, true]
            .map(|is_test| all.clone().filter(|&row| (fold(row) == left_out) == is_test).collect::<Vec<_>>());
        let Ok(errors) = errors_without(points, &train, &test, names, options) else { continue };
        ratios.extend(errors);
    }
    if 2 * ratios.len() < points.table.len() {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let rank = (options.level * (ratios.len() + 1) as f64).ceil() as usize;
    Some(ratios[rank.clamp(1, ratios.len()) - 1].max(1.0))
}

/// Chooses and fits terms to the rows `train`. Returns the errors at the rows `test` over the
/// half-widths of their intervals.
fn errors_without(
    points: &Prepared,
    train: &[usize],
    test: &[usize],
    names: &[String],
    options: &FitOptions,
) -> Result<Vec<f64>, FitError> {
    // The constant and the columns, and one degree of freedom.
    let needed = names.len() + 2;
    if train.len() < needed {
        return Err(FitError::TooFew { points: train.len(), terms: names.len() + 1, needed });
    }
    let train = points.keep(train);
    let (terms, _) = Choice::new(&train, names, options)?.terms();
    let model = solve_uncapped(&train, &terms.parse()?, options)?.model();
    let test = points.keep(test);
    let measured = test.y.column(&test.table)?;
    let columns = names.iter().map(|name| test.table.numbers(name)).collect::<Result<Vec<_>, _>>()?;
    let ratio = |row: usize| {
        let value_of = |name: &str| names.iter().position(|n| n == name).map(|column| columns[column][row]);
        let single = model.predict(value_of).ok()?.single;
        Some((measured[row] - single.value).abs() / (single.high - single.value))
    };
    Ok((0..measured.len()).filter_map(ratio).filter(|ratio| ratio.is_finite()).collect())
}

/// Scatters the bits of a number (the finaliser of SplitMix64), so that folds of a grid have all
/// values of its columns.
fn mixed(number: u64) -> u64 {
    let x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns a column's name as a term, quoted where it would be parsed otherwise.
fn quoted(name: &str) -> String {
    if name.contains(['*', '/', '^', '(', ',', '-']) { format!("\"{name}\"") } else { name.to_owned() }
}

/// A term with its value at every point.
type Candidate = (String, Vec<f64>);

struct Choice {
    y: Vec<f64>,
    weights: Vec<f64>,
    /// `const` and the columns as they are.
    plain: Vec<Candidate>,
    shapes: Vec<Candidate>,
}

impl Choice {
    fn new(prepared: &Prepared, names: &[String], options: &FitOptions) -> Result<Choice, FitError> {
        let points = &prepared.table;
        let y = prepared.y.column(points)?;
        let weights = match &options.weighting {
            Weighting::Equal => vec![1.0; y.len()],
            Weighting::Relative => y.iter().map(|y| 1.0 / (y * y)).collect(),
            Weighting::Column(name) => points.numbers(name)?,
        };
        let mut plain = vec![("const".to_owned(), vec![1.0; y.len()])];
        let mut shapes: Vec<String> = Vec::new();
        let mut of_column: Vec<Vec<String>> = Vec::new();
        for name in names {
            let values = points.numbers(name)?;
            let own = bends(&values).into_iter().map(|bend| format!("max({}-{bend},0)", quoted(name)));
            let mut own: Vec<String> = own.collect();
            shapes.extend(own.iter().cloned());
            if is_frame(name) {
                shapes.push(format!("ceil({}/{CACHE_LINE})", quoted(name)));
            }
            own.insert(0, quoted(name));
            of_column.push(own);
            plain.push((quoted(name), values));
        }
        for (i, first) in of_column.iter().enumerate() {
            for second in &of_column[i + 1..] {
                // One of the two as it is.
                shapes.extend(first.iter().map(|shape| format!("{shape}*{}", second[0])));
                shapes.extend(second[1..].iter().map(|shape| format!("{}*{shape}", first[0])));
            }
        }
        let valued = |text: String| Ok((text.clone(), text.parse::<Term>()?.column(points)?));
        let shapes = shapes.into_iter().map(valued).collect::<Result<Vec<Candidate>, FitError>>()?;
        Ok(Choice { y, weights, plain, shapes })
    }

    /// Returns the chosen terms, and how many were tried.
    fn terms(&self) -> (String, usize) {
        let tried = self.plain.len() + self.shapes.len();
        let mut chosen: Vec<&Candidate> = self.plain.iter().collect();
        // Go on past terms that lower nothing: two bends together can explain what neither does
        // alone.
        while chosen.len() < TERMS_MAX.min(self.y.len() / POINTS_PER_TERM) {
            let with = |candidate| self.left_out(&[&chosen[..], &[candidate]].concat());
            let separate = |candidate| with(candidate).filter(|left| left.inflation <= INFLATION_MAX);
            let scored =
                self.shapes.iter().filter_map(|candidate| Some((separate(candidate)?.error, candidate)));
            let Some((_, best)) = scored.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
            chosen.push(best);
        }
        // Then drop those that chance may explain: shapes first, then the columns themselves.
        let most = (self.y.len() / POINTS_PER_TERM_LEFT).max(2 * self.plain.len());
        let least_of = |chosen: &[&Candidate], from: usize| {
            let freedom = (self.y.len() - chosen.len()) as f64;
            let chance = t_quantile(1.0 - CHANCE_MAX / 2.0 / tried as f64, freedom);
            let now = self.left_out(chosen)?;
            let losses = (from..chosen.len()).filter_map(|i| {
                let left = self.left_out(&[&chosen[..i], &chosen[i + 1..]].concat())?.error;
                let is_chance = now.t[i] < chance || left * (1.0 - GAIN_MIN) <= now.error;
                (is_chance || chosen.len() > most).then_some((left, i))
            });
            losses.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, i)| i)
        };
        for from in [self.plain.len(), 1] {
            while let Some(least) = least_of(&chosen, from) {
                chosen.remove(least);
            }
        }
        let names: Vec<&str> = chosen.iter().map(|(name, _)| name.as_str()).collect();
        (names.join(","), tried)
    }

    /// Returns the errors of a fit by some terms; none where the terms cannot be separated without
    /// one of the points.
    fn left_out(&self, terms: &[&Candidate]) -> Option<LeftOut> {
        let (n, k) = (self.y.len(), terms.len());
        if n <= k {
            return None;
        }
        let columns: Vec<Vec<f64>> = terms.iter().map(|(_, values)| values.clone()).collect();
        let solution = linear::solve(&columns, &self.y, &self.weights).ok()?;
        let fitted = linear::apply(&columns, &solution.coefficients, n);
        let error = |i: usize| {
            let leverage = solution.leverage[i];
            (leverage < LEVERAGE_ONE).then(|| ((self.y[i] - fitted[i]) / (1.0 - leverage) / self.y[i]).abs())
        };
        let squares: f64 = (0..n).map(|i| self.weights[i] * (self.y[i] - fitted[i]).powi(2)).sum();
        let sd = |i: usize| (squares / (n - k) as f64 * solution.covariance[i][i]).sqrt();
        let total: f64 = self.weights.iter().sum();
        // The constant's place is the first; the others are about their means.
        let inflation = |i: usize| {
            let products = columns[i].iter().zip(&self.weights);
            let mean = products.clone().map(|(x, w)| x * w).sum::<f64>() / total;
            solution.covariance[i][i] * products.map(|(x, w)| w * (x - mean).powi(2)).sum::<f64>()
        };
        Some(LeftOut {
            inflation: (1..k).map(inflation).fold(0.0, f64::max),
            error: (0..n).map(error).sum::<Option<f64>>()? / n as f64,
            t: (0..k).map(|i| (solution.coefficients[i] / sd(i)).abs()).collect(),
        })
    }
}

/// The errors of a fit by some terms.
struct LeftOut {
    /// Mean error at each point left out in turn, relative to y.
    error: f64,
    /// The largest factor by which other terms inflate the variance of a coefficient.
    inflation: f64,
    /// By how many of its standard deviations each term's coefficient differs from 0.
    t: Vec<f64>,
}

/// Returns where a column may bend: at its values except the first and the last.
fn bends(values: &[f64]) -> Vec<f64> {
    let mut levels = values.to_vec();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let inner = levels.get(1..levels.len().saturating_sub(1)).unwrap_or_default();
    let every = inner.len().div_ceil(BENDS_MAX).max(1);
    inner.iter().copied().filter(|bend| *bend > 0.0).step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckVerdict, half};
    use crate::fit::fit;
    use crate::table::Table;
    use crate::testing::normal;
    use fastpath_units::Rng;

    const SIZES: [u32; 8] = [64, 128, 192, 256, 512, 768, 1024, 1518];
    const STEPS: [u32; 6] = [0, 5, 10, 20, 50, 100];

    /// A grid of a cost, with noise of standard deviation `sd` (relative).
    fn grid(cost: impl Fn(f64, f64) -> f64, sd: f64, seed: u64) -> Table {
        let mut rng = Rng::new(seed);
        let mut text = "p,h,T_ns\n".to_owned();
        for p in SIZES {
            for h in STEPS {
                let t = cost(f64::from(p), f64::from(h)) * (1.0 + sd * normal(&mut rng));
                text += &format!("{p},{h},{t}\n");
            }
        }
        Table::from_csv(&text).expect("a table")
    }

    fn chosen(table: &Table) -> Fit {
        let options = FitOptions { weighting: Weighting::Relative, ..FitOptions::default() };
        fit(table, "T_ns", "auto:p,h", &options).expect("a fit")
    }

    #[test]
    fn a_straight_cost_gets_no_bends() {
        // One time in ten at most, a bend is chance.
        let straight = |p: f64, h: f64| 38.6 + 0.101 * p + 4.07 * h;
        let all: Vec<String> =
            (0..50).map(|seed| chosen(&grid(straight, 0.005, seed)).terms.to_string()).collect();
        let bent = all.iter().filter(|t| *t != "const,p,h").count();
        assert!(bent <= 5, "{bent} {all:?}");
    }

    #[test]
    fn a_bend_and_a_product_are_found_and_half_of_the_grid_predicts_the_other() {
        let bent = |p: f64, h: f64| 30.0 + 0.2 * p - 0.15 * (p - 256.0).max(0.0) + 4.0 * h + 0.0005 * p * h;
        let table = grid(bent, 0.005, 3);
        let options = FitOptions { weighting: Weighting::Relative, ..FitOptions::default() };
        let (found, check) = half(&table, "T_ns", "auto:p,h", &options).expect("a fit");
        assert!(found.terms.to_string().contains("max(p-256,0)"), "{}", found.terms);
        assert_eq!(check.verdict, CheckVerdict::Holds, "{check:?} {}", found.terms);
        assert!(found.warnings.iter().any(|w| w.starts_with("terms chosen among")), "{:?}", found.warnings);
    }

    #[test]
    fn bends_that_hide_one_another_are_found() {
        // Costs of a copy as measured: steep, flat, then steady; and steps that overlap with it at
        // first.
        let at = |p: f64, from: f64| (p - from).max(0.0);
        let cost = |p: f64, h: f64| {
            24.0 + 0.2 * p - 0.18 * at(p, 128.0) + 0.07 * at(p, 256.0) + 4.6 * h + 1.1 * at(h, 5.0)
        };
        let options = FitOptions { weighting: Weighting::Relative, ..FitOptions::default() };
        for seed in 0..20 {
            let (found, check) = half(&grid(cost, 0.002, seed), "T_ns", "auto:p,h", &options).expect("a fit");
            assert_eq!(check.verdict, CheckVerdict::Holds, "{seed} {check:?} {}", found.terms);
        }
    }

    #[test]
    fn intervals_of_chosen_terms_cover_unseen_points_as_often_as_stated() {
        // A curve that no term has: the choice is approximate, as on published data.
        let curve = |p: f64, h: f64| 20.0 + 9.0 * (p / 64.0).ln() + 0.05 * p + 4.0 * h.powf(0.8);
        let (mut covered, mut narrow, mut n) = (0.0, 0.0, 0.0);
        for seed in 0..40 {
            let table = grid(curve, 0.003, seed);
            let rows: Vec<usize> =
                (0..table.len()).filter(|row| mixed(*row as u64 + 1000 * seed).is_multiple_of(2)).collect();
            let found = chosen(&table.keep(&rows));
            let model = found.model();
            let bare = crate::model::Model { width: model.width / found.selection_factor, ..model.clone() };
            let numbers = |name: &str| table.numbers(name).expect("numbers");
            let (p, h, t) = (numbers("p"), numbers("h"), numbers("T_ns"));
            for row in (0..table.len()).filter(|row| !rows.contains(row)) {
                let at = |name: &str| Some(if name == "p" { p[row] } else { h[row] });
                let covers = |model: &crate::model::Model| {
                    f64::from(u8::from(model.predict(at).expect("both columns").single.covers(t[row])))
                };
                covered += covers(&model);
                narrow += covers(&bare);
                n += 1.0;
            }
        }
        let (covered, narrow) = (covered / n, narrow / n);
        assert!(covered >= 0.93 && narrow < 0.90, "{covered} {narrow}");
    }

    #[test]
    fn cache_lines_are_found() {
        let lines = |p: f64, h: f64| 20.0 + 5.0 * (p / 64.0).ceil() + 4.0 * h;
        let mut text = "p,h,T_ns\n".to_owned();
        for p in [60, 65, 100, 128, 150, 180, 200, 260, 300, 330] {
            for h in [0, 1, 2] {
                text += &format!("{p},{h},{}\n", lines(f64::from(p), f64::from(h)));
            }
        }
        let found = chosen(&Table::from_csv(&text).expect("a table"));
        assert!(found.terms.to_string().contains("ceil(p/64)"), "{}", found.terms);
    }

    #[test]
    fn what_no_terms_can_be_fitted_to_is_refused_as_ever() {
        let error = |text: &str, list: &str| {
            let table = Table::from_csv(text).expect("a table");
            fit(&table, "T_ns", list, &FitOptions::default()).unwrap_err().to_string()
        };
        assert!(error("p,T_ns\n1,2\n2,3\n", "auto:p").starts_with("2 points are too few to fit 2 terms"));
        assert!(error("p,T_ns\n1,2\n1,3\n1,4\n", "auto:p").contains("cannot be separated from `const`"));
        assert!(error("p,T_ns\n1,2\n2,3\n3,4\n", "auto:q").starts_with("no column `q`"));
        assert!(error("p,T_ns\n1,2\n2,3\n3,4\n", "auto:").contains("a column's name is missing"));
    }
}
