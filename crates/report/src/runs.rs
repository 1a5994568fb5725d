//! Runs as sections of a report: throughput, queueing delay, drops, lateness and RTT over time,
//! several runs over one another, with the events of the runs; the metrics of repetitions.

use crate::text::number;
use crate::{Axis, Boxed, Chart, Choice, Drawing, Grid, Mark, Scale, Section, Series, short};
use fastpath_record::{FlowSeries, GAP_INTERVALS, LinkSeries, Repetition, Run, RunSeries, SeriesRows};
use fastpath_units::stats::{median, quantile, sorted};
use std::collections::{BTreeMap, BTreeSet};

/// The directions and flows that are drawn: those with most bytes.
const DIRECTIONS_MAX: usize = 6;
const FLOWS_MAX: usize = 8;
/// Points of a line, and those of all samples of a line that a page keeps to show a part of it.
const POINTS_MAX: usize = 300;
const FINE_MAX: usize = 2000;
/// Samples are kept for as many lines.
const FINE_LINES_MAX: usize = 40;
/// Events that are drawn and listed.
const EVENTS_MAX: usize = 40;
/// Gaps that are listed.
const GAPS_MAX: usize = 5;
/// Boxes of a chart, and the samples that make a box.
const BOXES_MAX: usize = 40;
const BOX_SAMPLES_MIN: usize = 2;

/// What is known of a direction at a point of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combine {
    /// The sum of an interval, per second.
    Rate,
    /// The largest value of an interval.
    Largest,
}

/// A run that was recorded over time.
struct TimedRun<'r> {
    name: &'r str,
    series: &'r RunSeries,
}

/// Returns the sections of a report on these runs: all of them, the metrics of repetitions, one for
/// each direction of a link that carried most, and the flows.
pub(crate) fn sections(runs: &[Run], choice: &Choice) -> Vec<Section> {
    let over_time: Vec<TimedRun<'_>> = runs
        .iter()
        .filter_map(|run| run.series.as_ref().map(|series| TimedRun { name: &run.name, series }))
        .collect();
    let mut sections = vec![overview(runs)];
    sections.extend(metrics(runs));
    let directions = busiest(&over_time, choice);
    sections[0].tables.splice(0..0, medians(&over_time, &directions));
    sections.extend(directions.iter().map(|(link, from)| direction(&over_time, link, from)));
    sections.extend(flows(&over_time, choice));
    // Samples are kept while a page stays small.
    let charts = sections.iter_mut().flat_map(|section| &mut section.charts);
    let mut kept = 0;
    for chart in charts {
        if let Drawing::Zoomable(series, _, fine) = &mut chart.drawing {
            kept += series.len();
            if kept > FINE_LINES_MAX {
                fine.clear();
            }
        }
    }
    sections
}

/// The runs, where they come from, and their events.
fn overview(runs: &[Run]) -> Section {
    let none = || "–".to_owned();
    let has_conditions = runs.iter().any(|run| run.repetition.is_some());
    let rows = runs.iter().map(|run| {
        let mut cells = vec![run.name.clone()];
        if has_conditions {
            let condition = run.repetition.as_ref().map(Repetition::condition_words);
            cells.push(condition.filter(|words| !words.is_empty()).unwrap_or_else(none));
        }
        cells.extend(match &run.series {
            Some(series) => {
                let carried: f64 = series.links.iter().map(|link| link.total("bytes_out")).sum();
                let dropped: f64 = series.links.iter().flat_map(LinkSeries::drops).sum();
                [short(series.duration_s), short(carried / 1e6), short(dropped)]
            }
            None => [none(), none(), none()],
        });
        let machine = run.origin.machine.as_ref().map_or_else(none, |machine| machine.name.clone());
        cells.extend([run.origin.seed.to_string(), run.origin.version.clone(), machine]);
        cells
    });
    let condition = has_conditions.then_some("condition");
    let titles = ["run"].into_iter().chain(condition);
    let titles = titles.chain(["seconds", "MB over links", "frames dropped", "seed", "version", "machine"]);
    let tables = vec![Grid::new(titles, rows)];
    Section {
        title: "Runs".to_owned(),
        notes: runs.iter().flat_map(|run| notes(run, runs)).collect(),
        charts: vec![],
        tables,
    }
}

/// What is to be said of a run: its events, and why tables of its experiment leave it out.
fn notes(run: &Run, runs: &[Run]) -> Vec<String> {
    let of = if runs.len() > 1 { format!("{}: ", run.name) } else { String::new() };
    let mut notes = Vec::new();
    if let Some(why) = run.repetition.as_ref().and_then(Repetition::why_left_out) {
        notes.push(format!("{of}left out of the tables of its experiment: {why}"));
    }
    if let Some(series) = &run.series {
        notes.extend(series.disturbed.as_ref().map(|why| format!("{of}disturbed: {why}")));
        notes.extend(gap_notes(series).into_iter().map(|note| format!("{of}{note}")));
    }
    let events = run.series.as_ref().map_or(&[][..], |series| &series.events);
    for event in events.iter().take(EVENTS_MAX) {
        notes.push(format!("{of}at {} s, {}", short(event.at_s), event.text));
    }
    if events.len() > EVENTS_MAX {
        notes.push(format!("{of}{} more events are in events.csv", events.len() - EVENTS_MAX));
    }
    notes
}

/// What is to be said of the times without a sample.
fn gap_notes(series: &RunSeries) -> Vec<String> {
    if series.is_nominal {
        let what =
            "its rows have no interval_s (recorded by version 0.1): rates are over the interval asked for";
        return vec![what.to_owned()];
    }
    let gaps = series.gaps();
    let note = |(from_s, to_s): &(f64, f64)| {
        format!(
            "no sample was taken from {from_s:.3} to {to_s:.3} s: rates in it are means, and queues and round-trip \
             times are not drawn"
        )
    };
    let mut notes: Vec<String> = gaps.iter().take(GAPS_MAX).map(note).collect();
    if gaps.len() > GAPS_MAX {
        notes.push(format!("{} more times without samples", gaps.len() - GAPS_MAX));
    }
    notes
}

/// The metrics of repetitions: their values, and a box plot of the samples of each.
fn metrics(runs: &[Run]) -> Option<Section> {
    let repetitions = || runs.iter().filter_map(|run| Some((run, run.repetition.as_ref()?)));
    let names: BTreeSet<&String> =
        repetitions().flat_map(|(_, repetition)| repetition.values.keys()).collect();
    if names.is_empty() {
        return None;
    }
    let cell = |repetition: &Repetition, name: &String| {
        repetition.values.get(name).map_or_else(|| "–".to_owned(), |value| number(*value))
    };
    let rows = repetitions().map(|(run, repetition)| {
        let values = names.iter().map(|name| cell(repetition, name));
        [run.name.clone()].into_iter().chain(values).collect()
    });
    let titles = ["run".to_owned()].into_iter().chain(names.iter().map(|name| (*name).clone()));
    let tables = vec![Grid::new(titles, rows)];
    let boxes = |name: &&String| {
        let drawn = repetitions().filter_map(|(run, repetition)| {
            let samples = repetition.samples.get(*name).filter(|samples| samples.len() >= BOX_SAMPLES_MIN)?;
            Some(Boxed::of(run.name.clone(), samples))
        });
        let drawn: Vec<Boxed> = drawn.take(BOXES_MAX).collect();
        (!drawn.is_empty()).then(|| Chart {
            title: (*name).clone(),
            x: Axis::new("", Scale::Linear),
            y: Axis::new(name, Scale::Linear),
            drawing: Drawing::Boxes(drawn),
        })
    };
    let charts = names.iter().filter_map(boxes).collect();
    let notes = vec![
        "The samples of a run are drawn as a box: quartiles, and whiskers within 1.5 of their distance."
            .to_owned(),
    ];
    Some(Section { title: "Metrics".to_owned(), notes, charts, tables })
}

/// The medians of each direction and run: what to look at first.
fn medians(runs: &[TimedRun<'_>], directions: &[(String, String)]) -> Option<Grid> {
    let mut rows = Vec::new();
    for (link, from) in directions {
        for run in runs {
            let is_it = |series: &&LinkSeries| series.link == *link && series.from == *from;
            let Some(series) = run.series.links.iter().find(is_it) else { continue };
            let bins = run.series.round_bins(POINTS_MAX);
            let values = |name: &str| series.columns.get(name).map_or(&[][..], Vec::as_slice);
            let middle = |values: Vec<f64>, share: f64, factor: f64| {
                let known = sorted(values.into_iter().filter(|value| value.is_finite()));
                if known.is_empty() { "–".to_owned() } else { short(quantile(&known, share) * factor) }
            };
            let waits = || values("queue_delay_s").to_vec();
            rows.push(vec![
                format!("{link} from {from}"),
                run.name.to_owned(),
                middle(bins.rates(series.rows(), values("bytes_out")), 0.5, 8e-6),
                middle(waits(), 0.5, 1e3),
                middle(waits(), 0.95, 1e3),
                short(series.drops().iter().sum()),
                short(series.total("marked")),
            ]);
        }
    }
    let titles = [
        "link",
        "run",
        "throughput, Mbit/s (median)",
        "queueing delay, ms (median)",
        "(95th percentile)",
        "frames dropped",
        "marked",
    ];
    (!rows.is_empty()).then(|| Grid::new(titles, rows))
}

/// The directions that are chosen, or those that carried most, over all runs.
fn busiest(runs: &[TimedRun<'_>], choice: &Choice) -> Vec<(String, String)> {
    let mut bytes: BTreeMap<(String, String), f64> = BTreeMap::new();
    for series in runs.iter().flat_map(|run| &run.series.links) {
        let carried = series.total("bytes_in");
        *bytes.entry((series.link.clone(), series.from.clone())).or_default() += carried;
    }
    let is_chosen = |((link, _), _): &((String, String), f64)| choice.links.iter().any(|name| name == link);
    let mut all: Vec<_> = bytes.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    if choice.links.is_empty() {
        all.truncate(DIRECTIONS_MAX);
    } else {
        all.retain(is_chosen);
    }
    all.into_iter().map(|(direction, _)| direction).collect()
}

fn direction(runs: &[TimedRun<'_>], link: &str, from: &str) -> Section {
    let draw = |title: &str, unit: &str, values: &dyn Fn(&LinkSeries) -> Vec<f64>, combine: Combine| {
        let lines = |count_max: usize| -> Vec<Series> {
            let line = |run: &TimedRun| {
                let is_it = |series: &&LinkSeries| series.link == link && series.from == from;
                let series = run.series.links.iter().find(is_it)?;
                let points = points(run.series, series.rows(), &values(series), combine, count_max);
                Some(Series { name: run.name.to_owned(), points })
            };
            runs.iter().filter_map(line).collect()
        };
        let series = lines(POINTS_MAX);
        let is_empty =
            series.iter().flat_map(|series| &series.points).all(|point| point.1 == 0.0 || point.1.is_nan());
        // Images have no headings: a chart names its link and direction itself.
        let titles = [format!("{title}, {link} from {from}"), title.to_lowercase()];
        (!is_empty).then(|| chart(titles, unit, (series, lines(FINE_MAX)), runs))
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

/// The RTT and the throughput of the flows that are chosen, or of the largest.
fn flows(runs: &[TimedRun<'_>], choice: &Choice) -> Option<Section> {
    let mut all: Vec<(&TimedRun<'_>, &FlowSeries, f64)> = Vec::new();
    for run in runs {
        let bytes =
            |flow: &FlowSeries| flow.columns.get("bytes_out").map_or(0.0, |values| values.iter().sum());
        all.extend(run.series.flows.iter().map(|flow| (run, flow, bytes(flow))));
    }
    if !choice.flows.is_empty() {
        all.retain(|(_, flow, _)| choice.flows.iter().any(|part| flow.flow.contains(part.as_str())));
    }
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    all.truncate(FLOWS_MAX);
    let name = |run: &TimedRun<'_>, flow: &FlowSeries| match runs.len() {
        1 => flow.flow.clone(),
        _ => format!("{}: {}", run.name, flow.flow),
    };
    let throughput = |count_max: usize| -> Vec<Series> {
        let line = |(run, flow, _): &(&TimedRun, &FlowSeries, f64)| {
            let bytes = flow.columns.get("bytes_out").map_or(&[][..], Vec::as_slice);
            let values: Vec<f64> = bytes.iter().map(|bytes| bytes * 8e-6).collect();
            let points = points(run.series, flow.rows(), &values, Combine::Rate, count_max);
            Series { name: name(run, flow), points }
        };
        all.iter().map(line).collect()
    };
    let [fine, throughput] = [FINE_MAX, POINTS_MAX].map(throughput);
    let rtt = all.iter().filter_map(|(run, flow, _)| {
        let rows = flow.times.iter().zip(flow.columns.get("rtt_mean_s")?);
        let points: Vec<(f64, f64)> =
            rows.filter(|(_, rtt)| !rtt.is_nan()).map(|(at, rtt)| (*at, rtt * 1e3)).collect();
        (!points.is_empty())
            .then(|| Series { name: name(run, flow), points: broken(points, run.series.interval_s) })
    });
    let rtt: Vec<Series> = rtt.collect();
    if throughput.is_empty() {
        return None;
    }
    let titles = |title: &str| [title.to_owned(), title.to_lowercase()];
    let mut charts = vec![chart(titles("Throughput of flows"), "Mbit/s", (throughput, fine), runs)];
    let mut notes = Vec::new();
    if !rtt.is_empty() {
        charts.push(chart(titles("Round-trip time of flows"), "ms", (rtt, Vec::new()), runs));
        notes.push(
            "The RTT is that of TCP by its timestamps, at the interface of the sender: network and receiver."
                .to_owned(),
        );
    }
    Some(Section { title: "Flows".to_owned(), notes, charts, tables: Vec::new() })
}

/// A chart with this title and title of its vertical axis.
fn chart(
    [title, what]: [String; 2],
    unit: &str,
    (series, fine): (Vec<Series>, Vec<Series>),
    runs: &[TimedRun<'_>],
) -> Chart {
    let mut marks: Vec<Mark> = Vec::new();
    for event in runs.iter().flat_map(|run| run.series.events.iter().take(EVENTS_MAX)) {
        if !marks.iter().any(|mark| mark.text == event.text && (mark.x - event.at_s).abs() < 0.05) {
            marks.push(Mark { x: event.at_s, text: event.text.clone() });
        }
    }
    let points = |series: &[Series]| series.iter().map(|one| one.points.len()).max().unwrap_or(0);
    let fine = if points(&fine) > points(&series) { fine } else { Vec::new() };
    Chart {
        title,
        x: Axis::new("time, s", Scale::Linear),
        y: Axis::new(&format!("{what}, {unit}"), Scale::Linear),
        drawing: Drawing::Zoomable(series, marks, fine),
    }
}

/// Returns the points of a line over the whole run: 0 where there is no row, NaN where no sample
/// was taken.
fn points(
    run: &RunSeries,
    rows: SeriesRows<'_>,
    values: &[f64],
    combine: Combine,
    count_max: usize,
) -> Vec<(f64, f64)> {
    let bins = run.round_bins(count_max);
    let values = match combine {
        Combine::Rate => bins.rates(rows, values),
        Combine::Largest => bins.largest(rows, values),
    };
    values.into_iter().enumerate().map(|(bin, value)| (bins.middle(bin), value)).collect()
}

/// Breaks a line where its points are much farther from each other than usual, and keeps the
/// largest of points that are close to each other. NaN is a break.
fn broken(points: Vec<(f64, f64)>, interval_s: f64) -> Vec<(f64, f64)> {
    let usual = median(points.windows(2).map(|pair| pair[1].0 - pair[0].0));
    let longest = GAP_INTERVALS * usual.max(interval_s);
    let group = points.len().div_ceil(POINTS_MAX).max(1);
    let largest =
        |group: &[(f64, f64)]| group.iter().copied().fold(group[0], |a, b| if b.1 > a.1 { b } else { a });
    let mut line: Vec<(f64, f64)> = Vec::new();
    for part in points.chunk_by(|a, b| b.0 - a.0 <= longest) {
        if let Some((last, _)) = line.last() {
            line.push((f64::midpoint(*last, part[0].0), f64::NAN));
        }
        line.extend(part.chunks(group).map(largest));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use std::collections::BTreeMap;

    const LINK: f64 = 20e6;

    /// A run of 20 s on a link of 20 Mbit/s that carries all it can, sampled each 10 ms, but for a
    /// stall from 5 to 17 s. A sampler that makes up for missed ticks takes the next ones at once.
    fn stalled() -> RunSeries {
        let ticks =
            (10..=5000).step_by(10).chain([17_000, 17_001, 17_002]).chain((17_010..=20_000).step_by(10));
        let times: Vec<f64> = ticks.map(|ms: u32| f64::from(ms) / 1000.0).collect();
        let intervals: Vec<f64> =
            times.iter().scan(0.0, |last, at| Some(at - std::mem::replace(last, *at))).collect();
        let bytes: Vec<f64> = intervals.iter().map(|seconds| LINK / 8.0 * seconds).collect();
        let column = |name: &str, values: Vec<f64>| (name.to_owned(), values);
        let constant = |value: f64| vec![value; times.len()];
        let links = vec![LinkSeries {
            link: "bn".to_owned(),
            from: "a".to_owned(),
            times: times.clone(),
            intervals: intervals.clone(),
            columns: BTreeMap::from([
                column("bytes_in", bytes.clone()),
                column("bytes_out", bytes.clone()),
                column("queue_delay_s", constant(0.05)),
            ]),
        }];
        let flows = vec![FlowSeries {
            flow: "tcp 10.0.0.1:1 > 10.0.0.2:2".to_owned(),
            times: times.clone(),
            intervals,
            columns: BTreeMap::from([column("bytes_out", bytes), column("rtt_mean_s", constant(0.08))]),
        }];
        RunSeries { interval_s: 0.01, duration_s: 20.0, links, flows, ..RunSeries::default() }
    }

    #[test]
    fn no_rate_is_above_the_link_after_a_stall_and_gaps_are_not_drawn() {
        let series = stalled();
        let run = Run { name: "r".to_owned(), series: Some(series.clone()), ..Run::default() };
        let link = &series.links[0];
        let rates = points(&series, link.rows(), &link.columns["bytes_out"], Combine::Rate, POINTS_MAX);
        assert!(rates.iter().all(|(_, rate)| (rate * 8.0 / LINK - 1.0).abs() < 1e-3), "{rates:?}");
        let queue =
            points(&series, link.rows(), &link.columns["queue_delay_s"], Combine::Largest, POINTS_MAX);
        let inside = queue.iter().filter(|(at, _)| (5.1..16.9).contains(at));
        assert!(inside.clone().count() > 100 && inside.clone().all(|(_, delay)| delay.is_nan()), "{queue:?}");
        let outside = queue.iter().filter(|(at, _)| !(4.9..17.1).contains(at));
        assert!(outside.clone().all(|(_, delay)| *delay == 0.05), "{queue:?}");
        let rtt = link.times.iter().map(|at| (*at, 80.0)).collect();
        let rtt = broken(rtt, series.interval_s);
        assert_eq!(rtt.iter().filter(|(_, rtt)| rtt.is_nan()).count(), 1, "{rtt:?}");
        let notes = &sections(&[run], &Choice::default())[0].notes;
        let note = "no sample was taken from 5.000 to 17.000 s: rates in it are means";
        assert!(notes.iter().any(|found| found.starts_with(note)), "{notes:?}");
    }

    #[test]
    fn charts_name_link_and_direction_and_text_has_no_empty_heading() {
        let run = |name: &str, series: RunSeries| Run {
            name: name.to_owned(),
            series: Some(series),
            ..Run::default()
        };
        let report = Report::from_sections("r".to_owned(), Vec::new())
            .with_runs(&[run("one", stalled()), run("two", stalled())], &Choice::default());
        let image = report.svg();
        for title in [">Throughput, bn from a<", ">Queueing delay, bn from a<", ">Throughput of flows<"] {
            assert!(image.contains(title), "{title}");
        }
        // A flow has a long name: the legend is below its chart, in letters of the usual size.
        assert!(image.contains(">one: tcp 10.0.0.1:1 &gt; 10.0.0.2:2</text>"), "{image}");
        let text = report.markdown();
        let is_heading = |line: &str| line.starts_with("## ");
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert!(!lines.windows(2).any(|pair| is_heading(pair[0]) && is_heading(pair[1])), "{text}");
        assert!(text.contains("| bn from a | one | 20 | 50 | 50 | 0 | 0 |"), "{text}");
        // A page has the samples between the points, and an image has not.
        assert!(report.html().contains(" data-f=\"") && !image.contains(" data-f=\""));
        let other = Choice { links: vec!["other".to_owned()], flows: vec!["10.9.9.9".to_owned()] };
        let report =
            Report::from_sections("r".to_owned(), Vec::new()).with_runs(&[run("one", stalled())], &other);
        assert!(!report.has_charts());
    }

    #[test]
    fn a_run_of_no_and_of_one_sample_is_drawn_without_panic() {
        let mut none = stalled();
        none.links[0].times.clear();
        none.links[0].intervals.clear();
        none.links[0].columns.values_mut().for_each(Vec::clear);
        none.flows.clear();
        let mut one = stalled();
        one.flows.clear();
        one.links[0].times.truncate(1);
        one.links[0].intervals.truncate(1);
        one.links[0].columns.values_mut().for_each(|values| values.truncate(1));
        for series in [none, one, RunSeries { interval_s: 0.01, ..RunSeries::default() }] {
            let run = Run { name: "r".to_owned(), series: Some(series), ..Run::default() };
            let report =
                Report::from_sections("r".to_owned(), Vec::new()).with_runs(&[run], &Choice::default());
            assert!(report.html().contains("<h2>Runs</h2>") && !report.svg().contains("NaN"));
        }
    }

    #[test]
    fn flows_with_few_round_trips_stay_lines() {
        let sparse: Vec<(f64, f64)> = (0..20).map(|second| (f64::from(second), 5.0)).collect();
        assert_eq!(broken(sparse.clone(), 0.01), sparse);
        assert_eq!(broken(vec![(3.0, 5.0)], 0.01), [(3.0, 5.0)]);
    }

    #[test]
    fn records_without_intervals_say_so_and_a_disturbed_run_is_named() {
        let series = RunSeries {
            is_nominal: true,
            disturbed: Some("traffic f: 1 of 2".to_owned()),
            interval_s: 0.01,
            ..RunSeries::default()
        };
        let run = Run { name: "r".to_owned(), series: Some(series), ..Run::default() };
        let notes = &sections(&[run], &Choice::default())[0].notes;
        assert_eq!(notes[0], "disturbed: traffic f: 1 of 2");
        assert!(notes[1].starts_with("its rows have no interval_s"), "{notes:?}");
    }
}
