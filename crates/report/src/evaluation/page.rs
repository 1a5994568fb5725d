//! The page of an evaluation: what does not pass first, then a section for each table or figure,
//! with the original, ours, the peers and the control in one chart.

use super::{Criterion, EvaluatedFigure, Evaluation, FigureGroup};
use crate::chart::{Chart, Drawing, Series};
use crate::text::number;
use crate::values::words;
use crate::{Grid, Report, Section};
use fastpath_record::Optimised;
use std::collections::BTreeSet;

/// The part of an id that marks a value in another unit than the axis.
const NOT_ON_THE_AXIS: &str = "virtual";

impl Evaluation {
    /// Makes the page, ready to be written in any format.
    pub fn report(&self) -> Report {
        Report::from_sections(self.title.clone(), self.sections())
    }

    /// Makes the sections of the page.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let mut sections = vec![self.summary()];
        for group in &self.figures {
            let own: Vec<&EvaluatedFigure> =
                self.results.iter().filter(|result| result.id.split('/').next() == Some(&group.id)).collect();
            if !own.is_empty() {
                sections.push(self.section(group, &own));
            }
        }
        sections
    }

    fn summary(&self) -> Section {
        let p = &self.provenance;
        let commit = p.tool.commit.as_deref().map_or(String::new(), |commit| format!(" ({commit})"));
        let mut notes = vec![
            format!(
                "{} of {} figures pass, {} are disturbed, {} could not be measured here",
                self.passed,
                self.total,
                self.disturbed,
                self.skipped.len()
            ),
            format!(
                "{}: {}, {} cores, Linux {}; fastpath {}{commit}; {}, {:.0} s; command: {}",
                p.machine.name,
                p.machine.cpu,
                p.machine.cores,
                p.machine.kernel,
                p.tool.version,
                p.started(),
                p.elapsed_s,
                p.command_line.join(" ")
            ),
        ];
        if p.tool.optimised == Optimised::Development {
            notes.push("a DEVELOPMENT BUILD: its speed is not representative".to_owned());
        }
        if p.disturbance.disturbed {
            notes.push(format!(
                "the machine was not quiet: {:.1} % of its time taken by the hypervisor, {:.1} % spent on other programs",
                100.0 * p.disturbance.stolen_share,
                100.0 * p.disturbance.others_share
            ));
        }
        notes.extend(self.notes.iter().cloned());
        let title = "Summary, and figures that do not pass".to_owned();
        Section { title, notes, charts: vec![], tables: self.summary_tables() }
    }

    /// What was missed, disturbed and not measured, each with its reason.
    fn summary_tables(&self) -> Vec<Grid> {
        let mut tables = Vec::new();
        if self.passed + self.disturbed < self.total {
            let missed = self.results.iter().filter(|result| !result.pass && result.disturbed.is_none());
            let rows = missed.map(|result| {
                let figure = self.figures.iter().find(|group| result.id.split('/').next() == Some(&group.id));
                vec![
                    figure.map_or_else(String::new, |group| group.title.clone()),
                    self.describe(&result.id),
                    optional(result.original),
                    ours(result),
                    result.unit.clone(),
                    result.criterion.text(number),
                    reason(result),
                    result.id.clone(),
                ]
            });
            let titles = ["missed", "point", "original", "ours", "unit", "criterion", "reason", "key"];
            tables.push(Grid::new(titles, rows));
        }
        let disturbed = self.disturbances();
        if !disturbed.is_empty() {
            let rows = disturbed.into_iter().map(|(reason, ids)| vec![ids.join(", "), reason.to_owned()]);
            tables.push(Grid::new(["disturbed", "by"], rows));
        }
        let skipped = self.reasons();
        if !skipped.is_empty() {
            let rows = skipped.into_iter().map(|(reason, ids)| vec![ids.join(", "), reason.to_owned()]);
            tables.push(Grid::new(["not measured", "why"], rows));
        }
        tables
    }

    fn section(&self, group: &FigureGroup, results: &[&EvaluatedFigure]) -> Section {
        let mut notes = vec![format!("original: {}", group.original)];
        notes.extend((!group.note.is_empty()).then(|| group.note.clone()));
        for result in results {
            if !result.note.is_empty() && !notes.contains(&result.note) {
                notes.push(result.note.clone());
            }
        }
        let charts = group.chart(results).into_iter().collect();
        let tables = std::iter::once(self.values(results)).chain(self.details(results)).collect();
        Section { title: group.title.clone(), notes, charts, tables }
    }

    /// The table of the results: a row each, with a column for each peer.
    fn values(&self, results: &[&EvaluatedFigure]) -> Grid {
        let peers: BTreeSet<&String> = results.iter().flat_map(|result| result.peers.keys()).collect();
        let rows = results.iter().map(|result| {
            let peers = peers.iter().map(|peer| optional(result.peers.get(*peer).copied()));
            let before = [
                self.describe(&result.id),
                optional(result.original),
                ours(result),
                optional(result.control),
            ];
            let after = [
                result.unit.clone(),
                result.criterion.text(number),
                result.verdict().to_owned(),
                result.id.clone(),
            ];
            before.into_iter().chain(peers).chain(after).collect()
        });
        let before = ["point", "original", "ours", "without emulator"];
        let titles = before.into_iter().chain(peers.iter().map(|peer| peer.as_str()));
        Grid::new(titles.chain(["unit", "criterion", "", "key"]), rows)
    }

    /// The table of further numbers, if there are any: a column for each.
    fn details(&self, results: &[&EvaluatedFigure]) -> Option<Grid> {
        let names: BTreeSet<&String> = results.iter().flat_map(|result| result.details.keys()).collect();
        let detailed = results.iter().filter(|result| !result.details.is_empty());
        let rows = detailed.map(|result| {
            let numbers = names.iter().map(|name| optional(result.details.get(*name).copied()));
            [self.describe(&result.id), result.n.to_string()].into_iter().chain(numbers).collect()
        });
        let titles = ["point".to_owned(), "observations".to_owned()];
        let titles = titles.into_iter().chain(names.iter().map(|name| words(name)));
        (!names.is_empty()).then(|| Grid::new(titles, rows))
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), number)
}

/// Our value with its interval.
fn ours(result: &EvaluatedFigure) -> String {
    let interval =
        result.interval.map_or(String::new(), |[low, high]| format!(" [{}, {}]", number(low), number(high)));
    format!("{}{interval}", number(result.ours))
}

/// Why a result does not pass: how far it is from its criterion, and its note.
fn reason(result: &EvaluatedFigure) -> String {
    let off =
        |bound: f64| format!("{} % from {}", number(100.0 * (result.ours / bound - 1.0)), number(bound));
    let miss = match &result.criterion {
        _ if result.n == 0 => "nothing was observed".to_owned(),
        Criterion::Within { target, .. } if *target != 0.0 => off(*target),
        Criterion::AtLeast { bound, .. } | Criterion::AtMost { bound, .. } if *bound != 0.0 => off(*bound),
        _ => "outside the criterion".to_owned(),
    };
    if result.note.is_empty() { miss } else { format!("{miss}; {}", result.note) }
}

impl FigureGroup {
    /// Original, ours, control and peers over the number that is the second part of the ids.
    fn chart(&self, results: &[&EvaluatedFigure]) -> Option<Chart> {
        let (x_axis, y_axis) = (self.x.clone()?, self.y.clone()?);
        let mut lines: Vec<Series> = Vec::new();
        let mut add = |name: &str, x: f64, y: Option<f64>| {
            let Some(y) = y else { return };
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push((x, y)),
                None => lines.push(Series { name: name.to_owned(), points: vec![(x, y)] }),
            }
        };
        for result in results {
            let mut parts = result.id.splitn(3, '/').skip(1);
            let Some(x) = parts.next().and_then(|part| part.parse().ok()) else { continue };
            match parts.next() {
                None => {
                    add("fastpath", x, Some(result.ours));
                    add(&self.original, x, result.original);
                    add("without emulator", x, result.control);
                    result.peers.iter().for_each(|(name, value)| add(name, x, Some(*value)));
                }
                Some(NOT_ON_THE_AXIS) => {}
                Some(variant) => {
                    let variant = self.variants.get(variant).map_or(variant, String::as_str);
                    add(&format!("fastpath, {variant}"), x, Some(result.ours));
                }
            }
        }
        (!lines.is_empty()).then(|| Chart {
            title: self.title.clone(),
            x: x_axis,
            y: y_axis,
            drawing: Drawing::Lines(lines),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{CommandOutput, Report};

    #[test]
    fn misses_come_first_and_a_chart_has_original_ours_peers_and_control() {
        let evaluation = super::super::tests::evaluation();
        let text = evaluation.report().markdown();
        let miss = "| Table 5.1: bandwidth | configured rate 512 kbit/s, in virtual time | 508.12 | 400 | kbit/s | 512 ± 1 % | -21.875 % from 512; a note | table-5.1/512/virtual |";
        let row = "| configured rate 512 kbit/s | 508.12 | 511.5 | 600 | 505 | kbit/s | 512 ± 1 % | ok | table-5.1/512 |";
        let (miss, row) = (text.find(miss).expect(&text), text.find(row).expect(&text));
        assert!(miss < row, "{text}");
        assert!(text.contains("| point | original | ours | without emulator | tc tbf | unit |"), "{text}");
        let further = "| point | observations | offered, packets/s |\n|---|---|---|\n| configured rate 512 kbit/s | 40 | 7000 |";
        assert!(text.contains(further), "{text}");
        assert!(text.contains("- 100 % is 512 kbit/s"), "{text}");
        let image = evaluation.report().svg();
        for shown in ["fastpath", "LinkEM, published", "tc tbf", "without emulator", "observed rate, kbit/s"]
        {
            assert!(image.contains(&format!(">{shown}</text>")), "{shown}: {image}");
        }
    }

    #[test]
    fn the_page_of_the_json_is_the_page_of_the_evaluation() {
        let evaluation = super::super::tests::evaluation();
        let json = serde_json::to_value(&evaluation).unwrap();
        let report = Report::new(&[]).with_output(&CommandOutput::parse(json).expect("an evaluation"));
        assert_eq!(report.html(), evaluation.report().html());
    }
}
