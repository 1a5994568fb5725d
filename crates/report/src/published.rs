//! Sections of a report for what `fastpath evaluate models|simulator|prediction` print with
//! `--json`: what does not pass first, then a section for each publication.

use crate::chart::{Axis, Chart, Drawing, Scale, Series};
use crate::text::number;
use crate::{Grid, Section};
use fastpath_model::publications::PUBLICATIONS;
use serde::Deserialize;

/// Maximum number of rows of a table.
const ROWS_MAX: usize = 500;
/// A curve of fewer points has no chart.
const POINTS_MIN: usize = 3;

/// The figures of an evaluation.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct EvaluationOutput {
    results: Vec<StatedFigure>,
    passed: u64,
    total: u64,
}

/// One figure. Each evaluation states the criterion in its own way.
#[derive(Clone, PartialEq, Debug, Deserialize)]
struct StatedFigure {
    id: String,
    publication: Option<String>,
    place: Option<String>,
    quantity: Option<String>,
    point: Option<StatedPoint>,
    original: Option<Stated>,
    doc_value: Option<Stated>,
    ours: Option<Stated>,
    /// The largest error or the smallest share that passes.
    asked: Option<f64>,
    /// The ends of the range that passes.
    low: Option<f64>,
    high: Option<f64>,
    /// The absolute error that passes.
    tolerance: Option<f64>,
    pass: Option<bool>,
    #[serde(default)]
    noisy: bool,
    note: Option<String>,
}

/// The point on the x axis of a figure.
#[derive(Clone, PartialEq, Debug, Deserialize)]
struct StatedPoint {
    axis: String,
    value: f64,
}

/// A value as an evaluation states it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
enum Stated {
    Number(f64),
    Text(String),
}

impl Stated {
    /// Returns the text, or nothing for an empty one.
    fn text(&self) -> Option<String> {
        match self {
            Stated::Number(x) => Some(number(*x)),
            Stated::Text(text) => (!text.is_empty()).then(|| text.replace("+/-", " ± ")),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Stated::Number(x) => Some(*x),
            Stated::Text(text) => text.parse().ok(),
        }
    }
}

impl StatedFigure {
    fn published(&self) -> Option<&Stated> {
        self.original.as_ref().or(self.doc_value.as_ref())
    }

    /// The quantity, and the point at which it was measured.
    fn describe(&self) -> String {
        let quantity = self.quantity.clone().unwrap_or_else(|| self.id.clone());
        let Some(StatedPoint { axis, value }) = &self.point else { return quantity };
        match axis.split_once(", ") {
            Some((name, unit)) => format!("{quantity}; {name} {value} {unit}"),
            None => format!("{quantity}; {axis} {value}"),
        }
    }

    fn criterion(&self) -> String {
        match (self.low, self.high, self.tolerance, self.asked) {
            (Some(low), Some(high), ..) if low == high => format!("exactly {}", number(low)),
            (Some(low), Some(high), ..) => format!("{} … {}", number(low), number(high)),
            (_, _, Some(tolerance), _) => format!("± {}", number(tolerance)),
            (.., Some(asked)) if self.id.ends_with("covered") => format!("at least {}", number(asked)),
            (.., Some(asked)) => format!("at most {}", number(asked)),
            _ => "–".to_owned(),
        }
    }

    fn verdict(&self) -> &'static str {
        match self.pass {
            _ if self.noisy => "too noisy",
            Some(true) => "ok",
            Some(false) => "MISS",
            None => "–",
        }
    }
}

impl EvaluationOutput {
    /// The heading of a page of this evaluation alone.
    pub(super) fn title(&self) -> &'static str {
        let has = |field: fn(&StatedFigure) -> bool| self.results.iter().any(field);
        if has(|figure| figure.doc_value.is_some()) {
            "Published figures, recomputed by the models"
        } else if has(|figure| figure.low.is_some()) {
            "Published figures, simulated"
        } else {
            "Predictions of fitted models, measured on this machine"
        }
    }

    /// Returns a chart of how far recomputed figures are from the published ones, if this is an
    /// evaluation of models. Its figures have many units, so that the chart shows shares.
    fn deviations(&self) -> Option<Chart> {
        let mut series: Vec<Series> = Vec::new();
        for (place, figure) in self.results.iter().take(ROWS_MAX).enumerate() {
            let Some(published) = figure.doc_value.as_ref().and_then(Stated::number) else { continue };
            let Some(ours) = figure.ours.as_ref().and_then(Stated::number) else { continue };
            if published == 0.0 {
                continue;
            }
            let point = ((place + 1) as f64, 100.0 * (ours / published - 1.0));
            let name = figure.publication.as_deref().unwrap_or("other");
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name: name.to_owned(), points: vec![point] }),
            }
        }
        let points = || series.iter().flat_map(|series| &series.points);
        let last = points().map(|point| point.0).reduce(f64::max)?;
        let equal = Series { name: "as published".to_owned(), points: vec![(1.0, 0.0), (last, 0.0)] };
        (points().count() >= POINTS_MIN).then(|| Chart {
            title: "Difference of the recomputed figures from the published ones".to_owned(),
            x: Axis::new("figure, in the order of the tables", Scale::Linear),
            y: Axis::new("difference, per cent of the published value", Scale::Linear),
            drawing: Drawing::Points(series, vec![equal]),
        })
    }

    /// Makes the sections of the page.
    pub(super) fn sections(&self) -> Vec<Section> {
        let missed = self.results.iter().filter(|figure| figure.pass == Some(false)).take(ROWS_MAX);
        let missed: Vec<&StatedFigure> = missed.collect();
        let summary = Section {
            title: "Summary, and what does not pass".to_owned(),
            notes: vec![format!("{} of {} figures pass", self.passed, self.total)],
            charts: self.deviations().into_iter().collect(),
            tables: if missed.is_empty() { vec![] } else { vec![table(&missed, true)] },
        };
        let mut publications: Vec<(Option<&str>, Vec<&StatedFigure>)> = Vec::new();
        for figure in self.results.iter().take(ROWS_MAX) {
            let publication = figure.publication.as_deref();
            match publications.iter_mut().find(|(name, _)| *name == publication) {
                Some((_, figures)) => figures.push(figure),
                None => publications.push((publication, vec![figure])),
            }
        }
        let sections = publications.into_iter().map(|(publication, figures)| Section {
            title: publication.unwrap_or("All figures").to_owned(),
            notes: citation(publication).into_iter().collect(),
            charts: charts(&figures),
            tables: vec![table(&figures, false)],
        });
        std::iter::once(summary).chain(sections).collect()
    }
}

/// The full reference of a publication.
fn citation(publication: Option<&str>) -> Option<String> {
    let known = PUBLICATIONS.iter().find(|known| Some(known.short) == publication)?;
    Some(known.citation.to_owned())
}

/// The figures as a table, with their publication or without.
fn table(figures: &[&StatedFigure], with_publication: bool) -> Grid {
    let none = || "–".to_owned();
    let row = |figure: &&StatedFigure| {
        let publication = with_publication.then(|| figure.publication.clone().unwrap_or_else(none));
        let cells = [
            figure.place.clone().unwrap_or_else(none),
            figure.describe(),
            figure.published().and_then(Stated::text).unwrap_or_else(none),
            figure.ours.as_ref().and_then(Stated::text).unwrap_or_else(none),
            figure.criterion(),
            figure.verdict().to_owned(),
            figure.note.clone().unwrap_or_default(),
            figure.id.clone(),
        ];
        publication.into_iter().chain(cells).collect()
    };
    let titles = ["place", "quantity", "published", "ours", "criterion", "", "note", "key"];
    let titles = with_publication.then_some("publication").into_iter().chain(titles);
    Grid::new(titles, figures.iter().map(row))
}

/// A chart of each quantity that has several points: published and ours.
fn charts(figures: &[&StatedFigure]) -> Vec<Chart> {
    // Figures of other places, such as L2 and L3 forwarding, are other curves.
    let mut quantities: Vec<([&str; 3], Vec<&StatedFigure>)> = Vec::new();
    for figure in figures {
        let (Some(quantity), Some(point)) = (figure.quantity.as_deref(), &figure.point) else { continue };
        let key = [figure.place.as_deref().unwrap_or_default(), quantity, point.axis.as_str()];
        match quantities.iter_mut().find(|(known, _)| *known == key) {
            Some((_, points)) => points.push(figure),
            None => quantities.push((key, vec![figure])),
        }
    }
    let series = |name: &str, figures: &[&StatedFigure], y: fn(&StatedFigure) -> Option<&Stated>| {
        let point = |figure: &&StatedFigure| Some((figure.point.as_ref()?.value, y(figure)?.number()?));
        let mut points: Vec<(f64, f64)> = figures.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series { name: name.to_owned(), points }
    };
    let drawn = quantities.into_iter().filter(|(_, figures)| figures.len() >= POINTS_MIN);
    drawn
        .map(|([place, quantity, axis], figures)| {
            let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
            let lines = [
                series("published", &figures, |figure| figure.published()),
                series("ours", &figures, |figure| figure.ours.as_ref()),
            ];
            Chart {
                title: format!("{place}{quantity}"),
                x: Axis::new(axis, Scale::Log2),
                y: Axis::new(quantity.rsplit_once(", ").map_or(quantity, |(_, unit)| unit), Scale::Linear),
                drawing: Drawing::Lines(lines.into_iter().filter(|line| !line.points.is_empty()).collect()),
            }
        })
        .collect()
}
