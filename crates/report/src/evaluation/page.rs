//! The page of an evaluation: what does not pass first, then a section for each table or figure,
//! with the original, ours, the peers and the control in one chart.

use super::{EvaluatedFigure, Evaluation, FigureGroup};
use crate::chart::{Chart, Drawing, Series};
use crate::record::Optimised;
use crate::{Grid, Report, Section, short};

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
                "{} of {} figures pass, {} could not be measured here",
                self.passed,
                self.total,
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
        let mut tables = Vec::new();
        if self.passed < self.total {
            let missed = self.results.iter().filter(|result| !result.pass);
            let rows = missed.map(|result| {
                let figure = self.figures.iter().find(|group| result.id.split('/').next() == Some(&group.id));
                vec![
                    result.id.clone(),
                    figure.map_or_else(String::new, |group| group.title.clone()),
                    self.describe(&result.id),
                    ours(result),
                    result.criterion.text(short),
                    result.note.clone(),
                ]
            });
            let titles = vec!["missed", "table or figure", "point", "ours", "criterion", "note"];
            tables.push(Grid { titles, rows: rows.collect() });
        }
        let skipped = self.reasons();
        if !skipped.is_empty() {
            let rows = skipped.into_iter().map(|(reason, ids)| vec![ids.join(", "), reason.to_owned()]);
            tables.push(Grid { titles: vec!["not measured", "why"], rows: rows.collect() });
        }
        Section { title: "Summary, and figures that do not pass".to_owned(), notes, charts: vec![], tables }
    }

    fn section(&self, group: &FigureGroup, results: &[&EvaluatedFigure]) -> Section {
        let rows = results.iter().map(|result| self.row(result)).collect();
        let mut notes = vec![format!("original: {}", group.original)];
        for result in results {
            if !result.note.is_empty() && !notes.contains(&result.note) {
                notes.push(result.note.clone());
            }
        }
        notes
            .extend(results.iter().filter(|result| !result.details.is_empty()).map(|result| details(result)));
        let charts = group.chart(results).into_iter().collect();
        Section {
            title: group.title.clone(),
            notes,
            charts,
            tables: vec![Grid { titles: TITLES.to_vec(), rows }],
        }
    }

    /// A result as a row of a table.
    fn row(&self, result: &EvaluatedFigure) -> Vec<String> {
        let optional = |value: Option<f64>| value.map_or("–".to_owned(), short);
        let peers: Vec<String> =
            result.peers.iter().map(|(name, value)| format!("{name} {}", short(*value))).collect();
        vec![
            result.id.clone(),
            self.describe(&result.id),
            optional(result.original),
            ours(result),
            optional(result.control),
            peers.join(", "),
            result.unit.clone(),
            result.criterion.text(short),
            if result.pass { "ok" } else { "MISS" }.to_owned(),
        ]
    }
}

const TITLES: [&str; 9] =
    ["figure", "point", "original", "ours", "without emulator", "peers", "unit", "criterion", ""];

/// Our value with its interval.
fn ours(result: &EvaluatedFigure) -> String {
    let interval =
        result.interval.map_or(String::new(), |[low, high]| format!(" [{}, {}]", short(low), short(high)));
    format!("{}{interval}", short(result.ours))
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

/// The further numbers of a result as a sentence.
fn details(result: &EvaluatedFigure) -> String {
    let numbers: Vec<String> = result
        .details
        .iter()
        .map(|(name, value)| format!("{} {}", name.replace('_', " "), short(*value)))
        .collect();
    format!("{}: n = {}, {}", result.id, result.n, numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::{CommandOutput, Report};

    #[test]
    fn misses_come_first_and_a_chart_has_original_ours_peers_and_control() {
        let evaluation = super::super::tests::evaluation();
        let text = evaluation.report().markdown();
        let miss = "| table-5.1/512/virtual | Table 5.1: bandwidth | configured rate 512 kbit/s, in virtual time | 400 |";
        let row = "| table-5.1/512 | configured rate 512 kbit/s | 508.1 | 511.5 | 600 | tc tbf 505 | kbit/s | 512 ± 1 % | ok |";
        let (miss, row) = (text.find(miss).expect(&text), text.find(row).expect(&text));
        assert!(miss < row, "{text}");
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
