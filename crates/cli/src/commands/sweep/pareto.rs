//! The Pareto view: the rows that no cheaper row equals or beats, and the cheapest that carries its
//! workload.

use crate::print;
use anyhow::{Context, ensure};
use std::io::{self, Write};
use std::str::FromStr;

/// A row whose machine forwards this share of what is offered carries its workload.
const CARRIES: f64 = 0.999;

/// Two columns, the first of which may be a product.
#[derive(Clone, Debug)]
pub(super) struct Goals {
    cost: Vec<String>,
    throughput: String,
}

/// Where those columns are.
pub(super) struct Columns {
    cost: Vec<(usize, String)>,
    throughput: (usize, String),
    share: usize,
    problem: usize,
}

/// A row of the front.
pub(super) struct Front<'r> {
    pub(super) row: &'r [String],
    cost: f64,
    throughput: f64,
    carries: bool,
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
    pub(super) fn columns(&self, known: &[String]) -> anyhow::Result<Columns> {
        let find = |name: &String| -> anyhow::Result<(usize, String)> {
            let at = known.iter().position(|column| column == name);
            let at =
                at.with_context(|| format!("--pareto: no column {name:?} (have: {})", known.join(", ")))?;
            Ok((at, name.clone()))
        };
        Ok(Columns {
            cost: self.cost.iter().map(find).collect::<anyhow::Result<_>>()?,
            throughput: find(&self.throughput)?,
            share: find(&"share".to_owned())?.0,
            problem: known.len() - 1,
        })
    }
}

impl Columns {
    /// The front, cheapest first.
    pub(super) fn front<'r>(
        &self,
        rows: impl Iterator<Item = &'r [String]>,
    ) -> anyhow::Result<Vec<Front<'r>>> {
        let mut units: Vec<Option<&str>> = vec![None; self.cost.len() + 1];
        let mut all = Vec::new();
        for row in rows.filter(|row| row[self.problem].is_empty()) {
            let mut numbers = Vec::with_capacity(units.len());
            for ((at, name), unit) in self.cost.iter().chain([&self.throughput]).zip(&mut units) {
                let (number, its) = quantity(&row[*at])
                    .with_context(|| format!("--pareto: {name} is {:?} in a row, not a number", row[*at]))?;
                let first = *unit.get_or_insert(its);
                ensure!(
                    first == its,
                    "--pareto: {name} is in {first:?} in one row and in {its:?} in another; write the axis in one unit"
                );
                numbers.push(number);
            }
            let throughput = numbers.pop().expect("cost and throughput");
            let carries = row[self.share].parse::<f64>().is_ok_and(|share| share >= CARRIES);
            all.push(Front { row, cost: numbers.iter().product(), throughput, carries });
        }
        // Stable: of equals the first point stays.
        all.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(b.throughput.total_cmp(&a.throughput)));
        let mut best = f64::NEG_INFINITY;
        all.retain(|front| {
            let better = front.throughput > best;
            best = best.max(front.throughput);
            better
        });
        Ok(all)
    }
}

/// A number and the unit behind it.
fn quantity(cell: &str) -> Option<(f64, &str)> {
    let unit = cell.find(|c: char| !c.is_ascii_digit() && !".-+".contains(c)).unwrap_or(cell.len());
    Some((cell[..unit].parse().ok()?, &cell[unit..]))
}

/// The front as a table: the axes stand from the third column on.
pub(super) fn show(out: &mut impl Write, columns: &[String], front: &[Front], axes: usize) -> io::Result<()> {
    let mut table = print::table(["cost", "throughput", "carries it", "bottleneck", "point"]);
    let bottleneck = columns.iter().position(|column| column == "bottleneck").unwrap_or_default();
    for f in front {
        let point: Vec<String> = columns
            .iter()
            .zip(f.row)
            .skip(2)
            .take(axes)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let carries = if f.carries { "yes" } else { "no" };
        table.add_row([
            print::number(f.cost),
            print::number(f.throughput),
            carries.to_owned(),
            f.row[bottleneck].clone(),
            point.join(" "),
        ]);
    }
    writeln!(out, "{table}")?;
    match front.iter().find(|f| f.carries) {
        Some(f) => writeln!(out, "the cheapest that carries its workload costs {}", print::number(f.cost)),
        None => writeln!(out, "none carries its workload (forwards {} % of it)", 100.0 * CARRIES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        text.lines().map(|line| line.split_whitespace().map(|c| c.replace('_', "")).collect()).collect()
    }

    fn front(goals: &str, table: &[Vec<String>]) -> anyhow::Result<Vec<(f64, f64, bool)>> {
        let known = ["cores", "clock", "pps", "share", "problem"].map(str::to_owned);
        let goals: Goals = goals.parse().map_err(anyhow::Error::msg)?;
        let front = goals.columns(&known)?.front(table.iter().map(Vec::as_slice))?;
        Ok(front.iter().map(|f| (f.cost, f.throughput, f.carries)).collect())
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
