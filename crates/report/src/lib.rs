//! Reports: one self-contained HTML page with interactive charts, Markdown, or the charts alone as
//! SVG or PNG.
//!
//! A report is made of the records of measurements and runs, of an evaluation, or of the
//! --json output of `fastpath model`, and of nothing else: the crate reads no file, no clock and no
//! machine.
//!
//! ```text
//!  Measurement    ─▶ sections.rs  ─┐
//!  Run            ─▶ runs.rs      ─┤
//!  Evaluation     ─▶ evaluation/  ─┼▶ Section { notes, charts, tables } ─▶ page.rs: HTML, Markdown
//!  CommandOutput  ─▶ outputs.rs   ─┘           chart.rs: numbers to SVG; image.rs: SVG to PNG
//! ```

#![forbid(unsafe_code)]

mod chart;
mod evaluation;
#[cfg_attr(not(feature = "png"), path = "no_image.rs")]
mod image;
mod image_error;
mod outputs;
mod page;
mod pareto;
pub mod picture;
mod plain;
mod published;
mod runs;
mod sections;
mod simulated;
#[cfg(test)]
mod testing;
pub mod text;
mod values;

pub use evaluation::{Criterion, EvaluatedFigure, Evaluation, FigureGroup, SkippedFigure};
pub use image_error::ImageError;

pub use chart::{Axis, Boxed, Chart, Drawing, Mark, Scale, Series};
pub use image::Fonts;
pub use outputs::{CommandOutput, OutputError};
pub use pareto::{CARRIES, Front, FrontColumns, FrontRow, Goals, ParetoError};
pub use published::EvaluationOutput;
pub use values::words;

use fastpath_record::{Measurement, Run};

/// A report that can be written in any format.
pub struct Report {
    title: String,
    sections: Vec<Section>,
}

/// The links and flows of runs that a report shows. Without a choice, those that carried most.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReportChoice {
    /// Names of links.
    pub links: Vec<String>,
    /// Parts of the names of flows, such as an address.
    pub flows: Vec<String>,
}

/// A section of a report: one subject.
pub struct Section {
    /// Its heading.
    pub title: String,
    /// Sentences below the tables.
    pub notes: Vec<String>,
    /// Its charts.
    pub charts: Vec<Chart>,
    /// Its tables.
    pub tables: Vec<Grid>,
}

/// A table.
pub struct Grid {
    /// The headings of its columns.
    pub titles: Vec<String>,
    /// Its rows, a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// A table with these headings and rows.
    pub fn new<T: Into<String>>(
        titles: impl IntoIterator<Item = T>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Grid {
        Grid { titles: titles.into_iter().map(Into::into).collect(), rows: rows.into_iter().collect() }
    }
}

impl Report {
    /// Makes the report of measurements, ordered by kind: host, pipeline, latency, operations.
    pub fn new(measurements: &[Measurement]) -> Report {
        Report::from_sections("fastpath report".to_owned(), sections::all(measurements))
    }

    /// Adds what `fastpath model` or `fastpath evaluate` printed with `--json`. A report of one
    /// evaluation alone has its title.
    #[must_use]
    pub fn with_output(mut self, output: &CommandOutput) -> Report {
        if let (Some(title), true) = (output.title(), self.sections.is_empty()) {
            title.clone_into(&mut self.title);
        }
        self.sections.extend(output.sections());
        self
    }

    /// Adds runs, drawn over one another.
    #[must_use]
    pub fn with_runs(self, runs: &[Run], choice: &ReportChoice) -> Report {
        if runs.is_empty() { self } else { self.with_sections(runs::sections(runs, choice)) }
    }

    /// Puts a section before the others.
    #[must_use]
    pub fn with_section(mut self, section: Section) -> Report {
        self.sections.insert(0, section);
        self
    }

    /// Whether there is a chart in it. Images show nothing else.
    pub fn has_charts(&self) -> bool {
        self.sections.iter().any(|section| !section.charts.is_empty())
    }

    /// Adds sections after the others.
    #[must_use]
    pub fn with_sections(mut self, sections: impl IntoIterator<Item = Section>) -> Report {
        self.sections.extend(sections);
        self
    }

    /// Makes a report of these sections.
    pub fn from_sections(title: String, sections: Vec<Section>) -> Report {
        Report { title, sections }
    }

    /// Writes one HTML page that needs no other file.
    pub fn html(&self) -> String {
        page::html(&self.title, &self.sections)
    }

    /// Writes Markdown: tables and notes, without charts.
    pub fn markdown(&self) -> String {
        page::markdown(&self.title, &self.sections)
    }

    /// Draws the charts as PNG, with the text in one of `fonts`.
    ///
    /// # Errors
    /// Without a font, or with more charts than an image can hold.
    pub fn png(&self, fonts: Fonts) -> Result<Vec<u8>, ImageError> {
        image::png(&self.svg(), fonts)
    }

    /// Draws all charts below each other as one SVG image.
    pub fn svg(&self) -> String {
        page::svg(&self.sections)
    }
}

/// Writes a number to four digits, with a prefix (k, M, G) from 10,000 on.
pub fn short(x: f64) -> String {
    let (scaled, prefix) = match x.abs() {
        a if a >= 1e9 => (x / 1e9, "G"),
        a if a >= 1e6 => (x / 1e6, "M"),
        a if a >= 1e4 => (x / 1e3, "k"),
        _ => (x, ""),
    };
    if !x.is_finite() {
        return "–".to_owned();
    }
    if x != 0.0 && x.abs() < 1e-4 {
        return format!("{x:.3e}");
    }
    let digits = (3 - scaled.abs().max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(kind: &str, parameters: serde_json::Value, results: serde_json::Value) -> Measurement {
        let object = |value: serde_json::Value| value.as_object().unwrap().clone();
        Measurement {
            kind: kind.to_owned(),
            provenance: testing::provenance(),
            parameters: object(parameters),
            results: object(results),
            platform: None,
        }
    }

    fn records() -> Vec<Measurement> {
        let point = |p: u64, h: u64, t: f64| {
            record(
                "pipeline",
                json!({"program": "netcope <&>", "p": p, "h": h, "cores": 1}),
                json!({"T_ns": t, "stages": [{"name": "receive", "ns": 9.5}]}),
            )
        };
        vec![point(64, 0, 40.0), point(1500, 0, 180.0), point(64, 10, 80.0), point(1500, 10, 220.0)]
    }

    #[test]
    fn a_page_needs_no_other_file_and_shows_every_point_and_its_provenance() {
        let page = Report::new(&records()).html();
        assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
        assert_eq!(page.matches("<circle").count(), 4);
        assert!(page.contains("netcope &lt;&amp;&gt;") && !page.contains("netcope <&>"));
        assert!(page.contains(&records()[0].provenance.machine.kernel));
        for outside in ["http://", "https://", "src="] {
            let known =
                if outside == "http://" { page.matches("http://www.w3.org/2000/svg").count() } else { 0 };
            assert_eq!(page.matches(outside).count(), known, "{outside} is outside the page");
        }
    }

    #[test]
    fn markdown_has_a_row_per_record() {
        let text = Report::new(&records()).markdown();
        assert_eq!(text.lines().filter(|line| line.starts_with("| netcope")).count(), 4, "{text}");
    }

    #[test]
    fn an_image_has_its_charts_below_each_other() {
        let image = Report::new(&records()).svg();
        assert!(image.starts_with("<svg") && image.matches("</svg>").count() >= 2, "{image}");
    }

    #[test]
    fn simulated_points_are_drawn_over_what_was_varied() {
        let point = |machine: &str, size: u64, pps: f64| {
            record(
                "simulation",
                json!({"machine": machine, "program": "p", "size": size}),
                json!({"forwarded_pps": pps, "bottleneck": "cpu"}),
            )
        };
        let records = [point("a", 64, 1e6), point("a", 128, 2e6), point("b", 64, 3e6), point("b", 128, 4e6)];
        let report = Report::new(&records);
        let image = report.svg();
        assert!(
            image.contains("Forwarding rate over frame size")
                && image.contains(">frame size, bytes</text>")
                && image.matches("<circle").count() == 4,
            "{image}"
        );
        assert!(report.markdown().contains("machine = b, size = 128"));
        let without_fonts = report.png(Fonts::new());
        let is_said = match cfg!(feature = "png") {
            true => matches!(without_fonts, Err(ImageError::NoFont)),
            false => matches!(without_fonts, Err(ImageError::NotBuilt)),
        };
        assert!(is_said, "{without_fonts:?}");
    }

    #[test]
    fn the_mean_of_a_latency_is_that_of_the_distribution_drawn() {
        let t = json!({
            "samples": 1000, "outliers": 12, "five": [1.0, 2.0, 3.0, 4.0, 9.0], "fences": [0.0, 8.0],
            "mean": {"value": 34_040.0, "low": 0.0, "high": 60_000.0},
            "sd": {"value": 490_352.0, "low": 4e5, "high": 6e5},
            "mixture": {"core_mean": 4207.0, "core_sd": 229.0, "outlier_share": 0.01},
        });
        let histogram = json!({"from": 0.0, "width": 1.0, "counts": [3, 4]});
        let results =
            json!({"t_f_ns": t, "median_ns": 4200.0, "round_trip_ns": 9000.0, "histogram": histogram});
        let latency = [record("latency", json!({"size": 64, "between": "memory"}), results)];
        let report = Report::new(&latency);
        assert!(report.markdown().contains("| memory | 64 | 4200 | 4207 | 229 |"), "{}", report.markdown());
        assert!(report.svg().contains("normal 4207 ± 229"), "{}", report.svg());
    }

    #[test]
    fn records_of_another_kind_are_a_table_with_a_column_each() {
        let found = |ns: f64| {
            record("switch", json!({"flows": 9}), json!({"lookup_ns": {"compiled": ns}, "rules": 3}))
        };
        let text = Report::new(&[found(4.5), found(5.0)]).markdown();
        for line in [
            "## Switch",
            "| result | flows 9 | flows 9 |",
            "| lookup, ns: compiled | 4.5 | 5 |",
            "| rules | 3 | 3 |",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn numbers_are_short() {
        let golden = [
            (14_880_952.0, "14.88M"),
            (0.101, "0.101"),
            (38.6, "38.6"),
            (1500.0, "1500"),
            (12_345.0, "12.35k"),
            (f64::NAN, "–"),
            (2.126e-6, "2.126e-6"),
            (0.0, "0"),
        ];
        for (x, text) in golden {
            assert_eq!(short(x), text);
        }
    }
}
