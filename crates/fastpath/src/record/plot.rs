//! Records as sections of a report: throughput, queueing delay, drops, lateness and RTT over time,
//! several runs over one another, with the events of the runs.

use super::read::{FlowSeries, LinkSeries, RunRecord};
use fastpath_report::{Axis, Chart, Drawing, Grid, Mark, Scale, Section, Series, short};
use std::collections::BTreeMap;

/// The directions and flows that are drawn: those with most bytes.
const DIRECTIONS_MAX: usize = 6;
const FLOWS_MAX: usize = 8;
/// Points of a line.
const POINTS_MAX: f64 = 350.0;
/// Events that are drawn and listed.
const EVENTS_MAX: usize = 40;

/// What is known of a direction at a point of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combine {
    /// The sum of an interval, per second.
    Rate,
    /// The largest value of an interval.
    Largest,
}

/// Returns the sections of a report on these runs: one for each direction of a link that carried
/// most, then the flows.
pub fn report_of_runs(runs: &[RunRecord]) -> Vec<Section> {
    let mut sections = vec![overview(runs)];
    sections.extend(busiest(runs).into_iter().map(|(link, from)| direction(runs, &link, &from)));
    sections.extend(flows(runs));
    sections
}

/// The runs and their events.
fn overview(runs: &[RunRecord]) -> Section {
    let text = |run: &RunRecord, path: &str| match run.run.pointer(path) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) if !value.is_null() => value.to_string(),
        _ => "–".to_owned(),
    };
    let rows = runs.iter().map(|run| {
        let carried: f64 = run.links.iter().map(|link| link.total("bytes_out")).sum();
        let dropped: f64 = run.links.iter().flat_map(LinkSeries::drops).sum();
        let cells = [
            run.name.clone(),
            short(run.duration_s),
            short(carried / 1e6),
            short(dropped),
            text(run, "/seed"),
            text(run, "/version"),
            text(run, "/machine/name"),
        ];
        cells.to_vec()
    });
    let titles = ["run", "seconds", "MB over links", "frames dropped", "seed", "version", "machine"];
    let mut notes = Vec::new();
    for run in runs {
        let of = if runs.len() > 1 { format!("{}: ", run.name) } else { String::new() };
        for event in run.events.iter().take(EVENTS_MAX) {
            notes.push(format!("{of}at {} s, {}", short(event.at_s), event.text));
        }
        if run.events.len() > EVENTS_MAX {
            notes.push(format!("{of}{} more events are in events.csv", run.events.len() - EVENTS_MAX));
        }
    }
    Section { title: "Runs".to_owned(), notes, charts: vec![], tables: vec![Grid::new(titles, rows)] }
}

/// The directions that carried most, over all runs.
fn busiest(runs: &[RunRecord]) -> Vec<(String, String)> {
    let mut bytes: BTreeMap<(String, String), f64> = BTreeMap::new();
    for series in runs.iter().flat_map(|run| &run.links) {
        let carried = series.total("bytes_in");
        *bytes.entry((series.link.clone(), series.from.clone())).or_default() += carried;
    }
    let mut all: Vec<_> = bytes.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.into_iter().take(DIRECTIONS_MAX).map(|(direction, _)| direction).collect()
}

fn direction(runs: &[RunRecord], link: &str, from: &str) -> Section {
    let draw = |title: &str, unit: &str, values: &dyn Fn(&LinkSeries) -> Vec<f64>, combine: Combine| {
        let series = runs.iter().filter_map(|run| {
            let series = run.links.iter().find(|series| series.link == link && series.from == from)?;
            Some(Series {
                name: run.name.clone(),
                points: points(run, &series.times, &values(series), combine),
            })
        });
        let series: Vec<Series> = series.collect();
        let is_empty = series.iter().flat_map(|series| &series.points).all(|point| point.1 == 0.0);
        (!is_empty).then(|| chart(title, unit, series, runs))
    };
    let column = |name: &'static str, factor: f64| {
        move |series: &LinkSeries| -> Vec<f64> {
            series.columns.get(name).map_or(Vec::new(), |values| values.iter().map(|v| v * factor).collect())
        }
    };
    let charts = [
        draw("Throughput", "Mbit/s", &column("bytes_out", 8e-6), Combine::Rate),
        draw("Queueing delay", "ms", &column("queue_delay_s", 1e3), Combine::Largest),
        draw("Drops", "frames/s", &LinkSeries::drops, Combine::Rate),
        draw("Marks", "frames/s", &column("marked", 1.0), Combine::Rate),
        draw("Lateness of the engine", "ms", &column("lateness_max_s", 1e3), Combine::Largest),
    ];
    Section {
        title: format!("Link {link} from {from}"),
        notes: Vec::new(),
        charts: charts.into_iter().flatten().collect(),
        tables: Vec::new(),
    }
}

/// The RTT and the throughput of the largest flows.
fn flows(runs: &[RunRecord]) -> Option<Section> {
    let mut all: Vec<(&RunRecord, &FlowSeries, f64)> = Vec::new();
    for run in runs {
        let bytes =
            |flow: &FlowSeries| flow.columns.get("bytes_out").map_or(0.0, |values| values.iter().sum());
        all.extend(run.flows.iter().map(|flow| (run, flow, bytes(flow))));
    }
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    all.truncate(FLOWS_MAX);
    let name = |run: &RunRecord, flow: &FlowSeries| match runs.len() {
        1 => flow.flow.clone(),
        _ => format!("{}: {}", run.name, flow.flow),
    };
    let throughput = all.iter().map(|(run, flow, _)| {
        let values: Vec<f64> = flow.columns["bytes_out"].iter().map(|bytes| bytes * 8e-6).collect();
        Series { name: name(run, flow), points: points(run, &flow.times, &values, Combine::Rate) }
    });
    let throughput: Vec<Series> = throughput.collect();
    let rtt = all.iter().filter_map(|(run, flow, _)| {
        let rows = flow.times.iter().zip(&flow.columns["rtt_mean_s"]);
        let points: Vec<(f64, f64)> =
            rows.filter(|(_, rtt)| !rtt.is_nan()).map(|(at, rtt)| (*at, rtt * 1e3)).collect();
        (!points.is_empty()).then(|| Series { name: name(run, flow), points: thinned(points) })
    });
    let rtt: Vec<Series> = rtt.collect();
    if throughput.is_empty() {
        return None;
    }
    let mut charts = vec![chart("Throughput of flows", "Mbit/s", throughput, runs)];
    let mut notes = Vec::new();
    if !rtt.is_empty() {
        charts.push(chart("Round-trip time of flows", "ms", rtt, runs));
        notes.push(
            "The RTT is that of TCP by its timestamps, at the interface of the sender: network and receiver."
                .to_owned(),
        );
    }
    Some(Section { title: "Flows".to_owned(), notes, charts, tables: Vec::new() })
}

fn chart(title: &str, unit: &str, series: Vec<Series>, runs: &[RunRecord]) -> Chart {
    let mut marks: Vec<Mark> = Vec::new();
    for event in runs.iter().flat_map(|run| run.events.iter().take(EVENTS_MAX)) {
        if !marks.iter().any(|mark| mark.text == event.text && (mark.x - event.at_s).abs() < 0.05) {
            marks.push(Mark { x: event.at_s, text: event.text.clone() });
        }
    }
    Chart {
        title: title.to_owned(),
        x: Axis::new("time, s", Scale::Linear),
        y: Axis::new(&format!("{}, {unit}", title.to_lowercase()), Scale::Linear),
        drawing: Drawing::Timeline(series, marks),
    }
}

/// Returns the points of a line over the whole run, with zeros where there is no row.
fn points(run: &RunRecord, times: &[f64], values: &[f64], combine: Combine) -> Vec<(f64, f64)> {
    let duration = run.duration_s.max(run.interval_s);
    // Whole intervals, so that each point has the same number of samples.
    let samples = (duration / run.interval_s / POINTS_MAX).ceil().max(1.0);
    let width = samples * run.interval_s;
    let count = (duration / width).ceil() as usize;
    let mut bins = vec![0f64; count.max(1)];
    for (at, value) in times.iter().zip(values).filter(|(_, value)| !value.is_nan()) {
        // A row is the end of its interval.
        let place = ((at - run.interval_s / 2.0) / width).max(0.0) as usize;
        let last = bins.len() - 1;
        let bin = &mut bins[place.min(last)];
        *bin = match combine {
            Combine::Rate => *bin + value / width,
            Combine::Largest => bin.max(*value),
        };
    }
    bins.into_iter().enumerate().map(|(place, value)| ((place as f64 + 0.5) * width, value)).collect()
}

/// Keeps the largest of points that are close to each other.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let group = points.len().div_ceil(POINTS_MAX as usize).max(1);
    let largest =
        |group: &[(f64, f64)]| group.iter().copied().fold(group[0], |a, b| if b.1 > a.1 { b } else { a });
    points.chunks(group).map(largest).collect()
}
