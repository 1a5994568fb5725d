//! The Pareto front of a sweep: the rows that no cheaper row equals or beats, and the cheapest row
//! that carries its workload. Rows that differ by less than a tolerance count as equal.

use crate::{Axis, Chart, Drawing, Scale, Section, Series, words};
use std::str::FromStr;

/// Why a table has no Pareto front: the message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ParetoError(String);

/// A machine that forwards this share of the offered load carries its workload.
pub const CARRIES: f64 = 0.999;

/// The two columns of a Pareto front: cost (may be a product of columns) and throughput. Written
/// `COST,THROUGHPUT` or `A*B,THROUGHPUT`.
#[derive(Clone, Debug)]
pub struct Goals {
    cost: Vec<String>,
    throughput: String,
}

/// The positions of the columns of [`Goals`] in a table.
pub struct FrontColumns {
    cost: Vec<(usize, String)>,
    throughput: (usize, String),
    share: usize,
    problem: usize,
}

/// The Pareto front of a table.
pub struct Front<'r> {
    /// Its rows, cheapest first.
    pub rows: Vec<FrontRow<'r>>,
    /// Cost and throughput of all rows of the table.
    points: Vec<(f64, f64)>,
    /// The names of cost and throughput.
    axes: [String; 2],
}

/// A row of the Pareto front.
pub struct FrontRow<'r> {
    /// The row of the table.
    pub row: &'r [String],
    /// Its cost.
    pub cost: f64,
    /// Its throughput.
    pub throughput: f64,
    /// Whether it forwards at least [`CARRIES`] of the offered load.
    pub carries: bool,
}

impl FromStr for Goals {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Goals, &'static str> {
        let hint = "write COST,THROUGHPUT, e.g. machine.cpu.cores,forwarded_pps";
        let (cost, throughput) = text.split_once(',').ok_or(hint)?;
        let cost: Vec<String> = cost.split('*').map(|name| name.trim().to_owned()).collect();
        let throughput = throughput.trim().to_owned();
        if throughput.is_empty() || cost.iter().any(String::is_empty) {
            Err(hint)
        } else {
            Ok(Goals { cost, throughput })
        }
    }
}

impl Goals {
    /// Finds the columns among the `known` ones.
    ///
    /// # Errors
    /// [`ParetoError`] if there is no such column.
    pub fn columns(&self, known: &[String]) -> Result<FrontColumns, ParetoError> {
        let find = |name: &String| -> Result<(usize, String), ParetoError> {
            let at = known.iter().position(|column| column == name);
            let unknown =
                || ParetoError(format!("--pareto: no column {name:?} (have: {})", known.join(", ")));
            let at = at.ok_or_else(unknown)?;
            Ok((at, name.clone()))
        };
        Ok(FrontColumns {
            cost: self.cost.iter().map(find).collect::<Result<_, _>>()?,
            throughput: find(&self.throughput)?,
            share: find(&"share".to_owned())?.0,
            problem: known.len() - 1,
        })
    }
}

impl FrontColumns {
    /// Returns the front. A row whose throughput exceeds that of a cheaper row by no more than the
    /// share `tolerance` is left out. So is a row with a lower throughput whose cost is lower by no
    /// more than that. The cheapest row that carries its workload stays.
    ///
    /// # Errors
    /// [`ParetoError`] if a cell is not a number, or two rows use different units.
    pub fn front<'r>(
        &self,
        rows: impl Iterator<Item = &'r [String]>,
        tolerance: f64,
    ) -> Result<Front<'r>, ParetoError> {
        let mut units: Vec<Option<&str>> = vec![None; self.cost.len() + 1];
        let mut all = Vec::new();
        for row in rows.filter(|row| row[self.problem].is_empty()) {
            let mut numbers = Vec::with_capacity(units.len());
            for ((at, name), unit) in self.cost.iter().chain([&self.throughput]).zip(&mut units) {
                let not_a_number =
                    || ParetoError(format!("--pareto: {name} is {:?} in a row, not a number", row[*at]));
                let (number, its) = quantity(&row[*at]).ok_or_else(not_a_number)?;
                let first = *unit.get_or_insert(its);
                if first != its {
                    return Err(ParetoError(format!(
                        "--pareto: {name} is in {first:?} in one row and in {its:?} in another; write the axis in one unit"
                    )));
                }
                numbers.push(number);
            }
            let throughput = numbers.pop().expect("cost and throughput");
            let carries = row[self.share].parse::<f64>().is_ok_and(|share| share >= CARRIES);
            all.push(FrontRow { row, cost: numbers.iter().product(), throughput, carries });
        }
        let points = all.iter().map(|row| (row.cost, row.throughput)).collect();
        // Stable: of equals the first point stays.
        all.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(b.throughput.total_cmp(&a.throughput)));
        let mut best = f64::NEG_INFINITY;
        all.retain(|front| {
            let better = front.throughput > best;
            best = best.max(front.throughput);
            better
        });
        let cost = self.cost.iter().map(|(_, name)| words(name)).collect::<Vec<_>>().join(" · ");
        let cost = match units[0].filter(|unit| !unit.is_empty() && units.len() == 2) {
            Some(unit) => format!("{cost}, {unit}"),
            None => cost,
        };
        Ok(Front { rows: thin(all, tolerance), points, axes: [cost, words(&self.throughput.1)] })
    }
}

/// Leaves rows of a front out that differ from a kept one by no more than `tolerance`.
fn thin(front: Vec<FrontRow>, tolerance: f64) -> Vec<FrontRow> {
    let mut kept: Vec<FrontRow> = Vec::new();
    // The cost that the last kept row stands for.
    let mut cost = 0.0;
    let mut carried = false;
    for row in front {
        match kept.last_mut() {
            Some(last)
                if row.throughput <= last.throughput * (1.0 + tolerance) && (carried || !row.carries) => {}
            Some(last) if row.cost <= cost * (1.0 + tolerance) && (row.carries || !last.carries) => {
                *last = row
            }
            _ => {
                cost = row.cost;
                kept.push(row);
            }
        }
        carried |= kept.last().is_some_and(|row| row.carries);
    }
    kept
}

impl Front<'_> {
    /// Draws all rows, throughput over cost, and the front as a line.
    pub fn section(&self) -> Section {
        let [cost, throughput] = &self.axes;
        let front = self.rows.iter().map(|row| (row.cost, row.throughput)).collect();
        let drawing = Drawing::Points(
            vec![Series { name: "simulated".to_owned(), points: self.points.clone() }],
            vec![Series { name: "Pareto front".to_owned(), points: front }],
        );
        let chart = Chart {
            title: "Throughput over cost".to_owned(),
            x: Axis::new(cost, Scale::Linear),
            y: Axis::new(throughput, Scale::Linear),
            drawing,
        };
        let notes = vec![format!("{} of {} points are on the front", self.rows.len(), self.points.len())];
        Section { title: "Pareto front".to_owned(), notes, charts: vec![chart], tables: vec![] }
    }
}

/// A number and the unit behind it.
fn quantity(cell: &str) -> Option<(f64, &str)> {
    let unit = cell.find(|c: char| !c.is_ascii_digit() && !".-+".contains(c)).unwrap_or(cell.len());
    Some((cell[..unit].parse().ok()?, &cell[unit..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        text.lines().map(|line| line.split_whitespace().map(|c| c.replace('_', "")).collect()).collect()
    }

    fn front(goals: &str, table: &[Vec<String>]) -> Result<Vec<(f64, f64, bool)>, ParetoError> {
        let known = ["cores", "clock", "pps", "share", "problem"].map(str::to_owned);
        let goals: Goals = goals.parse().map_err(|text: &str| ParetoError(text.to_owned()))?;
        let front = goals.columns(&known)?.front(table.iter().map(Vec::as_slice), 0.0)?;
        Ok(front.rows.iter().map(|f| (f.cost, f.throughput, f.carries)).collect())
    }

    #[test]
    fn only_what_nothing_cheaper_beats_is_left() {
        let table = rows(
            "2 1GHz 20 0.5 _\n1 3GHz 25 0.9 _\n1 1GHz 10 0.3 _\n3 1GHz 30 1 _\n4 1GHz 30 1 _\n9 9GHz 99 1 deadlock",
        );
        assert_eq!(front("cores,pps", &table).unwrap(), [(1.0, 25.0, false), (3.0, 30.0, true)]);
        assert_eq!(
            front("cores*clock,pps", &table).unwrap(),
            [(1.0, 10.0, false), (2.0, 20.0, false), (3.0, 30.0, true)]
        );
    }

    fn row(cost: f64, throughput: f64, carries: bool) -> FrontRow<'static> {
        FrontRow { row: &[], cost, throughput, carries }
    }

    #[test]
    fn rows_that_differ_by_less_than_the_tolerance_count_as_equal() {
        let kept = |rows: Vec<FrontRow<'static>>| -> Vec<(f64, f64)> {
            thin(rows, 0.001).iter().map(|row| (row.cost, row.throughput)).collect()
        };
        // 0.002 % more throughput for more cost.
        assert_eq!(kept(vec![row(1.0, 1e6, false), row(2.0, 1.000_02e6, false)]), [(1.0, 1e6)]);
        // 0.002 % less cost for less throughput.
        assert_eq!(kept(vec![row(100.0, 5.0, false), row(100.002, 9.0, false)]), [(100.002, 9.0)]);
        // Small steps add up.
        let steps = (0..30).map(|i| row(f64::from(i) + 1.0, 1000.0 + 0.4 * f64::from(i), false));
        assert_eq!(kept(steps.collect()).len(), 10);
        // The cheapest that carries the workload stays, however close.
        let near = vec![row(1.0, 1e6, false), row(2.0, 1.000_02e6, true), row(3.0, 1.000_03e6, true)];
        assert_eq!(kept(near), [(1.0, 1e6), (2.0, 1.000_02e6)]);
    }

    #[test]
    fn every_row_left_out_is_nearly_equalled_by_a_kept_one() {
        for seed in 0..500 {
            let mut rng = fastpath_units::Rng::new(seed);
            let (mut cost, mut throughput) = (1.0, 1.0);
            let mut points = Vec::new();
            for _ in 0..40 {
                cost *= 1.0 + 0.02 * rng.unit_f64();
                throughput *= 1.0 + 0.02 * rng.unit_f64();
                points.push((cost, throughput));
            }
            let kept =
                thin(points.iter().map(|&(cost, throughput)| row(cost, throughput, false)).collect(), 0.01);
            assert!(kept.len() < points.len(), "seed {seed}");
            for (cost, throughput) in points {
                let equals = |row: &FrontRow| {
                    row.cost <= cost * 1.01 * (1.0 + 1e-12)
                        && row.throughput * 1.01 * (1.0 + 1e-12) >= throughput
                };
                assert!(kept.iter().any(equals), "seed {seed}: {cost} {throughput}");
            }
        }
    }

    #[test]
    fn columns_that_are_unknown_or_in_several_units_are_refused() {
        let table = rows("2 1GHz 20 0.5 _\n1 300MHz 25 0.9 _");
        for (goals, says) in
            [("price,pps", "have: cores"), ("cores", "COST,THROUGHPUT"), ("clock,pps", "one unit")]
        {
            let error = front(goals, &table).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
