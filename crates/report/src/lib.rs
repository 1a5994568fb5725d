//! A report from records or from an evaluation, and from nothing else: one self-contained page with
//! charts to hover over, or Markdown, or the charts alone as SVG or PNG.
//!
//! ```text
//!  records ──▶ sections.rs: what to show ──┬▶ Section { text, charts, tables } ──▶ page.rs: HTML, Markdown, SVG
//!  answers ──▶ answers.rs: of models       ┘          chart.rs: numbers to SVG
//! ```

#![forbid(unsafe_code)]

mod answers;
mod chart;
mod image;
mod page;
mod record;
mod sections;
mod simulated;
#[cfg(test)]
mod testing;

pub use image::ImageError;

pub use chart::{Axis, Boxed, Chart, Drawing, Scale, Series};
pub use image::Fonts;
pub use record::{Disturbance, Machine, Optimised, Provenance, Record, Tool, fields};

use serde_json::Value;

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

    /// The same with an answer of `fastpath model` or `fastpath evaluate` (their --json) behind it;
    /// none if it is no such answer.
    pub fn with_answer(mut self, answer: &Value) -> Option<Report> {
        self.sections.push(answers::section(answer)?);
        Some(self)
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
    fn answers_of_models_and_evaluations_stand_behind_the_records() {
        let estimate = json!({"value": 2.0, "low": 1.0, "high": 3.0});
        let fit = json!({
            "y": "T_ns", "n": 2, "r2": 1.0, "level": 0.95, "loo_median_pct": 0.1, "fcs": "without",
            "coefficients": {"p": estimate}, "vif": {}, "residuals": {}, "warnings": ["look <here>"],
            "points": [{"fitted": 2.0, "measured": 2.1, "residual_pct": 4.8}, {"fitted": 1.0, "measured": 0.9, "residual_pct": -11.1}],
        });
        let cores = json!({"model": "m", "model_fcs": "with", "framing_bytes": 20, "rows": [
            {"gbit_per_s": 10.0, "steps": 0.0, "frame_bytes": 64.0, "packets_per_s": 14.88e6, "cores": estimate, "ns_per_packet": estimate, "whole_cores": 3},
        ]});
        let predicted = json!({"model": "m", "predictions": [{"at": {"p": 64.0}, "y": estimate, "warnings": ["extrapolation: p"]}]});
        let evaluated = json!({"results": [{"id": "a", "ours": 1.5, "pass": false, "original": 2.0}], "passed": 0, "total": 1});
        let budget = json!({"arrival_cycles": estimate, "warnings": []});
        let fitted = json!({"value": 412.0, "low": null, "high": null});
        // Before there were fitted ones with bounds, N was a bare number.
        let index =
            json!({"platforms": [{"name": "x", "index": 28.05}], "index": estimate, "m": fitted, "n_s": 0.0});
        let mut report = Report::new(&[]);
        for answer in [&fit, &cores, &predicted, &evaluated, &budget, &index] {
            report = report.with_answer(answer).expect("an answer");
        }
        let text = report.markdown();
        for shown in [
            "| p | 2 | 1 … 3 |",
            "look <here>",
            "| 10 | 64 |",
            "extrapolation: p",
            "| a | – | 2 | 1.5 | MISS |",
            "28.05",
            "M = 412 (no error bar), N = 0 s",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        // Below 0 there is room: residuals have both signs.
        assert!(report.svg().contains(">-10</text>"), "{}", report.svg());
        assert!(report.with_answer(&json!({"x": 1})).is_none());
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
