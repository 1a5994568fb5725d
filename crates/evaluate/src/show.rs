//! The evaluation as a page: a section for each table or figure of the thesis, ours beside the
//! original.

use super::{Evaluation, Outcome};
use fastpath_report::{Axis, Chart, Drawing, Grid, Optimised, Report, Scale, Section, Series, short};
use std::collections::BTreeMap;

/// A table or figure: the beginning of its ids, its title, and how it is drawn.
struct Subject {
    prefix: &'static str,
    title: &'static str,
    drawing: Option<Plot>,
}

#[derive(Clone, Copy)]
struct Plot {
    x: (&'static str, Scale),
    y: (&'static str, Scale),
}

const SIZES: Option<Plot> = plot(("frame with FCS, bytes", Scale::Log2), ("% of line rate", Scale::Log10));
const LINKS: Option<Plot> = plot(("rate of a link, kbit/s", Scale::Log10), ("links", Scale::Log10));
const RTT: Option<Plot> = plot(("frame with FCS, bytes", Scale::Log2), ("RTT, ms", Scale::Linear));

const SUBJECTS: [Subject; 15] = [
    Subject {
        prefix: "table-5.1/",
        title: "Table 5.1: bandwidth emulation accuracy",

        drawing: plot(("configured, kbit/s", Scale::Log10), ("observed, kbit/s", Scale::Log10)),
    },
    Subject { prefix: "table-5.2/", title: "Table 5.2: base RTT", drawing: RTT },
    Subject { prefix: "table-5.3/", title: "Table 5.3: delay accuracy, 5 ms", drawing: None },
    Subject { prefix: "table-5.4/", title: "Table 5.4: delay accuracy, 30 ms", drawing: None },
    Subject { prefix: "table-5.5/", title: "Table 5.5: delay accuracy, 101 ms", drawing: None },
    Subject {
        prefix: "table-5.6/",
        title: "Table 5.6: loss rate accuracy",

        drawing: plot(("configured, %", Scale::Linear), ("observed, %", Scale::Linear)),
    },
    Subject {
        prefix: "figure-5.2/",
        title: "Figure 5.2: throughput in % of 400 Mbit/s, four veth ports",

        drawing: SIZES,
    },
    Subject {
        prefix: "figure-5.3/",
        title: "Figure 5.3: throughput in % of 400 Mbit/s, emulation alone, in memory",

        drawing: SIZES,
    },
    Subject {
        prefix: "figure-5.4/",
        title: "Figure 5.4: beside Dummynet, % of 400 Mbit/s, four veth ports",

        drawing: SIZES,
    },
    Subject {
        prefix: "figure-5.5/",
        title: "Figure 5.5: beside Dummynet, % of 200 Mbit/s, two veth ports",

        drawing: SIZES,
    },
    Subject { prefix: "figure-5.6/", title: "Figure 5.6: links multiplexed over four ports", drawing: LINKS },
    Subject { prefix: "figure-5.8/", title: "Figure 5.8: links multiplexed over two ports", drawing: LINKS },
    Subject { prefix: "lateness/", title: "Release lateness below 80 % load", drawing: None },
    Subject { prefix: "overload/", title: "Overload", drawing: None },
    Subject { prefix: "", title: "Overhead and TCP", drawing: None },
];

const fn plot(x: (&'static str, Scale), y: (&'static str, Scale)) -> Option<Plot> {
    Some(Plot { x, y })
}

impl Evaluation {
    /// The page, ready to be written in any format.
    pub fn report(&self) -> Report {
        let mut sections = vec![self.summary()];
        let mut left: Vec<&Outcome> = self.results.iter().collect();
        for subject in SUBJECTS {
            let (own, others) = left.into_iter().partition(|outcome| outcome.id.starts_with(subject.prefix));
            left = others;
            if !own.is_empty() {
                sections.push(subject.section(&own));
            }
        }
        Report::of("The LinkEM thesis, chapter 5, on this machine", sections)
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
            notes.push("a DEVELOPMENT BUILD: its speed says nothing".to_owned());
        }
        if p.disturbance.disturbed {
            notes.push(format!(
                "the machine was not quiet: {:.1} % of its time taken by the hypervisor, {:.1} % spent on other programs",
                100.0 * p.disturbance.stolen_share,
                100.0 * p.disturbance.others_share
            ));
        }
        notes.extend(self.notes.iter().cloned());
        let failed = self.results.iter().filter(|outcome| !outcome.pass).map(row);
        let skipped = self.reasons();
        let mut tables = Vec::new();
        if self.passed < self.total {
            tables.push(Grid { titles: TITLES.to_vec(), rows: failed.collect() });
        }
        if !skipped.is_empty() {
            let rows = skipped.into_iter().map(|(reason, ids)| vec![ids.join(", "), reason.to_owned()]);
            tables.push(Grid { titles: vec!["not measured", "why"], rows: rows.collect() });
        }
        Section { title: "Summary, and what does not pass".to_owned(), notes, charts: vec![], tables }
    }

    /// The figures that could not be measured, by reason.
    pub fn reasons(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for skipped in &self.skipped {
            reasons.entry(&skipped.reason).or_default().push(&skipped.id);
        }
        reasons
    }
}

const TITLES: [&str; 8] = ["figure", "original", "ours", "control", "peers", "unit", "rule", ""];

/// A figure as a row of a table.
fn row(outcome: &Outcome) -> Vec<String> {
    let optional = |value: Option<f64>| value.map_or("–".to_owned(), short);
    let interval =
        outcome.interval.map_or(String::new(), |[low, high]| format!(" [{}, {}]", short(low), short(high)));
    let peers: Vec<String> =
        outcome.peers.iter().map(|(name, value)| format!("{name} {}", short(*value))).collect();
    vec![
        outcome.id.clone(),
        optional(outcome.original),
        format!("{}{interval}", short(outcome.ours)),
        optional(outcome.control),
        peers.join(", "),
        outcome.unit.to_owned(),
        outcome.rule.words(short),
        if outcome.pass { "ok" } else { "MISS" }.to_owned(),
    ]
}

impl Subject {
    fn section(&self, outcomes: &[&Outcome]) -> Section {
        let tables = vec![Grid { titles: TITLES.to_vec(), rows: outcomes.iter().map(|o| row(o)).collect() }];
        let mut details: Vec<String> =
            outcomes.iter().filter(|o| !o.details.is_empty()).map(|o| beside(o)).collect();
        let mut notes: Vec<String> =
            outcomes.iter().map(|o| o.note.clone()).filter(|note| !note.is_empty()).collect();
        notes.dedup();
        notes.append(&mut details);
        let charts = self.drawing.and_then(|plot| self.chart(plot, outcomes)).into_iter().collect();
        Section { title: self.title.to_owned(), notes, charts, tables }
    }

    /// Original, ours, control and peers over what the last part of the ids says.
    fn chart(&self, plot: Plot, outcomes: &[&Outcome]) -> Option<Chart> {
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        let mut add = |name: &str, x: f64, y: Option<f64>| {
            let Some(y) = y else { return };
            match lines.iter_mut().find(|line| line.0 == name) {
                Some(line) => line.1.push((x, y)),
                None => lines.push((name.to_owned(), vec![(x, y)])),
            }
        };
        for outcome in outcomes {
            let mut words = outcome.id[self.prefix.len()..].splitn(2, '/');
            let Some(x) = words.next().and_then(|word| word.parse().ok()) else { continue };
            match words.next() {
                None => {
                    add("fastpath", x, Some(outcome.ours));
                    add("original", x, outcome.original);
                    add("control", x, outcome.control);
                    outcome.peers.iter().for_each(|(name, value)| add(name, x, Some(*value)));
                }
                // What counts something else is not for this axis.
                Some("virtual") => {}
                Some(kind) => add(&format!("fastpath, {kind}"), x, Some(outcome.ours)),
            }
        }
        let series: Vec<Series> = lines.into_iter().map(|(name, points)| Series { name, points }).collect();
        let axis = |(label, scale): (&str, Scale)| Axis { label: label.to_owned(), scale };
        (!series.is_empty()).then(|| Chart {
            title: self.title.to_owned(),
            x: axis(plot.x),
            y: axis(plot.y),
            drawing: Drawing::Lines(series),
        })
    }
}

/// The numbers beside a figure, in words.
fn beside(outcome: &Outcome) -> String {
    let numbers: Vec<String> = outcome
        .details
        .iter()
        .map(|(name, value)| format!("{} {}", name.replace('_', " "), short(*value)))
        .collect();
    format!("{}: n = {}, {}", outcome.id, outcome.n, numbers.join(", "))
}
