//! A report from records or from an evaluation, and from nothing else: one self-contained page with
//! charts to hover over, or Markdown, or the charts alone as SVG or PNG.
//!
//! ```text
//!  records ──▶ sections.rs: what to show ──┬▶ Section { text, charts, tables } ──▶ page.rs: HTML, Markdown, SVG
//!  outputs ──▶ outputs.rs: of models       ┘          chart.rs: numbers to SVG
//! ```

#![forbid(unsafe_code)]

mod chart;
mod image;
mod measurement;
mod outputs;
mod page;
mod record;
mod sections;
mod simulated;
#[cfg(test)]
mod testing;

pub use image::ImageError;

pub use chart::{Axis, Boxed, Chart, Drawing, Scale, Series};
pub use image::Fonts;
pub use measurement::{Measurement, MeasurementError};
pub use outputs::{CommandOutput, EvaluationOutput, OutputError};
pub use record::{Disturbance, Machine, Optimised, Provenance, Record, Tool, fields};

/// A report, ready to be written in any format.
pub struct Report {
    title: &'static str,
    sections: Vec<Section>,
}

/// One subject.
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
    pub titles: Vec<&'static str>,
    /// Its rows, a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Report {
    /// The report of `records`, in the order of their kinds: host, pipeline, latency, operations.
    pub fn new(records: &[Record]) -> Report {
        Report::of("fastpath report", sections::all(records))
    }

    /// Adds a section for what `fastpath model` or `fastpath evaluate` printed with `--json`.
    #[must_use]
    pub fn with_output(mut self, output: &CommandOutput) -> Report {
        self.sections.push(output.section());
        self
    }

    /// A report of these subjects.
    pub fn of(title: &'static str, sections: Vec<Section>) -> Report {
        Report { title, sections }
    }

    /// One HTML page that needs nothing else.
    pub fn html(&self) -> String {
        page::html(self.title, &self.sections)
    }

    /// Markdown: tables and notes, without charts.
    pub fn markdown(&self) -> String {
        page::markdown(self.title, &self.sections)
    }

    /// The charts as PNG, with the text in one of `fonts`.
    ///
    /// # Errors
    /// Without a font, or with more charts than an image can hold.
    pub fn png(&self, fonts: Fonts) -> Result<Vec<u8>, ImageError> {
        image::png(&self.svg(), fonts)
    }

    /// All charts below each other as one SVG image.
    pub fn svg(&self) -> String {
        page::svg(&self.sections)
    }
}

/// A number to four digits, large ones with a thousands' prefix.
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

    fn record(kind: &str, parameters: serde_json::Value, results: serde_json::Value) -> Record {
        let object = |value: serde_json::Value| value.as_object().unwrap().clone();
        Record {
            kind: kind.to_owned(),
            provenance: testing::provenance(),
            parameters: object(parameters),
            results: object(results),
            platform: None,
        }
    }

    fn records() -> Vec<Record> {
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
    fn a_page_is_whole_and_shows_every_point_and_where_it_comes_from() {
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
            image.contains("forwarded pps over size")
                && image.contains(">size</text>")
                && image.matches("<circle").count() == 4,
            "{image}"
        );
        assert!(report.markdown().contains("machine = b, size = 128"));
        let without_fonts = report.png(Fonts::new());
        assert!(matches!(without_fonts, Err(ImageError::NoFont)), "{without_fonts:?}");
    }

    #[test]
    fn records_of_a_kind_unknown_here_are_named_not_lost() {
        let text = Report::new(&[record("future", json!({}), json!({}))]).markdown();
        assert!(text.contains("future"), "{text}");
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
