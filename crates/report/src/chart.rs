//! Charts as SVG: lines over linear or logarithmic axes, histograms with a normal curve, box plots.

use crate::short;
use fastpath_record::escaped;
use fastpath_units::stats::{quantile, sorted};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

const WIDTH: f64 = 740.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// The room at the right of axes without a legend there.
const RIGHT_BARE: f64 = 24.0;
/// Letters that fit into a legend beside a chart; into one below it; the height of a row.
const LEGEND_USUAL: f64 = 23.0;
const LEGEND_MAX: usize = 84;
const LEGEND_ROW: f64 = 16.0;
/// The colours of Okabe and Ito, which colour-blind people can distinguish.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"];
const TICKS_MAX: usize = 8;
/// The last series is drawn last and thinnest, and each one before it wider by a step: curves that
/// coincide stay visible.
const STROKE: f64 = 1.6;
const STROKE_STEP: f64 = 2.2;
const STROKE_MAX: f64 = 8.2;
const RADIUS: f64 = 3.0;
/// Pixels of the text of an instant, and the most letters of it.
const MARK_FONT: f64 = 10.0;
const MARK_LETTERS_MAX: usize = 44;

/// The scale of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Powers of 10.
    Log10,
    /// Powers of 2, for sizes.
    Log2,
}

/// An axis.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// Its title, a comma, and the unit: `frame size, bytes`.
    pub label: String,
    /// Its scale.
    pub scale: Scale,
}

impl Axis {
    /// An axis with this title and scale.
    pub fn new(label: &str, scale: Scale) -> Axis {
        Axis { label: label.to_owned(), scale }
    }
}

/// A named series of points.
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, x and y. A point whose y is NaN is a gap in the line.
    pub points: Vec<(f64, f64)>,
}

/// A box of a box plot: quartiles, whiskers, outliers.
pub struct Boxed {
    /// Its name below the axis.
    pub name: String,
    /// Lower whisker, quartiles, upper whisker.
    pub five: [f64; 5],
    /// Values outside the whiskers.
    pub outliers: Vec<f64>,
}

impl Boxed {
    /// Makes the box of samples in any order, of which there is at least one: quartiles, and
    /// whiskers to the last value within 1.5 of their distance (Tukey 1977).
    pub fn of(name: String, samples: &[f64]) -> Boxed {
        let sorted = sorted(samples.iter().copied());
        let [low, median, high] = [0.25, 0.5, 0.75].map(|p| quantile(&sorted, p));
        let reach = 1.5 * (high - low);
        let (inside, outliers): (Vec<f64>, Vec<f64>) =
            sorted.into_iter().partition(|value| (low - reach..=high + reach).contains(value));
        let least = inside.first().map_or(low, |least| least.min(low));
        let most = inside.last().map_or(high, |most| most.max(high));
        Boxed { name, five: [least, low, median, high, most], outliers }
    }
}

/// An instant to which a chart over time points.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// Its place on the horizontal axis.
    pub x: f64,
    /// What happened.
    pub text: String,
}

/// The content of the chart.
pub enum Drawing {
    /// Lines over time without marks at their points, and instants as vertical lines.
    Timeline(Vec<Series>, Vec<Mark>),
    /// A timeline whose lines have all their samples too, each line in the order of the others: a
    /// page shows them in a part of the time.
    Zoomable(Vec<Series>, Vec<Mark>, Vec<Series>),
    /// Lines with a mark at each point.
    Lines(Vec<Series>),
    /// Points, and lines to compare them with.
    Points(Vec<Series>, Vec<Series>),
    /// Bars (x from, x to, count) and a curve over them.
    Bars(Vec<(f64, f64, f64)>, Series),
    /// A box plot.
    Boxes(Vec<Boxed>),
}

/// A chart.
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The content of the chart.
    pub drawing: Drawing,
}

/// An axis with its range in values and in pixels.
struct Range {
    scale: Scale,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Range {
    fn new(scale: Scale, values: impl Iterator<Item = f64>, (start, end): (f64, f64)) -> Range {
        let usable = |x: &f64| x.is_finite() && (scale == Scale::Linear || *x > 0.0);
        let (low, high) = values.filter(usable).fold((f64::INFINITY, 0f64), |(a, b), x| (a.min(x), b.max(x)));
        let (from, to) = match scale {
            _ if low > high => (1.0, 2.0),
            // A linear axis begins at 0, so that lengths can be compared, unless all values are far
            // from 0.
            Scale::Linear if low > 0.8 * high && high > 0.0 => {
                (low - 0.1 * (high - low), high + 0.1 * (high - low))
            }
            Scale::Linear => (low.min(0.0) * 1.05, high * 1.05),
            _ => (low / 1.1, high * 1.1),
        };
        let to = if to > from { to } else { from.abs() * 1.1 + 1.0 };
        Range { scale, from, to, start, end }
    }

    fn at(&self, x: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (x - self.from) / (self.to - self.from),
            _ => (x.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
        };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    fn ticks(&self) -> Vec<f64> {
        let base: f64 = match self.scale {
            Scale::Linear => {
                let rough = (self.to - self.from) / TICKS_MAX as f64;
                let power = 10f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .map(|m| m * power)
                    .find(|s| *s >= rough)
                    .unwrap_or(power * 10.0);
                let first = (self.from / step).ceil() as i64;
                return (first..).map(|i| i as f64 * step).take_while(|x| *x <= self.to).collect();
            }
            Scale::Log10 => 10.0,
            Scale::Log2 => 2.0,
        };
        let first = (self.from.ln() / base.ln()).floor() as i32;
        let last = (self.to.ln() / base.ln()).ceil() as i32;
        // Few decades get ticks at 2 and 5 too.
        let between: &[f64] = if base > 2.0 && last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all = (first..=last).flat_map(|i| between.iter().map(move |m| m * base.powi(i)));
        let all: Vec<f64> = all.filter(|x| (self.from..=self.to).contains(x)).collect();
        let every = all.len().div_ceil(2 * TICKS_MAX).max(1);
        all.into_iter().step_by(every).collect()
    }

    /// The text of a tick. Sizes in powers of two have binary prefixes.
    fn label(&self, x: f64) -> String {
        if self.scale != Scale::Log2 || x < 1024.0 {
            return short(x);
        }
        if x < 1_048_576.0 { format!("{}Ki", x / 1024.0) } else { format!("{}Mi", x / 1_048_576.0) }
    }
}

/// Where a chart is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Medium {
    /// In an image, below others.
    Image,
    /// In a page, whose script reads values.
    Page,
}

impl Chart {
    /// Draws the chart as an SVG element, `top` pixels down in a larger image.
    pub(super) fn svg(&self, top: f64) -> String {
        self.draw(top, Medium::Image)
    }

    /// Draws the chart as an element of a page, whose script shows values and parts of it.
    pub(super) fn in_page(&self) -> String {
        self.draw(0.0, Medium::Page)
    }

    fn draw(&self, top: f64, medium: Medium) -> String {
        let (width, height) = (WIDTH, self.height());
        let (xs, ys) = self.values();
        let mut x = Range::new(self.x.scale, xs.iter().copied(), (LEFT, WIDTH - self.right()));
        if let (Drawing::Bars(bars, _), false) = (&self.drawing, xs.is_empty()) {
            // A histogram shows the shape of a distribution, not its distance from 0.
            (x.from, x.to) = (bars[0].0, bars[bars.len() - 1].1);
        }
        let y = Range::new(self.y.scale, ys.into_iter(), (HEIGHT - BOTTOM, TOP));
        let read = if medium == Medium::Page { self.read_by_script(&x, &y) } else { String::new() };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" y=\"{top}\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\"{read}><rect class=\"b\" width=\"100%\" height=\"100%\" fill=\"white\"/>"
        );
        text(&mut svg, (LEFT, 18.0), "start", &self.title, " font-weight=\"bold\" font-size=\"13\"");
        self.axes(&mut svg, &x, &y);
        match &self.drawing {
            Drawing::Timeline(series, instants) => {
                marks(&mut svg, instants, (&x, &y));
                lines(&mut svg, &all(series, Style::Line), (&x, &y), &[]);
            }
            Drawing::Zoomable(series, instants, fine) => {
                marks(&mut svg, instants, (&x, &y));
                let fine: &[Series] = if medium == Medium::Page { fine } else { &[] };
                lines(&mut svg, &all(series, Style::Line), (&x, &y), fine);
            }
            Drawing::Lines(series) => lines(&mut svg, &all(series, Style::Joined), (&x, &y), &[]),
            Drawing::Points(points, references) => {
                let series = [all(points, Style::Marks), all(references, Style::Line)].concat();
                lines(&mut svg, &series, (&x, &y), &[]);
            }
            Drawing::Bars(bars, curve) => histogram(&mut svg, bars, curve, (&x, &y)),
            Drawing::Boxes(boxes) => box_plot(&mut svg, boxes, (&x, &y)),
        }
        svg.push_str("</svg>");
        svg
    }

    /// Its height, pixels: a legend of long names is below it.
    pub(super) fn height(&self) -> f64 {
        let below = if self.has_legend_below() { self.names().len() } else { 0 };
        HEIGHT + LEGEND_ROW * below as f64
    }

    pub(super) const fn width() -> f64 {
        WIDTH
    }

    /// The names in its legend.
    fn names(&self) -> Vec<&str> {
        let series: Vec<&Series> = match &self.drawing {
            Drawing::Timeline(series, _) | Drawing::Zoomable(series, ..) | Drawing::Lines(series) => {
                series.iter().collect()
            }
            Drawing::Points(points, references) => points.iter().chain(references).collect(),
            Drawing::Bars(_, curve) => vec![curve],
            Drawing::Boxes(_) => Vec::new(),
        };
        series.into_iter().map(|one| one.name.as_str()).filter(|name| !name.is_empty()).collect()
    }

    fn has_legend_below(&self) -> bool {
        let is_long = |name: &&str| name.chars().count() as f64 > LEGEND_USUAL;
        !matches!(self.drawing, Drawing::Bars(..)) && self.names().iter().any(is_long)
    }

    /// The room at the right of the axes, pixels.
    fn right(&self) -> f64 {
        if self.has_legend_below() || self.names().is_empty() { RIGHT_BARE } else { RIGHT }
    }

    /// The attributes that a page reads: values and pixels at the ends of both axes, and their
    /// units.
    fn read_by_script(&self, x: &Range, y: &Range) -> String {
        let axis = |range: &Range| {
            let log = u8::from(range.scale != Scale::Linear);
            format!("{} {} {} {} {log}", range.from, range.to, range.start, range.end)
        };
        let unit = |axis: &Axis| escaped(axis.label.rsplit_once(", ").map_or("", |(_, unit)| unit));
        match &self.drawing {
            Drawing::Bars(..) | Drawing::Boxes(_) => String::new(),
            _ => format!(
                " data-x=\"{}\" data-y=\"{}\" data-u=\"{}\" data-v=\"{}\"",
                axis(x),
                axis(y),
                unit(&self.x),
                unit(&self.y)
            ),
        }
    }

    fn values(&self) -> (Vec<f64>, Vec<f64>) {
        match &self.drawing {
            // An axis over time is that of the whole run.
            Drawing::Timeline(series, _) | Drawing::Lines(series) => {
                series.iter().flat_map(|s| s.points.iter().copied()).unzip()
            }
            Drawing::Zoomable(series, _, fine) => {
                series.iter().chain(fine).flat_map(|s| s.points.iter().copied()).unzip()
            }
            Drawing::Points(points, references) => {
                points.iter().chain(references).flat_map(|s| s.points.iter().copied()).unzip()
            }
            Drawing::Bars(bars, curve) => {
                let xs = bars.iter().flat_map(|b| [b.0, b.1]).collect();
                (xs, bars.iter().map(|b| b.2).chain(curve.points.iter().map(|p| p.1)).chain([0.0]).collect())
            }
            Drawing::Boxes(boxes) => {
                // Boxes are compared with each other: outliers beyond twice the highest whisker are
                // drawn at the upper edge.
                let reach = 2.0 * boxes.iter().map(|b| b.five[4]).fold(0.0, f64::max);
                let outliers =
                    |b: &Boxed| b.outliers.iter().copied().filter(|o| *o <= reach).collect::<Vec<_>>();
                let ys = boxes.iter().flat_map(|b| b.five.into_iter().chain(outliers(b)));
                ((0..=boxes.len()).map(|i| i as f64).collect(), ys.collect())
            }
        }
    }

    fn axes(&self, svg: &mut String, x: &Range, y: &Range) {
        for tick in y.ticks() {
            let at = y.at(tick);
            line(svg, (LEFT, at), (x.end, at), "#dddddd");
            text(svg, (LEFT - 6.0, at + 4.0), "end", &y.label(tick), "");
        }
        let foot = HEIGHT - BOTTOM;
        match &self.drawing {
            Drawing::Boxes(boxes) => {
                for (i, boxed) in boxes.iter().enumerate() {
                    text(svg, (x.at(i as f64 + 0.5), foot + 16.0), "middle", &boxed.name, "");
                }
            }
            _ => {
                for tick in x.ticks() {
                    line(svg, (x.at(tick), foot), (x.at(tick), foot + 4.0), "#555555");
                    text(svg, (x.at(tick), foot + 16.0), "middle", &x.label(tick), " class=\"x\"");
                }
            }
        }
        line(svg, (LEFT, foot), (x.end, foot), "#555555");
        line(svg, (LEFT, TOP), (LEFT, foot), "#555555");
        text(svg, (f64::midpoint(LEFT, x.end), HEIGHT - 8.0), "middle", &self.x.label, "");
        let middle = f64::midpoint(TOP, foot);
        let turned = format!(" transform=\"rotate(-90 14 {middle})\"");
        text(svg, (14.0, middle), "middle", &self.y.label, &turned);
    }
}

/// The style of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Marks, with lines between them.
    Joined,
    /// Marks alone.
    Marks,
    /// A line alone.
    Line,
}

fn all(series: &[Series], style: Style) -> Vec<(&Series, Style)> {
    series.iter().map(|one| (one, style)).collect()
}

/// Draws instants as dashed lines with their texts, which do not overlap.
fn marks(svg: &mut String, instants: &[Mark], (x, y): (&Range, &Range)) {
    let inside: Vec<&Mark> = instants.iter().filter(|mark| (x.from..=x.to).contains(&mark.x)).collect();
    let mut free_from = f64::NEG_INFINITY;
    for mark in inside {
        let (at, (top, foot)) = (x.at(mark.x), (y.end, y.start));
        push(
            svg,
            format_args!(
                "<line class=\"p\" x1=\"{at:.1}\" y1=\"{top:.1}\" x2=\"{at:.1}\" y2=\"{foot:.1}\" stroke=\"#888888\" stroke-dasharray=\"4 3\"><title>{} s: {}</title></line>",
                short(mark.x),
                escaped(&mark.text)
            ),
        );
        if at < free_from {
            continue;
        }
        free_from = at + MARK_FONT + 2.0;
        let letters: Vec<char> = mark.text.chars().collect();
        let words: String = match letters.len() > MARK_LETTERS_MAX {
            true => letters[..MARK_LETTERS_MAX - 1].iter().chain(&['…']).collect(),
            false => mark.text.clone(),
        };
        let (left, middle) = (at - 3.0, top + 2.0);
        let turned = format!(
            " fill=\"#666666\" font-size=\"{MARK_FONT}\" transform=\"rotate(-90 {left:.1} {middle:.1})\""
        );
        text(svg, (left, middle), "end", &words, &turned);
    }
}

/// Draws the series, and the legend of those that have a name.
fn lines(svg: &mut String, series: &[(&Series, Style)], (x, y): (&Range, &Range), fine: &[Series]) {
    for (i, &(one, style)) in series.iter().enumerate() {
        let joined = style != Style::Marks;
        let colour = COLOURS[i % COLOURS.len()];
        let below = if style == Style::Joined { (series.len() - 1 - i) as f64 } else { 0.0 };
        let width = (STROKE + STROKE_STEP * below).min(STROKE_MAX);
        let radius = (RADIUS + STROKE_STEP / 2.0 * below).min(RADIUS + STROKE_MAX / 2.0);
        // Once the colours are used up, lines are dashed.
        let dash = if i >= COLOURS.len() { " stroke-dasharray=\"5 3\"" } else { "" };
        let name = escaped(&one.name);
        let fine = fine.get(i).map_or(String::new(), |fine| packed(fine, y));
        let parts = one.points.split(|p| p.1.is_nan()).filter(|part| joined && !part.is_empty());
        for (number, part) in parts.enumerate() {
            // All samples belong to the first part of a line.
            let fine = if number == 0 { fine.as_str() } else { "" };
            let path: Vec<String> =
                part.iter().map(|p| format!("{:.1},{:.1}", x.at(p.0), y.at(p.1))).collect();
            // A line of no length is drawn as a dot, if its ends are round.
            let (ends, cap) = match &path[..] {
                [only] => (format!("{only} {only}"), " stroke-linecap=\"round\""),
                all => (all.join(" "), ""),
            };
            push(
                svg,
                format_args!(
                    "<polyline class=\"c\" data-n=\"{name}\"{fine} fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.1}\"{dash}{cap} points=\"{ends}\"/>"
                ),
            );
        }
        for p in one.points.iter().filter(|p| style != Style::Line && !p.1.is_nan()) {
            push(
                svg,
                format_args!(
                    "<circle class=\"p\" data-n=\"{name}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"{colour}\"><title>{name}: {} → {}</title></circle>",
                    x.at(p.0),
                    y.at(p.1),
                    x.label(p.0),
                    short(p.1)
                ),
            );
        }
        if !one.name.is_empty() {
            legend(svg, series, i, (x, colour, width, dash));
        }
    }
}

/// Draws the name of a series in the legend: at the right, or below where names are long.
fn legend(
    svg: &mut String,
    series: &[(&Series, Style)],
    i: usize,
    (x, colour, width, dash): (&Range, &str, f64, &str),
) {
    let (one, style) = series[i];
    let joined = style != Style::Marks;
    let is_below = x.end > WIDTH - RIGHT;
    let named = series[..i].iter().filter(|(series, _)| !series.name.is_empty()).count() as f64;
    let (left, row) = match is_below {
        true => (LEFT - 6.0, HEIGHT + 4.0 + LEGEND_ROW * named),
        false => (x.end, TOP + 8.0 + LEGEND_ROW * named),
    };
    let (from, to) = (left + 6.0, left + 24.0);
    push(
        svg,
        format_args!(
            "<g class=\"k\" data-n=\"{}\" tabindex=\"0\" role=\"button\" aria-pressed=\"true\">",
            escaped(&one.name)
        ),
    );
    let swatch = if joined {
        format!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.1}\"{dash} points=\"{from},{row} {to},{row}\"/>"
        )
    } else {
        format!("<rect x=\"{}\" y=\"{}\" width=\"6\" height=\"6\" fill=\"{colour}\"/>", to - 9.0, row - 3.0)
    };
    svg.push_str(&swatch);
    text(svg, (left + 28.0, row + 4.0), "start", &fitted(&one.name), "");
    svg.push_str("</g>");
}

/// All samples of a line for a page: the start and the step of their times, and two letters for
/// each value, a part of the axis in 1295ths.
fn packed(fine: &Series, y: &Range) -> String {
    let [(start, _), (next, _), ..] = fine.points[..] else { return String::new() };
    let letter = |part: u32| char::from_digit(part, 36).unwrap_or('0');
    let value = |(_, value): &(f64, f64)| {
        if !value.is_finite() {
            return ['-', '-'];
        }
        let share = (y.at(*value) - y.start) / (y.end - y.start);
        let part = (share * 1295.0).round().clamp(0.0, 1295.0) as u32;
        [letter(part / 36), letter(part % 36)]
    };
    let letters: String = fine.points.iter().flat_map(value).collect();
    format!(" data-s=\"{start:.6} {:.6}\" data-f=\"{letters}\"", next - start)
}

/// Returns a name for a legend. One that is too long keeps its ends.
fn fitted(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LEGEND_MAX {
        return name.to_owned();
    }
    let half = LEGEND_MAX / 2;
    letters[..half].iter().chain(&['…']).chain(&letters[letters.len() - half..]).collect()
}

fn histogram(svg: &mut String, bars: &[(f64, f64, f64)], curve: &Series, (x, y): (&Range, &Range)) {
    for &(from, to, count) in bars {
        let (left, top) = (x.at(from), y.at(count));
        push(
            svg,
            format_args!(
                "<rect class=\"p\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#56b4e9\"><title>{} … {}: {count}</title></rect>",
                (x.at(to) - left - 0.5).max(0.5),
                (y.at(0.0) - top).max(0.0),
                short(from),
                short(to)
            ),
        );
    }
    let path: Vec<String> =
        curve.points.iter().map(|p| format!("{:.1},{:.1}", x.at(p.0), y.at(p.1))).collect();
    push(
        svg,
        format_args!(
            "<polyline fill=\"none\" stroke=\"#d55e00\" stroke-width=\"1.6\" points=\"{}\"/>",
            path.join(" ")
        ),
    );
    line(svg, (x.end + 8.0, TOP + 8.0), (x.end + 24.0, TOP + 8.0), "#d55e00");
    text(svg, (x.end + 28.0, TOP + 12.0), "start", &curve.name, "");
}

fn box_plot(svg: &mut String, boxes: &[Boxed], (x, y): (&Range, &Range)) {
    for (i, boxed) in boxes.iter().enumerate() {
        let (left, right) = (x.at(i as f64 + 0.3), x.at(i as f64 + 0.7));
        let middle = f64::midpoint(left, right);
        let [low, q1, median, q3, high] = boxed.five.map(|v| y.at(v));
        line(svg, (middle, low), (middle, q1), "#0072b2");
        line(svg, (middle, q3), (middle, high), "#0072b2");
        line(svg, (left + 6.0, low), (right - 6.0, low), "#0072b2");
        line(svg, (left + 6.0, high), (right - 6.0, high), "#0072b2");
        push(
            svg,
            format_args!(
                "<rect class=\"p\" x=\"{left:.1}\" y=\"{q3:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#cfe5f5\" stroke=\"#0072b2\"><title>{}: median {}, quartiles {} and {}, whiskers {} and {}</title></rect>",
                right - left,
                (q1 - q3).max(1.0),
                escaped(&boxed.name),
                short(boxed.five[2]),
                short(boxed.five[1]),
                short(boxed.five[3]),
                short(boxed.five[0]),
                short(boxed.five[4])
            ),
        );
        line(svg, (left, median), (right, median), "#d55e00");
        for outlier in &boxed.outliers {
            push(
                svg,
                format_args!(
                    "<circle class=\"p\" cx=\"{middle:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"none\" stroke=\"#999999\"><title>outlier {}</title></circle>",
                    y.at(*outlier),
                    short(*outlier)
                ),
            );
        }
    }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    push(
        svg,
        format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
            from.0, from.1, to.0, to.1
        ),
    );
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, words: &str, more: &str) {
    push(
        svg,
        format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\"{more}>{}</text>",
            at.0,
            at.1,
            escaped(words)
        ),
    );
}

fn push(svg: &mut String, piece: std::fmt::Arguments<'_>) {
    svg.write_fmt(piece).expect("a String takes all");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_map_their_ends_to_those_of_the_frame() {
        let linear = Range::new(Scale::Linear, [0.0, 100.0].into_iter(), (10.0, 110.0));
        assert_eq!((linear.at(0.0), linear.at(105.0)), (10.0, 110.0));
        let log = Range::new(Scale::Log10, [1.0, 1000.0].into_iter(), (0.0, 100.0));
        assert!((log.at(1000f64.sqrt()) - 50.0).abs() < 1e-9);
        assert_eq!(log.ticks(), [1.0, 10.0, 100.0, 1000.0]);
        let short = Range::new(Scale::Log10, [3.0, 40.0].into_iter(), (0.0, 100.0));
        assert_eq!(short.ticks(), [5.0, 10.0, 20.0]);
    }

    #[test]
    fn instants_are_lines_with_their_texts_and_texts_do_not_overlap() {
        let mark = |x: f64, text: &str| Mark { x, text: text.to_owned() };
        let marks = vec![mark(1.0, "<a>"), mark(1.01, "b"), mark(5.0, &"x".repeat(60)), mark(99.0, "later")];
        let points = (0..10).map(|i| (f64::from(i), 2.0)).collect();
        let chart = Chart {
            title: "t".to_owned(),
            x: Axis::new("time, s", Scale::Linear),
            y: Axis::new("y", Scale::Linear),
            drawing: Drawing::Timeline(vec![Series { name: "run".to_owned(), points }], marks),
        };
        let svg = chart.svg(0.0);
        assert_eq!(
            (svg.matches("stroke-dasharray").count(), svg.matches("<circle").count()),
            (3, 0),
            "{svg}"
        );
        assert!(svg.contains(">&lt;a&gt;</text>") && !svg.contains(">b</text>"), "{svg}");
        assert!(svg.contains(&format!(">{}…</text>", "x".repeat(43))), "{svg}");
        assert!(svg.contains("<title>1.01 s: b</title>"), "{svg}");
    }

    #[test]
    fn a_line_has_gaps_where_values_are_missing() {
        let points = vec![
            (0.0, 1.0),
            (1.0, 2.0),
            (2.0, f64::NAN),
            (3.0, 2.0),
            (3.5, f64::NAN),
            (4.0, 1.0),
            (5.0, 1.0),
        ];
        let chart = Chart {
            title: "t".to_owned(),
            x: Axis::new("time, s", Scale::Linear),
            y: Axis::new("y", Scale::Linear),
            drawing: Drawing::Timeline(vec![Series { name: String::new(), points }], Vec::new()),
        };
        let svg = chart.svg(0.0);
        assert_eq!((svg.matches("<polyline").count(), svg.matches("linecap").count()), (3, 1), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn no_value_and_one_value_are_drawn_without_panic() {
        for values in [vec![], vec![5.0], vec![0.0], vec![f64::NAN]] {
            for scale in [Scale::Linear, Scale::Log10, Scale::Log2] {
                let range = Range::new(scale, values.iter().copied(), (0.0, 1.0));
                assert!(range.at(5.0).is_finite() && range.ticks().len() < 100);
            }
        }
    }
}
